"""The pair loop compiled by numba: single precision where the boosters take single precision, no n x n matrix.

How the pair loop gets its speed. With E = exp(sigma * score), 1 / (1 + exp(sigma (s_h - s_l))) is E_l / (E_h + E_l):
one exponential a row and one division a pair. The rows of a query lie by ascending label, so that for each row its
worse rows are the first m of an array: the loops run from 0, have no branch, and the compiler turns them into vector
instructions. m is rounded up to whole vectors; what lies between is at least as good and gets the weight 0.
With a truncation shorter than half the query the first ranks are copied into a block of their own, for the rows below
them, and pairs of two rows below are never formed.

Queries whose scores lie too far apart for that or that are too long, and all double-precision work, take the plain loop
`_exact_query`.
"""

import math

import numpy as np

from lambda_objectives.kernels import ADDITIVE, UNIT
from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.threads import longest, run_parts, scratch

VECTOR = 16
LEVEL, DISCOUNT, TOP, E, G, H, W, LANES = range(8)  # columns of a block of rows
LONGEST = 2**17  # rows of a query on the fast path
WIDTH = LONGEST + 208  # of a column; no multiple of a page, so that the columns do not compete for the same cache lines
FAST_RANGE = 80.0  # widest sigma * (max - min) of the fast path: e^-40 to e^40, and products of two, are normal float32
ONE, ZERO = np.float32(1.0), np.float32(0.0)
LOG2E, LN2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # their sum is ln 2, the first one is exact
ROOT_HALF_BITS, MANTISSA_BITS = np.int32(0x3F3504F3), np.int32(23)
# fits on Chebyshev nodes: e^r for |r| <= ln(2)/2, relative error 8e-8; log(1+f)/f for 1+f from sqrt(.5)
# to sqrt(2), absolute error of the logarithm 2.5e-7, which only the cost has
E0, E1, E2 = np.float32(1.00000007), np.float32(0.99999967), np.float32(0.49998899)
E3, E4, E5 = np.float32(0.16667663), np.float32(0.04191507), np.float32(0.00829172)
L0, L1, L2 = np.float32(1.00000325), np.float32(-0.500019649), np.float32(0.333032903)
L3, L4, L5, L6 = np.float32(-0.248813572), np.float32(0.206048071), np.float32(-0.189018192), np.float32(0.118267781)


@compiled
def _exp(x):
    """e^x in float32 for |x| <= 87."""
    whole = np.floor(x * LOG2E + np.float32(0.5))
    k = np.int32(whole)
    r = x - whole * LN2_HIGH - whole * LN2_LOW
    p = E0 + r * (E1 + r * (E2 + r * (E3 + r * (E4 + r * E5))))
    return p * np.int32(np.int32(k + np.int32(127)) << MANTISSA_BITS).view(np.float32)


@compiled
def _log(t):
    """Natural logarithm in float32 of a normal t > 0: exponent and mantissa apart."""
    bits = np.float32(t).view(np.int32)
    k = np.int32(np.int32(bits - ROOT_HALF_BITS) >> MANTISSA_BITS)
    f = np.int32(bits - np.int32(k << MANTISSA_BITS)).view(np.float32) - ONE
    return np.float32(k) * LN2 + f * (L0 + f * (L1 + f * (L2 + f * (L3 + f * (L4 + f * (L5 + f * L6))))))


@compiled
def _exact_query(a, n, kind, by_label, level, discount, truncation, sigma, gaps, log_norm, scores, rank, top, g, h):
    """One query, pair by pair in double precision: gradients into g and h, by ascending label; returns cost, factor."""
    g[:n], h[:n] = 0.0, 0.0
    n_top = 0
    for i in range(n):
        top[n_top] = i
        n_top += rank[a + by_label[a + i]] < truncation
    cost, total, worse = 0.0, 0.0, 0
    for i in range(n):
        if i > 0 and level[a + i] > level[a + i - 1]:
            worse = i
        row = a + by_label[a + i]
        rank_i = rank[row]
        for c in range(worse if rank_i < truncation else n_top):
            j = c if rank_i < truncation else top[c]
            if j >= worse:
                break
            row_j = a + by_label[a + j]
            if kind == ADDITIVE:
                w = (level[a + i] - level[a + j]) * abs(discount[rank_i] - discount[rank[row_j]]) * 1.0
            else:
                w = 1.0
            gap = min(max(scores[row] - scores[row_j], -1e290), 1e290)  # the difference itself may be infinite
            if gaps:
                w /= 0.01 + abs(gap)
            x = sigma * gap
            small = math.exp(-abs(x))
            p = (small if x > 0 else 1.0) / (1.0 + small)
            wp = sigma * w * p
            wh = sigma * wp * ((1.0 if x > 0 else small) / (1.0 + small))
            cost += w * (math.log1p(small) + max(-x, 0.0))
            total += 2 * wp
            g[i] -= wp
            h[i] += wh
            g[j] += wp
            h[j] += wh
    factor = math.log2(1 + total) / total if log_norm and total > 0 else 1.0
    return factor * cost, factor


