"""scikit-learn's own checks of estimators, and the list of those that do not apply, with reasons."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import lambda_objectives as lo

TINY = {  # the checks have a dozen rows, of which neither booster makes a split by default
    "lightgbm": {"n_estimators": 20, "min_data_in_leaf": 1, "min_data_in_bin": 1, "n_jobs": 1},
    "xgboost": {"n_estimators": 20, "min_child_weight": 1e-3, "n_jobs": 1},
}


class OneQuery:
    """The checks know of no queries: all rows are one. Labels of row losses, so that any numbers will do."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight, group=None if y is None else [len(np.asarray(y))])

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sample_weight, group=[len(np.asarray(y))])


class LightGBMRanker(OneQuery, lo.sklearn.LightGBMRanker):
    pass


class XGBoostRanker(OneQuery, lo.sklearn.XGBoostRanker):
    pass


# What does not apply. Everything else passes, in both boosters.
INIT = {
    "check_no_attributes_set_in_init": "takes the booster's own parameters, which __init__ has as **params, for "
    "attributes that are none; without any of them it passes (test_nothing_is_set_by_init)"
}
BINS = {
    name: "LightGBM's bins, and min_data_in_leaf, are of rows and not of their weights; its own estimators fail alike"
    for name in ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
}
PAIRS = {
    name: "a row that is there twice makes a pair with each of the others twice, and ranks after itself; its weight "
    "multiplies its own gradient only"
    for name in BINS
}
NOT_APPLICABLE = {
    "LightGBMRegressor": INIT,
    "XGBoostRegressor": INIT,
    "LightGBMClassifier": INIT | BINS,
    "XGBoostClassifier": INIT,
    "LightGBMRanker": INIT | PAIRS,
    "XGBoostRanker": INIT | PAIRS,
}
ESTIMATORS = [
    lo.sklearn.LightGBMRegressor(**TINY["lightgbm"]),
    lo.sklearn.XGBoostRegressor(**TINY["xgboost"]),
    lo.sklearn.LightGBMClassifier(**TINY["lightgbm"]),
    lo.sklearn.XGBoostClassifier(**TINY["xgboost"]),
    LightGBMRanker(lo.RankNet(), **TINY["lightgbm"]),
    XGBoostRanker(lo.RankNet(), **TINY["xgboost"]),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of labels that are all alike, and of scikit-learn's own
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: NOT_APPLICABLE[type(estimator).__name__])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", lo.sklearn.__all__)
def test_nothing_is_set_by_init(name):
    estimator = getattr(lo.sklearn, name)()
    assert vars(estimator).keys() == estimator.get_params().keys()
    assert estimator.get_params(deep=False) == {
        "objective": None,
        "n_estimators": 100,
        "early_stopping_rounds": None,
        "stopping_metric": None,
        "tolerance": 0.0,
        "watch": (),
    }


def test_names_of_what_does_not_apply_exist():
    from sklearn.utils import estimator_checks

    for reasons in NOT_APPLICABLE.values():
        for name in reasons:
            assert hasattr(estimator_checks, name)


@pytest.mark.parametrize("name", [name for name in lo.sklearn.__all__ if name.endswith("Classifier")])
def test_two_classes_only(name):
    X = np.arange(12.0)[:, None]
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        getattr(lo.sklearn, name)().fit(X, np.arange(12) % 3)
