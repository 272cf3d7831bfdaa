"""Bounds from the costs of a baseline model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lambda_objectives.arrays import vector
from lambda_objectives.columns import named_columns
from lambda_objectives.metrics import check_number
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.specs import Constraint
from lambda_objectives.terms import Term, check_term, qualified


def bounds(
    terms: Term | Sequence[Term],
    scores: Any,
    labels: Any,
    *,
    group: Any = None,
    qid: Any = None,
    weights: Any = None,
    columns: Mapping[str, Any] | None = None,
    cut: float | Sequence[float] | None = None,
    gain: float | Sequence[float] | None = None,
    **named: Any,
) -> list[Constraint]:
    """Constraints that ask for less of each cost, or more of each metric, than a baseline model has.

    Parameters
    ----------
    terms
        A term, or several.
    scores
        (n,) the baseline's, on the data that the constrained model is to be trained on.
    labels, group, qid, weights, columns, **named
        As for `lo.evaluate`.
    cut
        Share by which each cost is to fall, one for all terms or one for each; below 0 it may rise by that. .1 unless
        `gain` is given.
    gain
        In place of `cut`: share by which each term's own metric is to rise, ``at_least=``.

    Returns
    -------
    list of Constraint, ``at_most=(1 - cut) x cost`` or ``at_least=(1 + gain) x metric``.

    Raises
    ------
    TypeError, ValueError
        For no terms, for both shares, for a share out of range, for a cost or a metric that is 0, for a term without a
        metric of which more is better where `gain` is given; for data that do not fit.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> t1 = lo.LambdaRank(lo.NDCG(5), label="t1")
    >>> baseline = [0.0, 0.0]
    >>> lo.planning.bounds(t1, baseline, [1, 0], group=[2], t1=[0, 1], cut=0.1)[0].at_most  # .9 x .369 x log 2
    0.230238...
    >>> lo.planning.bounds(t1, baseline, [1, 0], group=[2], t1=[0, 1], gain=0.01)[0].at_least  # 1.01 x .631
    0.637239...
    """
    terms = several_terms(terms)
    if cut is not None and gain is not None:
        raise ValueError(f"give cut= (of the costs) or gain= (of the metrics), not both, found {cut!r} and {gain!r}")
    shares = (
        shares_of("gain", gain, terms) if gain is not None else shares_of("cut", 0.1 if cut is None else cut, terms)
    )
    queries = Queries.from_arrays(labels, group=group, qid=qid, weights=weights, columns=named_columns(columns, named))
    found = [measured(term, queries, scores) for term in terms]
    if gain is None:
        return [cut_by(term, each, share) for term, each, share in zip(terms, found, shares, strict=True)]
    out = []
    for term, each, share in zip(terms, found, shares, strict=True):
        if share <= -1:
            raise ValueError(f"gain must be a share above -1, found {share!r}")
        out.append(Constraint(term, at_least=(1.0 + share) * positive(each.metric, each.value)))
    return out


class Measured(NamedTuple):
    """A term at a model's scores."""

    name: str
    cost: float
    metric: str  # "" for none of which more is better
    value: float


def measured(term: Term, queries: Queries, scores: Any, metric: Any = None) -> Measured:
    """Cost of a term, and its own metric, or another one on its labels."""
    s = vector("scores", scores, len(queries))
    readings = Run(term, queries, dtype=np.float64).evaluate(s)
    cost = readings[f"cost/{term.name}"].value
    if metric is None:
        name, value = next(((n, r.value) for n, r in readings.items() if r.maximise), ("", math.nan))
        return Measured(term.name, cost, name, value)
    flags = queries.column(getattr(term, "label", None))
    value = metric(s, flags, group=np.diff(queries.borders), weights=queries.weights)
    return Measured(term.name, cost, qualified(getattr(term, "label", None), metric.name), value)


def several_terms(terms: Term | Sequence[Term]) -> tuple[Term, ...]:
    """One term or several, as several."""
    several = tuple(terms) if isinstance(terms, Iterable) else (terms,)
    if not several:
        raise ValueError("terms must hold at least one term, found none")
    for i, term in enumerate(several):
        check_term(f"terms[{i}]" if len(several) > 1 else "terms", term)
    names = [term.name for term in several]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"terms: {names.count(name)} have the name {name!r}: leave one out, or bound it by hand")
    return several


def shares_of(name: str, given: float | Sequence[float], terms: Sequence[Term]) -> list[float]:
    """One share for each term."""
    shares: list[Any] = [given] * len(terms) if np.ndim(given) == 0 else list(given)  # type: ignore[arg-type]
    if len(shares) != len(terms):
        raise ValueError(f"{name}: one for each term wanted, found {len(shares)} for {len(terms)} terms")
    for share in shares:
        check_number(name, share)
    return [float(share) for share in shares]


def cut_by(term: Term, at: Measured, share: float) -> Constraint:
    """A bound that share below a cost."""
    if share >= 1:
        raise ValueError(f"cut must be a share below 1, found {share!r}")
    if not at.cost > 0:
        raise ValueError(
            f"cost/{at.name} is {at.cost:g} at the baseline's scores, of which no share can be cut: leave the term "
            "out, or bound it by hand, Constraint(term, at_most=...)"
        )
    return Constraint(term, at_most=(1.0 - share) * at.cost)


def positive(name: str, value: float) -> float:
    """The baseline's metric, to divide by."""
    if not name:
        raise ValueError("gain: the term has no metric of which more is better; cut its cost, cut=")
    if not value > 0:
        raise ValueError(
            f"{name} is {value:g} at the baseline's scores, of which nothing is a share: count the gain in another "
            "metric, or bound this one by hand, Constraint(term, at_least=...)"
        )
    return value
