"""The pair loop compiled by numba: single precision where the boosters take single precision, no n x n matrix.

How the pair loop gets its speed. With E = exp(sigma * score), 1 / (1 + exp(sigma (s_h - s_l))) is E_l / (E_h + E_l):
one exponential a row and one division a pair. The rows of a query lie by ascending label, so that for each row its
worse rows are the first m of an array: the loops run from 0, have no branch, and the compiler turns them into vector
instructions. m is rounded up to whole vectors; what lies between is at least as good and gets the weight 0.
With a truncation the first ranks and the rest are two such arrays, and pairs of the rest with itself are never formed.

Queries whose scores lie too far apart for that, and all double-precision work, take the plain loop `_exact_query`.
"""

import math

import numpy as np

from lambda_objectives.kernels import ADDITIVE, UNIT
from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.threads import longest, run_parts

VECTOR = 16
FAST_RANGE = 80.0  # widest sigma * (max - min) of the fast path: e^-40 to e^40, and products of two, are normal float32
ONE, ZERO = np.float32(1.0), np.float32(0.0)
LOG2E, LN2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # their sum is ln 2, the first one is exact
ROOT_HALF_BITS, MANTISSA_BITS = np.int32(0x3F3504F3), np.int32(23)
# least-squares fits on Chebyshev nodes: e^r for |r| <= ln(2)/2 (error 8e-8), log(1+f)/f for 1+f in [sqrt(.5), sqrt(2)]
E0, E1, E2 = np.float32(1.00000007), np.float32(0.99999967), np.float32(0.49998899)
E3, E4, E5 = np.float32(0.16667663), np.float32(0.04191507), np.float32(0.00829172)
L0, L1, L2, L3 = np.float32(1.00000096), np.float32(-0.50001145), np.float32(0.33314671), np.float32(-0.2490827)
L4, L5, L6 = np.float32(0.20491795), np.float32(-0.18680964), np.float32(0.11931194)


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
def _exact_query(a, n, kind, by_label, level, discount, truncation, sigma, gaps, log_norm, scores, rank, g, h):
    """One query, pair by pair in double precision: gradients into g and h, by ascending label; returns cost, factor."""
    g[:n], h[:n] = 0.0, 0.0
    cost, total, worse = 0.0, 0.0, 0
    for i in range(n):
        if i > 0 and level[a + i] > level[a + i - 1]:
            worse = i
        row = a + by_label[a + i]
        rank_i = rank[row]
        for j in range(worse):
            row_j = a + by_label[a + j]
            rank_j = rank[row_j]
            if rank_i >= truncation and rank_j >= truncation:
                continue
            if kind == ADDITIVE:
                w = (level[a + i] - level[a + j]) * abs(discount[rank_i] - discount[rank_j]) * 1.0
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
def _better_rows(kind, gaps, count, better, worse, own, block, w):
    """Each of the `count` better rows against the first worse[c] rows of a block; returns the sums of g and of cost.

    own and block are (level, discount, score, e, g, h) of rows by ascending label: gradients are added to own's g and h
    for the better rows, to block's for the worse ones; w is scratch. The inner loops run over whole vectors, of the
    length that LLVM makes of each: a rest of a few rows, done one by one, would take longer.
    """
    level, discount, score, e, g, h = own
    b_level, b_discount, b_score, b_e, b_g, b_h = block
    total_g, total_c = 0.0, 0.0
    for c in range(count):
        i, m = better[c], worse[c]
        level_h, discount_h, score_h, e_h = level[i], discount[i], score[i], e[i]
        whole = (m + 2 * VECTOR - 1) // (2 * VECTOR) * (2 * VECTOR)
        if kind == ADDITIVE:
            for j in range(whole):
                w[j] = max(level_h - b_level[j], ZERO) * abs(discount_h - b_discount[j])
        else:
            for j in range(whole):
                w[j] = ONE if b_level[j] < level_h else ZERO
        if gaps:
            for j in range(whole):
                w[j] /= 0.01 + abs(score_h - b_score[j])
        sum_g, sum_h, sum_c = ZERO, ZERO, ZERO
        for j in range((m + VECTOR - 1) // VECTOR * VECTOR):
            r = ONE / (e_h + b_e[j])
            q = e_h * r
            wp = w[j] * (b_e[j] * r)
            wh = wp * q
            b_g[j] += wp
            b_h[j] += wh
            sum_g += wp
            sum_h += wh
            sum_c -= w[j] * _log(q)
        g[i] -= sum_g
        h[i] += sum_h
        total_g += sum_g
        total_c += sum_c
    return total_g, total_c


# The same, compiled once for each kind: with `kind` known LLVM sees straight loops and makes code twice as fast.
@compiled
def _better_rows_additive(count, better, worse, own, block, w):
    return _better_rows(ADDITIVE, False, count, better, worse, own, block, w)


@compiled
def _better_rows_unit(count, better, worse, own, block, w):
    return _better_rows(UNIT, False, count, better, worse, own, block, w)


@compiled
def _pairs_against(kind, gaps, count, better, worse, own, block, w):
    if gaps:
        return _better_rows(kind, True, count, better, worse, own, block, w)
    if kind == ADDITIVE:
        return _better_rows_additive(count, better, worse, own, block, w)
    return _better_rows_unit(count, better, worse, own, block, w)


@compiled
def _new_block(longest):
    """Scratch for (level, discount, score, e, g, h) of a query's rows, filled up to whole vectors."""
    n = longest + 2 * VECTOR
    f = np.float32
    return np.empty(n, f), np.empty(n, f), np.empty(n), np.empty(n, f), np.empty(n, f), np.empty(n, f)


@compiled
def _close_block(block, n):
    """Fill up n rows to whole vectors with rows too good to be the worse of any pair, and set all gradients to 0."""
    level, discount, score, e, g, h = block
    for i in range(n, n + 2 * VECTOR):
        level[i], discount[i], score[i], e[i] = np.inf, ZERO, 0.0, ONE
    for i in range(n + 2 * VECTOR):
        g[i], h[i] = ZERO, ZERO


@compiled
def _pair_part(
    first, last, longest, kind, by_label, level, discount, truncation, sigma, gap_norm, log_norm,
    exact, scores, ptr, order, rank, weights, grad, hess, cost,
):  # fmt: skip
    rows = _new_block(longest)  # of a query, by ascending label
    r_level, r_discount, r_score, r_e, r_g, r_h = rows
    top = _new_block(longest)  # of those among its first `truncation` ranks, against which the rows below are compared
    t_level, t_discount, t_score, t_e, t_g, t_h = top
    better, worse = np.empty(longest, np.int32), np.empty(longest, np.int32)  # rows, and how many are worse
    below, t_worse = np.empty(longest, np.int32), np.empty(longest, np.int32)  # the same for rows below the top
    place = np.empty(longest + 1, np.int32)  # of the rows of top among rows
    w = np.empty(longest + 2 * VECTOR, np.float32)
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
        gaps = gap_norm and low != high
        if exact or not sigma * (high - low) <= FAST_RANGE:
            cost[q], factor = _exact_query(
                a, n, kind, by_label, level, discount, truncation, sigma, gaps, log_norm,
                scores, rank, exact_g, exact_h,
            )  # fmt: skip
            for i in range(n):
                row = a + by_label[a + i]
                scale = factor * weights[row] if len(weights) else factor
                grad[row], hess[row] = scale * exact_g[i], scale * exact_h[i]
            continue

        middle = 0.5 * (low + high)
        for i in range(n):
            row = a + by_label[a + i]
            r_level[i], r_discount[i], r_score[i] = level[a + i], discount[rank[row]], scores[row]
            r_e[i] = sigma * (scores[row] - middle)
        for i in range(n):
            r_e[i] = _exp(r_e[i])
        _close_block(rows, n)
        n_better, n_below, m = 0, 0, 1
        while r_level[m] == r_level[0]:
            m += 1
        for i in range(m, n):
            if r_level[i] > r_level[i - 1]:
                m = i
            if truncation >= n or rank[a + by_label[a + i]] < truncation:
                better[n_better], worse[n_better] = i, m
                n_better += 1
            else:
                below[n_below] = i
                n_below += 1
        total_g, total_c = _pairs_against(kind, gaps, n_better, better, worse, rows, rows, w)
        if n_below:
            n_top = 0
            for i in range(n):  # no branch: it would be guessed wrong for every other row
                place[n_top] = i
                n_top += rank[a + by_label[a + i]] < truncation
            for t in range(n_top):
                i = place[t]
                t_level[t], t_discount[t], t_score[t], t_e[t] = r_level[i], r_discount[i], r_score[i], r_e[i]
            _close_block(top, n_top)
            m = 0
            for c in range(n_below):
                while m < n_top and t_level[m] < r_level[below[c]]:
                    m += 1
                t_worse[c] = m
            sum_g, sum_c = _pairs_against(kind, gaps, n_below, below, t_worse, rows, top, w)
            total_g += sum_g
            total_c += sum_c
            for t in range(n_top):
                r_g[place[t]] += t_g[t]
                r_h[place[t]] += t_h[t]

        total = 2 * sigma * total_g
        factor = math.log2(1 + total) / total if log_norm and total > 0 else 1.0
        cost[q] = factor * total_c
        scale_g, scale_h = np.float32(sigma * factor), np.float32(sigma * sigma * factor)
        for i in range(n):
            row = a + by_label[a + i]
            grad[row], hess[row] = scale_g * r_g[i], scale_h * r_h[i]
        if len(weights):
            for i in range(a, a + n):
                grad[i] *= weights[i]
                hess[i] *= weights[i]


def pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row, and the cost of each query; formulas in kernels.reference.

    Single-precision grad and hess take the fast path, double-precision ones the exact one throughout.
    """
    exact = grad.dtype == np.float64
    run_parts(_pair_part, parts, longest(ptr), *pairs, exact, scores, ptr, order, rank, weights, grad, hess, cost)
