"""The weighted sum of what the terms have written."""

import numpy as np
import pytest

from lambda_objectives.kernels.sums import BLOCK, weighted_sum
from lambda_objectives.kernels.threads import SMALL


def plain(weights, parts):
    """The same, one row after the other."""
    terms, _, n = parts.shape
    return np.array([[sum(float(weights[k, i]) * float(parts[i, k, j]) for i in range(terms)) for j in range(n)]
                     for k in range(2)])  # fmt: skip


def drawn(n, terms, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, terms)).astype(dtype), rng.normal(size=(terms, 2, n)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 7])
def test_equals_the_plain_sum(n, terms, dtype):
    weights, parts = drawn(n, terms, dtype)
    total = np.full((2, n), np.nan, dtype)  # whatever was there before
    kept = weights.copy(), parts.copy()
    weighted_sum(weights, parts, total)
    np.testing.assert_allclose(total, plain(weights, parts), rtol=0, atol=1e-5 if dtype == np.float32 else 1e-14)
    np.testing.assert_array_equal(weights, kept[0])
    np.testing.assert_array_equal(parts, kept[1])


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_any_number_of_threads_gives_the_same(threads):
    n = 5 * SMALL + 13
    weights, parts = drawn(n, 3, np.float32)
    alone, shared = np.empty((2, n), np.float32), np.full((2, n), np.nan, np.float32)
    weighted_sum(weights, parts, alone, 1)
    weighted_sum(weights, parts, shared, threads)
    np.testing.assert_array_equal(shared, alone)


def test_gradient_and_hessian_have_weights_of_their_own():
    parts = np.ones((2, 2, 3))
    parts[1] *= 10
    total = np.empty((2, 3))
    weighted_sum(np.array([[1.0, 2.0], [0.5, 0.25]]), parts, total)
    np.testing.assert_array_equal(total, [[21.0] * 3, [3.0] * 3])


def test_a_weight_of_0_leaves_no_trace_of_a_further_term():
    """Not even of what is not finite: a multiplier of 0 must not spoil the primary."""
    parts = np.ones((2, 2, 3))
    parts[1] = np.inf
    total = np.empty((2, 3))
    weighted_sum(np.array([[1.0, 0.0], [1.0, 0.0]]), parts, total)
    np.testing.assert_array_equal(total, 1.0)
