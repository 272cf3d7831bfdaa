"""Listwise terms beside loops over lists that say what they are: slopes, weights, extremes, draws, trainings."""

import json
import math
import random
from fractions import Fraction
from itertools import pairwise

import lightgbm as lgb
import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.kernels import random as numbers
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from tests.data import TEST, TRAIN

xgb = pytest.importorskip("xgboost")

TERMS = [lo.QueryRMSE(), lo.QuerySoftMax(), lo.QuerySoftMax(beta=0.3), lo.XENDCG(), lo.XENDCG(seed=7)]
SIZES = [4, 1, 6, 2]
LABELS = np.array([0.0, 2.0, 1.0, 0.5, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 4.0])
SCORES = np.array([0.3, -1.2, 2.0, 0.3, 5.0, 0.1, 0.2, -0.4, 0.9, 1.5, -2.0, 0.7, -0.6])
WEIGHTS = np.array([1.0, 0.5, 2.0, 0.0, 3.0, 1.0, 1.0, 0.25, 1.0, 2.0, 0.5, 1.5, 0.75])


def gammas(n, seed=0, round_=0):
    stream = np.uint64(numbers.stream(seed, round_, 0))
    return [numbers.uniform(stream, row) for row in range(n)]


# ---------------------------------------------------------------------- one query in plain Python: cost, grad, hess


def plain_query_rmse(s, y, w, term, gamma):
    total = sum(w)
    mean = sum(wi * (si - yi) for si, yi, wi in zip(s, y, w, strict=True)) / total if total else 0.0
    error = [si - yi - mean for si, yi in zip(s, y, strict=True)]
    cost = sum(wi * e * e / 2 for wi, e in zip(w, error, strict=True))
    return cost, [wi * e for wi, e in zip(w, error, strict=True)], list(w)


def plain_softmax(s):
    highest = max(s)
    e = [math.exp(si - highest) for si in s]
    return [ei / math.fsum(e) for ei in e]


def plain_query_softmax(s, y, w, term, gamma):
    n, beta = len(s), term.beta
    mass = sum(wi * yi for wi, yi in zip(w, y, strict=True))
    if mass == 0:
        return 0.0, [0.0] * n, [0.0] * n
    p = plain_softmax([beta * si + (math.log(wi) if wi else -math.inf) for si, wi in zip(s, w, strict=True)])
    cost = -sum(wi * yi * math.log(pi) for wi, yi, pi in zip(w, y, p, strict=True) if wi * yi)
    grad = [beta * (mass * pi - wi * yi) for wi, yi, pi in zip(w, y, p, strict=True)]
    return cost, grad, [beta**2 * mass * pi * (1 - pi) for pi in p]


def plain_expansion(s, y, gamma):
    """The three terms of the gradient, the Hessian and the cross entropy of one query, as LightGBM has them."""
    n = len(s)
    if n == 1:
        return [[0.0], [0.0], [0.0]], [0.0], 0.0
    rho = plain_softmax(s)
    phi = [2**yi - gi for yi, gi in zip(y, gamma, strict=True)]
    share = [f / sum(phi) for f in phi]
    terms = [[rho[i] - share[i] for i in range(n)]]
    for _ in range(2):
        scaled = [terms[-1][j] / (1 - rho[j]) for j in range(n)]
        terms.append([rho[i] * sum(scaled[j] for j in range(n) if j != i) for i in range(n)])
    cost = -sum(p * math.log(r) for p, r in zip(share, rho, strict=True))
    return terms, [r * (1 - r) for r in rho], cost


def plain_xendcg(s, y, w, term, gamma):
    terms, hess, cost = plain_expansion(s, y, gamma)
    grad = [wi * (a + b + c) for wi, a, b, c in zip(w, *terms, strict=True)]
    return cost * sum(w) / len(w), grad, [wi * h for wi, h in zip(w, hess, strict=True)]


