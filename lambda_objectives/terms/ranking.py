"""Terms over pairs of rows of the same query: LambdaRank, RankNet, LambdaLoss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lambda_objectives.kernels import LOSS1, LOSS2, LOSS2_PLUS, UNIT
from lambda_objectives.metrics import DCG, NDCG, check_number
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, check_column, no_objective, qualified
from lambda_objectives.terms.pairs import (
    Prepared,
    check_metric,
    check_options,
    make_pairs,
    metric_gradient,
    metric_readings,
    pair_gradient,
    prepare_metric,
    row_weights,
)


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
    label_difference
        Multiply each w by the difference of the labels.
    sample
        Each row draws this many of the rows worse than it to make pairs with, if there are more; what is drawn weighs
        more in turn, so that the expected gradient is that of all pairs. None: all pairs.
    seed
        Decides with the round what is drawn: the same on every machine, and after a resume.
    unjudged
        Labels may be NaN: such rows have a rank, are worth nothing to the metric and make no pairs.
    propensity
        Name of a column with the probability that a row was looked at: each pair weighs one over that of its better
        row (inverse propensity weighting, for labels that are clicks).
    propensity_floor
        Propensities below this count as this, so that no pair weighs more than its inverse.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; on data, for labels that the metric cannot take.

    Notes
    -----
    Start without a cut-off, and try both norms and none. With few training queries `QueryRMSE` and `XENDCG`, which use
    every grade of every row, rank as well or better by nearly all metrics; this term pays where the metric wants
    another order than the mean label, where queries are many, or where a cut-off matters (the README has figures).

    A row's weight multiplies its own gradient and Hessian after the pairs are summed, as in LightGBM. The gradient is
    that of (sum of the query weights) x value, so leaf sizes and regularisation mean what they mean with the boosters'
    own objectives.

    References
    ----------
    Burges (2010), "From RankNet to LambdaRank to LambdaMART: an overview", equations 3 to 6. Propensities: Joachims,
    Swaminathan and Schnabel (2017), "Unbiased learning-to-rank with biased feedback".

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
    label_difference: bool = field(default=False, kw_only=True)
    sample: int | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    unjudged: bool = field(default=False, kw_only=True)
    propensity: str | None = field(default=None, kw_only=True)
    propensity_floor: float = field(default=0.1, kw_only=True)

    needs_order: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_metric(self.metric)
        check_column("label", self.label)
        check_column("propensity", self.propensity)
        check_options(self)

    @property
    def name(self) -> str:
        """The metric's name: ndcg@10, or quality.ndcg@10 for the labels of a column."""
        return qualified(self.label, self.metric.name)

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Sort each query by label and set up the metric's tables."""
        return prepare_metric(self, queries, dtype)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        value = metric_gradient(self, prepared, ranking, grad, hess)
        if self.hessian_floor > 0:
            np.maximum(hess, self.hessian_floor, out=hess)
        return value

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the metric at the ranking's scores."""
        return metric_readings(self, prepared, ranking)


@dataclass(frozen=True)
class RankNet:
    """The logistic loss of every pair of rows of a query with different labels, each pair weighing 1.

    ``value = mean over queries of  sum over pairs of  log(1 + e^-x),   x = sigma (s_h - s_l),  label h > label l``

    Parameters
    ----------
    label
        Name of the column that holds the labels (any real numbers); None for the data set's own.
    sigma
        Slope: of the logistic function, or of the hinge.
    loss
        ``"logistic"``, or ``"hinge"``: max(0, 1 - x), with the Hessian sigma^2 for both rows of a pair that counts, as
        XGBoost's `binary:hinge` has it.
    label_difference
        Each pair weighs the difference of its labels.
    sample, seed, unjudged
        As for `LambdaRank`.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    XGBoost's `rank:pairwise` over all pairs with its normalisations off has this gradient and twice this Hessian.

    References
    ----------
    Burges et al. (2005), "Learning to rank using gradient descent", equation 3; hinge: Joachims (2002), "Optimizing
    search engines using clickthrough data".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.RankNet(), [0.0, 0.0], [0, 1], group=[2])
    {'cost/ranknet': 0.693147...}
    """

    label: str | None = None
    sigma: float = 1.0
    loss: str = field(default="logistic", kw_only=True)
    label_difference: bool = field(default=False, kw_only=True)
    sample: int | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    unjudged: bool = field(default=False, kw_only=True)

    needs_order: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)
        check_options(self)
        if self.loss not in ("logistic", "hinge"):
            raise ValueError(f"loss must be 'logistic' or 'hinge', found {self.loss!r}")

    @property
    def name(self) -> str:
        """ranknet, or quality.ranknet for the labels of a column."""
        return qualified(self.label, "ranknet")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Sort each query by label."""
        labels = queries.column(self.label, unjudged=self.unjudged)
        pairs = make_pairs(self, queries, dtype, UNIT, labels, labels)
        return Prepared(queries, pairs, row_weights(queries, dtype))

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        return pair_gradient(prepared, ranking, grad, hess)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Nothing but the cost belongs to it."""
        return {}


