"""Models are the boosters' own: their files serve without this package, and explain as any other."""

import subprocess
import sys

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import lambda_objectives as lo
from tests.data import Table

RANK = lo.LambdaRank(lo.NDCG(10))
QUALITY = lo.Constraint(lo.LambdaRank(lo.NDCG(10), label="quality"), at_most=1.0)
SERVE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("lambda_objectives", "numba"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import numpy as np
{imports}
X = np.load({X!r})
np.save({out!r}, {scores})
assert not any(name.split(".")[0] == "lambda_objectives" for name in sys.modules)
"""
SERVERS = {
    "LightGBM": ("import lightgbm as lgb", "lgb.Booster(model_file={path!r}).predict(X)"),
    "XGBoost": (
        "import xgboost as xgb",
        "xgb.Booster(model_file={path!r}).predict(xgb.DMatrix(X), output_margin=True)",
    ),
}
SPECS = {
    "ranking": ("Ranker", RANK),
    "bounded": ("Ranker", lo.AugmentedLagrangian(RANK, [QUALITY])),
    "decorrelated": ("Regressor", lo.Decorrelated(lo.SquaredError(), "quality", weight=2)),
    "counts": ("Regressor", lo.Poisson()),
}


def fitted(booster, which):
    table = Table.random(80, 0)
    kind, spec = SPECS[which]
    model = getattr(lo.sklearn, booster + kind)(spec, n_estimators=15, n_jobs=1)
    return model.fit(table.X, table.y, group=table.group, columns=table.columns), table


def raw(model, X):
    return model.booster_.predict(X if isinstance(model.booster_, lgb.Booster) else xgb.DMatrix(X), **margin(model))


def margin(model):
    return {} if isinstance(model.booster_, lgb.Booster) else {"output_margin": True}


@pytest.mark.parametrize("which", SPECS)
@pytest.mark.parametrize("booster", SERVERS)
def test_serves_without_this_package(booster, which, tmp_path):
    model, table = fitted(booster, which)
    path, X, out = (str(tmp_path / name) for name in ("model.json", "X.npy", "scores.npy"))
    model.booster_.save_model(path)
    np.save(X, table.X)
    imports, scores = SERVERS[booster]
    code = SERVE.format(imports=imports, X=X, out=out, scores=scores.format(path=path))
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
    np.testing.assert_array_equal(np.load(out), raw(model, table.X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of shap's own imports
@pytest.mark.parametrize("which", SPECS)
@pytest.mark.parametrize("booster", SERVERS)
def test_shap_values_add_up(booster, which):
    shap = pytest.importorskip("shap")
    model, table = fitted(booster, which)
    X = np.array(table.X[:200])
    explainer = shap.TreeExplainer(model.booster_)
    values = explainer.shap_values(X)
    np.testing.assert_allclose(values.sum(1) + explainer.expected_value, raw(model, X), atol=1e-4)
    if booster == "LightGBM":
        own = model.booster_.predict(X, pred_contrib=True)
    else:
        own = model.booster_.predict(xgb.DMatrix(X), pred_contribs=True)
    np.testing.assert_allclose(own[:, :-1], values, atol=1e-5)
    best = (
        3 if which == "bounded" else 0
    )  # what the labels of these data are made of: quality of the one, y of the other
    assert np.argmax(np.abs(values).mean(0)) == best
