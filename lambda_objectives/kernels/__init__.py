"""Plain loops on arrays and integers; they know nothing of boosters, metrics or terms.

`reference` is slow and obvious, `cpu` is fast. Both offer the same functions, so that every test can compare them:

``split(ptr, threads)``
    Cuts the queries into parts of about equal work.
``rank(scores, ptr, order, rank, parts)``
    Sorts each query by descending score; equal scores keep the order of their rows.
``pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts)``
    Lambda gradients, Hessians and the cost of each query.
``metric_values(kind, gain, discount, scale, ties, scores, order, grade, ptr, out, parts)``
    The metric of each query; `grade` numbers the different gains of a query, for PRECISION and CONCORDANCE.
"""

from typing import NamedTuple

import numpy as np

# How much a pair weighs: what swapping its two rows changes in a metric of that kind. `gain` belongs to a row,
# `discount` to a rank and never rises with it.
UNIT = 0  # 1 for every pair
ADDITIVE = 1  # metric: sum of gain * discount
FIRST = 2  # metric: discount of the first row with a gain
CASCADE = 3  # metric: sum of discount * gain * product of (1 - gain) of the rows before (ERR)
PRECISION = 4  # metric: sum of discount * sum over the row itself and those before of min(gain, gain of the row) (MAP)
CONCORDANCE = 5  # metric: pairs in the right order less pairs in the wrong order, ordered by gain (Kendall)
GIVEN = 6  # a matrix for each query
LOSS1 = 7  # gain * discount of the better row (NDCG-Loss1)
LOSS2 = 8  # |difference of gains| * (discount[r - 1] - discount[r]), r the difference of the ranks (NDCG-Loss2)
LOSS2_PLUS = 9  # |difference of gains| * (|difference of discounts| + mu * (discount[r - 1] - discount[r]))

NONE = np.empty(0)
NEVER = np.empty(0, np.bool_)


class Risk(NamedTuple):
    """The value of a query counts by a function of how far it is above or below a baseline's."""

    now: np.ndarray  # (Q,) value of each query, or (0,) for no such function
    baseline: np.ndarray  # (Q,)
    share: np.ndarray  # (Q,) weight of each query, adding up to 1
    alpha: float  # losses count 1 + alpha times
    studentised: bool  # the mean over its standard error rather than the mean


class Pairs(NamedTuple):
    """Which pairs of rows count in a query and how much: all that a pair loop needs besides the scores.

    `by_label` and `level` are in the order of ascending label within each query; a pair is formed of two rows of the
    same query with different levels, the row with the higher level being the one to rank first. Arrays of length 0
    stand for "not wanted".
    """

    kind: int
    by_label: np.ndarray  # (n,) int32, row within its query
    level: np.ndarray  # (n,) float32 or float64, ascending within each query: the metric's gain
    discount: np.ndarray  # (longest query,), same type as level, by rank from 0
    truncation: int  # a pair counts if its better-ranked row is among the first `truncation`
    sigma: float
    gap_norm: bool  # divide a pair's weight by 0.01 + |difference of the scores|
    log_norm: bool  # multiply a query by log2(1 + S) / S, S = twice the sum of its pairs' gradients
    drawn: bool = False  # the ranks come from noisy scores, not from the scores of the pairs
    ties: bool = False  # ADDITIVE: the mean over all orders of rows with equal scores
    hinge: bool = False  # the loss of a pair is max(0, 1 - x) rather than log(1 + e^-x)
    mu: float = 0.0  # of LOSS2_PLUS
    sample: int = 0  # pairs drawn for each row as the better one; 0 for all of them
    seed: int = 0
    round: int = 0  # with the seed decides what is drawn
    scale: np.ndarray = NONE  # (Q,) multiplies the weights
    silent: np.ndarray = NEVER  # (n,) in the order of by_label: rows that have a rank but make no pairs
    label: np.ndarray = NONE  # (n,) in the order of by_label: a pair's weight is multiplied by the difference
    better: np.ndarray = NONE  # (n,) by row: multiplies the pairs in which the row is the better one
    worse: np.ndarray = NONE  # (n,) by row: multiplies the pairs in which it is the worse one
    risk: Risk = Risk(NONE, NONE, NONE, 0.0, False)
    given: np.ndarray = NONE  # GIVEN: for query q from given_ptr[q] an n x n matrix [better, worse] in by_label's order
    given_ptr: np.ndarray = np.zeros(1, np.int64)
    costs: np.ndarray = NONE  # (2, n) by row, written: cost of the pairs in which the row is the better, the worse one
