"""XGBoost: every way in, the metrics on their way out, columns, and settings that would do harm in silence."""

import gc
import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
from sklearn.base import clone
from xgboost.callback import EarlyStopping, TrainingCallback

import lambda_objectives as lo
from tests.data import SPEC, TEST, TRAIN

ROUNDS = 12
PARAMS = {"nthread": 1, "max_depth": 4, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
START = 0.5  # XGBoost's base score beside a custom objective
XGBOOST_SAYS_DEPRECATED = pytest.mark.filterwarnings(
    "ignore:.*deprecated:UserWarning"
)  # of dart and gblinear, from 3.3


def matrix(table=TRAIN, columns=(), *, kind=xgb.DMatrix, **more):
    data = kind(table.X, table.y, qid=table.qid, **more)
    return lo.attach(data, {name: table.columns[name] for name in columns})


def fit(objective, data, rounds=ROUNDS, *, params=None, **more):
    return xgb.train({**PARAMS, **(params or {})}, data, rounds, obj=objective, verbose_eval=False, **more)


OWN = TEST.ndcg(fit(None, matrix(), params={"objective": "rank:ndcg"}).predict(matrix(TEST)))


def after(model, table, rounds=ROUNDS, margin=None):
    """Scores after each round's tree."""
    data = xgb.DMatrix(table.X, base_margin=margin)
    return [model.predict(data, output_margin=True, iteration_range=(0, k + 1)) for k in range(rounds)]


def staged(model, table, rounds=ROUNDS, margin=None):
    """Scores before each round's tree."""
    return [np.full(len(table), START) if margin is None else margin, *after(model, table, rounds - 1, margin)]


class Batches(xgb.DataIter):
    """A table in batches of some rows each."""

    def __init__(self, table, starts, **more):
        self.table, self.starts = table, starts
        self.reset()
        super().__init__(**more)

    def reset(self):
        self.left = list(itertools.pairwise([*self.starts, len(self.table)]))

    def next(self, input_data):
        if not self.left:
            return False
        rows = slice(*self.left.pop(0))
        input_data(data=self.table.X[rows], label=self.table.y[rows], qid=self.table.qid[rows])
        return True


BETWEEN_QUERIES = [0, *np.cumsum(TRAIN.group)[[20, 50]]]
WITHIN_QUERIES = [0, *(np.cumsum(TRAIN.group)[[20, 50]] - 3)]


def from_set_group(folder):
    data = xgb.DMatrix(TRAIN.X, TRAIN.y)
    data.set_group(TRAIN.group)
    return data


def from_pandas(folder):
    import pandas as pd

    frame = pd.DataFrame(TRAIN.X, columns=list("abcde"), index=np.arange(len(TRAIN))[::-1])
    return xgb.DMatrix(frame.to_numpy(), pd.Series(TRAIN.y, index=frame.index), qid=pd.Series(TRAIN.qid, frame.index))


CONTAINERS = {
    "qid": lambda folder: matrix(),
    "set_group": from_set_group,
    "pandas labels and qid": from_pandas,
    "QuantileDMatrix": lambda folder: matrix(kind=xgb.QuantileDMatrix),
    "QuantileDMatrix of DataIter": lambda folder: xgb.QuantileDMatrix(Batches(TRAIN, BETWEEN_QUERIES)),
    "DMatrix of DataIter": lambda folder: xgb.DMatrix(Batches(TRAIN, BETWEEN_QUERIES, cache_prefix=str(folder / "c"))),
    "ExtMemQuantileDMatrix": lambda folder: xgb.ExtMemQuantileDMatrix(
        Batches(TRAIN, BETWEEN_QUERIES, cache_prefix=str(folder / "c"))
    ),
}

# ------------------------------------------------------------------------------------------------------- every way in


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_train(container, tmp_path):
    objective, data = lo.Objective(SPEC), container(tmp_path)
    model = fit(objective, data)
    TEST.assert_ranked_well(model.predict(xgb.DMatrix(TEST.X)), OWN)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN))
    assert objective.history() == objective.history(data)


def test_update_by_hand():
    objective, data = lo.Objective(SPEC), matrix()
    model = xgb.Booster(PARAMS, [data])
    for i in range(ROUNDS):
        model.update(data, i, fobj=objective)
    TEST.assert_ranked_well(model.predict(matrix(TEST)), OWN)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN))


