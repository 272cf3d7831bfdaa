"""AUC, Kendall, Spearman: the definitions, numbers from the literature, conventions, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from tests.oracles import auc, kendall, mean_metric, mean_over_ties, spearman
from tests.strategies import ranked_data

NEGATIVE = {"threshold": 1, "empty": -1.0}
VARIANTS = [
    (lo.AUC(), auc, {}),
    (lo.AUC(**NEGATIVE), auc, NEGATIVE),
    (lo.Kendall(), kendall, {}),
    (lo.Kendall(empty=1.0), kendall, {"empty": 1.0}),
    (lo.Kendall(tau="b"), kendall, {"tau": "b"}),
    (lo.Spearman(), spearman, {}),
    (lo.Spearman(empty=0.5), spearman, {"empty": 0.5}),
]
IQ = [86, 97, 99, 100, 101, 103, 106, 110, 112, 113]
HOURS = [2, 20, 28, 27, 50, 29, 7, 17, 6, 12]  # of television a week: the example of many introductions


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: repr(variant[0]))
@settings(max_examples=40, deadline=None)
@given(data=ranked_data(max_rows=12))
def test_values_equal_the_definition(variant, data):
    metric, definition, options = variant
    scores, labels, sizes = data
    want = mean_metric(definition, scores, labels, sizes, **options)
    assert metric(scores, labels, group=sizes) == pytest.approx(want, rel=1e-12, abs=1e-13)
    shifted = {**options, "threshold": options.get("threshold", 0) - 3} if definition is auc else options
    other = type(metric)(**{**vars(metric), **shifted})
    assert other(scores, labels - 3, group=sizes) == pytest.approx(want, rel=1e-12, abs=1e-13)  # negative labels


@pytest.mark.parametrize(("make", "definition"), [(lo.AUC, auc), (lo.Spearman, spearman)])
@settings(max_examples=40, deadline=None)
@given(data=ranked_data(max_queries=1, max_rows=6))
def test_mean_over_ties_is_that_over_all_orders(make, definition, data):
    scores, labels, sizes = data
    for tied in (scores, np.zeros(len(scores)), np.arange(len(scores)) // 2 * 1.0):
        want = mean_over_ties(definition, tied, labels)
        assert make(ties="mean")(tied, labels, group=sizes) == pytest.approx(want, rel=1e-12, abs=1e-13)


def test_by_hand():
    hare = np.array(list("THHHHHTTTTTH")) == "H"  # six tortoises, six hares: 25 times the hare is first, 11 times not
    assert lo.AUC()(-np.arange(12), hare, group=[12]) == pytest.approx(25 / 36)
    assert lo.AUC()(-np.arange(12), ~hare, group=[12]) == pytest.approx(11 / 36)
    assert lo.Spearman()(IQ, HOURS, group=[10]) == pytest.approx(-29 / 165)
    assert lo.Kendall()(IQ, HOURS, group=[10]) == pytest.approx(-5 / 45)
    assert lo.Kendall(tau="b")(IQ, HOURS, group=[10]) == pytest.approx(-5 / 45)
    assert lo.Kendall()([4, 3, 2, 1], [1, 1, 0, 0], group=[4]) == pytest.approx(4 / 6)  # 1 is out of reach
    assert lo.Kendall(tau="b")([4, 3, 2, 1], [1, 1, 0, 0], group=[4]) == pytest.approx(4 / np.sqrt(24))
    for metric in (lo.Kendall(), lo.Kendall(tau="b"), lo.Spearman()):
        assert metric(IQ, IQ, group=[10]) == pytest.approx(1.0)
        assert metric(IQ, -np.array(IQ), group=[10]) == pytest.approx(-1.0)


def test_queries_in_which_no_order_is_better():
    for scores, labels in (([1.0], [2]), ([1.0, 2.0], [3, 3])):
        assert lo.AUC()(scores, labels, group=[len(labels)]) == 1.0
        for make in (lo.AUC, lo.Kendall, lo.Spearman):
            assert make(empty=0.25)(scores, labels, group=[len(labels)]) == 0.25
        for metric in (lo.Kendall(), lo.Kendall(tau="b"), lo.Spearman()):
            assert metric(scores, labels, group=[len(labels)]) == 0.0
    for metric in (lo.AUC(), lo.Kendall(), lo.Spearman()):
        assert metric([], [], group=[]) == 0.0
    assert lo.AUC(empty=0.0)([2, 1, 5], [1, 0, 1], group=[2, 1]) == 0.5


def test_equal_scores_rank_in_the_order_of_the_rows_or_share():
    for labels, sign in (([1, 0], 1), ([0, 1], -1)):
        assert lo.AUC()([0, 0], labels, group=[2]) == (1 + sign) / 2
        assert lo.AUC(ties="mean")([0, 0], labels, group=[2]) == 0.5
        for metric in (lo.Kendall(), lo.Spearman()):
            assert metric([0, 0], labels, group=[2]) == pytest.approx(sign)
        assert lo.Spearman(ties="mean")([0, 0], labels, group=[2]) == pytest.approx(0)


def test_rows_without_a_judgement():
    scores, labels = [4, 3, 2, 1], [np.nan, 1, 0, np.nan]
    assert lo.AUC()(scores, labels, group=[4], unjudged=True) == pytest.approx(2 / 3)  # they count as not relevant
    for metric in (lo.Kendall(), lo.Spearman()):
        with pytest.raises(ValueError, match=r"label: \w+\(.* orders all rows by their labels, row 0 has none .NaN."):
            metric(scores, labels, group=[4], unjudged=True)
    for metric in (lo.AUC(), lo.Kendall(), lo.Spearman()):
        with pytest.raises(ValueError, match="labels must be finite: row 0 is nan"):
            metric(scores, labels, group=[4])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lo.AUC(threshold=np.nan), "threshold must be a finite number"),
        (lambda: lo.AUC(empty=None), "empty must be a finite number"),
        (lambda: lo.AUC(ties="half"), "ties must be 'row' .* or 'mean' .*, found 'half'"),
        (lambda: lo.Kendall("c"), "tau must be 'a' or 'b', found 'c'"),
        (lambda: lo.Kendall(empty="0"), "empty must"),
        (lambda: lo.Spearman(empty=np.inf), "empty must"),
        (lambda: lo.Spearman(ties=None), "ties must"),
    ],
)
def test_wrong_parameters_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_long_queries_take_n_log_n():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=100_000), rng.integers(0, 2, 100_000)
    a = lo.AUC()(scores, labels, group=[100_000])
    rank = np.empty(100_000)
    rank[np.argsort(scores)] = np.arange(1, 100_001)
    good = labels.sum()
    assert a == pytest.approx((rank[labels == 1].sum() - good * (good + 1) / 2) / (good * (100_000 - good)), rel=1e-9)
    assert lo.Kendall()(scores, np.arange(100_000), group=[100_000]) == pytest.approx(0, abs=0.02)
