"""How many threads are used, trainings side by side in threads and processes, and what a forked child can do."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import lightgbm as lgb
import numba
import numpy as np
import pytest
import xgboost as xgb
from joblib import Parallel, delayed

import lambda_objectives as lo
from lambda_objectives.kernels import pairs
from lambda_objectives.kernels import threads as pool
from lambda_objectives.run import Run
from tests.data import SPEC, TEST, TRAIN, Table

BOUND = lo.AugmentedLagrangian(SPEC, [lo.Constraint(lo.LambdaRank(lo.NDCG(10), label="quality"), at_most=0.1)])
LGB = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 8, "metric": "None"}
XGB = {"nthread": 1, "max_depth": 4, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
never_met = pytest.mark.filterwarnings("ignore:no late round keeps to every bound")


class LightGBM:
    """Data sets and trainings, the same calls as XGBoost's."""

    name = "lightgbm"

    @staticmethod
    def data(table, reference=None):
        data = lgb.Dataset(table.X, table.y, group=table.group, params=LGB, reference=reference)
        return lo.attach(data.construct(), table.columns)

    @staticmethod
    def train(objective, data, valid=None, rounds=12, **params):
        sets = {} if valid is None else {"valid_sets": [valid], "feval": objective.metrics}
        return lgb.train({**LGB, **params, "objective": objective}, data, rounds, **sets).model_to_string()


class XGBoost:
    """Data sets and trainings, the same calls as LightGBM's."""

    name = "xgboost"

    @staticmethod
    def data(table, reference=None):
        return lo.attach(xgb.DMatrix(table.X, table.y, qid=table.qid, nthread=1), table.columns)

    @staticmethod
    def train(objective, data, valid=None, rounds=12, learning_rate=0.3, **params):
        sets = {} if valid is None else {"evals": [(valid, "valid")], "custom_metric": objective.metrics}
        params = {**({} if "n_jobs" in params else XGB), "eta": learning_rate, **params}
        return bytes(xgb.train(params, data, rounds, obj=objective, verbose_eval=False, **sets).save_raw())


both_boosters = pytest.mark.parametrize("booster", [LightGBM, XGBoost], ids=lambda booster: booster.name)

# --------------------------------------------------------------------------------------------------------- how many


@pytest.fixture
def used(monkeypatch):
    """The threads that worked on pairs so far. Each waits for the others, that none is too late to find work.

    `used.wanted` is how many there must be; another number of them is a broken barrier, an error.
    """

    class Used(set):
        def expect(self, wanted):
            self.clear()
            self.barrier = threading.Barrier(wanted)

    seen, real = Used(), pairs._pair_part

    def part(*arguments):
        here = threading.get_ident()
        if here not in seen:
            seen.add(here)
            seen.barrier.wait(timeout=10)
        real(*arguments)

    monkeypatch.setattr(pool, "SMALL", 20)  # rows that are worth a thread
    monkeypatch.setattr(pairs, "_pair_part", part)
    return seen


