"""Columns that travel with the partitions of Dask labels: what is attached and what is found, without a cluster."""

import pickle
import types

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import lambda_objectives as lo
from lambda_objectives import partitions

N, PARTS = 12, 3
FRAME = pd.DataFrame(
    {
        "label": np.arange(N, dtype=np.int32) % 4, "price": np.linspace(0, 1, N), "place": np.arange(N)[::-1],
        "query": np.repeat([7, 3, 9, 1], 3),
    },
    index=np.arange(100, 100 + N),
)  # fmt: skip


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def frame():
    return dd.from_pandas(FRAME, npartitions=PARTS, sort=False)


def array(values, columns=None):
    values = np.asarray(values)
    return da.from_array(values if columns is None else values.reshape(-1, columns), chunks=N // PARTS)


def tags(tagged):
    """The tag of each partition."""
    return [part.compute().attrs[partitions.ATTRIBUTE] for part in tagged.partitions]


def assert_attached(tagged, names, qid):
    found = tags(tagged)
    assert len(found) == PARTS
    for i, tag in enumerate(found):
        rows = slice(i * N // PARTS, (i + 1) * N // PARTS)
        assert tag.columns.keys() == set(names)
        for name, column in names.items():
            np.testing.assert_array_equal(tag.columns[name], FRAME[column][rows])
            assert tag.columns[name].dtype == np.float64
        if qid:
            np.testing.assert_array_equal(tag.qid, FRAME["query"][rows])
        else:
            assert tag.qid is None


# ------------------------------------------------------------------------------------------------------------ attaching
def test_columns_of_a_frame():
    there = frame()
    tagged = lo.attach(there.label, {"a.b": there.place}, price=there.price, qid=there["query"])
    assert tagged.dtype == np.int32
    assert tagged.name == "label"
    whole = tagged.compute()
    pd.testing.assert_series_equal(whole, FRAME["label"])  # values, index, dtype and name
    assert_attached(tagged, {"a.b": "place", "price": "price"}, qid=True)


@pytest.mark.parametrize("labels", [None, 1])
@pytest.mark.parametrize("columns", [None, 1])
def test_arrays(labels, columns):
    """Of one dimension, or of one column."""
    tagged = lo.attach(array(FRAME["label"], labels), price=array(FRAME["price"], columns))
    assert tagged.dtype == np.int32
    np.testing.assert_array_equal(tagged.compute(), FRAME["label"])
    assert_attached(tagged, {"price": "price"}, qid=False)
    tagged = lo.attach(array(FRAME["label"], labels), qid=array(FRAME["query"], columns))
    assert_attached(tagged, {}, qid=True)


def test_ids_stay_what_they_are():
    """Numbers that no float holds, and strings."""
    large = 2**60 + np.arange(N)
    tagged = lo.attach(array(FRAME["label"]), qid=array(large))
    np.testing.assert_array_equal(np.concatenate([tag.qid for tag in tags(tagged)]), large)
    words = pd.Series([f"query {i // 3}" for i in range(N)])
    tagged = lo.attach(array(FRAME["label"]), qid=dd.from_pandas(words, npartitions=PARTS))
    assert [one for tag in tags(tagged) for one in tag.qid] == words.tolist()


def test_columns_of_arrays_and_series_go_together():
    tagged = lo.attach(frame().label, price=array(FRAME["price"]))
    assert tagged.compute().index.tolist() == FRAME.index.tolist()
    assert_attached(tagged, {"price": "price"}, qid=False)


def test_what_is_no_column():
    labels = array(FRAME["label"])
    two = da.from_array(np.zeros((N, 2)), chunks=(N // PARTS, 1))
    with pytest.raises(ValueError, match="column 'price' has 2 partitions, the labels have 3"):
        lo.attach(labels, price=da.from_array(np.zeros(N), chunks=N // 2))
    with pytest.raises(ValueError, match="'qid' has 1 partitions, the labels have 3"):
        lo.attach(labels, qid=da.from_array(np.zeros(N), chunks=N))
    with pytest.raises(ValueError, match="column 'price' must have one column, found chunks side by side"):
        lo.attach(labels, price=two)
    with pytest.raises(ValueError, match="data must have one column, found chunks side by side"):
        lo.attach(two, price=labels)
    with pytest.raises(
        TypeError, match="column 'price' must be a Dask array or Series, like the labels, found ndarray"
    ):
        lo.attach(labels, price=np.zeros(N))
    with pytest.raises(ValueError, match="must be a column's name"):
        lo.attach(labels, {"a b": labels})
    with pytest.raises(ValueError, match="column 'price' is given twice"):
        lo.attach(labels, {"price": labels}, price=labels)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"price": da.from_array(np.zeros(N), chunks=((4, 5, 3),))}, "column 'price' has 5 values, the data set has 4"),
        ({"qid": da.from_array(np.zeros(N), chunks=((4, 5, 3),))}, "qid has 5 values in a partition of 4 rows"),
        ({"price": array(np.zeros(2 * N), 2)[:N]}, "column 'price' must be one number a row"),
        ({"price": array(np.array(["x"] * N))}, "column 'price' cannot be read as numbers"),
    ],
)
def test_what_only_shows_on_the_workers(given, words):
    given = {name: values.rechunk({1: -1}) if values.ndim > 1 else values for name, values in given.items()}
    tagged = lo.attach(array(FRAME["label"]), given if "qid" not in given else None, qid=given.get("qid"))
    with pytest.raises(ValueError, match=words):
        tagged.partitions[1].compute()


# ------------------------------------------------------------------------------------------------------- on the workers
def parts_of(tagged, *with_qid):
    """As they come to a worker: sent there, each for itself."""
    found = []
    for part in tagged.partitions:
        label = pickle.loads(pickle.dumps(part.compute()))
        found.append({"data": pd.DataFrame({"x": np.asarray(label) * 1.0}), "label": label})
    for part, qid in zip(found, with_qid, strict=False):
        part["qid"] = qid
    return found


def on_a_worker(module, code, **given):
    """`partitions.find` as it is called from a function of such a module, with such variables."""
    there = types.ModuleType(module)
    exec(f"def train(find, {', '.join(given)}):\n    return {code}\n", there.__dict__)
    return there.train(partitions.find, **given)


def in_xgboost(parts, label, valid=None):
    """What a worker finds, whose matrix has these labels; valid: of the first one that is evaluated."""
    matrix = xgb.DMatrix(np.zeros((len(label), 1)), label)
    other = {"parts": parts if valid is None else valid}
    given = {"train_ref": {"parts": parts}, "refs": [other], "Xy": matrix, "evals": []}
    if valid is not None:
        given |= {"Xy": None, "evals": [(matrix, "held out")]}
    return on_a_worker("xgboost.dask.somewhere", "find(Xy or evals[0][0], None)", **given)


def test_found_by_xgboost():
    there = frame()
    parts = parts_of(lo.attach(there.label, price=there.price))
    local = in_xgboost(parts, FRAME["label"])
    assert (local.name, local.rows, local.qid, local.groups) == ("train", N, None, False)
    np.testing.assert_array_equal(local.columns["price"], FRAME["price"])
    local = in_xgboost(parts, FRAME["label"][8:], valid=parts[2:])
    assert (local.name, local.rows) == ("held out", 4)
    np.testing.assert_array_equal(local.columns["price"], FRAME["price"][8:])
    assert on_a_worker("elsewhere", "find(None, None)", train_ref={}, refs=[]) is None


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.uint64, np.float64])
def test_rows_in_the_order_in_which_xgboost_sorts_them(dtype):
    """By its qid, which it does when the partitions of a worker are not in order; within a query as it happens."""
    data = pytest.importorskip("xgboost.dask.data")
    rng = np.random.default_rng(0)
    large = pd.DataFrame({"label": rng.normal(size=600).astype(np.float32), "price": rng.normal(size=600)})
    labels = dd.from_pandas(large, npartitions=3)
    ids = [np.repeat(first + np.arange(10), 20).astype(dtype) for first in (40, 0, 20)]
    parts = parts_of(lo.attach(labels.label, price=labels.price), *ids)
    theirs = pd.concat(data._get_worker_parts(parts)["label"])
    assert theirs.index.tolist() != large.index.tolist()
    local = in_xgboost(parts, theirs)
    np.testing.assert_array_equal(local.columns["price"], large.price[theirs.index])
    np.testing.assert_array_equal(local.qid, np.sort(np.concatenate(ids)))
    in_order = parts_of(lo.attach(labels.label, price=labels.price), *sorted(ids, key=lambda one: one[0]))
    np.testing.assert_array_equal(in_xgboost(in_order, large.label).columns["price"], large.price)


