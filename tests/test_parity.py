"""The boosters' own objectives and ours grow the same trees where they are asked for the same."""

import itertools

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import lambda_objectives as lo


def data(seed, weighted, binary=False):
    """120 queries of 1 to 30 rows, graded or binary labels, features of which some matter."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 31, 120)
    n = sizes.sum()
    X = rng.normal(size=(n, 6))
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)), 0, 4)
    if binary:
        y = (y > 1) * 1.0
    weights = rng.choice([0.5, 1.0, 3.0], n) if weighted else None
    return X, y, sizes, weights


def splits(booster):
    """Features and thresholds of the first tree."""
    names = ("Tree", "Feature", "Split")
    if isinstance(booster, lgb.Booster):
        names = ("tree_index", "split_feature", "threshold")
    number, feature, threshold = names
    tree = booster.trees_to_dataframe().query(f"{number} == 0")
    return list(zip(tree[feature].fillna(""), tree[threshold].fillna(0.0), strict=True))


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


def same_trees(models, predict):
    """The first trees split at the same places; predictions agree after one tree and after all."""
    theirs, ours = models
    assert splits(theirs) == splits(ours)
    assert len(splits(theirs)) > 10
    for rounds in (1, 50):
        a, b = predict(theirs, rounds), predict(ours, rounds)
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-4 * np.abs(a).max())


def ways(*cases):
    """Each case with 5 seeds, labels and weights of each kind among them; all combinations are marked as slow."""
    out, mixed = [], [(False, False), (True, True), (False, True), (True, False), (False, True)]
    for case, seed in itertools.product(cases, range(5)):
        for weighted, binary in itertools.product((False, True), repeat=2):
            marks = () if (weighted, binary) == mixed[seed] else (pytest.mark.slow,)
            if binary or case.get("objective") != "rank:map":
                out.append(pytest.param(case, seed, weighted, binary, marks=marks))
    return out


LAMBDARANK = [
    {"lambdarank_norm": norm, "lambdarank_truncation_level": level} for norm in (True, False) for level in (30, 12, 3)
]
XENDCG = {"objective": "rank_xendcg", "objective_seed": 11}
OTHERS = [{"sigmoid": 2.0}, {"label_gain": [0, 1, 2, 5, 9]}, XENDCG]


@pytest.mark.parametrize(("theirs", "seed", "weighted", "binary"), ways(*LAMBDARANK, *OTHERS))
def test_compat_lightgbm(theirs, seed, weighted, binary):
    X, y, sizes, weights = data(seed, weighted, binary)
    models = [
        lgb.train({**LIGHTGBM, **params}, lgb.Dataset(X, y, group=sizes, weight=weights), 50)
        for params in (
            {"objective": "lambdarank", **theirs},
            {"objective": lo.Objective(lo.compat.lightgbm(**theirs))},
        )
    ]
    same_trees(models, lambda model, rounds: model.predict(X, num_iteration=rounds))


PLAIN = {"lambdarank_normalization": False, "lambdarank_score_normalization": False}
RANK = [
    {"objective": objective, **extra}
    for objective in ("rank:ndcg", "rank:pairwise", "rank:map")
    for extra in (
        {},
        PLAIN,
        {"lambdarank_num_pair_per_sample": 5},
        {"lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 2},
    )
]


@pytest.mark.parametrize(("theirs", "seed", "weighted", "binary"), ways(*RANK, {"ndcg_exp_gain": False}))
def test_compat_xgboost(theirs, seed, weighted, binary):
    if theirs.get("lambdarank_pair_method") == "mean" and xgb.__version__.split(".")[:2] != ["3", "2"]:
        pytest.skip("other versions draw from other seeds")
    if not theirs.keys().isdisjoint({"lambdarank_score_normalization"}) and int(xgb.__version__.split(".")[0]) < 3:
        pytest.skip("a parameter of XGBoost 3")
    X, y, sizes, _ = data(seed, False, binary)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 3.0], len(sizes)) if weighted else None
    matrix = xgb.DMatrix(X, y)
    matrix.set_group(sizes)
    if weights is not None:
        matrix.set_weight(weights)
    params = dict(max_depth=4, eta=0.1, min_child_weight=1e-3, base_score=0, nthread=1, tree_method="hist", seed=1)
    models = [
        xgb.train({**params, "objective": "rank:ndcg", **theirs}, matrix, 50),
        xgb.train(params, matrix, 50, obj=lo.Objective(lo.compat.xgboost(**theirs))),
    ]
    same_trees(models, lambda m, rounds: m.predict(matrix, output_margin=True, iteration_range=(0, rounds)))


def test_compat_goes_on_after_a_resume():
    """The numbers of rank_xendcg depend on the round: a training in two parts is the training in one."""
    X, y, sizes, _ = data(0, weighted=False)
    term = lo.compat.lightgbm("rank_xendcg")
    train = lgb.Dataset(X, y, group=sizes, free_raw_data=False)
    objective = lo.Objective(term)
    half = lgb.train({**LIGHTGBM, "objective": objective}, train, 10)
    rest = lo.Objective(term, state=objective.state())
    whole = lgb.train({**LIGHTGBM, "objective": lo.Objective(term)}, train, 20)
    both = lgb.train({**LIGHTGBM, "objective": rest}, train, 10, init_model=half)
    np.testing.assert_allclose(both.predict(X), whole.predict(X), rtol=0, atol=1e-6 * np.abs(whole.predict(X)).max())
