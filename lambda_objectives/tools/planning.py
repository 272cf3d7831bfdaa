"""From a baseline to bounds: what to ask of a constraint, and what to compare it with.

Train without constraints, read the costs, cut them by some shares on a small sample, draw the line from cut to gain,
and read off the cut that promises the gain that is wanted: Momma, Bagheri Garakani and Sun (2019), section 4.2.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lambda_objectives.arrays import vector
from lambda_objectives.metrics import Precision, check_number
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.specs import AugmentedLagrangian, Constraint
from lambda_objectives.terms import Term, check_term, qualified
from lambda_objectives.tools.costline import CostLine, fit_line
from lambda_objectives.tools.fronts import front, hypervolume
from lambda_objectives.tools.scalarising import aggregated, drawn, grid, overweighted, scalarisations

__all__ = [
    "CostLine",
    "aggregated",
    "bounds",
    "drawn",
    "fit_line",
    "front",
    "grid",
    "hypervolume",
    "overweighted",
    "probe",
    "scalarisations",
    "shown",
]
CUTS = (0.05, 0.1, 0.15, 0.2, 0.3)


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
    terms = _terms(terms)
    if cut is not None and gain is not None:
        raise ValueError(f"give cut= (of the costs) or gain= (of the metrics), not both, found {cut!r} and {gain!r}")
    shares = _shares("gain", gain, terms) if gain is not None else _shares("cut", 0.1 if cut is None else cut, terms)
    queries = Queries.from_arrays(labels, group=group, qid=qid, weights=weights, columns={**(columns or {}), **named})
    found = [_measured(term, queries, scores) for term in terms]
    if gain is None:
        return [_cut(term, each, share) for term, each, share in zip(terms, found, shares, strict=True)]
    out = []
    for term, each, share in zip(terms, found, shares, strict=True):
        if share <= -1:
            raise ValueError(f"gain must be a share above -1, found {share!r}")
        out.append(Constraint(term, at_least=(1.0 + share) * _positive(each.metric, each.value)))
    return out


def shown(
    scores: Any, flags: Any, *, group: Any = None, qid: Any = None, weights: Any = None, k: int, share: bool = False
) -> float:
    """How many rows with a flag are among the first k of a query, on average ("such products in the top 5").

    Parameters
    ----------
    scores
        (n,) numbers; the rows of a query must lie together, equal scores rank by row.
    flags
        (n,) numbers: a row has it where they are not 0.
    group, qid
        Sizes of the queries, or one id a row.
    weights
        One a row, or one a query.
    k
        How many first ranks.
    share
        The share of the k ranks, which is `lo.Precision`, in place of the number.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For data that do not fit.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.planning.shown([0.3, 0.2, 0.1, 0.9], [1, 0, 1, 1], group=[3, 1], k=2)  # one, and one
    1.0
    """
    has = vector("flags", flags) != 0
    precision = Precision(k)(scores, has.astype(np.float64), group=group, qid=qid, weights=weights)
    return precision if share else k * precision


def probe(
    train: Callable[[Any], Any],
    primary: Term,
    terms: Term | Sequence[Term],
    labels: Any,
    *,
    group: Any = None,
    qid: Any = None,
    weights: Any = None,
    columns: Mapping[str, Any] | None = None,
    cuts: Sequence[float] = CUTS,
    metric: Any = None,
    rule: Callable[..., Any] = AugmentedLagrangian,
    tolerance: float = 1e-3,
    **named: Any,
) -> dict[str, CostLine]:
    """Train a baseline and a few constrained models on a small sample, and fit each term's `CostLine`.

    Parameters
    ----------
    train
        ``train(spec)`` trains on the sample and returns the model's raw scores on it, (n,). Called once with `primary`,
        then once for each cut.
    primary
        What is minimised.
    terms
        A term to bound, or several, which are then cut together, all by the same share.
    labels, group, qid, weights, columns, **named
        The sample, as for `lo.evaluate`.
    cuts
        Shares by which the costs are to fall.
    metric
        What the gain is counted in, on each term's own labels: ``lo.NDCG(5)``, or ``lo.Precision(5)`` for the number
        of such products in the top 5. None for each term's own metric.
    rule
        ``rule(primary, constraints)`` makes the spec: ``functools.partial(lo.AugmentedLagrangian, start=0)``, say.
    tolerance
        As for `fit_line`.

    Returns
    -------
    dict of CostLine, by the name of the term.

    Raises
    ------
    TypeError, ValueError
        For cuts out of range, a metric of which less is better, scores that do not fit the sample, costs or metrics of
        0, and if no model cut a cost.

    Warns
    -----
    LambdaObjectivesWarning
        For cuts that no model attained.

    Notes
    -----
    The line is fitted to the cuts that the models attained, not to those they were asked for, so a model that misses
    its bound is a point too. Let early stopping choose a round that keeps to the bound. Gains are those of the sample
    itself; for gains on other data call `fit_line`.

    Examples
    --------
    >>> import lightgbm as lgb, lambda_objectives as lo
    >>> small = lo.datasets.product_search(queries=200, seed=0)
    >>> data = lo.attach(lgb.Dataset(small.X, small.y, group=small.group), small.columns)
    >>> def train(spec):
    ...     objective = lo.Objective(spec)
    ...     stop = lo.lightgbm.early_stopping(objective, 30)
    ...     params = {"objective": objective, "num_leaves": 7, "verbosity": -1}
    ...     return lgb.train(params, data, 30, callbacks=[stop]).predict(small.X)
    >>> rank, t1 = lo.LambdaRank(lo.NDCG(5)), lo.LambdaRank(lo.NDCG(5), label="t1")
    >>> lines = lo.planning.probe(train, rank, t1, small.y, group=small.group, columns=small.columns, cuts=[0.1, 0.2])
    >>> 0 < lines["t1.ndcg@5"].cut_for(gain=0.02) < 0.1
    True
    """
    terms, cuts = _terms(terms), list(cuts)
    check_term("primary", primary)
    for cut in cuts:
        check_number("cuts", cut, above=0.0)
        if cut >= 1:
            raise ValueError(f"cuts must be shares below 1, found {cut!r}")
    if not cuts:
        raise ValueError("cuts must hold at least one share, such as 0.1")
    if metric is not None and not getattr(metric, "maximise", False):
        raise ValueError(f"metric must be one of which more is better, such as NDCG(5), found {metric!r}")
    queries = Queries.from_arrays(labels, group=group, qid=qid, weights=weights, columns={**(columns or {}), **named})
    scores = train(primary)
    base = [_measured(term, queries, scores, metric) for term in terms]
    models = []
    for cut in cuts:
        scores = train(rule(primary, [_cut(term, at, cut) for term, at in zip(terms, base, strict=True)]))
        models.append([_measured(term, queries, scores, metric) for term in terms])
    lines = {}
    for at, *found in zip(base, *models, strict=True):
        first = _positive(at.metric, at.value)
        lines[at.name] = fit_line(
            [1.0 - each.cost / at.cost for each in found],
            [each.value / first - 1.0 for each in found],
            asked=cuts, name=at.name, metric=at.metric, tolerance=tolerance,
        )  # fmt: skip
    return lines


class _Measured(NamedTuple):
    """A term at a model's scores."""

    name: str
    cost: float
    metric: str  # "" for none of which more is better
    value: float


