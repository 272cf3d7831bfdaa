"""The pieces of a page: everything from users is escaped, numbers are there to the last digit, nothing is fetched."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from lambda_objectives.tools.plots_bounds import MULTIPLIER, multipliers
from lambda_objectives.tools.plots_common import SERIES, alike, digits, frame
from lambda_objectives.tools.plots_rounds import learning_curve, marked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"  # stands for the page's own colour of text, light or dark
STYLE = """
:root { color-scheme: light dark; --ink: #1c1d21; --soft: #5c606b; --paper: #ffffff; --card: #f6f7f9; --line: #d9dce3;
  --accent: #0072b2; --good: #00694b; --bad: #b3410a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e9ed; --soft: #a5a9b5; --paper: #17181c; --card: #202228;
  --line: #3a3d47; --accent: #3f97dd; --good: #4cc9a0; --bad: #f08a52; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 74rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1, h2, h3, p, li, pre, .words, .group { overflow-wrap: anywhere; }
th.words { min-width: 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1rem; margin: 0 0 .4rem; }
p { margin: .3rem 0; } p.note { color: var(--soft); font-size: .9rem; }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21.5rem), 1fr)); }
.grid + .grid, .card + .grid { margin-top: 1rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .8rem; min-width: 0;
  break-inside: avoid; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .25rem; border-bottom: 1px solid var(--line); }
tbody:last-child > tr:last-child > * { border-bottom: 0; }
th { font-weight: 600; } tbody th { font-weight: 400; } th.group { font-weight: 600; padding-top: .6rem; }
.number { text-align: right; } .number data { white-space: nowrap; }
small { display: block; color: var(--soft); }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.bar { height: .8rem; min-width: 1px; margin-top: .3rem; background: var(--accent); border-radius: 2px; }
.bar, .good, .bad { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
td.bars { width: 50%; }
figure { margin: 0; } figure svg { display: block; width: 100%; height: auto; }
pre { margin: 0; white-space: pre-wrap; font-size: .85rem; font-family: ui-monospace, Menlo, Consolas, monospace; }
ul { margin: 0; padding-left: 1.2rem; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 30rem) { body { padding: 1rem .6rem 2rem; } .card { padding: .6rem; } table { font-size: .85rem; }
  th, td { padding: .25rem .2rem; } td.bars { width: 35%; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --paper: #fff; --card: #fff; --line: #bbb;
  --accent: #0072b2; --good: #00694b; --bad: #b3410a; }
  body { max-width: none; padding: 0; font-size: 10pt; } h2 { break-after: avoid; } tr { break-inside: avoid; }
  .grid { grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); } .scroll { overflow: visible; } }
"""


class Safe(str):
    """HTML that is made here, and needs no escaping."""


def safe(value: Any) -> Safe:
    """Any value as HTML: what is not made here is escaped."""
    return value if isinstance(value, Safe) else Safe(escape(str(value)))


def tag(name: str, *inside: Any, **attributes: Any) -> Safe:
    """An element; `kind` is its class."""
    words = "".join(
        f' {"class" if key == "kind" else key.replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Safe(f"<{name}{words}>{''.join(map(safe, inside))}</{name}>")


def number(value: Any, form: str | None = None) -> Safe:
    """A number as it is read, by default with four digits or more, and to the last digit in the element's value."""
    if value is None or math.isnan(value):
        return Safe("-")
    value = getattr(value, "item", lambda: value)()  # a plain number of NumPy's
    text = format(value, form or digits(value)) if math.isfinite(value) else str(value)
    return tag("data", text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text, value=repr(value))


def count(value: int | None) -> Safe:
    """A whole number."""
    return number(value, ",d")


def share(value: Any) -> Safe:
    """A share in per cent, with its sign."""
    return number(value, "+.2%")


def margin(value: Any) -> Safe:
    """A share of a bound that is left; below 0 it is shown as broken."""
    told = share(value)
    return tag("span", told, kind="bad") if value is not None and value < 0 else told


def table(header: Sequence[Any], groups: Mapping[str, Iterable[Sequence[Any]]]) -> Safe:
    """A table of numbers in named groups of rows, the first cell of a row its name; groups named "" have no heading."""

    def line(cells: Sequence[Any], head: bool) -> Safe:
        made = [
            tag("th" if head or not i else "td", cell, kind="number" if i else None,
                scope="col" if head else None if i else "row")
            for i, cell in enumerate(cells)
        ]  # fmt: skip
        return tag("tr", *made)

    bodies = []
    for name, rows in groups.items():
        heading = [tag("tr", tag("th", name, colspan=len(header), scope="rowgroup", kind="group"))] if name else []
        bodies.append(tag("tbody", *heading, *(line(row, False) for row in rows)))
    return tag("div", tag("table", tag("thead", line(header, True)), *bodies), kind="scroll")


def pairs(values: Mapping[str, Any]) -> Safe:
    """Names and values, a line each."""
    rows = [
        tag("tr", tag("th", name, scope="row", kind="words"), tag("td", value, kind="words"))
        for name, value in values.items()
    ]
    return tag("table", tag("tbody", *rows))


def card(*inside: Any, heading: Any = None) -> Safe:
    """Things that belong together, in a frame."""
    return tag("section", *([tag("h3", heading)] if heading is not None else []), *inside, kind="card")


def cards(inside: Iterable[Any]) -> Safe:
    """Cards beside each other, as many as there is room for."""
    return tag("div", *inside, kind="grid")


def of_all(part: int, total: int) -> Safe:
    """A whole number, and its share of a total below it."""
    return Safe(f"{count(part)}{tag('small', number(part / max(total, 1), '.1%'))}")


def bars(values: Mapping[str, float], total: float) -> Safe:
    """Numbers as bars, with their share of a total."""
    most = max(values.values(), default=0.0)
    form = alike(values.values(), significant=True)
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row", kind="words"),
            tag("td", tag("div", kind="bar", style=f"width:{value / most:.2%}"), kind="bars"),
            tag("td", number(value, form), kind="number"),
            tag("td", number(value / total, ".1%"), kind="number"),
        )
        for name, value in values.items()
    ]
    heads = [tag("th", text, kind=kind, scope="col") for text, kind in
             (("feature", None), ("", None), ("gain", "number"), ("share", "number"))]  # fmt: skip
    return tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))


