"""Time of the gradient alone: LightGBM's `lambdarank`, XGBoost's `rank:ndcg`, ours with the same pairs and with all.

    python -m bench.gradients [--quick]

The boosters have no call for a gradient alone. For them it is `Booster.update` on a model with one binary feature and
two leaves, less the same with squared error. Both take the pairs whose better-ranked row is among the first 30.

Ours is a call of the objective, as a booster calls it, at scores that drift from round to round as in a training:
copies, checks, ranking, cost, metric and history are all in it.

All are measured in turn, again and again; a figure is the median over the repetitions, a ratio the median of the ratios
within a repetition. With two threads the boosters' processor time contains their waiting for each other, so that the
wall's is given as well. The speed-up by threads compares the least wall times: what else runs only ever adds to them.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numba
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.common import Ranked, Seconds, machine, median_ratio, seconds, simulated, table

SHAPES = ((4000, 50), (2000, 120), (200, 1000))
LABELS = ("graded", "rare")
PAIRS = 30
ROUNDS = 3  # of one of them before the next has its turn: few, and all shapes in turn, so that noise strikes all alike
DRIFT = 0.02  # of each score in a round
OURS, ALL = f"ours({PAIRS})", "ours(all)"
RATIOS = (("LightGBM", OURS), ("XGBoost", OURS), ("LightGBM", ALL))
Step = Callable[[], object]
Place = tuple[int, int, str]


def lightgbm_step(objective: str, data: Ranked, threads: int, **more: Any) -> Step:
    """One round of LightGBM that does as little as possible besides the gradient."""
    params = dict(objective=objective, num_leaves=2, learning_rate=0.01, num_threads=threads, verbosity=-1, **more)
    train = lgb.Dataset(
        _coin(data),
        data.labels,
        group=data.group,
        init_score=data.scores,
        params=dict(max_bin=2, num_threads=threads, verbosity=-1),
    )
    booster = lgb.Booster({"metric": "None", **params}, train)
    return lambda: booster.update()


def xgboost_step(objective: str, data: Ranked, threads: int, **more: Any) -> Step:
    """One round of XGBoost that does as little as possible besides the gradient."""
    train = xgb.DMatrix(_coin(data), data.labels, base_margin=data.scores, group=data.group, nthread=threads)
    params = dict(objective=objective, max_depth=1, eta=0.01, max_bin=2, min_child_weight=0, nthread=threads)
    booster = xgb.Booster({"disable_default_eval_metric": 1, **params, **more}, [train])
    rounds = itertools.count()
    return lambda: booster.update(train, next(rounds))


def our_step(term: lo.LambdaRank, data: Ranked, threads: int, walk: list[np.ndarray]) -> Step:
    """One call of the objective; the scores walk to and fro, so that they never jump and never stand still."""
    train = xgb.DMatrix(_coin(data), data.labels, group=data.group)  # a LightGBM Dataset would set LightGBM's threads
    objective = lo.Objective(term)
    numba.set_num_threads(threads)
    objective(walk[0], train)
    scores = itertools.cycle(walk[1:] + walk[-2:1:-1])
    return lambda: objective(next(scores), train)


def _coin(data: Ranked) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, (len(data.labels), 1)).astype(float)


def steps_of(data: Ranked, threads: int) -> dict[str, Step]:
    """Name -> step of everything that is measured side by side."""
    rng = np.random.default_rng(2)
    drifts = (DRIFT * rng.normal(size=len(data.scores)) for _ in range(20))
    walk = list(itertools.accumulate(drifts, initial=data.scores))
    same, everything = lo.LambdaRank(lo.NDCG(), truncation=PAIRS), lo.LambdaRank(lo.NDCG())
    topk = {"lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": PAIRS}
    steps = {
        "LightGBM": lightgbm_step("lambdarank", data, threads, lambdarank_truncation_level=PAIRS),
        "LightGBM rest": lightgbm_step("regression", data, threads),
        "XGBoost": xgboost_step("rank:ndcg", data, threads, **topk),
        "XGBoost rest": xgboost_step("reg:squarederror", data, threads),
        OURS: our_step(same, data, threads, walk),
        ALL: our_step(everything, data, threads, walk),
    }
    if threads > 1:
        steps |= {f"{OURS} alone": our_step(same, data, 1, walk), f"{ALL} alone": our_step(everything, data, 1, walk)}
    return steps


def measure(places: dict[Place, dict[str, Step]], repeats: int) -> dict[Place, dict[str, list[Seconds]]]:
    """Warm up, then all of them everywhere in turn, again and again."""
    taken: dict[Place, dict[str, list[Seconds]]] = {place: {} for place in places}
    for repeat in range(-1, repeats):
        for place, steps in places.items():
            for name, step in steps.items():
                spent = seconds(step, ROUNDS)
                if repeat >= 0:
                    taken[place].setdefault(name, []).append(spent)
    return taken


def milliseconds(taken: dict[str, list[Seconds]], clock: str) -> dict[str, list[float]]:
    """By one clock, the boosters less what is not their gradient."""
    ms = {name: [1e3 * getattr(s, clock) for s in several] for name, several in taken.items()}
    for booster in ("LightGBM", "XGBoost"):
        rest = statistics.median(ms.pop(f"{booster} rest"))
        ms[booster] = [m - rest for m in ms[booster]]
    return ms


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of the gradient alone, beside the boosters' own.")
    parser.add_argument("--quick", action="store_true", help="5 repetitions instead of 25")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    options = parser.parse_args()
    repeats = 5 if options.quick else 25
    rows: list[list[Any]] = []
    speedups: list[list[Any]] = []
    for threads in (t for t in options.threads if t <= numba.config.NUMBA_NUM_THREADS):
        places = {
            (*shape, labels): steps_of(simulated(*shape, labels), threads) for shape in SHAPES for labels in LABELS
        }
        for (queries, size, labels), taken in measure(places, repeats).items():
            place = [f"{queries:,} x {size:,}", labels, str(threads)]
            for clock in ("cpu",) if threads == 1 else ("cpu", "wall"):
                ms = milliseconds(taken, clock)
                middle = [statistics.median(ms[name]) for name in ("LightGBM", "XGBoost", OURS, ALL)]
                rows.append([*place, clock, *middle, *(median_ratio(ms[over], ms[under]) for over, under in RATIOS)])
            for name in (OURS, ALL) if threads > 1 else ():
                one, many = min(ms[f"{name} alone"]), min(ms[name])
                speedups.append([*place, name, one, many, one / many])
    print(f"{machine()}\n")
    times = [f"{name}, ms" for name in ("LightGBM", "XGBoost", OURS, ALL)]
    ratios = ["/".join(pair) for pair in RATIOS]
    print(table(["queries x rows", "labels", "threads", "clock", *times, *ratios], rows, left=4))
    if speedups:
        print("\nOurs, least wall time with one thread and with several:\n")
        print(
            table(["queries x rows", "labels", "threads", "pairs", "one, ms", "several, ms", "speed-up"], speedups, 4)
        )


if __name__ == "__main__":
    main()
