"""What all terms over pairs of rows have in common: setting up the pairs of a data set, and calling the kernel."""

from __future__ import annotations

import difflib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives import metrics
from lambda_objectives.arrays import Vector, brief, whole_number
from lambda_objectives.kernels import CONCORDANCE, GIVEN, NEVER, NONE, PRECISION, Pairs
from lambda_objectives.metrics import check_number, values
from lambda_objectives.metrics.tables import Tables, longest_query, query_of_rows
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, Reading, check_seed, instead_of


class Prepared(NamedTuple):
    """What a pair term keeps of a data set."""

    queries: Queries
    pairs: Pairs
    weights: Floats  # (n,) of the rows, or (0,) for none
    tables: Any = None  # of its metric


def prepare_metric(term: Any, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
    """Sort each query by the gains of the term's metric and set up the metric's tables."""
    ptr = queries.borders
    labels = queries.column(term.label, unjudged=option(term, "unjudged", False))
    tables = term.metric.tables(labels, ptr)
    longest = longest_query(ptr)
    if hasattr(term.metric, "changes"):  # no tables: each round every swap is done
        pairs = make_pairs(term, queries, dtype, GIVEN, labels, labels)
        return Prepared(queries, pairs._replace(given_ptr=_squares(ptr)), row_weights(queries, dtype), tables)
    _check_tables(term.metric, tables, ptr)
    discount = np.zeros(longest, dtype)
    discount[: len(tables.discount)] = tables.discount
    pairs = make_pairs(term, queries, dtype, tables.kind, tables.gain, labels)
    # of two ranks past the cut-off neither counts: such pairs are 0, so leave them out as a truncation does
    reach = longest if tables.ties else min(longest, len(tables.discount))
    pairs = pairs._replace(
        discount=discount, truncation=min(pairs.truncation, reach), ties=tables.ties, scale=np.abs(tables.scale)
    )
    return Prepared(queries, pairs, row_weights(queries, dtype), tables)


def make_pairs(term: Any, queries: Queries, dtype: npt.DTypeLike, kind: int, level: Vector, labels: Vector) -> Pairs:
    """Return the pairs of a data set, ordered by level, with whatever options the term has."""
    ptr = queries.borders
    query, longest = query_of_rows(ptr), longest_query(ptr)
    missing = np.isnan(labels)
    if missing.any():
        level = np.where(np.isnan(level), np.nanmin(level) if not missing.all() else 0.0, level)
    by_label = np.lexsort((level, query))
    better = worse = NONE
    propensity = option(term, "propensity", None)
    if propensity is not None:
        better, worse = _inverse(queries.column(propensity, "propensity"), term), np.ones(len(level))
    return Pairs(
        kind=kind,
        by_label=(by_label - ptr[query]).astype(np.int32),
        level=np.ascontiguousarray(level[by_label], dtype=dtype),
        discount=np.zeros(longest, dtype),
        truncation=min(longest, option(term, "truncation", None) or longest),
        sigma=float(term.sigma),
        gap_norm=bool(option(term, "score_gap_norm", False)),
        log_norm=bool(option(term, "log_norm", False)),
        sample=option(term, "sample", None) or 0,
        seed=option(term, "seed", 0),
        silent=missing[by_label] if missing.any() else NEVER,
        label=np.where(missing, 0.0, labels)[by_label] if option(term, "label_difference", False) else NONE,
        better=better,
        worse=worse,
        hinge=option(term, "loss", "logistic") == "hinge",
    )


def pair_gradient(prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
    """Write gradient and Hessian, return the value."""
    assert ranking.ptr is not None
    cost = np.empty(len(ranking.ptr) - 1)
    pairs = prepared.pairs
    if pairs.sample:
        pairs = pairs._replace(round=ranking.draw)
    ranking.kernels.pair_gradients(
        pairs, ranking.scores, ranking.ptr, ranking.order, ranking.rank, prepared.weights, grad, hess, cost,
        ranking.parts,
    )  # fmt: skip
    return prepared.queries.mean_over_queries(cost)


def metric_gradient(term: Any, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
    """Write gradient and Hessian, return the value; of a metric without tables every swap is done first."""
    if prepared.pairs.kind == GIVEN:
        changes = term.metric.changes(prepared.tables, ranking, prepared.pairs.by_label)
        prepared = prepared._replace(pairs=prepared.pairs._replace(given=changes))
    return pair_gradient(prepared, ranking, grad, hess)


def metric_readings(term: Any, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
    """Return the term's metric at the ranking's scores."""
    value = prepared.queries.mean_over_queries(values(term.metric, prepared.tables, ranking))
    return {term.name: Reading(value, term.metric.maximise)}


def row_weights(queries: Queries, dtype: npt.DTypeLike) -> Floats:
    """(n,) weights of the rows, or (0,) for none."""
    return np.empty(0, dtype) if queries.weights is None else queries.weights.astype(dtype)


def option(term: Any, name: str, default: Any) -> Any:
    """A parameter that not every pair term has."""
    return getattr(term, name, default)


def check_metric(metric: Any, argument: str = "metric") -> None:
    """Refuse what is no metric."""
    if isinstance(metric, type) or not hasattr(metric, "tables"):
        hint = instead_of(metric)
        if isinstance(metric, type):
            hint = f": write {metric.__name__}(...)"
        elif isinstance(metric, str):
            name, _, k = metric.partition("@")
            known = {each.lower(): each for each in metrics.__all__ if hasattr(getattr(metrics, each), "tables")}
            found = difflib.get_close_matches(name.lower(), known, n=1)
            hint = f": write {known[found[0]]}({k})" if found else f": there are {', '.join(known.values())}"
        raise TypeError(f"{argument} must be a metric object such as NDCG(10), found {brief(metric)}{hint}")


def check_options(term: Any) -> None:
    """Refuse options of pair terms that are out of range, whichever of them a term has."""
    check_number("sigma", term.sigma, above=0.0)
    if option(term, "truncation", None) is not None:
        whole_number("truncation", term.truncation, at_least=1)
    if option(term, "sample", None) is not None:
        whole_number("sample", term.sample, at_least=1)
    check_seed(option(term, "seed", 0))
    for name in ("score_gap_norm", "log_norm", "label_difference", "unjudged"):
        if not isinstance(option(term, name, False), bool | np.bool_):
            raise ValueError(f"{name} must be True or False, found {getattr(term, name)!r}")
    for name in ("hessian_floor", "propensity_floor"):
        check_number(name, option(term, name, 0.0))
        if option(term, name, 0.0) < 0:
            raise ValueError(f"{name} must not be negative, found {getattr(term, name)!r}")


def _check_tables(metric: Any, tables: Tables, ptr: npt.NDArray[np.int64]) -> None:
    """Refuse tables, which may be those of a user's own metric, that a kernel would read past the end of."""
    n, longest = int(ptr[-1]), longest_query(ptr)
    wrong = None
    if np.shape(tables.gain) != (n,):
        wrong = f"gain must be one number a row, found an array of shape {np.shape(tables.gain)} for {n} rows"
    elif not np.isfinite(tables.gain).all():
        wrong = f"gain must be finite, row {int(np.argmin(np.isfinite(tables.gain)))} is not"
    elif np.ndim(tables.discount) != 1 or len(tables.discount) > longest:
        wrong = f"discount must be at most as long as the longest query, {longest}, found {len(tables.discount)}"
    elif not np.isfinite(tables.discount).all() or (np.diff(tables.discount) > 0).any():
        wrong = "discount must be finite and must not rise with the rank"
    elif tables.kind in (PRECISION, CONCORDANCE) and np.shape(tables.grade) != (n,):
        wrong = "metrics of this kind need a grade, one a row"
    else:
        for name in ("scale", "offset", "empty"):
            if len(getattr(tables, name)) not in (0, len(ptr) - 1):
                wrong = f"{name} must be one number a query, found {len(getattr(tables, name))} for {len(ptr) - 1}"
    if wrong is not None:
        raise ValueError(f"metric: the tables of {metric!r} do not fit: {wrong}")


def _inverse(propensity: Vector, term: Any) -> Vector:
    """One over the propensity, which is taken to be no smaller than the floor."""
    wrong = (propensity <= 0) | (propensity > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"propensity: column {term.propensity!r} must hold probabilities above 0 and up to 1, row {row} is "
            f"{propensity[row]:g}"
        )
    inverse: Vector = 1.0 / np.maximum(propensity, term.propensity_floor)
    return inverse


def _squares(ptr: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.diff(ptr) ** 2)])
