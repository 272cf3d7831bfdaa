"""What several tests of terms do: rounds of a run in either precision, and comparing one with an oracle's."""

import json

import numpy as np
import pytest

from lambda_objectives.queries import Queries
from lambda_objectives.run import Run


def queries(labels, sizes, weights=None, **columns):
    return Queries.from_arrays(labels, group=sizes, weights=weights, columns=columns)


def rounds(term, data, scores, **options):
    """Gradients and Hessians of a round for each entry of scores, (rounds, 2, n), and the run."""
    run = Run(term, data, **options)
    return np.array([np.array(run.step(s)) for s in scores]), run


def assert_round(term, data, scores, want, precisions=(np.float64, np.float32)):
    """Gradient, Hessian and the queries' mean cost of the first round are those wanted."""
    for dtype in precisions:
        got, run = rounds(term, data, [np.asarray(scores)], dtype=dtype)
        tolerance = 1e-9 if dtype == np.float64 else 2e-5
        for name, a, b in zip(("gradient", "Hessian"), got[0], want, strict=False):
            largest = np.abs(b).max()
            np.testing.assert_allclose(
                a, b, rtol=tolerance, atol=tolerance * largest + 1e-12, err_msg=f"{name}, {term!r}"
            )
        cost = run.history[f"cost/{term.name}"][0]
        assert cost == pytest.approx(want[2], rel=max(tolerance, 1e-9), abs=1e-9 if dtype == np.float64 else 1e-5)


def assert_same_draws(term, data, scores):
    """A few rounds are the same bit for bit on any number of threads, and when taken up again half-way."""
    want, run = rounds(term, data, scores, threads=1)
    for threads in (2, 5):
        got, other = rounds(term, data, scores, threads=threads)
        assert len(other.work.ranking.parts) > threads  # or nothing would be shared
        np.testing.assert_array_equal(got, want)
        assert other.history == run.history
    half = len(scores) // 2
    begun, first = rounds(term, data, scores[:half])
    ended, last = rounds(term, data, scores[half:], state=json.loads(json.dumps(first.state)))
    np.testing.assert_array_equal(np.concatenate([begun, ended]), want)
    assert last.state == run.state
    assert {name: values + last.history[name] for name, values in first.history.items()} == run.history


def many_queries(seed=0, longest=120, count=1200, **columns):
    """Enough rows for several threads, and scores for four rounds."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, count)
    n = int(sizes.sum())
    extra = {name: make(rng, n) for name, make in columns.items()}
    data = queries(rng.integers(0, 5, n), sizes, rng.random(n), **extra)
    return data, [rng.normal(size=n) for _ in range(4)]


def assert_mean(samples, want, slack=4.5):
    """The mean of samples (rounds, n) is what is wanted, within its standard error, which is small."""
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    assert error.max() < 0.05 * np.abs(want).max()
    np.testing.assert_array_less(np.abs(mean - want), slack * error + 1e-12)