def test_xgboost_does_not_sort_by_ids_that_it_does_not_have():
    there = frame()
    parts = parts_of(lo.attach(there.label, price=there.price, qid=there["query"]))
    local = in_xgboost(parts, FRAME["label"])
    np.testing.assert_array_equal(local.columns["price"], FRAME["price"])
    np.testing.assert_array_equal(local.qid, FRAME["query"])
    assert local.groups


def test_found_by_lightgbm():
    there = frame()
    tagged = lo.attach(there.label, price=there.price, qid=there["query"])
    train, valid = types.SimpleNamespace(get_label=lambda: FRAME["label"]), types.SimpleNamespace()
    booster = types.SimpleNamespace(train_set=train, valid_sets=[valid], name_valid_sets=["valid_1"])
    parts = parts_of(tagged)
    for i, part in enumerate(parts):  # the second set that is evaluated: the first one has no rows here
        part["eval_set"] = [None, ([None], [part["label"]] if i else [])]
    given = {"list_of_parts": parts, "eval_component_idx": [1], "data": train, "booster": booster}
    local = on_a_worker("lightgbm.dask", "find(data, booster)", **given)
    assert (local.name, local.rows, local.groups) == ("train", N, True)
    np.testing.assert_array_equal(local.columns["price"], FRAME["price"])
    np.testing.assert_array_equal(local.qid, FRAME["query"])
    valid.get_label = lambda: FRAME["label"][4:]
    local = on_a_worker("lightgbm.dask", "find(data, booster)", **given | {"data": valid})
    assert (local.name, local.rows) == ("valid_1", 8)
    np.testing.assert_array_equal(local.columns["price"], FRAME["price"][4:])
    assert on_a_worker("lightgbm.dask", "find(data, booster)", **given | {"data": object()}) is None


