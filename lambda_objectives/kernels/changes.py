"""What swapping two rows changes in a metric: a formula of O(1) from numbers that belong to a row at its rank.

For a better row h and a worse row l, at ranks r with discounts d; c stands for "constant within the query":

ADDITIVE      (gain_h - gain_l) |d_h - d_l|
FIRST         a_l, and if h is the first row with a gain also max(c1 - max(d_l, c2), 0), a_r = max(d_r - c1, 0);
              c1 and c2 are the discounts of the first and of the second such row
CASCADE       (gain_h - gain_l) |a_h - a_l| / (1 - gain of the upper one),
              a_r = sum of the terms above r + discount * product of (1 - gain) above r
PRECISION     |T(h, l) - T(l, l) + T(l, h) - T(h, h) + (gain_h - gain_l) max(d_l - d_h, 0)|,
              T(g, x) = discount of x * N - A, N and A the sums of min(gain, gain of g), and of that times the discount,
              of the rows above x
CONCORDANCE   |T(h, l) - T(l, l) + T(l, h) - T(h, h)|, T(g, x) = twice the sum over the rows above x of
              sign(gain - gain of g)

T(g, x) depends on g through its gain only: rows of equal gain are a class, and T is a table of classes and rows.
"""

import numpy as np

from lambda_objectives.kernels import (
    ADDITIVE,
    CASCADE,
    CONCORDANCE,
    FIRST,
    LOSS1,
    LOSS2,
    LOSS2_PLUS,
    PRECISION,
)
from lambda_objectives.kernels.compiled import compiled

# Each takes (gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero) and is 0 unless gain_l < gain_h. t comes from a
# table, T(h, l) - T(l, l) + T(l, h) - T(h, h) or a delta. zero has the type of the rest: a plain 0 would turn single
# precision into double.


@compiled
def additive_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """ADDITIVE; a is the first of the ranks that rows of equal score share, b the mean distance within them."""
    return max(gain_h - gain_l, zero) * (abs(d_h - d_l) + (b_h if a_h == a_l else zero))


@compiled
def first_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """FIRST; b is c1 for the first row with a gain and 0 for the others, d is no smaller than c2."""
    return max(gain_h - gain_l, zero) * (a_l + max(b_h - d_l, zero))


@compiled
def cascade_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """CASCADE; b is 1 / (1 - gain)."""
    return max(gain_h - gain_l, zero) * abs(a_h - a_l) * (b_h if a_h > a_l else b_l)


@compiled
def table_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """PRECISION, and CONCORDANCE with discounts of 0."""
    gain = max(gain_h - gain_l, zero)
    return abs(t + gain * max(d_l - d_h, zero)) if gain > zero else zero


@compiled
def unit_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """UNIT."""
    return zero + np.float32(1) if gain_h > gain_l else zero


@compiled
def loss1_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """LOSS1."""
    return gain_h * d_h if gain_h > gain_l else zero


@compiled
def loss2_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """LOSS2."""
    return max(gain_h - gain_l, zero) * t


@compiled
def loss2_plus_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """LOSS2_PLUS."""
    return max(gain_h - gain_l, zero) * (abs(d_h - d_l) + mu * t)


@compiled
def change(kind, gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero):
    """What a pair weighs by its kind."""
    if kind == ADDITIVE:
        return additive_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero)
    if kind == FIRST:
        return first_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero)
    if kind == CASCADE:
        return cascade_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero)
    if kind in (PRECISION, CONCORDANCE):
        return table_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero)
    if kind == LOSS1:
        return loss1_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero)
    if kind == LOSS2:
        return loss2_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero)
    if kind == LOSS2_PLUS:
        return loss2_plus_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero)
    return unit_change(gain_h, gain_l, d_h, d_l, a_h, a_l, b_h, b_l, t, mu, zero)


