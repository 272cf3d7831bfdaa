"""RiskRank beside swaps after which the measure is taken anew over all queries; weights, edges, trainings."""

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import lambda_objectives as lo
from tests.checks import assert_round, assert_same_draws, many_queries, queries, rounds
from tests.oracles import average_precision, err, ndcg, orders_of, pair_weights, pulls, reciprocal_rank

xgb = pytest.importorskip("xgboost")

METRICS = [
    (lo.NDCG(), ndcg),
    (lo.NDCG(3), lambda y: ndcg(y, 3)),
    (lo.MAP(), average_precision),
    (lo.MRR(), reciprocal_rank),
    (lo.ERR(), err),
    (lo.CustomMetric(lambda y: ndcg(y.tolist()), "own"), ndcg),
]
NAMES = [metric.name for metric, _ in METRICS]


def data(seed=1, sizes=(5, 1, 8, 6, 3, 9, 7), spread=0.5):
    """Scores, labels, the baseline's scores, and a weight for each query."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    scores = rng.normal(size=n)
    labels = rng.integers(0, 4, n) * rng.integers(0, 2, n)
    return scores, labels, scores + spread * rng.normal(size=n), rng.uniform(0.5, 2, len(sizes)), sizes


def utilities(metric, orders, baseline_orders, labels, alpha):
    gains = []
    for order, before in zip(orders, baseline_orders, strict=True):
        d = metric([labels[i] for i in order]) - metric([labels[i] for i in before])
        gains.append(d if d >= 0 else (1 + alpha) * d)
    return gains


def urisk(u, weights):
    return sum(w * x for w, x in zip(weights, u, strict=True)) / sum(weights)


def trisk(u, weights):
    """The mean over its standard error; the spread is taken to be at least 0.001."""
    n, mean = len(u), urisk(u, weights)
    if n == 1:
        return 0.0
    spread = urisk([(x - mean) ** 2 for x in u], weights) ** 0.5
    return mean / (max(spread, 0.001) * (n / (n - 1)) ** 0.5 / n**0.5)


MEASURES = {"urisk": urisk, "trisk": trisk}


def plain(measure, metric, scores, labels, baseline, sizes, alpha, weights=None, truncation=None, sigma=1.0):
    """Gradient and Hessian before the weights of rows, and mean cost: each swap, then the measure of all queries."""
    weights = [1.0] * len(sizes) if weights is None else list(weights)
    orders, before = orders_of(scores, sizes), orders_of(baseline, sizes)
    now = utilities(metric, orders, before, labels, alpha)
    total, changes, crossings, cost = sum(weights), {}, set(), 0.0
    for q, order in enumerate(orders):
        part = {}
        for i in range(len(order)):
            for j in range(i + 1, len(order) if truncation is None or i < truncation else 0):
                h, w = sorted((order[i], order[j]), key=lambda row: -labels[row])
                if labels[h] == labels[w]:
                    continue
                swapped = list(order)
                swapped[i], swapped[j] = order[j], order[i]
                after = list(now)
                (after[q],) = utilities(metric, [swapped], [before[q]], labels, alpha)
                crossings |= {np.sign(after[q]) - np.sign(now[q])} & {2.0, -2.0}
                change = abs(MEASURES[measure](after, weights) - MEASURES[measure](now, weights))
                part[h, w] = change * total / weights[q]
        changes |= part
        cost += weights[q] / total * pulls(part, scores, sigma)[2]
    grad, hess, _ = pulls(changes, scores, sigma)
    return (grad, hess, cost), crossings


# ------------------------------------------------------------------------------------------------------- brute force


@pytest.mark.parametrize("measure", ["urisk", "trisk"])
@pytest.mark.parametrize(("metric", "by_hand"), METRICS, ids=NAMES)
def test_exact_change_of_the_measure_across_the_baseline_both_ways(metric, by_hand, measure):
    scores, labels, baseline, _, sizes = data()
    for alpha in (0.0, 1.0, 5.0):
        want, crossings = plain(measure, by_hand, scores, labels, baseline, sizes, alpha)
        assert crossings == {2.0, -2.0}
        term = lo.RiskRank(metric, "old", alpha, measure)
        assert_round(term, queries(labels, sizes, old=baseline), scores, want)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.0, 0.3, 3.0]), alpha=st.sampled_from([0.0, 0.5, 10.0]))
def test_exact_change_at_random(seed, spread, alpha):
    rng = np.random.default_rng(seed)
    scores, labels, baseline, _, sizes = data(seed, rng.integers(1, 8, rng.integers(1, 5)), spread)
    for measure in ("urisk", "trisk"):
        want, _ = plain(measure, ndcg, scores, labels, baseline, sizes, alpha)
        term = lo.RiskRank(lo.NDCG(), "old", alpha, measure)
        assert_round(term, queries(labels, sizes, old=baseline), scores, want, [np.float64])


@pytest.mark.parametrize("measure", ["urisk", "trisk"])
def test_weights_of_queries(measure):
    scores, labels, baseline, weights, sizes = data()
    (grad, hess, cost), _ = plain(measure, ndcg, scores, labels, baseline, sizes, 2.0, weights)
    rows = np.repeat(weights, sizes)
    want = rows * grad, rows * hess, cost
    assert_round(lo.RiskRank(lo.NDCG(), "old", 2.0, measure), queries(labels, sizes, rows, old=baseline), scores, want)


@pytest.mark.parametrize("measure", ["urisk", "trisk"])
def test_a_query_without_a_weight_does_not_count(measure):
    scores, labels, baseline, weights, sizes = data()
    weights[2] = 0.0
    term = lo.RiskRank(lo.NDCG(), "old", 2.0, measure)
    entry = lo.evaluate(term, scores, labels, group=sizes, weights=weights, old=baseline)
    grad, _ = lo.gradient(term, scores, labels, group=sizes, weights=weights, old=baseline)
    assert not grad[6:14].any()
    moved = np.concatenate([scores[:6], -scores[6:14], scores[14:]])
    again = lo.evaluate(term, moved, labels, group=sizes, weights=weights, old=baseline)
    assert again[term.name] == pytest.approx(entry[term.name])
    assert not np.any(lo.gradient(term, scores, labels, group=sizes, weights=np.zeros(7), old=baseline))


@pytest.mark.parametrize("measure", ["urisk", "trisk"])
def test_other_options(measure):
    scores, labels, baseline, _, sizes = data()
    want, _ = plain(measure, ndcg, scores, labels, baseline, sizes, 1.0, truncation=2, sigma=2.0)
    term = lo.RiskRank(lo.NDCG(), "old", 1.0, measure, truncation=2, sigma=2.0)
    assert_round(term, queries(labels, sizes, old=baseline), scores, want)
    got = lo.gradient(
        lo.RiskRank(lo.NDCG(), "old", label="own"), scores, 0 * labels, group=sizes, own=labels, old=baseline
    )
    np.testing.assert_array_equal(
        got, lo.gradient(lo.RiskRank(lo.NDCG(), "old"), scores, labels, group=sizes, old=baseline)
    )


# ---------------------------------------------------------------------------------------------------------- readings


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", ["urisk", "trisk"])
def test_readings(measure, weighted):
    scores, labels, baseline, weights, sizes = data()
    weights = weights if weighted else np.ones(7)
    u = utilities(ndcg, orders_of(scores, sizes), orders_of(baseline, sizes), labels, 3.0)
    assert min(u) < 0 < max(u)
    term = lo.RiskRank(lo.NDCG(), "old", 3.0, measure)
    entry = lo.evaluate(term, scores, labels, group=sizes, weights=weights, old=baseline)
    assert list(entry) == [f"cost/{measure}-ndcg", f"{measure}-ndcg", "ndcg"]
    assert entry[term.name] == pytest.approx(MEASURES[measure](u, list(weights)))
    assert entry["ndcg"] == pytest.approx(lo.NDCG()(scores, labels, group=sizes, weights=weights))


def test_trisk_is_a_t_statistic():
    """The risk measure without a penalty is that of a paired t test."""
    scores, labels, baseline, _, sizes = data(1)
    now, before = ([ndcg([labels[i] for i in o]) for o in orders_of(s, sizes)] for s in (scores, baseline))
    term = lo.RiskRank(lo.NDCG(), "old", 0.0, "trisk")
    value = lo.evaluate(term, scores, labels, group=sizes, old=baseline)[term.name]
    assert value == pytest.approx(stats.ttest_rel(now, before).statistic)


# ------------------------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize(("metric", "by_hand"), METRICS, ids=NAMES)
def test_without_a_penalty_the_mean_is_lambdarank(metric, by_hand):
    scores, labels, baseline, weights, sizes = data()
    rows = np.repeat(weights, sizes)
    for dtype in (np.float64, np.float32):
        got, run = rounds(
            lo.RiskRank(metric, "old", 0.0), queries(labels, sizes, rows, old=baseline), [scores], dtype=dtype
        )
        want, other = rounds(lo.LambdaRank(metric), queries(labels, sizes, rows), [scores], dtype=dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
        assert run.history[f"cost/urisk-{metric.name}"] == pytest.approx(other.history[f"cost/{metric.name}"], rel=1e-5)


def test_level_with_the_baseline_pairs_in_order_count_more():
    """Swapping them loses, while swapping pairs in the wrong order gains."""
    scores, labels, _, _, sizes = data()
    weights = pair_weights(ndcg, orders_of(scores, sizes), labels)
    weights = {(h, w): change * (4.0 if scores[h] > scores[w] else 1.0) for (h, w), change in weights.items()}
    grad, hess, cost = pulls(weights, scores)
    want = grad, hess, cost / len(sizes)
    assert_round(lo.RiskRank(lo.NDCG(), "old", alpha=3.0), queries(labels, sizes, old=scores), scores, want)


@pytest.mark.parametrize("measure", ["urisk", "trisk"])
def test_a_baseline_equal_to_the_scores_is_worth_0(measure):
    scores, labels, _, _, sizes = data()
    term = lo.RiskRank(lo.NDCG(), "old", 2.0, measure)
    entry = lo.evaluate(term, scores, labels, group=sizes, old=scores)
    assert entry[term.name] == 0
    grad, hess = lo.gradient(term, scores, labels, group=sizes, old=scores)
    assert np.isfinite([grad, hess]).all()
    assert grad.any()


@pytest.mark.parametrize("measure", ["urisk", "trisk"])
def test_extreme_lists(measure):
    term = lo.RiskRank(lo.NDCG(), "old", measure=measure)
    for labels, sizes in (([], []), ([3], [1]), ([2, 2, 2], [3]), ([0, 0], [1, 1])):
        old = np.zeros(len(labels))
        grad, hess = lo.gradient(term, np.arange(len(labels)), labels, group=sizes, old=old)
        assert grad.tolist() == hess.tolist() == [0.0] * len(labels)
        assert lo.evaluate(term, np.arange(len(labels)), labels, group=sizes, old=old)[term.name] == 0


def test_a_single_query_has_no_standard_error():
    term = lo.RiskRank(lo.NDCG(), "old", measure="trisk")
    grad, hess = lo.gradient(term, [1.0, 2.0], [1, 0], group=[2], old=[2.0, 1.0])
    assert grad.tolist() == hess.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("measure", ["urisk", "trisk"])
def test_any_number_of_threads_changes_no_bit(measure):
    many, steps = many_queries(longest=60, count=1500, old=lambda rng, n: rng.normal(size=n))
    assert_same_draws(lo.RiskRank(lo.NDCG(), "old", 2.0, measure), many, steps)


# -------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: lo.RiskRank("ndcg", "old"), TypeError, "metric must be a metric object"),
        (lambda: lo.RiskRank(lo.CustomMetric(min, "own", maximise=False), "old"), ValueError, "more is better"),
        (lambda: lo.RiskRank(lo.NDCG(), None), ValueError, "baseline must be the name of a column"),
        (lambda: lo.RiskRank(lo.NDCG(), "a b"), ValueError, "baseline must be a column's name"),
        (lambda: lo.RiskRank(lo.NDCG()), TypeError, "baseline"),
        (lambda: lo.RiskRank(lo.NDCG(), "old", -1.0), ValueError, "alpha must not be negative, found -1.0"),
        (lambda: lo.RiskRank(lo.NDCG(), "old", np.nan), ValueError, "alpha must be a finite number"),
        (lambda: lo.RiskRank(lo.NDCG(), "old", measure="risk"), ValueError, "measure must be 'urisk' or 'trisk'"),
        (lambda: lo.RiskRank(lo.NDCG(), "old", sigma=0.0), ValueError, "sigma must be above 0"),
        (lambda: lo.RiskRank(lo.NDCG(), "old", truncation=0), ValueError, "truncation"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_the_baseline_is_a_column_of_numbers():
    term = lo.RiskRank(lo.NDCG(), "old")
    with pytest.raises(ValueError, match="baseline='old': this data set of 2 rows has no such column"):
        lo.gradient(term, [0, 1], [1, 0], group=[2])
    with pytest.raises(ValueError, match="column 'old' must be finite: row 1 is nan"):
        lo.gradient(term, [0, 1], [1, 0], group=[2], old=[0, np.nan])


# -------------------------------------------------------------------------------------------------------- trainings

QUERIES, ROWS, ROUNDS = 500, 10, 25


def shop(seed):
    """Features, labels and a baseline that knows a part of what matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(QUERIES * ROWS, 6))
    useful = X[:, 0] + 0.6 * X[:, 1] * (X[:, 2] > 0) + 0.5 * rng.normal(size=len(X))
    return X, np.digitize(useful, [0.5, 1.2, 2.0]).astype(float), 1.5 * (X[:, 0] + 0.3 * X[:, 1])


