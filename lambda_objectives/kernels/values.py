"""What metrics are worth at a ranking."""

import numpy as np

from lambda_objectives.kernels import ADDITIVE, CASCADE, FIRST, PRECISION
from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.threads import longest, run_parts


@compiled
def _additive(start, reach, n, gain, discount, ties, scores, order):
    total, r = 0.0, 0
    if not ties:
        for r in range(reach):
            total += gain[start + order[start + r]] * discount[r]
        return total
    while r < reach:
        last, sum_gain, sum_discount = r, 0.0, 0.0
        while last < n and scores[start + order[start + last]] == scores[start + order[start + r]]:
            sum_gain += gain[start + order[start + last]]
            sum_discount += discount[last] if last < reach else 0.0
            last += 1
        total += sum_gain * (sum_discount / (last - r))
        r = last
    return total


@compiled
def _first(start, reach, gain, discount, order):
    for r in range(reach):
        if gain[start + order[start + r]] > 0:
            return discount[r]
    return 0.0


@compiled
def _cascade(start, reach, gain, discount, order):
    total, going = 0.0, 1.0
    for r in range(reach):
        g = gain[start + order[start + r]]
        total += going * g * discount[r]
        going *= 1.0 - g
    return total


@compiled
def _by_few_classes(kind, start, reach, n, gain, discount, order, grade, classes, number, worth):
    """PRECISION and CONCORDANCE: the rows above counted by class; no branch, which would be guessed wrong."""
    number[:classes] = 0.0
    for i in range(start, start + n):
        worth[grade[i]] = gain[i]
    total, ones = 0.0, 0.0
    if classes == 2:
        for r in range(reach if kind == PRECISION else n):
            g = float(grade[start + order[start + r]])
            if kind == PRECISION:
                second = (r - ones) * worth[0] + (ones + 1.0) * worth[1]
                total += discount[r] * (g * second + (1.0 - g) * (r + 1.0) * worth[0])
            else:
                total += (1.0 - g) * ones - g * (r - ones)
            ones += g
        return total
    for r in range(reach if kind == PRECISION else n):
        g = grade[start + order[start + r]]
        sums = 0.0
        if kind == PRECISION:
            for c in range(classes):
                sums += number[c] * min(worth[c], worth[g])
            total += discount[r] * (sums + worth[g])
        else:
            for c in range(classes):
                sums += number[c] * ((c > g) - (c < g))
            total += sums
        number[g] += 1.0
    return total


@compiled
def _by_classes(kind, start, reach, n, gain, discount, order, grade, number, weight):
    """PRECISION and CONCORDANCE in n log n: Fenwick trees over the classes hold the rows above."""
    classes = 0
    for i in range(n):
        classes = max(classes, grade[start + i] + 1)
    if classes <= 8:
        return _by_few_classes(kind, start, reach, n, gain, discount, order, grade, classes, number, weight)
    number[: classes + 1], weight[: classes + 1] = 0.0, 0.0
    total = 0.0
    for r in range(reach if kind == PRECISION else n):
        x = start + order[start + r]
        below, below_weight, same = 0.0, 0.0, 0.0
        k = grade[x]  # of the classes below
        while k > 0:
            below += number[k]
            below_weight += weight[k]
            k -= k & -k
        if kind == PRECISION:
            total += discount[r] * (below_weight + gain[x] * (r - below + 1.0))
        else:
            k = grade[x] + 1
            while k > 0:
                same += number[k]
                k -= k & -k
            total += (r - same) - below
        k = grade[x] + 1
        while k <= classes:
            number[k] += 1.0
            weight[k] += gain[x]
            k += k & -k
    return total


@compiled
def _values_part(first, last, longest, kind, gain, discount, scale, ties, scores, order, grade, ptr, out):
    number, weight = np.empty(longest + 9), np.empty(longest + 9)
    for q in range(first, last):
        start = ptr[q]
        n = ptr[q + 1] - start
        reach = min(n, len(discount))
        if kind == ADDITIVE:
            out[q] = _additive(start, reach, n, gain, discount, ties, scores, order)
        elif kind == FIRST:
            out[q] = _first(start, reach, gain, discount, order)
        elif kind == CASCADE:
            out[q] = _cascade(start, reach, gain, discount, order)
        else:
            out[q] = _by_classes(kind, start, reach, n, gain, discount, order, grade, number, weight)
        if len(scale):
            out[q] *= scale[q]


def metric_values(kind, gain, discount, scale, ties, scores, order, grade, ptr, out, parts):
    """Write the metric of each query; ranks past the discount's end have the discount 0."""
    run_parts(
        _values_part, parts, longest(ptr), kind, gain, discount, scale, ties, scores, order, grade, ptr, out
    )  # fmt: skip
