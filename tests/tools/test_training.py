"""Training on files: parameters, early stopping, what is watched."""

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.tools.console import UserError
from lambda_objectives.tools.files import Ranked
from lambda_objectives.tools.scoring import parse_metric, reported
from lambda_objectives.tools.settings import Settings, parse_params
from lambda_objectives.tools.training import measure_all, train

BOOSTERS = ["lightgbm", "xgboost"]


def ranked(seed, queries=60):
    """Data that overfits soon."""
    rng = np.random.default_rng(seed)
    n = 10 * queries
    X = rng.normal(size=(n, 5))
    y = np.clip(np.round(X[:, 0] + 1.2 * rng.normal(size=n)), 0, 3)
    return Ranked(f"{seed}.txt", X, y, np.full(queries, 10), (1, 2, 3, 4, 5))


DATA = {"train": ranked(0), "valid": ranked(1), "test": ranked(2)}


@pytest.mark.parametrize("metric", ["ndcg@3", "ndcg", "dcg@5"])
@pytest.mark.parametrize("booster", BOOSTERS)
def test_early_stopping_keeps_the_best_round(booster, metric):
    metric = parse_metric(metric)
    settings = Settings(booster, metric, 60, 8, params={"learning_rate": 0.3})
    trained = train(settings, DATA)
    curve = trained.curves["valid"]
    assert trained.best_round == 1 + np.argmax(curve)
    assert len(curve) == min(60, trained.best_round + 8)
    assert len(trained.curves["train"]) == len(curve)
    assert trained.best_round < 60  # it did stop
    measured = measure_all(settings, trained, DATA)
    for role in ("train", "valid"):  # XGBoost rounds what it records to six digits
        assert measured[role][metric.name] == pytest.approx(trained.curves[role][trained.best_round - 1], abs=1e-6)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_all_rounds_without_early_stopping(booster):
    trained = train(Settings(booster, lo.NDCG(5), 7, 0), DATA)
    assert trained.best_round == len(trained.curves["valid"]) == 7


@pytest.mark.parametrize("booster", BOOSTERS)
def test_what_is_trained_does_not_depend_on_what_is_watched(booster):
    scores = [
        train(Settings(booster, metric, 5, 0), DATA).model.scores(DATA["test"].X) for metric in (lo.NDCG(), lo.NDCG(1))
    ]
    np.testing.assert_array_equal(*scores)
    other = train(Settings(booster, lo.NDCG(1), 5, 0, train_cutoff=1), DATA).model.scores(DATA["test"].X)
    assert np.abs(other - scores[0]).max() > 1e-3


@pytest.mark.parametrize("booster", BOOSTERS)
def test_seed(booster):
    def scores(seed):
        settings = Settings(booster, lo.NDCG(), 5, 0, seed=seed, params={"subsample": 0.5, **bagging})
        return train(settings, DATA).model.scores(DATA["test"].X)

    bagging = {"bagging_freq": 1} if booster == "lightgbm" else {}
    np.testing.assert_array_equal(scores(1), scores(1))
    assert np.abs(scores(1) - scores(2)).max() > 0


@pytest.mark.parametrize("booster", BOOSTERS)
def test_saved_models_know_the_numbers_of_the_features(booster, tmp_path):
    trained = train(Settings(booster, lo.NDCG(), 2), DATA)
    assert (trained.model.numbers, trained.model.width) == ((1, 2, 3, 4, 5), 5)
    assert "feature_5" in trained.model.save(tmp_path).read_text()


def test_a_default_gives_way_to_its_alias():
    assert Settings("xgboost", lo.NDCG(), params={"eta": 0.2}).all_params == {
        "min_child_weight": 1e-3, "base_score": 0.0, "eta": 0.2, "seed": 0,
    }  # fmt: skip
    assert Settings("lightgbm", lo.NDCG(), params={"verbose": 0}).all_params == {
        "learning_rate": 0.05, "verbose": 0, "seed": 0,
    }  # fmt: skip


def test_parse_params():
    params = parse_params(["a=1", "b=1e-3", "c=x=y", "d = -2 ", "a=2", "e=1,2"])
    assert params == {"a": 2, "b": 1e-3, "c": "x=y", "d": -2, "e": "1,2"}
    assert [type(params[name]) for name in "ab"] == [int, float]
    for word in ("a", "a=", "=1", ""):
        with pytest.raises(UserError, match="name=value is wanted"):
            parse_params([word])


def test_parse_metric():
    assert parse_metric("ndcg@10") == lo.NDCG(10)
    assert parse_metric("NDCG") == lo.NDCG()
    assert parse_metric("dcg@5") == lo.DCG(5)
    for text in ("", "ndcg@-1", "ndcg@1.5", "ndcg@²", "@3", "ranknet", "objective", "datasets"):
        with pytest.raises(UserError, match="unknown metric"):
            parse_metric(text)


def test_reported():
    assert [metric.name for metric in reported(lo.NDCG(5))] == ["ndcg@1", "ndcg@5", "ndcg@10"]
    assert [metric.name for metric in reported(lo.DCG(5))] == ["ndcg@1", "ndcg@5", "ndcg@10", "dcg@5"]
