"""Quality against dependence: our penalty and our budgets beside hep_ml's flatness losses and post-hoc neutralisation.

    python -m bench.decorrelation --data FOLDER --results FILE.jsonl --hepml PYTHON
    python -m bench.decorrelation --results FILE.jsonl --table

FOLDER holds hepml-dalitz/dalitzdata.root and fairness/adult.data.gz and adult.test.gz: see bench.decorrelation_data.
PYTHON is that of an environment with hep_ml 0.8; without it those rows are left out.

One protocol for all: a random half to train on, the other to measure (another one for each seed), 200 trees of 15
leaves, rate .1, 20 rows a leaf (XGBoost: a leaf's Hessian at least 1), features drawn for each tree: .8 (hep_ml: all).
Settings of a method:

penalty     Decorrelated(LogLoss(), ..., weight): over all rows, or within the classes of the label
budget      AugmentedLagrangian: each control's dependence of the probability on the training half at most a share of
            the plain model's there; returned is the best round that keeps to it there
hep_ml      bins or nearest neighbours, flat within both classes; its coefficient (0: its plain exponential loss)
linear      log odds of the plain LightGBM, less a share of their linear regression on the controls
cells       the same, less a share of the way to where the score's quantile in its cell of the controls lies among all

The last two have to know the controls when predicting. A training that is in the file is not run again.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numba
import numpy as np
import xgboost as xgb
from scipy.special import expit

import lambda_objectives as lo
from bench.common import Array
from bench.decorrelation_data import KINDS, Data, adult, auc, dalitz, dependence, halves, measured

RATE, LEAVES, ROWS_A_LEAF = 0.1, 15, 20
LIGHTGBM: dict[str, Any] = dict(
    learning_rate=RATE, num_leaves=LEAVES, min_data_in_leaf=ROWS_A_LEAF, feature_fraction=0.8, num_threads=1,
    verbosity=-1,
)  # fmt: skip
XGBOOST: dict[str, Any] = dict(
    eta=RATE, max_leaves=LEAVES, max_depth=0, grow_policy="lossguide", min_child_weight=1, colsample_bytree=0.8,
    nthread=1, disable_default_eval_metric=1,
)  # fmt: skip
BOOSTERS = ("LightGBM", "XGBoost")
Step = Callable[[], dict[str, Any]]  # a training: the held-out log odds, and what else there is to tell


class Model(NamedTuple):
    """Log odds of both halves, number of trees."""

    train: Array
    held_out: Array
    trees: int


class Bench:
    """All methods on one data set and split."""

    def __init__(self, data: Data, options: argparse.Namespace, seed: int) -> None:
        self.train, self.held_out = halves(data, seed, options.rows)
        self.names, self.options, self.seed = list(data.controls), options, seed

    def steps(self) -> Iterator[tuple[str, float, Step]]:
        """Method, setting and training of each row."""
        for booster in BOOSTERS:
            yield f"{booster} plain", 0, partial(self.unchanged, booster)
        for booster in BOOSTERS:
            for kind in KINDS:
                for weight in self.options.weights:
                    yield f"{booster} penalty {kind}", weight, partial(self.penalty, booster, kind, weight)
                for share in self.options.shares:
                    yield f"{booster} budget {kind}", share, partial(self.budget, booster, kind, share)
        for share in self.options.removed:
            yield "linear", share, partial(self.linear, share)
            yield "cells", share, partial(self.cells, share)
        for groups in ("bins", "knn") if self.options.hepml else ():
            for coefficient in self.options.coefficients:
                yield f"hep_ml {groups}", coefficient, partial(self.flat, groups, coefficient)

    @cached_property
    def plain(self) -> dict[str, Model]:
        """Log loss alone, the boosters' own."""
        return dict(zip(BOOSTERS, map(self.fit, BOOSTERS, ("binary", "binary:logistic")), strict=True))

    def unchanged(self, booster: str) -> dict[str, Any]:
        """The plain model."""
        return {"scores": self.plain[booster].held_out}

    def penalty(self, booster: str, kind: str, weight: float) -> dict[str, Any]:
        """Dependence with a price."""
        spec = lo.Decorrelated(lo.LogLoss(), self.names, weight=weight, within_group=KINDS[kind])
        return {"scores": self.fit(booster, lo.Objective(spec)).held_out}

    def budget(self, booster: str, kind: str, share: float) -> dict[str, Any]:
        """Dependence with a bound; besides, how near the returned model comes to it."""
        plain = dependence(expit(self.plain[booster].train), self.train, kind)
        budgets = {name: share * value for name, value in plain.items()}
        constraints = [
            lo.Constraint(lo.DistanceCovariance(name, KINDS[kind], link="logit"), at_most=bound)
            for name, bound in budgets.items()
        ]
        spec = lo.AugmentedLagrangian(lo.LogLoss(), constraints)
        model = self.fit(booster, lo.Objective(spec), stopping=True)
        reached = dependence(expit(model.train), self.train, kind)
        return {"scores": model.held_out, "trees": model.trees, "budgets": budgets, "reached": reached}

    def fit(self, booster: str, objective: lo.Objective | str, stopping: bool = False) -> Model:
        """Train; stopping: return the best round by the training half, after all rounds."""
        rounds, stop = self.options.rounds, None
        if booster == "LightGBM":
            stop = lo.lightgbm.early_stopping(objective, rounds) if stopping else None
            data = lo.attach(lgb.Dataset(self.train.X, self.train.y, params=LIGHTGBM), self.train.controls)
            params = {**LIGHTGBM, "seed": self.seed, "objective": objective, "metric": "None"}
            model = lgb.train(params, data, rounds, callbacks=[stop] if stop else [])
            scores = [model.predict(part.X, raw_score=True, num_threads=1) for part in (self.train, self.held_out)]
        else:
            own = isinstance(objective, str)
            stop = lo.xgboost.EarlyStopping(objective, rounds) if stopping else None
            data = lo.attach(xgb.DMatrix(self.train.X, self.train.y, nthread=1), self.train.controls)
            params = {**XGBOOST, "seed": self.seed} | ({"objective": objective} if own else {"base_score": 0})
            obj = None if own else objective
            model = xgb.train(params, data, rounds, obj=obj, callbacks=[stop] if stop else [])
            parts = [xgb.DMatrix(part.X, nthread=1) for part in (self.train, self.held_out)]
            scores = [model.predict(part, output_margin=True).astype(float) for part in parts]
        return Model(scores[0], scores[1], stop.best.trees if stop else rounds)

    def linear(self, share: float) -> dict[str, Any]:
        """Take a share of the regression on the controls out of the plain scores; fitted on the training half."""
        plain = self.plain["LightGBM"]
        train, held_out = (np.column_stack(list(part.controls.values())) for part in (self.train, self.held_out))
        slopes = np.linalg.lstsq(train, plain.train - plain.train.mean())[0]
        return {"scores": plain.held_out - share * held_out @ slopes}

    def cells(self, share: float) -> dict[str, Any]:
        """Go a share of the way to equal distributions in all cells: ten parts of a control with many values."""
        plain = self.plain["LightGBM"]
        edges = [np.unique(np.quantile(values, np.arange(0.1, 1, 0.1))) for values in self.train.controls.values()]
        train, held_out = (
            np.ravel_multi_index(
                [np.searchsorted(e, v, "left") for e, v in zip(edges, part.controls.values(), strict=True)],
                [len(e) + 1 for e in edges],
            )
            for part in (self.train, self.held_out)
        )
        levels, there = np.sort(plain.train), plain.held_out.copy()
        for cell in np.unique(held_out):
            own = np.sort(plain.train[train == cell])
            if len(own):
                rows = held_out == cell
                quantile = np.interp(plain.held_out[rows], own, (np.arange(len(own)) + 0.5) / len(own))
                there[rows] = np.quantile(levels, quantile)
        return {"scores": (1 - share) * plain.held_out + share * there}

    def flat(self, groups: str, coefficient: float) -> dict[str, Any]:
        """hep_ml, in its own environment."""
        settings = {
            "groups": groups, "coefficient": coefficient, "labels": [0, 1], "rounds": self.options.rounds,
            "rate": RATE, "leaves": LEAVES, "rows_a_leaf": ROWS_A_LEAF, "seed": self.seed,
            "max_groups": self.options.max_groups,
        }  # fmt: skip
        controls = np.column_stack(list(self.train.controls.values()))
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "in.npz"), Path(folder, "out.npy")
            np.savez(source, X=self.train.X, y=self.train.y, controls=controls, held_out=self.held_out.X)
            script = Path(__file__).with_name("decorrelation_hepml.py")
            command = [self.options.hepml, str(script), str(source), str(target), json.dumps(settings)]
            subprocess.run(command, check=True)
            return {"scores": np.load(target)}


