"""Product search with four constraints at the size of seed 004: how long a round takes, and how much of it is ours.

    python -m bench.million --impressions 1000000 [--rounds 12] [--products 20] [--threads 2]

LightGBM on simulated impressions (`product_search_chunks`), 31 leaves. The features are never in memory as a whole:
piece by piece they are made twice, first for labels, sub-objectives and sizes, then for LightGBM to bin, with the bins
of the first piece. An `AugmentedLagrangian` wants t1 to t4 at 40 % less cost than after the first two rounds, which
the primary alone does not reach in so few rounds.

A round is the time from one tree's beginning to the next one's; "ours" is the call of the objective in it. Medians over
the later rounds in which a multiplier is above 0; the first round, which prepares the data set, stands apart. Memory is
that of the process: at its peak so far, and what is resident. Beyond --stop-at GB the training ends with an error.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

import lambda_objectives as lo
from bench.common import Array, Seconds, machine, table, timed
from lambda_objectives.tools.simulator import ProductSearch, product_search_chunks

LABELS = ("t1", "t2", "t3", "t4")
START, CUT = 2, 0.4
CHUNK = 10_000


class Pieces(lgb.Sequence):
    """The features, for LightGBM to walk through once from the first row to the last."""

    def __init__(self, pieces: Iterator[ProductSearch], rows: int, batch_size: int = 100_000) -> None:
        self.pieces, self.rows, self.batch_size = pieces, rows, batch_size
        self.at, self.held = 0, np.empty((0, 0), np.float32)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: Any) -> Array:
        """The next rows."""
        start, stop, _ = rows.indices(self.rows)
        if start != self.at:
            raise IndexError(f"row {self.at} comes next, {start} was asked for")
        taken: list[Array] = []
        while self.at < stop:
            if not len(self.held):
                self.held = next(self.pieces).X
            first, self.held = self.held[: stop - self.at], self.held[stop - self.at :]
            taken.append(first)
            self.at += len(first)
        return np.concatenate(taken)


def dataset(impressions: int, products: int, params: dict[str, Any]) -> lgb.Dataset:
    """A Dataset with bins, labels and columns, and no features."""
    y, group, first = [], [], None
    columns: dict[str, list[Array]] = {name: [] for name in LABELS}
    for piece in product_search_chunks(impressions, 0, products=products, chunk=CHUNK):
        first = piece if first is None else first
        y.append(piece.y.astype(np.float32))
        group.append(piece.group)
        for name, parts in columns.items():
            parts.append(piece.columns[name].astype(np.uint8))
    assert first is not None
    names = list(first.feature_names)
    bins = lgb.Dataset(first.X, feature_name=names, params=params).construct()
    first = None
    labels, sizes = np.concatenate(y), np.concatenate(group)
    pieces = Pieces(product_search_chunks(impressions, 0, products=products, chunk=CHUNK), len(labels))
    data = lgb.Dataset(pieces, labels, reference=bins, group=sizes, feature_name=names, params=params).construct()
    data.data = None
    return lo.attach(data, {name: np.concatenate(parts) for name, parts in columns.items()})


def peak() -> float:
    """GB that this process held at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def resident() -> float:
    """GB that it holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e9


def spec_of(constrained: bool) -> Any:
    """Purchases, with t1 to t4 under bounds or alone."""
    primary = lo.LambdaRank(lo.NDCG())
    constraints = [
        lo.Constraint(lo.LambdaRank(lo.NDCG(), label=name), at_most=1 - CUT, relative=True) for name in LABELS
    ]
    return lo.AugmentedLagrangian(primary, constraints, start=START) if constrained else primary


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of a constrained training on many impressions.")
    parser.add_argument("--impressions", type=int, default=20_000)
    parser.add_argument("--products", type=int, default=20, help="in an impression, on average")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="the primary without constraints")
    parser.add_argument("--stop-at", type=float, default=16.0, metavar="GB")
    options = parser.parse_args()
    if options.rounds <= START + 2:
        parser.error(f"--rounds: more than {START + 2} wanted")
    params = dict(learning_rate=0.1, num_leaves=options.leaves, num_threads=options.threads, verbosity=-1, seed=0)
    started = resident()
    made, data = timed(lambda: dataset(options.impressions, options.products, params))
    made_peak, made_resident = peak(), resident()
    n = data.num_data()
    print(f"{n:,} rows, {made.wall:.0f} s to make, {made_resident:.2f} GB", file=sys.stderr)

    objective = lo.Objective(spec_of(not options.alone))
    ours: list[Seconds] = []
    before: list[float] = []  # what is resident at the beginning of a call, and at its end
    memory: list[float] = []

    def watched(scores: Array, data: lgb.Dataset) -> tuple[Array, Array]:
        before.append(resident())
        spent, gradients = timed(lambda: objective(scores, data))
        ours.append(spent)
        memory.append(resident())
        if memory[-1] > options.stop_at:
            raise MemoryError(f"{memory[-1]:.1f} GB are taken, which is more than --stop-at {options.stop_at}")
        return gradients

    rounds: list[Seconds] = []
    marks: list[tuple[float, float]] = []

    def begin(env: Any) -> None:
        marks.append((time.process_time(), time.perf_counter()))

    def end(env: Any) -> None:
        cpu, wall = marks[-1]
        rounds.append(Seconds(time.process_time() - cpu, time.perf_counter() - wall))
        print(f"round {len(rounds)}: {rounds[-1].wall:.2f} s, ours {ours[-1].wall:.2f} s; {memory[-1]:.2f} GB",
              file=sys.stderr)  # fmt: skip

    begin.before_iteration = True  # type: ignore[attr-defined]
    lgb.train({**params, "objective": watched, "metric": "None"}, data, options.rounds, callbacks=[begin, end])

    history = objective.history()
    pushed = [any(at) for at in zip(*(v for k, v in history.items() if k.startswith("multiplier/")), strict=True)]
    later = [i for i in range(1, len(rounds)) if options.alone or pushed[i]]
    rows: list[list[Any]] = []
    for name, which in (("first", [0]), (f"median of {len(later)}", later)):
        for clock in ("wall", "cpu"):
            whole, own = ([getattr(some[i], clock) for i in which] for some in (rounds, ours))
            share = statistics.median(b / a for a, b in zip(whole, own, strict=True))
            rows.append([name, clock, statistics.median(whole), statistics.median(own), f"{share:.0%}"])
    print(f"{machine()}\n\n{options.impressions:,} impressions, {n:,} rows, {options.threads} threads, "
          f"{options.leaves} leaves, {'no' if options.alone else 'four'} constraints\n")  # fmt: skip
    print(table(["round", "clock", "s", "ours, s", "ours"], rows, left=2))
    print()
    columns = ["memory", "GB", "bytes a row"]
    figures = {
        "imports": started, "data set made, peak": made_peak, "data set, kept": made_resident - started,
        "booster": before[0] - made_resident, "first call, kept": memory[0] - before[0],
        "later calls, kept": memory[-1] - memory[0], "resident at the end": resident(), "peak": peak(),
    }  # fmt: skip
    print(table(columns, [[name, gb, gb * 1e9 / n] for name, gb in figures.items()]))
    for name, values in history.items():
        if name.startswith(("margin/", "cost/", "multiplier/")):
            print(f"{name}: {values[0]:.4f} .. {values[-1]:.4f}", file=sys.stderr)


if __name__ == "__main__":
    main()
