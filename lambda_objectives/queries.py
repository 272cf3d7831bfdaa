"""A data set as an objective sees it, and the order of its rows by score.

One layout serves everything: n rows, the rows of a query next to each other, `ptr` (Q + 1,) int64 with their borders.
Never lists of arrays, never padding.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, check_order, group_or_qid, nearest, require_finite, vector
from lambda_objectives.workers import ALONE, Workers

Ints = npt.NDArray[np.int64]


class MissingColumn(ValueError):
    """A data set lacks a column that is named; `column` is its name."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message, column)
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, eq=False)
class Queries:
    """Labels, query borders, weights and named columns of n rows.

    Attributes
    ----------
    labels
        (n,) float64.
    ptr
        (Q + 1,) int64, or None for data without queries.
    weights
        (n,) float64, of the rows, or None for 1 each.
    columns
        Further columns by name, (n,) float64 each.
    workers
        Who else has rows of this data set: they are the part of one worker.
    """

    labels: Vector
    ptr: Ints | None = None
    weights: Vector | None = None
    columns: Mapping[str, Vector] = field(default_factory=dict)
    workers: Workers = ALONE

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def from_arrays(
        cls,
        labels: Any,
        *,
        group: Any = None,
        qid: Any = None,
        weights: Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Queries:
        """Read and check arrays of any kind; weights are one a row, or one a query."""
        y = vector("labels", labels, finite=False)
        for name, given in (("qid", qid), ("weights", weights), ("column", columns)):
            check_order(name, given, "labels", labels)
        n = len(y)
        ptr = group_or_qid(group, qid, n)
        w = None
        if weights is not None:
            w = vector("weights", weights)
            if ptr is not None and len(w) == len(ptr) - 1 and len(w) != n:
                w = np.repeat(w, np.diff(ptr))
            if ptr is not None and len(w) != n:
                raise ValueError(
                    f"weights has {len(w)} values, the data set has {n} rows in {len(ptr) - 1} queries: one a row, or "
                    "one a query"
                )
            check_weights(w, n)
        named = {name: vector(f"column {name!r}", values, n, finite=False) for name, values in (columns or {}).items()}
        return cls(y, ptr, w, named)

    def column(self, name: str | None, role: str = "label", *, unjudged: bool = False) -> Vector:
        """Return a named column, or for None the labels; it must be finite, but for NaN where rows may be unjudged."""
        if not len(self) and self.workers.size > 1:  # a worker without rows has columns of any name
            return self.labels
        if name is not None and name not in self.columns:
            there = ", ".join(repr(c) for c in sorted(self.columns)) or "none"
            raise MissingColumn(
                f"{role}={name!r}: this data set of {len(self)} rows has no such column{nearest(name, self.columns)} "
                f"(there: {there}); attach it: lambda_objectives.attach(data, {name}=values), or say {name}=values "
                "where arrays are given",
                name,
            )
        values, what = (self.labels, "labels") if name is None else (self.columns[name], f"column {name!r}")
        require_finite(what, np.where(np.isnan(values), 0.0, values) if unjudged else values)
        return values

    def total(self, *numbers: float) -> tuple[float, ...]:
        """Sums over all workers."""
        if self.workers.size == 1:
            return numbers
        return tuple(self.workers.exchange(np.array(numbers, dtype=np.float64)).tolist())

    def spread(self, values: Vector) -> float:
        """Standard deviation of something that each row has, over all workers; 0 for no rows."""
        if self.workers.size == 1:
            return float(values.std()) if len(values) else 0.0
        n, first, second = self.total(len(values), float(values.sum()), float(np.square(values).sum()))
        return math.sqrt(max(second / n - (first / n) ** 2, 0.0)) if n else 0.0

    def equals(self, other: Queries) -> bool:
        """Whether labels, borders, weights and columns are the same."""
        if self.columns.keys() != other.columns.keys():
            return False
        pairs = [(self.columns[name], other.columns[name]) for name in self.columns]
        pairs.append((self.labels, other.labels))
        if (self.ptr is None) != (other.ptr is None) or (self.weights is None) != (other.weights is None):
            return False
        if self.weights is not None and other.weights is not None:
            pairs.append((self.weights, other.weights))
        same_ptr = self.ptr is None or other.ptr is None or np.array_equal(self.ptr, other.ptr)
        return same_ptr and all(np.array_equal(ours, theirs, equal_nan=True) for ours, theirs in pairs)

    @property
    def borders(self) -> Ints:
        """ptr, for terms that cannot do without."""
        if self.ptr is None and not len(self) and self.workers.size > 1:
            return np.zeros(1, np.int64)
        if self.ptr is None:
            raise ValueError(
                f"group: a ranking term needs queries, within_group=True as well, and the data set of {len(self)} rows "
                "has none: give group= (their sizes, in the order of the rows) or qid= (one id a row); for one single "
                "query group=[number of rows]; within_group='label' is within the classes of the label"
            )
        return self.ptr

    @cached_property
    def query_weights(self) -> Vector:
        """(Q,) mean weight of each query's rows; a query without rows weighs 0."""
        ptr = self.borders
        if self.weights is None:
            return np.ones(len(ptr) - 1)
        total = np.concatenate([[0.0], np.cumsum(self.weights)])
        mean: Vector = (total[ptr[1:]] - total[ptr[:-1]]) / np.maximum(np.diff(ptr), 1)
        return mean

    def mean_over_queries(self, values: Vector) -> float:
        """Weighted mean of one value a query; 0 where there is no query with a weight."""
        if self.weights is None:
            return float(values.mean()) if len(values) else 0.0
        return weighted_mean(values, self.query_weights)


def weighted_mean(values: Vector, weights: Vector | None) -> float:
    """Mean with weights; 0 for nothing, or for weights that are all 0."""
    if weights is None:
        return float(values.mean()) if len(values) else 0.0
    total = float(weights.sum())
    # not by BLAS, whose sum depends on its number of threads
    return float((weights * values).sum()) / total if total > 0 else 0.0


def check_weights(weights: Vector, n: int) -> None:
    """Refuse weights of the wrong number, negative or not finite."""
    if len(weights) != n:
        raise ValueError(f"weights has {len(weights)} values, the data set has {n} rows: one a row is wanted")
    require_finite("weights", weights)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(f"weights must not be negative: row {row} is {weights[row]}; 0 leaves a row out")


class Ranking:
    """The rows of each query by descending score, ties by row: made once a round, shared by all terms.

    Attributes
    ----------
    outputs
        (outputs, n) float64, all scores of the rows.
    scores
        (n,) float64, the first of them.
    order
        (n,) int32: at ptr[q] + r the row, counted within query q, that has rank r.
    rank
        (n,) int32: the rank of each row in its query, from 0.
    parts
        Borders of the parts of the work that threads share.
    kernels, threads
        The module whose loops are to be used, and how many threads they may use.
    arrays
        The module of whole-array operations, CuPy, that is to be used where a kernel has that form; None for loops.
    round
        Rounds of the training so far: what is drawn at random depends on it and on a seed, on nothing else.
    gather
        Of the rows of all workers: what makes one vector of the parts that they have. None: it is of one's own rows.
    """

    def __init__(
        self,
        queries: Queries,
        kernels: ModuleType,
        threads: int = 1,
        outputs: int = 1,
        arrays: Any = None,
        gather: Callable[[Vector], Vector] | None = None,
    ) -> None:
        n = len(queries)
        self.kernels, self.threads, self.arrays, self.gather = kernels, threads, arrays, gather
        self.round = 0
        self._worker = queries.workers.rank
        self.outputs = np.zeros((outputs, n))
        self.scores = self.outputs[0]
        self.ptr = queries.ptr
        if self.ptr is None and queries.workers.size > 1 and n == 0:
            self.ptr = queries.borders
        if self.ptr is not None:
            self.parts = kernels.split(self.ptr, threads)
            self.order = (np.arange(n) - np.repeat(self.ptr[:-1], np.diff(self.ptr))).astype(np.int32)
            self.rank = self.order.copy()
        self._below: dict[bool | str, npt.NDArray[np.int32]] = {}
        self._fresh: set[bool | str] = set()  # of those, the ones for the scores there are now
        self._there: Any = None

    @property
    def draw(self) -> int:
        """The round, and the worker whose rows these are: numbers drawn at random depend on it, a seed and the row."""
        return self.round + (self._worker << 32)

    def update(self, scores: npt.NDArray[Any], ranked: bool) -> None:
        """Take a copy of new scores, which must be finite, and sort them if the order is wanted.

        Several a row are an (n, outputs) array, or one after the other, as LightGBM 3.3 has them.
        """
        k, n = self.outputs.shape
        if n == 0 == scores.size:  # of a worker without rows, in whatever shape the booster has nothing
            scores = scores.reshape((0,) if k == 1 else (0, k))
        if k > 1 and scores.shape == (n * k,):
            scores = scores.reshape(k, n).T
        if scores.shape != ((n,) if k == 1 else (n, k)):
            found = f"a row wanted, found an array of shape {scores.shape} for {n} rows"
            if k > 1:
                raise ValueError(f"scores: {k} {found}: set num_class={k} in the parameters")
            hint = ": leave num_class out, and give one label a row" if scores.ndim == 2 else ""
            raise ValueError(f"scores: one {found}{hint}")
        self.outputs[:] = scores.T
        for output in self.outputs:
            require_finite("scores", output)
        self._fresh.clear()
        self._there = None
        if ranked:
            self.kernels.rank(self.scores, self.ptr, self.order, self.rank, self.parts)

    def below(self, within_group: bool | str, members: npt.NDArray[np.int32], ptr: Ints) -> npt.NDArray[np.int32]:
        """(n,): how many rows of its group have a lower score, found once a round for each kind of groups.

        members: (n,) the rows, group by group; ptr: borders of the groups among them. Both go with `within_group`.
        """
        if within_group not in self._below:
            self._below[within_group] = np.empty(len(members), np.int32)
        if within_group not in self._fresh:
            ordering = import_module("lambda_objectives.kernels.ordering")  # not before it is needed: it imports numba
            ordering.below(self.scores, members, ptr, self._below[within_group], self.threads)
            self._fresh.add(within_group)
        return self._below[within_group]

    @property
    def there(self) -> Any:
        """The scores on the device, sent once a round."""
        if self._there is None:
            self._there = self.arrays.asarray(self.scores)
        return self._there

    def shifted(self, by: Vector) -> Ranking:
        """The ranking at other scores: these plus something."""
        other = copy.copy(self)
        other._below, other._fresh, other._there = {}, set(), None
        other.scores = self.scores + by
        if self.ptr is not None:
            other.order, other.rank = self.order.copy(), self.rank.copy()
            self.kernels.rank(other.scores, self.ptr, other.order, other.rank, self.parts)
        return other
