"""What all pictures share: colours, arguments that may be one series or several, and a plain frame."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"train": "#999999", "valid": "#0072B2"}  # told apart by the colour-blind, and in grey
BEST = "#D55E00"
SERIES = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P")


def shown(words: Any) -> str:
    """What there is, for an error."""
    return ", ".join(map(repr, words)) or "nothing"


def digits(value: float) -> str:
    """A format that tells four digits or more, of small numbers too."""
    size = abs(value)
    return "#.4g" if 0 < size < 0.1 else ".4f" if size < 1000 else ",.1f"


def alike(values: Iterable[float | None], significant: bool = False) -> str | None:
    """One format for numbers that stand together: four digits of the largest, at least two of the smallest.

    None where no one format does for all of them. With `significant` no more than four digits of the largest, whatever
    is lost of the smallest.
    """
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value) and value]
    if not sizes:
        return ".4f"
    first, last = (math.floor(math.log10(size)) for size in (max(sizes), min(sizes)))
    usual = 1 if first >= 3 else 4 if first >= -1 else 3 - first  # as `digits`
    decimals = max(0, 3 - first) if significant else max(usual, 1 - last)
    return f",.{decimals}f" if decimals <= 7 and decimals + max(0, first) <= 8 else None


def colour_of(i: int) -> str:
    """The colour of a series by its number."""
    return SERIES[i % len(SERIES)]


def colours_by_name(names: Sequence[str]) -> dict[str, str]:
    """A colour for each data set: train and valid have their own, others what is left."""
    left = itertools.cycle(colour for colour in SERIES if colour not in COLOURS.values())
    return {name: COLOURS[name] if name in COLOURS else next(left) for name in names}


def frame(axes: Axes) -> None:
    """A pale grid, and no lines above and on the right."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def legend_above(axes: Axes, high_inside: bool = False) -> None:
    """Put the legend above the axes, in as many columns as there is room for; a high one inside, if that may be."""
    handles, labels = axes.get_legend_handles_labels()
    above: dict[str, Any] = dict(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    for columns in range(max(1, min(len(handles), 4)), 0, -1):
        legend = axes.legend(handles, labels, ncols=columns, **above)
        inside, taken = axes.get_window_extent(), legend.get_window_extent()
        if taken.width <= inside.width:
            break
    if high_inside and taken.height > inside.height / 3:
        axes.legend(handles, labels, loc="best", fontsize="small", framealpha=0.8)


def several(name: str, given: Any) -> dict[str, Any]:
    """One series as several, under the name ""."""
    series = dict(given) if isinstance(given, Mapping) else {"": given}
    if not series:
        raise ValueError(f"{name} must hold at least one series, found none")
    return series


def share_axis(axis: Any) -> None:
    """Write shares in per cent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0))


def write_beside(axes: Axes, series: Sequence[tuple[Any, Sequence[str]]]) -> None:
    """Write texts beside points, those at the ends first; where there is no room, a text is left out.

    Parameters
    ----------
    axes
        Where to write; its limits are settled by now.
    series
        (m, 2) points and a text for each, which may be empty, or none; in the colours of the series.
    """
    from matplotlib.patheffects import withStroke

    axes.autoscale_view()
    to_shares = axes.transData + axes.transAxes.inverted()
    places = [to_shares.transform(np.asarray(points, dtype=np.float64)) for points, _ in series]
    marks = np.concatenate(places)
    taken = [(x - 0.008, y - 0.012, x + 0.008, y + 0.012) for x, y in marks]  # left, bottom, right, top
    for i, ((points, texts), at) in enumerate(zip(series, places, strict=True)):
        told = [j for j, text in enumerate(texts) if text]
        for j in sorted(told, key=lambda j: min(j, len(texts) - 1 - j)):
            width = 0.014 * len(texts[j])
            for right, up in itertools.product((1, -1), (1, -1)):
                x, y = at[j][0] + 0.011 * right, at[j][1] + 0.011 * up
                box = (
                    min(x, x + width * right),
                    min(y, y + 0.05 * up),
                    max(x, x + width * right),
                    max(y, y + 0.05 * up),
                )
                if box[0] < 0 or box[2] > 1 or any(_overlap(box, other) for other in taken):
                    continue
                taken.append(box)
                axes.annotate(
                    texts[j], points[j], xytext=(5 * right, 4 * up), textcoords="offset points", fontsize="small",
                    ha="left" if right > 0 else "right", va="bottom" if up > 0 else "top", color=colour_of(i),
                    path_effects=[withStroke(linewidth=2.5, foreground=axes.get_facecolor())],
                )  # fmt: skip
                break


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
