"""LambdaRank and RankNet: brute force, finite differences, hand-made numbers, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from tests.oracles import all_lambdas, dcg, ndcg
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


def test_slopes_of_ranknet():
    rng = np.random.default_rng(0)
    scores, labels, sizes, weights = rng.normal(size=12), rng.integers(0, 4, 12), [5, 7], np.array([2.0, 0.5])
    term, name = lo.RankNet(sigma=1.3), "cost/ranknet"
    grad, hess = lo.gradient(term, scores, labels, group=sizes, weights=weights)
    step = 1e-5
    for i in range(12):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        high, now, low = (lo.evaluate(term, s, labels, group=sizes, weights=weights)[name] for s in (up, scores, down))
        assert grad[i] == pytest.approx(weights.sum() * (high - low) / (2 * step), rel=1e-7, abs=1e-9)
        assert hess[i] == pytest.approx(weights.sum() * (high - 2 * now + low) / step**2, rel=1e-3, abs=1e-4)


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
        (lambda: lo.LambdaRank(lo.NDCG(), truncation_level=3), TypeError, "truncation_level"),
    ],
)
def test_wrong_parameters_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()
