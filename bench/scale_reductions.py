"""One reduction over workers, by three ways: how long it takes, and what happens where a worker dies.

    python -m bench.scale_reductions [--repetitions 200]

Two and four processes on this machine, each holding 32 numbers whose sums all want to have, as often as the costs of a
round are summed over workers:

- "xgboost": `xgboost.collective.allreduce`, with a RabitTracker in the parent.
- "star": what the package uses, `lambda_objectives.star.Star`: all send to rank 0, which sends the sum back. They meet
  by way of a file, in the place of what a cluster has for this.
- "dask": all put into a `Queue`, worker 0 sums and sets a `Variable` that all wait for, in a LocalCluster.

"gather" is 1,000,000 float32 of which each process holds its share, and all want to have the whole: by "xgboost" as the
sum of arrays that are zero elsewhere ("xgboost, broadcast": each rank broadcasts its part in turn), by "star" as the
package does it, which is such a sum too. Each process notes the time of each of its calls; what is shown is the median
and the 90th percentile over all.

The last table is of four processes of which one kills itself (SIGKILL) between two reductions: the longest that any of
the others took to notice, and what they saw.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import pickle
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import Array, machine, table
from lambda_objectives.star import Meeting, Star
from lambda_objectives.workers import Workers

NUMBERS, ROWS = 32, 1_000_000
WORLDS = (2, 4)
DEATHS = ("xgboost", "star")
PATIENCE = 40.0  # seconds to wait for a process to notice that another one is gone
Reduce = Callable[[Array], Array]


def _star(rank: int, world: int, spot: str) -> Workers:
    """A star of all processes, which meet by a file."""
    path = Path(spot)

    def announce(meeting: Meeting) -> None:
        unfinished = path.with_suffix(".new")
        unfinished.write_bytes(pickle.dumps(meeting))
        unfinished.rename(path)

    def learn() -> Meeting | None:
        return pickle.loads(path.read_bytes()) if path.exists() else None

    star = Star(rank, world, f"process {os.getpid()}", announce, learn, "127.0.0.1")
    if rank == 0:  # all are there
        path.unlink()
        path.parent.rmdir()
    return star


def _by_star(star: Workers) -> dict[str, Reduce]:
    """The two operations by the package's star."""

    def whole(part: Array) -> Array:
        return star.gather(part)

    return {"sum": star.exchange, "gather": whole}


def _collective(way: str, rank: int, world: int) -> dict[str, Reduce]:
    """The two operations by XGBoost's collective, whose group has begun."""
    from xgboost import collective

    def total(data: Array) -> Array:
        return collective.allreduce(data, collective.Op.SUM)

    def padded(part: Array) -> Array:
        whole = np.zeros(len(part) * world, part.dtype)
        whole[rank * len(part) : (rank + 1) * len(part)] = part
        return total(whole)

    def in_turn(part: Array) -> Array:
        return np.concatenate([collective.broadcast(part if r == rank else None, r) for r in range(world)])

    return {"sum": total, "gather": in_turn if "broadcast" in way else padded}


def worker(way: str, rank: int, world: int, where: Any, repetitions: int, doomed: int, pipe: Any) -> None:
    """One process: reductions and gathers, their times sent to the parent; or reductions until somebody dies."""
    if way == "star":
        _measure(way, rank, world, _by_star(_star(rank, world, where)), repetitions, doomed, pipe)
        return
    from xgboost import collective

    with collective.CommunicatorContext(**where, dmlc_task_id=str(rank)):
        rank = collective.get_rank()
        _measure(way, rank, world, _collective(way, rank, world), repetitions, doomed, pipe)


