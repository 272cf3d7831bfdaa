"""The pair loop for every kind of weight: any metric, and whatever multiplies or restricts the pairs.

Compiled by numba only when wanted: `pairs` has a faster loop for the two simplest kinds. As there, single precision
work goes over the worse rows of each better row as the first m of an array, without a branch; see `lanes`. Double
precision, scores too far apart for e^x, long queries and pairs drawn at random are done one by one in double precision.
"""

import math

import numpy as np

from lambda_objectives.kernels import (
    ADDITIVE,
    CASCADE,
    CONCORDANCE,
    FIRST,
    GIVEN,
    LOSS2,
    LOSS2_PLUS,
    PRECISION,
)
from lambda_objectives.kernels.changes import (
    change,
    classes,
    constants,
    risk_change,
    run_end,
    table,
    table_column,
    table_row,
    utility,
)
from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.lanes import (
    COST,
    DISCOUNT,
    GRADE,
    LABEL,
    LANES,
    LEVEL,
    RANK,
    ROW,
    TOP,
    WORSE,
    A,
    B,
    E,
    G,
    H,
    S,
    close_block,
    multiply_weights,
    pull_class,
    pull_written,
    spread_classes,
    weigh_risk,
    write_weights,
)
from lambda_objectives.kernels.pairs import FAST_RANGE, LONGEST, VECTOR, WIDTH, ZERO, _exp
from lambda_objectives.kernels.random import below, stream
from lambda_objectives.kernels.threads import longest, run_parts, scratch

TABLE = 2**20  # largest table of classes times rows


