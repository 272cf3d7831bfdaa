"""Constraint: a bound on a term, and how it counts in a round."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest

import lambda_objectives as lo

RANK, PAIRS = lo.LambdaRank(lo.NDCG(3)), lo.RankNet()
QUALITY = lo.LambdaRank(lo.NDCG(3), label="quality")
SCORES, LABELS, GROUP = np.array([0.3, 0.1, 0.2, 0.0, 0.4]), [0, 2, 1, 1, 0], [3, 2]
COLUMNS = {"quality": [2, 0, 1, 0, 1], "clicked": [1, 0, 0, 1, 1]}


def margins(*constraints, scores=SCORES, **options):
    """The margins of constraints at scores, by name."""
    spec = lo.AugmentedLagrangian(RANK, constraints, **options)
    found = lo.evaluate(spec, scores, LABELS, group=GROUP, columns=COLUMNS)
    return {name.removeprefix("margin/"): value for name, value in found.items() if name.startswith("margin/")}


def of(term, scores=SCORES):
    return lo.evaluate(term, scores, LABELS, group=GROUP, columns=COLUMNS)


# -------------------------------------------------------------------------------------------------------------- margins


@pytest.mark.parametrize("bound", [0.4, 1e-3, 50.0, -2.0])
def test_margin_is_the_share_of_the_bound_that_is_left(bound):
    cost = of(QUALITY)["cost/quality.ndcg@3"]
    found = margins(lo.Constraint(QUALITY, at_most=bound))
    assert found == {"quality.ndcg@3": pytest.approx((bound - cost) / abs(bound), rel=1e-12)}


def test_margin_of_at_least_is_that_of_the_metric():
    ndcg = of(QUALITY)["quality.ndcg@3"]
    found = margins(lo.Constraint(QUALITY, at_least=0.9, name="floor"))
    assert found == {"floor": pytest.approx((ndcg - 0.9) / 0.9, rel=1e-12)}


def test_scale_takes_the_place_of_the_bound():
    cost = of(QUALITY)["cost/quality.ndcg@3"]
    found = margins(lo.Constraint(QUALITY, at_most=0.4, scale=5.0))
    assert found == {"quality.ndcg@3": pytest.approx((0.4 - cost) / 5.0, rel=1e-12)}


def test_a_bound_of_0_is_scaled_by_the_first_cost():
    cost = of(QUALITY)["cost/quality.ndcg@3"]
    assert margins(lo.Constraint(QUALITY, at_most=0.0)) == {"quality.ndcg@3": pytest.approx(-1.0)}
    assert margins(lo.Constraint(QUALITY, at_most=0.0, scale=2.0)) == {"quality.ndcg@3": pytest.approx(-cost / 2)}


def test_nothing_is_known_of_a_relative_bound_before_its_round():
    found = margins(lo.Constraint(QUALITY, at_most=0.9, relative=True), start=3)
    assert math.isnan(found["quality.ndcg@3"])


def test_a_margin_at_the_bound_is_no_negative_zero():
    cost = of(QUALITY)["cost/quality.ndcg@3"]
    (margin,) = margins(lo.Constraint(QUALITY, at_most=cost)).values()
    assert math.copysign(1.0, margin) == 1.0


def test_a_term_bounded_from_both_sides_has_one_cost_and_two_margins():
    spec = lo.AugmentedLagrangian(
        RANK, [lo.Constraint(QUALITY, at_most=0.9), lo.Constraint(QUALITY, at_least=0.5, name="floor")]
    )
    found = lo.evaluate(spec, SCORES, LABELS, group=GROUP, columns=COLUMNS)
    assert sorted(found) == [
        "cost/ndcg@3", "cost/quality.ndcg@3", "margin/floor", "margin/quality.ndcg@3", "ndcg@3", "quality.ndcg@3",
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- value


@pytest.mark.parametrize(
    "constraint",
    [
        lo.Constraint(QUALITY, 0.5),
        lo.Constraint(QUALITY, at_least=0.5, name="floor", relative=True),
        lo.Constraint(lo.LogLoss("clicked"), at_most=0, scale=2.0),
    ],
    ids=lambda c: c.label,
)
def test_a_constraint_is_a_value(constraint):
    for same in (copy.deepcopy(constraint), pickle.loads(pickle.dumps(constraint)), eval(repr(constraint), vars(lo))):
        assert same == constraint
        assert hash(same) == hash(constraint)
    with pytest.raises(AttributeError):
        constraint.at_most = 3.0


def test_what_it_is_called_and_which_way_it_goes():
    below, above = lo.Constraint(QUALITY, 0.5), lo.Constraint(PAIRS, at_least=0.25, name="floor")
    assert (below.label, below.bound, below.sign) == ("quality.ndcg@3", 0.5, 1)
    assert (above.label, above.bound, above.sign) == ("floor", 0.25, -1)


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("bound", ["at_most", "at_least", "scale"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, "0.5", True, [0.5], 1j], ids=repr)
def test_a_bound_that_is_no_finite_number_is_refused(bound, value):
    others = {"at_most": 0.5} if bound == "scale" else {}
    with pytest.raises(ValueError, match=f"{bound} must be a finite number, found "):
        lo.Constraint(QUALITY, **others, **{bound: value})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "one bound is wanted: at_most= .* at_least= .*, found none"),
        ({"at_most": 0.5, "at_least": 0.5}, "one bound is wanted.*, found both"),
        ({"at_most": 0.0, "relative": True}, "at_most: with relative=True a share above 0 is wanted, found 0.0"),
        ({"at_most": -0.5, "relative": True}, "at_most: with relative=True a share above 0 is wanted, found -0.5"),
        ({"at_least": 0.0, "relative": True}, "at_least: with relative=True a share above 0 is wanted, found 0.0"),
        ({"at_most": 0.5, "relative": "yes"}, "relative must be True or False, found 'yes'"),
        ({"at_most": 0.5, "scale": 0.0}, "scale must be above 0, found 0.0"),
        ({"at_most": 0.5, "scale": -1}, "scale must be above 0, found -1"),
        ({"at_most": 0.5, "name": "a b"}, "name must be a text, without blanks.*'a b': write 'a_b'"),
        ({"at_most": 0.5, "name": "a:b"}, "name must be .* without blanks, colons.*'a:b'"),
        ({"at_most": 0.5, "name": ""}, "name must be "),
        ({"at_most": 0.5, "name": 3}, "name must be .*found 3"),
    ],
)
def test_wrong_constraints_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        lo.Constraint(QUALITY, **options)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (lo.NDCG(10), r"term must be a term, such as LambdaRank\(NDCG\(10\)\), found NDCG.*: write LambdaRank\(NDCG"),
        (lo.LambdaRank, "term must be a term"),
        ("quality", "term must be a term.*found 'quality'"),
        (None, "term must be a term.*found None"),
        (lo.Constraint(QUALITY, 0.5), r"term must be a term.*found Constraint\("),
        (lo.WeightedSum([RANK], [1.0]), r"term must be a term.*found WeightedSum\("),
    ],
)
def test_what_is_no_term_is_refused(term, words):
    with pytest.raises(TypeError, match=words):
        lo.Constraint(term, at_most=0.5)


@pytest.mark.parametrize("term", [lo.RankNet(), lo.LogLoss("clicked"), lo.SquaredError()], ids=lambda term: term.name)
def test_at_least_wants_a_term_with_a_metric(term):
    constraint = lo.Constraint(term, at_least=0.5, name="floor")
    with pytest.raises(ValueError, match=r"at_least: constraint 'floor' needs a term with a metric .* use at_most="):
        margins(constraint)


@pytest.mark.parametrize(
    "metric",
    [
        lo.NDCG(3), lo.DCG(), lo.NDCG(3, ties="mean"), lo.MAP(3), lo.MAP(gain="linear"), lo.MRR(), lo.ERR(2), lo.AUC(),
        lo.Precision(2), lo.Recall(2), lo.HitRate(1), lo.RBP(3), lo.Kendall(), lo.Spearman(),
    ],
    ids=repr,
)  # fmt: skip
def test_a_bound_that_no_order_of_the_rows_keeps_to_is_refused(metric):
    labels, sizes, weights = [2.0, 0, 1, 1, 0, 3, 0, 0, 0, 1], [4, 3, 3], [1.0, 2.0, 0.5]
    low = high = 0.0
    for start, size, weight in zip([0, 4, 7], sizes, weights, strict=True):
        orders = itertools.permutations(range(size))
        found = [metric(order, labels[start : start + size], group=[size]) for order in orders]
        low, high = low + weight * min(found) / 3.5, high + weight * max(found) / 3.5

    def train(bound):
        kept = lo.Constraint(lo.LambdaRank(metric, label="q"), at_least=bound, name="kept")
        spec = lo.AugmentedLagrangian(QUALITY, [kept])
        data = {"group": sizes, "weights": weights, "q": labels, "quality": labels}
        return lo.gradient(spec, np.arange(10.0), labels, **data)

    train(high)
    with pytest.raises(ValueError, match=rf"at_least=.* 'kept' cannot be met.* from {low:.4g} to {high:.4g}"):
        train(high + 1e-4)
    if low < 0:
        train(-1e-4)
    else:
        with pytest.raises(ValueError, match=r"at_least=-0\.0001: .* asks for nothing"):
            train(-1e-4)