def test_weights_of_queries():
    objective, data = lo.Objective(SPEC), matrix(weight=TRAIN.query_weights)
    model = fit(objective, data)
    TEST.assert_ranked_well(model.predict(matrix(TEST)), OWN)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN), weights=TRAIN.query_weights)


def test_weights_reach_the_gradient():
    weights = np.repeat(TRAIN.query_weights, TRAIN.group)
    plain = lo.Objective(SPEC)(np.zeros(len(TRAIN)), matrix())
    weighted = lo.Objective(SPEC)(np.zeros(len(TRAIN)), matrix(weight=TRAIN.query_weights))
    for a, b in zip(plain, weighted, strict=True):
        np.testing.assert_allclose(a * weights, b, rtol=1e-5)


class Folds(TrainingCallback):
    """Keeps the folds of xgb.cv."""

    def before_training(self, model):
        self.folds = model.cvfolds
        return model


def cv(objective, data, rounds=ROUNDS, **more):
    keeper = Folds()
    result = xgb.cv(PARAMS, data, rounds, nfold=3, obj=objective, custom_metric=objective.metrics, callbacks=[keeper],
                    as_pandas=False, **more)  # fmt: skip
    return result, keeper.folds


def part_of(fold_data):
    """The rows of a fold, recognised by the last feature."""
    place = fold_data.get_data().toarray()[:, 4]
    return TRAIN.part(np.round(place * len(TRAIN) - 0.5).astype(int))


def test_cv():
    objective = lo.Objective(SPEC)
    result, folds = cv(objective, matrix())
    values = []
    for fold in folds:
        train, valid = part_of(fold.dtrain), part_of(fold.dtest)
        assert len(train) + len(valid) == len(TRAIN)
        train.assert_history(objective.history(fold.dtrain), staged(fold.bst, train))
        valid.assert_history(objective.history(fold.dtest), after(fold.bst, valid))
        values.append(objective.history(fold.dtest)["ndcg@10"])
        TEST.assert_ranked_well(fold.bst.predict(matrix(TEST)), OWN)
    np.testing.assert_allclose(result["test-ndcg@10-mean"], np.mean(values, axis=0), atol=1e-6)


def test_base_margin_is_where_the_history_starts():
    margin = (2.0 * TRAIN.X[:, 1]).astype(np.float32)
    objective, data = lo.Objective(SPEC), matrix(base_margin=margin)
    model = fit(objective, data)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN, margin=margin))


def test_xgb_model_continues(tmp_path):
    """50 rounds and 50 more from a model in JSON are 100 rounds."""
    objective, data = lo.Objective(SPEC), matrix()
    whole = fit(objective, data, 100)
    once = objective.history(data)
    fit(objective, data, 50).save_model(tmp_path / "model.json")
    state = objective.state(data)

    objective, data = lo.Objective(SPEC, state=state), matrix()
    both = fit(objective, data, 50, xgb_model=tmp_path / "model.json")
    np.testing.assert_allclose(both.predict(matrix(TEST)), whole.predict(matrix(TEST)), rtol=1e-6, atol=1e-6)
    for name, values in objective.history(data).items():
        np.testing.assert_allclose(values, once[name][50:], rtol=1e-6)


@pytest.mark.parametrize("weights", [None, 0.5 + np.arange(len(TRAIN)) % 3], ids=["plain", "weights"])
def test_regressor(weights):
    spec = lo.SquaredError()
    objective = lo.Objective(spec)
    model = xgb.XGBRegressor(objective=objective, n_estimators=ROUNDS, max_depth=4, n_jobs=1)
    model.fit(TRAIN.X, TRAIN.y, sample_weight=weights)
    TEST.assert_ranked_well(model.predict(TEST.X), OWN)
    TRAIN.assert_history(objective.history(), staged(model.get_booster(), TRAIN), spec, weights)
    own = xgb.XGBRegressor(n_estimators=ROUNDS, max_depth=4, n_jobs=1, base_score=START)
    own.fit(TRAIN.X, TRAIN.y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(TEST.X), own.predict(TEST.X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("again", [clone, lambda model: pickle.loads(pickle.dumps(model))], ids=["clone", "pickle"])
def test_regressor_copied_then_trained(again):
    model = xgb.XGBRegressor(objective=lo.Objective(lo.SquaredError()), n_estimators=3, n_jobs=1)
    copied = again(model.fit(TRAIN.X, TRAIN.y)).fit(TRAIN.X, TRAIN.y)
    np.testing.assert_array_equal(copied.predict(TEST.X), model.predict(TEST.X))
    assert copied.objective.history() == model.objective.history()


@pytest.mark.parametrize(
    "params",
    [
        {"tree_method": "exact"},
        {"tree_method": "approx"},
        {"grow_policy": "lossguide", "max_leaves": 8},
        {"subsample": 0.7, "colsample_bytree": 0.8},
        {"num_parallel_tree": 2, "subsample": 0.7},
        {"objective": "rank:ndcg"},
        {"multi_strategy": "multi_output_tree"},
    ],
    ids=str,
)
def test_ways_to_grow_trees(params):
    objective, data = lo.Objective(SPEC), matrix()
    model = fit(objective, data, params=params)
    TEST.assert_ranked_well(model.predict(matrix(TEST)), OWN)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN))


