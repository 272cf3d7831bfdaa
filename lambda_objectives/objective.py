"""The one callable that both boosters take."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives import postbox
from lambda_objectives.arrays import brief
from lambda_objectives.callers import planned_rounds
from lambda_objectives.calls import Call, Needs, check_purpose, understand
from lambda_objectives.columns import columns_of
from lambda_objectives.run import Run, array_module, check_state
from lambda_objectives.sessions import Session, Sessions
from lambda_objectives.specs import as_spec
from lambda_objectives.stopping import Watched, never_met, verdict
from lambda_objectives.terms import Reading
from lambda_objectives.terms.pairs import check_metric
from lambda_objectives.version import __version__
from lambda_objectives.warn import warn
from lambda_objectives.workers import agreeing


class Objective:
    """A spec as LightGBM and XGBoost want it.

    ``lightgbm.train({"objective": objective, ...}, train, feval=objective.metrics)`` (3.3: ``fobj=objective``),
    ``xgboost.train(params, dtrain, obj=objective, custom_metric=objective.metrics)``, and likewise in both `cv`, in
    `LGBMRanker(objective=objective)`, in `Booster.update(fobj=objective)`, and on a cluster in `xgboost.dask.train`,
    `DaskLGBMRanker`, `DaskLGBMRegressor` and `SparkXGBRanker(obj=objective)`.

    Parameters
    ----------
    spec
        A term, such as `LambdaRank(NDCG(10))`, or a spec, such as `WeightedSum`.
    device
        "cpu", or "cuda": dependence on controls is computed on a GPU, by CuPy. Scores go there and slopes come back
        each round, for both boosters hand over and the loss wants host arrays.
    state
        What `state` returned after an earlier training, or `lo.resume` found in a folder of checkpoints, to go on from
        there with `init_model` or `xgb_model`; None to begin.
    watch
        Further metrics to evaluate each round, such as ``[NDCG(10), MAP()]``, of the data set's own label: train on
        ``LambdaRank(NDCG())``, without a cut-off, and stop early by ``"ndcg@10"``.

    Raises
    ------
    TypeError, ValueError
        For what is no spec, an unknown device, a state that belongs to another spec; for "cuda", where nothing of the
        spec is computed on a GPU, or there is none.

    Notes
    -----
    On several workers costs, metrics and multipliers are of the rows of all of them; each worker has whole queries.

    What is learnt while training (the history) is kept for each data set; one object serves all folds of a
    cross-validation. A new booster is a new training and starts afresh. Copies share the object; scikit-learn's `clone`
    and unpickling give a fresh one.

    The loops use as many threads as the booster was told to (`num_threads`, `nthread`, `n_jobs`), else numba's number.
    Several Python threads may train at once, with one object too. A forked child may go on using all of this package;
    the boosters themselves hang there if they had several threads before, unless the child gives them one
    (`num_threads=1`; `nthread=1`, of a DMatrix too): better start processes by "spawn", or loky.

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

    def __init__(self, spec: Any, device: str = "cpu", state: dict[str, Any] | None = None, watch: Any = ()) -> None:
        self.spec = spec
        self.watch = (watch,) if hasattr(watch, "tables") or isinstance(watch, str) else tuple(watch or ())
        for metric in self.watch:
            check_metric(metric, "watch")
        terms = as_spec(spec).terms
        if device not in ("cpu", "cuda"):
            raise ValueError(f"device must be 'cpu' or 'cuda', found {brief(device)}")
        self.device = device
        if device == "cuda":
            on_device = [term.on_device for term in terms if hasattr(term, "on_device")]
            if not any(on_device):
                raise ValueError(
                    "device='cuda': nothing of this spec is computed on a GPU; DistanceCovariance is, but where it is "
                    "weighted or categorical: leave device out"
                )
            array_module(device)
        if state is not None:
            check_state(as_spec(spec), state)
        self._state = state
        self._sessions = Sessions()
        self._key, self._home = secrets.token_hex(8), __version__

    # ------------------------------------------------------------------------------------------ what boosters call
    def __call__(
        self, first: Any, second: Any, sample_weight: Any = None, group: Any = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Gradient and Hessian for a booster: (scores, data set), or (labels, scores, weights, group) from estimators.

        The number of arguments is not free: LightGBM's estimators count them to know what to pass.
        """
        call = self._understand(first, second, sample_weight, group)
        check_purpose(call, training=True)
        with agreeing(call.workers):
            session = self._session(call, training=True)
            session.watch_first_rounds(call.scores, call.workers)
            run = session.run
            grad, hess = run.step(call.scores)
        self._sessions.count_step(call.booster)
        self._tell(call, session, run.last)
        total = run.curvature
        if run.rows and not total > 0:
            raise ValueError(
                f"label: the Hessian is nowhere positive, it adds up to {total:g} over {run.rows} rows, so that no "
                "tree could learn anything: is there any query with two different labels, any row with a weight?"
            )
        first_worker = call.workers.rank == 0
        if (
            session.calls == 1
            and call.booster is not None
            and first_worker
            and any(t.needs_order for t in as_spec(self.spec).terms)
        ):
            call.adapter.check_hessian(call.booster, total, run.rows)
        if call.booster is not None:
            call.adapter.keep(call.booster, run)
            last = run.rounds == run.planned and run.judge is None and first_worker
            if last and (margins := never_met(run.history)):
                warn(f"no late round keeps to every bound on the training data. {verdict(margins, run.history)}")
        # a booster is done with them when it calls again; a user may keep them
        return (grad, hess) if call.booster is not None else (grad.copy(), hess.copy())

    def metrics(self, first: Any, second: Any, sample_weight: Any = None, group: Any = None) -> list[tuple[Any, ...]]:
        """Every cost and metric, as `feval` of LightGBM or `custom_metric` of XGBoost.

        LightGBM gets (name, value, higher is better), the first term's metric first, for `first_metric_only`. XGBoost
        gets (name, value), last what its EarlyStopping is to watch.
        """
        call = self._understand(first, second, sample_weight, group)
        check_purpose(call, training=False)
        if call.estimator and call.adapter.__name__.endswith("xgboost"):
            raise TypeError(
                "metrics: XGBoost's estimators take functions of (labels, scores) that return a number; use "
                "xgboost.train(custom_metric=objective.metrics)"
            )
        if call.data is None:  # by hand, with arrays
            run = Run(self.spec, call.read(), threads=call.threads, arrays=array_module(self.device), watch=self.watch)
            readings = run.evaluate(call.scores)
            return list(import_module("lambda_objectives.lightgbm").metrics(readings, run.primary))
        with agreeing(call.workers):
            session = self._session(call, training=False)
            session.evaluated = True
            training = self._sessions.training(call.booster)
            readings = session.run.evaluate(call.scores, training and training[1].run.rule_state)
        if call.booster is not None and not session.training:
            if training and self._sessions.others(call.booster)[0][1] is session:
                training[1].run.watched = session.run.seen
                call.adapter.keep(call.booster, training[1].run)
            rounds = self._sessions.steps(call.booster) or call.adapter.rounds(call.booster)
            if session.recorded_at != rounds:  # not again what is evaluated twice in a round, or once more at the end
                session.run.record(readings)
                session.recorded_at = rounds
                self._tell(call, session, readings)
        shaped: list[tuple[Any, ...]] = call.adapter.metrics(readings, session.run.primary)
        return shaped

    # ------------------------------------------------------------------------------------------------ what users ask
    def history(self, data: Any = None) -> dict[str, list[float]]:
        """Costs and metrics by round.

        Parameters
        ----------
        data
            The Dataset or DMatrix. Of the training data, an entry a round, at the scores before that round's tree; of
            a validation set, an entry after each round's tree. None: the last training. After a training on a Dask
            cluster "train", or what a validation set was called there.

        Raises
        ------
        KeyError
            If nothing was trained on or evaluated with that data set.
        """
        session = self._find(data)
        if session is None and (there := self._from_workers(data)):
            return there[data or postbox.TRAIN]
        if session is None:
            where = "" if data is None else f" with that data set, {brief(data)}"
            raise KeyError(
                f"data: this objective has not been used{where}: name a data set that it was trained on or evaluated "
                "with, the very object; None for the last training"
            )
        return {name: list(values) for name, values in session.run.history.items()}

    def state(self, data: Any = None) -> dict[str, Any]:
        """What to save to go on later, as plain values for JSON: ``Objective(spec, state=...)``.

        Parameters
        ----------
        data
            The training data; None for the last training.

        Raises
        ------
        KeyError
            If nothing was trained on that data set.
        """
        session = self._find(data)
        if session is None and data is None and (sent := postbox.collect(self._key)):
            return dict(json.loads(sent[-1]["state"]))
        if session is None or not session.training:
            where = "" if data is None else f" on that data set, {brief(data)}"
            raise KeyError(
                f"data: this objective has not been trained{where}: name a data set that it was trained on, the very "
                "object; None for the last training"
            )
        return session.run.state

    @property
    def begins_from(self) -> dict[str, Any] | None:
        """The state that it was given, with which its trainings begin."""
        return self._state

    def checkpoint(self, booster: Any) -> dict[str, Any] | None:
        """What to save to go on with a training that is not over: `state`, and the choice of early stopping so far.

        None on all workers but the first.

        Parameters
        ----------
        booster
            The booster, between two rounds.

        Raises
        ------
        ValueError
            If the booster is not trained by this objective.
        """
        training = self._sessions.training(booster)
        if training is None:
            raise ValueError(
                "objective: checkpoints must be given the very Objective that is trained, found another one, of "
                f"{brief(self.spec)}"
            )
        run = training[1].run
        if run.rank:
            return None
        choice = None if run.judge is None else run.judge()
        return run.state | ({} if choice is None else {"choice": choice.saved})

    def watched(self, booster: Any, data: Any = None, evaluates: bool = False) -> Watched:
        """Return what early stopping watches while a booster trains.

        Parameters
        ----------
        booster
            The booster.
        data
            A Dataset or DMatrix; None for the first one evaluated besides the training data, else the training data.
        evaluates
            Whether the booster was given data sets besides the training data.

        Returns
        -------
        The data set, its run and the run of the training.

        Raises
        ------
        ValueError
            If the booster is not trained by this objective, or the data set is not evaluated.
        """
        training = self._sessions.training(booster)
        if training is None:
            raise ValueError(
                "objective: early stopping must be given the very Objective that is trained, found another one, of "
                f"{brief(self.spec)}"
            )
        others = self._sessions.others(booster)
        if data is None:
            chosen = others[0] if others else training if training[1].evaluated or not evaluates else None
        else:
            chosen = next((there for there in [training, *others] if there[0] is data), None)
        if chosen is None:
            raise ValueError(
                "early stopping: the data set to watch is not evaluated by this objective "
                f"(data={'None, the first one evaluated' if data is None else brief(data)}; evaluated: "
                f"{len(others)} besides the training data): pass it as a validation set, and feval=objective.metrics "
                "(LightGBM; eval_metric= of its estimators) or custom_metric=objective.metrics (XGBoost)"
            )
        return Watched(chosen[0], chosen[1].run, training[1].run)

    def stopped_by(self, data: Any) -> float | None:
        """The tolerance of early stopping where it chose the round by a data set, in its last training; else None."""
        session = self._find(data)
        return None if session is None else session.run.tolerance

    def chosen(self, training: Run) -> None:
        """Send the state of the round that early stopping has chosen to the client of a Dask cluster."""
        session = self._sessions.last
        if session is not None and session.run is training and training.rank == 0 and session.source is not None:
            postbox.post(self._key, session.began, None, {}, training.state)

    def reset(self, data: Any = None) -> None:
        """Forget all about a data set; about all of them for None."""
        if data is None:
            self._sessions, self._key = Sessions(), secrets.token_hex(8)
        else:
            self._sessions.forget(data)

    # ------------------------------------------------------------------------------------- copies, clones and pickles
    def __deepcopy__(self, memo: dict[int, Any]) -> Objective:
        """Itself: lightgbm.train copies its parameters, and the user's object is to have the history."""
        return self

    def __sklearn_clone__(self) -> Objective:
        return Objective(self.spec, self.device, self._state, self.watch)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_sessions"}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved)
        self._sessions = Sessions()

    def __repr__(self) -> str:
        state = "" if self._state is None else f", state={self._state!r}"
        watch = "" if not self.watch else f", watch={list(self.watch)!r}"
        return f"Objective({self.spec!r}, device={self.device!r}{state}{watch})"

    def _find(self, data: Any) -> Session | None:
        """The session of a data set in this process; for None of the last training, unless workers had a later one."""
        if isinstance(data, str):
            return None
        if data is not None:
            return self._sessions.find(None, data)
        last = self._sessions.last
        sent = postbox.collect(self._key)
        return None if last is not None and sent and sent[-1]["time"] > last.began else last

    def _from_workers(self, data: Any) -> dict[str, dict[str, list[float]]]:
        """Histories of the last training on a Dask cluster by the name of the data set, which must be among them."""
        there = postbox.histories(self._key)
        if there and data is not None and data not in there:
            raise KeyError(f"there is no history of {data!r}, but of {', '.join(map(repr, there))}")
        return there

    def _tell(self, call: Call, session: Session, readings: Mapping[str, Reading]) -> None:
        """Send a round of a training on a Dask cluster to the client."""
        session.source = name = None if call.data is None else columns_of(call.data).source
        training = session if session.training else (self._sessions.training(call.booster) or (None, None))[1]
        if name is not None and training is not None and call.workers.rank == 0:
            postbox.post(self._key, training.began, name, readings, training.run.state)

    def _understand(self, first: Any, second: Any, weights: Any, group: Any) -> Call:
        terms = as_spec(self.spec).terms
        return understand(
            first, second, weights, group, Needs.of(terms, self.watch), self._sessions.workers, self._home
        )

    def _session(self, call: Call, training: bool) -> Session:
        """The session that a call belongs to, begun if it is the first of a training or of a watched data set."""
        sessions = self._sessions
        # arrays passed by hand are known by this object
        data = next(known for known in (call.data, call.booster, self) if known is not None)
        session, queries = sessions.find(call.booster, data), None
        if call.booster is None and call.data is None:
            queries = call.read()
        if training and session is not None:
            by_hand = call.booster is None
            others = not session.training or (by_hand and session.booster is not None)
            if others or (by_hand and session.starts_again(call.scores, queries)):
                session = None
        if session is None:
            if call.booster is not None and training and call.workers.rank == 0:
                call.adapter.check(call.booster, call.data, as_spec(self.spec).terms)
            state = self._state if training else None
            options: dict[str, Any] = {"arrays": array_module(self.device), "watch": self.watch}
            run = Run(self.spec, queries or call.read(), state=state, threads=call.threads, **options)
            if call.booster is not None:
                under_way = None if training else sessions.training(call.booster)
                begun = run.begun if under_way is None else under_way[1].run.begun
                run.planned, run.rate = planned_rounds(begun), call.adapter.learning_rate(call.booster)
                if state is not None and state.get("choice", {}).get("open"):
                    run.planned = None  # early stopping goes on, and may end it
            session = sessions.open(call.booster, data, run, training)
        elif session.run.work is None:
            session.run.bind(queries or call.read())
        sessions.use(session, data)
        return session
