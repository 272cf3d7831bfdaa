"""What several workers found out about their rows, made into what one process would have found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lambda_objectives.metrics.tables import values
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Reading, Term, mass
from lambda_objectives.terms.dependence import DistanceCovariance
from lambda_objectives.warn import warn
from lambda_objectives.whole import Whole

LIMIT = 10_000_000  # rows of all workers that each of them takes in for terms that want them together


def whole_for(terms: Sequence[Term], names: Sequence[str], queries: Queries) -> tuple[Whole | None, list[bool]]:
    """The rows of all workers, if any term wants them together, and which terms are given these.

    Beyond `LIMIT` rows a dependence is estimated in blocks, one for each worker; other terms are refused.
    """
    wanted = [queries.workers.size > 1 and bool(getattr(term, "together", False)) for term in terms]
    if not any(wanted):
        return None, wanted
    (rows,) = queries.total(len(queries))
    if rows <= LIMIT:
        return Whole(queries), wanted
    for term, name, wants in zip(terms, names, wanted, strict=True):
        if wants and not isinstance(term, DistanceCovariance):
            raise ValueError(
                f"{name} wants the rows of all workers in one place, and {rows:.0f} are more than {LIMIT}: compare "
                "within queries (within_group=True), or train on fewer rows"
            )
        if wants and queries.workers.rank == 0:
            warn(
                f"{name}: {rows:.0f} rows are more than the {LIMIT} that a worker takes in: the dependence is "
                f"estimated on each of the {queries.workers.size} workers' rows by itself. That is unbiased if rows "
                "are spread over the workers at random; what differs from worker to worker is not seen. "
                "within_group=True is exact"
            )
    return None, [False] * len(terms)


def pooled(
    terms: Sequence[Term],
    prepared: Sequence[Any],
    queries: Queries,
    whole: Sequence[bool],
    costs: list[float],
    readings: list[dict[str, Reading]],
) -> tuple[list[float], list[dict[str, Reading]]]:
    """Costs and readings of all workers' rows, by one exchange; whole: of which terms they are that already."""
    if queries.workers.size == 1:
        return costs, readings
    pairs: list[tuple[float, float]] = []  # (what a value is a mean over, times that)
    for term, own, together, cost, found in zip(terms, prepared, whole, costs, readings, strict=True):
        if together:
            continue
        weight = float(term.pooled_by(own)) if hasattr(term, "pooled_by") else mass(term, queries)
        pairs.append(_parts(Reading(cost, False), weight))
        pairs.extend(_parts(reading, weight) for reading in found.values())
    sums = iter(queries.workers.exchange(np.array(pairs, dtype=np.float64).ravel()).reshape(-1, 2).tolist())
    new_costs, new_readings = [], []
    for together, cost, found in zip(whole, costs, readings, strict=True):
        new_costs.append(cost if together else _made(Reading(cost, False), *next(sums)))
        new_readings.append(
            found if together else {name: r._replace(value=_made(r, *next(sums))) for name, r in found.items()}
        )
    return new_costs, new_readings


def watched(metrics: Sequence[Any], tables: Sequence[Any], queries: Queries, ranking: Ranking) -> dict[str, Reading]:
    """Values of metrics at the scores of a ranking, means over the queries of all workers."""
    of_queries = [values(metric, own, ranking) for metric, own in zip(metrics, tables, strict=True)]
    if queries.workers.size == 1:
        means = [queries.mean_over_queries(each) for each in of_queries]
    else:
        weights = queries.query_weights
        *sums, total = queries.total(*(float((weights * each).sum()) for each in of_queries), float(weights.sum()))
        means = [each / total if total > 0 else 0.0 for each in sums]
    return {metric.name: Reading(mean, metric.maximise) for metric, mean in zip(metrics, means, strict=True)}


def _parts(reading: Reading, weight: float) -> tuple[float, float]:
    """What of a worker's reading is added up."""
    if reading.pooled == "sum":
        return 0.0, reading.value
    weight = weight if reading.mass is None else reading.mass
    value = reading.value**2 if reading.pooled == "root" else reading.value
    return weight, weight * value if weight else 0.0


def _made(reading: Reading, weight: float, total: float) -> float:
    """The reading of all workers' rows."""
    if reading.pooled == "sum":
        return total
    mean = total / weight if weight > 0 else 0.0
    return float(mean**0.5) if reading.pooled == "root" else float(mean)
