"""What estimators are given: data frames or arrays, further columns, queries by id or by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, group_or_qid, vector
from lambda_objectives.terms import check_column

QID = "qid"  # a column of a data frame with this name holds query ids, as XGBRanker has it


@dataclass(frozen=True, eq=False)
class Rows:
    """A data set as the boosters' data sets are made of.

    Attributes
    ----------
    X
        The features, as the booster takes them.
    y
        (n,) labels.
    group
        (Q,) sizes of the queries, or None.
    weights
        (n,) of the rows, or None.
    columns
        Further labels and controls, (n,) each.
    """

    X: Any
    y: Vector
    group: npt.NDArray[np.int64] | None = None
    weights: Vector | None = None
    columns: Mapping[str, Vector] = field(default_factory=dict)


def column_names(table: Any) -> list[Any] | None:
    """Names of the columns of a data frame (pandas, polars, Arrow); None for arrays and sparse matrices."""
    names = getattr(table, "column_names", None)  # Arrow
    if names is None:
        names = getattr(table, "columns", None)
    return None if names is None or isinstance(table, Mapping) else list(names)


def without(X: Any, names: Sequence[Any]) -> Any:
    """A data frame without those of the named columns that it has; anything else as it is."""
    there = column_names(X)
    if there is None or not set(names) & set(there):
        return X
    kept = [name for name in there if name not in set(names)]
    return X.select(kept) if hasattr(X, "column_names") else X[kept]


def taken_out(columns: Any) -> tuple[str, ...] | None:
    """The names, where columns are named that lie in X; None for columns that are given by their values."""
    if isinstance(columns, str):
        return (columns,)
    if isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns):
        return tuple(columns)
    return None


def read_columns(columns: Any, X: Any, n: int, what: str = "columns") -> dict[str, Vector]:
    """Columns by name, from a mapping, from a data frame, or from X itself where only names are given."""
    names = taken_out(columns)
    if columns is None or names == ():
        return {}
    if names is not None:
        there = column_names(X)
        if there is None:
            raise ValueError(
                f"{what}: names of columns, {', '.join(map(repr, names))}, want a data frame for X, found "
                f"{type(X).__name__}; give their values, {what}={{{names[0]!r}: values}}"
            )
        for name in names:
            if name not in there:
                raise ValueError(f"{what}: X has no column {name!r}, there are {', '.join(map(repr, there))}")
        pairs = [(name, X[name]) for name in names]
    elif isinstance(columns, Mapping):
        pairs = list(columns.items())
    elif (there := column_names(columns)) is not None:
        pairs = [(name, columns[name]) for name in there]
    else:
        raise TypeError(
            f"{what} must be a mapping from names to values, a data frame, or names of columns of X, found "
            f"{type(columns).__name__}"
        )
    read = {}
    for name, values in pairs:
        check_column(what, name)
        read[name] = vector(f"{what}: {name!r}", values, finite=False)
        if len(read[name]) != n:
            raise ValueError(
                f"{what}: {name!r} has {len(read[name])} values, X has {n} rows; in a cross-validation of scikit-learn "
                "give a data frame, of which it takes the rows of each fold, or names of columns of X"
            )
    return read


def where_to_say(name: str, X: Any, train: Rows, valid: Sequence[Rows]) -> str:
    """How `fit` is given a column that the objective wants, and no data set has, or one of eval_set has not."""
    for i, rows in enumerate(valid):
        if name in train.columns and name not in rows.columns:
            return (
                f"eval_columns: the objective wants {name!r}, which eval_set[{i}] has not; say it for each entry of "
                f"eval_set, eval_columns=[{{{name!r}: values}}]"
            )
    there = ", ".join(map(repr, train.columns)) or "none"
    own = f", or columns=[{name!r}], a column of X, which is no feature then" if name in (column_names(X) or ()) else ""
    return f"columns: the objective wants {name!r}, found {there}; say columns={{{name!r}: values}} in fit{own}"


def read_queries(X: Any, group: Any, qid: Any, n: int) -> npt.NDArray[np.int64] | None:
    """Sizes of the queries, from their sizes, from one id a row, or from the column "qid" of a data frame."""
    if QID in (column_names(X) or ()):
        if group is not None or qid is not None:
            raise ValueError(
                f"{'qid' if group is None else 'group'}: X has a column {QID!r} of query ids as well; give one of them"
            )
        qid = np.asarray(X[QID])
    ptr = group_or_qid(group, qid, n)
    return None if ptr is None else np.diff(ptr)


def read_weights(weights: Any, group: npt.NDArray[np.int64] | None, n: int) -> Vector | None:
    """Weights of the rows, from one a row or one a query."""
    if weights is None:
        return None
    if isinstance(weights, Mapping) or column_names(weights) is not None:
        raise TypeError(
            f"sample_weight must be one number a row, found a {type(weights).__name__}: further labels and controls "
            "are columns=, fit(X, y, columns={'sex': sex})"
        )
    weights = np.asarray(weights)
    if weights.ndim > 1:
        raise ValueError(f"sample_weight: a 1D array wanted, one number a row, found one of {weights.ndim} dimensions")
    read = vector("sample_weight", weights)
    if group is not None and len(read) == len(group) != n:
        read = np.repeat(read, group)
    if len(read) != n:
        queries = "" if group is None else f" in {len(group)} queries"
        raise ValueError(f"sample_weight has {len(read)} values, X has {n} rows{queries}")
    if (read < 0).any():
        row = int(np.argmax(read < 0))
        raise ValueError(f"sample_weight must not be negative: row {row} is {read[row]:g}")
    if n and not read.any():
        raise ValueError("sample_weight is zero in every row: nothing is left to learn from")
    return read


def weights_of_queries(rows: Rows) -> Vector | None:
    """(Q,) weights, where the rows of each query have the same; None where they have not."""
    if rows.weights is None or rows.group is None:
        return None
    ends = np.concatenate([[0], np.cumsum(rows.group)])
    same = all((rows.weights[a:b] == rows.weights[a]).all() for a, b in pairwise(ends.tolist()))
    return rows.weights[ends[:-1]] if same else None
