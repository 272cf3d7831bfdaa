"""What a booster's call of an objective is about: which data set, which scores, which other workers."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives import partitions
from lambda_objectives.arrays import brief
from lambda_objectives.callers import adapter_of, adapters, booster_above, data_above
from lambda_objectives.columns import add_columns
from lambda_objectives.meeting import check_whole, introduce
from lambda_objectives.queries import Queries
from lambda_objectives.terms import Term
from lambda_objectives.version import __version__
from lambda_objectives.workers import ALONE, Workers

EVALUATES, TRAINS = ("__inner_eval", "eval_set"), ("update", "boost")  # methods of both boosters


class Call(NamedTuple):
    """A call of an objective, understood."""

    adapter: Any  # the module of the booster; None for arrays passed by hand
    booster: Any  # the one that is calling; None by hand
    data: Any  # the Dataset or DMatrix; None for arrays
    scores: npt.NDArray[Any]
    read: Callable[[], Queries]
    workers: Workers
    estimator: bool = False  # whether it came without its data set, which was found where the estimator keeps it
    method: str = ""  # of the booster, that is calling

    @property
    def threads(self) -> int | None:
        """How many threads the booster was told to use; None by hand, or if it was told nothing."""
        return None if self.booster is None else self.adapter.threads(self.booster)


class Needs(NamedTuple):
    """What a spec wants of a data set."""

    order: bool  # the rows of each query ranked
    groups: bool  # whole queries, for that or something else

    @classmethod
    def of(cls, terms: Sequence[Term], watch: Sequence[Any]) -> Needs:
        """What some terms want, and metrics watched besides."""
        order = bool(watch) or any(term.needs_order for term in terms)
        return cls(order, order or any(getattr(term, "within_group", None) is True for term in terms))


def understand(
    first: Any,
    second: Any,
    weights: Any,
    group: Any,
    needs: Needs,
    known: MutableMapping[Any, Workers],
    home: str,
) -> Call:
    """Tell (scores, data set) from (labels, scores, weights, group), and find the booster that is calling.

    Parameters
    ----------
    first, second, weights, group
        What was passed.
    needs
        What the spec wants.
    known
        The workers of each booster that has called before.
    home
        The version of this package where the objective comes from.
    """
    adapter, booster, method, data, scores = adapter_of(second), None, "", second, first
    estimator = adapter is None
    if adapter is not None:
        booster, method = booster_above(adapter.Booster)
    else:
        data, scores = None, second
        if adapter_of(first) is not None:
            raise TypeError(f"arguments: scores first, then the data set; the {type(first).__name__} was found first")
        if np.ndim(scores) == 0 or np.asarray(scores).dtype.kind not in "biuf":
            raise TypeError(
                f"the second argument must be a LightGBM Dataset, an XGBoost DMatrix or scores, found {brief(second)}"
            )
        for candidate in adapters():
            booster, method = booster_above(candidate.Booster)
            if booster is not None:
                adapter, data = candidate, data_above(candidate.owns)  # what an estimator keeps to itself
                break
    if data is None:
        read = partial(Queries.from_arrays, first, group=group, weights=weights)
        return Call(adapter, booster, None, np.asarray(scores), read, ALONE, method=method)
    workers = ALONE if booster is None else known.get(booster)
    if workers is None:
        workers = known[booster] = _met(adapter, booster, home)
    read = partial(_read, adapter, booster, data, workers, needs)
    return Call(adapter, booster, data, np.asarray(scores), read, workers, estimator, method)


def check_purpose(call: Call, training: bool) -> None:
    """Refuse an objective where a booster wants a metric, and metrics where it wants an objective."""
    if training and call.method in EVALUATES:
        raise TypeError(
            "feval (LightGBM) or custom_metric (XGBoost): found the Objective itself, which is no metric; write "
            "objective.metrics"
        )
    if not training and call.method in TRAINS:
        raise TypeError(
            "objective: found objective.metrics, which gives no gradients; write objective, the Objective itself"
        )


def _met(adapter: Any, booster: Any, home: str) -> Workers:
    """The workers that a booster trains with, met for the first time."""
    workers: Workers = adapter.workers(booster)
    if workers.size > 1:
        weakref.finalize(booster, workers.close).atexit = False
        introduce(workers, __version__, home, adapter.evaluated(booster))
    return workers


def _read(adapter: Any, booster: Any, data: Any, workers: Workers, needs: Needs) -> Queries:
    """Read a data set, on a worker with the columns that came with its partitions."""
    local = partitions.find(data, booster)
    if local is not None:
        if needs.groups:
            check_whole(workers, local.qid, local.name)
        add_columns(data, local.rows, local.columns, local.qid if local.groups else None).source = local.name
    queries: Queries = adapter.read(data, needs.order)
    return dataclasses.replace(queries, workers=workers)