@compiled
def _swap_part(
    first, last, blocks, longest, kind, by_label, level, discount, truncation, sigma, gap_norm, log_norm, ties, hinge,
    mu, sample, seed, round_, scale, silent, label, better, worse, now, baseline, share, alpha, studentise, mean,
    square, given, given_ptr, costs, noisy, exact, scores, ptr, order, rank, weights, grad, hess, cost,
):  # fmt: skip
    rows = blocks[: LANES * WIDTH]  # of a query, by ascending label
    tops = blocks[LANES * WIDTH :]  # those among its first `truncation` ranks, for the rows below them
    size = longest + VECTOR
    lev, d, own, a, b = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)  # d is by rank
    g, h, s, row, column = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
    number, weighed, worth = np.zeros(size), np.zeros(size), np.zeros(size)  # of a class each
    better_cost, worse_cost, delta = np.zeros(size), np.zeros(size), np.zeros(size)
    by_rank, top = np.zeros(size, np.int32), np.zeros(size, np.int32)
    better_rows, below_rows, rest = np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size, np.int32)
    grade, top_grade, r_of = np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size, np.int32)
    delta32, sigma32, mu32 = np.zeros(size, np.float32), np.float32(sigma), np.float32(mu)
    small_table = np.zeros(1)
    by_table, tracked = kind in (PRECISION, CONCORDANCE), costs.shape[1] > 0
    at_once_kind = kind in (ADDITIVE, FIRST, CASCADE, PRECISION, CONCORDANCE) and not (
        hinge or tracked or len(now) or len(label) or len(better)
    )  # fmt: skip
    if kind in (LOSS2, LOSS2_PLUS):
        for r in range(1, longest):
            delta[r] = discount[r - 1] - discount[r]
            delta32[r] = delta[r]
    for q in range(first, last):
        start = ptr[q]
        n = ptr[q + 1] - start
        cost[q] = 0.0
        grad[start : start + n] = 0.0
        hess[start : start + n] = 0.0
        if tracked:
            costs[0, start : start + n] = 0.0
            costs[1, start : start + n] = 0.0
        if n == 0 or level[start] == level[start + n - 1] or (len(now) and not share[q] > 0):
            continue
        for i in range(n):
            lev[i] = level[start + i]
            d[i] = discount[i]
        for i in range(n):
            x = start + by_label[start + i]
            s[i], r_of[i] = scores[x], rank[x]
            by_rank[rank[x]] = i
        high, low = s[by_rank[0]], s[by_rank[n - 1]]
        if noisy:  # the ranks are not those of the scores
            for i in range(n):
                high, low = max(high, s[i]), min(low, s[i])
        gaps = gap_norm and low != high
        if ties:
            for r in range(n):
                row[r] = s[by_rank[r]]  # of no other use yet
        constants(kind, n, lev, by_rank, d, a, b, row, ties)
        times = scale[q] if len(scale) else 1.0
        fast = not exact and n <= LONGEST and sigma * (high - low) <= FAST_RANGE and kind != GIVEN
        count, tabled = 1, False
        if by_table:
            count = classes(n, lev, grade, worth)
            tabled = count * n <= TABLE
            fast = fast and tabled
            if tabled:
                if len(small_table) < count * n:
                    small_table = np.zeros(count * n)
                table(kind, count, n, by_rank, d, grade, worth, small_table)
                for i in range(n):
                    a[i] = small_table[grade[i] * n + i]
            else:
                for c in range(count):
                    table_row(kind, c, n, by_rank, d, grade, worth, row)
                    for i in range(n):
                        if grade[i] == c:
                            a[i] = row[i]
        # below the truncation a better row has few partners, those above it: they get a block of their own
        few, n_top = n > 2 * truncation, 0
        if truncation < n:
            for i in range(n):
                top[n_top] = i
                n_top += r_of[i] < truncation
        if not fast or sample:
            for i in range(n):
                own[i] = d[r_of[i]]
            g[:n], h[:n] = 0.0, 0.0
            better_cost[:n], worse_cost[:n] = 0.0, 0.0

        if fast:
            middle = 0.5 * (low + high)
            for i in range(n):
                rows[i + LEVEL * WIDTH] = lev[i]
                rows[i + DISCOUNT * WIDTH] = d[r_of[i]]
                rows[i + A * WIDTH] = a[i]
                rows[i + B * WIDTH] = b[i]
                rows[i + S * WIDTH] = s[i] - middle
            if by_table:
                for i in range(n):
                    rows[i + GRADE * WIDTH] = grade[i]
            for i in range(n):
                rows[i + E * WIDTH] = _exp(sigma32 * rows[i + S * WIDTH])
            if truncation < n or len(now):
                for i in range(n):
                    rows[i + TOP * WIDTH] = r_of[i] < truncation
                    rows[i + RANK * WIDTH] = r_of[i]
            if len(silent):
                for i in range(n):
                    if silent[start + i]:
                        rows[i + LEVEL * WIDTH] = np.inf
            if len(label):
                for i in range(n):
                    rows[i + LABEL * WIDTH] = label[start + i]
            if len(better):
                for i in range(n):
                    rows[i + WORSE * WIDTH] = worse[start + by_label[start + i]]
            close_block(rows, n)
            if few:
                for t in range(n_top):
                    i = top[t]
                    for lane in range(E + 1):
                        tops[t + lane * WIDTH] = rows[i + lane * WIDTH]
                    top_grade[t] = grade[i]
                close_block(tops, n_top)

        total_g, total_c, m, last_row, m_top, row_class = 0.0, 0.0, 0, 0, 0, 0
        while last_row < n:
            m, last_row = last_row, run_end(lev, last_row, n)  # the rows from m to last_row have the same level
            if m == 0:
                continue
            drawn = sample > 0 and m > sample
            if by_table:
                row_class = grade[m]
                if tabled:
                    for j in range(m):
                        row[j] = small_table[row_class * n + j] - a[j]
                else:
                    table_row(kind, row_class, n, by_rank, d, grade, worth, row)
                    for j in range(m):
                        row[j] -= a[j]
                if fast:
                    for j in range(m):
                        rows[j + ROW * WIDTH] = row[j]
                    for j in range(m, m + VECTOR):
                        rows[j + ROW * WIDTH] = ZERO
                    for t in range(n_top if few else 0):
                        tops[t + ROW * WIDTH] = row[top[t]] if top[t] < m else 0.0
            while few and m_top < n_top and top[m_top] < m:
                m_top += 1

            n_better, n_below, n_rest = 0, 0, 0
            for i in range(m, last_row):
                if len(silent) and silent[start + i]:
                    continue
                in_top = r_of[i] < truncation
                at_once = fast and not drawn and at_once_kind and not gaps
                better_rows[n_better], below_rows[n_below], rest[n_rest] = i, i, i
                n_better += at_once and in_top
                n_below += at_once and not in_top and few
                n_rest += not at_once or not (in_top or few)
            if n_better:
                sum_g, sum_c = pull_class(
                    kind, n_better, better_rows, m, rows, rows, grade, a, n, small_table, row_class
                )  # fmt: skip
                total_g += sum_g
                total_c += sum_c
            if n_below:
                sum_g, sum_c = pull_class(
                    kind, n_below, below_rows, m_top, rows, tops, top_grade, a, n, small_table, row_class
                )  # fmt: skip
                total_g += sum_g
                total_c += sum_c
            for k in range(n_rest):
                i = rest[k]
                x = start + by_label[start + i]
                in_top = r_of[i] < truncation
                if fast and not drawn:
                    masked = not in_top and not few
                    factor = np.float32(better[x] if len(better) else 1.0)
                    which = PRECISION if kind == CONCORDANCE else kind  # with discounts of 0 they are the same
                    if few and not in_top:  # no variable for the block: counting references to it takes longer
                        if by_table:
                            spread_classes(tops, top_grade, i, a[i], n, small_table, row_class)
                        write_weights(which, i, m_top, rows, tops, mu32, delta32)
                        if len(now):
                            weigh_risk(
                                i, m_top, rows, tops, times, now[q], baseline[q], share[q], alpha, studentise, mean,
                                square, len(now),
                            )  # fmt: skip
                        multiply_weights(i, m_top, rows, tops, factor, masked, gaps, len(label) > 0, len(better) > 0)
                        sum_g, sum_c = pull_written(hinge, i, m_top, rows, tops, sigma32)
                    else:
                        if by_table:
                            spread_classes(rows, grade, i, a[i], n, small_table, row_class)
                        write_weights(which, i, m, rows, rows, mu32, delta32)
                        if len(now):
                            weigh_risk(
                                i, m, rows, rows, times, now[q], baseline[q], share[q], alpha, studentise, mean,
                                square, len(now),
                            )  # fmt: skip
                        multiply_weights(i, m, rows, rows, factor, masked, gaps, len(label) > 0, len(better) > 0)
                        sum_g, sum_c = pull_written(hinge, i, m, rows, rows, sigma32)
                    total_g += sum_g
                    total_c += sum_c
                    if tracked:
                        costs[0, x] += (1.0 if len(now) else times) * sum_c
                    continue
                if by_table and tabled:
                    for c in range(row_class):
                        column[c] = small_table[c * n + i] - a[i]
                elif by_table:
                    table_column(kind, count, r_of[i], by_rank, d, grade, worth, number, weighed, column)
                    for c in range(row_class):
                        column[c] -= a[i]
                candidates = sample if drawn else (m if in_top else n_top)
                for candidate in range(candidates):
                    if drawn:
                        j = below(stream(seed, round_, candidate), x, m)
                    else:
                        j = candidate if in_top else top[candidate]
                        if j >= m:
                            break
                    if (len(silent) and silent[start + j]) or not (in_top or r_of[j] < truncation):
                        continue
                    t = 0.0
                    if by_table:
                        t = row[j] + column[grade[j]]
                    elif kind in (LOSS2, LOSS2_PLUS):
                        t = delta[abs(r_of[i] - r_of[j])]
                    if kind == GIVEN:
                        w = given[given_ptr[q] + i * n + j]
                    else:
                        w = change(kind, lev[i], lev[j], own[i], own[j], a[i], a[j], b[i], b[j], t, mu, 0.0)
                    if len(now):
                        above = r_of[i] < r_of[j]
                        w = risk_change(
                            times * w, above, now[q], baseline[q], share[q], alpha, studentise, mean, square, len(now)
                        )  # fmt: skip
                    if drawn:
                        w *= m / sample
                    if len(label):
                        w *= max(label[start + i] - label[start + j], 0.0)
                    if len(better):
                        w *= better[x] * worse[start + by_label[start + j]]
                    gap = min(max(s[i] - s[j], -1e290), 1e290)  # the difference itself may be infinite
                    if gaps:
                        w /= 0.01 + abs(gap)
                    z = sigma * gap
                    if hinge:
                        wp = w if z < 1 else 0.0
                        wh, loss = wp, wp * max(1.0 - z, 0.0)
                    else:
                        small = math.exp(-abs(z))
                        wp = w * ((small if z > 0 else 1.0) / (1.0 + small))
                        wh = wp * ((1.0 if z > 0 else small) / (1.0 + small))
                        loss = w * (math.log1p(small) + max(-z, 0.0))
                    g[i] -= wp
                    h[i] += wh
                    g[j] += wp
                    h[j] += wh
                    total_g += wp
                    total_c += loss
                    if tracked:
                        better_cost[i] += loss
                        worse_cost[j] += loss

        if len(now):
            times = 1.0  # it is in the weights already
        total = 2 * sigma * times * total_g
        factor = times * (math.log2(1 + total) / total if log_norm and total > 0 else 1.0)
        cost[q] = factor * total_c
        if fast:
            if few:
                for t in range(n_top):
                    rows[top[t] + G * WIDTH] += tops[t + G * WIDTH]
                    rows[top[t] + H * WIDTH] += tops[t + H * WIDTH]
                    rows[top[t] + COST * WIDTH] += tops[t + COST * WIDTH]
            scale_g, scale_h = np.float32(sigma * factor), np.float32(sigma * sigma * factor)
            for i in range(n):
                x = start + by_label[start + i]
                grad[x], hess[x] = scale_g * rows[i + G * WIDTH], scale_h * rows[i + H * WIDTH]
                if tracked:
                    costs[1, x] = times * rows[i + COST * WIDTH]
        if not fast or sample:
            for i in range(n):
                x = start + by_label[start + i]
                grad[x] += sigma * factor * g[i]
                hess[x] += sigma * sigma * factor * h[i]
                if tracked:
                    costs[0, x] += times * better_cost[i]
                    costs[1, x] += times * worse_cost[i]
        if len(weights):
            for i in range(start, start + n):
                grad[i] *= weights[i]
                hess[i] *= weights[i]


def swap_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row, and the cost of each query; formulas in kernels.reference."""
    exact = grad.dtype == np.float64
    risk = pairs.risk
    mean = square = 0.0
    for now, baseline, share in zip(risk.now.tolist(), risk.baseline.tolist(), risk.share.tolist(), strict=True):
        u = utility(now, baseline, risk.alpha)
        mean += share * u
        square += share * u * u
    fixed = (
        longest(ptr), pairs.kind, pairs.by_label, pairs.level, pairs.discount, pairs.truncation, pairs.sigma,
        pairs.gap_norm, pairs.log_norm, pairs.ties, pairs.hinge, pairs.mu, pairs.sample, pairs.seed, pairs.round,
        pairs.scale, pairs.silent, pairs.label, pairs.better, pairs.worse, risk.now, risk.baseline, risk.share,
        risk.alpha, risk.studentised, mean, square, pairs.given, pairs.given_ptr, pairs.costs.reshape(2, -1),
        pairs.drawn, exact, scores, ptr, order, rank, weights, grad, hess, cost,
    )  # fmt: skip
    run_parts(lambda first, last: _swap_part(first, last, scratch(2 * LANES * WIDTH), *fixed), parts)
