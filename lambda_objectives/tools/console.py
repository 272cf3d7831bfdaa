"""What the command line says: errors on one line, aligned tables, progress bars."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

EXTRA = 'pip install "lambda-objectives[cpu]"'


class UserError(Exception):
    """Something that the user can put right; its text is one line."""

    def __init__(self, message: object) -> None:
        super().__init__(" ".join(str(message).split()))


@contextmanager
def explained(what: str = "") -> Iterator[None]:
    """Turn the errors that this package and the boosters raise for bad input into `UserError`.

    Parameters
    ----------
    what
        What the error is about, put in front of its message.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        raise UserError(what + _said(error)) from error
    except Exception as error:
        if type(error).__name__ != "LightGBMError":  # by name: LightGBM need not be there
            raise
        raise UserError(what + _said(error)) from error


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return plain(str(error))


def plain(text: str) -> str:
    """Take times, stacks and places in the boosters' sources out of what they say, and put it on one line."""
    text = text.partition("\nStack trace:")[0]
    text = re.sub(r"^\[\d\d:\d\d:\d\d\] (WARNING: )?\S+:\d+: ", "", text)  # XGBoost
    text = re.sub(r" at \S+, line \d+ \.\s*$", "", text)  # LightGBM
    return " ".join(text.split())


def require(module: str) -> Any:
    """Import what is not always installed.

    Raises
    ------
    UserError
        If it is not there, with what to install; if it cannot be loaded, with the reason.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(f"{module.partition('.')[0]} is not installed: {EXTRA}") from error
    except (ImportError, OSError) as error:
        raise UserError(f"{module.partition('.')[0]} is installed but cannot be loaded: {error}") from error


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, the others to the right.

    Examples
    --------
    >>> from lambda_objectives.tools.console import table
    >>> print(table(["", "rows"], [["train", "1200"], ["valid", "300"]]))
           rows
    train  1200
    valid   300
    """
    cells = [header, *rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def progress(total: int, what: str) -> Any:
    """Return a progress bar over rounds, on stderr and only on a terminal; a context manager with `update(1)`."""
    tqdm = require("tqdm").tqdm
    return tqdm(total=total, desc=what, unit="round", file=sys.stderr, disable=None, dynamic_ncols=True)
