"""What a rule is told of a round, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lambda_objectives.queries import Queries, Ranking


class Coupling(NamedTuple):
    """What `Decorrelated` tells its rule of a round.

    Attributes
    ----------
    unit
        The name of what the penalty is added to: a metric, or the cost of a loss without an exchange rate.
    units
        That is so many times the cost; below 0 for a metric of which more is better.
    coefficient
        The cost of one unit of dependence is this times the penalty's weight.
    leanings
        Of each control: correlation of the scores with it, whose sign says to which side they lean; NaN where none.
    spread
        Standard deviation of the scores.
    """

    unit: str
    units: float
    coefficient: float
    leanings: tuple[float, ...]
    spread: float


class Round(NamedTuple):
    """The scores before a round's tree, in numbers.

    Attributes
    ----------
    number
        Rounds behind it, earlier trainings that this one goes on from included.
    costs
        The value of each term.
    metrics
        Each term's own metric; NaN where it has none.
    masses
        What a term's value is multiplied by in its gradient: the weight of all queries, or of all rows.
    planned
        The number of rounds that the training will have, counted like `number`; None where nobody can know.
    rate
        The learning rate.
    watched
        The same of a validation set, at the same scores; None where none has been evaluated yet.
    coupling
        What the spec itself found out about its terms at these scores.
    """

    number: int
    costs: Sequence[float]
    metrics: Sequence[float]
    masses: Sequence[float]
    planned: int | None = None
    rate: float = 0.1
    watched: Round | None = None
    coupling: Any = None


class Sight(NamedTuple):
    """What a spec sees of its terms at the scores of a round.

    Attributes
    ----------
    queries
        The data set, or this worker's part of it.
    prepared
        What each term keeps of its data.
    ranking
        Of the data set.
    rankings
        The one each term was given: of the rows of all workers, where the term wants them together.
    parts
        (terms, 2, outputs x n): gradient and Hessian of each term, which may be written over.
    costs
        The value of each term, which may be written over; of this worker's part, unless its ranking can `gather`.
    """

    queries: Queries
    prepared: Sequence[Any]
    ranking: Ranking
    rankings: Sequence[Ranking]
    parts: Any
    costs: list[float]


class Weights(NamedTuple):
    """What the gradient and the Hessian of each term are multiplied by before they are added up.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.Weights(gradient=(1.0, 0.3), hessian=(1.0, 0.3)).gradient
    (1.0, 0.3)
    """

    gradient: tuple[float, ...]
    hessian: tuple[float, ...]
