"""Which workers a booster trains with, and how they meet for the first time."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlparse

import numpy as np
import numpy.typing as npt

from lambda_objectives.star import Meeting, Star
from lambda_objectives.warn import warn
from lambda_objectives.workers import ALONE, Workers, all_texts


def of_xgboost() -> Workers:
    """The workers of `xgboost.collective`, which Dask, Spark or the user has set up."""
    import xgboost.collective as collective

    if collective.get_world_size() == 1:
        return ALONE
    heard: list[Meeting] = []

    def learn() -> Meeting | None:
        """Every worker must listen to the announcement, and only once."""
        if not heard:
            heard.append(collective.broadcast(None, 0))
        return heard[0]

    def announce(meeting: Meeting) -> None:
        collective.broadcast(meeting, 0)

    host, name = _dask_host(), collective.get_processor_name()
    rank, size = collective.get_rank(), collective.get_world_size()
    return Star(rank, size, _dask_name() or name, announce, learn, host, _telling())


def of_lightgbm(machines: int, learner: str) -> Workers:
    """The workers of LightGBM's own network: those of Dask, or those of an `xgboost.collective` beside it.

    Raises
    ------
    ValueError
        If there is no way to add up numbers over these machines.
    """
    if machines <= 1 or learner == "serial":  # by which LightGBM trains alone, whatever the number of machines
        return ALONE
    if learner in ("feature", "feature_parallel"):
        raise ValueError(
            "tree_learner='feature': every machine would hold all rows, and costs would count them again and again; "
            "use tree_learner='data' or 'voting'"
        )
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "lightgbm.dask" and "list_of_parts" in frame.f_code.co_varnames:
            return _of_dask(frame.f_locals)
        frame = frame.f_back
    if "xgboost" in sys.modules:
        import xgboost.collective as collective

        if collective.get_world_size() == machines:
            return of_xgboost()
    raise ValueError(
        f"num_machines={machines}: costs must be added up over all machines, for which LightGBM has nothing. Train by "
        "lightgbm.dask, or within xgboost.collective.CommunicatorContext(...) over the same machines"
    )


def _of_dask(there: dict[str, Any]) -> Workers:
    """The workers on which `lightgbm.dask` runs one training: the first of its list of machines adds up."""
    from distributed import Variable, get_client

    machines, port, host = there["machines"].split(","), there["local_listen_port"], _dask_host()
    rank = machines.index(f"{host}:{port}")
    spot = Variable(f"lambda-objectives {there['machines']}", client=get_client())

    def learn() -> Meeting | None:
        try:
            hosts, port, secret = spot.get(timeout=1)
        except TimeoutError:
            return None
        return list(hosts), int(port), bytes(secret)

    name = _dask_name() or machines[rank]
    star = Star(rank, len(machines), name, lambda meeting: spot.set(list(meeting)), learn, host, _telling())
    if rank == 0:
        spot.delete()  # all are there: nobody may find it later
    return star


def _dask_name() -> str | None:
    """The address of the Dask worker whose task this is."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return None


def _dask_host() -> str | None:
    name = _dask_name()
    return None if name is None else urlparse(name).hostname


def _telling() -> Callable[[str], None]:
    """What tells the user something from any thread: on Dask, the one at the client."""
    if _dask_name() is None:
        return warn
    from distributed import get_worker

    worker = get_worker()
    return lambda text: worker.log_event("warn", f"lambda_objectives: {text}")


def introduce(workers: Workers, version: str, home: str, sets: list[str]) -> None:
    """Compare what must be the same for all workers, before anything is added up.

    Parameters
    ----------
    workers
        All of them.
    version, home
        Of this package here, and where the objective comes from.
    sets
        The data sets that will be evaluated here.

    Raises
    ------
    ValueError
        On all workers, if one of them differs.
    """
    if workers.size == 1:
        return
    own = json.dumps({"version": version, "home": home, "sets": sets, "name": _dask_name() or ""})
    each = [json.loads(text) for text in all_texts(workers, own)]
    versions = {one["version"] for one in each} | {one["home"] for one in each}
    if len(versions) > 1:
        found = ", ".join(f"worker {i} ({one['name']}) {one['version']}" for i, one in enumerate(each))
        raise ValueError(
            f"the workers have different versions of lambda_objectives: {found}; the objective comes from {home}: "
            "install one version everywhere"
        )
    most = max((one["sets"] for one in each), key=len)
    for i, one in enumerate(each):
        if one["sets"] != most:
            raise ValueError(
                f"validation data: worker {i} ({one['name']}) has no rows of {sorted(set(most) - set(one['sets']))}, "
                "and would wait for ever for the others: give each validation set at least as many partitions as there "
                "are workers, spread like the training data (client.rebalance)"
            )


def check_whole(workers: Workers, qid: Any, name: str) -> None:
    """Refuse data in which the rows of a query do not lie together on one worker.

    Parameters
    ----------
    workers
        All of them.
    qid
        The query of each row of this worker, or None if that is not known.
    name
        What the data set is called.
    """
    ids = np.empty(0, np.int64) if qid is None else np.asarray(qid).reshape(-1)
    if ids.dtype.kind == "f" and np.isnan(ids).any():
        raise ValueError(f"qid: it is missing in row {int(np.argmax(np.isnan(ids)))} of {name!r} on one worker")
    blocks = ids[np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))] if len(ids) else ids
    own = _keys(blocks)
    several, times = np.unique(workers.gather(own), return_counts=True)
    cut = several[times > 1]
    if len(cut):
        here = blocks[own == cut[0]]
        called = max(all_texts(workers, str(here[0]) if len(here) else ""))  # not all of them know that one
        raise ValueError(
            f"qid: {len(cut)} of {len(several)} queries of {name!r} are cut by the borders of partitions, among them "
            f"{called}: the rows of a query must lie in one partition"
        )


def _keys(ids: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A number for each id, the same on all workers: of 64 bits, for a float is the same for several large ones."""
    if ids.dtype.kind == "f" and (ids == np.trunc(ids)).all() and (np.abs(ids) < 2.0**63).all():
        ids = ids.astype(np.int64)
    if ids.dtype.kind in "biu":
        return ids.astype(np.uint64)
    digests = b"".join(hashlib.blake2b(str(one).encode(), digest_size=8).digest() for one in ids.tolist())
    return np.frombuffer(digests, np.uint64)
