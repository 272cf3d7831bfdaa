"""Metrics of a whole order: AUC, Kendall's tau, Spearman's rho."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.kernels import CONCORDANCE
from lambda_objectives.metrics.tables import (
    Ints,
    Tables,
    call,
    check_judged,
    check_number,
    check_ties,
    grades,
    longest_query,
    name_with_cutoff,
    per_query,
    query_of_rows,
    relevant,
    values_by_tables,
)


@dataclass(frozen=True)
class AUC:
    """Area under the ROC curve of each query: the share of its pairs of a relevant and another row in the right order.

    Parameters
    ----------
    threshold
        A row is relevant if its label is above this.
    empty
        Value of a query in which all rows are relevant, or none.
    ties
        Rows with equal scores: ``"row"`` ranks them in the order of the rows, ``"mean"`` counts half for a pair, as
        scikit-learn's `roc_auc_score` and both boosters do.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    A mean over the queries; with a single query, ``group=[n]``, the usual AUC of a classifier. XGBoost's `auc` of data
    with queries counts pairs of equal labels too, in the order of the rows, and leaves out queries of one or two rows.

    The value of a query of n rows takes n log n; as the metric of `LambdaRank` every pair of a relevant and another row
    is looked at, since the logistic function of a difference cannot be taken apart: 2.5 billion for 100,000 rows half
    of which are relevant, about two seconds. Give such a query `sample=`.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.AUC()([0.3, 0.2, 0.1], [1, 0, 1], group=[3])
    0.5
    """

    threshold: float = 0.0
    empty: float = 1.0
    ties: str = field(default="row", kw_only=True)

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold)
        check_number("empty", self.empty)
        check_ties(self.ties)

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return one over the number of pairs for relevant rows, and minus the rank."""
        gain = relevant(labels, self.threshold)
        size, good = np.diff(ptr).astype(float), per_query(gain, ptr)
        pairs = good * (size - good)
        empty = pairs <= 0
        pairs[empty] = np.inf
        offset = good * ((size - 1.0) - (good - 1.0) / 2.0) / pairs
        discount = -np.arange(longest_query(ptr), dtype=float)
        share = gain / pairs[query_of_rows(ptr)]
        return Tables(share, discount, empty, offset=offset, ties=self.ties == "mean")


@dataclass(frozen=True)
class Kendall:
    """Kendall's rank correlation of scores and labels in each query.

    ``tau = (pairs in the right order - pairs in the wrong order) / number of pairs``

    Parameters
    ----------
    tau
        ``"a"`` divides by the number of all pairs, so that with equal labels 1 is out of reach; ``"b"`` by the
        geometric mean of that and the number of pairs with different labels.
    empty
        Value of a query in which all labels are equal, or with a single row.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for rows without a judgement.

    Notes
    -----
    scipy's `kendalltau` is tau b, its `somersd` of scores and labels tau a; without equal labels both are the same.
    Rows with equal scores rank in the order of the rows, where scipy counts their pairs 0 and divides by less.

    References
    ----------
    Kendall (1938), "A new measure of rank correlation"; tau b: Kendall (1945), "The treatment of ties in ranking".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.Kendall()([0.3, 0.2, 0.1], [2, 0, 1], group=[3])
    0.333333...
    """

    tau: str = "a"
    empty: float = 0.0

    def __post_init__(self) -> None:
        if self.tau not in ("a", "b"):
            raise ValueError(f"tau must be 'a' or 'b', found {self.tau!r}")
        check_number("empty", self.empty)

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return the labels, and one over the number of pairs."""
        check_judged(self, labels)
        grade = grades(labels, ptr)
        size = np.diff(ptr).astype(float)
        pairs = size * (size - 1.0) / 2.0
        different = pairs - _equal_pairs(grade, ptr)
        empty = different <= 0
        scale = np.zeros(len(size))
        below = pairs if self.tau == "a" else np.sqrt(pairs * different)
        scale[~empty] = 1.0 / below[~empty]
        return Tables(grade.astype(float), np.zeros(longest_query(ptr)), empty, CONCORDANCE, scale=scale, grade=grade)


@dataclass(frozen=True)
class Spearman:
    """Spearman's rank correlation of scores and labels in each query: Pearson's of their ranks.

    Parameters
    ----------
    empty
        Value of a query in which all labels are equal, or with a single row.
    ties
        As for `DCG`.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for rows without a judgement.

    Notes
    -----
    Equal labels share the mean of their ranks. scipy's `spearmanr`, but for rows with equal scores: they rank in the
    order of the rows, or with ``ties="mean"`` share a rank, while the spread of the ranks is taken to be that of n
    different ones.

    References
    ----------
    Spearman (1904), "The proof and measurement of association between two things".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.Spearman()([0.3, 0.2, 0.1], [2, 0, 1], group=[3])
    0.5
    """

    empty: float = 0.0
    ties: str = field(default="row", kw_only=True)

    def __post_init__(self) -> None:
        check_number("empty", self.empty)
        check_ties(self.ties)

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return the centred rank of each label over the spread of both ranks, and minus the rank."""
        check_judged(self, labels)
        rank = _mean_ranks(labels, ptr)
        query, size = query_of_rows(ptr), np.diff(ptr).astype(float)
        centred = rank - (size[query] - 1.0) / 2.0
        spread = np.sqrt(per_query(centred * centred, ptr) * size * (size * size - 1.0) / 12.0)
        empty = spread <= 0
        gain = centred / np.where(empty, np.inf, spread)[query]
        return Tables(gain, -np.arange(longest_query(ptr), dtype=float), empty, ties=self.ties == "mean")


def _runs(labels: Vector, ptr: Ints) -> tuple[Ints, Ints, Ints]:
    """Rows by query and ascending label, and the first and the one past the last of the run of equals of each."""
    query = query_of_rows(ptr)
    order = np.lexsort((labels, query))
    new = np.ones(len(labels), bool)
    new[1:] = (np.diff(labels[order]) > 0) | (np.diff(query[order]) > 0)
    starts = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    ends = np.append(starts[1:], len(labels))
    return order, starts[run], ends[run]


def _mean_ranks(labels: Vector, ptr: Ints) -> Vector:
    """Rank of each label in its query from 0 upwards, equal labels sharing the mean."""
    order, first, last = _runs(labels, ptr)
    out = np.empty(len(labels))
    out[order] = (first + last - 1) / 2.0
    return out - ptr[query_of_rows(ptr)]


def _equal_pairs(grade: npt.NDArray[np.int32], ptr: Ints) -> Vector:
    """(Q,) number of pairs of rows with equal labels."""
    _, first, last = _runs(grade.astype(float), ptr)
    return per_query((last - first - 1) / 2.0, ptr)
