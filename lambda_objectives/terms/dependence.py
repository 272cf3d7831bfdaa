"""Dependence of the predictions on a control variable, as a term."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, whole_number
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, check_column, groups_of, loops, no_objective
from lambda_objectives.terms.counts import exponential
from lambda_objectives.terms.losses import logistic
from lambda_objectives.terms.slices import SPREAD, directions


class Prepared(NamedTuple):
    """What the term keeps of a data set."""

    members: npt.NDArray[np.int32]  # the rows, group by group
    ptr: npt.NDArray[np.int64]  # borders of the groups
    sides: list[Any]  # the control as the kernels want it; of a joint one every slice
    factor: Vector  # weight of each group's rows, 0 for groups that are left out
    weight: float  # of all rows
    slopes: Vector  # by row, times the group's factor
    value: Vector  # of each group
    skipped: int
    plans: list[Any]  # on the device, once one is used: what the array form wants of each side


def _means(scores: Vector) -> tuple[Vector, Vector]:
    means = exponential(scores)
    return means, means


LINKS: dict[str, Callable[[Vector], tuple[Vector, Vector]]] = {"logit": logistic, "log": _means}  # value and slope


@dataclass(frozen=True)
class DistanceCovariance:
    """Unbiased squared distance covariance of the scores and a control: 0 in population only if independent.

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
        standard deviation), so that its unit does not matter. Two to four names: a joint control, with the Euclidean
        distance of the standardised columns; it also shows a dependence that none of them has by itself.
    within_group
        False: over all rows. True: within the queries of the data set. The name of a column: within its values;
        ``"label"``: within the classes of the data set's own label. Groups then count by the weight of their rows, and
        the control is standardised in each; groups of fewer than 4 rows, or whose control has no usable spread, are
        left out, and counted as ``skipped/NAME``.
    link
        None: the dependence of the raw score s. ``"logit"``: of 1 / (1 + e^-s), ``"log"``: of e^s.
    weighted
        Let the weights of the rows count within the statistic too: each of its three parts is a mean over pairs,
        triples or quadruples of different rows, which then count by the product of their weights. The control is
        standardised by weighted mean and deviation, and a row of weight 0 takes no part.
    categorical
        The values of the control are categories: the distance of two different ones is 1. Of use with two categories or
        more in 4 rows or more, unless all rows but one are of the same or no two are.
    slices
        From how many directions a joint control is looked at.

    Raises
    ------
    ValueError
        For what cannot be a column's name; for options that do not exist or do not go together; on data, over all rows,
        for fewer than 4 of them and for a control without usable spread (all equal, but for one row on either side at
        most); for data without the groups that are asked for.

    Notes
    -----
    For constraints: ``Constraint(DistanceCovariance("price"), at_most=0.002)``. Alone it has no Hessian, and nothing to
    fit. The value is of the scores, offsets included. Unless `weighted`, row weights decide how much a group counts,
    nothing within it.

    A joint control costs time and memory once for each slice: |z| is a constant times the mean of |u.z| over all
    directions u. With 16 of these the value of dependent data is off by less than 0.1 % for two columns, by 0.2 % for
    three and 1 % for four (medians; at most 1 % and 4 % in 40 samples of 300 rows), with 64 for four by a third of it.
    A group counts only if each of the columns has a usable spread in it.

    References
    ----------
    Szekely and Rizzo (2014), "Partial distance correlation with methods for dissimilarities"; Chaudhuri and Hu (2019),
    "A fast algorithm for computing distance correlation"; Huang and Huo (2022), "A statistically and numerically
    efficient independence test based on random projections and distance covariance", for the slices.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> scores, price = [0.0, 1.0, 2.0, 3.0, 4.0], [1, 2, 3, 5, 9]
    >>> found = lo.evaluate(lo.DistanceCovariance("price"), scores, [0] * 5, price=price)
    >>> round(found["price.dcov2"], 6)
    0.565685
    """

    control: str | tuple[str, ...]
    within_group: bool | str = field(default=False)
    link: str | None = field(default=None, kw_only=True)
    weighted: bool = field(default=False, kw_only=True)
    categorical: bool = field(default=False, kw_only=True)
    slices: int = field(default=16, kw_only=True)

    needs_order: ClassVar[bool] = False
    reaches_zero: ClassVar[bool] = True
    __call__ = no_objective

    def __post_init__(self) -> None:
        if isinstance(self.control, list | tuple):
            object.__setattr__(self, "control", tuple(self.control))
            if not 2 <= len(self.control) <= 4:
                raise ValueError(
                    f"control: a joint control has two to four columns, found {len(self.control)}; for one of them "
                    "write its name, for more take several terms"
                )
        for name in self._names:
            if name is None:
                raise ValueError("control must be a column's name, found None")
            check_column("control", name)
        if len(set(self._names)) < len(self._names):
            raise ValueError(f"control: each column once, found {self.control!r}")
        if self.within_group is None:
            raise ValueError("within_group must be True, False or a column's name, found None")
        if not isinstance(self.within_group, bool):
            check_column("within_group", self.within_group)
        if self.link is not None and self.link not in LINKS:
            raise ValueError(f"link must be None, {' or '.join(map(repr, LINKS))}, found {self.link!r}")
        for option in ("weighted", "categorical"):
            if not isinstance(getattr(self, option), bool):
                raise ValueError(f"{option} must be True or False, found {getattr(self, option)!r}")
        if self.categorical and len(self._names) > 1:
            raise ValueError(
                "categorical: a joint control has numbers only; make one column of the categories' combinations"
            )
        object.__setattr__(self, "slices", whole_number("slices", self.slices, at_least=4))

    @property
    def _names(self) -> tuple[str, ...]:
        return self.control if isinstance(self.control, tuple) else (self.control,)

    @property
    def name(self) -> str:
        """price.dcov2, by the control; a-b.dcov2 for a joint one."""
        return f"{'-'.join(self._names)}.dcov2"

    @property
    def together(self) -> bool:
        """Whether it wants the rows of all workers: all but the queries may lie across them."""
        return self.within_group is not True

    @property
    def on_device(self) -> bool:
        """Whether it has a form for GPUs: `weighted` and `categorical` have loops only."""
        return not (self.weighted or self.categorical)

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Standardise the control, sort each group by it, add up its distances."""
        columns = [queries.column(name, "control") for name in self._names]
        group = groups_of(queries, self.within_group)
        n = len(group)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(group))]).astype(np.int64)
        members = np.argsort(group, kind="stable").astype(np.int32)
        group = group[members]
        weights = np.ones(1)
        if self.weighted and queries.weights is not None and n:
            weights = queries.weights / max(queries.weights.max(), 1e-300)
        usable = np.ones(len(ptr) - 1, np.bool_)
        laid: list[tuple[npt.NDArray[np.int32], Vector]] = []
        if self.categorical:
            rows = members[np.lexsort((columns[0][members], group))]
            laid.append((rows, loops("controls").numbered(columns[0], weights, rows, ptr, usable)))
        else:
            scaled = [loops("controls").standardised(column, weights, members, ptr, usable) for column in columns]
            for direction in directions(self.slices, len(columns)):
                seen = sum(u * z for u, z in zip(direction, scaled, strict=True))
                order = np.lexsort((seen, group))
                laid.append((members[order], seen[order]))
        skipped = int((~usable).sum())
        if skipped and self.within_group is False:
            self._refuse(n if len(weights) == 1 else int((weights > 0).sum()))
        factor = np.zeros(len(ptr) - 1)
        np.add.at(factor, group, 1.0 if queries.weights is None else queries.weights[members])
        weight = float(factor.sum())
        factor *= usable
        share = SPREAD[len(columns)] / len(laid)
        sides = [
            loops("controls").laid_out(rows, ptr, values, weights, share * factor, self.categorical)
            for rows, values in laid
        ]
        return Prepared(members, ptr, sides, factor, weight, np.zeros(n), np.zeros(len(factor)), skipped, [])

    def _refuse(self, rows: int) -> None:
        what = "no usable categories" if self.categorical else "no usable spread"
        if rows < 4:
            what = f"{rows} rows{' with a weight' if self.weighted else ''}, 4 rows are wanted"
        columns = "column" if len(self._names) == 1 else "columns"
        has = f"{' and '.join(map(repr, self._names))} {'has' if columns == 'column' else 'have'}"
        raise ValueError(f"control: {columns} {has} {what}; leave the control out")

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        if ranking.arrays is not None and self.on_device:
            _device_slopes(prepared, ranking)
        else:
            below = ranking.below(self.within_group, prepared.members, prepared.ptr)
            kernel = loops("controls").category_slopes if self.categorical else loops("dependence").dependence_slopes
            kernel(prepared.sides[0], below, prepared.slopes, ranking.threads)
            for side in prepared.sides[1:]:
                slopes = np.empty_like(prepared.slopes)
                kernel(side, below, slopes, ranking.threads)
                np.add(prepared.slopes, slopes, out=prepared.slopes)
        hess[:] = 0.0
        if self.link is None:
            grad[:] = prepared.slopes
            return self.through(prepared, ranking.scores)
        outputs, rise = LINKS[self.link](ranking.scores)
        grad[:] = prepared.slopes * rise
        return self.through(prepared, outputs)

    def check(self, prepared: Prepared, queries: Queries) -> None:
        """Refuse training data in which no group has a use for the control."""
        groups, skipped = queries.total(len(prepared.value), prepared.skipped)
        if groups and skipped == groups:
            raise ValueError(
                f"control: in none of the {groups:.0f} groups of within_group={self.within_group!r} has "
                f"{' and '.join(map(repr, self._names))} 4 rows and a usable spread; leave the control out, or choose "
                "larger groups"
            )

    def through(self, prepared: Prepared, outputs: Vector) -> float:
        """The value for any function of the scores that never falls, at those of the last gradient.

        The slopes depend on the order of the scores alone. It is what is read from then on.
        """
        loops("controls").values(
            prepared.members, prepared.ptr, prepared.factor, prepared.slopes, outputs, prepared.value
        )
        return _mean(prepared, prepared.value)

    def leaning(self, prepared: Prepared, ranking: Ranking) -> float:
        """Correlation of scores and control, a mean over groups as the value is; NaN for categories, joint controls."""
        if self.categorical or len(prepared.sides) > 1:
            return np.nan
        found = loops("controls").correlations(prepared.sides[0], ranking.scores, ranking.threads)
        return _mean(prepared, found)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the dependence, and within groups how many of these are left out."""
        found = {self.name: Reading(_mean(prepared, prepared.value), False)}
        if self.within_group is not False:
            found[f"skipped/{self.name}"] = Reading(float(prepared.skipped), False, pooled="sum")
        return found


def _device_slopes(prepared: Prepared, ranking: Ranking) -> None:
    """Slopes by the array form: the scores go to the device once for all controls, the slopes come back."""
    xp, form = ranking.arrays, loops("arrayform")
    if not len(prepared.slopes):
        return
    if not prepared.plans:
        prepared.plans.extend(form.plan(xp, s.rows, s.values, s.factor, s.ptr) for s in prepared.sides)
    scores = ranking.there
    slopes = form.slopes(xp, prepared.plans[0], scores)
    for plan in prepared.plans[1:]:
        slopes += form.slopes(xp, plan, scores)
    prepared.slopes[:] = slopes.get() if hasattr(slopes, "get") else slopes


def _mean(prepared: Prepared, values: Vector) -> float:
    """The mean over all groups of what was found in each."""
    return float(prepared.factor @ values) / prepared.weight if prepared.weight > 0 else 0.0
