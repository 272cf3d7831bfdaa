"""Terms over the rows of a query as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.metrics import check_number
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, check_column, check_seed, loops, no_objective, qualified


class Prepared(NamedTuple):
    """What a listwise term keeps of a data set.

    Copies: a user's arrays may be read-only, which to numba is another type and another function to compile.
    """

    queries: Queries
    labels: Vector
    weights: Vector  # (n,) of the rows, or (0,) for none
    constant: float = 0.0  # what of the cost, summed over the queries, no score can change


@dataclass(frozen=True)
class QueryRMSE:
    """Half the squared error that is left once each query's mean error is taken out, averaged over the rows by weight.

    For rows i of one query with ``e_i = s_i - y_i - (weighted mean of s - y over the query)``::

        value   mean over rows of  e_i^2 / 2
        grad    w_i e_i
        hess    w_i

    Only differences within a query count, so that scores need not tell what all rows of a query have in common. Its
    metric is `query_rmse`, the root of the weighted mean of the squares.

    Parameters
    ----------
    label
        Name of the column that holds the labels (any real numbers); None for the data set's own.

    Raises
    ------
    ValueError
        For a label that is no column's name, or holds NaN or infinity.

    Notes
    -----
    The second derivative is w_i (1 - w_i / the query's sum of weights). w_i bounds it, and is what squared error has,
    so that leaf sizes and regularisation mean the same with both. The objective to start with where queries are few: it
    learns from every grade of every row (the README has figures). In XGBoost give `min_child_weight` the number of rows
    that a leaf should have.

    References
    ----------
    CatBoost's documentation, "Ranking: objectives and metrics", QueryRMSE.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.QueryRMSE(), [0.0, 0.0, 5.0], [1, 3, 9], group=[2, 1])  # errors 1, -1 and, on its own, 0
    {'cost/query_rmse': 0.333333..., 'query_rmse': 0.816496...}
    """

    label: str | None = None

    needs_order: ClassVar[bool] = True
    over_rows: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)

    @property
    def name(self) -> str:
        """query_rmse, or price.query_rmse for the labels of a column."""
        return qualified(self.label, "query_rmse")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Find the labels."""
        return Prepared(queries, queries.column(self.label).copy(), _weights(queries))

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        return self._mean_square(prepared, ranking, grad, hess) / 2

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the root of the mean square."""
        none: Floats = np.empty(0)
        return {self.name: Reading(self._mean_square(prepared, ranking, none, none) ** 0.5, False, pooled="root")}

    def _mean_square(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        queries, labels, weights, _ = prepared
        squares = _per_query(queries)
        loops("listwise").centred(ranking.scores, labels, weights, queries.borders, grad, hess, squares, ranking.parts)
        total = float(weights.sum()) if len(weights) else float(len(queries))
        return float(squares.sum()) / total if total > 0 else 0.0


@dataclass(frozen=True)
class QuerySoftMax:
    """Cross entropy of the labels, as weights of what is to be on top, and the softmax of a query's scores.

    For rows i of one query::

        p_i = w_i e^(beta s_i) / sum over j of w_j e^(beta s_j)      S = sum over j of w_j y_j

        value   (sum over queries and rows of  -w_i y_i log p_i) / sum of the queries' weights
        grad    beta (S p_i - w_i y_i)
        hess    beta^2 S p_i (1 - p_i)

    Parameters
    ----------
    label
        Name of the column that holds the labels, real numbers from 0; None for the data set's own.
    beta
        What scores are multiplied by.

    Raises
    ------
    ValueError
        For a parameter out of range, or labels below 0.

    Notes
    -----
    A query whose labels are all 0, or that has a single row, has neither gradient nor Hessian.

    Weights are CatBoost's: they count within the softmax too, so that a row of weight 2 has the gradient of two rows of
    weight 1, and a row of weight 0 might as well not be there. The value is the sum over queries divided by the sum of
    the queries' weights, a query's weight being the mean of its rows': all weights doubled leave it as it is, and where
    weights differ between queries alone it is the weighted mean of the queries' values without weights. CatBoost adds
    beta S times its `lambda`, 0.01, to the Hessian; here that is left to the booster's own regularisation.

    References
    ----------
    Cao, Qin, Liu, Tsai and Li (2007), "Learning to rank: from pairwise approach to listwise approach": the loss of
    ListNet for the row on top. CatBoost's documentation, "Ranking: objectives and metrics", QuerySoftMax.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.gradient(lo.QuerySoftMax(), [0.0, 0.0], [0, 1], group=[2])
    (array([ 0.5, -0.5]), array([0.25, 0.25]))
    """

    label: str | None = None
    beta: float = 1.0

    needs_order: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)
        check_number("beta", self.beta, above=0.0)

    @property
    def name(self) -> str:
        """query_softmax, or clicks.query_softmax for the labels of a column."""
        return qualified(self.label, "query_softmax")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Find the labels and check them."""
        labels, weights = _labels_from_0(self, queries).copy(), _weights(queries)
        if not len(weights):
            return Prepared(queries, labels, weights)
        target = weights * labels
        logarithms = np.log(weights, out=np.zeros(len(weights)), where=target > 0)
        return Prepared(queries, labels, weights, -float((target * logarithms).sum()))

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        queries, labels, weights, constant = prepared
        cost = _per_query(queries)
        loops("listwise").softmax(
            ranking.scores, labels, weights, float(self.beta), queries.borders, ranking.order,
            grad, hess, cost, ranking.parts,
        )  # fmt: skip
        total = float(queries.query_weights.sum())
        return (float(cost.sum()) + constant) / total if total > 0 else 0.0

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Nothing but the cost belongs to it."""
        return {}


class Powers(NamedTuple):
    """What XENDCG keeps of a data set: 2^label, divided by the largest of its query so that none is too large."""

    queries: Queries
    power: Vector  # (n,) 2^(label - largest label of the query)
    unit: Vector  # (Q,) 2^-(largest label of the query)
    weights: Vector  # (n,) of the rows, or (0,) for none


@dataclass(frozen=True)
class XENDCG:
    """Cross entropy that bounds NDCG, with a label distribution drawn afresh each round: LightGBM's `rank_xendcg`.

    For rows i of one query, gamma uniform on [0, 1) for each row and round::

        rho_i = e^(s_i) / sum over j of e^(s_j)      phi_i = 2^(y_i) - gamma_i      P_i = phi_i / sum over j of phi_j

        value   mean over queries of  sum over i of  -P_i log rho_i
        a_i   = rho_i - P_i
        b_i   = rho_i  sum over j != i of  a_j / (1 - rho_j)
        c_i   = rho_i  sum over j != i of  b_j / (1 - rho_j)
        grad    a_i + b_i + c_i
        hess    rho_i (1 - rho_i)

    a is the gradient of the number of queries times the value. With H its full Hessian, D the diagonal of H that is
    `hess`, b and c are the next two terms of the series of D H^-1 a: a booster, which divides by D, comes nearer to
    Newton's step.

    Parameters
    ----------
    label
        Name of the column that holds the labels, real numbers from 0; None for the data set's own.
    seed
        Other seeds draw other gammas.

    Raises
    ------
    ValueError
        For a parameter out of range, or labels below 0.

    Notes
    -----
    gamma depends on the seed, the round of the training and the row's place in the data set, on nothing else: it is the
    same on any machine, for any number of threads and after a resume. LightGBM's comes from a generator of its own for
    each query, and LightGBM cuts labels to whole numbers first; the formulas are the same. Values are those at the
    round's gamma; a data set that is not trained on stays at that of round 0.

    A row's weight multiplies its own gradient and Hessian at the end, as in LightGBM; the value weighs queries by the
    mean weight of their rows. A query of one row has neither gradient nor Hessian. Where one row's score is so far
    above the others that 1 - rho is 0, the limits are taken.

    References
    ----------
    Bruch (2021), "An alternative cross entropy loss for learning-to-rank".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> grad, hess = lo.gradient(lo.XENDCG(), [0.0, 0.0, 0.0], [0, 0, 2], group=[3])
    >>> (grad < 0).tolist()  # the third row is to rise
    [False, False, True]
    """

    label: str | None = None
    seed: int = 0

    needs_order: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)
        check_seed(self.seed)

    @property
    def name(self) -> str:
        """xendcg, or quality.xendcg for the labels of a column."""
        return qualified(self.label, "xendcg")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Powers:
        """Check the labels and take the powers of 2."""
        ptr, labels = queries.borders, _labels_from_0(self, queries)
        largest = np.zeros(len(ptr) - 1)
        filled = np.diff(ptr) > 0
        if filled.any():
            largest[filled] = np.maximum.reduceat(labels, ptr[:-1][filled])
        power = np.exp2(labels - np.repeat(largest, np.diff(ptr)))
        return Powers(queries, power, np.exp2(-largest), _weights(queries))

    def gradient(self, prepared: Powers, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        queries, power, unit, weights = prepared
        cost = _per_query(queries)
        loops("listwise").xendcg(
            ranking.scores, power, unit, weights, int(self.seed), ranking.draw, queries.borders, ranking.order,
            grad, hess, cost, ranking.parts,
        )  # fmt: skip
        return queries.mean_over_queries(cost)

    def readings(self, prepared: Powers, ranking: Ranking) -> dict[str, Reading]:
        """Nothing but the cost belongs to it."""
        return {}


def _per_query(queries: Queries) -> Vector:
    return np.empty(len(queries.borders) - 1)


def _weights(queries: Queries) -> Vector:
    return np.empty(0) if queries.weights is None else queries.weights.copy()


def _labels_from_0(term: QuerySoftMax | XENDCG, queries: Queries) -> Vector:
    y = queries.column(term.label)
    if (y < 0).any():
        row = int(np.argmax(y < 0))
        raise ValueError(f"label: {type(term).__name__} takes labels from 0, row {row} is {y[row]:g}")
    return y