PLAIN = {lo.QueryRMSE: plain_query_rmse, lo.QuerySoftMax: plain_query_softmax, lo.XENDCG: plain_xendcg}


def plain(term, scores, labels, sizes, weights=None, round_=0):
    """Value, gradient and Hessian of a data set."""
    n = len(scores)
    weights = [1.0] * n if weights is None else list(weights)
    gamma = gammas(n, getattr(term, "seed", 0), round_)
    cost, grad, hess, query_weight = 0.0, [], [], 0.0
    for a, b in pairwise(np.cumsum([0, *sizes]).tolist()):
        s, y, w = list(scores[a:b]), list(labels[a:b]), weights[a:b]
        c, g, h = PLAIN[type(term)](s, y, w, term, gamma[a:b])
        cost, grad, hess, query_weight = cost + c, grad + g, hess + h, query_weight + sum(w) / len(w)
    return cost / (sum(weights) if isinstance(term, lo.QueryRMSE) else query_weight), grad, hess


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_as_loops_over_lists(term, weights):
    value, grad, hess = plain(term, SCORES, LABELS, SIZES, weights)
    got = lo.gradient(term, SCORES, LABELS, group=SIZES, weights=weights)
    np.testing.assert_allclose(got[0], grad, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got[1], hess, rtol=1e-13, atol=1e-14)
    cost = lo.evaluate(term, SCORES, LABELS, group=SIZES, weights=weights)[f"cost/{term.name}"]
    assert cost == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_as_loops_over_lists_at_random(term, dtype):
    rng = np.random.default_rng(0)
    for spread in (0.0, 1e-3, 1.0, 5.0):
        sizes = rng.integers(1, 40, 12)
        n = sizes.sum()
        scores, labels = spread * rng.normal(size=n), rng.integers(0, 5, n) * rng.integers(0, 2, n).astype(float)
        weights = rng.random(n)
        run = Run(term, Queries.from_arrays(labels, group=sizes, weights=weights), dtype=dtype)
        for round_ in range(3):
            grad, hess = run.step(scores)
            value, *want = plain(term, scores, labels, sizes, weights, round_)
            precision = dict(rtol=1e-6, atol=1e-7) if dtype == np.float32 else dict(rtol=1e-10, atol=1e-13)
            np.testing.assert_allclose(grad, want[0], **precision)
            np.testing.assert_allclose(hess, want[1], **precision)
            assert grad.dtype == hess.dtype == dtype
            assert run.history[f"cost/{term.name}"][-1] == pytest.approx(value, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------ slopes


def slopes(term, weights, scale):
    """Gradient and second derivatives of scale times the value, by differences."""
    step = 1e-4
    first, second = [], []
    for i in range(len(SCORES)):
        move = step * np.eye(len(SCORES))[i]
        high, now, low = (
            scale * lo.evaluate(term, s, LABELS, group=SIZES, weights=weights)[f"cost/{term.name}"]
            for s in (SCORES + move, SCORES, SCORES - move)
        )
        first.append((high - low) / (2 * step))
        second.append((high - 2 * now + low) / step**2)
    return np.array(first), np.array(second)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("term", [lo.QueryRMSE(), lo.QuerySoftMax(), lo.QuerySoftMax(beta=2.0)], ids=repr)
def test_gradient_is_that_of_total_weight_times_value(term, weights):
    w = np.ones(len(SCORES)) if weights is None else weights
    query = np.repeat(np.arange(len(SIZES)), SIZES)
    in_query = np.bincount(query, w)
    rows = isinstance(term, lo.QueryRMSE)
    first, second = slopes(term, weights, w.sum() if rows else (in_query / SIZES).sum())
    grad, hess = lo.gradient(term, SCORES, LABELS, group=SIZES, weights=weights)
    np.testing.assert_allclose(grad, first, atol=1e-6)
    np.testing.assert_allclose(hess * (1 - w / in_query[query]) if rows else hess, second, atol=1e-5)


def test_first_term_of_xendcg_is_the_gradient_of_the_cross_entropy():
    first, _ = slopes(lo.XENDCG(), None, len(SIZES))
    gamma = gammas(len(SCORES))
    want = []
    for a, b in pairwise(np.cumsum([0, *SIZES]).tolist()):
        want += plain_expansion(list(SCORES[a:b]), list(LABELS[a:b]), gamma[a:b])[0][0]
    np.testing.assert_allclose(first, want, atol=1e-8)


# ------------------------------------------------------------------------------------------------- values and weights


def test_values():
    assert lo.evaluate(lo.QueryRMSE(), [0, 0, 5], [1, 3, 9], group=[2, 1]) == pytest.approx(
        {"cost/query_rmse": 2 / 3 / 2, "query_rmse": math.sqrt(2 / 3)}
    )
    # mean error of the first query (3 x -1 + 1 x -3) / 4, squares 0.25 and 2.25
    weighted = lo.evaluate(lo.QueryRMSE(), [0, 0, 5], [1, 3, 9], group=[2, 1], weights=[3, 1, 1])
    assert weighted["query_rmse"] == pytest.approx(math.sqrt((3 * 0.25 + 2.25) / 5))
    assert lo.evaluate(lo.QuerySoftMax(), [0, 0, 1], [1, 2, 3], group=[2, 1]) == pytest.approx(
        {"cost/query_softmax": 3 * math.log(2) / 2}
    )
    assert lo.evaluate(lo.QuerySoftMax(), [math.log(3), 0], [1, 0], group=[2], weights=[2, 1]) == pytest.approx(
        {"cost/query_softmax": -2 * math.log(6 / 7) / 1.5}
    )
    assert lo.evaluate(lo.XENDCG(), [0, 0, 0, 1], [1, 2, 0, 3], group=[3, 1]) == pytest.approx(
        {"cost/xendcg": math.log(3) / 2}
    )


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_scores_and_labels_in_columns(term):
    other = type(term)(**{**vars(term), "label": "other"})
    assert other.name == f"other.{term.name}"
    rng = np.random.default_rng(0)
    noise = rng.normal(size=len(LABELS))  # as labels that must not be looked at
    got = lo.gradient(other, SCORES, noise, group=SIZES, other=LABELS)
    want = lo.gradient(term, SCORES, LABELS, group=SIZES)
    np.testing.assert_array_equal(got, want)
    names = list(lo.evaluate(other, SCORES, noise, group=SIZES, other=LABELS))
    assert names == [name.replace(term.name, other.name) for name in lo.evaluate(term, SCORES, LABELS, group=SIZES)]


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_weights_of_queries(term):
    per_query = np.array([0.5, 2.0, 1.0, 3.0])
    plain_grad = lo.gradient(term, SCORES, LABELS, group=SIZES)
    grad = lo.gradient(term, SCORES, LABELS, group=SIZES, weights=per_query)
    np.testing.assert_allclose(grad, np.repeat(per_query, SIZES) * plain_grad, rtol=1e-12, atol=1e-14)
    cost = lo.evaluate(term, SCORES, LABELS, group=SIZES, weights=per_query)
    for factor in (2.0, 1e-9, 1e9):
        assert lo.evaluate(term, SCORES, LABELS, group=SIZES, weights=factor * per_query) == pytest.approx(cost)
        again = lo.gradient(term, SCORES, LABELS, group=SIZES, weights=factor * per_query)
        np.testing.assert_allclose(again, factor * np.array(grad), rtol=1e-9, atol=1e-12 * factor)
    nothing = np.zeros(len(SIZES))
    assert not np.any(lo.gradient(term, SCORES, LABELS, group=SIZES, weights=nothing))
    assert set(lo.evaluate(term, SCORES, LABELS, group=SIZES, weights=nothing).values()) == {0.0}


@pytest.mark.parametrize("term", [lo.QueryRMSE(), lo.QuerySoftMax(), lo.QuerySoftMax(beta=2.0)], ids=repr)
def test_a_weight_of_2_is_two_rows_and_one_of_0_is_none(term):
    copies = np.array([1, 2, 0, 3, 1, 1, 0, 2, 1, 2, 1, 1, 1])
    rows = np.repeat(np.arange(len(copies)), copies)
    sizes = [copies[a:b].sum() for a, b in pairwise(np.cumsum([0, *SIZES]))]
    weighted = lo.gradient(term, SCORES, LABELS, group=SIZES, weights=copies)
    single = lo.gradient(term, SCORES[rows], LABELS[rows], group=sizes)
    np.testing.assert_allclose(weighted[0], np.bincount(rows, single[0], len(copies)), rtol=1e-12, atol=1e-14)
    scores = SCORES.copy()
    scores[copies == 0] = 1e4  # however high, it is not there
    np.testing.assert_array_equal(lo.gradient(term, scores, LABELS, group=SIZES, weights=copies), weighted)


def test_weights_of_rows_multiply_the_gradient_of_xendcg():
    got = lo.gradient(lo.XENDCG(), SCORES, LABELS, group=SIZES, weights=WEIGHTS)
    np.testing.assert_allclose(
        got, WEIGHTS * np.array(lo.gradient(lo.XENDCG(), SCORES, LABELS, group=SIZES)), rtol=1e-13
    )


# ---------------------------------------------------------------------------------------------------- edges, extremes


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_no_rows(term):
    grad, hess = lo.gradient(term, [], [], qid=[])
    assert len(grad) == len(hess) == 0
    assert set(lo.evaluate(term, [], [], qid=[]).values()) == {0.0}


@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 3.0]], ids=["plain", "weighted"])
@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_queries_of_one_row(term, weights):
    grad, hess = lo.gradient(term, [3.0, -1e4, 0.0], [0, 1, 5], group=[1, 1, 1], weights=weights)
    np.testing.assert_array_equal(grad, 0.0)
    np.testing.assert_array_equal(hess, (weights or 1.0) if isinstance(term, lo.QueryRMSE) else 0.0)
    assert set(lo.evaluate(term, [3.0, -1e4, 0.0], [0, 1, 5], group=[1, 1, 1], weights=weights).values()) == {0.0}


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_queries_without_rows(term):
    queries = Queries(LABELS, np.array([0, 0, 4, 5, 11, 11, 13, 13]), WEIGHTS)
    got = Run(term, queries, dtype=np.float64).step(SCORES)
    np.testing.assert_array_equal(got, lo.gradient(term, SCORES, LABELS, group=SIZES, weights=WEIGHTS))


