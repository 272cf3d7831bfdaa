"""YetiRank beside plain Python that swaps the rows of the orders it draws; its noise; its draws; trainings."""

import itertools

import lightgbm as lgb
import numpy as np
import pytest
from scipy import stats

import lambda_objectives as lo
from lambda_objectives.kernels import yeti
from tests.checks import assert_round, assert_same_draws, many_queries, queries, rounds
from tests.data import TEST, TRAIN
from tests.oracles import (
    auc,
    average_precision,
    dcg,
    err,
    graded_average_precision,
    hit_rate,
    kendall,
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

xgb = pytest.importorskip("xgboost")

SIZES = [7, 1, 10, 4]
RNG = np.random.default_rng(11)
SCORES, LABELS, WEIGHTS = RNG.normal(size=22), RNG.integers(0, 4, 22).astype(float), RNG.random(22)
METRICS = [
    (lo.NDCG(), ndcg),
    (lo.NDCG(3), lambda y: ndcg(y, 3)),
    (lo.NDCG(ties="mean"), ndcg),
    (lo.DCG(gain="linear", discount=lambda r: 0.85**r), lambda y: dcg(y, gain=float, discount=lambda r: 0.85**r)),
    (lo.RBP(), rbp),
    (lo.Precision(3), lambda y: precision(y, 3)),
    (lo.Recall(2), lambda y: recall(y, 2)),
    (lo.AUC(), auc),
    (lo.Spearman(), spearman),
    (lo.MRR(), reciprocal_rank),
    (lo.MRR(3), lambda y: reciprocal_rank(y, 3)),
    (lo.HitRate(2), lambda y: hit_rate(y, 2)),
    (lo.ERR(), err),
    (lo.ERR(3), lambda y: err(y, 3)),
    (lo.MAP(), average_precision),
    (lo.MAP(3, threshold=1), lambda y: average_precision(y, 3, 1)),
    (lo.MAP(gain="exp2"), graded_average_precision),
    (lo.MAP(2, gain="linear"), lambda y: graded_average_precision(y, 2, float)),
    (lo.Kendall(), kendall),
    (lo.Kendall("b"), lambda y: kendall(y, tau="b")),
]
NAMES = [f"{metric.name}-{i}" for i, (metric, _) in enumerate(METRICS)]


def noisy(scores, sizes, draw, *, seed=0, round_=0, noise="logistic", power=1.0, borders=None):
    """The scores plus the noise of a draw, in as many parts as there are borders between queries."""
    ptr = np.cumsum([0, *sizes])
    out = np.full(len(scores), np.nan)
    parts = np.array([0, len(sizes)] if borders is None else borders)
    number = ("logistic", "gaussian").index(noise)
    yeti.noisy_scores(seed, round_, draw, number, power, np.asarray(scores, float), ptr, out, parts)
    return out


def plain(metric, scores, labels, sizes, *, draws, neighbours=True, truncation=None, sigma=1.0, **noise):
    """Gradient, Hessian and mean cost: weights averaged over the orders drawn, pulls at the scores themselves."""
    mean = {}
    for draw in range(draws):
        orders = orders_of(noisy(scores, sizes, draw, **noise), sizes)
        rank = {row: r for order in orders for r, row in enumerate(order)}
        for (h, w), change in pair_weights(metric, orders, labels).items():
            apart = abs(rank[h] - rank[w]) > 1 and neighbours
            if not apart and (truncation is None or min(rank[h], rank[w]) < truncation):
                mean[h, w] = mean.get((h, w), 0.0) + change / draws
    grad, hess, cost = pulls(mean, scores, sigma)
    return grad, hess, cost / len(sizes)


# ---------------------------------------------------------------------------------------------------- beside loops


@pytest.mark.parametrize("neighbours", [True, False], ids=["neighbours", "all pairs"])
@pytest.mark.parametrize(("metric", "by_hand"), METRICS, ids=NAMES)
def test_as_loops_over_the_orders_drawn(metric, by_hand, neighbours):
    want = plain(by_hand, SCORES, LABELS, SIZES, draws=3, neighbours=neighbours)
    assert_round(lo.YetiRank(metric, draws=3, neighbours=neighbours), queries(LABELS, SIZES), SCORES, want)


@pytest.mark.parametrize("neighbours", [True, False], ids=["neighbours", "all pairs"])
@pytest.mark.parametrize(
    "options",
    [
        {"truncation": 1}, {"truncation": 4, "sigma": 2.0}, {"noise": "gaussian"}, {"noise_power": 3.0},
        {"seed": 12345678901234567}, {"noise": "gaussian", "noise_power": 0.1, "seed": 2, "sigma": 0.5},
    ],
    ids=str,
)  # fmt: skip
def test_every_parameter_as_loops(options, neighbours):
    by_hand = {("power" if name == "noise_power" else name): value for name, value in options.items()}
    for metric, plain_metric in ((lo.NDCG(), ndcg), (lo.MAP(), average_precision), (lo.ERR(), err)):
        want = plain(plain_metric, SCORES, LABELS, SIZES, draws=2, neighbours=neighbours, **by_hand)
        term = lo.YetiRank(metric, draws=2, neighbours=neighbours, **options)
        assert_round(term, queries(LABELS, SIZES), SCORES, want)


@pytest.mark.parametrize("neighbours", [True, False], ids=["neighbours", "all pairs"])
def test_rounds_and_weights_of_rows(neighbours):
    data, steps = queries(LABELS, SIZES, WEIGHTS), [SCORES, -SCORES, 0 * SCORES]
    got, _ = rounds(lo.YetiRank(draws=2, neighbours=neighbours), data, steps, dtype=np.float64)
    for i, scores in enumerate(steps):
        want = plain(ndcg, scores, LABELS, SIZES, draws=2, neighbours=neighbours, round_=i)
        np.testing.assert_allclose(got[i], WEIGHTS * want[:2], atol=1e-12)


def test_label_of_a_column_and_the_names_of_readings():
    term = lo.YetiRank(lo.NDCG(5), label="quality")
    got = lo.gradient(term, SCORES, 0 * LABELS, group=SIZES, quality=LABELS)
    np.testing.assert_array_equal(got, lo.gradient(lo.YetiRank(lo.NDCG(5)), SCORES, LABELS, group=SIZES))
    entry = lo.evaluate(term, SCORES, 0 * LABELS, group=SIZES, quality=LABELS)
    assert list(entry) == ["cost/quality.yetirank-ndcg@5", "quality.ndcg@5"]
    assert entry["quality.ndcg@5"] == lo.NDCG(5)(SCORES, LABELS, group=SIZES)


@pytest.mark.parametrize("neighbours", [True, False], ids=["neighbours", "all pairs"])
def test_extreme_lists(neighbours):
    term = lo.YetiRank(neighbours=neighbours)
    for labels, sizes in (([], []), ([3], [1]), ([2, 2, 2], [3]), ([0, 0], [1, 1])):
        grad, hess = lo.gradient(term, np.arange(len(labels)), labels, group=sizes)
        assert grad.tolist() == hess.tolist() == [0.0] * len(labels)
    for scale in (1e4, 1e308):
        grad, hess = lo.gradient(term, scale * np.array([1.0, -1.0, 0.0]), [0, 1, 2], group=[3])
        assert np.isfinite([grad, hess]).all()
        assert abs(grad.sum()) < 1e-12


# ------------------------------------------------------------------------------------------------------------ noise


@pytest.mark.parametrize(("noise", "kind"), [("logistic", stats.logistic), ("gaussian", stats.norm)])
def test_noise_is_what_it_is_called(noise, kind):
    n = 200_000
    drawn = noisy(np.zeros(n), [n], 0, noise=noise)
    assert abs(drawn.mean()) < 4 * kind.std() / np.sqrt(n)
    assert drawn.var() == pytest.approx(kind.var(), rel=0.02)
    assert stats.kurtosis(drawn) == pytest.approx(kind.stats(moments="k"), abs=0.15)
    assert stats.kstest(drawn, kind.cdf).pvalue > 0.01


@pytest.mark.parametrize("noise", ["logistic", "gaussian"])
def test_noise_is_added_to_the_scores_times_its_power(noise):
    plain_noise = noisy(np.zeros(22), SIZES, 3, noise=noise)
    np.testing.assert_allclose(noisy(SCORES, SIZES, 3, noise=noise, power=2.5), SCORES + 2.5 * plain_noise)


@pytest.mark.parametrize("noise", ["logistic", "gaussian"])
def test_draws_rounds_and_seeds_have_nothing_in_common(noise):
    n = 50_000
    streams = [
        noisy(np.zeros(n), [n], draw, seed=seed, round_=round_, noise=noise)
        for draw, round_, seed in ((0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (0, 1, 1))
    ]
    streams.append(np.roll(streams[0], 1))
    together = np.corrcoef(streams) - np.eye(len(streams))
    assert np.abs(together).max() < 5 / np.sqrt(n)


@pytest.mark.parametrize("noise", ["logistic", "gaussian"])
def test_noise_does_not_depend_on_how_the_work_is_shared(noise):
    whole = noisy(SCORES, SIZES, 1, noise=noise)
    for borders in ([0, 1, 4], [0, 2, 3, 4], [0, 1, 2, 3, 4]):
        np.testing.assert_array_equal(noisy(SCORES, SIZES, 1, noise=noise, borders=borders), whole)
    np.testing.assert_array_equal(noisy(SCORES, [22], 1, noise=noise), whole)


# ------------------------------------------------------------------------------------------------------------ draws

TERMS = [
    lo.YetiRank(draws=3),
    lo.YetiRank(lo.MAP(), draws=2, neighbours=False),
    lo.YetiRank(lo.ERR(), noise="gaussian"),
]


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_any_number_of_threads_and_a_resume_change_no_bit(term):
    assert_same_draws(term, *many_queries(longest=60, count=1500))


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_every_round_draws_afresh(term):
    first, second = rounds(term, queries(LABELS, SIZES), [SCORES] * 2)[0]
    assert (first[0] != second[0]).any()


@pytest.mark.parametrize("neighbours", [True, False], ids=["neighbours", "all pairs"])
def test_sixteen_times_the_draws_spread_a_quarter_as_much(neighbours):
    few, many = (
        rounds(
            lo.YetiRank(draws=draws, neighbours=neighbours), queries(LABELS, SIZES), [SCORES] * 300, dtype=np.float64
        )[0]
        for draws in (2, 32)
    )
    spread = few[:, 0].std(axis=0).mean() / many[:, 0].std(axis=0).mean()
    assert spread == pytest.approx(4, rel=0.15)
    error = few[:, 0].std(axis=0) / np.sqrt(300)
    assert np.all(np.abs(few[:, 0].mean(axis=0) - many[:, 0].mean(axis=0)) < 5 * error + 1e-12)


@pytest.mark.parametrize("neighbours", [True, False], ids=["neighbours", "all pairs"])
def test_constant_scores_treat_rows_of_equal_label_alike(neighbours):
    labels = np.array([0, 2, 1, 0, 1, 2, 0, 0])
    term = lo.YetiRank(neighbours=neighbours)
    grad = rounds(term, queries(labels, [8]), np.zeros((2000, 8)), dtype=np.float64)[0][:, 0]
    for label in range(3):
        rows = np.flatnonzero(labels == label)
        for one, other in itertools.pairwise(rows):
            difference = grad[:, one] - grad[:, other]
            assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(2000)
            assert difference.std() / np.sqrt(2000) < 0.05 * abs(grad.mean(axis=0)).max()


def test_with_next_to_no_noise_all_pairs_are_those_of_lambdarank():
    for metric in (lo.NDCG(), lo.MAP(), lo.ERR()):
        term = lo.YetiRank(metric, noise_power=1e-9, neighbours=False)
        got = lo.gradient(term, SCORES, LABELS, group=SIZES)
        np.testing.assert_allclose(got, lo.gradient(lo.LambdaRank(metric), SCORES, LABELS, group=SIZES), atol=1e-12)


# ------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: lo.YetiRank("ndcg"), TypeError, "metric must be a metric object"),
        (lambda: lo.YetiRank(lo.CustomMetric(max, "own")), TypeError, "metric must have tables, found CustomMetric"),
        (lambda: lo.YetiRank(draws=0), ValueError, "draws must be a whole number from 1, found 0"),
        (lambda: lo.YetiRank(seed=-1), ValueError, "seed must be a whole number from 0, found -1"),
        (lambda: lo.YetiRank(neighbours=1), ValueError, "neighbours must be True or False, found 1"),
        (lambda: lo.YetiRank(noise="gumbel"), ValueError, "noise must be 'logistic' or 'gaussian', found 'gumbel'"),
        (lambda: lo.YetiRank(noise_power=0.0), ValueError, "noise_power must be above 0, found 0.0"),
        (lambda: lo.YetiRank(sigma=-1.0), ValueError, "sigma must be above 0"),
        (lambda: lo.YetiRank(truncation=0), ValueError, "truncation must be a whole number from 1"),
        (lambda: lo.YetiRank(label="a b"), ValueError, "label must be a column's name"),
    ],
)
def test_wrong_parameters_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


