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
- *Its limits.* The multiplier stops at 10 primary costs a bound: where a bound cannot be met, scores stay bounded.

`bench.constraints` has what this is worth beside equations 13 and 14.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

START: dict[str, Any] = {  # z, unit of a, swing of v, v and its mean over two rounds, the first v, the last error
    "z": 0.0, "unit": None, "swing": 0.0005, "last": None, "mean": None, "lead": None, "error": None,
}  # fmt: skip
GAIN, INTEGRAL = 5.0, 3.0
LARGEST = 10.0  # of a: per cent of the primary cost for a per cent of the bound
NEAR = 0.02  # constraints farther under their course than this stay off
HAIR = 0.0075
TURN = 0.6
STEP = 0.05  # errors count up to this


class Aim(NamedTuple):
    """What `auto` is told of a constraint."""

    excess: float  # v: log(C / b), or something like it
    size: float  # of the cost whose gradient the multiplier weighs, roughly
    gain: float


class Course(NamedTuple):
    """What `auto` is told of a round."""

    number: int  # rounds since the constraints were switched on
    land: int  # rounds from there until they are to be met
    rate: float  # the learning rate
    tighten: float | None
    primary: float  # the primary cost
    turn: int  # rounds until the last one, or since the first where that is not known: whose turn it is


def carry(alpha: float, violation: float, mu: float) -> float:
    """Equation 13."""
    return max(0.0, mu * violation + alpha)


def reset(alpha: float, violation: float, mu: float) -> float:
    """Equation 14."""
    return 0.0 if violation < 0 else mu * violation + alpha


def relative_excess(sign: int, value: float, bound: float, scale: float) -> float:
    """How far a value is beyond its bound, in logarithms where both are above 0."""
    if value > 0 and bound > 0:
        return sign * math.log(value / bound)
    return sign * (value - bound) / scale


def auto(
    course: Course, aims: list[Aim], alphas: list[float], states: list[dict[str, Any]]
) -> tuple[list[float], list[dict[str, Any]]]:
    """The next multipliers and the next state of each constraint."""
    moved = [_auto(course, aim, state, len(aims), t) for t, (aim, state) in enumerate(zip(aims, states, strict=True))]
    return [alpha for alpha, _ in moved], [state for _, state in moved]


def _auto(course: Course, aim: Aim, state: dict[str, Any], constraints: int, t: int) -> tuple[float, dict[str, Any]]:
    a0 = 0.1 / constraints
    z, unit, swing, last, before, lead, error = (state[name] for name in START)
    mean = aim.excess if unit is None or last is None else (aim.excess + last) / 2
    if unit is not None and before is not None:
        swing += 0.1 * (min(abs(mean - before), 0.01) - swing)
    if lead is None:
        lead = max(aim.excess, 0.0)
    hair = min(min(2.0 + constraints / 2, 4.0) * swing, HAIR) if course.tighten is None else course.tighten
    line = lead * max(0.0, 1.0 - course.number / max(course.land, 1)) - hair
    now = mean - line
    if unit is None and aim.excess > max(line, 0.0) - NEAR:
        unit, error = (abs(course.primary) or 1.0) / (abs(aim.size) or 1.0), None
    alpha = 0.0
    if unit is not None:
        change = 0.0 if error is None else now - error
        step = _clip(change, STEP) / course.rate + INTEGRAL * _clip(now, STEP)
        z = min(max(z + GAIN * aim.gain * step, 0.0), math.log1p(LARGEST / a0))
        alpha = a0 * math.expm1(z) * unit * (1.0 + TURN if (course.turn + t) % 2 == 0 else 1.0 - TURN)
        error = now
    return alpha, dict(zip(START, (z, unit, swing, aim.excess, mean, lead, error), strict=True))


def _clip(x: float, most: float) -> float:
    return min(max(x, -most), most)
