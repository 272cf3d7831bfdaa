"""Where metrics disagree about the right order, training on one pays in that one."""

import lightgbm as lgb
import numpy as np
import pytest

import lambda_objectives as lo

PARAMS = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 20, "learning_rate": 0.2, "seed": 0}


def lists(queries, seed):
    """Four rows of a kind that is rarely relevant, but then of grade 4, and four that are often so, of grade 1.

    NDCG wants the first kind on top (an expected gain of .25 x 15 against .5), who counts relevant rows the second.
    """
    rng = np.random.default_rng(seed)
    rare = np.tile([1.0] * 4 + [0.0] * 4, queries)
    y = np.where(rare == 1, 4.0 * (rng.random(len(rare)) < 0.25), 1.0 * (rng.random(len(rare)) < 0.5))
    return np.column_stack([rare, rng.normal(size=len(rare))]), y, [8] * queries


@pytest.fixture(scope="module")
def measured():
    """Metric of a model by the metric that it was trained on."""
    metrics = {"ndcg": lo.NDCG(), "mrr": lo.MRR(), "map": lo.MAP(), "auc": lo.AUC()}
    (X, y, group), (X2, y2, group2) = lists(300, 0), lists(600, 1)
    found = {}
    for name, metric in metrics.items():
        objective = lo.Objective(lo.LambdaRank(metric))
        scores = lgb.train({**PARAMS, "objective": objective}, lgb.Dataset(X, y, group=group), 20).predict(X2)
        found[name] = {other: m(scores, y2, group=group2) for other, m in metrics.items()}
    return found


@pytest.mark.parametrize(("metric", "margin"), [("mrr", 0.1), ("map", 0.1), ("auc", 0.03)])
def test_each_metric_by_its_own_objective(measured, metric, margin):
    assert measured[metric][metric] > measured["ndcg"][metric] + margin
    assert measured["ndcg"]["ndcg"] > measured[metric]["ndcg"] + 0.05
