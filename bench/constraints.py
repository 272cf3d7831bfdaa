"""Constrained trainings: the default rule beside equations 13 and 14, at every mu, with and without kappa.

    python -m bench.constraints --mq2008 DIR --mslr DIR --results FILE.jsonl
    python -m bench.constraints --results FILE.jsonl --table

Three data sets: simulated product search with 20,000 impressions (half of them to train on) and two sub-objectives;
MQ2008 (S1 to S3 to train on, S5 held out) with PageRank and URL length, and the sample of MSLR-WEB10K with quality and
query-url clicks as secondary labels: graded within each query, and taken out of the features. Bounds are 5, 10, 20 and
30 % under the costs of an unconstrained training with the same rounds and seed; both boosters.

The returned model is the best feasible round by the training data. A training that is in the file is not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.constraints_data import Labelled, letor, simulated

LIGHTGBM = dict(learning_rate=0.1, num_leaves=15, feature_fraction=0.8, num_threads=1, verbosity=-1)
XGBOOST = dict(
    eta=0.1, max_leaves=15, max_depth=0, grow_policy="lossguide", colsample_bytree=0.8, min_child_weight=1e-3,
    base_score=0, nthread=1, disable_default_eval_metric=1,
)  # fmt: skip
CUTS = (0.05, 0.1, 0.2, 0.3)
MUS = (1, 10, 100, 1000, 10_000)
RULES: dict[str, dict[str, Any]] = {"auto": {}} | {
    f"{update} mu {mu}" + (f", kappa {kappa}" if kappa else ""): {"update": update, "mu": mu, "kappa": kappa}
    for update in ("carry", "reset")
    for mu in MUS
    for kappa in (None, 0.25)
}
PRIMARY = lo.LambdaRank(lo.NDCG())


class Bench:
    """Trainings on one data set with one booster and seed."""

    def __init__(self, data: Labelled, booster: str, seed: int) -> None:
        self.data, self.booster, self.seed = data, booster, seed
        self.names = list(data.train.columns)
        train = data.train
        if booster == "LightGBM":
            self.set: Any = lgb.Dataset(train.X, train.y, group=train.group, free_raw_data=False, params=LIGHTGBM)
        else:
            self.set = xgb.DMatrix(train.X, train.y, group=train.group, nthread=1)
            self.test = xgb.DMatrix(data.test.X, nthread=1)
        lo.attach(self.set, train.columns)
        started = time.process_time()
        scores, held_out, _ = self._train(lo.Objective(PRIMARY), None)
        self.baseline = self._costs(scores, data.train)
        self.baseline_row = {
            "rule": "unconstrained", "primary": self.baseline["cost/ndcg"], "seconds": time.process_time() - started,
            "test": self._costs(held_out, data.test),
        }  # fmt: skip

    def run(self, cut: float, **rule: Any) -> dict[str, Any]:
        """One constrained training: what is returned, and what became of it."""
        constraints = [
            lo.Constraint(
                lo.LambdaRank(lo.NDCG(), label=name), at_most=(1 - cut) * self.baseline[f"cost/{name}.ndcg"], name=name
            )
            for name in self.names
        ]
        objective = lo.Objective(lo.AugmentedLagrangian(PRIMARY, constraints, **rule))
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lo.LambdaObjectivesWarning)
            scores, held_out, best = self._train(objective, lambda stop: stop.best)
        costs, history = self._costs(scores, self.data.train), objective.history(self.set)
        late = len(history["cost/ndcg"]) // 5
        margins = np.array([history[f"margin/{name}"][-late:] for name in self.names])
        return {
            "primary": costs["cost/ndcg"],
            "margin": min(best.margins.values()),
            "trees": best.trees,
            "late": float((margins >= 0).all(0).mean()),
            "largest": {name: max(history[f"multiplier/{name}"]) for name in self.names},
            "seconds": time.process_time() - started,
            "test": self._costs(held_out, self.data.test),
        }

    def _train(self, objective: lo.Objective, kept: Callable[[Any], Any] | None) -> tuple[Any, Any, Any]:
        """Scores on both parts, and the round that was chosen where a round is to be chosen."""
        rounds, stop = self.data.rounds, None
        if self.booster == "LightGBM":
            stop = lo.lightgbm.early_stopping(objective, rounds) if kept else None
            params = {**LIGHTGBM, "seed": self.seed, "objective": objective, "metric": "None"}
            model = lgb.train(params, self.set, rounds, callbacks=[stop] if stop else [])
            scores = [model.predict(part.X, num_threads=1) for part in (self.data.train, self.data.test)]
        else:
            stop = lo.xgboost.EarlyStopping(objective, rounds) if kept else None
            params = {**XGBOOST, "seed": self.seed}
            model = xgb.train(params, self.set, rounds, obj=objective, callbacks=[stop] if stop else [])
            scores = [model.predict(part, output_margin=True) for part in (self.set, self.test)]
        return scores[0], scores[1], kept(stop) if kept else None

    def _costs(self, scores: Any, part: Any) -> dict[str, float]:
        """Costs and metrics of all labels."""
        found: dict[str, float] = {}
        for label in (None, *self.names):
            found |= lo.evaluate(lo.LambdaRank(lo.NDCG(), label=label), scores, part.y, group=part.group,
                                 columns=part.columns)  # fmt: skip
            labels = part.y if label is None else part.columns[label]
            found[f"{label + '.' if label else ''}ndcg@10"] = lo.NDCG(10, empty=0.0)(scores, labels, group=part.group)
        return found


def data_sets(options: argparse.Namespace, seed: int) -> Iterator[Labelled]:
    """Those whose files are there."""
    if not options.no_simulator:
        yield simulated(options.impressions, ("t1", "t2"), seed)
    if options.mq2008:
        files = [str(Path(options.mq2008) / f"S{i}.txt.gz") for i in (1, 2, 3, 5)]
        yield letor("MQ2008", files[:3], files[3:], {"pagerank": 44, "url": -42})
    if options.mslr:
        files = [str(path) for part in ("train", "test") for path in sorted(Path(options.mslr).glob(f"*{part}*.txt*"))]
        yield letor("MSLR sample", files[:1], files[1:], {"quality": 132, "clicks": 135})


def main() -> None:
    parser = argparse.ArgumentParser(description="Constrained trainings by every rule, beside each other.")
    parser.add_argument("--results", required=True, metavar="FILE", help="one JSON object a line; added to")
    parser.add_argument("--mq2008", metavar="DIR", help="folder with S1.txt.gz to S5.txt.gz")
    parser.add_argument("--mslr", metavar="DIR", help="folder with a train and a test file")
    parser.add_argument("--no-simulator", action="store_true")
    parser.add_argument("--impressions", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--boosters", nargs="+", default=["LightGBM", "XGBoost"])
    parser.add_argument("--cuts", type=float, nargs="+", default=list(CUTS), help="shares of the baseline's costs")
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=list(RULES), metavar="RULE")
    parser.add_argument("--table", action="store_true", help="only show what the file has")
    options = parser.parse_args()
    path = Path(options.results)
    if options.table:
        from bench.constraints_table import show

        show(path)
        return
    lines = path.read_text().splitlines() if path.exists() else []
    there = {tuple(json.loads(line)[key] for key in ("data", "booster", "seed", "cut", "rule")) for line in lines}
    for seed in options.seeds:
        for data in data_sets(options, seed):
            for booster in options.boosters:
                bench: Bench | None = None
                for cut, rule in [(0.0, "unconstrained")] + [(c, r) for c in options.cuts for r in options.rules]:
                    key = (data.name, booster, seed, cut, rule)
                    if key in there:
                        continue
                    bench = bench or Bench(data, booster, seed)
                    row = bench.baseline_row if rule == "unconstrained" else bench.run(cut, **RULES[rule])
                    named = dict(zip(("data", "booster", "seed", "cut", "rule"), key, strict=True))
                    with path.open("a") as file:
                        file.write(json.dumps(row | named) + "\n")
                    print(
                        *key,
                        f"{row['primary']:.4f} {row.get('margin', 0):+.4f} {row['seconds']:.1f} s",
                        file=sys.stderr,
                    )


if __name__ == "__main__":
    main()
