"""Pictures. Every function takes a matplotlib Axes and returns it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"train": "#999999", "valid": "#0072B2"}  # told apart by the colour-blind, and in grey
BEST = "#D55E00"
SERIES = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


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


def costs_and_bounds(
    axes: Axes,
    history: Mapping[str, Sequence[float]],
    bounds: Mapping[str, float],
    best_round: int | None = None,
    colours: Sequence[str] = SERIES,
) -> Axes:
    """Draw what is bounded by round, a line a constraint, with its bound as a dashed line of the same colour.

    Parameters
    ----------
    axes
        Where to draw.
    history
        What is bounded after each round, by the name of the line, such as "cost of quality".
    bounds
        The bound of each, by the same names.
    best_round
        The round that is returned, from 1; it is marked.
    colours
        Of the lines, one after the other.

    Returns
    -------
    The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from lambda_objectives.tools.plots import costs_and_bounds
    >>> history = {"cost of quality": [0.9, 0.7, 0.6]}
    >>> axes = costs_and_bounds(Figure().add_subplot(), history, {"cost of quality": 0.75}, 3)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['cost of quality', 'its bound, 0.75', 'round 3']
    """
    for colour, (name, values) in zip(itertools.cycle(colours), history.items(), strict=False):
        _line(axes, name, values, colour)
        dashed, label = (0, (5, 3)), f"its bound, {bounds[name]:.4g}"
        axes.axhline(bounds[name], color=colour, label=label, linestyle=dashed, linewidth=1.2, zorder=1)
    _finish(axes, history, best_round)
    axes.set_ylabel("what is bounded")
    return axes


def multipliers(
    axes: Axes,
    history: Mapping[str, Sequence[float]],
    best_round: int | None = None,
    colours: Sequence[str] = SERIES,
) -> Axes:
    """Draw multipliers by round, a line a constraint, in the colours of `costs_and_bounds`.

    Parameters
    ----------
    axes
        Where to draw.
    history
        The multiplier of each round, by the name of the line.
    best_round
        The round that is returned, from 1; it is marked.
    colours
        Of the lines, one after the other.

    Returns
    -------
    The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from lambda_objectives.tools.plots import multipliers
    >>> axes = multipliers(Figure().add_subplot(), {"quality": [0.0, 0.4, 0.2]}, 3)
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('round', 'multiplier')
    """
    for colour, (name, values) in zip(itertools.cycle(colours), history.items(), strict=False):
        _line(axes, name, values, colour)
    _finish(axes, history, best_round)
    axes.set_xlabel("round")
    axes.set_ylabel("multiplier")
    axes.set_ylim(bottom=0)
    return axes


def save_constraints(
    path: str | os.PathLike[str],
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    bounds: Mapping[str, float],
    weights: Mapping[str, Sequence[float]],
    best_round: int | None = None,
    title: str = "",
) -> None:
    """Draw `costs_and_bounds` above `multipliers` and save the page; the suffix says in which format.

    Parameters
    ----------
    path
        The file.
    panels
        What is bounded after each round, by the name of the line, by what the axis is called: a panel each, since costs
        and metrics have scales of their own.
    bounds
        The bound of each line.
    weights
        The multiplier of each round, by the name of the line, in the order of the lines of all panels.
    best_round
        The round that is returned, from 1; it is marked.
    title
        Above all.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2 + 2.7 * len(panels)), layout="constrained")
    *above, below = figure.subplots(1 + len(panels), 1, sharex=True)
    drawn = 0
    for axes, (name, history) in zip(above, panels.items(), strict=True):
        costs_and_bounds(axes, history, bounds, best_round, [SERIES[(drawn + i) % len(SERIES)] for i in range(9)])
        axes.set_ylabel(name)
        drawn += len(history)
    multipliers(below, weights, best_round)
    figure.suptitle(title, fontsize="medium")
    figure.savefig(path, dpi=150)


def _line(axes: Axes, name: str, values: Sequence[float], colour: str) -> None:
    alone = "o" if len(values) == 1 else None
    axes.plot(np.arange(1, len(values) + 1), values, label=name, color=colour, linewidth=1.6, marker=alone)


def _finish(axes: Axes, history: Mapping[str, Sequence[float]], best_round: int | None) -> None:
    """Mark a round, and put the legend beside the axes, where it hides no line however many there are."""
    if best_round is not None:
        axes.axvline(best_round, color=BEST, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        at = [values[best_round - 1] for values in history.values()]
        dots = axes.plot([best_round] * len(at), at, "o", color=BEST, markersize=5, label=f"round {best_round}")
        dots[0].set(zorder=3, clip_on=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
