"""Distance covariance on a GPU: the array form checked against the compiled loops, and timed beside them.

    python -m bench.gpu [--quick] [--threads N]
    python -m bench.gpu --numpy        the same operations on NumPy, at small sizes: checks, not speed

A round is what a training pays for each tree: scores up (float32, as boosters have them), the array form, the gradient
down (as float32). Medians over rounds whose scores move a little, each part between two waits for the device. The plan
is made and uploaded once for a data set. Checked: gradient and mean value against the loops, each round the same bits
when run again, and equal scores without any push. Then a short XGBoost training with a decorrelated squared error, the
same but for the objective's device. Ends with 1 where a check fails, or without CuPy or a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numba
import numpy as np

import lambda_objectives as lo
from bench.common import Array, machine, table
from lambda_objectives.kernels import arrayform
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run

Clock = Callable[[Callable[[], Any]], tuple[float, Any]]
SHAPES = ((1, 100_000), (1, 1_000_000), (1_000, 1_000), (1, 10_000_000))
SMALL = ((1, 10_000), (1, 100_000), (100, 1_000))
TOLERANCE = 1e-9  # of the largest gradient, and of the largest value
TREES = 20


class Grouped(NamedTuple):
    """A control and scores that depend on it; the rows of a group lie together. And what a plan wants."""

    price: Array
    scores: Array
    rows: Array
    control: Array
    ptr: Array


def grouped(groups: int, size: int) -> Grouped:
    """Groups of equal size."""
    rng = np.random.default_rng(size)
    price = rng.normal(size=(groups, size))
    place = np.argsort(price, axis=1)
    control = np.take_along_axis(price, place, 1)
    control = (control - control.mean(1, keepdims=True)) / control.std(1, keepdims=True)
    ptr = size * np.arange(groups + 1)
    scores = 0.5 * price + rng.normal(size=price.shape)
    return Grouped(price.ravel(), scores.ravel(), (place + ptr[:-1, None]).ravel(), control.ravel(), ptr)


def compiled(data: Grouped, threads: int) -> Callable[[Array], tuple[Array, float]]:
    """The term on the CPU as a function of the scores: gradient, and mean value of the groups."""
    groups = len(data.ptr) - 1
    term = lo.DistanceCovariance("price", within_group=groups > 1)
    queries = Queries.from_arrays(np.zeros(len(data.rows)), group=np.diff(data.ptr), columns={"price": data.price})
    run = Run(term, queries, dtype=np.float64, threads=threads)

    def call(scores: Array) -> tuple[Array, float]:
        gradient = run.step(scores.astype(np.float64))[0]
        return gradient, run.history[term.name][-1]

    return call


def device(on_numpy: bool) -> tuple[Any, str, Clock, Callable[[Any], Array]]:
    """The array module, what it runs on, a clock that waits for it, and the way back to the host."""
    wait: Callable[[], Any] = lambda: None  # noqa: E731
    down: Callable[[Any], Array] = np.asarray
    xp: Any
    if on_numpy:
        xp, name = np, "NumPy"
    else:
        try:
            xp = import_module("cupy")
        except ImportError as error:
            sys.exit(f"bench.gpu needs CuPy (pip install lambda-objectives[cuda12] or [cuda13]), or --numpy: {error}")
        try:
            found = xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)
        except xp.cuda.runtime.CUDARuntimeError as error:
            sys.exit(f"bench.gpu needs a GPU that CuPy can use, or --numpy: {error}")
        name = f"cupy {xp.__version__}, {found['name'].decode()}"
        wait, down = xp.cuda.Device().synchronize, xp.asnumpy

    def clock(step: Callable[[], Any]) -> tuple[float, Any]:
        wait()
        begin = time.perf_counter()
        result = step()
        wait()
        return time.perf_counter() - begin, result

    return xp, name, clock, down


def held(xp: Any) -> int:
    """Bytes that CuPy has taken from the device."""
    return 0 if xp is np else int(xp.get_default_memory_pool().total_bytes())


def measure(
    xp: Any, clock: Clock, down: Callable[[Any], Array], shape: tuple[int, int], rounds: int, threads: int
) -> tuple[list[Any], list[str]]:
    """A row of the table, and what is wrong."""
    data = grouped(*shape)
    rng = np.random.default_rng(0)
    loops = compiled(data, threads)
    if xp is not np:
        xp.get_default_memory_pool().free_all_blocks()
    before = held(xp)
    factor = np.diff(data.ptr) * 1.0
    planned, plan = clock(lambda: arrayform.plan(xp, data.rows, data.control, factor, data.ptr))
    scores = data.scores.astype(np.float32)
    times: list[list[float]] = []
    wrong, off = [], 0.0

    def both() -> tuple[Any, Any]:
        slopes = arrayform.slopes(xp, plan, there)
        return slopes, arrayform.values(xp, plan, slopes, there)

    for done in range(-1, rounds):  # the first compiles and fills the pool of memory
        up, there = clock(lambda: xp.asarray(scores))  # noqa: B023
        form, (gradient, value) = clock(both)
        back, _ = clock(lambda: down(gradient.astype(xp.float32)))  # noqa: B023
        slow, (wanted, wanted_value) = clock(lambda: loops(scores))  # noqa: B023
        if done >= 0:
            times.append([up, form, back, slow])
        if not all(bool((a == b).all()) for a, b in zip(both(), (gradient, value), strict=True)):
            wrong.append("not the same bits when run again")
        mean = down(value).mean()
        off = max(off, np.abs(down(gradient) - wanted).max() / np.abs(wanted).max(), abs(mean / wanted_value - 1))
        scores = scores + rng.normal(scale=0.1, size=len(scores)).astype(np.float32)
    there = xp.asarray(np.full(len(scores), 0.1))
    if down(both()[0]).any():
        wrong.append("equal scores are pushed")
    if not off < TOLERANCE:
        wrong.append(f"off by {off:.1e}, the loops being right")
    up, form, back, slow = (1e3 * statistics.median(taken) for taken in zip(*times, strict=True))
    whole = up + form + back
    name = f"{shape[0]:,} x {shape[1]:,}"
    taken = (held(xp) - before) / len(scores)
    row = [name, 1e3 * planned, up, form, back, whole, slow, slow / whole, f"{off:.0e}", round(taken) or "-"]
    return row, [f"{name}: {what}" for what in dict.fromkeys(wrong)]


def training(rows: int) -> tuple[list[list[Any]], list[str]]:
    """A training for either device of the objective, XGBoost itself on the GPU where its build has one."""
    try:
        import xgboost as xgb
    except ImportError:
        return [], ["no training: xgboost is not installed"]
    spec = lo.Decorrelated(lo.SquaredError(), "price", weight=1.0)
    try:
        lo.Objective(spec, device="cuda")
    except (ValueError, RuntimeError) as error:
        return [], [f"no training: {error}"]
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, 10)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows)
    price = X[:, 0] + 0.5 * rng.normal(size=rows)
    trees = "cuda" if xgb.build_info().get("USE_CUDA") else "cpu"
    params = {"max_depth": 6, "eta": 0.1, "base_score": 0.0, "device": trees}
    found, predicted = [], {}
    for where in ("cpu", "cuda"):
        for count in (2, TREES):  # the first two trees also compile
            data = lo.attach(xgb.DMatrix(X, y), price=price)
            objective = lo.Objective(spec, device=where)
            begin = time.perf_counter()
            model = xgb.train(params, data, count, obj=objective)
            taken = 1e3 * (time.perf_counter() - begin) / count
        predicted[where] = model.predict(data, output_margin=True)
        found.append([where, trees, taken, objective.history(data)["price.dcov2"][-1]])
    apart = np.abs(predicted["cpu"] - predicted["cuda"]) / predicted["cpu"].std()
    notes = [f"predictions apart, of their deviation: mean {apart.mean():.1e}, largest {apart.max():.1e}"]
    return found, notes


def main() -> None:
    parser = argparse.ArgumentParser(description="Distance covariance on a GPU: checks and times.")
    parser.add_argument("--numpy", action="store_true", help="on NumPy, small sizes, no training")
    parser.add_argument("--quick", action="store_true", help="3 rounds, without 10,000,000 rows")
    parser.add_argument("--threads", type=int, default=numba.config.NUMBA_NUM_THREADS, help="of the compiled loops")
    options = parser.parse_args()
    xp, name, clock, down = device(options.numpy)
    shapes = SMALL if options.numpy else SHAPES[: 3 if options.quick else None]
    rows, wrong = [], []
    for shape in shapes:
        short = options.quick or options.numpy or shape[0] * shape[1] > 1_000_000  # the loops take their time
        row, told = measure(xp, clock, down, shape, 3 if short else 7, options.threads)
        rows.append(row)
        wrong += told
    print(f"{machine()}; {name}; loops with {options.threads} threads\n")
    columns = ["groups x rows", "plan, once, ms", "scores up", "array form", "gradient down", "round, ms", "loops, ms"]
    print(table([*columns, "loops/round", "apart", "bytes a row"], rows))
    if not options.numpy:
        rows, notes = training(200_000 if options.quick else 1_000_000)
        if rows:
            print(f"\n{TREES} trees:\n")
            print(table(["objective on", "trees on", "ms a tree", "price.dcov2 at the end"], rows, left=2))
        print("\n" + "\n".join(notes))
    if wrong:
        sys.exit("\n".join(["", "WRONG", *wrong]))


if __name__ == "__main__":
    main()
