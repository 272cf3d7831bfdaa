"""Which run answers a call: one for each booster and data set, for as long as these are there."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.warn import warn
from lambda_objectives.workers import Workers


class Session:
    """A run, and the booster whose training it is part of (None for calls by hand)."""

    def __init__(self, run: Run, booster: Any, training: bool) -> None:
        self.run = run
        self.booster = None if booster is None else weakref.ref(booster)
        self.training = training
        self.calls = 0
        self.evaluated = False  # whether metrics were asked for
        self.recorded_at: int | None = None  # of a data set that is watched: the round that was logged last
        self.start: npt.NDArray[Any] | None = None  # the first scores, for as long as they are of use
        self.moved = False
        self.began = time.time()
        self.source: str | None = None  # what its data set is called in a training on a cluster

    def starts_again(self, scores: npt.NDArray[Any], queries: Queries | None) -> bool:
        """Whether a call by hand begins a new training: scores back at their start, or arrays that are others."""
        if queries is not None and (self.run.work is None or not queries.equals(self.run.work.queries)):
            return True
        if self.start is None or scores.shape != self.start.shape or not self.moved:
            return self.start is not None and scores.shape != self.start.shape
        # looking at two rows first saves comparing all of them every round
        return np.array_equal(scores[[0, -1]], self.start[[0, -1]]) and np.array_equal(scores, self.start)

    def watch_first_rounds(self, scores: npt.NDArray[Any], workers: Workers) -> None:
        """Keep the first scores; warn if the first tree did not split anything, on any worker."""
        if self.calls == 0:
            self.start = np.array(scores, dtype=np.float64 if self.booster is None else np.float32)
        elif self.start is not None and not self.moved and self.start.shape == scores.shape:
            step = scores - self.start
            self.moved = bool(len(step)) and bool(np.ptp(step) > 0)
            if self.booster is not None:
                if workers.size > 1:
                    self.moved = bool(workers.exchange(np.array([float(self.moved)]))[0])
                if not self.moved and len(step) > 1 and workers.rank == 0:
                    warn(
                        "the first tree moved all scores alike: it did not split. Usual causes: min_child_weight "
                        "(XGBoost) or min_sum_hessian_in_leaf (LightGBM) too large for the Hessians of a ranking, "
                        "which are far below 1 a row; min_data_in_leaf, gamma or min_gain_to_split too large"
                    )
                self.start = None
        self.calls += 1


class Sessions:
    """All the sessions of one objective."""

    def __init__(self) -> None:
        self._of: weakref.WeakKeyDictionary[Any, weakref.WeakKeyDictionary[Any, Session]] = weakref.WeakKeyDictionary()
        self._latest: weakref.WeakKeyDictionary[Any, Session] = weakref.WeakKeyDictionary()
        # of each data set, the session that each thread used last
        self._users: weakref.WeakKeyDictionary[Any, dict[threading.Thread, Session]] = weakref.WeakKeyDictionary()
        self._steps: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.workers: weakref.WeakKeyDictionary[Any, Workers] = weakref.WeakKeyDictionary()  # a booster trains with
        self.last: Session | None = None  # the last training

    def find(self, booster: Any, data: Any) -> Session | None:
        """Return the session of a booster and a data set; without a booster the one last used with the data set."""
        if booster is None:
            return self._latest.get(data)
        return self._of.get(booster, {}).get(data)

    def training(self, booster: Any) -> tuple[Any, Session] | None:
        """Return the data set that a booster trains on, and its session."""
        if booster is None:
            return None
        return next(((data, s) for data, s in self._of.get(booster, {}).items() if s.training), None)

    def others(self, booster: Any) -> list[tuple[Any, Session]]:
        """Data sets that are watched while a booster trains, in the order in which they were first evaluated."""
        return [(data, s) for data, s in self._of.get(booster, {}).items() if not s.training]

    def open(self, booster: Any, data: Any, run: Run, training: bool) -> Session:
        """Begin a session."""
        session = Session(run, booster, training)
        if booster is not None:
            self._of.setdefault(booster, weakref.WeakKeyDictionary())[data] = session
        if training:
            self.last = session
            weakref.finalize(data, _release, weakref.ref(run)).atexit = False
        return session

    def use(self, session: Session, data: Any) -> None:
        """Make a session the latest of its data set; the one before gives up its buffers, not its history.

        The one before in the same thread: those of other threads may be in the middle of a call.
        """
        self._latest[data] = session
        users, here = self._users.setdefault(data, {}), threading.current_thread()
        if users.get(here) is session:
            return
        over = [thread for thread in list(users) if thread is here or not thread.is_alive()]
        for before in [users.pop(thread, session) for thread in over]:
            if before is not session and before not in list(users.values()):
                before.run.release()
        users[here] = session

    def count_step(self, booster: Any) -> None:
        """Count a round of a booster's training."""
        if booster is not None:
            self._steps[booster] = self._steps.get(booster, 0) + 1

    def steps(self, booster: Any) -> int:
        """Rounds of a booster's training so far."""
        return 0 if booster is None else self._steps.get(booster, 0)

    def forget(self, data: Any) -> None:
        """Drop everything about a data set."""
        gone = self._latest.pop(data, None)
        self._users.pop(data, None)
        for sessions in list(self._of.values()):
            sessions.pop(data, None)
        if gone is not None and self.last is gone:
            self.last = None


def _release(run: weakref.ref[Run]) -> None:
    """Give up the buffers of a run whose data set is gone; its history stays."""
    there = run()
    if there is not None:
        there.release()
