"""What all metrics have in common, and a metric of a user's own, given by its tables."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from lambda_objectives.kernels import FIRST
from tests.strategies import ranked_data

ALL = {
    "ndcg@10": lo.NDCG(10),
    "dcg": lo.DCG(gain=[0, 1, 5], discount="reciprocal", ties="mean"),
    "map@10": lo.MAP(10),
    "map": lo.MAP(gain=[0, 0.5, 2], empty=0.0),
    "mrr": lo.MRR(),
    "mrr@5": lo.MRR(5, threshold=1),
    "hitrate@1": lo.HitRate(1),
    "precision@3": lo.Precision(np.int64(3), ties="mean"),
    "recall@3": lo.Recall(3, empty=0.0),
    "rbp": lo.RBP(persistence=0.5),
    "rbp@7": lo.RBP(7, max_grade=2),
    "err@2": lo.ERR(2),
    "auc": lo.AUC(threshold=1.5),
    "kendall": lo.Kendall(tau="b"),
    "spearman": lo.Spearman(ties="mean"),
}
each = pytest.mark.parametrize("metric", ALL.values(), ids=repr)


def test_names():
    assert [metric.name for metric in ALL.values()] == list(ALL)
    assert all(metric.maximise is True for metric in ALL.values())


@each
def test_metrics_are_values(metric):
    again = eval(repr(metric), {"np": np, **{name: getattr(lo, name) for name in lo.__all__ if name[0].isupper()}})
    for same in (again, copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), type(metric)(**vars(metric))):
        assert same == metric
        assert hash(same) == hash(metric)
    assert all(metric != other for other in ALL.values() if other is not metric)
    for attribute in (*vars(metric), "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(metric, attribute, 3)


@each
@settings(max_examples=10, deadline=None)
@given(data=ranked_data(max_rows=9, grades=3))
def test_a_value_is_the_weighted_mean_over_queries(metric, data):
    scores, labels, sizes = data
    ends = np.cumsum(sizes)[:-1]
    parts = zip(np.split(scores, ends), np.split(labels, ends), strict=True)
    values = np.array([metric(s, y, group=[len(y)]) for s, y in parts])
    weights = 0.5 + np.arange(len(sizes)) % 3
    assert metric(scores, labels, group=sizes) == pytest.approx(values.mean(), rel=1e-12, abs=1e-14)
    for w in (weights, np.repeat(weights, sizes)):
        found = metric(scores, labels, group=sizes, weights=w)
        assert found == pytest.approx(weights @ values / weights.sum(), rel=1e-12, abs=1e-14)
    assert metric(scores, labels, qid=np.repeat(np.arange(len(sizes)), sizes)) == metric(scores, labels, group=sizes)


@each
def test_values_depend_on_the_order_of_scores_only_and_change_no_input(metric):
    rng = np.random.default_rng(0)
    scores, labels, group = rng.normal(size=30), rng.integers(0, 3, 30).astype(float), np.array([4, 1, 20, 5])
    for array in (scores, labels, group):
        array.flags.writeable = False
    want = metric(scores, labels, group=group)
    for other in (scores * 7 - 3, np.exp(scores), scores.astype(np.float32)):
        assert metric(other, labels.astype(int).tolist(), group=group.tolist()) == want
    mixed = np.concatenate([at + rng.permutation(n) for at, n in zip([0, 4, 5, 25], group, strict=True)])
    assert metric(scores[mixed], labels[mixed], group=group) == pytest.approx(want, rel=1e-12)


@each
@pytest.mark.parametrize(
    ("scores", "labels", "options", "words"),
    [
        ([1, np.nan], [0, 1], {"group": [2]}, "scores must be finite: row 1"),
        ([1, 2, 3], [0, 1], {"group": [2]}, "scores has 3 values, the data set has 2 rows"),
        ([1, 2], [0, 1], {"group": [3]}, "group"),
        ([1, 2], [0, 1], {}, "group= .* or qid="),
        ([1, 2], [0, 1], {"group": [2], "weights": [-1]}, "weights must not be negative"),
        ([1, 2], [0, np.nan], {"group": [2]}, "labels must be finite: row 1 is nan"),
        ([1, 2], [0, np.inf], {"group": [2], "unjudged": True}, "labels must be finite: row 1 is inf"),
    ],
)
def test_arrays_that_cannot_be_are_refused(metric, scores, labels, options, words):
    with pytest.raises(ValueError, match=words):
        metric(scores, labels, **options)


class Shelf:
    """A user's own: what the labels of the first four rows are worth, the first two fully, the others half.

    Squares of the labels, over the number of rows, less a constant rent; with nothing to sell it is -9.
    """

    name, maximise, empty = "shelf", True, -9.0

    def tables(self, labels, ptr):
        size = np.diff(ptr)
        best = np.array([labels[a:b].max() for a, b in itertools.pairwise(ptr)])
        return lo.Tables(
            gain=labels**2,
            discount=np.array([1.0, 1.0, 0.5, 0.5])[: size.max(initial=0)],
            empty=best == 0,
            scale=1.0 / size,
            offset=np.full(len(size), -0.25),
        )


def shelf(labels):
    if labels.max() == 0:
        return -9.0
    return (sum(labels[:2] ** 2) + sum(labels[2:4] ** 2) / 2) / len(labels) - 0.25


class Soon:
    """How soon a label of at least 2 comes: one less for every row above it; twice that in queries of an odd size."""

    name, maximise = "soon", True

    def tables(self, labels, ptr):
        size = np.diff(ptr)
        falling = 30.0 - np.arange(size.max(initial=0))
        return lo.Tables((labels >= 2) * 1.0, falling, kind=FIRST, scale=1.0 + size % 2)


def soon(labels):
    return (1 + len(labels) % 2) * next((30 - r for r, y in enumerate(labels) if y >= 2), 0)


@pytest.mark.parametrize(("metric", "function"), [(Shelf(), shelf), (Soon(), soon)])
@settings(max_examples=25, deadline=None)
@given(data=ranked_data(max_queries=4, max_rows=10))
def test_a_metric_of_ones_own_by_tables_is_that_by_a_function(metric, function, data):
    scores, labels, sizes = data
    custom = lo.CustomMetric(function, "custom")
    values = lo.evaluate(lo.LambdaRank(metric), scores, labels, group=sizes)
    want = custom(scores, labels, group=sizes)
    assert values[metric.name] == pytest.approx(want, rel=1e-12, abs=1e-14)
    ours, theirs = (lo.gradient(lo.LambdaRank(m), scores, labels, group=sizes) for m in (metric, custom))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
