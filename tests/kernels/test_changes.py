"""What a swap changes: by table, and by evaluating the swapped list again, for every swap of every list."""

import itertools

import numpy as np
import pytest
from numba import njit

import lambda_objectives as lo
from lambda_objectives.kernels import cpu, reference
from lambda_objectives.kernels.changes import swap_changes
from lambda_objectives.metrics import values
from lambda_objectives.queries import Queries, Ranking

TOLERANCE = 1e-12
CUTOFFS = (None, 1, 2, 3)


# Definitions as plain loops over the labels in the order of the ranks; k is at most the length. Numba, since there are
# millions of swaps.
@njit
def dcg(y, k, exp2, log2):
    total = 0.0
    for r in range(k):
        total += (2.0 ** y[r] - 1 if exp2 else y[r]) / (np.log2(r + 2) if log2 else r + 1)
    return total


@njit
def average_precision(gain, k):
    total = 0.0
    for r in range(k):
        for q in range(r + 1):
            total += min(gain[q], gain[r]) / (r + 1)
    return total


@njit
def evaluate(which, y, k, ideal):
    """Metric number `which` of METRICS; ideal is the sum that a normalised one is divided by."""
    n = len(y)
    if which in (0, 1, 2):
        return dcg(y, k, which != 1, which != 1) / ideal if ideal > 0 else 1.0
    if which in (3, 4):
        hits, total = 0, 0.0
        for r in range(k):
            if y[r] > (which == 4):
                hits += 1
                total += hits / (r + 1)
        return total / ideal if ideal > 0 else 1.0
    if which == 5:
        return average_precision(2.0**y - 1, k) / ideal if ideal > 0 else 1.0
    if which in (6, 11):  # a first relevant row: where, or whether at all
        for r in range(k):
            if y[r] > 0:
                return 1.0 / (r + 1) if which == 6 else 1.0
        return 0.0
    if which in (7, 8):
        total, going = 0.0, 1.0
        for r in range(k):
            stop = (2.0 ** y[r] - 1) / (16 if which == 7 else 8)
            total += going * stop / (r + 1)
            going *= 1 - stop
        return total
    if which in (9, 10):
        return (y[:k] > 0).sum() / (k if which == 9 else max((y > 0).sum(), 1))
    if which in (12, 13):
        total, p = 0.0, 0.8 if which == 12 else 0.5
        for r in range(k):
            total += (1 - p) * p**r * ((y[r] > 0) * 1.0 if which == 12 else y[r] / 3)
        return total
    right = wrong = even = 0.0
    level = (y > 0) * 1.0 if which == 14 else (y > 1) * 1.0 if which == 15 else y
    for i in range(n):
        for j in range(i):
            right += level[j] > level[i]
            wrong += level[j] < level[i]
            even += level[j] == level[i]
    if which in (14, 15):
        return right / (right + wrong) if right + wrong > 0 else 1.0
    if right + wrong == 0:
        return 0.0
    if which == 16:
        return (right - wrong) / (n * (n - 1) / 2)
    if which == 17:
        return (right - wrong) / np.sqrt(n * (n - 1) / 2 * (right + wrong))
    xz = xx = zz = 0.0
    for i in range(n):
        z = -(n - 1) / 2.0  # centred rank of the label, from the worst; equal ones share the mean
        for j in range(n):
            z += 1.0 if y[j] < y[i] else 0.5 if y[j] == y[i] and j != i else 0.0
        x = (n - 1) / 2.0 - i
        xz, xx, zz = xz + x * z, xx + x * x, zz + z * z
    return xz / np.sqrt(xx * zz)


@njit
def worst_difference(which, y, k, matrix):
    """The largest difference over all swaps of what the matrix says and of evaluating again; and their number."""
    ideal = 1.0
    if which in (0, 1, 3, 4, 5):  # the sorted list has the largest sum
        ideal = evaluate(which, np.sort(y)[::-1].copy(), k, 1.0)
    now, worst, swaps = evaluate(which, y, k, ideal), 0.0, 0
    for i in range(len(y)):
        for j in range(i):
            swapped = y.copy()
            swapped[i], swapped[j] = y[j], y[i]
            worst = max(worst, abs(abs(evaluate(which, swapped, k, ideal) - now) - matrix[i, j]))
            swaps += 1
    return worst, swaps


METRICS = [  # in the order of `evaluate`; None at cut-offs that a metric does not have
    lo.NDCG,
    lambda k: lo.NDCG(k, gain="linear", discount="reciprocal"),
    lo.DCG,
    lo.MAP,
    lambda k: lo.MAP(k, threshold=1.0),
    lambda k: lo.MAP(k, gain="exp2"),
    lo.MRR,
    lo.ERR,
    lambda k: lo.ERR(k, max_grade=3),
    lambda k: k and lo.Precision(k),
    lambda k: k and lo.Recall(k),
    lambda k: k and lo.HitRate(k),
    lo.RBP,
    lambda k: lo.RBP(k, persistence=0.5, max_grade=3),
    lambda k: None if k else lo.AUC(),
    lambda k: None if k else lo.AUC(threshold=1.0),
    lambda k: None if k else lo.Kendall(),
    lambda k: None if k else lo.Kendall("b"),
    lambda k: None if k else lo.Spearman(),
]
NAMES = [repr(make(3) or make(None)) for make in METRICS]