def _measured(term: Term, queries: Queries, scores: Any, metric: Any = None) -> _Measured:
    """Cost of a term, and its own metric, or another one on its labels."""
    s = vector("scores", scores, len(queries))
    readings = Run(term, queries, dtype=np.float64).evaluate(s)
    cost = readings[f"cost/{term.name}"].value
    if metric is None:
        name, value = next(((n, r.value) for n, r in readings.items() if r.maximise), ("", math.nan))
        return _Measured(term.name, cost, name, value)
    flags = queries.column(getattr(term, "label", None))
    value = metric(s, flags, group=np.diff(queries.borders), weights=queries.weights)
    return _Measured(term.name, cost, qualified(getattr(term, "label", None), metric.name), value)


def _terms(terms: Term | Sequence[Term]) -> tuple[Term, ...]:
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


def _shares(name: str, given: float | Sequence[float], terms: Sequence[Term]) -> list[float]:
    """One share for each term."""
    shares: list[Any] = [given] * len(terms) if np.ndim(given) == 0 else list(given)  # type: ignore[arg-type]
    if len(shares) != len(terms):
        raise ValueError(f"{name}: one for each term wanted, found {len(shares)} for {len(terms)} terms")
    for share in shares:
        check_number(name, share)
    return [float(share) for share in shares]


def _cut(term: Term, at: _Measured, share: float) -> Constraint:
    """A bound that share below a cost."""
    if share >= 1:
        raise ValueError(f"cut must be a share below 1, found {share!r}")
    if not at.cost > 0:
        raise ValueError(
            f"cost/{at.name} is {at.cost:g} at the baseline's scores, of which no share can be cut: leave the term "
            "out, or bound it by hand, Constraint(term, at_most=...)"
        )
    return Constraint(term, at_most=(1.0 - share) * at.cost)


def _positive(name: str, value: float) -> float:
    """The baseline's metric, to divide by."""
    if not name:
        raise ValueError("gain: the term has no metric of which more is better; cut its cost, cut=")
    if not value > 0:
        raise ValueError(
            f"{name} is {value:g} at the baseline's scores, of which nothing is a share: count the gain in another "
            "metric, or bound this one by hand, Constraint(term, at_least=...)"
        )
    return value
