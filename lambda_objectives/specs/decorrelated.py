"""One loss, with a penalty on what its predictions tell of control variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from lambda_objectives.arrays import brief
from lambda_objectives.metrics import check_number
from lambda_objectives.queries import Queries
from lambda_objectives.specs import steps
from lambda_objectives.specs.options import weights_from_0
from lambda_objectives.specs.rounds import Coupling, Round, Sight, Weights
from lambda_objectives.terms import Exchange, Payable, Reading, Term, check_column, check_term, mass, no_objective
from lambda_objectives.terms.dependence import DistanceCovariance
from lambda_objectives.terms.pearson import Pearson

LEAST = 0.3  # share of the mean Hessian that every row of a ranking has at least


@dataclass(frozen=True)
class Decorrelated:
    """A loss plus a penalty on the dependence of its predictions on control variables.

    The gradient of row i, of weight w_i out of a total W, and with the loss's Hessian h_i, becomes ::

        gradient of the loss + weight x W x sum over controls j of  omega_j g_ij  x h_i / (2 w_i)

    g_ij being the slope of `DistanceCovariance`. The curvature h / (2 w) lets a weight move leaves about as much under
    every loss as under squared error, and makes of the penalty, in the unit of the loss's own metric (s the score,
    m the mean that is predicted)::

        SquaredError   weight              x dependence of s                    exact
        LogLoss        weight / 2          x dependence of 1 / (1 + e^-s)       exact
        Poisson        weight              x dependence of m = e^s              exact
        Gamma          weight              x dependence of s                    where the fit is calibrated
        Tweedie(rho)   weight / (2 - rho)  x dependence of m^(2 - rho)          where the fit is calibrated
        Gaussian       weight / 2          x mean precision x dependence of m   where the deviation is constant
        Pearson        weight              x dependence of s within groups      on groups that the loss scores

    The Hessian stays the loss's own. Ranking losses have one curvature for all rows, the mean of the Hessian, and the
    penalty is told in the unit of their cost; rows with less than .3 of the mean, which an equal push would throw far
    away, are given that.

    Parameters
    ----------
    base
        The loss: a term.
    controls
        Name of a column, or several; a `DistanceCovariance` where a control is to have options of its own.
    weight
        lambda, from 0. It scales with the labels of a squared error: labels ten times larger want ten times the weight.
    control_weights
        omega, one number from 0 for each control; None for 1 each.
    within_group
        As of `DistanceCovariance`, for the controls given by name: False, True, a column's name or ``"label"``.
    damp
        Lower the weight while training, by steps, when the dependence swings from side to side (see Notes).

    Raises
    ------
    TypeError, ValueError
        For what is no term, for no controls or one of them twice, for weights out of range or of another number; for
        `Pearson` with a control over all rows; on data, as `DistanceCovariance`.

    Notes
    -----
    The history has, besides cost and metric of the loss, each control's ``NAME.dcov2`` before any weight, of what the
    table names, and ``penalised/METRIC``: the metric plus the penalty (less it where more is better), on each data set
    with controls standardised there. Early stopping watches it; models of different weights are not to be compared by
    it. Ranking metrics have no exchange rate with a weight: there is ``penalised/cost/NAME``, and early stopping
    watches the metric.

    Offsets, `init_score` or `base_margin`, are part of the predictions. As long as these are all equal no row is
    pushed: without an offset the first tree is grown without the penalty. Rows of weight 0 are not pushed.

    The push depends on the order of the predictions, not on their spread, so that from some weight x learning rate on
    every tree overshoots independence. A warning then names that product and the largest one that would be safe by the
    swings seen; ``damp=True`` lowers the weight instead until they stop, logged as ``damping``. Another warning says
    when predictions inflate: estimates below 0 reward a wider spread.

    References
    ----------
    Szekely and Rizzo (2014), "Partial distance correlation with methods for dissimilarities".

    Examples
    --------
    >>> import numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(size=200); scores = age + rng.normal(size=200); labels = (scores > 0) * 1
    >>> spec = lo.Decorrelated(lo.LogLoss(), "age", weight=4.0)
    >>> found = lo.evaluate(spec, scores, labels, age=age)
    >>> round(found["penalised/logloss"] - found["logloss"] - 2 * found["age.dcov2"], 12)
    0.0
    """

    base: Term
    controls: str | DistanceCovariance | Sequence[str | DistanceCovariance]
    weight: float
    control_weights: Sequence[float] | None = None
    within_group: bool | str = False
    damp: bool = field(default=False, kw_only=True)

    totals: ClassVar[bool] = False
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_term("base", self.base)
        if isinstance(self.base, DistanceCovariance):
            raise ValueError("base must be a loss to fit; a DistanceCovariance belongs among the controls")
        given: Any = self.controls
        controls = (given,) if isinstance(given, str | DistanceCovariance) else given
        if not isinstance(controls, Iterable):
            raise TypeError(
                f"controls must be names of columns, found {brief(given)}: write 'price', or a list of names"
            )
        if getattr(given, "ndim", 0) and not all(isinstance(each, str) for each in given):
            check_column("controls", given)  # values in place of their name
        controls = tuple(controls)
        if not controls:
            raise ValueError(
                "controls must name at least one column, found none; without any, the base alone is an objective"
            )
        for control in controls:
            if control is None:
                raise ValueError("controls must be names of columns, found None among them")
            if not isinstance(control, DistanceCovariance):
                check_column("controls", control)
            elif control.link is not None:
                raise ValueError(f"link: the loss decides of what the dependence is; leave it out of {control!r}")
        if len(set(controls)) < len(controls):
            raise ValueError(f"controls: one of them is given twice: {controls!r}")
        object.__setattr__(self, "controls", controls)
        check_number("weight", self.weight)
        if self.weight < 0:
            raise ValueError(f"weight must not be negative, found {self.weight!r}: more of it means less dependence")
        object.__setattr__(self, "weight", float(self.weight))
        if self.control_weights is not None:
            omega = weights_from_0("control_weights", self.control_weights, len(controls), "control")
            object.__setattr__(self, "control_weights", omega)
        if not isinstance(self.damp, bool):
            raise ValueError(f"damp must be True or False, found {self.damp!r}")
        for term in self.terms[1:]:  # names and within_group are checked by making them
            if isinstance(self.base, Pearson) and term.within_group is False:  # type: ignore[attr-defined]
                raise ValueError(
                    "within_group: Pearson leaves the level of each group open, which a penalty over all rows would "
                    f"move at will; write within_group={self.base.within_group!r}"
                )

    @property
    def terms(self) -> tuple[Term, ...]:
        """The loss, and the dependence on each control."""
        return self.base, *(
            control if isinstance(control, DistanceCovariance) else DistanceCovariance(control, self.within_group)
            for control in self._controls
        )

    @property
    def _controls(self) -> tuple[str | DistanceCovariance, ...]:
        """The controls, always a tuple once they are checked."""
        return self.controls  # type: ignore[return-value]

    @property
    def weights(self) -> tuple[float, ...]:
        """Weight of each control's dependence."""
        omega = self.control_weights or (1.0,) * (len(self.terms) - 1)
        return tuple(self.weight * each for each in omega)

    def init(self) -> dict[str, Any]:
        """Nothing seen yet."""
        return steps.START

    def advance(self, state: dict[str, Any], round: Round) -> tuple[Weights, dict[str, Any], dict[str, float]]:
        """Return the weights, lowered if steps are damped, and look out for swings and inflation."""
        state = steps.watch(state, round, self.weights, self.damp)
        damping = state["damping"]
        none = (0.0,) * len(self.weights)
        log = {name: reading.value for name, reading in self.readings(state, round).items()}
        if self.damp:
            log["damping"] = damping
        return Weights((1.0, *(damping * each for each in self.weights)), (1.0, *none)), state, log

    def readings(self, state: dict[str, Any], round: Round) -> dict[str, Reading]:
        """Return the metric with the penalty; where more of it is better, the cost with the penalty besides."""
        coupling = round.coupling
        assert coupling is not None
        dependence = sum(each * cost for each, cost in zip(self.weights, round.costs[1:], strict=True))
        cost = round.costs[0] + coupling.coefficient * dependence
        found = {f"penalised/{coupling.unit}": Reading(coupling.units * cost, coupling.units < 0)}
        if coupling.units < 0:
            found[f"penalised/cost/{self.base.name}"] = Reading(cost, False)
        return found

    def settled(self, state: dict[str, Any], round: Round) -> bool:
        """Always: the weight is there from the first round."""
        return True

    def couple(self, sight: Sight) -> Coupling:
        """Multiply the slopes of the dependence by the loss's curvature, and tell it of what the loss's unit is for."""
        queries, prepared, ranking, rankings, parts, costs = sight
        n, base = len(queries), self.base
        hess, weights = parts[0, 1, :n], queries.weights
        half: Any
        if isinstance(base, Payable):
            exchange, unit = base.exchange(prepared[0], ranking), getattr(base, "paid_in", base.name)
            rows, coefficient = queries.total(n, n * exchange.coefficient)
            if queries.workers.size > 1:
                exchange = exchange._replace(coefficient=coefficient / max(rows, 1))
            half = hess / 2
            if weights is not None:
                half = np.divide(half, weights, out=np.zeros_like(half), where=weights > 0)
        else:
            unit = f"cost/{base.name}"
            rows, total, weight, own = queries.total(
                n, float(hess.sum(dtype=np.float64)), mass(self.terms[1], queries), mass(base, queries)
            )  # fmt: skip
            if any(self.weights):  # a push that is the same for all rows would throw those without a Hessian far away
                np.maximum(hess, LEAST * total / max(rows, 1), out=hess)
            half = total / 2 / max(weight, 1e-300)
            exchange = Exchange(1.0, ranking.scores, total / 2 / max(own, 1e-300))
        leanings = []
        for i, term in enumerate(self.terms[1:], 1):
            assert isinstance(term, DistanceCovariance)
            parts[i, 0, :n] *= half
            there = rankings[i]
            if exchange.outputs is not ranking.scores:
                outputs = there.gather(exchange.outputs) if there.gather else exchange.outputs
                costs[i] = term.through(prepared[i], outputs)
            leaning, own = term.leaning(prepared[i], there), mass(term, queries)
            if queries.workers.size > 1 and there.gather is None:
                weighted, weight = queries.total(leaning * own if n else 0.0, own)
                leaning = weighted / weight if weight > 0 else math.nan
            leanings.append(leaning)
        spread = queries.spread(ranking.scores)
        return Coupling(unit, exchange.units, exchange.coefficient, tuple(leanings), spread)

    def watch(self, metric: str) -> str:
        """The penalised metric, of losses that have one."""
        return f"penalised/{getattr(self.base, 'paid_in', metric)}" if isinstance(self.base, Payable) else metric

    def check(self, queries: Queries) -> None:
        """Any data will do that its terms take."""
