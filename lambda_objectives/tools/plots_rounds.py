"""The learning curve: a reading round by round."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lambda_objectives.tools.plots_common import BEST, colours_by_name, digits, frame, legend_above, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def learning_curve(
    axes: Axes,
    curves: Mapping[str, Any],
    best_round: int | None = None,
    metric: str = "metric",
    best_on: str | None = None,
) -> Axes:
    """Draw a reading by round, a line a data set, with the round that was kept.

    Parameters
    ----------
    axes
        Where to draw.
    curves
        The reading after each round, by data set, such as "train" and "valid"; or the whole history of each data set,
        ``{"train": objective.history(train), "valid": objective.history(valid)}``; that of the training data is of the
        scores before each tree, and so lies one round behind.
    best_round
        The round that was kept, from 1; it is marked on one of the curves.
    metric
        What the reading is called; of whole histories, the one to draw.
    best_on
        The data set on whose curve the round is marked; None for "valid", or for the last one.

    Returns
    -------
    The axes.

    Raises
    ------
    ValueError
        For no curves, a reading that a history does not have, a round or a data set that the curves do not have.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import lambda_objectives as lo
    >>> curves = {"train": [0.5, 0.7, 0.8], "valid": [0.5, 0.6, 0.5]}
    >>> axes = lo.plots.learning_curve(Figure().add_subplot(), curves, 2, "ndcg@10")
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('round', 'ndcg@10')
    """
    if not curves:
        raise ValueError("curves must hold at least one data set, such as {'valid': [0.5, 0.6]}, found none")
    drawn = {
        name: of_history(f"curves[{name!r}]", values, metric) if isinstance(values, Mapping) else values
        for name, values in curves.items()
    }
    colours = colours_by_name(list(drawn))
    for name, values in drawn.items():
        draw_line(axes, np.arange(1, len(values) + 1), name, values, colours[name])
    if best_round is not None:
        which = marked(drawn, best_on)
        check_round(best_round, len(drawn[which]))
        value = drawn[which][best_round - 1]
        axes.axvline(best_round, color=BEST, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        axes.plot(
            best_round,
            value,
            "o",
            color=BEST,
            markersize=6,
            zorder=3,
            label=f"best round {best_round}: {value:{digits(value)}}",
        )
    axes.set_xlabel("round")
    axes.set_ylabel(metric)
    frame(axes)
    legend_above(axes, high_inside=True)
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


def marked(curves: Mapping[str, Any], best_on: str | None = None) -> str:
    """The curve on which the best round is marked."""
    if best_on is not None and best_on not in curves:
        raise ValueError(f"best_on={best_on!r} is none of the curves: there is {shown(curves)}")
    return best_on if best_on is not None else "valid" if "valid" in curves else list(curves)[-1]


def of_history(name: str, history: Mapping[str, Sequence[float]], wanted: str) -> Sequence[float]:
    """A reading by round; an error says which there are."""
    if wanted not in history:
        raise ValueError(f"{name} has no {wanted!r}: there is {shown(history)}")
    return history[wanted]


def draw_line(axes: Axes, rounds: Any, name: str, values: Sequence[float], colour: str) -> None:
    """Draw a line by round."""
    alone = "o" if len(values) == 1 else None  # a line of one point is not to be seen
    axes.plot(rounds, values, label=name, color=colour, linewidth=1.6, marker=alone)


def check_round(best_round: int, rounds: int) -> None:
    """Refuse a round that there was not."""
    if not 1 <= best_round <= rounds:
        raise ValueError(f"best_round must be a round from 1 to {rounds}, as many as there are, found {best_round!r}")
