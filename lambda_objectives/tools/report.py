"""A report of a training: one HTML page that needs nothing else, made from numbers and texts.

`write` takes what there is to say as plain mappings; `gather` collects it from a booster and its objective.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lambda_objectives.tools import report_html as h
from lambda_objectives.tools.plots_common import alike, shown
from lambda_objectives.tools.report_gather import gather

__all__ = ["gather", "page", "write"]

TOP = 20  # features
STATES = {True: ("met", "good"), False: ("NOT MET", "bad"), None: ("not known", None)}
KEYS = (
    "title", "headline", "notes", "metric", "best_round", "metrics", "curves", "constraints", "judged_on",
    "tolerance", "multipliers", "data", "labels", "importance", "objective", "parameters", "warnings", "written",
)  # fmt: skip


def write(path: str | os.PathLike[str], facts: Mapping[str, Any]) -> None:
    """Write the report of a training: one HTML file that opens anywhere, offline too.

    Parameters
    ----------
    path
        The file, which is written over.
    facts
        What there is to say, as `page` takes it, or as `gather` collects it.

    Raises
    ------
    ValueError
        For a fact of another name than `page` knows.

    Examples
    --------
    >>> import tempfile, pathlib, lambda_objectives as lo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "report.html")
    ...     lo.report.write(path, {"title": "A model", "curves": {"ndcg@10": {"valid": [0.5, 0.6]}}, "best_round": 2})
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    Path(path).write_text(page(facts), encoding="utf-8")


def page(facts: Mapping[str, Any]) -> str:
    """The report as a text.

    Parameters
    ----------
    facts
        What there is to say; every key may be left out.

        ``title``, ``written``
            Texts.
        ``headline``
            Lines that say what was trained, and what came of it.
        ``notes``
            Lines that have to be known to read the metrics.
        ``metrics``
            Numbers by model, data set, label and metric: ``{"model": {"valid": {"label": {"ndcg@10": 0.5}}}}``. Of two
            models the first is the baseline, and the difference is told.
        ``metric``
            The metric that comes first.
        ``curves``
            What was read after each round, by title and data set: ``{"ndcg@10": {"train": [...], "valid": [...]}}``.
        ``best_round``
            The round that was kept, from 1.
        ``constraints``
            By name, each a mapping with ``what`` is bounded, ``at_most`` or ``at_least``, the values that were
            ``returned`` and the ``margin``, both by data set, and whether it was ``met`` (None: not known); if they are
            there, how it was ``asked`` for, and by data set the values of the ``baseline``, its own ``bound`` (else it
            is the same on all), and the values ``by_round``.
        ``judged_on``
            The data set on which bounds had to be kept.
        ``tolerance``
            The share of a bound by which it might be broken.
        ``multipliers``
            Numbers by constraint, one a round.
        ``data``
            By data set a mapping with any of ``file``, ``queries``, ``rows``, ``features``, ``rows_per_query`` (numbers
            by name) and ``label_values``: by label a mapping with ``without_relevant`` (a number of queries), and
            ``counts`` (of rows, by value) or ``spread`` (numbers by name).
        ``labels``
            How each label was made, texts by name.
        ``importance``
            The gain of each feature, of which the first 20 are shown.
        ``objective``
            Its repr.
        ``parameters``
            Names and values by heading.
        ``warnings``
            What was warned about.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        For a fact of another name.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> "1 &lt; 2" in lo.report.page({"title": "1 < 2"})
    True
    """
    for name in facts:
        if name not in KEYS:
            raise ValueError(f"facts: {name!r} is not known, there are {shown(KEYS)}")
    title = facts.get("title", "Report of a training")
    sections = [
        ("Result", _result(facts)),
        ("Constraints", _constraints(facts)),
        ("Data", _data(facts)),
        ("Features", _features(facts)),
        ("Settings", _settings(facts)),
        ("Warnings", _warnings(facts)),
    ]
    body = [h.tag("h1", title), *(h.tag("p", line) for line in facts.get("headline", ())), *_verdict(facts)]
    for name, inside in sections:
        if inside:
            body += [h.tag("h2", name), *inside]
    if "written" in facts:
        body.append(h.tag("footer", f"Written {facts['written']} by lambda_objectives."))
    return h.document(title, body)


