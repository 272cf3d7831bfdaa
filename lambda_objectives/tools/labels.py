"""Further labels of the rows, from features of a LETOR file: `--label NAME=NUMBER`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.tools.console import UserError, explained, table
from lambda_objectives.tools.files import Ranked
from lambda_objectives.tools.grading import POINTS, grades
from lambda_objectives.tools.scoring import measure

OWN = "label"  # what the labels of the file itself are called in reports
TOP = 4  # the highest grade


@dataclass(frozen=True)
class Label:
    """A feature of the file that is to be a label.

    Attributes
    ----------
    name
        What it is called.
    feature
        Number of the feature, as in the file.
    less
        Less is better.
    """

    name: str
    feature: int
    less: bool = False

    @property
    def text(self) -> str:
        """The option that makes it."""
        return f"--label {self.name}={'-' if self.less else ''}{self.feature}"


def parse_labels(words: Sequence[str]) -> list[Label]:
    """Read ``NAME=NUMBER`` and, where less is better, ``NAME=-NUMBER``.

    Raises
    ------
    UserError
        For another form, and for a name given twice.

    Examples
    --------
    >>> from lambda_objectives.tools.labels import parse_labels
    >>> parse_labels(["quality=132", "short=-42"])
    [Label(name='quality', feature=132, less=False), Label(name='short', feature=42, less=True)]
    """
    labels: list[Label] = []
    for word in words:
        found = re.fullmatch(r"\s*([A-Za-z][A-Za-z0-9_-]*)\s*=\s*(-?)\s*([0-9]{1,9})\s*", word)
        if found is None:
            raise UserError(
                f"--label {word!r}: NAME=NUMBER is wanted, a name of letters, digits, - and _, and the number of a "
                "feature in the file, as in --label quality=132; --label short=-42 if less is better"
            )
        name = found[1]
        if name == OWN:
            raise UserError(f"--label {word!r}: {OWN!r} is what the file's own labels are called; choose another name")
        if name in [label.name for label in labels]:
            raise UserError(f"--label {word!r}: there are two labels of the name {name!r}; rename one")
        labels.append(Label(name, int(found[3]), less=found[2] == "-"))
    return labels


def add(
    data: Mapping[str, Ranked], labels: Sequence[Label], *, remove: bool
) -> tuple[dict[str, Ranked], dict[str, str]]:
    """Make labels of features.

    A feature whose values are whole numbers from 0 to 4 in all files is taken as it is (if less is better, subtracted
    from its largest value); any other is graded within each query, see `lambda_objectives.datasets.grades`.

    Parameters
    ----------
    data
        Files by role, all equally wide.
    labels
        What is wanted.
    remove
        Take the features out of X, as a model that is trained to rank by them should not see them.

    Returns
    -------
    data with the labels, and by the name of each label how it was made.

    Raises
    ------
    UserError
        For a number that no feature has, values that are not finite, and if no feature is left.
    """
    parts, how = dict(data), {}
    for label in labels:
        columns = {role: _column(part, label) for role, part in data.items()}
        made, how[label.name] = _graded(columns, data, label)
        parts = {role: replace(part, labels={**part.labels, label.name: made[role]}) for role, part in parts.items()}
    if remove:
        taken = {label.feature for label in labels}
        parts = {role: _without(part, taken) for role, part in parts.items()}
    return parts, how


def _column(part: Ranked, label: Label) -> npt.NDArray[np.float64]:
    if label.feature not in part.numbers:
        raise UserError(f"{label.text}: there are features {part.numbers[0]} to {part.numbers[-1]} in {part.path}")
    column = part.X[:, part.numbers.index(label.feature)]
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise UserError(
            f"{label.text}: a label must be known in every row: feature {label.feature} is {column[row]} in row "
            f"{row + 1} of {part.path}"
        )
    return column


def _graded(
    columns: Mapping[str, npt.NDArray[np.float64]], data: Mapping[str, Ranked], label: Label
) -> tuple[dict[str, Any], str]:
    """Grades of a feature by role, and how they came about."""
    what = f"feature {label.feature}"
    every = np.concatenate(list(columns.values()))
    if ((every >= 0) & (every <= TOP) & (every % 1 == 0)).all():
        if not label.less:
            return {role: column.copy() for role, column in columns.items()}, f"{what} as it is, whole grades"
        most = every.max()
        how = f"{most:g} - {what}, whole grades, for less is better"
        return {role: most - column for role, column in columns.items()}, how
    sign = -1.0 if label.less else 1.0
    with explained(f"{label.text}: "):
        made = {role: grades(sign * column, data[role].group) for role, column in columns.items()}
    points = ", ".join(f"{point:g}" for point in POINTS)
    return made, f"{what}{', less is better' if label.less else ''}, graded within each query (percentiles {points})"


def _without(part: Ranked, taken: set[int]) -> Ranked:
    kept = [column for column, number in enumerate(part.numbers) if number not in taken]
    if not kept:
        raise UserError(f"--label: all features of {part.path} are labels, and none is left to rank by")
    numbers = tuple(part.numbers[column] for column in kept)
    return replace(part, X=np.ascontiguousarray(part.X[:, kept]), numbers=numbers)


def varied(part: Ranked, name: str) -> int:
    """Number of queries in which a label has two different grades."""
    starts = np.cumsum(part.group) - part.group
    column = part.labels[name]
    return int((np.maximum.reduceat(column, starts) > np.minimum.reduceat(column, starts)).sum())


def measure_labels(metrics: Sequence[Any], scores: Any, part: Ranked) -> dict[str, dict[str, float]]:
    """Return metrics by label, those of the file itself first.

    Raises
    ------
    UserError
        For labels that a metric cannot take.
    """
    measured = {OWN: measure(metrics, scores, part)}
    for name, column in part.labels.items():
        measured[name] = measure(metrics, scores, replace(part, y=column, path=f"{part.path}, label {name}"))
    return measured


def told(labels: Sequence[Label], how: Mapping[str, str], data: Mapping[str, Ranked]) -> str:
    """Return a table of how each label was made and in how many queries it can tell rows apart."""
    rows = [
        [f"{label.name}: {how[label.name]}", *(f"{varied(p, label.name)} of {len(p.group)}" for p in data.values())]
        for label in labels
    ]
    return table(["further label, and the number of queries in which it differs", *data], rows)


def labels_table(metric: str, measured: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Return a table of one metric, a line a label and a column a data set; measured is by data set and label."""
    names = list(next(iter(measured.values())))
    rows = [[name, *(f"{values[name][metric]:.4f}" for values in measured.values())] for name in names]
    return table([f"{metric} by label", *measured], rows)


def taken(labels: Sequence[Label], part: Ranked) -> str:
    """Return how many features are left to a model, and which are none since they are labels."""
    features = sorted({label.feature for label in labels})
    *others, last = map(str, features)
    which = f"{', '.join(others)} and {last} are labels" if others else f"{last} is a label"
    count = len(part.numbers)
    return f"The model takes {count} feature{'' if count == 1 else 's'}: {which}."


def report(labels: Sequence[Label], how: Mapping[str, str], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file of metrics has to say about further labels; nothing without any."""
    if not labels:
        return {}
    made = {label.name: {"feature": label.feature, "less": label.less, "made_of": how[label.name]} for label in labels}
    return {"labels": made, "label_metrics": dict(measured)}
