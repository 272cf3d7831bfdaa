"""The objective itself: called by hand, its copies and state, threads and forks, attach, errors."""

import copy
import dataclasses
import inspect
import io
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb
from sklearn.base import clone

import lambda_objectives as lo
from lambda_objectives.run import array_module
from tests.data import SPEC, TEST, TRAIN, Table

ROUNDS = 6
SUM = lo.WeightedSum([SPEC, lo.SquaredError(label="place")], weights=[1.0, 0.5])
START = np.linspace(-1.0, 1.0, len(TRAIN))


def lightgbm_set(table=TRAIN):
    return lgb.Dataset(table.X, table.y, group=table.group, params={"verbosity": -1, "min_data_in_leaf": 5}).construct()


def xgboost_set(table=TRAIN):
    return xgb.DMatrix(table.X, table.y, qid=table.qid)


def lightgbm_fit(objective, data, rounds=ROUNDS):
    params = {"objective": objective, "num_threads": 1, "min_data_in_leaf": 5, "verbosity": -1}
    return lgb.train(params, data, rounds).model_to_string()


def xgboost_fit(objective, data, rounds=ROUNDS):
    return xgb.train({"nthread": 1, "min_child_weight": 1e-3}, data, rounds, obj=objective).save_raw()


LIGHTGBM, XGBOOST = (lightgbm_set, lightgbm_fit), (xgboost_set, xgboost_fit)
both_boosters = pytest.mark.parametrize(("make", "fit"), [LIGHTGBM, XGBOOST], ids=["lightgbm", "xgboost"])


# ------------------------------------------------------------------------------------------------------ called by hand


def test_estimators_count_four_parameters():
    for method in (lo.Objective(SPEC), lo.Objective(SPEC).metrics):
        assert list(inspect.signature(method).parameters)[2:] == ["sample_weight", "group"]
        assert len(inspect.signature(method).parameters) == 4


@both_boosters
def test_by_hand_with_a_data_set(make, fit):
    grad, hess = lo.Objective(SPEC)(START.astype(np.float32), make())
    wanted = lo.gradient(SPEC, START.astype(np.float32), TRAIN.y, group=TRAIN.group)
    for found, want in zip((grad, hess), wanted, strict=True):
        assert found.dtype == np.float32
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


def test_by_hand_with_arrays():
    weights = np.repeat(TRAIN.query_weights, TRAIN.group)
    found = lo.Objective(SPEC)(TRAIN.y, START, weights, TRAIN.group)
    wanted = lo.gradient(SPEC, START, TRAIN.y, group=TRAIN.group, weights=weights)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_by_hand_with_other_arrays_of_the_same_length():
    objective = lo.Objective(SPEC)
    first = objective(TRAIN.y, START, None, TRAIN.group)
    for labels, weights, group in (
        (4 - TRAIN.y, None, TRAIN.group),
        (TRAIN.y, np.full(len(TRAIN), 2.0), TRAIN.group),
        (TRAIN.y, None, TRAIN.group[::-1]),
    ):
        found = objective(labels, START, weights, group)
        wanted = lo.gradient(SPEC, START, labels, group=group, weights=weights)
        assert not np.array_equal(first[0], found[0])
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-6)


@both_boosters
def test_what_was_returned_stays_as_it_was(make, fit):
    objective, data = lo.Objective(SPEC), make()
    grad, hess = objective(START, data)
    kept = grad.copy(), hess.copy()
    objective(-START, data)
    np.testing.assert_array_equal((grad, hess), kept)


@both_boosters
def test_scores_in_a_buffer_that_is_written_over(make, fit):
    """LightGBM hands over the same buffer every round."""
    objective, data, buffer = lo.Objective(SPEC), make(), START.copy()
    objective(buffer, data)
    buffer[:] = -START
    objective(buffer, data)
    np.testing.assert_array_equal(buffer, -START)
    TRAIN.assert_history(objective.history(data), [START, -START])


