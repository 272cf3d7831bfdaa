"""The user's own job: train a booster on LETOR files with early stopping, and write what came of it."""

from __future__ import annotations

import contextlib
import io
import json
import platform
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import lambda_objectives as lo
from lambda_objectives.tools.console import UserError, explained, progress, require
from lambda_objectives.tools.files import Ranked
from lambda_objectives.tools.scoring import Model, feature_names, measure, reported, silent_stderr, with_cutoff

DEFAULTS: dict[str, dict[str, Any]] = {
    "lightgbm": {"learning_rate": 0.05, "verbosity": -1},
    "xgboost": {"learning_rate": 0.05, "min_child_weight": 1e-3, "base_score": 0.0},
}
ALIASES = {"learning_rate": ("eta", "shrinkage_rate"), "verbosity": ("verbose",)}
RESERVED = {  # what has an option of its own
    "--metric": ("objective", "objective_type", "app", "application", "loss", "metric", "metrics", "eval_metric"),
    "--rounds": ("num_iterations", "num_iteration", "n_iter", "num_trees", "num_round", "num_rounds", "num_boost_round",
                 "n_estimators", "nrounds"),
    "--early-stopping": ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change"),
    "--seed": ("seed", "random_seed", "random_state"),
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes
    ----------
    booster
        "lightgbm" or "xgboost".
    metric
        What early stopping watches on the validation file.
    rounds
        The most rounds to train.
    early_stopping
        Stop after so many rounds without a better metric; 0 trains and keeps all rounds.
    train_cutoff, truncation
        Cut-off of the metric that is trained on, and `LambdaRank`'s truncation.
    seed
        The booster's seed.
    params
        The booster's parameters.
    """

    booster: str
    metric: Any
    rounds: int = 1000
    early_stopping: int = 50
    train_cutoff: int | None = None
    truncation: int | None = None
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def term(self) -> lo.LambdaRank:
        """What is trained on: the watched metric without its cut-off, unless one was asked for."""
        return lo.LambdaRank(with_cutoff(type(self.metric), self.train_cutoff), truncation=self.truncation)

    @property
    def all_params(self) -> dict[str, Any]:
        """The user's parameters, and defaults where the user says nothing."""
        defaults = {
            name: value
            for name, value in DEFAULTS[self.booster].items()
            if not any(alias in self.params for alias in ALIASES.get(name, ()))
        }
        return {**defaults, **self.params, "seed": self.seed}


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
    """

    model: Model
    best_round: int
    curves: dict[str, list[float]]


def parse_params(words: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value``; what reads as a number is one.

    Raises
    ------
    UserError
        For a word without a name or a value, and for what has an option of its own.

    Examples
    --------
    >>> from lambda_objectives.tools.training import parse_params
    >>> parse_params(["max_depth=4", "eta=1e-1", "booster=dart"])
    {'max_depth': 4, 'eta': 0.1, 'booster': 'dart'}
    """
    params: dict[str, Any] = {}
    for word in words:
        name, _, text = (part.strip() for part in word.partition("="))
        if not name or not text:
            raise UserError(f"--param {word!r}: name=value is wanted, as in --param max_depth=4")
        for option, names in RESERVED.items():
            if name in names:
                raise UserError(f"--param {word!r}: there is the option {option} for that")
        params[name] = text
        for kind in (float, int):
            with contextlib.suppress(ValueError):
                params[name] = kind(text)
    return params


def train(settings: Settings, data: Mapping[str, Ranked]) -> Trained:
    """Train on ``data["train"]``, stopping early by ``data["valid"]``.

    Raises
    ------
    UserError
        For parameters that the booster does not know or refuses, and labels that the metric cannot take.
    """
    for part in data.values():
        measure(reported(settings.metric), np.zeros(len(part.y)), part)  # labels are refused here, file by file
    objective = lo.Objective(settings.term)
    # Another metric than the one trained on is watched through an objective of its own, whose gradient nobody asks for.
    watch = objective if settings.term.metric == settings.metric else lo.Objective(lo.LambdaRank(settings.metric))
    run = _lightgbm if settings.booster == "lightgbm" else _xgboost
    with progress(settings.rounds, settings.booster) as bar, explained():
        return run(settings, objective, watch, data, lambda: bar.update(1))


def _lightgbm(
    settings: Settings,
    objective: lo.Objective,
    watch: lo.Objective,
    data: Mapping[str, Ranked],
    tick: Callable[[], Any],
) -> Trained:
    lightgbm = require("lightgbm")
    params = {**settings.all_params, "objective": objective, "metric": "None"}
    train, valid = data["train"], data["valid"]
    names = feature_names(train.first, train.X.shape[1])
    train_set = lightgbm.Dataset(
        train.X, train.y, group=train.group, feature_name=names, params=settings.all_params, free_raw_data=False
    )
    valid_set = train_set.create_valid(valid.X, valid.y, group=valid.group)
    _check_lightgbm(lightgbm, {**params, "objective": "none"}, train_set)

    evaluations: dict[str, dict[str, list[float]]] = {}
    callbacks = [lightgbm.record_evaluation(evaluations), lambda _: tick()]
    if settings.early_stopping:
        callbacks.append(lightgbm.early_stopping(settings.early_stopping, first_metric_only=True, verbose=False))
    booster = lightgbm.train(
        params,
        train_set,
        settings.rounds,
        valid_sets=[train_set, valid_set],
        valid_names=["train", "valid"],
        feval=watch.metrics,
        callbacks=callbacks,
    )
    best = int(booster.best_iteration) if settings.early_stopping else int(booster.current_iteration())
    curves = {role: list(values[settings.metric.name]) for role, values in evaluations.items()}
    return Trained(Model("lightgbm", booster, best), best, curves)


def _check_lightgbm(lightgbm: Any, params: dict[str, Any], train_set: Any) -> None:
    """Refuse parameters that LightGBM does not know: it says so on stdout and goes on."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), silent_stderr():
        lightgbm.Booster({**params, "verbosity": 0}, train_set)
    if unknown := re.search(r"Unknown parameter: (\S+)", said.getvalue()):
        raise UserError(f"--param {unknown[1]}: LightGBM has no such parameter")


def _xgboost(
    settings: Settings,
    objective: lo.Objective,
    watch: lo.Objective,
    data: Mapping[str, Ranked],
    tick: Callable[[], Any],
) -> Trained:
    xgboost = require("xgboost")
    params = {**settings.all_params, "disable_default_eval_metric": 1}
    matrices = {
        role: xgboost.DMatrix(part.X, part.y, feature_names=feature_names(part.first, part.X.shape[1]))
        for role, part in data.items()
        if role != "test"
    }
    for role, matrix in matrices.items():
        matrix.set_group(data[role].group)
    _check_xgboost(xgboost, params, matrices["train"])

    class Tick(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            tick()
            return False

    callbacks = [Tick()]
    if settings.early_stopping:
        stop = xgboost.callback.EarlyStopping(
            settings.early_stopping,
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
        custom_metric=watch.metrics,
        evals=[(matrices["train"], "train"), (matrices["valid"], "valid")],
        evals_result=evaluations,
        verbose_eval=False,
        callbacks=callbacks,
    )
    curves = {role: list(values[settings.metric.name]) for role, values in evaluations.items()}
    return Trained(Model("xgboost", booster), int(booster.num_boosted_rounds()), curves)


def _check_xgboost(xgboost: Any, params: dict[str, Any], matrix: Any) -> None:
    """Refuse parameters that XGBoost does not know: it warns and goes on."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        xgboost.Booster(params, [matrix]).save_config()
    for warning in said:
        if unknown := re.search(r'Parameters: \{ "(.+?)"', str(warning.message)):
            raise UserError(f"--param {unknown[1]}: XGBoost has no such parameter, or it has no effect here")


def measure_all(settings: Settings, trained: Trained, data: Mapping[str, Ranked]) -> dict[str, dict[str, float]]:
    """Return the metrics of a trained model on each data set."""
    metrics = reported(settings.metric)
    return {role: measure(metrics, trained.model.scores(part.X), part) for role, part in data.items()}


def write(
    folder: Path,
    settings: Settings,
    trained: Trained,
    data: Mapping[str, Ranked],
    measured: dict[str, dict[str, float]],
    seconds: float,
) -> list[str]:
    """Write the model, the learning curve and metrics.json; return the names of the files."""
    from lambda_objectives.tools.plots import save_learning_curve

    booster = require(settings.booster)
    report = {
        "booster": settings.booster,
        "objective": repr(settings.term),
        "metric": settings.metric.name,
        "best_round": trained.best_round,
        "rounds_trained": len(trained.curves["valid"]),
        "early_stopping": settings.early_stopping,
        "params": settings.all_params,
        "data": {
            role: {"file": part.path, "queries": len(part.group), "rows": len(part.y), "features": part.X.shape[1]}
            for role, part in data.items()
        },
        "metrics": measured,
        "curves": trained.curves,
        "seconds": round(seconds, 3),
        "versions": {
            "lambda_objectives": lo.__version__,
            settings.booster: booster.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    with explained():
        model = trained.model.save(folder)
        picture = folder / "learning_curve.png"
        save_learning_curve(picture, trained.curves, trained.best_round, settings.metric.name)
        (folder / "metrics.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return [model.name, "learning_curve.png", "metrics.json"]
