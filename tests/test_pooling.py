"""Several workers find what one process finds: every spec, with workers that are threads."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives import pooling
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.workers import ALONE, WorkerError, agreeing
from tests.data import Table
from tests.test_contract import OWN_WAYS, RANK, SEEDED, SHARE, SPECS
from tests.workers import together

TABLE = Table.random(36, seed=5)
N = len(TABLE)
RNG = np.random.default_rng(3)
COLUMNS = {
    "other": (TABLE.y[::-1] % 3).copy(), "share": (1 + TABLE.y) / 5.0,
    "judged": np.where(TABLE.y == 1, np.nan, TABLE.y), "price": RNG.normal(size=N) + TABLE.X[:, 0],
    "era": RNG.integers(0, 3, N) * 1.0,
}  # fmt: skip
WEIGHTS = np.repeat(TABLE.query_weights, TABLE.group)
PRICE = lo.DistanceCovariance("price")
ACROSS = [  # of rows that lie on several workers
    PRICE,
    lo.DistanceCovariance(("price", "other"), "era", weighted=True),
    lo.DistanceCovariance("price", "label"),
    lo.Pearson(within_group="era"),
    lo.Decorrelated(SHARE, "price", 2.0),
    lo.Decorrelated(RANK, ["price", lo.DistanceCovariance("other", categorical=True)], 1.0, [2.0, 0.5]),
    lo.Decorrelated(lo.Gaussian(), "price", 2.0),
    lo.AugmentedLagrangian(SHARE, [lo.Constraint(lo.DistanceCovariance("price", link="logit"), 1e-4)], rounds=8),
    lo.AugmentedLagrangian(
        RANK, [lo.Constraint(lo.DistanceCovariance("price", True), 1e-4), lo.Constraint(SHARE, 0.6)], rounds=8
    ),
    lo.WeightedSum([lo.QueryRMSE(), lo.SquaredError("price")], [1.0, 0.2]),
    lo.AugmentedLagrangian(RANK, [lo.Constraint(lo.RankNet(), 30.0)], "carry", 0.02, scale="sum"),
]
THEIRS = [spec for spec in [*SPECS, *ACROSS] if spec not in SEEDED and spec not in OWN_WAYS]
SPLITS = {"halves": (0, 18, 36), "one has none": (0, 20, 20, 36), "four": (0, 3, 17, 30, 36)}


START = np.cos(7.0 * np.arange(N))
ENDS = np.concatenate([[0], np.cumsum(TABLE.group)])


def part(first, last, workers=ALONE, weights=WEIGHTS, **more):
    """Some of the queries, as one worker has them."""
    rows = slice(ENDS[first], ENDS[last])
    if first == last:  # neither queries nor columns are known where there is no row
        return Queries(np.empty(0), None, None, {}, workers)
    named = {name: values[rows] for name, values in {**COLUMNS, **more}.items()}
    weights = None if weights is None else weights[rows]
    found = Queries.from_arrays(TABLE.y[rows], group=TABLE.group[first:last], weights=weights, columns=named)
    return dataclasses.replace(found, workers=workers)


def train(spec, queries, start, rounds=6, watch=()):
    """Rounds in which every row takes a step of its own, as a tree without a bound would grow it."""
    run = Run(spec, queries, dtype=np.float64, watch=watch)
    run.planned = rounds
    scores = np.stack([start, 0.3 * start], axis=1) if run.outputs > 1 else start
    for _ in range(rounds):
        if getattr(spec, "follow", "train") == "valid":
            run.evaluate(scores)
            run.watched = run.seen
        grad, hess = run.step(scores)
        scores = scores - 0.3 * grad / (hess + 0.5)
    readings = {name: reading.value for name, reading in run.evaluate(scores).items()}
    return run, scores, readings


@pytest.mark.filterwarnings("ignore:the dependence swings")
@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("spec", THEIRS, ids=repr)
def test_same_as_one_process(spec, split):
    alone, scores, readings = train(spec, part(0, 36), START)
    pieces = list(pairwise(split))

    def work(workers):
        first, last = pieces[workers.rank]
        return train(spec, part(first, last, workers), START[ENDS[first] : ENDS[last]])

    found = together(len(pieces), work)
    np.testing.assert_allclose(np.concatenate([own for _, own, _ in found]), scores, rtol=1e-9, atol=1e-9)
    for run, _, own in found:
        assert run.history.keys() == alone.history.keys()
        for name, values in alone.history.items():
            np.testing.assert_allclose(run.history[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
        assert own == pytest.approx(readings, rel=1e-9, abs=1e-12, nan_ok=True)
        assert run.curvature == pytest.approx(alone.curvature, rel=1e-9)
        assert run.history == found[0][0].history  # to the last bit: all of them must move alike
        assert run.state == found[0][0].state


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("spec", [RANK, SHARE], ids=["ranking", "rows"])
def test_metrics_that_are_watched_besides(spec, split):
    metrics, pieces = [lo.MAP(), lo.NDCG(2), lo.Kendall()], list(pairwise(split))
    _, scores, readings = train(spec, part(0, 36), START, watch=metrics)
    for metric in metrics:
        assert readings[metric.name] == metric(scores, TABLE.y, group=TABLE.group, weights=WEIGHTS)

    def work(workers):
        first, last = pieces[workers.rank]
        return train(spec, part(first, last, workers), START[ENDS[first] : ENDS[last]], watch=metrics)[2]

    for own in together(len(pieces), work):
        assert own == pytest.approx(readings, rel=1e-9)


def test_a_worker_without_rows_takes_scores_of_any_shape():
    def work(workers):
        run = Run(lo.WeightedSum([RANK], [2.0]), part(0, 9 if workers.rank else 0, workers), dtype=np.float64)
        grad, _ = run.step(np.zeros(ENDS[9]) if workers.rank else np.zeros((0, 0)))
        return len(grad)

    assert together(2, work) == [0, ENDS[9]]


def test_draws_differ_from_worker_to_worker():
    spec = lo.YetiRank(lo.NDCG(), draws=1)

    def work(workers):
        run = Run(spec, part(0, 8, workers), dtype=np.float64)
        return run.step(np.zeros(ENDS[8]))[0].copy()

    first, second = together(2, work)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, work(ALONE))


def test_an_error_of_one_is_an_error_of_all():
    bad = COLUMNS["share"].copy()
    bad[-1] = np.nan
    seen = []

    def work(workers):
        try:
            with agreeing(workers):
                first = 18 * workers.rank
                queries = part(first, first + 18, workers, share=bad)
                train(SHARE, queries, START[ENDS[first] : ENDS[first + 18]])
        except WorkerError as error:
            seen.append(str(error))
            raise

    with pytest.raises(ValueError, match="column 'share' must be finite"):
        together(2, work)
    assert len(seen) == 1
    assert "worker 1: ValueError: column 'share' must be finite" in seen[0]


def test_columns_must_be_the_same():
    def work(workers):
        more = {"only": np.zeros(N)} if workers.rank else {}
        return Run(PRICE, part(0, 9, workers, **more))

    with pytest.raises(ValueError, match="columns: the workers do not have the same ones"):
        together(2, work)


def test_more_rows_than_a_worker_takes_in(monkeypatch):
    monkeypatch.setattr(pooling, "LIMIT", 100)
    pieces = [(0, 18), (18, 36)]

    def work(workers, spec=PRICE):
        first, last = pieces[workers.rank]
        run = Run(spec, part(first, last, workers), dtype=np.float64)
        return run.evaluate(START[ENDS[first] : ENDS[last]])["price.dcov2"].value

    with pytest.warns(lo.LambdaObjectivesWarning, match="estimated on each of the 2 workers' rows by itself"):
        found = together(2, work)
    sizes = np.diff(ENDS[[0, 18, 36]])
    weights = [WEIGHTS[: sizes[0]].sum(), WEIGHTS[sizes[0] :].sum()]
    alone = [
        Run(PRICE, part(*piece), dtype=np.float64).evaluate(START[ENDS[piece[0]] : ENDS[piece[1]]])["price.dcov2"].value
        for piece in pieces
    ]
    assert found == pytest.approx([np.average(alone, weights=weights)] * 2, rel=1e-12)
    with pytest.raises(ValueError, match="wants the rows of all workers in one place"):
        together(2, lambda workers: work(workers, lo.RiskRank(lo.NDCG(), "share")))
