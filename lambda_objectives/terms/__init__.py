"""Terms: costs with a gradient. Lower is better; stateless; frozen dataclasses.

A term has

``name``
    How it is called in histories, without blanks or colons.
``needs_order``
    Whether it works on queries and wants their rows ranked.
``prepare(queries, dtype)``
    What it computes once for a data set; dtype is that of the gradients.
``gradient(prepared, ranking, grad, hess)``
    Writes the gradient of (total weight x value) and its Hessian's diagonal at the ranking's scores; returns the value.
``readings(prepared, ranking)``
    The metrics that belong to it, by name; asked for after `gradient`, at the same scores.
``outputs``
    How many scores a row has: 1 unless it says so. Other terms beside it work on the first.

A term that some training data are no use to has

``check(prepared, queries)``
    Refuses them.

Further marks of a term, where they hold

``reaches_zero``
    Its value can be brought to 0 and below, as no cost of a loss can: rules count its multipliers in another unit.
``on_device``
    It has a form for GPUs.
``link``
    What its scores estimate the mean label through: "identity", "log" or "logit". Estimators start from that mean, and
    predict it.
``together``
    Where a data set is spread over workers, it wants the rows of all of them: its value is no mean of theirs.
``__call__ = no_objective``
    Tells users who give it to a booster that an `Objective` belongs there.
``pooled_by(prepared)``
    What its value is a mean over, if that is not `mass`.

A loss in whose unit a penalty on dependence can be told (`Decorrelated`) has besides

``exchange(prepared, ranking)``
    The rate, as an `Exchange`.
``paid_in``
    The name of the metric with that unit, if that is not the term's own.

A value is a mean over queries for terms that work on queries, over rows for others, or where ``over_rows`` says so.

A term that learns something of its own while training, such as position bias, is as stateless as the others: it is
handed a state that JSON can hold, and returns the next one.

``start(prepared)``
    The state before the first round.
``learn(prepared, ranking, state, grad, hess)``
    Like `gradient`, by a state; returns the value and the next state.
"""

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import brief, whole_number
from lambda_objectives.queries import Queries, Ranking

Floats = npt.NDArray[np.floating[Any]]
LABEL = "label"  # within_group="label": the classes of the data set's own label


class Reading(NamedTuple):
    """A value and whether more of it is better; and what becomes of the values that several workers have.

    Attributes
    ----------
    mass
        What the value is a mean over: None for what the term's own value is a mean over.
    pooled
        How values of several workers make one: by their "mean", by the "root" of their mean square, or by their "sum".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.Reading(0.25, maximise=False).value
    0.25
    """

    value: float
    maximise: bool
    mass: float | None = None
    pooled: str = "mean"


class Exchange(NamedTuple):
    """What a penalty on the dependence of the predictions is, in the unit of a loss."""

    units: float  # the metric is so many times the cost; below 0 for a metric of which more is better
    outputs: npt.NDArray[np.float64]  # (n,) what the dependence is of: the scores, or a function that rises with them
    coefficient: float  # the cost of one unit of dependence is this times the penalty's weight


