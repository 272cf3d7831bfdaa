"""Bytes a row that the objective keeps, and holds at most during a call, beyond the booster and its data.

The gradient and the Hessian, 8 bytes, are among what is kept: they are written anew each round.

    python -m bench.memory [--quick]

1,000,000 rows (20,000 queries x 50), counted by tracemalloc, which sees all that NumPy takes, around the calls that a
booster makes in a training. Not counted: the scratch of the compiled loops, whose size is that of the longest query.
"""

from __future__ import annotations

import argparse
import tracemalloc
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.common import machine, simulated, table


class Call(NamedTuple):
    """Bytes beyond what was there before the first call."""

    kept: int  # after the call
    peak: int


def calls(booster: Any, train: Any, spec: Any, rounds: int = 3) -> list[Call]:
    """Train a few rounds and look at the memory around each call."""
    objective = lo.Objective(spec)
    seen: list[Call] = []

    def watched(scores: Any, data: Any) -> Any:
        # the booster's own arrays come and go between calls: count only from here to the end of the call
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        grad, hess = objective(scores, data)
        after, peak = tracemalloc.get_traced_memory()
        kept = seen[-1].kept if seen else 0
        seen.append(Call(kept + after - before, kept + peak - before))
        return grad, hess

    tracemalloc.start()
    for i in range(rounds):
        if isinstance(booster, lgb.Booster):
            booster.update(fobj=watched)
        else:
            booster.update(train, i, fobj=watched)
    tracemalloc.stop()
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description="Bytes a row that the objective keeps and peaks at.")
    parser.add_argument("--quick", action="store_true", help="100,000 rows")
    options = parser.parse_args()
    data = simulated(2_000 if options.quick else 20_000, 50, "graded")
    n = len(data.labels)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 1))
    columns = {"quality": (rng.random(n) < 0.3) * 1.0, "price": rng.normal(size=n)}
    rank = lo.LambdaRank(lo.NDCG())
    quality = lo.Constraint(lo.LambdaRank(lo.NDCG(), label="quality"), at_most=0.01)
    price = lo.Constraint(lo.DistanceCovariance("price"), at_most=1e-6)
    rows = []
    for name, spec in {
        "LambdaRank(NDCG())": rank,
        "the same, truncation=30": lo.LambdaRank(lo.NDCG(), truncation=30),
        "and another label, in a sum": lo.WeightedSum([rank, quality.term], weights=[1, 1]),
        "and a constraint on another label": lo.AugmentedLagrangian(rank, [quality]),
        "and DistanceCovariance, weighted": lo.Decorrelated(rank, "price", weight=1.0),
        "... within each query": lo.Decorrelated(rank, "price", weight=1.0, within_group=True),
        "and a constraint on it": lo.AugmentedLagrangian(rank, [price]),
        "and both constraints": lo.AugmentedLagrangian(rank, [quality, price]),
    }.items():
        some = slice(0, 50 * 400)  # compiles the kernels, and has their threads take what they work in
        of = {column: values[some] for column, values in columns.items()}
        lo.gradient(spec, data.scores[some], data.labels[some], group=data.group[:400], columns=of)
        train = lgb.Dataset(X, data.labels, group=data.group, params={"verbosity": -1}).construct()
        train.get_label(), train.get_group()  # LightGBM keeps copies
        matrix = xgb.DMatrix(X, data.labels, group=data.group)
        lo.attach(train, columns), lo.attach(matrix, columns)
        for booster, made, given in (
            ("LightGBM", lgb.Booster({"objective": "none", "metric": "None", "verbosity": -1}, train), train),
            ("XGBoost", xgb.Booster({"disable_default_eval_metric": 1}, [matrix]), matrix),
        ):
            first, *_, last = calls(made, given, spec)
            rows.append([name, booster, first.kept / n, first.peak / n, last.kept / n, last.peak / n])
    print(f"{machine()}; {n:,} rows\n")
    header = ["bytes a row", "booster", "kept after the first call", "peak in it", "kept after the third", "peak in it"]
    print(table(header, rows, left=2))


if __name__ == "__main__":
    main()