def test_scores_back_at_the_start_are_a_new_training():
    objective, data = lo.Objective(SPEC), lightgbm_set()
    for scores in (START, -START, START):
        objective(scores, data)
    TRAIN.assert_history(objective.history(data), [START])


def test_scores_that_have_not_moved_yet_are_no_new_training():
    """A first round that could not split."""
    objective, data = lo.Objective(SPEC), lightgbm_set()
    for scores in (START, START, START + 1.0, -START):
        objective(scores, data)
    TRAIN.assert_history(objective.history(data), [START, START, START + 1.0, -START])


def test_by_hand_going_on_from_a_state():
    objective, data = lo.Objective(SPEC), lightgbm_set()
    objective(START, data)
    resumed = lo.Objective(SPEC, state=objective.state(data))
    for scores in (-START, START**2):
        resumed(scores, data)
    TRAIN.assert_history(resumed.history(data), [-START, START**2])
    assert resumed.state(data)["rounds"] == 3


def test_metrics_by_hand_of_arrays():
    readings = lo.Objective(SPEC).metrics(TEST.y, -TEST.y, None, TEST.group)
    assert readings[0] == ("ndcg@10", pytest.approx(TEST.ndcg(-TEST.y)), True)
    assert dict(r[:2] for r in readings) == pytest.approx(TEST.evaluate(-TEST.y))


@both_boosters
def test_metrics_by_hand_leave_no_trace(make, fit):
    objective, data = lo.Objective(SPEC), make()
    readings = objective.metrics(START, data)
    assert {name: value for name, value, *_ in readings} == pytest.approx(TRAIN.evaluate(START))
    objective(START, data)
    TRAIN.assert_history(objective.history(data), [START])


# ------------------------------------------------------------------------------------------- history, state and copies


@both_boosters
def test_wrapped_in_a_function_of_the_user(make, fit):
    objective, alone, data, other = lo.Objective(SPEC), lo.Objective(SPEC), make(), make()
    wanted = fit(alone, other)
    for _ in range(2):
        assert fit(lambda scores, of: objective(scores, of), data) == wanted
        assert objective.history(data) == alone.history(other)


@both_boosters
def test_data_changed_between_trainings_are_read_anew(make, fit):
    objective, data = lo.Objective(SUM), lo.attach(make(), place=TRAIN.columns["place"])
    fit(objective, data)
    labels, place = 4 - TRAIN.y, 1 - TRAIN.columns["place"]
    data.set_label(labels)
    fit(objective, lo.attach(data, place=place), 1)
    changed = dataclasses.replace(TRAIN, y=labels, columns={"place": place})
    start = np.full(len(TRAIN), 0.5 if isinstance(data, xgb.DMatrix) else 0.0)
    changed.assert_history(objective.history(data), [start], SUM)


@both_boosters
def test_history_is_a_copy(make, fit):
    objective, data = lo.Objective(SPEC), make()
    fit(objective, data)
    objective.history(data)["ndcg@10"].clear()
    objective.history().clear()
    assert len(objective.history(data)["ndcg@10"]) == len(objective.history()["ndcg@10"]) == ROUNDS


@both_boosters
def test_history_of_what_was_not_used(make, fit):
    objective = lo.Objective(SPEC)
    for question in (objective.history, objective.state, lambda: objective.history(make())):
        with pytest.raises(KeyError, match="not"):
            question()
    fit(objective, make())
    with pytest.raises(KeyError, match="not been used with that data set"):
        objective.history(make(TEST))
    with pytest.raises(KeyError, match="not been trained on that data set"):
        objective.state(make(TEST))


@both_boosters
def test_one_object_for_two_data_sets(make, fit):
    objective, first, second = lo.Objective(SPEC), make(TRAIN), make(TEST)
    models = [fit(objective, data) for data in (first, second)]
    for table, data, model in zip((TRAIN, TEST), (first, second), models, strict=True):
        alone, fresh = lo.Objective(SPEC), make(table)
        assert fit(alone, fresh) == model
        assert alone.history(fresh) == objective.history(data)


