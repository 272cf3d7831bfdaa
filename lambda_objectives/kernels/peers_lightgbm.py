"""LightGBM 4.7: `lambdarank` and `rank_xendcg`."""

import math

import numpy as np

from lambda_objectives.kernels.peers import gather, log_factor, scatter, softplus, strict
from lambda_objectives.kernels.threads import longest, run_parts

BINS = 2**20  # of its table of 1 / (1 + e^(sigma x))
HALF_WIDTH = 25.0  # the table reaches from -25 / sigma to 25 / sigma
GAP = np.float64(np.float32(0.01))
MULTIPLIER, INCREMENT, MASK = 214013, 2531011, 2**32 - 1  # of its generator


# ------------------------------------------------------------------------------------------------------- lambdarank
@strict
def _table(x, sigma):
    """The entry of its table for x: the function at the left edge of a bin."""
    low = -HALF_WIDTH / sigma
    scale = BINS / (-low - low)
    if x <= low:
        k = 0
    elif x >= -low:
        k = BINS - 1
    else:
        k = min(np.int64((x - low) * scale), BINS - 1)
    return 1.0 / (1.0 + math.exp((k / scale + low) * sigma))


@strict
def _lambdarank_part(
    first, last, longest, labels, gain, inverse, discount, truncation, sigma, norm, scores, ptr, order, weights,
    grad, hess, cost,
):  # fmt: skip
    s, y, gains = np.empty(longest), np.empty(longest), np.empty(longest)
    g, h = np.empty(longest, grad.dtype), np.empty(longest, grad.dtype)
    for q in range(first, last):
        a = ptr[q]
        n = ptr[q + 1] - a
        gather(a, n, order, scores, s)
        gather(a, n, order, labels, y)
        gather(a, n, order, gain, gains)
        g[:n], h[:n] = 0.0, 0.0
        total, value = 0.0, 0.0
        for i in range(min(n - 1, truncation)):
            for j in range(i + 1, n):
                if y[i] == y[j]:
                    continue
                high, low = (i, j) if y[i] > y[j] else (j, i)
                gap = s[high] - s[low]
                delta = (gains[high] - gains[low]) * abs(discount[high] - discount[low]) * inverse[q]
                if norm and s[0] != s[n - 1]:
                    delta /= GAP + abs(gap)
                p = _table(gap, sigma)
                p_lambda = p * (-sigma * delta)
                p_hessian = (p * (1.0 - p)) * (sigma * sigma * delta)
                rounded, curved = g.dtype.type(p_lambda), g.dtype.type(p_hessian)
                g[low] -= rounded
                h[low] += curved
                g[high] += rounded
                h[high] += curved
                total -= 2 * p_lambda
                value += delta * softplus(-sigma * gap)
        factor = log_factor(total) if norm else 1.0
        if norm and total > 0:
            for r in range(n):
                g[r], h[r] = g[r] * factor, h[r] * factor
        scatter(a, n, order, g, h, grad, hess)
        cost[q] = factor * value
        if len(weights):
            for row in range(a, a + n):
                grad[row] *= weights[row]
                hess[row] *= weights[row]


def lambdarank(labels, gain, inverse, discount, truncation, sigma, norm, scores, ptr, order, weights,
               grad, hess, cost, parts):  # fmt: skip
    """Write gradient and Hessian of each row and the cost of each query; inverse: of the ideal DCGs, or 0."""
    run_parts(
        _lambdarank_part, parts, longest(ptr), labels, gain, inverse, discount, truncation, sigma, norm,
        scores, ptr, order, weights, grad, hess, cost,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ rank_xendcg
@strict
def jumped(state, steps):
    """The state of its generator after that many steps more: the step is doubled, not repeated."""
    multiplier, increment = MULTIPLIER, INCREMENT
    while steps > 0:
        if steps & 1:
            state = (state * multiplier + increment) & MASK
        increment = (increment * (multiplier + 1)) & MASK
        multiplier = (multiplier * multiplier) & MASK
        steps >>= 1
    return state


@strict
def _xendcg_part(first, last, longest, two_to_label, seed, round_, scores, ptr, weights, grad, hess, cost):
    rho, params, target = np.empty(longest), np.empty(longest), np.empty(longest)
    kind = grad.dtype.type
    for q in range(first, last):
        a = ptr[q]
        n = ptr[q + 1] - a
        cost[q] = 0.0
        if n <= 1:
            grad[a : a + n], hess[a : a + n] = 0.0, 0.0
            continue
        top, total = scores[a], 0.0
        for i in range(1, n):
            top = max(top, scores[a + i])
        for i in range(n):
            rho[i] = math.exp(scores[a + i] - top)
            total += rho[i]
        for i in range(n):
            rho[i] /= total
        state = jumped((seed + q) & MASK, round_ * n)  # a number a row has been drawn in each round
        mass = 0.0
        for i in range(n):
            state = (state * MULTIPLIER + INCREMENT) & MASK
            target[i] = two_to_label[a + i] - ((state >> 16) & 0x7FFF) / 32768.0
            mass += target[i]
        inverse = 1.0 / mass
        sum_first, sum_second = 0.0, 0.0
        for i in range(n):
            term = -target[i] * inverse + rho[i]
            grad[a + i] = term
            params[i] = term / max(1.0 - rho[i], 1e-16)  # LightGBM divides by the 0 and goes on with NaN
            sum_first += params[i]
            cost[q] += target[i] * inverse * (math.log(total) - (scores[a + i] - top))
        for i in range(n):
            term = rho[i] * (sum_first - params[i])
            grad[a + i] += kind(term)
            params[i] = term / max(1.0 - rho[i], 1e-16)
            sum_second += params[i]
        for i in range(n):
            grad[a + i] += kind(rho[i] * (sum_second - params[i]))
            hess[a + i] = rho[i] * (1.0 - rho[i])
        if len(weights):
            for row in range(a, a + n):
                grad[row] *= weights[row]
                hess[row] *= weights[row]


def xendcg(two_to_label, seed, round_, scores, ptr, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row and the cross-entropy of each query."""
    run_parts(
        _xendcg_part, parts, longest(ptr), two_to_label, seed, round_, scores, ptr, weights, grad, hess, cost
    )  # fmt: skip
