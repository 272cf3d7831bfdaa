"""One spec bound to one data set: everything that changes during a training is here.

The way of the data, each round::

    scores -> order within each query (once, shared) -> value and gradient of each term
           -> weights of the terms (fixed, or a rule's) -> grad, hess -> history
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import brief, require_finite
from lambda_objectives.pooling import pooled, watched, whole_for
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.specs import Round, Sight, Spec, Weights, as_spec
from lambda_objectives.terms import Choosy, Floats, Learning, Reading, mass
from lambda_objectives.whole import Whole

STATE_VERSION = 3


class Work(NamedTuple):
    """All of a run that grows with the data."""

    queries: Queries
    prepared: list[Any]  # of each term
    ranking: Ranking
    rankings: list[Ranking]  # the one each term is given: this, or that of all workers' rows
    whole: Whole | None  # the rows of all workers, where a term wants them
    masses: tuple[float, ...]  # what the value of each term is multiplied by in its gradient
    parts: npt.NDArray[Any]  # (terms, 2, outputs x n): gradient and Hessian of each term
    total: list[npt.NDArray[Any]]  # their weighted sum, once there is need of one
    tables: list[Any]  # of each metric that is watched besides


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
    arrays
        CuPy, to compute dependence on a GPU; None for the loops.
    watch
        Further metrics, of the data set's own labels, whose values are among the readings.
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
        arrays: Any = None,
        watch: Sequence[Any] = (),
    ) -> None:
        if kernels is None:
            kernels = import_module("lambda_objectives.kernels.cpu")  # not before it is needed: it imports numba
        if threads is None:
            threads = import_module("lambda_objectives.kernels.threads").usual()
        self.spec = as_spec(spec)
        self.kernels, self.threads, self.dtype, self.arrays = kernels, threads, dtype, arrays
        self.watch = tuple(watch)
        self.needs_order = bool(self.watch) or any(term.needs_order for term in self.spec.terms)
        self.names = _unique([term.name for term in self.spec.terms])
        self.outputs = int(getattr(self.spec.terms[0], "outputs", 1))  # scores of a row
        self.history: dict[str, list[float]] = {}
        self.last: dict[str, Reading] = {}  # of the round that was logged last
        self.begun = self.rounds = 0  # rounds behind it: when it was made, and now
        self.planned: int | None = None  # rounds there will be, if that is known
        self.rate = 0.1  # the booster's learning rate
        self.watched: Round | None = None  # of a validation set, where the spec follows one
        self.seen: Round | None = None  # what `evaluate` found last
        # calls up who chooses the round, if somebody does, and says so where none will do
        self.judge: Callable[[], Any] | None = None
        self.tolerance: float | None = None  # of early stopping, where it chooses the round by this data set
        self.curvature = 0.0  # sum of the last Hessian
        self.rule_state = self.spec.init()
        self.term_states: dict[str, Any] = {}  # of terms that learn, by name
        if state is not None:
            check_state(self.spec, state)
            self.restore(state)
            self.begun = self.rounds
        self.before = self.state  # as it was before the last step
        self.bind(queries)

    def bind(self, queries: Queries) -> None:
        """Prepare the terms for a data set, and set up the buffers."""
        if self.needs_order:
            _ = queries.borders  # a data set without queries is refused here, by name
        terms = self.spec.terms
        whole, wants = whole_for(terms, self.names, queries)
        rows, *masses = queries.total(len(queries), *(mass(term, queries) for term in terms))
        self.rows = int(rows)  # of all workers
        ranking = together = Ranking(queries, self.kernels, self.threads, self.outputs, self.arrays)
        if whole is not None:
            together = Ranking(
                whole.queries, self.kernels, self.threads, self.outputs, self.arrays, gather=whole.gather
            )
        self.work: Work | None = Work(
            queries,
            [
                term.prepare(whole.queries if whole is not None and wanted else queries, self.dtype)
                for term, wanted in zip(terms, wants, strict=True)
            ],
            ranking,
            [together if wanted else ranking for wanted in wants],
            whole,
            tuple(masses),
            np.zeros((len(terms), 2, self.outputs * len(queries)), self.dtype),
            [],
            [metric.tables(queries.column(None), queries.borders) for metric in self.watch],
        )
        for name, term, prepared in zip(self.names, self.spec.terms, self.work.prepared, strict=True):
            if isinstance(term, Learning):
                self.term_states.setdefault(name, term.start(prepared))

    @property
    def rank(self) -> int:
        """Which worker of the training this is."""
        return self._work.queries.workers.rank

    def release(self) -> None:
        """Give up all that grows with the data; history and state stay, and `bind` brings the rest back."""
        self.work = None

    @property
    def state(self) -> dict[str, Any]:
        """All that is needed to go on with a training elsewhere, as plain values that JSON can hold."""
        return {
            "version": STATE_VERSION, "rounds": self.rounds, "spec": repr(self.spec), "rule": self.rule_state,
            "terms": dict(self.term_states),
            "watched": None if self.watched is None else _plain(self.watched),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.rounds, self.rule_state, self.term_states = int(state["rounds"]), state["rule"], dict(state["terms"])
        watched = state["watched"]
        if watched is not None:
            watched = Round(**watched | {"metrics": [math.nan if m is None else m for m in watched["metrics"]]})
        self.watched = watched

    def step(self, scores: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        """One round: gradient and Hessian at the scores, everything logged.

        The two arrays are the run's own and are written over by the next call.
        """
        work = self._work
        self.before = self.state
        found = self._gradients(work, scores, learn=True)
        if not self.history:
            self._check(work)
        readings, round = self._readings(work, *found)
        weights, self.rule_state, log = self.spec.advance(self.rule_state, round._replace(watched=self.watched))
        grad, hess = self._weighted(work, weights)
        advice = "lower the learning rate, or the weights"
        require_finite("gradient (scores or weights too large?)", grad, advice)
        curvature = require_finite("Hessian (scores or weights too large?)", hess, advice)
        (self.curvature,) = work.queries.total(curvature)
        self.record(readings | {name: Reading(value, name.startswith("margin/")) for name, value in log.items()})
        self.rounds += 1
        if self.outputs > 1 and scores.ndim > 1:
            return grad.reshape(self.outputs, -1).T, hess.reshape(self.outputs, -1).T
        return grad, hess

    def evaluate(self, scores: npt.NDArray[Any], state: Any = None) -> dict[str, Reading]:
        """Every cost and metric of the spec at given scores; nothing of the run changes but its buffers.

        By the state of a rule, that of the training a data set is watched in, or the run's own.
        """
        work = self._work
        readings, round = self._readings(work, *self._gradients(work, scores))
        self.seen = round
        return readings | self.spec.readings(self.rule_state if state is None else state, round)

    @property
    def settled(self) -> bool:
        """Whether the spec's rule asks for all that is wanted of the model by now."""
        return self.spec.settled(self.rule_state, Round(self.rounds, (), (), (), self.planned, self.rate))

    def record(self, readings: dict[str, Reading]) -> None:
        """Add a round to the history."""
        self.last = readings
        for name, reading in readings.items():
            self.history.setdefault(name, []).append(reading.value)

    @property
    def primary(self) -> str:
        """The reading that early stopping watches: the first term's metric, or its cost where it has none."""
        work = self._work
        readings = self.spec.terms[0].readings(work.prepared[0], work.rankings[0])
        return self.spec.watch(next(iter(readings), f"cost/{self.names[0]}"))

    @property
    def _work(self) -> Work:
        assert self.work is not None, "released"
        return self.work

    def _check(self, work: Work) -> None:
        """Refuse training data that the spec or one of its terms can do nothing with."""
        self.spec.check(work.queries)
        for term, prepared, ranking in zip(self.spec.terms, work.prepared, work.rankings, strict=True):
            if isinstance(term, Choosy):
                whole = None if ranking is work.ranking else work.whole
                term.check(prepared, work.queries if whole is None else whole.queries)

    def _gradients(self, work: Work, scores: npt.NDArray[Any], learn: bool = False) -> tuple[list[float], Any]:
        """Fill the gradients of every term; return the terms' values, and how the spec has coupled the terms."""
        work.ranking.update(scores, self.needs_order)
        work.ranking.round = self.rounds
        if work.whole is not None:
            self._look_at_all(work)
        values = []
        for i, (name, term, prepared) in enumerate(zip(self.names, self.spec.terms, work.prepared, strict=True)):
            ranking, part = work.rankings[i], work.parts[i, :, : getattr(term, "outputs", 1) * len(work.queries)]
            grad, hess = part
            if work.whole is not None and ranking is not work.ranking:
                grad, hess = np.empty((2, len(work.whole.queries)), self.dtype)
            if isinstance(term, Learning) and learn:
                value, self.term_states[name] = term.learn(prepared, ranking, self.term_states[name], grad, hess)
            else:
                value = term.gradient(prepared, ranking, grad, hess)
            if work.whole is not None and ranking is not work.ranking:
                part[0], part[1] = grad[work.whole.own], hess[work.whole.own]
            values.append(value)
        sight = Sight(work.queries, work.prepared, work.ranking, work.rankings, work.parts, values)
        return values, self.spec.couple(sight)

    def _look_at_all(self, work: Work) -> None:
        """Take the scores of all workers' rows."""
        assert work.whole is not None
        together = next(ranking for ranking in work.rankings if ranking is not work.ranking)
        scores = np.stack([work.whole.gather(output) for output in work.ranking.outputs], axis=1)
        ordered = any(
            term.needs_order for term, at in zip(self.spec.terms, work.rankings, strict=True) if at is together
        )
        together.update(scores[:, 0] if self.outputs == 1 else scores, ordered)
        together.round = self.rounds

    def _readings(self, work: Work, costs: list[float], coupling: Any) -> tuple[dict[str, Reading], Round]:
        """All there is to say of the terms at the ranking's scores, and the same as rules want it."""
        readings: dict[str, Reading] = {}
        metrics = []
        terms, prepareds = self.spec.terms, work.prepared
        each = [term.readings(own, at) for term, own, at in zip(terms, prepareds, work.rankings, strict=True)]
        whole = [ranking is not work.ranking for ranking in work.rankings]
        costs, each = pooled(terms, prepareds, work.queries, whole, costs, each)
        if self.spec.totals:
            costs = [cost * mass for cost, mass in zip(costs, work.masses, strict=True)]
        for name, cost, term, owns in zip(self.names, costs, terms, each, strict=True):
            readings[f"cost/{name}"] = Reading(cost, False)
            for own, reading in owns.items():
                readings[name if own == term.name else own] = reading
            metrics.append(next((reading.value for reading in owns.values() if reading.maximise), math.nan))
        if self.watch:
            readings |= watched(self.watch, work.tables, work.queries, work.ranking)
        return readings, Round(self.rounds, costs, metrics, work.masses, self.planned, self.rate, coupling=coupling)

    def _weighted(self, work: Work, weights: Weights) -> tuple[Floats, Floats]:
        """Sum of the terms' gradients and Hessians, each times its weight."""
        if all(each[0] == 1.0 and not any(each[1:]) for each in weights):  # the first term alone, as it is
            grad, hess = work.parts[0]
            return grad, hess
        if not work.total:
            work.total.append(np.empty_like(work.parts[0]))
        self.kernels.weighted_sum(np.array(weights, self.dtype), work.parts, work.total[0], self.threads)
        grad, hess = work.total[0]
        return grad, hess


