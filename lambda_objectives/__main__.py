"""The command line: ``python -m lambda_objectives demo``, ``train`` and ``evaluate``."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lambda_objectives.tools.arguments import NAME, parser
from lambda_objectives.tools.console import UserError, plain, require

# by some trainings, not by all
WRITTEN = {"model.txt", "model.json", "constraints.json", "constraints.png", "report.html"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, 2 for the user's errors, 130 when interrupted."""
    try:
        arguments = parser({"demo": demo, "train": train, "evaluate": evaluate}).parse_args(argv)
        with _warnings_on_one_line():
            arguments.run(arguments)
    except UserError as error:
        print(f"{NAME}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{NAME}: interrupted", file=sys.stderr)
        return 130
    return 0


# -------------------------------------------------------------------------------------------------------- the commands


def demo(arguments: argparse.Namespace) -> None:
    """Compare both boosters' own ranking objectives with ours on simulated data."""
    from lambda_objectives.tools.demo import run

    print(run(arguments.queries, arguments.rounds, arguments.seed))


def train(arguments: argparse.Namespace) -> None:
    """Train on files and write the model, its metrics and the learning curve."""
    from lambda_objectives.tools import (
        constrained,
        constraint_report,
        files,
        labels,
        scoring,
        training,
        training_report,
    )
    from lambda_objectives.tools.settings import Settings, parse_params

    settings = Settings(
        booster=arguments.booster,
        metric=scoring.parse_metric(arguments.metric),
        rounds=arguments.rounds,
        early_stopping=arguments.early_stopping,
        train_cutoff=arguments.train_cutoff,
        truncation=arguments.truncation,
        objective=arguments.objective,
        log_norm=arguments.log_norm,
        score_gap_norm=arguments.score_gap_norm,
        seed=arguments.seed,
        params=parse_params(arguments.param),
        watch_labels=arguments.report,
    )
    further = labels.parse_labels(arguments.label)
    wanted = _wanted(arguments, [label.name for label in further])
    for module in (settings.booster, "sklearn", "matplotlib", "tqdm"):
        require(module)  # before the work, not after it
    out = Path(arguments.out)
    files.refuse_existing(out, arguments.overwrite)
    paths = {"train": arguments.train, "valid": arguments.valid, "test": arguments.test}
    share = files.share(arguments.valid)
    with files.all_or_nothing(out) as folder, training_report.overheard() as said:
        read = {role: path for role, path in paths.items() if path is not None}
        data = files.read(read) if share is None else files.read_split(read, share, arguments.seed)
        data, how = labels.add(data, further, remove=True)
        start = time.perf_counter()
        outcome = constrained.run(settings, wanted, data) if wanted is not None else None
        trained = training.train(settings, data) if outcome is None else outcome.model
        seconds = time.perf_counter() - start
        measured = training.measure_all(settings, trained, data)
        by_label = {role: labels.measure_labels(scoring.reported(settings.metric), trained.model.scores(part.X), part)
                    for role, part in data.items()} if further else {}  # fmt: skip
        more = labels.report(further, how, by_label)
        if outcome is None:
            headline, bounds = training_report.headline(trained, settings), None
        else:
            headline, bounds = constraint_report.headline(outcome, settings), constraint_report.facts(outcome, settings)
            more["objective"] = bounds["objective"]
        facts = training_report.facts(settings, trained, data, measured, seconds, more)
        names = training_report.write(folder, trained, facts)
        if outcome is not None and bounds is not None:
            names += constraint_report.write(folder, outcome, settings, bounds)
        if arguments.report:
            names += training_report.write_page(folder, facts, bounds, headline.splitlines(), said)
        for other in WRITTEN - set(names):
            (out / other).unlink(missing_ok=True)  # of an earlier training, with the other booster or constraints
    print(f"{headline}\n")
    if share is not None:
        aside, left = len(data["valid"].group), len(data["train"].group)
        print(
            f"valid: {aside} of the {aside + left} queries of {arguments.train}, at random by --seed {settings.seed}\n"
        )
    print(scoring.metrics_table(measured, data))
    if further:
        print(f"\n{labels.told(further, how, data)}")
        if outcome is None:
            print(f"\n{labels.labels_table(settings.metric.name, by_label)}")
    if outcome is not None:
        print(
            f"\n{constraint_report.constraints_table(outcome)}\n\n{constraint_report.metrics_table(outcome, settings)}"
        )
    if further:
        print(f"\n{labels.taken(further, data['train'])}")
    print(f"\n{', '.join(names)} are in {out}")


def _wanted(arguments: argparse.Namespace, names: Sequence[str]) -> Any:
    """Return what is asked of a training under constraints; None if nothing is."""
    from lambda_objectives.tools.constrained import Wanted, parse_bounds

    options = {name: getattr(arguments, name) for name in ("update", "mu", "start", "land", "tolerance", "judge")}
    given = {name: value for name, value in options.items() if value is not None}
    if arguments.constrain:
        return Wanted(parse_bounds(arguments.constrain, names), **given)
    if given:
        raise UserError(f"--{next(iter(given))} belongs to --constrain, which is not there")
    return None


def evaluate(arguments: argparse.Namespace) -> None:
    """Score a saved model on a file."""
    from lambda_objectives.tools import files, labels, scoring

    further = labels.parse_labels(arguments.label)
    metrics = scoring.reported(scoring.parse_metric(arguments.metric))
    outputs = [Path(name) for name in (arguments.json, arguments.scores) if name is not None]
    for path in outputs:
        files.refuse_existing(path, arguments.overwrite)
    model = scoring.load_model(arguments.model)
    data = files.read({"data": arguments.data})
    data, how = labels.add(data, further, remove=False)
    scores = model.scores(scoring.fit(model, data["data"], [label.feature for label in further]))
    measured = {"data": scoring.measure(metrics, scores, data["data"])}
    by_label = {"data": labels.measure_labels(metrics, scores, data["data"])} if further else {}
    if arguments.json is not None:
        queries, rows = len(data["data"].group), len(data["data"].y)
        report: dict[str, Any] = {"model": arguments.model, "booster": model.booster, "data": arguments.data}
        report |= {"queries": queries, "rows": rows, "metrics": measured["data"]}
        text = json.dumps(report | labels.report(further, how, by_label), indent=1)
        files.write_whole(Path(arguments.json), text + "\n")
    if arguments.scores is not None:
        digits = 9 if model.booster == "xgboost" else 17  # of float32 and float64: what is read back is the same number
        files.write_whole(Path(arguments.scores), "".join(f"{score:.{digits}g}\n" for score in scores.tolist()))
    print(scoring.metrics_table(measured, data))
    if further:
        print(f"\n{labels.told(further, how, data)}")
        print(f"\n{labels.labels_table(scoring.parse_metric(arguments.metric).name, by_label)}")
    if unused := scoring.unused(model, data["data"]):
        print(f"\nThe model was trained without these features of the file: {', '.join(map(str, unused))}.")


@contextmanager
def _warnings_on_one_line() -> Iterator[None]:
    def line(message: Warning | str, *_: object, **__: object) -> str:
        return f"{NAME}: warning: {plain(str(message))}\n"

    usual = warnings.formatwarning
    warnings.formatwarning = line
    try:
        yield
    finally:
        warnings.formatwarning = usual


if __name__ == "__main__":
    sys.exit(main())
