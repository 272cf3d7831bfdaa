"""What is told of a training under constraints: tables, constraints.json and constraints.png."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lambda_objectives as lo
from lambda_objectives.tools.console import explained, table
from lambda_objectives.tools.constrained import Bound, Outcome, reading
from lambda_objectives.tools.labels import OWN
from lambda_objectives.tools.settings import Settings
from lambda_objectives.tools.training_report import label_curves


def headline(outcome: Outcome, settings: Settings) -> str:
    """Return which round was chosen, from how many, and on which data bounds are judged."""
    wanted, model, baseline = outcome.wanted, outcome.model, outcome.baseline
    metric = getattr(settings.term, "metric", None)
    by = f"the cost {settings.term.name}" if metric is None else metric.name
    rounds = len(model.curves["valid"])
    if wanted.judge == "valid":
        given = ""
    elif rounds == baseline.best_round:
        given = ", with as many rounds as the baseline kept"
    else:
        given = f", with {rounds} rounds, for the baseline kept no more than {baseline.best_round}"
    if outcome.feasible:
        which = f"is returned, the best by {by} on {wanted.judge} of the rounds that keep to all bounds there"
    else:
        which = f"is returned, which breaks the bounds on {wanted.judge} the least: NO ROUND KEEPS TO ALL OF THEM"
    why = "the best by " + settings.metric.name + " on valid" if settings.early_stopping else "all that there are"
    update = f"update {wanted.update}" + ("" if wanted.mu is None else f", mu {wanted.mu:g}")
    count = len(wanted.bounds)
    lines = [
        f"{settings.booster}, {type(settings.term).__name__} on {settings.term.name} under {count} "
        f"constraint{'s' if count > 1 else ''}, {update}",
        f"baseline: round {baseline.best_round} of {len(baseline.curves['valid'])} is kept, {why}",
        f"constrained{given}: round {model.best_round} of {rounds} {which}",
    ]
    return "\n".join(lines)


def constraints_table(outcome: Outcome) -> str:
    """Return a table of the constraints, on the data that they are judged on, with the margins of the others."""
    judge = outcome.wanted.judge
    others = [role for role in outcome.values if role != judge]
    rows = []
    for bound, constraint in zip(outcome.wanted.bounds, outcome.spec.constraints, strict=True):
        name = bound.label
        before, after = outcome.values[judge][name]
        cells = [f"{value:.4f}" for value in (constraint.bound, before, after)]
        margins = [f"{outcome.margin(bound, role):+.2%}" for role in (judge, *others)]
        met = "yes" if outcome.met(bound) else "NO"
        rows.append([f"{_bounded(bound, constraint)}, {bound.text}", *cells, margins[0], met, *margins[1:]])
    header = [f"constraint, on {judge}", "bound", "baseline", "returned", "margin", "met"]
    lines = table([*header, *(f"margin on {role}" for role in others)], rows)
    if others and any(bound.relative for bound in outcome.wanted.bounds):
        where = " and ".join(others)
        lines += f"\n\nWhere a bound is a share of the baseline's, margins on {where} are against what it has there."
    return lines


def metrics_table(outcome: Outcome, settings: Settings) -> str:
    """Return a table of the watched metric, a line a label and a data set: baseline, constrained and difference."""
    metric = settings.metric.name
    baseline, constrained = outcome.metrics["baseline"], outcome.metrics["constrained"]
    rows = []
    for label in constrained["train"]:
        for role in constrained:
            before, after = baseline[role][label][metric], constrained[role][label][metric]
            rows.append([f"{label}, {role}", f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}"])
    return table([f"{metric} by label", "baseline", "constrained", "difference"], rows)


def facts(outcome: Outcome, settings: Settings) -> dict[str, Any]:
    """What constraints.json has."""
    wanted, judge, model = outcome.wanted, outcome.wanted.judge, outcome.model
    pairs = list(zip(wanted.bounds, outcome.spec.constraints, strict=True))
    return {
        "objective": repr(outcome.spec),
        "update": wanted.update,
        "mu": wanted.mu,
        "start": wanted.start,
        "land": wanted.land,
        "tolerance": wanted.tolerance,
        "judged_on": judge,
        "all_met": outcome.feasible,
        "returned_round": model.best_round,
        "rounds_trained": len(model.curves["valid"]),
        "baseline_round": outcome.baseline.best_round,
        "baseline_rounds_trained": len(outcome.baseline.curves["valid"]),
        "constraints": {
            bound.label: {
                "asked": bound.text,
                "what": reading(bound, c.term),
                "at_least" if bound.at_least else "at_most": c.bound,
                "baseline": {role: values[bound.label][0] for role, values in outcome.values.items()},
                "returned": {role: values[bound.label][1] for role, values in outcome.values.items()},
                "bound": {role: numbers[bound.label] for role, numbers in outcome.bounds.items()},
                "margin": {role: outcome.margin(bound, role) for role in outcome.values},
                "met": outcome.met(bound),
            }
            for bound, c in pairs
        },
        "metrics": outcome.metrics,
        "values_by_round": {  # after each round
            role: {bound.label: readings[reading(bound, c.term)] for bound, c in pairs}
            for role, readings in model.readings.items()
        },
        "margins_by_round": {
            role: {
                bound.label: [outcome.margin(bound, role, value) for value in readings[reading(bound, c.term)]]
                for bound, c in pairs
            }
            for role, readings in model.readings.items()
        },
        "multipliers_by_round": model.multipliers,  # with which the tree of each round was grown
        "baseline_curves": {  # of the metric, by label
            OWN: outcome.baseline.curves,
            **label_curves(outcome.baseline, settings.metric.name, list(outcome.metrics["baseline"]["train"])),
        },
    }


def write(folder: Path, outcome: Outcome, settings: Settings, report: Mapping[str, Any]) -> list[str]:
    """Write constraints.json, which is the report, and constraints.png; return the names of the files."""
    from lambda_objectives.tools.plots import save_constraints

    judge, model = outcome.wanted.judge, outcome.model
    pairs = list(zip(outcome.wanted.bounds, outcome.spec.constraints, strict=True))
    bounds: dict[str, float] = {}
    panels: dict[str, dict[str, list[float]]] = {}
    pairs.sort(key=lambda pair: pair[0].at_least)  # costs first: colours go by the order
    for bound, c in pairs:
        bounds[_bounded(bound, c)] = c.bound
        axis = f"{settings.metric.name if bound.at_least else 'cost'} on {judge}"
        panels.setdefault(axis, {})[_bounded(bound, c)] = report["values_by_round"][judge][bound.label]
    weights = {bound.label: model.multipliers[bound.label] for bound, _ in pairs}
    with explained():
        title = f"{settings.booster}, {type(settings.term).__name__} on {settings.term.name} under constraints"
        save_constraints(folder / "constraints.png", panels, bounds, weights, model.best_round, title)
        (folder / "constraints.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return ["constraints.json", "constraints.png"]


def _bounded(bound: Bound, constraint: lo.Constraint) -> str:
    """What is bounded, in words."""
    term: Any = constraint.term
    return f"{term.metric.name if bound.at_least else 'cost'} of {bound.label}"
