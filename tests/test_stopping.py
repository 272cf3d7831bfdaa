"""Early stopping at the best round that keeps to every bound, in both boosters."""

import functools

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.model_selection import GroupKFold
from xgboost.callback import TrainingCallback

import lambda_objectives as lo
from lambda_objectives.stopping import Candidate, Choice
from tests.data import TEST, TRAIN, Table

ROUNDS = 24
RANK, QUALITY = lo.LambdaRank(lo.NDCG(10)), lo.LambdaRank(lo.NDCG(10), label="quality")
LGB = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 4, "metric": "None"}
XGB = {"nthread": 1, "min_child_weight": 1e-3, "max_depth": 2, "eta": 0.1}
SMALL, OTHER = Table.random(8, seed=9), Table.random(8, seed=10)  # whose metrics go up and down


def constrained(*constraints, update="carry", **options):
    return lo.AugmentedLagrangian(RANK, constraints, update=update, **options)


SPECS = {
    "carry": constrained(lo.Constraint(QUALITY, at_most=1.6), mu=2.0),
    "reset": constrained(lo.Constraint(QUALITY, at_most=1.6), update="reset", mu=5.0),
    "auto": constrained(lo.Constraint(QUALITY, at_most=2.5), update="auto"),
    "two": constrained(lo.Constraint(QUALITY, at_most=1.6), lo.Constraint(RANK, at_least=0.7, name="floor"), mu=2.0),
    "at least": constrained(lo.Constraint(QUALITY, at_least=0.8)),
    "never": constrained(lo.Constraint(QUALITY, at_most=0.1), lo.Constraint(RANK, at_most=0.2, name="own")),
    "loose": constrained(lo.Constraint(QUALITY, at_most=50.0)),
    "alone": RANK,
    "sum": lo.WeightedSum([RANK, QUALITY], [1.0, 0.2]),
}
every_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
pytestmark = pytest.mark.filterwarnings("ignore:no late round keeps:lambda_objectives.LambdaObjectivesWarning")
no_round = pytest.mark.filterwarnings(
    "ignore:(no round keeps|only early rounds):lambda_objectives.LambdaObjectivesWarning"
)


class LightGBM:
    """What the tests ask of LightGBM."""

    @staticmethod
    def data(table=TRAIN):
        return lo.attach(lgb.Dataset(table.X, table.y, group=table.group, free_raw_data=False), table.columns)

    @staticmethod
    def fit(objective, data, rounds=ROUNDS, valid=(), *, params=None, feval=True, **more):
        if valid:
            more |= {"valid_sets": list(valid), "feval": objective.metrics if feval else None}
        return lgb.train({**LGB, "objective": objective, **(params or {})}, data, rounds, **more)

    @staticmethod
    def stop(*args, **options):
        return lo.lightgbm.early_stopping(*args, **options)

    @staticmethod
    def staged(model, table, rounds):
        return [model.predict(table.X, num_iteration=k + 1) for k in range(rounds)]

    @staticmethod
    def predict(model, table, trees=None):
        return model.predict(table.X, num_iteration=trees)

    @staticmethod
    def size(model):
        return model.num_trees()

    @staticmethod
    def text(model):
        return model.model_to_string()


class XGBoost:
    """The same of XGBoost."""

    @staticmethod
    def data(table=TRAIN):
        return lo.attach(xgb.DMatrix(table.X, table.y, qid=table.qid), table.columns)

    @staticmethod
    def fit(objective, data, rounds=ROUNDS, valid=(), *, params=None, feval=True, **more):
        more["xgb_model"] = more.pop("init_model", None)
        if valid:
            more |= {"evals": [(d, f"valid_{i}") for i, d in enumerate(valid)], "verbose_eval": False}
            more["custom_metric"] = objective.metrics if feval else None
        return xgb.train({**XGB, **(params or {})}, data, rounds, obj=objective, **more)

    @staticmethod
    def stop(*args, **options):
        return lo.xgboost.EarlyStopping(*args, **options)

    @staticmethod
    def staged(model, table, rounds):
        data = xgb.DMatrix(table.X)
        return [model.predict(data, iteration_range=(0, k + 1), output_margin=True) for k in range(rounds)]

    @staticmethod
    def predict(model, table, trees=0):
        return model.predict(xgb.DMatrix(table.X), iteration_range=(0, trees))

    @staticmethod
    def size(model):
        return model.num_boosted_rounds()

    @staticmethod
    def text(model):
        return "\n".join(model.get_dump())


