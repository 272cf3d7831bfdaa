"""Risk-sensitive ranking: gains over a baseline ranking count, and losses count more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, brief
from lambda_objectives.kernels import Risk
from lambda_objectives.metrics import check_number, values
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, check_column, no_objective, qualified
from lambda_objectives.terms.pairs import (
    Prepared,
    check_metric,
    check_options,
    metric_gradient,
    metric_readings,
    prepare_metric,
)


class Compared(NamedTuple):
    """What the term keeps of a data set."""

    pairs: Prepared
    baseline: Vector  # (Q,) the metric of the baseline ranking
    share: Vector  # (Q,) weight of each query, adding up to 1


@dataclass(frozen=True)
class RiskRank:
    """Lambda gradients for a risk-sensitive measure: the metric against that of a baseline ranking.

    With the difference d_q of the metric and the baseline's metric in query q, the utility is ::

        u_q  = d_q if d_q >= 0, else (1 + alpha) d_q
        urisk  = mean of u,    trisk = mean of u / (standard deviation of u / sqrt(Q))

    A pair weighs what swapping its rows changes in the measure, exactly, whether the query crosses the baseline or not.

    Parameters
    ----------
    metric
        The metric to compare by, such as `NDCG(10)`; more of it must be better.
    baseline
        Name of the column with the scores of the baseline: of the ranker in use, of BM25.
    alpha
        How much more losses count than gains.
    measure
        ``"urisk"`` or ``"trisk"``.
    label, sigma, truncation, score_gap_norm, log_norm
        As for `LambdaRank`.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; on data, if there is no such column.

    Notes
    -----
    The weights are exact, the gradient is still that of a surrogate: training from the baseline's scores with a large
    alpha can end below where it began. Watch the measure, which is logged, and keep the best round.

    The first training round starts with constant scores, which mostly lose to the baseline: give the boosters the
    baseline's scores as `init_score` or `base_margin` to begin level with it. The spread of u is taken not
    to be below 0.001.

    References
    ----------
    Wang, Bennett and Collins-Thompson (2012), "Robust ranking models via risk-sensitive optimization", equation 3;
    Dinçer, Macdonald and Ounis (2014), "Hypothesis testing for the risk-sensitive evaluation of retrieval systems",
    equation 7. They weigh by approximations (SARO, FARO) of the exact change taken here.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> term = lo.RiskRank(lo.MRR(), baseline="bm25", alpha=1.0)
    >>> lo.evaluate(term, [1.0, 2.0], [1, 0], group=[2], bm25=[2.0, 1.0])["urisk-mrr"]  # (1/2 - 1) (1 + 1)
    -1.0
    """

    metric: Any
    baseline: str
    alpha: float = 1.0
    measure: str = "urisk"
    label: str | None = None
    sigma: float = 1.0
    truncation: int | None = None
    score_gap_norm: bool = False
    log_norm: bool = False

    needs_order: ClassVar[bool] = True
    together: ClassVar[bool] = True  # the measure is one of all queries
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_metric(self.metric)
        if not self.metric.maximise or getattr(self.metric, "ties", "row") != "row":
            raise ValueError(
                f"metric must be one of which more is better, with ties='row': a mean over orders has no exact change "
                f"of the utility; found {self.metric!r}"
            )
        if not isinstance(self.baseline, str):
            raise ValueError(f"baseline must be the name of a column with scores, found {brief(self.baseline)}")
        check_column("baseline", self.baseline)
        check_number("alpha", self.alpha)
        if self.alpha < 0:
            raise ValueError(f"alpha must not be negative, found {self.alpha!r}")
        if self.measure not in ("urisk", "trisk"):
            raise ValueError(f"measure must be 'urisk' or 'trisk', found {self.measure!r}")
        check_column("label", self.label)
        check_options(self)

    @property
    def name(self) -> str:
        """The measure and the metric's name: urisk-ndcg@10."""
        return qualified(self.label, f"{self.measure}-{self.metric.name}")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Compared:
        """Set up the metric, and take it at the baseline's scores."""
        from lambda_objectives.kernels import cpu

        prepared = prepare_metric(self, queries, dtype)
        ranking = Ranking(queries, cpu)
        ranking.update(queries.column(self.baseline, "baseline"), ranked=True)
        weights = queries.query_weights
        share = weights / weights.sum() if weights.sum() > 0 else np.zeros(len(weights))
        return Compared(prepared, values(self.metric, prepared.tables, ranking), share)

    def gradient(self, prepared: Compared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        pairs, baseline, share = prepared
        now = values(self.metric, pairs.tables, ranking)
        risk = Risk(now, baseline, share, float(self.alpha), self.measure == "trisk")
        at_risk = pairs._replace(pairs=pairs.pairs._replace(risk=risk))
        return metric_gradient(self, at_risk, ranking, grad, hess)

    def readings(self, prepared: Compared, ranking: Ranking) -> dict[str, Reading]:
        """Return the measure and the metric at the ranking's scores."""
        pairs, baseline, share = prepared
        (plain,) = metric_readings(self, pairs, ranking).values()
        d = values(self.metric, pairs.tables, ranking) - baseline
        u = np.where(d < 0, 1.0 + self.alpha, 1.0) * d
        mean, n = float((share * u).sum()), len(u)
        if self.measure == "trisk":
            spread = np.sqrt(max(float((share * u * u).sum()) - mean * mean, 1e-6))
            mean = mean * float(np.sqrt(n - 1) / spread) if n > 1 else 0.0
        return {self.name: Reading(mean, True), qualified(self.label, self.metric.name): plain}
