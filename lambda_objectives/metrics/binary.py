"""Metrics of rows that are relevant or not, by a threshold on the label: MAP, MRR, Precision, Recall, HitRate, RBP."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lambda_objectives.arrays import Vector
from lambda_objectives.kernels import FIRST, PRECISION
from lambda_objectives.metrics.gains import Gain, checked_gain, gains
from lambda_objectives.metrics.tables import (
    Ints,
    Tables,
    call,
    check_cutoff,
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
class MAP:
    """Mean average precision: of the relevant rows, the share of relevant rows among those down to theirs.

    ``AP@k = sum over the relevant rows at ranks r < k of (relevant rows down to r) / (r + 1), over min(R, k)``, R being
    the number of relevant rows of the query. Graded, by gains::

        sum over ranks r < k of  sum over ranks q <= r of min(gain_q, gain_r) / (r + 1),  over its largest value

    Parameters
    ----------
    k
        Cut-off; None for the whole list.
    threshold
        A row is relevant if its label is above this.
    gain
        None: relevant or not. Else graded average precision with ``"linear"``, ``"exp2"``, a table or a function, as
        for `DCG`; labels must not be negative then.
    empty
        Value of a query without a relevant row. 1.0, as in both boosters.

    Raises
    ------
    ValueError
        For a parameter out of range, or a threshold beside a gain.

    Notes
    -----
    LightGBM's and XGBoost's `map@k`. scikit-learn's `average_precision_score` and trec_eval's `map` are ``MAP()``, for
    queries with a relevant row and without equal scores; trec_eval's `map_cut` and ranx's `map@k` divide by R alone.
    Rows with equal scores rank in the order of the rows; `YetiRank` averages over orders.

    References
    ----------
    Graded: Robertson, Kanoulas and Yilmaz (2010), "Extending average precision to graded relevance judgments", eq. 10.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.MAP()([0.3, 0.2, 0.1], [0, 1, 1], group=[3])  # (1/2 + 2/3) / 2
    0.583333...
    """

    k: int | None = None
    threshold: float = 0.0
    gain: Gain | None = None
    empty: float = 1.0

    def __post_init__(self) -> None:
        check_cutoff(self.k)
        check_number("threshold", self.threshold)
        check_number("empty", self.empty)
        if self.gain is not None:
            if self.threshold != 0:
                raise ValueError("threshold has no effect beside a gain: leave one of them out")
            object.__setattr__(self, "gain", checked_gain(self.gain))

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return the gain of each row over the largest value of its query, and 1 / (rank + 1)."""
        gain = relevant(labels, self.threshold) if self.gain is None else gains(self, self.gain, labels)
        query = query_of_rows(ptr)
        best = gain[np.lexsort((-gain, query))]
        within = np.arange(len(gain)) - ptr[query] < (self.k or len(gain))
        ideal = per_query(best * within, ptr)
        empty = ideal <= 0
        return Tables(
            gain / np.where(empty, np.inf, ideal)[query], reciprocal_ranks(self.k, ptr), empty, PRECISION,
            grade=grades(gain, ptr),
        )  # fmt: skip


@dataclass(frozen=True)
class MRR:
    """Mean reciprocal rank: 1 / (rank of the first relevant row, counted from 1), 0 if it is not among the first k.

    Parameters
    ----------
    k
        Cut-off; None for the whole list.
    threshold
        A row is relevant if its label is above this.
    empty
        Value of a query without a relevant row. 0.0, as in trec_eval and ranx.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    Rows with equal scores rank in the order of the rows.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.MRR()([0.3, 0.2, 0.1], [0, 1, 1], group=[3])
    0.5
    """

    k: int | None = None
    threshold: float = 0.0
    empty: float = 0.0

    def __post_init__(self) -> None:
        check_cutoff(self.k)
        check_number("threshold", self.threshold)
        check_number("empty", self.empty)

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return which rows are relevant, and 1 / (rank + 1)."""
        gain = relevant(labels, self.threshold)
        return Tables(gain, reciprocal_ranks(self.k, ptr), per_query(gain, ptr) <= 0, FIRST)


@dataclass(frozen=True)
class HitRate:
    """Share of the queries with a relevant row among the first k.

    Parameters
    ----------
    k
        Cut-off.
    threshold
        A row is relevant if its label is above this.
    empty
        Value of a query without a relevant row.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    trec_eval's `success` and ranx's `hit_rate`. Rows with equal scores rank in the order of the rows. Only the swaps
    that bring the first relevant row across the cut-off change it, so that alone it teaches a model little: combine it
    with another term.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.HitRate(1)([0.3, 0.2, 0.1, 0.9], [0, 1, 1, 1], group=[3, 1])
    0.5
    """

    k: int
    threshold: float = 0.0
    empty: float = 0.0

    def __post_init__(self) -> None:
        check_cutoff(self.k, needed=True)
        check_number("threshold", self.threshold)
        check_number("empty", self.empty)

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return which rows are relevant, and a 1 for each of the first k ranks."""
        gain = relevant(labels, self.threshold)
        return Tables(gain, first_ranks(self.k, ptr), per_query(gain, ptr) <= 0, FIRST)