both_boosters = pytest.mark.parametrize("of", [LightGBM, XGBoost], ids=["lightgbm", "xgboost"])


@functools.cache
def whole(of, spec):
    """A training without early stopping."""
    return of.fit(lo.Objective(spec), of.data())


@functools.cache
def evaluated(of, spec, table):
    """What evaluate says after each of its rounds."""
    return [table.evaluate(scores, spec) for scores in of.staged(whole(of, spec), table, ROUNDS)]


def worst(reading):
    return min((value for name, value in reading.items() if name.startswith("margin/")), default=0.0)


def wanted(readings, tolerance=0.0, metric="ndcg@10", sign=1):
    """The best round by hand, counted from 1: of the feasible ones by the metric, else by the least margin.

    Feasible ones before the first one that is not count only where there are no others.
    """
    feasible = [k for k, reading in enumerate(readings) if worst(reading) >= -tolerance]
    broken = [k for k in range(len(readings)) if k not in feasible]
    late = [k for k in feasible if not broken or k > broken[0]]
    if feasible:
        return 1 + max(late or feasible, key=lambda k: sign * readings[k][metric])
    return 1 + max(range(len(readings)), key=lambda k: worst(readings[k]))


def trained(of, spec, valid=(), rounds=ROUNDS, patience=ROUNDS, init_model=None, **options):
    """A training with early stopping: the callback, the model, the objective, the training data."""
    objective, data = lo.Objective(spec), of.data()
    stop = of.stop(objective, patience, **options)
    model = of.fit(objective, data, rounds, valid, callbacks=[stop], init_model=init_model)
    return stop, model, objective, data


# --------------------------------------------------------------------------------------------------- which round it is


@no_round
@both_boosters
@every_spec
@pytest.mark.parametrize("watched", [TRAIN, SMALL], ids=["training data", "validation set"])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_the_best_round_that_keeps_to_every_bound(of, spec, watched, tolerance):
    valid = [] if watched is TRAIN else [of.data(watched)]
    readings = evaluated(of, spec, watched)
    stop, model, objective, data = trained(of, spec, valid, tolerance=tolerance)
    trees = wanted(readings, tolerance)
    assert stop.best.trees == trees
    assert stop.best.value == pytest.approx(readings[trees - 1]["ndcg@10"], rel=1e-5)
    margins = {name: value for name, value in readings[trees - 1].items() if name.startswith("margin/")}
    assert {f"margin/{name}": value for name, value in stop.best.margins.items()} == pytest.approx(margins, abs=1e-4)
    # the model is cut there
    assert of.size(model) == trees
    np.testing.assert_array_equal(of.predict(model, TEST), of.predict(whole(of, spec), TEST, trees))
    # the history says the same as evaluate: of the training data from before the first tree, and after the last one too
    for table, history in [(TRAIN, objective.history(data)), *[(watched, objective.history(d)) for d in valid]]:
        rows = evaluated(of, spec, table)
        for name in rows[0]:
            found = history[name] if table is not TRAIN else [*history[name][1:], rows[-1][name]][:ROUNDS]
            np.testing.assert_allclose(found, [row[name] for row in rows], rtol=2e-4, atol=1e-5, err_msg=name)
        if table is TRAIN:
            assert len(history["ndcg@10"]) == ROUNDS + (not valid)


@both_boosters
@pytest.mark.parametrize(
    ("metric", "sign"), [("quality.ndcg@10", 1), ("cost/quality.ndcg@10", -1), ("cost/ndcg@10", -1)]
)
def test_another_metric_in_its_own_direction(of, metric, sign):
    spec = SPECS["carry"]
    readings = evaluated(of, spec, TRAIN)
    stop, model, _, _ = trained(of, spec, metric=metric)
    assert stop.best.trees == of.size(model) == wanted(readings, 0.0, metric, sign)
    assert stop.best.value == pytest.approx(sign * readings[stop.best.trees - 1][metric], rel=1e-5)


