"""Decorrelated: the push and the penalty of every loss, several controls, groups, both boosters, what is refused."""

import json
import warnings

import numpy as np
import pytest

import lambda_objectives as lo
from tests.oracles import dcov2, standardised

RNG = np.random.default_rng(7)
N = 48
SCORES = np.round(0.7 * RNG.normal(size=N), 2)
AGE, RACE = 0.8 * SCORES + RNG.normal(size=N), RNG.integers(0, 4, N) * 1.0
SIZES = [12, 3, 17, 16]
WEIGHTS = RNG.choice([0.5, 1.0, 3.0], N)
COLUMNS = {"age": AGE, "race": RACE}
MEAN = np.exp(SCORES)
EXACT = {  # loss, labels, and seed 002's table in the unit of the loss's metric
    "mse": (lo.SquaredError(), RNG.normal(size=N), 1.0, lambda s: s),
    "logloss": (lo.LogLoss(), (RNG.random(N) < 0.5) * 1.0, 0.5, lambda s: 1 / (1 + np.exp(-s))),
    "poisson": (lo.Poisson(), RNG.poisson(1.5, N) * 1.0, 1.0, np.exp),
    # at labels that are the means themselves, the fit is calibrated in every row
    "gamma": (lo.Gamma(), MEAN, 1.0, lambda s: s),
    "tweedie@1.5": (lo.Tweedie(1.5), MEAN, 2.0, lambda s: np.exp(0.5 * s)),
    "tweedie@1.2": (lo.Tweedie(1.2), MEAN, 1.25, lambda s: np.exp(0.8 * s)),
}


def slope(function, at, i, step=1e-5):
    move = np.zeros_like(at)
    move.flat[i] = step
    return (function(at + move) - function(at - move)) / (2 * step)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", EXACT)
def test_the_table(name, weights):
    """The penalised metric is the metric plus the table's line, and its slopes are the gradient of training."""
    base, labels, factor, phi = EXACT[name]
    spec = lo.Decorrelated(base, ["age", "race"], 4.0, [1.0, 0.25])
    given = dict(weights=weights, columns=COLUMNS)
    found = lo.evaluate(spec, SCORES, labels, **given)
    dependence = {c: dcov2(phi(SCORES), standardised(values))[0] for c, values in COLUMNS.items()}
    for control, value in dependence.items():
        assert found[f"{control}.dcov2"] == pytest.approx(value, abs=1e-12)
    penalty = 4.0 * factor * (dependence["age"] + 0.25 * dependence["race"])
    assert found[f"penalised/{name}"] == pytest.approx(found[name] + penalty, abs=1e-11)

    total = N if weights is None else weights.sum()
    (plain, hess), (pushed, same) = (lo.gradient(s, SCORES, labels, **given) for s in (base, spec))
    np.testing.assert_array_equal(hess, same)
    each = dcov2(SCORES, standardised(AGE))[1] + 0.25 * dcov2(SCORES, standardised(RACE))[1]
    curvature = hess / (2 * (1.0 if weights is None else weights))
    np.testing.assert_allclose(pushed - plain, 4.0 * total * each * curvature, atol=1e-10)

    units = found[name] / found[f"cost/{name}"] if found[f"cost/{name}"] > 1e-9 else 2.0

    def penalty_at(s):  # labels that follow the scores would move the loss as well: the penalty's part alone
        sums = [dcov2(phi(s), standardised(values))[0] for values in COLUMNS.values()]
        return total * 4.0 * factor * (sums[0] + 0.25 * sums[1]) / units

    for i in (0, 11, 30):
        assert pushed[i] - plain[i] == pytest.approx(slope(penalty_at, SCORES, i), abs=1e-6)


