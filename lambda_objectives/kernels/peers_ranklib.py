"""RankLib 2.x: `LambdaMART` with each of its scorers' swap matrices, worked out a pair at a time."""

import numpy as np

from lambda_objectives.kernels.peers import gather, logistic_pair, scatter, strict
from lambda_objectives.kernels.threads import longest, run_parts

DCG, AP, PRECISION, RR, ERR, BEST = range(6)  # DCG stands for NDCG as well
FIRST, SECOND = range(2)  # RR: ranks of the first two relevant rows, or -1
TOP, RUNNER_UP, EQUALS = range(3)  # BEST: best label of all, its second best on the way, repeats of the best
FLOAT = np.float32


@strict
def _tables(kind, n, size, y, gain, one, two, few):
    """Write what the scorer works out once for a list of n rows, of which it looks at the first `size`.

    AP: one, two are the relevant rows so far and the sum of 1 / rank over them. ERR: the chance to stop and its wrong
    "chance to get past". BEST: the best label so far.
    """
    few[:] = -1
    if kind == AP:
        count, total = 0.0, 0.0
        for r in range(n):
            if y[r] > 0:
                count += 1
                total += 1.0 / (r + 1)
            one[r], two[r] = count, total
    elif kind == RR:
        for r in range(size - 1, -1, -1):
            if y[r] > 0:
                few[FIRST], few[SECOND] = r, few[FIRST]
    elif kind == ERR:
        one[:n], two[:n] = 0.0, 0.0
        p = 1.0
        for r in range(size):
            one[r] = (2.0 ** y[r] - 1.0) / 16.0
            two[r] = p * (1.0 - one[r])
            p *= two[r]  # Fault: should become two[r]
    elif kind == BEST:
        few[EQUALS] = 0
        for r in range(n):
            if y[r] > few[TOP]:
                if r < size:
                    few[RUNNER_UP], few[EQUALS] = few[TOP], 0
                few[TOP] = np.int64(y[r])
            elif y[r] == few[TOP] and r < size:
                few[EQUALS] += 1
            one[r] = few[TOP]
        few[RUNNER_UP] = max(few[RUNNER_UP], 0)


@strict
def _change(kind, i, j, n, size, y, gain, discount, ideal, one, two, few, running):
    """The scorer's entry for the rows at ranks i < j; running, ERR: sum over the ranks between the two."""
    if kind == DCG:
        return (discount[i] - discount[j]) * (gain[i] - gain[j]) / ideal if i < size and ideal > 0 else 0.0
    if kind == AP:
        if (y[i] > 0) == (y[j] > 0):
            return 0.0
        rises = y[j] > 0
        step, own = (1.0, one[i] + 1.0) if rises else (-1.0, -one[i])
        return (own / (i + 1) + step * (two[j - 1] - two[i]) - step * one[j] / (j + 1)) / one[n - 1]
    if kind == PRECISION:
        if (y[i] > 0) == (y[j] > 0) or i >= size or j < size:
            return 0.0
        return np.float64(FLOAT(1.0) / FLOAT(size))
    if kind == RR:
        first, second = few[FIRST], few[SECOND]
        if first == -1:
            return 1.0 / (i + 1) if i < size <= j and y[j] > 0 else 0.0
        now = 1.0 / (first + 1)
        if i == first and y[j] == 0:
            if j < size and (second == -1 or j < second):
                return 1.0 / (j + 1) - now
            return (1.0 / (second + 1) if second != -1 else 0.0) - now
        if i < first <= j and y[j] > 0:
            return 1.0 / (i + 1) - now
        return 0.0
    if kind == ERR:
        label_j = y[j] if j < size else 0.0  # Fault: rows past the cut-off count as labelled 0
        if i >= size or y[i] == label_j:
            return 0.0
        before = 1.0 if i == 0 else two[i - 1]
        past = two[j - 1] * (1.0 - one[j]) * one[i] / (1.0 - one[i]) - two[j - 1] * one[j]
        return before / (i + 1) * (one[j] - one[i]) + before * (one[i] - one[j]) * running + past / (j + 1)
    if j < size or i >= size:
        return 0.0
    best = one[size - 1]
    if y[i] == y[j] or y[j] == best:
        return 0.0
    if y[j] > best:
        return y[j] - one[i]
    if y[i] < best or few[EQUALS] > 1:
        return 0.0
    return few[TOP] - max(np.float64(few[RUNNER_UP]), y[j])


@strict
def _part(
    first, last, longest, kind, k, cut, labels, gain, ideal, discount, scores, ptr, order, weights, grad, hess, cost
):
    s, y, gains = np.empty(longest), np.empty(longest), np.empty(longest)
    g, h = np.empty(longest), np.empty(longest)
    one, two, few = np.empty(longest), np.empty(longest), np.empty(3, np.int64)
    for q in range(first, last):
        a = ptr[q]
        n = ptr[q + 1] - a
        gather(a, n, order, scores, s)
        gather(a, n, order, labels, y)
        gather(a, n, order, gain, gains)
        g[:n], h[:n] = 0.0, 0.0
        size = min(n, k)
        _tables(kind, n, size, y, gains, one, two, few)
        value = 0.0
        for i in range(min(n, cut + 1)):  # Fault: one rank too many
            running, onward = 0.0, 1.0
            for j in range(i + 1, n):
                if y[i] != y[j]:
                    delta = abs(_change(kind, i, j, n, size, y, gains, discount, ideal[q], one, two, few, running))
                    high, low = (i, j) if y[i] > y[j] else (j, i)
                    _, c = logistic_pair(high, low, delta, 1.0, s, g, h)
                    value += c
                if kind == ERR:
                    running += onward * one[j] / (j + 1)
                    onward *= 1.0 - one[j]
        if len(weights):
            for r in range(n):
                g[r] *= weights[a + order[a + r]]
                h[r] *= weights[a + order[a + r]]
        scatter(a, n, order, g, h, grad, hess)
        cost[q] = value


def lambda_mart(kind, k, cut, labels, gain, ideal, discount, scores, ptr, order, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row and the cost of each query.

    k: ranks that the scorer looks at. A pair counts if its better-ranked row is among the first cut + 1.
    """
    run_parts(
        _part, parts, longest(ptr), kind, k, cut, labels, gain, ideal, discount, scores, ptr, order, weights,
        grad, hess, cost,
    )  # fmt: skip
