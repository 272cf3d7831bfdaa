"""Slopes of the unbiased squared distance covariance, group by group, in O(n log n).

The rows of a group lie by ascending control y, and each knows its `below`: how many rows of its group have a lower
score, the same for tied ones. With weights u and s_ij the sign of score i less score j, all that is not a prefix sum
over the scores is

    S_i = sum_j s_ij u_j |y_i - y_j|

and that follows from the weight, and the weight times y, of the rows of lower control with a lower score. One sweep by
ascending control finds these in a tree over `below`, each node of which holds, for every digit 0 .. 15, the sums over
all smaller ones: read once and added to without a branch. Rows with equal scores never meet in it.

A large group is cut by `below` into blocks whose trees fit into the cache. A first sweep counts whole blocks, by pieces
of the rows; then every block is finished by itself. Pieces and blocks depend on the group alone, whoever works on them.
"""

from typing import NamedTuple

import numpy as np

from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.ordering import LARGE, PIECE, shares
from lambda_objectives.kernels.threads import longest, run_parts, scratch

BITS = 4
FAN = 1 << BITS
BLOCK_BITS = 12  # scores in a block of a large group
BATCH = 1024  # rows that are swept before they are sorted into their blocks


class Control(NamedTuple):
    """A control and what follows from it, the rows of a group by ascending control; u_0 are the weights, u_1 squared.

    The slope of group g's statistic is

        2 w_i {(a0 + a1 w_i) S_i[u_0] + (b0 + b1 w_i) S_i[u_1] + (e - r_i / 2) sum_j s_ij w_j - sum_j s_ij w_j r_j / 2}

    with r_i = (c0 + c1 w_i) sums[0, i].
    """

    rows: np.ndarray  # (n,) int32: which row lies at each place
    ptr: np.ndarray  # (G + 1,) borders of the groups
    values: np.ndarray  # (n,)
    weights: np.ndarray  # (n,) by row, or (1,) for the same everywhere
    sums: np.ndarray  # (1 or 2, n): of the distances to all others, with weights u_k; one where b0 = b1 = 0
    constants: np.ndarray  # (G, 9): a0, a1, b0, b1, c0, c1, e, then the sums of w and of w r
    factor: np.ndarray  # (G,) multiplies the slopes; 0 for groups that are left out


@compiled(fastmath=False)
def _levels(size):
    """Where each level of a tree over `size` digits begins, from the leaves up, and its length."""
    levels = 1
    while (1 << (BITS * levels)) < size:
        levels += 1
    begin = np.zeros(levels + 1, np.int64)
    for level in range(levels):
        begin[level + 1] = begin[level] + 2 * FAN * (((size - 1) >> (BITS * (level + 1))) + 1)
    return begin


@compiled(fastmath=False)
def _add(tree, begin, digit, weight, moment):
    """Add to all above a digit."""
    for level in range(len(begin) - 1):
        at = begin[level] + 2 * FAN * (digit >> BITS)
        for d in range((digit & (FAN - 1)) + 1, FAN):
            tree[at + d] += weight
            tree[at + FAN + d] += moment
        digit >>= BITS


@compiled(fastmath=False)
def _sweep(digits, values, weights, tree, begin, found):
    """Add to `found` of each row: the sum over those before it with a smaller digit of weight x difference of values.

    The rows lie by ascending value.
    """
    for k in range(len(digits)):
        digit, weight, moment = digits[k], 0.0, 0.0
        u, uy = weights[k], weights[k] * values[k]
        for level in range(len(begin) - 1):
            at = begin[level] + 2 * FAN * (digit >> BITS)
            low = digit & (FAN - 1)
            weight += tree[at + low]
            moment += tree[at + FAN + low]
            node = tree[at : at + 2 * FAN]
            for d in range(2 * FAN):  # one loop, without a branch: vector instructions
                node[d] += (u if d < FAN else uy) if d & (FAN - 1) > low else 0.0
            digit >>= BITS
        found[k] += values[k] * weight - moment


