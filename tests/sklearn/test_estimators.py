"""The estimators give the models of the boosters' own ways of training, and fit into scikit-learn."""

import pickle

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn import set_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lambda_objectives as lo
from lambda_objectives import sklearn as los
from tests.data import Table

RANK = lo.LambdaRank(lo.NDCG(10))
QUALITY = lo.LambdaRank(lo.NDCG(10), label="quality")
BOUNDED = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=1.0)])
TOLERANCE = 2.0  # the bound is one for the training data: what these tests watch costs about twice as much
LGB = {"num_leaves": 7, "n_jobs": 1, "deterministic": True}
XGB = {"max_depth": 3, "n_jobs": 1}
both = pytest.mark.parametrize("booster", ["LightGBM", "XGBoost"])


def make(booster, kind, spec=None, **params):
    own = LGB if booster == "LightGBM" else XGB
    return getattr(los, booster + kind)(spec, **{"n_estimators": 30, **own, **params})


@pytest.fixture(scope="module")
def table():
    return Table.random(120, 0)


@pytest.fixture(scope="module")
def valid():
    return Table.random(60, 1)


@pytest.fixture(scope="module")
def frame(table):
    frame = pd.DataFrame(table.X, columns=list("abcde"))
    return frame.assign(quality=table.columns["quality"], qid=table.qid)


# ------------------------------------------------------------------------------------------ as the boosters themselves


@pytest.mark.parametrize("spec", [RANK, BOUNDED], ids=["plain", "bounded"])
def test_ranker_is_lightgbm_train(table, valid, spec):
    ranker = make("LightGBM", "Ranker", spec, early_stopping_rounds=30, tolerance=TOLERANCE)
    ranker.fit(
        table.X,
        table.y,
        group=table.group,
        columns=table.columns,
        eval_set=[(valid.X, valid.y)],
        eval_qid=[valid.qid],
        eval_columns=[valid.columns],
    )
    train = lo.attach(lgb.Dataset(table.X, table.y, group=table.group), table.columns)
    watched = lo.attach(train.create_valid(valid.X, valid.y, group=valid.group), valid.columns)
    objective = lo.Objective(spec)
    stop = lo.lightgbm.early_stopping(objective, 30, tolerance=TOLERANCE)
    params = {**LGB, "objective": objective, "metric": "None", "verbosity": -1}
    booster = lgb.train(params, train, 30, valid_sets=[watched], feval=objective.metrics, callbacks=[stop])
    assert ranker.n_iter_ == booster.num_trees() == stop.best.trees
    np.testing.assert_array_equal(ranker.predict(valid.X), booster.predict(valid.X))
    assert ranker.history_ == objective.history(train)
    assert spec is RANK or max(ranker.history_["multiplier/quality.ndcg@10"]) > 0
    assert ranker.evals_result_["valid_0"]["ndcg@10"] == objective.history(watched)["ndcg@10"]


@pytest.mark.parametrize("spec", [RANK, BOUNDED], ids=["plain", "bounded"])
def test_ranker_is_xgboost_train(table, valid, spec):
    ranker = make("XGBoost", "Ranker", spec, early_stopping_rounds=30, tolerance=TOLERANCE)
    ranker.fit(
        table.X,
        table.y,
        qid=table.qid,
        columns=table.columns,
        eval_set=[(valid.X, valid.y)],
        eval_group=[valid.group],
        eval_columns=[valid.columns],
    )
    train = lo.attach(xgb.DMatrix(table.X, table.y, qid=table.qid), table.columns)
    watched = lo.attach(xgb.DMatrix(valid.X, valid.y, qid=valid.qid), valid.columns)
    objective = lo.Objective(spec)
    booster = xgb.train(
        {**XGB, "min_child_weight": 1e-3, "base_score": 0.0, "disable_default_eval_metric": 1},
        train,
        30,
        obj=objective,
        custom_metric=objective.metrics,
        evals=[(watched, "valid_0")],
        callbacks=[lo.xgboost.EarlyStopping(objective, 30, tolerance=TOLERANCE)],
        verbose_eval=False,
    )
    assert ranker.n_iter_ == booster.num_boosted_rounds()
    np.testing.assert_array_equal(ranker.predict(valid.X), booster.predict(watched, output_margin=True))
    assert ranker.history_ == objective.history(train)
    assert spec is RANK or max(ranker.history_["multiplier/quality.ndcg@10"]) > 0


