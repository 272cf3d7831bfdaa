"""XGBoost 3.2: `rank:ndcg`, `rank:map` and `rank:pairwise`, pairs by "topk" and by "mean"."""

import math

import numpy as np

from lambda_objectives.kernels.peers import gather, log_factor, scatter, softplus, strict
from lambda_objectives.kernels.threads import longest, run_parts

PAIRWISE, NDCG, MAP = range(3)
MINSTD, MINSTD_MODULUS, MASK = 48271, 2**31 - 1, 2**32 - 1
FURTHEST, LEAST = np.float32(88.7), np.float32(1e-16)  # e^x is cut there, and this is added to its sum with 1


@strict
def _draw(state, n):
    """libstdc++'s uniform_int_distribution from 0 to n - 1 over minstd_rand: the number and the new state."""
    width = (MINSTD_MODULUS - 2) // n
    while True:
        state = state * MINSTD % MINSTD_MODULUS
        if state - 1 < n * width:
            return (state - 1) // width, state


@strict
def _drawn_pairs(n, y, draws, seed, left, right):
    """Write the ranks of `draws` pairs for each row, its partner drawn from those with other labels; returns how many.

    The rows take their turns label by label, the highest first.
    """
    place = np.argsort(-y[:n], kind="mergesort")
    state = max(seed % MINSTD_MODULUS, 1)
    m, begin = 0, 0
    while begin < n:
        end = begin + 1
        while end < n and y[place[begin]] == y[place[end]]:
            end += 1
        others = n - (end - begin)
        for _ in range(draws if others > 0 else 0):
            for k in range(begin, end):
                partner, state = _draw(state, others)
                left[m], right[m] = place[k], place[partner if partner < begin else partner + end - begin]
                m += 1
        begin = end
    return m


@strict
def _part(
    first, last, longest, kind, mean, pairs, log_norm, gap_norm, labels, gain, inverse, discount, round_,
    scores, ptr, order, weights, weight_norm, grad, hess, cost,
):  # fmt: skip
    y, gains = np.empty(longest), np.empty(longest)
    relevant, precision = np.empty(longest), np.empty(longest)  # MAP: sums over the ranks of label, of label / rank
    s, g, h = np.empty(longest, grad.dtype), np.empty(longest, grad.dtype), np.empty(longest, grad.dtype)
    left, right = np.empty(pairs * longest if mean else 0, np.int64), np.empty(pairs * longest if mean else 0, np.int64)
    rounded = grad.dtype.type
    one, furthest, least = rounded(1.0), rounded(FURTHEST), rounded(LEAST)
    for q in range(first, last):
        a = ptr[q]
        n = ptr[q + 1] - a
        gather(a, n, order, scores, s)
        gather(a, n, order, labels, y)
        gather(a, n, order, gain, gains)
        g[:n], h[:n] = 0.0, 0.0
        count, total = 0.0, 0.0
        for r in range(n if kind == MAP else 0):
            count += y[r]
            total += y[r] / (r + 1.0)
            relevant[r], precision[r] = count, total
        gaps = gap_norm and n > 0 and s[0] != s[n - 1]
        total, value = 0.0, 0.0
        drawn = _drawn_pairs(n, y, pairs, ((round_ + 1) * (len(ptr) - 1) + q) & MASK, left, right) if mean else 0
        for step in range(1 if mean else min(n, pairs)):  # by "topk" a step is a rank, with all below it
            for t in range(drawn if mean else n - 1 - step):
                i, j = (left[t], right[t]) if mean else (step, step + 1 + t)
                if y[i] == y[j]:
                    continue
                high, low = (j, i) if y[i] < y[j] else (i, j)
                if kind == NDCG:
                    now = gains[high] * discount[high] + gains[low] * discount[low]
                    swapped = gains[low] * discount[high] + gains[high] * discount[low]
                    delta = abs((now - swapped) * inverse[q])
                elif kind == MAP:
                    up, down = min(i, j), max(i, j)
                    between = precision[down - 1] - precision[up]
                    if high == down:
                        change = relevant[down] / (down + 1.0) - (relevant[up] + 1.0) / (up + 1.0) - between
                    else:
                        change = relevant[up] / (up + 1.0) - relevant[down] / (down + 1.0) + between
                    delta = abs(change / count)
                else:
                    delta = 1.0
                gap = s[high] - s[low]
                p = np.float64(one / (math.exp(min(-gap, furthest)) + one + least))
                if gaps:
                    delta /= np.float64(abs(gap)) + 0.01
                slope = rounded((p - 1.0) * delta)
                curve = rounded(max(p * (1.0 - p), 1e-16) * delta * 2.0)
                g[high] += slope
                h[high] += curve
                g[low] -= slope
                h[low] += curve
                total -= 2.0 * np.float64(slope)
                value += delta * softplus(-np.float64(gap))
        factor = 1.0
        if log_norm:
            factor = 1.0 / pairs if mean else log_factor(total)
        scale = rounded(factor)
        for r in range(n):
            g[r] = g[r] * scale * weights[q] * weight_norm
            h[r] = h[r] * scale * weights[q] * weight_norm
        scatter(a, n, order, g, h, grad, hess)
        cost[q] = factor * value


def rank_objective(kind, mean, pairs, log_norm, gap_norm, labels, gain, inverse, discount, round_, scores, ptr, order,
                   weights, grad, hess, cost, parts):  # fmt: skip
    """Write gradient and Hessian of each row and the cost of each query.

    weights: (Q,) of the queries, in the type of grad. inverse: (Q,) of the ideal DCGs, or 0. pairs: ranks that make
    pairs with all below them; with `mean` rows drawn for each row.
    """
    total = float(weights.astype(np.float64).sum())
    weight_norm = grad.dtype.type(len(weights) / total if total > 0 else 0.0)
    run_parts(
        _part, parts, longest(ptr), kind, mean, pairs, log_norm, gap_norm, labels, gain, inverse, discount,
        round_, scores, ptr, order, weights, weight_norm, grad, hess, cost,
    )  # fmt: skip