@both_boosters
@pytest.mark.parametrize("chosen", [0, 1, "train"])
def test_which_data_set_is_watched(of, chosen):
    spec, tables = SPECS["carry"], [SMALL, OTHER]
    objective, data, valid = lo.Objective(spec), of.data(), [of.data(table) for table in tables]
    stop = of.stop(objective, ROUNDS, data=data if chosen == "train" else valid[chosen])
    of.fit(objective, data, valid=valid, callbacks=[stop])
    table = TRAIN if chosen == "train" else tables[chosen]
    assert stop.best.trees == wanted(evaluated(of, spec, table))
    rounds = [wanted(evaluated(of, spec, t)) for t in (*tables, TRAIN)]
    assert len(set(rounds)) > 1


@both_boosters
@pytest.mark.parametrize("patience", [1, 3, 6])
def test_of_a_ranking_alone_it_is_the_own_early_stopping(of, patience):
    """The same metric on the same validation set: same round, and stopped at the same time."""
    stop, model, objective, data = trained(of, RANK, [of.data(SMALL)], 60, patience)
    assert 0 < stop.best.trees < 60 - patience
    own, train = lo.Objective(RANK), of.data()
    if of is LightGBM:
        callback = lgb.early_stopping(patience, first_metric_only=True, verbose=False)
    else:
        callback = xgb.callback.EarlyStopping(rounds=patience, metric_name="ndcg@10", maximize=True, save_best=True)
    theirs = of.fit(own, train, 60, [of.data(SMALL)], callbacks=[callback])
    assert of.text(model) == of.text(theirs)
    assert model.best_iteration == theirs.best_iteration
    assert own.history(train) == objective.history(data)
    if of is XGBoost:
        assert model.best_score == pytest.approx(theirs.best_score)
    else:
        assert model.best_score["valid_0"]["ndcg@10"] == theirs.best_score["valid_0"]["ndcg@10"]


@both_boosters
def test_of_a_ranking_alone_on_training_data(of):
    """A metric that falls from the first round on: stopped after so many rounds."""
    spec = lo.WeightedSum([RANK, QUALITY], [1.0, 0.0])
    readings = evaluated(of, spec, TRAIN)
    best = min(range(ROUNDS), key=lambda k: readings[k]["cost/quality.ndcg@10"]) + 1
    stop, _, objective, data = trained(of, spec, patience=5, metric="cost/quality.ndcg@10")
    assert stop.best.trees == best
    assert len(objective.history(data)["ndcg@10"]) in (best + 6, best + 7)  # known a round later


@both_boosters
@pytest.mark.parametrize(
    ("options", "settled"),
    [
        ({"update": "carry", "start": 12}, 12),
        ({"update": "reset", "start": 9}, 9),
        ({"update": "auto", "rounds": 20, "land": 0.5}, 10),
        ({"update": "auto", "start": 2, "land": 14}, 14),
    ],
)
@pytest.mark.parametrize("watched", [TRAIN, SMALL], ids=["training data", "validation set"])
def test_waiting_begins_when_all_is_asked_for(of, options, settled, watched):
    """Quality falls from the first round on, and the bound is never broken."""
    spec, valid = constrained(lo.Constraint(QUALITY, at_most=99.0), **options), []
    if watched is SMALL:
        valid = [of.data(SMALL)]
    stop, _, objective, data = trained(of, spec, valid, 40, 4, metric="cost/quality.ndcg@10")
    assert stop.best.trees < 6
    rounds = len(objective.history(data)["multiplier/quality.ndcg@10"])
    assert settled + 4 <= rounds <= settled + 6


@both_boosters
def test_good_for_one_training_after_the_other(of):
    spec = SPECS["carry"]
    objective = lo.Objective(spec)
    stop = of.stop(objective, ROUNDS)
    for table in (TRAIN, TEST, TRAIN):
        model = of.fit(objective, of.data(table), callbacks=[stop])
        fresh = lo.Objective(spec)
        alone = of.stop(fresh, ROUNDS)
        assert of.text(of.fit(fresh, of.data(table), callbacks=[alone])) == of.text(model)
        assert alone.best.trees == stop.best.trees
        assert alone.best.margins == stop.best.margins


