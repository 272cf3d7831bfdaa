"""What every metric, term and spec promises. A new one adds a row to a list."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings

import lambda_objectives as lo
from lambda_objectives.queries import Queries
from tests.strategies import ranked_data

METRICS = [
    lo.NDCG(), lo.NDCG(3), lo.NDCG(2, gain="linear", discount="reciprocal", empty=0.0), lo.NDCG(3, ties="mean"),
    lo.DCG(), lo.DCG(4), lo.MAP(), lo.MAP(3), lo.MAP(threshold=1.0, empty=0.0), lo.MAP(gain="linear"), lo.MRR(),
    lo.MRR(2), lo.HitRate(2), lo.ERR(), lo.ERR(3, max_grade=5), lo.Precision(3), lo.Precision(3, ties="mean"),
    lo.Recall(3), lo.RBP(), lo.RBP(4, persistence=0.5, max_grade=4), lo.AUC(), lo.AUC(ties="mean"), lo.Kendall(),
    lo.Kendall("b", empty=1.0), lo.Spearman(),
]  # fmt: skip
SEEDED = [  # what is drawn depends on the place of a row
    lo.LambdaRank(lo.MAP(), sample=2),
    lo.RankNet(sample=1, seed=3),
    lo.YetiRank(lo.NDCG(3), draws=2),
    lo.YetiRank(lo.MAP(), draws=2, neighbours=False, noise="gaussian", noise_power=0.5),
    lo.XENDCG(),
    lo.compat.lightgbm("rank_xendcg"),
]
OWN_WAYS = [  # peers that do not keep to what we promise: a query's weight that is relative, another sum of gradients
    lo.compat.xgboost(),
    lo.compat.xgboost("rank:pairwise", lambdarank_score_normalization=False),
]
COUNTS = [lo.Poisson(), lo.Gamma(label="share"), lo.Tweedie(1.3, label="other")]  # their mean is e^score
TERMS = [
    *[lo.LambdaRank(metric) for metric in METRICS],
    lo.LambdaRank(lo.ERR(), truncation=2, score_gap_norm=True, log_norm=True, label_difference=True),
    lo.LambdaRank(lo.MRR(), propensity="share", propensity_floor=0.2),
    lo.LambdaRank(lo.AUC(), label="judged", unjudged=True),
    lo.LambdaLoss(),
    lo.LambdaLoss(lo.DCG(), "1"),
    lo.LambdaLoss(variant="2", truncation=2),
    lo.RankNet(loss="hinge"),
    lo.RankNet(label_difference=True),
    lo.RiskRank(lo.NDCG(3), "share"),
    lo.RiskRank(lo.MAP(), "share", alpha=3.0, measure="trisk"),
    lo.UnbiasedRank(lo.NDCG(3), "other"),
    lo.UnbiasedRank(lo.MAP(), "other", "additive", regularization=0.5),
    lo.QueryRMSE(),
    lo.QuerySoftMax(),
    lo.compat.lightgbm(),
    lo.compat.lightgbm(lambdarank_norm=False, lambdarank_truncation_level=3),
    lo.compat.catboost(metric="ERR", label="share"),
    lo.compat.catboost(metric="MAP", top=3),
    lo.compat.ranklib("ERR@3"),
    *SEEDED,
    *OWN_WAYS,
    lo.LambdaRank(lo.NDCG(), truncation=3, score_gap_norm=True, log_norm=True),
    lo.LambdaRank(lo.NDCG(), label="other", sigma=2.0),
    lo.RankNet(),
    lo.SquaredError(),
    lo.SquaredError(label="other"),
    lo.LogLoss(label="share"),
    lo.Pearson(),
    *COUNTS,
]
RANK, OTHER, SHARE = lo.LambdaRank(lo.NDCG(3)), lo.RankNet(label="other"), lo.LogLoss(label="share")
LAGRANGIANS = [  # with multipliers above 0 from the first round on, where bounds are broken
    lo.AugmentedLagrangian(RANK, [lo.Constraint(SHARE, 0.1), lo.Constraint(RANK, at_least=0.9)], "carry", [0.3, 2.0]),
    lo.AugmentedLagrangian(RANK, [lo.Constraint(OTHER, 0.5, name="b")], "reset", growth=1.1, normalise=True, kappa=0.5),
    lo.AugmentedLagrangian(SHARE, [lo.Constraint(lo.RankNet(), at_most=0.0, scale=2.0)], update="carry", tighten=0.1),
    lo.AugmentedLagrangian(RANK, [lo.Constraint(SHARE, 0.1), lo.Constraint(OTHER, 0.1)], start=0, land=1),
    lo.AugmentedLagrangian(RANK, [lo.Constraint(SHARE, 0.5, relative=True)], mu=2.0, start=0, rounds=9),
    lo.AugmentedLagrangian(RANK, [lo.Constraint(SHARE, 0.1)], "carry", follow="valid"),
]
DECORRELATED = [
    lo.Decorrelated(RANK, "other", 2.0, within_group=True),
    lo.Decorrelated(lo.SquaredError(), ["other", lo.DistanceCovariance("share", True)], 1.5, [1.0, 2.0], True),
    lo.Decorrelated(lo.Pearson(), ["other"], 3.0, within_group=True, damp=True),
]
SPECS = [
    *TERMS,
    *DECORRELATED,
    lo.WeightedSum([RANK, OTHER, SHARE], [1.0, 0.5, 2.0]),
    lo.WeightedSum([RANK, lo.DistanceCovariance("other", True)], [1.0, 2.0]),
    lo.AugmentedLagrangian(lo.SquaredError(), [lo.Constraint(lo.DistanceCovariance("other", "share"), 0.0)], "carry"),
    *LAGRANGIANS,
]


def columns(labels):
    share = (1 + labels) / (1 + max(1.0, labels.max(initial=0)))
    return {"other": labels[::-1] % 3, "share": share, "judged": np.where(labels == 1, np.nan, labels)}


def of_use(term, labels, sizes, columns):
    """Whether a term takes such training data: dependence refuses controls of no use to any group."""
    if not isinstance(term, lo.DistanceCovariance):
        return True
    try:
        queries = Queries.from_arrays(labels, group=sizes, columns=columns)
        term.check(term.prepare(queries, np.float64), queries)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(data=ranked_data())
def test_metric(metric, data):
    scores, labels, sizes = data
    value = metric(scores, labels, group=sizes)
    assert np.isfinite(value)
    assert metric(3 * scores + (7 if np.ptp(scores) < 1e3 else 0), labels, group=sizes) == pytest.approx(
        value, abs=1e-12
    )
    best = metric(labels, labels, group=sizes)
    assert value <= best + 1e-12
    if isinstance(metric, lo.NDCG):
        assert 0 <= value <= 1
        assert best == pytest.approx(1.0 if metric.empty == 1 else best)
    doubled = metric(np.tile(scores, 2), np.tile(labels, 2), group=np.tile(sizes, 2))
    assert doubled == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(data=ranked_data())
def test_gradient(spec, data):
    scores, labels, sizes = data
    given_columns = columns(labels)
    if spec in LAGRANGIANS and OTHER in spec.terms:  # a bound on a column that differs nowhere is refused
        ends = np.cumsum(sizes)
        assume(any(np.ptp(given_columns["other"][a - n : a]) > 0 for a, n in zip(ends, sizes, strict=True)))
    assume(spec not in COUNTS or np.abs(scores).max(initial=0.0) < 30)
    assume(all(of_use(term, labels, sizes, given_columns) for term in getattr(spec, "terms", ())))
    before = [scores.copy(), labels.copy(), sizes.copy()]
    grad, hess = lo.gradient(spec, scores, labels, group=sizes, columns=given_columns)
    for array, kept in zip((scores, labels, sizes), before, strict=True):
        np.testing.assert_array_equal(array, kept)
    assert grad.shape == hess.shape == scores.shape
    assert np.isfinite(grad).all()
    assert (hess >= 0).all()

    scale = 1e-9 * (1 + np.abs(grad).max())
    terms = getattr(spec, "terms", (spec,))
    if all(term.needs_order and "endcg" not in term.name for term in terms):
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            assert abs(grad[end - size : end].sum()) <= scale * size
    if spec in OWN_WAYS:
        return
    twice = np.full(len(scores), 2.0)
    weighted = lo.gradient(spec, scores, labels, group=sizes, weights=twice, columns=given_columns)
    np.testing.assert_allclose(weighted[0], 2 * grad, atol=scale)
    np.testing.assert_allclose(weighted[1], 2 * hess, rtol=1e-9, atol=1e-12)
    plain = lo.evaluate(spec, scores, labels, group=sizes, columns=given_columns)
    assert lo.evaluate(spec, scores, labels, group=sizes, weights=twice, columns=given_columns) == pytest.approx(
        plain, nan_ok=True
    )

    if spec in SEEDED:
        return
    # the queries in another order: the same for each row
    order = np.concatenate([np.arange(e - s, e) for e, s in reversed(list(zip(np.cumsum(sizes), sizes, strict=True)))])
    moved = lo.gradient(
        spec, scores[order], labels[order], group=sizes[::-1],
        columns={name: values[order] for name, values in given_columns.items()},
    )  # fmt: skip
    np.testing.assert_allclose(moved[0], grad[order], atol=1e-12)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_specs_are_values(spec):
    for same in (copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert same == spec
        assert hash(same) == hash(spec)
    namespace = {name: getattr(lo, name) for name in lo.__all__ if name[0].isupper()} | {"compat": lo.compat}
    assert eval(repr(spec), namespace) == spec
    with pytest.raises(AttributeError):
        spec.sigma = 3.0
    columns = {"other": [1, 0], "share": [0.5, 1], "judged": [0, 1]}
    names = list(lo.evaluate(spec, [0.0, 1.0], [0, 1], group=[2], columns=columns))
    assert len(set(names)) == len(names)
    assert not any(set(name) & set(" \t\n:,") for name in names)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_bad_input_is_named(spec):
    good = {"scores": [0.0, 1.0], "labels": [0, 1], "group": [2], "other": [1, 0], "share": [0.5, 1], "judged": [0, 1]}
    terms = getattr(spec, "terms", (spec,))
    for change, words in (
        ({"scores": [0.0, np.inf]}, "scores must be finite: row 1"),
        ({"scores": [0.0]}, "scores has 1 values"),
        ({"labels": [0, np.inf]}, "labels must be finite"),
        ({"labels": [0, np.nan]}, "labels must be finite"),
        ({"weights": [1, -1]}, "weights must not be negative"),
        ({"share": [0, 1, 2]}, "column 'share' has 3 values"),
    ):
        if words == "labels must be finite" and all(getattr(term, "label", None) for term in terms):
            continue  # nobody looks at the data set's own labels
        with pytest.raises(ValueError, match=words):
            lo.gradient(spec, **{**good, **change})
