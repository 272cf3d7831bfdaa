"""Loops over the worse rows of a better row, in single precision, for every kind of weight.

Rows lie by ascending label in the columns of a block, WIDTH apart, as in `pairs`; `own` holds the better row, `block`
the worse ones. What pairs weigh is worked out on the way, or written down first where more has to be done to it.
"""

import numpy as np

from lambda_objectives.kernels import ADDITIVE, CASCADE, FIRST, LOSS1, LOSS2, LOSS2_PLUS, PRECISION
from lambda_objectives.kernels.changes import (
    additive_change,
    cascade_change,
    first_change,
    loss1_change,
    loss2_change,
    loss2_plus_change,
    risk_change,
    table_change,
    unit_change,
)
from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.pairs import ONE, VECTOR, WIDTH, ZERO, _log

LANES = 17  # columns of a block of rows, WIDTH apart
LEVEL, DISCOUNT, A, B, TOP, RANK, ROW, COLUMN, GRADE, LABEL, WORSE, S, E, G, H, W, COST = range(LANES)
NO_TABLE, ONE_CLASS, FEW_CLASSES, MANY_CLASSES = range(4)  # of the worse rows


@compiled(inline="always")
def _pull(written, weigh, tables, hinge, tracked, i, whole, own, block, sigma, k0, k1, k2, k3):
    """Add the gradients of a better row's pairs to the columns G and H; returns their sum and the cost."""
    e_h, s_h = own[i + E * WIDTH], own[i + S * WIDTH]
    level_h, d_h = own[i + LEVEL * WIDTH], own[i + DISCOUNT * WIDTH]  # here, since the loop writes to what may be own
    a_h, b_h = own[i + A * WIDTH], own[i + B * WIDTH]
    sum_g, sum_h, sum_c = ZERO, ZERO, ZERO
    for j in range(whole):
        if written:
            w = block[j + W * WIDTH]
        else:
            t = ZERO
            if tables == ONE_CLASS:
                t = block[j + ROW * WIDTH] + k0
            elif tables == FEW_CLASSES:
                c = block[j + GRADE * WIDTH]
                t = block[j + ROW * WIDTH] + (k3 if c > 2 else (k2 if c > 1 else (k1 if c > 0 else k0)))
            elif tables == MANY_CLASSES:
                t = block[j + ROW * WIDTH] + block[j + COLUMN * WIDTH]
            w = weigh(
                level_h, block[j + LEVEL * WIDTH], d_h, block[j + DISCOUNT * WIDTH], a_h, block[j + A * WIDTH],
                b_h, block[j + B * WIDTH], t, ZERO, ZERO,
            )  # fmt: skip
        if hinge:
            missing = ONE - sigma * (s_h - block[j + S * WIDTH])
            wp = w if missing > ZERO else ZERO
            wh = wp
            loss = wp * missing
        else:
            e = block[j + E * WIDTH]
            r = ONE / (e_h + e)
            q = e_h * r
            wp = w * (e * r)
            wh = wp * q
            loss = -w * _log(q)
        block[j + G * WIDTH] += wp
        block[j + H * WIDTH] += wh
        if tracked:
            block[j + COST * WIDTH] += loss
        sum_g += wp
        sum_h += wh
        sum_c += loss
    own[i + G * WIDTH] -= sum_g
    own[i + H * WIDTH] += sum_h
    return sum_g, sum_c


@compiled
def spread_classes(block, grade, i, own_a, n, table, classes):
    """Write T(g, x) - T(h, h) of a better row h for the class of each worse row into COLUMN; classes lie together."""
    j = 0
    for c in range(classes):
        first = j
        while grade[j] <= c:
            j += 1
        value = np.float32(table[c * n + i] - own_a)
        for k in range(j - first):
            block[first + k + COLUMN * WIDTH] = value
    for k in range(VECTOR):
        block[j + k + COLUMN * WIDTH] = ZERO