# ----------------------------------------------------------------------------------------------- one object, many runs


def test_second_training_repeats_the_first():
    objective, data = lo.Objective(SPEC), matrix()
    first, history = fit(objective, data), objective.history(data)
    second = fit(objective, data)
    assert second.save_raw() == first.save_raw()
    assert objective.history(data) == history


def test_other_base_margin_starts_afresh():
    objective, data = lo.Objective(SPEC), matrix()
    fit(objective, data)
    margin = (2.0 * TRAIN.X[:, 1]).astype(np.float32)
    data.set_base_margin(margin)
    model = fit(objective, data, 3)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN, 3, margin))


def test_two_boosters_take_turns():
    objective, tables = lo.Objective(SPEC), (TRAIN, TEST)
    sets = [matrix(table) for table in tables]
    models = [xgb.Booster(PARAMS, [data]) for data in sets]
    for i in range(ROUNDS):
        for model, data in zip(models, sets, strict=True):
            model.update(data, i, fobj=objective)
    for table, data, model in zip(tables, sets, models, strict=True):
        alone = fit(lo.Objective(SPEC), matrix(table))
        np.testing.assert_array_equal(model.predict(matrix(TEST)), alone.predict(matrix(TEST)))
        table.assert_history(objective.history(data), staged(model, table))


def test_history_is_of_the_last_use():
    """Trained on, then watched in another training: what was watched is what is asked for."""
    objective, first, second = lo.Objective(SPEC), matrix(TRAIN), matrix(TEST)
    fit(objective, first)
    model = fit(objective, second, evals=[(first, "first")], custom_metric=objective.metrics)
    TRAIN.assert_history(objective.history(first), after(model, TRAIN))


def test_runs_go_with_their_data_sets():
    objective, data = lo.Objective(SPEC), matrix()
    fit(objective, data, 2)
    del data
    gc.collect()
    assert len(objective.history()["ndcg@10"]) == 2
    assert objective.state()["rounds"] == 2  # what grows with the data is given up, not what was learnt


# ------------------------------------------------------------------------------------------------------------- metrics


def test_metrics_are_those_of_evaluate():
    objective, data, valid, seen = lo.Objective(SPEC), matrix(), matrix(TEST), {}
    model = fit(objective, data, evals=[(data, "train"), (valid, "valid")], custom_metric=objective.metrics,
                evals_result=seen)  # fmt: skip
    TRAIN.assert_history(seen["train"], after(model, TRAIN))
    TEST.assert_history(seen["valid"], after(model, TEST))
    TEST.assert_history(objective.history(valid), after(model, TEST))
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN))  # not doubled


def test_metrics_beside_an_objective_of_xgboost():
    objective, data, valid = lo.Objective(SPEC), matrix(), matrix(TEST)
    model = fit(None, data, params={"objective": "rank:ndcg"}, evals=[(data, "train"), (valid, "valid")],
                custom_metric=objective.metrics)  # fmt: skip
    for table, of in ((TRAIN, data), (TEST, valid)):
        table.assert_history(objective.history(of), after(model, table))


def test_validation_set_evaluated_twice_a_round_has_one_entry_a_round():
    objective, data, valid = lo.Objective(SPEC), matrix(), matrix(TEST)
    model = fit(objective, data, evals=[(valid, "once"), (valid, "twice")], custom_metric=objective.metrics)
    model.eval_set([(valid, "again")], ROUNDS - 1, feval=objective.metrics)
    TEST.assert_history(objective.history(valid), after(model, TEST))


