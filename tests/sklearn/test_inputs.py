"""Data frames of every kind give the model of the arrays."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import lambda_objectives as lo
from lambda_objectives import sklearn as los
from lambda_objectives.sklearn.inputs import Rows, column_names, read_columns, weights_of_queries, without
from tests.data import Table

SPEC = lo.AugmentedLagrangian(
    lo.LambdaRank(lo.NDCG(10)), [lo.Constraint(lo.LambdaRank(lo.NDCG(10), label="quality"), at_most=1.0)]
)
ESTIMATORS = {
    "LightGBM": lambda: los.LightGBMRanker(SPEC, n_estimators=10, num_leaves=7, n_jobs=1, deterministic=True),
    "XGBoost": lambda: los.XGBoostRanker(SPEC, n_estimators=10, max_depth=3, n_jobs=1),
}
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}
NAMES = list("abcde")


@pytest.fixture(scope="module")
def table():
    return Table.random(60, 0)


def column_of(table):
    return {name: table.X[:, i].copy() for i, name in enumerate(NAMES)}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("booster", ESTIMATORS)
def test_frames(booster, kind, table):
    want = ESTIMATORS[booster]().fit(table.X, table.y, group=table.group, columns=table.columns)
    make = FRAMES[kind]
    X = make(column_of(table))
    y = make({"y": table.y.copy()})["y"]
    whole = make({**column_of(table), "quality": table.columns["quality"].copy(), "qid": table.qid})
    columns = make({name: values.copy() for name, values in table.columns.items()})
    by_frame = ESTIMATORS[booster]().fit(X, y, group=table.group, columns=columns)
    by_name = ESTIMATORS[booster]().fit(whole, y, columns=["quality"], eval_set=[(whole, y)])
    for model in (by_frame, by_name):
        assert model.feature_names_in_.tolist() == NAMES
        np.testing.assert_allclose(model.predict(X), want.predict(table.X), rtol=1e-6)
    np.testing.assert_array_equal(by_name.predict(whole), by_name.predict(X))
    assert by_name.score(whole, y) == pytest.approx(table.ndcg(by_name.predict(X)))


@pytest.mark.parametrize("booster", ESTIMATORS)
@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array])
def test_sparse(booster, kind, table):
    X = np.where(np.abs(table.X) < 0.5, 0.0, table.X)
    model = ESTIMATORS[booster]().fit(kind(X), table.y, group=table.group, columns=table.columns)
    assert table.ndcg(model.predict(kind(X))) > 0.6


@pytest.mark.parametrize("booster", ESTIMATORS)
def test_categories_of_pandas(booster, table):
    """A category is told apart as such: its codes say nothing about its order."""
    rng = np.random.default_rng(0)
    city = rng.integers(0, 12, len(table))
    y = (np.isin(city, [1, 4, 6, 9]) & (rng.random(len(table)) < 0.9)) * 1.0
    X = pd.DataFrame({"city": pd.Categorical.from_codes(city, [f"c{i}" for i in range(12)])})
    spec = lo.LambdaRank(lo.NDCG(10))
    small = {"min_data_per_group": 5, "num_leaves": 3} if booster == "LightGBM" else {"max_depth": 1}
    ranker = getattr(los, booster + "Ranker")(spec, n_estimators=3, **small)
    ranker.fit(X, y, group=table.group)
    assert lo.NDCG(10)(ranker.predict(X), y, group=table.group) > 0.9


def test_pieces():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert column_names(np.zeros((2, 2))) is None
    assert column_names({"a": [1]}) is None
    assert column_names(frame) == ["a", "b"]
    assert without(frame, ["z"]) is frame
    assert list(without(frame, ["a", "z"]).columns) == ["b"]
    assert read_columns("b", frame, 2)["b"].tolist() == [3.0, 4.0]
    assert read_columns(None, frame, 2) == {}
    with pytest.raises(ValueError, match="columns"):
        read_columns({"a b": [1.0, 2.0]}, frame, 2)
    rows = Rows(None, np.zeros(4), np.array([3, 1]), np.array([2.0, 2.0, 2.0, 5.0]))
    assert weights_of_queries(rows).tolist() == [2.0, 5.0]
    assert weights_of_queries(Rows(None, np.zeros(4), np.array([3, 1]), np.array([2.0, 2.0, 1.0, 5.0]))) is None
