"""What pair terms can do besides: options, pairs drawn, rows unjudged, equal scores, metrics of one's own."""

import dataclasses
import itertools
import json

import lightgbm as lgb
import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.kernels import CONCORDANCE, PRECISION
from tests.checks import assert_mean, assert_round, assert_same_draws, many_queries, queries, rounds
from tests.data import TEST, TRAIN
from tests.oracles import (
    auc,
    average_precision,
    dcg,
    err,
    graded_average_precision,
    hit_rate,
    ndcg,
    orders_of,
    pair_weights,
    precision,
    pulls,
    rbp,
    recall,
    reciprocal_rank,
    spearman,
)

SIZES = [6, 1, 9, 5]
RNG = np.random.default_rng(5)
SCORES, LABELS = RNG.normal(size=21), RNG.integers(0, 4, 21).astype(float)
METRICS = [
    (lo.NDCG(), ndcg),
    (lo.NDCG(3), lambda y: ndcg(y, 3)),
    (lo.MAP(), average_precision),
    (lo.MAP(gain="exp2"), graded_average_precision),
    (lo.MRR(), reciprocal_rank),
    (lo.ERR(), err),
    (lo.HitRate(2), lambda y: hit_rate(y, 2)),
]


NAMES = [metric.name for metric, _ in METRICS]


def wanted(weights, scores=SCORES, sizes=SIZES):
    grad, hess, cost = pulls(weights, scores)
    return grad, hess, cost / len(sizes)


def all_pairs(labels=LABELS, sizes=SIZES, scores=SCORES):
    """Each pair of RankNet weighs 1."""
    return dict.fromkeys(pair_weights(lambda y: 0.0, orders_of(scores, sizes), labels), 1.0)


# ----------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(("metric", "plain"), METRICS, ids=NAMES)
def test_label_difference_multiplies_the_change_of_the_metric(metric, plain):
    weights = pair_weights(plain, orders_of(SCORES, SIZES), LABELS)
    weights = {(h, w): change * (LABELS[h] - LABELS[w]) for (h, w), change in weights.items()}
    assert_round(lo.LambdaRank(metric, label_difference=True), queries(LABELS, SIZES), SCORES, wanted(weights))


def test_label_difference_of_ranknet():
    weights = {(h, w): LABELS[h] - LABELS[w] for h, w in all_pairs()}
    assert_round(lo.RankNet(label_difference=True), queries(LABELS, SIZES), SCORES, wanted(weights))


@pytest.mark.parametrize("floor", [0.1, 0.5])
@pytest.mark.parametrize(("metric", "plain"), METRICS, ids=NAMES)
def test_pairs_weigh_one_over_the_propensity_of_their_better_row(metric, plain, floor):
    seen = np.linspace(0.05, 1.0, 21)
    weights = pair_weights(plain, orders_of(SCORES, SIZES), LABELS)
    weights = {(h, w): change / max(seen[h], floor) for (h, w), change in weights.items()}
    term = lo.LambdaRank(metric, propensity="seen", propensity_floor=floor)
    assert_round(term, queries(LABELS, SIZES, seen=seen), SCORES, wanted(weights))


@pytest.mark.parametrize("wrong", [0.0, -0.5, 1.5])
def test_propensities_are_probabilities(wrong):
    seen = np.ones(21)
    seen[4] = wrong
    with pytest.raises(
        ValueError, match=rf"column 'seen' must hold probabilities above 0 and up to 1, row 4 is {wrong:g}"
    ):
        lo.gradient(lo.LambdaRank(lo.NDCG(), propensity="seen"), SCORES, LABELS, group=SIZES, seen=seen)


def test_propensities_are_a_column():
    term = lo.LambdaRank(lo.NDCG(), propensity="seen")
    with pytest.raises(ValueError, match=r"propensity='seen': this data set of 21 rows has no such column"):
        lo.gradient(term, SCORES, LABELS, group=SIZES)
    with pytest.raises(ValueError, match="column 'seen' must be finite: row 0 is nan"):
        lo.gradient(term, SCORES, LABELS, group=SIZES, seen=np.full(21, np.nan))


