"""What the peers' kernels are made of."""

import math
import random

import numpy as np

from lambda_objectives.kernels.peers import ideal_sums, log2_discounts, log_factor, softplus
from lambda_objectives.kernels.peers_lightgbm import _table, jumped
from lambda_objectives.kernels.peers_xgboost import _draw


def test_a_jump_is_many_steps():
    state = 5
    for steps in range(50):
        assert jumped(5, steps) == state
        state = (state * 214013 + 2531011) % 2**32
    assert jumped(jumped(7, 10**6), 10**9) == jumped(7, 10**6 + 10**9)


def test_table_is_the_logistic_function_at_the_left_edge_of_a_bin():
    for sigma in (0.5, 1.0, 3.0):
        width = 50 / sigma / 2**20
        for x in np.linspace(-30, 30, 101) / sigma:
            inside = min(max(x, -25 / sigma), 25 / sigma)
            low, high = (1 / (1 + math.exp(sigma * (inside + step))) for step in (0.0, -1.001 * width))
            assert low * (1 - 1e-12) <= _table(x, sigma) <= high


def test_draws_are_even_and_in_range():
    state, counts = 12345, np.zeros(7)
    for _ in range(7000):
        number, state = _draw(state, 7)
        counts[number] += 1
    assert abs(counts - 1000).max() < 150
    # the standard gives the 10,000th number of minstd_rand from state 1
    state = 1
    for _ in range(10_000):
        _, state = _draw(state, 2**31 - 3)
    assert state == 399268537


def test_small_parts():
    rng = random.Random(0)
    for x in [0.0, 1e-9, 700.0, -800.0, *(rng.gauss(0, 5) for _ in range(20))]:
        assert math.isclose(softplus(x), np.logaddexp(0, x), rel_tol=1e-14)
    assert math.isfinite(softplus(math.inf))
    assert log_factor(0.0) == 1.0
    assert math.isclose(log_factor(3.0), 2 / 3)
    labels, ptr = np.array([0.0, 2.0, 1.0, 1.0]), np.array([0, 3, 4])
    sums = ideal_sums(labels, labels, log2_discounts(3), ptr, 2)
    np.testing.assert_allclose(sums, [2 + 1 / math.log2(3), 1.0])
