"""The kernels as their definitions say, in plain NumPy on n x n matrices: slow, obvious, the oracle of the others."""

from itertools import pairwise

import numpy as np

from lambda_objectives.kernels import ADDITIVE


def split(ptr, threads):
    """One part: everything."""
    return np.array([0, len(ptr) - 1])


def rank(scores, ptr, order, rank, parts):
    """Write each query's rows, best score first, into order, and each row's rank into rank."""
    for a, b in pairwise(ptr):
        order[a:b] = np.argsort(-scores[a:b], kind="stable")
        rank[a:b][order[a:b]] = np.arange(b - a)


def pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row, and the cost of each query (Burges 2010, equations 3-5).

    For each pair of a better row h and a worse row l, with x = sigma (s_h - s_l) and a weight w::

        cost    w log(1 + e^-x)
        grad    -sigma w / (1 + e^x) for h, the opposite for l
        hess    sigma^2 w e^x / (1 + e^x)^2 for both
    """
    for q, (a, b) in enumerate(pairwise(ptr)):
        rows = pairs.by_label[a:b]
        level = np.empty(b - a)
        level[rows] = pairs.level[a:b]
        s, r = scores[a:b], rank[a:b]
        better = level[:, None] > level  # [h, l]
        formed = better & (np.minimum(r[:, None], r) < pairs.truncation)
        if pairs.kind == ADDITIVE:
            discount = pairs.discount[r].astype(float)
            weight = np.abs(level[:, None] - level) * np.abs(discount[:, None] - discount)
        else:
            weight = np.ones((b - a, b - a))
        weight = np.where(formed, weight, 0.0)
        with np.errstate(over="ignore"):  # an infinite gap or e^x = inf is fine: the limits are right
            gap = np.clip(s[:, None] - s, -1e290, 1e290)
            if pairs.gap_norm and b > a and s.max() != s.min():
                weight = weight / (0.01 + np.abs(gap))
            x = pairs.sigma * gap
            p = 1 / (1 + np.exp(x))
            q_ = 1 / (1 + np.exp(-x))
        first = pairs.sigma * weight * p
        second = pairs.sigma**2 * weight * p * q_
        total = 2 * first.sum()
        factor = np.log2(1 + total) / total if pairs.log_norm and total > 0 else 1.0
        w = weights[a:b] if len(weights) else 1.0
        grad[a:b] = factor * w * (first.sum(axis=0) - first.sum(axis=1))
        hess[a:b] = factor * w * (second.sum(axis=0) + second.sum(axis=1))
        cost[q] = factor * (weight * np.logaddexp(0, -x)).sum()


def discounted_sums(gain, discount, order, ptr, out, parts):
    """Write the sum over each query of gain[row] * discount[rank]; ranks past the discount's end count nothing."""
    for q, (a, b) in enumerate(pairwise(ptr)):
        ranked = gain[a:b][order[a:b]][: len(discount)]
        out[q] = (ranked * discount[: len(ranked)]).sum()
