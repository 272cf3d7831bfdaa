"""The general pair loop against the reference kernel, which swaps rows one by one and evaluates the metric again."""

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from lambda_objectives.kernels import cpu, reference
from lambda_objectives.kernels.pairs import LONGEST
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from tests.strategies import ranked_data

METRICS = [
    lo.MAP(), lo.MAP(3), lo.MAP(gain="linear"), lo.MAP(2, gain="exp2"), lo.MRR(), lo.MRR(2), lo.HitRate(2), lo.ERR(),
    lo.ERR(3), lo.Kendall(), lo.Kendall("b"), lo.NDCG(3, ties="mean"), lo.AUC(ties="mean"), lo.Spearman(), lo.RBP(),
    lo.Precision(3), lo.Recall(3),
]  # fmt: skip
TERMS = [
    *[lo.LambdaRank(metric) for metric in METRICS],
    *[lo.LambdaRank(metric, truncation=3, score_gap_norm=True, log_norm=True) for metric in METRICS],
    *[lo.LambdaRank(metric, truncation=7, label_difference=True, sigma=2.0) for metric in METRICS],
    *[lo.LambdaRank(metric, sample=2, seed=5, log_norm=True) for metric in METRICS],
    *[lo.RiskRank(metric, "other", measure=m, alpha=2.0) for metric in METRICS for m in ("urisk", "trisk")
      if "mean" not in repr(metric)],
    *[lo.YetiRank(metric, draws=3, neighbours=False) for metric in METRICS],
    *[lo.LambdaRank(metric, propensity="share", truncation=4) for metric in METRICS],
    *[lo.LambdaRank(metric, label="judged", unjudged=True) for metric in METRICS if "Kend" not in repr(metric)
      and "Spear" not in repr(metric)],
    lo.LambdaRank(lo.NDCG(), sample=1),
    lo.LambdaRank(lo.NDCG(), label_difference=True),
    *[lo.LambdaLoss(variant=variant, truncation=k) for variant in ("1", "2", "2++") for k in (None, 3)],
    lo.RankNet(loss="hinge"), lo.RankNet(loss="hinge", sigma=0.3, label_difference=True), lo.RankNet(sample=2),
]  # fmt: skip


def data_set(scores, labels, sizes, weighted=False):
    rng = np.random.default_rng(len(scores))
    n = len(scores)
    columns = {
        "other": np.round(rng.normal(size=n), 1),
        "share": 0.05 + 0.95 * rng.random(n),
        "judged": np.where(rng.random(n) < 0.2, np.nan, labels),
    }
    return Queries.from_arrays(labels, group=sizes, columns=columns, weights=rng.random(n) if weighted else None)


def rounds(term, queries, scores, kernels, dtype, threads=1):
    """Gradient, Hessian and last readings after two rounds: the second one has a state and other draws."""
    run = Run(term, queries, kernels=kernels, dtype=dtype, threads=threads)
    run.step(scores)
    grad, hess = run.step(scores)
    return grad.copy(), hess.copy(), {name: log[-1] for name, log in run.history.items()}


@pytest.mark.parametrize("term", TERMS, ids=repr)
@settings(max_examples=8, deadline=None)
@given(data=ranked_data(max_queries=4, max_rows=12))
def test_cpu_equals_reference(term, data):
    scores, labels, sizes = data
    queries = data_set(scores, labels, sizes, weighted=len(sizes) > 2)
    want = rounds(term, queries, scores, reference, np.float64)
    for dtype, tolerance, slack in ((np.float64, 1e-10, 1e-11), (np.float32, 2e-4, 1e-6)):
        got = rounds(term, queries, scores, cpu, dtype)
        for a, b in zip(got[:2], want[:2], strict=True):
            assert np.abs(a - b).max() <= tolerance * np.abs(b).max() + slack
        for name, value in want[2].items():
            assert got[2][name] == pytest.approx(value, rel=tolerance, abs=10 * tolerance), name