# ------------------------------------------------------------------------------------------------------------- pictures


def curves(
    lines: Mapping[str, Sequence[float]], metric: str, best_round: int | None, bound: float | None = None,
    where: str | None = None, judge: str | None = None,
) -> Safe:  # fmt: skip
    """A reading by round as a picture, a line a data set, with its bound if it has one: of all, or of one of them.

    The best round is marked on the data set that is the judge, if that is among them.
    """

    def draw(axes: Axes) -> None:
        known = {_plain(name): values for name, values in lines.items()}
        which = marked(known, _plain(judge) if judge is not None and judge in lines else None)
        inside = best_round is not None and best_round <= len(known[which])
        learning_curve(axes, known, best_round if inside else None, _plain(metric), which)
        if bound is not None:
            label = f"bound{f' on {_plain(where)}' if where else ''} {bound:{digits(bound)}}"
            axes.axhline(bound, color=INK, linestyle=(0, (5, 3)), linewidth=1.2, label=label, zorder=1)

    return picture(draw, f"{metric} by round: {', '.join(lines)}")


def weights(lines: Mapping[str, Sequence[float]], best_round: int | None) -> Safe:
    """Multipliers by round as a picture."""

    def draw(axes: Axes) -> None:
        known = {MULTIPLIER + _plain(name): values for name, values in lines.items()}
        inside = best_round is not None and best_round <= len(next(iter(known.values())))
        multipliers(axes, known, best_round if inside else None)

    return picture(draw, f"multipliers by round: {', '.join(lines)}")


def picture(draw: Callable[[Axes], None], text: str) -> Safe:
    """A picture as SVG within the page, in the page's colours; the legend stands above."""
    import matplotlib
    from matplotlib.figure import Figure

    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    rc: dict[str, Any] = {name: INK for name in names} | {
        "svg.fonttype": "path",
        "svg.hashsalt": "page",
        "font.size": 10,
    }
    with matplotlib.rc_context(rc), io.StringIO() as out:
        figure = Figure(figsize=(4.8, 3.3), layout="constrained", facecolor="none")
        axes = figure.add_subplot(facecolor="none")
        draw(axes)
        frame(axes)
        axes.set_ylabel(_short(axes.get_ylabel()))
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            handle.set_label(_short(label))
        wide = any(len(label) > 24 for label in labels)
        axes.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1 if wide else 2, frameon=False, fontsize="medium"
        )
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    for colour, own in ((INK, "currentColor"), ("#000000", "currentColor"), (SERIES[0].lower(), "var(--accent)")):
        rest = rest.replace(colour, own)
    head = f'<svg {box[0]} role="img" aria-label="{escape(text)}"'
    return tag("figure", Safe(f"{head}>{rest}"))


def _plain(text: str) -> str:
    """A text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")


def _short(text: str) -> str:
    """A text that has room in a picture: of a long one both ends."""
    return text if len(text) <= 40 else f"{text[:24]}...{text[-13:]}"


def document(title: str, body: Sequence[Any]) -> str:
    """The whole page, which may load nothing."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = "".join(
        [
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{escape(title)}</title><style>{STYLE}</style>",
        ]
    )
    inside = "\n".join(map(safe, body))
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{inside}\n</body>\n</html>\n'
