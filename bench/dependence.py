"""Time and memory of `DistanceCovariance`: beside two Fenwick sweeps, and beside dcor, which finds the value alone.

    python -m bench.dependence [--quick]

Ours is all that a round costs: the sort of the scores, gradient and value; with one thread and with two. A further
control finds the scores sorted. The Fenwick sweeps are the seed of the method: NumPy's argsort, then a forward and a
backward sweep over trees of counts and sums, compiled by numba, in one thread; all that depends on the control alone is
found beforehand there as well. dcor's is `u_distance_covariance_sqr`, by the faster of its two quick ways (wanted:
`pip install dcor`; without it that column is empty).

All are measured in turn, again and again, at scores that drift from round to round; a figure is the median over the
repetitions, a ratio the median of the ratios within a repetition. The growth with the rows, and the gain by a second
thread, compare the least times: what else runs only ever adds to them.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit

import lambda_objectives as lo
from bench.common import Array, machine, median_ratio, table
from lambda_objectives.kernels import cpu
from lambda_objectives.queries import Queries, Ranking

SHAPES = ((1, 100_000), (1, 1_000_000), (1000, 1000))
DRIFT = 0.02  # of each score in a round
WAYS = ("mergesort", "avl")


@njit(cache=True, error_model="numpy")
def sweep(order: Array, ends: Array, rank: Array, y: Array, out: Array, sign: float) -> None:
    """Add to out of each row sign x the sum of the distances to the rows before it, but for tied ones."""
    n = len(order)
    count, total = np.zeros(n + 1, np.int64), np.zeros(n + 1)
    seen, seen_y, start = 0, 0.0, 0
    for k in range(n):
        if k == ends[start]:
            for i in range(start, k):
                row = order[i]
                at = rank[row] + 1
                seen, seen_y = seen + 1, seen_y + y[row]
                while at <= n:
                    count[at] += 1
                    total[at] += y[row]
                    at += at & -at
            start = k
        row = order[k]
        at, less, less_y = rank[row], 0, 0.0
        while at > 0:
            less += count[at]
            less_y += total[at]
            at -= at & -at
        out[row] += sign * (y[row] * (2 * less - seen) - 2 * less_y + seen_y)


def fenwick(scores: Array, rank: Array, y: Array, sums: Array) -> tuple[float, Array]:
    """Value and slopes by a forward and a backward sweep."""
    n = len(scores)
    order = np.argsort(scores)
    s = scores[order]
    first = np.flatnonzero(np.concatenate([[True], s[1:] != s[:-1]]))
    size = np.diff(np.append(first, n))
    run = np.repeat(np.arange(len(first)), size)
    low, high = first[run], (first + size)[run]
    slopes = np.zeros(n)
    sweep(order, high, rank, y, slopes, 1.0)
    sweep(order[::-1].copy(), (n - low)[::-1].copy(), rank, y, slopes, -1.0)
    running = np.concatenate([[0.0], np.cumsum(sums[order])])
    side = np.empty(n)
    below_above = np.empty(n)
    side[order], below_above[order] = low + high - n, running[low] + running[high] - running[n]
    slopes = 2 * slopes - 2 * (side * sums + below_above) / (n - 2) + 2 * side * running[n] / ((n - 1) * (n - 2))
    slopes /= n * (n - 3)
    return float(slopes @ (scores - scores[0])), slopes


def standardised(control: Array) -> tuple[Array, Array, Array]:
    """Rank, standardised values, and the sum of the distances of each to all others."""
    n = len(control)
    order, rank = np.argsort(control), np.empty(n, np.int64)
    rank[order] = np.arange(n)
    y = (control - control.mean()) / control.std()
    v, sums = y[order], np.empty(n)
    sums[order] = v * (2 * np.arange(n) + 1 - n) - (2 * np.cumsum(v) - v - v.sum())
    return rank, y, sums


class Ours:
    """Two controls on the same scores; times of the first one, with the sort, and of the second."""

    def __init__(self, queries: Queries, within: bool, threads: int) -> None:
        self.terms = [lo.DistanceCovariance(name, within) for name in ("a", "b")]
        self.prepared = [term.prepare(queries, np.float32) for term in self.terms]
        self.ranking = Ranking(queries, cpu, threads)
        self.grad, self.hess = np.empty((2, len(queries)), np.float32)

    def round(self, scores: Array) -> tuple[float, float]:
        """Seconds of either."""
        self.ranking.update(scores, False)
        seconds = []
        for term, prepared in zip(self.terms, self.prepared, strict=True):
            start = time.perf_counter()
            term.gradient(prepared, self.ranking, self.grad, self.hess)
            seconds.append(time.perf_counter() - start)
        return seconds[0], seconds[1]


def clock(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def measure(
    scores: Iterator[Array], queries: Queries, groups: int, repeats: int, dcor: Any, rarely: int
) -> dict[str, list[float]]:
    """Seconds of everything, in turn; dcor only every so many times."""
    a = queries.columns["a"]
    steps: dict[str, Callable[[Array], Any]] = {}
    if groups == 1:
        prepared = standardised(a)
        steps["Fenwick"] = lambda s: fenwick(s, *prepared)
        y = prepared[1]
        for way in WAYS if dcor else ():
            steps[way] = lambda s, way=way: dcor.u_distance_covariance_sqr(s, y, method=way)
    ours = {threads: Ours(queries, groups > 1, threads) for threads in (1, 2)}
    taken: dict[str, list[float]] = {}
    for repeat in range(-1, repeats):
        now = next(scores)
        found: dict[str, float] = {}
        for threads, each in ours.items():
            found[f"first {threads}"], found[f"further {threads}"] = each.round(now)
        for name, step in steps.items():
            if name not in WAYS or repeat % rarely == 0 or repeat < 0:
                found[name] = clock(lambda step=step, now=now: step(now))  # type: ignore[misc]
        for name, seconds in found.items() if repeat >= 0 else ():
            taken.setdefault(name, []).append(seconds)
    return taken


def bytes_a_row(scores: Array, queries: Queries, within: bool) -> tuple[float, float]:
    """What a control keeps, and what it holds at most during a round, scratch and sorted scores included."""
    term, n = lo.DistanceCovariance("a", within), len(queries)
    ranking = Ranking(queries, cpu)
    grad, hess = np.empty((2, n), np.float32)
    ranking.update(scores, False)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    prepared = term.prepare(queries, np.float32)
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.reset_peak()
    term.gradient(prepared, ranking, grad, hess)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return kept / n, peak / n


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of the distance covariance.")
    parser.add_argument("--quick", action="store_true", help="5 repetitions instead of 21")
    options = parser.parse_args()
    repeats = 5 if options.quick else 21
    dcor = importlib.import_module("dcor") if importlib.util.find_spec("dcor") else None
    if dcor is None:
        print("dcor is not installed: its column is empty (pip install dcor)\n")
    few = Queries.from_arrays(np.zeros(10_000), group=[10] * 1000, columns={"a": np.arange(10_000)})
    for within in (False, True):  # what compiling takes is not ours
        bytes_a_row(np.arange(10_000.0), few, within)
    rows: list[list[Any]] = []
    least: dict[tuple[int, int], dict[int, float]] = {}
    for groups, size in SHAPES:
        n, rng = groups * size, np.random.default_rng(0)
        a, b = rng.normal(size=(2, n))
        scores = a + rng.normal(size=n)
        queries = Queries.from_arrays(np.zeros(n), group=np.full(groups, size), columns={"a": a, "b": b})
        kept, peak = bytes_a_row(scores, queries, groups > 1)  # before all else, so that there is no scratch yet
        walk = itertools.accumulate((DRIFT * rng.normal(size=n) for _ in itertools.count()), initial=scores)
        taken = measure(walk, queries, groups, repeats, dcor, rarely=5)
        ms = {name: 1e3 * statistics.median(seconds) for name, seconds in taken.items()}
        way = min((way for way in WAYS if way in ms), key=lambda way: ms[way], default=None)
        for threads in (1, 2):
            first = taken[f"first {threads}"]
            least.setdefault((groups, size), {})[threads] = 1e3 * min(first)
            rows.append(
                [
                    f"{groups:,} x {size:,}",
                    str(threads),
                    ms[f"first {threads}"],
                    ms.get("Fenwick", ""),
                    ms[way] if way else "",
                    median_ratio(taken["Fenwick"], first) if groups == 1 else "",
                    ms[way] / ms[f"first {threads}"] if way else "",
                    ms[f"further {threads}"],
                    median_ratio(taken[f"further {threads}"], first),
                    kept,
                    peak,
                ]
            )
    print(f"{machine()}\n")
    header = ["groups x rows", "threads", "ours, ms", "Fenwick, ms", "dcor, ms", "Fenwick/ours", "dcor/ours"]
    header += ["further control, ms", "further/first", "bytes a row kept", "at most"]
    print(table(header, rows, left=2))
    print("\nOurs, least times:\n")
    small, large = (least[shape] for shape in SHAPES[:2])
    print(
        table(
            ["groups x rows", "one thread, ms", "two, ms", "gain", "ten times the rows: one thread", "two"],
            [
                [
                    f"{groups:,} x {size:,}",
                    by[1],
                    by[2],
                    by[1] / by[2],
                    *([large[t] / small[t] for t in (1, 2)] if by is large else ["", ""]),
                ]
                for (groups, size), by in least.items()
            ],
        )
    )


if __name__ == "__main__":
    main()
