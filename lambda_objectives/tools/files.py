"""Files of the command line's jobs: LETOR files read alike, results that are there whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lambda_objectives.tools.console import UserError, explained, require


@dataclass(frozen=True, eq=False)
class Ranked:
    """Data to rank, from one file.

    Attributes
    ----------
    path
        The file, as the user named it.
    X
        (n, d) features.
    y
        (n,) labels.
    group
        (Q,) sizes of the queries.
    numbers
        (d,) number of each feature in the file, rising.
    labels
        (n,) further labels by name.
    """

    path: str
    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    group: npt.NDArray[np.int64]
    numbers: tuple[int, ...]
    labels: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)

    @property
    def without_relevant(self) -> int:
        """Number of queries none of whose labels is above 0."""
        starts = np.cumsum(self.group) - self.group
        return int((np.maximum.reduceat(self.y, starts) <= 0).sum())


def read(paths: Mapping[str, str]) -> dict[str, Ranked]:
    """Read LETOR files into matrices of the same width, features numbered from 0 in all of them or from 1 in all.

    Parameters
    ----------
    paths
        Files by what they are for, such as "train".

    Raises
    ------
    UserError
        For a file that is missing or does not parse.
    """
    require("sklearn")
    from lambda_objectives.tools.datasets import load_letor

    found = {}
    for role, path in paths.items():
        with explained():
            found[role] = load_letor(path, zero_based=True)  # whether there is a feature 0 shows in column 0
    first = 0 if any(data.X[:, :1].any() for data in found.values()) else 1
    width = max(data.X.shape[1] for data in found.values()) - first
    if width < 1:
        raise UserError(f"{next(iter(paths.values()))}: no features in this file; they are words like 3:1.5")
    return {
        role: Ranked(
            paths[role], widen(data.X[:, first:], width), data.y, data.group, tuple(range(first, first + width))
        )
        for role, data in found.items()
    }


def share(text: str) -> float | None:
    """Read what stands in place of a file as a share of the queries; None for a file, which wins if it is there.

    Raises
    ------
    UserError
        For a number that is no share.

    Examples
    --------
    >>> from lambda_objectives.tools.files import share
    >>> share("0.25"), share("vali.txt")
    (0.25, None)
    """
    if re.fullmatch(r"[0-9]*\.?[0-9]+|[0-9]+\.", text) is None or Path(text).exists():
        return None
    if not 0 < float(text) < 1:
        raise UserError(
            f"--valid {text}: there is no such file, and a share of the queries is between 0 and 1, as 0.25"
        )
    return float(text)


def read_split(paths: Mapping[str, str], part: float, seed: int) -> dict[str, Ranked]:
    """Read files as `read` does, the validation data being a share of the queries of "train", at random.

    Raises
    ------
    UserError
        For a share that leaves no query on one side, besides what `read` raises.
    """
    named = {role: path for role, path in paths.items() if role != "valid"}
    found = read(named)
    whole = found["train"]
    count, total = round(part * len(whole.group)), len(whole.group)
    if not 0 < count < total:
        side = "validate" if count == 0 else "train"
        raise UserError(f"--valid {paths['valid']}: no query of {whole.path}, which has {total}, is left to {side} on")
    taken = np.zeros(total, dtype=np.bool_)
    taken[np.random.default_rng(seed).permutation(total)[:count]] = True
    rows = np.repeat(taken, whole.group)
    sides = {
        role: Ranked(
            f"{whole.path} ({count if drawn else total - count} of its {total} queries, by --seed {seed})",
            whole.X[rows == drawn], whole.y[rows == drawn], whole.group[taken == drawn], whole.numbers,
        )
        for role, drawn in (("train", False), ("valid", True))
    }  # fmt: skip
    return {**sides, **{role: each for role, each in found.items() if role != "train"}}


def widen(X: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """Return a matrix with columns of zeros added on the right, in memory of its own."""
    out = np.zeros((len(X), width))
    out[:, : X.shape[1]] = X
    return out


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Refuse to write over a file, or into a directory that is not empty."""
    if path.is_dir():
        if any(path.iterdir()) and not overwrite:
            raise UserError(f"{path} is not empty: name another directory, or say --overwrite")
    elif (path.exists() or path.is_symlink()) and not overwrite:
        raise UserError(f"{path} exists: name another one, or say --overwrite")


@contextmanager
def all_or_nothing(out: Path) -> Iterator[Path]:
    """Yield a temporary directory whose files are moved to ``out`` at the end, if nothing failed until then.

    It lies in ``out`` if that is there and else where ``out`` will be, so that moving is renaming. Directories that
    lack are made at the end. Other files in ``out`` are left alone.
    """
    anchor = next(place for place in (out.absolute(), *out.absolute().parents) if place.exists())
    if not anchor.is_dir():
        raise UserError(f"{anchor} is a file: {out} cannot be a directory")
    try:
        stage = Path(tempfile.mkdtemp(prefix=".lambda_objectives-", dir=anchor))
    except OSError as error:
        raise UserError(f"cannot write in {anchor}: {error.strerror}") from error
    try:
        yield stage
        with explained():
            out.mkdir(parents=True, exist_ok=True)
            for file in sorted(stage.iterdir(), key=lambda file: file.stat().st_mtime_ns):
                os.replace(file, out / file.name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all."""
    if path.is_dir():
        raise UserError(f"{path} is a directory: name a file")
    with all_or_nothing(path.parent) as stage:
        (stage / path.name).write_text(text, encoding="utf-8")
