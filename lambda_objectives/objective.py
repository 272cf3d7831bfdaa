"""The one callable that both boosters take."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.specs import as_spec
from lambda_objectives.warn import warn

BOOSTERS = ("lightgbm", "xgboost")


class Objective:
    """A spec as LightGBM and XGBoost want it.

    ``lightgbm.train({"objective": objective, ...}, train, feval=objective.metrics)`` (3.3: ``fobj=objective``),
    ``xgboost.train(params, dtrain, obj=objective, custom_metric=objective.metrics)``, and likewise in both `cv`, in
    `LGBMRanker(objective=objective)` and in `Booster.update(fobj=objective)`.

    Parameters
    ----------
    spec
        A term, such as `LambdaRank(NDCG(10))`, or a spec, such as `WeightedSum`.
    device
        "cpu".
    state
        What `state` returned after an earlier training, to go on from there with `init_model` or `xgb_model`.

    Raises
    ------
    TypeError, ValueError
        For what is no spec, an unknown device, a state that belongs to another spec.

    Notes
    -----
    What is learnt while training (the history) is kept for each data set; one object serves all folds of a
    cross-validation. A new booster is a new training and starts afresh. Copies share the object; scikit-learn's `clone`
    and unpickling give a fresh one.

    Examples
    --------
    >>> import lightgbm as lgb, numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)); y = (X[:, 0] + rng.normal(size=400) > 1) * 1.0
    >>> train = lgb.Dataset(X, y, group=[20] * 20)
    >>> objective = lo.Objective(lo.LambdaRank(lo.NDCG(10)))
    >>> booster = lgb.train({"objective": objective, "verbosity": -1}, train, 20)
    >>> history = objective.history(train)
    >>> history["ndcg@10"][-1] > history["ndcg@10"][0]
    True
    """

    def __init__(self, spec: Any, device: str = "cpu", state: dict[str, Any] | None = None) -> None:
        self.spec = spec
        as_spec(spec)
        if device != "cpu":
            hint = ": this version computes on the CPU" if device == "cuda" else ""
            raise ValueError(f"device must be 'cpu', found {device!r}{hint}")
        self.device = device
        self._state = state
        self._forget()

    def _forget(self) -> None:
        self._training: weakref.WeakKeyDictionary[Any, _Bound] = weakref.WeakKeyDictionary()
        self._watching: weakref.WeakKeyDictionary[Any, _Bound] = weakref.WeakKeyDictionary()
        self._last: tuple[dict[str, list[float]], Any] | None = None

    # ------------------------------------------------------------------------------------------ what boosters call
    def __call__(
        self, first: Any, second: Any, sample_weight: Any = None, group: Any = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Gradient and Hessian for a booster: (scores, data set), or (labels, scores, weights, group) from estimators.

        The number of arguments is not free: LightGBM's estimators count them to know what to pass.
        """
        adapter = _adapter(second)
        scores = np.asarray(first if adapter else second)
        if adapter:
            booster = _booster_above(adapter.Booster)
            bound = self._training.get(second)
            if bound is None or bound.is_over(booster, scores):
                queries = adapter.read(second, self._needs_order)
                adapter.check(booster, second, self._needs_order)
                bound = self._bind(self._training, second, booster, queries, adapter.threads(booster, second))
        else:
            booster = next((b for b in map(_booster_above, _loaded_boosters()) if b is not None), None)
            anchor = self if booster is None else booster
            bound = self._training.get(anchor)
            if bound is None or bound.is_over(booster, scores):
                queries = Queries.from_arrays(first, group=group, weights=sample_weight)
                bound = self._bind(self._training, anchor, booster, queries, None)
        bound.watch_first_rounds(scores)
        grad, hess = bound.run.step(scores)
        total = float(hess.sum())
        if len(hess) and not total > 0:
            raise ValueError(
                "the Hessian is nowhere positive, so that no tree could learn anything: is there any query with two "
                "different labels, any row with a weight?"
            )
        if bound.run.rounds == 1 and adapter and self._needs_order:
            adapter.check_hessian(booster, second, total, len(hess))
        return grad.copy(), hess.copy()

    def metrics(self, first: Any, second: Any, sample_weight: Any = None, group: Any = None) -> list[tuple[Any, ...]]:
        """Every cost and metric, as `feval` of LightGBM or `custom_metric` of XGBoost.

        LightGBM gets (name, value, higher is better), the first term's metric first, for `first_metric_only`. XGBoost
        gets (name, value), last what its EarlyStopping is to watch.
        """
        adapter = _adapter(second)
        if adapter is None:
            queries = Queries.from_arrays(first, group=group, weights=sample_weight)
            run = Run(self.spec, queries)
            readings = run.evaluate(np.asarray(second))
            return list(import_module("lambda_objectives.lightgbm").metrics(readings, run.primary))
        booster = _booster_above(adapter.Booster)
        bound = self._training.get(second)
        if bound is None or (booster is not None and not bound.belongs_to(booster)):
            bound = self._watching.get(second)
            if bound is None or (booster is not None and not bound.belongs_to(booster)):
                queries = adapter.read(second, self._needs_order)
                bound = self._bind(self._watching, second, booster, queries, adapter.threads(booster, second))
        readings = bound.run.evaluate(np.asarray(first))
        if booster is not None and not bound.run.rounds:  # a data set that is watched, not trained on
            bound.run.record(readings)
        shaped: list[tuple[Any, ...]] = adapter.metrics(readings, bound.run.primary)
        return shaped

    # ------------------------------------------------------------------------------------------------ what users ask
    def history(self, data: Any = None) -> dict[str, list[float]]:
        """Costs and metrics by round.

        Parameters
        ----------
        data
            The Dataset or DMatrix. Of the training data, an entry a round, at the scores before that round's tree; of
            a validation set, an entry after each round's tree. None: the last training.

        Raises
        ------
        KeyError
            If nothing was trained on or evaluated with that data set.
        """
        if data is None and self._last is not None:
            return {name: list(values) for name, values in self._last[0].items()}
        bound = None if data is None else self._training.get(data) or self._watching.get(data)
        if bound is None:
            raise KeyError(
                "this objective has not been used with that data set" if data is not None else "not used yet"
            )
        return {name: list(values) for name, values in bound.run.history.items()}

    def state(self, data: Any = None) -> dict[str, Any]:
        """What to save to go on later, as plain values for JSON: ``Objective(spec, state=...)``.

        Parameters
        ----------
        data
            The training data; None for the last training, as long as its data set is there.

        Raises
        ------
        KeyError
            If nothing was trained on that data set.
        """
        run = None
        if data is None and self._last is not None:
            run = self._last[1]()
        elif data is not None and data in self._training:
            run = self._training[data].run
        if run is None:
            raise KeyError("this objective has not been trained on that data set, or the data set is gone")
        state: dict[str, Any] = run.state
        return state

    def reset(self, data: Any = None) -> None:
        """Forget the run of a data set; of all for None."""
        if data is None:
            self._forget()
        else:
            self._training.pop(data, None)
            self._watching.pop(data, None)

    # ------------------------------------------------------------------------------------- copies, clones and pickles
    def __deepcopy__(self, memo: dict[int, Any]) -> Objective:
        """Itself: lightgbm.train copies its parameters, and the user's object is to have the history."""
        return self

    def __sklearn_clone__(self) -> Objective:
        return Objective(self.spec, self.device, self._state)

    def __getstate__(self) -> dict[str, Any]:
        return {"spec": self.spec, "device": self.device, "_state": self._state}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved)
        self._forget()

    def __repr__(self) -> str:
        state = "" if self._state is None else f", state={self._state!r}"
        return f"Objective({self.spec!r}, device={self.device!r}{state})"

    @property
    def _needs_order(self) -> bool:
        return any(term.needs_order for term in as_spec(self.spec).terms)

    def _bind(
        self, runs: weakref.WeakKeyDictionary[Any, _Bound], anchor: Any, booster: Any, queries: Queries, threads: Any
    ) -> _Bound:
        training = runs is self._training
        run = Run(self.spec, queries, state=self._state if training else None, threads=threads)
        runs[anchor] = bound = _Bound(run, booster)
        if training:
            self._last = run.history, weakref.ref(run)
        return bound


