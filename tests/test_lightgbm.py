"""LightGBM: every way in, the metrics on their way out, columns, and settings that would do harm in silence."""

import copy
import pickle
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

import lambda_objectives as lo
from tests.data import SPEC, TEST, TRAIN

ROUNDS = 12
PARAMS = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "metric": "None", "learning_rate": 0.2}
RANKER = {"verbosity": -1, "n_jobs": 1, "min_child_samples": 5, "learning_rate": 0.2, "n_estimators": ROUNDS}
OWN = TEST.ndcg(
    lgb.train({**PARAMS, "objective": "lambdarank"}, lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group), ROUNDS).predict(
        TEST.X
    )
)


def dataset(table=TRAIN, columns=(), **more):
    data = lgb.Dataset(table.X, table.y, group=table.group, free_raw_data=False, **more)
    return lo.attach(data, {name: table.columns[name] for name in columns})


def fit(objective, data, rounds=ROUNDS, *, params=None, **more):
    return lgb.train({**PARAMS, "objective": objective, **(params or {})}, data, rounds, **more)


def staged(model, table, rounds=ROUNDS, start=0.0):
    """Scores before each round's tree."""
    return [start + (model.predict(table.X, num_iteration=k) if k else np.zeros(len(table))) for k in range(rounds)]


def after(model, table, rounds=ROUNDS):
    """Scores after each round's tree."""
    return [model.predict(table.X, num_iteration=k + 1) for k in range(rounds)]


# ------------------------------------------------------------------------------------------------------- every way in


def test_train():
    objective, data = lo.Objective(SPEC), dataset()
    model = fit(objective, data)
    TEST.assert_ranked_well(model.predict(TEST.X), OWN)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN))
    assert objective.history() == objective.history(data)


def test_update_by_hand():
    objective, data = lo.Objective(SPEC), dataset()
    model = lgb.Booster({**PARAMS, "objective": "none"}, data)
    for _ in range(ROUNDS):
        model.update(fobj=objective)
    TEST.assert_ranked_well(model.predict(TEST.X), OWN)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN))


def test_weights_of_queries():
    objective = lo.Objective(SPEC)
    weights = np.repeat(TRAIN.query_weights, TRAIN.group)
    data = dataset(weight=weights)
    model = fit(objective, data)
    TEST.assert_ranked_well(model.predict(TEST.X), OWN)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN), weights=weights)
    assert not np.array_equal(model.predict(TEST.X), fit(objective, dataset()).predict(TEST.X))


@pytest.mark.parametrize("make", [lambda: GroupKFold(3), lambda: folds_of_queries(3)], ids=["GroupKFold", "list"])
def test_cv(make):
    objective, data = lo.Objective(SPEC), dataset()
    params = {**PARAMS, "objective": objective}
    result = lgb.cv(params, data, ROUNDS, folds=make(), feval=objective.metrics, return_cvbooster=True,
                    eval_train_metric=True)  # fmt: skip
    folds = result["cvbooster"].boosters
    values = []
    for booster in folds:
        train, valid = booster.train_set, booster.valid_sets[-1]
        kept, held_out = (TRAIN.part(np.array(of.used_indices)) for of in (train, valid))
        assert len(kept) + len(held_out) == len(TRAIN)
        kept.assert_history(objective.history(train), staged(booster, kept))
        held_out.assert_history(objective.history(valid), after(booster, held_out))
        values.append(objective.history(valid)["ndcg@10"])
        TEST.assert_ranked_well(booster.predict(TEST.X), OWN)
    assert len(folds) == 3
    np.testing.assert_allclose(result["valid ndcg@10-mean"], np.mean(values, axis=0))


def folds_of_queries(n):
    return [(np.flatnonzero(TRAIN.qid % n != k), np.flatnonzero(TRAIN.qid % n == k)) for k in range(n)]


@pytest.mark.parametrize("weights", [None, np.repeat(TRAIN.query_weights, TRAIN.group)], ids=["plain", "weights"])
def test_ranker(weights):
    objective = lo.Objective(SPEC)
    model = lgb.LGBMRanker(objective=objective, **RANKER).fit(
        TRAIN.X, TRAIN.y, group=TRAIN.group, sample_weight=weights
    )
    TEST.assert_ranked_well(model.predict(TEST.X), OWN)
    TRAIN.assert_history(objective.history(), staged(model.booster_, TRAIN), weights=weights)
    same = fit(lo.Objective(SPEC), dataset(weight=weights))
    np.testing.assert_array_equal(model.predict(TEST.X), same.predict(TEST.X))


