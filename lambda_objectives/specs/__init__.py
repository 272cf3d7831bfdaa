"""Specs: how terms get their weights.

A spec has `terms` and the pure pair ``init() -> state`` and ``update(state, costs) -> weights, state, log``; the state
must be something that JSON can hold, the log a dict of numbers by name. A term alone is a spec too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from lambda_objectives.specs.weighted import WeightedSum
from lambda_objectives.terms import Term

__all__ = ["Spec", "WeightedSum", "as_spec"]


class Spec(Protocol):
    """What a run asks of a spec."""

    @property
    def terms(self) -> Sequence[Term]: ...  # noqa: D102

    def init(self) -> Any: ...  # noqa: D102

    def update(self, state: Any, costs: list[float]) -> tuple[tuple[float, ...], Any, dict[str, float]]: ...  # noqa: D102


def as_spec(spec: Any) -> Spec:
    """Return a spec as it is, a term as a sum of one; anything else is an error that says what is wanted."""
    if not isinstance(spec, type):
        if hasattr(spec, "update") and hasattr(spec, "terms"):
            return cast(Spec, spec)
        if hasattr(spec, "gradient") and hasattr(spec, "prepare"):
            return WeightedSum((spec,), (1.0,))
    hint = ""
    if isinstance(spec, type):
        hint = f": write {spec.__name__}(...)"
    elif hasattr(spec, "tables"):
        hint = f": write LambdaRank({spec!r})"
    raise TypeError(f"spec must be a term or a spec, such as LambdaRank(NDCG(10)), found {spec!r}{hint}")
