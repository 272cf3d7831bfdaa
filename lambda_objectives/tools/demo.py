"""A comparison on simulated product search: each booster's own ranking objective against ours, all else equal."""

from __future__ import annotations

import statistics
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import lambda_objectives as lo
from lambda_objectives.tools.console import progress, require, table
from lambda_objectives.tools.datasets import ProductSearch, product_search
from lambda_objectives.tools.training import xgboost_callback

METRICS = (lo.NDCG(1), lo.NDCG(5), lo.NDCG(10))
TERM = lo.LambdaRank(lo.NDCG())
PARAMS: dict[str, dict[str, Any]] = {
    "lightgbm": {"learning_rate": 0.1, "num_leaves": 31, "num_threads": 1, "verbosity": -1},
    "xgboost": {"learning_rate": 0.1, "max_depth": 5, "nthread": 1, "min_child_weight": 1e-3, "base_score": 0.0},
}
OWN = {"lightgbm": "lambdarank", "xgboost": "rank:ndcg"}
TITLES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}
WARM, TIMED = 3, 15  # rounds of measuring a gradient

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """Some queries of the simulation."""

    X: npt.NDArray[np.float32]
    y: Floats
    group: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one model came to."""

    booster: str
    ours: bool
    scores: Floats = field(repr=False)  # of the held-out rows
    ndcg: tuple[float, ...]  # on the held-out queries
    seconds: float  # CPU time of training
    gradient: float  # CPU milliseconds a round


def run(queries: int, rounds: int, seed: int) -> str:
    """Train the four models and return the table with what it shows.

    Parameters
    ----------
    queries
        Queries to simulate; a quarter is held out.
    rounds
        Trees in each model.
    seed
        Of the simulation and the boosters.
    """
    for module in ("lightgbm", "xgboost", "tqdm"):
        require(module)
    data = product_search(queries, seed)
    train, held_out = _split(data, queries - queries // 4)
    outcomes = []
    for booster in OWN:
        for ours in (False, True):
            outcomes.append(_outcome(booster, ours, train, held_out, rounds, seed))
    return _report(outcomes, train, held_out, rounds)


def _title(booster: str, ours: bool) -> str:
    return f"{TITLES[booster]}, {'ours' if ours else OWN[booster]}"


def _split(data: ProductSearch, queries: int) -> tuple[Part, Part]:
    rows = int(data.group[:queries].sum())
    return (
        Part(data.X[:rows], data.y[:rows], data.group[:queries]),
        Part(data.X[rows:], data.y[rows:], data.group[queries:]),
    )


def _outcome(booster: str, ours: bool, train: Part, held_out: Part, rounds: int, seed: int) -> Outcome:
    fit = _fit_lightgbm if booster == "lightgbm" else _fit_xgboost
    measured = _our_gradient if ours else _own_gradient
    gradient = measured(booster, train, seed)  # before training: ours compiles, the first time
    objective = lo.Objective(TERM) if ours else OWN[booster]
    with progress(rounds, _title(booster, ours)) as bar:
        start = time.process_time()
        predict = fit(objective, train, rounds, seed, lambda: bar.update(1))
        seconds = time.process_time() - start
    scores = np.asarray(predict(held_out.X), dtype=np.float64)
    ndcg = tuple(metric(scores, held_out.y, group=held_out.group) for metric in METRICS)
    return Outcome(booster, ours, scores, ndcg, seconds, gradient)


# ------------------------------------------------------------------------------------------------------------ training


def _fit_lightgbm(
    objective: Any, train: Part, rounds: int, seed: int, tick: Callable[[], Any]
) -> Callable[[npt.NDArray[Any]], Any]:
    import lightgbm

    params = {**PARAMS["lightgbm"], "objective": objective, "metric": "None", "seed": seed}
    data = lightgbm.Dataset(train.X, train.y, group=train.group)
    model = lightgbm.train(params, data, rounds, callbacks=[lambda _: tick()])
    predict: Callable[[npt.NDArray[Any]], Any] = model.predict
    return predict


def _fit_xgboost(
    objective: Any, train: Part, rounds: int, seed: int, tick: Callable[[], Any]
) -> Callable[[npt.NDArray[Any]], Any]:
    import xgboost

    params = {**PARAMS["xgboost"], "seed": seed}
    if isinstance(objective, str):
        params["objective"], objective = objective, None
    data = xgboost.DMatrix(train.X, train.y, nthread=1)
    data.set_group(train.group)
    model = xgboost.train(params, data, rounds, obj=objective, callbacks=[xgboost_callback(tick)])
    return lambda X: model.predict(xgboost.DMatrix(X), output_margin=True)


# ------------------------------------------------------------------------------ CPU time of a gradient, in milliseconds


def _our_gradient(booster: str, train: Part, seed: int) -> float:
    """Time calls of the objective, at scores that change a little from round to round."""
    from numba import get_num_threads, set_num_threads

    rng = np.random.default_rng(seed)
    n = len(train.y)
    scores = rng.normal(size=n)
    data = _one_split(booster, train, scores, rng)
    objective = lo.Objective(TERM)

    def call(round_: int) -> None:
        objective(steps[round_], data)

    steps = np.cumsum([scores, *(0.01 * rng.normal(size=(WARM + TIMED - 1, n)))], axis=0)
    threads = get_num_threads()
    set_num_threads(1)
    try:
        return _milliseconds(call)
    finally:
        set_num_threads(threads)


def _own_gradient(booster: str, train: Part, seed: int) -> float:
    """Time rounds of the smallest model, less the same with squared error: the ranking gradient is what is left."""
    plain = {"lightgbm": "regression", "xgboost": "reg:squarederror"}[booster]
    return max(0.0, _small_rounds(booster, OWN[booster], train, seed) - _small_rounds(booster, plain, train, seed))


def _small_rounds(booster: str, objective: str, train: Part, seed: int) -> float:
    rng = np.random.default_rng(seed)
    data = _one_split(booster, train, rng.normal(size=len(train.y)), rng)
    params = {**PARAMS[booster], "objective": objective, "seed": seed}
    if booster == "lightgbm":
        import lightgbm

        model = lightgbm.Booster({**params, "num_leaves": 2, "boost_from_average": False}, data)
        return _milliseconds(lambda _: model.update())
    import xgboost

    model = xgboost.Booster({**params, "max_depth": 1}, [data])
    return _milliseconds(lambda round_: model.update(data, round_))


def _one_split(booster: str, train: Part, scores: Floats, rng: np.random.Generator) -> Any:
    """Return the labels and queries beside one feature of zeros and ones, trained from given scores."""
    X = rng.integers(0, 2, (len(train.y), 1)).astype(float)
    if booster == "lightgbm":
        import lightgbm

        data = lightgbm.Dataset(X, train.y, group=train.group, init_score=scores, params={"verbosity": -1})
        return data.construct()
    import xgboost

    data = xgboost.DMatrix(X, train.y, base_margin=scores)
    data.set_group(train.group)
    return data


def _milliseconds(call: Callable[[int], Any]) -> float:
    """Median CPU time of a call, after a few to warm up."""
    times = []
    for round_ in range(WARM + TIMED):
        start = time.process_time()
        call(round_)
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times[WARM:])


# -------------------------------------------------------------------------------------------------------- what is said


def _report(outcomes: list[Outcome], train: Part, held_out: Part, rounds: int) -> str:
    header = ["", *(metric.name.upper() for metric in METRICS), "training, CPU s", "gradient, CPU ms a round"]
    rows = [
        [_title(o.booster, o.ours), *(f"{value:.4f}" for value in o.ndcg), f"{o.seconds:.2f}", f"{o.gradient:.2f}"]
        for o in outcomes
    ]
    size = (
        f"Simulated product search: trained on {len(train.group)} queries ({len(train.y)} rows), {rounds} rounds; "
        f"NDCG on {len(held_out.group)} other queries. Ours is LambdaRank(NDCG())."
    )
    pairs = [(outcomes[0], outcomes[1]), (outcomes[2], outcomes[3])]
    seen = [_comparison(own, ours, held_out) for own, ours in pairs]
    footnote = (
        "Within a booster both models have the same parameters. Times are CPU times on one thread: of training, with "
        "the binning of the data; of the gradient alone, as a median. Boosters do not show their gradients, so theirs "
        "is a round of a two-leaf model on one binary feature, less the same round with squared error; ours is a call "
        "of the objective on the same labels and queries, at real-valued scores that change a little each time."
    )
    blocks = [_wrapped(size), table(header, rows), *(_wrapped(text) for text in seen), _wrapped(footnote)]
    return "\n\n".join(blocks)


def _comparison(own: Outcome, ours: Outcome, held_out: Part) -> str:
    """Say what a pair of models shows, chance included."""
    differences = _per_query(ours.scores, held_out) - _per_query(own.scores, held_out)
    mean = float(differences.mean())
    error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
    text = f"{TITLES[own.booster]}: {METRICS[-1].name.upper()} with ours is "
    if mean == 0:
        text += f"the same as with {OWN[own.booster]}"
    else:
        text += f"{abs(mean):.4f} {'higher' if mean > 0 else 'lower'} than with {OWN[own.booster]}, "
        text += f"{'more' if abs(mean) > 2 * error else 'no more'} than chance explains (standard error {error:.4f})"
    text += f". Training with ours takes {ours.seconds / own.seconds:.2f} times the CPU time"
    if own.gradient > 0 and ours.gradient > 0:
        text += f", the gradient alone {ours.gradient / own.gradient:.2f} times"
    return text + "."


def _per_query(scores: Floats, part: Part) -> Floats:
    ends = np.cumsum(part.group)
    return np.array(
        [
            METRICS[-1](scores[end - size : end], part.y[end - size : end], group=[size])
            for end, size in zip(ends.tolist(), part.group.tolist(), strict=True)
        ]
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100)