@pytest.mark.parametrize(
    ("booster", "given"),
    [(LightGBM, name) for name in ("num_threads", "num_thread", "nthread", "nthreads", "n_jobs")]
    + [(XGBoost, name) for name in ("nthread", "n_jobs")],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.parametrize("threads", [1, 3])
def test_as_many_threads_as_the_booster_was_given(booster, given, threads, used):
    used.expect(threads)
    params = {"num_threads": None, given: threads} if booster is LightGBM else {given: threads}
    data = booster.data(TRAIN)
    booster.train(lo.Objective(SPEC), data, booster.data(TEST, data), rounds=2, **params)
    assert len(used) == threads


def numba_has(threads, monkeypatch):
    """Numba has so many threads, and has not started them: an earlier test may have, and then asks them."""
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
    monkeypatch.setattr(numba, "get_num_threads", lambda: threads)


@both_boosters
@pytest.mark.parametrize("given", [None, 0, -1])
def test_else_as_many_threads_as_numba_has(booster, given, used, monkeypatch):
    numba_has(4, monkeypatch)
    used.expect(4)
    params = {"num_threads": given} if booster is LightGBM else {"n_jobs": 0 if given is None else given}
    booster.train(lo.Objective(SPEC), booster.data(TRAIN), rounds=2, **params)
    assert len(used) == 4


def test_as_many_threads_as_rankers_were_given(used, monkeypatch):
    numba_has(4, monkeypatch)  # which nothing may use, not the metrics either
    used.expect(2)
    objective = lo.Objective(SPEC)
    model = lgb.LGBMRanker(objective=objective, n_estimators=2, n_jobs=2, min_child_samples=5, verbosity=-1)
    made, real = [], Run.__init__
    monkeypatch.setattr(Run, "__init__", lambda run, *a, **more: made.append(more["threads"]) or real(run, *a, **more))
    model.fit(TRAIN.X, TRAIN.y, group=TRAIN.group, eval_X=TEST.X, eval_y=TEST.y, eval_group=[TEST.group],
              eval_metric=objective.metrics)  # fmt: skip
    assert len(used) == 2
    assert set(made) == {2}
    assert len(made) == 2  # of the training, of the metrics


@pytest.mark.parametrize(("configured", "given", "wanted"), [(3, 0, 3), (2, 3, 2), (3, 2, 2)])
def test_threads_by_the_configuration_of_xgboost(configured, given, wanted, used):
    """It is the most that XGBoost takes. Outlives its `with`, but is of one Python thread: the test's own."""

    def trained():
        with xgb.config_context(nthread=configured):
            XGBoost.train(lo.Objective(SPEC), data, rounds=2, n_jobs=given)

    if "nthread" not in xgb.get_config():
        pytest.skip("XGBoost before 3.0 has no such setting")
    data = XGBoost.data(TRAIN)
    used.expect(wanted)
    with ThreadPoolExecutor(1) as one:
        one.submit(trained).result()
    assert len(used) == wanted


# --------------------------------------------------------------------------------------------------- side by side


@pytest.fixture
def hasty():
    """Python threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@never_met
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("shared", [False, True], ids=["an object each", "one object"])
@both_boosters
def test_trainings_on_the_same_data_in_threads_equal_those_in_turn(booster, shared):
    """Each thread's run goes on, though the others begin theirs on the same two data sets."""
    data = booster.data(TRAIN)
    valid = booster.data(TEST, data)
    rates = [0.1, 0.2, 0.3, 0.4]
    wanted = [booster.train(lo.Objective(BOUND), data, valid, learning_rate=rate) for rate in rates]
    one = lo.Objective(BOUND)

    def train(rate):
        return booster.train(one if shared else lo.Objective(BOUND), data, valid, learning_rate=rate)

    with ThreadPoolExecutor(len(rates)) as several:
        for _ in range(3):
            assert list(several.map(train, rates)) == wanted


def test_buffers_of_a_thread_that_is_gone_go_when_another_trains():
    objective = lo.Objective(SPEC)
    data, boosters = LightGBM.data(TRAIN), []

    def train():
        boosters.append(lgb.train({**LGB, "objective": objective}, data, 2, keep_training_booster=True))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    run = objective.watched(boosters[0]).run
    assert run.work is not None
    train()
    assert run.work is None


def test_no_caller_waits_for_the_work_of_another():
    """The threads of a pool serve all; who finds them busy does the work alone."""
    parts, begun, go_on = np.arange(9), threading.Barrier(3), threading.Event()
    ours = [0] * 8

    def slow(first, last):
        if first >= 6:  # the last two, one for each of two threads
            begun.wait(timeout=10)
            assert go_on.wait(timeout=30)

    def quick(first, last):
        ours[first] += 1

    with ThreadPoolExecutor(2) as callers:
        blocked = callers.submit(pool.run_parts, slow, parts)
        begun.wait(timeout=10)
        callers.submit(pool.run_parts, quick, parts).result(timeout=10)
        assert ours == [1] * 8
        assert not blocked.done()
        go_on.set()
        blocked.result(timeout=10)


def fold(spec, of, seed):
    """The model and the history of a training; in a process of its own all of it is made there."""
    booster = {"lightgbm": LightGBM, "xgboost": XGBoost}[of]
    objective, data = lo.Objective(spec), booster.data(Table.random(40, seed))
    return booster.train(objective, data, rounds=4), objective.history(data)


@never_met
def test_joblib_equals_a_loop():
    jobs = [(spec, booster.name, seed) for seed, spec in enumerate((SPEC, BOUND)) for booster in (LightGBM, XGBoost)]
    wanted = [fold(*job) for job in jobs]
    for backend in ("threading", "loky"):
        assert Parallel(n_jobs=2, backend=backend)(delayed(fold)(*job) for job in jobs) == wanted


COMPILE = """
import numpy as np
from lambda_objectives.kernels.random import mixed
found = int(mixed(np.uint64(7)))
print(found, sum(mixed.stats.cache_hits.values()), sum(mixed.stats.cache_misses.values()))
"""


def test_processes_that_compile_at_once_share_a_cache(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def start():
        return subprocess.Popen([sys.executable, "-c", COMPILE], env=environment, stdout=subprocess.PIPE, text=True)

    def printed(process):
        return process.communicate(timeout=100)[0].split()

    both = [start(), start()]
    first, second = map(printed, both)
    assert first[0] == second[0]
    assert printed(start()) == [first[0], "1", "0"]  # read, not compiled anew


# -------------------------------------------------------------------------------------------------------------- forks

FORKS = """
import multiprocessing, os, signal, threading, time
import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
import lambda_objectives as lo
from lambda_objectives.kernels.threads import usual

rng = np.random.default_rng(0)
n = 40_000  # enough for several threads
X, c, scores = rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=n)
y, group = (X[:, 0] + rng.normal(size=n) > 1) * 1.0, [20] * (n // 20)
spec = lo.Decorrelated(lo.LambdaRank(lo.NDCG(10)), "c", weight=0.1)
objective = lo.Objective(spec)

def evaluated(_=None):
    return lo.evaluate(spec, scores, y, group=group, c=c)

def sloped():
    return [part.tobytes() for part in lo.gradient(spec, scores, y, group=group, c=c)]

def of_a_data_set():
    return objective.metrics(scores, data), objective.history(data)

def by_several_threads():
    evaluated()
    return any(thread.name.startswith("lambda_objectives") for thread in threading.enumerate())

def in_a_child(ask, wanted):
    child = os.fork()
    if child == 0:
        signal.alarm(40)  # ends it, should it hang
        os._exit(0 if ask() == wanted else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

# a fork in the midst of the kernels of another thread
wanted, stop = evaluated(), threading.Event()
def work():
    while not stop.is_set():
        evaluated()
thread = threading.Thread(target=work)
thread.start()
codes = [in_a_child(evaluated, wanted) for _ in range(6)]
stop.set()
thread.join()
assert codes == [0] * 6, codes

# a fork while another thread compiles; every kernel wants this lock when it is first used
held = threading.Event()
def compile_something():
    with global_compiler_lock:
        held.set()
        time.sleep(0.5)
def use_a_new_kernel():
    with global_compiler_lock:
        return 1
thread = threading.Thread(target=compile_something)
thread.start()
held.wait()
print("while another thread compiles:", in_a_child(use_a_new_kernel, 1))
thread.join()

with multiprocessing.get_context("fork").Pool(2) as several:
    assert several.map_async(evaluated, range(4)).get(timeout=40) == [wanted] * 4

# a fork after trainings with several threads, after which the boosters themselves would hang in a child
import lightgbm as lgb, xgboost as xgb
sets = lo.attach(lgb.Dataset(X, y, group=group), c=c), lo.attach(xgb.DMatrix(X, y, nthread=2, group=group), c=c)
lgb.train({"objective": objective, "verbosity": -1, "num_threads": 2}, sets[0], 2)
xgb.train({"nthread": 2}, sets[1], 2, obj=objective)
def train_in_one_thread():
    if data is sets[0]:
        mine = lo.attach(lgb.Dataset(X, y, group=group), c=c)
        lgb.train({"objective": objective, "verbosity": -1, "num_threads": 1}, mine, 2)
    else:
        mine = lo.attach(xgb.DMatrix(X, y, nthread=1, group=group), c=c)
        xgb.train({"nthread": 1}, mine, 2, obj=objective)
    return objective.history(mine)
for data in sets:
    print("after training:", *[in_a_child(ask, ask()) for ask in (evaluated, sloped, of_a_data_set)],
          in_a_child(by_several_threads, True), in_a_child(train_in_one_thread, train_in_one_thread()))

# and none of this has started threads of numba's, which live through no fork
try:
    print(numba.threading_layer())
except ValueError:
    print("no layer", usual())
numba.set_num_threads(1)
print("set", usual())
"""
PRINTED = """\
while another thread compiles: 0
after training: 0 0 0 0 0
after training: 0 0 0 0 0
no layer 2
set 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_children_can_evaluate():
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", "-c", FORKS]
    done = subprocess.run(command, timeout=120, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (PRINTED, 0), done.stderr
