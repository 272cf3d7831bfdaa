"""How workers find each other, and what they make sure of before they add anything up."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from xgboost.tracker import RabitTracker

import lambda_objectives as lo
from lambda_objectives.meeting import check_whole, introduce, of_lightgbm
from lambda_objectives.workers import ALONE, WorkerError, agreeing
from tests.data import TRAIN
from tests.workers import together

SECONDS = 60


# ------------------------------------------------------------------------------------------------- LightGBM's machines
@pytest.mark.parametrize("machines", [0, 1])
def test_one_machine_is_alone(machines):
    assert of_lightgbm(machines, "feature") is ALONE


def test_several_machines_and_nobody_to_ask():
    with pytest.raises(ValueError, match=r"num_machines=2: .* Train by lightgbm.dask, or within .*CommunicatorContext"):
        of_lightgbm(2, "data")


def test_lightgbm_trains_alone_by_default():
    """Whatever the number of machines: its tree_learner is "serial"."""
    booster = lgb.Booster({"objective": "none", "verbosity": -1}, lgb.Dataset(TRAIN.X, TRAIN.y))
    booster.params["num_machines"] = 2
    booster.update(fobj=lo.Objective(lo.SquaredError()))
    assert booster.num_trees() == 1


@pytest.mark.parametrize("name", ["num_machines", "num_machine"])
def test_several_machines_while_training(name):
    """LightGBM itself would wait for the others: here it is told of them only when it has begun."""
    objective = lo.Objective(lo.SquaredError())
    booster = lgb.Booster({"objective": "none", "verbosity": -1}, lgb.Dataset(TRAIN.X, TRAIN.y))
    booster.params |= {name: "2", "tree_learner": "data"}
    with pytest.raises(ValueError, match="num_machines=2: costs must be added up over all machines"):
        booster.update(fobj=objective)


@pytest.mark.parametrize("learner", ["feature", "feature_parallel"])
def test_features_over_machines(learner):
    with pytest.raises(ValueError, match=r"tree_learner='feature': .* use tree_learner='data' or 'voting'"):
        of_lightgbm(2, learner)


# ---------------------------------------------------------------------------------------------------- before they begin
def test_introductions():
    together(3, lambda workers: introduce(workers, "1.0", "1.0", ["a", "b"]))
    introduce(ALONE, "1.0", "2.0", [])


@pytest.mark.parametrize("size", [1, 3])
def test_what_differs_in_version(size):
    """From each other, or from where the objective comes from."""
    versions, home = (["1.0", "1.1", "1.0"], "1.0") if size > 1 else (["1.0"] * 3, "1.2")
    said = []

    def work(workers):
        with pytest.raises(ValueError, match="the workers have different versions of lambda_objectives") as caught:
            introduce(workers, versions[workers.rank], home, [])
        said.append(str(caught.value))

    together(3, work)
    assert len(said) == 3
    for i, version in enumerate(versions):
        assert f"worker {i} () {version}" in said[0]
    assert f"the objective comes from {home}" in said[0]


def test_what_differs_in_validation_data():
    sets = [["a", "b"], ["a"], ["a", "b"]]

    def work(workers):
        with pytest.raises(ValueError, match=r"validation data: worker 1 \(\) has no rows of \['b'\]"):
            introduce(workers, "1", "1", sets[workers.rank])
        return True

    assert together(3, work) == [True] * 3


WORDS = np.array([f"query {i}" for i in range(9)], dtype=object)
KINDS = {
    "whole": np.arange(9), "unsigned": np.arange(9, dtype=np.uint64) + 2**63, "negative": -np.arange(9),
    "large": 2**53 + np.arange(9), "larger": 2**62 + np.arange(9), "floats": np.arange(9) + 0.5, "words": WORDS,
    "fixed": WORDS.astype(str), "dates": np.arange(9).astype("datetime64[D]"),
}  # fmt: skip


def check(ids, name="train"):
    """On as many workers as there are lists of queries; every query has two rows."""

    def work(workers):
        own = ids[workers.rank]
        with agreeing(workers):
            check_whole(workers, None if own is None else np.repeat(own, 2), name)

    together(len(ids), work)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_queries(kind):
    """Of ids of every kind; a worker without rows knows none, or has an array of another kind."""
    ids = KINDS[kind]
    check([ids[:4], ids[4:8], None])
    check([ids[:4], np.empty(0), ids[4:]])


@pytest.mark.parametrize("kind", KINDS)
def test_cut_queries(kind):
    """Two of them, by the borders between workers; and one that is in two blocks on one worker."""
    ids = KINDS[kind]
    words = f"qid: 2 of 9 queries of 'train' are cut by the borders of partitions, among them (?:{ids[3]}|{ids[6]}):"
    with pytest.raises(ValueError, match=words):
        check([ids[:4], ids[3:7], ids[6:]])
    with pytest.raises(ValueError, match=f"qid: 1 of 4 queries of 'held out' .* among them {ids[1]}:"):
        check([ids[:1], ids[[1, 2, 1, 3]]], "held out")


def test_an_id_is_missing():
    with pytest.raises(ValueError, match="qid: it is missing in row 2 of 'train' on one worker"):
        check([np.arange(3), np.array([4.0, np.nan, 5.0])])


def test_a_cut_query_is_an_error_of_all():
    """Also of those who do not have it; none of them waits."""
    said = []

    def work(workers):
        try:
            with agreeing(workers):
                check_whole(workers, [[1, 1], [1, 2], [3]][workers.rank], "train")
        except (ValueError, WorkerError) as error:
            said.append(str(error))

    together(3, work)
    assert len(said) == 3
    assert all("among them 1:" in text for text in said)


# --------------------------------------------------------------------------------------------- two processes, no Dask
RANK, QUALITY = lo.LambdaRank(lo.NDCG(10)), lo.LambdaRank(lo.NDCG(10), label="quality")
SPEC = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=1.2)], update="carry", mu=0.5)
ROUNDS = 10
XGB = {"min_child_weight": 1e-3, "max_depth": 3, "eta": 0.3, "verbosity": 0, "nthread": 1}
LGB = {"min_data_in_leaf": 5, "num_leaves": 7, "learning_rate": 0.3, "verbosity": -1, "num_threads": 1}


def half(number):
    """Of the queries, as one of two workers has them."""
    queries = len(TRAIN.group) // 2
    return TRAIN.part(np.flatnonzero((queries <= TRAIN.qid) == number))


def train_xgboost(table):
    """What the objective knows then."""
    objective = lo.Objective(SPEC)
    data = lo.attach(xgb.DMatrix(table.X, table.y, qid=table.qid), table.columns)
    xgb.train(XGB, data, ROUNDS, obj=objective)
    return {"state": objective.state()["rule"], "history": objective.history(data)}


def train_lightgbm(table, **network):
    """The same."""
    objective = lo.Objective(SPEC)
    data = lo.attach(lgb.Dataset(table.X, table.y, group=table.group), table.columns)
    booster = lgb.train({**LGB, "objective": objective, **network}, data, ROUNDS)
    if network:
        booster.free_network()
    return {"state": objective.state()["rule"], "history": objective.history(data)}


SCRIPT = textwrap.dedent("""
    import json, sys, warnings
    import xgboost.collective as collective

    arguments, number, ports = json.loads(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    with collective.CommunicatorContext(**arguments, dmlc_task_id=str(number)):
        from tests import test_meeting

        warnings.simplefilter("ignore", test_meeting.lo.LambdaObjectivesWarning)
        table = test_meeting.half(number)
        found = {"xgboost": test_meeting.train_xgboost(table)}
        found["lightgbm"] = test_meeting.train_lightgbm(
            table, machines=",".join(f"127.0.0.1:{port}" for port in ports), num_machines=2,
            local_listen_port=ports[number], pre_partition=True, tree_learner="data", time_out=1,
        )
    print(json.dumps(found))
""")


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture(scope="module")
def found_by_two():
    """What each of two processes knows after a training by XGBoost and one by LightGBM."""
    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1", sortby="task")
    tracker.start()
    root = str(Path(__file__).parents[1])
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    arguments, ports = json.dumps(tracker.worker_args()), json.dumps(free_ports(2))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, arguments, str(number), ports], env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root,
        )
        for number in range(2)
    ]  # fmt: skip
    found = []
    try:
        for process in processes:
            out, errors = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, errors
            found.append(json.loads(out.splitlines()[-1]))
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    tracker.wait_for(timeout=SECONDS)
    return found


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm"])
def test_two_processes(found_by_two, booster):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lo.LambdaObjectivesWarning)
        alone = {"xgboost": train_xgboost, "lightgbm": train_lightgbm}[booster](TRAIN)
    first, second = (found[booster] for found in found_by_two)
    assert first == second  # to the last bit
    assert first["state"]["multipliers"][0] > 0.1
    # LightGBM makes other bins of the same data on several machines, and so other trees
    near = {"rel": 1e-6, "abs": 1e-9} if booster == "xgboost" else {"rel": 0.1, "abs": 0.02}
    assert first["state"]["multipliers"] == pytest.approx(alone["state"]["multipliers"], **near)
    assert first["history"].keys() == alone["history"].keys()
    for name in [name for name in alone["history"] if name.startswith("cost/")]:
        assert first["history"][name] == pytest.approx(alone["history"][name], **near), name