def test_equal_labels():
    scores, same = np.array([1.0, 0.0, -1.0]), [2.0, 2.0, 2.0]
    grad, _ = lo.gradient(lo.QueryRMSE(), scores, same, group=[3])
    np.testing.assert_allclose(grad, scores, atol=1e-15)
    grad, hess = lo.gradient(lo.QuerySoftMax(), scores, [0, 0, 0], group=[3])
    assert not np.any([grad, hess])
    grad, hess = lo.gradient(lo.QuerySoftMax(), [0, 0, 0], same, group=[3])
    np.testing.assert_allclose(grad, 0.0, atol=1e-15)
    assert (hess > 0).all()
    grad, hess = lo.gradient(lo.XENDCG(), scores, same, group=[3])
    assert np.isfinite(grad).all()
    assert (hess > 0).all()


@pytest.mark.parametrize("scale", [1e4, 1e30, 1e100])
def test_scores_far_apart(scale):
    """The limits, in which the row on top has all the probability."""
    scores, labels = scale * np.array([0.0, 3.0, 1.0, 0.9]), np.array([1.0, 1.0, 0.0, 2.0])
    grad, hess = lo.gradient(lo.QuerySoftMax(), scores, labels, group=[4])
    np.testing.assert_array_equal(grad, [-1, 3, 0, -2])
    np.testing.assert_array_equal(hess, 0.0)
    cost = lo.evaluate(lo.QuerySoftMax(), scores, labels, group=[4])["cost/query_softmax"]
    assert cost == pytest.approx(scale * (3 + 2 * 2.1))
    grad, hess = lo.gradient(lo.XENDCG(), scores, labels, group=[4])
    phi = 2**labels - gammas(4)
    share = phi / phi.sum()
    # (0, 1, 0, 0) - share; what the second term moves from the row on top to the next one, the third moves back
    np.testing.assert_allclose(grad, [-share[0], 1 - share[1], -share[2], -share[3]], rtol=1e-14)
    np.testing.assert_array_equal(hess, 0.0)
    cost = lo.evaluate(lo.XENDCG(), scores, labels, group=[4])["cost/xendcg"]
    assert cost == pytest.approx(scale * (3 * share[0] + 2 * share[2] + 2.1 * share[3]))
    grad, _ = lo.gradient(lo.QueryRMSE(), scores, labels, group=[4])
    assert abs(grad.sum()) <= 1e-12 * scale


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_scores_at_the_end_of_the_range(term):
    scores = np.array([1.7e308, -1.7e308, 0.0, 1.0])
    if isinstance(term, lo.QueryRMSE):
        scores /= 1e160  # its square must fit
    grad, hess = lo.gradient(term, scores, [0, 1, 2, 0], group=[4])
    assert np.isfinite(grad).all()
    assert (hess >= 0).all()
    assert np.isfinite(lo.evaluate(term, scores, [0, 1, 2, 0], group=[4])[f"cost/{term.name}"])


