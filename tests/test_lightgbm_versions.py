"""What must work in every LightGBM from 3.3.5 on, whichever is installed."""

import inspect

import lightgbm as lgb
import numpy as np
import pytest

import lambda_objectives as lo

OLD = "fobj" in inspect.signature(lgb.train).parameters
PARAMS = dict(num_leaves=7, learning_rate=0.2, min_data_in_leaf=5, verbosity=-1, num_threads=1, metric="None")
SPEC = lo.WeightedSum([lo.LambdaRank(lo.NDCG(5)), lo.LambdaRank(lo.NDCG(5), label="quality")], [1.0, 0.1])


def train(objective, data, rounds, **options):
    """lgb.train with the objective where this version takes it."""
    if OLD:
        return lgb.train(PARAMS, data, rounds, fobj=objective, **options)
    return lgb.train({**PARAMS, "objective": objective}, data, rounds, **options)


def make(seed, queries=40, rows=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * rows, 4))
    y = np.clip(np.round(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=len(X))), 0, 4)
    return X, y, np.full(queries, rows), (X[:, 2] > 1) * 1.0


def test_training_ranks_and_keeps_its_history():
    X, y, sizes, quality = make(0)
    V, v, v_sizes, v_quality = make(1)
    data = lo.attach(lgb.Dataset(X, y, group=sizes), quality=quality)
    valid = lo.attach(data.create_valid(V, v, group=v_sizes), quality=v_quality)
    objective, seen = lo.Objective(SPEC), {}
    model = train(
        objective, data, 20, valid_sets=[valid], valid_names=["valid"], feval=objective.metrics,
        callbacks=[lgb.record_evaluation(seen)],
    )  # fmt: skip
    assert lo.NDCG(5)(model.predict(V), v, group=v_sizes) > 0.85 > lo.NDCG(5)(np.zeros(len(v)), v, group=v_sizes)
    for rounds in (0, 7, 19):
        scores = model.predict(X, num_iteration=rounds) if rounds else np.zeros(len(y))
        want = lo.evaluate(SPEC, scores, y, group=sizes, quality=quality)
        got = {name: values[rounds] for name, values in objective.history(data).items()}
        assert got == pytest.approx(want, rel=1e-5)
    assert seen["valid"] == objective.history(valid)
    assert seen["valid"]["ndcg@5"][-1] == pytest.approx(lo.NDCG(5)(model.predict(V), v, group=v_sizes), abs=1e-9)


def test_early_stopping_watches_the_metric_in_its_direction():
    X, y, sizes, quality = make(0)
    V, v, v_sizes, v_quality = make(1)
    data = lo.attach(lgb.Dataset(X, y, group=sizes), quality=quality)
    valid = lo.attach(data.create_valid(V, v, group=v_sizes), quality=v_quality)
    objective, seen = lo.Objective(SPEC), {}
    model = train(
        objective, data, 200, valid_sets=[valid], valid_names=["valid"], feval=objective.metrics,
        callbacks=[lgb.early_stopping(15, first_metric_only=True, verbose=False), lgb.record_evaluation(seen)],
    )  # fmt: skip
    curve = seen["valid"]["ndcg@5"]
    assert len(curve) < 200
    assert model.best_iteration == int(np.argmax(curve)) + 1


def test_same_trees_as_lambdarank():
    X, y, sizes, _ = make(2)
    objective = lo.Objective(lo.LambdaRank(lo.NDCG()))
    ours = train(objective, lgb.Dataset(X, y, group=sizes), 20)
    own = {**PARAMS, "objective": "lambdarank", "lambdarank_norm": False, "lambdarank_truncation_level": 30}
    theirs = lgb.train(own, lgb.Dataset(X, y, group=sizes), 20)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


def test_booster_update():
    X, y, sizes, _ = make(3)
    data = lgb.Dataset(X, y, group=sizes)
    objective = lo.Objective(lo.LambdaRank(lo.NDCG(5)))
    booster = lgb.Booster(dict(PARAMS, objective="none"), data)
    for _ in range(6):
        booster.update(fobj=objective)
    assert len(objective.history(data)["ndcg@5"]) == 6
    want = train(lo.Objective(lo.LambdaRank(lo.NDCG(5))), lgb.Dataset(X, y, group=sizes), 6)
    np.testing.assert_array_equal(booster.predict(X), want.predict(X))


def test_cross_validation_by_query():
    X, y, sizes, quality = make(4)
    data = lo.attach(lgb.Dataset(X, y, group=sizes, free_raw_data=False), quality=quality)
    objective = lo.Objective(SPEC)
    given = {"fobj": objective} if OLD else {}
    params = PARAMS if OLD else {**PARAMS, "objective": objective}
    query = np.repeat(np.arange(len(sizes)), sizes)
    folds = [(np.flatnonzero(query % 4 != i), np.flatnonzero(query % 4 == i)) for i in range(4)]
    result = lgb.cv(params, data, 10, folds=folds, feval=objective.metrics, **given)
    means = result["ndcg@5-mean" if OLD else "valid ndcg@5-mean"]
    assert len(means) == 10
    assert means[-1] > 0.85
    with pytest.raises(ValueError, match=r"folds: .*queries are cut in two"):
        lgb.cv(params, data, 1, nfold=3, stratified=False, **given)
