"""Sorting each query by score."""

import numpy as np

from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.threads import PARTS_PER_THREAD, SMALL, longest, run_parts, scratch


@compiled
def _before(key_a, row_a, key_b, row_b):
    return key_a > key_b or (key_a == key_b and row_a < row_b)


@compiled
def _insertion_sort(keys, rows, first, last, budget):
    """Sort keys[first:last] by insertion; gives up, with all entries kept, once budget moves are spent."""
    for i in range(first + 1, last):
        key, row = keys[i], rows[i]
        j = i
        while j > first and _before(key, row, keys[j - 1], rows[j - 1]):
            keys[j], rows[j] = keys[j - 1], rows[j - 1]
            j -= 1
        keys[j], rows[j] = key, row
        budget -= i - j
        if budget < 0:
            return False
    return True


@compiled
def _merge_sort(keys, rows, n, keys2, rows2):
    """Bottom-up merge sort of the first n entries, from runs of 16 sorted by insertion; keys2 and rows2 are scratch."""
    for first in range(0, n, 16):
        _insertion_sort(keys, rows, first, min(first + 16, n), 256)
    width = 16
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            i, j = first, middle
            for k in range(first, last):
                if j >= last or (i < middle and _before(keys[i], rows[i], keys[j], rows[j])):
                    keys2[k], rows2[k] = keys[i], rows[i]
                    i += 1
                else:
                    keys2[k], rows2[k] = keys[j], rows[j]
                    j += 1
        for k in range(n):  # a copy of slices takes numba four seconds to compile
            keys[k], rows[k] = keys2[k], rows2[k]
        width *= 2


@compiled
def _rank_part(first, last, longest, scores, ptr, order, rank):
    keys, rows = np.empty(longest), np.empty(longest, np.int32)
    keys2, rows2 = np.empty(longest), np.empty(longest, np.int32)
    for q in range(first, last):
        a = ptr[q]
        n = ptr[q + 1] - a
        for r in range(n):
            rows[r] = order[a + r]
            keys[r] = scores[a + rows[r]]
        if not _insertion_sort(keys, rows, 0, n, 6 * n):
            _merge_sort(keys, rows, n, keys2, rows2)
        for r in range(n):
            order[a + r] = rows[r]
            rank[a + rows[r]] = r


def rank(scores, ptr, order, rank, parts):
    """Write each query's rows, best score first, into order, and each row's rank into rank.

    `order` comes in as last round's: nearly right, so it is repaired by insertion, and sorted afresh where far off.
    """
    run_parts(_rank_part, parts, longest(ptr), scores, ptr, order, rank)


LARGE = 8192  # rows of a group from which threads share its work, in pieces that depend on the group alone
CELLS = 4096
PIECE = 32_768  # rows of a large group that one thread counts at a time


@compiled(fastmath=False)
def _per_unit(least, most, cells):
    """Cells per unit of a range, so that their numbers stay below `cells`; 0 for no range, or where floats fail."""
    span = most - least
    if span == 0.0 or np.isinf(span):
        return 0.0
    factor = (cells - 1) / span
    return 0.0 if np.isinf(factor) else factor


@compiled(fastmath=False)
def _cell(key, least, factor):
    return int((key - least) * factor) if factor > 0.0 else 0


@compiled(fastmath=False)
def _move_up(keys, rows, n):
    """Sort by ascending key, by insertion, ties as they come; gives up, with all entries kept, after 8 n moves."""
    budget = 8 * n
    for i in range(1, n):
        key, row, j = keys[i], rows[i], i
        while j > 0 and keys[j - 1] > key:
            keys[j], rows[j] = keys[j - 1], rows[j - 1]
            j -= 1
        keys[j], rows[j] = key, row
        budget -= i - j
        if budget < 0:
            return False
    return True


@compiled(fastmath=False)
def _write_below(keys, rows, n, first, below, keys2, rows2, starts):
    """Sort rows by ascending key and write for each how many keys are lower, counted from `first`.

    Counted into as many equal cells as there are rows, then by insertion; merged where the cells are of no use.
    keys2, rows2 (n,) and starts (n + 1,) are scratch; keys and rows are left in no order.
    """
    least = most = keys[0]
    for k in range(n):
        least, most = min(least, keys[k]), max(most, keys[k])
    factor = _per_unit(least, most, n)
    starts[: n + 1] = 0
    for k in range(n):
        starts[_cell(keys[k], least, factor) + 1] += 1
    for cell in range(n):
        starts[cell + 1] += starts[cell]
    for k in range(n):
        cell = _cell(keys[k], least, factor)
        at = starts[cell]
        keys2[at], rows2[at] = keys[k], rows[k]
        starts[cell] = at + 1
    if not _move_up(keys2, rows2, n):
        for k in range(n):
            keys2[k] = -keys2[k]  # that sort puts the greatest first
        _merge_sort(keys2, rows2, n, keys, rows)
    start = 0
    for k in range(n):
        if keys2[k] != keys2[start]:
            start = k
        below[rows2[k]] = first + start


