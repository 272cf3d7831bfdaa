"""Which round of a training to return: the best one that keeps to every bound."""

from __future__ import annotations

import math
import statistics
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lambda_objectives.arrays import brief, nearest, whole_number
from lambda_objectives.metrics import check_number
from lambda_objectives.run import Run
from lambda_objectives.terms import Reading
from lambda_objectives.warn import warn

MARGIN = "margin/"


class Watched(NamedTuple):
    """A data set that is watched while a booster trains."""

    data: Any
    run: Run
    training: Run

    @property
    def lags(self) -> bool:
        """Whether what is known of it is always of the model before the last tree: true of the training data."""
        return self.run is self.training


class Candidate(NamedTuple):
    """A round that may be returned."""

    trees: int  # grown in this training, those before it was stopped and gone on with included
    score: float  # the metric
    value: float  # the same, greater is better
    margins: dict[str, float]
    results: Any  # what the booster knew of it
    states: list[dict[str, Any]]  # of the trainings, to go on from this round

    @property
    def worst(self) -> float:
        """The least margin."""
        return min((-math.inf if math.isnan(m) else m for m in self.margins.values()), default=0.0)


class Choice:
    """The best round so far.

    Parameters
    ----------
    objective
        What is being trained.
    rounds
        Stop after so many rounds without a better one.
    data
        The data set to watch; None for the first one evaluated besides the training data, else the training data.
    metric
        The reading to watch; None for the primary term's metric.
    tolerance
        Share of a bound by which it may be broken.
    """

    def __init__(self, objective: Any, rounds: int, data: Any, metric: str | None, tolerance: float) -> None:
        if not hasattr(objective, "watched"):
            raise TypeError(f"objective must be the Objective that is trained, found {brief(objective)}")
        whole_number("rounds", rounds, at_least=1)
        check_number("tolerance", tolerance)
        if tolerance < 0:
            raise ValueError(
                f"tolerance must not be negative, found {tolerance!r}; it is a share of a bound, such as 0.01"
            )
        self.objective, self.rounds, self.data, self.metric, self.tolerance = objective, rounds, data, metric, tolerance
        self.best: Candidate | None = None
        self.led: Candidate | None = None  # the best since the rule has led the costs to their bounds
        self.settled_at: int | None = None
        self.broken_at: int | None = None  # the first round that broke a bound
        self.deepest: float | None = None  # the least margin of all, where a bound was broken
        self.recovered: tuple[float, int] | None = None  # the best margin since, and its round
        self.watched: list[Watched] = []
        self.start = 0  # trees that the model had before the training
        self.before = 0  # rounds of the training before it was stopped and gone on with
        self.trees = 0  # rounds of it so far
        self.results: Any = None  # what the booster knew of the last one

    def begin(self, boosters: Sequence[Any], evaluates: bool, start: int) -> None:
        """Take up a training, after its first round; a choice that a checkpoint holds is gone on with.

        Parameters
        ----------
        boosters
            The booster, or those of the folds.
        evaluates
            Whether it was given data sets to evaluate.
        start
            Trees that the model had before.
        """
        self.best, self.led, self.settled_at = None, None, None
        self.broken_at, self.deepest, self.recovered = None, None, None
        self.start, self.before, self.trees, self.results = start, 0, 0, None
        self.watched = [self.objective.watched(booster, self.data, evaluates) for booster in boosters]
        saved = (self.objective.begins_from or {}).get("choice")
        if saved is not None and len(boosters) == 1:
            self._take_up(saved)
        for _, run, training in self.watched:
            run.tolerance = self.tolerance
            training.judge = weakref.ref(self)
            if training.planned is not None and self.rounds < training.planned - training.begun + self.before:
                training.planned = None  # it may be over any time

    @property
    def saved(self) -> dict[str, Any]:
        """All that is needed to go on with it elsewhere, as plain values that JSON can hold."""
        return {
            **self._question, "open": self.watched[0].training.planned is None, "start": self.start,
            "trees": self.trees, "settled_at": self.settled_at, "broken_at": self.broken_at,
            "deepest": self.deepest, "recovered": self.recovered, "results": _plain(self.results),
            "best": _told(self.best), "led": _told(self.led),
        }  # fmt: skip

    @property
    def _question(self) -> dict[str, Any]:
        """What is asked for; a choice by another one is of no use."""
        return {"metric": self.metric, "tolerance": self.tolerance, "of_training_data": self.watched[0].lags}

    def _take_up(self, saved: dict[str, Any]) -> None:
        """Go on with a choice that was saved."""
        if differs := [name for name, value in self._question.items() if saved[name] != value]:
            warn(
                f"early stopping begins anew at round {saved['trees'] + 1}, earlier rounds cannot be chosen: the "
                f"checkpoint is of a training that was watched by another {' and '.join(differs).replace('_', ' ')}"
            )
            return
        self.start, self.before, self.results = saved["start"], saved["trees"], saved["results"]
        self.settled_at, self.broken_at, self.deepest = saved["settled_at"], saved["broken_at"], saved.get("deepest")
        self.recovered = None if saved.get("recovered") is None else tuple(saved["recovered"])
        self.best, self.led = (None if saved.get(n) is None else Candidate(**saved[n]) for n in ("best", "led"))

    def offer(self, trees: int, results: Any = None, last: Sequence[Mapping[str, Reading]] | None = None) -> bool:
        """Take what is known after so many rounds; last: at the very end, of the data that lag. Whether to stop."""
        lags = self.watched[0].lags and last is None
        trees += self.before
        known, self.trees, self.results = self.results if lags else results, trees, results
        if trees - lags >= 1:
            readings = last or [watched.run.last for watched in self.watched]
            states = [w.training.before if lags else w.training.state for w in self.watched]
            self._consider(self._candidate(trees - lags, readings, known, states))
        if self.settled_at is None:
            if not all(watched.training.settled for watched in self.watched):
                return False
            self.settled_at = trees - lags
        return trees - lags - max(self.settled_at, self._progress) >= self.rounds

    @property
    def _progress(self) -> int:
        """The last round that was a better one, or, as long as no late one keeps to the bounds, closer to them."""
        if self.best is None:
            return 0
        if self.recovered is None or (self._feasible(self.best) and not self._early(self.best)):
            return self.best.trees
        return max(self.best.trees, self.recovered[1])

    def finish(self) -> Candidate:
        """Return the best round; warn if it breaks a bound."""
        assert self.best is not None
        first_worker = not any(watched.training.rank for watched in self.watched)
        if self._feasible(self.best) and self._early(self.best) and first_worker:
            later = ""
            if self.recovered is not None:
                short, trees = -self.recovered[0], self.recovered[1]
                share = math.ceil(1000 * short) / 1000
                later = f" Round {trees} came within {short:.1%} of them: tolerance={share:g} would have returned it."
            here = not self.watched or self.watched[0].lags
            other = (
                "" if here else ", choose by the training data, or let the multipliers follow these (follow='valid')"
            )
            warn(
                f"only early rounds keep to every bound, before it was broken in round {self.broken_at}: returned is "
                f"round {self.best.trees}, whose scores are still small.{later} Loosen a bound, give it more "
                f"rounds{other}"
            )
        if not self._feasible(self.best) and first_worker:
            of = "training" if self.watched[0].lags else "validation"
            history = self.watched[0].run.history
            warn(
                f"no round keeps to every bound on the {of} data: returned is round {self.best.trees}, which breaks "
                f"them the least. {verdict(self.best.margins, history, self.tolerance)}"
            )
        for watched, state in zip(self.watched, self.best.states, strict=True):
            watched.training.restore(state)
            self.objective.chosen(watched.training)
        return self.best

    def _candidate(
        self, trees: int, readings: Sequence[Mapping[str, Reading]], results: Any, states: list[dict[str, Any]]
    ) -> Candidate:
        name = self.metric or self.watched[0].training.primary
        if name not in readings[0]:
            raise ValueError(
                f"metric={name!r} is not among what is evaluated: {', '.join(readings[0])}{nearest(name, readings[0])}"
                "; another metric belongs into watch=, such as Objective(spec, watch=NDCG(10))"
            )
        margins = {
            key[len(MARGIN) :]: statistics.fmean(each[key].value for each in readings)
            for key in readings[0]
            if key.startswith(MARGIN)
        }
        value = statistics.fmean(each[name].value for each in readings)
        sign = 1 if readings[0][name].maximise else -1
        return Candidate(trees, value, sign * value, margins, results, states)

    def _consider(self, new: Candidate) -> None:
        if self.broken_at is None and not self._feasible(new):
            self.broken_at = new.trees
        if self._is_led(new) and (self.led is None or self._rank(new) > self._rank(self.led)):
            self.led = new
        for other in (new, self.led):  # the one before may turn out to have been an early one
            if other is not None and (self.best is None or self._rank(other) > self._rank(self.best)):
                self.best = other
        if new.margins and math.isfinite(new.worst):
            if not self._feasible(new) and (self.deepest is None or new.worst < self.deepest):
                self.deepest, self.recovered = new.worst, None
            elif self.deepest is not None and (self.recovered is None or new.worst > self.recovered[0]):
                self.recovered = new.worst, new.trees

    def _feasible(self, candidate: Candidate) -> bool:
        return candidate.worst >= -self.tolerance

    def _early(self, candidate: Candidate) -> bool:
        """Whether it keeps to a bound that was broken later for the first time: by scores that are small as yet."""
        return self.broken_at is not None and candidate.trees < self.broken_at and not self._is_led(candidate)

    def _is_led(self, candidate: Candidate) -> bool:
        """Whether a rule had led the costs to their bounds by then: to keep to them is no matter of small scores."""
        return self.settled_at is not None and 1 < self.settled_at <= candidate.trees

    def _rank(self, candidate: Candidate) -> tuple[bool, bool, float, float]:
        """Feasible rounds first, early ones last of them, by their metric; then the others, by their least margin."""
        feasible = self._feasible(candidate)
        late = feasible and not self._early(candidate)
        return feasible, late, 0.0 if feasible else candidate.worst, candidate.value