@compiled(inline="always")
def _better_rows(kind, masked, gaps, count, better, worse, own, block, own_score, block_score):
    """Each of the `count` better rows against the first worse[c] rows of a block; returns the sums of g and of cost.

    own and block hold rows by ascending label in LANES columns of WIDTH each: gradients are added to own's G and H for
    the better rows, to block's for the worse ones. The inner loop runs over whole vectors, since a rest of a few rows,
    done one by one, would take longer; and all of it is in one array with columns a fixed distance apart, since arrays
    of their own would have to be tested for overlap before each of the many short loops.
    """
    total_g, total_c = 0.0, 0.0
    for c in range(count):
        i = better[c]
        level_h, discount_h, e_h = own[i + LEVEL * WIDTH], own[i + DISCOUNT * WIDTH], own[i + E * WIDTH]
        top_h = own[i + TOP * WIDTH]
        whole = (worse[c] + VECTOR - 1) // VECTOR * VECTOR
        if gaps:
            score_h = own_score[i]
            for j in range(whole):
                block[j + W * WIDTH] = ONE / (0.01 + abs(score_h - block_score[j]))
        sum_g, sum_h, sum_c = ZERO, ZERO, ZERO
        for j in range(whole):
            if kind == ADDITIVE:
                w = max(level_h - block[j + LEVEL * WIDTH], ZERO) * abs(discount_h - block[j + DISCOUNT * WIDTH])
            else:
                w = ONE if block[j + LEVEL * WIDTH] < level_h else ZERO
            if masked:
                w *= max(top_h, block[j + TOP * WIDTH])
            if gaps:
                w *= block[j + W * WIDTH]
            e = block[j + E * WIDTH]
            r = ONE / (e_h + e)
            q = e_h * r
            wp = w * (e * r)
            wh = wp * q
            block[j + G * WIDTH] += wp
            block[j + H * WIDTH] += wh
            sum_g += wp
            sum_h += wh
            sum_c -= w * _log(q)
        own[i + G * WIDTH] -= sum_g
        own[i + H * WIDTH] += sum_h
        total_g += sum_g
        total_c += sum_c
    return total_g, total_c


# The same, compiled once for each case: with `kind` and the rest known LLVM sees one straight loop.
@compiled
def _additive(count, better, worse, own, block, scores):
    return _better_rows(ADDITIVE, False, False, count, better, worse, own, block, scores, scores)


@compiled
def _additive_masked(count, better, worse, own, block, scores):
    return _better_rows(ADDITIVE, True, False, count, better, worse, own, block, scores, scores)


@compiled
def _unit(count, better, worse, own, block, scores):
    return _better_rows(UNIT, False, False, count, better, worse, own, block, scores, scores)


@compiled
def _pairs_against(kind, masked, gaps, count, better, worse, own, block, own_score, block_score):
    if gaps or (kind == UNIT and masked):
        return _better_rows(kind, masked, gaps, count, better, worse, own, block, own_score, block_score)
    if kind == UNIT:
        return _unit(count, better, worse, own, block, own_score)
    if masked:
        return _additive_masked(count, better, worse, own, block, own_score)
    return _additive(count, better, worse, own, block, own_score)


@compiled
def _close(block, n):
    """Fill up n rows to whole vectors with rows too good to be the worse of any pair, and set all gradients to 0."""
    for i in range(n, n + VECTOR):
        block[i + LEVEL * WIDTH] = np.inf
        block[i + DISCOUNT * WIDTH] = ZERO
        block[i + TOP * WIDTH] = ZERO
        block[i + E * WIDTH] = ONE
    for i in range(n + VECTOR):
        block[i + G * WIDTH] = ZERO
        block[i + H * WIDTH] = ZERO


