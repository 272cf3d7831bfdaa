"""What a metric tells the kernels of a data set, and what all metrics have in common."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, brief, check_order, vector, whole_number
from lambda_objectives.kernels import ADDITIVE, NONE
from lambda_objectives.queries import Queries, Ranking

Ints = npt.NDArray[np.int64]


class Tables(NamedTuple):
    """A metric on one data set: a gain of each row and a discount of each rank, and how they make a value.

    By default the value of a query is the sum over its ranks of ``gain * discount``; swapping the rows at ranks i and j
    changes it by ``|gain_i - gain_j| |discount_i - discount_j|``. The other kinds are in `lambda_objectives.kernels`.

    Attributes
    ----------
    gain
        (n,) by row. Of two rows of a query the one with the larger gain is the better one; with equal gains they make
        no pair.
    discount
        By rank from 0, at most as long as the longest query; it must not rise, and is 0 for ranks past its end.
    empty
        (Q,) queries in which no order is better than another, or none for (0,): their value is the metric's `empty`.
    kind
        How gains and discounts make a value.
    scale, offset
        (Q,) each, or (0,): the value is multiplied by the one, which must not be negative, then the other is added.
    grade
        (n,) int32, for the kinds PRECISION and CONCORDANCE: number of the row's gain among those of its query.
    ties
        Rows with equal scores: the mean over all their orders, rather than the order of the rows.

    Examples
    --------
    >>> import numpy as np, lambda_objectives as lo
    >>> class RightOnTop:  # a metric of one's own: the share of queries with a label 1 at the top
    ...     name, maximise = "right_on_top", True
    ...     def tables(self, labels, ptr):
    ...         return lo.Tables(gain=(labels == 1) * 1.0, discount=np.array([1.0]))
    >>> scores, labels, group = [3.0, 2, 1, 5, 4], [1, 0, 0, 0, 1], [3, 2]
    >>> lo.evaluate(lo.LambdaRank(RightOnTop()), scores, labels, group=group)["right_on_top"]
    0.5
    """

    gain: Vector
    discount: Vector
    empty: npt.NDArray[np.bool_] = np.empty(0, np.bool_)
    kind: int = ADDITIVE
    scale: Vector = NONE
    offset: Vector = NONE
    grade: npt.NDArray[np.int32] = np.empty(0, np.int32)
    ties: bool = False


def values(metric: Any, tables: Any, ranking: Ranking) -> Vector:
    """(Q,) value of each query at the scores of the ranking."""
    if hasattr(metric, "values"):
        own: Vector = metric.values(tables, ranking)
        return own
    return values_by_tables(metric, tables, ranking)


def values_by_tables(metric: Any, tables: Tables, ranking: Ranking) -> Vector:
    """(Q,) value of each query at the scores of the ranking."""
    assert ranking.ptr is not None
    out = np.empty(len(ranking.ptr) - 1)
    ranking.kernels.metric_values(
        tables.kind, tables.gain, tables.discount, tables.scale, tables.ties, ranking.scores, ranking.order,
        tables.grade, ranking.ptr, out, ranking.parts,
    )  # fmt: skip
    if len(tables.offset):
        out += tables.offset
    if len(tables.empty):
        out[tables.empty] = getattr(metric, "empty", 0.0)
    return out


def call(
    self: Any,
    scores: Any,
    labels: Any,
    *,
    group: Any = None,
    qid: Any = None,
    weights: Any = None,
    unjudged: bool = False,
) -> float:
    """Return the metric at given scores, as a weighted mean over the queries.

    Parameters
    ----------
    scores, labels
        (n,) numbers; the rows of a query must lie together.
    group, qid
        Sizes of the queries, or one id a row.
    weights
        One a row, or one a query.
    unjudged
        Labels may be NaN: such rows have a rank and are worth nothing.
    """
    from lambda_objectives.kernels import cpu

    if hasattr(labels, "get_label"):
        raise TypeError(
            f"labels: a metric takes arrays, found a {type(labels).__name__}: in a training write "
            f"objective = lambda_objectives.Objective(LambdaRank({self!r})) and for feval= (LightGBM) or "
            "custom_metric= (XGBoost) objective.metrics"
        )
    check_order("scores", scores, "labels", labels)
    queries = Queries.from_arrays(labels, group=group, qid=qid, weights=weights)
    tables = self.tables(queries.column(None, unjudged=unjudged), queries.borders)
    ranking = Ranking(queries, cpu)
    ranking.update(vector("scores", scores, len(queries)), ranked=True)
    return queries.mean_over_queries(values(self, tables, ranking))


def name_with_cutoff(metric: Any) -> str:
    """The name in histories: the class's, and @k if there is a cut-off."""
    k = getattr(metric, "k", None)
    return type(metric).__name__.lower() + ("" if k is None else f"@{k}")


def per_query(row_values: Vector, ptr: Ints) -> Vector:
    """Sum over each query, row after row, so that the sum of a query depends on nothing but its rows."""
    out = np.zeros(len(ptr) - 1)
    filled = np.diff(ptr) > 0
    if filled.any():
        out[filled] = np.add.reduceat(row_values, ptr[:-1][filled])
    return out


def query_of_rows(ptr: Ints) -> Ints:
    """(n,) number of the query of each row."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def longest_query(ptr: Ints) -> int:
    """Rows of the longest query."""
    return int(np.diff(ptr).max(initial=0))


def relevant(labels: Vector, threshold: float) -> Vector:
    """1.0 for labels above the threshold, 0.0 for others and for NaN."""
    return (labels > threshold).astype(np.float64)


def grades(gain: Vector, ptr: Ints) -> npt.NDArray[np.int32]:
    """(n,) number of each row's gain among the different ones of its query, from 0 upwards."""
    query = query_of_rows(ptr)
    order = np.lexsort((gain, query))
    new = np.ones(len(gain), bool)
    new[1:] = (np.diff(gain[order]) > 0) | (np.diff(query[order]) > 0)
    number = np.cumsum(new) - 1
    out = np.empty(len(gain), np.int32)
    out[order] = number - number[np.minimum(ptr[:-1], max(len(gain) - 1, 0))][query] if len(gain) else 0
    return out


def check_cutoff(k: Any, *, needed: bool = False) -> None:
    """Refuse a cut-off that is no whole number from 1."""
    if k is not None or needed:
        whole_number("k", k, at_least=1)


def check_number(name: str, value: Any, *, above: float | None = None) -> None:
    """Refuse what is no finite number, or not above a limit."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, found {brief(value)}")
    if above is not None and not value > above:
        raise ValueError(f"{name} must be above {above:g}, found {value!r}")


def check_ties(ties: Any) -> None:
    """Refuse what is no way to deal with equal scores."""
    if ties not in ("row", "mean"):
        raise ValueError(f"ties must be 'row' (equal scores rank by row) or 'mean' (over all orders), found {ties!r}")


def check_judged(metric: Any, labels: Vector) -> None:
    """Refuse rows without a judgement where a metric has no place for them."""
    if np.isnan(labels).any():
        row = int(np.argmax(np.isnan(labels)))
        raise ValueError(f"label: {metric!r} orders all rows by their labels, row {row} has none (NaN)")