@compiled
def constants(kind, n, level, by_rank, d, a, b, scores_by_rank, ties):
    """Write each row's numbers a and b by ascending label; by_rank[r] is the row at rank r, d[r] the discount there.

    With ties d becomes the mean discount, for FIRST max(d, c2).
    """
    if kind == ADDITIVE:
        r = 0
        while r < n:
            last = r + 1
            while ties and last < n and scores_by_rank[last] == scores_by_rank[r]:
                last += 1
            if last == r + 1:
                a[by_rank[r]], b[by_rank[r]] = r, 0.0
                r = last
                continue
            total, apart, before = 0.0, 0.0, 0.0
            for k in range(r, last):
                apart += before - (k - r) * d[k]  # discounts fall: the sum of d_j - d_k over j before k
                before += d[k]
            total = before
            m = last - r
            for k in range(r, last):
                a[by_rank[k]] = r
                b[by_rank[k]] = 2 * apart / (m * (m - 1))
                d[k] = total / m
            r = last
    elif kind == FIRST:
        a[:n], b[:n] = 0.0, 0.0
        first = 0
        while first < n and not level[by_rank[first]] > 0:
            first += 1
        second = first + 1
        while second < n and not level[by_rank[second]] > 0:
            second += 1
        c1, c2 = d[first] if first < n else 0.0, d[second] if second < n else 0.0
        if first < n:
            b[by_rank[first]] = c1
        for r in range(min(first, n)):
            a[by_rank[r]] = max(d[r] - c1, 0.0)
        for r in range(n):
            d[r] = max(d[r], c2)
    elif kind == CASCADE:
        above, going, row = 0.0, 1.0, 0
        for r in range(n):
            row = by_rank[r]
            gain = level[row]
            a[row] = above + going * d[r]
            b[row] = 1.0 / (1.0 - gain) if gain < 1 else 0.0
            above += going * gain * d[r]
            going *= 1.0 - gain
        for i in range(n):
            a[i] -= above  # small numbers keep their digits in single precision
    elif kind in (LOSS2, LOSS2_PLUS):
        for r in range(n):
            a[by_rank[r]] = r


@compiled
def run_end(level, i, n):
    """One past the last of the rows with the level of row i, of n rows by ascending level: by doubling steps."""
    step = 1
    while i + step < n and level[i + step] == level[i]:
        step *= 2
    low, high = i + step // 2, min(i + step, n)  # low has the level, high has not
    while high - low > 1:
        middle = (low + high) // 2
        if level[middle] == level[i]:
            low = middle
        else:
            high = middle
    return high


@compiled
def classes(n, level, grade, worth):
    """Write the class of each row by ascending label, and the gain of each class over that of the first one."""
    count, i = 0, 0
    while i < n:
        last = run_end(level, i, n)
        worth[count] = level[i] - level[0]
        grade[i:last] = count
        count += 1
        i = last
    return count


@compiled
def table_row(kind, g, n, by_rank, d, grade, worth, out):
    """Write T(g, x) for one class g and all rows x."""
    total, weighted = 0.0, 0.0
    for r in range(n):
        x = by_rank[r]
        if kind == PRECISION:
            out[x] = d[r] * total - weighted
            least = worth[min(g, grade[x])]
            total += least
            weighted += least * d[r]
        else:
            out[x] = total
            total += 2 * ((grade[x] > g) - (grade[x] < g))


@compiled
def table_column(kind, count, rank, by_rank, d, grade, worth, number, weight, out):
    """Write T(g, x) for all classes g and the row x at a rank; number and weight are scratch, of a class each."""
    number[:count], weight[:count] = 0.0, 0.0
    for r in range(rank):
        number[grade[by_rank[r]]] += 1.0
        weight[grade[by_rank[r]]] += d[r]
    if kind == PRECISION:
        at_least, weight_at_least = float(rank), 0.0
        for g in range(count):
            weight_at_least += weight[g]
        lower, lower_weight = 0.0, 0.0
        for g in range(count):
            total = lower + worth[g] * at_least
            out[g] = d[rank] * total - (lower_weight + worth[g] * weight_at_least)
            lower += worth[g] * number[g]
            lower_weight += worth[g] * weight[g]
            at_least -= number[g]
            weight_at_least -= weight[g]
    else:
        below = 0.0
        for g in range(count):
            out[g] = 2 * ((rank - below - number[g]) - below)
            below += number[g]


