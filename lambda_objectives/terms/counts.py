"""Terms over rows for counts and amounts: the score is the logarithm of the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector
from lambda_objectives.metrics import check_number
from lambda_objectives.queries import Queries, Ranking, weighted_mean
from lambda_objectives.terms import Exchange, Floats, Reading, check_column, no_objective, qualified
from lambda_objectives.terms.losses import Prepared


@dataclass(frozen=True)
class Poisson:
    """Half the Poisson deviance of counts whose mean is e^score, averaged over the rows by weight.

    ``value = mean of y log(y / m) - (y - m),  gradient w (m - y),  Hessian w m,  m = e^s``

    Its metric is `poisson`, the mean deviance, twice the value.

    Parameters
    ----------
    label
        Name of the column that holds the labels, numbers from 0; None for the data set's own.

    Raises
    ------
    ValueError
        For a label that is no column's name, or holds negative numbers.

    Notes
    -----
    The gradient is that of both boosters' `poisson` and `count:poisson`; these make the Hessian larger by
    ``e^(max_delta_step)``, .7 unless set, to damp steps where counts are few. Exposure: give its logarithm as
    `init_score` or `base_margin`. `predict` returns raw scores with a custom objective: the mean is
    ``exp(prediction)``.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.Poisson(), [0.0, 0.0], [1, 2])
    {'cost/poisson': 0.193147..., 'poisson': 0.386294...}
    """

    label: str | None = None

    needs_order: ClassVar[bool] = False
    link: ClassVar[str] = "log"
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)

    @property
    def name(self) -> str:
        """poisson, or clicks.poisson for the labels of a column."""
        return qualified(self.label, "poisson")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Find the labels and check them."""
        return _prepare(self, queries, zero=True)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        mean = exponential(ranking.scores)
        _write(prepared, mean - prepared.labels, mean, grad, hess)
        return self._value(prepared, ranking)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the mean deviance."""
        return {self.name: Reading(2.0 * self._value(prepared, ranking), False)}

    def exchange(self, prepared: Prepared, ranking: Ranking) -> Exchange:
        """Dependence of the mean: its slope is the Hessian."""
        return Exchange(2.0, exponential(ranking.scores), 0.5)

    def _value(self, prepared: Prepared, ranking: Ranking) -> float:
        y, s = prepared.labels, ranking.scores
        return weighted_mean(y * (_log(y) - s) - y + exponential(s), prepared.weights)


@dataclass(frozen=True)
class Gamma:
    """Half the gamma deviance of amounts whose mean is e^score, averaged over the rows by weight.

    ``value = mean of (y / m - 1) - log(y / m),  gradient w (1 - y / m),  Hessian w y / m,  m = e^s``

    Its metric is `gamma`, the mean deviance, twice the value.

    Parameters
    ----------
    label
        Name of the column that holds the labels, numbers above 0; None for the data set's own.

    Raises
    ------
    ValueError
        For a label that is no column's name, or holds numbers that are not above 0.

    Notes
    -----
    Gradient and Hessian are those of LightGBM's `gamma` and XGBoost's `reg:gamma`. The mean is ``exp(prediction)``.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.Gamma(), [0.0], [2])
    {'cost/gamma': 0.306852..., 'gamma': 0.613705...}
    """

    label: str | None = None

    needs_order: ClassVar[bool] = False
    link: ClassVar[str] = "log"
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_column("label", self.label)

    @property
    def name(self) -> str:
        """gamma, or claim.gamma for the labels of a column."""
        return qualified(self.label, "gamma")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Find the labels and check them."""
        return _prepare(self, queries, zero=False)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        ratio = exponential(_log(prepared.labels) - ranking.scores)
        _write(prepared, 1.0 - ratio, ratio, grad, hess)
        return self._value(prepared, ranking)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the mean deviance."""
        return {self.name: Reading(2.0 * self._value(prepared, ranking), False)}

    def exchange(self, prepared: Prepared, ranking: Ranking) -> Exchange:
        """Dependence of the scores: the Hessian is 1 where the fit is calibrated."""
        return Exchange(2.0, ranking.scores, 0.5)

    def _value(self, prepared: Prepared, ranking: Ranking) -> float:
        log_ratio = _log(prepared.labels) - ranking.scores
        return weighted_mean(exponential(log_ratio) - 1.0 - log_ratio, prepared.weights)


@dataclass(frozen=True)
class Tweedie:
    """Half the Tweedie deviance of amounts that are often 0, averaged over the rows by weight.

    With ``m = e^s`` ::

        value  mean of  y^(2 - rho) / ((1 - rho) (2 - rho)) - y m^(1 - rho) / (1 - rho) + m^(2 - rho) / (2 - rho)
        grad   w (m^(2 - rho) - y m^(1 - rho))
        hess   w ((2 - rho) m^(2 - rho) + (rho - 1) y m^(1 - rho))

    Its metric is `tweedie@1.5`, by its rho: the mean deviance, twice the value.

    Parameters
    ----------
    rho
        Power of the mean to which the variance is proportional, between 1 (Poisson) and 2 (gamma).
    label
        Name of the column that holds the labels, numbers from 0; None for the data set's own.

    Raises
    ------
    ValueError
        For a rho out of range; for a label that is no column's name, or holds negative numbers.

    Notes
    -----
    Gradient and Hessian are those of LightGBM's `tweedie` and XGBoost's `reg:tweedie`, whose `tweedie_variance_power`
    is rho. The mean is ``exp(prediction)``.

    References
    ----------
    Jorgensen (1987), "Exponential dispersion models".

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.Tweedie(1.5), [0.0, 0.0], [0, 1])
    {'cost/tweedie@1.5': 1.0, 'tweedie@1.5': 2.0}
    """

    rho: float = 1.5
    label: str | None = None

    needs_order: ClassVar[bool] = False
    link: ClassVar[str] = "log"
    __call__ = no_objective

    def __post_init__(self) -> None:
        check_number("rho", self.rho)
        if not 1 < self.rho < 2:
            raise ValueError(
                f"rho must lie between 1 and 2, found {self.rho!r}: for 1 there is Poisson(), for 2 Gamma()"
            )
        check_column("label", self.label)

    @property
    def name(self) -> str:
        """tweedie@1.5, or claim.tweedie@1.5 for the labels of a column."""
        return qualified(self.label, f"tweedie@{self.rho:g}")

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Find the labels and check them."""
        return _prepare(self, queries, zero=True)

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the value."""
        low, high = self._powers(prepared, ranking)
        _write(prepared, high - low, (2.0 - self.rho) * high + (self.rho - 1.0) * low, grad, hess)
        return self._value(prepared, ranking)

    def readings(self, prepared: Prepared, ranking: Ranking) -> dict[str, Reading]:
        """Return the mean deviance."""
        return {self.name: Reading(2.0 * self._value(prepared, ranking), False)}

    def exchange(self, prepared: Prepared, ranking: Ranking) -> Exchange:
        """Dependence of m^(2 - rho): its slope is (2 - rho) times the Hessian where the fit is calibrated."""
        two = 2.0 - self.rho
        return Exchange(2.0, exponential(two * ranking.scores), 0.5 / two)

    def _powers(self, prepared: Prepared, ranking: Ranking) -> tuple[Vector, Vector]:
        """The two parts of the gradient: y m^(1 - rho) and m^(2 - rho)."""
        s = ranking.scores
        return prepared.labels * exponential((1.0 - self.rho) * s), exponential((2.0 - self.rho) * s)

    def _value(self, prepared: Prepared, ranking: Ranking) -> float:
        low, high = self._powers(prepared, ranking)
        one, two = 1.0 - self.rho, 2.0 - self.rho
        return weighted_mean(prepared.labels**two / (one * two) - low / one + high / two, prepared.weights)


def _prepare(term: Any, queries: Queries, zero: bool) -> Prepared:
    y = queries.column(term.label)
    wrong = (y < 0) if zero else (y <= 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        least = "from 0" if zero else "above 0"
        raise ValueError(f"label: {type(term).__name__} takes numbers {least}, row {row} is {y[row]:g}")
    return Prepared(y, queries.weights)


def _write(prepared: Prepared, first: Vector, second: Vector, grad: Floats, hess: Floats) -> None:
    weights = prepared.weights
    second = np.maximum(second, 1e-16)  # boosters want Hessians above 0
    grad[:] = first if weights is None else weights * first
    hess[:] = second if weights is None else weights * second


def exponential(x: Vector) -> Vector:
    """e^x; infinity is refused where the gradient is checked, by name."""
    with np.errstate(over="ignore"):
        return np.exp(x)


def _log(y: Vector) -> Vector:
    """Natural logarithm, 0 for 0: it is multiplied by y."""
    return np.log(np.where(y > 0, y, 1.0))