def test_ranker_evaluates_our_metrics():
    objective = lo.Objective(SPEC)
    model = lgb.LGBMRanker(objective=objective, metric="None", **RANKER)
    model.fit(TRAIN.X, TRAIN.y, group=TRAIN.group, eval_X=TEST.X, eval_y=TEST.y, eval_group=[TEST.group],
              eval_metric=objective.metrics)  # fmt: skip
    TEST.assert_history(model.evals_result_["valid_0"], after(model.booster_, TEST))
    assert len(objective.history()["ndcg@10"]) == ROUNDS


@pytest.mark.parametrize("again", [clone, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
                         ids=["clone", "deepcopy", "pickle"])  # fmt: skip
def test_ranker_copied_then_trained(again):
    def fitted(model):
        return model.fit(TRAIN.X, TRAIN.y, group=TRAIN.group)

    model = fitted(lgb.LGBMRanker(objective=lo.Objective(SPEC), **RANKER))
    copied = fitted(again(model))
    np.testing.assert_array_equal(copied.predict(TEST.X), model.predict(TEST.X))
    assert copied.objective.history() == model.objective.history()


def test_ranker_survives_pickling():
    model = lgb.LGBMRanker(objective=lo.Objective(SPEC), **RANKER).fit(TRAIN.X, TRAIN.y, group=TRAIN.group)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(TEST.X), model.predict(TEST.X))


def test_init_score_is_where_the_history_starts():
    start = 2.0 * TRAIN.X[:, 1]
    objective, data = lo.Objective(SPEC), dataset(init_score=start)
    model = fit(objective, data)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN, start=start))


def test_init_model_continues(tmp_path):
    objective, data = lo.Objective(SPEC), dataset()
    whole = fit(objective, data, 2 * ROUNDS)
    once = objective.history(data)
    first = fit(objective, data)
    state = objective.state(data)
    first.save_model(tmp_path / "model.txt")

    objective, data = lo.Objective(SPEC, state=state), dataset()
    both = fit(objective, data, init_model=tmp_path / "model.txt")
    np.testing.assert_allclose(both.predict(TEST.X), whole.predict(TEST.X), rtol=1e-6, atol=1e-6)
    for name, values in objective.history(data).items():
        np.testing.assert_allclose(values, once[name][ROUNDS:], rtol=1e-6)


# ----------------------------------------------------------------------------------------------- one object, many runs


def test_second_training_repeats_the_first():
    objective, data = lo.Objective(SPEC), dataset()
    first, history = fit(objective, data), objective.history(data)
    second = fit(objective, data)
    assert second.model_to_string() == first.model_to_string()
    assert objective.history(data) == history


def test_other_init_score_starts_afresh():
    objective, data = lo.Objective(SPEC), dataset()
    fit(objective, data)
    start = 2.0 * TRAIN.X[:, 1]
    data.set_init_score(start)
    model = fit(objective, data, 3)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN, 3, start=start))


def test_two_boosters_take_turns():
    objective = lo.Objective(SPEC)
    tables = (TRAIN, TEST)
    sets = [dataset(table) for table in tables]
    models = [lgb.Booster({**PARAMS, "objective": "none"}, data) for data in sets]
    for _ in range(ROUNDS):
        for model in models:
            model.update(fobj=objective)
    for table, data, model in zip(tables, sets, models, strict=True):
        alone = fit(lo.Objective(SPEC), dataset(table))
        np.testing.assert_array_equal(model.predict(TEST.X), alone.predict(TEST.X))
        table.assert_history(objective.history(data), staged(model, table))


def test_history_is_of_the_last_training():
    objective, first, second = lo.Objective(SPEC), dataset(TRAIN), dataset(TEST)
    fit(objective, first)
    fit(objective, second)
    assert objective.history() == objective.history(second) != objective.history(first)


def test_history_is_of_the_last_use():
    """Trained on, then watched in another training: what was watched is what is asked for."""
    objective, first, second = lo.Objective(SPEC), dataset(TRAIN), dataset(TEST)
    fit(objective, first)
    model = fit(objective, second, valid_sets=[first], feval=objective.metrics)
    TRAIN.assert_history(objective.history(first), after(model, TRAIN))


# ------------------------------------------------------------------------------------------------------------- metrics


