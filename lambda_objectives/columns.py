"""Named columns that a user attaches to a booster's data set; they live on the data set object itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, qid_to_ptr, vector
from lambda_objectives.terms import check_column

ATTRIBUTE = "_lambda_objectives_columns"


class Columns(dict[str, Vector]):
    """Columns by name, and the query borders if the user gave an id for each row. Weakly referable, unlike a dict."""

    ptr: npt.NDArray[np.int64] | None = None

    def take(self, rows: npt.NDArray[np.int64]) -> Columns:
        """The same columns for some of the rows."""
        return Columns({name: values[rows] for name, values in self.items()})


def columns_of(data: Any) -> Columns:
    """Return the columns attached to a data set: its own, changeable."""
    if not hasattr(data, ATTRIBUTE):
        setattr(data, ATTRIBUTE, Columns())
    columns: Columns = getattr(data, ATTRIBUTE)
    return columns


def add_columns(data: Any, n: int | None, columns: Mapping[str, Any], qid: Any) -> Columns:
    """Read the columns, all of them before any is attached."""
    read = {}
    for name, values in columns.items():
        check_column("column", name)
        read[name] = vector(f"column {name!r}", values, n, finite=False)
    attached = columns_of(data)
    if qid is not None:
        attached.ptr = qid_to_ptr(qid, len(qid) if n is None else n)
    attached.update(read)
    return attached
