"""Data that come in pieces: the same model and histories as from arrays; and what a training keeps in memory."""

import itertools
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import lambda_objectives as lo
from lambda_objectives.kernels import threads as pool
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from tests.data import SPEC, TEST, TRAIN

QUALITY = lo.Constraint(lo.LambdaRank(lo.NDCG(10), label="quality"), at_most=0.1)
SPECS = {
    "LambdaRank": SPEC,
    "constraint": lo.AugmentedLagrangian(SPEC, [QUALITY], mu=3.0, start=0),
    "Decorrelated": lo.Decorrelated(SPEC, "place", weight=0.5, within_group=True),
}
each_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
never_met = pytest.mark.filterwarnings("ignore:no late round keeps to every bound")
# until XGBoost 3.4 bins were made of some batches after the others
ALL_AT_ONCE = {"max_quantile_batches": 4} if tuple(map(int, xgb.__version__.split(".")[:2])) < (3, 4) else {}
BINS = 32  # fewer than rows, so that the bins of a data set read in pieces could differ
XGB = {"nthread": 1, "max_depth": 4, "min_child_weight": 1e-3, "max_bin": BINS, "disable_default_eval_metric": 1}
LGB = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 8, "max_bin": BINS, "metric": "None"}

# ------------------------------------------------------------------------------------------------------------- XGBoost


