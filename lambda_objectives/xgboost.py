"""XGBoost: reading its matrices, refusing what it breaks in silence, shaping what it is given back."""

from __future__ import annotations

import itertools
import json
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import xgboost

from lambda_objectives.arrays import brief
from lambda_objectives.callers import told
from lambda_objectives.columns import Columns, add_columns, borders_of_part, columns_of
from lambda_objectives.meeting import of_xgboost
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.stopping import Choice, Watched
from lambda_objectives.terms import Reading, Term
from lambda_objectives.warn import warn, warn_small_hessian
from lambda_objectives.workers import Workers
from lambda_objectives.xgboost_checkpoint import Checkpoint as Checkpoint

Booster = xgboost.Booster
# xgb.cv makes new matrices of the rows of a fold and keeps nothing of the old one but its fields. Two of these are free
# unless the objective is a survival model: they carry the number of the matrix and the row, 24 bits in each float32.
CARRIERS = ("label_lower_bound", "label_upper_bound")
_numbers = itertools.cycle(range(1, 2**16))
_carried: weakref.WeakValueDictionary[int, Columns] = weakref.WeakValueDictionary()
UNUSED: dict[str, tuple[float | str, str]] = {  # parameter of the named objective -> (its default, what to do instead)
    "scale_pos_weight": (1.0, "weights"),
    "lambdarank_pair_method": ("topk", "LambdaRank(truncation=...) or LambdaRank(sample=...)"),
    "lambdarank_num_pair_per_sample": (2.0**32 - 1, "LambdaRank(truncation=...)"),
    "lambdarank_normalization": (1.0, "LambdaRank(log_norm=...)"),
    "lambdarank_score_normalization": (1.0, "LambdaRank(score_gap_norm=...)"),
    "lambdarank_unbiased": (0.0, "UnbiasedRank(...)"),
    "ndcg_exp_gain": (1.0, "NDCG(gain='linear')"),
}
ATTRIBUTE = "lambda_objectives"  # of a model: the state of its training
MAXIMISED = ("auc", "aucpr", "pre", "map", "ndcg")  # beginnings of the names that XGBoost's EarlyStopping maximises


def owns(data: Any) -> bool:
    """Whether this adapter reads such data."""
    return isinstance(data, xgboost.DMatrix)