@both_boosters
def test_reset_forgets(make, fit):
    objective, first, second = lo.Objective(SPEC), make(TRAIN), make(TEST)
    fit(objective, first)
    fit(objective, second)
    objective.reset(first)
    with pytest.raises(KeyError):
        objective.history(first)
    assert len(objective.history(second)["ndcg@10"]) == ROUNDS
    objective.reset()
    for data in (second, None):
        with pytest.raises(KeyError):
            objective.history(data)


@both_boosters
def test_reset_of_the_last_training_forgets_it(make, fit):
    objective, data = lo.Objective(SPEC), make()
    fit(objective, data)
    objective.reset(data)
    with pytest.raises(KeyError):
        objective.history()


@both_boosters
def test_state_is_json_and_goes_on(make, fit):
    objective, data = lo.Objective(SPEC), make()
    fit(objective, data)
    state = json.loads(json.dumps(objective.state(data)))
    assert state == objective.state()
    resumed = lo.Objective(SPEC, state=state)
    fit(resumed, data)
    assert resumed.state(data)["rounds"] == 2 * ROUNDS
    assert len(resumed.history(data)["ndcg@10"]) == ROUNDS


@pytest.mark.parametrize(
    ("state", "match"),
    [
        ({}, "state must be what"),
        ([], "state must be what"),
        ({"version": 99, "rounds": 1, "spec": repr(SPEC), "rule": None}, "version"),
        (None, "another spec"),
    ],
)
def test_state_that_does_not_fit_is_refused(state, match):
    if state is None:
        other = lo.Objective(lo.RankNet())
        data = lightgbm_set()
        other(START, data)
        state = other.state(data)
    with pytest.raises(ValueError, match=match):
        lo.Objective(SPEC, state=state)


def through_joblib(objective):
    buffer = io.BytesIO()
    joblib.dump(objective, buffer)
    return joblib.load(buffer)


COPIES = {
    "pickle": lambda objective: pickle.loads(pickle.dumps(objective)),
    "joblib": through_joblib,
    "clone": clone,
}


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_copies_are_fresh(copied, state):
    objective, data = lo.Objective(SUM), lo.attach(lightgbm_set(), place=TRAIN.columns["place"])
    lightgbm_fit(objective, data)
    if state:
        objective = lo.Objective(SUM, state=objective.state(data), watch=lo.MAP())
        lightgbm_fit(objective, data)
    again = copied(objective)
    assert again is not objective
    assert repr(again) == repr(objective)
    with pytest.raises(KeyError):
        again.history()
    assert lightgbm_fit(again, data) == lightgbm_fit(objective, data)
    assert again.history() == objective.history()
    assert again.state() == objective.state()


def test_deepcopy_is_the_object_itself():
    """lightgbm.train copies its parameters deeply; the history is to be the user's."""
    objective = lo.Objective(SPEC)
    assert copy.deepcopy({"objective": [objective]})["objective"][0] is objective
    assert copy.deepcopy(objective.metrics).__self__ is objective


@pytest.mark.parametrize(
    "state", [None, {"version": 3, "rounds": 2, "spec": repr(SUM), "rule": None, "terms": {}, "watched": None}]
)
@pytest.mark.parametrize("watch", [(), [lo.NDCG(3), lo.MAP()]], ids=["", "watch"])
def test_repr_is_how_to_make_one(state, watch):
    objective = lo.Objective(SUM, state=state, watch=watch)
    again = eval("lo." + repr(objective), {"lo": lo, **vars(lo)})
    assert again.spec == SUM
    assert repr(again) == repr(objective)


# --------------------------------------------------------------------------------------------------- threads and forks


@pytest.mark.parametrize("shared", [False, True], ids=["an object each", "one object"])
@both_boosters
def test_trainings_in_threads_equal_those_in_turn(make, fit, shared):
    tables = [TRAIN, TEST, Table.random(40, seed=3), Table.random(50, seed=4)]
    sets = [make(table) for table in tables]
    one = lo.Objective(SPEC)
    objectives = [one if shared else lo.Objective(SPEC) for _ in tables]
    alone = [lo.Objective(SPEC) for _ in tables]
    wanted = [fit(objective, data, 20) for objective, data in zip(alone, sets, strict=True)]
    with ThreadPoolExecutor(len(tables)) as pool:
        found = list(pool.map(fit, objectives, sets, [20] * len(tables)))
    assert found == wanted
    for objective, other, data in zip(objectives, alone, sets, strict=True):
        assert objective.history(data) == other.history(data)