def test_metrics_are_those_of_evaluate():
    objective, data = lo.Objective(SPEC), dataset()
    valid, seen = dataset(TEST, reference=data), {}
    model = fit(objective, data, valid_sets=[data, valid], valid_names=["train", "valid"], feval=objective.metrics,
                callbacks=[lgb.record_evaluation(seen)])  # fmt: skip
    TRAIN.assert_history(seen["train"], after(model, TRAIN))
    TEST.assert_history(seen["valid"], after(model, TEST))
    TEST.assert_history(objective.history(valid), after(model, TEST))
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN))  # not doubled


def test_metrics_beside_an_objective_of_lightgbm():
    objective, data = lo.Objective(SPEC), dataset()
    valid = dataset(TEST, reference=data)
    model = fit("lambdarank", data, valid_sets=[data, valid], feval=objective.metrics)
    for table, of in ((TRAIN, data), (TEST, valid)):
        table.assert_history(objective.history(of), after(model, table))


def test_metrics_come_primary_first_with_their_direction():
    spec = lo.WeightedSum([SPEC, lo.SquaredError()], [1, 0.1])
    objective, data = lo.Objective(spec), dataset()
    fit(objective, data, 2)
    directions = {name: higher for name, _, higher in objective.metrics(np.zeros(len(TRAIN)), data)}
    assert directions == {"ndcg@10": True, "mse": False, "cost/ndcg@10": False, "cost/mse": False}
    assert next(iter(directions)) == "ndcg@10"


def test_validation_set_evaluated_twice_a_round_has_one_entry_a_round():
    objective, data = lo.Objective(SPEC), dataset()
    valid = dataset(TEST, reference=data)
    model = fit(objective, data, valid_sets=[valid, valid], valid_names=["once", "twice"], feval=objective.metrics,
                keep_training_booster=True)  # fmt: skip
    model.eval_valid(objective.metrics)
    TEST.assert_history(objective.history(valid), after(model, TEST))


@pytest.mark.parametrize(
    ("spec", "watched"),
    [
        (SPEC, "ndcg@10"),
        (lo.LambdaRank(lo.DCG(10)), "dcg@10"),
        (lo.LambdaRank(lo.NDCG(10), label="quality"), "quality.ndcg@10"),
        (lo.RankNet(), "cost/ranknet"),
        (lo.SquaredError(), "mse"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_early_stopping_stops_at_the_best_round(spec, watched):
    objective, data = lo.Objective(spec), dataset(columns=["quality"])
    valid, seen = dataset(TEST, reference=data, columns=["quality"]), {}
    callbacks = [lgb.early_stopping(5, first_metric_only=True, verbose=False), lgb.record_evaluation(seen)]
    model = fit(objective, data, 300, params={"learning_rate": 0.5}, valid_sets=[valid], feval=objective.metrics,
                callbacks=callbacks)  # fmt: skip
    values = np.array(seen["valid_0"][watched])
    best = values.argmax() if "dcg" in watched else values.argmin()
    assert 0 < best < 290
    assert model.best_iteration == best + 1
    assert len(values) == best + 6


def test_lightgbm_prints_the_same_ndcg():
    objective, data = lo.Objective(SPEC), dataset()
    valid, seen = dataset(TEST, reference=data), {}
    objective = lo.Objective(lo.WeightedSum([lo.LambdaRank(lo.NDCG(k)) for k in (1, 3, 10)], [1, 1, 1]))
    fit(objective, data, params={"metric": "ndcg", "eval_at": [1, 3, 10]}, valid_sets=[valid],
        feval=lambda scores, of: [("our-" + n, v, up) for n, v, up in objective.metrics(scores, of)],
        callbacks=[lgb.record_evaluation(seen)])  # fmt: skip
    for k in (1, 3, 10):
        np.testing.assert_allclose(seen["valid_0"][f"our-ndcg@{k}"], seen["valid_0"][f"ndcg@{k}"], rtol=1e-9)


# ------------------------------------------------------------------------------------------------------------- columns

PLACE = lo.SquaredError(label="place")
BOTH = lo.WeightedSum([SPEC, PLACE], [1.0, 1.0])


def assert_knows_place(model):
    """Trained on the column `place`, which equals the last feature and varies by 1 / 12."""
    assert np.mean((model.predict(TEST.X) - TEST.columns["place"]) ** 2) < 0.01


def test_columns_reach_training_and_validation():
    objective, data = lo.Objective(PLACE), dataset(columns=["place"])
    valid = dataset(TEST, columns=["place"], reference=data)
    model = fit(objective, data, valid_sets=[valid], feval=objective.metrics)
    assert_knows_place(model)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN), PLACE)
    TEST.assert_history(objective.history(valid), after(model, TEST), PLACE)


@pytest.mark.parametrize("constructed", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, list, "pandas", "polars", "pyarrow"], ids=str)
def test_columns_of_any_kind(kind, constructed):
    convert = kind if callable(kind) else {"pandas": pandas_with_index, "polars": polars, "pyarrow": arrow}[kind]
    data = dataset()
    if constructed:
        data.construct()
    objective = lo.Objective(PLACE)
    fit(objective, lo.attach(data, place=convert(TRAIN.columns["place"])), 2)
    wanted = lo.Objective(PLACE)
    fit(wanted, dataset(columns=["place"]), 2)
    assert objective.history() == wanted.history()


