"""Sorting within queries, whatever order it starts from."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from lambda_objectives.kernels import cpu, reference
from tests.strategies import ranked_data


def sorted_by(kernels, scores, ptr, order):
    order, rank = order.copy(), np.full(len(scores), -1, np.int32)
    kernels.rank(scores, ptr, order, rank, kernels.split(ptr, 1))
    return order, rank


def starts(ptr, rng):
    """Orders to start from: rows, reversed, shuffled."""
    rows = [np.arange(b - a) for a, b in itertools.pairwise(ptr)]
    for change in (lambda r: r, lambda r: r[::-1], rng.permutation):
        yield np.concatenate([change(r) for r in rows]).astype(np.int32)


@settings(max_examples=100, deadline=None)
@given(data=ranked_data(max_rows=80))
def test_cpu_equals_reference_from_any_start(data):
    scores, _, sizes = data
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    for start in starts(ptr, np.random.default_rng(0)):
        want = sorted_by(reference, scores, ptr, start)
        for a, b in zip(want, sorted_by(cpu, scores, ptr, start), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 33, 1000, 4097])
@pytest.mark.parametrize("kind", ["random", "ties", "ascending", "equal"])
def test_lengths_around_the_runs_of_the_merge_sort(n, kind):
    rng = np.random.default_rng(n)
    scores = {
        "random": rng.normal(size=n),
        "ties": rng.integers(0, 5, n).astype(float),
        "ascending": np.arange(n, dtype=float),
        "equal": np.zeros(n),
    }[kind]
    ptr = np.array([0, n])
    for start in starts(ptr, rng):
        order, rank = sorted_by(cpu, scores, ptr, start)
        np.testing.assert_array_equal(order, np.argsort(-scores, kind="stable"))
        np.testing.assert_array_equal(rank[order], np.arange(n))


def test_equal_scores_and_signed_zeros_keep_the_order_of_the_rows():
    scores, ptr = np.array([0.0, -0.0, 1.0, 1.0, 0.0]), np.array([0, 5])
    for start in starts(ptr, np.random.default_rng(0)):
        assert sorted_by(cpu, scores, ptr, start)[0].tolist() == [2, 3, 0, 1, 4]
