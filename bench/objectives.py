"""What optimising one metric does to all the others: every objective, in every booster, on the five folds of LETOR 4.

python -m bench.objectives --files S1.txt.gz S2.txt.gz S3.txt.gz S4.txt.gz S5.txt.gz --seeds 3 --results results.jsonl

Fold 1 trains on S1-S3, stops early on S4 and tests on S5; fold 2 trains on S2-S4 and so on. One protocol for all: 15
leaves, learning rate .05, 20 rows a leaf (XGBoost can only bound a leaf's Hessian: 20 where a row's is 1), feature
fraction .8, at most 1,000 rounds of which 100 without gain end it. Early stopping watches the metric that the objective
optimises (--watch ndcg@10: that one always); the boosters' own objectives and those without a metric watch NDCG@10.
Whatever the protocol does not name has the booster's default.

Trainings that are in the results file are not repeated, and those of objectives that this version of the package or an
installed booster lacks are left out with a note. --table only prints. CatBoost's rows need catboost 1.2.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import dataclasses
import json
import multiprocessing
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numba
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.objectives_table import COLUMNS, NotYet, Watched, made, packed, print_differences, print_tables
from bench.quality import LIGHTGBM, XGBOOST, load

ROUNDS, PATIENCE = 1000, 100
METRICS = (
    "NDCG(10)", "NDCG()", "DCG()", "MAP()", "MRR()", "ERR()", "Precision(10)", "Recall(10)", "HitRate(10)", "RBP()",
    "AUC()", "Kendall()", "Spearman()",
)  # fmt: skip
OURS = [
    *(f"LambdaRank({metric}{norms})" for metric in METRICS for norms in ("", ", score_gap_norm=True, log_norm=True")),
    "RankNet()", *(f"LambdaLoss(NDCG(), {variant!r})" for variant in ("1", "2", "2++")), "YetiRank(NDCG())",
    "XENDCG()", "QueryRMSE()", "QuerySoftMax()", "SquaredError()",
]  # fmt: skip
OWN = {
    "LightGBM": ["lambdarank", "rank_xendcg", "regression"],
    "XGBoost": ["rank:ndcg", "rank:pairwise", "rank:map", "reg:squarederror"],
    "CatBoost": [
        f"{loss}, {trees}"
        for loss in (
            "YetiRank", "YetiRank:mode=NDCG", "QueryRMSE", "QuerySoftMax", "PairLogit", "LambdaMart:metric=NDCG",
            "LambdaMart:metric=ERR",
        )
        for trees in ("depth 4", "15 leaves")
    ],
}  # fmt: skip
ONE_A_ROW = ("reg:squarederror", "SquaredError()", "QueryRMSE()")  # the Hessian
CATBOOST = dict(
    learning_rate=0.05, rsm=0.8, iterations=ROUNDS, thread_count=1, verbose=False, allow_writing_files=False
)
TREES = {
    "depth 4": dict(depth=4),
    "15 leaves": dict(grow_policy="Lossguide", max_leaves=15, depth=14, min_data_in_leaf=20),
}


class Task(NamedTuple):
    """One training: what is stored with its result."""

    booster: str
    objective: str
    watch: str  # an expression, like the objective
    fold: int
    seed: int


class Part(NamedTuple):
    """Features, labels, sizes of the queries."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray


@cache
def parts(files: tuple[str, ...]) -> list[Part]:
    """One a file; files may differ in their last features."""
    loaded = [Part(*load([path])) for path in files]
    width = max(part.X.shape[1] for part in loaded)
    return [part._replace(X=np.pad(part.X, ((0, 0), (0, width - part.X.shape[1])))) for part in loaded]


def fold_of(files: tuple[str, ...], fold: int) -> tuple[Part, Part, Part]:
    """Training, validation and test data: all but two files, the last but one and the last, in turns."""
    all_parts = parts(files)
    turned = [all_parts[(fold + i) % len(files)] for i in range(len(files))]
    train = Part(*(np.concatenate(arrays) for arrays in zip(*turned[:-2], strict=True)))
    return train, turned[-2], turned[-1]


def objective_of(task: Task) -> lo.Objective | str:
    """Ours ends with a bracket; what draws at random gets the seed."""
    if not task.objective.endswith(")"):
        return task.objective
    term = made(task.objective)
    return lo.Objective(dataclasses.replace(term, seed=task.seed) if hasattr(term, "seed") else term)


def train_lightgbm(task: Task, train: Part, valid: Part, test: Part) -> tuple[np.ndarray, int, float]:
    """Scores of the test rows, number of trees, best value of the watched metric."""
    data = lgb.Dataset(train.X, train.y, group=train.group)
    held = data.create_valid(valid.X, valid.y, group=valid.group)
    watched = Watched(task.watch, valid.y, valid.group)
    booster = lgb.train(
        {**LIGHTGBM, "objective": objective_of(task), "metric": "None", "seed": task.seed, "num_threads": 1},
        data, ROUNDS, valid_sets=[held], feval=lambda scores, _: ("watched", watched(scores), watched.maximise),
        callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
    )  # fmt: skip
    return booster.predict(test.X), booster.best_iteration, booster.best_score["valid_0"]["watched"]