def test_gaussian_is_pushed_in_its_location_only():
    scores = np.column_stack([SCORES, np.full(N, 0.4)])
    labels = RNG.normal(size=N)
    spec = lo.Decorrelated(lo.Gaussian(), "age", 3.0)
    given = dict(weights=WEIGHTS, columns=COLUMNS)
    found = lo.evaluate(spec, scores, labels, **given)
    value, _ = dcov2(SCORES, standardised(AGE))
    assert found["age.dcov2"] == pytest.approx(value, abs=1e-12)
    assert found["penalised/gaussian"] == pytest.approx(found["gaussian"] - 1.5 * np.exp(-0.8) * value, abs=1e-12)
    assert found["penalised/cost/gaussian"] == -found["penalised/gaussian"]
    plain, pushed = (lo.gradient(s, scores, labels, **given)[0] for s in (lo.Gaussian(), spec))
    np.testing.assert_array_equal(plain[:, 1], pushed[:, 1])
    total = WEIGHTS.sum()
    for i in (0, 7, 40):  # the deviation being constant, the table is exact
        want = slope(lambda s: total * 1.5 * np.exp(-0.8) * dcov2(s, standardised(AGE))[0], SCORES, i)
        assert pushed[i, 0] - plain[i, 0] == pytest.approx(want, abs=1e-6)
    # elsewhere the mean precision stands for that of each row
    scores[:, 1] = 0.3 * RNG.normal(size=N)
    found = lo.evaluate(spec, scores, labels, columns=COLUMNS)
    want = found["gaussian"] - 1.5 * np.exp(-2 * scores[:, 1]).mean() * value
    assert found["penalised/gaussian"] == pytest.approx(want, abs=1e-12)


def within(scores, control, weights, sizes=SIZES):
    """Mean dependence of the groups by the weight of their rows, and its slope times that of all rows."""
    value, grad, start = 0.0, np.zeros(len(scores)), 0
    for size in sizes:
        rows = slice(start, start + size)
        if size >= 4:
            one, g = dcov2(scores[rows], standardised(control[rows]))
            value += weights[rows].sum() * one
            grad[rows] = weights[rows].sum() * g
        start += size
    return value / weights.sum(), grad


@pytest.mark.parametrize("within_group", [True, "era"])
def test_pearson_within_groups(within_group):
    labels = RNG.normal(size=N)
    labels[15:32] = 3.0  # not scored: no curvature, no push, but its dependence counts in the penalty
    era = np.repeat(np.arange(4.0), SIZES)
    base = lo.Pearson(within_group=within_group)
    spec = lo.Decorrelated(base, "age", 2.0, within_group=within_group)
    given = dict(group=SIZES, weights=WEIGHTS, columns=COLUMNS | {"era": era})
    value, grad = within(SCORES, AGE, WEIGHTS)
    found = lo.evaluate(spec, SCORES, labels, **given)
    assert found["age.dcov2"] == pytest.approx(value, abs=1e-12)
    assert found["penalised/pearson_mse"] == pytest.approx(found["pearson_mse"] + 2.0 * value, abs=1e-12)
    assert "penalised/pearson" not in found
    plain, pushed = (lo.gradient(s, SCORES, labels, **given)[0] for s in (base, spec))
    grad[15:32] = 0.0
    np.testing.assert_allclose(pushed - plain, grad, atol=1e-11)


@pytest.mark.parametrize("within_group", [False, True])
@pytest.mark.parametrize("base", [lo.LambdaRank(lo.NDCG(5)), lo.QueryRMSE(), lo.YetiRank(lo.NDCG(5), draws=2)])
def test_rankings_have_one_curvature(base, within_group):
    labels = RNG.integers(0, 4, N) * 1.0
    spec = lo.Decorrelated(base, "age", 2.0, within_group=within_group)
    given = dict(group=SIZES, columns=COLUMNS)
    (plain, hess), (pushed, raised) = (lo.gradient(s, SCORES, labels, **given) for s in (base, spec))
    np.testing.assert_allclose(raised, np.maximum(hess, 0.3 * hess.mean()), rtol=1e-12)
    none = lo.gradient(lo.Decorrelated(base, "age", 0.0), SCORES, labels, **given)
    np.testing.assert_array_equal(none, [plain, hess])
    ones = np.ones(N)
    value, grad = within(SCORES, AGE, ones, SIZES if within_group else [N])
    np.testing.assert_allclose(pushed - plain, 2.0 * grad * hess.mean() / 2, atol=1e-12)
    found = lo.evaluate(spec, SCORES, labels, **given)
    mass = N if base == lo.QueryRMSE() and getattr(base, "over_rows", False) else len(SIZES)
    want = found[f"cost/{base.name}"] + 2.0 * hess.sum() / 2 / mass * value
    assert found[f"penalised/cost/{base.name}"] == pytest.approx(want, rel=1e-9)


