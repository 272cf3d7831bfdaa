"""Whole trainings with a booster's own ranking objective and with ours, all else equal.

    python -m bench.training [--quick]

2,000 queries x 120 rows, 136 features of which 20 matter, graded labels, 31 leaves, 100 rounds; no evaluation, the data
sets made beforehand. LightGBM's `lambdarank` with its defaults, XGBoost's `rank:ndcg` with 30 pairs a row, by loss like
LightGBM. All are trained in turn, several times over; a figure is the median, a ratio the median of the ratios within
a repetition. "leaves" is the mean of a tree: where it is the same, the boosters had the same work.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.common import Array, Seconds, machine, median_ratio, table, timed

FEATURES, USEFUL, LEAVES, PAIRS = 136, 20, 31, 30
Train = Callable[[], Any]


def simulated(queries: int, rows: int) -> tuple[Array, Array, Array]:
    """Features, labels 0 to 4 from a noisy function of a few of them, sizes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(queries * rows, FEATURES)).astype(np.float32)
    worth = X[:, :USEFUL] @ rng.normal(size=USEFUL) + X[:, 0] * X[:, 1] + np.abs(X[:, 2])
    worth += worth.std() * rng.normal(size=len(X))
    y = np.searchsorted(np.quantile(worth, [0.5, 0.75, 0.9, 0.97]), worth).astype(float)
    return X, y, np.full(queries, rows)


def trainings(X: Array, y: Array, group: Array, rounds: int, threads: int) -> dict[tuple[str, str], Train]:
    """Booster and objective -> a training."""
    ours = {"ours(all)": lo.LambdaRank(lo.NDCG()), f"ours({PAIRS})": lo.LambdaRank(lo.NDCG(), truncation=PAIRS)}
    light = {"num_leaves": LEAVES, "num_threads": threads, "verbosity": -1, "metric": "None"}
    dark = {"grow_policy": "lossguide", "max_leaves": LEAVES, "max_depth": 0, "tree_method": "hist", "nthread": threads}
    dark |= {"min_child_weight": 1e-3, "base_score": 0.0, "disable_default_eval_metric": 1}
    rank = {"objective": "rank:ndcg", "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": PAIRS}
    train = lgb.Dataset(X, y, group=group, params={"verbosity": -1, "num_threads": threads}).construct()
    matrix = xgb.QuantileDMatrix(X, y, group=group, nthread=threads)
    found: dict[tuple[str, str], Train] = {}
    found["LightGBM", "own"] = partial(lgb.train, light | {"objective": "lambdarank"}, train, rounds)
    for name, term in ours.items():
        found["LightGBM", name] = partial(lgb.train, light | {"objective": lo.Objective(term)}, train, rounds)
    found["XGBoost", "own"] = partial(xgb.train, dark | rank, matrix, rounds)
    for name, term in ours.items():
        found["XGBoost", name] = partial(xgb.train, dark, matrix, rounds, obj=lo.Objective(term))
    return found


def leaves(model: Any) -> float:
    """Mean number of leaves of a tree."""
    if isinstance(model, lgb.Booster):
        return float(np.mean([tree["num_leaves"] for tree in model.dump_model()["tree_info"]]))
    return float(np.mean([tree.count("leaf=") for tree in model.get_dump()]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Whole trainings, beside the boosters' own objectives.")
    parser.add_argument("--quick", action="store_true", help="20 rounds, 2 repetitions instead of 100, 3")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    options = parser.parse_args()
    rounds, repeats = (20, 2) if options.quick else (100, 3)
    X, y, group = simulated(2000, 120)
    rows = []
    for threads in options.threads:
        runs = trainings(X, y, group, rounds, threads)
        for train in trainings(X[:2400], y[:2400], group[:20], 2, threads).values():  # compile
            train()
        taken: dict[tuple[str, str], list[Seconds]] = {key: [] for key in runs}
        grown = {}
        for _, (key, train) in itertools.product(range(repeats), runs.items()):
            spent, model = timed(train)
            taken[key].append(spent)
            grown[key] = leaves(model)
        for (booster, objective), several in taken.items():
            row: list[Any] = [booster, objective, str(threads), grown[booster, objective]]
            for clock in ("wall", "cpu"):
                ours, own = ([getattr(s, clock) for s in some] for some in (several, taken[booster, "own"]))
                row += [statistics.median(ours), median_ratio(ours, own)]
            rows.append(row)
    print(f"{machine()}\n")
    print(table(["booster", "objective", "threads", "leaves", "wall s", "wall/own", "CPU s", "CPU/own"], rows, left=3))


if __name__ == "__main__":
    main()
