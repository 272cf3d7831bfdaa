"""Counting lower scores, and the slopes in groups so large that they are cut into pieces and blocks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lambda_objectives.kernels import controls
from lambda_objectives.kernels.dependence import BLOCK_BITS, dependence_slopes
from lambda_objectives.kernels.ordering import LARGE, PIECE, below

ONE = np.ones(1)


def counted(scores, members, ptr, threads=1):
    out = np.full(len(scores), -1, np.int32)
    below(scores, members.astype(np.int32), np.asarray(ptr, np.int64), out, threads)
    return out


def lower(scores, members, ptr):
    """The same by a plain sort of each group."""
    out = np.empty(len(scores), np.int64)
    for a, b in pairwise(ptr):
        s = scores[members[a:b]]
        out[members[a:b]] = np.searchsorted(np.sort(s), s)
    return out


def drawn(kind, n, rng):
    normal = rng.normal(size=n)
    return {
        "normal": normal, "ties": np.round(normal, 1), "flat": np.full(n, 3.0), "two": 1.0 * (normal > 0),
        "far": np.where(np.arange(n) == n // 2, 1e300, normal), "both ends": 1.7e308 * np.sign(normal),
        "heavy": rng.standard_cauchy(n) ** 5, "tiny": 5e-324 * rng.integers(0, 9, n), "sorted": np.sort(normal),
        "reversed": -np.sort(normal), "zeros": rng.choice([0.0, -0.0], n), "offset": 1e9 + np.round(normal, 3),
    }[kind]  # fmt: skip


KINDS = ["normal", "ties", "flat", "two", "far", "both ends", "heavy", "tiny", "sorted", "reversed", "zeros", "offset"]


@pytest.mark.parametrize("kind", KINDS)
def test_lower_scores_are_counted(kind):
    rng = np.random.default_rng(0)
    for sizes in ([1], [2, 0, 5, 1], [300, 40, 7], [LARGE - 1, 3, LARGE], [PIECE + 5, 2, 3 * LARGE]):
        n, ptr = sum(sizes), np.concatenate([[0], np.cumsum(sizes)])
        scores, members = drawn(kind, n, rng), rng.permutation(n)
        wanted = lower(scores, members, ptr)
        for threads in (1, 2, 5):
            np.testing.assert_array_equal(counted(scores, members, ptr, threads), wanted)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=60))
def test_lower_scores_of_any_kind(values):
    scores, members, ptr = np.array(values), np.arange(len(values)), [0, len(values)]
    np.testing.assert_array_equal(counted(scores, members, ptr), lower(scores, members, ptr))


def one_group(control, weights=ONE):
    n = len(control)
    rows = np.argsort(control, kind="stable").astype(np.int32)
    return controls.laid_out(rows, np.array([0, n]), control[rows], weights, np.ones(1), False)


def slopes_of(control, scores, threads=1):
    out = np.full(len(scores), np.nan)
    counts = np.empty(len(scores), np.int32)
    below(scores, np.arange(len(scores), dtype=np.int32), control.ptr, counts, threads)
    dependence_slopes(control, counts, out, threads)
    return out


def some_slopes(some, x, y, w):
    """The definition, for some of the rows: O(n) each, but for the sums of all distances."""
    n = len(x)
    order = np.argsort(y)
    v, u = y[order], w[order]
    sums = np.empty(n)
    sums[order] = v * (2 * np.cumsum(u) - u - u.sum()) - (2 * np.cumsum(u * v) - u * v - u @ v)
    if np.ptp(w) == 0:
        d2, d3, d4 = n * (n - 1), n * (n - 1.0) * (n - 2), n * (n - 1.0) * (n - 2) * (n - 3)
    else:
        e1, e2, e3, e4 = np.sum(w), 0, 0, 0
        p = [np.sum(w**k) for k in range(1, 5)]
        e2 = (e1 * p[0] - p[1]) / 2
        e3 = (e2 * p[0] - e1 * p[1] + p[2]) / 3
        e4 = (e3 * p[0] - e2 * p[1] + e1 * p[2] - p[3]) / 4
        d2, d3, d4 = 2 * e2, 6 * e3, 24 * e4
    r, total = sums * (2 / d3 + 4 * w / d4), w @ sums
    out = []
    for i in some:
        b, sign = abs(y[i] - y), np.sign(x[i] - x)
        inner = b * (1 / d2 + (w[i] + w) / d3 + 2 * w[i] * w / d4) - (r[i] + r) / 2 + total / d4
        out.append(2 * w[i] * np.sum(sign * w * inner))
    return np.array(out)


@pytest.mark.parametrize("n", [LARGE - 1, LARGE, LARGE + (1 << BLOCK_BITS) + 1, 2 * PIECE + 321])
@pytest.mark.parametrize("kind", ["normal", "ties", "half tied", "flat"])
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_in_large_groups(n, kind, weighted):
    rng = np.random.default_rng(n)
    control = rng.normal(size=n)
    if kind == "half tied":
        control = np.round(control, 1)
        scores = np.where(rng.random(n) < 0.5, 0.25, control + rng.normal(size=n))
    else:
        scores = drawn(kind, n, rng) + (0.5 * control if kind == "normal" else 0.0)
    weights = rng.exponential(size=n) * (rng.random(n) < 0.9) if weighted else ONE
    side = one_group(control, weights)
    found = slopes_of(side, scores)
    some = rng.integers(0, n, 60)
    wanted = some_slopes(some, scores, control, weights * np.ones(n))
    np.testing.assert_allclose(n * found[some], n * wanted, atol=1e-11)
    assert abs(found.sum()) < 1e-11
    for threads in (2, 3):
        np.testing.assert_array_equal(slopes_of(side, scores, threads), found)


def test_a_large_group_does_not_depend_on_the_order_of_its_rows():
    rng = np.random.default_rng(3)
    n = 30_000
    control = rng.normal(size=n)
    scores = np.round(control + rng.normal(size=n), 2)
    order = rng.permutation(n)
    np.testing.assert_allclose(
        n * slopes_of(one_group(control[order]), scores[order]), n * slopes_of(one_group(control), scores)[order],
        atol=1e-12,
    )  # fmt: skip


def test_what_is_left_out_gets_no_slope():
    rng = np.random.default_rng(4)
    sizes = np.array([LARGE + 10, 50, LARGE, 30])
    ptr, n = np.concatenate([[0], np.cumsum(sizes)]), sizes.sum()
    control, scores, members = rng.normal(size=n), rng.normal(size=n), np.arange(n, dtype=np.int32)
    rows = np.lexsort((control, np.repeat(np.arange(4), sizes))).astype(np.int32)
    side = controls.laid_out(rows, ptr, control[rows], ONE, np.array([0.0, 0.0, 1.0, 2.0]), False)
    out, counts = np.full(n, np.nan), np.empty(n, np.int32)
    below(scores, members, ptr, counts)
    dependence_slopes(side, counts, out)
    assert not out[: ptr[2]].any()
    for a, b, factor in ((ptr[2], ptr[3], 1.0), (ptr[3], ptr[4], 2.0)):
        np.testing.assert_allclose(out[a:b], factor * slopes_of(one_group(control[a:b]), scores[a:b]), atol=1e-16)