@pytest.mark.parametrize(
    ("spec", "watched"),
    [
        (SPEC, "ndcg@10"),
        (lo.LambdaRank(lo.DCG(10)), "cost/dcg@10"),  # XGBoost would minimise dcg@10
        (lo.LambdaRank(lo.NDCG(10), label="quality"), "cost/quality.ndcg@10"),
        (lo.LambdaRank(lo.NDCG(10), label="pressure"), "pressure.ndcg@10"),  # begins like XGBoost's metric pre
        (lo.RankNet(), "cost/ranknet"),
        (lo.SquaredError(), "mse"),
        (lo.SquaredError(label="map"), "cost/map.mse"),  # XGBoost would maximise map.mse
        (lo.WeightedSum([SPEC, lo.SquaredError()], [1.0, 0.1]), "ndcg@10"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_early_stopping_of_xgboost_goes_the_right_way(spec, watched):
    names = {"pressure": "quality", "map": "quality", "quality": "quality"}
    data, valid = (lo.attach(matrix(t), {n: t.columns[c] for n, c in names.items()}) for t in (TRAIN, TEST))
    objective, seen = lo.Objective(spec), {}
    model = fit(objective, data, 300, params={"eta": 0.7}, evals=[(data, "train"), (valid, "valid")],
                custom_metric=objective.metrics, evals_result=seen, callbacks=[EarlyStopping(rounds=5)])  # fmt: skip
    values = np.array(seen["valid"][watched])
    best = values.argmin() if watched.startswith("cost/") or watched == "mse" else values.argmax()
    assert next(reversed(seen["valid"])) == watched
    assert 0 < best < 290
    assert model.best_iteration == best
    assert len(values) == best + 6


def test_early_stopping_of_cv_goes_the_right_way():
    objective = lo.Objective(lo.LambdaRank(lo.DCG(10)))
    result = xgb.cv({**PARAMS, "eta": 0.7}, matrix(), 300, nfold=3, obj=objective, custom_metric=objective.metrics,
                    early_stopping_rounds=5, as_pandas=False)  # fmt: skip
    values = result["test-cost/dcg@10-mean"]
    assert 1 < len(values) < 290
    assert np.argmin(values) == len(values) - 1  # cv ends its table at the best round


def test_xgboost_prints_the_same_ndcg():
    data, valid, seen = matrix(), matrix(TEST), {}
    objective = lo.Objective(lo.WeightedSum([lo.LambdaRank(lo.NDCG(k)) for k in (1, 3, 10)], [1, 1, 1]))
    fit(objective, data, params={"eval_metric": ["ndcg@1", "ndcg@3", "ndcg@10"]}, evals=[(valid, "valid")],
        custom_metric=lambda scores, of: [("our-" + name, value) for name, value in objective.metrics(scores, of)],
        evals_result=seen)  # fmt: skip
    for k in (1, 3, 10):
        np.testing.assert_allclose(seen["valid"][f"our-ndcg@{k}"], seen["valid"][f"ndcg@{k}"], atol=2e-6)


# ------------------------------------------------------------------------------------------------------------- columns

PLACE = lo.SquaredError(label="place")
BOTH = lo.WeightedSum([SPEC, PLACE], [1.0, 1.0])


def assert_knows_place(model):
    """Trained on the column `place`, which equals the last feature and varies by 1 / 12."""
    assert np.mean((model.predict(matrix(TEST)) - TEST.columns["place"]) ** 2) < 0.01


@pytest.mark.parametrize("kind", [xgb.DMatrix, xgb.QuantileDMatrix])
def test_columns_reach_training_and_validation(kind):
    objective, data = lo.Objective(PLACE), matrix(columns=["place"], kind=kind)
    more = {"ref": data} if kind is xgb.QuantileDMatrix else {}
    valid = matrix(TEST, columns=["place"], kind=kind, **more)
    model = fit(objective, data, evals=[(valid, "valid")], custom_metric=objective.metrics)
    assert_knows_place(model)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN), PLACE)
    TEST.assert_history(objective.history(valid), after(model, TEST), PLACE)


def test_columns_reach_the_folds_of_cv():
    objective = lo.Objective(BOTH)
    _, folds = cv(objective, matrix(columns=["place"]))
    for fold in folds:
        train, valid = part_of(fold.dtrain), part_of(fold.dtest)
        train.assert_history(objective.history(fold.dtrain), staged(fold.bst, train), BOTH)
        valid.assert_history(objective.history(fold.dtest), after(fold.bst, valid), BOTH)


def test_columns_reach_the_folds_of_cv_without_queries():
    objective = lo.Objective(PLACE)
    data = lo.attach(xgb.DMatrix(TRAIN.X, TRAIN.y), place=TRAIN.columns["place"])
    for fold in cv(objective, data)[1]:
        assert_knows_place(fold.bst)


def test_columns_reach_a_slice():
    rows = np.flatnonzero(TRAIN.qid % 2)
    objective, part = lo.Objective(BOTH), TRAIN.part(rows)
    whole = matrix(columns=["place"])  # it holds the columns
    data = whole.slice(rows, allow_groups=True)
    data.set_group(part.group)
    model = fit(objective, data)
    part.assert_history(objective.history(data), staged(model, part), BOTH)


def test_columns_of_two_matrices_are_not_mixed_up():
    """Folds know whose rows they are, also where both matrices are as long."""
    first = lo.attach(matrix(), place=TRAIN.columns["place"])
    second = lo.attach(matrix(), place=1.0 + TRAIN.columns["place"])
    for data, offset in ((first, 0.0), (second, 1.0)):
        objective = lo.Objective(PLACE)
        for fold in cv(objective, data, 1)[1]:
            wanted = np.mean((START - offset - part_of(fold.dtrain).columns["place"]) ** 2)
            assert objective.history(fold.dtrain)["place.mse"] == pytest.approx([wanted])


def test_columns_of_a_matrix_from_a_file_are_not_those_of_another(tmp_path, monkeypatch):
    """A saved matrix keeps the number that its process gave it; another process gives the same numbers anew."""
    monkeypatch.setattr("lambda_objectives.xgboost._numbers", itertools.count(60_000))
    matrix(columns=["place"]).save_binary(tmp_path / "saved.buffer")
    monkeypatch.setattr("lambda_objectives.xgboost._numbers", itertools.count(60_000))
    other = lo.attach(matrix(), place=1.0 + TRAIN.columns["place"])
    data = lo.attach(xgb.DMatrix(str(tmp_path / "saved.buffer")), place=TRAIN.columns["place"])
    objective = lo.Objective(PLACE)
    for fold in cv(objective, data, 1)[1]:
        wanted = np.mean((START - part_of(fold.dtrain).columns["place"]) ** 2)
        assert objective.history(fold.dtrain)["place.mse"] == pytest.approx([wanted])
    assert other.num_row() == len(TRAIN)


def test_bounds_that_a_user_gave_are_no_columns():
    """The fields that carry columns into folds belong to survival models; theirs may be infinite."""
    for bounds in ([0.0, np.inf], [np.nan, 256.0], [5.0, 256.0]):
        low, high = (np.full(len(TRAIN), bound) for bound in bounds)
        objective = lo.Objective(SPEC)
        data = matrix(label_lower_bound=low, label_upper_bound=high)
        fit(objective, data, 2)
        assert len(objective.history(data)["ndcg@10"]) == 2


def test_bounds_that_a_user_gave_are_left_alone():
    low, high = np.zeros(len(TRAIN)), np.ones(len(TRAIN))
    data = matrix(columns=["place"], label_lower_bound=low, label_upper_bound=high)
    np.testing.assert_array_equal(data.get_float_info("label_upper_bound"), high)
    objective = lo.Objective(PLACE)
    assert_knows_place(fit(objective, data))


def test_qid_mends_queries_that_batches_cut():
    cut = xgb.QuantileDMatrix(Batches(TRAIN, WITHIN_QUERIES))
    assert cut.get_uint_info("group_ptr").size == len(TRAIN.group) + 3
    objective = lo.Objective(SPEC)
    model = fit(objective, lo.attach(cut, qid=TRAIN.qid))
    TRAIN.assert_history(objective.history(cut), staged(model, TRAIN))


def test_qid_stands_in_for_groups_that_are_not_there():
    objective = lo.Objective(SPEC)
    data = lo.attach(xgb.DMatrix(TRAIN.X, TRAIN.y), qid=TRAIN.qid)
    model = fit(objective, data)
    TRAIN.assert_history(objective.history(data), staged(model, TRAIN))


def test_folds_of_cv_do_not_lose_qid_in_silence():
    """xgb.cv deals out XGBoost's own groups, here pieces of queries: the queries it cuts are refused or mended."""
    data = xgb.DMatrix(TRAIN.X, TRAIN.y, qid=np.arange(len(TRAIN)) // 3)
    lo.attach(data, qid=TRAIN.qid)
    objective = lo.Objective(SPEC)
    with pytest.raises(ValueError, match="quer"):
        cv(objective, data, 2)


def test_qid_that_says_the_same_as_the_matrix_is_fine_in_cv():
    objective = lo.Objective(SPEC)
    for fold in cv(objective, lo.attach(matrix(), qid=TRAIN.qid), 2)[1]:
        part = part_of(fold.dtrain)
        part.assert_history(objective.history(fold.dtrain), staged(fold.bst, part, 2))


def test_unknown_column_lists_those_that_are_there():
    with pytest.raises(ValueError, match=r"'price'.*'place', 'quality'.*attach"):
        fit(lo.Objective(lo.SquaredError(label="price")), matrix(columns=["place", "quality"]))


# -------------------------------------------------------------------------------------------------------------- guards


def fit_by_train(params):
    fit(lo.Objective(SPEC), matrix(), 2, params=params)


def fit_by_update(params):
    data = matrix()
    xgb.Booster({**PARAMS, **params}, [data]).update(data, 0, fobj=lo.Objective(SPEC))


def fit_by_cv(params):
    xgb.cv({**PARAMS, **params}, matrix(), 2, nfold=2, obj=lo.Objective(SPEC))


def fit_by_regressor(params):
    objective = lo.Objective(lo.SquaredError())
    xgb.XGBRegressor(objective=objective, n_estimators=2, n_jobs=1, **params).fit(TRAIN.X, TRAIN.y)


@pytest.mark.parametrize("way", [fit_by_train, fit_by_update, fit_by_cv])
@pytest.mark.parametrize("value", ["reg:absoluteerror", "reg:quantileerror"])
def test_objectives_that_overwrite_leaves_are_refused(way, value):
    with pytest.raises(ValueError, match=value):
        way({"objective": value, **({"quantile_alpha": 0.5} if "quantile" in value else {})})


@pytest.mark.parametrize("way", [fit_by_train, fit_by_update, fit_by_cv, fit_by_regressor])
@pytest.mark.parametrize(
    ("name", "params"),
    [("rate_drop", {"booster": "dart", "rate_drop": 0.1}), ("scale_pos_weight", {"scale_pos_weight": 2.0})],
)
@XGBOOST_SAYS_DEPRECATED
def test_settings_without_effect_or_harmful_are_told(way, name, params):
    with pytest.warns(lo.LambdaObjectivesWarning, match=name):
        way(params)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lambdarank_pair_method", "mean"),
        ("lambdarank_num_pair_per_sample", 3),
        ("lambdarank_unbiased", True),
        ("lambdarank_normalization", False),
        ("ndcg_exp_gain", False),
    ],
)
def test_settings_of_the_own_ranking_objective_are_told(name, value):
    with pytest.warns(lo.LambdaObjectivesWarning, match=name):
        fit_by_train({"objective": "rank:ndcg", name: value})


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.filterwarnings("ignore:booster='dart':lambda_objectives.LambdaObjectivesWarning")
@XGBOOST_SAYS_DEPRECATED
def test_min_child_weight_of_1_is_told_where_hessians_are_tiny(booster):
    table = TRAIN.part(TRAIN.qid < 10)
    params = {name: value for name, value in PARAMS.items() if name != "min_child_weight"}
    with pytest.warns(lo.LambdaObjectivesWarning, match=r"min_child_weight=1 .*min_child_weight=1e-3"):
        xgb.train({**params, "booster": booster}, matrix(table), 1, obj=lo.Objective(SPEC))


