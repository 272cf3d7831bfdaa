"""Pictures of several models: what is gained on one side for what is given on another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lambda_objectives.arrays import require_finite
from lambda_objectives.tools.costline import CostLine
from lambda_objectives.tools.fronts import front as best_of
from lambda_objectives.tools.plots_common import (
    MARKERS,
    colour_of,
    frame,
    legend_above,
    several,
    share_axis,
    shown,
    write_beside,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def cost_line(axes: Axes, lines: CostLine | Mapping[str, CostLine]) -> Axes:
    """Draw gains of a metric against cuts of its cost, a point a model, with the line that was fitted.

    Parameters
    ----------
    axes
        Where to draw.
    lines
        What `lo.planning.probe` returned, or one of its lines.

    Returns
    -------
    The axes. The band is the line at one standard error more and less of its slope; a tick at the lower edge is a cut
    that was asked for and that no model attained.

    Raises
    ------
    TypeError, ValueError
        For what is no `CostLine`, and for none.

    References
    ----------
    Momma, Bagheri Garakani and Sun (2019), "Multi-objective relevance ranking", figure 2.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import lambda_objectives as lo
    >>> line = lo.planning.fit_line([0.06, 0.11, 0.20], [0.012, 0.020, 0.041], name="t1.ndcg@5", metric="t1.ndcg@5")
    >>> axes = lo.plots.cost_line(Figure().add_subplot(), line)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['t1.ndcg@5: slope 0.200 ± 0.007']
    """
    series = several("lines", {"": lines} if isinstance(lines, CostLine) else lines)
    for i, (name, line) in enumerate(series.items()):
        if not isinstance(line, CostLine):
            raise TypeError(f"lines must be CostLine, what lo.planning.probe returns, found {line!r} under {name!r}")
        colour = colour_of(i)
        error = "" if math.isnan(line.error) else f" ± {line.error:.3f}"
        label = f"{line.name}: slope {line.slope:.3f}{error}"
        axes.plot(line.reductions, line.gains, MARKERS[i % len(MARKERS)], color=colour, label=label)
        ends = np.array([0.0, line.attained])
        axes.plot(ends, line.slope * ends, color=colour, linewidth=1.4, zorder=1)
        if not math.isnan(line.error):
            low, high = ((line.slope + sign * line.error) * ends for sign in (-1, 1))
            axes.fill_between(ends, low, high, color=colour, alpha=0.15, linewidth=0)
        if line.missed:
            at = axes.get_xaxis_transform()
            axes.plot(line.missed, [0.02] * len(line.missed), "|", color=colour, markersize=10, transform=at)
    metrics = {line.metric for line in series.values()}
    axes.set_xlabel("cut of the cost")
    axes.set_ylabel(f"gain of {metrics.pop()}" if len(metrics) == 1 else "gain of the metric")
    share_axis(axes.xaxis)
    share_axis(axes.yaxis)
    frame(axes)
    axes.legend(frameon=False)
    return axes


def front(
    axes: Axes,
    models: Any,
    x: str,
    y: str,
    maximise: bool | Sequence[bool] | None = None,
    label: str | None = None,
) -> Axes:
    """Draw models as points, those that another one beats in both paler, and the line along which each gain costs.

    Parameters
    ----------
    axes
        Where to draw.
    models
        What `lo.planning.sweep` returned, a list of dicts of numbers; or an (m, 2) array; or several of either by the
        name of the method, a front each.
    x, y
        The readings on the two axes, such as "ndcg@10" and "t1.ndcg@10"; of an array, what its columns are.
    maximise
        Whether more is better, for both or one for each. None: less is where the name begins with "cost/" or ends with
        "dcov2", else more.
    label
        What is written beside each point, "cut" say: nothing beside models without it. Where two would lie over each
        other, one is left out.

    Returns
    -------
    The axes.

    Raises
    ------
    ValueError
        For no models, readings that a model does not have, a label that none has, arrays that are not (m, 2), or not
        finite.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import lambda_objectives as lo
    >>> models = [{"cut": 0, "ndcg": 0.70, "t1.ndcg": 0.50}, {"cut": 0.1, "ndcg": 0.69, "t1.ndcg": 0.6}]
    >>> axes = lo.plots.front(Figure().add_subplot(), models, "ndcg", "t1.ndcg", label="cut")
    >>> [text.get_text() for text in axes.texts]
    ['0', '0.1']
    """
    up = [_more(x), _more(y)] if maximise is None else maximise
    found = _all(models, x, y, label)
    for i, (name, (points, _)) in enumerate(found.items()):
        colour, kept = colour_of(i), best_of(points, up)
        marker = MARKERS[i % len(MARKERS)]
        best = points[kept][np.argsort(points[kept][:, 0], kind="stable")]
        axes.plot(best[:, 0], best[:, 1], marker=marker, color=colour, linewidth=1.4, label=name or "the front")
        if not kept.all():
            axes.plot(*points[~kept].T, marker, color=colour, alpha=0.3, label="_beaten")
    return _named(axes, found, x, y, True)


def tradeoff(axes: Axes, models: Any, x: str, y: str, label: str | None = None) -> Axes:
    """Draw models along a weight or a budget as points on a line: quality against dependence, say.

    Parameters
    ----------
    axes
        Where to draw.
    models
        Dicts of numbers, a model each, in the order in which they are to be joined; or an (m, 2) array; or several of
        either by the name of the method: ``{"penalty": [...], "budget": [...]}``.
    x, y
        The readings on the two axes, such as "price.dcov2" and "ndcg@10"; of an array, what its columns are.
    label
        What is written beside each point, "weight" say: nothing beside models without it. Where two would lie over
        each other, one is left out.

    Returns
    -------
    The axes.

    Raises
    ------
    ValueError
        For no models, readings that a model does not have, a label that none has, arrays that are not (m, 2), or not
        finite.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import lambda_objectives as lo
    >>> models = [{"weight": 0, "auc": 0.91, "age.dcov2": 0.04}, {"weight": 5, "auc": 0.90, "age.dcov2": 0.01}]
    >>> axes = lo.plots.tradeoff(Figure().add_subplot(), {"penalty": models}, "age.dcov2", "auc", label="weight")
    >>> axes.get_xlabel(), axes.get_ylabel(), [text.get_text() for text in axes.get_legend().get_texts()]
    ('age.dcov2', 'auc', ['penalty (weight)'])
    """
    found = _all(models, x, y, label)
    for i, (name, (points, texts)) in enumerate(found.items()):
        text = f"{name} ({label})" if any(texts) else name
        marker = MARKERS[i % len(MARKERS)]
        axes.plot(*points.T, marker=marker, color=colour_of(i), linewidth=1.4, label=text or "_models")
    return _named(axes, found, x, y, any(found))


def _more(name: str) -> bool:
    """Whether more of a reading is better, by its name."""
    return not (name.startswith(("cost/", "penalised/cost/")) or name.endswith("dcov2"))


def _all(models: Any, x: str, y: str, label: str | None) -> dict[str, tuple[Any, list[str]]]:
    """Points and texts of every series."""
    found = {}
    for name, given in several("models", models).items():
        what = f"models[{name!r}]" if name else "models"
        if isinstance(given, Mapping):
            raise ValueError(f"{what} must be a list of models, found one: {given!r}")
        found[name] = _points(what, given, x, y, label)
    if label is not None and not any(text for _, texts in found.values() for text in texts):
        what, first = next(iter(several("models", models).items()))
        name = f"models[{what!r}]" if what else "models"
        if not isinstance(first[0], Mapping):
            raise ValueError(f"label: an array has no {label!r}; give models as dicts, [{{{label!r}: ..., ...}}]")
        raise ValueError(f"label: {name}[0] has no {label!r}, nor has any other: there is {shown(first[0])}")
    return found


def _points(what: str, models: Any, x: str, y: str, label: str | None) -> tuple[Any, list[str]]:
    """(m, 2) numbers, and what is written beside each."""
    if not isinstance(models, Sequence | np.ndarray):
        raise ValueError(f"{what} must be a list of dicts of numbers, or an (m, 2) array, found {models!r}")
    if len(models) == 0:
        raise ValueError(f"{what} must hold at least one model, found none")
    texts: list[str] = []
    if isinstance(models[0], Mapping):
        for i, model in enumerate(models):
            for key in (x, y):
                if key not in model:
                    raise ValueError(f"{what}[{i}] has no {key!r}: there is {shown(model)}")
        points: Any = np.array([[model[x], model[y]] for model in models], dtype=np.float64)
        texts = [] if label is None else [_text(model[label]) if label in model else "" for model in models]
    else:
        points = np.asarray(models, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"{what} must be an (m, 2) array, one model a row, found one of shape {points.shape}")
    for column, name in enumerate((x, y)):
        require_finite(f"{what}, {name}", points[:, column])
    return points, texts


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _named(axes: Axes, found: Mapping[str, tuple[Any, list[str]]], x: str, y: str, legend: bool) -> Axes:
    """Name the axes, and write beside the points."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    frame(axes)
    axes.margins(0.1)
    write_beside(axes, list(found.values()))
    if legend:
        legend_above(axes)
    return axes