def test_rankers_in_threads_equal_those_in_turn():
    def fitted(objective, table):
        model = lgb.LGBMRanker(objective=objective, n_estimators=20, n_jobs=1, min_child_samples=5, verbosity=-1)
        return model.fit(table.X, table.y, group=table.group).predict(TEST.X)

    tables, one = [TRAIN, Table.random(90, seed=6)], lo.Objective(SPEC)
    wanted = [fitted(lo.Objective(SPEC), table) for table in tables]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(fitted, [one, one], tables))
    np.testing.assert_array_equal(found, wanted)
    assert len(one.history()["ndcg@10"]) == 20


def test_gradients_in_threads_equal_those_in_turn():
    """Rows enough for the kernels to use threads of their own."""
    table = Table.random(3000, seed=5)
    scores = [np.random.default_rng(i).normal(size=len(table)) for i in range(4)]

    def gradient(s):
        return lo.gradient(SPEC, s, table.y, group=table.group)

    wanted = [gradient(s) for s in scores]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(gradient, scores))
    np.testing.assert_array_equal(found, wanted)


FORK = """
import os, sys
import numpy as np
import lambda_objectives as lo

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 3))
y = (X[:, 0] + rng.normal(size=20_000) > 1) * 1.0

def train(which):
    objective = lo.Objective(lo.LambdaRank(lo.NDCG(10)))
    if which == "lightgbm":
        import lightgbm as lgb
        params = {"objective": objective, "verbosity": -1, "num_threads": 1}
        return lgb.train(params, lgb.Dataset(X, y, group=[20] * 1000), 3).predict(X)
    import xgboost as xgb
    data = xgb.DMatrix(X, y)
    data.set_group([20] * 1000)
    return xgb.train({"min_child_weight": 1e-3}, data, 3, obj=objective).predict(data)

before = train(sys.argv[1])
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(train(sys.argv[1]), before) else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("which", ["lightgbm", "xgboost"])
def test_a_fork_after_training_can_train(which):
    """The boosters themselves hang after a fork if they had more than one OpenMP thread; ours are not OpenMP's."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK, which], timeout=60, check=True, env=environment)


# -------------------------------------------------------------------------------------------------------------- attach

KINDS = {
    "read-only": lambda y: y,
    "strided": lambda y: np.repeat(y, 3)[::3],
    "reversed": lambda y: y[::-1].copy()[::-1],
    "float32": lambda y: y.astype(np.float32),
    "int8": lambda y: y.astype(np.int8),
    "bool": lambda y: y > 2,
    "(n, 1)": lambda y: y.reshape(-1, 1),
    "list": np.ndarray.tolist,
    "pandas": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
    "pandas Int64": lambda y: pd.Series(y).astype("Int64"),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow chunks": lambda y: pa.chunked_array([y[:10], y[10:]]),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_arrays_of_any_kind_are_read_and_left_alone(kind):
    labels = kind(TRAIN.y)
    plain = np.asarray(labels, dtype=float).reshape(-1)
    before = copy.deepcopy(labels)
    spec = lo.WeightedSum([SPEC, lo.SquaredError(label="same")], [1.0, 1.0])
    found = lo.gradient(spec, kind(TRAIN.y), labels, group=TRAIN.group, same=labels)
    wanted = lo.gradient(spec, plain, plain, group=TRAIN.group, same=plain)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.asarray(labels), np.asarray(before))
    for data in (lightgbm_set(), xgboost_set()):
        objective = lo.Objective(lo.SquaredError(label="same"))
        objective(START, lo.attach(data, same=labels))
        assert objective.history()["same.mse"] == pytest.approx([np.mean((START - plain) ** 2)])


