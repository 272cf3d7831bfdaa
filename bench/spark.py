"""`SparkXGBRanker` trained by an `Objective`, on two tasks: what works, beside one process and `rank:ndcg`.

    python -m bench.spark [--queries 400] [--rounds 60]

Wanted: `pip install pyspark` and Java 17. A local session with two cores; every task has its own rows and its own copy
of the objective, as on a cluster, and what an objective knows is summed over the tasks. Every fourth query validates,
and early stopping chooses the round by these. The figures are of a test set, by the model that `get_booster()` gives.

Spark hands features, label, weight, query and base margin to XGBoost, and nothing else. A further label or a control
comes in the label here: `Packed` holds grade, flag and a control in the 24 bits that a float32 has for whole numbers,
and takes them apart where it sees a data set first. `force_repartition` keeps queries whole: without it rows that lie
in as many partitions as there are workers stay where they are.

A fit spreads the rows anew, and their order decides ties and bins: two fits of the same rows differ a little, as does
one process. Each task says what it holds, and how far what it has learnt is from that of the others.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xgboost as xgb
from xgboost import collective

import lambda_objectives as lo
from bench.common import Array, machine, table

FEATURES = [f"f{i}" for i in range(5)]
GRADES, FLAGS, STEPS = 8, 2, 2**18  # values of a grade, of a flag and of a control: 2^22 together
LOW, HIGH = 0.0, 16.0  # the range of the control
FLOOR, WEIGHT = 0.62, 2.0
PATIENCE = 20  # rounds without a better one


class Packed:
    """An objective whose data sets hold grade, quality and price in one label."""

    def __init__(self, spec: Any) -> None:
        self.objective = lo.Objective(spec)
        self.seen: list[Any] = []

    def _unpacked(self, data: Any) -> Any:
        if not any(known is data for known in self.seen):
            code = data.get_label().astype(np.int64)
            data.set_label((code % GRADES).astype(np.float32))
            price = (code // (GRADES * FLAGS)) / (STEPS - 1) * (HIGH - LOW) + LOW
            lo.attach(data, quality=code // GRADES % FLAGS, price=price)
            self.seen.append(data)
        return data

    def __call__(self, scores: Array, data: Any) -> Any:
        """Gradient and Hessian, as `obj`."""
        return self.objective(scores, self._unpacked(data))

    def metrics(self, scores: Array, data: Any) -> Any:
        """Costs and metrics, as `custom_metric`."""
        return self.objective.metrics(scores, self._unpacked(data))


def packed(grade: Array, quality: Array, price: Array) -> Array:
    """The label that `Packed` takes apart."""
    step = np.round((np.clip(price, LOW, HIGH) - LOW) / (HIGH - LOW) * (STEPS - 1)).astype(np.int64)
    return (grade.astype(np.int64) + GRADES * (quality.astype(np.int64) + FLAGS * step)).astype(float)


class Report(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """Lines about each task, after a training: its rows, and how far its history is from those of the others."""

    def __init__(self, objective: Packed) -> None:
        super().__init__()
        self.objective = objective

    def after_training(self, model: Any) -> Any:
        """Compare the last round, by XGBoost's own collective."""
        rank, size = collective.get_rank(), collective.get_world_size()
        last = np.array([values[-1] for values in self.objective.objective.history().values()])
        apart = collective.allreduce(last, collective.Op.MAX) - collective.allreduce(last, collective.Op.MIN)
        sizes = [(data.num_row(), len(data.get_uint_info("group_ptr")) - 1) for data in self.objective.seen]
        held = ", ".join(f"{rows:,} rows of {queries} queries" for rows, queries in sizes)
        line = f"rank {rank} of {size}: {held}; the tasks are {apart.max():g} apart\n"
        print(line, end="", file=sys.stderr, flush=True)  # in one piece, for the tasks share the terminal
        return model


class Rows(NamedTuple):
    """A data set."""

    X: Array
    columns: dict[str, Array]  # qid, grade, quality, price, packed, validates

    def frame(self, order: Array) -> Any:
        """As pandas has it, for Spark."""
        import pandas as pd

        return pd.DataFrame(self.X, columns=FEATURES).assign(**self.columns).iloc[order]

    def matrix(self, chosen: Array) -> xgb.DMatrix:
        """As XGBoost has it, for one process."""
        c = {name: values[chosen] for name, values in self.columns.items()}
        data = xgb.DMatrix(self.X[chosen], c["grade"], qid=c["qid"], feature_names=FEATURES)
        lo.attach(data, quality=c["quality"], price=c["price"])
        return data


def simulated(queries: int, seed: int) -> Rows:
    """Queries of 20 rows."""
    rng = np.random.default_rng(seed)
    n = queries * 20
    X = rng.normal(size=(n, len(FEATURES))).astype(np.float32)
    noise = rng.normal(size=(3, n))
    grade = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * noise[0]), 0, 4)
    quality = (X[:, 2] + noise[1] > 0) * 1.0
    price = np.exp(0.5 * X[:, 3] + 0.3 * X[:, 0] + 0.2 * noise[2])
    qid = np.repeat(np.arange(queries), 20)
    columns = dict(qid=qid, grade=grade, quality=quality, price=price, validates=qid % 4 == 0)
    return Rows(X, columns | {"packed": packed(grade, quality, price)})


