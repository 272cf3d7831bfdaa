"""Metrics by name, and the scores of a saved model of either booster."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import lambda_objectives
from lambda_objectives.arrays import nearest
from lambda_objectives.metrics import NDCG
from lambda_objectives.tools.console import UserError, explained, require, table
from lambda_objectives.tools.files import Ranked, widen

# ----------------------------------------------------------------------------------------------------------- metrics


def parse_metric(text: str) -> Any:
    """Return the metric of a name like ``ndcg@10``, or ``ndcg`` for no cut-off.

    Raises
    ------
    UserError
        For an unknown name or a cut-off that is none.

    Examples
    --------
    >>> from lambda_objectives.tools.scoring import parse_metric
    >>> parse_metric("dcg@5").k
    5
    """
    known = kinds()
    name, at, cutoff = text.partition("@")
    kind: Any = known.get(name.lower())
    if kind is None:
        raise UserError(
            f"unknown metric {text!r}{nearest(name.lower(), known)}: there are {', '.join(sorted(known))}; with a "
            "cut-off as in ndcg@10"
        )
    if not at:
        return with_cutoff(kind, None)
    if not (cutoff.isascii() and cutoff.isdigit() and int(cutoff)):
        raise UserError(f"unknown metric {text!r}: after the @ comes a whole number from 1, as in {name}@10")
    return with_cutoff(kind, int(cutoff))


def kinds() -> dict[str, Any]:
    """The kinds of metrics by name."""
    public = {name.lower(): vars(lambda_objectives).get(name) for name in lambda_objectives.__all__}
    return {
        name: kind
        for name, kind in public.items()
        if isinstance(kind, type) and hasattr(kind, "tables") and not hasattr(kind, "changes")  # CustomMetric
    }


def with_cutoff(kind: type, k: int | None) -> Any:
    """Return a metric of a kind, cut at k."""
    cutoff = next((field for field in dataclasses.fields(kind) if field.name == "k"), None)
    if k is None and cutoff is not None and cutoff.default is dataclasses.MISSING:
        name = kind.__name__.lower()
        raise UserError(f"{name} needs a cut-off, as in {name}@10")
    if k is None:
        return kind()
    if cutoff is None:
        raise UserError(f"{kind.__name__.lower()} takes no cut-off")
    return kind(k=k)


def reported(metric: Any) -> list[Any]:
    """Return NDCG at 1, 5 and 10, and the given metric if it is another."""
    usual: list[Any] = [NDCG(1), NDCG(5), NDCG(10)]
    return usual if metric.name in {m.name for m in usual} else [*usual, metric]


def measure(metrics: Sequence[Any], scores: Any, data: Ranked) -> dict[str, float]:
    """Return the metrics at given scores, by name.

    Raises
    ------
    UserError
        For labels that a metric cannot take, or scores that are not finite.
    """
    with explained(f"{data.path}: "):
        return {metric.name: metric(scores, data.y, group=data.group) for metric in metrics}


def metrics_table(measured: dict[str, dict[str, float]], data: dict[str, Ranked]) -> str:
    """Return a table of metrics, a line a data set, with what has to be known to read it."""
    names = list(next(iter(measured.values())))
    rows = [
        [role, f"{len(data[role].group)}", f"{len(data[role].y)}", *(f"{values[name]:.4f}" for name in names)]
        for role, values in measured.items()
    ]
    lines = table(["", "queries", "rows", *names], rows)
    lacking = {role: data[role].without_relevant for role in measured}
    if any(lacking.values()):
        counts = ", ".join(f"{count} in {role}" for role, count in lacking.items())
        lines += f"\n\n{of_empty(names, f' ({counts})')}"
    return lines


def of_empty(names: Iterable[str], counts: str = "") -> str:
    """Return of which of the named metrics queries without a relevant row have 1.

    Examples
    --------
    >>> from lambda_objectives.tools.scoring import of_empty
    >>> of_empty(["ndcg@10", "map", "mrr"])
    'Queries without a relevant row count 1 in ndcg@10 and map, as in NDCG of both boosters.'
    """
    *others, last = [name for name in names if getattr(parse_metric(name), "empty", 0.0) == 1.0]
    which = f"{', '.join(others)} and {last}" if others else last
    return f"Queries without a relevant row{counts} count 1 in {which}, as in NDCG of both boosters."


# ------------------------------------------------------------------------------------------------------------ models


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model of either booster.

    Attributes
    ----------
    booster
        "lightgbm" or "xgboost".
    handle
        Its Booster.
    rounds
        How many of its rounds count; None for all.
    """

    booster: str
    handle: Any
    rounds: int | None = None

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.handle.num_feature() if self.booster == "lightgbm" else self.handle.num_features())

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """Numbers of the features in LETOR files, for models that were trained here; else None."""
        names = self.handle.feature_name() if self.booster == "lightgbm" else self.handle.feature_names
        found = [re.fullmatch(r"feature_([0-9]{1,9})", name) for name in names or ()]
        numbers = tuple(int(match[1]) for match in found if match)
        return numbers if numbers and len(numbers) == len(found) else None

    def scores(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(n,) scores, before any transformation."""
        with explained("the model cannot score the data: "):
            if self.booster == "lightgbm":
                scores = self.handle.predict(X, raw_score=True, num_iteration=self.rounds)
            else:
                matrix, options = require("xgboost").DMatrix(X), {"output_margin": True, "validate_features": False}
                scores = self.handle.predict(matrix, iteration_range=(0, self.rounds or 0), **options)
        if scores.ndim != 1:
            raise UserError(f"the model has {scores.shape[1]} outputs a row, a ranking needs one score")
        return np.asarray(scores)

    def save(self, folder: Path) -> Path:
        """Write the model in its booster's format: model.txt or model.json."""
        if self.booster == "lightgbm":
            self.handle.save_model(folder / "model.txt", num_iteration=self.rounds)
            return folder / "model.txt"
        handle = self.handle if self.rounds is None else self.handle[: self.rounds]
        handle.save_model(folder / "model.json")
        return folder / "model.json"


def feature_names(numbers: Iterable[int]) -> list[str]:
    """Names of features for a booster, which keep their numbers in the file."""
    return [f"feature_{number}" for number in numbers]


def load_model(path: str) -> Model:
    """Read a model of either booster, recognised by what is in the file.

    Raises
    ------
    UserError
        For a file that is missing or no such model.
    """
    with explained():
        content = Path(path).read_bytes()
    broken = f"{path}: not a whole model of "
    if content.startswith(b"tree"):
        lightgbm = require("lightgbm")
        if b"\nend of trees" not in content:  # LightGBM would end the process
            raise UserError(broken + "LightGBM: the end of the file is missing")
        with explained(broken + "LightGBM: "), silent_stderr():
            return Model("lightgbm", lightgbm.Booster(model_str=content.decode("utf-8")))
    if content.startswith(b"{"):
        handle = require("xgboost").Booster()
        with explained(broken + "XGBoost: "):
            handle.load_model(bytearray(content))
        return Model("xgboost", handle)
    raise UserError(f"{path}: neither a model that LightGBM saved (text) nor one of XGBoost (JSON or UBJSON)")


def fit(model: Model, data: Ranked, labels: Collection[int] = ()) -> npt.NDArray[Any]:
    """Return the features of a file as a model wants them: trailing ones that the file lacks are 0.

    Parameters
    ----------
    model
        The model; one that was trained here knows its features by their numbers in the file.
    data
        A file as it was read, with all of its features.
    labels
        Numbers of features that are labels, so that the model need not know them.

    Raises
    ------
    UserError
        If the file has more features than the model, or counts them from another number.
    """
    if model.numbers is None:
        if len(data.numbers) > model.width:
            raise UserError(f"{data.path}: the file has {len(data.numbers)} features, the model {model.width}")
        return widen(data.X, model.width)
    known = {*model.numbers, *labels}
    strange = [number for number in data.numbers if number not in known]
    if strange and strange[0] == 0:
        raise UserError(
            f"{data.path}: features are numbered from 0, those of the model from {model.numbers[0]}; if feature 0 was "
            "a label in training, say --label NAME=0"
        )
    if beyond := [number for number in strange if number > model.numbers[-1]]:
        shown = ", ".join(map(str, beyond[:5])) + (", ..." if len(beyond) > 5 else "")
        raise UserError(
            f"{data.path}: the model knows features up to {model.numbers[-1]}, the file has more: {shown}; take the "
            "file that belongs to the model, or if these were labels in training, say --label NAME=NUMBER for each"
        )
    place = {number: column for column, number in enumerate(data.numbers)}
    X = np.zeros((len(data.X), len(model.numbers)))
    for column, number in enumerate(model.numbers):
        if number in place:
            X[:, column] = data.X[:, place[number]]
    return X


def unused(model: Model, data: Ranked) -> list[int]:
    """Return the numbers of features that a file has and a model trained here does not, since they were labels."""
    return [] if model.numbers is None else sorted({*data.numbers} - {*model.numbers})


@contextmanager
def silent_stderr() -> Iterator[None]:
    """Discard what LightGBM writes to stderr besides raising an error; Python's own stderr is the same place."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
