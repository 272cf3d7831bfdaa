"""The workers of a training that is spread over processes: they add up numbers, and put vectors together.

Every worker has whole queries, computes gradients of its own rows, and knows the sums over all workers, so that all of
them move their multipliers alike. For this they must call `exchange` and `gather` in the same order, with the same
number of numbers: that is checked, and an error of one worker becomes an error of all of them at the next exchange.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class WorkerError(RuntimeError):
    """Another worker failed, or was lost."""


class Workers(Protocol):
    """All workers, seen from one of them."""

    @property
    def rank(self) -> int:
        """Which of them this is, from 0."""

    @property
    def size(self) -> int:
        """How many there are."""

    def exchange(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up, element by element, what all workers have; every one gets the same bits.

        Raises `WorkerError` if one of them calls `fail` instead, gives another number of numbers, or is gone.
        """

    def gather(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The vectors that all workers have, those of the first one first; they may differ in length, not in type."""

    def fail(self, message: str) -> None:
        """Tell the others, who are in one of these or will be, that there is nothing to wait for."""

    def close(self) -> None:
        """Part."""


class Alone:
    """One process."""

    rank, size = 0, 1

    def exchange(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The numbers themselves."""
        return numbers

    def gather(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The values themselves."""
        return values

    def fail(self, message: str) -> None:
        """Nobody to tell."""

    def close(self) -> None:
        """Nobody to part from."""


ALONE = Alone()


@contextmanager
def agreeing(workers: Workers) -> Iterator[None]:
    """Within this, an error of one worker is raised by all of them, at the exchange that they come to next."""
    try:
        yield
    except WorkerError:
        raise
    except Exception as error:
        workers.fail(f"{type(error).__name__}: {error}")
        raise


def all_sizes(workers: Workers, size: int) -> npt.NDArray[np.int64]:
    """A whole number of each worker."""
    return workers.gather(np.array([size], dtype=np.int64))


def all_texts(workers: Workers, text: str) -> list[str]:
    """A text of each worker."""
    own = np.frombuffer(text.encode(), np.uint8)
    sizes = all_sizes(workers, len(own))
    whole = workers.gather(own).tobytes()
    ends = np.cumsum(sizes)
    return [whole[end - size : end].decode() for end, size in zip(ends, sizes, strict=True)]
