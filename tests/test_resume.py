"""What a training has learnt: whose multipliers are whose, and going on from where a training ended."""

import copy
import dataclasses
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from xgboost.callback import TrainingCallback

import lambda_objectives as lo
from tests.data import TEST, TRAIN, Table

ROUNDS = 24
RANK, QUALITY = lo.LambdaRank(lo.NDCG(10)), lo.LambdaRank(lo.NDCG(10), label="quality")
NAME = "multiplier/quality.ndcg@10"
LGB = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 4, "metric": "None"}
XGB = {"nthread": 1, "min_child_weight": 1e-3, "max_depth": 2, "eta": 0.1}

SMALL = Table.random(8, seed=9)
# no round of these keeps to the bounds early, and most move their multipliers all the time
RULES = {
    "carry": lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=0.9)], update="carry", mu=2.0),
    "reset": lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=0.9)], update="reset", mu=5.0),
    "auto": lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=2.5)], rounds=ROUNDS),
    "growing": lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=0.9)], update="carry", growth=1.05),
    "sum": lo.AugmentedLagrangian(
        RANK, [lo.Constraint(QUALITY, at_most=80.0)], update="carry", scale="sum", mu=0.02
    ),
    "relative": lo.AugmentedLagrangian(
        RANK,
        [
            lo.Constraint(QUALITY, at_most=0.8, relative=True),
            lo.Constraint(QUALITY, name="more", at_least=1.05, relative=True),
        ],
        rounds=ROUNDS,
    ),
    "at least": lo.AugmentedLagrangian(
        RANK, [lo.Constraint(QUALITY, at_least=0.65)], update="carry", mu=1.0
    ),
    "two": lo.AugmentedLagrangian(
        RANK,
        [lo.Constraint(QUALITY, at_most=0.9), lo.Constraint(lo.SquaredError("place"), at_most=0.3)],
        update="carry",
        mu=[2.0, 0.3],
    ),
}  # fmt: skip
every_rule = pytest.mark.parametrize("spec", RULES.values(), ids=RULES)
pytestmark = pytest.mark.filterwarnings(
    r"ignore:(no (late )?round|only early rounds):lambda_objectives.LambdaObjectivesWarning"
)


def lightgbm_set(table=TRAIN, **more):
    return lo.attach(lgb.Dataset(table.X, table.y, group=table.group, free_raw_data=False, **more), table.columns)


def lightgbm_fit(objective, data, rounds=ROUNDS, valid=None, model=None, **more):
    if valid is not None:
        more |= {"valid_sets": [valid], "feval": objective.metrics}
    return lgb.train({**LGB, "objective": objective}, data, rounds, init_model=model, **more)


def xgboost_set(table=TRAIN):
    return lo.attach(xgb.DMatrix(table.X, table.y, qid=table.qid), table.columns)


def xgboost_fit(objective, data, rounds=ROUNDS, valid=None, model=None, **more):
    if valid is not None:
        more |= {"evals": [(valid, "valid")], "custom_metric": objective.metrics, "verbose_eval": False}
    return xgb.train(XGB, data, rounds, obj=objective, xgb_model=model, **more)


def trees(model):
    """Every tree of a model, as text."""
    if isinstance(model, xgb.Booster):
        return model.get_dump(with_stats=False)
    parts = model.model_to_string().split("\nTree=")[1:]
    return [part.split("\n\n")[0].partition("\n")[2] for part in parts]


LIGHTGBM, XGBOOST = (lightgbm_set, lightgbm_fit), (xgboost_set, xgboost_fit)
both_boosters = pytest.mark.parametrize(("make", "fit"), [LIGHTGBM, XGBOOST], ids=["lightgbm", "xgboost"])


def same(one, other):
    """Whether two histories or states are equal, where a number is missing as well."""
    return json.dumps(one) == json.dumps(other)


def moves(history):
    """Whether multipliers really did something."""
    return len({alpha for name, values in history.items() if name.startswith("multiplier/") for alpha in values}) > 3


# ------------------------------------------------------------------------- every training has multipliers of its own


