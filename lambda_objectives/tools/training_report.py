"""What is told of a training: the headline, metrics.json, and the page of `--report`."""

from __future__ import annotations

import json
import platform
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import lambda_objectives as lo
from lambda_objectives.tools.console import explained, plain, require
from lambda_objectives.tools.files import Ranked
from lambda_objectives.tools.labels import OWN
from lambda_objectives.tools.report_facts import describe, gains
from lambda_objectives.tools.scoring import of_empty
from lambda_objectives.tools.settings import Settings
from lambda_objectives.tools.training import Trained


def headline(trained: Trained, settings: Settings) -> str:
    """Return which round is kept, from how many."""
    kept = f"round {trained.best_round} of {len(trained.curves['valid'])} is kept"
    if settings.early_stopping:
        kept += f", the best by {settings.metric.name} on valid"
        if trained.best_round == settings.rounds:
            kept += ": more --rounds may do better"
    return f"{settings.booster}, {type(settings.term).__name__} on {settings.term.name}: {kept}"


def facts(
    settings: Settings,
    trained: Trained,
    data: Mapping[str, Ranked],
    measured: Mapping[str, Mapping[str, float]],
    seconds: float,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What metrics.json has, with more in it."""
    booster, model, labels = require(settings.booster), trained.model, data["train"].labels
    return {
        "booster": settings.booster,
        "objective": repr(settings.term),
        "metric": settings.metric.name,
        "best_round": trained.best_round,
        "rounds_trained": len(trained.curves["valid"]),
        "early_stopping": settings.early_stopping,
        "params": settings.all_params,
        "data": {
            role: describe({OWN: part.y, **part.labels}, part.group, file=part.path, features=part.X.shape[1])
            for role, part in data.items()
        },
        "metrics": measured,
        **(more or {}),
        "curves": trained.curves,
        **({"label_curves": label_curves(trained, settings.metric.name, list(labels))} if labels else {}),
        "importance": gains(model.handle, model.rounds),
        "seconds": round(seconds, 3),
        "versions": {
            "lambda_objectives": lo.__version__,
            settings.booster: booster.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def label_curves(trained: Trained, metric: str, labels: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """The metric of further labels after each round, by label and data set: of those that were watched."""
    return {
        name: {role: each[f"{name}.{metric}"] for role, each in trained.readings.items()}
        for name in labels
        if all(f"{name}.{metric}" in each for each in trained.readings.values())
    }


def write(folder: Path, trained: Trained, report: Mapping[str, Any]) -> list[str]:
    """Write the model, the learning curve and metrics.json, which is the report; return the names of the files."""
    from lambda_objectives.tools.plots import save_learning_curve

    with explained():
        model = trained.model.save(folder)
        save_learning_curve(folder / "learning_curve.png", trained.curves, trained.best_round, report["metric"])
        (folder / "metrics.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return [model.name, "learning_curve.png", "metrics.json"]


def page_facts(
    report: Mapping[str, Any], constraints: Mapping[str, Any] | None, headline: Sequence[str], said: Sequence[str]
) -> dict[str, Any]:
    """What the page shows: nothing but what the files have, and what was warned about.

    Parameters
    ----------
    report
        What metrics.json has.
    constraints
        What constraints.json has; None without constraints.
    headline
        Lines that say what came of it.
    said
        The warnings.
    """
    metric = report["metric"]
    further = report.get("label_metrics", {})
    own = {role: further.get(role, {OWN: values}) for role, values in report["metrics"].items()}
    curves = {OWN: report["curves"], **report.get("label_curves", {})}
    facts: dict[str, Any] = {
        "title": f"Training of {report['data']['train']['file']}",
        "headline": headline,
        "metric": metric,
        "best_round": report["best_round"],
        "metrics": {"model": own} if constraints is None else constraints["metrics"],
        "data": report["data"],
        "labels": {name: made["made_of"] for name, made in report.get("labels", {}).items()},
        "importance": report["importance"],
        "objective": report["objective"],
        "warnings": said,
        "written": report["written"],
    }
    how = {
        name: report[name]
        for name in ("booster", "metric", "rounds_trained", "best_round", "early_stopping", "seconds")
    }
    if constraints is not None:
        how |= {
            name: constraints[name]
            for name in ("update", "mu", "start", "land", "tolerance", "judged_on", "baseline_round")
        }
        facts |= {name: constraints[name] for name in ("judged_on", "tolerance")}
        facts["multipliers"] = constraints["multipliers_by_round"]
        facts["constraints"] = {
            name: {**c, "by_round": {role: at[name] for role, at in constraints["values_by_round"].items()}}
            for name, c in constraints["constraints"].items()
        }
        before = constraints["baseline_curves"]
        curves = {
            name: {**lines, "valid, baseline": before[name]["valid"]} if name in before else lines
            for name, lines in curves.items()
        }
    facts["curves"] = {f"{metric} of {name}" if len(curves) > 1 else metric: lines for name, lines in curves.items()}
    if any(values[OWN]["without_relevant"] for values in (part["label_values"] for part in report["data"].values())):
        facts["notes"] = [of_empty(report["metrics"]["train"])]
    parameters = {"Training": how, "Booster": report["params"], "Versions": report["versions"]}
    facts["parameters"] = {
        heading: {
            name.replace("_", " ") if heading == "Training" else name: value
            for name, value in values.items()
            if value is not None
        }
        for heading, values in parameters.items()
    }
    return facts


def write_page(
    folder: Path,
    report: Mapping[str, Any],
    constraints: Mapping[str, Any] | None,
    headline: Sequence[str],
    said: Sequence[str],
) -> list[str]:
    """Write report.html, of what `page_facts` takes; return the name of the file."""
    from lambda_objectives.tools.report import write

    with explained():
        write(folder / "report.html", page_facts(report, constraints, headline, said))
    return ["report.html"]


@contextmanager
def overheard() -> Iterator[list[str]]:
    """Note what is warned about, which is shown as ever; yield the list."""
    said: list[str] = []
    usual = warnings.showwarning

    def note(message: Warning | str, *more: Any, **named: Any) -> None:
        said.append(plain(str(message)))
        usual(message, *more, **named)

    warnings.showwarning = note
    try:
        yield said
    finally:
        warnings.showwarning = usual