@no_round
@both_boosters
def test_going_on_counts_its_own_trees(of):
    spec = SPECS["carry"]
    first, data = lo.Objective(spec), of.data()
    begun = of.fit(first, data, 5)
    readings = evaluated(of, spec, TRAIN)[5:]
    second = lo.Objective(spec, state=first.state(data))
    stop = of.stop(second, ROUNDS)
    model = of.fit(second, of.data(), ROUNDS - 5, callbacks=[stop], init_model=begun)
    assert stop.best.trees == wanted(readings)
    assert of.size(model) == 5 + stop.best.trees
    assert model.best_iteration == 5 + stop.best.trees - (of is XGBoost)
    np.testing.assert_array_equal(of.predict(model, TEST), of.predict(whole(of, spec), TEST, of.size(model)))


def test_a_booster_of_lightgbm_that_is_kept_predicts_by_the_best_round():
    spec = SPECS["carry"]
    objective = lo.Objective(spec)
    stop = lo.lightgbm.early_stopping(objective, ROUNDS, metric="quality.ndcg@10")
    model = LightGBM.fit(objective, LightGBM.data(), callbacks=[stop], keep_training_booster=True)
    assert model.best_iteration == stop.best.trees < model.num_trees() == ROUNDS
    np.testing.assert_array_equal(model.predict(TEST.X), model.predict(TEST.X, num_iteration=stop.best.trees))


def test_lightgbm_evaluating_the_training_data():
    """An entry of the history a round, and what is watched is the training data still."""
    spec = SPECS["carry"]
    stop, model, objective, data = trained(LightGBM, spec, metric="quality.ndcg@10")
    second, train = lo.Objective(spec), LightGBM.data()
    again = lo.lightgbm.early_stopping(second, ROUNDS, metric="quality.ndcg@10")
    twin = LightGBM.fit(second, train, valid=[train], callbacks=[again])
    assert LightGBM.text(twin) == LightGBM.text(model)
    assert again.best.trees == stop.best.trees
    assert second.history(train) == objective.history(data)
    assert stop.best.trees < ROUNDS
    assert twin.best_score["training"]["quality.ndcg@10"] == pytest.approx(stop.best.value)  # of that round


# -------------------------------------------------------------------------------------------------- cross-validation


@no_round
@pytest.mark.parametrize("name", ["carry", "two", "never", "alone"])
@pytest.mark.parametrize("patience", [4, ROUNDS])
def test_cv_of_lightgbm(name, patience):
    """Means over the folds decide."""
    spec, data = SPECS[name], LightGBM.data()
    objective, folds = lo.Objective(spec), list(GroupKFold(3).split(TRAIN.X, groups=TRAIN.qid))
    stop = lo.lightgbm.early_stopping(objective, patience)

    def cv(**more):
        return lgb.cv({**LGB, "objective": objective}, data, ROUNDS, folds=folds, feval=objective.metrics,
                      return_cvbooster=True, **more)  # fmt: skip

    whole, found = cv(), cv(callbacks=[stop])
    best = mean_best(lambda key: whole[f"valid {key}-mean"], [k[6:-5] for k in whole if k.endswith("-mean")], patience)
    assert stop.best.trees == best
    assert found["cvbooster"].best_iteration == best
    for key in (key for key in whole if key != "cvbooster"):
        assert found[key] == whole[key][:best]


def mean_best(means, names, patience):
    """The best round of a cross-validation, by hand; it ends so many rounds after it."""
    best = 0
    rows = [{name: means(name)[k] for name in names} for k in range(ROUNDS)]
    for k in range(ROUNDS):
        best = wanted(rows[: k + 1])
        if k + 1 - best >= patience:
            break
    return best


class Folds(TrainingCallback):
    def before_training(self, model):
        self.folds = model.cvfolds
        return model


@no_round
@pytest.mark.parametrize("name", ["carry", "two", "never", "alone"])
@pytest.mark.parametrize("patience", [4, ROUNDS])
def test_cv_of_xgboost(name, patience):
    spec, keep = SPECS[name], Folds()
    objective = lo.Objective(spec)
    stop = lo.xgboost.EarlyStopping(objective, patience)

    def cv(*callbacks):
        return xgb.cv(XGB, XGBoost.data(), ROUNDS, nfold=3, obj=objective, custom_metric=objective.metrics,
                      callbacks=[keep, *callbacks], as_pandas=False)  # fmt: skip

    cv()
    histories = [objective.history(fold.dtest) for fold in keep.folds]
    best = mean_best(lambda name: np.mean([h[name] for h in histories], axis=0), list(histories[0]), patience)
    found = cv(stop)
    assert stop.best.trees == best
    if patience < ROUNDS - best:  # else nothing was cut: stop.best says where
        assert len(found["test-ndcg@10-mean"]) == best
    assert keep.folds[0].bst.attr("best_iteration") in (str(best - 1), None)