def test_min_child_weight_is_fine_for_terms_over_rows():
    params = {name: value for name, value in PARAMS.items() if name != "min_child_weight"}
    xgb.train(params, matrix(), 2, obj=lo.Objective(lo.SquaredError()))


def test_first_tree_that_does_not_split_is_told():
    params = {"gamma": 1e6}
    with pytest.warns(lo.LambdaObjectivesWarning, match="did not split"):
        fit(lo.Objective(SPEC), matrix(), 3, params=params)


def test_warning_points_outside_the_package():
    with pytest.warns(lo.LambdaObjectivesWarning, match="scale_pos_weight") as caught:
        fit_by_train({"scale_pos_weight": 2.0})
    assert Path(lo.__file__).parent not in Path(caught[0].filename).parents


@XGBOOST_SAYS_DEPRECATED
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_linear_booster_trains():
    objective, data = lo.Objective(SPEC), matrix()
    params = {"booster": "gblinear", "eta": 0.5, "nthread": 1, "disable_default_eval_metric": 1}
    model = xgb.train(params, data, ROUNDS, obj=objective)
    TEST.assert_ranked_well(model.predict(matrix(TEST)), 0.84)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_labels_that_are_not_finite_are_refused(value):
    y = TRAIN.y.copy()
    y[7] = value
    with pytest.raises((ValueError, xgb.core.XGBoostError), match=r"[Ll]abel"):
        fit(lo.Objective(SPEC), xgb.DMatrix(TRAIN.X, y, qid=TRAIN.qid))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_refused(value):
    margin = np.zeros(len(TRAIN))
    margin[7] = value
    with pytest.raises((ValueError, xgb.core.XGBoostError), match=r"scores.*row 7|base_margin"):
        fit(lo.Objective(SPEC), matrix(base_margin=margin))
    for call in (lo.Objective(SPEC), lo.Objective(SPEC).metrics):
        with pytest.raises(ValueError, match=r"scores.*row 7"):
            call(margin, matrix())


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_weights_that_are_no_weights_are_refused(value):
    weights = np.ones(len(TRAIN.group))
    weights[7] = value
    with pytest.raises((ValueError, xgb.core.XGBoostError), match=r"[Ww]eight"):
        fit(lo.Objective(SPEC), matrix(weight=weights))


