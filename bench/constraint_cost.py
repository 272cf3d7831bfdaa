"""What constraints cost a round: the objective with 0 to 4 of them, in units of a ranking gradient alone.

    python -m bench.constraint_cost [--quick] [--parts]

The primary alone is `LambdaRank(NDCG())` on the data set's labels; the constraints are LambdaRank(NDCG()) on labels of
their own: rare ones (one row in ten, none of them the primary's), as sub-objectives often are, or graded like the
primary's. Multipliers are above 0 all the time, so that every gradient counts. One sort a round serves all.

A call of the objective, as a booster makes it, at scores that drift from round to round as in a training: copies,
checks, ranking, costs, metrics, multipliers and history are in it. All are called in turn, again and again; a figure is
the median, a ratio the median of the ratios within a repetition. "each" is (all 4 constraints - none) / 4 / none.

With --parts: where the time of a call goes, by calling the parts one after the other, with one thread.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
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
PRIMARY, SECONDARY = ("graded", "rare"), ("rare", "graded")
MOST = 4
ROUNDS = 3
DRIFT = 0.02
Step = Callable[[], object]


def secondary(data: Ranked, labels: str) -> dict[str, Array]:
    """Four columns."""
    rng = np.random.default_rng(3)
    n = len(data.labels)
    if labels == "rare":
        return {f"c{i}": (rng.random(n) < 0.1) * 1.0 for i in range(MOST)}
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
    return list(itertools.accumulate((DRIFT * rng.normal(size=len(scores)) for _ in range(20)), initial=scores))


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
    shown: dict[str, list[list[Any]]] = {"parts": []}
    names: list[str] = []
    for threads in (t for t in options.threads if t <= numba.config.NUMBA_NUM_THREADS):
        places: dict[Any, dict[Any, Step]] = {}
        inside: dict[Any, dict[Any, Step]] = {}
        for (size, first), more in itertools.product(itertools.product(SHAPES, PRIMARY), SECONDARY):
            data = simulated(*size, first)
            columns, walk = secondary(data, more), walk_from(data.scores)
            place = (*size, first, more)
            places[place] = {n: step_of(spec_of(n), data, columns, walk, threads) for n in range(MOST + 1)}
            if options.parts and threads == 1:
                inside[place] = parts_of(data, columns, walk)
        clocks = ("cpu",) if threads == 1 else ("cpu", "wall")
        for (queries, length, first, more), taken in measure(places, repeats).items():
            for clock in clocks:
                times = {n: [1e3 * getattr(s, clock) for s in spent] for n, spent in taken.items()}
                ratios = {n: statistics.median(a / b for a, b in zip(times[n], times[0], strict=True)) for n in times}
                rows.append([
                    f"{queries:,} x {length:,}", first, more, str(threads), clock, statistics.median(times[0]),
                    *(ratios[n] for n in range(1, MOST + 1)), (ratios[MOST] - 1) / MOST,
                ])  # fmt: skip
        for (queries, length, first, more), taken in measure(inside, repeats).items():
            middle = {name: statistics.median(1e3 * s.cpu for s in spent) for name, spent in taken.items()}
            names = list(middle)
            for name in names:
                middle[name] /= MOST if name.endswith("a constraint") else 1
            shown["parts"].append([f"{queries:,} x {length:,}", first, more, *middle.values()])
    print(f"{machine()}\n")
    head = ["queries x rows", "labels", "constraints'", "threads", "clock", "none, ms"]
    print(table([*head, *(f"{n} / none" for n in range(1, MOST + 1)), "each"], rows, left=5))
    if shown["parts"]:
        print("\nParts of a round with four constraints, ms of CPU time, one thread:\n")
        print(table(["queries x rows", "labels", "constraints'", *names], shown["parts"], left=3))


if __name__ == "__main__":
    main()
