"""Pictures of what a model says over the values of a control."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lambda_objectives.arrays import Vector, vector, whole_number
from lambda_objectives.tools.plots_common import MARKERS, colour_of, frame, legend_above, several

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 40  # categories that fit beside each other


class _Bins(NamedTuple):
    """Which bin each row is in, and where bins are drawn."""

    which: Any  # (n,) from 0
    at: Any  # (B,)
    names: list[str] | None  # of categories


def calibration(
    axes: Axes,
    scores: Any,
    control: Any,
    *,
    bins: int = 10,
    categorical: bool = False,
    weights: Any = None,
    bars: str = "error",
    control_name: str = "control",
    score_name: str = "mean score",
) -> Axes:
    """Draw the mean score by bins of a control, and the mean over all: under independence the two are the same.

    Parameters
    ----------
    axes
        Where to draw.
    scores
        (n,) scores or predictions; or several models' by name, ``{"before": ..., "after": ...}``.
    control
        (n,) the control; texts are categories.
    bins
        How many, of equal numbers of rows; rows of the same value are in the same bin, so that there may be fewer.
    categorical
        Take every value of numbers as a category.
    weights
        (n,) numbers from 0, one a row; the bins are still of equal numbers of rows.
    bars
        "error" for the standard error of each mean, "spread" for the standard deviation of the scores.
    control_name, score_name
        What is written at the axes.

    Returns
    -------
    The axes. Points stand at the mean of the control in each bin.

    Raises
    ------
    ValueError
        For no rows, columns of different lengths or not finite, bars of another name, more than 40 categories.

    Examples
    --------
    >>> import numpy as np, lambda_objectives as lo
    >>> from matplotlib.figure import Figure
    >>> age = np.arange(100.0)
    >>> axes = lo.plots.calibration(Figure().add_subplot(), {"before": age / 100, "after": age % 2}, age, bins=4)
    >>> axes.lines[0].get_xdata().tolist()
    [12.0, 37.0, 62.0, 87.0]
    """
    series = {
        name: vector(f"scores[{name!r}]" if name else "scores", values)
        for name, values in several("scores", scores).items()
    }
    n = len(next(iter(series.values())))
    for name, values in series.items():
        if len(values) != n or n == 0:
            raise ValueError(
                f"scores[{name!r}] has {len(values)} values, " + (f"others have {n}" if n else "none to draw")
            )
    if bars not in ("error", "spread"):
        raise ValueError(f"bars must be 'error' (of the mean) or 'spread' (of the scores), found {bars!r}")
    w: Vector = np.ones(n) if weights is None else vector("weights", weights, n)
    if (w < 0).any():
        raise ValueError(f"weights must not be negative, found {w.min():g}")
    binned = _binned(control, n, whole_number("bins", bins, at_least=1), categorical)
    count = len(binned.at)
    step = 0.12 if binned.names is not None else 0.0  # categories leave room to draw models beside each other
    for i, (name, values) in enumerate(series.items()):
        mass = np.bincount(binned.which, w, count)
        with np.errstate(invalid="ignore"):  # bins without any weight have no mean, and are not drawn
            mean = np.bincount(binned.which, w * values, count) / mass
            apart = (values - mean[binned.which]) ** 2
            square = np.bincount(binned.which, w * w * apart if bars == "error" else w * apart, count)
            length = np.sqrt(square) / mass if bars == "error" else np.sqrt(square / mass)
        shift = step * (i - (len(series) - 1) / 2)
        axes.errorbar(
            binned.at + shift, mean, length, marker=MARKERS[i % len(MARKERS)], color=colour_of(i), capsize=3,
            linewidth=1.2, linestyle="none" if binned.names is not None else "-", label=name or None,
        )  # fmt: skip
        axes.axhline(np.average(values, weights=w), color=colour_of(i), linewidth=1, linestyle=(0, (5, 3)), zorder=1)
    if binned.names is not None:
        axes.set_xlim(-0.5, count - 0.5)
        _name_categories(axes, binned.at, binned.names)
    axes.set_xlabel(control_name)
    axes.set_ylabel(score_name)
    frame(axes)
    if any(series):
        legend_above(axes)
    return axes


def _name_categories(axes: Axes, at: Any, names: list[str]) -> None:
    """Write names below categories: in lines where they have no room beside each other, else aslant."""
    room = 0.92 * axes.get_window_extent().width / len(names)
    for written in (names, [_in_lines(name, 3) for name in names]):
        axes.set_xticks(at, written)
        if max(label.get_window_extent().width for label in axes.get_xticklabels()) <= room:
            return
    axes.set_xticks(at, ["x\nx"] * len(names))
    two_lines = 1.42 * axes.get_xticklabels()[0].get_window_extent().height <= room
    written = [_in_lines(name, 2) if two_lines and len(name) > 20 else name for name in names]
    axes.set_xticks(at, written, rotation=45, ha="right", rotation_mode="anchor")


def _in_lines(name: str, most: int) -> str:
    """A name in so many lines at most, which are as short as they can be."""
    for width in range(math.ceil(len(name) / most), len(name)):
        lines = textwrap.wrap(name, width, break_long_words=False)
        if len(lines) <= most and max(map(len, lines), default=0) <= width:
            return "\n".join(lines)
    return name


def _binned(control: Any, n: int, bins: int, categorical: bool) -> _Bins:
    values = np.asarray(control)
    if categorical or values.dtype.kind in "OUSb":
        if values.shape != (n,):
            raise ValueError(f"control must be one value a row: shape {values.shape}, {n} scores")
        names, which = np.unique(values.astype(str), return_inverse=True)
        if values.dtype.kind in "biuf":  # numbers in their own order, not that of their digits
            numbers, which = np.unique(values, return_inverse=True)
            names = np.array([f"{number:g}" if values.dtype.kind != "b" else str(number) for number in numbers])
        if len(names) > MOST:
            raise ValueError(
                f"control has {len(names)} categories, of which {MOST} can be drawn: put the rare ones together"
                + ("" if values.dtype.kind == "O" else ", or leave categorical=True out")
            )
        return _Bins(which, np.arange(float(len(names))), names.tolist())
    x = vector("control", control, n)
    edges = np.unique(np.quantile(x, np.arange(1, bins) / bins, method="higher"))
    which = np.searchsorted(edges, x, side="right")
    _, which = np.unique(which, return_inverse=True)  # no empty bin
    return _Bins(which, np.bincount(which, x) / np.bincount(which), None)
