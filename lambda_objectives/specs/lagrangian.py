"""One cost minimised while others stay within their bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lambda_objectives.arrays import brief
from lambda_objectives.queries import Queries
from lambda_objectives.specs import multipliers
from lambda_objectives.specs.constraints import Constraint, check_reachable
from lambda_objectives.specs.options import check_mu, check_options
from lambda_objectives.specs.rounds import Round, Sight, Weights
from lambda_objectives.terms import Reading, Term, check_term, mass, no_objective

UPDATES = ("auto", "carry", "reset")
LEAST_STEP = 0.25  # of the scores' spread: see _full


class _Standing(NamedTuple):
    """Where the constraints are at given scores."""

    values: list[float]
    bounds: list[float]  # NaN for those relative to a round that has not come
    scales: list[float]
    excess: list[float]  # (value - bound) / scale for an upper bound; above 0 it is broken


@dataclass(frozen=True)
class AugmentedLagrangian:
    """Minimise one cost while others stay within bounds, by multipliers that move every round (AL-LambdaMART).

    Every tree is grown on ``gradient of the primary + sum of multiplier x gradient of a constraint``, Hessians
    likewise. With costs C, bounds b, and violations ``v = (C - b) / |b|`` at the scores before the round's tree,
    multipliers of the paper follow ::

        "carry"   alpha = max(0, alpha + mu v)                              (equation 13)
        "reset"   alpha = 0 where v < 0, else alpha + mu v                  (equation 14)

    ``"auto"``, the default, needs no tuning. It trains the primary alone first (`start`), then leads each violation to
    a hair under 0 until `land`, and holds it there by a controller in ``log(1 + multiplier)``: see
    `lambda_objectives.specs.multipliers`.

    Parameters
    ----------
    primary
        The term that is minimised; early stopping watches its metric.
    constraints
        One or more `Constraint`.
    update
        ``"auto"``, ``"carry"`` or ``"reset"``.
    mu
        Step of the multipliers, one number or one for each constraint. With ``"carry"`` and ``"reset"`` 1 unless given
        (small: close to the bounds; large: sooner met and farther over-satisfied). With ``"auto"`` it multiplies the
        rule's own gain; 1 unless given.
    growth
        mu is multiplied by this every round (``"carry"`` and ``"reset"``).
    scale
        ``"bound"``: costs are means over queries, violations are divided by the bound. ``"sum"``: the paper's Algorithm
        1 to the letter: costs and bounds are sums over the queries, ``v = C - b``, the first tree is grown before the
        first update; `mu` must be given.
    kappa
        Share of the constraints' Hessians that counts. None: 1 for ``"carry"`` and ``"reset"``, as in the paper; for
        ``"auto"`` .25 or the learning rate if that is more, which keeps every step below a full Newton step.
    normalise
        Divide gradient and Hessian by 1 + the sum of the multipliers, so that `lambda` and the least Hessians of a leaf
        keep their meaning when multipliers are large.
    tighten
        The rule aims this share below the bounds. None: 0 for ``"carry"`` and ``"reset"``; for ``"auto"`` as much as
        the costs swing from round to round, .75 % at the most.
    start
        Rounds in which the primary is trained alone: a number, or below 1 a share of all rounds. None: 0 for
        ``"carry"`` and ``"reset"``; for ``"auto"`` .3 of the rounds; with relative bounds .5 of them.
    land
        Round, likewise, by which ``"auto"`` leads the costs to their bounds; None: .8 of the rounds, with relative
        bounds .85.
    rounds
        How many rounds there will be. None: what the booster was told; where that is unknown, or where
        `lo.lightgbm.early_stopping` or `lo.xgboost.EarlyStopping` may end the training before, ``"auto"`` has its
        constraints on from the second round and at their bounds ``4 / learning rate`` rounds later.
    follow
        ``"train"``, or ``"valid"``: the multipliers follow the costs of the first data set that `Objective.metrics`
        evaluates besides the training data.

    Raises
    ------
    TypeError, ValueError
        For what is no term or no constraint, none or two of one name, a parameter out of range; on data, for a
        constraint on a column whose values never differ within a query, and for a bound on a metric that no order of
        the rows keeps to.

    Notes
    -----
    The history has ``multiplier/NAME`` (of the raw cost's gradient) and ``margin/NAME``, ``(b - C) / |b|``, below 0
    where the bound is broken. That training ends feasible says nothing about the last round: use
    `lo.lightgbm.early_stopping` or `lo.xgboost.EarlyStopping` to return the best round that keeps to all bounds.

    Multipliers far above 1 with rules that have no limit ("carry" and "reset", mu from 10 on, bounds out of reach) can
    drive scores apart without end in LightGBM, whose `reg_lambda` is 0 unless given: pairs that are far out of order
    have next to no Hessian.

    Bounds on dependence, ``Constraint(DistanceCovariance("age", link="logit"), at_most=0.002)``: a term of the raw
    scores (no `link`) pushes rows of any curvature alike, so that beside `LogLoss` or `Poisson`, whose rows may have
    next to none, the link of the loss is the safer choice.

    Costs of ranking terms are means over queries, those of row losses over rows; the multiplier is the one that belongs
    to these means, whatever mixture of both there is.

    References
    ----------
    Momma, Bagheri Garakani and Sun (2019), "Multi-objective relevance ranking", equations 9 to 14 and Algorithm 1.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> rank = lo.LambdaRank(lo.NDCG(10))
    >>> quality = lo.LambdaRank(lo.NDCG(10), label="quality")
    >>> spec = lo.AugmentedLagrangian(rank, [lo.Constraint(quality, at_most=0.5)])
    >>> found = lo.evaluate(spec, [2.0, 1.0], [1, 0], group=[2], quality=[0, 1])
    >>> sorted(found)
    ['cost/ndcg@10', 'cost/quality.ndcg@10', 'margin/quality.ndcg@10', 'ndcg@10', 'quality.ndcg@10']
    """

    primary: Term
    constraints: Sequence[Constraint]
    update: str = "auto"
    mu: float | Sequence[float] | None = None
    growth: float = field(default=1.0, kw_only=True)
    scale: str = field(default="bound", kw_only=True)
    kappa: float | None = field(default=None, kw_only=True)
    normalise: bool = field(default=False, kw_only=True)
    tighten: float | None = field(default=None, kw_only=True)
    start: float | None = field(default=None, kw_only=True)
    land: float | None = field(default=None, kw_only=True)
    rounds: int | None = field(default=None, kw_only=True)
    follow: str = field(default="train", kw_only=True)

    __call__ = no_objective

    def __post_init__(self) -> None:
        check_term("primary", self.primary)
        constraints = self.constraints
        if isinstance(constraints, Constraint):
            constraints = (constraints,)
        if not isinstance(constraints, Iterable):
            raise TypeError(
                f"constraints must be a list of Constraint, found {brief(constraints)}: write "
                "[Constraint(term, at_most=...)]"
            )
        object.__setattr__(self, "constraints", tuple(constraints))
        if not self.constraints:
            raise ValueError(
                "constraints must hold at least one Constraint, found none; without any, the primary alone is a spec"
            )
        for i, constraint in enumerate(self.constraints):
            if not isinstance(constraint, Constraint):
                raise TypeError(f"constraints[{i}] must be a Constraint, such as Constraint(term, at_most=...), found "
                                f"{brief(constraint)}")  # fmt: skip
        (name, times), *_ = Counter(c.label for c in self.constraints).most_common(1)
        if times > 1:
            raise ValueError(f"{times} constraints have the name {name!r}: give each a name of its own, name=")
        if self.update not in UPDATES:
            raise ValueError(f"update must be 'auto', 'carry' or 'reset', found {self.update!r}")
        if self.scale not in ("bound", "sum"):
            raise ValueError(f"scale must be 'bound' or 'sum', found {self.scale!r}")
        if self.follow not in ("train", "valid"):
            raise ValueError(f"follow must be 'train' or 'valid', found {self.follow!r}")
        check_mu(self)
        check_options(self)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The primary, and each further term once."""
        terms = [self.primary]
        for constraint in self.constraints:
            if constraint.term not in terms:
                terms.append(constraint.term)
        return tuple(terms)

    @property
    def totals(self) -> bool:
        """Whether costs are sums over the queries."""
        return self.scale == "sum"

    def init(self) -> dict[str, Any]:
        """No multipliers yet."""
        none = [None] * len(self.constraints)
        return {"moves": 0, "first": None, "multipliers": [0.0] * len(none), "bounds": none, "scales": none,
                "rule": [multipliers.START for _ in none]}  # fmt: skip

    def advance(self, state: dict[str, Any], round: Round) -> tuple[Weights, dict[str, Any], dict[str, float]]:
        """Move the multipliers by the costs at the scores of a round."""
        watched = round if self.follow == "train" else round.watched
        if watched is None and state["moves"]:
            raise ValueError(
                "follow='valid': no data set besides the training data is evaluated: give a validation set, and "
                "feval=objective.metrics (LightGBM) or custom_metric=objective.metrics (XGBoost)"
            )
        start, land = self._schedule(round)
        alphas, rule = state["multipliers"], state["rule"]
        if watched is not None:
            # Algorithm 1 grows the first tree before the first update
            free = round.number < start or (self.totals and state["moves"] == 0)
            state = state | self._fixed(state, watched, on=round.number >= start)
            if state["first"] is None:
                state["first"] = watched.costs[0]
            standing = self._standing(state, watched)
            if not free:
                alphas, rule = self._move(state, round, watched, standing, start, land)
        state = state | {"moves": state["moves"] + 1, "multipliers": alphas, "rule": rule}
        log = {f"multiplier/{c.label}": alpha for c, alpha in zip(self.constraints, alphas, strict=True)}
        log |= {name: reading.value for name, reading in self.readings(state, round).items()}
        return self._weights(alphas, round), state, log

    def readings(self, state: dict[str, Any], round: Round) -> dict[str, Reading]:
        """Margins: the share of each bound that is left; NaN before the round that a relative bound is relative to."""
        standing = self._standing(state, round)
        return {
            f"margin/{c.label}": Reading(0.0 - excess, True)  # never -0.0
            for c, excess in zip(self.constraints, standing.excess, strict=True)
        }

    def settled(self, state: dict[str, Any], round: Round) -> bool:
        """Whether all constraints are asked for in full by now."""
        start, land = self._schedule(round)
        return round.number >= (land if self.update == "auto" else start)

    def couple(self, sight: Sight) -> tuple[float, ...] | None:
        """For each term that reaches 0 the multiplier at which a full step of its own would take it there."""
        terms = self.terms
        if self.update != "auto" or not any(getattr(term, "reaches_zero", False) for term in terms):
            return None
        queries, _, ranking, rankings, parts, costs = sight
        n = len(queries)
        spread = queries.spread(ranking.scores)
        rows, curvature, first = queries.total(
            n, float(parts[0, 1, :n].sum(dtype=np.float64)), mass(terms[0], queries)
        )  # fmt: skip
        found = []
        for i, term in enumerate(terms):
            if not getattr(term, "reaches_zero", False):
                found.append(math.nan)
                continue
            own = mass(term, queries)
            square, weight, cost = queries.total(
                float(np.square(parts[i, 0, :n], dtype=np.float64).sum()), own, costs[i] * own
            )  # fmt: skip
            if rankings[i].gather is not None:
                cost = costs[i] * weight
            hess = curvature / rows if rows else 0.0
            found.append(_full(cost, weight, hess, square, rows, spread) / max(first, 1e-300))
        return tuple(found)

    def watch(self, metric: str) -> str:
        """The metric itself."""
        return metric

    def check(self, queries: Queries) -> None:
        """Refuse constraints that no model could move or keep to."""
        for constraint in self.constraints:
            if self.follow == "train":
                check_reachable(constraint, queries)
            column = getattr(constraint.term, "label", None)
            if not constraint.term.needs_order or column is None:
                continue
            values = queries.column(column, unjudged=True)
            starts = queries.borders[:-1][np.diff(queries.borders) > 0]
            differ = np.zeros(0, np.bool_)
            if len(starts):
                most = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), starts)
                least = np.minimum.reduceat(np.where(np.isnan(values), np.inf, values), starts)
                differ = most > least
            if not queries.total(float(differ.sum()))[0]:
                raise ValueError(
                    f"constraint {constraint.label!r}: column {column!r} has no query with two different values, so "
                    "that no ranking can change it; leave the constraint out or attach another column"
                )

    # ------------------------------------------------------------------------------------------------------- the parts
    @property
    def mus(self) -> tuple[float, ...]:
        """The step mu of each constraint."""
        if self.mu is None:
            return (1.0,) * len(self.constraints)
        return tuple(self.mu) if isinstance(self.mu, tuple) else (self.mu,) * len(self.constraints)  # type: ignore[return-value]

    def _schedule(self, round: Round) -> tuple[int, int]:
        """The rounds in which constraints are switched on, and in which "auto" is to have landed."""
        planned = self.rounds if self.rounds is not None else round.planned
        relative = any(constraint.relative for constraint in self.constraints)
        if planned is None:
            if relative and self.start is None:
                raise ValueError(
                    "start: a bound is relative to the costs when constraints are switched on, and when that is to be "
                    "cannot be told without the number of rounds, since early stopping may end the training before: "
                    "AugmentedLagrangian(..., start=100), or rounds= for the most rounds there will be"
                )
            start = self._rounds("start", planned, 1 if self.update == "auto" else 0)
            return start, max(start, self._rounds("land", planned, start + math.ceil(4 / round.rate)))
        free = (0.5, 0.85) if relative else (0.3, 0.8) if self.update == "auto" else (0.0, 0.0)
        start = self._rounds("start", planned, int(free[0] * planned))
        return start, max(start, self._rounds("land", planned, int(free[1] * planned)))

    def _rounds(self, name: str, planned: int | None, default: int) -> int:
        value = getattr(self, name)
        if value is None:
            return default
        if value >= 1 or value == 0:
            return int(value)
        if planned is None:
            raise ValueError(
                f"{name}={value!r} is a share of the rounds, and how many there will be is not known (by hand, or with "
                "early stopping): give a number of rounds, or rounds="
            )
        return int(value * planned)

    def _fixed(self, state: dict[str, Any], round: Round, on: bool) -> dict[str, Any]:
        """Bounds and scales that depend on the costs of some round, once it has come."""
        bounds, scales = list(state["bounds"]), list(state["scales"])
        for t, (constraint, value) in enumerate(zip(self.constraints, self._values(round), strict=True)):
            if bounds[t] is None and on and constraint.relative and not value > 0:
                raise ValueError(
                    f"start: constraint {constraint.label!r} is relative to what there is when it is switched on, and "
                    f"in round {round.number} that is {value:g}: as long as all scores are equal nothing depends on "
                    "anything. Switch it on later, AugmentedLagrangian(..., start=30), or give the bound in numbers"
                )
            if bounds[t] is None and (on or not constraint.relative):
                bounds[t] = constraint.bound * value if constraint.relative else constraint.bound
            if scales[t] is None and bounds[t] is not None:
                scales[t] = constraint.scale or abs(bounds[t]) or abs(value) or None
        return {"bounds": bounds, "scales": scales}

    def _values(self, round: Round) -> list[float]:
        """What is bounded, of each constraint."""
        terms, values = self.terms, []
        for constraint in self.constraints:
            i = terms.index(constraint.term)
            if constraint.sign < 0 and math.isnan(round.metrics[i]):
                raise ValueError(
                    f"at_least: constraint {constraint.label!r} needs a term with a metric of which more is better, "
                    f"{constraint.term!r} has none; use at_most="
                )
            values.append(round.metrics[i] if constraint.sign < 0 else round.costs[i])
        return values

    def _standing(self, state: dict[str, Any], round: Round) -> _Standing:
        values = self._values(round)
        known = self._fixed(state, round, on=False)  # data sets that are only watched never move the state
        bounds = [math.nan if bound is None else bound for bound in known["bounds"]]
        scales = [scale or 1.0 for scale in known["scales"]]
        excess = [
            c.sign * (value - bound) / scale
            for c, value, bound, scale in zip(self.constraints, values, bounds, scales, strict=True)
        ]
        return _Standing(values, bounds, scales, excess)

    def _move(
        self, state: dict[str, Any], round: Round, watched: Round, standing: _Standing, start: int, land: int
    ) -> tuple[list[float], list[dict[str, Any]]]:
        """The next multipliers, and the state of the rule."""
        if self.update != "auto":
            rule = multipliers.carry if self.update == "carry" else multipliers.reset
            tighten, growth = self.tighten or 0.0, self.growth ** (round.number - start)
            return [
                rule(alpha, (excess + tighten) * (scale if self.totals else 1.0), mu * growth)
                for alpha, excess, scale, mu in zip(
                    state["multipliers"], standing.excess, standing.scales, self.mus, strict=True
                )
            ], state["rule"]
        terms = self.terms
        costs = [watched.costs[terms.index(c.term)] for c in self.constraints]
        known = round.coupling or (math.nan,) * len(terms)
        fulls = [known[terms.index(c.term)] for c in self.constraints]
        aims = [
            multipliers.Aim(
                multipliers.relative_excess(c.sign, value, bound, scale, not math.isnan(full)),
                cost, bound if c.sign > 0 else cost, mu, full,
            )
            for c, value, bound, scale, cost, mu, full in zip(
                self.constraints, standing.values, standing.bounds, standing.scales, costs, self.mus, fulls,
                strict=True,
            )
        ]  # fmt: skip
        planned = self.rounds if self.rounds is not None else round.planned
        turn = round.number if planned is None else planned - 1 - round.number
        course = multipliers.Course(
            round.number - start, land - start, round.rate, self.tighten, watched.costs[0], state["first"], turn
        )
        return multipliers.auto(course, aims, state["multipliers"], state["rule"])

    def _weights(self, alphas: list[float], round: Round) -> Weights:
        terms = self.terms
        gradient, hessian = [1.0] + [0.0] * (len(terms) - 1), [1.0] + [0.0] * (len(terms) - 1)
        kappa = self.kappa
        if kappa is None:
            kappa = max(0.25, min(round.rate, 1.0)) if self.update == "auto" else 1.0
        for constraint, alpha in zip(self.constraints, alphas, strict=True):
            i = terms.index(constraint.term)
            # gradients are those of mass x value: bring the constraint's to the primary's mass
            ratio = 1.0 if self.totals or not round.masses[i] else round.masses[0] / round.masses[i]
            gradient[i] += alpha * ratio
            hessian[i] += kappa * alpha * ratio
        divisor = 1.0 + sum(alphas) if self.normalise else 1.0
        return Weights(tuple(w / divisor for w in gradient), tuple(w / divisor for w in hessian))


def _full(cost: float, mass: float, hess: float, square: float, rows: float, spread: float) -> float:
    """The multiplier, of a primary of mass 1, at which a step along a term's gradient would bring its cost to 0.

    To first order; and at least the one at which that step is a share of the spread of the scores, for where a cost is
    small its gradient is mostly noise, which no tree can follow. cost: mass x value; square: sum of the gradient's.
    """
    if not (square > 0 and hess > 0):
        return 1.0
    return mass * hess * max(abs(cost) / square, LEAST_STEP * spread * math.sqrt(rows / square))
