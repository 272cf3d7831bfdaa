"""A bound on a term."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from lambda_objectives.metrics import check_number, values
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Term, check_column, check_term, no_objective, qualified


@dataclass(frozen=True)
class Constraint:
    """A bound that a term has to keep to: its cost at most, or its metric at least.

    Parameters
    ----------
    term
        What is bounded, such as ``LambdaRank(NDCG(10), label="quality")`` or ``LogLoss("clicked")``.
    at_most
        The most that the term's cost may be, as `lo.evaluate` gives it under ``cost/NAME``.
    name
        What it is called in histories; None for the term's name.
    at_least
        The least that the term's own metric may be, in place of `at_most`: NDCG@10 itself, say. The multiplier then
        moves by the metric, and the gradient is that of the term's cost, which stands in for a metric that has none.
    relative
        The bound is a share of what is there when the constraints are switched on: ``at_most=0.9`` asks for a tenth
        less cost than the model of the first unconstrained rounds has (`AugmentedLagrangian(start=)`), or with
        ``start=0`` than the model that the training goes on from (`init_model`, `xgb_model`).
    scale
        What a violation is divided by; None for the size of the bound (for a bound of 0, of the first cost).

    Raises
    ------
    TypeError, ValueError
        For what is no term, for no bound or two, for a bound that is no finite number.

    Notes
    -----
    A cost of pairs falls when all scores shrink, so that a bound on it can be met by a timid model that ranks no
    better: read the metrics too, or bound the metric by `at_least`. The cost of another label rises while the primary
    is trained and scores grow, so that nine tenths of it half-way ask for much more than nine tenths of it at the end.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> quality = lo.LambdaRank(lo.NDCG(10), label="quality")
    >>> lo.Constraint(quality, at_most=0.8).label
    'quality.ndcg@10'
    >>> lo.Constraint(quality, at_least=0.7, name="floor").label
    'floor'
    """

    term: Term
    at_most: float | None = None
    name: str | None = None
    at_least: float | None = field(default=None, kw_only=True)
    relative: bool = field(default=False, kw_only=True)
    scale: float | None = field(default=None, kw_only=True)

    __call__ = no_objective

    def __post_init__(self) -> None:
        check_term("term", self.term)
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(
                "one bound is wanted: at_most= for the term's cost, or at_least= for its metric, found "
                + ("none" if self.at_most is None else "both")
            )
        bound = "at_most" if self.at_least is None else "at_least"
        check_number(bound, getattr(self, bound))
        if not isinstance(self.relative, bool | np.bool_):
            raise ValueError(f"relative must be True or False, found {self.relative!r}")
        if self.relative and not self.bound > 0:
            raise ValueError(f"{bound}: with relative=True a share above 0 is wanted, found {self.bound!r}")
        if self.scale is not None:
            check_number("scale", self.scale, above=0.0)
            object.__setattr__(self, "scale", float(self.scale))
        object.__setattr__(self, bound, self.bound)  # NumPy's numbers are not those of a saved state
        object.__setattr__(self, "relative", bool(self.relative))
        check_column("name", self.name, "a text")

    @property
    def label(self) -> str:
        """What it is called in histories."""
        return self.term.name if self.name is None else self.name

    @property
    def bound(self) -> float:
        """The bound, of whichever kind it is."""
        return float(self.at_most if self.at_least is None else self.at_least)  # type: ignore[arg-type]

    @property
    def sign(self) -> int:
        """1 if less is better, -1 if more is."""
        return 1 if self.at_least is None else -1


def check_reachable(constraint: Constraint, queries: Queries) -> None:
    """Refuse a bound that no ranking of the training data keeps to, and one below 0 that each of them keeps to."""
    term: Any = constraint.term
    metric = getattr(term, "metric", None)
    if metric is None or constraint.relative:
        return
    if constraint.at_most is not None:
        if constraint.bound < 0:
            raise ValueError(
                f"at_most={constraint.bound:g}: constraint {constraint.label!r} bounds a cost, which is never below 0; "
                "to bound the metric itself write at_least="
            )
        return
    if term.name != qualified(term.label, metric.name) or hasattr(metric, "changes") or not metric.maximise:
        return
    worst, best = _range(term, metric, queries)
    too_much = constraint.bound > best + 1e-9 * abs(best)
    if too_much or constraint.bound < 0 <= worst:
        raise ValueError(
            f"at_least={constraint.bound:g}: constraint {constraint.label!r} "
            f"{'cannot be met' if too_much else 'asks for nothing'}, for {term.name} of these data is from {worst:.4g} "
            f"to {best:.4g}, whatever the ranking; write a bound between these two"
        )


def _range(term: Any, metric: Any, queries: Queries) -> tuple[float, float]:
    """The metric of the worst ranking and of the best one: by the gains that it has for the rows."""
    ptr = queries.borders
    tables = metric.tables(queries.column(term.label, unjudged=getattr(term, "unjudged", False)), ptr)
    ranking, found = Ranking(queries, import_module("lambda_objectives.kernels.cpu")), []
    for scores in (-tables.gain, tables.gain):
        ranking.update(scores, ranked=True)
        of_queries = values(metric, tables, ranking)
        total, weight = queries.total(
            float((queries.query_weights * of_queries).sum()), float(queries.query_weights.sum())
        )
        found.append(total / weight if weight > 0 else 0.0)
    return found[0], found[1]
