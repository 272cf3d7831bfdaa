"""Named columns that a user attaches to a booster's data set; they live on the data set object itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, brief, qid_to_ptr, vector
from lambda_objectives.terms import check_column

ATTRIBUTE = "_lambda_objectives_columns"
Ints = npt.NDArray[np.int64]


class Columns(dict[str, Vector]):
    """Columns by name, and the query borders if the user gave an id for each row. Weakly referable, unlike a dict."""

    ptr: Ints | None = None
    labels: npt.NDArray[np.float32] | None = None  # of the data set, to recognise parts of it by
    source: str | None = None  # what the data set is called in the training on a cluster that it belongs to

    def part(self, rows: Ints, own: Columns) -> Columns:
        """The columns of some of the rows, and what these rows have of their own."""
        both = Columns({name: values[rows] for name, values in self.items()} | own)
        both.ptr = own.ptr
        return both


def columns_of(data: Any) -> Columns:
    """Return the columns attached to a data set: its own, changeable."""
    if not hasattr(data, ATTRIBUTE):
        setattr(data, ATTRIBUTE, Columns())
    columns: Columns = getattr(data, ATTRIBUTE)
    return columns


def named_columns(columns: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Columns by name, from a mapping and from arguments."""
    if columns is not None and not isinstance(columns, Mapping):
        hint = ", of a table {name: table[name] for name in table.columns}" if hasattr(columns, "columns") else ""
        raise TypeError(f"columns must be a dict of values by name, {{'price': price}}, found {brief(columns)}{hint}")
    for name in {*(columns or {})} & {*named}:
        raise ValueError(f"column {name!r} is given twice: in columns= and as an argument; leave one of them out")
    return {**(columns or {}), **named}


def add_columns(data: Any, n: int | None, columns: Mapping[str, Any], qid: Any) -> Columns:
    """Read the columns, all of them before any is attached."""
    read = {}
    for name, values in columns.items():
        check_column("column", name)
        read[name] = vector(f"column {name!r}", values, n, finite=False)
    ptr = None if qid is None else qid_to_ptr(qid, len(qid) if n is None else n)
    attached = columns_of(data)
    attached.update(read)
    if ptr is not None:
        attached.ptr = ptr
    return attached


def borders_of_part(whole: Ints, rows: Ints, must_be_whole: bool, advice: str) -> Ints | None:
    """Borders of the queries that a fold takes from a data set; a fold that cuts a query is refused.

    None if the rows of the part are not in order, which only row losses can do with.
    """
    query = np.searchsorted(whole, rows, side="right") - 1
    taken = np.bincount(query, minlength=len(whole) - 1)
    cut = (taken > 0) & (taken < np.diff(whole))
    if must_be_whole and cut.any():
        raise ValueError(f"folds: {int(cut.sum())} of {len(cut)} queries are cut in two by this fold; {advice}")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(query) != 0])) if len(query) else np.empty(0, np.int64)
    if len(np.unique(query[starts])) < len(starts):
        return None
    return np.append(starts, len(query)).astype(np.int64)