@pytest.mark.parametrize(("metric", "plain"), METRICS, ids=NAMES)
def test_no_hessian_is_below_the_floor(metric, plain):
    _, hess, _ = pulls(pair_weights(plain, orders_of(SCORES, SIZES), LABELS), SCORES)
    _, got = lo.gradient(lo.LambdaRank(metric, hessian_floor=0.05), SCORES, LABELS, group=SIZES)
    np.testing.assert_allclose(got, np.maximum(hess, 0.05), rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lo.LambdaRank(lo.NDCG(), sample=0), "sample must be a whole number from 1, found 0"),
        (lambda: lo.RankNet(sample=2.5), "sample must be a whole number from 1, found 2.5"),
        (lambda: lo.LambdaRank(lo.NDCG(), sample=2, seed=-1), "seed must be a whole number from 0, found -1"),
        (lambda: lo.RankNet(seed=True), "seed must be a whole number"),
        (lambda: lo.RankNet(seed=2**63), r"seed must be a whole number below 2\^63, found 9223372036854775808"),
        (lambda: lo.RankNet(label_difference=1), "label_difference must be True or False, found 1"),
        (lambda: lo.LambdaRank(lo.NDCG(), unjudged="yes"), "unjudged must be True or False, found 'yes'"),
        (lambda: lo.LambdaRank(lo.NDCG(), propensity="a b"), "propensity must be a column's name"),
        (lambda: lo.LambdaRank(lo.NDCG(), propensity_floor=-0.1), "propensity_floor must not be negative, found -0.1"),
        (lambda: lo.LambdaRank(lo.NDCG(), propensity_floor=np.inf), "propensity_floor must be a finite number"),
        (lambda: lo.LambdaRank(lo.NDCG(), hessian_floor=np.nan), "hessian_floor must be a finite number"),
    ],
)
def test_options_out_of_range_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# ------------------------------------------------------------------------------------------------------- pairs drawn

DRAWING = [
    lo.LambdaRank(lo.NDCG(), sample=2),
    lo.LambdaRank(lo.MAP(5, threshold=2), sample=2, seed=3),
    lo.LambdaRank(lo.ERR(), sample=1, truncation=4),
    lo.RankNet(sample=2),
    lo.RankNet(sample=1, loss="hinge", label_difference=True),
]


@pytest.mark.parametrize("term", DRAWING, ids=repr)
def test_draws_depend_on_seed_and_round_alone(term):
    assert_same_draws(term, *many_queries(longest=60, count=1500))


@pytest.mark.parametrize("term", DRAWING, ids=repr)
def test_another_round_and_another_seed_draw_other_pairs(term):
    data = queries(LABELS, SIZES)
    first, second, third = rounds(term, data, [SCORES] * 3)[0]
    again = rounds(term, data, [SCORES] * 3)[0]
    np.testing.assert_array_equal(again, [first, second, third])
    fresh = rounds(dataclasses.replace(term, seed=99), data, [SCORES])[0][0]
    for one, two in itertools.combinations((first, second, third, fresh), 2):
        assert (one[0] != two[0]).any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("term", DRAWING, ids=repr)
