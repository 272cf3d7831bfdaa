"""What the emulated peers have in common; each has a module of its own, `peers_NAME`.

They keep the peers' order of additions and their roundings. Gradients are added up in the type of `grad`: in float32,
where LightGBM and XGBoost round, the results are theirs to the last bit but for rare ties in rounding; in float64
nothing is rounded. A query is the work of one thread, so that the number of threads does not matter.
"""

import math

import numpy as np

from lambda_objectives.kernels.compiled import compiled

strict = compiled(fastmath=False)  # sums in another order would be other sums


@strict
def softplus(x):
    """log(1 + e^x), finite even for infinite x."""
    return math.log1p(math.exp(-abs(x))) + min(max(x, 0.0), 1e290)


@strict
def log_factor(total):
    """log2(1 + S) / S, the factor by which all peers tame queries with large gradients; 1 for S = 0."""
    return math.log2(1.0 + total) / total if total > 0 else 1.0


@strict
def gather(a, n, order, values, out):
    """Write values of the rows of the query that begins at a, by rank, into out."""
    for r in range(n):
        out[r] = values[a + order[a + r]]


@strict
def scatter(a, n, order, g, h, grad, hess):
    """Write gradients and Hessians by rank to their rows."""
    for r in range(n):
        row = a + order[a + r]
        grad[row], hess[row] = g[r], h[r]


@strict
def logistic_pair(high, low, delta, sigma, s, g, h):
    """Add a pair of the better row `high` in double precision; returns twice its gradient, and its cost."""
    gap = sigma * min(max(s[high] - s[low], -1e290), 1e290)  # the difference itself may be infinite
    p = 1.0 / (1.0 + math.exp(gap))
    first, second = sigma * delta * p, sigma * sigma * delta * (p * (1.0 - p))
    g[high] -= first
    g[low] += first
    h[high] += second
    h[low] += second
    return 2.0 * first, delta * softplus(-gap)


@strict
def _ideal(gain, discount, ptr, k, out):
    for q in range(len(ptr) - 1):
        total = 0.0
        for r in range(min(ptr[q + 1] - ptr[q], k)):
            total += discount[r] * gain[ptr[q] + r]
        out[q] = total


def ideal_sums(labels, gain, discount, ptr, k):
    """(Q,) largest sum of gain times discount over the first k ranks, the rows being ranked by label."""
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    out = np.empty(len(ptr) - 1)
    _ideal(gain[np.lexsort((-labels, query))], discount, ptr, k, out)
    return out


def log2_discounts(longest):
    """1 / log2(rank + 2), by the C library's log2, which NumPy's may differ from in the last bit."""
    return np.array([1.0 / math.log2(rank + 2.0) for rank in range(longest)])
