"""Pictures. Every function takes a matplotlib Axes and returns it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"train": "#999999", "valid": "#0072B2"}  # told apart by the colour-blind, and in grey
BEST = "#D55E00"


def learning_curve(
    axes: Axes, curves: Mapping[str, Sequence[float]], best_round: int | None = None, metric: str = "metric"
) -> Axes:
    """Draw a metric by round, a line a data set, with the round that was kept.

    Parameters
    ----------
    axes
        Where to draw.
    curves
        The metric after each round, by data set, such as "train" and "valid".
    best_round
        The round that was kept, from 1; it is marked on the curve of "valid", or on the last one.
    metric
        What the metric is called.

    Returns
    -------
    The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from lambda_objectives.tools.plots import learning_curve
    >>> curves = {"train": [0.5, 0.7, 0.8], "valid": [0.5, 0.6, 0.5]}
    >>> axes = learning_curve(Figure().add_subplot(), curves, 2, "ndcg@10")
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('round', 'ndcg@10')
    """
    for name, values in curves.items():
        rounds = np.arange(1, len(values) + 1)
        alone = "o" if len(values) == 1 else None  # a line of one point is not to be seen
        axes.plot(rounds, values, label=name, color=COLOURS.get(name), linewidth=1.6, marker=alone)
    if best_round is not None:
        marked = curves["valid" if "valid" in curves else list(curves)[-1]]
        value = marked[best_round - 1]
        axes.axvline(best_round, color=BEST, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        axes.plot(
            best_round, value, "o", color=BEST, markersize=6, zorder=3, label=f"best round {best_round}: {value:.4f}"
        )
    axes.set_xlabel("round")
    axes.set_ylabel(metric)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    # above the axes, where no curve can be
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(curves) + 1, frameon=False)
    return axes


def save_learning_curve(
    path: str | os.PathLike[str],
    curves: Mapping[str, Sequence[float]],
    best_round: int | None = None,
    metric: str = "metric",
) -> None:
    """Draw `learning_curve` on a page of its own and save it; the suffix says in which format."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.3), layout="constrained")  # not pyplot: no window, no state
    learning_curve(figure.add_subplot(), curves, best_round, metric)
    figure.savefig(path, dpi=150)