def data_sets(folder: Path) -> Iterator[Data]:
    yield dalitz(folder / "hepml-dalitz")
    yield adult(folder / "fairness")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True, type=Path, metavar="FILE", help="one JSON object a line; added to")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--hepml", metavar="PYTHON", help="an interpreter that imports hep_ml")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", default="", help="regular expression for 'data method'")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--rows", type=int, help="of both halves together; all unless given")
    parser.add_argument("--weights", type=float, nargs="+", default=[1, 3, 10, 30, 100, 300])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.75, 0.5, 0.25, 0.1])
    parser.add_argument("--removed", type=float, nargs="+", default=[0.2, 0.4, 0.6, 0.8, 1])
    parser.add_argument("--coefficients", type=float, nargs="+", default=[0, 1, 3, 10, 30])
    parser.add_argument("--max-groups", type=int, default=1000, help="of hep_ml's nearest neighbours, a class")
    parser.add_argument("--measure", nargs="+", help="of the tables: raw, probability, rank")
    parser.add_argument("--table", action="store_true", help="only show what the file has")
    options = parser.parse_args()
    if options.table:
        from bench.decorrelation_table import show

        show(options.results, options.measure or ["rank", "probability"])
        return
    numba.set_num_threads(1)
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    there = {tuple(json.loads(line)[key] for key in ("data", "seed", "method", "setting")) for line in lines}
    for seed in options.seeds:
        for data in data_sets(options.data):
            bench = Bench(data, options, seed)
            for method, setting, step in bench.steps():
                key = (data.name, seed, method, setting)
                if key in there or not re.search(options.only, f"{data.name} {method}"):
                    continue
                started = time.perf_counter()
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always", lo.LambdaObjectivesWarning)
                    found = step()
                seconds, scores, part = time.perf_counter() - started, found.pop("scores"), bench.held_out
                row = dict(zip(("data", "seed", "method", "setting"), key, strict=True)) | found
                row |= {"seconds": round(seconds, 2), "auc": auc(scores, part.y), "dependence": measured(scores, part)}
                row["warnings"] = [str(w.message) for w in caught if w.category is lo.LambdaObjectivesWarning]
                with options.results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                left = sum(row["dependence"]["rank"]["pooled"].values())
                print(*key, f"AUC {row['auc']:.4f}, dependence {left:.5f}, {seconds:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
