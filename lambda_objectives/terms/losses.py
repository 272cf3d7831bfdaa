"""Terms over rows: one label and one score each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.queries import Queries, Ranking, weighted_mean
from lambda_objectives.terms import Exchange, Floats, Reading, check_column, no_objective, qualified


class Prepared(NamedTuple):
    """What a row loss keeps of a data set."""

    labels: Vector
    weights: Vector | None


@dataclass(frozen=True)
class SquaredError:
    """Half the squared difference of score and label, averaged over the rows by weight.

    ``value = mean of (s - y)^2 / 2,  gradient w (s - y),  Hessian w``: that of both boosters. Its metric is `mse`, the
    mean squared error without the half.

    Parameters
    ----------
    label
        Name of the column that holds the labels; None for the data set's own.

    Raises
    ------
    ValueError
        For a label that is no column's name, or holds NaN or infinity.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.SquaredError(), [1.0, 2.0], [1.0, 4.0])
    {'cost/mse': 1.0, 'mse': 2.0}
    """

    label: str | None = None

    needs_order: ClassVar[bool] = False
    link: ClassVar[str] = "identity"
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)

    @property
    def name(self) -> str:
        """mse, or price.mse for the labels of a column."""
        return qualified(self.label, "mse")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Find the labels."""
        return Prepared(queries.column(self.label), queries.weights)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        y, w = prepared
        error = ranking.scores - y
        value = weighted_mean(error * error, w) / 2
        if w is not None:
            error *= w
        grad[:] = error
        hess[:] = 1.0 if w is None else w
        return value

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the mean squared error."""
        error = ranking.scores - prepared.labels
        return {self.name: Reading(weighted_mean(error * error, prepared.weights), False)}

    def exchange(self, prepared: Prepared, ranking: Ranking) -> Exchange:
        """Dependence of the scores."""
        return Exchange(2.0, ranking.scores, 0.5)


@dataclass(frozen=True)
class LogLoss:
    """Logistic loss of labels from 0 to 1 at raw scores, averaged over the rows by weight.

    ``value = mean of log(1 + e^s) - y s,  gradient w (p - y),  Hessian w p (1 - p),  p = 1 / (1 + e^-s)``

    Parameters
    ----------
    label
        Name of the column that holds the labels; None for the data set's own.

    Raises
    ------
    ValueError
        For a label that is no column's name, or holds values outside 0 to 1.

    Notes
    -----
    Scores are log odds: `predict` returns raw scores with a custom objective, p = 1 / (1 + exp(-prediction)).

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.LogLoss(), [0.0], [1])
    {'cost/logloss': 0.693147..., 'logloss': 0.693147...}
    """

    label: str | None = None

    needs_order: ClassVar[bool] = False
    link: ClassVar[str] = "logit"
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)

    @property
    def name(self) -> str:
        """logloss, or clicked.logloss for the labels of a column."""
        return qualified(self.label, "logloss")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Find the labels and check them."""
        y = queries.column(self.label)
        wrong = (y < 0) | (y > 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"label: LogLoss takes labels from 0 to 1, row {row} is {y[row]:g}")
        return Prepared(y, queries.weights)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        y, w = prepared
        p, slope = logistic(ranking.scores)
        second = np.maximum(slope, 1e-16)
        grad[:] = p - y if w is None else w * (p - y)
        hess[:] = second if w is None else w * second
        return self._value(prepared, ranking)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the mean loss."""
        return {self.name: Reading(self._value(prepared, ranking), False)}

    def exchange(self, prepared: Prepared, ranking: Ranking) -> Exchange:
        """Dependence of the probability: its slope is the Hessian."""
        return Exchange(1.0, logistic(ranking.scores)[0], 0.5)

    def _value(self, prepared: Prepared, ranking: Ranking) -> float:
        s = ranking.scores
        return weighted_mean(np.logaddexp(0.0, s) - prepared.labels * s, prepared.weights)


def logistic(scores: Vector) -> tuple[Vector, Vector]:
    """1 / (1 + e^-s), and its slope."""
    small = np.exp(-np.abs(scores))  # e^-|s| cannot overflow
    return np.where(scores > 0, 1.0, small) / (1.0 + small), small / (1.0 + small) ** 2
