"""CatBoost 1.2: `LambdaMart`, whose derivatives already have the sign of a loss's gradient."""

import numpy as np

from lambda_objectives.kernels.peers import gather, log_factor, logistic_pair, scatter, strict
from lambda_objectives.kernels.threads import longest, run_parts

DCG, MRR, ERR, MAP = range(4)  # DCG stands for NDCG as well: it divides both


@strict
def _pair(high, low, delta, sigma, gaps, s, g, h):
    if gaps:
        delta /= 0.01 + min(abs(s[high] - s[low]), 1e290)
    return logistic_pair(high, low, delta, sigma, s, g, h)


@strict
def _dcg(n, y, gain, discount, ideal, top, sigma, gaps, s, g, h):
    total, value = 0.0, 0.0
    for i in range(n):
        for j in range(n if i < top else min(n, top)):
            if y[i] > y[j]:
                delta = (gain[i] - gain[j]) * abs(discount[i] - discount[j]) / ideal
                twice, c = _pair(i, j, delta, sigma, gaps, s, g, h)
                total += twice
                value += c
    return total, value


@strict
def _mrr(n, y, sigma, gaps, s, g, h):
    """Fault: a relevant row below the first is taken to change 1 / own rank, not 1 / rank of the first."""
    total, value = 0.0, 0.0
    first, second = n, 0  # second: 0 stands for none
    for r in range(n - 1, -1, -1):
        if y[r] > 0:
            first, second = r, (first if first < n else 0)
    for i in range(first, n):
        if y[i] <= 0:
            continue
        for j in range(n if i == first else first):
            if y[j] > 0:
                continue
            if j < i:
                delta = 1.0 / (j + 1) - 1.0 / (i + 1)
            else:
                delta = 1.0 / (i + 1) - 1.0 / ((j if second == 0 or j < second else second) + 1)
            twice, c = _pair(i, j, delta, sigma, gaps, s, g, h)
            total += twice
            value += c
    return total, value


@strict
def _err(n, y, sigma, gaps, s, g, h):
    """Fault: a row between two others is passed over where its label equals the upper one's."""
    total, value = 0.0, 0.0
    reached = 1.0  # chance that the user gets to rank i
    for i in range(n):
        between, onward = 0.0, 1.0
        for j in range(i + 1, n):
            if y[i] == y[j]:
                continue
            change = (y[i] - y[j]) / (i + 1) + between * (y[j] - y[i]) + onward * (y[j] - y[i]) / (j + 1)
            between += onward * y[j] / (j + 1)
            onward *= 1.0 - y[j]
            high, low = (i, j) if y[i] > y[j] else (j, i)
            twice, c = _pair(high, low, reached * abs(change), sigma, gaps, s, g, h)
            total += twice
            value += c
        reached *= 1.0 - y[i]
    return total, value


@strict
def _map(n, y, sigma, gaps, s, g, h):
    """Fault: a sum of 1 / rank in place of the change, not divided by the number of relevant rows."""
    total, value = 0.0, 0.0
    for i in range(n):
        summed = 1.0 / (i + 1)
        for j in range(i + 1, n):
            if (y[i] > 0) == (y[j] > 0):
                continue
            high, low = (i, j) if y[i] > y[j] else (j, i)
            twice, c = _pair(high, low, summed, sigma, gaps, s, g, h)
            total += twice
            value += c
            if y[j] > 0:
                summed += 1.0 / (j + 1)
    return total, value


@strict
def _part(
    first, last, longest, kind, labels, gain, ideal, discount, top, sigma, norm, scores, ptr, order, weights,
    grad, hess, cost,
):  # fmt: skip
    s, y, gains = np.empty(longest), np.empty(longest), np.empty(longest)
    g, h = np.empty(longest), np.empty(longest)
    for q in range(first, last):
        a = ptr[q]
        n = ptr[q + 1] - a
        gather(a, n, order, scores, s)
        gather(a, n, order, labels, y)
        g[:n], h[:n] = 0.0, 0.0
        gaps = norm and n > 0 and s[0] != s[n - 1]
        if kind == DCG:
            gather(a, n, order, gain, gains)
            total, value = _dcg(n, y, gains, discount, ideal[q], top, sigma, gaps, s, g, h)
        elif kind == MRR:
            total, value = _mrr(n, y, sigma, gaps, s, g, h)
        elif kind == ERR:
            total, value = _err(n, y, sigma, gaps, s, g, h)
        else:
            total, value = _map(n, y, sigma, gaps, s, g, h)
        factor = log_factor(total) if norm else 1.0
        for r in range(n):
            scale = factor * weights[a + order[a + r]] if len(weights) else factor
            g[r] *= scale
            h[r] *= scale
        scatter(a, n, order, g, h, grad, hess)
        cost[q] = factor * value


def lambda_mart(kind, labels, gain, ideal, discount, top, sigma, norm, scores, ptr, order, weights,
                grad, hess, cost, parts):  # fmt: skip
    """Write gradient and Hessian of each row and the cost of each query; ideal: (Q,) sums over the first `top`."""
    run_parts(
        _part, parts, longest(ptr), kind, labels, gain, ideal, discount, top, sigma, norm,
        scores, ptr, order, weights, grad, hess, cost,
    )  # fmt: skip
