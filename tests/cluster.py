"""A Dask cluster on this machine, and the small ranking data of the tests spread over its workers."""

import contextlib
from itertools import pairwise

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.distributed import Client, LocalCluster

import lambda_objectives as lo


@contextlib.contextmanager
def cluster(workers):
    """A client of so many worker processes of one thread each."""
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),  # partitions stay where they were put
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs="CRITICAL"
        ) as one,
        Client(one) as client,
    ):
        yield client


class Spread:
    """A table on the first workers of a cluster, whole queries on each, two partitions a worker.

    cut: all borders but the first are moved into a query. empty: so many of the last partitions have no rows.
    """

    def __init__(self, client, table, workers, names=("quality", "place"), cut=False, qid=False, empty=0):
        self.client = client
        client.wait_for_workers(workers, timeout=60)  # one that a busy machine has lost comes back
        addresses = sorted(client.nthreads())[:workers]
        parts = np.array_split(np.arange(len(table.group)), 2 * workers - empty)
        self.places = [address for address in addresses for _ in range(2)]
        ends = np.concatenate([[0], np.cumsum(table.group)])
        starts = [int(part[0]) for part in parts]
        rows = [int(ends[start]) + 3 * (cut and start > 0) for start in starts]
        rows += [len(table)] * (1 + empty)
        self.X, self.y, self.qid = (self.spread(values, rows) for values in (table.X, table.y, table.qid))
        pieces = [np.unique(table.qid[a:b], return_counts=True)[1] for a, b in pairwise(rows)]
        self.group = self.spread(np.concatenate(pieces), np.cumsum([0, *map(len, pieces)]))
        if names:
            columns = {name: self.spread(table.columns[name], rows) for name in names}
            self.y = client.persist(lo.attach(self.y, columns, qid=self.qid if qid else None))

    def spread(self, values, borders):
        """A Dask array whose pieces lie where they are to lie."""
        arrays = []
        for first, last, place in zip(borders[:-1], borders[1:], self.places, strict=True):
            piece = np.array(values[first:last])
            # made by a task, and not scattered, so that it can be made again when a worker dies
            there = self.client.submit(
                np.copy, piece, workers=[place], allow_other_workers=True, pure=False
            )  # fmt: skip
            arrays.append(da.from_delayed(delayed(there), piece.shape, piece.dtype))
        return da.concatenate(arrays)