@no_round
@both_boosters
def test_cv_without_metrics_watches_the_training_folds(of):
    spec = SPECS["carry"]
    objective = lo.Objective(spec)
    stop = of.stop(objective, ROUNDS)
    if of is LightGBM:
        folds = list(GroupKFold(3).split(TRAIN.X, groups=TRAIN.qid))
        with pytest.raises(ValueError, match=r"early stopping: the data set to watch is not evaluated .* feval="):
            lgb.cv({**LGB, "objective": objective}, of.data(), ROUNDS, folds=folds, callbacks=[stop])
    else:
        with pytest.raises(
            ValueError, match=r"early stopping: the data set to watch is not evaluated .* custom_metric="
        ):
            xgb.cv(XGB, of.data(), ROUNDS, nfold=3, obj=objective, callbacks=[stop])


# ---------------------------------------------------------------------------------- bounds that are slack, or too tight


@both_boosters
@pytest.mark.parametrize("update", ["carry", "reset", "auto"])
@pytest.mark.parametrize("stopping", [False, True])
def test_slack_bounds_leave_the_unconstrained_model_bit_for_bit(of, update, stopping):
    spec = constrained(
        lo.Constraint(QUALITY, at_most=50.0), lo.Constraint(RANK, at_least=0.1, name="floor"), update=update
    )
    alone, objective = lo.Objective(RANK), lo.Objective(spec)
    callbacks = [[of.stop(o, 5)] if stopping else None for o in (alone, objective)]
    models = [
        of.fit(o, of.data(), 20, [of.data(SMALL)], callbacks=c)
        for o, c in zip((alone, objective), callbacks, strict=True)
    ]
    if not stopping or update == "carry":  # "auto" does not stop before its constraints are asked for in full
        assert of.size(models[0]) == of.size(models[1])
    trees = min(map(of.size, models))
    np.testing.assert_array_equal(*(of.predict(model, TEST, trees) for model in models))
    assert set(objective.history()["multiplier/floor"]) == {0.0}


TIGHT = constrained(
    lo.Constraint(QUALITY, at_most=0.01), lo.Constraint(RANK, at_least=0.99, name="floor"), update="auto"
)


@both_boosters
@pytest.mark.parametrize("update", ["carry", "auto"])
@pytest.mark.parametrize(
    "watched", [TRAIN, SMALL, None], ids=["training data", "validation set", "without the callback"]
)
def test_bounds_that_cannot_be_met_are_told_and_leave_scores_bounded(of, update, watched):
    spec = constrained(*TIGHT.constraints, update=update)
    objective, data = lo.Objective(spec), of.data()
    callbacks = [of.stop(objective, 80)] if watched else None
    valid = [of.data(SMALL)] if watched is SMALL else []
    with pytest.warns(lo.LambdaObjectivesWarning) as caught:
        model = of.fit(objective, data, 80, valid, callbacks=callbacks)
    (message,) = [str(w.message) for w in caught]
    begin = {
        TRAIN: "no round keeps to every bound on the training data: returned is round ",
        SMALL: "no round keeps to every bound on the validation data: returned is round ",
        None: "no late round keeps to every bound on the training data. ",
    }[watched]
    assert message.startswith(begin)
    margins = callbacks[0].best.margins if watched else {
        name: objective.history(data)[f"margin/{name}"][-1] for name in ("quality.ndcg@10", "floor")
    }  # fmt: skip
    assert message.count("over its bound by") + message.count("to spare") == 2
    for name, margin in margins.items():
        state = f"over its bound by {-margin:.2%}" if margin < 0 else f"kept, with {margin:.2%} to spare"
        assert f"{name}: {state} (met in " in message
    assert message.endswith("(start= and land= of the AugmentedLagrangian)")
    if watched:
        assert f"returned is round {callbacks[0].best.trees}, which breaks them the least" in message
    assert np.abs(of.predict(model, TRAIN)).max() < 100
    assert all(np.isfinite(values).all() for values in objective.history(data).values())