@compiled(fastmath=False)
def _below_part(first, last, most, scores, members, ptr, below):
    keys, rows, starts = np.empty(most), np.empty(most, np.int32), np.empty(most + 1, np.int32)
    keys2, rows2 = np.empty(most), np.empty(most, np.int32)
    for g in range(first, last):
        a, n = ptr[g], ptr[g + 1] - ptr[g]
        if n == 0 or n >= LARGE:
            continue
        for k in range(n):
            rows[k] = members[a + k]
            keys[k] = scores[rows[k]]
        _write_below(keys, rows, n, 0, below, keys2, rows2, starts)


@compiled(fastmath=False)
def _find_ranges(first, last, scores, members, ranges):
    for piece in range(first, last):
        least = most = scores[members[piece * PIECE]]
        for row in members[piece * PIECE : (piece + 1) * PIECE]:
            least, most = min(least, scores[row]), max(most, scores[row])
        ranges[piece, 0], ranges[piece, 1] = least, most


@compiled(fastmath=False)
def _count_cells(first, last, scores, members, least, factor, counts):
    for piece in range(first, last):
        for row in members[piece * PIECE : (piece + 1) * PIECE]:
            counts[piece, _cell(scores[row], least, factor)] += 1


@compiled(fastmath=False)
def _fill_cells(first, last, scores, members, least, factor, starts, keys, rows):
    for piece in range(first, last):
        for row in members[piece * PIECE : (piece + 1) * PIECE]:
            cell = _cell(scores[row], least, factor)
            at = starts[piece, cell]
            keys[at], rows[at] = scores[row], row
            starts[piece, cell] = at + 1


@compiled(fastmath=False)
def _below_in_cells(first, last, most, borders, keys, rows, below):
    keys2, rows2, starts = np.empty(most), np.empty(most, np.int32), np.empty(most + 1, np.int32)
    for cell in range(first, last):
        a, n = borders[cell], borders[cell + 1] - borders[cell]
        if n > 0:
            _write_below(keys[a : a + n], rows[a : a + n], n, a, below, keys2, rows2, starts)


def below(scores, members, ptr, out, threads=1):
    """Write into out, for each row, how many rows of its group have a lower score.

    members: (n,) the rows, group by group; ptr: borders of the groups among them.
    """
    sizes = np.diff(ptr)
    small = int(sizes[sizes < LARGE].max(initial=0))
    if small:
        run_parts(_below_part, shares(ptr, threads), small, scores, members, ptr, out)
    for g in np.flatnonzero(sizes >= LARGE):
        _below_large(scores, members[ptr[g] : ptr[g + 1]], out, threads)


def _below_large(scores, members, out, threads):
    """Counted into equal cells by pieces, then each cell sorted."""
    n = len(members)
    pieces = -(-n // PIECE)
    parts = shares(np.minimum(np.arange(pieces + 1) * PIECE, n), threads)
    ranges, counts = np.empty((pieces, 2)), np.zeros((pieces, CELLS), np.int64)
    run_parts(_find_ranges, parts, scores, members, ranges)
    least, most = ranges[:, 0].min(), ranges[:, 1].max()
    factor = _per_unit(least, most, CELLS)
    run_parts(_count_cells, parts, scores, members, least, factor, counts)
    borders = np.concatenate([[0], np.cumsum(counts.sum(0))])
    starts = borders[:-1] + np.cumsum(counts, axis=0) - counts
    room = scratch(3 * n)
    keys, rows = room[: 2 * n].view(np.float64), room[2 * n : 3 * n].view(np.int32)
    run_parts(_fill_cells, parts, scores, members, least, factor, starts, keys, rows)
    run_parts(_below_in_cells, shares(borders, threads), longest(borders), borders, keys, rows, out)


def shares(ptr, threads):
    """Borders of parts with about equal numbers of rows, for `run_parts`."""
    threads = min(threads, int(ptr[-1]) // SMALL)
    if threads <= 1:
        return np.array([0, len(ptr) - 1])
    parts = threads * PARTS_PER_THREAD
    inner = np.searchsorted(ptr, ptr[-1] * np.arange(1, parts) / parts)
    return np.unique(np.concatenate([[0], inner, [len(ptr) - 1]]))
