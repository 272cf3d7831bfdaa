"""Steps of a penalty that are too long: what is warned of, what is damped, and that healthy fits hear nothing."""

import json
import warnings

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.specs import steps
from lambda_objectives.specs.rounds import Coupling, Round


def rounds(leanings, costs, spreads, rate=0.1):
    for i, (leaning, cost, spread) in enumerate(zip(leanings, costs, spreads, strict=True)):
        yield Round(i, [cost, -0.001], [], [], rate=rate, coupling=Coupling("mse", 2.0, 0.5, (leaning, np.nan), spread))


def follow(leanings, costs=None, spreads=None, weight=100.0, damp=False):
    count = len(leanings)
    state, heard = steps.START, []
    for round in rounds(leanings, costs or [1.0] * count, spreads or [1.0] * count):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            state = steps.watch(state, round, [weight, 0.0], damp)
        heard += [(round.number, str(w.message)) for w in caught]
        assert json.loads(json.dumps(state)) == state
    return state, heard


SWINGS = [0.3 * (-1) ** i for i in range(30)]


def test_swings_are_told_once_with_a_product_that_is_safe():
    state, heard = follow(SWINGS)
    assert [number for number, _ in heard] == [steps.YOUNG + steps.LONG - 1]
    text = heard[0][1]
    assert "correlation by 0.6 a round: weight x learning rate = 10" in text
    assert "0.8 looks like the largest product that is safe" in text  # 10 x .05 / .6
    assert state["damping"] == 1.0
    assert follow(SWINGS[:12] + [0.05] * 18)[1] == []  # it settles


def test_no_swings():
    for calm in (
        np.linspace(0.6, 0.05, 30),  # settling
        [0.6 * 0.7**i for i in range(30)],
        [0.02 * (-1) ** i for i in range(30)],  # about independence, by next to nothing
        0.2 * np.random.default_rng(0).normal(size=3).repeat(10),  # a few changes of side
    ):
        assert follow(list(calm))[1] == []
        assert follow(list(calm), damp=True)[0]["damping"] == 1.0


def test_damping_lowers_the_weight_until_they_stop():
    state, heard = follow(SWINGS[:8], damp=True)
    assert heard == []
    assert state["damping"] == 0.5  # no more than to a half at a time
    assert state["leanings"] == []
    state, _ = follow([0.04 * (-1) ** i for i in range(8)], damp=True)
    assert state["damping"] == pytest.approx(0.05 / (2 * 0.04))
    state, _ = follow(SWINGS[:7], damp=True)
    assert state["damping"] == 1.0
    state, _ = follow(SWINGS[:24], damp=True)
    assert state["damping"] == 0.125


def test_inflation_is_told_once():
    calm, costs = [0.01] * 30, [1.0, 0.8, *np.linspace(0.9, 3.0, 28)]
    spreads = [0.1, 0.2, *np.linspace(0.5, 9.0, 28)]
    _, heard = follow(calm, costs, spreads)
    assert len(heard) == 1
    assert "predictions inflate: their standard deviation is" in heard[0][1]
    assert "estimated below 0" in heard[0][1]
    assert follow(calm, costs, [0.1] * 30)[1] == []  # no wider
    assert follow(calm, [1.0] * 30, spreads)[1] == []  # no worse
    assert follow(calm, costs, spreads, weight=0.0)[1] == []  # not the penalty's doing


def trained(booster, weight, rate=0.1, base=None, **options):
    pytest.importorskip(booster, minversion="4.0" if booster == "lightgbm" else None)
    rng = np.random.default_rng(0)
    n = 1000
    X = rng.normal(size=(n, 3))
    control = X[:, 0] + 0.5 * rng.normal(size=n)
    y = control + X[:, 1] + 0.5 * rng.normal(size=n)
    if base is not None:
        y = (y > 0) * 1.0
    objective = lo.Objective(lo.Decorrelated(base or lo.SquaredError(), "c", weight, **options))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if booster == "lightgbm":
            import lightgbm as lgb

            data = lo.attach(lgb.Dataset(X, y), c=control)
            params = {"objective": objective, "num_leaves": 8, "learning_rate": rate, "verbosity": -1, "num_threads": 1}
            lgb.train(params, data, 60)
        else:
            import xgboost as xgb

            data = lo.attach(xgb.DMatrix(X, y), c=control)
            params = {"max_depth": 3, "eta": rate, "nthread": 1, "base_score": 0, "min_child_weight": 0.1}
            xgb.train(params, data, 60, obj=objective)
    heard = [str(w.message) for w in caught if issubclass(w.category, lo.LambdaObjectivesWarning)]
    return objective.history(data), heard


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_trainings(booster):
    """A product of 1 is heard nothing of; one of 30 swings, is named, and can be damped."""
    calm, heard = trained(booster, 10.0)
    assert heard == []
    wild, heard = trained(booster, 300.0)
    assert len(heard) == len(set(heard)) <= 2
    assert sum("weight x learning rate = 30 makes every tree overshoot" in text for text in heard) == 1
    damped, _ = trained(booster, 300.0, damp=True)
    assert 0 < damped["damping"][-1] < 0.3
    assert damped["damping"][-1] == damped["damping"][-15]  # settled
    assert damped["mse"][-1] < wild["mse"][-1] / 2
    assert damped["mse"][-1] < 3 * calm["mse"][-1]
    assert damped["c.dcov2"][-1] < calm["c.dcov2"][-1]
    assert "damping" not in calm


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_a_log_loss_that_blows_up_is_named(booster):
    history, heard = trained(booster, 1000.0, base=lo.LogLoss())
    assert history["logloss"][-1] > 2 * min(history["logloss"])
    assert 1 <= len(heard) == len(set(heard)) <= 2
    assert "inflate" in heard[0] or "swings" in heard[0]
    assert trained(booster, 10.0, base=lo.LogLoss())[1] == []