@compiled(fastmath=False)
def _finish(c, g, digits, rows, values, pull, found, before, tree, table, u, slopes):
    """Slopes of the rows of a block of neighbouring scores, which are counted from 0 in `digits`.

    pull: r_i. found: (1 or 2, rows) what earlier sweeps have found, less a quarter of the sums. before: (5,) sums over
    all scores below the block of w, w y, w r, w^2, w^2 y. tree, table (size, 4) and u are scratch.
    """
    weights, constants, factor = c.weights, c.constants, c.factor
    a0, a1, b0, b1, _, _, e, all_w, all_r = constants[g]
    step, n, size = 1 if len(weights) > 1 else 0, len(digits), len(table)
    begin = _levels(size)
    for k in range(len(found)):
        signed = found[k]
        tree[: begin[-1]] = 0.0
        table[:, :2] = 0.0
        if k == 0:
            table[:, 2] = 0.0
        for i in range(n):
            w, d = weights[step * rows[i]], digits[i]
            u[i] = w * w if k else w
            table[d, 0] -= u[i] / 2
            table[d, 1] -= u[i] * values[i] / 2
            if k == 0:
                table[d, 2] += w * pull[i] / 2
        _sweep(digits, values, u, tree, begin, signed)
        low, low_y, low_r = before[3 * k], before[3 * k + 1], before[2] - all_r / 2
        for d in range(size):  # from here on: less what is below, and half of what is tied
            own, own_y = table[d, 0], table[d, 1]
            table[d, 0] -= low
            table[d, 1] -= low_y
            low -= 2 * own
            low_y -= 2 * own_y
            if k == 0:
                own_r = table[d, 2]
                table[d, 2] += low_r
                low_r += 2 * own_r
                table[d, 3] = -2 * table[d, 0] - all_w
        for i in range(n):  # tied rows come by ascending control, and count on neither side
            half, moment = table[digits[i], 0], table[digits[i], 1]
            signed[i] = 4 * signed[i] + 2 * (values[i] * half - moment)
            table[digits[i], 0] = half + u[i]
            table[digits[i], 1] = moment + u[i] * values[i]
    for i in range(n):
        w, d = weights[step * rows[i]], digits[i]
        push = (a0 + a1 * w) * found[0, i] + (e - pull[i] / 2) * table[d, 3] - table[d, 2]
        if len(found) > 1:
            push += (b0 + b1 * w) * found[1, i]
        slopes[rows[i]] = 2 * w * factor[g] * push


@compiled(fastmath=False)
def _small_part(first, last, most, c, below, slopes):
    all_rows, ptr, values, weights, sums, factor = c.rows, c.ptr, c.values, c.weights, c.sums, c.factor
    step = 1 if len(weights) > 1 else 0
    digits, pull, u = np.empty(most, np.int32), np.empty(most), np.empty(most)
    tree, table, found = np.empty(4 * most + 8 * FAN), np.empty((most, 4)), np.empty((len(sums), most))
    before = np.zeros(5)
    for g in range(first, last):
        a, n = ptr[g], ptr[g + 1] - ptr[g]
        if n == 0 or n >= LARGE:
            continue
        rows = all_rows[a : a + n]
        if factor[g] == 0.0:
            for row in rows:
                slopes[row] = 0.0
            continue
        c0, c1 = c.constants[g, 4], c.constants[g, 5]
        for i in range(n):
            digits[i] = below[rows[i]]
            pull[i] = (c0 + c1 * weights[step * rows[i]]) * sums[0, a + i]
            for k in range(len(sums)):
                found[k, i] = -0.25 * sums[k, a + i]
        _finish(
            c, g, digits[:n], rows, values[a : a + n], pull, found, before, tree, table[:n], u, slopes
        )  # fmt: skip


@compiled(fastmath=False)
def _count_blocks(first, last, c, g, below, places, totals):
    """The sums over the rows of a piece in each block that `_finish` wants of those before it, and how many they are.

    `places` takes, by ascending control, how many rows have a lower score.
    """
    rows, ptr, values, weights, sums = c.rows, c.ptr, c.values, c.weights, c.sums
    a, end = ptr[g], ptr[g + 1]
    c0, c1 = c.constants[g, 4], c.constants[g, 5]
    step = 1 if len(weights) > 1 else 0
    for piece in range(first, last):
        for p in range(a + piece * PIECE, min(a + (piece + 1) * PIECE, end)):
            places[p - a] = below[rows[p]]
            block = places[p - a] >> BLOCK_BITS
            w, y = weights[step * rows[p]], values[p]
            totals[piece, block, 0] += w
            totals[piece, block, 1] += w * y
            totals[piece, block, 2] += w * (c0 + c1 * w) * sums[0, p]
            if len(sums) > 1:
                totals[piece, block, 3] += w * w
                totals[piece, block, 4] += w * w * y
            totals[piece, block, 5] += 1.0


