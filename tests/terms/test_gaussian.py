"""Gaussian: slopes, the mean Hessian, the likelihood itself, trainings of either booster."""

import numpy as np
import pytest

import lambda_objectives as lo

RNG = np.random.default_rng(3)
N = 40
SCORES = np.column_stack([RNG.normal(size=N), 0.5 * RNG.normal(size=N)])
LABELS, WEIGHTS = RNG.normal(size=N), RNG.choice([0.0, 1.0, 2.5], N)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_gradient_is_a_slope(weights):
    grad, hess = lo.gradient(lo.Gaussian(), SCORES, LABELS, weights=weights)
    assert grad.shape == hess.shape == (N, 2)
    total = N if weights is None else weights.sum()
    for i in range(0, 2 * N, 7):
        move = np.zeros((N, 2))
        move.flat[i] = 1e-5
        high, low = (
            total * lo.evaluate(lo.Gaussian(), s, LABELS, weights=weights)["cost/gaussian"]
            for s in (SCORES + move, SCORES - move)
        )
        assert grad.flat[i] == pytest.approx((high - low) / 2e-5, abs=1e-7)


def test_the_hessian_is_the_mean_of_the_second_derivative():
    """Over labels drawn from the very distribution that the scores say."""
    mean, log_deviation = 0.3, -0.4
    n = 200_000
    scores = np.tile([mean, log_deviation], (n, 1))
    labels = mean + np.exp(log_deviation) * np.random.default_rng(0).normal(size=n)
    grad, hess = lo.gradient(lo.Gaussian(), scores, labels)
    z = (labels - mean) / np.exp(log_deviation)
    np.testing.assert_allclose(hess[:, 0], np.exp(0.8), rtol=1e-12)
    np.testing.assert_allclose(hess[0, 1], np.mean(2 * z * z), rtol=0.02)
    np.testing.assert_allclose(hess[:, 1], 2.0)
    assert np.abs(grad.mean(0)).max() < 0.02


def test_the_metric_is_the_log_likelihood():
    stats = pytest.importorskip("scipy.stats")
    found = lo.evaluate(lo.Gaussian(), SCORES, LABELS, weights=WEIGHTS)
    want = stats.norm.logpdf(LABELS, SCORES[:, 0], np.exp(SCORES[:, 1]))
    assert found["gaussian"] == pytest.approx(np.average(want, weights=WEIGHTS))
    assert found["cost/gaussian"] == -found["gaussian"]
    assert lo.evaluate(lo.Gaussian("y"), SCORES, [0] * N, y=LABELS)["y.gaussian"] == pytest.approx(want.mean())


def test_flat_scores_as_lightgbm_3_has_them():
    from lambda_objectives.queries import Queries
    from lambda_objectives.run import Run

    run = Run(lo.Gaussian(), Queries.from_arrays(LABELS), dtype=np.float64)
    grad, hess = run.step(SCORES.T.ravel())
    want = lo.gradient(lo.Gaussian(), SCORES, LABELS)
    np.testing.assert_array_equal(grad, want[0].T.ravel())
    np.testing.assert_array_equal(hess, want[1].T.ravel())


def test_wrong_shapes_say_what_to_set():
    for scores in (np.zeros(N), np.zeros((N, 3))):
        with pytest.raises(ValueError, match=r"scores: 2 a row wanted.*num_class=2"):
            lo.evaluate(lo.Gaussian(), scores, LABELS)
    wrong = SCORES.copy()
    wrong[5, 1] = np.nan
    with pytest.raises(ValueError, match="scores must be finite: row 5"):
        lo.gradient(lo.Gaussian(), wrong, LABELS)
    with pytest.raises(ValueError, match=r"gradient .* must be finite"):
        lo.gradient(lo.Gaussian(), SCORES - [0, 800], LABELS)


def made(n=3000):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + np.exp(0.6 * X[:, 1] - 0.5) * rng.normal(size=n)


def check_fit(X, scores):
    assert np.corrcoef(scores[:, 0], X[:, 0])[0, 1] > 0.95
    assert np.corrcoef(scores[:, 1], X[:, 1])[0, 1] > 0.9
    assert abs(np.polyfit(X[:, 1], scores[:, 1], 1)[1] + 0.5) < 0.2


def test_lightgbm_learns_location_and_scale():
    lgb = pytest.importorskip("lightgbm", minversion="4.0")
    X, y = made()
    objective = lo.Objective(lo.Gaussian())
    data = lgb.Dataset(X, y)
    valid = data.create_valid(X[:500], y[:500])
    log = {}
    model = lgb.train(
        {"objective": objective, "num_class": 2, "verbosity": -1, "num_leaves": 7, "num_threads": 1}, data, 60,
        valid_sets=[valid], feval=objective.metrics, callbacks=[lgb.record_evaluation(log)],
    )  # fmt: skip
    check_fit(X, model.predict(X))
    assert log["valid_0"]["gaussian"][-1] == pytest.approx(
        lo.evaluate(lo.Gaussian(), model.predict(X[:500]), y[:500])["gaussian"], rel=1e-6
    )
    with pytest.raises(ValueError, match="set num_class=2"):
        lgb.train({"objective": lo.Objective(lo.Gaussian()), "verbosity": -1}, lgb.Dataset(X, y), 2)


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_xgboost_by_classes_or_by_targets(strategy):
    xgb = pytest.importorskip("xgboost")
    X, y = made()
    params = {"max_depth": 3, "eta": 0.1, "base_score": 0, "nthread": 1, "multi_strategy": strategy}
    models = []
    for label, more in ((y, {"num_class": 2}), (np.column_stack([y, y]), {})):
        data = xgb.DMatrix(X, label)
        objective = lo.Objective(lo.Gaussian())
        stop = lo.xgboost.EarlyStopping(objective, 80)
        model = xgb.train(params | more, data, 80, obj=objective, callbacks=[stop])
        models.append(model.predict(data, output_margin=True))
        check_fit(X, models[-1])
        assert stop.best.value == pytest.approx(lo.evaluate(lo.Gaussian(), models[-1], y)["gaussian"], rel=1e-5)
    np.testing.assert_allclose(*models, atol=1e-5)
    with pytest.raises(ValueError, match="label: one a row wanted, the matrix has 2 for each of 3000 rows, which diff"):
        xgb.train(params, xgb.DMatrix(X, np.column_stack([y, y + 1])), 2, obj=lo.Objective(lo.Gaussian()))