@both
def test_row_losses_are_the_boosters_own(booster):
    """With the mean as a start: the trees of the boosters' own objectives, and the same means."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(600, 4)), rng.uniform(0.5, 2, 600)
    y = 200 + 3 * X[:, 0] + rng.normal(size=600)
    mean = float(np.average(y, weights=w))  # said to XGBoost, whose own may differ in the last digit
    own = lgb.LGBMRegressor(verbosity=-1, n_estimators=30, **LGB) if booster == "LightGBM" else None
    own = own or xgb.XGBRegressor(n_estimators=30, base_score=mean, **XGB)
    ours = make(booster, "Regressor").fit(X, y, w).predict(X)
    np.testing.assert_allclose(ours, own.fit(X, y, sample_weight=w).predict(X), rtol=1e-5)

    c = np.where(X[:, 0] + rng.normal(size=600) > 1.5, "bad", "good")
    share = float(np.average(c == "good", weights=w))
    own = lgb.LGBMClassifier(verbosity=-1, n_estimators=30, **LGB) if booster == "LightGBM" else None
    own = own or xgb.XGBClassifier(n_estimators=30, base_score=share, **XGB)
    own.fit(X, c == "good", sample_weight=w)
    ours = make(booster, "Classifier").fit(X, c, w)
    np.testing.assert_allclose(ours.predict_proba(X), own.predict_proba(X), atol=2e-4)
    assert ours.classes_.tolist() == ["bad", "good"]
    assert ours.score(X, c) == pytest.approx(own.score(X, c == "good"), abs=0.005)


@both
@pytest.mark.parametrize("spec", [lo.Poisson(), lo.Gamma(), lo.Tweedie(1.5)], ids=lambda spec: spec.name)
def test_means_are_predicted_and_the_model_file_has_their_logarithms(booster, spec, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.exp(0.5 * X[:, 0] + 4) * rng.gamma(5, 0.2, 500)
    model = make(booster, "Regressor", spec).fit(X, y)
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.05)
    assert model.history_[spec.name][0] > 1.5 * model.history_[spec.name][-1]
    path = tmp_path / "model.json"
    model.booster_.save_model(path)
    if booster == "LightGBM":
        scores = lgb.Booster(model_file=path).predict(X)
    else:
        scores = xgb.Booster(model_file=path).predict(xgb.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(np.exp(scores), model.predict(X), rtol=1e-6)


@both
def test_gaussian_predicts_a_deviation(booster):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = 70 + 5 * X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=2000)
    model = make(booster, "Regressor", lo.Gaussian(), n_estimators=60, learning_rate=0.1).fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X))
    assert np.corrcoef(mean, 5 * X[:, 0])[0, 1] > 0.98
    assert np.corrcoef(np.log(deviation), X[:, 1])[0, 1] > 0.8
    with pytest.raises(ValueError, match=r"return_std: SquaredError predicts no deviation, Gaussian\(\) does"):
        make(booster, "Regressor").fit(X, y).predict(X, return_std=True)


@both
@pytest.mark.parametrize("watch", [False, True], ids=["alone", "watched"])
def test_under_bounds_a_round_within_them_is_kept(booster, table, valid, watch):
    """On the training data, also where another data set is evaluated."""
    watched = {"eval_set": [(valid.X, valid.y)], "eval_group": [valid.group], "eval_columns": [valid.columns]}
    watched = watched if watch else {}
    ranker = make(booster, "Ranker", BOUNDED, n_estimators=60)
    ranker.fit(table.X, table.y, group=table.group, columns=table.columns, **watched)
    found = table.evaluate(ranker.predict(table.X), BOUNDED)
    assert found["margin/quality.ndcg@10"] >= 0
    assert max(ranker.history_["multiplier/quality.ndcg@10"]) > 0


@both
def test_trained_without_a_cut_off_and_stopped_with_one(booster, table, valid):
    ranker = make(booster, "Ranker", lo.LambdaRank(lo.NDCG()), n_estimators=60, early_stopping_rounds=5,
                  stopping_metric="ndcg@3", watch=[lo.NDCG(3), lo.MAP()])  # fmt: skip
    ranker.fit(table.X, table.y, group=table.group, eval_set=[(valid.X, valid.y)], eval_group=[valid.group])
    seen = ranker.evals_result_["valid_0"]
    assert set(seen) == {"ndcg", "map", "ndcg@3", "cost/ndcg"}
    assert ranker.n_iter_ == 1 + np.argmax(seen["ndcg@3"]) < len(seen["ndcg@3"]) <= 60
    scores = ranker.predict(valid.X)
    for metric in (lo.NDCG(3), lo.MAP(), lo.NDCG()):
        want = metric(scores, valid.y, group=valid.group)
        assert seen[metric.name][ranker.n_iter_ - 1] == pytest.approx(want, abs=2e-6)
    assert len(ranker.history_["map"]) == len(ranker.history_["cost/ndcg"])


@both
def test_weights_of_rows_and_of_queries(booster, table):
    rng = np.random.default_rng(0)
    by_row, by_query = rng.uniform(0.5, 2, len(table)), table.query_weights
    fitted = [
        make(booster, "Ranker", RANK).fit(table.X, table.y, w, group=table.group)
        for w in (None, by_row, by_query, np.repeat(by_query, table.group))
    ]
    none, rows, queries, spread = (ranker.history_["cost/ndcg@10"] for ranker in fitted)
    assert queries == spread
    assert none != rows != queries
    weighted = lo.evaluate(RANK, np.zeros(len(table)), table.y, group=table.group, weights=by_row)
    assert rows[0] == pytest.approx(weighted["cost/ndcg@10"], rel=1e-6)


@both
def test_a_control_within_queries(booster, table):
    spec = lo.Decorrelated(lo.SquaredError(), "quality", weight=5, within_group=True)
    model = make(booster, "Regressor", spec).fit(table.X, table.y, group=table.group, columns=table.columns)
    plain = make(booster, "Regressor").fit(table.X, table.y)
    dependence = lo.DistanceCovariance("quality", within_group=True)
    found = [table.evaluate(m.predict(table.X), dependence)["quality.dcov2"] for m in (plain, model)]
    assert found[1] < 0.3 * found[0]


@both
def test_goes_on_from_a_model(booster, table):
    whole = make(booster, "Ranker", RANK, n_estimators=30).fit(table.X, table.y, group=table.group)
    half = make(booster, "Ranker", RANK, n_estimators=15).fit(table.X, table.y, group=table.group)
    rest = make(booster, "Ranker", lo.Objective(RANK, state=half.objective_.state()), n_estimators=15)
    rest.fit(table.X, table.y, group=table.group, init_model=half.booster_)
    assert rest.n_iter_ == 30
    np.testing.assert_allclose(rest.predict(table.X), whole.predict(table.X), rtol=1e-5, atol=1e-6)


@both
def test_callbacks_and_importances(booster, table):
    rounds = []
    if booster == "LightGBM":
        callback = lambda env: rounds.append(env.iteration)  # noqa: E731
    else:

        class Callback(xgb.callback.TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                rounds.append(epoch)

        callback = Callback()
    ranker = make(booster, "Ranker", RANK).fit(table.X, table.y, group=table.group, callbacks=[callback])
    assert rounds == list(range(30))
    assert ranker.feature_importances_.shape == (5,)
    assert np.argmax(ranker.feature_importances_) in (0, 1)


# ---------------------------------------------------------------------------------------------- within scikit-learn


@both
def test_clone_pickle_joblib(booster, table, tmp_path):
    ranker = make(booster, "Ranker", BOUNDED).fit(table.X, table.y, group=table.group, columns=table.columns)
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert copy.objective == BOUNDED
    assert not hasattr(copy, "booster_")
    joblib.dump(ranker, tmp_path / "ranker")
    for other in (pickle.loads(pickle.dumps(ranker)), joblib.load(tmp_path / "ranker")):
        np.testing.assert_array_equal(other.predict(table.X), ranker.predict(table.X))
        assert other.history_ == ranker.history_
    fresh = clone(make(booster, "Ranker", lo.Objective(RANK)))
    assert fresh.objective.spec == RANK


@both
def test_cross_validation_with_groups(booster, table):
    folds = GroupKFold(n_splits=3)
    set_config(enable_metadata_routing=True)
    try:
        ranker = make(booster, "Ranker", RANK).set_fit_request(qid=True).set_score_request(qid=True)
        routed = cross_validate(ranker, table.X, table.y, params={"qid": table.qid, "groups": table.qid}, cv=folds)
    finally:
        set_config(enable_metadata_routing=False)
    want = []
    for train, test in folds.split(table.X, groups=table.qid):
        ranker = make(booster, "Ranker", RANK).fit(table.X[train], table.y[train], qid=table.qid[train])
        want.append(lo.NDCG(10)(ranker.predict(table.X[test]), table.y[test], qid=table.qid[test]))
    np.testing.assert_allclose(routed["test_score"], want)


@both
def test_search_over_specs_and_parameters(booster, table, frame):
    """The column qid goes with the rows of each fold, and so do columns that are named."""
    specs = [lo.WeightedSum([RANK, QUALITY], [1, weight]) for weight in (0.0, 3.0)]
    leaves = {"num_leaves": [3, 7]} if booster == "LightGBM" else {"max_depth": [2, 3]}
    search = GridSearchCV(make(booster, "Ranker", n_estimators=10), {"objective": specs, **leaves}, cv=GroupKFold(3))
    search.fit(frame, table.y, groups=frame["qid"], columns=["quality"])
    assert search.best_params_["objective"] == specs[0]
    assert len(search.cv_results_["mean_test_score"]) == 4
    best = search.best_estimator_
    assert best.feature_names_in_.tolist() == list("abcde")
    assert search.score(frame, table.y) == pytest.approx(table.ndcg(best.predict(frame)))
    np.testing.assert_array_equal(best.predict(frame), best.predict(frame[list("abcde")]))  # nor are they needed


def test_search_in_processes(table, frame):
    search = GridSearchCV(
        make("LightGBM", "Ranker", RANK, n_estimators=5), {"num_leaves": [3, 7]}, cv=GroupKFold(2), n_jobs=2
    )
    search.fit(frame.drop(columns="quality"), table.y, groups=frame["qid"])
    assert (search.cv_results_["mean_test_score"] > 0.4).all()


@both
def test_pipeline(booster, table):
    pipe = make_pipeline(StandardScaler(), make(booster, "Ranker", RANK))
    step = pipe.steps[-1][0]
    pipe.fit(table.X, table.y, **{f"{step}__qid": table.qid})
    assert table.ndcg(pipe.predict(table.X)) > 0.7
    assert pipe.set_params(**{f"{step}__learning_rate": 0.05}).get_params()[f"{step}__learning_rate"] == 0.05
    model = make(booster, "Classifier")
    assert cross_val_score(make_pipeline(StandardScaler(), model), table.X, table.y > 1, cv=3).mean() > 0.7


def test_parameters_show_in_repr_and_may_be_set():
    ranker = los.LightGBMRanker(RANK, num_leaves=7)
    assert (
        repr(ranker).replace("\n", "").replace(" ", "").startswith("LightGBMRanker(num_leaves=7,objective=LambdaRank(")
    )
    ranker.set_params(num_leaves=15, min_data_in_leaf=3, n_estimators=2)
    assert ranker.get_params() == {
        "objective": RANK,
        "n_estimators": 2,
        "early_stopping_rounds": None,
        "stopping_metric": None,
        "tolerance": 0.0,
        "watch": (),
        "num_leaves": 15,
        "min_data_in_leaf": 3,
    }


@both
def test_parameters_as_scikit_learn_gives_them(booster, table, capfd):
    """None is what is not given; a generator is a seed; what a user asks LightGBM to say is said."""
    chance = {"subsample": 0.5, "subsample_freq": 1} if booster == "LightGBM" else {"subsample": 0.5}
    scores = [
        make(booster, "Ranker", RANK, n_estimators=5, **chance, random_state=state, reg_lambda=None)
        .fit(table.X, table.y, group=table.group)
        .predict(table.X)
        for state in (0, None, np.random.RandomState(0), np.random.RandomState(0), np.random.default_rng(0))
    ]
    bare = make(booster, "Ranker", RANK, n_estimators=5, **chance).fit(table.X, table.y, group=table.group)
    np.testing.assert_array_equal(scores[1], bare.predict(table.X))
    np.testing.assert_array_equal(scores[2], scores[3])
    generator = np.random.RandomState(0)
    ranker = make(booster, "Ranker", RANK, n_estimators=2, random_state=generator, max_bin=None)
    ranker.fit(table.X, table.y, group=table.group)
    before = generator.get_state()[2]
    ranker.predict(table.X)
    assert generator.get_state()[2] == before  # only a training draws
    assert not np.array_equal(scores[0], scores[2])
    assert not np.array_equal(scores[2], scores[4])
    assert capfd.readouterr().out == ""
    if booster == "LightGBM":
        make(booster, "Ranker", RANK, n_estimators=5, verbose=1).fit(table.X, table.y, group=table.group)
        assert "[Info] Total Bins" in capfd.readouterr().out


def test_less_is_better_scores_are_turned_round(table):
    ranker = make("LightGBM", "Ranker", lo.SquaredError()).fit(table.X, table.y, group=table.group)
    mse = ((ranker.predict(table.X) - table.y) ** 2).mean()
    assert ranker.score(table.X, table.y, group=table.group) == pytest.approx(-mse)


# ------------------------------------------------------------------------------------------------------ what is refused


def fit(estimator, table, **kwargs):
    return lambda: estimator.fit(table.X, table.y, **{"group": table.group, **kwargs})


def refused(table):
    ranker = los.LightGBMRanker
    frame = pd.DataFrame(table.X, columns=list("abcde")).assign(qid=table.qid)
    bounded = ranker(BOUNDED, n_estimators=5)
    pair = [(table.X, table.y)]
    return {
        r"group: a ranker needs queries, and none are given: say group= \(sizes\) or qid=": fit(
            ranker(), table, group=None
        ),
        r"group: X has a column 'qid' of query ids as well": lambda: ranker().fit(frame, table.y, group=table.group),
        r"num_leafs=3: LightGBM has no such parameter \(did you mean 'num_leaves'\?\)": fit(ranker(num_leafs=3), table),
        r"num_boost_round=3: say n_estimators= instead": fit(ranker(num_boost_round=3), table),
        r"watch must be a metric object such as NDCG\(10\), found 'ndcg@3': write NDCG\(3\)": fit(
            ranker(watch=["ndcg@3"]), table
        ),
        r"watch=.* belongs to the Objective that is given": fit(ranker(lo.Objective(RANK), watch=[lo.MAP()]), table),
        r"n_estimators must be a whole number from 1, found 0": fit(ranker(n_estimators=0), table),
        r"objective: spec must be a term or a spec, such as .*, found 'lambdarank'": fit(ranker("lambdarank"), table),
        r"columns: the objective wants 'quality', found none; say columns={'quality': values} in fit$": fit(
            bounded, table
        ),
        r"columns: .*found 'place'; say .* in fit, or columns=\['quality'\], a column of X": lambda: bounded.fit(
            frame.assign(quality=1), table.y, columns={"place": table.X[:, 0]}
        ),
        r"eval_columns: the objective wants 'quality', which eval_set\[1\] has not; say it for each entry": fit(
            bounded,
            table,
            columns=table.columns,
            eval_set=pair * 2,
            eval_group=[table.group] * 2,
            eval_columns=[table.columns, None],
        ),
        r"y has the rows of X in another order, by their index: row 0 is \d+ in it and 0 in X; .*values.loc": (
            lambda: ranker().fit(frame, pd.Series(table.y).sort_values())
        ),
        r"columns 'place' has the rows of X in another order": lambda: ranker().fit(
            frame, table.y, columns={"place": pd.Series(table.y).iloc[::-1]}
        ),
        r"columns: 'quality' has 3 values, X has \d+ rows; in a cross-validation of .* give a data frame": fit(
            bounded, table, columns={"quality": [1, 2, 3]}
        ),
        r"columns: names of columns, 'quality', want a data frame for X, found ndarray": fit(
            bounded, table, columns=["quality"]
        ),
        r"columns: X has no column 'quality', there are 'a', 'b'": lambda: bounded.fit(
            frame, table.y, columns="quality"
        ),
        r"columns must be a mapping from names to values, a data frame, or names of columns of X, found int": fit(
            bounded, table, columns=3
        ),
        r"eval_group belongs to eval_set=": fit(ranker(), table, eval_group=[table.group]),
        r"eval_group: a list with an entry for each of the 1 in eval_set wanted, found 2 entries": fit(
            ranker(), table, eval_set=pair, eval_group=[table.group] * 2
        ),
        r"eval_set\[0\]: group: a ranker needs queries": fit(ranker(), table, eval_set=pair),
        r"eval_set must be a list of pairs \(X, y\): entry 0 is int": fit(ranker(), table, eval_set=[3]),
        r"sample_weight has 7 values, X has \d+ rows in 120 queries": fit(ranker(), table, sample_weight=np.ones(7)),
        r"sample_weight must be one number a row, found a dict: .* columns=, fit\(X, y, columns=": fit(
            ranker(), table, sample_weight=table.columns
        ),
        r"watch must be a metric object such as NDCG\(10\), found 'map': write MAP\(\)": fit(
            ranker(watch="map"), table
        ),
        r"metric='ndcg@3' is not among what is evaluated: .*belongs into watch=": fit(
            ranker(early_stopping_rounds=2, stopping_metric="ndcg@3"), table
        ),
        r"sample_weight must not be negative: row 0 is -1": fit(ranker(), table, sample_weight=-np.ones(len(table))),
        r"y has 3 values, X has \d+ rows": lambda: ranker().fit(frame, table.y[:3]),
        r"n_features_=3: no parameter of a booster has this name": lambda: ranker(n_features_=3),
        r"fit=3: no parameter of a booster has this name": lambda: ranker().set_params(fit=3),
        r"y: 'c' is none of the classes \['a', 'b'\] of y in fit": lambda: los.LightGBMClassifier().fit(
            table.X[:6], list("ababab"), eval_set=[(table.X[:2], ["a", "c"])]
        ),
    }


def test_what_is_refused(table):
    for message, call in refused(table).items():
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_an_index_of_pandas_is_no_matter_where_it_says_nothing(table):
    frame = pd.DataFrame(table.X, index=np.arange(len(table)) * 7)
    y = pd.Series(table.y)  # numbered from 0
    ranker = make("LightGBM", "Ranker", RANK, n_estimators=3).fit(frame, y, group=table.group)
    want = make("LightGBM", "Ranker", RANK, n_estimators=3).fit(table.X, table.y, group=table.group)
    np.testing.assert_array_equal(ranker.predict(frame), want.predict(table.X))


def test_a_ranking_is_not_scored_without_its_queries(table):
    ranker = make("LightGBM", "Ranker", RANK, n_estimators=2).fit(table.X, table.y, group=table.group)
    with pytest.raises(ValueError, match=r"group: a ranking is scored query by query.*set_score_request\(qid=True\)"):
        ranker.score(table.X, table.y)


def test_parameters_that_xgboost_does_not_know_are_warned_of(table):
    with pytest.warns(UserWarning, match="max_dept"):
        los.XGBoostRanker(RANK, n_estimators=2, max_dept=3).fit(table.X, table.y, group=table.group)
