"""From a baseline to bounds: what to ask of a constraint, and what to compare it with.

Train without constraints, read the costs, cut them by some shares on a small sample, draw the line from cut to gain,
and read off the cut that promises the gain that is wanted: Momma, Bagheri Garakani and Sun (2019), section 4.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lambda_objectives.arrays import vector
from lambda_objectives.columns import named_columns
from lambda_objectives.evaluation import evaluate
from lambda_objectives.metrics import Precision, check_number
from lambda_objectives.queries import Queries
from lambda_objectives.specs import AugmentedLagrangian, WeightedSum
from lambda_objectives.terms import Term, check_term
from lambda_objectives.tools.bounding import bounds, cut_by, measured, positive, several_terms
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
    "sweep",
]
CUTS = (0.05, 0.1, 0.15, 0.2, 0.3)


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
    terms, cuts = several_terms(terms), _checked(cuts)
    check_term("primary", primary)
    if metric is not None and not getattr(metric, "maximise", False):
        raise ValueError(f"metric must be one of which more is better, such as NDCG(5), found {metric!r}")
    queries = Queries.from_arrays(labels, group=group, qid=qid, weights=weights, columns=named_columns(columns, named))
    scores = train(primary)
    base = [measured(term, queries, scores, metric) for term in terms]
    models = []
    for cut in cuts:
        scores = train(rule(primary, [cut_by(term, at, cut) for term, at in zip(terms, base, strict=True)]))
        models.append([measured(term, queries, scores, metric) for term in terms])
    lines = {}
    for at, *found in zip(base, *models, strict=True):
        first = positive(at.metric, at.value)
        lines[at.name] = fit_line(
            [1.0 - each.cost / at.cost for each in found],
            [each.value / first - 1.0 for each in found],
            asked=cuts, name=at.name, metric=at.metric, tolerance=tolerance,
        )  # fmt: skip
    return lines


def sweep(
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
    rule: Callable[..., Any] = AugmentedLagrangian,
    **named: Any,
) -> list[dict[str, float]]:
    """Train a baseline and a constrained model for each of several cuts: the models that a front is drawn through.

    Parameters
    ----------
    train
        ``train(spec)`` trains and returns the model's raw scores on the data below, (n,).
    primary, terms, rule
        As for `probe`.
    labels, group, qid, weights, columns, **named
        The data, as for `lo.evaluate`.
    cuts
        Shares by which the costs of all terms are to fall.

    Returns
    -------
    list of dict
        The baseline, then a model for each cut: ``"cut"``, and all costs and metrics as `lo.evaluate` has them.

    Raises
    ------
    TypeError, ValueError
        As for `probe`.

    Examples
    --------
    >>> import lightgbm as lgb, lambda_objectives as lo
    >>> shop = lo.datasets.product_search(queries=200, seed=0)
    >>> data = lo.attach(lgb.Dataset(shop.X, shop.y, group=shop.group), shop.columns)
    >>> def train(spec):
    ...     objective = lo.Objective(spec)
    ...     stop = lo.lightgbm.early_stopping(objective, 30)
    ...     params = {"objective": objective, "num_leaves": 7, "verbosity": -1}
    ...     return lgb.train(params, data, 30, callbacks=[stop]).predict(shop.X)
    >>> rank, t1 = lo.LambdaRank(lo.NDCG(5)), lo.LambdaRank(lo.NDCG(5), label="t1")
    >>> models = lo.planning.sweep(train, rank, t1, shop.y, group=shop.group, columns=shop.columns, cuts=[0.1, 0.2])
    >>> points = [[model["ndcg@5"], model["t1.ndcg@5"]] for model in models]
    >>> bool(lo.planning.front(points)[-1]), lo.planning.hypervolume(points, [0, 0]) > points[0][0] * points[0][1]
    (True, True)
    """
    terms, cuts = several_terms(terms), _checked(cuts)
    check_term("primary", primary)
    data: dict[str, Any] = dict(group=group, qid=qid, weights=weights, columns=named_columns(columns, named))
    together = WeightedSum([primary, *terms], [1.0] * (1 + len(terms)))
    scores = train(primary)
    models = [{"cut": 0.0} | evaluate(together, scores, labels, **data)]
    for cut in cuts:
        spec = rule(primary, bounds(terms, scores, labels, **data, cut=cut))
        models.append({"cut": cut} | evaluate(together, train(spec), labels, **data))
    return models


def _checked(cuts: Sequence[float]) -> list[float]:
    """Refuse shares by which no cost can be cut."""
    for cut in cuts:
        check_number("cuts", cut, above=0.0)
        if cut >= 1:
            raise ValueError(f"cuts must be shares below 1, found {cut!r}")
    if not len(cuts):
        raise ValueError("cuts must hold at least one share, such as 0.1")
    return list(cuts)
