"""Training on a Dask cluster: what one process finds, several workers find; and what goes wrong is said at once."""

import dataclasses
import time
import warnings

import lightgbm as lgb
import numpy as np
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
# so many bins that each value has its own: then they are the same however the rows are spread
XGB = {"max_bin": 2048, "min_child_weight": 1e-3, "max_depth": 3, "eta": 0.3}
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
    params = LGB | {name: more.pop(name) for name in ("n_estimators", "min_data_in_bin") if name in more}
    ranker = lgb.DaskLGBMRanker(client=spread.client, objective=objective, **params)
    return ranker.fit(spread.X, spread.y, group=spread.group, **more).booster_


def in_one_process(booster, spec, tables=(TRAIN, TEST), **more):
    """Histories of the training and of the validation data, as one process has them."""
    objective = lo.Objective(spec)
    if booster == "xgboost":
        train, valid = (lo.attach(xgb.DMatrix(t.X, t.y, qid=t.qid), t.columns) for t in tables)
        xgb.train(
            XGB, train, ROUNDS, obj=objective, custom_metric=objective.metrics, evals=[(valid, "valid")],
            verbose_eval=False,
        )  # fmt: skip
    else:
        train = lo.attach(lgb.Dataset(tables[0].X, tables[0].y, group=tables[0].group), tables[0].columns)
        valid = lo.attach(train.create_valid(tables[1].X, tables[1].y, group=tables[1].group), tables[1].columns)
        rounds = LGB["n_estimators"]
        params = {**LGB, **more, "objective": objective, "metric": "None"}
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
        if name == "two constraints":
            assert lo.xgboost.saved_state(model) == objective.state()
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


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("name", SPECS)
def test_lightgbm_with_the_same_bins(client, name, workers):
    """Features of six values that every worker has: then LightGBM's trees are the same, until two splits are level."""
    limits = [-1.0, -0.5, 0.0, 0.5, 1.0]
    tables = [dataclasses.replace(t, X=np.digitize(t.X[:, :4], limits).astype(float)) for t in (TRAIN, TEST)]
    train, valid, _ = in_one_process("lightgbm", SPECS[name], tables, min_data_in_bin=1)
    objective = lo.Objective(SPECS[name])
    lightgbm_on(*(Spread(client, table, workers) for table in tables), objective, min_data_in_bin=1)
    for ours, theirs in ((objective.history(), train), (objective.history("valid_0"), valid)):
        for key, values in theirs.items():
            assert ours[key][:10] == pytest.approx(values[:10], rel=1e-6, abs=1e-9), key


def test_early_stopping_chooses_the_same_round(client):
    """By sums over the workers, so that none of them goes on alone."""
    spec = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=2.2)], update="carry", mu=0.5)
    objective = lo.Objective(spec)
    train, valid = (lo.attach(xgb.DMatrix(t.X, t.y, qid=t.qid), t.columns) for t in (TRAIN, TEST))
    stop = lo.xgboost.EarlyStopping(objective, 6)
    alone = xgb.train(
        XGB, train, 60, obj=objective, custom_metric=objective.metrics, evals=[(valid, "valid")], callbacks=[stop],
        verbose_eval=False,
    )  # fmt: skip
    assert 1 < alone.num_boosted_rounds() < 50
    for workers in (2, 4):
        apart = lo.Objective(spec)
        found = xgboost_on(
            Spread(client, TRAIN, workers), Spread(client, TEST, workers), apart, rounds=60,
            callbacks=[lo.xgboost.EarlyStopping(apart, 6)],
        )  # fmt: skip
        assert found.num_boosted_rounds() == alone.num_boosted_rounds()
        assert found.best_iteration == alone.best_iteration
        assert apart.state()["rule"]["multipliers"] == pytest.approx(objective.state()["rule"]["multipliers"])
        assert len(apart.history("valid")["ndcg@10"]) == len(objective.history(valid)["ndcg@10"])


