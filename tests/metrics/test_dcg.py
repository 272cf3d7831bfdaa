"""Values against the definition and against scikit-learn; swaps against tables; conventions; what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import ndcg_score

import lambda_objectives as lo
from lambda_objectives.queries import Queries
from tests.oracles import dcg, mean_metric, mean_over_ties, ndcg, queries_of
from tests.strategies import ranked_data

SEED_003 = [0, 0, 0, 1, 1, 0, 1, 1, 0, 0]  # labels of query 1830 in the order of its file
TABLE = (0.0, 0.5, 0.5, 2.0, 9.0)


def squares(y):
    return y**2


def quarter(r):
    return 0.25**r


VARIANTS = [  # metric at cut-off k, its definition
    (lambda k: lo.NDCG(k), ndcg, {}),
    (lambda k: lo.DCG(k), dcg, {}),
    (lambda k: lo.NDCG(k, gain="linear"), ndcg, {"gain": float}),
    (lambda k: lo.NDCG(k, gain=TABLE), ndcg, {"gain": lambda y: TABLE[int(y)]}),
    (lambda k: lo.NDCG(k, gain=squares), ndcg, {"gain": squares}),
    (lambda k: lo.NDCG(k, discount="reciprocal"), ndcg, {"discount": lambda r: 1 / (r + 1)}),
    (lambda k: lo.DCG(k, discount=quarter), dcg, {"discount": quarter}),
    (lambda k: lo.NDCG(k, discount=[1, 0.5, 0.5, 0.1]), ndcg, {"discount": lambda r: [1, 0.5, 0.5, 0.1, 0][min(r, 4)]}),
    (lambda k: lo.NDCG(k, empty=0.0), ndcg, {"empty": 0.0}),
    (lambda k: lo.NDCG(k, gain="linear", discount="linear") if k else lo.NDCG(k), ndcg, "linear"),
]


@pytest.mark.parametrize("k", [None, 1, 3, 50])
@pytest.mark.parametrize("variant", VARIANTS, ids=range(len(VARIANTS)))
@settings(max_examples=20, deadline=None)
@given(data=ranked_data(max_rows=12))
def test_values_equal_the_definition(variant, k, data):
    make, definition, options = variant
    if options == "linear":
        options = {"gain": float, "discount": lambda r: 1 - r / k} if k else {}
    scores, labels, sizes = data
    want = mean_metric(definition, scores, labels, sizes, k, **options)
    assert make(k)(scores, labels, group=sizes) == pytest.approx(want, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, 10, 40])
@pytest.mark.parametrize("k", [None, 1, 10])
def test_values_equal_scikit_learn_without_ties(n, k):
    rng = np.random.default_rng(n)
    scores, labels = rng.normal(size=n), rng.integers(0, 5, n).astype(float)
    labels[0] = 4
    assert lo.NDCG(k)(scores, labels, group=[n]) == pytest.approx(ndcg_score([2**labels - 1], [scores], k=k))
    assert lo.NDCG(k, gain="linear")(scores, labels, group=[n]) == pytest.approx(ndcg_score([labels], [scores], k=k))


def swap_changes(metric, scores, labels):
    """(change by table, change by evaluating the swapped list) of every pair of rows of one query."""
    n = len(labels)
    tables = metric.tables(labels, np.array([0, n]))
    discount = np.zeros(n)
    discount[: len(tables.discount)] = tables.discount
    order = np.argsort(-scores, kind="stable")
    now = metric(scores, labels, group=[n])
    for i, j in itertools.combinations(range(n), 2):
        a, b = order[i], order[j]
        swapped = labels.copy()
        swapped[[a, b]] = labels[[b, a]]
        yield (
            abs(tables.gain[a] - tables.gain[b]) * abs(discount[i] - discount[j]),
            abs(metric(scores, swapped, group=[n]) - now),
        )


def test_change_of_a_swap_by_table_equals_evaluating_again():
    count = 0
    for k, make in itertools.product((None, 1, 2, 3), (lo.NDCG, lo.DCG)):
        for n in (2, 3, 4):
            for labels in itertools.product(range(4), repeat=n):
                for table, again in swap_changes(make(k), np.linspace(1, 0, n), np.array(labels, float)):
                    assert table == pytest.approx(again, abs=1e-12), (make, k, labels)
                    count += 1
    assert count == 8 * (16 * 1 + 64 * 3 + 256 * 6)
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = rng.integers(5, 20)
        metric = lo.NDCG(int(rng.integers(1, 25)), gain="linear", discount="reciprocal")
        for table, again in swap_changes(metric, rng.normal(size=n), rng.integers(0, 9, n).astype(float)):
            assert table == pytest.approx(again, abs=1e-12)


def test_hand_made_query():
    scores = -np.arange(10.0)
    assert lo.DCG()(scores, SEED_003, group=[10]) == pytest.approx(1.4663, abs=1e-4)
    assert lo.NDCG()(scores, SEED_003, group=[10]) == pytest.approx(0.5724, abs=1e-4)
    y = np.array(SEED_003, float)
    pairs = list(itertools.combinations(range(10), 2))
    change = dict(zip(pairs, (table for table, _ in swap_changes(lo.NDCG(), scores, y)), strict=True))
    published = {(0, 3): 0.222, (0, 4): 0.239, (0, 6): 0.260, (0, 7): 0.267}
    assert {pair: round(change[pair], 3) for pair in published} == published


def test_group_and_qid_agree_and_scattered_ids_are_refused():
    scores, labels = [0.1, 0.9, 0.4, 0.3, 0.2], [1, 0, 2, 0, 1]
    want = lo.NDCG()(scores, labels, group=[2, 3])
    for qid in ([7, 7, -1, -1, -1], ["a", "a", "b", "b", "b"], np.array([1.5, 1.5, 2.5, 2.5, 2.5])):
        assert lo.NDCG()(scores, labels, qid=qid) == want
    with pytest.raises(ValueError, match=r"qid: .* row 2 begins a second block; .*argsort\(qid"):
        lo.NDCG()(scores, labels, qid=[1, 2, 1, 2, 2])
    with pytest.raises(ValueError, match=r"group= .* or qid="):
        lo.NDCG()(scores, labels)
    with pytest.raises(ValueError, match="not both"):
        lo.NDCG()(scores, labels, group=[5], qid=[1] * 5)


def test_weights_of_rows_and_of_queries():
    rng = np.random.default_rng(0)
    scores, labels, sizes = rng.normal(size=12), rng.integers(0, 3, 12), [3, 4, 5]
    w = np.array([1.0, 2.0, 5.0])
    values = [lo.NDCG()(scores[q], labels[q], group=[q.stop - q.start]) for q in queries_of(sizes)]
    want = np.average(values, weights=w)
    assert lo.NDCG()(scores, labels, group=sizes, weights=w) == pytest.approx(want)
    assert lo.NDCG()(scores, labels, group=sizes, weights=np.repeat(w, sizes)) == pytest.approx(want)
    assert lo.NDCG()(scores, labels, group=sizes, weights=[0, 0, 0]) == 0.0  # nothing counts


def test_queries_with_nothing_to_gain():
    for empty in (1.0, 0.0, 0.5):
        assert lo.NDCG(empty=empty)([1, 2], [0, 0], group=[2]) == empty
    assert lo.DCG()([1, 2], [0, 0], group=[2]) == 0.0
    assert lo.NDCG()([3.0], [2], group=[1]) == 1.0
    assert lo.NDCG()([], [], group=[]) == 0.0


def test_ties_rank_in_the_order_of_the_rows():
    assert lo.NDCG(1)([0, 0], [1, 0], group=[2]) == 1.0
    assert lo.NDCG(1)([0, 0], [0, 1], group=[2]) == 0.0


@pytest.mark.parametrize(
    ("make", "definition", "options"),
    [(lo.DCG, dcg, {}), (lo.NDCG, ndcg, {"empty": 0.5}), (lo.NDCG, ndcg, {"gain": squares, "discount": quarter})],
)
@settings(max_examples=15, deadline=None)
@given(data=ranked_data(max_queries=1, max_rows=6))
def test_mean_over_ties_is_that_over_all_orders(make, definition, options, data):
    scores, labels, sizes = data
    for k in (None, 1, 2, 4, 9):
        for tied in (scores, np.zeros(len(scores)), np.arange(len(scores)) // 2 * 1.0):
            want = mean_over_ties(definition, tied, labels, k, **options)
            assert make(k, ties="mean", **options)(tied, labels, group=sizes) == pytest.approx(want, rel=1e-12)


def test_rows_without_a_judgement_have_a_rank_and_are_worth_nothing():
    nan = float("nan")
    for metric in (lo.DCG(), lo.NDCG(2), lo.NDCG(gain=squares), lo.NDCG(ties="mean")):
        want = metric([3, 2, 1], [0, 2, 1], group=[3])
        assert metric([3, 2, 1], [nan, 2, 1], group=[3], unjudged=True) == want
    assert lo.DCG(gain=[1, 3])([2, 1], [nan, 1], group=[2], unjudged=True) == pytest.approx(3 / np.log2(3))
    assert lo.NDCG()([2, 1], [nan, nan], group=[2], unjudged=True) == 1.0


def test_every_kind_of_array_gives_the_same_and_none_is_changed():
    pandas, polars, pyarrow = (
        pytest.importorskip("pandas"),
        pytest.importorskip("polars"),
        pytest.importorskip("pyarrow"),
    )
    scores, labels, sizes = np.array([0.5, 0.25, 0.75, 1.0]), np.array([1, 0, 2, 0]), np.array([3, 1])
    want = lo.NDCG()(scores, labels, group=sizes)
    frozen = scores.copy()
    frozen.flags.writeable = False
    for s, y, g in (
        (scores.tolist(), tuple(labels.tolist()), sizes.tolist()),
        (frozen, labels.astype(np.int8), sizes.astype(np.uint32)),
        (scores.astype(np.float16), labels.astype(">f8"), sizes.astype(np.float32)),
        (np.repeat(scores, 2)[::2], labels[:, None], sizes),
        (pandas.Series(scores, index=[9, 3, 1, 0]), pandas.Series(labels, dtype="Int64"), pandas.Series(sizes)),
        (polars.Series(scores), polars.Series(labels), polars.Series(sizes)),
        (pyarrow.array(scores), pyarrow.array(labels), pyarrow.array(sizes)),
    ):
        before = np.array(s, float)
        assert lo.NDCG()(s, y, group=g) == want
        np.testing.assert_array_equal(np.array(s, float), before)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lo.NDCG(0), "k must be a whole number from 1.*found 0"),
        (lambda: lo.NDCG(-3), "k must"),
        (lambda: lo.NDCG(2.5), "k must"),
        (lambda: lo.NDCG("10"), "k must"),
        (lambda: lo.NDCG(True), "k must"),
        (lambda: lo.NDCG(gain="exp"), "gain must be 'exp2', 'linear'"),
        (lambda: lo.NDCG(gain=[0, 2, 1]), "gain: a table must not be empty, negative or falling"),
        (lambda: lo.NDCG(gain=[]), "gain: a table"),
        (lambda: lo.NDCG(gain=["a"]), "gain cannot be read as numbers"),
        (lambda: lo.NDCG(discount="root"), "discount must be 'log2'"),
        (lambda: lo.NDCG(discount=2.0), "discount must be one number a row"),
        (lambda: lo.NDCG(discount=[1, 2]), "discount: a table must not be empty, negative or rising"),
        (lambda: lo.NDCG(discount="linear"), "discount='linear'.*give k"),
        (lambda: lo.NDCG(empty=float("nan")), "empty must be a finite number"),
        (lambda: lo.DCG(ties="first"), "ties must be 'row' .* or 'mean' .*, found 'first'"),
    ],
)
def test_wrong_parameters_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("metric", "labels", "words"),
    [
        (lo.NDCG(), [0, -1], "takes no negative labels, row 1 is -1"),
        (lo.NDCG(), [0, np.nan], "labels must be finite: row 1 is nan"),
        (lo.NDCG(), [0, 2000], "gain of label 2000 .row 1. is too large"),
        (lo.NDCG(gain=[0, 1]), [0, 2], "table has entries for labels 0 to 1, row 1 has 2"),
        (lo.NDCG(gain=[0, 1]), [0, 0.5], "row 1 has 0.5"),
        (lo.NDCG(gain=np.negative), [0, 1], "must be nowhere negative"),
        (lo.NDCG(gain=lambda y: 1 / (1 + y)), [0, 1], "must not fall as the label rises"),
        (lo.NDCG(gain=lambda y: y[:1]), [0, 1], "gain: what the function returned has 1 values"),
        (lo.DCG(discount=lambda r: r), [0, 1], "discount: .* must not rise with the rank"),
        (lo.NDCG(), ["a", "b"], "labels cannot be read as numbers"),
        (lo.NDCG(), [[0, 1], [1, 0]], "labels must be one number a row"),
    ],
)
def test_labels_that_a_metric_cannot_take_are_refused(metric, labels, words):
    with pytest.raises(ValueError, match=words):
        metric([0.0, 1.0], labels, group=[2])


@pytest.mark.parametrize(
    "metric",
    [lo.NDCG(10), lo.DCG(5, gain=TABLE), lo.NDCG(gain=squares, discount=quarter)],
    ids=["plain", "a table", "functions"],
)
def test_metrics_are_values(metric, tmp_path):
    import copy
    import pickle

    for same in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), type(metric)(**vars(metric))):
        assert same == metric
        assert hash(same) == hash(metric)
    with pytest.raises(AttributeError):
        metric.k = 3
    assert type(metric).__name__ in repr(metric)


def test_names():
    assert [m.name for m in (lo.NDCG(10), lo.NDCG(), lo.DCG(3))] == ["ndcg@10", "ndcg", "dcg@3"]


def test_long_query_in_an_instant():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=100_000), rng.integers(0, 5, 100_000).astype(float)
    queries = Queries.from_arrays(labels, group=[100_000])
    assert len(queries) == 100_000
    assert lo.NDCG(10)(scores, labels, group=[100_000]) == pytest.approx(
        ndcg([labels[i] for i in np.argsort(-scores)], 10)
    )
