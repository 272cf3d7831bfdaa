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
ONE, ZERO, GAP = np.float32(1.0), np.float32(0.0), np.float32(0.01)
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
    k = np.int32(math.floor(x * LOG2E + np.float32(0.5)))
    whole = np.float32(k)
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
def _better_rows(
    kind, gaps, count, better, worse, inverse_sigma,
    level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w,
):  # fmt: skip
    """Each of the `count` better rows against the first worse[c] rows of a block (b_); returns sums of g and of cost.

    Gradients are added to g and h for the better rows, to b_g and b_h for the worse ones. The inner loops run over
    whole vectors, of the length that LLVM makes of each: a rest of a few rows, done one by one, would take longer.
    """
    total_g, total_c = 0.0, 0.0
    for c in range(count):
        i, m = better[c], worse[c]
        level_h, discount_h, x_h, e_h = level[i], discount[i], x[i], e[i]
        whole = (m + 2 * VECTOR - 1) // (2 * VECTOR) * (2 * VECTOR)
        if kind == ADDITIVE:
            for j in range(whole):
                w[j] = max(level_h - b_level[j], ZERO) * abs(discount_h - b_discount[j])
        else:
            for j in range(whole):
                w[j] = ONE if b_level[j] < level_h else ZERO
        if gaps:
            for j in range(whole):
                w[j] /= GAP + abs(x_h - b_x[j]) * inverse_sigma
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
def _better_rows_additive(
    count, better, worse, level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w
):
    return _better_rows(ADDITIVE, False, count, better, worse, ONE, level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w)  # fmt: skip  # noqa: E501


@compiled
def _better_rows_unit(count, better, worse, level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w):
    return _better_rows(UNIT, False, count, better, worse, ONE, level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w)  # fmt: skip  # noqa: E501


@compiled
def _pairs_against(
    kind, gaps, count, better, worse, inverse_sigma,
    level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w,
):  # fmt: skip
    if gaps:
        return _better_rows(kind, True, count, better, worse, inverse_sigma, level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w)  # fmt: skip  # noqa: E501
    if kind == ADDITIVE:
        return _better_rows_additive(count, better, worse, level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w)  # fmt: skip  # noqa: E501
    return _better_rows_unit(count, better, worse, level, discount, x, e, g, h, b_level, b_discount, b_x, b_e, b_g, b_h, w)  # fmt: skip  # noqa: E501


@compiled
def _pair_part(
    first, last, longest, kind, by_label, level, discount, truncation, sigma, gap_norm, log_norm,
    exact, scores, ptr, order, rank, weights, grad, hess, cost,
):  # fmt: skip
    width = longest + 4 * VECTOR
    # of the rows of a query by ascending label: what the pair loops read and write
    levels, discounts, x, e = _floats(width), _floats(width), _floats(width), _floats(width)
    g, h, w = _floats(width), _floats(width), _floats(width)
    better, worse = _integers(width), _integers(width)  # rows that are the better of a pair, and how many are worse
    # the same for the rows among the first `truncation` ranks, against which the rows below them are compared
    top_levels, top_discounts, top_x, top_e = _floats(width), _floats(width), _floats(width), _floats(width)
    top_g, top_h = _floats(width), _floats(width)
    top, below_top, top_worse = _integers(width), _integers(width), _integers(width)
    exact_g, exact_h = np.empty(longest), np.empty(longest)
    inverse_sigma = np.float32(1.0 / sigma)
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
            levels[i], discounts[i] = level[a + i], discount[rank[row]]
            x[i] = sigma * (scores[row] - middle)
        for i in range(n, n + 2 * VECTOR):  # up to whole vectors: rows too good to be the worse of any pair
            levels[i], discounts[i], x[i] = np.inf, ZERO, ZERO
        for i in range(n + 2 * VECTOR):
            e[i], g[i], h[i] = _exp(x[i]), ZERO, ZERO
        n_top, n_better, n_below, m = n, 0, 0, 0
        if truncation < n:
            n_top = 0
            for i in range(n):  # no branch: it would be guessed wrong for every other row
                top[n_top] = i
                n_top += rank[a + by_label[a + i]] < truncation
        for i in range(n):
            if i > 0 and levels[i] > levels[i - 1]:
                m = i
            if m > 0:
                if n_top == n or rank[a + by_label[a + i]] < truncation:
                    better[n_better], worse[n_better] = i, m
                    n_better += 1
                else:
                    below_top[n_below] = i
                    n_below += 1
        total_g, total_c = _pairs_against(
            kind, gaps, n_better, better, worse, inverse_sigma,
            levels, discounts, x, e, g, h, levels, discounts, x, e, g, h, w,
        )  # fmt: skip
        if n_below:
            for t in range(n_top):
                i = top[t]
                top_levels[t], top_discounts[t], top_x[t], top_e[t] = levels[i], discounts[i], x[i], e[i]
            for t in range(n_top, n_top + 2 * VECTOR):
                top_levels[t], top_discounts[t], top_x[t], top_e[t] = np.inf, ZERO, ZERO, ONE
            for t in range(n_top + 2 * VECTOR):
                top_g[t], top_h[t] = ZERO, ZERO
            m = 0
            for c in range(n_below):
                while m < n_top and top_levels[m] < levels[below_top[c]]:
                    m += 1
                top_worse[c] = m
            sum_g, sum_c = _pairs_against(
                kind, gaps, n_below, below_top, top_worse, inverse_sigma, levels, discounts, x, e, g, h,
                top_levels, top_discounts, top_x, top_e, top_g, top_h, w,
            )  # fmt: skip
            total_g += sum_g
            total_c += sum_c
            for t in range(n_top):
                g[top[t]] += top_g[t]
                h[top[t]] += top_h[t]

        total = 2 * sigma * total_g
        factor = math.log2(1 + total) / total if log_norm and total > 0 else 1.0
        cost[q] = factor * total_c
        scale_g, scale_h = np.float32(sigma * factor), np.float32(sigma * sigma * factor)
        for i in range(n):
            row = a + by_label[a + i]
            grad[row], hess[row] = scale_g * g[i], scale_h * h[i]
        if len(weights):
            for i in range(a, a + n):
                grad[i] *= weights[i]
                hess[i] *= weights[i]


@compiled
def _floats(width):
    return np.empty(width, np.float32)


@compiled
def _integers(width):
    return np.empty(width, np.int32)


def pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row, and the cost of each query; formulas in kernels.reference.

    Single-precision grad and hess take the fast path, double-precision ones the exact one throughout.
    """
    exact = grad.dtype == np.float64
    run_parts(_pair_part, parts, longest(ptr), *pairs, exact, scores, ptr, order, rank, weights, grad, hess, cost)
