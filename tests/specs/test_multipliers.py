"""The rules by which multipliers move, as functions of numbers."""

import copy
import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lambda_objectives.specs import multipliers
from lambda_objectives.specs.multipliers import Aim, Course, auto, carry, relative_excess, reset

NUMBERS = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("alpha", "violation", "mu", "carried", "emptied"),
    [
        (0.0, 0.5, 2.0, 1.0, 1.0),
        (3.0, 0.5, 2.0, 4.0, 4.0),
        (3.0, -0.5, 2.0, 2.0, 0.0),
        (0.5, -0.5, 2.0, 0.0, 0.0),
        (3.0, 0.0, 2.0, 3.0, 3.0),
        (3.0, 0.0, 1e9, 3.0, 3.0),
    ],
)
def test_equations_13_and_14(alpha, violation, mu, carried, emptied):
    assert carry(alpha, violation, mu) == carried
    assert reset(alpha, violation, mu) == emptied


@given(st.floats(0, 1e6), NUMBERS, st.floats(1e-6, 1e6))
@example(0.0, -0.0, 1.0)
def test_multipliers_are_never_negative_and_differ_only_below_the_bound(alpha, violation, mu):
    assert carry(alpha, violation, mu) >= 0
    assert reset(alpha, violation, mu) >= 0
    if violation >= 0:
        assert carry(alpha, violation, mu) == reset(alpha, violation, mu) >= alpha
    else:
        assert reset(alpha, violation, mu) == 0
        assert carry(alpha, violation, mu) <= alpha


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_excess_is_above_0_where_a_bound_is_broken(value, bound):
    assert relative_excess(1, value, bound, bound) == pytest.approx(math.log(value / bound))
    for sign in (1, -1):
        assert (relative_excess(sign, value, bound, bound) > 0) == (sign * math.log(value / bound) > 0)
    near = bound * (1 + 1e-6)
    assert relative_excess(1, near, bound, bound) == pytest.approx((near - bound) / bound, rel=1e-5)


@pytest.mark.parametrize(("value", "bound"), [(0.0, 0.5), (0.5, 0.0), (-1.0, -2.0), (-1.0, 0.5), (0.5, -1.0)])
def test_excess_where_there_are_no_logarithms(value, bound):
    for sign in (1, -1):
        assert relative_excess(sign, value, bound, 4.0) == sign * (value - bound) / 4.0


# ----------------------------------------------------------------------------------------------------------------- auto


@pytest.fixture
def no_turns(monkeypatch):
    """Trees that do not take turns: the multipliers are those that the controller has found."""
    monkeypatch.setattr(multipliers, "TURN", 0.0)


def begun(constraints=1):
    """The state before the first round, as AugmentedLagrangian makes it."""
    return [0.0] * constraints, [copy.deepcopy(multipliers.START) for _ in range(constraints)]


def walk(excesses, *, land=20, rate=0.1, tighten=None, primary=2.0, cost=0.5, gain=1.0, begin=None):
    """Multipliers of one constraint by round, and the last state."""
    alphas, states = begin or begun()
    history = []
    for number, excess in enumerate(excesses):
        course = Course(number, land, rate, tighten, primary, primary, number)
        alphas, states = auto(course, [Aim(float(excess), cost, cost, gain)], alphas, states)
        history.append(alphas[0])
    return history, (alphas, states)


EXCESSES = st.lists(st.one_of(st.floats(-5, 5), st.floats(-1e-3, 1e-3)), min_size=1, max_size=60)


@given(EXCESSES, st.floats(0.01, 1.0), st.integers(0, 40), st.sampled_from([None, 0.0, 0.005]), st.floats(0.1, 10.0))
def test_multipliers_stay_within_bounds(excesses, rate, land, tighten, gain):
    """From 0 to a fixed number of primary costs a cost, whatever comes."""
    walked, _ = walk(excesses, rate=rate, land=land, tighten=tighten, gain=gain)
    most, _ = walk([50.0] * 300, land=0)
    assert all(math.isfinite(alpha) and 0 <= alpha <= max(most) * (1 + 1e-9) for alpha in walked)


@pytest.mark.usefixtures("no_turns")
def test_a_bound_out_of_reach_leaves_the_multiplier_at_its_largest():
    walked, _ = walk([0.7] * 300)
    assert walked[-1] == walked[-50] == max(walked) > 0
    larger, _ = walk([70.0] * 600)
    assert larger[-1] == pytest.approx(walked[-1], rel=1e-9)


@given(st.lists(st.floats(-3.0, -0.05), min_size=1, max_size=60), st.floats(0.01, 1.0))
def test_slack_bounds_have_no_multiplier(excesses, rate):
    assert set(walk(excesses, rate=rate)[0]) == {0.0}


def test_multipliers_fall_back_to_0_once_the_bound_is_slack():
    walked, _ = walk([0.3] * 20 + [-0.3] * 200)
    assert max(walked) > 0
    assert walked[-1] == 0


