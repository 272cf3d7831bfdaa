"""WeightedSum, and what is taken for a spec."""

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.specs import as_spec

RANK, PAIRS = lo.LambdaRank(lo.NDCG(3)), lo.RankNet()
SCORES, LABELS, GROUP = np.array([0.3, 0.1, 0.2, 0.0]), [0, 2, 1, 1], [3, 1]


def test_gradients_and_hessians_add_up_with_their_weights():
    spec = lo.WeightedSum([RANK, PAIRS, lo.SquaredError()], weights=[1.0, 0.25, 0.0])
    got = lo.gradient(spec, SCORES, LABELS, group=GROUP)
    one, two = (lo.gradient(term, SCORES, LABELS, group=GROUP) for term in (RANK, PAIRS))
    for i in (0, 1):
        np.testing.assert_allclose(got[i], one[i] + 0.25 * two[i], rtol=1e-14)


def test_every_term_is_reported_once():
    spec = lo.WeightedSum([RANK, lo.LambdaRank(lo.NDCG(3), sigma=2.0), PAIRS], weights=[1, 1, 1])
    values = lo.evaluate(spec, SCORES, LABELS, group=GROUP)
    assert list(values) == ["cost/ndcg@3", "ndcg@3", "cost/ndcg@3-2", "ndcg@3-2", "cost/ranknet"]
    alone = lo.evaluate(RANK, SCORES, LABELS, group=GROUP)
    assert {name: values[name] for name in alone} == alone


def test_metrics_of_one_name_keep_apart():
    linear = lo.NDCG(3, gain="linear")
    spec = lo.WeightedSum([RANK, lo.LambdaRank(linear)], weights=[1, 1])
    values = lo.evaluate(spec, SCORES, LABELS, group=GROUP)
    assert values["ndcg@3"] == lo.NDCG(3)(SCORES, LABELS, group=GROUP)
    assert values["ndcg@3-2"] == linear(SCORES, LABELS, group=GROUP) != values["ndcg@3"]


def test_a_spec_is_a_value_and_does_not_follow_the_lists_it_was_made_of():
    terms, weights = [RANK, PAIRS], [1, 2]
    spec = lo.WeightedSum(terms, weights)
    terms.append(RANK)
    weights[0] = 5
    assert spec == lo.WeightedSum((RANK, PAIRS), (1.0, 2.0))
    assert hash(spec) == hash(lo.WeightedSum((RANK, PAIRS), (1.0, 2.0)))
    assert spec.terms == (RANK, PAIRS)


@pytest.mark.parametrize(
    ("terms", "weights", "error", "words"),
    [
        ([], [], ValueError, "terms must hold at least one term"),
        ([RANK], [1, 2], ValueError, "weights: one for each term wanted, found 2 for 1"),
        ([RANK], [float("nan")], ValueError, r"weights\[0\] must be a finite number"),
        ([RANK], [-1], ValueError, r"weights\[0\] must not be negative"),
        ([RANK], ["1"], ValueError, r"weights\[0\]"),
        ([lo.NDCG(3)], [1], TypeError, r"terms\[0\] must be a term"),
        ([lo.RankNet], [1], TypeError, r"terms\[0\] must be a term"),
    ],
)
def test_wrong_sums_are_refused(terms, weights, error, words):
    with pytest.raises(error, match=words):
        lo.WeightedSum(terms, weights)


def test_what_is_no_spec_is_refused_with_a_hint():
    assert as_spec(RANK) == lo.WeightedSum((RANK,), (1.0,))
    assert as_spec(as_spec(RANK)) == as_spec(RANK)
    for wrong, hint in (
        ("lambdarank", "found 'lambdarank'"),
        (lo.NDCG(10), r"write LambdaRank\(NDCG\(k=10"),
        (lo.SquaredError, r"write SquaredError\(...\)"),
        (None, "found None"),
    ):
        with pytest.raises(TypeError, match="spec must be a term or a spec.*" + hint):
            lo.Objective(wrong)