class Term(Protocol):
    """What a run asks of a term."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def needs_order(self) -> bool: ...  # noqa: D102

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Any: ...  # noqa: D102

    def gradient(self, prepared: Any, ranking: Ranking, grad: Floats, hess: Floats) -> float: ...  # noqa: D102

    def readings(self, prepared: Any, ranking: Ranking) -> dict[str, Reading]: ...  # noqa: D102


@runtime_checkable
class Payable(Protocol):
    """What `Decorrelated` asks of a loss, besides."""

    def exchange(self, prepared: Any, ranking: Ranking) -> Exchange: ...  # noqa: D102


@runtime_checkable
class Choosy(Protocol):
    """What a run asks of a term that some training data are no use to, besides."""

    def check(self, prepared: Any, queries: Queries) -> None: ...  # noqa: D102


@runtime_checkable
class Learning(Protocol):
    """What a run asks of a term with a state, besides."""

    def start(self, prepared: Any) -> Any: ...  # noqa: D102

    def learn(  # noqa: D102
        self, prepared: Any, ranking: Ranking, state: Any, grad: Floats, hess: Floats
    ) -> tuple[float, Any]: ...


def loops(name: str) -> ModuleType:
    """A module of kernels, not before it is needed: it imports numba."""
    return import_module(f"lambda_objectives.kernels.{name}")


def qualified(label: str | None, name: str) -> str:
    """A term's name, with the column it is about in front if that is not the data set's own label."""
    return name if label is None else f"{label}.{name}"


def groups_of(queries: Queries, within_group: bool | str) -> npt.NDArray[np.int64]:
    """The group of each row, from 0: one for False, the queries for True, else the values of a column or "label"."""
    n = len(queries)
    if within_group is False:
        return np.zeros(n, np.int64)
    if within_group is True:
        ptr = queries.borders
        return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    values: Any = queries.column(None if within_group == LABEL else within_group, "within_group")
    return np.unique(values, return_inverse=True)[1].reshape(n)


def mass(term: Term, queries: Queries) -> float:
    """What a term's value is multiplied by in its gradient: the weight of the queries if it is a mean over these."""
    if getattr(term, "over_rows", not term.needs_order):
        return float(len(queries)) if queries.weights is None else float(queries.weights.sum())
    return float(queries.query_weights.sum())


def check_column(name: str, column: Any, what: str = "a column's name") -> None:
    """Refuse what cannot be a column's name in a history: blanks, colons and commas break XGBoost's text format."""
    if column is None:
        return
    if not isinstance(column, str) or not column or set(column) & set(" \t\n:,"):
        hint = ""
        if isinstance(column, str) and column:
            hint = f": write {''.join('_' if c in ' :,' or c.isspace() else c for c in column)!r}"
        elif not isinstance(column, str) and np.ndim(column):
            hint = ": attach the values, lambda_objectives.attach(data, NAME=values), and write 'NAME' here"
        raise ValueError(f"{name} must be {what}, without blanks, colons and commas, found {brief(column)}{hint}")


def check_term(name: str, term: Any) -> None:
    """Refuse what is no term; what else it is is told how it becomes one."""
    if isinstance(term, type) or not (hasattr(term, "gradient") and hasattr(term, "prepare")):
        raise TypeError(f"{name} must be a term, such as LambdaRank(NDCG(10)), found {brief(term)}{instead_of(term)}")


def instead_of(thing: Any) -> str:
    """What to write in place of something that is no term, where that can be told."""
    kind = thing.__name__ if isinstance(thing, type) else ""
    if kind and hasattr(thing, "tables"):
        return f": write LambdaRank({kind}(...))"
    if kind:
        return f": write {kind}(...)" if hasattr(thing, "terms") or hasattr(thing, "prepare") else ""
    if hasattr(thing, "tables"):
        return f": write LambdaRank({thing!r})"
    if hasattr(thing, "spec") and hasattr(thing, "metrics"):
        return ": that is an Objective; here belongs what it was made of, objective.spec"
    if hasattr(thing, "at_most"):
        return ": a bound belongs into AugmentedLagrangian(primary, constraints=[...])"
    if hasattr(thing, "advance") and hasattr(thing, "terms"):
        return ": that is a spec of several terms; name one of them"
    if isinstance(thing, list | tuple):
        return ": of several terms write WeightedSum([...], weights=[...])"
    if getattr(thing, "shape", ()):
        return ": a spec comes first, then scores and labels; boosters take an Objective(spec), not a class"
    return ""


def no_objective(self: Any, first: Any, second: Any, weights: Any = None, group: Any = None) -> NoReturn:
    """The `__call__` of terms and specs: what a booster meets that is given one of them where an objective belongs.

    Without it XGBoost's estimators would take one for the name of an objective.
    """
    raise TypeError(
        f"objective: boosters take an Objective, found {brief(self)}: give them "
        "objective = lambda_objectives.Objective(spec), and for feval= or custom_metric= its objective.metrics"
    )


def check_seed(seed: Any) -> None:
    """Refuse a seed that is no whole number from 0 that fits into 63 bits."""
    if whole_number("seed", seed, at_least=0) >= 2**63:
        raise ValueError(f"seed must be a whole number below 2^63, found {seed!r}")
