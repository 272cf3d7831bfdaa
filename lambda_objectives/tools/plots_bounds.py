"""Pictures of constraints, round by round: what is bounded, the bounds, and the multipliers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lambda_objectives.specs import AugmentedLagrangian
from lambda_objectives.tools.plots_common import BEST, SERIES, colour_of, frame, shown
from lambda_objectives.tools.plots_rounds import check_round, draw_line, of_history

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MULTIPLIER = "multiplier/"


class Line(NamedTuple):
    """What is bounded, as it is drawn."""

    name: str
    reading: str
    values: Sequence[float]
    bound: Any  # a number, or one a round, NaN before it is known
    colour: int

    @property
    def kind(self) -> str:
        """What the axis is called."""
        return "cost" if self.reading.startswith("cost") else "metric"


def costs_and_bounds(
    axes: Axes,
    history: Mapping[str, Sequence[float]],
    bounds: Mapping[str, float] | AugmentedLagrangian,
    best_round: int | None = None,
    colours: Sequence[str] = SERIES,
) -> Axes:
    """Draw what is bounded by round, a line a constraint, with its bound as a dashed line of the same colour.

    Parameters
    ----------
    axes
        Where to draw; its figure with ``layout="constrained"``, for the legend stands beside the axes.
    history
        ``objective.history(train)``, or ``objective.history(valid)``.
    bounds
        The `AugmentedLagrangian` that was trained, ``objective.spec``; or bounds by the name of the reading, such as
        ``{"cost/quality.ndcg@10": 0.9}``. Only these readings are drawn.
    best_round
        The round that is returned, from 1; it is marked.
    colours
        Of the constraints, one after the other.

    Returns
    -------
    The axes.

    Raises
    ------
    TypeError, ValueError
        For bounds that are neither, no bounds, a reading that the history does not have, a round that it does not have.

    Notes
    -----
    The history of the training data has the costs before each round's tree: they are drawn at the number of trees that
    there were, from 0. Bounds relative to a cost (``relative=True``) begin where they are known.

    References
    ----------
    Momma, Bagheri Garakani and Sun (2019), "Multi-objective relevance ranking", figure 1 (a).

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import lambda_objectives as lo
    >>> history = {"cost/quality.ndcg": [0.9, 0.7, 0.6], "cost/ndcg": [1.0, 0.8, 0.7]}
    >>> axes = lo.plots.costs_and_bounds(Figure().add_subplot(), history, {"cost/quality.ndcg": 0.75}, 3)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['cost/quality.ndcg', 'its bound, 0.75', 'round 3']
    """
    _draw_bounded(axes, history, bounded(history, bounds), best_round, colours)
    axes.set_xlabel("round")
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
        Where to draw; its figure with ``layout="constrained"``, for the legend stands beside the axes.
    history
        ``objective.history(train)``, whose ``multiplier/NAME`` are drawn; or multipliers by name.
    best_round
        The round that is returned, from 1; it is marked.
    colours
        Of the lines, one after the other.

    Returns
    -------
    The axes.

    Raises
    ------
    ValueError
        For a history without multipliers, such as that of a validation set; for a round that it does not have.

    References
    ----------
    Momma, Bagheri Garakani and Sun (2019), "Multi-objective relevance ranking", figure 1 (b).

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import lambda_objectives as lo
    >>> axes = lo.plots.multipliers(Figure().add_subplot(), {"multiplier/quality.ndcg": [0.0, 0.4, 0.2]}, 3)
    >>> axes.get_xlabel(), axes.get_ylabel(), axes.get_legend().get_texts()[0].get_text()
    ('round', 'multiplier', 'quality.ndcg')
    """
    found = _multipliers(history)
    if not found and not any("/" in name for name in history):
        found = dict(history)
    if not found:
        raise ValueError(
            "history has no multiplier/NAME: take the history of the training data, objective.history(train), of an "
            f"AugmentedLagrangian; there is {shown(history)}"
        )
    for i, (name, values) in enumerate(found.items()):
        draw_line(axes, np.arange(1, len(values) + 1), name, values, colours[i % len(colours)])
    _mark(axes, list(found.values()), 1, best_round)
    axes.set_xlabel("round")
    axes.set_ylabel("multiplier")
    axes.set_ylim(bottom=0)
    return axes


def constraints(
    axes: Sequence[Axes],
    history: Mapping[str, Sequence[float]],
    bounds: Mapping[str, float] | AugmentedLagrangian,
    best_round: int | None = None,
) -> Sequence[Axes]:
    """Draw `costs_and_bounds` on the first axes and `multipliers` on the last; costs and metrics apart on three.

    Parameters
    ----------
    axes
        Two or three, as of ``plt.subplots(2, 1, sharex=True, layout="constrained")``.
    history, bounds, best_round
        As for `costs_and_bounds`.

    Returns
    -------
    The axes.

    Raises
    ------
    ValueError
        For another number of axes, and as `costs_and_bounds` and `multipliers`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import lambda_objectives as lo
    >>> history = {"cost/quality.ndcg": [0.9, 0.7, 0.6], "multiplier/quality.ndcg": [0.0, 0.4, 0.2]}
    >>> above, below = lo.plots.constraints(Figure().subplots(2, 1, sharex=True), history, {"cost/quality.ndcg": 0.75})
    >>> above.get_ylabel(), below.get_ylabel()
    ('cost', 'multiplier')
    """
    if np.ndim(axes) != 1 or len(axes) not in (2, 3):  # type: ignore[arg-type]
        found = f"{len(axes)}" if np.ndim(axes) == 1 else repr(axes)  # type: ignore[arg-type]
        raise ValueError(f"axes: two or three wanted, as of plt.subplots(2, 1, sharex=True), found {found}")
    *above, below = axes
    lines = bounded(history, bounds)
    parts = [lines] if len(above) == 1 else [[line for line in lines if line.kind == k] for k in ("cost", "metric")]
    for panel, part in zip(above, parts, strict=True):
        if not part:
            raise ValueError(
                "axes: three are for bounds on costs and on metrics, and all bounds are of one kind: give two"
            )
        _draw_bounded(panel, history, part, best_round, SERIES)
    multipliers(below, history, best_round)
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
        own = {line: bounds[line] for line in history}
        costs_and_bounds(axes, history, own, best_round, [colour_of(drawn + i) for i in range(len(history))])
        axes.set(xlabel="", ylabel=name)
        drawn += len(history)
    multipliers(below, weights, best_round)
    figure.suptitle(title, fontsize="medium")
    figure.savefig(path, dpi=150)