def pandas_with_index(values):
    import pandas as pd

    return pd.Series(values, index=np.arange(len(values))[::-1])  # by place, not by index


def polars(values):
    import polars as pl

    return pl.Series(values)


def arrow(values):
    import pyarrow as pa

    return pa.array(values)


def test_columns_reach_the_folds_of_cv():
    objective, data = lo.Objective(BOTH), dataset(columns=["place"])
    result = lgb.cv({**PARAMS, "objective": objective}, data, ROUNDS, folds=GroupKFold(3), feval=objective.metrics,
                    return_cvbooster=True)  # fmt: skip
    for booster in result["cvbooster"].boosters:
        for of, scores in ((booster.train_set, staged), (booster.valid_sets[0], after)):
            part = TRAIN.part(np.array(of.used_indices))
            part.assert_history(objective.history(of), scores(booster, part), BOTH)


def test_columns_reach_a_subset():
    rows = np.flatnonzero(TRAIN.qid % 2)
    objective, part = lo.Objective(BOTH), TRAIN.part(rows)
    data = dataset(columns=["place"]).subset(rows)
    model = fit(objective, data)
    part.assert_history(objective.history(data), staged(model, part), BOTH)


def test_columns_of_a_dataset_from_a_file(tmp_path):
    dataset().save_binary(tmp_path / "train.bin")
    data = lo.attach(lgb.Dataset(tmp_path / "train.bin"), place=TRAIN.columns["place"])
    objective = lo.Objective(BOTH)
    model = fit(objective, data)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN), BOTH)


def test_columns_are_added_up_and_replaced():
    data = lo.attach(lo.attach(dataset(), quality=np.zeros(len(TRAIN))), place=TRAIN.columns["place"])
    lo.attach(data, quality=TRAIN.columns["quality"])
    spec = lo.WeightedSum([lo.SquaredError("quality"), PLACE], [1, 1])
    objective = lo.Objective(spec)
    model = fit(objective, data, 3)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN, 3), spec)


def test_qid_takes_the_place_of_group():
    objective = lo.Objective(SPEC)
    data = lo.attach(lgb.Dataset(TRAIN.X, TRAIN.y), qid=TRAIN.qid)
    fit(objective, data)
    wanted = lo.Objective(SPEC)
    fit(wanted, dataset())
    assert objective.history() == wanted.history()


def test_qid_reaches_the_folds_of_cv():
    objective = lo.Objective(SPEC)
    data = lo.attach(lgb.Dataset(TRAIN.X, TRAIN.y, free_raw_data=False), qid=TRAIN.qid)
    result = lgb.cv({**PARAMS, "objective": objective}, data, 3, folds=folds_of_queries(3), return_cvbooster=True)
    for booster in result["cvbooster"].boosters:
        part = TRAIN.part(np.array(booster.train_set.used_indices))
        part.assert_history(objective.history(booster.train_set), staged(booster, part, 3))


def test_unknown_column_lists_those_that_are_there():
    data = dataset(columns=["place", "quality"])
    with pytest.raises(ValueError, match=r"'price'.*'place', 'quality'.*attach"):
        fit(lo.Objective(lo.SquaredError(label="price")), data)


