"""What the terms that emulate a peer have in common; each has a module of its own, `peers_NAME`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lambda_objectives.arrays import Vector
from lambda_objectives.metrics import values
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, no_objective, qualified


class Prepared(NamedTuple):
    """What a peer's term keeps of a data set."""

    queries: Queries
    fixed: tuple[Any, ...]  # what the kernel takes besides the scores
    weights: Floats
    tables: Any  # of the metric, if there is one


class Peer:
    """What the terms have in common."""

    needs_order: ClassVar[bool] = True
    call: ClassVar[str]  # the function that makes it
    __call__ = no_objective
    label: str | None

    def __repr__(self) -> str:
        given = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))  # type: ignore[arg-type]
        return f"compat.{self.call}({given})"

    @property
    def metric_of_ours(self) -> Any:
        """The metric of this package that is nearest to what the peer works on, or None."""
        return None

    @property
    def name(self) -> str:
        """The name of that metric: ndcg@30, or quality.ndcg@30 for the labels of a column."""
        return qualified(self.label, self.metric_of_ours.name)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return that metric at the ranking's scores."""
        metric = self.metric_of_ours
        if metric is None:
            return {}
        value = prepared.queries.mean_over_queries(values(metric, prepared.tables, ranking))
        return {qualified(self.label, metric.name): Reading(value, metric.maximise)}

    def with_tables(self, queries: Queries, labels: Vector, weights: Floats, *fixed: Any) -> Prepared:
        """What the kernel takes, and the tables of the metric."""
        metric = self.metric_of_ours
        tables = None if metric is None else metric.tables(labels, queries.borders)
        return Prepared(queries, fixed, weights, tables)

    def checked_labels(self, queries: Queries, what: str, most: float, *, whole: bool = True) -> Vector:
        """The labels; refused are negative ones, ones above the largest, and fractions."""
        labels = queries.column(self.label)
        wrong = (labels < 0) | (labels > most)
        if whole:
            wrong |= labels != np.floor(labels)
        if wrong.any():
            row = int(np.argmax(wrong))
            limits = f"from 0 to {most:g}" if np.isfinite(most) else "from 0"
            todo = "shift, scale or merge the labels"
            if labels[row] % 1:
                todo = "round the labels, or take LambdaRank(NDCG(gain='linear')), whose labels may be fractions"
            raise ValueError(
                f"label: {what} takes {'whole ' if whole else ''}numbers {limits}, row {row} is {labels[row]:g}; {todo}"
            )
        return labels


def by_pairs(kernel: Any, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
    """Call a kernel of pairs; return the mean cost of the queries."""
    ptr = prepared.queries.borders
    cost = np.empty(len(ptr) - 1)
    kernel(
        *prepared.fixed, ranking.scores, ptr, ranking.order, prepared.weights, grad, hess, cost, ranking.parts
    )  # fmt: skip
    return prepared.queries.mean_over_queries(cost)


def reciprocal(ideal: Vector) -> Vector:
    """1 / ideal, and 0 where there is nothing to gain."""
    out: Vector = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    return out


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, found {value!r}")


def check_choice(name: str, value: Any, *allowed: str) -> None:
    """Refuse what is not among a parameter's values."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be {', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}, found {value!r}")