def test_weight_0_is_the_base_and_rows_without_a_weight_are_not_pushed():
    base, labels, _, _ = EXACT["logloss"]
    given = dict(columns=COLUMNS)
    nothing = lo.gradient(lo.Decorrelated(base, "age", 0.0), SCORES, labels, **given)
    for a, b in zip(lo.gradient(base, SCORES, labels), nothing, strict=True):
        np.testing.assert_array_equal(a, b)
    weights = WEIGHTS * (np.arange(N) % 5 > 0)
    grad, hess = lo.gradient(lo.Decorrelated(base, "age", 5.0), SCORES, labels, weights=weights, **given)
    assert not grad[::5].any()
    assert not hess[::5].any()
    assert np.isfinite(grad).all()


def test_scaling_all_weights_scales_the_gradient():
    base, labels, _, _ = EXACT["poisson"]
    spec = lo.Decorrelated(base, ["age", "race"], 3.0)
    one, four = (lo.gradient(spec, SCORES, labels, weights=k * WEIGHTS, columns=COLUMNS) for k in (1.0, 4.0))
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(4.0 * a, b)  # powers of two are exact
    alike = [lo.evaluate(spec, SCORES, labels, weights=k * WEIGHTS, columns=COLUMNS) for k in (1.0, 4.0)]
    assert alike[0] == pytest.approx(alike[1], rel=1e-14)


def test_a_control_may_have_options_of_its_own():
    race = lo.DistanceCovariance("race", "label")
    spec = lo.Decorrelated(lo.LogLoss(), ["age", race], 2.0)
    labels = EXACT["logloss"][1]
    found = lo.evaluate(spec, SCORES, labels, columns=COLUMNS)
    assert "skipped/race.dcov2" in found
    p = 1 / (1 + np.exp(-SCORES))
    want = sum(
        (labels == y).mean() * dcov2(p[labels == y], standardised(RACE[labels == y]))[0] for y in (0.0, 1.0)
    )  # fmt: skip
    assert found["race.dcov2"] == pytest.approx(want, abs=1e-12)
    assert lo.Decorrelated(lo.LogLoss(), "age", 1) == lo.Decorrelated(lo.LogLoss(), ["age"], 1.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: lo.Decorrelated(lo.NDCG(3), "p", 1.0), "base must be a term"),
        (lambda: lo.Decorrelated(lo.DistanceCovariance("p"), "p", 1.0), "base must be a loss"),
        (lambda: lo.Decorrelated(lo.LogLoss(), [], 1.0), "controls must name at least one column"),
        (lambda: lo.Decorrelated(lo.LogLoss(), [None], 1.0), "controls must be names of columns, found None"),
        (lambda: lo.Decorrelated(lo.LogLoss(), 3, 1.0), "controls must be names of columns, found 3"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["a b"], 1.0), "controls must be a column's name"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["p", "p"], 1.0), "given twice"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["p"], -1.0), "weight must not be negative"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["p"], np.inf), "weight must be a finite number"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["p"], 1.0, [1, 2]), "control_weights: one for each control"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["p"], 1.0, [-1]), r"control_weights\[0\] must not be negative"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["p"], 1.0, 2.0), "control_weights must be one number for each"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["p"], 1.0, damp=1), "damp must be True or False"),
        (lambda: lo.Decorrelated(lo.Pearson(), ["p"], 1.0), "within_group: Pearson .* within_group=True"),
        (lambda: lo.Decorrelated(lo.LogLoss(), [lo.DistanceCovariance("p", link="log")], 1.0), "link: the loss"),
        (lambda: lo.Decorrelated(lo.LogLoss(), ["p"], 1.0, within_group=None), "within_group must be"),
    ],
)
def test_what_is_refused(wrong, words):
    with pytest.raises((TypeError, ValueError), match=words):
        wrong()


