"""A training on a Dask cluster of 1, 2 and 4 workers on this machine: what adding up over workers costs.

    python -m bench.scale_cluster [--rows 300000] [--rounds 22]

The data of `bench.scale`, LambdaRank with two constraints, workers of one thread each. With more workers than cores a
round gets no shorter; what is asked is what the exchanges add. All is of the rounds after the second.

"round" is from one call of the objective to the next, "ours" the longest of the workers' calls, both medians. An
exchange is over for all when the last worker has come: "in exchanges" is the mean of the workers, waiting included,
"no waiting" the least of them, exchange by exchange.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np

from bench.common import Array, machine, table
from lambda_objectives.objective import Objective
from lambda_objectives.star import Star

WORKERS, PARTS, APART = (1, 2, 4), 4, 2
STARTS: list[float] = []  # of each round of this process
OURS: list[float] = []  # seconds of our call in it
EXCHANGES: list[tuple[int, float]] = []  # round, seconds


def install() -> None:
    """Have this worker take the time of each call of an objective and of each exchange in it."""
    step, exchange = Objective.__call__, Star.exchange

    @functools.wraps(step)  # LightGBM looks at the arguments
    def timed_step(self: Objective, *args: Any, **named: Any) -> Any:
        STARTS.append(time.perf_counter())
        found = step(self, *args, **named)
        OURS.append(time.perf_counter() - STARTS[-1])
        return found

    def timed_exchange(self: Star, numbers: Array) -> Array:
        started = time.perf_counter()
        found = exchange(self, numbers)
        EXCHANGES.append((len(STARTS) - 1, time.perf_counter() - started))
        return found

    Objective.__call__, Star.exchange = timed_step, timed_exchange  # type: ignore[method-assign]


def taken() -> tuple[list[float], list[float], list[tuple[int, float]]]:
    """What this worker has noted since it was asked last."""
    found = list(STARTS), list(OURS), list(EXCHANGES)
    for notes in (STARTS, OURS, EXCHANGES):
        notes.clear()
    return found


class Spread:
    """A data set in pieces of whole queries, in turn on the workers."""

    def __init__(self, client: Any, X: Array, labels: Array, sizes: Array, columns: dict[str, Array]) -> None:
        import dask.array as da
        from dask import delayed

        import lambda_objectives as lo

        places = sorted(client.scheduler_info(n_workers=-1)["workers"])
        cuts = [len(sizes) * i // PARTS for i in range(PARTS + 1)]
        rows = np.concatenate([[0], np.cumsum(sizes)])[cuts]

        self.kept: list[Any] = []  # what is scattered stays for as long as somebody has it

        def spread(values: Array, borders: Any) -> Any:
            pieces = []
            for i, (first, last) in enumerate(pairwise(borders)):
                there = client.scatter(values[first:last], workers=[places[i * len(places) // PARTS]], hash=False)
                self.kept.append(there)
                pieces.append(da.from_delayed(delayed(there), (last - first, *values.shape[1:]), values.dtype))
            return da.concatenate(pieces)

        self.X, self.group = spread(X, rows), spread(sizes, cuts)
        self.qid = spread(np.repeat(np.arange(len(sizes)), sizes), rows)
        self.y = client.persist(lo.attach(spread(labels, rows), {n: spread(c, rows) for n, c in columns.items()}))


def train(client: Any, booster: str, spread: Spread, spec: Any, rounds: int) -> None:
    """One training on the cluster."""
    if booster == "XGBoost":
        from xgboost import dask as dxgb

        params = dict(tree_method="hist", max_depth=6, min_child_weight=1e-3, disable_default_eval_metric=1)
        data = dxgb.DaskDMatrix(client, spread.X, spread.y, qid=spread.qid)
        dxgb.train(client, params, data, rounds, obj=Objective(spec))
    else:
        import lightgbm as lgb

        ranker = lgb.DaskLGBMRanker(
            client=client, objective=Objective(spec), num_leaves=31, n_estimators=rounds, verbosity=-1
        )
        ranker.fit(spread.X, spread.y, group=spread.group)


def row(booster: str, rows: int, notes: list[Any]) -> list[Any]:
    """One row of the table, of what all workers have noted."""
    starts = notes[0][0]
    whole = [1e3 * (b - a) for a, b in pairwise(starts[APART:])]
    ours = [1e3 * max(each) for each in zip(*(own[APART:] for _, own, _ in notes), strict=True)]
    rounds = len(starts) - APART
    exchanges = [[1e3 * spent for at, spent in each if at >= APART] for _, _, each in notes]
    each = list(zip(*exchanges, strict=True))
    return [
        booster, len(notes), f"{rows:,}", statistics.median(whole), statistics.median(ours), len(each) / rounds,
        sum(map(statistics.fmean, each)) / rounds, sum(map(min, each)) / rounds,
    ]  # fmt: skip


def on_cluster(data: tuple[Array, Array, Array, dict[str, Array]], spec: Any, rounds: int = 22) -> str:
    """The table."""
    from dask.distributed import Client, LocalCluster

    found = []
    for workers in WORKERS:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
            Client(cluster) as client,
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", "Sending large graph")
            client.run(install)
            spread = Spread(client, *data)
            for booster in ("XGBoost", "LightGBM"):
                for n in (APART + 1, rounds):  # the first one compiles
                    train(client, booster, spread, spec, n)
                    notes = [own for own in client.run(taken).values() if own[0]]
                found.append(row(booster, len(data[0]), notes))
    found.sort(key=lambda line: line[0])
    return table(["booster", "workers", "rows", "round, ms", "ours, ms", "exchanges a round", "in exchanges, ms",
                  "no waiting, ms"], found)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="What adding up over workers costs, on a Dask cluster.")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=22)
    options = parser.parse_args()
    from bench.scale import data, specs

    print(f"{machine()}\n\n{on_cluster(data(options.rows), specs()['2 constraints'], options.rounds)}")


if __name__ == "__main__":
    from bench.scale_cluster import main as run  # by its name, for the workers are to find what they note

    run()