# -------------------------------------------------------------------------------------------------------- trainings

ROUNDS = 15
LIGHTGBM = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "metric": "None", "learning_rate": 0.2}
XGBOOST = {"nthread": 1, "max_depth": 4, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
TRAINED = [
    lo.YetiRank(),
    lo.YetiRank(lo.NDCG(10), neighbours=False),
    lo.YetiRank(lo.MAP(gain="exp2"), noise="gaussian"),
]


@pytest.mark.parametrize("term", TRAINED, ids=lambda term: term.name)
def test_lightgbm(term):
    def train(objective):
        data = lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group)
        params = {**LIGHTGBM, "min_sum_hessian_in_leaf": 1e-3, "objective": objective}
        return lgb.train(params, data, ROUNDS).predict(TEST.X)

    TEST.assert_ranked_well(train(lo.Objective(term)), TEST.ndcg(train("lambdarank")))


@pytest.mark.parametrize("term", TRAINED, ids=lambda term: term.name)
def test_xgboost(term):
    def train(params, objective=None):
        data = xgb.DMatrix(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
        return xgb.train({**XGBOOST, **params}, data, ROUNDS, obj=objective).predict(xgb.DMatrix(TEST.X))

    TEST.assert_ranked_well(train({}, lo.Objective(term)), TEST.ndcg(train({"objective": "rank:ndcg"})))


def test_lightgbm_taken_up_again_half_way():
    def train(count, model=None, state=None):
        objective, data = lo.Objective(lo.YetiRank(), state=state), lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group)
        model = lgb.train({**LIGHTGBM, "objective": objective}, data, count, init_model=model)
        return model, objective.state()

    whole, _ = train(6)
    half, state = train(3)
    both, _ = train(3, half, state)
    other, _ = train(3, half)
    np.testing.assert_allclose(both.predict(TEST.X), whole.predict(TEST.X), rtol=1e-6, atol=1e-6)
    assert np.abs(other.predict(TEST.X) - whole.predict(TEST.X)).max() > 1e-2  # which draws as in the first round