class _Bound:
    """A run and the booster whose training it is, if there is one."""

    def __init__(self, run: Run, booster: Any) -> None:
        self.run = run
        self.booster = None if booster is None else weakref.ref(booster)
        self.start: Vector | None = None  # the first round's scores, as long as they are of use
        self.moved = False

    def belongs_to(self, booster: Any) -> bool:
        """Whether the run is of that booster's training."""
        return self.booster is not None and self.booster() is booster

    def is_over(self, booster: Any, scores: npt.NDArray[Any]) -> bool:
        """Whether a call begins a new training: another booster's, or, called by hand, scores back at the start."""
        if booster is not None or self.booster is not None:
            return not self.belongs_to(booster)
        if self.start is None or len(scores) != len(self.start):
            return True
        # looking at two rows first saves comparing them all every round
        return (
            self.moved and np.array_equal(scores[[0, -1]], self.start[[0, -1]]) and np.array_equal(scores, self.start)
        )

    def watch_first_rounds(self, scores: npt.NDArray[Any]) -> None:
        """Keep the first scores; warn if the first tree did not split anything."""
        if self.run.rounds == 0:
            self.start = np.array(scores, dtype=np.float64)
        elif self.start is not None and not self.moved and self.start.shape == scores.shape:
            step = scores - self.start
            if len(step) and not np.ptp(step) > 0:
                if self.run.rounds == 1 and self.booster is not None and len(step) > 1:
                    warn(
                        "the first tree moved all scores alike: it did not split. Usual causes: min_child_weight "
                        "(XGBoost) or min_sum_hessian_in_leaf (LightGBM) too large for the Hessians of a ranking, "
                        "which are far below 1 a row; min_data_in_leaf too large for the data"
                    )
            else:
                self.moved = True
            if self.booster is not None:
                self.start = None


