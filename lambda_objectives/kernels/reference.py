"""The kernels as their definitions say, in plain Python and NumPy on n x n matrices: slow, obvious, the oracle."""

from itertools import groupby, pairwise

import numpy as np

from lambda_objectives.kernels import (
    ADDITIVE,
    CASCADE,
    CONCORDANCE,
    FIRST,
    GIVEN,
    LOSS1,
    LOSS2,
    LOSS2_PLUS,
    PRECISION,
)


def split(ptr, threads):
    """One part: everything."""
    return np.array([0, len(ptr) - 1])


def rank(scores, ptr, order, rank, parts):
    """Write each query's rows, best score first, into order, and each row's rank into rank."""
    for a, b in pairwise(ptr):
        order[a:b] = np.argsort(-scores[a:b], kind="stable")
        rank[a:b][order[a:b]] = np.arange(b - a)


def weighted_sum(weights, parts, total, threads=1):
    """Write the sum over terms of weight x part into total, (2, n); weights (2, terms), parts (terms, 2, n)."""
    total[:] = sum(weight[:, None] * part for weight, part in zip(weights.T, parts, strict=True))


def value(kind, gains, discount):
    """A metric of gains in the order of the ranks."""
    if kind == ADDITIVE:
        return sum(g * d for g, d in zip(gains, discount, strict=True))
    if kind == FIRST:
        return next((d for g, d in zip(gains, discount, strict=True) if g > 0), 0.0)
    total, going = 0.0, 1.0
    for r, (g, d) in enumerate(zip(gains, discount, strict=True)):
        if kind == CASCADE:
            total += going * g * d
            going *= 1 - g
        elif kind == PRECISION:
            total += d * sum(min(g, above) for above in gains[: r + 1])
        elif kind == CONCORDANCE:
            total += sum(np.sign(above - g) for above in gains[:r])
    return total


def metric_values(kind, gain, discount, scale, ties, scores, order, grade, ptr, out, parts):
    """Write the metric of each query; ranks past the discount's end have the discount 0."""
    for q, (a, b) in enumerate(pairwise(ptr)):
        ranked = order[a:b]
        d = _discounts(discount, b - a)
        if ties:
            d = _averaged(d, scores[a:b][ranked])
        out[q] = value(kind, gain[a:b][ranked].tolist(), d.tolist()) * (scale[q] if len(scale) else 1.0)


def pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row, and the cost of each query (Burges 2010, equations 3-5).

    For each pair of a better row h and a worse row l, with x = sigma (s_h - s_l) and a weight w::

        cost    w log(1 + e^-x)                    hinge: w max(0, 1 - x)
        grad    -sigma w / (1 + e^x) for h, the opposite for l    -sigma w if x < 1
        hess    sigma^2 w e^x / (1 + e^x)^2 for both              sigma^2 w if x < 1
    """
    for q, (a, b) in enumerate(pairwise(ptr)):
        rows = pairs.by_label[a:b]
        level, silent, label = np.empty(b - a), np.zeros(b - a, bool), np.zeros(b - a)
        level[rows] = pairs.level[a:b]
        if len(pairs.silent):
            silent[rows] = pairs.silent[a:b]
        s, r = scores[a:b], rank[a:b]
        formed = (level[:, None] > level) & ~silent[:, None] & ~silent  # [h, l]
        times = np.ones((b - a, b - a))
        if pairs.sample:
            times = _times_drawn(pairs, rows, level, a)
        weight = _weights(pairs, q, rows, level, order[a:b], r, s) * (pairs.scale[q] if len(pairs.scale) else 1.0)
        if len(pairs.risk.now):
            weight = _risk_changes(pairs.risk, q, weight, r)
        weight = np.where(formed & (np.minimum(r[:, None], r) < pairs.truncation), times * weight, 0.0)
        if len(pairs.label):
            label[rows] = pairs.label[a:b]
            weight = weight * np.maximum(label[:, None] - label, 0.0)
        if len(pairs.better):
            weight = weight * pairs.better[a:b][:, None] * pairs.worse[a:b]
        with np.errstate(over="ignore"):  # an infinite gap or e^x = inf is fine: the limits are right
            gap = np.clip(s[:, None] - s, -1e290, 1e290)
            if pairs.gap_norm and b > a and s.max() != s.min():
                weight = weight / (0.01 + np.abs(gap))
            x = pairs.sigma * gap
            if pairs.hinge:
                p, curve, loss = (x < 1) * 1.0, (x < 1) * 1.0, np.maximum(0.0, 1 - x)
            else:
                p = 1 / (1 + np.exp(x))
                curve = p / (1 + np.exp(-x))
                loss = np.logaddexp(0, -x)
        first = pairs.sigma * weight * p
        second = pairs.sigma**2 * weight * curve
        total = 2 * first.sum()
        factor = np.log2(1 + total) / total if pairs.log_norm and total > 0 else 1.0
        w = weights[a:b] if len(weights) else 1.0
        grad[a:b] = factor * w * (first.sum(axis=0) - first.sum(axis=1))
        hess[a:b] = factor * w * (second.sum(axis=0) + second.sum(axis=1))
        cost[q] = factor * (weight * loss).sum()
        if len(pairs.costs):
            pairs.costs[0, a:b], pairs.costs[1, a:b] = (weight * loss).sum(axis=1), (weight * loss).sum(axis=0)


def _weights(pairs, q, rows, level, order, rank, scores):
    """What each pair weighs by its kind: for a metric, the metric of the swapped list less that of the list."""
    n = len(level)
    d = _discounts(pairs.discount.astype(float), n)
    gap = np.abs(rank[:, None] - rank)
    difference = np.abs(level[:, None] - level)
    if pairs.kind == GIVEN:
        a = pairs.given_ptr[q]
        out = np.empty((n, n))
        out[np.ix_(rows, rows)] = pairs.given[a : a + n * n].reshape(n, n)
        return out
    if pairs.kind == LOSS1:
        return (level * d[rank])[:, None] * np.ones(n)
    if pairs.kind in (LOSS2, LOSS2_PLUS):
        delta = np.append(0.0, d[:-1] - d[1:])[gap]
        plus = np.abs(d[rank][:, None] - d[rank])
        return difference * (plus + pairs.mu * delta if pairs.kind == LOSS2_PLUS else delta)
    if pairs.kind == ADDITIVE and pairs.ties:
        return difference * _mean_distances(d, scores[order])[np.ix_(rank, rank)]
    if pairs.kind in (ADDITIVE, FIRST, CASCADE, PRECISION, CONCORDANCE):
        gains = level[order].tolist()
        now = value(pairs.kind, gains, d)
        out = np.zeros((n, n))
        for i in range(n):
            for j in range(i):
                swapped = list(gains)
                swapped[i], swapped[j] = gains[j], gains[i]
                change = abs(value(pairs.kind, swapped, d) - now)
                out[order[i], order[j]] = out[order[j], order[i]] = change
        return out
    return np.ones((n, n))


def _risk_changes(risk, q, weight, rank):
    """What a swap changes in the risk-sensitive measure; it worsens the metric if the better row is above."""
    above = rank[:, None] < rank
    share = risk.share[q]
    if not share > 0:
        return np.zeros_like(weight)

    def utility(v):
        return (v - risk.baseline[q]) * np.where(v < risk.baseline[q], 1 + risk.alpha, 1.0)

    now, then = utility(risk.now[q]), utility(np.where(above, risk.now[q] - weight, risk.now[q] + weight))
    if not risk.studentised:
        return np.abs(then - now)
    u = np.where(risk.now < risk.baseline, 1 + risk.alpha, 1.0) * (risk.now - risk.baseline)
    mean, square = (risk.share * u).sum(), (risk.share * u * u).sum()
    mean2, square2 = mean + share * (then - now), square + share * (then**2 - now**2)
    return np.abs(studentised(mean2, square2, len(u)) - studentised(mean, square, len(u))) / share


def studentised(mean, square, n):
    """Mean over its standard error, of n values with a mean and a mean square."""
    return mean * np.sqrt((n - 1) / np.maximum(square - mean * mean, 1e-6)) if n > 1 else 0.0 * mean


def _times_drawn(pairs, rows, level, a):
    """How often a pair counts: as the better row each row draws `sample` of its worse rows, if there are more."""
    out = np.ones((len(level), len(level)))
    for h in rows:
        worse = int((level < level[h]).sum())  # the first ones of rows
        if worse > pairs.sample:
            out[h] = 0.0
            for draw in range(pairs.sample):
                out[h, rows[_below(pairs.seed, pairs.round, draw, int(a + h), worse)]] += worse / pairs.sample
    return out


def _below(seed, round_, draw, row, n):
    """What kernels.random draws, in Python's own integers."""

    def mixed(x):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    golden = 0x9E3779B97F4A7C15
    x = mixed((seed + golden) % 2**64)
    x = mixed(x ^ round_ * golden % 2**64)
    x = mixed(x ^ (draw * golden + 0xBF58476D1CE4E5B9) % 2**64)
    return (mixed((x + row * golden) % 2**64) >> 32) * n >> 32


def _discounts(discount, n):
    """The first n discounts, 0 past the table's end."""
    return np.append(discount[:n], np.zeros(max(0, n - len(discount))))


def _blocks(scores):
    """(first, one past the last) rank of each run of equal scores."""
    first = 0
    for _, run in groupby(scores.tolist()):
        last = first + len(list(run))
        yield first, last
        first = last


def _averaged(d, scores):
    """Discounts averaged over the ranks of equal scores."""
    out = d.copy()
    for first, last in _blocks(scores):
        out[first:last] = d[first:last].mean()
    return out


def _mean_distances(d, scores):
    """|d_i - d_j| by rank, averaged over all orders of rows with equal scores."""
    out = np.zeros((len(d), len(d)))
    for a, b in _blocks(scores):
        for c, e in _blocks(scores):
            distances = [abs(d[i] - d[j]) for i in range(a, b) for j in range(c, e) if i != j]
            out[a:b, c:e] = np.mean(distances) if distances else 0.0
    return out