def test_xendcg_as_the_best_row_takes_off():
    """Against exact fractions of e^s, where doubles lose 1 - rho: from a lead of 0 to one of 800."""
    labels, gamma = [0, 2, 1], [Fraction(g) for g in gammas(3)]
    for lead in (0.0, 1.0, 10.0, 35.0, 37.0, 40.0, 100.0, 500.0, 700.0, 800.0):
        e = [Fraction(math.exp(-lead / 2)) ** 2 if lead > 600 else Fraction(math.exp(-lead)), Fraction(1)]
        e.append(e[0] * Fraction(math.exp(-0.5)))
        rho = [x / sum(e) for x in e]
        phi = [2**y - g for y, g in zip(labels, gamma, strict=True)]
        terms = [[r - f / sum(phi) for r, f in zip(rho, phi, strict=True)]]
        for _ in range(2):
            scaled = [x / (1 - r) for x, r in zip(terms[-1], rho, strict=True)]
            terms.append([r * (sum(scaled) - x) for r, x in zip(rho, scaled, strict=True)])
        want = [float(sum(three)) for three in zip(*terms, strict=True)]
        grad, hess = lo.gradient(lo.XENDCG(), [0.0, lead, -0.5], labels, group=[3])
        np.testing.assert_allclose(grad, want, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(hess, [float(r * (1 - r)) for r in rho], rtol=1e-12, atol=1e-300)


def test_labels_of_any_size():
    small, large = (lo.gradient(lo.XENDCG(), SCORES, LABELS + more, group=SIZES) for more in (60.0, 5000.0))
    np.testing.assert_allclose(small, large, rtol=1e-12, atol=1e-14)  # 2^60 and more: gamma is too little to be seen
    first = lo.evaluate(lo.XENDCG(), [0.0, 1.0], [0.0, 2000.0], group=[2])["cost/xendcg"]
    assert first == pytest.approx(math.log1p(math.exp(-1)))
    grad, _ = lo.gradient(lo.XENDCG(), [0.0, 1.0], [0.5, 1.25], group=[2])
    gamma = gammas(2)
    (a, b, c), *_ = plain_expansion([0.0, 1.0], [0.5, 1.25], gamma)
    np.testing.assert_allclose(grad, np.array(a) + b + c, rtol=1e-13)


# ------------------------------------------------------------------------------------------------------------- draws


def steps(term, queries, scores, **more):
    run = Run(term, queries, **more)
    return [np.array(run.step(s)) for s in scores], run


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_any_number_of_threads_and_a_resume_change_no_bit(term):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 120, 1200)
    n = sizes.sum()
    queries = Queries.from_arrays(rng.integers(0, 5, n), group=sizes, weights=rng.random(n))
    scores = [rng.normal(size=n) for _ in range(4)]
    want, run = steps(term, queries, scores, threads=1)
    for threads in (2, 3, 7):
        got, other = steps(term, queries, scores, threads=threads)
        assert len(other.work.ranking.parts) > threads  # or nothing would be shared
        np.testing.assert_array_equal(got, want)
        assert other.history == run.history
    begun, first = steps(term, queries, scores[:2])
    ended, second = steps(term, queries, scores[2:], state=json.loads(json.dumps(first.state)))
    np.testing.assert_array_equal([*begun, *ended], want)
    assert {name: values + second.history[name] for name, values in first.history.items()} == run.history


