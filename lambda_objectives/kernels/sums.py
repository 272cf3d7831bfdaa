"""Weighted sums of what the terms have written."""

import numpy as np

from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.threads import PARTS_PER_THREAD, SMALL, run_parts

BLOCK = 2048  # rows of a sum that stay in the cache while one term after the other is added


@compiled
def _weighted_sum_part(first, last, weights, parts, total):
    for k in range(2):
        for a in range(first, last, BLOCK):
            b = min(a + BLOCK, last)
            out = total[k, a:b]
            out[:] = weights[k, 0] * parts[0, k, a:b]
            for i in range(1, weights.shape[1]):
                w, part = weights[k, i], parts[i, k, a:b]
                if w != 0.0:
                    for j in range(b - a):
                        out[j] += w * part[j]


def weighted_sum(weights, parts, total, threads=1):
    """Write the sum over terms of weight x part into total, (2, n); weights (2, terms), parts (terms, 2, n)."""
    n = total.shape[1]
    pieces = 1 if threads <= 1 or n < threads * SMALL else threads * PARTS_PER_THREAD
    run_parts(_weighted_sum_part, np.linspace(0, n, pieces + 1).astype(np.int64), weights, parts, total)