@both_boosters
@every_rule
def test_trainings_one_after_the_other(make, fit, spec):
    """With one objective: on other data, and on the same data again."""
    one, tables = lo.Objective(spec), (TRAIN, TEST, TRAIN)
    first = make(TRAIN)
    for table, data in zip(tables, (first, make(TEST), first), strict=True):
        model = fit(one, data)
        alone, fresh = lo.Objective(spec), make(table)
        assert trees(fit(alone, fresh)) == trees(model)
        assert same(alone.history(fresh), one.history(data))
        assert same(alone.state(fresh), one.state(data))
        assert moves(one.history(data))


@both_boosters
@pytest.mark.parametrize("shared", [False, True], ids=["an objective each", "one objective"])
@pytest.mark.parametrize("rule", ["carry", "auto", "relative"])
def test_trainings_at_once(make, fit, rule, shared):
    spec = RULES[rule]
    tables = [TRAIN, TEST]
    sets, one = [make(table) for table in tables], lo.Objective(spec)
    objectives = [one if shared else lo.Objective(spec) for _ in tables]
    with ThreadPoolExecutor(len(tables)) as pool:
        models = list(pool.map(fit, objectives, sets))
    for table, data, objective, model in zip(tables, sets, objectives, models, strict=True):
        alone, fresh = lo.Objective(spec), make(table)
        assert trees(fit(alone, fresh)) == trees(model)
        assert same(alone.history(fresh), objective.history(data))


@both_boosters
def test_trainings_in_turn(make, fit):
    """Two boosters that take a round each."""
    spec = RULES["carry"]
    one, data = lo.Objective(spec), [make(TRAIN), make(TEST)]
    if make is xgboost_set:
        boosters = [xgb.Booster(XGB, [d]) for d in data]
        for i in range(8):
            for booster, d in zip(boosters, data, strict=True):
                booster.update(d, i, fobj=one)
    else:
        boosters = [lgb.Booster({**LGB, "objective": "none"}, d) for d in data]
        for _ in range(8):
            for booster in boosters:
                booster.update(fobj=one)
    for table, d in zip((TRAIN, TEST), data, strict=True):
        alone, fresh = lo.Objective(spec), make(table)
        fit(alone, fresh, 8)
        assert alone.history(fresh) == one.history(d)


@pytest.mark.parametrize("rule", ["carry", "auto", "relative"])
def test_folds_of_lightgbm(rule):
    spec, data = RULES[rule], lightgbm_set()
    objective = lo.Objective(spec)
    folds = list(GroupKFold(5).split(TRAIN.X, groups=TRAIN.qid))
    result = lgb.cv(
        {**LGB, "objective": objective}, data, ROUNDS, folds=folds, feval=objective.metrics, return_cvbooster=True
    )
    multipliers = []
    for booster, (rows, _) in zip(result["cvbooster"].boosters, folds, strict=True):
        history = objective.history(booster.train_set)
        alone, part = lo.Objective(spec), lightgbm_set().construct().subset(sorted(rows))
        model = fit_part(alone, part)
        assert same(alone.history(part), history)
        assert trees(model) == trees(booster)
        assert moves(history)
        multipliers.append(tuple(history[NAME]))
    assert len(set(multipliers)) == 5


def fit_part(objective, part):
    return lgb.train({**LGB, "objective": objective}, part, ROUNDS, keep_training_booster=True)


class Folds(TrainingCallback):
    """Keeps the folds of a cross-validation."""

    def before_training(self, model):
        self.folds = model.cvfolds
        return model


def part_of(fold_data):
    """The rows of a fold, recognised by the last feature."""
    place = fold_data.get_data().toarray()[:, 4]
    return TRAIN.part(np.round(place * len(TRAIN) - 0.5).astype(int))


@pytest.mark.parametrize("rule", ["carry", "auto", "relative"])
def test_folds_of_xgboost(rule):
    spec, data, keep = RULES[rule], xgboost_set(), Folds()
    objective = lo.Objective(spec)
    xgb.cv(XGB, data, ROUNDS, nfold=5, obj=objective, custom_metric=objective.metrics, callbacks=[keep])
    multipliers = []
    for fold in keep.folds:
        alone, fresh = lo.Objective(spec), xgboost_set(part_of(fold.dtrain))
        assert trees(xgboost_fit(alone, fresh)) == trees(fold.bst)
        assert same(alone.history(fresh), objective.history(fold.dtrain))
        assert moves(objective.history(fold.dtrain))
        multipliers.append(tuple(objective.history(fold.dtrain)[NAME]))
    assert len(keep.folds) == len(set(multipliers)) == 5