@pytest.mark.parametrize("make", [lightgbm_set, xgboost_set])
def test_attach_returns_the_data_set(make):
    data = make()
    assert lo.attach(data, quality=TRAIN.y) is data
    assert lo.attach(data, {"not an identifier".replace(" ", "-"): TRAIN.y}) is data
    objective = lo.Objective(lo.SquaredError(label="not-an-identifier"))
    objective(START, data)
    assert list(objective.history()) == ["cost/not-an-identifier.mse", "not-an-identifier.mse"]


def spoilt(value):
    values = TRAIN.y.tolist()
    values[7] = value
    return values


@pytest.mark.parametrize("make", [lightgbm_set, xgboost_set])
@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"price": [1.0, 2.0]}, "'price' has 2 values.* rows"),
        ({"price": "text"}, "'price'"),
        ({"price": ["a"] * len(TRAIN)}, "'price' cannot be read as numbers"),
        ({"price": spoilt("a")}, "'price' cannot be read as numbers"),
        ({"price": spoilt(None)}, "'price'"),
        ({"price": np.ones((len(TRAIN), 2))}, "'price' must be one number a row.*shape"),
        ({"price": np.ones(len(TRAIN)) * 1j}, "'price' cannot be read as numbers"),
        ({"the price": TRAIN.y}, "without blanks.*'the price'"),
        ({"the:price": TRAIN.y}, "colons.*'the:price'"),
        ({"": TRAIN.y}, "column.*''"),
        ({3: TRAIN.y}, "column.*3"),
    ],
)
def test_columns_that_cannot_be_are_refused(make, columns, match):
    data = make()
    with pytest.raises(ValueError, match=match):
        lo.attach(data, {"good": TRAIN.y, **columns})
    with pytest.raises(ValueError, match="there: none"):  # all or nothing
        lo.Objective(lo.SquaredError(label="price"))(START, data)


@pytest.mark.parametrize("make", [lightgbm_set, xgboost_set])
@pytest.mark.parametrize("value", [np.nan, np.inf, pd.NA], ids=str)
def test_missing_values_of_a_column_in_use_are_refused(make, value):
    column = pd.Series(TRAIN.y, dtype="Float64" if value is pd.NA else float)
    column[7] = value
    objective = lo.Objective(lo.SquaredError(label="price"))
    with pytest.raises(ValueError, match=r"'price' .*row 7|'price' cannot be read"):
        objective(START, lo.attach(make(), price=column))


@pytest.mark.parametrize("make", [lightgbm_set, xgboost_set])
@pytest.mark.parametrize(
    ("qid", "match"),
    [
        ([1, 2], "qid must be one id a row"),
        (np.arange(len(TRAIN)) % 2, "do not lie together"),
        (np.full(len(TRAIN), np.nan), "missing"),
    ],
)
def test_qid_that_cannot_be_is_refused(make, qid, match):
    with pytest.raises(ValueError, match=match):
        lo.attach(make(), qid=qid)


@pytest.mark.parametrize("make", [lightgbm_set, xgboost_set])
def test_column_given_twice_is_refused(make):
    with pytest.raises(ValueError, match="'price' is given twice"):
        lo.attach(make(), {"price": TRAIN.y}, price=TRAIN.y)


@pytest.mark.parametrize("data", [TRAIN.X, pd.DataFrame(TRAIN.X), "train.txt", None, lgb, xgb.Booster()],
                         ids=lambda data: type(data).__name__)  # fmt: skip
def test_data_sets_of_no_booster_are_refused(data):
    with pytest.raises(TypeError, match=f"Dataset or an XGBoost DMatrix, found {type(data).__name__}"):
        lo.attach(data, price=TRAIN.y)


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        (lo.NDCG(10), r"write LambdaRank\(NDCG"),
        (lo.NDCG, r"write LambdaRank\(NDCG\(\.\.\.\)\)"),
        (lo.LambdaRank, r"write LambdaRank\(\.\.\.\)"),
        ("ndcg", "found 'ndcg'"),
        (None, "found None"),
        ([SPEC], "spec must be a term or a spec"),
    ],
)
def test_what_is_no_spec_is_refused(spec, match):
    for call in (lo.Objective, lambda s: lo.evaluate(s, [1.0], [1], group=[1])):
        with pytest.raises(TypeError, match=match):
            call(spec)