@pytest.mark.parametrize("term", [t for t in TERMS if "truncation=7" not in repr(t)][::3], ids=repr)
def test_any_number_of_threads_gives_the_same_bits(term):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 90, 800)
    scores, labels = rng.normal(size=sizes.sum()), rng.integers(0, 5, sizes.sum()).astype(float)
    queries = data_set(scores, labels, sizes)
    one = rounds(term, queries, scores, cpu, np.float32)
    for threads in (2, 3):
        other = rounds(term, queries, scores, cpu, np.float32, threads)
        assert [a.tobytes() for a in other[:2]] == [a.tobytes() for a in one[:2]]
        assert other[2] == one[2]


def by_matrix(weights, scores, better):
    """Gradient of one query from the weights of all pairs."""
    with np.errstate(over="ignore"):
        p = weights * better / (1 + np.exp(scores[:, None] - scores))
    return p.sum(axis=0) - p.sum(axis=1)


@pytest.mark.parametrize("metric", [lo.Kendall(), lo.MAP(gain="linear")], ids=repr)
@pytest.mark.parametrize("n", [700, 1500])  # classes x rows fit a table, and do not
def test_as_many_classes_as_rows(metric, n):
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=n), rng.random(n)
    order = np.argsort(-scores)
    y = labels[order]
    if isinstance(metric, lo.Kendall):
        over = np.sign(y[None, :] - y[:, None])  # [class, rank]
        table = 2 * (np.cumsum(over, axis=1) - over)
        scale, discount = 2 / (n * (n - 1)), np.zeros(n)
    else:
        least, discount = np.minimum(y[None, :], y[:, None]), 1 / np.arange(1, n + 1)
        table = discount * (np.cumsum(least, axis=1) - least) - (np.cumsum(least * discount, axis=1) - least * discount)
        scale = 1 / y.sum()
    own = np.diag(table)
    gain = np.maximum(y[:, None] - y, 0)
    weights = scale * np.abs(table - own + table.T - own[:, None] + gain * np.maximum(discount - discount[:, None], 0))
    want = np.empty(n)
    want[order] = by_matrix(weights, scores[order], gain > 0)
    queries = Queries.from_arrays(labels, group=[n])
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-4)):
        grad, _, _ = rounds(lo.LambdaRank(metric), queries, scores, cpu, dtype)
        np.testing.assert_allclose(grad, want, atol=tolerance * np.abs(want).max())


@pytest.mark.parametrize("metric", [lo.MAP(), lo.MRR(5), lo.ERR(10), lo.AUC(ties="mean"), lo.Kendall()], ids=repr)
def test_queries_too_long_for_the_fast_path(metric):
    rng = np.random.default_rng(4)
    n = LONGEST + 500
    scores, labels = rng.normal(size=n), np.zeros(n)
    labels[rng.integers(0, n, 5)] = [1, 2, 3, 1, 2]
    queries = Queries.from_arrays(labels, group=[n])
    single, double = (rounds(lo.LambdaRank(metric), queries, scores, cpu, dtype) for dtype in (np.float32, np.float64))
    assert np.abs(single[0] - double[0]).max() <= 1e-5 * np.abs(double[0]).max()
    assert abs(double[0].sum()) < 1e-9 * np.abs(double[0]).sum()


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("scale", [0.0, 79.0, 81.0, 1e4, 1e308])
def test_scores_far_apart(metric, scale):
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(0, 5, 30).astype(float), scale * (rng.random(30) - 0.5)
    queries = Queries.from_arrays(labels, group=[30])
    want = rounds(lo.LambdaRank(metric), queries, scores, reference, np.float64)
    for dtype in (np.float32, np.float64):
        grad, hess, _ = rounds(lo.LambdaRank(metric), queries, scores, cpu, dtype)
        np.testing.assert_allclose(grad, want[0], atol=2e-5 * np.abs(want[0]).max())
        assert np.isfinite(hess).all()
        assert (hess >= 0).all()
