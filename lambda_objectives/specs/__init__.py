"""Specs: how terms get their weights.

A spec has

``terms``
    The terms; the first one is the primary, whose metric early stopping watches.
``init()``
    The state of its rule before the first round, something that JSON can hold.
``advance(state, round)``
    Weights of the terms, the next state and what is to be logged, numbers by name. Pure.
``readings(state, round)``
    What belongs in the history of any data set besides costs and metrics, such as margins, by the training's state.
``settled(state, round)``
    Whether the rule is past the rounds in which it does not ask for all that is wanted of the model.
``couple(sight)``
    Lets the gradient of one term depend on another's Hessian: changes `parts`, (terms, 2, outputs x n), and `costs` in
    place, and returns what the rule is to know of it; None where each term stands alone.
``watch(metric)``
    The reading that early stopping watches, by the name of the primary's metric.
``check(queries)``
    Refuses training data that the rule can do nothing with.
``totals``
    Whether costs are sums over the queries, not means.

A term alone is a spec too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from lambda_objectives.arrays import brief
from lambda_objectives.queries import Queries
from lambda_objectives.specs.constraints import Constraint
from lambda_objectives.specs.decorrelated import Decorrelated
from lambda_objectives.specs.lagrangian import AugmentedLagrangian
from lambda_objectives.specs.rounds import Round, Sight, Weights
from lambda_objectives.specs.weighted import WeightedSum
from lambda_objectives.terms import Reading, Term, instead_of

__all__ = [
    "AugmentedLagrangian",
    "Constraint",
    "Decorrelated",
    "Round",
    "Sight",
    "Spec",
    "WeightedSum",
    "Weights",
    "as_spec",
]


class Spec(Protocol):
    """What a run asks of a spec."""

    @property
    def terms(self) -> Sequence[Term]: ...  # noqa: D102

    @property
    def totals(self) -> bool: ...  # noqa: D102

    def init(self) -> Any: ...  # noqa: D102

    def advance(self, state: Any, round: Round) -> tuple[Weights, Any, dict[str, float]]: ...  # noqa: D102

    def readings(self, state: Any, round: Round) -> dict[str, Reading]: ...  # noqa: D102

    def settled(self, state: Any, round: Round) -> bool: ...  # noqa: D102

    def couple(self, sight: Sight) -> Any: ...  # noqa: D102

    def watch(self, metric: str) -> str: ...  # noqa: D102

    def check(self, queries: Queries) -> None: ...  # noqa: D102


def as_spec(spec: Any) -> Spec:
    """Return a spec as it is, a term as a sum of one; anything else is an error that says what is wanted."""
    if not isinstance(spec, type):
        if hasattr(spec, "advance") and hasattr(spec, "terms"):
            return cast(Spec, spec)
        if hasattr(spec, "gradient") and hasattr(spec, "prepare"):
            return WeightedSum((spec,), (1.0,))
    raise TypeError(
        f"spec must be a term or a spec, such as LambdaRank(NDCG(10)), found {brief(spec)}{instead_of(spec)}"
    )
