"""From whatever users hold (lists, NumPy, pandas, polars, Arrow) to float64 vectors, with errors in plain words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
LONGEST = 240  # characters of a value in an error message


def brief(value: Any) -> str:
    """A value as error messages show it: a class by its name, arrays and tables by their shape, a long text cut."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if getattr(value, "shape", ()):  # NumPy's numbers have one too: ()
        return f"{type(value).__name__} of shape {value.shape}"
    text = repr(value)
    if " object at 0x" in text and text.startswith("<"):
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def nearest(word: str, known: Iterable[str]) -> str:
    """A question, in brackets, whether the known word most like this one is meant; nothing where none is like it."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def vector(name: str, values: Any, n: int | None = None, *, finite: bool = True, of: str = "row") -> Vector:
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
    of
        What there is one number of, in error messages.

    Returns
    -------
    (n,) float64, contiguous. It may share memory with `values`: not to be written to.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            if array.dtype.kind != "O":
                kind = "text" if array.dtype.kind in "SU" else array.dtype
                raise TypeError(f"found {kind}" + (f" such as {str(array.flat[0])[:40]!r}" if array.size else ""))
            array = np.array([float(v) for v in array.ravel()]).reshape(array.shape)  # missing values, Decimals ...
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be read as numbers: {error}; one number a {of} is wanted, of categories their codes: "
            "numpy.unique(values, return_inverse=True)[1]"
        ) from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one number a {of}, found an array of shape {array.shape}")
    array = np.ascontiguousarray(array)
    if n is not None and len(array) != n:
        raise ValueError(f"{name} has {len(array)} values, the data set has {n} rows: one value a {of} is wanted")
    if finite:
        require_finite(name, array)
    return array


def check_order(name: str, values: Any, others: str, rows: Any) -> None:
    """Refuse what pandas has in another order than other rows, by the labels of its index.

    Parameters
    ----------
    name, others
        What the values, and the other rows, are called in error messages.
    values, rows
        Anything; only an index of pandas in both is looked at. Of a mapping each of its values is.
    """
    if isinstance(values, Mapping):
        for key, each in values.items():
            check_order(f"{name} {key!r}", each, others, rows)
        return
    own: Any = getattr(values, "index", None)
    there: Any = getattr(rows, "index", None)
    if not hasattr(own, "equals") or not hasattr(there, "equals") or own.equals(there):
        return
    if own.isin(there).all() and there.isin(own).all():
        mine, theirs = own.tolist(), there.tolist()
        row = next((i for i, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), 0)
        raise ValueError(
            f"{name} has the rows of {others} in another order, by their index: row {row} is {mine[row]!r} in it and "
            f"{theirs[row]!r} in {others}; bring them into that order, values.loc[{others}.index], or if they are in "
            "order drop the index, values.to_numpy()"
        )


def require_finite(name: str, array: npt.NDArray[Any], advice: str = "fill them in, or leave these rows out") -> float:
    """Raise a ValueError that names the first row which is NaN or infinite, with advice; return the sum."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(array.sum())
    if np.isfinite(total):  # much quicker than looking at every entry, and true only if every entry is finite
        return total
    good = np.isfinite(array)
    if not good.all():
        row = int(np.argmin(good))
        count = len(good) - int(good.sum())
        raise ValueError(
            f"{name} must be finite: row {row} is {array[row]} ({count} of {len(good)} rows are not finite): {advice}"
        )
    return total


def sizes_to_ptr(group: Any, n: int) -> npt.NDArray[np.int64]:
    """Borders of the queries, (Q + 1,), from their sizes in the order of the rows."""
    sizes = vector("group", group, of="query")
    whole = sizes.astype(np.int64)
    hint = ""
    if len(sizes) == n:
        hint = "; to give one id a row use qid="
    elif len(sizes) and sizes[0] == 0 and sizes[-1] == n:
        hint = "; of borders take the differences, group=numpy.diff(borders)"
    if (whole != sizes).any() or (whole < 1).any():
        worst = int(np.argmax((whole != sizes) | (whole < 1)))
        raise ValueError(
            f"group must hold the sizes of the queries, whole numbers from 1: entry {worst} is {sizes[worst]:g}{hint}"
        )
    if whole.sum() != n:
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
        hint = "; to give the sizes of the queries use group=" if ids.ndim == 1 else ""
        raise ValueError(f"qid must be one id a row, found an array of shape {ids.shape} for {n} rows{hint}")
    missing = _missing(ids)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"qid is missing in row {row}, found {ids[row]!s}: give each row the id of its query")
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


def _missing(ids: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(n,) where there is no id: NaN, NaT, None or pandas' NA."""
    if ids.dtype.kind != "O":
        return np.asarray(ids != ids)
    if not {type(each).__name__ for each in ids} & {"NoneType", "NAType", "NaTType", "float", "float32", "float64"}:
        return np.zeros(len(ids), np.bool_)  # soon told, of many rows too
    return np.array([each is None or str(each) in ("nan", "NaT", "<NA>") for each in ids], np.bool_)


def group_or_qid(group: Any, qid: Any, n: int) -> npt.NDArray[np.int64] | None:
    """Borders of the queries from whichever of the two is given; None if neither is."""
    if group is not None and qid is not None:
        raise ValueError("give group= (sizes) or qid= (one id a row), not both: found both")
    if group is not None:
        return sizes_to_ptr(group, n)
    return None if qid is None else qid_to_ptr(qid, n)


def whole_number(name: str, value: Any, *, at_least: int) -> int:
    """Check a whole number given as an argument."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < at_least:
        raise ValueError(f"{name} must be a whole number from {at_least}, found {brief(value)}")
    return int(value)