def test_early_stopping_of_lightgbm_stops_all_workers(client):
    spec = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=2.2)], update="carry", mu=0.5)
    objective = lo.Objective(spec)
    booster = lightgbm_on(
        Spread(client, TRAIN, 3), Spread(client, TEST, 3), objective,
        callbacks=[lo.lightgbm.early_stopping(objective, 4)], n_estimators=60,
    )  # fmt: skip
    history = objective.history("valid_0")
    kept = [n for n, margin in zip(history["ndcg@10"], history["margin/quality.ndcg@10"], strict=True) if margin >= 0]
    assert len(history["ndcg@10"]) < 60
    assert booster.best_iteration == 1 + history["ndcg@10"].index(max(kept))


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm"])
def test_checkpoints(client, booster, tmp_path):
    """The first worker writes them; what goes on from one is the training that was never stopped."""
    spec = SPECS["two constraints"]
    spread = Spread(client, TRAIN, 2)

    def script(rounds, folder):
        there = lo.resume(folder)
        objective = lo.Objective(spec, state=there.state)
        if booster == "xgboost":
            save = lo.xgboost.Checkpoint(objective, folder, every=5)
            model = None if there.model is None else xgb.Booster(model_file=there.model)
            xgboost_on(spread, None, objective, rounds - there.rounds, callbacks=[save], xgb_model=model)
        else:
            save, left = lo.lightgbm.checkpoint(objective, folder, every=5), rounds - there.rounds
            lightgbm_on(spread, None, objective, n_estimators=left, callbacks=[save], init_model=there.model)
        return objective

    script(8, tmp_path / "stopped")
    assert lo.resume(tmp_path / "stopped").rounds == 5
    again, whole = script(12, tmp_path / "stopped"), script(12, tmp_path / "whole")
    assert again.state()["rounds"] == whole.state()["rounds"] == 12
    multipliers = [objective.state()["rule"]["multipliers"] for objective in (again, whole)]
    # LightGBM's bins depend on the order of its workers, which is another one each time
    assert multipliers[0] == pytest.approx(multipliers[1], rel=0 if booster == "xgboost" else 0.2)


def test_a_regressor_and_an_array_of_labels(client):
    """Labels without columns, a Dask array, and an objective of rows."""
    objective = lo.Objective(lo.SquaredError())
    spread = Spread(client, TRAIN, 2, names=())
    model = lgb.DaskLGBMRegressor(client=client, objective=objective, **LGB).fit(spread.X, spread.y)
    assert objective.history()["mse"][-1] < 0.5 * objective.history()["mse"][0]
    assert np.corrcoef(model.predict(spread.X).compute(), TRAIN.y)[0, 1] > 0.7
    with pytest.raises(KeyError, match="no history of 'valid', but of 'train'"):
        objective.history("valid")


def test_warnings_come_to_the_client(client, recwarn):
    """From one worker, once."""
    spec = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=0.01)], update="carry", mu=0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xgboost_on(Spread(client, TRAIN, 2), None, lo.Objective(spec), rounds=5)
        for _ in range(100):
            if any("no late round" in str(w.message) for w in caught):
                break
            time.sleep(0.05)
    assert sum("no late round keeps to every bound" in str(w.message) for w in caught) == 1


def test_columns_are_checked(client):
    spread = Spread(client, TRAIN, 2, names=())
    with pytest.raises(ValueError, match="column 'price' has 1 partitions, the labels have 4"):
        lo.attach(spread.y, price=spread.y.rechunk((len(TRAIN),)))
    with pytest.raises(TypeError, match="column 'price' must be a Dask array or Series"):
        lo.attach(spread.y, price=TRAIN.y)
    with pytest.raises(ValueError, match="must be a column's name"):
        lo.attach(spread.y, {"a b": spread.y})
    tagged = lo.attach(spread.y, quality=spread.y)
    one = tagged.partitions[1].compute()
    np.testing.assert_array_equal(one.attrs["lambda_objectives"].columns["quality"], one)
    mixed = tagged.map_partitions(lambda part: part.sort_values())  # attach was to be last
    objective = lo.Objective(lo.SquaredError("quality"))
    with pytest.raises(ValueError, match="not those that columns were attached to, or in another order"):
        lgb.DaskLGBMRegressor(client=client, objective=objective, **LGB).fit(spread.X, mixed)
