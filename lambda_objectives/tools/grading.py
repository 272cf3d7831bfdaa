"""Further labels from features: what a column of numbers says about the rows of a query, in grades."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lambda_objectives.arrays import Vector, group_or_qid, vector

POINTS = (50.0, 75.0, 90.0, 97.0)


def grades(values: Any, group: Any, points: Sequence[float] = POINTS) -> Vector:
    """Grade a column within each query: how many of the query's own percentiles a value exceeds.

    Parameters
    ----------
    values
        (n,) numbers, more is better.
    group
        Sizes of the queries.
    points
        Percentiles from 0 to 100, rising.

    Returns
    -------
    (n,) float64
        0 to the number of points. A query in which all values are equal has grade 0 throughout.

    Raises
    ------
    ValueError
        For points out of range, and data that do not fit.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.datasets.grades([1, 2, 3, 4, 7, 7], group=[4, 2], points=[50, 75]).tolist()
    [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]
    """
    levels = np.asarray(points, float)
    if (
        levels.ndim != 1
        or not len(levels)
        or not np.isfinite(levels).all()
        or (levels < 0).any()
        or (levels > 100).any()
        or (np.diff(levels) <= 0).any()
    ):
        raise ValueError(f"points must be rising percentiles from 0 to 100, found {points!r}")
    column = vector("values", values)
    ptr = group_or_qid(group, None, len(column))
    if ptr is None:
        raise ValueError("group must be given: grades are those within a query")
    out = np.zeros(len(column))
    for a, b in pairwise(ptr):
        if b > a:
            out[a:b] = (column[a:b, None] > np.percentile(column[a:b], levels)).sum(1)
    return out
