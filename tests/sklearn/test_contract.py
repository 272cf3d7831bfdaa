"""Every term and spec trains an estimator of both boosters, and its history is of that model's scores."""

import numpy as np
import pytest
import xgboost as xgb

import lambda_objectives as lo
from lambda_objectives.specs import as_spec
from lambda_objectives.terms import Learning
from tests.data import Table
from tests.test_contract import OWN_WAYS, SEEDED, SPECS, TERMS

TABLE = Table.random(30, seed=4)
RNG = np.random.default_rng(1)
COLUMNS = {
    "other": (TABLE.y[::-1] % 3).copy(),
    "share": (1 + TABLE.y) / 6.0,
    "judged": np.where(TABLE.y == 1, np.nan, TABLE.y),
    "price": RNG.normal(size=len(TABLE)),
}
OPTIONS = {
    "LightGBM": {"num_leaves": 3, "n_jobs": 1, "min_data_in_leaf": 5},
    "XGBoost": {"max_depth": 1, "n_jobs": 1, "min_child_weight": 1e-3, "learning_rate": 0.1},
}
EACH = [spec for spec in dict.fromkeys([*TERMS, *SPECS]) if spec not in SEEDED and spec not in OWN_WAYS]


@pytest.mark.filterwarnings("ignore::lambda_objectives.LambdaObjectivesWarning")
@pytest.mark.parametrize("booster", OPTIONS)
@pytest.mark.parametrize("spec", EACH, ids=repr)
def test_history_is_of_the_models_scores(spec, booster):
    ranks = any(term.needs_order for term in as_spec(spec).terms)
    estimator = getattr(lo.sklearn, booster + ("Ranker" if ranks else "Regressor"))
    bounded = isinstance(spec, lo.AugmentedLagrangian)
    model = estimator(spec, n_estimators=3, tolerance=1e9 if bounded else 0.0, **OPTIONS[booster])
    valid = {"eval_set": [(TABLE.X, TABLE.y)], "eval_group": [TABLE.group], "eval_columns": [COLUMNS]}
    model.fit(TABLE.X, TABLE.y, group=TABLE.group, columns=COLUMNS, **valid)
    if booster == "LightGBM":
        scores = model.booster_.predict(TABLE.X, num_iteration=1)
    else:
        scores = model.booster_.predict(xgb.DMatrix(TABLE.X), output_margin=True, iteration_range=(0, 1))
    found = lo.evaluate(spec, scores, TABLE.y, group=TABLE.group, columns=COLUMNS)
    costs = [name for name in found if name.startswith("cost/")]
    learnt = {
        f"cost/{term.name}" for term in as_spec(spec).terms if isinstance(term, Learning)
    }  # by what it has learnt
    for name in set(costs) - learnt:
        assert model.history_[name][1] == pytest.approx(found[name], rel=2e-4, abs=2e-6), name
        assert model.evals_result_["valid_0"][name][0] == pytest.approx(found[name], rel=2e-4, abs=2e-6), name
    assert costs
    assert np.isfinite(model.predict(TABLE.X)).all()
