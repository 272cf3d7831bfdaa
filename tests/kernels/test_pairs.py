"""The compiled pair loop against the reference kernel, and both against swaps done one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from lambda_objectives.kernels import ADDITIVE, UNIT, Pairs, cpu, pairs, reference
from tests.oracles import all_lambdas, ndcg
from tests.strategies import ranked_data


def prepared(labels, sizes, kind, k, dtype, **options):
    """What a term would hand to the kernels for NDCG@k (ADDITIVE) or RankNet (UNIT)."""
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    query = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.lexsort((labels, query))
    longest = int(max(sizes))
    discount = 1 / np.log2(np.arange(longest) + 2.0)
    if k is not None:
        discount[k:] = 0
    gain = 2.0**labels - 1
    level = labels
    if kind == ADDITIVE:
        ideal = np.array([(-np.sort(-gain[a:b]) * discount[: b - a]).sum() for a, b in itertools.pairwise(ptr)])
        level = gain / np.where(ideal > 0, ideal, np.inf)[query]
    table = Pairs(
        kind=kind, by_label=(rows - ptr[query]).astype(np.int32), level=level[rows].astype(dtype),
        discount=discount.astype(dtype),
        **{"truncation": longest, "sigma": 1.0, "gap_norm": False, "log_norm": False} | options,
    )  # fmt: skip
    return ptr, table


def computed(kernels, scores, ptr, table, dtype, weights=None, threads=1):
    """Gradient, Hessian and costs by a kernel module."""
    n = len(scores)
    order = (np.arange(n) - np.repeat(ptr[:-1], np.diff(ptr))).astype(np.int32)
    rank, grad, hess = np.empty(n, np.int32), np.full(n, np.nan, dtype), np.full(n, np.nan, dtype)
    cost, parts = np.full(len(ptr) - 1, np.nan), kernels.split(ptr, threads)
    weights = np.empty(0, dtype) if weights is None else weights.astype(dtype)
    kernels.rank(scores, ptr, order, rank, parts)
    kernels.pair_gradients(table, scores, ptr, order, rank, weights, grad, hess, cost, parts)
    return grad, hess, cost


def assert_close(got, want, tolerance, slack=1e-300):
    """Every difference small against the largest value of its kind, for gradient, Hessian and cost."""
    for name, a, b in zip(("gradient", "Hessian", "cost"), got, want, strict=True):
        largest = np.abs(b).max(initial=0)
        difference = np.abs(a - b).max(initial=0)
        assert difference <= tolerance * largest + slack, f"{name}: off by {difference} of {largest}"


OPTIONS = [
    {},
    {"truncation": 3},
    {"truncation": 13},
    {"sigma": 2.5},
    {"sigma": 0.3, "truncation": 1},
    {"gap_norm": True},
    {"gap_norm": True, "log_norm": True, "truncation": 30},
    {"log_norm": True, "sigma": 1.7, "truncation": 4},
]


@pytest.mark.parametrize("kind", [ADDITIVE, UNIT])
@pytest.mark.parametrize("k", [None, 1, 5])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=30, deadline=None)
@given(data=ranked_data())
def test_cpu_equals_reference(kind, k, options, data):
    scores, labels, sizes = data
    # double precision: to rounding; single: 1 - p is known to 6e-8, so a cost that is nearly nothing is not
    for dtype, tolerance, slack in ((np.float64, 1e-11, 1e-300), (np.float32, 2e-5, 1e-6)):
        ptr, table = prepared(labels, sizes, kind, k, dtype, **options)
        exact = prepared(labels, sizes, kind, k, np.float64, **options)[1]
        want = computed(reference, scores, ptr, exact, np.float64)
        assert_close(computed(cpu, scores, ptr, table, dtype), want, tolerance, slack)


@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_reference_equals_swaps_on_all_short_lists(k):
    count = 0
    for n in (2, 3, 4):
        for labels in itertools.product(range(3), repeat=n):
            y, s = np.array(labels, float), np.linspace(1, 0, n)
            ptr, table = prepared(y, [n], ADDITIVE, k, np.float64)
            got = computed(reference, s, ptr, table, np.float64)
            want = all_lambdas(lambda ranked: ndcg(ranked, k), s, y, [n])
            assert_close(got, [np.array(want[0]), np.array(want[1]), np.array([want[2]])], 1e-12)
            count += 1
    assert count == 3**2 + 3**3 + 3**4


@settings(max_examples=60, deadline=None)
@given(data=ranked_data(max_queries=3, max_rows=12))
def test_reference_equals_swaps_on_random_lists(data):
    scores, labels, sizes = data
    for k, options in ((None, {}), (4, {"truncation": 2, "sigma": 2.0}), (3, {"gap_norm": True, "log_norm": True})):
        ptr, table = prepared(labels, sizes, ADDITIVE, k, np.float64, **options)
        grad, hess, cost = computed(reference, scores, ptr, table, np.float64)
        want = all_lambdas(lambda ranked, k=k: ndcg(ranked, k), scores, labels, sizes, **options)
        assert_close((grad, hess, np.array([cost.mean()])), [np.array(w) for w in (*want[:2], [want[2]])], 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.0, 30.0, 79.0, 81.0, 1e4, 1e308])
def test_scores_far_apart_keep_the_sign_of_each_pair(dtype, scale):
    scores, labels = np.array([1.0, -1.0]) * scale, np.array([0.0, 1.0])  # the relevant row is last, or tied
    ptr, table = prepared(labels, [2], ADDITIVE, None, dtype)
    grad, hess, cost = computed(cpu, scores, ptr, table, dtype)
    weight = 1 - 1 / np.log2(3)
    slope = 0.5 if scale == 0 else 1.0
    np.testing.assert_allclose(grad, [slope * weight, -slope * weight], rtol=1e-6)
    assert np.isfinite(hess).all()
    assert (hess >= 0).all()
    np.testing.assert_allclose(cost, [weight * (np.log(2) if scale == 0 else min(2 * scale, 1e290))], rtol=1e-6)
    grad, hess, cost = computed(cpu, -scores, ptr, table, dtype)  # in order: nothing left to push, nothing below 0
    assert grad[1] <= 0 <= grad[0] <= 0.5 * weight
    assert 0 <= cost[0] <= weight * np.log(2) * (1 + 1e-6)


@pytest.mark.parametrize("truncation", [5, 1000])
def test_any_number_of_threads_gives_the_same_bits(truncation):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 200, 400)
    n = sizes.sum()
    scores, labels = rng.normal(size=n), rng.integers(0, 5, n).astype(float)
    ptr, table = prepared(labels, sizes, ADDITIVE, None, np.float32, truncation=truncation)
    assert len(cpu.split(ptr, 2)) > 3  # really more than one part
    one = computed(cpu, scores, ptr, table, np.float32)
    for threads in (2, 3, 7):
        for a, b in zip(one, computed(cpu, scores, ptr, table, np.float32, threads=threads), strict=True):
            assert a.tobytes() == b.tobytes()


def test_a_query_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=60), rng.integers(0, 4, 60).astype(float)
    ptr, table = prepared(labels, [20, 20, 20], ADDITIVE, None, np.float32)
    together = computed(cpu, scores, ptr, table, np.float32)
    for q in range(3):
        rows = slice(20 * q, 20 * q + 20)
        ptr, table = prepared(labels[rows], [20], ADDITIVE, None, np.float32)
        alone = computed(cpu, scores[rows], ptr, table, np.float32)
        assert alone[0].tobytes() == together[0][rows].tobytes()
        assert alone[2][0] == together[2][q]


def test_weights_multiply_rows_after_the_pairs_are_summed():
    rng = np.random.default_rng(2)
    scores, labels, weights = rng.normal(size=30), rng.integers(0, 3, 30).astype(float), rng.random(30)
    for dtype in (np.float32, np.float64):
        ptr, table = prepared(labels, [12, 18], ADDITIVE, None, dtype)
        plain = computed(cpu, scores, ptr, table, dtype)
        weighted = computed(cpu, scores, ptr, table, dtype, weights)
        for a, b in zip(plain[:2], weighted[:2], strict=True):
            np.testing.assert_allclose(b, a * weights, rtol=1e-6)
        np.testing.assert_array_equal(plain[2], weighted[2])


@pytest.mark.parametrize("truncation", [10**6, 40])
def test_queries_too_long_for_the_fast_path(truncation):
    rng = np.random.default_rng(4)
    n = pairs.LONGEST + 1000
    scores, labels = rng.normal(size=n), np.zeros(n)
    labels[rng.integers(0, n, 5)] = [1, 2, 3, 1, 2]
    results = []
    for dtype in (np.float32, np.float64):
        ptr, table = prepared(labels, [n], ADDITIVE, None, dtype, truncation=truncation)
        results.append(computed(cpu, scores, ptr, table, dtype))
    assert_close(*results, 2e-5)


def test_gradients_of_a_query_add_up_to_nothing():
    rng = np.random.default_rng(3)
    scores, labels = rng.normal(size=500), rng.integers(0, 5, 500).astype(float)
    ptr, table = prepared(labels, [500], ADDITIVE, 10, np.float32, truncation=30)
    grad, hess, _ = computed(cpu, scores, ptr, table, np.float32)
    assert abs(grad.sum(dtype=float)) < 1e-5 * np.abs(grad).sum()
    assert (hess >= 0).all()
    assert hess.max() > 0


def test_single_precision_exponential_and_logarithm():
    x = np.linspace(-87, 87, 20001).astype(np.float32)
    got = np.array([pairs._exp(v) for v in x], float)
    assert np.abs(got / np.exp(x.astype(float)) - 1).max() < 4e-6
    t = np.geomspace(2e-38, 3e38, 20001).astype(np.float32)
    got = np.array([pairs._log(v) for v in t], float)
    want = np.log(t.astype(float))
    assert (np.abs(got - want) / np.maximum(1, np.abs(want))).max() < 4e-7
