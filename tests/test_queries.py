"""Reading data sets: borders, weights, columns, and the ranking kept between rounds."""

import numpy as np
import pytest

from lambda_objectives.kernels import cpu, reference
from lambda_objectives.queries import Queries, Ranking


def test_group_and_qid_give_borders():
    assert Queries.from_arrays([0] * 6, group=[1, 3, 2]).ptr.tolist() == [0, 1, 4, 6]
    assert Queries.from_arrays([0] * 6, qid=[5, 2, 2, 2, 9, 9]).ptr.tolist() == [0, 1, 4, 6]
    assert Queries.from_arrays([], group=[]).ptr.tolist() == [0]
    assert Queries.from_arrays([], qid=[]).ptr.tolist() == [0]
    assert Queries.from_arrays([1, 2]).ptr is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"group": [1, 3]}, "group must add up to the number of rows: 4 in 2 queries, 5 rows"),
        ({"group": [1, 1, 1, 1, 2]}, "to give one id a row use qid="),
        ({"group": [5, 0]}, "group must hold the sizes of the queries, whole numbers from 1: entry 1 is 0"),
        ({"group": [2.5, 2.5]}, "entry 0 is 2.5"),
        ({"group": [6, -1]}, "entry 1 is -1"),
        ({"group": ["5"]}, "group cannot be read as numbers"),
        ({"qid": [1, 1, 1]}, "qid must be one id a row"),
        ({"qid": [1, 1, np.nan, 2, 2]}, "qid is missing in row 2"),
        ({"qid": [1, 1, 2, 2, 1]}, "row 4 begins a second block"),
        ({"weights": [1, 1]}, "weights has 2 values, the data set has 5 rows"),
        ({"weights": [1, 1, 1, 1, -1]}, "weights must not be negative: row 4 is -1"),
        ({"weights": [1, 1, np.inf, 1, 1]}, "weights must be finite: row 2 is inf"),
        ({"columns": {"price": [1, 2]}}, "column 'price' has 2 values, the data set has 5 rows"),
        ({"columns": {"price": list("abcde")}}, "column 'price' cannot be read as numbers"),
        ({"columns": {"price": np.zeros((5, 2))}}, "column 'price' must be one number a row"),
        ({"columns": {"price": np.zeros(5) * 1j}}, "column 'price' cannot be read as numbers"),
    ],
)
def test_data_that_do_not_fit_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Queries.from_arrays([0, 1, 0, 1, 0], **arguments)


def test_columns_are_found_or_asked_for():
    queries = Queries.from_arrays([1, 2], columns={"price": [3, 4], "hole": [1, np.nan]})
    assert queries.column(None).tolist() == [1, 2]
    assert queries.column("price").tolist() == [3, 4]
    with pytest.raises(ValueError, match="column 'hole' must be finite: row 1 is nan"):
        queries.column("hole")
    with pytest.raises(ValueError, match=r"label='clicks': .*there: 'hole', 'price'.*attach\(data, clicks=values\)"):
        queries.column("clicks")


def test_missing_values_of_nullable_columns_are_named():
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([1, None], dtype="Int64")
    with pytest.raises(ValueError, match="column 'price'"):
        Queries.from_arrays([0, 1], columns={"price": column}).column("price")


def test_query_weights_are_the_mean_of_the_rows():
    queries = Queries.from_arrays([0, 1, 0], group=[2, 1], weights=[1, 3, 5])
    assert queries.query_weights.tolist() == [2, 5]
    assert queries.mean_over_queries(np.array([1.0, 8.0])) == pytest.approx((2 * 1 + 5 * 8) / 7)


@pytest.mark.parametrize("kernels", [cpu, reference])
def test_ranking_follows_scores_and_keeps_nothing_of_theirs(kernels):
    queries = Queries.from_arrays([0] * 5, group=[3, 2])
    ranking = Ranking(queries, kernels)
    scores = np.array([1.0, 3.0, 2.0, 0.0, 0.0])
    ranking.update(scores, ranked=True)
    assert ranking.order.tolist() == [1, 2, 0, 0, 1]
    scores[:] = [3, 1, 2, 0, 5]
    assert ranking.scores.tolist() == [1, 3, 2, 0, 0]
    ranking.update(scores.astype(np.float32), ranked=True)
    assert ranking.order.tolist() == [0, 2, 1, 1, 0]
    assert ranking.rank.tolist() == [0, 2, 1, 1, 0]


def test_scores_must_be_finite_and_one_a_row():
    ranking = Ranking(Queries.from_arrays([0, 0], group=[2]), reference)
    with pytest.raises(ValueError, match="scores must be finite: row 1 is nan"):
        ranking.update(np.array([0, np.nan]), ranked=True)
    with pytest.raises(ValueError, match=r"scores: one a row wanted.*\(2, 3\).*num_class"):
        ranking.update(np.zeros((2, 3)), ranked=True)
