"""The arguments of the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from lambda_objectives.tools.console import UserError, require, table

NAME = "lambda_objectives"
USED = ("numpy", "numba", "lightgbm", "xgboost", "sklearn", "matplotlib", "tqdm")
METRICS = "auc, dcg, err, hitrate, kendall, map, mrr, ndcg, precision, rbp, recall, spearman"
NAMES = f"{METRICS}; with a cut-off as in ndcg@10, without which precision, recall and hitrate cannot be"
Run = Callable[[argparse.Namespace], None]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; {self.prog} --help says more")


def parser(commands: Mapping[str, Run]) -> argparse.ArgumentParser:
    """Return the parser of the command line; what it reads has ``run``, the command of that name.

    Parameters
    ----------
    commands
        What to run, for "demo", "train" and "evaluate".
    """
    whole = _Parser(
        prog=f"python -m {NAME}",
        description="Ranking metrics as objectives for stock LightGBM and XGBoost. Data files are in LETOR format, "
        "rows like '2 qid:10 1:0.5 3:1.5'; .gz and .bz2 are unpacked on the way.",
        epilog="exit status: 0; 2 for an error that you can put right, told in one line; 130 when interrupted",
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="versions of the package and of what it uses")
    places = whole.add_subparsers(title="commands", required=True, metavar="demo | train | evaluate")
    _demo(_command(places, "demo", commands, "compare the boosters' own ranking objectives with ours, simulated data"))
    _train(_command(places, "train", commands, "train a booster on files, with early stopping"))
    _evaluate(_command(places, "evaluate", commands, "score a saved model of either booster on a file"))
    return whole


def _demo(command: argparse.ArgumentParser) -> None:
    command.add_argument("--queries", type=_whole(8), default=6000, metavar="N", help="queries to simulate (6000)")
    command.add_argument("--rounds", type=_whole(1), default=100, metavar="N", help="trees in each model (100)")
    command.add_argument("--seed", type=_whole(0), default=0, metavar="N", help="another seed is another shop (0)")


def _train(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "Defaults are those of the command line: learning rate .05, and for lambdarank and lambdaloss both "
        "normalisations, as the boosters have them; in Python the booster's own learning rate and none."
    )
    command.add_argument("--train", required=True, metavar="FILE", help="data to train on")
    command.add_argument("--valid", required=True, metavar="FILE",
                         help="data that early stopping watches; a share as 0.25 takes that many of the queries of the "
                         "training file out for it, at random by --seed")  # fmt: skip
    command.add_argument("--test", metavar="FILE", help="data to report on only")
    command.add_argument("--booster", required=True, choices=("lightgbm", "xgboost"))
    command.add_argument("--out", required=True, metavar="DIR", help="where to write the model and its metrics")
    command.add_argument("--overwrite", action="store_true", help="write into DIR even if it is not empty")
    _metric(command, f"what early stopping watches: {NAMES} (ndcg@10)")
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
    command.add_argument("--seed", type=_whole(0), default=0, metavar="N",
                         help="seed of the booster, of an objective that draws, and of --valid 0.25 (0)")  # fmt: skip
    command.add_argument("--report", action="store_true",
                         help="write report.html too: data, settings, curves, results, features and warnings on one "
                         "page that needs no other file")  # fmt: skip
    _label(command, "a further label, of a feature by its number in the files, which is no feature then; NAME=-NUMBER "
           "if less is better; graded within each query unless all its values are grades, whole from 0 to 4; may be "
           "repeated")  # fmt: skip
    command.add_argument("--constrain", action="append", default=[], metavar="BOUND",
                         help="train under a bound on a label: 'NAME<=0.9*baseline' (its cost, against a model trained "
                         "first without bounds, on each data set its own), 'NAME<=1.35', 'NAME>=1.02*baseline' (its "
                         "metric) or 'NAME>=0.61'; costs are those of lambda gradients without normalisations; may be "
                         "repeated")  # fmt: skip
    command.add_argument("--update", choices=("auto", "carry", "reset"), help="how multipliers move (auto)")
    command.add_argument("--mu", type=float, metavar="X", help="step of the multipliers (1)")
    command.add_argument("--tolerance", type=_share, metavar="X", help="share of a bound that may be missing (0)")
    command.add_argument("--start", type=float, metavar="N",
                         help="rounds without bounds, or below 1 a share of those that the baseline kept (auto: .3, "
                         "carry and reset: 0)")  # fmt: skip
    command.add_argument("--land", type=float, metavar="N",
                         help="round by which auto leads costs to their bounds, or below 1 a share as for --start "
                         "(.8)")  # fmt: skip
    command.add_argument("--judge", choices=("train", "valid"),
                         help="data on which bounds have to be kept, and by which the round is chosen: train, with as "
                         "many rounds as the baseline kept (50 at the least, if it took so many), or valid, whose "
                         "costs multipliers then follow, with early stopping (train)")  # fmt: skip


def _evaluate(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", required=True, metavar="FILE", help="what LightGBM or XGBoost saved")
    command.add_argument("--data", required=True, metavar="FILE", help="data to score")
    _metric(command, f"a metric besides NDCG at 1, 5 and 10: {NAMES}")
    command.add_argument("--json", metavar="FILE", help="write the metrics there too")
    command.add_argument("--scores", metavar="FILE", help="write the scores there, one a line")
    command.add_argument("--overwrite", action="store_true", help="write over files that exist")
    _label(command, "a further label to report on, as in training; may be repeated")


def _command(places: Any, name: str, commands: Mapping[str, Run], text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = places.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    command.set_defaults(run=commands[name])
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
        sys.stdout.write(table(["", "version"], rows) + "\n")
        parser.exit()
