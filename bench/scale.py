"""From 100,000 to 10,000,000 rows: time of a round and memory, ours beside the booster's.

    python -m bench.scale [--quick] [--rows 100000 ...] [--rounds 9] [--bins 255] [--threads 2] [--no-reductions]

Synthetic queries of 50 to 100 rows with 20 features, grades from 0 to 4, two further labels and a price. LightGBM with
31 leaves, XGBoost (hist) with depth 6. Every size of every booster is a process of its own, in which the data set is
made once and then trained on with each spec in turn, after a little training that compiles the loops.

"ours" is the call of the objective in a round, "booster" the rest of the round. The first round, which prepares the
data set, stands apart; the second counts memory; of the later ones medians are shown. Growth is from one size to the
next, by the least CPU time: what else runs only ever adds to that. "over n log n" divides it by the growth of n log n.

Memory of ours is what tracemalloc sees between the beginning and the end of a call: what is kept, gradients included,
and the most that was held. It sees what NumPy takes; the scratch of the compiled loops has the size of the longest
query, but for pooled dependence, and is in the peak of the process. Beyond --stop-at GB a training ends, and no larger
size begins. The time of one reduction over workers, of which a distributed training needs two a round, comes last, and
trainings on a Dask cluster on this machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.common import Array, machine, table, timed
from bench.million import peak, resident
from bench.scale_cluster import on_cluster
from bench.scale_reductions import reductions

ROWS = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
CLUSTER = 300_000  # rows of the trainings on a cluster
FEATURES, WEIGHT = 20, 1.0
WARM = 100_000  # rows of the training that compiles; of few rows other loops are used
APART = 2  # first rounds: the one that prepares, and the one in which memory is counted


def specs() -> dict[str, Any]:
    """Name in the table -> spec."""
    rank = lo.LambdaRank(lo.NDCG(10))
    constraints = [
        lo.Constraint(lo.LambdaRank(lo.NDCG(10), label=name), at_most=0.6, relative=True) for name in ("quality", "new")
    ]
    return {
        "LambdaRank": rank,
        "2 constraints": lo.AugmentedLagrangian(rank, constraints, start=1),
        "decorrelated in queries": lo.Decorrelated(rank, "price", weight=WEIGHT, within_group=True),
        "log loss, pooled dcov": lo.Decorrelated(lo.LogLoss("good"), "price", weight=WEIGHT),
    }


def data(n: int, seed: int = 0) -> tuple[Array, Array, Array, dict[str, Array]]:
    """Features, grades, sizes of the queries, further columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, FEATURES), dtype=np.float32)
    noise = rng.standard_normal((3, n), dtype=np.float32)
    grades = np.digitize(X[:, 0] + 0.5 * X[:, 1] + noise[0], [0.0, 1.0, 2.0, 3.0]).astype(np.float32)
    sizes = rng.integers(50, 101, n // 50 + 1)
    ends = np.cumsum(sizes)
    last = int(np.searchsorted(ends, n))
    sizes = sizes[: last + 1].copy()
    sizes[-1] -= ends[last] - n
    columns = {
        "quality": (X[:, 2] + noise[1] > 1.5).astype(np.uint8),
        "new": (X[:, 3] - 0.5 * X[:, 0] + noise[1] > 2).astype(np.uint8),
        "good": (grades >= 2).astype(np.uint8),
        "price": np.exp(0.5 * X[:, 4] + 0.3 * X[:, 0] + 0.3 * noise[2]),
    }
    return X, grades, sizes, columns


class Job:
    """A data set of one booster, and trainings on it."""

    def __init__(self, booster: str, n: int, bins: int, threads: int) -> None:
        X, grades, sizes, columns = data(n)
        self.params: dict[str, Any]
        if booster == "LightGBM":
            self.params = dict(objective="none", metric="None", num_leaves=31, num_threads=threads, max_bin=bins,
                               verbosity=-1, seed=0)  # fmt: skip
            made: Any = lgb.Dataset(X, grades, group=sizes, params=self.params).construct()
            made.data = None
        else:
            self.params = dict(tree_method="hist", max_depth=6, nthread=threads, max_bin=bins, min_child_weight=1e-3,
                               disable_default_eval_metric=1, verbosity=1)  # fmt: skip
            qid = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
            made = xgb.QuantileDMatrix(X, grades, qid=qid, max_bin=bins, nthread=threads)
        self.train = lo.attach(made, columns)

    def step(self) -> Callable[[int, Any], None]:
        """What makes a new booster do a round."""
        if isinstance(self.train, lgb.Dataset):
            light = lgb.Booster(self.params, self.train)
            return lambda i, objective: light.update(fobj=objective) and None
        heavy = xgb.Booster(self.params, [self.train])
        return lambda i, objective: heavy.update(self.train, i, fobj=objective)

    def rounds(self, spec: Any, rounds: int, stop_at: float) -> dict[str, Any]:
        """A training: clocks of the rounds and of our calls in them, bytes kept and held at most."""
        objective, ours, memory = lo.Objective(spec), [], [0, 0]

        def watched(scores: Array, data: Any) -> Any:
            if resident() > stop_at:
                raise MemoryError(f"{resident():.1f} GB are taken, which is more than --stop-at {stop_at}")
            if len(ours) >= APART:
                spent, gradients = timed(lambda: objective(scores, data))
            else:
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                spent, gradients = timed(lambda: objective(scores, data))
                after, most = tracemalloc.get_traced_memory()
                memory[1] = max(memory[1], memory[0] + most - before)
                memory[0] += after - before
                if len(ours) == APART - 1:
                    tracemalloc.stop()
            ours.append(spent)
            return gradients

        step, whole = self.step(), []
        tracemalloc.start()
        for i in range(rounds):
            whole.append(timed(lambda i=i: step(i, watched))[0])  # type: ignore[misc]
        return {"whole": whole, "ours": ours, "kept": memory[0], "most": memory[1]}


def one(booster: str, n: int, options: argparse.Namespace) -> None:
    """What a process of its own does: a JSON line for each spec."""
    small = Job(booster, WARM, options.bins, options.threads)
    for spec in specs().values():
        small.rounds(spec, APART + 1, options.stop_at)
    before = resident()
    started = time.perf_counter()
    job = Job(booster, n, options.bins, options.threads)
    made = time.perf_counter() - started
    gc.collect()
    kept = resident() - before
    for name, spec in specs().items():
        found = job.rounds(spec, options.rounds, options.stop_at)
        print(json.dumps({
            "booster": booster, "rows": n, "spec": name, **found, "made": made, "data": kept, "peak": peak(),
        }), flush=True)  # fmt: skip
        gc.collect()


def gathered(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The lines of all processes, size by size."""
    for n in options.rows:
        for booster in ("LightGBM", "XGBoost"):
            command = [sys.executable, "-m", "bench.scale", "--one", booster, "--rows", str(n)]
            for name in ("rounds", "bins", "threads", "stop_at"):
                command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            for line in done.stdout.splitlines():
                if line.startswith("{"):
                    print(line, file=sys.stderr, flush=True)
                    yield json.loads(line)
            if done.returncode:
                print(f"{booster}, {n:,} rows: ended with {done.returncode}", file=sys.stderr)
                return


def tables(lines: list[dict[str, Any]]) -> str:
    """Time, growth and memory."""
    times, growths, memory, last = [], [], [], {}
    lines = sorted(lines, key=lambda line: (list(specs()).index(line["spec"]), line["booster"], line["rows"]))
    for line in lines:
        n, name, booster = line["rows"], line["spec"], line["booster"]
        clocks = {}  # cpu, wall -> (our calls, the rest of the rounds)
        for at, clock in enumerate(("cpu", "wall")):
            own = [spent[at] for spent in line["ours"][APART:]]
            clocks[clock] = own, [spent[at] - o for spent, o in zip(line["whole"][APART:], own, strict=True)]
        middle = {clock: [statistics.median(each) for each in both] for clock, both in clocks.items()}
        shares = [own / (own + rest) for own, rest in middle.values()]
        times.append([
            name, booster, n, *(1e3 * x for x in middle["wall"]), *(1e3 * x for x in middle["cpu"]),
            *(f"{x:.0%}" for x in shares), 1e9 * middle["cpu"][0] / n, line["ours"][0][1],
        ])  # fmt: skip
        least = [min(each) for each in clocks["cpu"]]
        if (name, booster) in last:
            m, before = last[name, booster]
            rise = [now / then for now, then in zip(least, before, strict=True)]
            bound = n * math.log(n) / (m * math.log(m))
            growths.append([
                name, booster, f"{m:,} to {n:,}", *(math.log(x) / math.log(n / m) for x in rise),
                math.log(bound) / math.log(n / m), *(x / bound for x in rise),
            ])  # fmt: skip
        last[name, booster] = n, least
        memory.append([
            name, booster, n, line["kept"] / n, line["most"] / n, line["made"], line["data"], line["peak"],
        ])  # fmt: skip
    head = ["spec", "booster", "rows"]
    return "\n\n".join([
        table([*head, "ours, ms", "booster, ms", "ours, CPU ms", "booster, CPU ms", "ours of CPU", "of wall",
               "ours, CPU ns a row", "first call, s"], times, left=2),
        table([*head, "exponent, ours", "booster", "n log n", "ours over n log n", "booster over it"], growths, left=2),
        table([*head, "kept, bytes a row", "at most", "data set made, s", "data set, GB", "process so far, peak GB"],
              memory, left=2),
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory from 100,000 to 10,000,000 rows.")
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--quick", action="store_true", help="no more than 1,000,000 rows")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bins", type=int, default=255)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stop-at", type=float, default=10.0, metavar="GB")
    parser.add_argument("--no-reductions", action="store_true", help="leave out the part on workers")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the booster, in a process of its own
    options = parser.parse_args()
    options.rows = options.rows or [n for n in ROWS if not options.quick or n <= 1_000_000]
    if options.rounds <= APART:
        parser.error(f"--rounds: more than {APART} wanted")
    if options.one:
        one(options.one, options.rows[0], options)
        return
    print(f"{machine()}; {options.threads} threads, {options.bins} bins, {FEATURES} features\n")
    print(tables(list(gathered(options))), flush=True)
    if not options.no_reductions:
        print(f"\nOne reduction:\n\n{reductions()}", flush=True)
        print(f"\nOn a Dask cluster:\n\n{on_cluster(data(CLUSTER), specs()['2 constraints'])}")


if __name__ == "__main__":
    main()