@both_boosters
def test_bounds_met_in_turn_are_told_apart(of):
    """Each of two bounds is met at times, both at once never."""
    spec = constrained(
        lo.Constraint(QUALITY, at_most=1.2), lo.Constraint(RANK, at_most=1.2, name="own"), update="reset", mu=30.0
    )
    objective = lo.Objective(spec)
    with pytest.warns(lo.LambdaObjectivesWarning, match=r"own: .*\(met in .* of the last \d+ rounds\)"):
        of.fit(objective, of.data(), 40, callbacks=[of.stop(objective, 40)])


@both_boosters
def test_a_relative_bound_whose_round_never_came(of):
    spec = constrained(lo.Constraint(QUALITY, at_most=0.9, relative=True), start=30)
    objective = lo.Objective(spec)
    with pytest.warns(lo.LambdaObjectivesWarning, match="quality.ndcg@10") as caught:
        of.fit(objective, of.data(), 10, callbacks=[of.stop(objective, 10)])
    assert "nan" not in str(caught[0].message)


@both_boosters
def test_bounds_that_are_met_say_nothing(of):
    objective = lo.Objective(SPECS["loose"])
    of.fit(objective, of.data())
    of.fit(objective, of.data(), callbacks=[of.stop(objective, ROUNDS)])


# --------------------------------------------------------------------------------------------------------------- errors


@both_boosters
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rounds": 0}, ValueError, "rounds must be a whole number from 1, found 0"),
        ({"rounds": 2.5}, ValueError, "rounds must be a whole number from 1, found 2.5"),
        ({"tolerance": -0.1}, ValueError, "tolerance must not be negative, found -0.1"),
        ({"tolerance": np.nan}, ValueError, "tolerance must be a finite number"),
        ({"objective": RANK}, TypeError, r"objective must be the Objective that is trained, found LambdaRank\("),
        ({"objective": None}, TypeError, "objective must be the Objective that is trained, found None"),
    ],
)
def test_wrong_options_are_refused(of, options, error, words):
    with pytest.raises(error, match=words):
        of.stop(**{"objective": lo.Objective(RANK), "rounds": 5, **options})


@both_boosters
@pytest.mark.parametrize("trained_before", [False, True])
def test_another_objective_is_refused(of, trained_before):
    objective, other = lo.Objective(RANK), lo.Objective(RANK)
    if trained_before:
        of.fit(other, of.data(), 2)
    with pytest.raises(ValueError, match="objective: early stopping must be given the very Objective that is trained"):
        of.fit(objective, of.data(), 4, callbacks=[of.stop(other, 2)])


@both_boosters
@pytest.mark.parametrize("valid", [False, True])
def test_unknown_metrics_are_refused(of, valid):
    objective = lo.Objective(SPECS["carry"])
    sets = [of.data(SMALL)] if valid else []
    words = r"metric='ndcg@5' is not among what is evaluated: cost/ndcg@10, ndcg@10, cost/quality.ndcg@10, quality.nd"
    with pytest.raises(ValueError, match=words):
        of.fit(objective, of.data(), 4, sets, callbacks=[of.stop(objective, 2, metric="ndcg@5")])


@both_boosters
def test_validation_sets_that_are_not_evaluated_are_refused(of):
    words = r"early stopping: the data set to watch is not evaluated by this objective.*feval=.*custom_metric="
    objective = lo.Objective(RANK)
    with pytest.raises(ValueError, match=words):
        of.fit(objective, of.data(), 4, [of.data(SMALL)], feval=False, callbacks=[of.stop(objective, 2)])
    for sets in ([], [of.data(SMALL)]):
        stop = of.stop(objective, 2, data=of.data(OTHER))
        with pytest.raises(ValueError, match=words):
            of.fit(objective, of.data(), 4, sets, callbacks=[stop])


@both_boosters
def test_following_a_validation_set_that_is_not_there_is_refused(of):
    spec = constrained(lo.Constraint(QUALITY, at_most=1.0), follow="valid")
    with pytest.raises(ValueError, match=r"follow='valid': no data set besides the training data is evaluated.*feval="):
        of.fit(lo.Objective(spec), of.data(), 4)


@both_boosters
@pytest.mark.filterwarnings("ignore:boost(ing|er)='dart':lambda_objectives.LambdaObjectivesWarning")
@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")
def test_dropout_is_refused(of):
    params = {"boosting": "dart"} if of is LightGBM else {"booster": "dart", "rate_drop": 0.5}
    objective = lo.Objective(RANK)
    with pytest.raises(ValueError, match=r"arly.?[sS]topping: with .*no earlier round is to be had, its trees change"):
        of.fit(objective, of.data(), 4, params=params, callbacks=[of.stop(objective, 2)])