class Batches(xgb.DataIter):
    """A table in four batches, which cut three queries in two; weights are one a query, in each batch."""

    def __init__(self, table, weighted=False, **more):
        self.table, self.weighted = table, weighted
        middles = (np.cumsum(table.group) - table.group // 2)[[15, 30, 45]]
        self.cuts = [0, *middles.tolist(), len(table)]
        self.reset()
        super().__init__(**more)

    def reset(self):
        self.left = list(itertools.pairwise(self.cuts))

    def next(self, input_data):
        if not self.left:
            return False
        rows = slice(*self.left.pop(0))
        qid = self.table.qid[rows]
        weight = self.table.query_weights[np.unique(qid)] if self.weighted else None
        input_data(data=self.table.X[rows], label=self.table.y[rows], qid=qid, weight=weight)
        return True


def in_memory(folder, table, weighted=False, **more):
    weight = table.query_weights if weighted else None
    return xgb.QuantileDMatrix(table.X, table.y, qid=table.qid, weight=weight, max_bin=BINS, nthread=1, **more)


def in_batches(folder, table, weighted=False, **more):
    return xgb.QuantileDMatrix(Batches(table, weighted), max_bin=BINS, nthread=1, **ALL_AT_ONCE, **more)


def on_disk(folder, table, weighted=False, **more):
    batches = Batches(table, weighted, cache_prefix=str(folder / str(len(table))), on_host=False)
    data = xgb.ExtMemQuantileDMatrix(batches, max_bin=BINS, nthread=1, **ALL_AT_ONCE, **more)
    assert list(folder.iterdir())
    return data


def on_host(folder, table, weighted=False, **more):
    batches = Batches(table, weighted, on_host=True)
    return xgb.ExtMemQuantileDMatrix(batches, max_bin=BINS, nthread=1, **ALL_AT_ONCE, **more)


def from_disk(folder, table, weighted=False, ref=None):
    """A DMatrix, which is cut into bins when it is trained on; so is what it is compared with."""
    return xgb.DMatrix(Batches(table, weighted, cache_prefix=str(folder / str(len(table)))), nthread=1)


def plain(folder, table, weighted=False, ref=None):
    return xgb.DMatrix(table.X, table.y, qid=table.qid, nthread=1)


def trained_by_xgboost(make, folder, spec, qid=True, weighted=False):
    """The model in bytes, and both histories."""
    data, of = make(folder, TRAIN, weighted), {"qid": TRAIN.qid} if qid else {}
    lo.attach(data, TRAIN.columns, **of)
    valid = make(folder, TEST, ref=data)
    lo.attach(valid, TEST.columns, qid=TEST.qid if qid else None)
    objective = lo.Objective(spec)
    model = xgb.train(XGB, data, 6, obj=objective, evals=[(valid, "valid")], custom_metric=objective.metrics,
                      verbose_eval=False)  # fmt: skip
    return model.save_raw(), objective.history(data), objective.history(valid)


@never_met
@each_spec
@pytest.mark.parametrize(
    ("pieces", "whole"),
    [(in_batches, in_memory), (on_disk, in_memory), (on_host, in_memory), (from_disk, plain)],
    ids=["QuantileDMatrix", "ExtMem on disk", "ExtMem on host", "DMatrix with a cache"],
)
def test_xgboost_batches_train_as_arrays_do(pieces, whole, spec, tmp_path):
    """Cut queries included: attach() says where these are."""
    found, wanted = (trained_by_xgboost(make, tmp_path, spec) for make in (pieces, whole))
    assert found == wanted
    assert len(found[1]["ndcg@10"]) == len(found[2]["ndcg@10"]) == 6


@pytest.mark.parametrize("make", [in_batches, on_disk], ids=["QuantileDMatrix", "ExtMem on disk"])
def test_xgboost_batches_that_cut_queries_need_their_ids(make, tmp_path):
    assert len(make(tmp_path, TRAIN).get_group()) == len(TRAIN.group) + 3
    found, wanted = (trained_by_xgboost(kind, tmp_path, SPEC, qid=False) for kind in (make, in_memory))
    assert found[1]["ndcg@10"][0] != wanted[1]["ndcg@10"][0]


def test_xgboost_batches_with_weights_of_queries(tmp_path):
    found, wanted = (trained_by_xgboost(make, tmp_path, SPEC, weighted=True) for make in (on_disk, in_memory))
    assert found == wanted
    even = trained_by_xgboost(in_memory, tmp_path, SPEC)
    assert abs(even[1]["ndcg@10"][0] - wanted[1]["ndcg@10"][0]) > 1e-4


# ------------------------------------------------------------------------------------------------------------ LightGBM


class Piece(lgb.Sequence):
    """Rows that are handed over in batches; `read` counts them."""

    batch_size = 64

    def __init__(self, X):
        self.X, self.read = X, 0

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        self.read += 1
        return self.X[rows]


def trained_by_lightgbm(features, attached_after, spec):
    data = lgb.Dataset(features(TRAIN), TRAIN.y, group=TRAIN.group, params=LGB)
    valid = lgb.Dataset(features(TEST), TEST.y, group=TEST.group, reference=data, params=LGB)
    for table, each in ((TRAIN, data), (TEST, valid)):
        lo.attach(each.construct() if attached_after else each, table.columns)
    objective = lo.Objective(spec)
    model = lgb.train({**LGB, "objective": objective}, data, 6, valid_sets=[valid], feval=objective.metrics)
    return model.model_to_string(), objective.history(data), objective.history(valid)


@never_met
@each_spec
@pytest.mark.parametrize("attached_after", [False, True], ids=["attached before", "attached after"])
def test_lightgbm_sequences_train_as_arrays_do(attached_after, spec):
    pieces = []

    def cut(table):
        pieces.extend(Piece(rows) for rows in np.split(table.X, [200, 450]))  # within queries, which is no matter
        return pieces[-3:]

    found = trained_by_lightgbm(cut, attached_after, spec)
    assert found == trained_by_lightgbm(lambda table: table.X, attached_after, spec)
    assert all(piece.read for piece in pieces)
    assert len(found[1]["ndcg@10"]) == len(found[2]["ndcg@10"]) == 6


def test_lightgbm_sequence_whose_labels_come_last():
    def trained(data):
        lo.attach(data, TRAIN.columns, qid=TRAIN.qid)
        data.set_label(TRAIN.y)
        return lgb.train({**LGB, "objective": lo.Objective(SPECS["Decorrelated"])}, data, 3).model_to_string()

    assert trained(lgb.Dataset([Piece(TRAIN.X[:300]), Piece(TRAIN.X[300:])])) == trained(lgb.Dataset(TRAIN.X))


def test_lightgbm_sequence_and_a_column_of_another_length():
    data = lo.attach(lgb.Dataset([Piece(TRAIN.X)], group=TRAIN.group), place=TRAIN.columns["place"][1:])
    data.set_label(TRAIN.y)
    with pytest.raises(ValueError, match=f"'place' has {len(TRAIN) - 1} values, the Dataset has {len(TRAIN)} rows"):
        lgb.train({**LGB, "objective": lo.Objective(SPECS["Decorrelated"])}, data, 3)


# -------------------------------------------------------------------------------------------------------------- memory

ROWS = 60_000
RANK = lo.LambdaRank(lo.NDCG(10))
KEPT = {  # spec, bytes a row that it keeps beyond labels and columns, and those for the time of a call
    "LambdaRank": (RANK, 40, 2),
    "and a constraint": (lo.AugmentedLagrangian(RANK, [QUALITY], start=0), 72, 9),
    "and DistanceCovariance": (lo.Decorrelated(RANK, "price", weight=1.0), 92, 18),
    "within each query": (lo.Decorrelated(RANK, "price", weight=1.0, within_group=True), 98, 9),
    "as a constraint": (
        lo.AugmentedLagrangian(RANK, [lo.Constraint(lo.DistanceCovariance("price"), at_most=1e-9)], start=0), 92, 18
    ),
    "SquaredError": (lo.SquaredError(), 24, 17),
    "LogLoss and DistanceCovariance": (lo.Decorrelated(lo.LogLoss("quality"), "price", weight=1.0), 76, 41),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "kept", "meanwhile"), KEPT.values(), ids=KEPT.keys())