def attach(data: xgboost.DMatrix, columns: dict[str, Any], qid: Any) -> xgboost.DMatrix:
    """Attach columns to a DMatrix, so that the parts of it that xgb.cv makes have them too."""
    n = data.num_row()
    attached = add_columns(data, n, columns, qid)
    low, high = (data.get_float_info(field) for field in CARRIERS)
    carried = _carried_rows(low, high, n)
    # fields of the user's stay; those of an earlier process, which wrote the matrix to a file, are made anew
    free = low.size == high.size == 0 or (carried is not None and np.array_equal(carried[1], np.arange(n)))
    if free and (carried is None or _carried.get(carried[0]) is not attached):
        number = next(number for number in _numbers if number not in _carried)
        row = np.arange(n)
        data.set_float_info(CARRIERS[0], (row % 2**24).astype(np.float32))
        data.set_float_info(CARRIERS[1], (number * 256 + row // 2**24).astype(np.float32))
        _carried[number] = attached
    attached.labels = _labels(data)
    return data


def _labels(data: xgboost.DMatrix) -> Any:
    """One label a row: of several outputs that share one, written once for each, the first."""
    labels, n = data.get_label(), data.num_row()
    if n and labels.size > n and labels.size % n == 0:
        columns = labels.reshape(n, -1)
        if not (columns == columns[:, :1]).all():
            raise ValueError(
                f"label: one a row wanted, the matrix has {columns.shape[1]} for each of {n} rows, which differ"
            )
        labels = np.ascontiguousarray(columns[:, 0])
    return labels


def _carried_rows(low: Any, high: Any, n: int) -> tuple[int, Any] | None:
    """The number of a matrix and the rows of it, as attach wrote them; None for anything else."""
    if not len(low) == len(high) == n or n == 0 or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    if low.min() < 0 or high.min() < 256 or high.max() >= 2**24 or (low % 1).any() or (high % 1).any():
        return None
    number, rows = high.astype(np.int64) // 256, low.astype(np.int64) + (high.astype(np.int64) % 256) * 2**24
    return (int(number[0]), rows) if (number == number[0]).all() else None


def read(data: xgboost.DMatrix, needs_queries: bool) -> Queries:
    """Read labels, queries, weights and columns of a DMatrix, or of the part of one that cross-validation makes."""
    n = data.num_row()
    labels = _labels(data)
    if labels.size != n:
        hint = "; give label=, to the DMatrix or by set_label" if labels.size == 0 else ""
        raise ValueError(f"label: one a row wanted, the matrix has {labels.size} for {n} rows{hint}")
    columns = columns_of(data)
    low, high = (data.get_float_info(field) for field in CARRIERS)
    carried = None if len(columns) else _carried_rows(low, high, n)
    if carried is not None:
        number, rows = carried
        whole = _carried.get(number)
        known = whole.labels if whole is not None else None
        if whole is not None and known is not None and _same_rows(known, rows, labels):
            borders = whole.ptr
            own = columns.ptr
            columns = whole.part(rows, columns)
            if borders is not None and own is None:
                advice = "its own groups cut queries that qid= of attach() keeps whole; cross-validate by hand"
                columns.ptr = borders_of_part(borders, rows, needs_queries, advice)
    ptr = data.get_uint_info("group_ptr").astype(np.int64)
    group = np.diff(ptr) if len(ptr) > 1 else None
    weights = data.get_weight()
    if columns.ptr is not None:
        if weights.size == len(ptr) - 1 != n:
            weights = np.repeat(weights, np.diff(ptr))
        group = np.diff(columns.ptr)
    return Queries.from_arrays(labels, group=group, weights=weights if weights.size else None, columns=columns)


def check(booster: Any, data: xgboost.DMatrix | None, terms: Sequence[Term]) -> None:
    """Refuse or warn about settings that XGBoost breaks beside a custom objective."""
    learner = _config(booster)
    named = learner["learner_train_param"].get("objective", "")
    if named in ("reg:absoluteerror", "reg:quantileerror"):
        raise ValueError(
            f"objective={named!r} in the parameters overwrites the leaves of a custom objective (XGBoost up to 3.2); "
            "leave it out"
        )
    for parameters in learner["objective"].values():
        for name, value in parameters.items() if isinstance(parameters, dict) else ():
            default, instead = UNUSED.get(name, (value, ""))
            if not _same(value, default):
                warn(f"{name}={value} has no effect beside a custom objective; use {instead}")
    trees = learner["gradient_booster"]
    if _drops(trees):
        warn(
            "booster='dart' or rate_drop: the objective is given scores of the trees left after dropout, so costs in "
            "the history are not those of the whole model; train without dropout if you read or act on them"
        )


def check_hessian(booster: Any, total: float, rows: int) -> None:
    """Warn where min_child_weight, 1 unless set, is large against the Hessians."""
    trees = _config(booster)["gradient_booster"]
    value = trees.get("gbtree", trees).get("tree_train_param", {}).get("min_child_weight")
    if value is not None:
        warn_small_hessian("min_child_weight", float(value), total, rows)


def threads(booster: Any) -> int | None:
    """Number of threads that the user gave XGBoost, or None; what `config_context` says is the most it takes."""
    given = _config(booster)["generic_param"].get("nthread", 0), xgboost.get_config().get("nthread", 0)
    return min((int(value) for value in given if int(value) > 0), default=None)


def workers(booster: Any) -> Workers:
    """The workers that XGBoost trains with."""
    return of_xgboost()


def evaluated(booster: Any) -> list[str]:
    """Nothing to compare: XGBoost evaluates every data set on all workers, on those too that have no rows of it."""
    return []


def learning_rate(booster: Any) -> float:
    """The learning rate of a booster."""
    trees = _config(booster)["gradient_booster"]
    parameters = trees.get("gbtree", trees).get("tree_train_param", {})
    return float(parameters.get("learning_rate", parameters.get("eta", 0.3)))


def keep(booster: Any, run: Run) -> None:
    """Keep what a rule or a term has learnt in the model's attributes, from where `saved_state` reads it."""
    if run.rule_state is not None or run.term_states:
        booster.set_attr(**{ATTRIBUTE: json.dumps(run.state)})


def saved_state(booster: Any) -> dict[str, Any]:
    """The state of the training that a model comes from, kept in its attributes, for `Objective(spec, state=...)`.

    Parameters
    ----------
    booster
        A trained Booster, or one loaded from a file.

    Raises
    ------
    ValueError
        If the model has none: trained without an `AugmentedLagrangian` and without terms that learn.

    Examples
    --------
    >>> import xgboost as xgb, lambda_objectives as lo
    >>> lo.xgboost.saved_state(xgb.Booster())
    Traceback (most recent call last):
    ValueError: booster has no saved state: only trainings by a rule with a state leave one
    """
    if not isinstance(booster, xgboost.Booster):
        raise TypeError(
            f"booster must be an XGBoost Booster, found {brief(booster)}: of an estimator its get_booster(), of "
            "LightGBM the state that Objective.state returns, which its models have no place for"
        )
    text = booster.attr(ATTRIBUTE)
    if text is None:
        raise ValueError("booster has no saved state: only trainings by a rule with a state leave one")
    state: dict[str, Any] = json.loads(text)
    return state


def rounds(booster: Any) -> int:
    """Rounds that a booster has behind it."""
    return int(booster.num_boosted_rounds())


def metrics(readings: dict[str, Reading], primary: str) -> list[tuple[str, float]]:
    """As custom_metric returns them. XGBoost's EarlyStopping watches the last one and guesses from its name which way
    is better: the primary comes last if it would guess right, else its cost.
    """
    kind, _, name = primary.rpartition("/")
    candidates = (primary, f"cost/{primary}", f"{kind}/cost/{name}")
    right = (c for c in candidates if c in readings and c.startswith(MAXIMISED) == readings[c].maximise)
    watched = next(right, None)
    names = sorted(readings, key=lambda name: name == watched)
    return [(name, readings[name].value) for name in names]


def _same_rows(known: Any, rows: Any, labels: Any) -> bool:
    """Whether labels are those of some rows of a known matrix: numbers alone could be another process's."""
    return bool(rows.max() < len(known)) and np.array_equal(known[rows], labels)


def _same(value: str, default: float | str) -> bool:
    """Whether a parameter, in XGBoost's text, is its default."""
    return value == default if isinstance(default, str) else float(value) == default


def _config(booster: Any) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return config


class EarlyStopping(xgboost.callback.TrainingCallback):  # type: ignore[misc]
    """Stop when no better round comes, and return the model at the best round that keeps to every bound.

    Of the rounds that keep to all bounds the one with the best metric is chosen; where none does, the one that breaks
    them the least, with a warning that gives each constraint's margin. A round that keeps to a bound only because that
    had not been broken yet, by scores that were small, comes after all that do so later. Rounds in which an
    `AugmentedLagrangian` does not yet ask for all that is wanted do not count as waiting, nor do those that come closer
    to the bounds than any since they were broken most. With any other spec this is
    early stopping by the primary metric, in its own direction; with `Decorrelated` by the metric and the penalty, where
    these go together.

    Parameters
    ----------
    objective
        The `Objective` that is trained.
    rounds
        Stop after so many rounds without a better one; as many as there are to train never stops and only chooses.
    data
        The DMatrix to watch; None for the first one evaluated besides the training data, without one the training data.
    metric
        The reading to watch, such as ``"ndcg@10"``; None for the primary term's metric.
    tolerance
        Share of a bound by which it may be broken.

    Attributes
    ----------
    best
        The round that was chosen: its `trees`, `value` (greater is better) and `margins`.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; while training, if the data sets in `evals` are not evaluated by
        `custom_metric=objective.metrics`, and with dropout, where no earlier round is to be had.

    Notes
    -----
    The model that `xgboost.train` returns ends with the best round, and has `best_iteration` and `best_score`. In
    `xgboost.cv` means over the folds count. Good for any number of trainings, one after the other. Where `Checkpoint`
    writes, a training that goes on from what `lo.resume` returns goes on with the choice as well.

    Examples
    --------
    >>> import numpy as np, xgboost as xgb, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)); y = (X[:, 0] + rng.normal(size=400) > 1) * 1.0
    >>> train = lo.attach(xgb.DMatrix(X, y, qid=np.repeat(range(20), 20)), quality=(X[:, 1] > 1) * 1.0)
    >>> quality = lo.Constraint(lo.LambdaRank(lo.NDCG(10), label="quality"), at_most=0.8)
    >>> objective = lo.Objective(lo.AugmentedLagrangian(lo.LambdaRank(lo.NDCG(10)), [quality]))
    >>> stop = lo.xgboost.EarlyStopping(objective, 40)
    >>> booster = xgb.train({"min_child_weight": 1e-3}, train, 40, obj=objective, callbacks=[stop])
    >>> booster.num_boosted_rounds() == stop.best.trees, stop.best.margins["quality.ndcg@10"] >= 0
    (True, True)
    """

    def __init__(
        self, objective: Any, rounds: int, data: Any = None, metric: str | None = None, tolerance: float = 0.0
    ) -> None:
        super().__init__()
        self._choice = Choice(objective, rounds, data, metric, tolerance)
        self._trees = 0
        self._start = 0

    @property
    def best(self) -> Any:
        """The round that was chosen."""
        return self._choice.best

    def before_training(self, model: Any) -> Any:
        """Begin anew."""
        self._trees, self._start = 0, model.num_boosted_rounds()
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """After a round."""
        self._trees += 1
        boosters = _boosters(model)
        if self._trees == 1:
            if any(_drops(_config(booster)["gradient_booster"]) for booster in boosters):
                raise ValueError(
                    "EarlyStopping: with booster='dart' or rate_drop no earlier round is to be had, its trees change "
                    "later; train without dropout, or without EarlyStopping"
                )
            # without a metric of its own XGBoost has nothing to log of the data sets that it was given
            self._choice.begin(boosters, bool(evals_log or told("evals")), self._start)
        stop = self._choice.offer(self._trees)
        self._note(model)
        return stop

    def after_training(self, model: Any) -> Any:
        """Cut the model at its best round."""
        if self._trees == 0:
            return model
        choice, boosters = self._choice, _boosters(model)
        if choice.watched[0].lags:
            choice.offer(self._trees, last=[_after_last(w, b) for w, b in zip(choice.watched, boosters, strict=True)])
        best = choice.finish()
        if not hasattr(model, "cvfolds"):
            model = model[: choice.start + best.trees]
            for watched in choice.watched:
                keep(model, watched.training)
        self._note(model)
        return model

    def _note(self, model: Any) -> None:
        """Write the best round so far where XGBoost and its users look for it."""
        best = self._choice.best
        if best is not None:
            model.set_attr(best_iteration=str(self._choice.start + best.trees - 1), best_score=str(best.score))


def _boosters(model: Any) -> list[Any]:
    """The booster that trains, or those of a cross-validation's folds."""
    folds = getattr(model, "cvfolds", None)
    return [model] if folds is None else [fold.bst for fold in folds]


def _after_last(watched: Watched, booster: Any) -> dict[str, Reading]:
    """All there is to say of the training data after the last tree; logged."""
    readings = watched.run.evaluate(booster.predict(watched.data, output_margin=True), watched.run.rule_state)
    watched.run.record(readings)
    return readings


def _drops(trees: dict[str, Any]) -> bool:
    """Whether trees are dropped while training, and so change later."""
    dropout = trees.get("dart_train_param", {})  # since XGBoost 3.4 of booster gbtree too
    return trees["name"] == "dart" or any(float(dropout.get(name, 0)) > 0 for name in ("rate_drop", "one_drop"))