@both_boosters
@pytest.mark.parametrize("evaluated", ["valid", "train and valid", "valid and another"])
def test_multipliers_of_a_validation_set(make, fit, evaluated):
    """They follow its costs after the last tree: of the first one evaluated besides the training data."""
    objective, data, valid = lo.Objective(dataclasses.replace(RULES["carry"], follow="valid")), make(), make(TEST)
    sets = {"valid": [valid], "train and valid": [data, valid], "valid and another": [valid, make(SMALL)]}[evaluated]
    if make is xgboost_set:
        more = {"evals": [(d, str(i)) for i, d in enumerate(sets)], "custom_metric": objective.metrics}
        more["verbose_eval"] = False
    else:
        more = {"valid_sets": sets, "feval": objective.metrics}
    fit(objective, data, **more)
    alpha, margins = 0.0, objective.history(valid)["margin/quality.ndcg@10"]
    for k, found in enumerate(objective.history(data)[NAME]):
        alpha = max(0.0, alpha - 2.0 * margins[k - 1]) if k else 0.0
        assert found == pytest.approx(alpha, rel=1e-9)
    assert moves(objective.history(data))


@both_boosters
@pytest.mark.parametrize("rule", ["reset", "auto", "relative"])
def test_copies(make, fit, rule):
    spec = RULES[rule]
    objective, data = lo.Objective(spec), make()
    wanted = trees(fit(objective, data))
    kept = objective.history(data)
    assert copy.deepcopy({"objective": objective})["objective"] is objective
    for again in (clone(objective), pickle.loads(pickle.dumps(objective))):
        with pytest.raises(KeyError):
            again.history()
        fresh = make()
        assert trees(fit(again, fresh)) == wanted
        assert same(again.history(fresh), kept)
        assert same(objective.history(data), kept)


def test_ranker_and_its_clone():
    spec = RULES["carry"]
    model = lgb.LGBMRanker(objective=lo.Objective(lo.AugmentedLagrangian(
        RANK, [lo.Constraint(lo.LambdaRank(lo.MAP()), at_most=0.1)], update="carry")), n_estimators=8, n_jobs=1,
        num_leaves=4, min_child_samples=5, verbosity=-1)  # fmt: skip
    model.fit(TRAIN.X, TRAIN.y, group=TRAIN.group)
    twin = clone(model).fit(TRAIN.X, TRAIN.y, group=TRAIN.group)
    assert twin.objective is not model.objective
    np.testing.assert_array_equal(twin.predict(TEST.X), model.predict(TEST.X))
    assert twin.objective.history() == model.objective.history()
    assert moves(model.objective.history())
    with pytest.raises(ValueError, match=r"label='quality'.*no such column"):  # estimators have no columns
        lgb.LGBMRanker(objective=lo.Objective(spec), n_estimators=2, verbosity=-1).fit(
            TRAIN.X, TRAIN.y, group=TRAIN.group
        )


# ------------------------------------------------------------------------------------------------------------- going on


