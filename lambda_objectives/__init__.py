"""Ranking metrics, constraints and decorrelation as objectives for stock LightGBM and XGBoost."""

from importlib import import_module as _import_module
from typing import Any as _Any

from lambda_objectives.attaching import attach
from lambda_objectives.checkpoints import resume
from lambda_objectives.evaluation import evaluate, gradient
from lambda_objectives.metrics import (
    AUC,
    DCG,
    ERR,
    MAP,
    MRR,
    NDCG,
    RBP,
    CustomMetric,
    HitRate,
    Kendall,
    Precision,
    Recall,
    Spearman,
    Tables,
)
from lambda_objectives.objective import Objective
from lambda_objectives.specs.constraints import Constraint
from lambda_objectives.specs.decorrelated import Decorrelated
from lambda_objectives.specs.lagrangian import AugmentedLagrangian
from lambda_objectives.specs.rounds import Weights
from lambda_objectives.specs.weighted import WeightedSum
from lambda_objectives.terms import Reading
from lambda_objectives.terms.counts import Gamma, Poisson, Tweedie
from lambda_objectives.terms.dependence import DistanceCovariance
from lambda_objectives.terms.gaussian import Gaussian
from lambda_objectives.terms.listwise import XENDCG, QueryRMSE, QuerySoftMax
from lambda_objectives.terms.losses import LogLoss, SquaredError
from lambda_objectives.terms.pearson import Pearson
from lambda_objectives.terms.position import UnbiasedRank
from lambda_objectives.terms.ranking import LambdaLoss, LambdaRank, RankNet
from lambda_objectives.terms.risk import RiskRank
from lambda_objectives.terms.yeti import YetiRank
from lambda_objectives.version import __version__ as __version__
from lambda_objectives.warn import LambdaObjectivesWarning

__all__ = [
    "AUC",
    "DCG",
    "ERR",
    "MAP",
    "MRR",
    "NDCG",
    "RBP",
    "XENDCG",
    "AugmentedLagrangian",
    "Constraint",
    "CustomMetric",
    "Decorrelated",
    "DistanceCovariance",
    "Gamma",
    "Gaussian",
    "HitRate",
    "Kendall",
    "LambdaLoss",
    "LambdaObjectivesWarning",
    "LambdaRank",
    "LogLoss",
    "Objective",
    "Pearson",
    "Poisson",
    "Precision",
    "QueryRMSE",
    "QuerySoftMax",
    "RankNet",
    "Reading",
    "Recall",
    "RiskRank",
    "Spearman",
    "SquaredError",
    "Tables",
    "Tweedie",
    "UnbiasedRank",
    "WeightedSum",
    "Weights",
    "YetiRank",
    "attach",
    "compat",
    "datasets",
    "evaluate",
    "gradient",
    "lightgbm",
    "planning",
    "plots",
    "report",
    "resume",
    "sklearn",
    "xgboost",
]

_LAZY = {
    "compat": "terms.compat",
    "datasets": "tools.datasets",
    "lightgbm": "lightgbm",
    "planning": "tools.planning",
    "plots": "tools.plots",
    "report": "tools.report",
    "sklearn": "sklearn",
    "xgboost": "xgboost",
}  # loaded when touched


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f"lambda_objectives.{_LAZY[name]}")
    from lambda_objectives.arrays import nearest

    raise AttributeError(f"module 'lambda_objectives' has no attribute {name!r}{nearest(name, __all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
