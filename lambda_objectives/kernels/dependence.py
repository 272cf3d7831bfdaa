"""Unbiased squared distance covariance and its gradient, group by group, in O(n log n).

The rows of a group lie by ascending control, so that a row's place is the rank of its control. In the order of the
predictions these places are a permutation P. All that is not a prefix sum is, for each row, how many of the rows before
it in P have a smaller place, and the sum of their controls. Both come from one sweep per five bits of the place, from
the top: a block holds the rows that agree in the higher bits, in the order of the predictions; going through it keeps,
for each of 32 digits, count and sum of the rows seen with a smaller digit, and hands the rows on to 32 blocks, whose
borders are known because P is a permutation.
"""

import numpy as np

from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.ordering import rank as sort_by_score
from lambda_objectives.kernels.threads import run_parts

BITS = 5
DIGITS = 1 << BITS


@compiled(fastmath=False)
def _smaller_before(places, control, n, count, total, there, here):
    """For each place: how many of the places before it in `places` are smaller, and the sum of their controls."""
    for p in range(n):
        count[p], total[p] = 0, 0.0
    counts, sums, begin = np.empty(DIGITS, np.int64), np.empty(DIGITS), np.empty(DIGITS, np.int64)
    for k in range(n):
        here[k] = places[k]
    shift = 0
    while (1 << (shift + BITS)) < n:
        shift += BITS
    while shift >= 0:
        for block in range(0, n, 1 << (shift + BITS)):
            for d in range(DIGITS):
                counts[d], sums[d], begin[d] = 0, 0.0, block + (d << shift)
            for k in range(block, min(block + (1 << (shift + BITS)), n)):
                p = here[k]
                digit = (p >> shift) & (DIGITS - 1)
                count[p] += counts[digit]
                total[p] += sums[digit]
                y = control[p]
                for d in range(DIGITS):  # without a branch: one vector instruction for several digits
                    above = d > digit
                    counts[d] += above
                    sums[d] += y if above else 0.0
                there[begin[digit]] = p
                begin[digit] += 1
        here, there = there, here
        shift -= BITS


@compiled(fastmath=False)
def _dependence_part(first, last, longest, scores, control, sums, factor, ptr, order, gradient, value):
    """Gradient of each row, by place, times the group's factor; the group's value."""
    count, total = np.empty(longest, np.int64), np.empty(longest)
    there, here = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for g in range(first, last):
        a = ptr[g]
        n = ptr[g + 1] - a
        value[g] = 0.0
        if factor[g] == 0.0:
            for p in range(a, a + n):
                gradient[p] = 0.0
            continue
        y, b, places = control[a : a + n], sums[a : a + n], order[a : a + n]
        _smaller_before(places, y, n, count, total, there, here)
        all_b = 0.0
        for p in range(n):
            all_b += b[p]
        scale = 1.0 / (n * (n - 3.0))
        start = scores[a + places[n // 2]]  # the value does not depend on the origin, its rounding does
        before_y, before_b, k = 0.0, 0.0, 0
        while k < n:
            end, run_y, run_b = k, 0.0, 0.0
            while end < n and scores[a + places[end]] == scores[a + places[k]]:
                run_y += y[places[end]]
                run_b += b[places[end]]
                end += 1
            side = k - (n - end)  # rows below less rows above
            below_b, above_b = before_b, all_b - before_b - run_b
            seen_y = 0.0
            for t in range(k, end):  # tied rows lie by ascending control, and count on neither side
                p = places[t]
                m = t - k
                before = y[p] * (2 * count[p] - t) + before_y + seen_y - 2 * total[p] - (y[p] * m - seen_y)
                tied = y[p] * m - seen_y + (run_y - seen_y - y[p]) - y[p] * (end - t - 1)
                push = 2.0 * (2.0 * before + tied - b[p])
                push -= 2.0 * (side * b[p] + below_b - above_b) / (n - 2.0)
                push += 2.0 * side * all_b / ((n - 1.0) * (n - 2.0))
                push *= scale
                value[g] += push * (scores[a + p] - start)
                gradient[a + p] = factor[g] * push
                seen_y += y[p]
            before_y += run_y
            before_b += run_b
            k = end


def distance_covariance(scores, control, sums, factor, ptr, order, rank, gradient, value, parts):
    """Write each group's unbiased squared distance covariance into value, its gradient x factor into gradient.

    scores, control, sums (of the distances of each control to all of its group), gradient: (n,), the rows of a group
    by ascending control. order, rank: last round's, or any. Groups with factor 0 are left out.
    """
    # ranks go from the best score down: of the scores turned round, that is from the least one up, ties by place
    sort_by_score(-scores, ptr, order, rank, parts)
    longest = int(np.diff(ptr).max(initial=0))
    run_parts(_dependence_part, parts, longest, scores, control, sums, factor, ptr, order, gradient, value)
