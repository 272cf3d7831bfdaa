"""Fixed weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lambda_objectives.arrays import brief
from lambda_objectives.queries import Queries
from lambda_objectives.specs.options import weights_from_0
from lambda_objectives.specs.rounds import Round, Sight, Weights
from lambda_objectives.terms import Reading, Term, check_term, instead_of, no_objective


@dataclass(frozen=True)
class WeightedSum:
    """Several terms at once, each with a fixed weight: gradients and Hessians are added up.

    Parameters
    ----------
    terms
        The terms; the first one is the primary, whose metric early stopping watches.
    weights
        One number from 0 for each term.

    Raises
    ------
    TypeError, ValueError
        For something that is no term, for another number of weights, for a weight that is negative or not finite, for
        weights that are all 0.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> quality = lo.LambdaRank(lo.NDCG(10), label="quality")
    >>> spec = lo.WeightedSum([lo.LambdaRank(lo.NDCG(10)), quality], weights=[1, 0.3])
    >>> sorted(lo.evaluate(spec, [2, 1], [1, 0], group=[2], quality=[0, 1]))
    ['cost/ndcg@10', 'cost/quality.ndcg@10', 'ndcg@10', 'quality.ndcg@10']
    """

    terms: Sequence[Term]
    weights: Sequence[float]

    totals: ClassVar[bool] = False
    __call__ = no_objective

    def __post_init__(self) -> None:
        given: Any = self.terms
        if not isinstance(given, Iterable):
            hint = instead_of(given) or ": write [term], in brackets"
            raise TypeError(f"terms must be a list of terms, found {brief(given)}{hint}")
        object.__setattr__(self, "terms", tuple(given))
        if not self.terms:
            raise ValueError("terms must hold at least one term, such as LambdaRank(NDCG(10)), found none")
        for i, term in enumerate(self.terms):
            check_term(f"terms[{i}]", term)
        object.__setattr__(self, "weights", weights_from_0("weights", self.weights, len(self.terms), "term"))
        if not any(self.weights):
            raise ValueError(f"weights must not all be 0, found {self.weights}: give the primary a weight, such as 1")

    def init(self) -> None:
        """Nothing to remember."""
        return

    def advance(self, state: Any, round: Round) -> tuple[Weights, Any, dict[str, float]]:
        """Return the weights as they are."""
        weights = tuple(self.weights)
        return Weights(weights, weights), state, {}

    def readings(self, state: Any, round: Round) -> dict[str, Reading]:
        """Nothing but what the terms say."""
        return {}

    def settled(self, state: Any, round: Round) -> bool:
        """Always."""
        return True

    def couple(self, sight: Sight) -> None:
        """Each term stands alone."""

    def watch(self, metric: str) -> str:
        """The metric itself."""
        return metric

    def check(self, queries: Queries) -> None:
        """Any data will do."""
