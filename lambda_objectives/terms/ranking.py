"""Terms over pairs of rows of the same query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, whole_number
from lambda_objectives.kernels import ADDITIVE, UNIT, Pairs
from lambda_objectives.metrics import Tables, check_number
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, check_column, qualified


class Prepared(NamedTuple):
    """What a pair term keeps of a data set."""

    queries: Queries
    pairs: Pairs
    weights: Floats  # (n,) of the rows, or (0,) for none
    tables: Tables | None  # of its metric


@dataclass(frozen=True)
class LambdaRank:
    """Lambda gradients for a ranking metric: each pair weighs what swapping its two rows would change the metric.

    For rows h, l of one query with label h > label l, ``x = sigma (s_h - s_l)`` and the weight
    ``w = |metric now - metric with h and l swapped|``::

        value   mean over queries of  sum over pairs of  w log(1 + e^-x)
        grad    -sigma w / (1 + e^x)  added to h, subtracted from l
        hess    sigma^2 w e^x / (1 + e^x)^2  added to both

    w is the exact change of the metric as it is evaluated, cut-off included, and is held fixed in the derivatives.

    Parameters
    ----------
    metric
        What to optimise, such as `NDCG(10)`.
    label
        Name of the column that holds the labels; None for the data set's own.
    sigma
        Slope of the logistic function.
    truncation
        A pair counts only if its better-ranked row is among this many first ranks. None: every pair that matters.
        This is LightGBM's `lambdarank_truncation_level`, not the metric's cut-off.
    score_gap_norm
        Divide each w by 0.01 + |s_h - s_l|, unless all scores of the query are equal.
    log_norm
        Multiply the query by log2(1 + S) / S, S = twice the sum of its pairs' gradients.
        LightGBM's `lambdarank_norm` is both.
    hessian_floor
        Smallest Hessian of a row.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for labels that the metric cannot take.

    Notes
    -----
    A row's weight multiplies its own gradient and Hessian after the pairs are summed, as in LightGBM. The gradient is
    that of (sum of the query weights) x value, so leaf sizes and regularisation mean what they mean with the boosters'
    own objectives.

    References
    ----------
    Burges (2010), "From RankNet to LambdaRank to LambdaMART: an overview", equations 3 to 6.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> grad, hess = lo.gradient(lo.LambdaRank(lo.NDCG(10)), [0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(4).tolist()  # the second row is to rise: half of 1 - 1 / log2(3)
    [0.1845, -0.1845]
    """

    metric: Any
    label: str | None = None
    sigma: float = 1.0
    truncation: int | None = None
    score_gap_norm: bool = False
    log_norm: bool = False
    hessian_floor: float = 0.0

    needs_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.metric, type) or not hasattr(self.metric, "tables"):
            raise TypeError(f"metric must be a metric object such as NDCG(10), found {self.metric!r}")
        check_column("label", self.label)
        check_number("sigma", self.sigma, above=0.0)
        check_number("hessian_floor", self.hessian_floor)
        if self.hessian_floor < 0:
            raise ValueError(f"hessian_floor must not be negative, found {self.hessian_floor!r}")
        if self.truncation is not None:
            whole_number("truncation", self.truncation, at_least=1)
        for name in ("score_gap_norm", "log_norm"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, found {getattr(self, name)!r}")

    @property
    def name(self) -> str:
        """The metric's name: ndcg@10, or quality.ndcg@10 for the labels of a column."""
        return qualified(self.label, self.metric.name)

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Sort each query by label and set up the metric's tables."""
        ptr, labels = queries.borders, queries.column(self.label)
        tables = self.metric.tables(labels, ptr)
        longest = int(np.diff(ptr).max(initial=0))
        discount = np.zeros(longest, dtype)
        discount[: len(tables.discount)] = tables.discount
        # of two ranks past the cut-off neither counts: such pairs are 0, so leave them out as a truncation does
        reach = min(longest, len(tables.discount), self.truncation or longest)
        pairs = _pairs(ADDITIVE, ptr, labels, tables.gain, discount, reach, self, dtype)
        return Prepared(queries, pairs, _weights(queries, dtype), tables)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        value = _gradient(prepared, ranking, grad, hess)
        if self.hessian_floor > 0:
            np.maximum(hess, self.hessian_floor, out=hess)
        return value

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the metric at the ranking's scores."""
        value = prepared.queries.mean_over_queries(self.metric.values(prepared.tables, ranking))
        return {self.name: Reading(value, self.metric.maximise)}


@dataclass(frozen=True)
class RankNet:
    """The logistic loss of every pair of rows of a query with different labels, each pair weighing 1.

    ``value = mean over queries of  sum over pairs of  log(1 + e^-x),   x = sigma (s_h - s_l),  label h > label l``

    Parameters
    ----------
    label
        Name of the column that holds the labels (any real numbers); None for the data set's own.
    sigma
        Slope of the logistic function.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    XGBoost's `rank:pairwise` over all pairs with its normalisations off has this gradient and twice this Hessian.

    References
    ----------
    Burges et al. (2005), "Learning to rank using gradient descent", equation 3.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.RankNet(), [0.0, 0.0], [0, 1], group=[2])
    {'cost/ranknet': 0.693147...}
    """

    label: str | None = None
    sigma: float = 1.0

    needs_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_column("label", self.label)
        check_number("sigma", self.sigma, above=0.0)

    @property
    def name(self) -> str:
        """ranknet, or quality.ranknet for the labels of a column."""
        return qualified(self.label, "ranknet")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Sort each query by label."""
        ptr, labels = queries.borders, queries.column(self.label)
        longest = int(np.diff(ptr).max(initial=0))
        pairs = _pairs(UNIT, ptr, labels, labels, np.zeros(longest, dtype), longest, self, dtype)
        return Prepared(queries, pairs, _weights(queries, dtype), None)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        return _gradient(prepared, ranking, grad, hess)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Nothing but the cost belongs to it."""
        return {}


def _gradient(prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
    assert ranking.ptr is not None
    cost = np.empty(len(ranking.ptr) - 1)
    ranking.kernels.pair_gradients(
        prepared.pairs, ranking.scores, ranking.ptr, ranking.order, ranking.rank, prepared.weights,
        grad, hess, cost, ranking.parts,
    )  # fmt: skip
    return prepared.queries.mean_over_queries(cost)


def _pairs(
    kind: int,
    ptr: npt.NDArray[np.int64],
    labels: Vector,
    level: Vector,
    discount: Floats,
    truncation: int,
    term: Any,
    dtype: npt.DTypeLike,
) -> Pairs:
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    by_label = np.lexsort((labels, query))
    return Pairs(
        kind=kind,
        by_label=(by_label - ptr[query]).astype(np.int32),
        level=np.ascontiguousarray(level[by_label], dtype=dtype),
        discount=discount,
        truncation=truncation,
        sigma=float(term.sigma),
        gap_norm=bool(getattr(term, "score_gap_norm", False)),
        log_norm=bool(getattr(term, "log_norm", False)),
    )


def _weights(queries: Queries, dtype: npt.DTypeLike) -> Floats:
    return np.empty(0, dtype) if queries.weights is None else queries.weights.astype(dtype)
