"""Training on a Dask cluster: what one process finds, several workers find; and what goes wrong is said at once."""

import lightgbm as lgb
import pytest
import xgboost as xgb
from xgboost import dask as dxgb

import lambda_objectives as lo
from tests.cluster import Spread, cluster
from tests.data import TEST, TRAIN

ROUNDS = 15
RANK, QUALITY = lo.LambdaRank(lo.NDCG(10)), lo.LambdaRank(lo.NDCG(10), label="quality")
SPECS = {
    "two constraints": lo.AugmentedLagrangian(
        RANK, [lo.Constraint(QUALITY, at_most=1.5), lo.Constraint(lo.SquaredError("place"), at_most=0.3)],
        update="carry", mu=[0.5, 0.3],
    ),
    "within queries": lo.Decorrelated(RANK, "place", 3.0, within_group=True),
    "over all rows": lo.AugmentedLagrangian(
        lo.SquaredError(), [lo.Constraint(lo.DistanceCovariance("quality", categorical=True), 1e-3)], start=2
    ),
}  # fmt: skip
XGB = {"min_child_weight": 1e-3, "max_depth": 3, "eta": 0.3, "verbosity": 0}
LGB = {"min_child_samples": 5, "num_leaves": 7, "learning_rate": 0.3, "verbosity": -1, "n_estimators": ROUNDS}
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:(no late round|the dependence swings):lambda_objectives.LambdaObjectivesWarning"
    ),
    pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored"),
    pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated"),
]


@pytest.fixture(scope="module")
def client():
    with cluster(4) as one:
        yield one


def xgboost_on(spread, valid, objective, rounds=ROUNDS, **more):
    """Train, and evaluate, on the workers of a cluster."""
    train = dxgb.DaskDMatrix(spread.client, spread.X, spread.y, qid=spread.qid)
    if valid is not None:
        more["evals"] = [(dxgb.DaskDMatrix(valid.client, valid.X, valid.y, qid=valid.qid), "valid")]
        more["custom_metric"] = objective.metrics
    return dxgb.train(spread.client, XGB, train, rounds, obj=objective, verbose_eval=False, **more)["booster"]


def lightgbm_on(spread, valid, objective, **more):
    """The same with LightGBM."""
    if valid is not None:
        more |= {"eval_set": [(valid.X, valid.y)], "eval_group": [valid.group], "eval_metric": objective.metrics}
    ranker = lgb.DaskLGBMRanker(client=spread.client, objective=objective, **LGB)
    return ranker.fit(spread.X, spread.y, group=spread.group, **more).booster_


def in_one_process(booster, spec):
    """Histories of the training and of the validation data, as one process has them."""
    objective = lo.Objective(spec)
    if booster == "xgboost":
        train, valid = (lo.attach(xgb.DMatrix(t.X, t.y, qid=t.qid), t.columns) for t in (TRAIN, TEST))
        xgb.train(
            XGB, train, ROUNDS, obj=objective, custom_metric=objective.metrics, evals=[(valid, "valid")],
            verbose_eval=False,
        )  # fmt: skip
    else:
        train = lo.attach(lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group), TRAIN.columns)
        valid = lo.attach(train.create_valid(TEST.X, TEST.y, group=TEST.group), TEST.columns)
        rounds = LGB["n_estimators"]
        params = {**LGB, "objective": objective, "metric": "None"}
        del params["n_estimators"]
        lgb.train(params, train, rounds, valid_sets=[valid], feval=objective.metrics)
    return objective.history(train), objective.history(valid), objective.state()


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("booster", ["xgboost", "lightgbm"])
def test_same_as_one_process(client, booster, name, workers):
    spec = SPECS[name]
    train, valid, state = in_one_process(booster, spec)
    objective = lo.Objective(spec)
    spread, watched = Spread(client, TRAIN, workers), Spread(client, TEST, workers)
    if booster == "xgboost":
        model, called = xgboost_on(spread, watched, objective), "valid"
        scores = model.predict(xgb.DMatrix(TEST.X))
    else:
        model, called = lightgbm_on(spread, watched, objective), "valid_0"
        scores = model.predict(TEST.X)
    found, held_out = objective.history(), objective.history(called)
    assert found.keys() == train.keys()
    assert held_out.keys() == valid.keys()
    assert all(len(values) == ROUNDS for values in (*found.values(), *held_out.values()))
    assert objective.history("train") == found
    assert objective.state()["rounds"] == ROUNDS
    last = TEST.evaluate(scores, spec)
    for key, values in held_out.items():
        if key in last:
            assert values[-1] == pytest.approx(last[key], rel=1e-5, abs=1e-9), key
    # LightGBM makes other bins of the same data on several machines, and so other trees
    near = {"rel": 1e-6, "abs": 1e-9} if booster == "xgboost" or workers == 1 else {"rel": 0.1, "abs": 0.02}
    for ours, theirs in ((found, train), (held_out, valid)):
        for key, values in theirs.items():
            if near["rel"] < 1e-3 or key.startswith(("cost/", "ndcg", "quality")):
                assert ours[key] == pytest.approx(values, **near), key
    if near["rel"] < 1e-3 and state["rule"] is not None and "multipliers" in state["rule"]:
        assert objective.state()["rule"]["multipliers"] == pytest.approx(state["rule"]["multipliers"], rel=1e-6)
