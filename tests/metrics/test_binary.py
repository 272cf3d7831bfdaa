"""MAP, MRR, HitRate, Precision, Recall, RBP: the definitions, numbers from the literature, conventions, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from tests.oracles import (
    average_precision,
    graded_average_precision,
    hit_rate,
    mean_metric,
    mean_over_ties,
    precision,
    rbp,
    recall,
    reciprocal_rank,
)
from tests.strategies import ranked_data

TABLE = (0.0, 0.5, 0.5, 2.0, 9.0)
CROFT = [1, 0, 1, 1, 1, 1, 0, 0, 0, 1], [0, 1, 0, 0, 1, 1, 1, 0, 1, 1]  # Croft, Metzler, Strohman (2010), figure 8.2
QUERIES = [1, 0, 1, 0, 0, 1, 0, 0, 1, 1], [0, 1, 0, 0, 1, 0, 1, 0, 0, 0]  # figure 8.3


def in_order(metric, *labels, **options):
    """The metric of queries whose rows are in the order of their ranks."""
    scores = [-float(r) for y in labels for r in range(len(y))]
    return metric(scores, [v for y in labels for v in y], group=[len(y) for y in labels], **options)


VARIANTS = [  # metric at cut-off k, its definition
    (lambda k: lo.MAP(k), average_precision, {}),
    (lambda k: lo.MAP(k, threshold=1.5, empty=0.25), average_precision, {"threshold": 1.5, "empty": 0.25}),
    (lambda k: lo.MAP(k, gain="exp2"), graded_average_precision, {}),
    (lambda k: lo.MAP(k, gain="linear", empty=0.0), graded_average_precision, {"gain": float, "empty": 0.0}),
    (lambda k: lo.MAP(k, gain=TABLE), graded_average_precision, {"gain": lambda y: TABLE[int(y)]}),
    (lambda k: lo.MAP(k, gain=np.sqrt), graded_average_precision, {"gain": np.sqrt}),
    (lambda k: lo.MRR(k), reciprocal_rank, {}),
    (lambda k: lo.MRR(k, threshold=2, empty=1.0), reciprocal_rank, {"threshold": 2, "empty": 1.0}),
    (lambda k: lo.RBP(k), rbp, {}),
    (lambda k: lo.RBP(k, 0.5, threshold=1), rbp, {"persistence": 0.5, "threshold": 1}),
    (lambda k: lo.RBP(k, max_grade=4), rbp, {"max_grade": 4}),
]
TOP = [
    (lambda k: lo.HitRate(k), hit_rate, {}),
    (lambda k: lo.HitRate(k, threshold=2, empty=0.5), hit_rate, {"threshold": 2, "empty": 0.5}),
    (lambda k: lo.Precision(k), precision, {}),
    (lambda k: lo.Precision(k, threshold=1), precision, {"threshold": 1}),
    (lambda k: lo.Recall(k), recall, {}),
    (lambda k: lo.Recall(k, threshold=1, empty=0.0), recall, {"threshold": 1, "empty": 0.0}),
]


@pytest.mark.parametrize(
    ("variant", "k"),
    [(v, k) for v in VARIANTS for k in (None, 1, 3, 50)] + [(v, k) for v in TOP for k in (1, 3, 50)],
)
@settings(max_examples=15, deadline=None)
@given(data=ranked_data(max_rows=12))
def test_values_equal_the_definition(variant, k, data):
    make, definition, options = variant
    scores, labels, sizes = data
    want = mean_metric(definition, scores, labels, sizes, k, **options)
    assert make(k)(scores, labels, group=sizes) == pytest.approx(want, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("make", "definition", "options"),
    [
        (lo.Precision, precision, {}),
        (lo.Recall, recall, {"threshold": 1, "empty": 0.0}),
        (lo.RBP, rbp, {"persistence": 0.6}),
        (lo.RBP, rbp, {"max_grade": 4}),
    ],
)
@settings(max_examples=15, deadline=None)
@given(data=ranked_data(max_queries=1, max_rows=6))
def test_mean_over_ties_is_that_over_all_orders(make, definition, options, data):
    scores, labels, sizes = data
    for k in (1, 2, 4, 9):
        for tied in (scores, np.zeros(len(scores)), np.arange(len(scores)) // 2 * 1.0):
            want = mean_over_ties(definition, tied, labels, k, **options)
            assert make(k, ties="mean", **options)(tied, labels, group=sizes) == pytest.approx(want, rel=1e-12)


def test_ties_rank_in_the_order_of_the_rows():
    for metric in (lo.MAP(1), lo.MRR(1), lo.HitRate(1), lo.Precision(1), lo.Recall(1), lo.RBP(1, 0.5)):
        assert metric([0, 0], [1, 0], group=[2]) > metric([0, 0], [0, 1], group=[2]) == 0.0


def test_average_precision_of_a_textbook():
    assert [in_order(lo.MAP(), y) for y in CROFT] == pytest.approx([0.78, 0.52], abs=0.0051)
    assert in_order(lo.MAP(), CROFT[0]) == pytest.approx((1 + 2 / 3 + 3 / 4 + 4 / 5 + 5 / 6 + 6 / 10) / 6)
    assert [in_order(lo.MAP(), y) for y in QUERIES] == pytest.approx([0.62, 0.44], abs=0.0051)
    assert in_order(lo.MAP(), *QUERIES) == pytest.approx(0.53, abs=0.0051)
    assert in_order(lo.MAP(3), CROFT[0]) == pytest.approx((1 + 2 / 3) / 3)  # of 6 relevant rows 3 fit
    assert in_order(lo.MAP(9), QUERIES[1]) == in_order(lo.MAP(), QUERIES[1])


def test_precision_and_recall_of_a_textbook():
    for k, found in ((1, (1, 0)), (3, (2, 1)), (5, (4, 2)), (10, (6, 6))):
        for labels, number in zip(CROFT, found, strict=True):
            assert in_order(lo.Precision(k), labels) == pytest.approx(number / k)
            assert in_order(lo.Recall(k), labels) == pytest.approx(number / 6)


def test_graded_average_precision_by_hand():
    metric = lo.MAP(gain="linear")
    assert in_order(metric, [1, 2, 0]) == pytest.approx((1 + (1 + 2) / 2) / 3)
    assert in_order(metric, [0, 2, 1]) == pytest.approx((2 / 2 + (1 + 1) / 3) / 3)
    assert in_order(metric, [2, 1, 0]) == 1.0
    assert in_order(lo.MAP(1, gain="linear"), [1, 2, 0]) == 0.5
    assert in_order(lo.MAP(gain="exp2"), [1, 2, 0]) == pytest.approx((1 + (1 + 3) / 2) / 4)


def test_reciprocal_rank_and_hits_by_hand():
    """Cats, tori, virii: the right plural is the third, second and first guess."""
    guesses = [0, 0, 1], [0, 1, 0], [1, 0, 0]
    assert in_order(lo.MRR(), *guesses) == pytest.approx(11 / 18)
    assert in_order(lo.MRR(2), *guesses) == pytest.approx(1 / 2)
    assert [in_order(lo.HitRate(k), *guesses) for k in (1, 2, 3, 4)] == pytest.approx([1 / 3, 2 / 3, 1, 1])


def test_rank_biased_precision_by_hand():
    assert in_order(lo.RBP(persistence=0.5), [1, 0, 1]) == 0.625
    assert in_order(lo.RBP(2, persistence=0.5), [1, 0, 1]) == 0.5
    assert in_order(lo.RBP(persistence=0.5, max_grade=4), [1, 0, 4]) == 0.25
    assert in_order(lo.RBP(persistence=0.9), [1] * 400) == pytest.approx(1.0)


METRICS = [lo.MAP(), lo.MAP(gain="exp2"), lo.MRR(), lo.HitRate(2), lo.Precision(2), lo.Recall(2), lo.RBP()]


def test_queries_without_a_relevant_row():
    for labels in ([0], [0, 0, 0]):
        assert [in_order(metric, labels) for metric in METRICS] == [1, 1, 0, 0, 0, 1, 0]
        for make in (lo.MAP, lambda empty: lo.MAP(gain="linear", empty=empty), lo.MRR):
            assert in_order(make(empty=0.5), labels) == 0.5
        for make in (lo.HitRate, lo.Recall):
            assert in_order(make(2, empty=-0.5), labels) == -0.5
    assert [metric([], [], group=[]) for metric in METRICS] == [0] * 7
    assert in_order(lo.MAP(), [0, 0], [0, 1]) == 0.75


def test_single_rows():
    assert [in_order(metric, [1]) for metric in METRICS] == pytest.approx([1, 1, 1, 1, 0.5, 1, 0.2])


def test_precision_divides_by_the_cut_off_even_past_the_end():
    assert in_order(lo.Precision(10), [1, 1, 0]) == 0.2
    assert in_order(lo.Recall(10), [1, 1, 0]) == in_order(lo.HitRate(10), [1, 1, 0]) == 1.0


def test_rows_are_relevant_above_the_threshold_not_at_it():
    labels = [1.0, 1.5, 2.0]
    assert [in_order(lo.MRR(threshold=t), labels) for t in (0.5, 1, 1.5, 2)] == [1, 1 / 2, 1 / 3, 0]
    assert [in_order(lo.Precision(3, t), labels) for t in (0.5, 1, 1.5, 2)] == pytest.approx([1, 2 / 3, 1 / 3, 0])
    for make in (lo.MAP, lo.MRR, lo.RBP):
        assert in_order(make(threshold=-1), [-2, 0]) == in_order(make(), [0, 1])
    for make in (lo.HitRate, lo.Precision, lo.Recall):
        assert in_order(make(2, threshold=-1.5), [-2, -1]) == in_order(make(2), [0, 1])


def test_rows_without_a_judgement_have_a_rank_and_are_worth_nothing():
    nan, rng = float("nan"), np.random.default_rng(0)
    metrics = [*METRICS, lo.MAP(threshold=-1), lo.Precision(3, threshold=-1), lo.RBP(max_grade=4), lo.MAP(gain=TABLE)]
    for metric in metrics:
        with pytest.raises(ValueError, match="labels must be finite: row 1 is nan"):
            in_order(metric, [1, nan])
    for _ in range(20):
        labels = rng.integers(0, 4, 12).astype(float)
        unknown = np.where(rng.random(12) < 0.4, nan, labels)
        for metric in metrics:
            worthless = -2.0 if getattr(metric, "threshold", 0) < 0 else 0.0
            known = np.where(np.isnan(unknown), worthless, unknown)
            assert in_order(metric, unknown, unjudged=True) == in_order(metric, known)
    assert in_order(lo.MAP(gain=[1, 2]), [nan, 0], unjudged=True) == 0.5  # nothing, though a label of 0 has a gain


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lo.MAP(0), "k must be a whole number from 1.*found 0"),
        (lambda: lo.MRR(1.5), "k must"),
        (lambda: lo.RBP(-1), "k must"),
        (lambda: lo.Precision(None), "k must"),
        (lambda: lo.Recall("3"), "k must"),
        (lambda: lo.HitRate(True), "k must"),
        (lambda: lo.MAP(threshold=float("nan")), "threshold must be a finite number, found nan"),
        (lambda: lo.MRR(threshold="1"), "threshold must"),
        (lambda: lo.HitRate(1, threshold=None), "threshold must"),
        (lambda: lo.Precision(1, threshold=np.inf), "threshold must"),
        (lambda: lo.Recall(1, threshold=True), "threshold must"),
        (lambda: lo.RBP(threshold=[1]), "threshold must"),
        (lambda: lo.MAP(empty=None), "empty must be a finite number"),
        (lambda: lo.MRR(empty=np.nan), "empty must"),
        (lambda: lo.HitRate(1, empty="0"), "empty must"),
        (lambda: lo.Recall(1, empty=np.inf), "empty must"),
        (lambda: lo.MAP(gain="exp"), "gain must be 'exp2', 'linear'"),
        (lambda: lo.MAP(gain=[0, 2, 1]), "gain: a table must not be empty, negative or falling"),
        (lambda: lo.MAP(gain="exp2", threshold=1), "threshold has no effect beside a gain"),
        (lambda: lo.Precision(1, ties="rows"), "ties must be 'row' .* or 'mean' .*, found 'rows'"),
        (lambda: lo.Recall(1, ties=None), "ties must"),
        (lambda: lo.RBP(ties=True), "ties must"),
        (lambda: lo.RBP(persistence=0), "persistence must be above 0, found 0"),
        (lambda: lo.RBP(persistence=1), "persistence must be below 1, found 1"),
        (lambda: lo.RBP(persistence="0.8"), "persistence must be a finite number"),
        (lambda: lo.RBP(max_grade=0), "max_grade must be above 0"),
        (lambda: lo.RBP(max_grade=4, threshold=1), "threshold has no effect beside max_grade"),
    ],
)
def test_wrong_parameters_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("metric", "labels", "words"),
    [
        (lo.MAP(gain="linear"), [0, -1], "label: MAP.* takes no negative labels, row 1 is -1"),
        (lo.MAP(gain=[0, 1]), [0, 2], "the table has entries for labels 0 to 1, row 1 has 2"),
        (lo.MAP(gain=np.negative), [0, 1], "gain: .* must be nowhere negative"),
        (lo.RBP(max_grade=2), [0, 3], "label: RBP.* takes labels from 0 to max_grade=2, row 1 is 3"),
        (lo.RBP(max_grade=2), [-1, 1], "labels from 0 .*row 0 is -1"),
        (lo.Precision(1), [0, np.inf], "labels must be finite: row 1 is inf"),
    ],
)
def test_labels_that_a_metric_cannot_take_are_refused(metric, labels, words):
    with pytest.raises(ValueError, match=words):
        metric([0.0, 1.0], labels, group=[2])