@compiled(inline="always")
def _class(weigh, tables, count, better, partners, own, block, grade, a, n, table, row_class):
    """The better rows of one class against the first rows of a block, weighed on the way."""
    whole = (partners + VECTOR - 1) // VECTOR * VECTOR
    total_g, total_c = 0.0, 0.0
    k0 = k1 = k2 = k3 = ZERO
    for c in range(count):
        i = better[c]
        if tables == ONE_CLASS:
            k0 = np.float32(table[i] - a[i])
        elif tables == FEW_CLASSES:
            k0 = np.float32(table[i] - a[i])
            k1 = np.float32(table[min(1, row_class) * n + i] - a[i])
            k2 = np.float32(table[min(2, row_class) * n + i] - a[i])
            k3 = np.float32(table[min(3, row_class) * n + i] - a[i])
        elif tables == MANY_CLASSES:
            spread_classes(block, grade, i, a[i], n, table, row_class)
        sum_g, sum_c = _pull(False, weigh, tables, False, False, i, whole, own, block, ONE, k0, k1, k2, k3)
        total_g += sum_g
        total_c += sum_c
    return total_g, total_c


# The same, compiled once for each case: with the kind known LLVM sees one straight loop.
@compiled
def _class_first(count, better, partners, own, block, grade, a, n, table, row_class):
    return _class(first_change, NO_TABLE, count, better, partners, own, block, grade, a, n, table, row_class)


@compiled
def _class_cascade(count, better, partners, own, block, grade, a, n, table, row_class):
    return _class(cascade_change, NO_TABLE, count, better, partners, own, block, grade, a, n, table, row_class)


@compiled
def _class_additive(count, better, partners, own, block, grade, a, n, table, row_class):
    return _class(additive_change, NO_TABLE, count, better, partners, own, block, grade, a, n, table, row_class)


@compiled
def _class_one(count, better, partners, own, block, grade, a, n, table, row_class):
    return _class(table_change, ONE_CLASS, count, better, partners, own, block, grade, a, n, table, row_class)


@compiled
def _class_few(count, better, partners, own, block, grade, a, n, table, row_class):
    return _class(table_change, FEW_CLASSES, count, better, partners, own, block, grade, a, n, table, row_class)


@compiled
def _class_many(count, better, partners, own, block, grade, a, n, table, row_class):
    return _class(table_change, MANY_CLASSES, count, better, partners, own, block, grade, a, n, table, row_class)


@compiled
def pull_class(kind, count, better, partners, own, block, grade, a, n, table, row_class):
    """The better rows of one class against the first rows of a block; returns the sum of the gradients and the cost."""
    if kind == FIRST:
        return _class_first(count, better, partners, own, block, grade, a, n, table, row_class)
    if kind == CASCADE:
        return _class_cascade(count, better, partners, own, block, grade, a, n, table, row_class)
    if kind == ADDITIVE:
        return _class_additive(count, better, partners, own, block, grade, a, n, table, row_class)
    if row_class == 1:
        return _class_one(count, better, partners, own, block, grade, a, n, table, row_class)
    if row_class <= 4:
        return _class_few(count, better, partners, own, block, grade, a, n, table, row_class)
    return _class_many(count, better, partners, own, block, grade, a, n, table, row_class)


@compiled
def _pull_logistic(i, partners, own, block, sigma):
    whole = (partners + VECTOR - 1) // VECTOR * VECTOR
    return _pull(True, unit_change, NO_TABLE, False, True, i, whole, own, block, sigma, ZERO, ZERO, ZERO, ZERO)


@compiled
def _pull_hinge(i, partners, own, block, sigma):
    whole = (partners + VECTOR - 1) // VECTOR * VECTOR
    return _pull(True, unit_change, NO_TABLE, True, True, i, whole, own, block, sigma, ZERO, ZERO, ZERO, ZERO)


@compiled
def pull_written(hinge, i, partners, own, block, sigma):
    """A better row against the first rows of a block, the weights being in column W; the cost goes to COST as well."""
    if hinge:
        return _pull_hinge(i, partners, own, block, sigma)
    return _pull_logistic(i, partners, own, block, sigma)


