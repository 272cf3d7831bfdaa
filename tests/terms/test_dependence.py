"""Distance covariance: the definition by n x n matrices, its identities, groups, what is refused, as a budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lambda_objectives as lo


def naive(x, y):
    """Value and slope by the definition, on n x n matrices."""
    n = len(x)
    a, b, sign = abs(x[:, None] - x), abs(y[:, None] - y), np.sign(x[:, None] - x)
    rows = b.sum(1)
    value = (a * b).sum() - 2 * (a.sum(1) @ rows) / (n - 2) + a.sum() * b.sum() / ((n - 1) * (n - 2))
    slope = 2 * (sign * b).sum(1) - 2 * (sign * (rows[:, None] + rows)).sum(1) / (n - 2)
    slope += 2 * sign.sum(1) * b.sum() / ((n - 1) * (n - 2))
    return value / (n * (n - 3)), slope / (n * (n - 3))


def standard(c):
    return (c - c.mean()) / c.std()


def both(term, scores, **columns):
    value = lo.evaluate(term, scores, np.zeros(len(scores)), **columns)[f"cost/{term.name}"]
    return value, lo.gradient(term, scores, np.zeros(len(scores)), **columns)[0]


PRICE = lo.DistanceCovariance("price")


@pytest.mark.parametrize("n", [4, 5, 31, 32, 33, 100, 1023, 1025, 3000])
@pytest.mark.parametrize("ties", ["none", "scores", "both", "binary"])
def test_the_definition(n, ties):
    rng = np.random.default_rng(n)
    price = rng.normal(size=n)
    scores = 0.5 * price + rng.normal(size=n)
    if ties in ("scores", "both"):
        scores = np.round(scores, 1)
    if ties == "both":
        price = np.round(price, 1) + 0.01 * np.arange(n)[::-1] * (n < 6)
    if ties == "binary":
        price = (np.arange(n) % 2) * 1.0
    value, grad = both(PRICE, scores, price=price)
    wanted, slope = naive(scores, standard(price))
    assert value == pytest.approx(wanted, abs=1e-12)
    np.testing.assert_allclose(grad, n * slope, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 60), st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_the_definition_with_many_ties(n, seed, levels, prices):
    rng = np.random.default_rng(seed)
    scores, price = rng.integers(0, levels, n) * 1.0, np.sort(rng.integers(0, prices + 1, n)) * 1.0
    price[:2], price[-2:] = -1.0, 9.0  # enough of a spread
    value, grad = both(PRICE, scores, price=price)
    wanted, slope = naive(scores, standard(price))
    assert value == pytest.approx(wanted, abs=1e-12)
    np.testing.assert_allclose(grad, n * slope, atol=1e-11)


def test_identities():
    rng = np.random.default_rng(1)
    price = rng.normal(size=200)
    scores = np.round(0.3 * price + rng.normal(size=200), 1)
    value, grad = both(PRICE, scores, price=price)
    assert grad.sum() == pytest.approx(0, abs=1e-11)
    assert grad @ scores / 200 == pytest.approx(value)
    for offset in (1e6, 1e9):  # scores in eighths are exact there
        eighths = np.round(8 * scores) / 8
        near, far = both(PRICE, eighths, price=price), both(PRICE, eighths + offset, price=price)
        assert far[0] == pytest.approx(near[0], rel=1e-12)
        np.testing.assert_array_equal(far[1], near[1])
    for other in (price + 1e9, price * 1e-7, -price, 3.0 - 1e5 * price):
        again, slope = both(PRICE, scores, price=other)
        assert again == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(slope, grad, atol=1e-5)
    order = rng.permutation(200)
    np.testing.assert_allclose(both(PRICE, scores[order], price=price[order])[1], grad[order], atol=1e-12)
    assert both(PRICE, 5 * scores, price=price)[0] == pytest.approx(5 * value)
    assert both(PRICE, -scores, price=price)[0] == pytest.approx(value)
    np.testing.assert_allclose(both(PRICE, np.full(200, 3.0), price=price)[1], 0, atol=1e-12)


def test_slopes_also_at_ties():
    rng = np.random.default_rng(2)
    price = rng.normal(size=40)
    scores = np.round(0.5 * price + rng.normal(size=40), 0)
    _, grad = both(PRICE, scores, price=price)
    for i in range(0, 40, 7):
        move = np.zeros(40)
        move[i] = 1e-4
        high, low = (both(PRICE, s, price=price)[0] for s in (scores + move, scores - move))
        assert grad[i] == pytest.approx(40 * (high - low) / 2e-4, abs=1e-9)


def test_independent_samples_go_both_ways():
    rng = np.random.default_rng(3)
    values = [both(PRICE, rng.normal(size=12), price=rng.normal(size=12))[0] for _ in range(200)]
    assert 60 < sum(value < 0 for value in values) < 160
    assert abs(np.mean(values)) < 4 * np.std(values) / 200**0.5


def test_groups():
    """Each on its own, by the weight of its rows; too small ones and those without spread are left out and counted."""
    rng = np.random.default_rng(4)
    sizes = np.array([3, 1, 6, 30, 8])
    scores, price, weights = rng.normal(size=48), rng.normal(size=48), rng.random(48) + 0.5
    price[40:] = 5.0
    price[47] = 6.0  # one row beside tied ones is no spread
    wanted, slope = 0.0, np.zeros(48)
    for a, b in ((4, 10), (10, 40)):
        value, grad = naive(scores[a:b], standard(price[a:b]))
        share = weights[a:b].sum()
        wanted += share * value / weights.sum()
        slope[a:b] = share * grad
    group = np.repeat(np.arange(5), sizes)
    shuffled = rng.permutation(48)
    for term, order, options in (
        (lo.DistanceCovariance("price", True), np.arange(48), {"group": sizes}),
        (lo.DistanceCovariance("price", "era"), shuffled, {"era": group * 2.5}),
    ):
        given = dict(price=price[order], weights=weights[order])
        given |= {name: values[order] if name == "era" else values for name, values in options.items()}
        found = lo.evaluate(term, scores[order], np.zeros(48), **given)
        assert found["price.dcov2"] == pytest.approx(wanted)
        assert found["skipped/price.dcov2"] == 3
        grad, hess = lo.gradient(term, scores[order], np.zeros(48), **given)
        np.testing.assert_allclose(grad, slope[order], atol=1e-12)
        assert not hess.any()
    by_label = lo.evaluate(lo.DistanceCovariance("price", "label"), scores, group, price=price, weights=weights)
    assert by_label["price.dcov2"] == pytest.approx(wanted)


def test_single_precision_and_threads_change_nothing():
    from lambda_objectives.queries import Queries
    from lambda_objectives.run import Run

    rng = np.random.default_rng(5)
    n = 40_000
    price = rng.normal(size=n)
    scores = price + rng.normal(size=n)
    queries = Queries.from_arrays(np.zeros(n), group=[1000] * 40, columns={"price": price})
    for within in (False, True):
        term = lo.DistanceCovariance("price", within)
        one, three = Run(term, queries, threads=1), Run(term, queries, threads=3)
        for _ in range(3):
            first, second = one.step(scores)[0].copy(), three.step(scores)[0].copy()
            np.testing.assert_array_equal(first, second)
            scores = scores + 0.1 * rng.normal(size=n)
        assert one.history == three.history
        np.testing.assert_allclose(Run(term, queries, dtype=np.float64).step(scores)[0], one.step(scores)[0], rtol=1e-6)


def test_what_is_refused():
    few, flat = dict(price=[1.0, 2.0, 3.0]), dict(price=[7.0] * 9)
    beside = dict(price=[0.0] + [1.0] * 7 + [2.0])  # one value on either side of tied ones
    for columns, words in ((few, "'price' has 3 rows, 4"), (flat, "no usable spread"), (beside, "no usable spread")):
        with pytest.raises(ValueError, match=words):
            lo.gradient(PRICE, np.arange(len(columns["price"])), np.zeros(len(columns["price"])), **columns)
    with pytest.raises(ValueError, match="control='price': this data set of 4 rows has no such column"):
        lo.gradient(PRICE, np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="needs queries"):
        lo.gradient(lo.DistanceCovariance("price", True), np.zeros(4), np.zeros(4), price=np.arange(4))
    with pytest.raises(ValueError, match="within_group='era'"):
        lo.gradient(lo.DistanceCovariance("price", "era"), np.zeros(4), np.zeros(4), price=np.arange(4))
    with pytest.raises(ValueError, match="column 'price' must be finite"):
        lo.gradient(PRICE, np.zeros(4), np.zeros(4), price=[0, 1, np.nan, 3])
    for wrong in (dict(control=None), dict(control="a b"), dict(control="p", within_group=None)):
        with pytest.raises(ValueError, match="must be"):
            lo.DistanceCovariance(**wrong)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_a_budget_is_kept(booster):
    """Nobody tunes a weight: the dependence ends within its bound, and the fit is better than without the feature."""
    pytest.importorskip(booster, minversion="4.0" if booster == "lightgbm" else None)
    rng = np.random.default_rng(6)
    n, rounds = 600, 80
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n)
    train, margins, scores = fitted(booster, X, y, lo.SquaredError(), rounds)
    free = lo.evaluate(PRICE, scores, y, price=X[:, 0])["price.dcov2"]
    spec = lo.AugmentedLagrangian(lo.SquaredError(), [lo.Constraint(PRICE, at_most=0.2 * free)])
    train, margins, scores = fitted(booster, X, y, spec, rounds)
    kept = lo.evaluate(PRICE, scores, y, price=X[:, 0])["price.dcov2"]
    assert 0 <= margins["price.dcov2"] < 0.15
    assert kept == pytest.approx(0.2 * free * (1 - margins["price.dcov2"]), rel=1e-4)
    assert np.mean((scores - y) ** 2) < 0.97 * np.var(y - X[:, 1])
    assert train


def fitted(booster, X, y, spec, rounds):
    """History, margins of the returned round, and its scores."""
    objective = lo.Objective(spec)
    if booster == "lightgbm":
        import lightgbm as lgb

        data = lo.attach(lgb.Dataset(X, y, free_raw_data=False), price=X[:, 0])
        stop = lo.lightgbm.early_stopping(objective, rounds)
        params = {"objective": objective, "num_leaves": 7, "verbosity": -1, "num_threads": 1}
        model = lgb.train(params, data, rounds, callbacks=[stop])
        return objective.history(data), stop.best.margins, model.predict(X)
    import xgboost as xgb

    data = lo.attach(xgb.DMatrix(X, y), price=X[:, 0])
    stop = lo.xgboost.EarlyStopping(objective, rounds)
    model = xgb.train({"max_depth": 3, "eta": 0.1, "nthread": 1, "base_score": 0}, data, rounds, obj=objective,
                      callbacks=[stop])  # fmt: skip
    return objective.history(data), stop.best.margins, model.predict(data, output_margin=True)