def test_shares_of_rounds_are_refused_where_early_stopping_may_end_before():
    spec = constrained(lo.Constraint(QUALITY, at_most=50.0), update="auto", start=0.5)
    objective = lo.Objective(spec)
    with pytest.raises(ValueError, match=r"start=0.5 is a share of the rounds.*early stopping.*or rounds="):
        LightGBM.fit(objective, LightGBM.data(), 20, callbacks=[LightGBM.stop(objective, 5)])
    LightGBM.fit(objective, LightGBM.data(), 20, callbacks=[LightGBM.stop(objective, 20)])  # which only chooses


def test_early_rounds_keep_to_bounds_for_nothing():
    """A round before a bound was broken for the first time is returned only if there is no later one, and said so."""

    def chosen(margins, settled_at=None):
        choice = Choice(lo.Objective(RANK), 9, None, None, 0.0)
        choice.settled_at = settled_at
        for k, margin in enumerate(margins, 1):
            choice._consider(Candidate(k, 1.0 / k, 1.0 / k, {"m": margin}, None, []))
        return choice

    assert chosen([0.5, 0.2, -0.1, -0.1, 0.1, 0.2]).best.trees == 5
    assert chosen([0.5, 0.2, 0.1, -0.1, 0.1], settled_at=3).best.trees == 3  # where the rule had led it, not by chance
    assert chosen([0.5, 0.2, 0.1, -0.1, 0.1], settled_at=1).best.trees == 5  # of a rule that leads nowhere
    assert chosen([0.5, 0.2, 0.1]).best.trees == 1  # never broken
    assert chosen([-0.5, 0.2, -0.1, 0.1]).best.trees == 2  # broken at once
    early = chosen([0.5, 0.2, -0.1, -0.3, -0.04])
    assert early.best.trees == 1
    words = (
        "only early rounds keep to every bound, before .* in round 3.*Round 5 came within 4.0% of them: tolerance=0.04"
    )
    with pytest.warns(lo.LambdaObjectivesWarning, match=words):
        early.finish()


def test_coming_closer_to_a_bound_is_no_waiting():
    """After the round that broke it most, each that comes closer counts as progress, until a late one keeps to it."""
    choice = Choice(lo.Objective(RANK), 3, None, None, 0.0)
    margins = [0.5, -1.0, -2.0, -1.5, -1.2, -1.2, -0.4, -0.5, 0.1, 0.3, 0.2]
    progress = []
    for k, margin in enumerate(margins, 1):
        choice._consider(Candidate(k, 1.0 - 0.01 * k, 1.0 - 0.01 * k, {"m": margin}, None, []))
        progress.append(choice._progress)
    assert progress == [1, 1, 1, 4, 5, 5, 7, 7, 9, 9, 9]  # round 9 keeps to it, and is the best by the metric
    assert choice.best.trees == 9
    assert choice.deepest == -2.0


def test_estimators_of_lightgbm_stop_as_lightgbm_does():
    """Their data sets are found where they keep them: same rounds, same choice, a history of each."""
    found = []
    for estimator in (True, False):
        objective = lo.Objective(RANK)
        stop = lo.lightgbm.early_stopping(objective, 3)
        more = {"min_child_samples": 5, "verbosity": -1, "n_jobs": 1, "metric": "None"}
        if estimator:
            model = lgb.LGBMRanker(objective=objective, n_estimators=60, **more).fit(
                TRAIN.X, TRAIN.y, group=TRAIN.group, eval_X=TEST.X, eval_y=TEST.y, eval_group=[TEST.group],
                eval_metric=objective.metrics, callbacks=[stop],
            ).booster_  # fmt: skip
        else:
            train = lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group)
            valid = train.create_valid(TEST.X, TEST.y, group=TEST.group)
            model = lgb.train(
                {"objective": objective, **more}, train, 60, valid_sets=[valid], feval=objective.metrics,
                callbacks=[stop],
            )  # fmt: skip
        found.append((model.best_iteration, stop.best.trees, stop.best.value, objective.history()))
    assert found[0] == found[1]
    assert 3 <= len(found[0][3]["ndcg@10"]) < 60
