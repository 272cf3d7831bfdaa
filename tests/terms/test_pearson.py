"""Pearson: slopes, correlations by NumPy, groups that are not scored, levels that do not matter."""

import numpy as np
import pytest

import lambda_objectives as lo

RNG = np.random.default_rng(11)
SIZES = np.array([6, 1, 20, 5, 13])
N = int(SIZES.sum())
CUTS = [slice(b - s, b) for s, b in zip(SIZES, np.cumsum(SIZES), strict=True)]
LABELS, SCORES, WEIGHTS = RNG.normal(size=N), RNG.normal(size=N), RNG.choice([0.0, 1.0, 2.5], N)
LABELS[CUTS[3]] = 2.0  # nothing to correlate with


def by_hand(weights):
    values, errors, masses = [], 0.0, 0.0
    for i in (0, 2, 4):
        y, s, w = LABELS[CUTS[i]], SCORES[CUTS[i]], weights[CUTS[i]]
        covariance = np.cov(s, y, aweights=w, ddof=0)
        values.append((covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]), w.mean()))
        z = (y - np.average(y, weights=w)) / np.sqrt(covariance[1, 1])
        errors += w @ (s - np.average(s, weights=w) - z) ** 2
        masses += w.sum()
    correlations, shares = np.array(values).T
    return np.average(correlations, weights=shares), errors / masses, masses


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("era", [False, True])
def test_values_and_slopes(weights, era):
    """By the data set's groups, or by a column whose groups lie anywhere."""
    correlation, mse, mass = by_hand(np.ones(N) if weights is None else weights)
    order = RNG.permutation(N) if era else np.arange(N)
    term = lo.Pearson(within_group="era" if era else True)
    given = {"weights": None if weights is None else weights[order], "era": np.repeat(np.arange(5.0) * 7, SIZES)[order]}
    if not era:
        given["group"] = SIZES
    s, y = SCORES[order], LABELS[order]
    found = lo.evaluate(term, s, y, **given)
    assert found == pytest.approx({"cost/pearson": mse / 2, "pearson": correlation, "pearson_mse": mse})
    grad, hess = lo.gradient(term, s, y, **given)
    scored = np.ones(N) if weights is None else weights.copy()
    scored[CUTS[1]] = scored[CUTS[3]] = 0
    np.testing.assert_array_equal(hess, scored[order])
    for i in range(0, N, 4):
        move = np.zeros(N)
        move[i] = 1e-5
        high, low = (mass * lo.evaluate(term, at, y, **given)["cost/pearson"] for at in (s + move, s - move))
        assert grad[i] == pytest.approx((high - low) / 2e-5, abs=1e-8)


def test_levels_units_and_flat_scores():
    level = np.repeat([1e6, -3.0, 0.0, 1e9, 7.0], SIZES)
    term = lo.Pearson()
    near = lo.evaluate(term, SCORES, LABELS, group=SIZES)
    far = lo.evaluate(term, SCORES + level, LABELS, group=SIZES)
    assert far == pytest.approx(near, abs=1e-6)
    units = lo.evaluate(term, SCORES, 1e4 * LABELS + level, group=SIZES)
    assert units == pytest.approx(near, abs=1e-6)
    assert lo.evaluate(term, 5 * SCORES, LABELS, group=SIZES)["pearson"] == pytest.approx(near["pearson"])
    for flat in (np.zeros(N), level + 0.1):
        found = lo.evaluate(term, flat, LABELS, group=SIZES)
        assert found["pearson"] == 0.0
        assert found["pearson_mse"] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_training_raises_the_correlation(booster):
    pytest.importorskip(booster, minversion="4.0" if booster == "lightgbm" else None)
    rng = np.random.default_rng(0)
    eras, rows = 40, 30
    X = rng.normal(size=(eras * rows, 3))
    level = np.repeat(10 * rng.normal(size=eras), rows)
    y = X[:, 0] + 0.5 * rng.normal(size=len(X)) + level
    group = [rows] * eras
    objective = lo.Objective(lo.Pearson())
    if booster == "lightgbm":
        import lightgbm as lgb

        data = lgb.Dataset(X, y, group=group, free_raw_data=False)
        params = {"objective": objective, "verbosity": -1, "num_leaves": 7, "num_threads": 1}
        scores = lgb.train(params, data, 60).predict(X)
    else:
        import xgboost as xgb

        data = xgb.DMatrix(X, y)
        data.set_group(group)
        scores = xgb.train({"max_depth": 3, "eta": 0.1, "nthread": 1}, data, 60, obj=objective).predict(data)
    assert lo.evaluate(lo.Pearson(), scores, y, group=group)["pearson"] > 0.85
    assert objective.history(data)["pearson"][0] == 0.0


def test_what_is_refused():
    with pytest.raises(ValueError, match="needs queries"):
        lo.gradient(lo.Pearson(), SCORES, LABELS)
    with pytest.raises(ValueError, match="within_group='era'"):
        lo.gradient(lo.Pearson(within_group="era"), SCORES, LABELS)
    for wrong in (False, None, 3, "a b"):
        with pytest.raises(ValueError, match="within_group must be"):
            lo.Pearson(within_group=wrong)
    with pytest.raises(ValueError, match="label must be a column's name"):
        lo.Pearson(label="")
