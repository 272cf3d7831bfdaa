"""The rules by which multipliers move, as functions of numbers.

`carry` and `reset` are equations 13 and 14 of Momma, Bagheri Garakani and Sun (2019).

`auto` is a proportional-integral controller with these parts:

- *What it controls* is ``v = log(C / b)``; what it moves is ``z = log(1 + a / a0)``, a being the multiplier in units of
  primary cost for a share of the bound. A further unit of z changes log C by about the same wherever a is, which is
  not true of a itself: that is why no one mu fits.
- *Its gains.* Boosting with learning rate eta relaxes towards the cost that belongs to a multiplier in about 1 / eta
  rounds. A step of ``gain (change of the error / eta + 3 x error)`` answers such a plant without swinging.
- *Its course.* The error is counted from a line that leads from the violation found at the start to a hair under the
  bound at landing. Free rounds come first because the cost of a constraint is cheap to remove late.
- *The hair* is a multiple of the swing of v from round to round, so that rounds near the end keep to the bound.
- *Turns.* Every second tree a multiplier is larger by `TURN`, on the others smaller by as much; neighbouring
  constraints have their turns on different trees. A tree that mostly serves one cost finds better splits for it than
  one that compromises every time. The controller sees the mean of two rounds, in which turns cancel out.
- *Care.* Where an error jumps from one side of the hair to the other, the gain falls; where turns move v by more than
  half a per cent, they get smaller. Both happen on smooth problems of a few numbers, seldom with trees.
- *Slack.* More than a tenth under its course a multiplier does not rise, whatever the last rounds look like: on few
  validation queries a metric jumps by as much, and jumps add up where a multiplier cannot fall below 0.
- *Its limits.* The multiplier stops at 10 primary costs a bound: where a bound cannot be met, scores stay bounded.
- *Costs that reach 0*, those of dependence, answer far more readily, and by how much has nothing to do with the primary
  cost. Their unit is the multiplier at which a full step along their own gradient would make nothing of them; log C
  falls by about 2 for a unit of z. Below the bound v is the share of it that is left. The multiplier stops before the
  learning rate makes every tree overshoot by far.

`bench.constraints` has what this is worth beside equations 13 and 14.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

START: dict[str, Any] = {
    "z": 0.0,
    "unit": None,  # of a, once it is on
    "lead": None,  # v when constraints were switched on
    "last": None,  # v
    "mean": None,  # of v over two rounds
    "swing": 0.0005,  # of that mean, from round to round
    "error": None,
    "gain": 1.0,  # less where the multiplier turned out to overshoot
    "turn": 1.0,  # share of TURN by which turns move the multiplier
}
GAIN, INTEGRAL = 5.0, 3.0
LARGEST = 10.0  # of a: per cent of the primary cost for a per cent of the bound
LEAST, LEAST_BOUND = 0.05, 0.3
NEAR = 0.02  # constraints farther under their course than this stay off
HAIR = 0.0075
TURN, RIPPLE = 0.6, 0.005  # what turns do to a, and the most that they may do to v, to either side
STEP = 0.05  # errors count up to this
SLACK = 0.1  # so far under its course nothing makes a multiplier rise
READY_GAIN, READY_HAIR = 0.08, 0.015  # of costs that reach 0: share of GAIN, and HAIR
FULL = 4.0  # full steps that the multiplier may ask of a tree


class Aim(NamedTuple):
    """What `auto` is told of a constraint."""

    excess: float  # v: log(C / b), or something like it
    cost: float  # of the term whose gradient the multiplier weighs
    least: float  # a cost below which the unit does not count it: the bound of a cost
    gain: float
    full: float = math.nan  # of a cost that reaches 0: the multiplier at which a full step would take it there


class Course(NamedTuple):
    """What `auto` is told of a round."""

    number: int  # rounds since the constraints were switched on
    land: int  # rounds from there until they are to be met
    rate: float  # the learning rate
    tighten: float | None
    primary: float  # the primary cost
    first: float  # the same before the first tree
    turn: int  # rounds until the last one, or since the first where that is not known: whose turn it is


def carry(alpha: float, violation: float, mu: float) -> float:
    """Equation 13."""
    return max(0.0, mu * violation + alpha)


def reset(alpha: float, violation: float, mu: float) -> float:
    """Equation 14."""
    return 0.0 if violation < 0 else mu * violation + alpha


def relative_excess(sign: int, value: float, bound: float, scale: float, ready: bool = False) -> float:
    """How far a value is beyond its bound, in logarithms where both are above 0; ready: only above the bound."""
    if value > 0 and bound > 0 and not (ready and value < bound):
        return sign * math.log(value / bound)
    return sign * (value - bound) / scale


def auto(
    course: Course, aims: list[Aim], alphas: list[float], states: list[dict[str, Any]]
) -> tuple[list[float], list[dict[str, Any]]]:
    """The next multipliers and the next state of each constraint."""
    moved = [_auto(course, aim, state, len(aims), t) for t, (aim, state) in enumerate(zip(aims, states, strict=True))]
    return [alpha for alpha, _ in moved], [state for _, state in moved]


def _auto(course: Course, aim: Aim, state: dict[str, Any], constraints: int, t: int) -> tuple[float, dict[str, Any]]:
    a0, v, new = 0.1 / constraints, aim.excess, dict(state)
    on = state["unit"] is not None
    if state["lead"] is None:
        new["lead"] = max(v, 0.0)
    new["last"], new["mean"] = v, (v + state["last"]) / 2 if on else v
    if on:
        new["swing"] += 0.1 * (min(abs(new["mean"] - state["mean"]), 0.01) - new["swing"])
        ripple = abs(v - 3 * state["last"] + 2 * state["mean"]) / 4  # by the second difference: a trend is none
        new["turn"] = min(max(state["turn"] * _clip(RIPPLE / max(ripple, 1e-9), 1.1), 0.7 * state["turn"]), 1.0)
    ready = not math.isnan(aim.full)
    most = READY_HAIR if ready else HAIR
    hair = min(min(2.0 + constraints / 2, 4.0) * new["swing"], most) if course.tighten is None else course.tighten
    line = new["lead"] * max(0.0, 1.0 - course.number / max(course.land, 1)) - hair
    error = new["mean"] - line
    if not on and v > max(line, 0.0) - NEAR:
        # a primary that is fitted to nothing, or a bound far below the cost, is no unit
        primary = max(abs(course.primary), LEAST * abs(course.first)) or 1.0
        new["unit"], on = primary / (max(aim.least, LEAST_BOUND * abs(aim.cost)) or 1.0), True
        if ready:
            new["unit"] = aim.full / a0
    if not on:
        return 0.0, new
    change = 0.0
    if state["error"] is not None:
        change = error - state["error"]
        overshot = error * state["error"] < 0 and min(abs(error), abs(state["error"])) > max(hair, 0.001)
        new["gain"] = max(0.7 * state["gain"], 0.01) if overshot else min(1.01 * state["gain"], 1.0)
    trend = min(change, 0.0) if error < -SLACK else change
    step = _clip(trend, STEP) / course.rate + INTEGRAL * _clip(error, STEP)
    gain = GAIN * aim.gain * new["gain"] * (READY_GAIN if ready else 1.0)
    most = FULL / course.rate if ready else LARGEST / a0
    new["z"] = min(max(state["z"] + gain * step, 0.0), math.log1p(most))
    new["error"] = error
    turn = TURN * new["turn"] * (1 if (course.turn + t) % 2 == 0 else -1)
    return a0 * math.expm1(new["z"]) * new["unit"] * (1.0 + turn), new


def _clip(x: float, most: float) -> float:
    return min(max(x, -most), most)
