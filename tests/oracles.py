"""Definitions as loops over lists: slow, independent of the package, what its results are compared with."""

import itertools
import math


def dcg(labels, k=None, gain=lambda y: 2.0**y - 1.0, discount=lambda r: 1.0 / math.log2(r + 2)):
    """Discounted cumulative gain of labels in rank order."""
    top = labels[: len(labels) if k is None else k]
    return sum(gain(y) * discount(r) for r, y in enumerate(top))


def ndcg(labels, k=None, empty=1.0, **options):
    """The same over its largest value."""
    best = dcg(sorted(labels, reverse=True), k, **options)
    return dcg(labels, k, **options) / best if best > 0 else empty


def ranked(scores):
    """Rows by descending score, equal scores in the order of the rows."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def queries_of(sizes):
    """Slices of the rows of each query."""
    ends = list(itertools.accumulate(sizes))
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def mean_metric(metric, scores, labels, sizes, k=None, weights=None, **options):
    """Weighted mean over queries of a metric of the labels in rank order; a query weighs the mean of its rows."""
    total = norm = 0.0
    for q in queries_of(sizes):
        s, y = scores[q], labels[q]
        w = 1.0 if weights is None else sum(weights[q]) / len(weights[q])
        total += w * metric([y[i] for i in ranked(s)], k, **options)
        norm += w
    return total / norm


def softplus(x):
    """log(1 + e^x) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def sigmoid(x):
    """1 / (1 + e^-x) without overflow."""
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def lambdas(metric, scores, labels, *, sigma=1.0, truncation=None, gap_norm=False, log_norm=False):
    """Gradient, Hessian, cost of one query: every pair swapped and the metric evaluated anew; None weighs pairs 1."""
    n, order = len(scores), ranked(scores)
    place = {row: r for r, row in enumerate(order)}
    now = metric([labels[i] for i in order]) if metric else 0.0
    grad, hess, cost, total = [0.0] * n, [0.0] * n, 0.0, 0.0
    for h, w in itertools.permutations(range(n), 2):
        if not labels[h] > labels[w] or (truncation is not None and min(place[h], place[w]) >= truncation):
            continue
        weight = 1.0
        if metric:
            swapped = list(order)
            swapped[place[h]], swapped[place[w]] = w, h
            weight = abs(metric([labels[i] for i in swapped]) - now)
        gap = scores[h] - scores[w]
        if gap_norm and max(scores) != min(scores):
            weight /= 0.01 + abs(gap)
        p = sigmoid(-sigma * gap)
        grad[h] -= sigma * p * weight
        grad[w] += sigma * p * weight
        for row in (h, w):
            hess[row] += sigma**2 * p * sigmoid(sigma * gap) * weight
        cost += weight * softplus(-sigma * gap)
        total += 2 * sigma * p * weight
    if log_norm and total > 0:
        factor = math.log2(1 + total) / total
        grad, hess, cost = [factor * g for g in grad], [factor * h for h in hess], factor * cost
    return grad, hess, cost


def all_lambdas(metric, scores, labels, sizes, **options):
    """Gradients and Hessians of all rows, and the mean cost of the queries."""
    parts = [lambdas(metric, list(scores[q]), list(labels[q]), **options) for q in queries_of(sizes)]
    grad, hess = ([value for part in parts for value in part[i]] for i in (0, 1))
    return grad, hess, sum(part[2] for part in parts) / len(parts)