def test_memory_of_a_round_is_bounded(spec, kept, meanwhile):
    rng = np.random.default_rng(0)
    columns = {"quality": (rng.random(ROWS) < 0.3) * 1.0, "price": rng.normal(size=ROWS)}
    queries = Queries.from_arrays(rng.integers(0, 5, ROWS), group=[20] * (ROWS // 20), columns=columns)
    scores = np.zeros(ROWS)
    Run(spec, queries, threads=1).step(scores)  # kernels are compiled, the thread has what it works in
    tracemalloc.start()
    try:
        run = Run(spec, queries, threads=1)
        for _ in range(3):
            scores += rng.normal(size=ROWS) + columns["price"]  # breaks each bound
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            run.step(scores)
        after, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        run.evaluate(scores)
        evaluated = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    slack = 1.2  # bytes a row for all that does not grow with the data
    assert kept - slack < after / ROWS < kept + slack  # from below too, or the figures would be wrong unnoticed
    assert (peak - before) / ROWS < meanwhile + slack
    assert (evaluated - after) / ROWS < meanwhile + slack


@pytest.mark.parametrize(("kind", "bytes_a_row"), [(np.uint8, 8), (np.float32, 8), (np.float64, 0)])
def test_memory_of_a_column(kind, bytes_a_row):
    """Columns are held in double precision; those that come so are not copied."""
    before, data = (lgb.Dataset(np.zeros((ROWS, 1)), np.zeros(ROWS)) for _ in range(2))
    values = np.zeros(ROWS, kind)
    lo.attach(before, price=values)  # all is imported
    tracemalloc.start()
    try:
        lo.attach(data, price=values)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert bytes_a_row <= held / ROWS < bytes_a_row + 0.5


def test_memory_that_a_thread_works_in_is_bounded():
    """It is kept for the next round: 7.4 MB for the pair loops, 36 bytes for each row of the longest group."""

    def taken(spec, n):
        rng = np.random.default_rng(0)
        lo.gradient(spec, rng.normal(size=n), np.arange(n) % 2, group=[20] * (n // 20), price=rng.normal(size=n))
        return pool.scratch(0).nbytes

    with ThreadPoolExecutor(1) as one:  # a new thread, which has nothing yet
        assert 7.3e6 < one.submit(taken, RANK, 1000).result() < 7.4e6
        assert one.submit(taken, lo.DistanceCovariance("price"), 300_000).result() == 36 * 300_000


def test_buffers_go_when_the_next_training_begins():
    objective = lo.Objective(SPEC)
    data = lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group, params=LGB)
    first = lgb.train({**LGB, "objective": objective}, data, 2, keep_training_booster=True)
    run = objective.watched(first).run
    assert run.work is not None
    lgb.train({**LGB, "objective": objective}, data, 2)
    assert run.work is None
