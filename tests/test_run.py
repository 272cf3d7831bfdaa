"""A run: the rounds it logs, its state, the buffers it keeps, its errors."""

import json

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.kernels import reference
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run

SPEC = lo.WeightedSum([lo.LambdaRank(lo.NDCG(5)), lo.SquaredError()], weights=[1.0, 0.1])


@pytest.fixture
def queries():
    rng = np.random.default_rng(0)
    return Queries.from_arrays(rng.integers(0, 4, 50), group=[20, 1, 29], weights=rng.random(50))


def walk(queries, rounds=6):
    rng = np.random.default_rng(1)
    scores = np.zeros(len(queries))
    for _ in range(rounds):
        yield scores.copy()
        scores += rng.normal(size=len(queries))


def test_history_has_one_entry_a_round_of_every_cost_and_metric(queries):
    run = Run(SPEC, queries)
    for scores in walk(queries):
        run.step(scores)
    assert list(run.history) == ["cost/ndcg@5", "ndcg@5", "cost/mse", "mse"]
    for i, scores in enumerate(walk(queries)):
        want = lo.evaluate(SPEC, scores, queries.labels, group=[20, 1, 29], weights=queries.weights)
        assert {name: values[i] for name, values in run.history.items()} == pytest.approx(want, rel=1e-5)


def test_single_precision_equals_double_and_compiled_equals_reference(queries):
    runs = [
        Run(SPEC, queries),
        Run(SPEC, queries, dtype=np.float64),
        Run(SPEC, queries, dtype=np.float64, kernels=reference),
    ]
    for scores in walk(queries):
        single, double, plain = (run.step(scores) for run in runs)
        for i in (0, 1):
            assert single[i].dtype == np.float32
            np.testing.assert_allclose(double[i], plain[i], rtol=1e-10, atol=1e-13)
            np.testing.assert_allclose(single[i], double[i], rtol=1e-4, atol=1e-6)


def test_evaluating_leaves_no_trace(queries):
    run, other = Run(SPEC, queries), Run(SPEC, queries)
    for scores in walk(queries):
        first = [a.copy() for a in run.step(scores)]
        run.evaluate(-scores)
        second = other.step(scores)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))
    assert run.history == other.history


def test_state_goes_through_json_and_belongs_to_its_spec(queries):
    run = Run(SPEC, queries)
    for scores in walk(queries, 3):
        run.step(scores)
    state = json.loads(json.dumps(run.state))
    assert Run(SPEC, queries, state=state).rounds == 3
    with pytest.raises(ValueError, match="state belongs to another spec"):
        Run(lo.RankNet(), queries, state=state)
    with pytest.raises(ValueError, match="state must be what"):
        Run(SPEC, queries, state={"rounds": 3})


def test_overflow_is_named(queries):
    with pytest.raises(ValueError, match=r"gradient .*must be finite: row 0 is"), np.errstate(over="ignore"):
        Run(lo.SquaredError(), queries).step(np.full(50, 1e300))


def test_ranking_terms_want_queries():
    with pytest.raises(ValueError, match="a ranking term needs queries"):
        Run(lo.RankNet(), Queries.from_arrays([0, 1]))
    assert len(Run(lo.SquaredError(), Queries.from_arrays([0, 1])).step(np.zeros(2))[0]) == 2
