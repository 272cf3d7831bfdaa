"""Unbiased squared distance covariance and its gradient as whole-array operations, on NumPy or CuPy.

What `kernels.dependence` does in loops, without weights, for processors that want few and long operations. A row's
place is its rank by control within its group; in the order of the scores the places are a permutation P, and all that
is not a running sum along it is how many of the rows before each one have a smaller place, and their controls' sum.
One pass for each bit of the place, from the top: a block holds the rows that agree in the higher bits; those with a 0
come before those with a 1 in place, so running sums over the zeros say how many of the rows before each 1 have a
smaller place, and what their controls add up to. Then each block is parted, zeros first, both halves keeping their
order. A block of places a to b lies at a to b, because P is a permutation: no pass has to look for borders.

Running sums are of whole numbers: control and mean distances in units of a power of two. They are exact, so that
nothing is lost across groups and blocks, and the order in which a GPU adds does not matter: the same bits every time,
and a gradient of exactly 0 for equal scores. The price is that each control is rounded to a unit, at most 2^-58 of the
sum of all absolute controls: where they are standardised, 1e-14 at 3,000 rows, 3e-12 at 10^6, 3e-11 at 10^7. Beside the
same in extended precision the gradient is off by 2e-14 of the largest at 3,000 rows, 4e-12 at 10^6.
"""

from typing import Any, NamedTuple

import numpy as np


class Plan(NamedTuple):
    """What does not change from round to round, on the device, for n rows in G groups; by place: as they are sorted."""

    rows: Any  # (n,) which row lies at each place
    group: Any  # (n,) by place
    place: Any  # (n,) within the group, from 0
    index: Any  # (n,) 0 to n - 1
    control: Any  # (n,) by place, in units
    mean: Any  # (n,) of the distances of each control to the others of its group, in units
    rest: Any  # (n,) by place: twice the sum of the smaller controls, less the sum of the group's, in units
    size: Any  # (G,) rows
    first: Any  # (G,) where the group begins
    middle: Any  # (G,) its middle row
    lead: Any  # (G,) factor x unit x 2 / (n (n - 3)), or 0 for groups that are left out
    ratio: Any  # (G,) (n - 1) / (n - 2)
    spread: Any  # (G,) sum of the mean distances / (n - 2), in units
    total: Any  # (G,) sum of the mean distances, in units
    share: Any  # (G,) 1 / factor, or 0 likewise
    bits: int  # of the largest place
    longest: int  # rows of the largest group


