"""scikit-learn estimators that train stock LightGBM and XGBoost by a term or a spec."""

from lambda_objectives.sklearn.estimators import (
    LightGBMClassifier,
    LightGBMRanker,
    LightGBMRegressor,
    XGBoostClassifier,
    XGBoostRanker,
    XGBoostRegressor,
)

__all__ = [
    "LightGBMClassifier",
    "LightGBMRanker",
    "LightGBMRegressor",
    "XGBoostClassifier",
    "XGBoostRanker",
    "XGBoostRegressor",
]
