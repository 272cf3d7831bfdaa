"""The command line: ``python -m lambda_objectives demo``, ``train`` and ``evaluate``."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from lambda_objectives.tools.console import UserError, plain, require, table

NAME = "lambda_objectives"
# by some trainings, not by all
WRITTEN = {"model.txt", "model.json", "constraints.json", "constraints.png", "report.html"}
USED = ("numpy", "numba", "lightgbm", "xgboost", "sklearn", "matplotlib", "tqdm")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, 2 for the user's errors, 130 when interrupted."""
    try:
        arguments = _parser().parse_args(argv)
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
    with files.all_or_nothing(out) as folder, training_report.overheard() as said:
        data = files.read({role: path for role, path in paths.items() if path is not None})
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
    print(scoring.metrics_table(measured, data))
    if further:
        print(f"\n{labels.told(further, how, data)}")
        if outcome is None:
            print(f"\n{labels.labels_table(settings.metric.name, by_label)}")
    if outcome is not None:
        print(
            f"\n{constraint_report.constraints_table(outcome)}\n\n{constraint_report.metrics_table(outcome, settings)}"
        )
    print(f"\n{', '.join(names)} are in {out}")


def _wanted(arguments: argparse.Namespace, names: Sequence[str]) -> Any:
    """Return what is asked of a training under constraints; None if nothing is."""
    from lambda_objectives.tools.constrained import Wanted, parse_bounds

    options = {name: getattr(arguments, name) for name in ("update", "mu", "tolerance", "judge")}
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


# -------------------------------------------------------------------------------------------------------- the arguments


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; {self.prog} --help says more")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"python -m {NAME}",
        description="Ranking metrics as objectives for stock LightGBM and XGBoost. Data files are in LETOR format, "
        "rows like '2 qid:10 1:0.5 3:1.5'; .gz and .bz2 are unpacked on the way.",
        epilog="exit status: 0; 2 for an error that you can put right, told in one line; 130 when interrupted",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="versions of the package and of what it uses")
    commands = parser.add_subparsers(title="commands", required=True, metavar="demo | train | evaluate")

    command = _command(commands, "demo", demo, "compare the boosters' own ranking objectives with ours, simulated data")
    command.add_argument("--queries", type=_whole(8), default=6000, metavar="N", help="queries to simulate (6000)")
    command.add_argument("--rounds", type=_whole(1), default=100, metavar="N", help="trees in each model (100)")
    command.add_argument("--seed", type=_whole(0), default=0, metavar="N", help="another seed is another shop (0)")

    command = _command(commands, "train", train, "train a booster on files, with early stopping")
    command.add_argument("--train", required=True, metavar="FILE", help="data to train on")
    command.add_argument("--valid", required=True, metavar="FILE", help="data that early stopping watches")
    command.add_argument("--test", metavar="FILE", help="data to report on only")
    command.add_argument("--booster", required=True, choices=("lightgbm", "xgboost"))
    command.add_argument("--out", required=True, metavar="DIR", help="where to write the model and its metrics")
    command.add_argument("--overwrite", action="store_true", help="write into DIR even if it is not empty")
    _metric(command, "what early stopping watches, as ndcg@10, ndcg or dcg@5 (ndcg@10)")
    command.add_argument("--rounds", type=_whole(1), default=1000, metavar="N", help="the most rounds (1000)")
    command.add_argument("--early-stopping", type=_whole(0), default=50, metavar="N",
                         help="stop after N rounds without a better metric (50); 0: keep all rounds")  # fmt: skip
    command.add_argument("--objective", default="lambdarank", metavar="NAME",
                         help="what is trained on: lambdarank (by the metric), lambdaloss, yetirank (by the metric), "
                         "query-rmse, xendcg, query-softmax or ranknet (lambdarank)")  # fmt: skip
    command.add_argument("--train-cutoff", type=_whole(1), metavar="K",
                         help="cut-off of the metric that is trained on (none: the whole list)")  # fmt: skip
    command.add_argument("--truncation", type=_whole(1), metavar="K",
                         help="train on pairs with a row among the K first ranks (none: all pairs)")  # fmt: skip
    command.add_argument("--log-norm", action=argparse.BooleanOptionalAction,
                         help="weigh queries with much left to learn down, as the boosters do (yes)")  # fmt: skip
    command.add_argument("--score-gap-norm", action=argparse.BooleanOptionalAction,
                         help="weigh pairs with close scores up, as the boosters do (yes)")  # fmt: skip
    command.add_argument("--param", action="append", default=[], metavar="NAME=VALUE",
                         help="a parameter of the booster; may be repeated")  # fmt: skip
    command.add_argument("--seed", type=_whole(0), default=0, metavar="N", help="the booster's seed (0)")
    command.add_argument("--report", action="store_true",
                         help="write report.html too: data, settings, curves, results, features and warnings on one "
                         "page that needs no other file")  # fmt: skip
    _label(command, "a further label, of a feature by its number in the files, which is no feature then; NAME=-NUMBER "
           "if less is better; graded within each query unless all its values are grades, whole from 0 to 4; may be "
           "repeated")  # fmt: skip
    command.add_argument("--constrain", action="append", default=[], metavar="BOUND",
                         help="train under a bound on a label: 'NAME<=0.9*baseline' (its cost, against a model trained "
                         "first without bounds), 'NAME<=1.35', 'NAME>=1.02*baseline' (its metric) or 'NAME>=0.61'; "
                         "costs are those of lambda gradients without normalisations; may be repeated")  # fmt: skip
    command.add_argument("--update", choices=("auto", "carry", "reset"), help="how multipliers move (auto)")
    command.add_argument("--mu", type=float, metavar="X", help="step of the multipliers (1)")
    command.add_argument("--tolerance", type=_share, metavar="X", help="share of a bound that may be missing (0)")
    command.add_argument("--judge", choices=("train", "valid"),
                         help="data on which bounds have to be kept and the round is chosen: train, with as many "
                         "rounds as the baseline took, or valid, with early stopping (train)")  # fmt: skip

    command = _command(commands, "evaluate", evaluate, "score a saved model of either booster on a file")
    command.add_argument("--model", required=True, metavar="FILE", help="what LightGBM or XGBoost saved")
    command.add_argument("--data", required=True, metavar="FILE", help="data to score")
    _metric(command, "a metric besides NDCG at 1, 5 and 10")
    command.add_argument("--json", metavar="FILE", help="write the metrics there too")
    command.add_argument("--scores", metavar="FILE", help="write the scores there, one a line")
    command.add_argument("--overwrite", action="store_true", help="write over files that exist")
    _label(command, "a further label to report on, as in training; may be repeated")
    return parser


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + "."
    )
    command.set_defaults(run=run)
    return command


def _metric(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--metric", default="ndcg@10", metavar="NAME[@K]", help=text)


def _label(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--label", action="append", default=[], metavar="NAME=NUMBER", help=text)


def _share(text: str) -> float:
    """Read a share from 0 on."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to below 1, as in 0.01")
    return value


def _whole(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from a least one on."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return int(text)

    return read


class _Version(argparse.Action):
    """Print versions and stop."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        import lambda_objectives

        rows = [[NAME, lambda_objectives.__version__]]
        for name in USED:
            try:
                rows.append([name, str(getattr(require(name), "__version__", ""))])
            except UserError:
                rows.append([name, "-"])
        print(table(["", "version"], rows))
        parser.exit()


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
