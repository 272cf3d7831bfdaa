"""Sorting each query by score."""

import numpy as np

from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.threads import longest, run_parts


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
        keys[:n], rows[:n] = keys2[:n], rows2[:n]
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
