"""What constraints cost a round: the objective with 0 to 4 of them, in units of a ranking gradient alone.

    python -m bench.constraint_cost [--quick] [--parts]

The primary alone is `LambdaRank(NDCG())` on the data set's labels; the constraints are LambdaRank(NDCG()) on labels of
their own: rare (one row in 30 is relevant), common (one in 10) or graded (0 to 4), drawn apart from the primary's.
Multipliers are above 0 all the time, so that every gradient counts. One sort a round serves all.

A call of the objective, as a booster makes it, at scores that drift from round to round as in a training: copies,
checks, ranking, costs, metrics, multipliers and history are in it. All are called in turn, again and again; a figure is
the median, a ratio the median of the ratios within a repetition. "each" is a constraint's part of what four add: over
the primary alone, and over what the constraint's own term would take as a first one, sort and all.

With --parts: where the time of a call goes, by calling the parts one after the other, with one thread.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.common import Array, Ranked, Seconds, machine, seconds, simulated, table
from lambda_objectives.arrays import require_finite
from lambda_objectives.objective import Objective
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run

SHAPES = ((4000, 50), (2000, 120), (200, 1000))
PRIMARY, SECONDARY = ("graded", "rare"), ("rare", "common", "graded")
MOST = 4
ROUNDS = 3
DRIFT = 0.02
Step = Callable[[], object]


def secondary(data: Ranked, labels: str) -> dict[str, Array]:
    """Four columns."""
    rng = np.random.default_rng(3)
    n = len(data.labels)
    if labels != "graded":
        share = {"rare": 1 / 30, "common": 1 / 10}[labels]
        return {f"c{i}": (rng.random(n) < share) * 1.0 for i in range(MOST)}
    return {f"c{i}": rng.choice(5, n, p=[0.5, 0.25, 0.15, 0.07, 0.03]).astype(float) for i in range(MOST)}


def spec_of(count: int) -> Any:
    """The primary with so many constraints, none of which is ever met."""
    primary = lo.LambdaRank(lo.NDCG())
    if not count:
        return primary
    constraints = [lo.Constraint(lo.LambdaRank(lo.NDCG(), label=f"c{i}"), at_most=0.1) for i in range(count)]
    return lo.AugmentedLagrangian(primary, constraints, update="carry", mu=1e-3)


def walk_from(scores: Array) -> list[Array]:
    """Scores that drift."""
    rng = np.random.default_rng(2)
    return list(itertools.accumulate((DRIFT * rng.normal(size=len(scores)) for _ in range(10)), initial=scores))


def step_of(spec: Any, data: Ranked, columns: dict[str, Array], walk: list[Array], threads: int) -> Step:
    """One call of the objective; the scores walk to and fro, so that they never jump and never stand still."""
    train = lo.attach(xgb.DMatrix(np.zeros((len(data.labels), 1)), data.labels, group=data.group), columns)
    objective = Objective(spec)
    numba.set_num_threads(threads)
    objective(walk[0], train)
    scores = itertools.cycle(walk[1:] + walk[-2:1:-1])
    return lambda: objective(next(scores), train)


def parts_of(data: Ranked, columns: dict[str, Array], walk: list[Array]) -> dict[str, Step]:
    """What a round with all constraints is made of."""
    queries = Queries.from_arrays(data.labels, group=data.group, columns=columns)
    run = Run(spec_of(MOST), queries, threads=1)
    work = run.work
    assert work is not None
    scores = itertools.cycle(walk[1:] + walk[-2:1:-1])
    run.step(walk[0])
    terms, weights = run.spec.terms, np.ones((2, MOST + 1), np.float32)

    def gradients(which: slice) -> None:
        for i in range(MOST + 1)[which]:
            terms[i].gradient(work.prepared[i], work.ranking, *work.parts[i])

    def metrics(which: slice) -> None:
        for i in range(MOST + 1)[which]:
            terms[i].readings(work.prepared[i], work.ranking)

    first, others = slice(0, 1), slice(1, None)
    return {
        "sort, copy, check": lambda: work.ranking.update(next(scores), True),
        "pairs, primary": lambda: gradients(first),
        "metric, primary": lambda: metrics(first),
        "pairs, a constraint": lambda: gradients(others),
        "metric, a constraint": lambda: metrics(others),
        "weighted sum": lambda: run.kernels.weighted_sum(weights, work.parts, work.total[0], 1),
        "checks of the sums": lambda: [require_finite("sum", total) for total in work.total[0]],
        "whole step": lambda: run.step(next(scores)),
    }


def measure(places: dict[Any, dict[Any, Step]], repeats: int) -> dict[Any, dict[Any, list[Seconds]]]:
    """Warm up, then all of them everywhere in turn, again and again."""
    taken: dict[Any, dict[Any, list[Seconds]]] = {place: {} for place in places}
    for repeat in range(-1, repeats):
        for place, steps in places.items():
            for name, step in steps.items():
                spent = seconds(step, ROUNDS)
                if repeat >= 0:
                    taken[place].setdefault(name, []).append(spent)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description="What constraints cost a round.")
    parser.add_argument("--quick", action="store_true", help="5 repetitions instead of 25")
    parser.add_argument("--parts", action="store_true", help="also where the time goes")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    options = parser.parse_args()
    repeats = 5 if options.quick else 25
    rows: list[list[Any]] = []
    shown: list[list[Any]] = []
    names: list[str] = []
    threads_there = [t for t in options.threads if t <= numba.config.NUMBA_NUM_THREADS]
    for threads, size, labels in itertools.product(threads_there, SHAPES, PRIMARY):
        places: dict[str, dict[Any, Step]] = {}
        inside: dict[str, dict[Any, Step]] = {}
        data = simulated(*size, labels)
        walk = walk_from(data.scores)
        for more in SECONDARY:
            columns = secondary(data, more)
            places[more] = {n: step_of(spec_of(n), data, columns, walk, threads) for n in range(MOST + 1)}
            places[more]["own"] = step_of(lo.LambdaRank(lo.NDCG(), label="c0"), data, columns, walk, threads)
            if options.parts and threads == 1:
                inside[more] = parts_of(data, columns, walk)
        shape = f"{size[0]:,} x {size[1]:,}"
        for more, taken in measure(places, repeats).items():
            for clock in ("cpu",) if threads == 1 else ("cpu", "wall"):
                ms = {name: np.array([1e3 * getattr(s, clock) for s in spent]) for name, spent in taken.items()}
                each = (ms[MOST] - ms[0]) / MOST
                ratios = [ms[n] / ms[0] for n in range(1, MOST + 1)] + [each / ms[0], each / ms["own"]]
                middle = [float(np.median(values)) for values in (ms[0], ms["own"], *ratios)]
                rows.append([shape, labels, more, str(threads), clock, *middle])
        for more, taken in measure(inside, repeats).items():
            parts = {name: statistics.median(1e3 * s.cpu for s in spent) for name, spent in taken.items()}
            names = list(parts)
            each_part = [ms / (MOST if name.endswith("a constraint") else 1) for name, ms in parts.items()]
            shown.append([shape, labels, more, *each_part])
        print(f"{threads} threads, {shape}, {labels}: done", file=sys.stderr)
    print(f"{machine()}\n")
    head = ["queries x rows", "labels", "constraints'", "threads", "clock", "none, ms", "own, ms"]
    shares = [*(f"{n} / none" for n in range(1, MOST + 1)), "each / none", "each / own"]
    print(table([*head, *shares], rows, left=5))
    if shown:
        print("\nParts of a round with four constraints, ms of CPU time, one thread:\n")
        print(table(["queries x rows", "labels", "constraints'", *names], shown, left=3))


if __name__ == "__main__":
    main()