@compiled(inline="always")
def _write(weigh, deltas, i, whole, own, block, mu, delta):
    level_h, d_h = own[i + LEVEL * WIDTH], own[i + DISCOUNT * WIDTH]
    a_h, b_h = own[i + A * WIDTH], own[i + B * WIDTH]
    for j in range(whole):
        if deltas:
            t = delta[int(abs(a_h - block[j + A * WIDTH]))]
        else:
            t = block[j + ROW * WIDTH] + block[j + COLUMN * WIDTH]
        block[j + W * WIDTH] = weigh(
            level_h, block[j + LEVEL * WIDTH], d_h, block[j + DISCOUNT * WIDTH], a_h, block[j + A * WIDTH],
            b_h, block[j + B * WIDTH], t, mu, ZERO,
        )  # fmt: skip


@compiled
def write_weights(kind, i, partners, own, block, mu, delta):
    """Write down what the pairs of a better row weigh by their kind."""
    whole = (partners + VECTOR - 1) // VECTOR * VECTOR
    if kind == ADDITIVE:
        _write(additive_change, False, i, whole, own, block, mu, delta)
    elif kind == FIRST:
        _write(first_change, False, i, whole, own, block, mu, delta)
    elif kind == CASCADE:
        _write(cascade_change, False, i, whole, own, block, mu, delta)
    elif kind == PRECISION:
        _write(table_change, False, i, whole, own, block, mu, delta)
    elif kind == LOSS1:
        _write(loss1_change, False, i, whole, own, block, mu, delta)
    elif kind == LOSS2:
        _write(loss2_change, True, i, whole, own, block, mu, delta)
    elif kind == LOSS2_PLUS:
        _write(loss2_plus_change, True, i, whole, own, block, mu, delta)
    else:
        _write(unit_change, False, i, whole, own, block, mu, delta)


@compiled
def multiply_weights(i, partners, own, block, factor, masked, gaps, by_label, by_worse):
    """Multiply the weights that are written down by whatever is wanted of it."""
    whole = (partners + VECTOR - 1) // VECTOR * VECTOR
    if factor != 1:
        for j in range(whole):
            block[j + W * WIDTH] *= factor
    if masked:
        for j in range(whole):
            block[j + W * WIDTH] *= block[j + TOP * WIDTH]
    if gaps:
        s_h = own[i + S * WIDTH]
        for j in range(whole):
            block[j + W * WIDTH] /= np.float32(0.01) + abs(s_h - block[j + S * WIDTH])
    if by_label:
        label_h = own[i + LABEL * WIDTH]
        for j in range(whole):
            block[j + W * WIDTH] *= max(label_h - block[j + LABEL * WIDTH], ZERO)
    if by_worse:
        for j in range(whole):
            block[j + W * WIDTH] *= block[j + WORSE * WIDTH]


@compiled
def weigh_risk(i, partners, own, block, times, now, baseline, share, alpha, studentise, mean, square, n):
    """From what swaps change in the metric to what they change in the risk-sensitive measure."""
    for j in range(partners):
        above = own[i + RANK * WIDTH] < block[j + RANK * WIDTH]
        w = times * block[j + W * WIDTH]
        block[j + W * WIDTH] = risk_change(w, above, now, baseline, share, alpha, studentise, mean, square, n)


@compiled
def close_block(block, n):
    """Fill up n rows to whole vectors with rows too good to be the worse of any pair, and set all gradients to 0."""
    for lane in range(LANES):
        for i in range(n, n + VECTOR):
            block[i + lane * WIDTH] = ZERO
    for i in range(n, n + VECTOR):
        block[i + LEVEL * WIDTH] = np.inf
        block[i + E * WIDTH] = ONE
    for i in range(n):
        block[i + G * WIDTH] = ZERO
        block[i + H * WIDTH] = ZERO
        block[i + COST * WIDTH] = ZERO