def test_expected_gradient_is_that_of_all_pairs(term, dtype):
    data = queries(LABELS, SIZES)
    drawn, _ = rounds(term, data, [SCORES] * 4000, dtype=dtype)
    ((grad, hess),) = rounds(dataclasses.replace(term, sample=None), data, [SCORES])[0]
    assert_mean(drawn[:, 0].astype(float), grad, slack=4.5 if dtype == np.float64 else 5)
    assert_mean(drawn[:, 1].astype(float), hess, slack=4.5 if dtype == np.float64 else 5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("term", DRAWING, ids=repr)
def test_no_more_worse_rows_than_are_drawn_are_all_taken(term, dtype):
    data = queries(LABELS, SIZES)
    got = rounds(dataclasses.replace(term, sample=8), data, [SCORES] * 2, dtype=dtype)[
        0
    ]  # 9 rows, so at most 8 are worse
    want = rounds(dataclasses.replace(term, sample=None), data, [SCORES] * 2, dtype=dtype)[0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 if dtype == np.float32 else 1e-12)


def test_a_pair_that_is_drawn_weighs_for_those_that_are_not():
    """At equal scores a pair pulls by half its weight: the better of 12 rows draws 4 pairs of weight 11 / 4."""
    data = queries([0.0] * 11 + [1.0], [12])
    drawn, _ = rounds(lo.RankNet(sample=4), data, np.zeros((50, 12)), dtype=np.float64)
    times = drawn[:, 0, :11] / (11 / 4 / 2)
    np.testing.assert_allclose(times, np.round(times), atol=1e-12)
    np.testing.assert_allclose(times.sum(axis=1), 4)
    assert times.max() > 1  # a row may be drawn twice
    np.testing.assert_allclose(drawn[:, 0, 11], -11 / 2)


def test_a_resumed_objective_draws_on():
    spec = lo.LambdaRank(lo.NDCG(), sample=1, seed=4)
    steps = [SCORES + i for i in range(6)]
    whole = lo.Objective(spec)
    want = [whole(LABELS, s, None, SIZES) for s in steps]
    first = lo.Objective(spec)
    got = [first(LABELS, s, None, SIZES) for s in steps[:3]]
    second = lo.Objective(spec, state=json.loads(json.dumps(first.state())))
    got += [second(LABELS, s, None, SIZES) for s in steps[3:]]
    np.testing.assert_array_equal(got, want)


# ---------------------------------------------------------------------------------------------------- rows unjudged

GAPS = np.where(np.isin(np.arange(21), [1, 4, 6, 9, 12, 17]), np.nan, LABELS)  # the second query has no judgement


@pytest.mark.parametrize("label", [None, "judged"])
@pytest.mark.parametrize(("metric", "plain"), METRICS, ids=NAMES)
def test_rows_without_a_judgement_keep_their_place_and_make_no_pairs(metric, plain, label):
    order = orders_of(SCORES, SIZES)
    weights = pair_weights(lambda y: plain([max(0.0, v) if v == v else 0.0 for v in y]), order, GAPS)
    own, columns = (GAPS, {}) if label is None else (np.zeros(21), {"judged": GAPS})
    term = lo.LambdaRank(metric, label=label, unjudged=True)
    assert_round(term, queries(own, SIZES, **columns), SCORES, wanted(weights))
    grad, hess = lo.gradient(term, SCORES, own, group=SIZES, **columns)
    assert not grad[np.isnan(GAPS)].any()
    assert not hess[np.isnan(GAPS)].any()
    value = lo.evaluate(term, SCORES, own, group=SIZES, **columns)[term.name]
    assert value == pytest.approx(metric(SCORES, GAPS, group=SIZES, unjudged=True))


@pytest.mark.parametrize("options", [{}, {"label_difference": True}, {"loss": "hinge"}], ids=str)
def test_unjudged_rows_do_not_matter_to_ranknet(options):
    there = ~np.isnan(GAPS)
    sizes = [there[a:b].sum() for a, b in itertools.pairwise(np.cumsum([0, *SIZES]))]
    sizes = [size for size in sizes if size]
    for dtype in (np.float64, np.float32):
        got = rounds(lo.RankNet(unjudged=True, **options), queries(GAPS, SIZES), [SCORES], dtype=dtype)[0][0]
        want = rounds(lo.RankNet(**options), queries(GAPS[there], sizes), [SCORES[there]], dtype=dtype)[0][0]
        np.testing.assert_allclose(got[:, there], want, rtol=1e-5, atol=1e-6)
        assert not got[:, ~there].any()


@pytest.mark.parametrize("metric", [lo.NDCG(), lo.MAP(), lo.ERR()], ids=repr)
def test_unjudged_goes_with_the_other_options(metric):
    seen = np.linspace(0.2, 1.0, 21)
    options = {"label_difference": True, "propensity": "seen", "truncation": 3, "unjudged": True}
    data = queries(GAPS, SIZES, seen=seen)
    (full,), _ = rounds(lo.LambdaRank(metric, **options), data, [SCORES], dtype=np.float64)
    (single,), _ = rounds(lo.LambdaRank(metric, **options), data, [SCORES])
    np.testing.assert_allclose(single, full, rtol=1e-4, atol=1e-6)
    drawn, _ = rounds(lo.LambdaRank(metric, sample=2, **options), data, [SCORES] * 4000, dtype=np.float64)
    assert_mean(drawn[:, 0], full[0])


def test_unjudged_rows_are_refused_unless_they_are_allowed():
    for term in (lo.LambdaRank(lo.NDCG()), lo.RankNet()):
        with pytest.raises(ValueError, match="labels must be finite: row 1 is nan"):
            lo.gradient(term, SCORES, GAPS, group=SIZES)
    with pytest.raises(ValueError, match="column 'judged' must be finite: row 1 is nan"):
        lo.gradient(lo.LambdaRank(lo.NDCG(), label="judged"), SCORES, LABELS, group=SIZES, judged=GAPS)
    with pytest.raises(ValueError, match="labels must be finite: row 2 is inf"):
        lo.gradient(lo.RankNet(unjudged=True), [0, 0, 0], [0, np.nan, np.inf], group=[3])
    with pytest.raises(ValueError, match=r"Kendall.*orders all rows by their labels, row 1 has none"):
        lo.gradient(lo.LambdaRank(lo.Kendall(), unjudged=True), SCORES, GAPS, group=SIZES)


def test_nothing_judged_at_all():
    for term in (lo.LambdaRank(lo.NDCG(), unjudged=True), lo.RankNet(unjudged=True)):
        grad, hess = lo.gradient(term, [1.0, 2.0, 3.0], [np.nan] * 3, group=[3])
        assert grad.tolist() == hess.tolist() == [0.0] * 3


# ----------------------------------------------------------------------------------------------------- equal scores

TIED = [
    (lo.NDCG(ties="mean"), ndcg),
    (lo.NDCG(2, ties="mean"), lambda y: ndcg(y, 2)),
    (lo.DCG(3, discount="reciprocal", ties="mean"), lambda y: dcg(y, 3, discount=lambda r: 1 / (r + 1))),
    (lo.Precision(2, ties="mean"), lambda y: precision(y, 2)),
    (lo.Recall(2, ties="mean"), lambda y: recall(y, 2)),
    (lo.RBP(ties="mean"), rbp),
    (lo.AUC(ties="mean"), auc),
    (lo.Spearman(ties="mean"), spearman),
]


def mean_over_orders(metric, scores, labels):
    """Weights of the pairs of one query, averaged over all orders of rows with equal scores."""
    runs = [[i for i, s in enumerate(scores) if s == score] for score in sorted(set(scores))[::-1]]
    orders = [list(itertools.chain(*order)) for order in itertools.product(*map(itertools.permutations, runs))]
    every = [pair_weights(metric, [order], labels) for order in orders]
    return {pair: np.mean([weights[pair] for weights in every]) for pair in every[0]}


@pytest.mark.parametrize(("metric", "plain"), TIED, ids=lambda value: str(value) if hasattr(value, "name") else "plain")
@pytest.mark.parametrize("scores", [[0.0] * 6, [2, 1, 2, 1, 2, 0], [1, 3, 2, 2, 2, 3], [6, 5, 4, 3, 2, 1]], ids=str)
def test_weights_are_those_of_all_orders_of_equal_scores(metric, plain, scores):
    for labels in ([0, 2, 1, 0, 1, 3], [1, 0, 0, 0, 0, 0], [2, 2, 0, 1, 0, 0]):
        weights = mean_over_orders(plain, scores, labels)
        assert_round(lo.LambdaRank(metric), queries(labels, [6]), np.array(scores, float), wanted(weights, scores, [6]))


@pytest.mark.parametrize("metric", [metric for metric, _ in TIED], ids=repr)
def test_constant_scores_do_not_reward_the_order_of_the_file(metric):
    shuffled = np.random.default_rng(0).permutation(40)
    labels = np.random.default_rng(1).integers(0, 4, 40)
    for dtype in (np.float64, np.float32):
        (plain,), _ = rounds(lo.LambdaRank(metric), queries(labels, [40]), [np.zeros(40)], dtype=dtype)
        (moved,), _ = rounds(lo.LambdaRank(metric), queries(labels[shuffled], [40]), [np.zeros(40)], dtype=dtype)
        np.testing.assert_allclose(moved, plain[:, shuffled], rtol=1e-4, atol=1e-6)
        for label in range(4):
            np.testing.assert_allclose(plain[0][labels == label], plain[0][labels == label][0], rtol=1e-4, atol=1e-6)


def test_by_row_constant_scores_do_reward_it():
    labels = np.array([1, 0, 0, 1])
    grad, _ = lo.gradient(lo.LambdaRank(lo.NDCG()), np.zeros(4), labels, group=[4])
    assert grad[0] != pytest.approx(grad[3])


# ---------------------------------------------------------------------------------------------- metrics of one's own


def plain_ndcg(labels):
    return ndcg(labels.tolist())


OPTIONS = [
    {},
    {"sigma": 0.5, "truncation": 2},
    {"score_gap_norm": True, "log_norm": True},
    {"label_difference": True, "hessian_floor": 0.01},
    {"sample": 2, "seed": 1},
    {"propensity": "seen"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_function_is_as_good_as_tables(options):
    data = queries(LABELS, SIZES, np.linspace(0.5, 2, 21), seen=np.linspace(0.2, 1.0, 21))
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 2e-5)):
        steps = [SCORES, -SCORES]
        got, run = rounds(lo.LambdaRank(lo.CustomMetric(plain_ndcg, "own"), **options), data, steps, dtype=dtype)
        want, tables = rounds(lo.LambdaRank(lo.NDCG(), **options), data, steps, dtype=dtype)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        assert run.history["own"] == pytest.approx(tables.history["ndcg"])
        assert run.history["cost/own"] == pytest.approx(tables.history["cost/ndcg"], rel=1e-5)


def test_a_function_that_knows_of_unjudged_rows():
    def worth(labels):
        return ndcg(np.nan_to_num(labels).tolist())

    got = lo.gradient(lo.LambdaRank(lo.CustomMetric(worth, "own"), unjudged=True), SCORES, GAPS, group=SIZES)
    want = lo.gradient(lo.LambdaRank(lo.NDCG(), unjudged=True), SCORES, GAPS, group=SIZES)
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_less_of_a_metric_may_be_better():
    """The rank of the best row: the pairs and what they weigh are the same, the higher label is still to rise."""

    def rank_of_best(labels):
        return float(labels.argmax())

    term = lo.LambdaRank(lo.CustomMetric(rank_of_best, "rank", maximise=False))
    grad, _ = lo.gradient(term, [3.0, 2.0, 1.0], [0, 1, 3], group=[3])
    want, _, _ = pulls({(2, 0): 2.0, (2, 1): 1.0}, [3.0, 2.0, 1.0])  # swapping the first two changes nothing
    np.testing.assert_allclose(grad, want)


class TopHeavy:
    """DCG with a discount of one's own, as few lines as will do."""

    name, maximise = "top_heavy", True

    def tables(self, labels, ptr):
        return lo.Tables(gain=labels**2, discount=np.array([1.0, 0.2, 0.1]))


def top_heavy(labels):
    return sum(y**2 * d for y, d in zip(labels, (1.0, 0.2, 0.1), strict=False))


def test_a_class_of_ones_own():
    weights = pair_weights(top_heavy, orders_of(SCORES, SIZES), LABELS)
    assert_round(lo.LambdaRank(TopHeavy()), queries(LABELS, SIZES), SCORES, wanted(weights))
    value = lo.evaluate(lo.LambdaRank(TopHeavy()), SCORES, LABELS, group=SIZES)["top_heavy"]
    assert value == pytest.approx(np.mean([top_heavy([LABELS[i] for i in o]) for o in orders_of(SCORES, SIZES)]))


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"gain": np.ones(2)}, r"gain must be one number a row, found an array of shape \(2,\) for 21 rows"),
        ({"gain": np.where(np.arange(21) == 3, np.nan, 1.0)}, "gain must be finite, row 3 is not"),
        ({"discount": np.ones(10)}, "discount must be at most as long as the longest query, 9, found 10"),
        ({"discount": np.array([0.5, 1.0])}, "discount must be finite and must not rise"),
        ({"discount": np.array([1.0, np.nan])}, "discount must be finite"),
        ({"kind": PRECISION}, "metrics of this kind need a grade, one a row"),
        ({"kind": CONCORDANCE, "grade": np.zeros(20, np.int32)}, "metrics of this kind need a grade"),
        ({"scale": np.ones(3)}, "scale must be one number a query, found 3 for 4"),
    ],
)
@pytest.mark.parametrize("kind_of_term", [lo.LambdaRank, lo.YetiRank])
def test_tables_that_do_not_fit_are_refused(kind_of_term, tables, words):
    class Own(TopHeavy):
        def tables(self, labels, ptr):
            return super().tables(labels, ptr)._replace(**tables)

    with pytest.raises(ValueError, match=f"metric: the tables of .*Own.* do not fit: {words}"):
        lo.gradient(kind_of_term(Own()), SCORES, LABELS, group=SIZES)


@pytest.mark.parametrize(
    "metric", [TopHeavy(), lo.CustomMetric(lambda y: dcg(y[:5].tolist()), "five")], ids=["tables", "function"]
)
def test_training_by_a_metric_of_ones_own(metric):
    objective, train = lo.Objective(lo.LambdaRank(metric)), lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group)
    params = {"objective": "none", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "learning_rate": 0.3}
    model = lgb.Booster(params, train)
    for _ in range(4):
        model.update(fobj=objective)
    assert TEST.ndcg(model.predict(TEST.X)) > 0.75  # 0.54 at random
    history = objective.history(train)[metric.name]
    assert history[-1] > history[0]
