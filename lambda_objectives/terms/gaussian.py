"""A term over rows with two scores each: location and scale of a normal distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.queries import Queries, Ranking, weighted_mean
from lambda_objectives.terms import Exchange, Floats, Reading, check_column, no_objective, qualified
from lambda_objectives.terms.losses import Prepared

CONSTANT = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Gaussian:
    """Maximum likelihood of a normal distribution: two scores a row, the mean m and the logarithm of the deviation d.

    With ``z = (y - m) / e^d`` ::

        value  mean of  z^2 / 2 + d + log(2 pi) / 2,    minus the log-likelihood of a row
        grad   of m:  -w z / e^d        of d:  w (1 - z^2)
        hess   of m:   w / e^(2 d)      of d:  2 w

    The Hessian is what it is on average over y (Fisher's information), so that no row's d is pushed without a brake
    where z is near 0. Its metric is `gaussian`, the mean log-likelihood; more is better.

    Parameters
    ----------
    label
        Name of the column that holds the labels; None for the data set's own.

    Raises
    ------
    ValueError
        For a label that is no column's name, or holds NaN or infinity; for scores that are not two a row.

    Notes
    -----
    Scores are an (n, 2) array. LightGBM from 4.0 and XGBoost take ``num_class=2``; XGBoost also takes a label of two
    equal columns. Training begins at mean 0 and deviation 1: standardise the labels, or start elsewhere by
    `init_score` or `base_margin`. Terms beside it, dependence among them, work on the mean.

    References
    ----------
    Rigby and Stasinopoulos (2005), "Generalized additive models for location, scale and shape"; the Hessian as in Duan
    et al. (2020), "NGBoost", section 3.2.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.Gaussian(), [[0.0, 0.0], [1.0, 0.0]], [0.0, 1.0])
    {'cost/gaussian': 0.918938..., 'gaussian': -0.918938...}
    """

    label: str | None = None

    needs_order: ClassVar[bool] = False
    outputs: ClassVar[int] = 2
    link: ClassVar[str] = "identity"
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)

    @property
    def name(self) -> str:
        """gaussian, or price.gaussian for the labels of a column."""
        return qualified(self.label, "gaussian")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Find the labels."""
        return Prepared(queries.column(self.label), queries.weights)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, those of the mean first; return the value."""
        n = len(prepared.labels)
        weights = 1.0 if prepared.weights is None else prepared.weights
        z, precision = _standardised(prepared.labels, ranking)
        grad[:n] = -weights * z * precision
        grad[n:] = weights * (1.0 - z * z)
        hess[:n] = weights * precision**2
        hess[n:] = 2.0 * weights
        return self._value(prepared, ranking)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the mean log-likelihood."""
        return {self.name: Reading(0.0 - self._value(prepared, ranking), True)}

    def exchange(self, prepared: Prepared, ranking: Ranking) -> Exchange:
        """Dependence of the mean, at the mean precision: the Hessian is that where the deviation is constant."""
        precision = np.exp(-2.0 * ranking.outputs[1])
        return Exchange(-1.0, ranking.scores, float(precision.mean()) / 2 if len(precision) else 0.0)

    def _value(self, prepared: Prepared, ranking: Ranking) -> float:
        z, _ = _standardised(prepared.labels, ranking)
        return weighted_mean(z * z / 2 + ranking.outputs[1] + CONSTANT, prepared.weights)


def _standardised(labels: Vector, ranking: Ranking) -> tuple[Vector, Vector]:
    """z, and 1 / deviation; infinity is refused where the gradient is checked, by name."""
    mean, log_deviation = ranking.outputs
    with np.errstate(over="ignore", invalid="ignore"):
        precision = np.exp(-log_deviation)
        return (labels - mean) * precision, precision