def test_every_round_and_seed_draws_afresh():
    queries = Queries.from_arrays(LABELS, group=SIZES)
    rounds, _ = steps(lo.XENDCG(), queries, [SCORES] * 3, dtype=np.float64)
    others, _ = steps(lo.XENDCG(seed=1), queries, [SCORES] * 3, dtype=np.float64)
    grads = [grad for grad, _ in rounds + others]
    for i, one in enumerate(grads):
        assert all(not np.allclose(one, other, atol=1e-3) for other in grads[:i])
    for (_, hess), (_, other) in zip(rounds, others, strict=True):
        np.testing.assert_array_equal(hess, other)


def test_the_mean_of_many_draws_is_that_of_another_generator():
    queries, many = Queries.from_arrays(LABELS, group=SIZES), 4000
    ours = np.array([grad for grad, _ in steps(lo.XENDCG(), queries, [SCORES] * many, dtype=np.float64)[0]])
    halves = ours[: many // 2].mean(axis=0), ours[many // 2 :].mean(axis=0)
    error = ours.std(axis=0) * math.sqrt(2 / many) + 1e-12
    assert (np.abs(halves[0] - halves[1]) < 5 * error).all()
    rng, theirs = random.Random(0), []
    for _ in range(many):
        row = []
        for a, b in pairwise(np.cumsum([0, *SIZES]).tolist()):
            draw = [rng.random() for _ in range(b - a)]
            row += [
                sum(t) for t in zip(*plain_expansion(SCORES[a:b].tolist(), LABELS[a:b].tolist(), draw)[0], strict=True)
            ]
        theirs.append(row)
    assert (np.abs(ours.mean(axis=0) - np.mean(theirs, axis=0)) < 5 * error).all()


# ------------------------------------------------------------------------------------------------- what is refused


def test_wrong_parameters_are_refused_in_plain_words():
    for kind in (lo.QueryRMSE, lo.QuerySoftMax, lo.XENDCG):
        with pytest.raises(ValueError, match="label must be a column's name"):
            kind(label="two words")
        with pytest.raises(ValueError, match="a ranking term needs queries"):
            lo.gradient(kind(), [0, 0], [0, 1])
        with pytest.raises(ValueError, match=r"label='price': this data set of 2 rows has no such column"):
            lo.gradient(kind(label="price"), [0, 0], [0, 1], group=[2])
    for beta in (0, -1.0):
        with pytest.raises(ValueError, match="beta must be above 0"):
            lo.QuerySoftMax(beta=beta)
    for beta in (math.nan, math.inf, "1", True, None):
        with pytest.raises(ValueError, match="beta must be a finite number"):
            lo.QuerySoftMax(beta=beta)
    for seed in (-1, 0.5, True, None):
        with pytest.raises(ValueError, match="seed must be a whole number from 0"):
            lo.XENDCG(seed=seed)
    with pytest.raises(ValueError, match=r"seed must be a whole number below 2\^63"):
        lo.XENDCG(seed=2**63)
    for term in (lo.QuerySoftMax(), lo.XENDCG()):
        with pytest.raises(ValueError, match=f"label: {type(term).__name__} takes labels from 0, row 1 is -2"):
            lo.gradient(term, [0, 0], [1, -2], group=[2])
    assert np.isfinite(lo.gradient(lo.XENDCG(seed=2**63 - 1), SCORES, LABELS, group=SIZES)).all()


# --------------------------------------------------------------------------------------------------------- trainings

ROUNDS = 12
LIGHTGBM = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "metric": "None", "learning_rate": 0.2}
XGBOOST = {"nthread": 1, "max_depth": 4, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}


