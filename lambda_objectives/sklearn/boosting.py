"""Both boosters on the same footing: data sets from rows, a training, raw scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import lambda_objectives as lo
from lambda_objectives.sklearn.inputs import Rows, weights_of_queries
from lambda_objectives.specs import as_spec

OURS = {  # parameters of the boosters that are arguments of the estimators
    **dict.fromkeys(("objective", "objective_type", "app", "application", "loss", "obj", "fobj"), "objective"),
    **dict.fromkeys(
        ("num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds", "nrounds",
         "num_boost_round", "max_iter"), "n_estimators"),
    **dict.fromkeys(("early_stopping_round", "early_stopping", "n_iter_no_change"), "early_stopping_rounds"),
}  # fmt: skip
MATRIX = ("missing", "enable_categorical", "feature_types", "feature_weights")  # parameters of XGBoost's matrices


@dataclass(frozen=True, eq=False)
class Plan:
    """A training that an estimator asks for.

    Attributes
    ----------
    objective
        The Objective.
    params
        The booster's own parameters.
    rounds
        How many rounds.
    patience
        Rounds without a better one after which to stop; None to keep them all.
    on_train
        Choose the round by the training data, whatever else is evaluated.
    metric, tolerance
        As of early stopping.
    start
        The score that every row starts from, for each output.
    callbacks
        The user's.
    init_model
        A model to go on from.
    """

    objective: lo.Objective
    params: Mapping[str, Any]
    rounds: int
    patience: int | None = None
    on_train: bool = False
    metric: str | None = None
    tolerance: float = 0.0
    start: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    callbacks: Sequence[Any] = ()
    init_model: Any = None


class Trained(NamedTuple):
    """What came of a training."""

    booster: Any
    history: dict[str, list[float]]
    evaluations: dict[str, dict[str, list[float]]]


def check_params(booster: str, params: Mapping[str, Any]) -> None:
    """Refuse parameters that are arguments of the estimators under another name, and those that do not exist."""
    for name in params:
        if name in OURS:
            raise ValueError(f"{name}={params[name]!r}: say {OURS[name]}= instead")
    if booster == "lightgbm":
        lo.lightgbm.check_names(params)


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as the boosters take them: None is what is not given, a generator draws a seed."""
    given = {name: value for name, value in params.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, np.random.RandomState):
            given[name] = int(value.randint(2**31 - 1))
        elif isinstance(value, np.random.Generator):
            given[name] = int(value.integers(2**31 - 1))
    return given


def start_of(term: Any, rows: Rows) -> npt.NDArray[np.float64]:
    """The scores that every row starts from: the mean label through the term's link, 0 for terms without one.

    Stock boosters start there with their own objectives, and not with others.
    """
    outputs, link = getattr(term, "outputs", 1), getattr(term, "link", None)
    start = np.zeros(outputs)
    label = getattr(term, "label", None)
    if link is None or (label is not None and label not in rows.columns):
        return start
    labels = rows.y if label is None else rows.columns[label]
    mean = float(np.average(labels, weights=rows.weights))
    if not np.isfinite(mean):
        return start  # the term says what is wrong
    if link == "identity":
        start[0] = mean
    elif link == "log" and mean > 0:
        start[0] = np.log(mean)
    elif link == "logit" and 0 < mean < 1:
        start[0] = np.log(mean / (1.0 - mean))
    if outputs == 2:
        deviation = float(np.sqrt(np.average((labels - mean) ** 2, weights=rows.weights)))
        start[1] = np.log(deviation) if deviation > 0 else 0.0
    return start


# ----------------------------------------------------------------------------------------------------------- LightGBM


def train_lightgbm(plan: Plan, train: Rows, valid: Mapping[str, Rows]) -> Trained:
    """Train LightGBM."""
    import lightgbm

    objective, outputs = plan.objective, len(plan.start)
    quiet = {} if "verbose" in plan.params else {"verbosity": -1}
    none = {} if {"metrics", "metric_types"} & set(plan.params) else {"metric": "None"}
    params = {**quiet, **none, **plan.params, "objective": objective}
    if outputs > 1:
        params["num_class"] = outputs
    start = plan.start
    if plan.init_model is not None or params.get("linear_tree") in (True, "true"):
        start = np.zeros(outputs)  # what is there already has one; linear leaves cannot be moved afterwards

    def made(rows: Rows, reference: Any = None) -> Any:
        scores = np.repeat(start, len(rows.y)) if start.any() else None  # output by output
        data = lightgbm.Dataset(
            _as_matrix(rows.X), rows.y, reference, rows.weights, rows.group, scores, params=dict(plan.params)
        )
        return lo.attach(data, rows.columns)

    data = made(train)
    evaluations: dict[str, dict[str, list[float]]] = {}
    callbacks = [*plan.callbacks, *([lightgbm.record_evaluation(evaluations)] if valid else [])]
    if plan.patience is not None:
        watched = data if plan.on_train else None
        stop = lo.lightgbm.early_stopping(objective, plan.patience, watched, plan.metric, plan.tolerance)
        callbacks.append(stop)
    booster = lightgbm.train(
        params,
        data,
        plan.rounds,
        valid_sets=[made(rows, data) for rows in valid.values()],
        valid_names=list(valid),
        feval=objective.metrics,
        callbacks=callbacks,
        init_model=plan.init_model,
    )
    for tree, score in enumerate(start.tolist()):
        if score:
            _raise_leaves(booster, tree, score)
    return Trained(booster, objective.history(data), evaluations)