def test_what_was_done_to_the_labels_since():
    there = frame()
    parts = parts_of(lo.attach(there.label, price=there.price))
    labels = [part["label"] for part in parts]
    assert partitions.ATTRIBUTE not in pd.concat(labels).attrs  # one Series of several
    for changed, words in (
        (labels[1][::-1], "not those that columns were attached to, or in another order"),
        (labels[1] + 1, "not those that columns were attached to, or in another order"),
        (labels[1][:3], "not those that columns were attached to, or in another order"),
        (pd.Series(np.asarray(labels[1])), "of 3 partitions of 'train' only 2 have columns"),
        (pd.concat([labels[1], labels[0]]), "of 3 partitions of 'train' only 2 have columns"),
    ):
        given = [parts[0], {"label": changed}, parts[2]]
        with pytest.raises(ValueError, match=words):
            in_xgboost(given, pd.concat([part["label"] for part in given]))
    with pytest.raises(ValueError, match="are not those that the booster has"):
        in_xgboost(parts, FRAME["label"][::-1])
    empty = {"label": pd.Series([], dtype=np.int32)}
    np.testing.assert_array_equal(in_xgboost([*parts, empty], FRAME["label"]).columns["price"], FRAME["price"])


def test_copies_share_a_tag():
    """Selecting and copying rows may copy the attributes of a Series, and columns are large."""
    there = frame()
    one = lo.attach(there.label, price=there.price).partitions[0].compute()
    tag = one.attrs[partitions.ATTRIBUTE]
    assert one.copy().attrs[partitions.ATTRIBUTE] is tag
    sent = pickle.loads(pickle.dumps(one)).attrs[partitions.ATTRIBUTE]
    assert sent.rows == tag.rows
    np.testing.assert_array_equal(sent.columns["price"], tag.columns["price"])
