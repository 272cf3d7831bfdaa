"""Plain loops on arrays and integers; they know nothing of boosters, metrics or terms.

`reference` is slow and obvious, `cpu` is fast. Both offer the same functions, so that every test can compare them:

``split(ptr, threads)``
    Cuts the queries into parts of about equal work.
``rank(scores, ptr, order, rank, parts)``
    Sorts each query by descending score; equal scores keep the order of their rows.
``pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts)``
    Lambda gradients, Hessians and the cost of each query.
``discounted_sums(gain, discount, order, ptr, out, parts)``
    Sum over each query of gain times the discount of the rank.
"""

from typing import NamedTuple

import numpy as np

UNIT = 0  # every pair weighs 1
ADDITIVE = 1  # |difference of gains| * |difference of discounts|: what a swap changes in a sum of gain * discount


class Pairs(NamedTuple):
    """Which pairs of rows count in a query and how much: all that a pair loop needs besides the scores.

    `by_label` and `level` are in the order of ascending label within each query; a pair is formed of two rows of the
    same query with different levels, the row with the higher level being the one to rank first.
    """

    kind: int  # UNIT or ADDITIVE
    by_label: np.ndarray  # (n,) int32, row within its query
    level: np.ndarray  # (n,) float32 or float64, ascending within each query; ADDITIVE: gain / ideal value
    discount: np.ndarray  # (longest query,), same type as level, by rank from 0
    truncation: int  # a pair counts if its better-ranked row is among the first `truncation`
    sigma: float
    gap_norm: bool  # divide a pair's weight by 0.01 + |difference of the scores|
    log_norm: bool  # multiply a query by log2(1 + S) / S, S = twice the sum of its pairs' gradients