def _raise_leaves(booster: Any, tree: int, score: float) -> None:
    """Add a score to all leaves of a tree, as LightGBM does with its own start, so that the model file has it."""
    leaves = booster.dump_model(num_iteration=1)["tree_info"][tree]["num_leaves"]
    for leaf in range(leaves):
        booster.set_leaf_output(tree, leaf, booster.get_leaf_output(tree, leaf) + score)


def _as_matrix(X: Any) -> Any:
    """Scipy's sparse arrays as its sparse matrices, which alone LightGBM takes; anything else as it is."""
    if not hasattr(X, "tocsr"):
        return X
    from scipy.sparse import csr_matrix

    return csr_matrix(X)


def scores_lightgbm(booster: Any, X: Any, params: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """Raw scores, (n,) or (n, outputs)."""
    return np.asarray(booster.predict(_as_matrix(X), raw_score=True))


def importances_lightgbm(booster: Any) -> npt.NDArray[Any]:
    """How many splits each feature has."""
    return np.asarray(booster.feature_importance("split"))


# ------------------------------------------------------------------------------------------------------------ XGBoost


def train_xgboost(plan: Plan, train: Rows, valid: Mapping[str, Rows]) -> Trained:
    """Train XGBoost."""
    import xgboost

    objective, outputs = plan.objective, len(plan.start)
    given = {name: value for name, value in plan.params.items() if name not in MATRIX}
    pairs = any(term.needs_order for term in as_spec(objective.spec).terms)
    small = {} if not pairs else {"min_child_weight": 1e-3}  # 1 is large beside the Hessians of pairs
    params = {"disable_default_eval_metric": 1, **small, **given}
    if outputs > 1:
        params["num_class"] = outputs
    start = plan.start
    if "base_score" not in given and plan.init_model is None:
        params["base_score"] = float(start[0]) if outputs == 1 else start.tolist()

    def made(rows: Rows) -> Any:
        by_query = weights_of_queries(rows)
        weights = rows.weights if by_query is None else by_query
        matrix = _matrix(rows.X, plan.params, rows.y)
        qid = None
        if rows.group is not None and (weights is None or by_query is not None):
            matrix.set_group(rows.group)
        elif rows.group is not None:  # XGBoost has no room for weights of the rows of a query
            qid = np.repeat(np.arange(len(rows.group)), rows.group)
        if weights is not None:
            matrix.set_weight(weights)
        return lo.attach(matrix, rows.columns, qid=qid)

    data = made(train)
    evaluations: dict[str, dict[str, list[float]]] = {}
    callbacks = list(plan.callbacks)
    if plan.patience is not None:
        watched = data if plan.on_train else None
        stop = lo.xgboost.EarlyStopping(objective, plan.patience, watched, plan.metric, plan.tolerance)
        callbacks.append(stop)
    booster = xgboost.train(
        params,
        data,
        plan.rounds,
        obj=objective,
        custom_metric=objective.metrics,
        evals=[(made(rows), name) for name, rows in valid.items()],
        evals_result=evaluations,
        verbose_eval=False,
        callbacks=callbacks,
        xgb_model=plan.init_model,
    )
    return Trained(booster, objective.history(data), {name: dict(found) for name, found in evaluations.items()})


def _matrix(X: Any, params: Mapping[str, Any], y: Any = None) -> Any:
    import xgboost

    options = {"enable_categorical": True} | {name: params[name] for name in MATRIX if params.get(name) is not None}
    threads = params.get("nthread", params.get("n_jobs"))
    return xgboost.DMatrix(X, y, nthread=threads, **options)


def scores_xgboost(booster: Any, X: Any, params: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """Raw scores, (n,) or (n, outputs)."""
    return np.asarray(booster.predict(_matrix(X, params), output_margin=True), dtype=np.float64)


def importances_xgboost(booster: Any) -> npt.NDArray[Any]:
    """The mean gain of each feature's splits, as shares of their sum."""
    names = booster.feature_names or [f"f{i}" for i in range(booster.num_features())]
    gains = booster.get_score(importance_type="gain")
    found = np.array([gains.get(name, 0.0) for name in names], dtype=np.float32)
    total = found.sum()
    return found / total if total > 0 else found