def _told(candidate: Candidate | None) -> dict[str, Any] | None:
    """A round, as JSON can hold it."""
    return None if candidate is None else candidate._replace(results=_plain(candidate.results))._asdict()


def _plain(results: Any) -> Any:
    """A booster's own record of a round, a list of rows, as JSON can hold it."""
    if results is None:
        return None
    return [[value.item() if hasattr(value, "item") else value for value in row] for row in results]


def verdict(margins: Mapping[str, float], history: Mapping[str, Sequence[float]], tolerance: float = 0.0) -> str:
    """Each constraint's margin in words, how often it was met late in the training, and what can be done."""
    late = {name: _late(history.get(MARGIN + name, ())) for name in margins}
    words = []
    for name, margin in margins.items():
        if math.isnan(margin):
            words.append(f"{name}: never switched on, for the training ended before the round that start= asks for")
            continue
        met = sum(m >= -tolerance for m in late[name])
        often = "none" if met == 0 else "all" if met == len(late[name]) else str(met)
        state = f"over its bound by {-margin:.2%}" if margin < -tolerance else f"kept, with {margin:.2%} to spare"
        rounds = f"last {len(late[name])} rounds" if len(late[name]) > 1 else "last round"
        words.append(f"{name}: {state} (met in {often} of the {rounds})")
    alone = all(any(m >= -tolerance for m in values) for values in late.values())
    together = " Each bound was met at times, never all together." if alone and len(late) > 1 else ""
    return (
        "; ".join(words) + f".{together} Loosen a bound, give it more rounds, or let the constraints start earlier "
        "(start= and land= of the AugmentedLagrangian)"
    )


def _late(values: Sequence[float]) -> Sequence[float]:
    """The last fifth of a history."""
    return values[-max(1, len(values) // 5) :]


def never_met(history: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The last margins, if no round of the last fifth kept to all bounds; else nothing."""
    margins = {name[len(MARGIN) :]: values for name, values in history.items() if name.startswith(MARGIN)}
    if not margins or any(min(at) >= 0 for at in zip(*map(_late, margins.values()), strict=True)):
        return {}
    return {name: values[-1] for name, values in margins.items()}
