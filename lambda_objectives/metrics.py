"""Ranking metrics: what they are worth at given scores, and the tables from which any swap's change is O(1).

A metric is declared by a frozen dataclass. `tables` turns the labels of a data set into what the kernels need; that is
all a pair loop has to know about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, vector, whole_number
from lambda_objectives.queries import Queries, Ranking

Gain = str | tuple[float, ...] | Callable[[Vector], npt.ArrayLike]
Discount = str | tuple[float, ...] | Callable[[Vector], npt.ArrayLike]


class Tables(NamedTuple):
    """A metric that is a sum of gain * discount over ranks, on one data set.

    Swapping the rows at ranks i and j changes it by |gain_i - gain_j| |discount_i - discount_j|.
    """

    gain: Vector  # (n,) by row, divided by the ideal value of its query if the metric is
    discount: Vector  # (longest query or k,) by rank from 0; 0 for ranks past its end
    empty: npt.NDArray[np.bool_]  # (Q,) queries that can gain nothing


@dataclass(frozen=True)
class DCG:
    """Discounted cumulative gain of each query, averaged over the queries.

    ``DCG@k = sum over the ranks r < k of gain(label at rank r) * discount(r)``

    Parameters
    ----------
    k
        Cut-off: ranks from k on (counted from 0) count nothing. None for the whole list.
    gain
        ``"exp2"``: 2^label - 1. ``"linear"``: the label. A sequence: gain[label], for labels 0, 1, 2 ...
        A function of an array of labels. Gains must not be negative, nor fall as the label rises.
    discount
        ``"log2"``: 1 / log2(r + 2). ``"reciprocal"``: 1 / (r + 1). ``"linear"``: 1 - r / k (needs k).
        A sequence: discount[r], and 0 past its end. A function of an array of ranks from 0. Discounts must not be
        negative, nor rise with the rank.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for labels that are negative or have no gain.

    Notes
    -----
    Rows with equal scores rank in the order of the rows, as in both boosters. A query's weight is the mean weight of
    its rows. Queries with no gain count 0.

    References
    ----------
    Järvelin and Kekäläinen (2002), "Cumulated gain-based evaluation of IR techniques"; exponential gain: Burges et al.
    (2005), "Learning to rank using gradient descent".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.DCG(2)([0.1, 0.3, 0.2], [1, 0, 2], group=[3])  # labels by rank: 0, 2, 1
    1.892789...
    """

    k: int | None = None
    gain: Gain = "exp2"
    discount: Discount = "log2"

    def __post_init__(self) -> None:
        check_cutoff(self.k)
        if not isinstance(self.gain, str) and not callable(self.gain):
            table = vector("gain", self.gain)
            object.__setattr__(self, "gain", tuple(table.tolist()))
            if len(table) == 0 or (table < 0).any() or (np.diff(table) < 0).any():
                raise ValueError(f"gain: a table must not be empty, negative or falling, found {self.gain}")
        elif isinstance(self.gain, str) and self.gain not in ("exp2", "linear"):
            raise ValueError(f"gain must be 'exp2', 'linear', a sequence or a function, found {self.gain!r}")
        if isinstance(self.discount, str):
            if self.discount not in ("log2", "linear", "reciprocal"):
                names = "'log2', 'linear', 'reciprocal', a sequence or a function"
                raise ValueError(f"discount must be {names}, found {self.discount!r}")
            if self.discount == "linear" and self.k is None:
                raise ValueError("discount='linear' falls from 1 to 0 at the cut-off: give k")
        elif not callable(self.discount):
            table = vector("discount", self.discount)
            object.__setattr__(self, "discount", tuple(table.tolist()))
            if len(table) == 0 or (table < 0).any() or (np.diff(table) > 0).any():
                raise ValueError(f"discount: a table must not be empty, negative or rising, found {self.discount}")

    @property
    def name(self) -> str:
        """The name in histories: dcg@10."""
        return _name(self)

    maximise = True

    def tables(self, labels: Vector, ptr: npt.NDArray[np.int64]) -> Tables:
        """Return the gain of each row and the discount of each rank."""
        gain = self._gains(labels)
        longest = int(np.diff(ptr).max(initial=0))
        discount = self._discounts(longest)
        return Tables(gain, discount, _per_query(gain, ptr) <= 0)

    def values(self, tables: Tables, ranking: Ranking) -> Vector:
        """(Q,) value of each query at the scores of the ranking."""
        assert ranking.ptr is not None
        out = np.empty(len(ranking.ptr) - 1)
        ranking.kernels.discounted_sums(tables.gain, tables.discount, ranking.order, ranking.ptr, out, ranking.parts)
        return out

    def __call__(self, scores: Any, labels: Any, *, group: Any = None, qid: Any = None, weights: Any = None) -> float:
        """Return the metric at given scores.

        Parameters
        ----------
        scores, labels
            (n,) numbers; the rows of a query must lie together.
        group, qid
            Sizes of the queries, or one id a row.
        weights
            One a row, or one a query.
        """
        return evaluate_metric(self, scores, Queries.from_arrays(labels, group=group, qid=qid, weights=weights))

    def _gains(self, labels: Vector) -> Vector:
        if (labels < 0).any():
            row = int(np.argmax(labels < 0))
            raise ValueError(f"label: {self!r} takes no negative labels, row {row} is {labels[row]:g}")
        if self.gain == "exp2":
            with np.errstate(over="ignore"):
                gain = np.exp2(labels) - 1.0
        elif self.gain == "linear":
            gain = labels.copy()
        elif callable(self.gain):
            gain = vector("gain: what the function returned", self.gain(labels.copy()), len(labels))
            order = np.argsort(labels, kind="stable")
            if (gain < 0).any() or (np.diff(gain[order]) < 0).any():
                raise ValueError(f"gain: {self.gain!r} must be nowhere negative and must not fall as the label rises")
        else:
            place = labels.astype(np.int64)
            wrong = (place != labels) | (place >= len(self.gain))
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    f"gain: the table has entries for labels 0 to {len(self.gain) - 1}, row {row} has {labels[row]:g}"
                )
            gain = np.array(self.gain)[place]
        if (gain > 1e30).any():
            row = int(np.argmax(gain > 1e30))
            raise ValueError(f"gain: the gain of label {labels[row]:g} (row {row}) is too large: {gain[row]:g}")
        return gain

    def _discounts(self, longest: int) -> Vector:
        ranks = np.arange(min(longest, self.k or longest), dtype=float)
        if callable(self.discount):
            discount = vector("discount: what the function returned", self.discount(ranks.copy()), len(ranks)).copy()
            if (discount < 0).any() or (np.diff(discount) > 0).any():
                raise ValueError(
                    f"discount: {self.discount!r} must be nowhere negative and must not rise with the rank"
                )
            return discount
        if not isinstance(self.discount, str):
            table = np.array(self.discount[: len(ranks)])
            return np.concatenate([table, np.zeros(len(ranks) - len(table))])
        if self.discount == "log2":
            return 1.0 / np.log2(ranks + 2.0)
        if self.discount == "reciprocal":
            return 1.0 / (ranks + 1.0)
        assert self.k is not None
        return 1.0 - ranks / self.k


@dataclass(frozen=True)
class NDCG(DCG):
    """Normalised discounted cumulative gain: DCG@k over its largest value, averaged over the queries.

    ``NDCG@k = DCG@k / (DCG@k of the rows sorted by gain)``

    Parameters
    ----------
    k, gain, discount
        As for `DCG`; both the value and the ideal are cut at k.
    empty
        Value of a query in which nothing can be gained. 1.0, as in both boosters; 0.0 as in most evaluation tools.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for labels that are negative or have no gain.

    Notes
    -----
    With the defaults this is the `ndcg@k` that LightGBM and XGBoost print (without weights; LightGBM counts a query
    without gain as 1 whatever its weight, here it has its weight). scikit-learn's `ndcg_score` averages over ties and
    takes linear gains.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.NDCG(2)([0.1, 0.3, 0.2], [1, 0, 2], group=[3])
    0.521296...
    """

    empty: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("empty", self.empty)

    def tables(self, labels: Vector, ptr: npt.NDArray[np.int64]) -> Tables:
        """Return the gain of each row over the ideal value of its query, and the discount of each rank."""
        gain, discount, _ = super().tables(labels, ptr)
        query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        best = gain[np.lexsort((-gain, query))]
        rank = np.arange(len(gain)) - ptr[query]
        padded = np.append(discount, 0.0)  # ranks past the cut-off find the 0
        ideal = _per_query(best * padded[np.minimum(rank, len(discount))], ptr)
        empty = ideal <= 0
        return Tables(gain / np.where(empty, np.inf, ideal)[query], discount, empty)

    def values(self, tables: Tables, ranking: Ranking) -> Vector:
        """(Q,) value of each query at the scores of the ranking."""
        out = super().values(tables, ranking)
        np.minimum(out, 1.0, out=out)  # a perfect order may round to a little more
        out[tables.empty] = self.empty
        return out


def evaluate_metric(metric: Any, scores: Any, queries: Queries) -> float:
    """Return a metric's weighted mean over the queries."""
    from lambda_objectives.kernels import cpu

    ptr = queries.borders
    ranking = Ranking(queries, cpu)
    ranking.update(vector("scores", scores, len(queries)), ranked=True)
    return queries.mean_over_queries(metric.values(metric.tables(queries.labels, ptr), ranking))


def check_cutoff(k: Any) -> None:
    """Refuse a cut-off that is no whole number from 1."""
    if k is not None:
        whole_number("k", k, at_least=1)


def check_number(name: str, value: Any, *, above: float | None = None) -> None:
    """Refuse what is no finite number, or not above a limit."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, found {value!r}")
    if above is not None and not value > above:
        raise ValueError(f"{name} must be above {above:g}, found {value!r}")


def _name(metric: Any) -> str:
    return type(metric).__name__.lower() + ("" if metric.k is None else f"@{metric.k}")


def _per_query(values: Vector, ptr: npt.NDArray[np.int64]) -> Vector:
    """Sum over each query, row after row, so that the sum of a query depends on nothing but its rows."""
    out = np.zeros(len(ptr) - 1)
    filled = np.diff(ptr) > 0
    if filled.any():
        out[filled] = np.add.reduceat(values, ptr[:-1][filled])
    return out
