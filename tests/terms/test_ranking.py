"""LambdaRank, RankNet, LambdaLoss: brute force, finite differences, hand-made numbers, what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from tests.checks import assert_round, queries, rounds
from tests.oracles import all_lambdas, dcg, ndcg, orders_of, pulls
from tests.strategies import ranked_data


@settings(max_examples=60, deadline=None)
@given(data=ranked_data(max_queries=3, max_rows=10))
def test_lambdas_equal_swaps_done_one_by_one(data):
    scores, labels, sizes = data
    for term, metric, options in (
        (lo.LambdaRank(lo.NDCG()), ndcg, {}),
        (lo.LambdaRank(lo.NDCG(2)), lambda y: ndcg(y, 2), {}),
        (lo.LambdaRank(lo.DCG(3), sigma=2.0), lambda y: dcg(y, 3), {"sigma": 2.0}),
        (lo.LambdaRank(lo.NDCG(4), truncation=2), lambda y: ndcg(y, 4), {"truncation": 2}),
        (
            lo.LambdaRank(lo.NDCG(), truncation=30, score_gap_norm=True, log_norm=True),
            ndcg,
            {"gap_norm": True, "log_norm": True},
        ),
        (lo.RankNet(sigma=0.5), None, {"sigma": 0.5}),
    ):
        grad, hess = lo.gradient(term, scores, labels, group=sizes)
        want_grad, want_hess, want_cost = all_lambdas(metric, scores, labels, sizes, **options)
        scale = 1e-10 * (1 + np.abs(want_grad).max())
        np.testing.assert_allclose(grad, want_grad, rtol=1e-8, atol=scale)
        np.testing.assert_allclose(hess, want_hess, rtol=1e-8, atol=scale)
        cost = lo.evaluate(term, scores, labels, group=sizes)[f"cost/{term.name}"]
        assert cost == pytest.approx(want_cost, rel=1e-8, abs=1e-12)


def test_hand_made_lambdas():
    labels = [0, 0, 0, 1, 1, 0, 1, 1, 0, 0]  # equal scores: ranks are those of the file; published signs are reversed
    grad, _ = lo.gradient(lo.LambdaRank(lo.NDCG()), np.zeros(10), labels, group=[10])
    published = [-0.495, -0.206, -0.104, 0.231, 0.231, -0.033, 0.240, 0.247, -0.051, -0.061]
    np.testing.assert_allclose(-grad, published, atol=1.1e-3)  # published to three digits, summed from rounded parts


@pytest.mark.parametrize("options", [{}, {"label_difference": True}], ids=str)
def test_slopes_of_ranknet(options):
    rng = np.random.default_rng(0)
    scores, labels, sizes, weights = rng.normal(size=12), rng.integers(0, 4, 12), [5, 7], np.array([2.0, 0.5])
    term, name = lo.RankNet(sigma=1.3, **options), "cost/ranknet"
    grad, hess = lo.gradient(term, scores, labels, group=sizes, weights=weights)
    step = 1e-5
    for i in range(12):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        high, now, low = (lo.evaluate(term, s, labels, group=sizes, weights=weights)[name] for s in (up, scores, down))
        assert grad[i] == pytest.approx(weights.sum() * (high - low) / (2 * step), rel=1e-7, abs=1e-9)
        assert hess[i] == pytest.approx(weights.sum() * (high - 2 * now + low) / step**2, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("label_difference", [False, True])
def test_hinge_as_loops(label_difference):
    rng = np.random.default_rng(2)
    scores, labels, sizes, sigma = rng.normal(size=14), rng.integers(0, 4, 14), [5, 1, 8], 0.7
    grad, hess, cost, active = np.zeros(14), np.zeros(14), 0.0, 0
    for a, b in ((0, 5), (5, 6), (6, 14)):
        for h in range(a, b):
            for w in range(a, b):
                x = sigma * (scores[h] - scores[w])
                if labels[h] > labels[w] and x < 1:
                    weight = labels[h] - labels[w] if label_difference else 1.0
                    active += 1
                    cost += weight * (1 - x) / 3
                    grad[h] -= sigma * weight
                    grad[w] += sigma * weight
                    hess[[h, w]] += sigma**2 * weight
    assert 5 < active < (labels[:5, None] > labels[:5]).sum() + (labels[6:, None] > labels[6:]).sum()
    term = lo.RankNet(sigma=sigma, loss="hinge", label_difference=label_difference)
    assert_round(term, queries(labels, sizes), scores, (grad, hess, cost))


def test_slopes_of_the_hinge_away_from_its_kink():
    scores, labels = np.array([0.3, 1.7, -0.4, 0.9, -1.1]), [0, 1, 2, 1, 0]
    term, sizes, weights = lo.RankNet(loss="hinge"), [3, 2], np.array([2.0, 0.5])
    gaps = [scores[h] - scores[w] for h, w in ((1, 0), (2, 0), (2, 1), (3, 4))]
    assert min(abs(1 - gap) for gap in gaps) > 0.1
    grad, _ = lo.gradient(term, scores, labels, group=sizes, weights=weights)
    for i in range(5):
        step = 0.01 * np.eye(5)[i]
        high, low = (
            lo.evaluate(term, s, labels, group=sizes, weights=weights)["cost/ranknet"]
            for s in (scores + step, scores - step)
        )
        assert grad[i] == pytest.approx(weights.sum() * (high - low) / 0.02, abs=1e-9)


def test_pairs_with_room_enough_do_not_pull_by_the_hinge():
    grad, hess = lo.gradient(lo.RankNet(loss="hinge"), [2.0, 0.9, -0.1], [2, 1, 0], group=[3])
    assert not grad.any()
    assert not hess.any()
    assert lo.evaluate(lo.RankNet(loss="hinge"), [2.0, 0.9, -0.2], [2, 1, 0], group=[3])["cost/ranknet"] == 0


def test_slopes_of_lambdas_with_their_weights_held():
    """Between two ranks the weights do not change, so the cost's slope is the gradient."""
    rng = np.random.default_rng(1)
    scores, labels = rng.permutation(10) * 1.0, rng.integers(0, 4, 10)
    term = lo.LambdaRank(lo.NDCG(3), sigma=0.4)
    grad, _ = lo.gradient(term, scores, labels, group=[10])
    for i in range(10):
        step = np.zeros(10)
        step[i] = 1e-5
        high, low = (lo.evaluate(term, s, labels, group=[10])["cost/ndcg@3"] for s in (scores + step, scores - step))
        assert grad[i] == pytest.approx((high - low) / 2e-5, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("term", [lo.LambdaRank(lo.NDCG()), lo.LambdaRank(lo.DCG(2)), lo.RankNet()], ids=repr)
def test_extreme_lists(term):
    for labels, sizes in (([], []), ([3], [1]), ([2, 2, 2], [3]), ([0, 0, 0], [3]), ([1], [1])):
        n = len(labels)
        grad, hess = lo.gradient(term, np.arange(n), labels, group=sizes)
        assert grad.tolist() == hess.tolist() == [0.0] * n
        assert all(np.isfinite(v) for v in lo.evaluate(term, np.arange(n), labels, group=sizes).values())


# -------------------------------------------------------------------------------------------------------- LambdaLoss


def bound(variant, scores, labels, sizes, *, mu=10.0, truncation=None, normalised=True):
    """Weights of the pairs as the docstring of LambdaLoss has them."""

    def d(rank):
        return 1.0 / math.log2(rank + 2)

    weights = {}
    for order in orders_of(scores, sizes):
        best = dcg(sorted((labels[i] for i in order), reverse=True)) if normalised else 1.0
        for i, h in enumerate(order):
            for j, w in enumerate(order):
                if not labels[h] > labels[w] or (truncation is not None and min(i, j) >= truncation):
                    continue
                high, low = (2.0 ** labels[h] - 1) / best, (2.0 ** labels[w] - 1) / best
                delta = d(abs(i - j) - 1) - d(abs(i - j))
                weights[h, w] = {
                    "1": high * d(i), "2": (high - low) * delta, "2++": (high - low) * (abs(d(i) - d(j)) + mu * delta)
                }[variant]  # fmt: skip
    return weights


@pytest.mark.parametrize("options", [{}, {"truncation": 1}, {"truncation": 4}], ids=str)
@pytest.mark.parametrize("variant", ["1", "2", "2++"])
def test_lambdaloss_as_loops(variant, options):
    rng = np.random.default_rng(7)
    scores, labels, sizes = rng.normal(size=30), rng.integers(0, 5, 30), [3, 1, 26]
    for metric, normalised in ((lo.NDCG(), True), (lo.DCG(), False)):
        grad, hess, cost = pulls(bound(variant, scores, labels, sizes, normalised=normalised, **options), scores, 0.8)
        term = lo.LambdaLoss(metric, variant, sigma=0.8, **options)
        assert_round(term, queries(labels, sizes), scores, (grad, hess, cost / 3))


@settings(max_examples=40, deadline=None)
@given(data=ranked_data(max_queries=3, max_rows=10))
def test_lambdaloss_as_loops_at_random(data):
    scores, labels, sizes = data
    for variant, mu in (("1", 10.0), ("2", 10.0), ("2++", 10.0), ("2++", 0.3)):
        grad, hess, cost = pulls(bound(variant, scores, labels, sizes, mu=mu), scores)
        want = grad, hess, cost / len(sizes)
        assert_round(lo.LambdaLoss(variant=variant, mu=mu), queries(labels, sizes), scores, want, [np.float64])


def test_without_its_second_part_the_bound_is_lambdarank():
    rng = np.random.default_rng(8)
    scores, labels, sizes, weights = rng.normal(size=40), rng.integers(0, 5, 40), [15, 25], rng.random(40)
    options = {"sigma": 1.5, "truncation": 12, "score_gap_norm": True, "log_norm": True}
    for dtype in (np.float64, np.float32):
        data = queries(labels, sizes, weights)
        got, run = rounds(lo.LambdaLoss(lo.NDCG(), mu=0.0, **options), data, [scores], dtype=dtype)
        want, other = rounds(lo.LambdaRank(lo.NDCG(), **options), data, [scores], dtype=dtype)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        assert run.history["ndcg"] == other.history["ndcg"]
        assert run.history["cost/lambdaloss2pp"] == pytest.approx(other.history["cost/ndcg"], rel=1e-5)


def test_lambdaloss_of_a_column():
    scores, quality = [0.1, 0.2, 0.3], [2, 1, 0]
    got = lo.gradient(lo.LambdaLoss(label="quality"), scores, [0, 0, 0], group=[3], quality=quality)
    np.testing.assert_array_equal(got, lo.gradient(lo.LambdaLoss(), scores, quality, group=[3]))
    names = lo.evaluate(lo.LambdaLoss(label="quality"), scores, [0, 0, 0], group=[3], quality=quality)
    assert list(names) == ["cost/quality.lambdaloss2pp", "quality.ndcg"]


@pytest.mark.slow
def test_a_query_of_100_000_rows():
    rng = np.random.default_rng(0)
    n = 100_000
    scores, labels = rng.normal(size=n), (rng.random(n) < 0.001) * 1.0
    grad, hess = lo.gradient(lo.LambdaRank(lo.NDCG()), scores, labels, group=[n])
    assert abs(grad.sum()) < 1e-9 * np.abs(grad).sum()
    assert (grad[labels == 1] < 0).all()
    assert (hess > 0).all()


def test_labels_may_be_any_real_numbers():
    scores, labels = np.array([0.3, 0.1, 0.2]), np.array([0.25, 1e-3, 7.5])
    got = lo.gradient(lo.LambdaRank(lo.NDCG(gain="linear")), scores, labels, group=[3])
    want = all_lambdas(lambda y: ndcg(y, gain=float), scores, labels, [3])
    np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
    np.testing.assert_allclose(
        lo.gradient(lo.RankNet(), scores, -labels, group=[3])[0],
        -lo.gradient(lo.RankNet(), -scores, labels, group=[3])[0],
    )


def test_label_of_a_column():
    scores, quality = [0.1, 0.2, 0.3], [2, 1, 0]
    term = lo.LambdaRank(lo.NDCG(2), label="quality")
    assert term.name == "quality.ndcg@2"
    got = lo.gradient(term, scores, [0, 0, 0], group=[3], quality=quality)
    want = lo.gradient(lo.LambdaRank(lo.NDCG(2)), scores, quality, group=[3])
    np.testing.assert_array_equal(got, want)
    assert lo.evaluate(term, scores, [0, 0, 0], group=[3], columns={"quality": quality}).keys() == {
        "cost/quality.ndcg@2",
        "quality.ndcg@2",
    }


def test_hessian_floor():
    labels, scores = [0, 1, 0], [50.0, 0.0, -50.0]
    _, plain = lo.gradient(lo.LambdaRank(lo.NDCG()), scores, labels, group=[3])
    _, floored = lo.gradient(lo.LambdaRank(lo.NDCG(), hessian_floor=1e-6), scores, labels, group=[3])
    assert plain.max() < 1e-6
    assert floored.tolist() == [1e-6] * 3


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: lo.LambdaRank("ndcg"), TypeError, r"metric must be a metric object such as NDCG\(10\), found 'ndcg'"),
        (lambda: lo.LambdaRank(lo.NDCG), TypeError, "metric must be a metric object"),
        (lambda: lo.LambdaRank(lo.NDCG(), sigma=0.0), ValueError, "sigma must be above 0, found 0.0"),
        (lambda: lo.LambdaRank(lo.NDCG(), sigma=float("nan")), ValueError, "sigma must be a finite number"),
        (lambda: lo.RankNet(sigma=-1), ValueError, "sigma"),
        (lambda: lo.LambdaRank(lo.NDCG(), truncation=0), ValueError, "truncation must be a whole number from 1"),
        (lambda: lo.LambdaRank(lo.NDCG(), truncation=1.5), ValueError, "truncation"),
        (lambda: lo.LambdaRank(lo.NDCG(), hessian_floor=-1), ValueError, "hessian_floor"),
        (lambda: lo.LambdaRank(lo.NDCG(), log_norm=1), ValueError, "log_norm must be True or False"),
        (lambda: lo.LambdaRank(lo.NDCG(), label="a b"), ValueError, "label must be a column's name"),
        (lambda: lo.RankNet(label=3), ValueError, "label"),
        (lambda: lo.RankNet(loss="square"), ValueError, "loss must be 'logistic' or 'hinge', found 'square'"),
        (lambda: lo.LambdaLoss(lo.NDCG(5)), ValueError, r"metric must be NDCG\(\) or DCG\(\), without a cut-off"),
        (lambda: lo.LambdaLoss(lo.DCG(5)), ValueError, "without a cut-off"),
        (lambda: lo.LambdaLoss(lo.NDCG(ties="mean")), ValueError, "without a cut-off"),
        (lambda: lo.LambdaLoss(lo.MAP()), ValueError, r"metric must be NDCG\(\) or DCG\(\).*found MAP"),
        (lambda: lo.LambdaLoss(lo.NDCG), TypeError, "metric must be a metric object"),
        (lambda: lo.LambdaLoss(variant="3"), ValueError, "variant must be '1', '2' or '2\\+\\+', found '3'"),
        (lambda: lo.LambdaLoss(mu=-1.0), ValueError, "mu must not be negative, found -1.0"),
        (lambda: lo.LambdaLoss(mu="1"), ValueError, "mu must be a finite number"),
        (lambda: lo.LambdaLoss(truncation=0), ValueError, "truncation"),
        (lambda: lo.LambdaRank(lo.NDCG(), truncation_level=3), TypeError, "truncation_level"),
    ],
)
def test_wrong_parameters_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()
