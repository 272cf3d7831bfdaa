"""Whether a penalty's steps are too long: swings of the dependence from side to side, and inflated predictions.

The push of the penalty depends on the order of the predictions only, so that it does not shrink as they near
independence: a tree moves the predictions across it by an amount that goes with weight x learning rate, and the next
tree moves them back. Below independence the estimate is negative, and a wider spread of the predictions pays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lambda_objectives.specs.rounds import Coupling, Round
from lambda_objectives.warn import warn

WINDOW, TURNS, WIDTH = 8, 5, 0.05  # rounds looked back on; changes of side, and their mean width, that are damped
LONG, MANY, WIDE = (
    12,
    9,
    0.15,
)  # the same for a warning: predictions still nearly flat swing for some rounds, and settle
YOUNG = 8  # rounds in which nobody is warned of swings
WORSE, WIDER = 1.2, 1.5  # cost and spread, against those of the round with the least cost, of inflated predictions
LOWER = 0.7, 0.5  # a swing lowers the weight at least to the first share of what it was, and at most to the second

START: dict[str, Any] = {
    "damping": 1.0,  # the weight is multiplied by this
    "leanings": [],  # of the last rounds, a number for each control
    "natural": None,  # the spread that predictions would have after one full step of the loss alone
    "least": None,  # cost, and spread, of the round with the least cost
    "spread": 0.0,
    "worse": 0,  # rounds in a row that were worse and wider
    "told": [],  # what has been warned of
}


def watch(state: dict[str, Any], round: Round, weights: Sequence[float], damp: bool) -> dict[str, Any]:
    """The next state, with the damping to use in this round; warns once of swings, and once of inflation."""
    coupling = round.coupling
    assert coupling is not None
    leanings = [0.0 if math.isnan(each) else each for each in coupling.leanings]
    state = state | {"leanings": [*state["leanings"], leanings][-LONG:]}
    if not state["natural"] and coupling.spread > 0:  # the first tree is the loss's alone, if there is no offset
        state["natural"] = coupling.spread / min(round.rate if round.number else 1.0, 1.0)
    step = sum(weights) * state["damping"] * round.rate
    sides = list(zip(*state["leanings"], strict=True))
    if damp:
        width = max((swing(side, WINDOW, TURNS, WIDTH) for side in sides), default=0.0)
        if width > 0 and step > 0:
            share = min(max(_safe(state, coupling, width), LOWER[1]), LOWER[0])
            return state | {"damping": state["damping"] * share, "leanings": [], "least": None}
    elif "swings" not in state["told"] and round.number >= YOUNG + LONG - 1:
        width = max((swing(side, LONG, MANY, WIDE) for side in sides), default=0.0)
        if width > 0 and step > 0:
            safe = step * min(_safe(state, coupling, width), LOWER[0])
            warn(
                f"the dependence swings from side to side, its correlation by {width:.2g} a round: weight x learning "
                f"rate = {step:.3g} makes every tree overshoot independence. By the swings seen, {safe:.1g} looks like "
                "the largest product that is safe: lower the weight or the learning rate, or write "
                "Decorrelated(..., damp=True)"
            )
            state["told"] = [*state["told"], "swings"]
    return state if "inflation" in state["told"] else _inflation(state, round, coupling, sum(weights))


def _safe(state: dict[str, Any], coupling: Coupling, width: float) -> float:
    """The share of the step at which swings would be narrow, since the scores move in proportion to it."""
    return float(WIDTH * state["natural"] / (width * coupling.spread))


def swing(leanings: Sequence[float], window: int, turns: int, width: float) -> float:
    """Mean change from round to round, if the side changes often enough and the changes are wide enough; else 0."""
    pairs = list(pairwise(leanings[-window:]))
    if len(pairs) < window - 1:
        return 0.0
    found = sum(abs(b - a) for a, b in pairs) / len(pairs)
    return found if sum(a * b < 0 for a, b in pairs) >= turns and found >= width else 0.0


def _inflation(state: dict[str, Any], round: Round, coupling: Coupling, weight: float) -> dict[str, Any]:
    cost, spread = round.costs[0], coupling.spread
    if state["least"] is None or cost < state["least"]:
        return state | {"least": cost, "spread": spread, "worse": 0}
    worse = cost - state["least"] > (WORSE - 1) * abs(state["least"]) and spread > WIDER * state["spread"]
    state["worse"] = state["worse"] + 1 if worse and weight > 0 else 0
    if state["worse"] >= WINDOW:
        negative = min(round.costs[1:]) < 0
        below = ", while the dependence is estimated below 0, where a wider spread pays" if negative else ""
        warn(
            f"the predictions inflate: their standard deviation is {spread:.3g}, with the least cost it was "
            f"{state['spread']:.3g}, and the cost has risen from {state['least']:.4g} to {cost:.4g}{below}. Weight x "
            f"learning rate = {weight * round.rate:.3g} is too much for these data: lower one of them"
        )
        state["told"] = [*state["told"], "inflation"]
    return state