@compiled
def _pair_part(
    first, last, scratch, longest, kind, by_label, level, discount, truncation, sigma, gap_norm, log_norm,
    exact, drawn, scores, ptr, order, rank, weights, grad, hess, cost,
):  # fmt: skip
    rows = scratch[: LANES * WIDTH]  # of a query, by ascending label
    top = scratch[LANES * WIDTH :]  # those among its first `truncation` ranks, for the rows below them
    row_score, top_score = np.zeros(longest + VECTOR), np.zeros(longest + VECTOR)
    better, worse = np.empty(longest + 1, np.int32), np.empty(longest + 1, np.int32)  # rows, and how many are worse
    below, top_worse = np.empty(longest + 1, np.int32), np.empty(longest + 1, np.int32)  # the same below the top
    place = np.empty(longest + 1, np.int32)  # of the rows of top among rows
    exact_g, exact_h = np.empty(longest), np.empty(longest)
    for q in range(first, last):
        a = ptr[q]
        n = ptr[q + 1] - a
        cost[q] = 0.0
        if n == 0 or level[a] == level[a + n - 1]:
            grad[a : a + n] = 0.0
            hess[a : a + n] = 0.0
            continue
        high, low = scores[a + order[a]], scores[a + order[a + n - 1]]
        if drawn:  # the ranks are not those of the scores
            for i in range(a, a + n):
                high, low = max(high, scores[i]), min(low, scores[i])
        gaps = gap_norm and low != high
        if exact or n > LONGEST or not sigma * (high - low) <= FAST_RANGE:
            cost[q], factor = _exact_query(
                a, n, kind, by_label, level, discount, truncation, sigma, gaps, log_norm,
                scores, rank, place, exact_g, exact_h,
            )  # fmt: skip
            for i in range(n):
                row = a + by_label[a + i]
                scale = factor * weights[row] if len(weights) else factor
                grad[row], hess[row] = scale * exact_g[i], scale * exact_h[i]
            continue

        # A truncation that most pairs pass is a factor on all of them; else the first ranks get a block of their own.
        masked = truncation < n <= 2 * truncation
        split_up = n > 2 * truncation
        middle = 0.5 * (low + high)
        for i in range(n):
            row = a + by_label[a + i]
            rows[i + LEVEL * WIDTH] = level[a + i]
            rows[i + DISCOUNT * WIDTH] = discount[rank[row]]
            rows[i + E * WIDTH] = sigma * (scores[row] - middle)
        if masked:
            for i in range(n):
                rows[i + TOP * WIDTH] = rank[a + by_label[a + i]] < truncation
        if gaps:
            for i in range(n):
                row_score[i] = scores[a + by_label[a + i]]
        for i in range(n):
            rows[i + E * WIDTH] = _exp(rows[i + E * WIDTH])
        _close(rows, n)
        n_better, n_below, m = 0, 0, 1
        while level[a + m] == level[a]:
            m += 1
        for i in range(m, n):
            if level[a + i] > level[a + i - 1]:
                m = i
            in_top = not split_up or rank[a + by_label[a + i]] < truncation
            # no branch: it would be guessed wrong for every other row
            better[n_better], worse[n_better] = i, m
            n_better += in_top
            below[n_below] = i
            n_below += not in_top
        total_g, total_c = _pairs_against(kind, masked, gaps, n_better, better, worse, rows, rows, row_score, row_score)
        if n_below:
            n_top = 0
            for i in range(n):
                place[n_top] = i
                n_top += rank[a + by_label[a + i]] < truncation
            for t in range(n_top):
                i = place[t]
                top[t + LEVEL * WIDTH] = rows[i + LEVEL * WIDTH]
                top[t + DISCOUNT * WIDTH] = rows[i + DISCOUNT * WIDTH]
                top[t + E * WIDTH] = rows[i + E * WIDTH]
                top_score[t] = row_score[i]
            _close(top, n_top)
            m = 0
            for c in range(n_below):
                while m < n_top and top[m + LEVEL * WIDTH] < rows[below[c] + LEVEL * WIDTH]:
                    m += 1
                top_worse[c] = m
            sum_g, sum_c = _pairs_against(kind, False, gaps, n_below, below, top_worse, rows, top, row_score, top_score)
            total_g += sum_g
            total_c += sum_c
            for t in range(n_top):
                rows[place[t] + G * WIDTH] += top[t + G * WIDTH]
                rows[place[t] + H * WIDTH] += top[t + H * WIDTH]

        total = 2 * sigma * total_g
        factor = math.log2(1 + total) / total if log_norm and total > 0 else 1.0
        cost[q] = factor * total_c
        scale_g, scale_h = np.float32(sigma * factor), np.float32(sigma * sigma * factor)
        for i in range(n):
            row = a + by_label[a + i]
            grad[row], hess[row] = scale_g * rows[i + G * WIDTH], scale_h * rows[i + H * WIDTH]
        if len(weights):
            for i in range(a, a + n):
                grad[i] *= weights[i]
                hess[i] *= weights[i]


def pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row, and the cost of each query; formulas in kernels.reference.

    Single-precision grad and hess take the fast path, double-precision ones the exact one throughout.
    """
    exact = grad.dtype == np.float64
    fixed = (
        longest(ptr), pairs.kind, pairs.by_label, pairs.level, pairs.discount, pairs.truncation, pairs.sigma,
        pairs.gap_norm, pairs.log_norm, exact, pairs.drawn, scores, ptr, order, rank, weights, grad, hess, cost,
    )  # fmt: skip
    run_parts(lambda first, last: _pair_part(first, last, scratch(2 * LANES * WIDTH), *fixed), parts)