@pytest.mark.parametrize("device", ["gpu", "cuda:7", 0, None])
def test_unknown_device_is_refused(device):
    with pytest.raises(ValueError, match="device must be"):
        lo.Objective(SPEC, device=device)


def test_cuda_without_a_gpu_or_without_work_for_it_is_refused():
    pooled, weighted = lo.DistanceCovariance("c"), lo.DistanceCovariance("c", weighted=True)
    for spec in (SPEC, lo.Decorrelated(lo.LogLoss(), [weighted], 1.0)):
        with pytest.raises(ValueError, match="device='cuda': nothing of this spec is computed on a GPU"):
            lo.Objective(spec, device="cuda")
    if not has_gpu():
        with pytest.raises(RuntimeError, match=r"device='cuda' needs CuPy and a GPU.*extra cuda12 or cuda13"):
            lo.Objective(lo.Decorrelated(lo.LogLoss(), [pooled, weighted], 1.0), device="cuda")


def has_gpu():
    try:
        return array_module("cuda") is not None
    except RuntimeError:
        return False


def test_a_training_on_a_device_is_that_of_the_loops(monkeypatch):
    """NumPy in place of CuPy, from the objective's argument to the trees."""
    monkeypatch.setattr("lambda_objectives.objective.array_module", {"cuda": np, "cpu": None}.get)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    spec, models = lo.Decorrelated(lo.SquaredError(), ["a", "b"], 3.0), []
    for device in ("cpu", "cuda"):
        objective = lo.Objective(spec, device=device)
        data = lo.attach(lgb.Dataset(X, X[:, 0] + X[:, 1]), a=X[:, 0], b=X[:, 2] ** 2)
        params = {"objective": objective, "verbosity": -1, "num_threads": 1, "num_leaves": 7}
        models.append(lgb.train(params, data, 20).predict(X))
        assert repr(objective).endswith(f"device={device!r})")
    np.testing.assert_allclose(*models, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"labels": spoilt(np.nan)}, "labels.*row 7"),
        ({"labels": spoilt(-1.0)}, "negative labels, row 7"),
        ({"labels": TRAIN.y[:-1]}, "rows"),
        ({"scores": spoilt(np.inf)}, "scores.*row 7"),
        ({"scores": TRAIN.y[:-1]}, "score.* rows"),
        ({"weights": spoilt(-1.0)}, "weights must not be negative: row 7"),
        ({"weights": spoilt(np.nan)}, "weights.*row 7"),
        ({"weights": [1.0]}, "weights has 1 values"),
        ({"group": None}, "group=.*qid="),
        ({"group": [3]}, "group must add up"),
        ({"group": TRAIN.qid}, "group"),
        ({"qid": TRAIN.qid}, "not both"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrays_that_do_not_fit_are_refused(changes, match):
    given = {"scores": START, "labels": TRAIN.y, "group": TRAIN.group, **changes}
    for function in (lo.evaluate, lo.gradient):
        with pytest.raises(ValueError, match=match):
            function(SPEC, **given)
    if "qid" not in changes:
        order = ("labels", "scores", "weights", "group")
        for call in (lo.Objective(SPEC), lo.Objective(SPEC).metrics):
            with pytest.raises(ValueError, match=match):
                call(*(given.get(name) for name in order))


def test_labels_all_equal_in_every_query_are_refused():
    with pytest.raises(ValueError, match="Hessian is nowhere positive"):
        lo.Objective(SPEC)(TRAIN.qid % 5, START, None, TRAIN.group)


def test_an_objective_is_called_with_something_else():
    with pytest.raises((TypeError, ValueError)):
        lo.Objective(SPEC)(START, "train")
