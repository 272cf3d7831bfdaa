"""How the command line trains: its own options, and the booster's parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import lambda_objectives as lo
from lambda_objectives.tools.console import UserError
from lambda_objectives.tools.scoring import with_cutoff

DEFAULTS: dict[str, dict[str, Any]] = {
    "lightgbm": {"learning_rate": 0.05, "verbosity": -1},
    "xgboost": {"learning_rate": 0.05, "min_child_weight": 1e-3, "base_score": 0.0},
}
ALIASES = {"learning_rate": ("eta", "shrinkage_rate"), "verbosity": ("verbose",)}
BOOSTING = ("boosting", "boosting_type", "boost")  # LightGBM's names for what XGBoost calls booster
RESERVED = {  # what has an option of its own
    "--objective": ("objective", "objective_type", "app", "application", "loss"),
    "--metric": ("metric", "metrics", "metric_types", "eval_metric"),
    "--rounds": ("num_iterations", "num_iteration", "n_iter", "num_trees", "num_round", "num_rounds", "num_boost_round",
                 "n_estimators", "nrounds"),
    "--early-stopping": ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change"),
    "--seed": ("seed", "random_seed", "random_state"),
}  # fmt: skip
OBJECTIVES: dict[str, Callable[[int], Any]] = {  # by name, from a seed; those of a metric are made in `Settings.term`
    "lambdarank": lambda seed: None,
    "lambdaloss": lambda seed: None,
    "yetirank": lambda seed: None,
    "query-rmse": lambda seed: lo.QueryRMSE(),
    "xendcg": lambda seed: lo.XENDCG(seed=seed),
    "query-softmax": lambda seed: lo.QuerySoftMax(),
    "ranknet": lambda seed: lo.RankNet(),
}


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
    objective
        What is trained on, one of OBJECTIVES.
    train_cutoff, truncation
        Cut-off of the metric that is trained on, and the term's truncation.
    log_norm, score_gap_norm
        The term's normalisations; None for what its objective has by default.
    seed
        The booster's seed, and that of an objective that draws at random.
    params
        The booster's parameters.
    watch_labels
        Whether the metric of every further label is read in every round too.
    """

    booster: str
    metric: Any
    rounds: int = 1000
    early_stopping: int = 50
    train_cutoff: int | None = None
    truncation: int | None = None
    log_norm: bool | None = None
    score_gap_norm: bool | None = None
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    objective: str = "lambdarank"
    watch_labels: bool = False

    def __post_init__(self) -> None:
        options = {
            "--train-cutoff": (self.train_cutoff, ("lambdarank", "yetirank")),
            "--truncation": (self.truncation, ("lambdarank", "lambdaloss", "yetirank")),
            "--log-norm": (self.log_norm, ("lambdarank", "lambdaloss")),
            "--score-gap-norm": (self.score_gap_norm, ("lambdarank", "lambdaloss")),
        }
        if self.objective not in OBJECTIVES:
            raise UserError(f"unknown objective {self.objective!r}: there are {', '.join(OBJECTIVES)}")
        for name, (value, objectives) in options.items():
            if value is not None and self.objective not in objectives:
                raise UserError(f"{name} belongs to --objective {' and '.join(objectives)}, not to {self.objective}")

    @property
    def term(self) -> Any:
        """What is trained on: by default the watched metric without its cut-off, unless one was asked for."""
        if self.objective not in ("lambdarank", "yetirank", "lambdaloss"):
            return OBJECTIVES[self.objective](self.seed)
        norms: dict[str, Any] = {
            name: True if value is None else value  # as the boosters have them
            for name, value in (("score_gap_norm", self.score_gap_norm), ("log_norm", self.log_norm))
        }
        if self.objective == "lambdaloss":
            return lo.LambdaLoss(truncation=self.truncation, **norms)
        metric = self._trained_metric
        if self.objective == "yetirank":
            return lo.YetiRank(metric, seed=self.seed, truncation=self.truncation)
        return lo.LambdaRank(metric, truncation=self.truncation, **norms)

    def bounded(self, label: str, metric: bool) -> Any:
        """What a constraint on a further label bounds: the cost of the metric trained on, or the watched metric.

        Without normalisations, with which the cost falls when scores spread and says little about the ranking.
        """
        chosen = self.metric if metric else self._trained_metric
        return lo.LambdaRank(chosen, label=label, truncation=self.truncation)

    @property
    def _trained_metric(self) -> Any:
        """The watched metric with the cut-off for training; by default without, if it can do without."""
        metric = self.metric
        if self.train_cutoff is not None or getattr(type(metric), "k", 0) is None:
            metric = with_cutoff(type(metric), self.train_cutoff)
        return metric

    @property
    def all_params(self) -> dict[str, Any]:
        """The user's parameters, and defaults where the user says nothing."""
        defaults = {
            name: value
            for name, value in DEFAULTS[self.booster].items()
            if not any(alias in self.params for alias in ALIASES.get(name, ()))
        }
        return {**defaults, **self.params, "seed": self.seed}


def parse_params(words: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value``; what reads as a number is one.

    Raises
    ------
    UserError
        For a word without a name or a value, and for what has an option of its own.

    Examples
    --------
    >>> from lambda_objectives.tools.settings import parse_params
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