def specs() -> dict[str, Any]:
    """Name in the table -> spec."""
    rank = lo.LambdaRank(lo.NDCG(10))
    quality = lo.Constraint(lo.LambdaRank(lo.NDCG(10), label="quality"), at_least=FLOOR)
    return {
        "LambdaRank": rank,
        f"quality at least {FLOOR}": lo.AugmentedLagrangian(rank, [quality], follow="valid"),
        "price decorrelated": lo.Decorrelated(rank, "price", weight=WEIGHT, within_group=True),
    }


def figures(booster: Any, test: Rows) -> list[Any]:
    """Trees, multiplier, NDCG@10 of grade and of quality, and dependence on price of scores with deviation 1."""
    names = booster.feature_names
    scores = booster.predict(xgb.DMatrix(test.X, feature_names=names), output_margin=True)
    c = test.columns
    found = lo.evaluate(
        lo.DistanceCovariance("price", within_group=True), scores / scores.std(), c["grade"], qid=c["qid"],
        price=c["price"],
    )  # fmt: skip
    ndcg = lo.NDCG(10)
    return [
        booster.num_boosted_rounds(), multiplier(booster), ndcg(scores, c["grade"], qid=c["qid"]),
        ndcg(scores, c["quality"], qid=c["qid"]), found["price.dcov2"],
    ]  # fmt: skip


def multiplier(booster: Any) -> Any:
    """The constraint's multiplier, which comes back in the model."""
    try:
        return lo.xgboost.saved_state(booster)["rule"].get("multipliers", ["-"])[0]
    except ValueError:  # nothing was learnt besides trees
        return "-"


def main() -> None:
    parser = argparse.ArgumentParser(description="SparkXGBRanker trained by an Objective, on two tasks.")
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    if importlib.util.find_spec("pyspark") is None:
        print("bench.spark: skipped, pyspark is not installed (pip install pyspark; Java 17 is wanted as well)")
        return
    from pyspark.sql import SparkSession
    from xgboost.spark import SparkXGBRanker

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = session.config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    train, test = simulated(options.queries, 0), simulated(options.queries, 1)
    shuffled = spark.createDataFrame(train.frame(np.random.default_rng(2).permutation(len(train.X))))
    trees = dict(max_depth=4, min_child_weight=1e-3, learning_rate=0.3)

    def on_spark(label: str, **extra: Any) -> Any:
        ranker = SparkXGBRanker(
            features_col=FEATURES, label_col=label, qid_col="qid", validation_indicator_col="validates", num_workers=2,
            force_repartition=True, n_estimators=options.rounds, **(trees | extra),
        )  # fmt: skip
        return ranker.fit(shuffled)

    def named() -> Any:
        extra = dict(min_child_weight=1, eval_metric="ndcg@10", early_stopping_rounds=PATIENCE)
        booster = on_spark("grade", **extra).get_booster()
        return booster[: booster.best_iteration + 1]

    def by_spec(spec: Any) -> Any:
        objective = Packed(spec)
        # the callback must be given the very objective that is trained: both go to the tasks in one piece
        callbacks = [lo.xgboost.EarlyStopping(objective.objective, PATIENCE), Report(objective)]
        model = on_spark(
            "packed", obj=objective, custom_metric=objective.metrics, callbacks=callbacks,
            disable_default_eval_metric=1,
        )  # fmt: skip
        history = model.training_summary.validation_objective_history
        print({name: round(values[-1], 4) for name, values in history.items()}, file=sys.stderr)
        return model.get_booster()

    def alone(spec: Any) -> Any:
        validates = train.columns["validates"]
        data, watched = train.matrix(~validates), train.matrix(validates)
        objective = lo.Objective(spec)
        return xgb.train(
            trees | {"disable_default_eval_metric": 1}, data, options.rounds, evals=[(watched, "validation")],
            obj=objective, custom_metric=objective.metrics, verbose_eval=False,
            callbacks=[lo.xgboost.EarlyStopping(objective, PATIENCE)],
        )  # fmt: skip

    ways: dict[tuple[str, str], Callable[[], Any]] = {("rank:ndcg", "Spark, 2 tasks"): named}
    for name, spec in specs().items():
        ways[name, "Spark, 2 tasks"] = lambda spec=spec: by_spec(spec)  # type: ignore[misc]
        ways[name, "xgboost.train"] = lambda spec=spec: alone(spec)  # type: ignore[misc]
    rows = []
    for (name, where), way in ways.items():
        started = time.perf_counter()
        booster = way()
        rows.append([name, where, *figures(booster, test), time.perf_counter() - started])
    spark.stop()
    head = ["objective", "trained by", "trees", "multiplier", "NDCG@10", "of quality", "price dcov2", "s"]
    print(f"{machine()}; {options.queries} queries, {options.rounds} rounds\n")
    print(table(head, rows, left=2))


if __name__ == "__main__":
    main()