def test_ranking_without_queries_is_refused():
    with pytest.raises(ValueError, match="qid="):
        fit(lo.Objective(SPEC), xgb.DMatrix(TRAIN.X, TRAIN.y))
    with pytest.raises(ValueError, match="queries"):
        xgb.XGBRegressor(objective=lo.Objective(SPEC), n_estimators=2).fit(TRAIN.X, TRAIN.y)


def test_labels_that_are_equal_everywhere_are_refused():
    with pytest.raises(ValueError, match=r"Hessian is nowhere positive.*different labels"):
        fit(lo.Objective(SPEC), xgb.DMatrix(TRAIN.X, np.ones(len(TRAIN)), qid=TRAIN.qid))


def test_labels_that_are_negative_are_refused():
    with pytest.raises(ValueError, match=r"label.*negative"):
        fit(lo.Objective(SPEC), xgb.DMatrix(TRAIN.X, TRAIN.y - 1, qid=TRAIN.qid))


def test_several_outputs_are_refused():
    with pytest.raises(ValueError, match="num_class"):
        fit(lo.Objective(SPEC), matrix(), params={"num_class": 2})


def test_several_labels_a_row_are_refused():
    with pytest.raises(ValueError, match="one a row wanted"):
        fit(lo.Objective(SPEC), xgb.DMatrix(TRAIN.X, np.column_stack([TRAIN.y, TRAIN.y]), qid=TRAIN.qid))


