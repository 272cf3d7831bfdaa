"""What follows from a control before any score is known, and what is left once the slopes are known; O(n) each.

Weights are (n,) by row, or (1,) for the same everywhere: that of a row is `weights[step * row]`.
"""

import numpy as np

from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.dependence import Control
from lambda_objectives.kernels.ordering import shares
from lambda_objectives.kernels.threads import longest, run_parts


@compiled(fastmath=False)
def _standardise_part(first, last, column, weights, members, ptr, out, usable):
    step = 1 if len(weights) > 1 else 0
    for g in range(first, last):
        rows = members[ptr[g] : ptr[g + 1]]
        least, less, more, most, count, total, start = np.inf, np.inf, -np.inf, -np.inf, 0, 0.0, 0.0
        for row in rows:
            w, c = weights[step * row], column[row]
            if w == 0.0:
                continue
            start = c if count == 0 else start
            count += 1
            total += w
            least, less = min(least, c), min(less, max(least, c))
            most, more = max(most, c), max(more, min(most, c))
        usable[g] &= count >= 4 and less < more  # more than one value on a side of the tied ones
        if count == 0 or least == most:
            out[ptr[g] : ptr[g + 1]] = 0.0
            continue
        mean, scale = 0.0, most - least
        for row in rows:
            mean += weights[step * row] * ((column[row] - start) / scale)
        mean /= total
        rest, square = 0.0, 0.0
        for row in rows:
            x = (column[row] - start) / scale - mean
            rest += weights[step * row] * x
            square += weights[step * row] * x * x
        mean += rest / total
        deviation = np.sqrt(square / total - (rest / total) ** 2)
        for i in range(len(rows)):
            out[ptr[g] + i] = ((column[rows[i]] - start) / scale - mean) / deviation


def standardised(column, weights, members, ptr, usable):
    """Standardise a column within each group, in the order of the members; `usable` stays True where it can be used."""
    out = np.empty(len(members))
    _standardise_part(0, len(ptr) - 1, column, weights, members, ptr, out, usable)
    return out


@compiled(fastmath=False)
def _number_categories(column, weights, members, ptr, out, usable):
    """Number the categories of each group; members lie by ascending column, and out takes the numbers in that order.

    The doubly centred distances are all 0 where all rows but one are alike, or all differ from each other.
    """
    step = 1 if len(weights) > 1 else 0
    for g in range(len(ptr) - 1):
        category, size, count, most = -1.0, 0, 0, 0
        for p in range(ptr[g], ptr[g + 1]):
            if p == ptr[g] or column[members[p]] != column[members[p - 1]]:
                category += 1.0
                size = 0
            out[p] = category
            if weights[step * members[p]] > 0.0:
                size += 1
                count += 1
                most = max(most, size)
        usable[g] &= count >= 4 and 1 < most < count - 1


def numbered(column, weights, members, ptr, usable):
    """Number the categories of each group from 0, in the order of the members, which lie by ascending column."""
    out = np.empty(len(members))
    _number_categories(column, weights, members, ptr, out, usable)
    return out


@compiled(fastmath=False)
def _plus(total, lost, x):
    """Add to a sum and to what its rounding has lost: equal values in a row would be rounded to the same side."""
    more = total + x
    return more, lost + (x - (more - total))