def test_column_of_wrong_length_before_and_after_construction():
    data = lgb.Dataset(TRAIN.X, group=TRAIN.group)  # its length is not known yet
    lo.attach(data, place=[1.0, 2.0])
    data.set_label(TRAIN.y)
    with pytest.raises(ValueError, match=rf"'place' has 2 values.* {len(TRAIN)} rows"):
        fit(lo.Objective(PLACE), data)
    with pytest.raises(ValueError, match=rf"'place' has 2 values.* {len(TRAIN)} rows"):
        lo.attach(dataset(), place=[1.0, 2.0])


# -------------------------------------------------------------------------------------------------------------- guards


def fit_by_train(params):
    fit(lo.Objective(SPEC), dataset(), 2, params=params)


def fit_by_dataset_params(params):
    fit(lo.Objective(SPEC), dataset(params=params), 2)


def fit_by_cv(params):
    lgb.cv({**PARAMS, "objective": lo.Objective(SPEC), **params}, dataset(), 2, folds=GroupKFold(2))


def fit_by_update(params):
    lgb.Booster({**PARAMS, "objective": "none", **params}, dataset()).update(fobj=lo.Objective(SPEC))


def fit_by_ranker(params):
    lgb.LGBMRanker(objective=lo.Objective(SPEC), **{**RANKER, **params}).fit(TRAIN.X, TRAIN.y, group=TRAIN.group)


WAYS = [fit_by_train, fit_by_cv, fit_by_update, fit_by_ranker]


@pytest.mark.parametrize("way", [*WAYS, fit_by_dataset_params])
def test_bagging_by_query_is_refused(way):
    with pytest.raises(ValueError, match="bagging_by_query"):
        way({"bagging_by_query": True, "bagging_freq": 1, "bagging_fraction": 0.5})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("boosting", "dart"),
        ("boosting_type", "dart"),
        ("lambdarank_truncation_level", 10),
        ("lambdarank_norm", False),
        ("lambdarank_position_bias_regularization", 0.1),
        ("sigmoid", 2.0),
        ("label_gain", [0, 1, 2, 3, 4]),
        ("scale_pos_weight", 2.0),
        ("is_unbalance", True),
        ("pos_bagging_fraction", 0.5),
        ("min_sum_hessian_in_leaf", 20.0),
        ("min_child_weight", 20.0),
    ],
)
def test_settings_without_effect_or_harmful_are_told(way, name, value):
    shown = {"boosting_type": "boosting", "min_child_weight": "min_sum_hessian_in_leaf"}.get(name, name)
    with pytest.warns(lo.LambdaObjectivesWarning, match=shown):
        way({name: value})


@pytest.mark.parametrize("way", WAYS)
def test_usual_settings_are_passed_over_in_silence(way):
    way(
        {"sigmoid": 1.0, "lambdarank_norm": True, "bagging_by_query": False, "bagging_fraction": 0.7, "bagging_freq": 1}
    )


def test_random_forests_are_refused():
    with pytest.raises(lgb.basic.LightGBMError, match="RF"):
        fit_by_train({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5})


def test_warning_points_outside_the_package():
    with pytest.warns(lo.LambdaObjectivesWarning, match="dart") as caught:
        fit_by_train({"boosting": "dart"})
    assert Path(lo.__file__).parent not in Path(caught[0].filename).parents


@pytest.mark.parametrize("more", [{}, {"stratified": False}, {"stratified": False, "shuffle": False}], ids=str)
def test_folds_that_cut_queries_are_refused(more):
    with pytest.raises(ValueError, match=r"folds.*queries are cut.*GroupKFold"):
        lgb.cv({**PARAMS, "objective": lo.Objective(SPEC)}, dataset(), 2, **more)


def test_folds_that_cut_queries_are_fine_for_terms_over_rows():
    objective = lo.Objective(PLACE)
    data = dataset(columns=["place"])
    result = lgb.cv({**PARAMS, "objective": objective}, data, ROUNDS, stratified=False, return_cvbooster=True)
    for booster in result["cvbooster"].boosters:
        assert_knows_place(booster)


def test_first_tree_that_does_not_split_is_told():
    with pytest.warns(lo.LambdaObjectivesWarning, match="did not split.*min_data_in_leaf"):
        fit(lo.Objective(SPEC), dataset(), 3, params={"min_data_in_leaf": len(TRAIN), "feature_pre_filter": False})


# LightGBM itself turns a NaN label, weight or initial score into 0, and infinity into 1e38, before anyone can see it.


