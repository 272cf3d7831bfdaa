"""Definitions as loops over lists: slow, independent of the package, what its results are compared with."""

import itertools
import math
import statistics


def dcg(labels, k=None, gain=lambda y: 2.0**y - 1.0, discount=lambda r: 1.0 / math.log2(r + 2)):
    """Discounted cumulative gain of labels in rank order."""
    top = labels[: len(labels) if k is None else k]
    return sum(gain(y) * discount(r) for r, y in enumerate(top))


def ndcg(labels, k=None, empty=1.0, **options):
    """The same over its largest value."""
    best = dcg(sorted(labels, reverse=True), k, **options)
    return dcg(labels, k, **options) / best if best > 0 else empty


def average_precision(labels, k=None, threshold=0.0, empty=1.0):
    """Precision at each relevant row of the first k, over as many of them as there could be."""
    good = [y > threshold for y in labels]
    possible = min(sum(good), len(labels) if k is None else k)
    return sum(sum(good[: r + 1]) / (r + 1) for r in range(len(good[:k])) if good[r]) / possible if possible else empty


def graded_average_precision(labels, k=None, gain=lambda y: 2.0**y - 1.0, empty=1.0):
    """What average precision makes of each gain as a threshold, weighted by the steps between them."""
    gains = [gain(y) for y in labels]
    steps, value, best = sorted({0.0, *gains}), 0.0, 0.0
    for below, here in itertools.pairwise(steps):
        possible = min(sum(g >= here for g in gains), len(gains) if k is None else k)
        value += (here - below) * possible * average_precision(gains, k, below)
        best += (here - below) * possible
    return value / best if best else empty


def reciprocal_rank(labels, k=None, threshold=0.0, empty=0.0):
    """One over the place of the first relevant row, 0 if that is not among the first k."""
    if not any(y > threshold for y in labels):
        return empty
    return next((1.0 / place for place, y in enumerate(labels[:k], 1) if y > threshold), 0.0)


def err(labels, k=None, max_grade=4):
    """One over the place at which a user stops, on average."""
    stops = [(2.0**y - 1.0) / 2.0**max_grade for y in labels]
    return sum(math.prod(1.0 - p for p in stops[:r]) * stops[r] / (r + 1) for r in range(len(stops[:k])))


def precision(labels, k, threshold=0.0):
    """Share of relevant rows among k places."""
    return len([y for y in labels[:k] if y > threshold]) / k


def recall(labels, k, threshold=0.0, empty=1.0):
    """Share of the relevant rows that are among the first k."""
    good = [r for r, y in enumerate(labels) if y > threshold]
    return len([r for r in good if r < k]) / len(good) if good else empty


def hit_rate(labels, k, threshold=0.0, empty=0.0):
    """Whether a relevant row is among the first k."""
    if max(labels) <= threshold:
        return empty
    return float(max(labels[:k]) > threshold)


def rbp(labels, k=None, persistence=0.8, threshold=0.0, max_grade=None):
    """Gain of the row at which a user gives up who goes on with the probability `persistence`."""
    value, here = 0.0, 1.0
    for y in labels[:k]:
        value += here * (1.0 - persistence) * (float(y > threshold) if max_grade is None else y / max_grade)
        here *= persistence
    return value


def auc(labels, k=None, threshold=0.0, empty=1.0):
    """Share of the pairs of a relevant and another row of which the relevant one is first."""
    good = [y > threshold for y in labels]
    pairs = [a for a, b in itertools.combinations(good, 2) if a != b]
    return sum(pairs) / len(pairs) if pairs else empty


def kendall(labels, k=None, tau="a", empty=0.0):
    """Pairs in the right order less pairs in the wrong order, over the number of pairs."""
    signs = [int(a > b) - int(a < b) for a, b in itertools.combinations(labels, 2)]
    different = sum(map(abs, signs))
    if not different:
        return empty
    return sum(signs) / (len(signs) if tau == "a" else math.sqrt(len(signs)) * math.sqrt(different))


def spearman(labels, k=None, empty=0.0):
    """Correlation of place and place by label, equal labels sharing theirs."""
    if min(labels) == max(labels):
        return empty
    wanted = [sum(z > y for z in labels) + sum(z == y for z in labels) / 2 for y in labels]
    return statistics.correlation(wanted, range(len(labels)))


def mean_over_ties(metric, scores, labels, k=None, **options):
    """Mean of a metric of the labels in rank order over all orders of rows with equal scores."""
    runs = [[y for s, y in zip(scores, labels, strict=True) if s == score] for score in sorted(set(scores))[::-1]]
    orders = itertools.product(*map(itertools.permutations, runs))
    return statistics.fmean(metric(list(itertools.chain(*order)), k, **options) for order in orders)


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


def swap_changes(value, order):
    """By how much a value of an order changes if two of its rows are swapped: {(row, row): change}, both ways round."""
    now, changes = value(order), {}
    for i, j in itertools.combinations(range(len(order)), 2):
        swapped = list(order)
        swapped[i], swapped[j] = order[j], order[i]
        changes[order[i], order[j]] = changes[order[j], order[i]] = abs(value(swapped) - now)
    return changes


def orders_of(scores, sizes):
    """The rows of each query by descending score, numbered through."""
    return [[q.start + i for i in ranked(list(scores[q]))] for q in queries_of(sizes)]


def pair_weights(metric, orders, labels):
    """What each pair (better row, worse row) weighs at the orders of the queries; NaN is neither better nor worse."""
    weights = {}
    for order in orders:
        changes = swap_changes(lambda rows: metric([labels[i] for i in rows]), order)
        weights |= {pair: change for pair, change in changes.items() if labels[pair[0]] > labels[pair[1]]}
    return weights


def pulls(weights, scores, sigma=1.0):
    """Gradient and Hessian of all rows and the sum of the costs, from {(better row, worse row): weight}."""
    grad, hess, cost = [0.0] * len(scores), [0.0] * len(scores), 0.0
    for (h, w), weight in weights.items():
        x = sigma * (scores[h] - scores[w])
        grad[h] -= sigma * weight * sigmoid(-x)
        grad[w] += sigma * weight * sigmoid(-x)
        for row in (h, w):
            hess[row] += sigma**2 * weight * sigmoid(-x) * sigmoid(x)
        cost += weight * softplus(-x)
    return grad, hess, cost


def standardised(control):
    """Less its mean, over its population standard deviation."""
    return (control - control.mean()) / control.std()


def dcov2(x, y):
    """Unbiased squared distance covariance and its slope in x, by n x n matrices; equal x on neither side."""
    n = len(x)
    a, b, sign = abs(x[:, None] - x), abs(y[:, None] - y), (x[:, None] > x) * 1.0 - (x[:, None] < x)
    rows = b.sum(1)
    value = (a * b).sum() - 2 * (a.sum(1) @ rows) / (n - 2) + a.sum() * b.sum() / ((n - 1) * (n - 2))
    slope = 2 * (sign * b).sum(1) - 2 * (sign * (rows[:, None] + rows)).sum(1) / (n - 2)
    slope += 2 * sign.sum(1) * b.sum() / ((n - 1) * (n - 2))
    return value / (n * (n - 3)), slope / (n * (n - 3))