@compiled(fastmath=False)
def _sums_part(first, last, categorical, rows, ptr, values, weights, sums):
    """Sum of the distances of each row to all others of its group, by their weights, and by the squares of these."""
    step = 1 if len(weights) > 1 else 0
    for g in range(first, last):
        a, end = ptr[g], ptr[g + 1]
        for k in range(len(sums)):
            total, moment, lost, lost_y = 0.0, 0.0, 0.0, 0.0
            for p in range(a, end):
                w = weights[step * rows[p]]
                u = w * w if k else w
                total, lost = _plus(total, lost, u)
                moment, lost_y = _plus(moment, lost_y, u * values[p])
            total, moment = total + lost, moment + lost_y
            if categorical:
                p = a
                while p < end:
                    own, next_one = 0.0, p
                    while next_one < end and values[next_one] == values[p]:
                        w = weights[step * rows[next_one]]
                        own += w * w if k else w
                        next_one += 1
                    sums[k, p:next_one] = total - own
                    p = next_one
                continue
            before, before_y, lost, lost_y = 0.0, 0.0, 0.0, 0.0
            for p in range(a, end):
                w, y = weights[step * rows[p]], values[p]
                u = w * w if k else w
                sums[k, p] = y * (2 * (before + lost) + u - total) - (2 * (before_y + lost_y) + u * y - moment)
                before, lost = _plus(before, lost, u)
                before_y, lost_y = _plus(before_y, lost_y, u * y)


@compiled(fastmath=False)
def _constants(rows, ptr, weights, sums, out):
    """With D_k the sum of w_i w_j .. over all k different rows: all that `Control` wants of a group."""
    step = 1 if len(weights) > 1 else 0
    for g in range(len(ptr) - 1):
        a, end = ptr[g], ptr[g + 1]
        n = float(end - a)
        e1, e2, e3, e4, all_b, lost = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for p in range(a, end):  # adding row by row: power sums would cancel where one weight is far above the others
            w = weights[step * rows[p]]
            e4 += w * e3
            e3 += w * e2
            e2 += w * e1
            e1 += w
            all_b, lost = _plus(all_b, lost, w * sums[0, p])
        all_b += lost
        if len(sums) > 1:
            d2, d3, d4 = 2 * e2, 6 * e3, 24 * e4
            out[g, 0], out[g, 1], out[g, 2], out[g, 3] = 1 / d2, 1 / d3, 1 / d3, 2 / d4
            out[g, 4], out[g, 5], out[g, 6] = 2 / d3, 4 / d4, all_b / d4
        else:
            out[g, 0], out[g, 1], out[g, 2], out[g, 3] = 1 / (n * (n - 3)), 0.0, 0.0, 0.0
            out[g, 4], out[g, 5] = 2 / (n * (n - 2) * (n - 3)), 0.0
            out[g, 6] = all_b / (n * (n - 1) * (n - 2) * (n - 3))
        all_r, lost = 0.0, 0.0
        for p in range(a, end):
            w = weights[step * rows[p]]
            all_r, lost = _plus(all_r, lost, w * (out[g, 4] + out[g, 5] * w) * sums[0, p])
        out[g, 7], out[g, 8] = e1, all_r + lost


def laid_out(rows, ptr, values, weights, factor, categorical):
    """Compute the rest of a `Control`; in groups with factor 0 nothing of it counts."""
    sums = np.empty((1 if len(weights) == 1 else 2, len(rows)))
    constants = np.empty((len(ptr) - 1, 9))
    _sums_part(0, len(ptr) - 1, categorical, rows, ptr, values, weights, sums)
    _constants(rows, ptr, weights, sums, constants)
    return Control(rows, ptr, values, weights, sums, constants, factor)


