"""What the command line trains on."""

import lambda_objectives as lo
from lambda_objectives.tools.settings import Settings


def test_term_follows_every_option():
    plain = Settings("lightgbm", lo.NDCG(10))
    assert plain.term == lo.LambdaRank(lo.NDCG(), log_norm=True, score_gap_norm=True)
    other = Settings("xgboost", lo.DCG(5), train_cutoff=7, truncation=20, log_norm=False, score_gap_norm=False)
    assert other.term == lo.LambdaRank(lo.DCG(7), truncation=20)


def test_the_users_parameters_win_under_any_of_their_names():
    for name in ("learning_rate", "eta"):
        params = Settings("xgboost", lo.NDCG(), params={name: 0.3}, seed=5).all_params
        assert [params[n] for n in ("learning_rate", "eta") if n in params] == [0.3]
        assert params["seed"] == 5
        assert params["min_child_weight"] == 1e-3
