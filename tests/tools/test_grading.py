"""Grades from a column: how many of its query's own percentiles a value exceeds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lambda_objectives as lo

grades = lo.datasets.grades


def plain(values, sizes, points):
    """The same by loops, percentiles interpolated between the sorted values."""
    out, end = [], 0
    for size in sizes:
        query = sorted(values[end : end + size])
        for value in values[end : end + size]:
            grade = 0
            for point in points:
                place = point / 100 * (size - 1)
                low, part = int(place), place - int(place)
                bound = query[low] + part * (query[min(low + 1, size - 1)] - query[low])
                grade += value > bound
            out.append(float(grade))
        end += size
    return out


@pytest.mark.parametrize("points", [(50, 75, 90, 97), (10,), (0, 100), (0.5, 99.5)])
@pytest.mark.parametrize("ties", [False, True])
def test_equals_the_plain_one(points, ties):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 40, 30)
    values = rng.normal(size=sizes.sum())
    if ties:
        values = np.round(values)
    found = grades(values, sizes, points)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, plain(values.tolist(), sizes.tolist(), points))


def test_default_points_give_grades_from_0_to_4():
    found = grades(np.arange(100.0), [100])
    np.testing.assert_array_equal(np.bincount(found.astype(int)), [50, 25, 15, 7, 3])


def test_queries_are_graded_each_by_its_own_values():
    values = np.arange(10.0)
    one = grades(values, [10], [50])
    np.testing.assert_array_equal(grades(np.concatenate([values, 1000 + 5 * values]), [10, 10], [50]), [*one, *one])


def test_equal_values_and_single_rows_have_grade_0():
    np.testing.assert_array_equal(grades([3, 3, 3, 7], [3, 1]), 0.0)


def test_grades_make_a_label():
    rng = np.random.default_rng(1)
    price = rng.normal(size=60)
    found = lo.evaluate(lo.LambdaRank(lo.NDCG(5), label="cheap"), -price, np.zeros(60), group=[20] * 3,
                        cheap=grades(-price, [20] * 3))  # fmt: skip
    assert found["cheap.ndcg@5"] == 1.0


@pytest.mark.parametrize("kind", [list, tuple, pd.Series, pl.Series, lambda v: v.astype(np.float32)])
def test_columns_of_any_kind(kind):
    values = np.arange(12.0)
    kept = values.copy()
    np.testing.assert_array_equal(grades(kind(values), [6, 6]), grades(values, [6, 6]))
    np.testing.assert_array_equal(values, kept)


@pytest.mark.parametrize(
    ("values", "group", "points", "words"),
    [
        ([1, 2], [2], [], "points must be rising percentiles from 0 to 100, found"),
        ([1, 2], [2], [50, 50], "points must be rising"),
        ([1, 2], [2], [90, 50], "points must be rising"),
        ([1, 2], [2], [-1, 50], "points must be rising percentiles from 0 to 100"),
        ([1, 2], [2], [50, 101], "points must be rising percentiles from 0 to 100"),
        ([1, 2], [2], 50, "points must be rising percentiles from 0 to 100, found 50"),
        ([1, 2], [2], [[50]], "points must be rising"),
        ([1, 2], [2], [50, np.nan], "points must be rising"),
        ([1, 2], [2], [np.nan], "points must be rising"),
        ([1, np.nan], [2], [50], "values must be finite: row 1 is nan"),
        ([1, 2, 3], [2], [50], "group must add up to the number of rows"),
        ([1, 2], None, [50], "group must be given: grades are those within a query"),
        (["a", "b"], [2], [50], "values cannot be read as numbers"),
    ],
)
def test_wrong_arguments_are_refused(values, group, points, words):
    with pytest.raises(ValueError, match=words):
        grades(values, group, points)