@compiled(fastmath=False)
def _category_part(first, last, most, c, below, slopes):
    rows, ptr, values, weights, sums, factor = c.rows, c.ptr, c.values, c.weights, c.sums, c.factor
    step = 1 if len(weights) > 1 else 0
    taken, order = np.empty(most, np.int64), np.empty(most, np.int64)
    total, seen, own = np.empty((2, most)), np.empty((2, most)), np.zeros((2, most))
    for g in range(first, last):
        a, n = ptr[g], ptr[g + 1] - ptr[g]
        if factor[g] == 0.0:
            for row in rows[a : a + n]:
                slopes[row] = 0.0
            continue
        a0, a1, b0, b1, c0, c1, e, all_w, all_r = c.constants[g]
        total[:, :n], seen[:, :n], taken[:n] = 0.0, 0.0, 0
        all_square = 0.0
        for i in range(n):  # by ascending score
            row = rows[a + i]
            order[below[row] + taken[below[row]]] = a + i
            taken[below[row]] += 1
            w, category = weights[step * row], int(values[a + i])
            total[0, category] += w
            total[1, category] += w * w
            all_square += w * w
        low, low_square, low_r, start = 0.0, 0.0, 0.0, 0
        while start < n:
            end = start + taken[start]
            tied, tied_square, tied_r = 0.0, 0.0, 0.0
            for i in range(start, end):
                w, category = weights[step * rows[order[i]]], int(values[order[i]])
                own[0, category] += w
                own[1, category] += w * w
                tied += w
                tied_square += w * w
                tied_r += w * (c0 + c1 * w) * sums[0, order[i]]
            side = 2 * low + tied - all_w
            side_square = 2 * low_square + tied_square - all_square
            half_r = low_r + (tied_r - all_r) / 2
            for i in range(start, end):  # the distance is 1 to all rows that are not of the same category
                row, category = rows[order[i]], int(values[order[i]])
                w = weights[step * row]
                r = (c0 + c1 * w) * sums[0, order[i]]
                signed = side - (2 * seen[0, category] + own[0, category] - total[0, category])
                squared = side_square - (2 * seen[1, category] + own[1, category] - total[1, category])
                push = (a0 + a1 * w) * signed + (b0 + b1 * w) * squared + (e - r / 2) * side - half_r
                slopes[row] = 2 * w * factor[g] * push
            for i in range(start, end):
                category = int(values[order[i]])
                seen[0, category] += own[0, category]
                seen[1, category] += own[1, category]
                own[0, category], own[1, category] = 0.0, 0.0
            low, low_square, low_r, start = low + tied, low_square + tied_square, low_r + tied_r, end


def category_slopes(control, below, slopes, threads=1):
    """Like `dependence.slopes`, for values that number categories with the distance 1 from each other."""
    run_parts(_category_part, shares(control.ptr, threads), longest(control.ptr), control, below, slopes)


@compiled(fastmath=False)
def _value_part(first, last, members, ptr, factor, slopes, outputs, value):
    for g in range(first, last):
        total = 0.0
        if factor[g] > 0.0:
            rows = members[ptr[g] : ptr[g + 1]]
            start = outputs[rows[0]]  # the value does not depend on the origin, its rounding does
            for row in rows:
                total += slopes[row] * (outputs[row] - start)
            total /= factor[g]
        value[g] = total


def values(members, ptr, factor, slopes, outputs, value, threads=1):
    """Write each group's value: the sum of slope x output, since the slopes depend on the order alone."""
    run_parts(_value_part, shares(ptr, threads), members, ptr, factor, slopes, outputs, value)


@compiled(fastmath=False)
def _correlation_part(first, last, c, scores, out):
    rows, ptr, values, weights, factor = c.rows, c.ptr, c.values, c.weights, c.factor
    step = 1 if len(weights) > 1 else 0
    for g in range(first, last):
        out[g] = 0.0
        if factor[g] == 0.0:
            continue
        start, total, mean, scale = scores[rows[ptr[g]]], 0.0, 0.0, 0.0
        for row in rows[ptr[g] : ptr[g + 1]]:
            w = weights[step * row]
            total += w
            mean += w * (scores[row] - start)
            scale = max(scale, abs(scores[row] - start))
        mean /= total
        square, product = 0.0, 0.0
        for p in range(ptr[g], ptr[g + 1]):
            w, x = weights[step * rows[p]], scores[rows[p]] - start - mean
            square += w * x * x
            product += w * x * values[p]
        if scale > 0.0 and square > 0.0:
            out[g] = product / np.sqrt(total * square)


def correlations(control, scores, threads=1):
    """Pearson's correlation of scores and control in each group; 0 for equal scores, and for groups left out."""
    out = np.empty(len(control.ptr) - 1)
    run_parts(_correlation_part, shares(control.ptr, threads), control, scores, out)
    return out
