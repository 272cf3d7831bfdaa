"""The user's own job: train a booster on LETOR files with early stopping, and write what came of it."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lambda_objectives as lo
from lambda_objectives.arrays import nearest
from lambda_objectives.specs import as_spec
from lambda_objectives.tools.console import UserError, explained, progress, require
from lambda_objectives.tools.files import Ranked
from lambda_objectives.tools.scoring import Model, feature_names, measure, reported, silent_stderr
from lambda_objectives.tools.settings import BOOSTING, Settings


@dataclass(frozen=True, eq=False)
class Trained:
    """What came of a training.

    Attributes
    ----------
    model
        The model at its best round.
    best_round
        Which round that is, from 1.
    curves
        The watched metric after each round, by data set.
    readings
        All costs and metrics after each round, by data set.
    multipliers
        Of each constraint by round: what its gradient was weighed by in the round's tree.
    """

    model: Model
    best_round: int
    curves: dict[str, list[float]]
    readings: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    multipliers: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Goal:
    """A training under constraints.

    Attributes
    ----------
    spec
        The `AugmentedLagrangian` to train, in place of the settings' term.
    judge
        "train" or "valid": the data on which bounds have to be kept, and by whose metric the round is chosen.
    patience
        Stop after so many rounds without a better one.
    tolerance
        Share of a bound by which it may be broken.
    """

    spec: Any
    judge: str
    patience: int
    tolerance: float


def train(settings: Settings, data: Mapping[str, Ranked], goal: Goal | None = None, what: str | None = None) -> Trained:
    """Train on ``data["train"]``, stopping early by ``data["valid"]``, or as a goal says.

    Parameters
    ----------
    settings
        How to train.
    data
        Files by role.
    goal
        Constraints, if there are any.
    what
        What the progress bar says; None for the booster.

    Raises
    ------
    UserError
        For parameters that the booster does not know or refuses, and labels that the metric cannot take.
    """
    if settings.early_stopping and "dart" in (settings.params.get(name) for name in ("booster", *BOOSTING)):
        raise UserError("with dart no earlier round is to be had, for its trees change later: say --early-stopping 0")
    for part in data.values():
        measure(reported(settings.metric), np.zeros(len(part.y)), part)  # labels are refused here, file by file
    objective = lo.Objective(settings.term if goal is None else goal.spec)
    # Another metric than the one trained on is watched through an objective of its own, whose gradient nobody asks for.
    watch = [objective] if goal is not None or getattr(settings.term, "metric", None) == settings.metric else []
    if getattr(settings.term, "metric", None) != settings.metric:
        watch.insert(0, lo.Objective(lo.LambdaRank(settings.metric)))
    if settings.watch_labels:
        known = [term.name for each in watch for term in as_spec(each.spec).terms]
        further = [lo.LambdaRank(settings.metric, label=name) for name in data["train"].labels]
        watch += [lo.Objective(term) for term in further if term.name not in known]
    require(settings.booster)
    run = _lightgbm if settings.booster == "lightgbm" else _xgboost
    with progress(settings.rounds, what or settings.booster) as bar, explained():
        return run(settings, goal, objective, watch, data, lambda: bar.update(1))


def _lightgbm(
    settings: Settings,
    goal: Goal | None,
    objective: lo.Objective,
    watch: list[lo.Objective],
    data: Mapping[str, Ranked],
    tick: Callable[[], Any],
) -> Trained:
    import lightgbm

    params = {**settings.all_params, "objective": objective, "metric": "None"}
    train, valid = data["train"], data["valid"]
    names = feature_names(train.numbers)
    train_set = lightgbm.Dataset(
        train.X, train.y, group=train.group, feature_name=names, params=settings.all_params, free_raw_data=False
    )
    valid_set = train_set.create_valid(valid.X, valid.y, group=valid.group)
    for part, data_set in ((train, train_set), (valid, valid_set)):
        lo.attach(data_set, part.labels)
    with explained("--param "):
        lo.lightgbm.check_names(settings.params)
    _check_lightgbm({**params, "objective": "none"}, train_set)

    evaluations: dict[str, dict[str, list[float]]] = {}
    callbacks = [lightgbm.record_evaluation(evaluations), lambda _: tick()]
    if goal is not None:
        judged = train_set if goal.judge == "train" else valid_set
        stop = lo.lightgbm.early_stopping(objective, goal.patience, judged, tolerance=goal.tolerance)
        callbacks.append(stop)
    elif settings.early_stopping:
        callbacks.append(lightgbm.early_stopping(settings.early_stopping, first_metric_only=True, verbose=False))
    booster = lightgbm.train(
        params,
        train_set,
        settings.rounds,
        valid_sets=[train_set, valid_set],
        valid_names=["train", "valid"],
        feval=[each.metrics for each in watch],
        callbacks=callbacks,
    )
    chosen = goal is not None or settings.early_stopping
    best = int(booster.best_iteration) if chosen else int(booster.current_iteration())
    model = Model("lightgbm", booster, best)
    return _trained(settings, model, best, evaluations, objective.history(train_set))


def _trained(
    settings: Settings,
    model: Model,
    best: int,
    evaluations: Mapping[str, Mapping[str, list[float]]],
    history: Mapping[str, list[float]],
) -> Trained:
    readings = {role: {name: list(values) for name, values in each.items()} for role, each in evaluations.items()}
    curves = {role: each[settings.metric.name] for role, each in readings.items()}
    multipliers = {
        name.removeprefix("multiplier/"): values for name, values in history.items() if name.startswith("multiplier/")
    }
    return Trained(model, best, curves, readings, multipliers)


def _check_lightgbm(params: dict[str, Any], train_set: Any) -> None:
    """Refuse parameters that LightGBM does not know, for it says so on stdout and goes on; try a round with the others.

    What it refuses itself it writes to stderr besides raising it: that is kept from the user here, before training.
    """
    import lightgbm

    said = io.StringIO()
    with contextlib.redirect_stdout(said), silent_stderr():
        trial = lightgbm.Booster({**params, "verbosity": 0}, train_set)
        try:
            trial.update(fobj=lambda scores, _: (np.zeros_like(scores), np.ones_like(scores)))
        except lightgbm.basic.LightGBMError as error:
            if "num_features" in str(error):
                raise UserError("no feature can split the data: constant, or min_data_in_leaf is too large") from error
            raise
    if unknown := re.search(r"Unknown parameter: (\S+)", said.getvalue()):
        raise UserError(f"--param {unknown[1]}: LightGBM has no such parameter")


def _xgboost(
    settings: Settings,
    goal: Goal | None,
    objective: lo.Objective,
    watch: list[lo.Objective],
    data: Mapping[str, Ranked],
    tick: Callable[[], Any],
) -> Trained:
    import xgboost

    params = {**settings.all_params, "disable_default_eval_metric": 1}
    matrices = {
        role: xgboost.DMatrix(part.X, part.y, feature_names=feature_names(part.numbers))
        for role, part in data.items()
        if role != "test"
    }
    for role, matrix in matrices.items():
        matrix.set_group(data[role].group)
        lo.attach(matrix, data[role].labels)
    _check_xgboost(params, settings.params, matrices["train"])

    callbacks = [xgboost_callback(tick)]
    if goal is not None:
        judged = matrices[goal.judge]
        callbacks.append(lo.xgboost.EarlyStopping(objective, goal.patience, judged, tolerance=goal.tolerance))
    elif settings.early_stopping:
        stop = xgboost.callback.EarlyStopping(
            rounds=settings.early_stopping,
            metric_name=settings.metric.name,
            data_name="valid",
            maximize=settings.metric.maximise,
            save_best=True,
        )
        callbacks.append(stop)
    evaluations: dict[str, dict[str, list[float]]] = {}
    booster = xgboost.train(
        params,
        matrices["train"],
        settings.rounds,
        obj=objective,
        custom_metric=lambda scores, matrix: [found for each in watch for found in each.metrics(scores, matrix)],
        evals=[(matrices["train"], "train"), (matrices["valid"], "valid")],
        evals_result=evaluations,
        verbose_eval=False,
        callbacks=callbacks,
    )
    history = objective.history(matrices["train"])
    return _trained(settings, Model("xgboost", booster), int(booster.num_boosted_rounds()), evaluations, history)


def _check_xgboost(params: dict[str, Any], given: Mapping[str, Any], matrix: Any) -> None:
    """Refuse parameters that XGBoost does not know: it warns and goes on."""
    import xgboost

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        config = xgboost.Booster(params, [matrix]).save_config()
    unused = {name for warning in said for name in re.findall(r'"(\w+)"', str(warning.message))}
    for name in given:
        if name in unused:  # our defaults may be
            hint = nearest(name, set(re.findall(r'"([a-z_]+)":"', config)) - {name})
            raise UserError(f"--param {name}: XGBoost has no such parameter, or it has no effect here{hint}")


def xgboost_callback(tick: Callable[[], Any]) -> Any:
    """Return a callback for XGBoost that calls after each round; for LightGBM any function of one argument will do."""
    import xgboost

    class Tick(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            tick()
            return False

    return Tick()


def measure_all(settings: Settings, trained: Trained, data: Mapping[str, Ranked]) -> dict[str, dict[str, float]]:
    """Return the metrics of a trained model on each data set."""
    metrics = reported(settings.metric)
    return {role: measure(metrics, trained.model.scores(part.X), part) for role, part in data.items()}
