"""`SparkXGBRanker` trained by an `Objective`, on two tasks: what works, beside one machine and `rank:ndcg`.

    python -m bench.spark [--queries 400] [--rounds 60]

Wanted: `pip install pyspark` and Java 17. A local session with two cores; every task has its own rows and its own copy
of the objective, as on a cluster. The figures are of a test set, by the model that `get_booster()` gives.

Spark hands features, label, weight, query and base margin to XGBoost, and nothing else. A further label or a control
comes in the label here: `Packed` holds grade, flag and a control in the 24 bits that a float32 has for whole numbers,
and takes them apart where it sees a data set first. `force_repartition` keeps queries whole: without it rows that lie
in as many partitions as there are workers stay where they are.
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

import lambda_objectives as lo
from bench.common import Array, machine, table

FEATURES = [f"f{i}" for i in range(5)]
GRADES, FLAGS, STEPS = 8, 2, 2**18  # values of a grade, of a flag and of a control: 2^22 together
LOW, HIGH = 0.0, 16.0  # the range of the control
FLOOR, WEIGHT = 0.65, 2.0


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


class Group:
    """What a task sees: ranks and queries, summed over the tasks by XGBoost's own collective."""

    def __init__(self, objective: Any) -> None:
        self.objective = objective
        self.told = False

    def __call__(self, scores: Array, data: Any) -> Any:
        """Gradient and Hessian; the first one is preceded by a line from each rank."""
        from xgboost import collective

        if not self.told:
            queries = len(data.get_uint_info("group_ptr")) - 1
            total = collective.allreduce(np.array([len(scores), queries], dtype=np.float64), collective.Op.SUM)
            print(
                f"rank {collective.get_rank()} of {collective.get_world_size()}: {len(scores):,} rows, {queries} "
                f"queries; of all {total[0]:,.0f} and {total[1]:,.0f}",
                file=sys.stderr,
                flush=True,
            )
            self.told = True
        return self.objective(scores, data)


class Rows(NamedTuple):
    """A data set."""

    X: Array
    columns: dict[str, Array]  # qid, grade, quality, price, packed

    def frame(self, order: Array | None = None) -> Any:
        """As pandas has it, for Spark."""
        import pandas as pd

        found = pd.DataFrame(self.X, columns=FEATURES).assign(**self.columns)
        return found if order is None else found.iloc[order]


def simulated(queries: int, seed: int) -> Rows:
    """Queries of 20 rows."""
    rng = np.random.default_rng(seed)
    n = queries * 20
    X = rng.normal(size=(n, len(FEATURES))).astype(np.float32)
    noise = rng.normal(size=(3, n))
    grade = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * noise[0]), 0, 4)
    quality = (X[:, 2] + noise[1] > 0) * 1.0
    price = np.exp(0.5 * X[:, 3] + 0.3 * X[:, 0] + 0.2 * noise[2])
    columns = dict(qid=np.repeat(np.arange(queries), 20), grade=grade, quality=quality, price=price)
    return Rows(X, columns | {"packed": packed(grade, quality, price)})


def specs() -> dict[str, Any]:
    """Name in the table -> spec."""
    rank = lo.LambdaRank(lo.NDCG(10))
    quality = lo.Constraint(lo.LambdaRank(lo.NDCG(10), label="quality"), at_least=FLOOR)
    return {
        "LambdaRank": rank,
        f"quality at least {FLOOR}": lo.AugmentedLagrangian(rank, [quality]),
        "price decorrelated": lo.Decorrelated(rank, "price", weight=WEIGHT, within_group=True),
    }


def figures(booster: Any, test: Rows) -> list[float]:
    """NDCG@10 of grade and of quality, and dependence on price of scores with deviation 1."""
    import xgboost as xgb

    names = booster.feature_names
    scores = booster.predict(xgb.DMatrix(test.X, feature_names=names), output_margin=True)
    c = test.columns
    found = lo.evaluate(
        lo.DistanceCovariance("price", within_group=True), scores / scores.std(), c["grade"], qid=c["qid"],
        price=c["price"],
    )  # fmt: skip
    ndcg = lo.NDCG(10)
    return [ndcg(scores, c["grade"], qid=c["qid"]), ndcg(scores, c["quality"], qid=c["qid"]), found["price.dcov2"]]


def main() -> None:
    parser = argparse.ArgumentParser(description="SparkXGBRanker trained by an Objective, on two tasks.")
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    if importlib.util.find_spec("pyspark") is None:
        print("bench.spark: skipped, pyspark is not installed (pip install pyspark; Java 17 is wanted as well)")
        return
    import xgboost as xgb
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
            features_col=FEATURES, label_col=label, qid_col="qid", num_workers=2, force_repartition=True,
            n_estimators=options.rounds, **(trees | extra),
        )  # fmt: skip
        return ranker.fit(shuffled)

    def by_spec(spec: Any) -> Any:
        objective = Packed(spec)
        model = on_spark("packed", obj=Group(objective), custom_metric=objective.metrics, disable_default_eval_metric=1)
        history = model.training_summary.train_objective_history
        print({name: round(values[-1], 4) for name, values in history.items()}, file=sys.stderr)
        return model.get_booster()

    def alone(spec: Any) -> Any:
        c = train.columns
        data = xgb.DMatrix(train.X, c["grade"], qid=c["qid"], feature_names=FEATURES)
        lo.attach(data, quality=c["quality"], price=c["price"])
        return xgb.train(trees, data, options.rounds, obj=lo.Objective(spec))

    ways: dict[tuple[str, str], Callable[[], Any]] = {
        ("rank:ndcg", "Spark, 2 tasks"): lambda: on_spark("grade", min_child_weight=1).get_booster()
    }
    for name, spec in specs().items():
        ways[name, "Spark, 2 tasks"] = lambda spec=spec: by_spec(spec)  # type: ignore[misc]
        ways[name, "xgboost.train"] = lambda spec=spec: alone(spec)  # type: ignore[misc]
    rows = []
    for (name, where), way in ways.items():
        started = time.perf_counter()
        booster = way()
        rows.append([name, where, *figures(booster, test), time.perf_counter() - started])
    spark.stop()
    print(f"{machine()}; {options.queries} queries, {options.rounds} rounds\n")
    print(table(["objective", "trained by", "NDCG@10", "of quality", "price dcov2", "s"], rows, left=2))


if __name__ == "__main__":
    main()
