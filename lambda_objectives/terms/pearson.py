"""A term over rows that compares scores and labels within groups only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.queries import Queries, Ranking, weighted_mean
from lambda_objectives.terms import Exchange, Floats, Reading, check_column, groups_of, no_objective, qualified


class Prepared(NamedTuple):
    """What the term keeps of a data set; its rows group by group."""

    rows: npt.NDArray[np.int64] | slice  # where they lie in the data set
    ptr: npt.NDArray[np.int64]  # borders of the groups
    target: Vector  # standardised within the row's group; 0 in groups that are not scored
    weights: Vector  # of the rows; 0 in groups that are not scored
    mass: Vector  # (groups,) sum of these weights
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
    {'cost/pearson': 0.210102..., 'pearson': 0.5, 'pearson_mse': 0.420204...}
    """

    label: str | None = None
    within_group: bool | str = field(default=True)

    needs_order: ClassVar[bool] = False
    __call__ = no_objective

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

    @property
    def together(self) -> bool:
        """Whether it wants the rows of all workers: all but the queries may lie across them."""
        return self.within_group is not True

    def pooled_by(self, prepared: Prepared) -> float:
        """The weight of all rows of groups that are scored."""
        return float(prepared.weights.sum())

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Standardise the labels of each group."""
        y = queries.column(self.label)
        group = groups_of(queries, self.within_group)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(group))])
        rows = slice(None) if self.within_group is True else np.argsort(group, kind="stable")
        y = y[rows]
        weights = np.ones(len(y)) if queries.weights is None else queries.weights[rows]
        if not len(y):
            return Prepared(rows, ptr, y, weights, np.zeros(0), np.zeros(0))
        low = np.minimum.reduceat(np.where(weights > 0, y, np.inf), ptr[:-1])
        high = np.maximum.reduceat(np.where(weights > 0, y, -np.inf), ptr[:-1])
        scored = high > low
        held = np.where(_each(scored, ptr), weights, 0.0)
        mass = _sums(held, ptr)
        target = _centred(y, held, mass, ptr)
        deviation = np.sqrt(_sums(held * target * target, ptr) / np.where(mass > 0, mass, 1.0))
        target = np.where(_each(scored, ptr), target / _each(np.where(deviation > 0, deviation, 1.0), ptr), 0.0)
        return Prepared(rows, ptr, target, held, mass, scored * _sums(weights, ptr) / np.diff(ptr))

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        rows, ptr, target, weights, mass, _ = prepared
        error = _centred(ranking.scores[rows], weights, mass, ptr) - target
        grad[rows] = weights * error
        hess[rows] = weights
        return weighted_mean(error * error, weights) / 2

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the mean correlation, and twice the value."""
        rows, ptr, target, weights, mass, share = prepared
        scores = ranking.scores[rows]
        p = _centred(scores, weights, mass, ptr)
        weighted = weights * p
        spread = np.sqrt(_sums(weighted * p, ptr) * mass)
        # scores that are equal but for rounding have no correlation
        flat = spread <= 1e-12 * _sums(weights * np.abs(scores), ptr)
        correlation = np.where(flat, 0.0, _sums(weighted * target, ptr) / np.where(flat, 1.0, spread))
        error = p - target
        return {
            self.name: Reading(weighted_mean(correlation, share), True, mass=float(share.sum())),
            self.paid_in: Reading(weighted_mean(error * error, weights), False),
        }

    def exchange(self, prepared: Prepared, ranking: Ranking) -> Exchange:
        """Dependence of the scores."""
        return Exchange(2.0, ranking.scores, 0.5)


def _sums(values: Vector, ptr: npt.NDArray[np.int64]) -> Vector:
    """Sum over each group, of rows that lie group by group."""
    total: Vector = np.add.reduceat(values, ptr[:-1]) if len(values) else np.zeros(0)
    return total


def _each(of_groups: npt.NDArray[Any], ptr: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """What belongs to a group, for each of its rows."""
    return np.repeat(of_groups, np.diff(ptr))


def _centred(values: Vector, weights: Vector, mass: Vector, ptr: npt.NDArray[np.int64]) -> Vector:
    """Less the weighted mean of the row's group; 0 in groups without a weight."""
    if not len(values):
        return values
    shifted = values - _each(values[ptr[:-1]], ptr)  # what is common to a group is taken off before all else
    centred: Vector = shifted - _each(_sums(weights * shifted, ptr) / np.where(mass > 0, mass, 1.0), ptr)
    return np.where(_each(mass > 0, ptr), centred, 0.0)