def _measure(
    way: str, rank: int, world: int, steps: dict[str, Reduce], repetitions: int, doomed: int, pipe: Any
) -> None:
    """Send the times of each operation; where somebody is doomed, when and how the end was noticed."""
    if doomed >= 0:
        _until_death(steps["sum"], rank == doomed, pipe)
        return
    result = {}
    for name, step in steps.items():
        part = np.full(NUMBERS, rank + 1.0) if name == "sum" else np.full(ROWS // world, rank + 1.0, np.float32)
        times = []
        for _ in range(repetitions if name == "sum" else max(repetitions // 10, 10)):
            started = time.perf_counter()
            found = step(part)
            times.append(time.perf_counter() - started)
        expected = world * (world + 1) / 2
        assert found[0] == expected if name == "sum" else found.sum() == expected * (ROWS // world), (way, name)
        result[name] = times
    pipe.send(result)


def _until_death(step: Reduce, doomed: bool, pipe: Any) -> None:
    """Reduce until it fails; the doomed one kills itself after a while, and says when."""
    for i in range(10**6):
        if doomed and i == 50:
            pipe.send(time.monotonic())
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            step(np.ones(NUMBERS))
        except BaseException as error:
            pipe.send((time.monotonic(), type(error).__name__, str(error)))
            sys.exit(1)  # closes its connections: only so do those learn of it who wait for this one


def group(way: str, world: int, repetitions: int, doomed: int = -1) -> list[tuple[list[Any], int | None]]:
    """What each process of a group sent, and its exit code; None for one that had to be ended."""
    where: Any = None
    if way.startswith("xgboost"):
        from xgboost.tracker import RabitTracker

        tracker = RabitTracker(n_workers=world, host_ip="127.0.0.1", sortby="task")
        tracker.start()
        where = tracker.worker_args()
    else:
        where = str(Path(tempfile.mkdtemp()) / "meeting")
    spawn = multiprocessing.get_context("spawn")
    started = []
    for rank in range(world):
        mine, theirs = spawn.Pipe(duplex=False)
        process = spawn.Process(target=worker, args=(way, rank, world, where, repetitions, doomed, theirs))
        process.start()
        theirs.close()
        started.append((process, mine))
    if doomed >= 0:
        started[doomed][0].join(10 * PATIENCE)  # starting takes as long as it takes
    until = time.monotonic() + (PATIENCE if doomed >= 0 else 10 * PATIENCE)
    for process, _ in started:
        process.join(max(until - time.monotonic(), 0.0))
    codes = [process.exitcode for process, _ in started]
    found = [(_sent(pipe), code) for (_, pipe), code in zip(started, codes, strict=True)]
    for process, _ in started:  # only now: the end of one would be noticed by others
        process.kill()
        process.join()
    return found


def _sent(pipe: Any) -> list[Any]:
    """All that lies in a pipe."""
    sent = []
    try:
        while pipe.poll():
            sent.append(pipe.recv())
    except EOFError:
        pass
    return sent


def _by_dask(rank: int, world: int, repetitions: int) -> list[float]:
    """The reductions of one Dask worker."""
    from dask.distributed import Queue, Variable, get_client

    client, times = get_client(), []
    for t in range(repetitions):
        part = np.full(NUMBERS, rank + 1.0).tolist()
        started = time.perf_counter()
        queue, out = Queue(f"in-{t}", client=client), Variable(f"out-{t}", client=client)
        queue.put(part)
        if rank == 0:
            out.set(np.sum([queue.get() for _ in range(world)], axis=0).tolist())
        found = out.get()
        times.append(time.perf_counter() - started)
        assert found[0] == world * (world + 1) / 2
    return times


def dask_times(world: int, repetitions: int) -> list[list[float]]:
    """Times of each worker of a LocalCluster."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=world, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        names = list(client.scheduler_info(n_workers=-1)["workers"])
        futures = [
            client.submit(_by_dask, rank, world, repetitions, workers=[name], pure=False)
            for rank, name in enumerate(names)
        ]
        return list(client.gather(futures))


def _row(way: str, what: str, world: int, times: list[list[float]]) -> list[Any]:
    ms = sorted(1e3 * each for of_rank in times for each in of_rank)
    first = max(of_rank[0] for of_rank in times) * 1e3
    return [way, what, world, statistics.median(ms), ms[int(0.9 * len(ms))], first]


def _death(way: str, doomed: int) -> list[Any]:
    """What happens in a group of which one dies."""
    found = group(way, WORLDS[-1], 0, doomed)
    dead = found.pop(doomed)[0][0]
    noticed = [sent[0] for sent, _ in found if sent]
    waited = max((at - dead for at, _, _ in noticed), default=math.nan)
    ends = Counter("hangs" if code is None else f"exit code {code}" for _, code in found)
    print(f"{way}, rank {doomed} killed: {noticed}", file=sys.stderr)
    return [
        way, doomed, f"{len(noticed)} of {len(found)}", f"{waited:.2f} s" if noticed else f"not in {PATIENCE:.0f} s",
        ", ".join(sorted({name for _, name, _ in noticed})) or "-",
        ", ".join(f"{n} x {end}" for end, n in ends.items()),
    ]  # fmt: skip


def reductions(repetitions: int = 200, dask: bool = True) -> str:
    """The two tables, of times and of what happens where a process dies."""
    rows, ways = [], ("xgboost", "xgboost, broadcast", "star")
    for world in WORLDS:
        for way in ways:
            sent = [messages[0] for messages, _ in group(way, world, repetitions)]
            for what in sent[0]:
                if what == "gather" or "broadcast" not in way:
                    rows.append(_row(way, what, world, [of_rank[what] for of_rank in sent]))
        if dask:
            rows.append(_row("dask", "sum", world, dask_times(world, max(repetitions // 5, 5))))
    rows.sort(key=lambda row: row[1] == "gather")
    deaths = [_death(way, doomed) for way in DEATHS for doomed in (0, WORLDS[-1] - 1)]
    return "\n\n".join([
        table(["way", "what", "processes", "ms, median", "90 %", "first"], rows, left=2),
        table(["way", "rank killed", "noticed", "after", "what they saw", "their end"], deaths),
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of one reduction over workers.")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--no-dask", action="store_true", help="leave Dask out")
    options = parser.parse_args()
    print(f"{machine()}\n\n{reductions(options.repetitions, not options.no_dask)}")


if __name__ == "__main__":
    main()
