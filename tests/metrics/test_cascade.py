"""ERR: the definition, numbers by hand, conventions, refusals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from tests.oracles import err, mean_metric
from tests.strategies import ranked_data

ONE_BY_ONE = [0.3, 0.2, 0.1]


@pytest.mark.parametrize("k", [None, 1, 3, 50])
@pytest.mark.parametrize("max_grade", [4, 7, 4.5])
@settings(max_examples=15, deadline=None)
@given(data=ranked_data(max_rows=12))
def test_values_equal_the_definition(max_grade, k, data):
    scores, labels, sizes = data
    want = mean_metric(err, scores, labels, sizes, k, max_grade=max_grade)
    assert lo.ERR(k, max_grade)(scores, labels, group=sizes) == pytest.approx(want, rel=1e-12, abs=1e-15)


def test_by_hand():
    a, b, c = Fraction(7, 16), Fraction(3, 16), Fraction(15, 16)  # labels 3, 2, 4
    want = [a, a + (1 - a) * b / 2, a + (1 - a) * b / 2 + (1 - a) * (1 - b) * c / 3]
    for k, value in ((1, want[0]), (2, want[1]), (3, want[2]), (None, want[2]), (9, want[2])):
        assert lo.ERR(k)(ONE_BY_ONE, [3, 2, 4], group=[3]) == pytest.approx(float(value), rel=1e-14)
    assert lo.ERR(max_grade=1)([1.0], [1], group=[1]) == 0.5
    assert lo.ERR(max_grade=1)([1.0], [0.5], group=[1]) == pytest.approx((2**0.5 - 1) / 2)


def test_conventions():
    assert lo.ERR()([1, 2], [0, 0], group=[2]) == lo.ERR()([1], [0], group=[1]) == lo.ERR()([], [], group=[]) == 0.0
    assert lo.ERR(1)([0, 0], [4, 0], group=[2]) == 15 / 16  # equal scores: by row
    assert lo.ERR(1)([0, 0], [0, 4], group=[2]) == 0.0


def test_rows_without_a_judgement_have_a_rank_and_are_worth_nothing():
    assert lo.ERR()(ONE_BY_ONE, [np.nan, 4, np.nan], group=[3], unjudged=True) == 15 / 32
    with pytest.raises(ValueError, match="labels must be finite: row 0 is nan"):
        lo.ERR()(ONE_BY_ONE, [np.nan, 4, 1], group=[3])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lo.ERR(0), "k must be a whole number from 1"),
        (lambda: lo.ERR(max_grade=0), "max_grade must be above 0, found 0"),
        (lambda: lo.ERR(max_grade=51), "max_grade must be at most 50, found 51"),
        (lambda: lo.ERR(max_grade=None), "max_grade must be a finite number"),
        (lambda: lo.ERR(max_grade=np.inf), "max_grade must"),
        (lambda: lo.ERR()(ONE_BY_ONE, [0, 5, 1], group=[3]), "ERR.* takes labels from 0 to max_grade=4, row 1 is 5"),
        (lambda: lo.ERR()(ONE_BY_ONE, [0, 1, -1], group=[3]), "ERR.* labels from 0 .*row 2 is -1"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