def array_module(device: str) -> Any:
    """CuPy for the device "cuda", None for "cpu"; an error says what is missing."""
    if device == "cpu":
        return None
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise RuntimeError(
            f"device={device!r} needs CuPy and a GPU that it can use ({type(error).__name__}: {error}): install the "
            "extra cuda12 or cuda13 of lambda-objectives, or leave device out"
        ) from error
    return cupy


def _plain(round: Round) -> dict[str, Any]:
    """A round as JSON can hold it, which has no NaN."""
    return round._asdict() | {"metrics": [None if math.isnan(m) else m for m in round.metrics], "coupling": None}


def check_state(spec: Spec, state: Any) -> None:
    """Refuse a saved state that is none, or that belongs to another spec."""
    wanted = {"version", "rounds", "spec", "rule", "terms", "watched"}
    if not isinstance(state, dict) or state.get("version") != STATE_VERSION or not wanted <= state.keys():
        hint = "; of its text in a file take json.loads(text)" if isinstance(state, str | bytes) else ""
        raise ValueError(
            f"state must be what Objective.state returned (version {STATE_VERSION}), found {brief(state)}{hint}"
        )
    if state["spec"] != repr(spec):
        raise ValueError(
            f"state belongs to another spec: saved from {state['spec']}, given to {spec!r}; write the spec as it was, "
            "or begin without a state"
        )


def _unique(names: list[str]) -> list[str]:
    """Number the names that occur more than once."""
    total, seen = Counter(names), Counter[str]()
    out = []
    for name in names:
        seen[name] += 1
        out.append(name if total[name] == 1 or seen[name] == 1 else f"{name}-{seen[name]}")
    return out
