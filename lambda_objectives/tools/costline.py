"""The line from a cut of a cost to the gain of its metric: Momma, Bagheri Garakani and Sun (2019), section 4.2.3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lambda_objectives.arrays import vector
from lambda_objectives.metrics import check_number
from lambda_objectives.warn import warn


@dataclass(frozen=True)
class CostLine:
    """The line from the share by which a cost was cut to the share by which a metric rose: ``gain = slope x cut``.

    Parameters
    ----------
    name
        What the cost is called.
    metric
        What the metric is called.
    reductions, gains
        (m,) the points: what was attained, not what was asked for.
    missed
        The cuts that were asked for, and that no model attained.
    slope
        Of the line.
    error
        Its standard error; NaN for a single point.
    r2
        R², the share of the sum of squared gains that the line explains; NaN if all gains are 0.

    Notes
    -----
    Use `fit_line` or `probe` to make one. The line is of the models that were probed: of their booster's settings, and
    of other constraints that there were.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> line = lo.planning.CostLine("t1.ndcg@5", "ndcg@5", (0.1, 0.2), (0.05, 0.1), (), slope=0.5, error=0.0, r2=1.0)
    >>> line.cut_for(gain=0.08), line.gain_for(cut=0.16)
    (0.16, 0.08)
    """

    name: str
    metric: str
    reductions: tuple[float, ...]
    gains: tuple[float, ...]
    missed: tuple[float, ...]
    slope: float
    error: float
    r2: float

    @property
    def points(self) -> int:
        """The number of models."""
        return len(self.reductions)

    @property
    def attained(self) -> float:
        """The largest cut that a model attained."""
        return max(self.reductions)

    def cut_for(self, gain: float) -> float:
        """Return the cut of the cost that promises a gain of the metric.

        Parameters
        ----------
        gain
            A share from 0: .01 is 1 % more than the baseline.

        Raises
        ------
        ValueError
            For a gain below 0; if the line does not rise; if the cut lies beyond what was attained where more was asked
            for, or is all of the cost.

        Warns
        -----
        LambdaObjectivesWarning
            If the cut lies beyond what was probed.
        """
        check_share("gain", gain)
        if not self.slope > 0:
            raise ValueError(
                f"gain: cutting the cost {self.name} did not raise {self.metric} (slope {self.slope:.3g}), so that no "
                "cut promises a gain; bound the metric itself, Constraint(term, at_least=...)"
            )
        cut = float(gain) / self.slope
        self._check_probed(f"gain: +{gain:.3%} {self.metric} asks for a cut of {cut:.2%}", cut)
        return cut

    def gain_for(self, cut: float) -> float:
        """Return the gain of the metric that a cut of the cost promises.

        Parameters
        ----------
        cut
            A share from 0, below 1.

        Raises
        ------
        ValueError
            For a cut out of range, or beyond what was attained where more was asked for.

        Warns
        -----
        LambdaObjectivesWarning
            If the cut lies beyond what was probed.
        """
        check_share("cut", cut)
        if cut >= 1:
            raise ValueError(f"cut must be a share below 1, found {cut!r}")
        self._check_probed(f"cut: {cut:.2%} is asked for", cut)
        return self.slope * float(cut)

    def _check_probed(self, wish: str, cut: float) -> None:
        """Say so where a cut is larger than any that a model attained."""
        if cut <= self.attained * (1 + 1e-9):  # a wish read off the line itself
            return
        if cut >= 1:
            raise ValueError(f"{wish} of the cost {self.name}, which is more than there is: wish for less")
        if self.missed:
            raise ValueError(
                f"{wish} of the cost {self.name}, and no probed model attained more than {self.attained:.2%}, though "
                f"{self.missed[0]:.2%} was asked for: wish for less, or give the models more rounds or features"
            )
        warn(
            f"{wish} of the cost {self.name}, which lies beyond what was probed, {self.attained:.2%}; probe larger cuts"
        )


def fit_line(
    reductions: Any,
    gains: Any,
    *,
    asked: Any = None,
    name: str = "cost",
    metric: str = "metric",
    tolerance: float = 1e-3,
) -> CostLine:
    """Fit the line through the origin from cuts of a cost to gains of a metric, by least squares.

    Parameters
    ----------
    reductions
        (m,) for each model the share by which its cost is below the baseline's: ``1 - C / C0``. What was attained.
    gains
        (m,) for each model the share by which its metric is above the baseline's: ``M / M0 - 1``.
    asked
        (m,) the cuts that the models were asked for; None if none were.
    name, metric
        What cost and metric are called.
    tolerance
        Share of a bound by which it may be broken and still count as attained.

    Returns
    -------
    CostLine, with ``slope = sum of x y / sum of x^2``,
    ``error^2 = sum of (y - slope x)^2 / (m - 1) / sum of x^2`` and ``r2 = 1 - sum of (y - slope x)^2 / sum of y^2``.

    Raises
    ------
    ValueError
        For numbers that are not finite or not as many, and if no model cut the cost.

    Warns
    -----
    LambdaObjectivesWarning
        For cuts that were asked for and that no model attained.

    References
    ----------
    Momma, Bagheri Garakani and Sun (2019), "Multi-objective relevance ranking", section 4.2.3 and figure 2.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> line = lo.planning.fit_line([0.06, 0.11, 0.20], [0.012, 0.020, 0.041], name="t1.ndcg@5", metric="ndcg@5")
    >>> round(line.slope, 3), round(line.error, 4), round(line.r2, 3)
    (0.2, 0.0067, 0.998)
    >>> round(line.cut_for(gain=0.01), 3)
    0.05
    """
    x = vector("reductions", reductions)
    y = vector("gains", gains, len(x))
    wanted = np.empty(0) if asked is None else vector("asked", asked, len(x))
    check_number("tolerance", tolerance)
    if len(x) == 0 or not x.max() > 0:
        raise ValueError(
            f"reductions: no model has less of the cost {name} than the baseline, found {x.tolist()}; are bounds and "
            "costs those of the same data?"
        )
    xx, yy = float(x @ x), float(y @ y)
    slope = float(x @ y) / xx
    left = y - slope * x
    rss = float(left @ left)
    error = math.sqrt(rss / (len(x) - 1) / xx) if len(x) > 1 else math.nan
    # met where (bound - C) / bound is above -tolerance
    missed = tuple(sorted(float(cut) for cut in wanted if (x.max() - cut) < -tolerance * (1 - cut)))
    if missed:
        warn(
            f"{name}: no probed model attained a cut of {', '.join(f'{cut:.2%}' for cut in missed)}; the largest "
            f"attained is {x.max():.2%}"
        )
    r2 = 1.0 - rss / yy if yy > 0 else math.nan
    return CostLine(name, metric, tuple(x.tolist()), tuple(y.tolist()), missed, slope, error, r2)


def check_share(name: str, value: Any) -> None:
    """Refuse what is no share from 0."""
    check_number(name, value)
    if value < 0:
        raise ValueError(f"{name} must be a share from 0, such as 0.01 for 1 %, found {value!r}")