def train_lightgbm(objective, data):
    return lgb.train({**LIGHTGBM, "objective": objective}, data, ROUNDS)


@pytest.mark.parametrize("term", [lo.QueryRMSE(), lo.QuerySoftMax(), lo.XENDCG()], ids=repr)
def test_lightgbm(term):
    def data():
        return lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group)

    objective, train = lo.Objective(term), data()
    model = train_lightgbm(objective, train)
    TEST.assert_ranked_well(model.predict(TEST.X), TEST.ndcg(train_lightgbm("rank_xendcg", data()).predict(TEST.X)))
    cost = objective.history(train)[f"cost/{term.name}"]
    assert len(cost) == ROUNDS
    assert cost[-1] < cost[0]


@pytest.mark.parametrize("term", [lo.QueryRMSE(), lo.QuerySoftMax(), lo.XENDCG()], ids=repr)
def test_xgboost(term):
    def data(table=TRAIN):
        return xgb.DMatrix(table.X, table.y, qid=table.qid)

    objective, train = lo.Objective(term), data()
    model = xgb.train(XGBOOST, train, ROUNDS, obj=objective)
    own = xgb.train({**XGBOOST, "objective": "rank:ndcg"}, data(), ROUNDS)
    TEST.assert_ranked_well(model.predict(data(TEST)), TEST.ndcg(own.predict(data(TEST))))
    cost = objective.history(train)[f"cost/{term.name}"]
    assert len(cost) == ROUNDS
    assert cost[-1] < cost[0]


