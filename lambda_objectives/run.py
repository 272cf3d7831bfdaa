"""One spec bound to one data set: everything that changes during a training is here.

The way of the data, each round::

    scores -> order within each query (once, shared) -> value and gradient of each term
           -> weights of the terms (fixed, or a rule's) -> grad, hess -> history
"""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import require_finite
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.specs import Spec, as_spec
from lambda_objectives.terms import Floats, Learning, Reading

STATE_VERSION = 2


class Work(NamedTuple):
    """All of a run that grows with the data."""

    queries: Queries
    prepared: list[Any]  # of each term
    ranking: Ranking
    parts: list[npt.NDArray[Any]]  # gradient and Hessian of each term
    total: list[npt.NDArray[Any]]  # their weighted sum, once there is need of one


class Run:
    """A spec at work on a data set.

    Parameters
    ----------
    spec
        A term or a spec.
    queries
        The data set.
    state
        What `state` returned at the end of an earlier run, to go on from there.
    threads
        How many threads the kernels may use; None for numba's number.
    dtype
        float32, as the boosters take gradients, or float64 for exact work.
    kernels
        The module whose loops are used; None for the compiled ones.
    """

    def __init__(
        self,
        spec: Any,
        queries: Queries,
        *,
        state: dict[str, Any] | None = None,
        threads: int | None = None,
        dtype: npt.DTypeLike = np.float32,
        kernels: ModuleType | None = None,
    ) -> None:
        if kernels is None:
            kernels = import_module("lambda_objectives.kernels.cpu")  # not before it is needed: it imports numba
        if threads is None:
            from numba import get_num_threads

            threads = get_num_threads()
        self.spec = as_spec(spec)
        self.kernels, self.threads, self.dtype = kernels, threads, dtype
        self.needs_order = any(term.needs_order for term in self.spec.terms)
        self.names = _unique([term.name for term in self.spec.terms])
        self.history: dict[str, list[float]] = {}
        self.rounds = 0
        self.curvature = 0.0  # sum of the last Hessian
        self.rule_state = self.spec.init()
        self.term_states: dict[str, Any] = {}  # of terms that learn, by name
        if state is not None:
            check_state(self.spec, state)
            self.rounds, self.rule_state, self.term_states = int(state["rounds"]), state["rule"], dict(state["terms"])
        self.bind(queries)

    def bind(self, queries: Queries) -> None:
        """Prepare the terms for a data set, and set up the buffers."""
        if self.needs_order:
            _ = queries.borders  # a data set without queries is refused here, by name
        self.work: Work | None = Work(
            queries,
            [term.prepare(queries, self.dtype) for term in self.spec.terms],
            Ranking(queries, self.kernels, self.threads),
            [np.zeros((2, len(queries)), self.dtype) for _ in self.spec.terms],
            [],
        )
        for name, term, prepared in zip(self.names, self.spec.terms, self.work.prepared, strict=True):
            if isinstance(term, Learning):
                self.term_states.setdefault(name, term.start(prepared))

    def release(self) -> None:
        """Give up all that grows with the data; history and state stay, and `bind` brings the rest back."""
        self.work = None

    @property
    def state(self) -> dict[str, Any]:
        """All that is needed to go on with a training elsewhere, as plain values that JSON can hold."""
        return {
            "version": STATE_VERSION, "rounds": self.rounds, "spec": repr(self.spec), "rule": self.rule_state,
            "terms": dict(self.term_states),
        }  # fmt: skip

    def step(self, scores: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        """One round: gradient and Hessian at the scores, everything logged.

        The two arrays are the run's own and are written over by the next call.
        """
        work = self._work
        costs = self._gradients(work, scores, learn=True)
        weights, self.rule_state, log = self.spec.update(self.rule_state, costs)
        grad, hess = _weighted(work, weights)
        require_finite("gradient (scores or weights too large?)", grad)
        self.curvature = require_finite("Hessian (scores or weights too large?)", hess)
        self.record(self._readings(work, costs) | {name: Reading(value, False) for name, value in log.items()})
        self.rounds += 1
        return grad, hess

    def evaluate(self, scores: npt.NDArray[Any]) -> dict[str, Reading]:
        """Every cost and metric of the spec at given scores; nothing of the run changes but its buffers."""
        work = self._work
        return self._readings(work, self._gradients(work, scores))

    def record(self, readings: dict[str, Reading]) -> None:
        """Add a round to the history."""
        for name, reading in readings.items():
            self.history.setdefault(name, []).append(reading.value)

    @property
    def primary(self) -> str:
        """The reading that early stopping watches: the first term's metric, or its cost where it has none."""
        work = self._work
        readings = self.spec.terms[0].readings(work.prepared[0], work.ranking)
        return next(iter(readings), f"cost/{self.names[0]}")

    @property
    def _work(self) -> Work:
        assert self.work is not None, "released"
        return self.work

    def _gradients(self, work: Work, scores: npt.NDArray[Any], learn: bool = False) -> list[float]:
        """Fill the gradients of every term and return the terms' values."""
        work.ranking.update(scores, self.needs_order)
        work.ranking.round = self.rounds
        values = []
        for name, term, prepared, (grad, hess) in zip(
            self.names, self.spec.terms, work.prepared, work.parts, strict=True
        ):
            if isinstance(term, Learning) and learn:
                value, self.term_states[name] = term.learn(
                    prepared, work.ranking, self.term_states[name], grad, hess
                )  # fmt: skip
            else:
                value = term.gradient(prepared, work.ranking, grad, hess)
            values.append(value)
        return values

    def _readings(self, work: Work, costs: list[float]) -> dict[str, Reading]:
        readings: dict[str, Reading] = {}
        for name, cost, term, prepared in zip(self.names, costs, self.spec.terms, work.prepared, strict=True):
            readings[f"cost/{name}"] = Reading(cost, False)
            for own, reading in term.readings(prepared, work.ranking).items():
                readings[name if own == term.name else own] = reading
        return readings


def _weighted(work: Work, weights: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Sum of the terms' gradients and Hessians, each times its weight."""
    if weights == (1.0,):
        grad, hess = work.parts[0]
        return grad, hess
    if not work.total:
        work.total.append(np.empty_like(work.parts[0]))
    total = work.total[0]
    np.multiply(work.parts[0], total.dtype.type(weights[0]), out=total)
    for weight, part in zip(weights[1:], work.parts[1:], strict=True):
        total += total.dtype.type(weight) * part
    grad, hess = total
    return grad, hess


def check_state(spec: Spec, state: Any) -> None:
    """Refuse a saved state that is none, or that belongs to another spec."""
    if not isinstance(state, dict) or state.get("version") != STATE_VERSION:
        raise ValueError(f"state must be what Objective.state returned (version {STATE_VERSION}), found {state!r}")
    if state["spec"] != repr(spec):
        raise ValueError(f"state belongs to another spec: saved from {state['spec']}, given to {spec!r}")


def _unique(names: list[str]) -> list[str]:
    """Number the names that occur more than once."""
    total, seen = Counter(names), Counter[str]()
    out = []
    for name in names:
        seen[name] += 1
        out.append(name if total[name] == 1 or seen[name] == 1 else f"{name}-{seen[name]}")
    return out
