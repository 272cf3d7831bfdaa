"""Parts of the queries handed to a few threads. The kernels release the interpreter's lock while they run.

A pool of our own rather than numba's: some of numba's layers abort the process when two Python threads use them at
once, and none of them lives through a fork. The result does not depend on the number of threads: a query is the work
of one.

A forked child finds no pool, and no lock that a thread it lacks holds: a fork waits until no other thread compiles.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock

SMALL = 8_000  # rows per thread below which starting it costs more than it saves
PARTS_PER_THREAD = 4  # more parts than threads, since the work in them is only estimated

_local = threading.local()
_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_pools.clear)  # the threads of a pool do not survive one
    # taken to compile, and to read what was compiled before: were it held by another thread, the child would wait for
    # ever at its first kernel
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def usual():
    """How many threads to use where nobody says: numba's number, found without starting numba's threads."""
    try:
        numba.threading_layer()
    except ValueError:  # not started, so that numba.set_num_threads has not been called either
        return numba.config.NUMBA_NUM_THREADS
    return numba.get_num_threads()


def split(ptr, threads):
    """Borders, in queries, of parts of about equal work: (parts + 1,) int64.

    The work of a query is taken to be its pairs plus a share for each of its rows.
    """
    rows = int(ptr[-1])
    threads = min(threads, rows // SMALL)
    if threads <= 1:
        return np.array([0, len(ptr) - 1])
    sizes = np.diff(ptr).astype(float)
    work = np.cumsum(sizes * (sizes + 50.0))
    parts = threads * PARTS_PER_THREAD
    inner = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts)
    return np.unique(np.concatenate([[0], inner, [len(ptr) - 1]])).astype(np.int64)


def run_parts(kernel, parts, *arguments):
    """Call kernel(first, last, *arguments) for every part, in as many threads as `split` was made for."""
    ranges = list(zip(parts[:-1].tolist(), parts[1:].tolist(), strict=True))
    helpers = min(len(ranges), -(-len(ranges) // PARTS_PER_THREAD)) - 1
    if helpers <= 0:
        for first, last in ranges:
            kernel(first, last, *arguments)
        return
    ranges.reverse()

    def work():
        while True:
            try:
                first, last = ranges.pop()
            except IndexError:
                return
            kernel(first, last, *arguments)

    if helpers not in _pools:
        _pools[helpers] = ThreadPoolExecutor(helpers, thread_name_prefix="lambda_objectives")
    futures = [_pools[helpers].submit(work) for _ in range(helpers)]
    work()
    for future in futures:
        if not future.cancel():  # one that another caller's work has kept from starting finds nothing left to do
            future.result()


def scratch(size):
    """Memory of this thread's own to work in, kept from call to call: only as much as is touched is really taken."""
    if getattr(_local, "floats", np.empty(0)).size < size:
        _local.floats = np.empty(size, np.float32)
    return _local.floats


def longest(ptr):
    """Rows of the longest query."""
    return int(np.diff(ptr).max(initial=0))
