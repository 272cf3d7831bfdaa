"""From whatever users hold (lists, NumPy, pandas, polars, Arrow) to float64 vectors, with errors in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


def vector(name: str, values: Any, n: int | None = None, *, finite: bool = True) -> Vector:
    """Read a column of numbers.

    Parameters
    ----------
    name
        What the values are called in error messages.
    values
        Anything with one number a row; an (n, 1) array counts as n rows. Never changed.
    n
        Number of rows wanted, if known.
    finite
        Refuse NaN, missing values and infinities.

    Returns
    -------
    (n,) float64, contiguous. It may share memory with `values`: not to be written to.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            if array.dtype.kind != "O":
                raise TypeError(f"numbers wanted, found {array.dtype}")
            array = np.array([float(v) for v in array.ravel()]).reshape(array.shape)  # missing values, Decimals ...
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {error}") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one number a row, found an array of shape {array.shape}")
    array = np.ascontiguousarray(array)
    if n is not None and len(array) != n:
        raise ValueError(f"{name} has {len(array)} values, the data set has {n} rows")
    if finite:
        require_finite(name, array)
    return array


def require_finite(name: str, array: npt.NDArray[Any]) -> float:
    """Raise a ValueError that names the first row which is NaN or infinite; return the sum."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(array.sum())
    if np.isfinite(total):  # much quicker than looking at every entry, and true only if every entry is finite
        return total
    good = np.isfinite(array)
    if not good.all():
        row = int(np.argmin(good))
        count = len(good) - int(good.sum())
        raise ValueError(
            f"{name} must be finite: row {row} is {array[row]} ({count} of {len(good)} rows are not finite)"
        )
    return total


def sizes_to_ptr(group: Any, n: int) -> npt.NDArray[np.int64]:
    """Borders of the queries, (Q + 1,), from their sizes in the order of the rows."""
    sizes = vector("group", group)
    whole = sizes.astype(np.int64)
    if (whole != sizes).any() or (whole < 1).any():
        worst = int(np.argmax((whole != sizes) | (whole < 1)))
        raise ValueError(
            f"group must hold the sizes of the queries, whole numbers from 1: entry {worst} is {sizes[worst]:g}"
        )
    if whole.sum() != n:
        hint = "; to give one id a row use qid=" if len(sizes) == n else ""
        raise ValueError(
            f"group must add up to the number of rows: {whole.sum()} in {len(whole)} queries, {n} rows{hint}"
        )
    return np.concatenate([[0], np.cumsum(whole)])


def qid_to_ptr(qid: Any, n: int) -> npt.NDArray[np.int64]:
    """Borders of the queries, (Q + 1,), from one id a row; the rows of a query must lie together."""
    ids = np.asarray(qid)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.shape != (n,):
        raise ValueError(f"qid must be one id a row: shape {ids.shape}, {n} rows")
    if ids.dtype.kind == "f" and np.isnan(ids).any():
        raise ValueError(f"qid is missing in row {int(np.argmax(np.isnan(ids)))}")
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])) if n else np.empty(0, np.int64)
    seen: set[Any] = set()
    for start in starts.tolist():
        key = ids[start].item() if hasattr(ids[start], "item") else ids[start]
        if key in seen:
            raise ValueError(
                f"qid: the rows of query {key!r} do not lie together, row {start} begins a second block; "
                "sort the rows of everything first: order = numpy.argsort(qid, kind='stable')"
            )
        seen.add(key)
    return np.append(starts, n).astype(np.int64)


def group_or_qid(group: Any, qid: Any, n: int) -> npt.NDArray[np.int64] | None:
    """Borders of the queries from whichever of the two is given; None if neither is."""
    if group is not None and qid is not None:
        raise ValueError("give group= (sizes) or qid= (one id a row), not both")
    if group is not None:
        return sizes_to_ptr(group, n)
    return None if qid is None else qid_to_ptr(qid, n)


def whole_number(name: str, value: Any, *, at_least: int) -> int:
    """Check a whole number given as an argument."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < at_least:
        raise ValueError(f"{name} must be a whole number from {at_least}, found {value!r}")
    return int(value)