def _result(facts: Mapping[str, Any]) -> list[Any]:
    """Metrics at the end, and curves."""
    metrics = facts.get("metrics") or {}
    made = _alone(facts, next(iter(metrics.values()))) if len(metrics) == 1 else _compared(facts, metrics)
    made += [
        h.card(h.curves(lines, title, facts.get("best_round")), heading=f"{title} by round")
        for title, lines in (facts.get("curves") or {}).items()
    ]
    notes = [h.tag("p", text, kind="note") for text in facts.get("notes", ())]
    return [*notes, h.cards(made)] if made else notes


def _names(facts: Mapping[str, Any], by_role: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Labels and metrics, the watched one first."""
    labels = dict.fromkeys(label for by_label in by_role.values() for label in by_label)
    names = dict.fromkeys(name for by_label in by_role.values() for values in by_label.values() for name in values)
    return list(labels), sorted(names, key=lambda name: name != facts.get("metric"))


def _alone(facts: Mapping[str, Any], by_role: Mapping[str, Any]) -> list[Any]:
    """A table a label of one model's metrics."""
    labels, names = _names(facts, by_role)
    made = []
    for label in labels:
        own = [name for name in names if any(name in by_label.get(label, {}) for by_label in by_role.values())]
        parts = {role: by_label[label] for role, by_label in by_role.items() if label in by_label}
        forms = {name: alike(part.get(name) for part in parts.values()) for name in own}
        rows = [[role, *(h.number(part.get(name), forms[name]) for name in own)] for role, part in parts.items()]
        made.append(h.card(h.table(["", *own], {"": rows}), heading=_label(label)))
    return made


def _compared(facts: Mapping[str, Any], metrics: Mapping[str, Any]) -> list[Any]:
    """A table a metric of several models, with what the last one has more than the first."""
    if not metrics:
        return []
    first, *_ = metrics.values()
    labels, names = _names(facts, first)
    made = []
    for name in names:
        groups: dict[str, list[Any]] = {}
        numbers = {
            (label, role): [by_role.get(role, {}).get(label, {}).get(name) for by_role in metrics.values()]
            for label in labels
            for role in first
        }
        numbers = {which: values for which, values in numbers.items() if None not in values}
        form = alike(value for values in numbers.values() for value in values)
        for (label, role), values in numbers.items():
            row = [role, *(h.number(value, form) for value in values)]
            groups.setdefault(_label(label), []).append([*row, h.number(values[-1] - values[0], f"+{form or '.4f'}")])
        made.append(h.card(h.table(["", *metrics, "change"], groups), heading=name))
    return made


def _label(label: str) -> str:
    return "Label" if label == "label" else f"Label {label}"


def _verdict(facts: Mapping[str, Any]) -> list[Any]:
    """Whether all bounds are kept, if there are any."""
    states = [c["met"] for c in (facts.get("constraints") or {}).values()]
    if not states:
        return []
    where = f" on {facts['judged_on']}" if "judged_on" in facts else ""
    if None in states:
        return [h.tag("p", f"The last round was not evaluated{where}: whether all bounds are kept is not known.")]
    kept = all(states)
    return [h.tag("p", f"{'All' if kept else 'Not all'} bounds are kept{where}.", kind="good" if kept else "bad")]


def _constraints(facts: Mapping[str, Any]) -> list[Any]:
    constraints = facts.get("constraints")
    if not constraints:
        return []
    judge = facts.get("judged_on")
    note = "A margin is the share of the bound that is left; below 0 the bound is broken."
    note += f" Whether a bound is met is judged on {judge}." if judge is not None else ""
    note += f" It may be broken by {tolerance:.2%}." if (tolerance := facts.get("tolerance") or 0.0) else ""
    made = []
    for name, c in constraints.items():
        least = "at_least" in c
        bound = c["at_least" if least else "at_most"]
        further = {name: c[name] for name in ("baseline", "bound") if name in c}
        columns = [*further.values(), c["returned"]]
        form = alike([bound, *(value for values in columns for value in values.values())])
        rows = [
            [role, *(h.number(values.get(role), form) for values in columns), h.margin(c["margin"].get(role))]
            for role in c["returned"]
        ]
        header = ["", *further, "returned", "margin"]
        word, kind = STATES[c["met"]]
        state = h.tag("span", word, kind=kind)
        asked = f", asked for as {c['asked']}" if "asked" in c else ""
        where = judge if len(set(c.get("bound", {}).values())) > 1 else None
        asked = (f" on {where}" if where else "") + asked
        what = h.tag("p", c["what"], " at least " if least else " at most ", h.number(bound, form), asked, kind="note")
        drawn = []
        if "by_round" in c:
            drawn.append(h.curves(c["by_round"], c["what"], facts.get("best_round"), bound, where, judge))
        made.append(h.card(what, h.table(header, {"": rows}), *drawn, heading=h.Safe(f"{h.safe(name)}: {state}")))
    if facts.get("multipliers"):
        text = "What the gradient of each constraint was weighed by in the tree of the round."
        drawn = [h.tag("p", text, kind="note"), h.weights(facts["multipliers"], facts.get("best_round"))]
        made.append(h.card(*drawn, heading="Multipliers"))
    return [h.tag("p", note, kind="note"), h.cards(made)]


def _data(facts: Mapping[str, Any]) -> list[Any]:
    data = facts.get("data")
    if not data:
        return []
    rows: list[list[Any]] = []
    for name in ("queries", "rows", "features"):
        if any(part.get(name) is not None for part in data.values()):
            rows.append([name, *(h.count(part.get(name)) for part in data.values())])
    for name in dict.fromkeys(key for part in data.values() for key in part.get("rows_per_query") or ()):
        values = [(part.get("rows_per_query") or {}).get(name) for part in data.values()]
        whole = all(value is None or value == round(value) for value in values)
        rows.append([f"rows per query, {name}", *(h.number(value, ",.0f" if whole else ",.2f") for value in values)])
    made = [h.card(h.table(["", *data], {"": rows}), heading="Rows and queries")]
    if files := {role: part["file"] for role, part in data.items() if "file" in part}:
        made.insert(0, h.card(h.pairs(files), heading="Files"))
    labels = dict.fromkeys(label for part in data.values() for label in part.get("label_values", ()))
    for label in labels:
        made.append(_values(label, data, (facts.get("labels") or {}).get(label)))
    return [h.cards(made)]


def _values(label: str, data: Mapping[str, Any], how: str | None) -> Any:
    """The values of a label, a column a data set."""
    parts = {role: part["label_values"][label] for role, part in data.items() if label in part.get("label_values", {})}
    rows: list[list[Any]] = []
    for value in sorted({value for part in parts.values() for value in part.get("counts", ())}, key=float):
        counts = {role: part["counts"].get(value, 0) if "counts" in part else None for role, part in parts.items()}
        rows.append(
            [
                value,
                *("-" if n is None else h.of_all(n, sum(parts[role]["counts"].values())) for role, n in counts.items()),
            ]
        )
    spreads = [part.get("spread", {}) for part in parts.values()]
    form = alike((value for spread in spreads for value in spread.values()), significant=True)
    for name in dict.fromkeys(name for spread in spreads for name in spread):
        rows.append([name, *(h.number(spread.get(name), form) for spread in spreads)])
    if any("without_relevant" in part for part in parts.values()):
        lacking = [part.get("without_relevant") for part in parts.values()]
        rows.append(["queries without a relevant row", *map(h.count, lacking)])
    told = [h.tag("p", how, kind="note")] if how else []
    return h.card(*told, h.table(["value", *parts], {"": rows}), heading=_label(label))


def _features(facts: Mapping[str, Any]) -> list[Any]:
    gains = {name: float(gain) for name, gain in (facts.get("importance") or {}).items()}
    total = sum(gains.values())
    if not total > 0:
        return []
    used = sum(gain > 0 for gain in gains.values())
    first = dict(sorted(gains.items(), key=lambda pair: -pair[1])[: min(TOP, used)])
    which = f"the first {len(first)} of {used} features in use" if used > len(first) else "all features in use"
    text = f"By how much the splits on a feature lowered the loss in all: {which}."
    return [h.tag("p", text, kind="note"), h.card(h.bars(first, total))]


def _settings(facts: Mapping[str, Any]) -> list[Any]:
    made = [h.card(h.tag("pre", facts["objective"]), heading="Objective")] if facts.get("objective") else []
    small = [
        h.card(h.pairs(values), heading=name) for name, values in (facts.get("parameters") or {}).items() if values
    ]
    return [*made, h.cards(small)] if small else made


def _warnings(facts: Mapping[str, Any]) -> list[Any]:
    if "warnings" not in facts:
        return []
    said = list(facts["warnings"])
    return [h.tag("ul", *(h.tag("li", text) for text in said)) if said else h.tag("p", "None.")]