def train(booster, X, y, spec, rounds=60, *, offset=None, weights=None, rate=0.1, group=None, params=None, **columns):
    """History, predictions (offset included), and the objective, of a training by either booster."""
    pytest.importorskip(booster, minversion="4.0" if booster == "lightgbm" else None)
    objective = lo.Objective(spec)
    if booster == "lightgbm":
        import lightgbm as lgb

        data = lgb.Dataset(X, y, init_score=offset, weight=weights, group=group, free_raw_data=False)
        lo.attach(data, columns)
        settings = {"objective": objective, "num_leaves": 7, "learning_rate": rate, "verbosity": -1, "num_threads": 1}
        model = lgb.train(settings | (params or {}), data, rounds)
        return objective.history(data), model.predict(X) + (0 if offset is None else offset)
    import xgboost as xgb

    data = xgb.DMatrix(X, y, base_margin=offset, weight=weights)
    if group is not None:
        data.set_group(group)
    lo.attach(data, columns)
    settings = {"max_depth": 3, "eta": rate, "nthread": 1, "base_score": 0}
    model = xgb.train(settings | (params or {}), data, rounds, obj=objective)
    return objective.history(data), model.predict(data, output_margin=True)


def panel(n=900, seed=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signal = X[:, 0] + X[:, 1]  # the first is the control
    return X, signal, rng


LOSSES = [
    (lo.SquaredError(), lambda z, rng: z + 0.3 * rng.normal(size=len(z)), 5.0),
    (lo.LogLoss(), lambda z, rng: (rng.random(len(z)) < 1 / (1 + np.exp(-2 * z))) * 1.0, 5.0),
    (lo.Poisson(), lambda z, rng: rng.poisson(np.exp(0.5 * z)) * 1.0, 2.0),
    (lo.Gamma(), lambda z, rng: rng.gamma(3.0, np.exp(0.5 * z) / 3) + 1e-6, 3.0),
    (lo.Tweedie(), lambda z, rng: rng.poisson(np.exp(0.5 * z)) * rng.gamma(2.0, 0.5, len(z)), 2.0),
    (lo.Gaussian(), lambda z, rng: z + np.exp(0.3 * z) * rng.normal(size=len(z)), 5.0),
    (lo.Pearson(), lambda z, rng: z + 0.3 * rng.normal(size=len(z)), 5.0),
    (lo.LambdaRank(lo.NDCG(10)), lambda z, rng: np.clip(np.round(z + 1.5), 0, 4), 10.0),
]


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(("base", "labels", "weight"), LOSSES, ids=lambda x: getattr(x, "name", ""))
def test_training_lowers_dependence_for_every_loss(booster, base, labels, weight):
    X, signal, rng = panel()
    y = labels(signal, rng)
    options = dict(group=[30] * 30) if not isinstance(base, lo.Gaussian) else dict(params={"num_class": 2})
    if base.needs_order:
        options["params"] = {"min_child_weight": 1e-3}
    groups = isinstance(base, lo.Pearson)
    results = {}
    for strength in (0.0, weight):
        spec = lo.Decorrelated(base, "c", strength, within_group=groups)
        history, scores = train(booster, X, y, spec, c=X[:, 0], **options)
        given = dict(group=None if isinstance(base, lo.Gaussian) else [30] * 30, columns={"c": X[:, 0]})
        results[strength] = lo.evaluate(spec, scores, y, **given)
        assert history["c.dcov2"][0] == 0.0  # all predictions equal: nothing is pushed
    free, held = results[0.0]["c.dcov2"], results[weight]["c.dcov2"]
    assert held < 0.35 * free
    first = next(name for name in results[0.0] if name.startswith("penalised/"))
    assert first in results[weight]


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_dependence_falls_with_the_weight(booster):
    X, signal, rng = panel()
    y = signal + 0.3 * rng.normal(size=len(signal))
    found = []
    for weight in (0.0, 0.3, 1.0, 3.0, 10.0):
        _, scores = train(booster, X, y, lo.Decorrelated(lo.SquaredError(), "c", weight), c=X[:, 0])
        found.append(lo.evaluate(lo.DistanceCovariance("c"), scores, y, c=X[:, 0])["c.dcov2"])
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.1 * found[0]


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_offsets_belong_to_the_prediction(booster):
    """The dependence that an offset brings is seen, pushed from the first tree on, and fitted away."""
    X, signal, rng = panel()
    y, offset = X[:, 1] + 0.3 * rng.normal(size=len(signal)), 1.5 * X[:, 0]
    spec = lo.Decorrelated(lo.SquaredError(), "c", 10.0)
    history, scores = train(booster, X, y, spec, offset=offset, c=X[:, 0])
    alone = dcov2(offset, standardised(X[:, 0]))[0]
    assert history["c.dcov2"][0] == pytest.approx(alone, rel=1e-5)
    assert lo.evaluate(spec, scores, y, c=X[:, 0])["c.dcov2"] < 0.05 * alone


def test_early_stopping_watches_the_penalised_metric_on_its_own_standardisation():
    lgb = pytest.importorskip("lightgbm", minversion="4.0")
    X, signal, rng = panel()
    y = signal + 0.3 * rng.normal(size=len(signal))
    spec = lo.Decorrelated(lo.SquaredError(), "c", 3.0)
    objective = lo.Objective(spec)
    data = lo.attach(lgb.Dataset(X[:600], y[:600]), c=X[:600, 0])
    valid = lo.attach(data.create_valid(X[600:], y[600:]), c=1e4 + 50 * X[600:, 0])
    log = {}
    model = lgb.train(
        {"objective": objective, "num_leaves": 7, "verbosity": -1, "num_threads": 1}, data, 60, valid_sets=[valid],
        feval=objective.metrics, callbacks=[lo.lightgbm.early_stopping(objective, 5), lgb.record_evaluation(log)],
    )  # fmt: skip
    seen = log["valid_0"]
    assert set(seen) == {"cost/mse", "mse", "cost/c.dcov2", "c.dcov2", "penalised/mse"}
    best = int(np.argmin(seen["penalised/mse"]))
    assert model.best_iteration == best + 1
    scores = model.predict(X[600:])
    value = dcov2(scores, standardised(X[600:, 0]))[0]
    assert seen["c.dcov2"][best] == pytest.approx(value, rel=1e-6)
    assert seen["penalised/mse"][best] == pytest.approx(np.mean((scores - y[600:]) ** 2) + 3 * value, rel=1e-6)


def test_xgboost_watches_what_it_can_guess_the_direction_of():
    xgb = pytest.importorskip("xgboost")
    X, signal, _ = panel(200)
    for base, want in ((lo.SquaredError(), "penalised/mse"), (lo.Gaussian(), "penalised/cost/gaussian"),
                       (lo.LambdaRank(lo.NDCG(10)), "ndcg@10")):  # fmt: skip
        y = np.clip(np.round(signal + 1), 0, 3)
        data = lo.attach(xgb.DMatrix(X, np.column_stack([y, y]) if want.endswith("gaussian") else y), c=X[:, 0])
        if base.needs_order:
            data.set_group([20] * 10)
        objective = lo.Objective(lo.Decorrelated(base, "c", 1.0))
        log = {}
        params = {"base_score": 0, "disable_default_eval_metric": 1, "min_child_weight": 1e-3}
        xgb.train(params, data, 3, obj=objective, evals=[(data, "t")], custom_metric=objective.metrics,
                  evals_result=log, verbose_eval=False)  # fmt: skip
        assert list(log["t"])[-1] == want


@pytest.mark.parametrize("damp", [False, True])
def test_going_on_later_is_the_same_training(damp):
    """LightGBM and XGBoost, 15 + 15 rounds for 30, swings and damping included."""
    lgb, xgb = pytest.importorskip("lightgbm", minversion="4.0"), pytest.importorskip("xgboost")
    X, signal, rng = panel(400)
    y = signal + 0.3 * rng.normal(size=len(signal))
    spec = lo.Decorrelated(lo.SquaredError(), "c", 150.0, damp=damp)
    params = {"num_leaves": 7, "verbosity": -1, "num_threads": 1}

    def by_lightgbm(rounds, state=None, before=None):
        objective = lo.Objective(spec, state=state)
        data = lo.attach(lgb.Dataset(X, y, free_raw_data=False), c=X[:, 0])
        model = lgb.train(params | {"objective": objective}, data, rounds, init_model=before)
        return objective.state(data), model, model.predict(X)

    def by_xgboost(rounds, state=None, before=None):
        objective, data = lo.Objective(spec, state=state), lo.attach(xgb.DMatrix(X, y), c=X[:, 0])
        settings = {"max_depth": 3, "eta": 0.1, "nthread": 1, "base_score": 0}
        model = xgb.train(settings, data, rounds, obj=objective, xgb_model=before)
        return objective.state(data), model, model.predict(data, output_margin=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lo.LambdaObjectivesWarning)
        for trained in (by_lightgbm, by_xgboost):
            state, _, whole = trained(30)
            half, model, _ = trained(15)
            saved, _, both = trained(15, json.loads(json.dumps(half)), model)
            np.testing.assert_array_equal(both, whole)
            assert saved == state
            assert (state["rule"]["damping"] < 1) == damp


def test_cross_validation_and_estimators():
    lgb, xgb = pytest.importorskip("lightgbm", minversion="4.0"), pytest.importorskip("xgboost")
    X, signal, rng = panel(300)
    y = signal + 0.3 * rng.normal(size=len(signal))
    folds = [(np.arange(100, 300), np.arange(100)), (np.arange(200), np.arange(200, 300))]
    objective = lo.Objective(lo.Decorrelated(lo.SquaredError(), "c", 2.0))
    data = lo.attach(lgb.Dataset(X, y), c=X[:, 0])
    params = {"objective": objective, "num_leaves": 7, "verbosity": -1, "num_threads": 1, "metric": "None"}
    found = lgb.cv(params, data, 5, folds=folds, feval=objective.metrics)
    assert found["valid penalised/mse-mean"][-1] < found["valid penalised/mse-mean"][0]
    matrix = lo.attach(xgb.DMatrix(X, y), c=X[:, 0])
    found = xgb.cv({"max_depth": 3, "base_score": 0, "disable_default_eval_metric": 1}, matrix, 5, folds=folds,
                   obj=objective, custom_metric=objective.metrics, as_pandas=False)  # fmt: skip
    assert found["test-penalised/mse-mean"][-1] < found["test-penalised/mse-mean"][0]
    with pytest.raises(ValueError, match=r"control='c'.*attach it"):  # estimators hand over no columns
        lgb.LGBMRegressor(objective=objective, verbosity=-1).fit(X, y)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_a_share_of_the_unpenalised_dependence(booster):
    """Of what it is when the constraint is switched on, half-way; and by a bound, of the plain model's own."""
    X, signal, rng = panel()
    y = signal + 0.3 * rng.normal(size=len(signal))
    term = lo.DistanceCovariance("c")
    free, _ = train(booster, X, y, lo.WeightedSum([lo.SquaredError(), term], [1, 0]), 100, c=X[:, 0])
    spec = lo.AugmentedLagrangian(lo.SquaredError(), [lo.Constraint(term, 0.25, relative=True)])
    history, _ = train(booster, X, y, spec, 100, c=X[:, 0])
    assert history["c.dcov2"][:50] == pytest.approx(free["c.dcov2"][:50])
    assert history["c.dcov2"][-1] == pytest.approx(0.25 * history["c.dcov2"][50], rel=0.05)
    assert history["c.dcov2"][-1] == pytest.approx(0.25 * free["c.dcov2"][-1], rel=0.15)
    for share in (0.5, 0.1):
        bound = share * free["c.dcov2"][-1]
        history, _ = train(booster, X, y, lo.AugmentedLagrangian(lo.SquaredError(), lo.Constraint(term, bound)), 100,
                           c=X[:, 0])  # fmt: skip
        assert history["c.dcov2"][-1] == pytest.approx(bound, rel=0.05)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(("base", "labels", "weight"), LOSSES[1:6] + LOSSES[7:], ids=lambda x: getattr(x, "name", ""))
def test_budgets_beside_every_loss(booster, base, labels, weight):
    """A quarter of the plain model's dependence, of what the loss predicts: kept, and not by far more than asked."""
    X, signal, rng = panel(1500)
    y = labels(signal, rng)
    options = dict(group=[30] * 50) if base.needs_order else {}
    options["params"] = {"num_class": 2} if isinstance(base, lo.Gaussian) else {"min_child_weight": 1e-3}
    link = {"logloss": "logit", "gaussian": None}.get(base.name, None if base.needs_order else "log")
    term = lo.DistanceCovariance("c", link=link)
    free, _ = train(booster, X, y, lo.WeightedSum([base, term], [1, 0]), 120, c=X[:, 0], **options)
    bound = 0.25 * free["c.dcov2"][-1]
    spec = lo.AugmentedLagrangian(base, [lo.Constraint(term, at_most=bound)])
    history, _ = train(booster, X, y, spec, 120, c=X[:, 0], **options)
    late = np.array(history["margin/c.dcov2"][-10:])
    assert 0 <= late.max() < 0.05
    assert late.min() > -0.05