@compiled
def table(kind, count, n, by_rank, d, grade, worth, out):
    """Write T(g, x) to out[g * n + x] for all classes g and rows x."""
    if count > 5:
        for g in range(count):
            table_row(kind, g, n, by_rank, d, grade, worth, out[g * n : g * n + n])
        return
    if count == 2:
        sums, products = 0.0, 0.0
        for r in range(n):
            x = by_rank[r]
            g = float(grade[x])
            if kind == PRECISION:
                out[x], out[n + x] = 0.0, d[r] * sums - products
                sums += g * worth[1]
                products += g * worth[1] * d[r]
            else:
                out[x], out[n + x] = 2.0 * sums, 2.0 * (sums - r)
                sums += g
        return
    # up to five classes at once: five sums that do not wait for each other
    w1, w2, w3, w4 = worth[1], worth[min(2, count - 1)], worth[min(3, count - 1)], worth[min(4, count - 1)]
    s0 = s1 = s2 = s3 = s4 = p1 = p2 = p3 = p4 = 0.0
    two, three, four = count > 2, count > 3, count > 4
    for r in range(n):
        x = by_rank[r]
        if kind == PRECISION:
            rate, w = d[r], worth[grade[x]]
            v1, v2, v3, v4 = min(w, w1), min(w, w2), min(w, w3), min(w, w4)
            out[x] = 0.0
            out[n + x] = rate * s1 - p1
            if two:
                out[2 * n + x] = rate * s2 - p2
            if three:
                out[3 * n + x] = rate * s3 - p3
            if four:
                out[4 * n + x] = rate * s4 - p4
            p1, p2, p3, p4 = p1 + rate * v1, p2 + rate * v2, p3 + rate * v3, p4 + rate * v4
        else:
            g = grade[x]
            out[x] = s0
            out[n + x] = s1
            if two:
                out[2 * n + x] = s2
            if three:
                out[3 * n + x] = s3
            if four:
                out[4 * n + x] = s4
            s0 += 2.0 if g > 0 else 0.0
            v1, v2 = (g > 1) * 2.0 - (g < 1) * 2.0, (g > 2) * 2.0 - (g < 2) * 2.0
            v3, v4 = (g > 3) * 2.0 - (g < 3) * 2.0, (g > 4) * 2.0 - (g < 4) * 2.0
        s1, s2, s3, s4 = s1 + v1, s2 + v2, s3 + v3, s4 + v4


@compiled
def utility(value, baseline, alpha):
    """Difference to a baseline, losses counted 1 + alpha times."""
    return (value - baseline) * (1.0 + alpha if value < baseline else 1.0)


@compiled
def studentised(mean, square, n):
    """Mean over its standard error, of n values with a mean and a mean square."""
    return mean * np.sqrt((n - 1) / max(square - mean * mean, 1e-6)) if n > 1 else 0.0


@compiled
def risk_change(change, above, now, baseline, share, alpha, studentise, mean, square, n):
    """What a swap that changes the metric of a query changes in the mean utility, or in that over its error."""
    before = utility(now, baseline, alpha)
    after = utility(now - change if above else now + change, baseline, alpha)
    if not studentise:
        return abs(after - before)
    if not share > 0:
        return 0.0
    then = studentised(mean + share * (after - before), square + share * (after * after - before * before), n)
    return abs(then - studentised(mean, square, n)) / share


@compiled
def _matrices(kind, level, by_label, discount, ties, scores, ptr, order, rank, out_ptr, out):
    for q in range(len(ptr) - 1):
        start = ptr[q]
        n = ptr[q + 1] - start
        lev, d = level[start : start + n].astype(np.float64), discount[:n].astype(np.float64)
        a, b, by_score = np.zeros(n), np.zeros(n), np.zeros(n)
        place, by_rank = np.zeros(n, np.int32), np.zeros(n, np.int32)
        grade, worth = np.zeros(n, np.int32), np.zeros(n)
        for i in range(n):
            place[by_label[start + i]] = i
        for r in range(n):
            by_rank[r] = place[order[start + r]]
            by_score[r] = scores[start + order[start + r]]
        constants(kind, n, lev, by_rank, d, a, b, by_score, ties)
        by_table = kind in (PRECISION, CONCORDANCE)
        count = classes(n, lev, grade, worth) if by_table else 0
        tables = np.zeros(count * n)
        if count > 1:
            table(kind, count, n, by_rank, d, grade, worth, tables)
        for i in range(n):
            for j in range(n):
                t = 0.0
                if by_table:
                    g, k = grade[i], grade[j]
                    t = tables[g * n + j] - tables[k * n + j] + tables[k * n + i] - tables[g * n + i]
                d_h, d_l = d[rank[start + by_label[start + i]]], d[rank[start + by_label[start + j]]]
                out[out_ptr[q] + i * n + j] = change(
                    kind, lev[i], lev[j], d_h, d_l, a[i], a[j], b[i], b[j], t, 0.0, 0.0
                )  # fmt: skip


def swap_changes(pairs, scores, ptr, order, rank):
    """What every swap changes: for each query an n x n matrix [better, worse], flat, in by_label's order."""
    squares = np.concatenate([[0], np.cumsum(np.diff(ptr) ** 2)])
    out = np.empty(squares[-1])
    _matrices(
        pairs.kind, pairs.level, pairs.by_label, pairs.discount, pairs.ties, scores, ptr, order, rank, squares, out
    )  # fmt: skip
    return out