@pytest.mark.usefixtures("no_turns")
def test_multipliers_rise_while_a_bound_is_broken_after_landing():
    walked, _ = walk([0.01] * 60, land=1, tighten=0.0)
    late = np.diff(walked[5:40])
    assert (late >= 0).all()
    assert late.max() > 0


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_multipliers_are_in_units_of_the_primary_for_the_constraint(unit):
    excesses = np.random.default_rng(0).normal(0.01, 0.02, 40)
    plain, _ = walk(excesses)
    dearer, _ = walk(excesses, primary=2.0 * unit)
    cheaper, _ = walk(excesses, cost=0.5 * unit)
    np.testing.assert_allclose(dearer, np.multiply(plain, unit), rtol=1e-12)
    np.testing.assert_allclose(cheaper, np.divide(plain, unit), rtol=1e-12)


def test_what_is_given_stays_as_it_is_and_the_answer_depends_on_nothing_else():
    _, (alphas, states) = walk([0.1, 0.05, -0.01])
    kept = copy.deepcopy((alphas, states))
    course, aims = Course(3, 10, 0.1, None, 2.0, 2.0, 3), [Aim(0.02, 0.5, 0.5, 1.0)]
    first = auto(course, aims, alphas, states)
    assert (alphas, states) == kept
    assert auto(course, aims, alphas, states) == first


def test_state_goes_through_json():
    excesses = np.random.default_rng(1).normal(0.01, 0.05, 40)
    whole, _ = walk(excesses)
    half, saved = walk(excesses[:20])
    alphas, states = json.loads(json.dumps(saved, allow_nan=False))
    for number, excess in enumerate(excesses[20:], 20):
        alphas, states = auto(
            Course(number, 20, 0.1, None, 2.0, 2.0, number), [Aim(float(excess), 0.5, 0.5, 1.0)], alphas, states
        )
        half += alphas
    assert half == whole


@pytest.mark.usefixtures("no_turns")
def test_constraints_do_not_hear_of_each_other_but_for_their_number():
    aims = [[Aim(0.1, 0.5, 0.5, 1.0), Aim(e, 0.2, 0.2, 1.0), Aim(-1.0, 0.1, 0.1, 1.0)] for e in (0.3, -0.5, 0.2)]
    alphas, states = begun(3)
    swapped_alphas, swapped_states = begun(3)
    for number, (a, b, c) in enumerate(aims):
        course = Course(number, 10, 0.1, None, 2.0, 2.0, number)
        alphas, states = auto(course, [a, b, c], alphas, states)
        swapped_alphas, swapped_states = auto(course, [c, a, b], swapped_alphas, swapped_states)
        assert [swapped_alphas[i] for i in (1, 2, 0)] == alphas
    assert alphas[0] > 0
    assert alphas[2] == 0


def test_neighbouring_constraints_take_turns():
    """Every second tree is more one's than the other's; two trees together are what there would be without turns."""
    aims = [Aim(0.3, 0.5, 0.5, 1.0), Aim(0.3, 0.5, 0.5, 1.0)]
    alphas, states = begun(2)
    table = []
    for number in range(300):
        alphas, states = auto(Course(number, 10, 0.1, None, 2.0, 2.0, number), aims, alphas, states)
        table.append(alphas)
    late = np.array(table[-20:])
    assert set((late[:, 0] > late[:, 1])[::2]) == {True}
    assert set((late[:, 0] < late[:, 1])[1::2]) == {True}
    means = (late[1:] + late[:-1]) / 2
    np.testing.assert_allclose(means, means[0, 0], rtol=1e-9)


def test_excess_of_costs_that_reach_0_is_a_share_below_the_bound():
    assert relative_excess(1, 0.3, 0.1, 0.1, True) == pytest.approx(math.log(3))
    for value in (0.09, 0.01, 0.0, -0.05):  # never falls as the value rises, on either side of 0
        assert relative_excess(1, value, 0.1, 0.1, True) == pytest.approx(value / 0.1 - 1)
    assert relative_excess(1, 0.3, 0.0, 2.0, True) == 0.15


def test_costs_that_reach_0_have_a_unit_and_a_limit_of_their_own():
    """The same course for any unit, whatever the primary costs; and no more than trees can follow."""

    def alphas(full, primary, rounds=60):
        a, states = [0.0], [dict(multipliers.START)]
        for number in range(rounds):
            course = Course(number, 20, 0.1, None, primary, primary, number)
            a, states = auto(course, [Aim(2.0, 0.5, 0.05, 1.0, full)], a, states)
            yield a[0]

    one = np.array(list(alphas(1.0, 3.0)))
    np.testing.assert_allclose(list(alphas(7.0, 1e4)), 7 * one, rtol=1e-12)
    most = multipliers.FULL / 0.1 * (1 + multipliers.TURN)
    assert max(alphas(1.0, 3.0, 3000)) == pytest.approx(most)


def test_jumps_of_a_metric_far_above_its_bound_do_not_raise_a_multiplier():
    """As on few validation queries: nothing rises where more than a tenth of the bound is left, on whatever day."""
    rng = np.random.default_rng(0)
    excesses = np.concatenate([np.linspace(0.05, -0.02, 30), -0.3 + 0.1 * rng.normal(size=200).clip(-1.5, 1.5)])
    alphas, _ = walk(excesses, rate=0.05)
    assert max(alphas[:40]) > 0
    assert not any(alphas[60:])
