"""What goes wrong on a cluster: a clear error on the client within seconds, and workers that are free again."""

import contextlib
import os
import signal
import time
import warnings

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from dask.distributed import get_worker

import lambda_objectives as lo
from lambda_objectives.workers import WorkerError
from tests.cluster import Spread, cluster
from tests.data import TEST, Table
from tests.test_distributed import QUALITY, RANK, ROUNDS, lightgbm_on, xgboost_on

SECONDS = 30
SMALL = Table.random(24, seed=4)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored"),
    pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated"),
    pytest.mark.filterwarnings("ignore:Worker .* was not allocated eval_set data"),
]
ON = {"xgboost": xgboost_on, "lightgbm": lightgbm_on}
both = pytest.mark.parametrize("booster", ON)


@pytest.fixture(scope="module")
def client():
    with cluster(3) as one:
        one.run(lo.evaluate, RANK, [1.0, 0.0], [0, 1], group=[2])  # what is loaded for the first time takes its time
        yield one


def works(dask_worker):
    return bool(dask_worker.active_threads)


@pytest.fixture(autouse=True)
def begins_with_free_workers(client):
    """What a test leaves waiting in LightGBM's own network, for a worker that is gone, is no matter of the next one."""
    waiting = [address for address, busy in client.run(works).items() if busy]
    if waiting:
        client.restart_workers(waiting, timeout=SECONDS)


@pytest.fixture(autouse=True)
def not_for_ever():
    """A test that waits for ever fails."""

    def stop(*_):
        raise TimeoutError("still waiting")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(2 * SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def fails(client, error, words):
    """An error with such words within seconds, on the client; and no worker goes on with it."""
    start = time.monotonic()
    with pytest.raises(error, match=words):
        yield
    assert time.monotonic() - start < SECONDS
    while any(client.processing().values()):
        time.sleep(0.05)


class Unlucky(lo.Objective):
    """An objective to which something happens on one worker, in the fourth round: before its own work, or after."""

    def __init__(self, spec, unlucky, event, after=False):
        super().__init__(spec)
        self.unlucky, self.event, self.after, self.calls = unlucky, event, after, 0

    def __call__(self, first, second, sample_weight=None, group=None):
        self.calls += 1
        now = self.calls == 4 and get_worker().address == self.unlucky
        if now and not self.after:
            self.event()
        found = super().__call__(first, second, sample_weight, group)
        if now:
            self.event()
        return found


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def stumble():
    raise RuntimeError("something of the user's own")


@both
def test_a_worker_that_dies(client, booster):
    spread = Spread(client, SMALL, 3, names=())
    with fails(client, WorkerError, "has died, or lost its connection"):
        ON[booster](spread, None, Unlucky(RANK, spread.places[-1], die))
    client.wait_for_workers(3, timeout=SECONDS)
    model = ON[booster](Spread(client, SMALL, 3, names=()), None, lo.Objective(RANK))
    SMALL.assert_ranked_well(np.asarray(predicted(model, SMALL)), 0.8)


def predicted(model, table):
    if isinstance(model, lgb.Booster):
        return model.predict(table.X)
    return model.inplace_predict(table.X)


@both
def test_an_error_on_one_worker(client, booster):
    spread = Spread(client, SMALL, 3, names=())
    with fails(client, (RuntimeError, WorkerError), "something of the user's own|has left the training"):
        ON[booster](spread, None, Unlucky(RANK, spread.places[-1], stumble))


@both
def test_data_that_are_wrong_on_one_worker(client, booster):
    place = np.array(SMALL.columns["place"])
    place[-1] = np.nan
    table = Table(SMALL.X, SMALL.y, SMALL.group, {"place": place})
    with fails(client, (ValueError, WorkerError), "column 'place' must be finite"):
        ON[booster](Spread(client, table, 3, names=["place"]), None, lo.Objective(lo.SquaredError("place")))


@both
def test_a_query_cut_by_a_border(client, booster):
    spread = Spread(client, SMALL, 3, cut=True, qid=True)
    with fails(
        client, (ValueError, WorkerError), "queries of 'train' are cut by the borders of partitions, among them"
    ):
        ON[booster](spread, None, lo.Objective(RANK))
    # rows alone do not mind
    ON[booster](spread, None, lo.Objective(lo.SquaredError())) if booster == "xgboost" else None


def set_version(version):
    import lambda_objectives.calls

    lambda_objectives.calls.__version__ = version


@both
def test_versions_that_differ(client, booster):
    spread = Spread(client, SMALL, 3, names=())
    client.run(set_version, "0.0.1", workers=spread.places[-1:])
    try:
        with fails(client, ValueError, r"different versions of lambda_objectives: .*0\.0\.1"):
            ON[booster](spread, None, lo.Objective(RANK))
    finally:
        client.run(set_version, lo.__version__)


@both
@pytest.mark.parametrize("empty", [1, 2])
def test_empty_partitions(client, booster, empty):
    """One beside another that has rows, or all that a worker has."""
    spread = Spread(client, SMALL, 3, empty=empty)
    objective = lo.Objective(lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=1.5)], start=1))
    model = ON[booster](spread, Spread(client, TEST, 3, empty=empty), objective)
    assert np.isfinite(predicted(model, SMALL)).all()
    assert len(objective.history()["ndcg@10"]) == ROUNDS


def test_validation_rows_on_some_workers_only(client):
    spread = Spread(client, SMALL, 3, names=())
    with fails(client, ValueError, "validation data: worker .* has no rows of"):
        lightgbm_on(spread, Spread(client, TEST, 1, names=()), lo.Objective(RANK))


@both
def test_a_worker_that_dies_where_the_booster_communicates(booster):
    """The error is the booster's own; what it means is said in a warning. On a cluster of its own, that ends."""
    with cluster(3) as client, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client.run(lo.evaluate, RANK, [1.0, 0.0], [0, 1], group=[2])
        spread = Spread(client, SMALL, 3, names=())
        start, error, processes = time.monotonic(), None, client.run(os.getpid)
        try:
            ON[booster](spread, None, Unlucky(RANK, spread.places[-1], die, after=True))
        except (WorkerError, lgb.basic.LightGBMError, xgb.core.XGBoostError) as found:
            error = found
        while not any("has died" in str(warning.message) for warning in caught) and "has died" not in str(error):
            assert time.monotonic() - start < SECONDS
            time.sleep(0.05)
        for process in processes.values():  # LightGBM's other workers may wait in its network
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    assert error is not None