def train_lightgbm(term, X, y, old, X2, old2):
    data = lo.attach(lgb.Dataset(X, y, group=[ROWS] * QUERIES, init_score=old), old=old)
    params = {"objective": lo.Objective(term), "verbosity": -1, "num_threads": 1, "num_leaves": 8}
    return lgb.train(params, data, ROUNDS).predict(X2) + old2


def train_xgboost(term, X, y, old, X2, old2):
    data = lo.attach(xgb.DMatrix(X, y, qid=np.arange(len(y)) // ROWS, base_margin=old), old=old)
    params = {"nthread": 1, "max_depth": 3, "eta": 0.1, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
    model = xgb.train(params, data, ROUNDS, obj=lo.Objective(term))
    return model.predict(xgb.DMatrix(X2, base_margin=old2), output_margin=True)


def test_less_is_lost_to_the_baseline_that_training_starts_from():
    """The measure itself, over four shops and both boosters: one training alone says little."""
    risky, plain = lo.RiskRank(lo.NDCG(10), "old", 5.0), lo.LambdaRank(lo.NDCG(10))
    gained = []
    for train in (train_lightgbm, train_xgboost):
        for seed in (2, 3, 4, 5):
            X, y, old = shop(seed)
            utility = [
                lo.evaluate(risky, train(term, X, y, old, X, old), y, group=[ROWS] * QUERIES, old=old)["urisk-ndcg@10"]
                for term in (risky, plain)
            ]
            gained.append(utility[0] - utility[1])
    assert np.mean(gained) > 0.002
