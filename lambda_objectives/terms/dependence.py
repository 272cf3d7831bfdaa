"""Dependence of the predictions on a control variable, as a term."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, check_column, loops

LABEL = "label"  # within_group="label": the classes of the data set's own label


class Prepared(NamedTuple):
    """What the term keeps of a data set; rows lie by group, and by ascending control within it."""

    rows: npt.NDArray[np.int64]  # which row lies at each place
    ptr: npt.NDArray[np.int64]  # borders of the groups
    control: Vector  # standardised
    sums: Vector  # of the distances of each control to all others of its group
    factor: Vector  # weight of each group's rows, 0 for groups that are left out
    weight: float  # of all rows
    order: npt.NDArray[np.int32]  # of the scores within each group: last round's, a start for the next
    rank: npt.NDArray[np.int32]
    gradient: Vector
    value: Vector
    skipped: int


@dataclass(frozen=True)
class DistanceCovariance:
    """Unbiased squared distance covariance of the raw scores and a control: 0 in population only if independent.

    With a_ij = |s_i - s_j|, b_ij = |c_i - c_j|, row sums a_i., b_i. and totals a.., b.. ::

        S1 = sum_ij a_ij b_ij,   S2 = sum_i a_i. b_i.
        value = (S1 - 2 S2 / (n - 2) + a.. b.. / ((n - 1) (n - 2))) / (n (n - 3))
        grad  = (weight of the rows) x its slope;   hess = 0

    The estimate is not floored: near independence it is negative about half the time. Tied scores count on neither
    side, so that the gradient does not depend on the order of the rows.

    Parameters
    ----------
    control
        Name of the column that holds the control: numbers of any kind, or flags. It is standardised (population
        standard deviation), so that its unit does not matter.
    within_group
        False: over all rows. True: within the queries of the data set. The name of a column: within its values;
        ``"label"``: within the classes of the data set's own label. Groups then count by the weight of their rows, and
        the control is standardised in each; groups of fewer than 4 rows, or whose control has no usable spread, are
        left out, and counted as ``skipped/NAME``.

    Raises
    ------
    ValueError
        For what cannot be a column's name; on data, over all rows, for fewer than 4 of them and for a control without
        usable spread (all equal, but for one row on either side at most); for data without the groups that are asked
        for.

    Notes
    -----
    For constraints: ``Constraint(DistanceCovariance("price"), at_most=0.002)``. Alone it has no Hessian, and nothing to
    fit. The value is of the raw scores, offsets included. Row weights decide how much a group counts,
    nothing within it.

    References
    ----------
    Szekely and Rizzo (2014), "Partial distance correlation with methods for dissimilarities"; Chaudhuri and Hu (2019),
    "A fast algorithm for computing distance correlation".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> scores, price = [0.0, 1.0, 2.0, 3.0, 4.0], [1, 2, 3, 5, 9]
    >>> found = lo.evaluate(lo.DistanceCovariance("price"), scores, [0] * 5, price=price)
    >>> round(found["price.dcov2"], 6)
    0.565685
    """

    control: str
    within_group: bool | str = field(default=False)

    needs_order: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.control is None:
            raise ValueError("control must be a column's name, found None")
        check_column("control", self.control)
        if self.within_group is None:
            raise ValueError("within_group must be True, False or a column's name, found None")
        if not isinstance(self.within_group, bool):
            check_column("within_group", self.within_group)

    @property
    def name(self) -> str:
        """price.dcov2, by the control."""
        return f"{self.control}.dcov2"

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Sort each group by the control, standardise it, add up its distances."""
        control = queries.column(self.control, "control")
        group = self._groups(queries)
        rows = np.lexsort((control, group))
        ptr = np.concatenate([[0], np.cumsum(np.bincount(group))]).astype(np.int64)
        weights = np.ones(len(rows)) if queries.weights is None else queries.weights
        scaled, sums, factor = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(ptr) - 1)
        skipped = 0
        for g, (a, b) in enumerate(pairwise(ptr)):
            c = control[rows[a:b]]
            if not usable(c):
                skipped += 1
                continue
            c = c - c.mean()
            scaled[a:b] = c / c.std()
            sums[a:b] = distance_sums(scaled[a:b])
            factor[g] = weights[rows[a:b]].sum()
        if skipped and self.within_group is False:
            what = f"{len(rows)} rows, 4 rows are wanted" if len(rows) < 4 else "no usable spread"
            raise ValueError(f"control: column {self.control!r} has {what}; leave the control out")
        n = len(rows)
        order = (np.arange(n) - np.repeat(ptr[:-1], np.diff(ptr))).astype(np.int32)
        return Prepared(
            rows, ptr, scaled, sums, factor, float(weights.sum()), order, order.copy(), np.zeros(n),
            np.zeros(len(ptr) - 1), skipped,
        )  # fmt: skip

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        parts = np.array([0, len(prepared.ptr) - 1])
        if self.within_group is not False:
            parts = ranking.kernels.split(prepared.ptr, ranking.threads)
        loops("dependence").distance_covariance(
            ranking.scores[prepared.rows], prepared.control, prepared.sums, prepared.factor, prepared.ptr,
            prepared.order, prepared.rank, prepared.gradient, prepared.value, parts,
        )  # fmt: skip
        grad[prepared.rows] = prepared.gradient
        hess[:] = 0.0
        return _mean(prepared)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the dependence, and within groups how many of these are left out."""
        found = {self.name: Reading(_mean(prepared), False)}
        if self.within_group is not False:
            found[f"skipped/{self.name}"] = Reading(float(prepared.skipped), False)
        return found

    def _groups(self, queries: Queries) -> npt.NDArray[np.int64]:
        """The group of each row, from 0."""
        n = len(queries)
        if self.within_group is False:
            return np.zeros(n, np.int64)
        if self.within_group is True:
            ptr = queries.borders
            return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        column = None if self.within_group == LABEL else self.within_group
        values: Any = queries.column(column, "within_group")
        return np.unique(values, return_inverse=True)[1].reshape(n)


def _mean(prepared: Prepared) -> float:
    """The value over all groups, from what the last gradient found in each."""
    return float(prepared.factor @ prepared.value) / prepared.weight if prepared.weight > 0 else 0.0


def usable(control: Vector) -> bool:
    """Whether an ascending control has a distance variance: more than one value on a side of its tied ones."""
    n = len(control)
    return n >= 4 and bool(control[1] < control[-2])


def distance_sums(control: Vector) -> Vector:
    """Sum of the distances of each of ascending numbers to all of them."""
    n = len(control)
    place = np.arange(n)
    before = np.cumsum(control) - control
    sums: Vector = control * place - before + (control.sum() - before - control) - control * (n - place - 1)
    return sums
