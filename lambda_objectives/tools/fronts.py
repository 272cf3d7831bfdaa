"""Models that no other model beats, and how much they cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, require_finite, vector

Points = npt.NDArray[np.float64]


def front(points: Any, maximise: bool | Sequence[bool] = True) -> npt.NDArray[np.bool_]:
    """Which points no other point beats: none is as good in everything and better in something.

    Parameters
    ----------
    points
        (m, d) numbers, one point a row: the metrics of a model, say.
    maximise
        Whether more is better, for all columns or one for each.

    Returns
    -------
    (m,) bool. Equal points do not beat each other: all of them or none are in the front.

    Raises
    ------
    ValueError
        For points that are no finite (m, d) numbers, or another number of directions than columns.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.planning.front([[0.70, 0.50], [0.68, 0.60], [0.67, 0.55]]).tolist()
    [True, True, False]
    """
    up = _upwards(points, maximise)
    beaten = [bool(((up >= point).all(axis=1) & (up > point).any(axis=1)).any()) for point in up]
    return ~np.array(beaten, dtype=bool)


def hypervolume(points: Any, reference: Any, maximise: bool | Sequence[bool] = True) -> float:
    """The volume of all that some point beats and that beats the reference: one number for a whole front.

    Exact, by slices along one column after the other; a front of 100 models takes no time for d up to 3, a few seconds
    for d = 5.

    Parameters
    ----------
    points
        (m, d) numbers, one point a row. Points that do not beat the reference in every column add nothing.
    reference
        (d,) numbers: the baseline, or the worst that is worth having.
    maximise
        Whether more is better, for all columns or one for each.

    Returns
    -------
    float, 0 without points.

    Raises
    ------
    ValueError
        For points or a reference that are no finite numbers of d columns.

    References
    ----------
    While, Hingston, Barone and Huband (2006), "A faster algorithm for calculating hypervolume", section III: slicing.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.planning.hypervolume([[2.0, 1.0], [1.0, 3.0]], reference=[0.0, 0.0])  # 2 x 1 and 1 x 3, 1 x 1 in both
    4.0
    """
    up = _upwards(points, maximise)
    base = _upwards(vector("reference", reference)[None, :], maximise)
    if base.shape[1] != up.shape[1]:
        raise ValueError(f"reference: {up.shape[1]} numbers wanted, one for each column of points, found {reference!r}")
    sides = up - base
    return _volume(sides[(sides > 0).all(axis=1)])


def _upwards(points: Any, maximise: bool | Sequence[bool]) -> Points:
    """Points of which more is better in every column."""
    array: Points = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"points must be an (m, d) array, one point a row, found one of shape {array.shape}")
    require_finite("points", array.ravel())
    directions = np.asarray(maximise)
    if directions.dtype != bool or directions.shape not in ((), (array.shape[1],)):
        raise ValueError(
            f"maximise must be True or False, for all or for each of the {array.shape[1]} columns, found {maximise!r}"
        )
    return np.where(directions, array, -array)


def _volume(sides: Points) -> float:
    """Volume of the union of boxes from the origin to each row."""
    if len(sides) == 0:
        return 0.0
    if sides.shape[1] == 1:
        return float(sides.max())
    sides = sides[np.argsort(-sides[:, -1], kind="stable")]
    depth: Vector = sides[:, -1] - np.append(sides[1:, -1], 0.0)
    rest = sides[:, :-1]
    if rest.shape[1] == 1:
        return float(np.maximum.accumulate(rest[:, 0]) @ depth)
    volume, inside = 0.0, np.empty((0, rest.shape[1]))
    for row, d in zip(rest, depth, strict=True):  # every slice has the boxes that are at least so deep
        if not (inside >= row).all(axis=1).any():  # a box within another changes nothing
            inside = np.vstack([inside[~(inside <= row).all(axis=1)], row])
            area = _volume(inside)
        volume += area * float(d)
    return volume
