"""Metrics that add up gains: DCG and NDCG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, vector
from lambda_objectives.metrics.gains import Gain, checked_gain, gains
from lambda_objectives.metrics.tables import (
    Ints,
    Tables,
    call,
    check_cutoff,
    check_number,
    check_ties,
    longest_query,
    name_with_cutoff,
    per_query,
    query_of_rows,
    values_by_tables,
)
from lambda_objectives.queries import Ranking

Discount = str | tuple[float, ...] | Callable[[Vector], npt.ArrayLike]


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
    ties
        Rows with equal scores: ``"row"`` ranks them in the order of the rows, as both boosters do; ``"mean"`` takes the
        mean over all their orders, so that constant scores do not reward the order of a file.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for labels that are negative or have no gain.

    Notes
    -----
    A query's weight is the mean weight of its rows. Queries with no gain count 0.

    References
    ----------
    Järvelin and Kekäläinen (2002), "Cumulated gain-based evaluation of IR techniques"; exponential gain: Burges et al.
    (2005), "Learning to rank using gradient descent"; ties: McSherry and Najork (2008), "Computing information
    retrieval performance measures efficiently in the presence of tied scores".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.DCG(2)([0.1, 0.3, 0.2], [1, 0, 2], group=[3])  # labels by rank: 0, 2, 1
    1.892789...
    """

    k: int | None = None
    gain: Gain = "exp2"
    discount: Discount = "log2"
    ties: str = field(default="row", kw_only=True)

    def __post_init__(self) -> None:
        check_cutoff(self.k)
        check_ties(self.ties)
        object.__setattr__(self, "gain", checked_gain(self.gain))
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

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return the gain of each row and the discount of each rank."""
        gain = gains(self, self.gain, labels)
        return Tables(gain, self._discounts(longest_query(ptr)), per_query(gain, ptr) <= 0, ties=self.ties == "mean")

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
    k, gain, discount, ties
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
    without gain as 1 whatever its weight, here it has its weight). trec_eval's `ndcg_cut` and ranx's `ndcg` are
    ``NDCG(k, gain="linear", empty=0.0)``, scikit-learn's `ndcg_score` that with ``ties="mean"``.

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

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return the gain of each row over the ideal value of its query, and the discount of each rank."""
        plain = super().tables(labels, ptr)
        gain, discount = plain.gain, plain.discount
        query = query_of_rows(ptr)
        best = gain[np.lexsort((-gain, query))]
        rank = np.arange(len(gain)) - ptr[query]
        padded = np.append(discount, 0.0)  # ranks past the cut-off find the 0
        ideal = per_query(best * padded[np.minimum(rank, len(discount))], ptr)
        empty = ideal <= 0
        return plain._replace(gain=gain / np.where(empty, np.inf, ideal)[query], empty=empty)

    def values(self, tables: Tables, ranking: Ranking) -> Vector:
        """(Q,) value of each query at the scores of the ranking."""
        out = values_by_tables(self, tables, ranking)
        full = ~tables.empty
        out[full] = np.minimum(out[full], 1.0)  # a perfect order may round to a little more
        return out
