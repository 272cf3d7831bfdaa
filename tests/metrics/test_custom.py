"""CustomMetric: a built-in metric written as a function is worth and teaches the same; what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from tests.oracles import average_precision, dcg, err, kendall, ndcg, precision, reciprocal_rank
from tests.strategies import ranked_data

PAIRS = [  # a built-in metric, the same as a function
    (lo.DCG(), dcg),
    (lo.NDCG(3), lambda y: ndcg(y, 3)),
    (lo.MAP(threshold=1), lambda y: average_precision(y, threshold=1)),
    (lo.MRR(), reciprocal_rank),
    (lo.ERR(), err),
    (lo.Precision(3), lambda y: precision(y, 3)),
    (lo.Kendall(), lambda y: kendall(list(y))),
]
SCORES, LABELS, GROUP = [3.0, 1.0, 2.0, 0.5, 0.7], [0, 2, 1, 1, 0], [3, 2]


def first(labels):
    return labels[0]


@pytest.mark.parametrize(("metric", "function"), PAIRS, ids=[repr(metric) for metric, _ in PAIRS])
@settings(max_examples=15, deadline=None)
@given(data=ranked_data(max_queries=3, max_rows=8))
def test_a_built_in_metric_as_a_function_gives_the_same(metric, function, data):
    scores, labels, sizes = data
    custom = lo.CustomMetric(function, "own")
    want = metric(scores, labels, group=sizes)
    assert custom(scores, labels, group=sizes) == pytest.approx(want, rel=1e-12, abs=1e-14)
    ours, theirs = (lo.gradient(lo.LambdaRank(m), scores, labels, group=sizes) for m in (custom, metric))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_weights_and_names_reach_evaluate():
    spec = lo.LambdaRank(lo.CustomMetric(first, "label_on_top"))
    found = lo.evaluate(spec, SCORES, LABELS, group=GROUP, weights=[3.0, 1.0])
    assert found["label_on_top"] == lo.CustomMetric(first, "f")(SCORES, LABELS, group=GROUP, weights=[3.0, 1.0]) == 0.0
    assert lo.CustomMetric(first, "f")([1, 2, 3, 2, 1], LABELS, group=GROUP, weights=[3.0, 1.0]) == 1.0


def test_the_function_sees_the_labels_of_one_query_at_a_time_best_ranked_first():
    seen = []

    def look(labels):
        seen.append(labels.tolist())
        labels[:] = -1  # a copy: what it does to them is its own affair
        return 0.0

    labels = np.array(LABELS, float)
    lo.CustomMetric(look, "look")(SCORES, labels, group=GROUP)
    assert seen == [[0, 1, 2], [0, 1]]
    assert labels.tolist() == LABELS


def test_conventions():
    metric = lo.CustomMetric(first, "first")
    assert metric([0, 0], [1, 0], group=[2]) == 1.0  # equal scores: by row
    assert metric([0, 0], [-1, 0], group=[2]) == -1.0
    assert metric([], [], group=[]) == 0.0
    judged = lo.CustomMetric(lambda y: float(np.isnan(y).sum()), "unjudged")
    assert judged([2, 1], [np.nan, 0], group=[2], unjudged=True) == 1.0


@pytest.mark.parametrize("value", [np.float32(0.5), 1, np.int64(1), np.array([0.5])[0]])
def test_every_kind_of_number_is_a_value(value):
    assert lo.CustomMetric(lambda y: value, "f")(SCORES, LABELS, group=GROUP) == float(value)


def test_smaller_may_be_better():
    metric = lo.CustomMetric(first, "first", maximise=False)
    assert metric.maximise is False
    assert lo.CustomMetric(first, "first").maximise is True


def test_metrics_are_values():
    metric = lo.CustomMetric(first, "first")
    assert metric == lo.CustomMetric(first, "first")
    assert hash(metric) == hash(lo.CustomMetric(first, "first"))
    assert metric != lo.CustomMetric(first, "other")
    assert pickle.loads(pickle.dumps(lo.CustomMetric(np.max, "max"))) == lo.CustomMetric(np.max, "max")
    with pytest.raises(AttributeError):
        metric.name = "other"


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: lo.CustomMetric(3, "f"), TypeError, "function must be callable .*found 3"),
        (lambda: lo.CustomMetric(None, "f"), TypeError, "function must"),
        (lambda: lo.CustomMetric(first, ""), ValueError, "name must be a text without blanks, colons and commas"),
        (lambda: lo.CustomMetric(first, "a b"), ValueError, "name must .*found 'a b'"),
        (lambda: lo.CustomMetric(first, "a:b"), ValueError, "name must"),
        (lambda: lo.CustomMetric(first, "a,b"), ValueError, "name must"),
        (lambda: lo.CustomMetric(first, 3), ValueError, "name must"),
    ],
)
def test_wrong_parameters_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "0", [0.5], True])
def test_values_that_are_no_numbers_are_refused(value):
    words = r"f: what the function returned for \[0.0, 1.0, 2.0\] must be a finite number, found"
    with pytest.raises(ValueError, match=words):
        lo.CustomMetric(lambda y: value, "f")(SCORES, LABELS, group=GROUP)
    with pytest.raises(ValueError, match="f: what the function returned"):
        lo.gradient(lo.LambdaRank(lo.CustomMetric(lambda y: value, "f")), SCORES, LABELS, group=GROUP)


def test_errors_of_the_function_are_its_own():
    with pytest.raises(IndexError):
        lo.CustomMetric(lambda y: y[7], "f")(SCORES, LABELS, group=GROUP)
