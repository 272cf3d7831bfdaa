"""From labels to gains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, vector

Gain = str | tuple[float, ...] | Callable[[Vector], npt.ArrayLike]


def checked_gain(gain: Any) -> Gain:
    """Return a gain as it is, a sequence as a tuple; refuse what is none."""
    if callable(gain):
        return gain  # type: ignore[no-any-return]
    if isinstance(gain, str):
        if gain not in ("exp2", "linear"):
            raise ValueError(f"gain must be 'exp2', 'linear', a sequence or a function, found {gain!r}")
        return gain
    table = vector("gain", gain)
    if len(table) == 0 or (table < 0).any() or (np.diff(table) < 0).any():
        raise ValueError(f"gain: a table must not be empty, negative or falling, found {tuple(table.tolist())}")
    return tuple(table.tolist())


def gains(metric: Any, gain: Gain, labels: Vector) -> Vector:
    """(n,) gain of each row; 0 for rows without a judgement (NaN)."""
    judged = ~np.isnan(labels)
    if judged.all():
        return _gains(metric, gain, labels, np.arange(len(labels)))
    out = np.zeros(len(labels))
    out[judged] = _gains(metric, gain, labels[judged], np.flatnonzero(judged))
    return out


def _gains(metric: Any, gain: Gain, labels: Vector, rows: npt.NDArray[np.int64]) -> Vector:
    check_not_negative(metric, labels, rows)
    if gain == "exp2":
        with np.errstate(over="ignore"):
            out = np.exp2(labels) - 1.0
    elif gain == "linear":
        out = labels.copy()
    elif callable(gain):
        out = vector("gain: what the function returned", gain(labels.copy()), len(labels))
        order = np.argsort(labels, kind="stable")
        if (out < 0).any() or (np.diff(out[order]) < 0).any():
            raise ValueError(f"gain: {gain!r} must be nowhere negative and must not fall as the label rises")
    else:
        place = labels.astype(np.int64)
        wrong = (place != labels) | (place >= len(gain))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(
                f"gain: the table has entries for labels 0 to {len(gain) - 1}, row {rows[i]} has {labels[i]:g}: give "
                "it an entry for each label; of labels that are no whole numbers take gain='linear' or a function"
            )
        out = np.array(gain)[place]
    if (out > 1e30).any():
        i = int(np.argmax(out > 1e30))
        raise ValueError(
            f"gain: the gain of label {labels[i]:g} (row {rows[i]}) is too large: {out[i]:g}; write gain='linear', or "
            "bring the labels down to grades: lambda_objectives.datasets.grades(values, group)"
        )
    return out


def check_not_negative(metric: Any, labels: Vector, rows: npt.NDArray[np.int64] | None = None) -> None:
    """Refuse negative labels."""
    if (labels < 0).any():
        i = int(np.argmax(labels < 0))
        row = i if rows is None else rows[i]
        raise ValueError(
            f"label: {metric!r} takes no negative labels, row {row} is {labels[i]:g}: add a number to all, so that "
            "they begin at 0"
        )