def matrices(metric, lists):
    """What every swap changes by table, an n x n matrix for each list in the order of the ranks."""
    sizes = np.array([len(y) for y in lists])
    queries = Queries.from_arrays(np.concatenate(lists), group=sizes)
    scores = -np.arange(len(queries), dtype=float)
    ranking = Ranking(queries, cpu)
    ranking.update(scores, ranked=True)
    pairs = lo.LambdaRank(metric).prepare(queries, np.float64).pairs
    changes = swap_changes(pairs, scores, queries.ptr, ranking.order, ranking.rank)
    ends = np.cumsum(sizes**2)
    for q, (n, end) in enumerate(zip(sizes, ends, strict=True)):
        rows = pairs.by_label[queries.ptr[q] : queries.ptr[q + 1]]
        matrix = np.empty((n, n))
        matrix[np.ix_(rows, rows)] = changes[end - n * n : end].reshape(n, n)
        # [better, worse]: the other way round there is nothing
        yield np.maximum(matrix, matrix.T) * (pairs.scale[q] if len(pairs.scale) else 1.0)


def compare(which, k, lists):
    """Number of swaps compared, none of which may differ."""
    metric, compared = METRICS[which](k), 0
    if metric is None:
        return 0
    for y, matrix in zip(lists, matrices(metric, lists), strict=True):
        # Precision divides by k even for shorter lists
        length = len(y) if k is None else k if which == 9 else min(k, len(y))
        worst, swaps = worst_difference(which, y, length, matrix)
        assert worst <= TOLERANCE, (metric, y)
        compared += swaps
    return compared


@pytest.mark.parametrize("which", range(len(METRICS)), ids=NAMES)
def test_all_short_lists_of_four_grades(which):
    lists = [np.array(y, float) for n in range(2, 7) for y in itertools.product(range(4), repeat=n)]
    compared = sum(compare(which, k, lists) for k in CUTOFFS)
    print(f"{NAMES[which]}: {compared:,} swaps of {len(lists):,} lists")
    of_each = sum(4**n * n * (n - 1) // 2 for n in range(2, 7))
    assert compared == of_each * sum(METRICS[which](k) is not None for k in CUTOFFS)


@pytest.mark.slow
@pytest.mark.parametrize("which", range(len(METRICS)), ids=NAMES)
def test_ten_thousand_random_lists(which):
    rng = np.random.default_rng(which)
    lengths = (2 + 59 * rng.random(10_000) ** 3).astype(int)  # up to 60
    lists = [rng.integers(0, rng.integers(2, 5), n).astype(float) for n in lengths]
    if which in (7, 16, 17, 18):
        lists = [y + (rng.random() < 0.3) * rng.integers(0, 2, len(y)) for y in lists]  # more grades than four
    cutoffs = [k for k in (*CUTOFFS, 10, 30) if METRICS[which](k) is not None]
    compared = sum(compare(which, k, lists[i :: len(cutoffs)]) for i, k in enumerate(cutoffs))
    print(f"{NAMES[which]}: {compared:,} swaps of {len(lists):,} lists")
    assert compared == sum(len(y) * (len(y) - 1) // 2 for y in lists)


@pytest.mark.parametrize("which", [0, 1, 3, 5, 12, 16, 18], ids=lambda which: NAMES[which])
def test_real_labels(which):
    """As many classes as rows."""
    rng = np.random.default_rng(1)
    assert compare(which, None, list(rng.random((40, 17)) * 3)) == 40 * 17 * 16 // 2


def test_values_of_the_compiled_kernel_are_those_of_the_reference():
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 30, 300)
    for name, make in zip(NAMES, METRICS, strict=True):
        metric = make(None) or make(4)
        labels = np.minimum(rng.integers(0, 5, sizes.sum()), 3).astype(float)
        if any(word in name for word in ("exp2", "Kendall", "Spearman")):
            labels[: sizes[:100].sum()] += rng.random(sizes[:100].sum())  # more classes than are counted one by one
        queries = Queries.from_arrays(labels, group=sizes)
        tables = metric.tables(labels, queries.ptr)
        scores, got = np.round(rng.normal(size=len(labels)), 1), []
        for kernels in (reference, cpu):
            ranking = Ranking(queries, kernels, 3)
            ranking.update(scores, ranked=True)
            got.append(values(metric, tables, ranking))
        np.testing.assert_allclose(got[1], got[0], atol=1e-12, err_msg=name)