# ------------------------------------------------------------------------------------------------------------ the parts


def _multipliers(history: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    return {name.removeprefix(MULTIPLIER): values for name, values in history.items() if name.startswith(MULTIPLIER)}


def bounded(history: Mapping[str, Sequence[float]], bounds: Mapping[str, float] | AugmentedLagrangian) -> list[Line]:
    """The lines to draw, each with the number of its multiplier's colour."""
    own = list(_multipliers(history))
    if isinstance(bounds, AugmentedLagrangian):
        names = [term.name for term in bounds.terms]
        lines = []
        for i, c in enumerate(bounds.constraints):
            at = bounds.terms.index(c.term)
            again = names[:at].count(c.term.name)  # histories number the terms of one name
            reading = ("cost/" if c.sign > 0 else "") + c.term.name + (f"-{again + 1}" if again else "")
            values = of_history("history", history, reading)
            bound: Any = c.bound
            if c.relative:
                bound = _relative(c, values, of_history("history", history, f"margin/{c.label}"))
            name = reading if c.name is None else f"{c.name}: {reading}"
            lines.append(Line(name, reading, values, bound, own.index(c.label) if c.label in own else i))
        return lines
    if not isinstance(bounds, Mapping):
        raise TypeError(
            "bounds must be the AugmentedLagrangian that was trained (objective.spec), or bounds by the name of the "
            f"reading, such as {{'cost/quality.ndcg@10': 0.9}}, found {bounds!r}"
        )
    if not bounds:
        raise ValueError("bounds must hold at least one, such as {'cost/quality.ndcg@10': 0.9}, found none")
    for name in bounds:
        of_history("history", history, name)
    ordered = [name for name in history if name in bounds]  # as the constraints are
    known = {name: own.index(name.removeprefix("cost/")) for name in ordered if name.removeprefix("cost/") in own}
    free = iter(i for i in range(len(own) + len(ordered)) if i not in known.values())
    return [
        Line(name, name, history[name], bounds[name], known[name] if name in known else next(free)) for name in ordered
    ]


def _relative(constraint: Any, values: Sequence[float], margins: Sequence[float]) -> Any:
    """The bound of each round, by the margin (b - C) / scale: NaN before the round that it is relative to."""
    value, margin = np.asarray(values, dtype=np.float64), np.asarray(margins, dtype=np.float64)
    sign, scale = constraint.sign, constraint.scale
    if scale is not None:
        found = value + sign * scale * margin
    else:  # |b|, and b is above 0
        found = np.divide(
            value, 1 - sign * margin, out=np.full_like(value, np.nan), where=np.abs(1 - sign * margin) > 1e-9
        )
    known = found[np.isfinite(found)]
    return np.where(np.isnan(margin), np.nan, known[-1] if len(known) else np.nan)


def _draw_bounded(
    axes: Axes,
    history: Mapping[str, Sequence[float]],
    lines: Sequence[Line],
    best_round: int | None,
    colours: Sequence[str],
) -> None:
    first = 0 if _multipliers(history) else 1  # those of training data are before the round's tree
    for line in lines:
        colour = colours[line.colour % len(colours)]
        x = np.arange(first, first + len(line.values))
        draw_line(axes, x, line.name, line.values, colour)
        style: dict[str, Any] = dict(color=colour, linestyle=(0, (5, 3)), linewidth=1.2, zorder=1)
        if np.ndim(line.bound) == 0:
            axes.axhline(line.bound, label=f"its bound, {line.bound:.4g}", **style)
        else:
            known = line.bound[np.isfinite(line.bound)]
            axes.plot(
                x, line.bound, label=f"its bound, {known[-1]:.4g}" if len(known) else "its bound, not yet", **style
            )
    _mark(axes, [line.values for line in lines], first, best_round)
    kinds = {line.kind for line in lines}
    axes.set_ylabel(kinds.pop() if len(kinds) == 1 else "what is bounded")


def _mark(axes: Axes, lines: Sequence[Sequence[float]], first: int, best_round: int | None) -> None:
    """Mark a round, and put the legend beside the axes, where it hides no line however many there are."""
    if best_round is not None:
        check_round(best_round, len(lines[0]))
        axes.axvline(best_round, color=BEST, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        at = [values[best_round - first] for values in lines if best_round - first < len(values)]
        dots = axes.plot([best_round] * len(at), at, "o", color=BEST, markersize=5, label=f"round {best_round}")
        dots[0].set(zorder=3, clip_on=False)
    frame(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