def test_infinite_labels_are_refused():
    y = TRAIN.y.copy()
    y[7] = np.inf
    with pytest.raises((ValueError, lgb.basic.LightGBMError), match=r"label.*row 7"):
        fit(lo.Objective(SPEC), lgb.Dataset(TRAIN.X, y, group=TRAIN.group))


@pytest.mark.parametrize("value", [-1.0, np.inf])
def test_weights_that_are_no_weights_are_refused(value):
    weights = np.ones(len(TRAIN))
    weights[7] = value
    with pytest.raises((ValueError, lgb.basic.LightGBMError), match="weight"):
        fit(lo.Objective(SPEC), dataset(weight=weights))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_refused(value):
    scores = np.zeros(len(TRAIN))
    scores[7] = value
    for call in (lo.Objective(SPEC), lo.Objective(SPEC).metrics):
        with pytest.raises(ValueError, match=r"scores.*row 7"):
            call(scores, dataset().construct())


def test_ranking_without_queries_is_refused():
    with pytest.raises(ValueError, match="group="):
        fit(lo.Objective(SPEC), lgb.Dataset(TRAIN.X, TRAIN.y))


def test_labels_that_are_equal_everywhere_are_refused():
    with pytest.raises(ValueError, match=r"Hessian is nowhere positive.*different labels"):
        fit(lo.Objective(SPEC), lgb.Dataset(TRAIN.X, np.ones(len(TRAIN)), group=TRAIN.group))


def test_labels_that_are_negative_are_refused():
    with pytest.raises(ValueError, match=r"label.*negative"):
        fit(lo.Objective(SPEC), lgb.Dataset(TRAIN.X, TRAIN.y - 1, group=TRAIN.group))


def test_several_outputs_are_refused():
    with pytest.raises(ValueError, match="num_class"):
        fit(lo.Objective(SPEC), dataset(), params={"num_class": 2})


def test_positions_are_told():
    with pytest.warns(lo.LambdaObjectivesWarning, match="position"):
        fit(lo.Objective(SPEC), dataset(position=np.arange(len(TRAIN)) % 5), 2)


def test_positions_of_the_dataset_are_a_column():
    spec = lo.UnbiasedRank(lo.NDCG(10), "position", "additive")
    position = np.arange(len(TRAIN)) % 5
    own, attached = (lo.Objective(spec) for _ in range(2))
    train = dataset(position=position)
    fit(own, train, 3)  # without a warning
    other = lo.attach(dataset(), position=position)
    fit(attached, other, 3)
    assert own.state(train)["terms"] == attached.state(other)["terms"]
    assert len(own.state(train)["terms"]["unbiased-ndcg@10"]["bias"]) == 5


def test_positions_follow_the_folds_of_cv():
    spec = lo.UnbiasedRank(lo.NDCG(10), "position")
    folds = [(np.flatnonzero(TRAIN.qid >= 30), np.flatnonzero(TRAIN.qid < 30))]
    objective = lo.Objective(spec)
    train = dataset(position=np.where(TRAIN.qid < 30, 7, np.arange(len(TRAIN)) % 3))
    lgb.cv({**PARAMS, "objective": objective}, train, 2, folds=folds, feval=objective.metrics)
    # LightGBM numbers positions in the order in which they appear: 7 is 0
    assert objective.state()["terms"]["unbiased-ndcg@10"]["positions"] == [1, 2, 3]


def test_dataset_without_labels_is_refused():
    with pytest.raises((ValueError, lgb.basic.LightGBMError), match=r"[Ll]abel"):
        fit(lo.Objective(SPEC), lgb.Dataset(TRAIN.X, group=TRAIN.group))


@pytest.mark.parametrize("labels", ["float32", "int32", "strided", "list", "pandas"])
def test_labels_of_any_kind_are_read_and_left_alone(labels):
    given = {
        "float32": lambda y: y.astype(np.float32),
        "int32": lambda y: y.astype(np.int32),
        "strided": lambda y: np.repeat(y, 2)[::2],
        "list": np.ndarray.tolist,
        "pandas": pandas_with_index,
    }[labels](TRAIN.y)
    before = copy.deepcopy(given)
    objective = lo.Objective(SPEC)
    fit(objective, lgb.Dataset(TRAIN.X, given, group=TRAIN.group.tolist()))
    wanted = lo.Objective(SPEC)
    fit(wanted, dataset())
    assert objective.history() == wanted.history()
    np.testing.assert_array_equal(np.asarray(given), np.asarray(before))