def plan(xp: Any, rows: Any, control: Any, factor: Any, ptr: Any) -> Plan:
    """Compute on the host all that depends on the control alone, and hand it to xp, numpy or cupy.

    rows: (n,) the rows sorted by group and, within it, by ascending control. control: (n,) in that order, standardised
    within each group. factor: (G,) what the gradient of a group's rows is multiplied by; groups with factor 0 or of
    fewer than 4 rows are left out. ptr: (G + 1,) borders of the groups. At least one row, fewer than 2^31.
    """
    size = np.diff(ptr)
    n, longest = int(ptr[-1]), int(size.max())
    kept = (size >= 4) & (factor != 0)
    group = np.repeat(np.arange(len(size)), size)
    place = np.arange(n) - ptr[group]
    y = np.where(kept[group], control, 0.0)
    unit = 2.0 ** (np.frexp(2.0 * np.abs(y).sum())[1] - 60)  # a sum stays below 2^60, a few of them below 2^63
    y = np.rint(y / unit).astype(np.int64)
    running = np.concatenate([[0], np.cumsum(y)])
    whole = running[ptr[1:]] - running[ptr[:-1]]
    rest = 2 * (running[:-1] - running[ptr[group]]) - whole[group]
    distances = y * (2.0 * place - size[group]) - rest
    mean = np.rint(distances / np.maximum(size - 1, 1)[group]).astype(np.int64)
    running = np.concatenate([[0], np.cumsum(mean)])
    total = running[ptr[1:]] - running[ptr[:-1]]
    m = np.where(kept, size, 4.0)  # no division by zero
    short = {name: xp.asarray(values.astype(np.int32)) for name, values in {
        "rows": np.asarray(rows), "group": group, "place": place, "index": np.arange(n), "size": size,
        "first": np.minimum(ptr[:-1], n - 1), "middle": np.minimum(ptr[:-1] + size // 2, n - 1),
    }.items()}  # fmt: skip
    return Plan(
        **short, control=xp.asarray(y), mean=xp.asarray(mean), rest=xp.asarray(rest), total=xp.asarray(total),
        lead=xp.asarray(kept * factor * 2.0 * unit / (m * (m - 3.0))), ratio=xp.asarray((m - 1.0) / (m - 2.0)),
        spread=xp.asarray(total / (m - 2.0)), share=xp.asarray(kept / np.where(kept, factor, 1.0)),
        bits=(longest - 1).bit_length(), longest=longest,
    )  # fmt: skip


def slopes(xp: Any, plan: Plan, scores: Any) -> Any:
    """Gradient of each row's group's value x the group's factor: (n,) float64 on the device, as the rows came.

    scores: (n,) finite, float32 or float64, on the host or the device. Only their order counts; tied ones count on
    neither side. Nothing here waits for the device.
    """
    scores = xp.asarray(scores, dtype=xp.float64)[plan.rows] + 0.0  # no -0.0, which some sorts put before 0.0
    order = xp.argsort(scores, kind="stable")  # ties by place
    if len(plan.size) > 1:
        order = order[xp.argsort(plan.group[order], kind="stable")]
    ahead, position, outer = (_moved(xp, values, order) for values in _by_score(xp, plan, scores[order], order))
    count, total = _smaller_before(xp, plan, plan.place[order], plan.control[order])
    weight = 4.0 * count - position - 2.0 * plan.place + plan.size[plan.group]
    push = plan.control * weight + (ahead - 4 * total + plan.rest) - outer
    return _moved(xp, plan.lead[plan.group] * push, plan.rows)


def values(xp: Any, plan: Plan, slopes: Any, outputs: Any) -> Any:
    """Each group's unbiased squared distance covariance, (G,) float64 on the device, without the factor.

    slopes: from `slopes`. outputs: (n,) the scores that these are of, or a function that rises with them.
    """
    outputs = xp.asarray(outputs, dtype=xp.float64)[plan.rows]
    start = outputs[plan.middle]  # the value does not depend on the origin, its rounding does
    return plan.share * _totals(xp, plan, slopes[plan.rows] * (outputs - start[plan.group]))


def _by_score(xp: Any, plan: Plan, scores: Any, order: Any) -> tuple[Any, Any, Any]:
    """What sums over the rows in order of score tell, for each of them in this order.

    For row t of a group, whose run of tied rows goes from k to end: twice the sum of the controls before t plus that of
    the run; 2 t + end - k; what mean distances take away from the gradient. The rest of it is the sum of the distances
    to rows below less that to rows above: twice the former plus the tied ones', less all distances. Tied rows lie by
    place, and so with y the row's control this is

        y (4 count - 2 t - (end - k)) - 4 total + 2 sum before t + sum of the run - all distances
    """
    control, mean = plan.control[order], plan.mean[order]
    origin = plan.index - plan.place  # where the group begins
    new = plan.place == 0
    new[1:] |= scores[1:] != scores[:-1]
    run = xp.cumsum(new, dtype=xp.int32)
    first = xp.searchsorted(run, run)
    last = xp.searchsorted(run, run, side="right") - 1
    through = xp.cumsum(control)
    before = through - control
    ahead = 2 * (before - before[origin]) + through[last] - before[first]
    position = 2 * plan.place + (last - first + 1)
    side = first + last + 1 - 2 * origin - plan.size[plan.group]  # rows below less rows above
    through = xp.cumsum(mean)
    before = through - mean
    around = before[first] + through[last] - 2 * before[origin] - plan.total[plan.group]  # sum below less sum above
    outer = plan.ratio[plan.group] * (side * (mean * 1.0) + around) - side * plan.spread[plan.group]
    return ahead, position, outer


def _smaller_before(xp: Any, plan: Plan, place: Any, control: Any) -> tuple[Any, Any]:
    """By place: how many of the rows before it in order of score are of a smaller place, and their controls' sum."""
    count, total = xp.zeros_like(place), xp.zeros_like(control)
    for bit in reversed(range(plan.bits)):
        half = 1 << bit
        inside = plan.place & (2 * half - 1)
        start = plan.index - inside  # of the block that lies here
        one = (place >> bit) & 1
        zero = 1 - one
        low = control * zero
        zeros = xp.cumsum(zero, dtype=xp.int32) - zero
        lows = xp.cumsum(low) - low
        zeros -= zeros[start]
        lows -= lows[start]
        count += one * zeros
        total += one * lows
        to = start + zeros + one * (inside + half - 2 * zeros)  # a 1 goes past all zeros, by the ones before it
        place, control, count, total = (_moved(xp, values, to) for values in (place, control, count, total))
    return count, total


def _moved(xp: Any, values: Any, to: Any) -> Any:
    """Each value where `to`, a permutation, says."""
    moved = xp.empty_like(values)
    moved[to] = values
    return moved


def _totals(xp: Any, plan: Plan, values: Any) -> Any:
    """Sum over each group. By doubling: the order of the additions, and with it each bit, is always the same."""
    left = plan.size[plan.group] - plan.place  # rows from here to the end of the group
    step = 1
    while step < plan.longest:
        values[:-step] += xp.where(left[:-step] > step, values[step:], 0.0)
        step *= 2
    return values[plan.first]
