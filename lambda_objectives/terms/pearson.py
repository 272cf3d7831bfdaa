"""A term over rows that compares scores and labels within groups only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.queries import Queries, Ranking, weighted_mean
from lambda_objectives.terms import Exchange, Floats, Reading, check_column, groups_of, qualified


class Prepared(NamedTuple):
    """What the term keeps of a data set."""

    group: npt.NDArray[np.int64]  # of each row, from 0
    first: npt.NDArray[np.int64]  # one row of each group: what is common to a group is taken off before all else
    target: Vector  # standardised within the row's group; 0 in groups that are not scored
    weights: Vector  # of the rows; 0 in groups that are not scored
    scored: npt.NDArray[np.bool_]  # of the groups
    share: Vector  # what each group counts in the mean correlation: the mean weight of its rows


@dataclass(frozen=True)
class Pearson:
    """Half the squared difference of each group's centred scores and its standardised labels: fits their correlation.

    In each group, z are the labels less their mean over their standard deviation, p the scores less their mean, both
    by the rows' weights; over all rows of the groups that are scored ::

        value = mean of (p - z)^2 / 2,   gradient w (p - z),   Hessian w

    Its metrics are `pearson`, the mean over groups of the correlation of scores and labels, and `pearson_mse`, twice
    the value: what a tree does to the level of a group changes neither. Groups of one row, or whose labels are all
    equal, are not scored.

    Parameters
    ----------
    label
        Name of the column that holds the labels; None for the data set's own.
    within_group
        True: within the queries of the data set. The name of a column: within its values.

    Raises
    ------
    ValueError
        For what cannot be a column's name; on data, for missing groups.

    Notes
    -----
    A group counts in `pearson` by the mean weight of its rows, and with a correlation of 0 if its scores are all equal.
    Nothing holds the level of a group, so that a penalty on dependence over all rows is refused: `Decorrelated` takes
    the same groups, `within_group=True`.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.Pearson(), [1, 2, 3, 7, 7], [1, 3, 5, 0, 1], group=[3, 2])
    {'cost/pearson': 0.2303..., 'pearson': 0.5, 'pearson_mse': 0.4606...}
    """

    label: str | None = None
    within_group: bool | str = field(default=True)

    needs_order: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_column("label", self.label)
        if self.within_group is not True and not isinstance(self.within_group, str):
            raise ValueError(
                f"within_group must be True or a column's name: Pearson compares rows of a group; found "
                f"{self.within_group!r}"
            )
        check_column("within_group", None if self.within_group is True else self.within_group)

    @property
    def name(self) -> str:
        """pearson, or returns.pearson for the labels of a column."""
        return qualified(self.label, "pearson")

    @property
    def paid_in(self) -> str:
        """pearson_mse: a correlation has no exchange rate with a penalty."""
        return f"{self.name}_mse"

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Standardise the labels of each group."""
        y = queries.column(self.label)
        group = groups_of(queries, self.within_group)
        weights = np.ones(len(y)) if queries.weights is None else queries.weights
        count = int(group.max(initial=-1)) + 1
        first = np.zeros(count, np.int64)
        first[group] = np.arange(len(y))
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        taking = weights > 0
        np.minimum.at(low, group[taking], y[taking])
        np.maximum.at(high, group[taking], y[taking])
        scored = high > low
        held = np.where(scored[group], weights, 0.0)
        target = _centred(y, group, first, held)
        deviation = np.sqrt(_means(target * target, group, held, count))
        target = np.where(scored[group], target / np.where(deviation > 0, deviation, 1.0)[group], 0.0)
        share = _sums(weights, group, count) / np.maximum(np.bincount(group, minlength=count), 1)
        return Prepared(group, first, target, held, scored, share * scored)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        error = self._error(prepared, ranking)
        grad[:] = prepared.weights * error
        hess[:] = prepared.weights
        return weighted_mean(error * error, prepared.weights) / 2

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the mean correlation, and twice the value."""
        group, first, target, weights, scored, share = prepared
        p = _centred(ranking.scores, group, first, weights)
        spread = np.sqrt(_means(p * p, group, weights, len(scored)))
        # scores that are equal but for rounding have no correlation
        flat = spread <= 1e-12 * _means(np.abs(ranking.scores), group, weights, len(scored))
        together = _means(p * target, group, weights, len(scored))
        correlation = np.where(flat, 0.0, together / np.where(flat, 1.0, spread))
        error = p - target
        return {
            self.name: Reading(weighted_mean(correlation, share), True),
            self.paid_in: Reading(weighted_mean(error * error, weights), False),
        }

    def exchange(self, prepared: Prepared, ranking: Ranking) -> Exchange:
        """Dependence of the scores."""
        return Exchange(2.0, ranking.scores, 0.5)

    def _error(self, prepared: Prepared, ranking: Ranking) -> Vector:
        centred = _centred(ranking.scores, prepared.group, prepared.first, prepared.weights)
        error: Vector = centred - prepared.target
        return error


def _sums(values: Vector, group: npt.NDArray[np.int64], count: int) -> Vector:
    return np.bincount(group, weights=values, minlength=count).astype(np.float64, copy=False)


def _means(values: Vector, group: npt.NDArray[np.int64], weights: Vector, count: int) -> Vector:
    """Weighted mean in each group; 0 for groups without a weight."""
    total = _sums(weights, group, count)
    return _sums(weights * values, group, count) / np.where(total > 0, total, 1.0)


def _centred(values: Vector, group: npt.NDArray[np.int64], first: npt.NDArray[np.int64], weights: Vector) -> Vector:
    """Less the weighted mean of the row's group; 0 in groups without a weight."""
    shifted = values - values[first][group]
    centred: Vector = shifted - _means(shifted, group, weights, len(first))[group]
    return np.where(_sums(weights, group, len(first))[group] > 0, centred, 0.0)