@compiled(fastmath=False)
def _fill_blocks(first, last, c, g, places, starts, before, sorted_rows, keys):
    """Sweep the blocks over a piece of the rows, given what the pieces before it held, and sort its rows by block.

    One record a row, so that each block is one stream of memory: value, r_i, what was found; row and digit as one
    whole number, in `keys`, which is the same memory.
    """
    all_rows, ptr, control, weights, sums = c.rows, c.ptr, c.values, c.weights, c.sums
    a, end = ptr[g], ptr[g + 1]
    c0, c1 = c.constants[g, 4], c.constants[g, 5]
    step = 1 if len(weights) > 1 else 0
    begin = _levels(starts.shape[1])
    kinds = len(sums)
    tree = np.empty((kinds, begin[-1]))
    block, u, found = np.empty(BATCH, np.int32), np.empty(BATCH), np.empty((kinds, BATCH))
    for piece in range(first, last):
        for k in range(kinds):
            tree[k] = 0.0
            for b in range(starts.shape[1]):
                _add(tree[k], begin, b, before[piece, b, 3 * k], before[piece, b, 3 * k + 1])
        at_piece, to = starts[piece], min(a + (piece + 1) * PIECE, end)
        for p in range(a + piece * PIECE, to, BATCH):
            n = min(BATCH, to - p)
            for i in range(n):
                block[i] = places[p - a + i] >> BLOCK_BITS
            for k in range(kinds):
                for i in range(n):
                    w = weights[step * all_rows[p + i]]
                    u[i] = w * w if k else w
                    found[k, i] = -0.25 * sums[k, p + i]
                _sweep(block[:n], control[p : p + n], u, tree[k], begin, found[k])
            for i in range(n):
                row, at = all_rows[p + i], at_piece[block[i]]
                at_piece[block[i]] = at + 1
                sorted_rows[at, 0] = control[p + i]
                sorted_rows[at, 1] = (c0 + c1 * weights[step * row]) * sums[0, p + i]
                keys[at, 2] = (np.int64(row) << 32) | (places[p - a + i] & ((1 << BLOCK_BITS) - 1))
                for k in range(kinds):
                    sorted_rows[at, 3 + k] = found[k, i]


@compiled(fastmath=False)
def _finish_blocks(first, last, most, c, g, borders, before, sorted_rows, keys, slopes):
    size, kinds = 1 << BLOCK_BITS, len(c.sums)
    tree, table, u = np.empty(4 * size + 8 * FAN), np.empty((size, 4)), np.empty(most)
    digits, rows = np.empty(most, np.int32), np.empty(most, np.int32)
    values, pull, found = np.empty(most), np.empty(most), np.empty((kinds, most))
    for b in range(first, last):
        start, n = borders[b], borders[b + 1] - borders[b]
        for i in range(n):
            values[i], pull[i] = sorted_rows[start + i, 0], sorted_rows[start + i, 1]
            key = keys[start + i, 2]
            rows[i], digits[i] = key >> 32, key & 0xFFFFFFFF
            for k in range(kinds):
                found[k, i] = sorted_rows[start + i, 3 + k]
        _finish(c, g, digits[:n], rows[:n], values, pull, found, before[b], tree, table, u, slopes)


def dependence_slopes(control, below, slopes, threads=1):
    """Write the slope of each row times its group's factor into slopes, (n,) by row.

    below: (n,) by row, as `ordering.below` finds it for the same groups.
    """
    sizes = np.diff(control.ptr)
    small = int(sizes[sizes < LARGE].max(initial=0))
    if small:
        run_parts(_small_part, shares(control.ptr, threads), small, control, below, slopes)
    for g in np.flatnonzero(sizes >= LARGE):
        if control.factor[g] == 0.0:
            slopes[control.rows[control.ptr[g] : control.ptr[g + 1]]] = 0.0
        else:
            _large(control, int(g), below, slopes, threads)


def _large(control, g, below, slopes, threads):
    n = int(control.ptr[g + 1] - control.ptr[g])
    kinds = len(control.sums)
    pieces, blocks = -(-n // PIECE), -(-n >> BLOCK_BITS)
    parts = shares(np.minimum(np.arange(pieces + 1) * PIECE, n), threads)
    width = 2 * (3 + kinds)
    room = scratch((width + 1) * n)[: (width + 1) * n]
    places, sorted_rows = room[width * n :].view(np.int32), room[: width * n].view(np.float64).reshape(n, 3 + kinds)
    keys = sorted_rows.view(np.int64)
    totals = np.zeros((pieces, blocks, 6))
    run_parts(_count_blocks, parts, control, g, below, places, totals)
    counts = totals[:, :, 5].astype(np.int64)
    borders = np.concatenate([[0], np.cumsum(counts.sum(0))])
    starts = borders[:-1] + np.cumsum(counts, axis=0) - counts
    earlier = np.cumsum(totals, axis=0) - totals
    run_parts(_fill_blocks, parts, control, g, places, starts, earlier, sorted_rows, keys)
    lower = np.cumsum(totals.sum(0), axis=0) - totals.sum(0)
    parts, most = shares(borders, threads), longest(borders)
    run_parts(_finish_blocks, parts, most, control, g, borders, lower, sorted_rows, keys, slopes)
