"""YetiRank: what a swap changes, averaged over orders drawn by adding noise to the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import whole_number
from lambda_objectives.metrics import NDCG, check_number
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, check_column, loops, no_objective, qualified
from lambda_objectives.terms.pairs import (
    Prepared,
    check_metric,
    check_options,
    metric_readings,
    prepare_metric,
)

NOISES = ("logistic", "gaussian")


@dataclass(frozen=True)
class YetiRank:
    """Lambda gradients whose weights are averaged over orders drawn by adding noise to the scores.

    Each round draws orders: rows ranked by ``s + noise``. A pair weighs the mean over the draws of what swapping its
    rows changes in the metric at that order; value, gradient and Hessian of a pair at the scores themselves are those
    of `LambdaRank`. A row far below still meets the top now and then, and rows with equal scores are as often above as
    below each other: constant scores do not reward the order of a file.

    Parameters
    ----------
    metric
        What to optimise, such as `NDCG()`; it must have tables.
    draws
        Orders drawn each round.
    seed
        Decides with the round what is drawn: the same on every machine, for any number of threads, after a resume.
    neighbours
        Only rows next to each other in a drawn order make a pair, as in CatBoost; else all pairs, which costs as much
        as `LambdaRank` for each draw.
    noise
        ``"logistic"``, the difference of two Gumbel variables, or ``"gaussian"``.
    noise_power
        The noise is multiplied by this.
    label, sigma, truncation
        As for `LambdaRank`, ranks being those of the drawn order.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; on data, for labels that the metric cannot take.

    Notes
    -----
    CatBoost's `YetiRank`, mode Classic, has the weights of ``YetiRank(DCG(gain="linear", discount=lambda r: 0.85**r))``
    with neighbours, up to a factor. Its `StochasticRank` is not here: the gradient of a metric smoothed by noise can
    only be estimated, one conditional draw after the other, and has no Hessian.

    References
    ----------
    Gulin, Kuralenok and Pavlov (2011), "Winning the transfer learning track of Yahoo!'s learning to rank challenge with
    YetiRank"; any metric: Lyzhin, Ustimenko, Gulin and Prokhorenkova (2023), "Which tricks are important for learning
    to rank?".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> grad, hess = lo.gradient(lo.YetiRank(lo.NDCG()), [0.0, 0.0, 0.0], [0, 1, 0], group=[3])
    >>> bool(grad[1] < 0 < grad[0])
    True
    """

    metric: Any = NDCG()
    draws: int = 10
    seed: int = 0
    neighbours: bool = True
    noise: str = "logistic"
    noise_power: float = 1.0
    label: str | None = None
    sigma: float = 1.0
    truncation: int | None = None

    needs_order: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_metric(self.metric)
        if hasattr(self.metric, "changes"):
            raise TypeError(f"metric must have tables, found {self.metric!r}")
        whole_number("draws", self.draws, at_least=1)
        if not isinstance(self.neighbours, bool | np.bool_):
            raise ValueError(f"neighbours must be True or False, found {self.neighbours!r}")
        if self.noise not in NOISES:
            raise ValueError(f"noise must be 'logistic' or 'gaussian', found {self.noise!r}")
        check_number("noise_power", self.noise_power, above=0.0)
        check_column("label", self.label)
        check_options(self)

    @property
    def name(self) -> str:
        """Yetirank and the metric's name: yetirank-ndcg@10."""
        return qualified(self.label, f"yetirank-{self.metric.name}")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Sort each query by label and set up the metric's tables."""
        prepared = prepare_metric(self, queries, dtype)
        # the orders drawn have no equal scores left to average over
        return prepared._replace(pairs=prepared.pairs._replace(drawn=True, ties=False))

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        yeti = loops("yeti")
        ptr, parts, kernels, pairs = ranking.ptr, ranking.parts, ranking.kernels, prepared.pairs
        assert ptr is not None
        noisy, order, rank = np.empty(len(ranking.scores)), ranking.order.copy(), ranking.rank.copy()
        total, cost = np.zeros(len(ptr) - 1), np.zeros(len(ptr) - 1)
        grad[:], hess[:] = 0.0, 0.0
        one, curve = (np.empty_like(grad), np.empty_like(hess)) if not self.neighbours else (grad, hess)
        discount = pairs.discount.astype(np.float64)
        for draw in range(self.draws):
            noise = NOISES.index(self.noise)
            yeti.noisy_scores(
                self.seed, ranking.draw, draw, noise, self.noise_power, ranking.scores, ptr, noisy, parts
            )  # fmt: skip
            kernels.rank(noisy, ptr, order, rank, parts)
            if self.neighbours:
                yeti.neighbour_gradients(
                    pairs.kind, prepared.tables.gain, discount, prepared.tables.grade, pairs.scale, self.sigma,
                    pairs.truncation, 1.0 / self.draws, ranking.scores, ptr, order, prepared.weights, grad, hess, total,
                    parts,
                )  # fmt: skip
                continue
            kernels.pair_gradients(pairs, ranking.scores, ptr, order, rank, prepared.weights, one, curve, cost, parts)
            for sums, part in ((grad, one), (hess, curve), (total, cost)):
                part /= self.draws
                sums += part
        return prepared.queries.mean_over_queries(total)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the metric at the ranking's scores."""
        (reading,) = metric_readings(self, prepared, ranking).values()
        return {qualified(self.label, self.metric.name): reading}
