"""Position bias estimated while training: labels that are clicks, on rows that were shown at known positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.metrics import check_number
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

TINY = 1e-16  # a cost below this part of the largest one is none


class Shown(NamedTuple):
    """What the term keeps of a data set."""

    pairs: Prepared
    positions: list[float]  # the different positions, ascending; none where the data set has no such column
    place: npt.NDArray[np.int64]  # (n,) of the row's position among them
    weights: Vector  # (n,) mean weight of the row's query


@dataclass(frozen=True)
class UnbiasedRank:
    """Lambda gradients from clicks, corrected for where the rows were shown; the bias is estimated while training.

    ``form="ratio"``: a row at position p is clicked, or not, too often by the ratios t+(p) and t-(p). A pair of a
    clicked row h and another row l weighs 1 / (t+(p_h) t-(p_l)); after each round ::

        t+(p) = (C+(p) / C+(first))^(1 / (1 + regularization)),  C+(p) = sum over pairs with h at p of cost / t-(p_l)
        t-(p) = (C-(p) / C-(first))^(1 / (1 + regularization)),  C-(p) = sum over pairs with l at p of cost / t+(p_h)

    A position without a cost keeps its ratios.

    ``form="additive"``: the click follows from score + b(p); with g and H the sums of the gradients and of the Hessians
    over the n_p rows at p, after each round ::

        b(p) = b(p) - rate (g + regularization n_p b(p)) / (|H + regularization n_p| + 0.001)

    Parameters
    ----------
    metric
        What to optimise, such as `NDCG(10)`.
    position
        Name of the column with the position at which a row was shown, from the top: any numbers, the smallest first.
    form
        ``"ratio"`` or ``"additive"``.
    regularization
        From 0; the larger, the nearer to no correction. None: 1 for ratios, 0 for the additive form.
    rate
        Of the steps of the additive form; LightGBM takes its learning rate.
    label, sigma, truncation, score_gap_norm, log_norm
        As for `LambdaRank`.
    ratio_floor
        No ratio is below this, so that a pair at positions of few clicks weighs no more than its inverse, squared.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; on data, if there is no such column.

    Notes
    -----
    The estimates are part of the state of a training: ``objective.state()["terms"]`` has them by the term's name, to
    read, to save, and to go on from. A validation set is evaluated without a correction, its metric as it is, and needs
    no such column. The additive form is that of LightGBM's ``Dataset(position=...)``, which is read as the column
    "position"; LightGBM numbers such positions in the order in which they first appear, whatever they were. The ratios
    are those of XGBoost's `lambdarank_unbiased`, but for its cost, which rises with the gap of a pair in the right
    order; its positions are the rows' places in the file.

    References
    ----------
    Hu, Wang, Peng and Li (2019), "Unbiased LambdaMART: an unbiased pairwise learning-to-rank algorithm", equations 30
    and 31.

    Examples
    --------
    >>> import lightgbm as lgb, numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X, position = rng.normal(size=(3000, 3)), np.tile(np.arange(10), 300)
    >>> seen = rng.random(3000) < 1 / (1 + position)
    >>> clicks = seen & (X[:, 0] + rng.normal(size=3000) > 0.5)
    >>> train = lo.attach(lgb.Dataset(X, clicks, group=[10] * 300), position=position)
    >>> objective = lo.Objective(lo.UnbiasedRank(lo.NDCG(10), "position"))
    >>> booster = lgb.train({"objective": objective, "verbosity": -1}, train, 10)
    >>> ratios = objective.state(train)["terms"]["unbiased-ndcg@10"]["plus"]
    >>> ratios[0] == 1 and ratios[9] < 0.7
    True
    """

    metric: Any
    position: str
    form: str = "ratio"
    regularization: float | None = None
    rate: float = 0.1
    label: str | None = None
    sigma: float = 1.0
    truncation: int | None = None
    score_gap_norm: bool = False
    log_norm: bool = False
    ratio_floor: float = 0.01

    needs_order: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_metric(self.metric)
        if not isinstance(self.position, str):
            raise ValueError(f"position must be the name of a column, found {self.position!r}")
        check_column("position", self.position)
        if self.form not in ("ratio", "additive"):
            raise ValueError(f"form must be 'ratio' or 'additive', found {self.form!r}")
        if self.regularization is not None:
            check_number("regularization", self.regularization)
            if self.regularization < 0:
                raise ValueError(f"regularization must not be negative, found {self.regularization!r}")
        check_number("rate", self.rate, above=0.0)
        check_number("ratio_floor", self.ratio_floor, above=0.0)
        check_column("label", self.label)
        check_options(self)

    @property
    def name(self) -> str:
        """Unbiased and the metric's name: unbiased-ndcg@10."""
        return qualified(self.label, f"unbiased-{self.metric.name}")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Shown:
        """Set up the metric and number the positions."""
        known = self.position in queries.columns  # a validation set can do without
        column = queries.column(self.position, "position") if known else np.empty(0)
        # every worker has a number for the positions of all of them
        positions = np.unique(queries.workers.gather(np.unique(column)))
        place = np.searchsorted(positions, column)
        weights = np.repeat(queries.query_weights, np.diff(queries.borders))
        return Shown(prepare_metric(self, queries, dtype), positions.tolist(), place, weights)

    def start(self, prepared: Shown) -> dict[str, list[float]]:
        """Return the state before the first round: no bias."""
        n = len(prepared.positions)
        if self.form == "ratio":
            return {"positions": prepared.positions, "plus": [1.0] * n, "minus": [1.0] * n}
        return {"positions": prepared.positions, "bias": [0.0] * n}

    def gradient(self, prepared: Shown, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian without a correction, return the value."""
        return metric_gradient(self, prepared.pairs, ranking, grad, hess)

    def learn(
        self, prepared: Shown, ranking: Ranking, state: dict[str, list[float]], grad: Floats, hess: Floats
    ) -> tuple[float, dict[str, list[float]]]:
        """Write gradient and Hessian by a state; return the value and the state for the next round."""
        prepared.pairs.queries.column(self.position, "position")  # to learn from, it has to be there
        if state["positions"] != prepared.positions:
            raise ValueError(
                f"state: estimates for the positions {state['positions']} do not fit a data set with the positions "
                f"{prepared.positions} in column {self.position!r}"
            )
        if self.form == "ratio":
            return self._learn_ratios(prepared, ranking, state, grad, hess)
        return self._learn_bias(prepared, ranking, state, grad, hess)

    def _learn_ratios(
        self, prepared: Shown, ranking: Ranking, state: dict[str, list[float]], grad: Floats, hess: Floats
    ) -> tuple[float, dict[str, list[float]]]:
        place, n = prepared.place, len(prepared.positions)
        workers = prepared.pairs.queries.workers
        plus, minus = (np.array(state[which])[place] for which in ("plus", "minus"))
        costs = np.zeros((2, len(place)))
        pairs = prepared.pairs.pairs._replace(better=1.0 / plus, worse=1.0 / minus, costs=costs)
        value = metric_gradient(self, prepared.pairs._replace(pairs=pairs), ranking, grad, hess)
        power = 1.0 / (1.0 + (1.0 if self.regularization is None else self.regularization))
        new = {"positions": prepared.positions}
        for which, cost, ratio in (("plus", costs[0], plus), ("minus", costs[1], minus)):
            total = workers.exchange(np.bincount(place, weights=cost * ratio * prepared.weights, minlength=n))
            known = total > TINY * total.max(initial=0.0)
            ratios = np.array(state[which])
            if known[:1].any():  # without a cost at the first position there is nothing to compare with
                ratios[known] = np.maximum((total[known] / total[0]) ** power, self.ratio_floor)
            new[which] = ratios.tolist()
        return value, new

    def _learn_bias(
        self, prepared: Shown, ranking: Ranking, state: dict[str, list[float]], grad: Floats, hess: Floats
    ) -> tuple[float, dict[str, list[float]]]:
        place, n = prepared.place, len(prepared.positions)
        bias = np.array(state["bias"])
        value = metric_gradient(self, prepared.pairs, ranking.shifted(bias[place]), grad, hess)
        each = np.stack([np.bincount(place, weights=of_row, minlength=n) for of_row in (None, grad, hess)])
        count, slope, curve = prepared.pairs.queries.workers.exchange(each.ravel()).reshape(3, n)
        slope = slope + (self.regularization or 0.0) * count * bias
        curve = curve + (self.regularization or 0.0) * count
        bias = bias - self.rate * slope / (np.abs(curve) + 0.001)
        return value, {"positions": prepared.positions, "bias": bias.tolist()}

    def readings(self, prepared: Shown, ranking: Ranking) -> dict[str, Reading]:
        """Return the metric at the ranking's scores."""
        (reading,) = metric_readings(self, prepared.pairs, ranking).values()
        return {qualified(self.label, self.metric.name): reading}
