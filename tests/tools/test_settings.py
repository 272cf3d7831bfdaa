"""What the command line trains on."""

import pytest

import lambda_objectives as lo
from lambda_objectives.tools.console import UserError
from lambda_objectives.tools.settings import Settings


def test_term_follows_every_option():
    plain = Settings("lightgbm", lo.NDCG(10))
    assert plain.term == lo.LambdaRank(lo.NDCG(), log_norm=True, score_gap_norm=True)
    other = Settings("xgboost", lo.DCG(5), train_cutoff=7, truncation=20, log_norm=False, score_gap_norm=False)
    assert other.term == lo.LambdaRank(lo.DCG(7), truncation=20)
    needs = Settings("xgboost", lo.Precision(5), log_norm=False)
    assert needs.term == lo.LambdaRank(lo.Precision(5), score_gap_norm=True)


def test_bounds_are_on_costs_without_normalisations():
    settings = Settings("lightgbm", lo.NDCG(10), truncation=20)
    assert settings.bounded("quality", metric=False) == lo.LambdaRank(lo.NDCG(), label="quality", truncation=20)
    assert settings.bounded("quality", metric=True) == lo.LambdaRank(lo.NDCG(10), label="quality", truncation=20)
    assert Settings("lightgbm", lo.NDCG(10), train_cutoff=5).bounded("x", metric=False).metric == lo.NDCG(5)


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("lambdaloss", lo.LambdaLoss(score_gap_norm=True, log_norm=True)),
        ("yetirank", lo.YetiRank(lo.MAP(), seed=7)),
        ("query-rmse", lo.QueryRMSE()),
        ("xendcg", lo.XENDCG(seed=7)),
        ("query-softmax", lo.QuerySoftMax()),
        ("ranknet", lo.RankNet()),
    ],
)
def test_objectives_by_name(name, term):
    assert Settings("lightgbm", lo.MAP(10), seed=7, objective=name).term == term


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "lambdamart"}, "unknown objective 'lambdamart': there are lambdarank, "),
        (
            {"objective": "xendcg", "log_norm": True},
            "--log-norm belongs to --objective lambdarank and lambdaloss, not to",
        ),
        ({"objective": "query-rmse", "truncation": 5}, "--truncation belongs to"),
        ({"objective": "lambdaloss", "train_cutoff": 5}, "--train-cutoff belongs to"),
    ],
)
def test_options_of_another_objective_are_refused(options, words):
    with pytest.raises(UserError, match=words):
        Settings("lightgbm", lo.NDCG(10), **options)


def test_the_users_parameters_win_under_any_of_their_names():
    for name in ("learning_rate", "eta"):
        params = Settings("xgboost", lo.NDCG(), params={name: 0.3}, seed=5).all_params
        assert [params[n] for n in ("learning_rate", "eta") if n in params] == [0.3]
        assert params["seed"] == 5
        assert params["min_child_weight"] == 1e-3
