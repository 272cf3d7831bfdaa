"""Losses of counts and amounts: slopes, scikit-learn's deviances, the boosters' own models, what is refused."""

import warnings

import numpy as np
import pytest

import lambda_objectives as lo

SCORES = np.array([-2.0, -0.5, 0.0, 1.0, 3.0, 0.3])
COUNTS = np.array([0.0, 1.0, 3.0, 0.0, 17.0, 2.5])
TERMS = [(lo.Poisson(), COUNTS), (lo.Gamma(), COUNTS + 0.5), (lo.Tweedie(), COUNTS), (lo.Tweedie(1.1), COUNTS)]


@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.0, 2.5, 1.0, 3.0, 0.5])], ids=["plain", "weighted"])
@pytest.mark.parametrize(("term", "labels"), TERMS, ids=repr)
def test_gradient_and_hessian_are_slopes(term, labels, weights):
    grad, hess = lo.gradient(term, SCORES, labels, weights=weights)
    total = 6.0 if weights is None else weights.sum()
    step = 1e-4
    for i in range(6):
        move = np.zeros(6)
        move[i] = step
        high, now, low = (
            total * lo.evaluate(term, s, labels, weights=weights)[f"cost/{term.name}"]
            for s in (SCORES + move, SCORES, SCORES - move)
        )
        assert grad[i] == pytest.approx((high - low) / (2 * step), rel=1e-6, abs=1e-6)
        assert hess[i] == pytest.approx((high - 2 * now + low) / step**2, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("term", "labels"), TERMS, ids=repr)
def test_the_metric_is_the_mean_deviance(term, labels):
    sklearn = pytest.importorskip("sklearn.metrics")
    power = {"Poisson": 1, "Gamma": 2}.get(type(term).__name__, getattr(term, "rho", None))
    weights = np.arange(1.0, 7.0)
    found = lo.evaluate(term, SCORES, labels, weights=weights)
    wanted = sklearn.mean_tweedie_deviance(labels, np.exp(SCORES), sample_weight=weights, power=power)
    assert found[term.name] == pytest.approx(wanted, rel=1e-12)
    assert found[f"cost/{term.name}"] == pytest.approx(wanted / 2, rel=1e-12)


@pytest.mark.parametrize(("term", "labels"), TERMS, ids=repr)
def test_nothing_is_lost_at_the_labels_themselves(term, labels):
    kept = labels > 0
    found = lo.evaluate(term, np.log(labels[kept]), labels[kept])
    assert found[term.name] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "term", "options"),
    [
        ("poisson", lo.Poisson(), {"poisson_max_delta_step": 1e-12}),
        ("gamma", lo.Gamma(), {}),
        ("tweedie", lo.Tweedie(1.3), {"tweedie_variance_power": 1.3}),
    ],
)
def test_same_model_as_lightgbm(name, term, options):
    lgb = pytest.importorskip("lightgbm", minversion="4.0")
    X, y = drawn()
    weights = np.random.default_rng(4).choice([1.0, 2.0], len(y))
    params = {"num_leaves": 5, "min_data_in_leaf": 10, "boost_from_average": False, "verbosity": -1, "num_threads": 1}
    theirs = lgb.train({**params, **options, "objective": name}, lgb.Dataset(X, y, weight=weights), 15)
    ours = lgb.train({**params, "objective": lo.Objective(term)}, lgb.Dataset(X, y, weight=weights), 15)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X, raw_score=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "term", "options"),
    [("reg:gamma", lo.Gamma(), {}), ("reg:tweedie", lo.Tweedie(1.3), {"tweedie_variance_power": 1.3})],
)
def test_same_model_as_xgboost(name, term, options):
    xgb = pytest.importorskip("xgboost")
    X, y = drawn()
    data = xgb.DMatrix(X, y)
    params = {"max_depth": 2, "nthread": 1, "disable_default_eval_metric": 1}
    theirs = xgb.train({**params, **options, "objective": name, "base_score": 1.0}, data, 15)
    ours = xgb.train({**params, "base_score": 0.0}, data, 15, obj=lo.Objective(term))
    margins = [booster.predict(data, output_margin=True) for booster in (ours, theirs)]
    np.testing.assert_allclose(margins[0], margins[1], rtol=1e-3, atol=1e-3)


def drawn():
    """Amounts above 0 that depend on the features."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    return X, rng.gamma(2.0, np.exp(0.5 * X[:, 0] - 0.3 * X[:, 1]) / 2.0)


def test_labels_and_powers_out_of_range_are_refused():
    for term in (lo.Poisson(), lo.Tweedie()):
        with pytest.raises(ValueError, match=f"label: {type(term).__name__} takes numbers from 0, row 1 is -1"):
            lo.gradient(term, [0, 0], [1, -1])
    with pytest.raises(ValueError, match="label: Gamma takes numbers above 0, row 0 is 0"):
        lo.gradient(lo.Gamma(), [0, 0], [0, 1])
    for rho in (1, 2, 0.5, float("nan"), "1.5"):
        with pytest.raises(ValueError, match="rho"):
            lo.Tweedie(rho)
    with pytest.raises(ValueError, match="label must be a column's name"):
        lo.Poisson(label="a b")


def test_scores_that_are_too_large_are_an_error_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for term in (lo.Poisson(), lo.Tweedie()):
            with pytest.raises(ValueError, match="too large"):
                lo.gradient(term, [1e4], [1.0])


def test_a_cost_can_be_bounded():
    rng = np.random.default_rng(0)
    y, clicks = rng.poisson(2.0, 50).astype(float), rng.poisson(1.0, 50).astype(float)
    spec = lo.AugmentedLagrangian(lo.Poisson(), [lo.Constraint(lo.Poisson("clicks"), at_most=0.4)])
    found = lo.evaluate(spec, np.zeros(50), y, clicks=clicks)
    assert found["margin/clicks.poisson"] == pytest.approx((0.4 - found["cost/clicks.poisson"]) / 0.4)
