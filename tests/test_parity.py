"""The boosters' own objectives and ours grow the same trees where they are asked for the same."""

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import lambda_objectives as lo


def data(seed, weighted):
    """120 queries of 1 to 30 rows, graded labels, features of which some matter."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 31, 120)
    n = sizes.sum()
    X = rng.normal(size=(n, 6))
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)), 0, 4)
    weights = rng.choice([0.5, 1.0, 3.0], n) if weighted else None
    return X, y, sizes, weights


def splits(booster):
    """Features and thresholds of the first tree."""
    tree = booster.trees_to_dataframe().query("tree_index == 0")
    return list(zip(tree.split_feature.fillna(""), tree.threshold.fillna(0.0), strict=True))


LIGHTGBM = dict(
    learning_rate=0.1, num_leaves=15, min_data_in_leaf=5, num_threads=1, deterministic=True, force_row_wise=True,
    boost_from_average=False, verbosity=-1, metric="None", seed=1,
)  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"lambdarank_norm": False, "lambdarank_truncation_level": 30}, {}),
        ({"lambdarank_norm": False, "lambdarank_truncation_level": 30, "sigmoid": 2.0}, {"sigma": 2.0}),
        ({"lambdarank_truncation_level": 30}, {"truncation": 30, "score_gap_norm": True, "log_norm": True}),
    ],
    ids=["plain", "sigma", "normalised"],
)
def test_lightgbm_lambdarank(theirs, ours, seed, weighted):
    X, y, sizes, weights = data(seed, weighted)
    models = [
        lgb.train({**LIGHTGBM, "objective": objective, **extra}, lgb.Dataset(X, y, group=sizes, weight=weights), 50)
        for objective, extra in (
            ("lambdarank", theirs),
            (lo.Objective(lo.LambdaRank(lo.NDCG(), **ours)), {}),
        )
    ]
    assert splits(models[0]) == splits(models[1])
    first = [model.predict(X, num_iteration=1) for model in models]
    np.testing.assert_allclose(first[1], first[0], atol=1e-5 * np.abs(first[0]).max())
    if len(ours) < 2:  # with the norms a sigmoid table 5e-5 coarse is divided by gaps near 0
        last = [model.predict(X) for model in models]
        np.testing.assert_allclose(last[1], last[0], atol=1e-4 * np.abs(last[0]).max())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "term"), [("rank:ndcg", lo.LambdaRank(lo.NDCG())), ("rank:pairwise", lo.RankNet())])
def test_xgboost_without_its_normalisations(name, term, seed):
    X, y, sizes, _ = data(seed, weighted=False)
    matrix = xgb.DMatrix(X, y)
    matrix.set_group(sizes)
    params = dict(max_depth=3, reg_lambda=0, min_child_weight=0, base_score=0, nthread=1, tree_method="exact", seed=1)
    pairs = dict(
        objective=name, lambdarank_pair_method="topk", lambdarank_num_pair_per_sample=30,
        lambdarank_normalization=False, lambdarank_score_normalization=False,
    )  # fmt: skip
    # XGBoost's Hessian is twice the exact one, so the exact one takes half the learning rate
    theirs = xgb.train({**params, **pairs, "eta": 0.2}, matrix, 10)
    ours = xgb.train({**params, "eta": 0.1}, matrix, 10, obj=lo.Objective(term))
    for rounds in (1, 10):
        a, b = (m.predict(matrix, output_margin=True, iteration_range=(0, rounds)) for m in (theirs, ours))
        np.testing.assert_allclose(b, a, atol=1e-3 * np.abs(a).max())