def test_matrix_without_labels_is_refused():
    with pytest.raises((ValueError, xgb.core.XGBoostError), match="label"):
        fit(lo.Objective(SPEC), xgb.DMatrix(TRAIN.X, qid=TRAIN.qid))


@pytest.mark.parametrize("kind", ["float32", "int32", "strided", "list"])
def test_labels_of_any_kind_are_read_and_left_alone(kind):
    given = {
        "float32": lambda y: y.astype(np.float32),
        "int32": lambda y: y.astype(np.int32),
        "strided": lambda y: np.repeat(y, 2)[::2],
        "list": np.ndarray.tolist,
    }[kind](TRAIN.y)
    objective, wanted = lo.Objective(SPEC), lo.Objective(SPEC)
    fit(objective, xgb.DMatrix(TRAIN.X, given, qid=TRAIN.qid))
    fit(wanted, matrix())
    assert objective.history() == wanted.history()
    np.testing.assert_array_equal(given, TRAIN.y)


def test_metrics_of_estimators_are_refused():
    """They want one number of a function, by its name."""
    objective = lo.Objective(lo.SquaredError())
    model = xgb.XGBRegressor(objective=objective, eval_metric=objective.metrics, n_estimators=2)
    with pytest.raises(TypeError, match=r"use xgboost\.train\(custom_metric=objective\.metrics\)"):
        model.fit(TRAIN.X, TRAIN.y, eval_set=[(TRAIN.X, TRAIN.y)], verbose=False)