def test_the_expansion_is_lightgbms():
    """LightGBM's gradients at its own draws, seen in the leaves of a tree with few rows in each: -sum g / sum h."""
    rng = np.random.default_rng(3)
    sizes = [5, 7]
    n, seed = sum(sizes), 11
    labels, scores = rng.integers(0, 4, n).astype(float), rng.normal(size=n)
    params = {
        "objective": "rank_xendcg", "objective_seed": seed, "num_leaves": n, "min_data_in_leaf": 1, "max_bin": 2 * n,
        "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0, "learning_rate": 1.0, "verbosity": -1, "num_threads": 1,
    }  # fmt: skip
    column = rng.permutation(n).reshape(-1, 1) + 1.0
    model = lgb.train(params, lgb.Dataset(column, labels, group=sizes, init_score=scores, params=params), 1)
    grad, hess = [], []
    for q, (a, b) in enumerate(pairwise(np.cumsum([0, *sizes]).tolist())):
        state, draw = seed + q, []
        for _ in range(a, b):
            state = (214013 * state + 2531011) % 2**32  # LightGBM's generator
            draw.append((state >> 16 & 0x7FFF) / 32768)
        terms, h, _ = plain_expansion(scores[a:b].tolist(), labels[a:b].tolist(), draw)
        grad += [sum(three) for three in zip(*terms, strict=True)]
        hess += h
    leaf = model.predict(column, pred_leaf=True).ravel()
    assert leaf.max() >= n / 2
    want = -np.bincount(leaf, grad) / np.bincount(leaf, hess)
    np.testing.assert_allclose(model.predict(column), want[leaf], rtol=1e-4, atol=1e-5)
