"""A run: the rounds it logs, its state, the buffers it keeps, its errors."""

import dataclasses
import json
from typing import ClassVar

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


# ------------------------------------------------------------------------------------------------- terms that learn


@dataclasses.dataclass(frozen=True)
class Drift:
    """Squared error from a target that learning moves up by a step a round."""

    step: float = 1.0
    name: ClassVar[str] = "drift"
    needs_order: ClassVar[bool] = False

    def prepare(self, queries, dtype):
        return len(queries)

    def start(self, prepared):
        return {"target": 0.0, "rows": prepared}

    def gradient(self, prepared, ranking, grad, hess):
        grad[:], hess[:] = ranking.scores, 1.0
        return float((grad**2).mean() / 2)

    def learn(self, prepared, ranking, state, grad, hess):
        grad[:], hess[:] = ranking.scores - state["target"], 1.0
        return float((grad**2).mean() / 2), {**state, "target": state["target"] + self.step}

    def readings(self, prepared, ranking):
        return {}


def test_a_term_that_learns_is_handed_the_state_it_returned(queries):
    run = Run(Drift(), queries)
    assert run.state["terms"] == {"drift": {"target": 0.0, "rows": 50}}
    for i in range(4):
        grad, _ = run.step(np.zeros(50))
        np.testing.assert_array_equal(grad, -i)
        assert run.state["terms"]["drift"]["target"] == i + 1
    assert run.history["cost/drift"] == [0.0, 0.5, 2.0, 4.5]


def test_evaluating_does_not_learn(queries):
    run = Run(Drift(), queries)
    run.step(np.zeros(50))
    before = run.state
    assert run.evaluate(np.full(50, 2.0))["cost/drift"].value == 2.0  # by its gradient, without a state
    assert run.state == before
    np.testing.assert_array_equal(run.step(np.zeros(50))[0], -1)


def test_a_state_that_was_handed_out_does_not_change(queries):
    run = Run(Drift(), queries)
    state = run.state
    run.step(np.zeros(50))
    assert state["terms"]["drift"]["target"] == 0.0
    other = Run(Drift(), queries, state=state)
    other.step(np.zeros(50))
    assert state["terms"]["drift"]["target"] == 0.0


def test_terms_of_the_same_name_learn_each_for_itself(queries):
    run = Run(lo.WeightedSum([Drift(), lo.SquaredError(), Drift(10.0)], weights=[1.0, 0.0, 2.0]), queries)
    for _ in range(2):
        grad, _ = run.step(np.zeros(50))
    assert {name: state["target"] for name, state in run.state["terms"].items()} == {"drift": 2.0, "drift-2": 20.0}
    np.testing.assert_array_equal(grad, -1 - 2 * 10)


def test_what_was_learnt_goes_through_json_and_release(queries):
    spec = lo.WeightedSum([Drift(), Drift(10.0)], weights=[1.0, 1.0])
    run = Run(spec, queries)
    run.step(np.zeros(50))
    other = Run(spec, queries, state=json.loads(json.dumps(run.state)))
    run.release()
    run.bind(queries)
    for _ in range(2):
        np.testing.assert_array_equal(other.step(np.zeros(50))[0], run.step(np.zeros(50))[0])
    assert other.state == run.state
    assert run.state["terms"]["drift"]["target"] == 3.0


def test_terms_that_do_not_learn_have_no_state(queries):
    assert Run(SPEC, queries).state["terms"] == {}