@dataclass(frozen=True)
class LambdaLoss:
    """The bounds on DCG of the LambdaLoss framework: NDCG-Loss1, NDCG-Loss2 and NDCG-Loss2++.

    For a better row h and a worse row l at ranks r (from 0), with gains G over the ideal value, discounts D of the
    ranks and ``delta = D(|r_h - r_l| - 1) - D(|r_h - r_l|)`` a pair weighs ::

        "1"     G_h D(r_h)
        "2"     (G_h - G_l) delta
        "2++"   (G_h - G_l) (|D(r_h) - D(r_l)| + mu delta)

    Parameters
    ----------
    metric
        `NDCG()` or `DCG()`, without a cut-off: of the bounds there is no agreed truncated form. Restrict the pairs by
        `truncation`.
    variant
        ``"1"``, ``"2"`` or ``"2++"``.
    mu
        Share of the second bound in ``"2++"``; with 0 it is `LambdaRank`.
    label, sigma, truncation, score_gap_norm, log_norm
        As for `LambdaRank`.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; on data, for labels that the metric cannot take.

    Notes
    -----
    The logarithm is the natural one, where the paper's is that of base 2: a factor of log 2 on everything.

    References
    ----------
    Wang, Li, Golbandi, Bendersky and Najork (2018), "The LambdaLoss framework for ranking metric optimization",
    equations 12, 16 and 18.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.LambdaLoss(lo.NDCG(), "1"), [0.0, 0.0], [1, 0], group=[2])
    {'cost/lambdaloss1': 0.693147..., 'ndcg': 1.0}
    """

    metric: Any = NDCG()
    variant: str = "2++"
    mu: float = 10.0
    label: str | None = None
    sigma: float = 1.0
    truncation: int | None = None
    score_gap_norm: bool = False
    log_norm: bool = False

    needs_order: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_metric(self.metric)
        if not isinstance(self.metric, DCG) or self.metric.k is not None or self.metric.ties != "row":
            raise ValueError(f"metric must be NDCG() or DCG(), without a cut-off, found {self.metric!r}")
        if self.variant not in KINDS:
            raise ValueError(f"variant must be '1', '2' or '2++', found {self.variant!r}")
        check_number("mu", self.mu)
        if self.mu < 0:
            raise ValueError(f"mu must not be negative, found {self.mu!r}")
        check_column("label", self.label)
        check_options(self)

    @property
    def name(self) -> str:
        """lambdaloss1, lambdaloss2 or, for 2++, lambdaloss2pp: MLflow takes no + in a name."""
        return qualified(self.label, f"lambdaloss{self.variant.replace('+', 'p')}")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Sort each query by label and set up gains and discounts."""
        prepared = prepare_metric(self, queries, dtype)
        return prepared._replace(pairs=prepared.pairs._replace(kind=KINDS[self.variant], mu=float(self.mu)))

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        return pair_gradient(prepared, ranking, grad, hess)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the metric at the ranking's scores."""
        (reading,) = metric_readings(self, prepared, ranking).values()
        return {qualified(self.label, self.metric.name): reading}


KINDS = {"1": LOSS1, "2": LOSS2, "2++": LOSS2_PLUS}