@dataclass(frozen=True)
class Precision:
    """Share of relevant rows among the first k, over k even for shorter lists.

    Parameters
    ----------
    k
        Cut-off.
    threshold
        A row is relevant if its label is above this.
    ties
        As for `DCG`.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    trec_eval's `P`. XGBoost's `pre@k` divides shorter lists by their length. A query without a relevant row is worth 0.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.Precision(2)([0.3, 0.2, 0.1], [0, 1, 1], group=[3])
    0.5
    """

    k: int
    threshold: float = 0.0
    ties: str = field(default="row", kw_only=True)

    def __post_init__(self) -> None:
        check_cutoff(self.k, needed=True)
        check_number("threshold", self.threshold)
        check_ties(self.ties)

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return 1 / k for relevant rows, and a 1 for each of the first k ranks."""
        return Tables(relevant(labels, self.threshold) / self.k, first_ranks(self.k, ptr), ties=self.ties == "mean")


@dataclass(frozen=True)
class Recall:
    """Share of the relevant rows that are among the first k.

    Parameters
    ----------
    k
        Cut-off.
    threshold
        A row is relevant if its label is above this.
    empty
        Value of a query without a relevant row: 1.0, nothing was missed; trec_eval and ranx count 0.
    ties
        As for `DCG`.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.Recall(2)([0.3, 0.2, 0.1], [0, 1, 1], group=[3])
    0.5
    """

    k: int
    threshold: float = 0.0
    empty: float = 1.0
    ties: str = field(default="row", kw_only=True)

    def __post_init__(self) -> None:
        check_cutoff(self.k, needed=True)
        check_number("threshold", self.threshold)
        check_number("empty", self.empty)
        check_ties(self.ties)

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return 1 / R for relevant rows, and a 1 for each of the first k ranks."""
        gain = relevant(labels, self.threshold)
        total = per_query(gain, ptr)
        empty = total <= 0
        share = gain / np.where(empty, np.inf, total)[query_of_rows(ptr)]
        return Tables(share, first_ranks(self.k, ptr), empty, ties=self.ties == "mean")


@dataclass(frozen=True)
class RBP:
    """Rank-biased precision: the gain that a user finds who goes on to the next row with a fixed probability.

    ``RBP@k = (1 - p) * sum over ranks r < k of gain_r p^r``, gains being 0 or 1, or ``label / max_grade``.

    Parameters
    ----------
    k
        Cut-off; None for the whole list.
    persistence
        Probability p of going on, above 0 and below 1.
    threshold
        A row is relevant if its label is above this.
    max_grade
        None: relevant or not. Else the largest label: gains are graded.
    ties
        As for `DCG`.

    Raises
    ------
    ValueError
        For a parameter out of range or a threshold beside a largest grade; on data, for graded labels below 0 or above
        `max_grade`.

    Notes
    -----
    A query without a relevant row is worth 0.

    References
    ----------
    Moffat and Zobel (2008), "Rank-biased precision for measurement of retrieval effectiveness", equation 5.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.RBP(persistence=0.5)([0.3, 0.2, 0.1], [0, 1, 1], group=[3])  # 1/4 + 1/8
    0.375
    """

    k: int | None = None
    persistence: float = 0.8
    threshold: float = 0.0
    max_grade: float | None = None
    ties: str = field(default="row", kw_only=True)

    def __post_init__(self) -> None:
        check_cutoff(self.k)
        check_number("persistence", self.persistence, above=0.0)
        if not self.persistence < 1:
            raise ValueError(f"persistence must be below 1, found {self.persistence!r}")
        check_number("threshold", self.threshold)
        check_ties(self.ties)
        if self.max_grade is not None:
            check_number("max_grade", self.max_grade, above=0.0)
            if self.threshold != 0:
                raise ValueError("threshold has no effect beside max_grade: leave one of them out")

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return the gain of each row, and (1 - p) p^rank."""
        if self.max_grade is None:
            gain = relevant(labels, self.threshold)
        else:
            gain = np.nan_to_num(graded(self, labels, self.max_grade) / self.max_grade)
        ranks = np.arange(min(longest_query(ptr), self.k or len(labels)), dtype=float)
        discount = (1.0 - self.persistence) * self.persistence**ranks
        return Tables(gain, discount, ties=self.ties == "mean")


def graded(metric: Any, labels: Vector, max_grade: float) -> Vector:
    """Return labels that must be from 0 to the largest grade, or NaN."""
    wrong = (labels < 0) | (labels > max_grade)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"label: {metric!r} takes labels from 0 to max_grade={max_grade:g}, row {row} is {labels[row]:g}"
        )
    return labels


def reciprocal_ranks(k: int | None, ptr: Ints) -> Vector:
    """1 / (rank + 1) for the first k ranks."""
    longest = longest_query(ptr)
    ranks: Vector = 1.0 / np.arange(1, min(longest, k or longest) + 1)
    return ranks


def first_ranks(k: int, ptr: Ints) -> Vector:
    """1 for the first k ranks."""
    return np.ones(min(longest_query(ptr), k))