def train_xgboost(task: Task, train: Part, valid: Part, test: Part) -> tuple[np.ndarray, int, float]:
    """The same with XGBoost, whose rank:map knows two grades only."""
    objective = objective_of(task)
    labels = (train.y > 0) * 1.0 if objective == "rank:map" else train.y
    data = xgb.QuantileDMatrix(train.X, labels, group=train.group)
    held = xgb.DMatrix(valid.X, valid.y, group=valid.group)
    watched = Watched(task.watch, valid.y, valid.group)
    params: dict[str, Any] = {**XGBOOST, "seed": task.seed, "nthread": 1}
    if task.objective in ONE_A_ROW:
        params["min_child_weight"] = 20
    own = isinstance(objective, str)
    booster = xgb.train(
        params | ({"objective": objective} if own else {}), data, ROUNDS, evals=[(held, "valid")],
        obj=None if own else objective, custom_metric=lambda scores, _: ("watched", watched(scores)),
        callbacks=[xgb.callback.EarlyStopping(rounds=PATIENCE, maximize=watched.maximise, save_best=True)],
        verbose_eval=False,
    )  # fmt: skip
    scores = booster.predict(xgb.DMatrix(test.X), output_margin=True)
    return scores, booster.num_boosted_rounds(), booster.best_score


def train_catboost(task: Task, train: Part, valid: Part, test: Part) -> tuple[np.ndarray, int, float]:
    """The same with CatBoost, which computes what it watches (ties at their worst); its ERR takes probabilities."""
    from catboost import CatBoost, Pool

    loss, _, trees = task.objective.partition(", ")
    gains = "ERR" in loss  # probabilities, as of lo.ERR(), are gains too
    data, held = (
        Pool(X, (np.exp2(y) - 1) / 16 if gains else y, group_id=np.repeat(np.arange(len(group)), group))
        for X, y, group in (train, valid)
    )
    params = {**CATBOOST, **TREES[trees], "loss_function": loss, "random_seed": task.seed}
    booster = CatBoost(params | {"eval_metric": f"NDCG:top=10;type={'Base' if gains else 'Exp'}"})
    booster.fit(data, eval_set=held, early_stopping_rounds=PATIENCE, use_best_model=True)
    best = Watched(task.watch, valid.y, valid.group)(booster.predict(valid.X))
    return booster.predict(test.X), booster.tree_count_, best


TRAIN = {"LightGBM": train_lightgbm, "XGBoost": train_xgboost, "CatBoost": train_catboost}


def run(task: Task, files: tuple[str, ...]) -> dict[str, Any]:
    """Train and return a line of the results file."""
    numba.set_num_threads(1)
    data = fold_of(files, task.fold)
    start = time.perf_counter()
    scores, trees, best = TRAIN[task.booster](task, *data)
    seconds = time.perf_counter() - start
    return {**task._asdict(), "trees": trees, "best": best, "seconds": round(seconds, 2), "scores": packed(scores)}


def rows(options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Booster, objective and watched metric of each row of the tables."""
    found = []
    for booster, own in OWN.items():
        for objective in [*own, *([*OURS, *options.add] if booster != "CatBoost" else [])]:
            if not re.search(options.only, f"{booster} {objective}"):
                continue
            watch = "NDCG(10)"
            try:
                if objective.endswith(")"):
                    metric = getattr(made(objective), "metric", None)
                    if options.watch == "own" and metric is not None:
                        watch = repr_of(metric)
                elif booster == "CatBoost" and not options.table and find_spec("catboost") is None:
                    raise NotYet("catboost is not installed")
            except NotYet as reason:
                print(f"left out: {booster} {objective}: {reason}", file=sys.stderr)
                continue
            found.append((booster, objective, watch))
    return found


def repr_of(metric: Any) -> str:
    """An expression that makes the metric, of the parameters that are not the default."""
    fields = [(f.name, getattr(metric, f.name), f.default) for f in dataclasses.fields(metric)]
    given = [f"{name}={value!r}" for name, value, default in fields if value != default]
    return f"{type(metric).__name__}({', '.join(given)})".replace("(k=", "(")


def read(path: Path) -> dict[Task, dict[str, Any]]:
    """Results so far; a line that was cut off is none."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            result = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[Task(*(result[name] for name in Task._fields))] = result
    return found


def main() -> None:
    """Train what is missing, then print one table a booster."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", required=True, help="the parts of the data set, in their order")
    parser.add_argument("--results", type=Path, required=True, help="JSON lines; made, or continued")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--watch", choices=("own", "ndcg@10"), default="own")
    parser.add_argument("--only", default="", help="regular expression for 'booster objective'")
    parser.add_argument("--add", nargs="*", default=[], help="such as 'YetiRank(NDCG(), draws=50)'")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--baseline", nargs="*", default=[], help="'booster objective' to compare its booster's with")
    parser.add_argument("--columns", nargs="*", default=COLUMNS, help="metrics to print")
    parser.add_argument("--against", help="'booster objective' to compare all rows with, of every booster")
    options = parser.parse_args()
    files, wanted = tuple(options.files), rows(options)
    tasks = [Task(*row, fold, seed) for seed in range(options.seeds) for row in wanted for fold in range(len(files))]
    results = read(options.results)
    todo = [] if options.table else [task for task in tasks if task not in results]
    context = multiprocessing.get_context("spawn")
    with options.results.open("a") as out, ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        running = {pool.submit(run, task, files): task for task in todo}
        for done, future in enumerate(as_completed(running), 1):
            task = running[future]
            if future.exception() is not None:
                print(f"failed: {task}: {future.exception()!r}", file=sys.stderr)
                continue
            results[task] = result = future.result()
            print(json.dumps(result), file=out, flush=True)
            what = f"{task.booster} {task.objective}, fold {task.fold + 1}, seed {task.seed}"
            print(f"{done}/{len(todo)} {what}: {result['trees']} trees, {result['seconds']} s", file=sys.stderr)
    tests = [fold_of(files, fold)[2] for fold in range(len(files))]
    complete = {task: results[task] for task in tasks if task in results}
    print_tables(wanted, complete, tests, options.baseline, options.columns)
    if options.against:
        print_differences(options.against, complete, tests, options.columns[0])


if __name__ == "__main__":
    main()
