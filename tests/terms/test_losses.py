"""Row losses: slopes, weights, extremes, what is refused."""

import numpy as np
import pytest

import lambda_objectives as lo

TERMS = [lo.SquaredError(), lo.LogLoss()]


@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.0, 2.5, 1.0, 3.0])], ids=["plain", "weighted"])
@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_gradient_and_hessian_are_slopes(term, weights):
    scores, labels = np.array([-2.0, -0.5, 0.0, 1.0, 3.0]), np.array([0.0, 1.0, 0.25, 1.0, 0.0])
    grad, hess = lo.gradient(term, scores, labels, weights=weights)
    total = 5.0 if weights is None else weights.sum()
    step = 1e-4
    for i in range(5):
        move = np.zeros(5)
        move[i] = step
        high, now, low = (
            total * lo.evaluate(term, s, labels, weights=weights)[f"cost/{term.name}"]
            for s in (scores + move, scores, scores - move)
        )
        assert grad[i] == pytest.approx((high - low) / (2 * step), abs=1e-7)
        assert hess[i] == pytest.approx((high - 2 * now + low) / step**2, abs=1e-6)


def test_values():
    assert lo.evaluate(lo.SquaredError(), [1, 2], [1, 4]) == {"cost/mse": 1.0, "mse": 2.0}
    assert lo.evaluate(lo.SquaredError(), [1, 2], [1, 4], weights=[3, 1])["mse"] == 1.0
    assert lo.evaluate(lo.LogLoss(), [0.0], [1])["logloss"] == pytest.approx(np.log(2))
    assert lo.evaluate(lo.SquaredError(label="x"), [1.0], [0], x=[3.0]) == {"cost/x.mse": 2.0, "x.mse": 4.0}


def test_log_loss_at_extreme_scores():
    scores, labels = np.array([-1e4, 1e4, -1e4, 1e4]), np.array([0.0, 1.0, 1.0, 0.0])
    grad, hess = lo.gradient(lo.LogLoss(), scores, labels)
    np.testing.assert_array_equal(grad, [0, 0, -1, 1])
    assert (hess > 0).all()
    assert lo.evaluate(lo.LogLoss(), scores, labels)["logloss"] == pytest.approx(5e3)


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_no_rows(term):
    grad, hess = lo.gradient(term, [], [])
    assert len(grad) == len(hess) == 0
    assert lo.evaluate(term, [], [])[term.name] == 0.0


def test_labels_outside_0_to_1_are_refused():
    with pytest.raises(ValueError, match="label: LogLoss takes labels from 0 to 1, row 1 is 2"):
        lo.gradient(lo.LogLoss(), [0, 0], [1, 2])
    with pytest.raises(ValueError, match="label must be a column's name"):
        lo.SquaredError(label="")