def assert_goes_on(make, fit, spec, half=ROUNDS // 2, valid=False):
    """Two trainings with the state between them as JSON are one: trees, multipliers, margins, costs."""
    whole, data, watched = lo.Objective(spec), make(), make(TEST) if valid else None
    wanted = fit(whole, data, valid=watched)
    first, begun, watched = lo.Objective(spec), make(), make(TEST) if valid else None
    model = fit(first, begun, half, valid=watched)
    state = json.loads(json.dumps(first.state(begun)))
    second, ended = lo.Objective(spec, state=state), make()
    model = fit(second, ended, ROUNDS - half, model=model, valid=make(TEST) if valid else None)
    assert trees(model) == trees(wanted)
    both = {name: values + second.history(ended)[name] for name, values in first.history(begun).items()}
    for name, values in whole.history(data).items():
        np.testing.assert_allclose(both[name], values, rtol=1e-12, atol=1e-12, err_msg=name)
    assert second.state(ended)["rounds"] == ROUNDS
    assert moves(whole.history(data))
    return state, model


@both_boosters
@every_rule
def test_going_on_is_the_same_training(make, fit, spec):
    assert_goes_on(make, fit, spec)


@both_boosters
@pytest.mark.parametrize("rule", ["carry", "sum", "auto", "relative"])
def test_going_on_after_the_first_tree(make, fit, rule):
    assert_goes_on(make, fit, RULES[rule], 1)


@both_boosters
@pytest.mark.parametrize("rule", ["carry", "reset", "auto"])
def test_going_on_by_a_validation_set(make, fit, rule):
    assert_goes_on(make, fit, dataclasses.replace(RULES[rule], follow="valid"), valid=True)


@both_boosters
def test_going_on_twice(make, fit):
    spec = RULES["carry"]
    wanted = trees(fit(lo.Objective(spec), make()))
    model, state = None, None
    for rounds in (5, 8, ROUNDS - 13):
        objective, data = lo.Objective(spec, state=state), make()
        model = fit(objective, data, rounds, model=model)
        state = json.loads(json.dumps(objective.state(data)))
    assert trees(model) == wanted


KEPT = ["carry", "reset", "auto", "relative"]


@pytest.mark.parametrize(("rule", "follow"), [(rule, "train") for rule in KEPT] + [(rule, "valid") for rule in KEPT])
def test_xgboost_keeps_the_state_in_the_model(rule, follow, tmp_path):
    spec = dataclasses.replace(RULES[rule], follow=follow)

    def going_on(objective, rounds, model=None):
        data, valid = xgboost_set(), xgboost_set(TEST) if follow == "valid" else None
        return xgboost_fit(objective, data, rounds, valid=valid, model=model)

    wanted = going_on(lo.Objective(spec), ROUNDS)
    objective, path = lo.Objective(spec), tmp_path / ("model.json" if rule == "carry" else "model.ubj")
    going_on(objective, 15).save_model(path)
    loaded = xgb.Booster(model_file=path)
    state = lo.xgboost.saved_state(loaded)
    assert same(state, objective.state())
    assert trees(going_on(lo.Objective(spec, state=state), ROUNDS - 15, loaded)) == trees(wanted)


def test_models_without_a_state_say_so():
    model = xgboost_fit(lo.Objective(RANK), xgboost_set(), 2)
    with pytest.raises(ValueError, match="booster has no saved state"):
        lo.xgboost.saved_state(model)


CUT = {  # best in other rounds than the last
    "carry": dataclasses.replace(RULES["carry"], constraints=[lo.Constraint(QUALITY, at_most=1.6)]),
    "reset": dataclasses.replace(RULES["reset"], constraints=[lo.Constraint(QUALITY, at_most=1.6)]),
    "auto": dataclasses.replace(RULES["auto"], start=0.2, land=0.4),
    "relative": dataclasses.replace(RULES["relative"], start=0.2, land=0.4),
}


@both_boosters
@pytest.mark.parametrize("valid", [False, True], ids=["training data", "validation set"])
@pytest.mark.parametrize("rule", CUT)
def test_going_on_from_the_model_that_early_stopping_cut(make, fit, rule, valid):
    """The state is that of the round which was returned: what follows is what followed in the first training."""
    spec, longer = CUT[rule], ROUNDS + 6
    objective, data = lo.Objective(spec), make()
    kind = lo.lightgbm.early_stopping if make is lightgbm_set else lo.xgboost.EarlyStopping
    stop = kind(objective, ROUNDS, metric="quality.ndcg@10")
    cut = fit(objective, data, valid=make(SMALL) if valid else None, callbacks=[stop])
    kept = stop.best.trees
    assert len(trees(cut)) == kept
    if rule in ("carry", "reset") and (rule, valid) != ("reset", True):
        assert 1 < kept < ROUNDS
    state = json.loads(json.dumps(objective.state(data)))
    assert state["rounds"] == kept
    if make is xgboost_set:
        assert same(lo.xgboost.saved_state(cut), state)
    second, ended = lo.Objective(spec, state=state), make()
    model = fit(second, ended, longer - kept, model=cut, valid=make(SMALL) if valid else None)
    whole, data = lo.Objective(spec), make()
    assert trees(model) == trees(fit(whole, data, longer))
    assert same(second.history(ended)[NAME], whole.history(data)[NAME][kept:])


def test_a_state_of_another_spec_is_refused():
    objective, data = lo.Objective(RULES["carry"]), lightgbm_set()
    lightgbm_fit(objective, data, 2)
    with pytest.raises(ValueError, match=r"state belongs to another spec: saved from AugmentedLagrangian.*reset"):
        lo.Objective(RULES["reset"], state=objective.state(data))