def attach(data: Any, columns: Mapping[str, Any] | None = None, *, qid: Any = None, **named: Any) -> Any:
    """Give a Dataset or DMatrix named columns: further labels, controls.

    Parameters
    ----------
    data
        A LightGBM Dataset or an XGBoost DMatrix. Cross-validation folds of it have the columns too.
    columns, **named
        (n,) numbers each, of any array kind; `columns` for names that are no identifiers.
    qid
        One id a row, (n,): takes the place of the data set's own queries. For an XGBoost DataIter, which makes two
        queries of one that lies across two batches.

    Returns
    -------
    data, so that the call can stand where the data set is made.

    Raises
    ------
    TypeError
        For another kind of data set.
    ValueError
        For a column that is no vector of n numbers, or a name that cannot stand in a history.

    Examples
    --------
    >>> import lightgbm as lgb, lambda_objectives as lo
    >>> train = lo.attach(lgb.Dataset([[1.0], [2.0]], [0, 1], group=[2]), quality=[1, 0])
    """
    adapter = _adapter(data)
    if adapter is None:
        raise TypeError(f"data must be a LightGBM Dataset or an XGBoost DMatrix, found {type(data).__name__}")
    both = set(columns or {}) & set(named)
    if both:
        raise ValueError(f"column {sorted(both)[0]!r} is given twice")
    return adapter.attach(data, {**(columns or {}), **named}, qid)


def _adapter(data: Any) -> ModuleType | None:
    """The module that reads a data set: only boosters that are loaded can have made it."""
    for name in BOOSTERS:
        if name in sys.modules:
            adapter = import_module(f"lambda_objectives.{name}")
            if adapter.owns(data):
                return adapter
    return None


def _loaded_boosters() -> list[type]:
    return [import_module(f"lambda_objectives.{name}").Booster for name in BOOSTERS if name in sys.modules]


def _booster_above(kind: type) -> Any:
    """The booster that is calling, found as `self` of a method on the stack, or None when called by hand.

    Neither booster hands itself to an objective, yet its identity is the one sure sign of a new training, and XGBoost
    shows its parameters nowhere else.
    """
    frame: Any = sys._getframe(2)
    for _ in range(8):
        if frame is None:
            return None
        caller = frame.f_locals.get("self")
        if isinstance(caller, kind):
            return caller
        frame = frame.f_back
    return None
