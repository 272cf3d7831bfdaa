"""A metric that is given as nothing but a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lambda_objectives.arrays import Vector
from lambda_objectives.metrics.tables import Ints, call, check_number
from lambda_objectives.queries import Ranking


class Labels(NamedTuple):
    """The tables of a metric without tables."""

    gain: Vector  # (n,) the labels


@dataclass(frozen=True)
class CustomMetric:
    """A metric given as a function of the labels of a query in the order of their ranks: general, exact and slow.

    Whatever the function is, it drives `LambdaRank`: each pair of rows is swapped and the function called again. A
    query of n rows costs n^2 / 2 calls a round: for short lists, for trying out a metric, for checking another way.
    A metric with `Tables` costs nothing of the kind.

    Parameters
    ----------
    function
        Takes an array of labels, best-ranked first, and returns a number.
    name
        What it is called in histories, without blanks, colons or commas.
    maximise
        Whether more of it is better.

    Raises
    ------
    TypeError, ValueError
        For something that cannot be called, a name that cannot be used; on data, for a value that is not finite.

    Notes
    -----
    Rows with equal scores rank in the order of the rows. What a query without a relevant row is worth, the function
    says.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> def first_three(labels):  # the label of the best of the first three rows
    ...     return labels[:3].max()
    >>> metric = lo.CustomMetric(first_three, "first_three")
    >>> metric([4.0, 3.0, 2.0, 1.0], [0, 1, 0, 2], group=[4])
    1.0
    >>> grad, hess = lo.gradient(lo.LambdaRank(metric), [4.0, 3.0, 2.0, 1.0], [0, 1, 0, 2], group=[4])
    >>> int(grad.argmin())  # the last row is to rise
    3
    """

    function: Callable[[Vector], float]
    name: str
    maximise: bool = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable with an array of labels, found {self.function!r}")
        if not isinstance(self.name, str) or not self.name or set(self.name) & set(" \t\n:,"):
            raise ValueError(f"name must be a text without blanks, colons and commas, found {self.name!r}")

    __call__ = call

    def tables(self, labels: Vector, ptr: Ints) -> Labels:
        """Return the labels."""
        return Labels(labels)

    def values(self, tables: Labels, ranking: Ranking) -> Vector:
        """(Q,) value of each query at the scores of the ranking."""
        assert ranking.ptr is not None
        return np.array([self._value(labels) for labels in _ranked(tables.gain, ranking)])

    def changes(self, tables: Labels, ranking: Ranking, by_label: Ints) -> Vector:
        """What each swap changes: an n x n matrix for each query, flat, in the order of by_label."""
        assert ranking.ptr is not None
        out = []
        for labels, (a, b) in zip(_ranked(tables.gain, ranking), pairwise(ranking.ptr.tolist()), strict=True):
            now, n = self._value(labels), b - a
            change = np.zeros((n, n))
            for i in range(n):
                for j in range(i):
                    if labels[i] != labels[j]:
                        swapped = labels.copy()
                        swapped[i], swapped[j] = labels[j], labels[i]
                        change[i, j] = change[j, i] = abs(self._value(swapped) - now)
            rank = ranking.rank[a:b][by_label[a:b]]
            out.append(change[np.ix_(rank, rank)].ravel())
        return np.concatenate(out) if out else np.empty(0)

    def _value(self, labels: Vector) -> float:
        value = self.function(labels.copy()) if len(labels) else 0.0
        check_number(f"{self.name}: what the function returned for {labels.tolist()}", value)
        return float(value)


def _ranked(labels: Vector, ranking: Ranking) -> list[Vector]:
    assert ranking.ptr is not None
    return [labels[a:b][ranking.order[a:b]] for a, b in pairwise(ranking.ptr.tolist())]
