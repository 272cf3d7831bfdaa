"""Ranking metrics, constraints and decorrelation as objectives for stock LightGBM and XGBoost."""

from importlib import import_module as _import_module
from typing import Any as _Any

from lambda_objectives.evaluation import evaluate, gradient
from lambda_objectives.metrics import DCG, NDCG
from lambda_objectives.objective import Objective, attach
from lambda_objectives.specs.weighted import WeightedSum
from lambda_objectives.terms.losses import LogLoss, SquaredError
from lambda_objectives.terms.ranking import LambdaRank, RankNet
from lambda_objectives.warn import LambdaObjectivesWarning

__version__ = "0.1.0"

__all__ = [
    "DCG",
    "NDCG",
    "LambdaObjectivesWarning",
    "LambdaRank",
    "LogLoss",
    "Objective",
    "RankNet",
    "SquaredError",
    "WeightedSum",
    "attach",
    "datasets",
    "evaluate",
    "gradient",
    "lightgbm",
    "xgboost",
]

_LAZY = {"datasets": "tools.datasets", "lightgbm": "lightgbm", "xgboost": "xgboost"}  # loaded when touched


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f"lambda_objectives.{_LAZY[name]}")
    raise AttributeError(f"module 'lambda_objectives' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
