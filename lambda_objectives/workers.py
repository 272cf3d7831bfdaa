"""The workers of a training that is spread over processes, and the one thing they do together: add up numbers.

Every worker has whole queries, computes gradients of its own rows, and knows the sums over all workers, so that all of
them move their multipliers alike. For this they must call `exchange` in the same order with the same number of numbers;
what an implementation does is checked, and an error of one worker becomes an error of all of them at the next exchange.
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

    def fail(self, message: str) -> None:
        """Tell the others, who are in `exchange` or will be, that there is nothing to wait for."""

    def close(self) -> None:
        """Part."""


class Alone:
    """One process."""

    rank, size = 0, 1

    def exchange(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The numbers themselves."""
        return numbers

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


def gathered(workers: Workers, values: npt.NDArray[Any], sizes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """What all workers have, one after the other; sizes: how many each of them has, from `all_sizes`."""
    if workers.size == 1:
        return values
    whole = np.zeros(int(sizes.sum()), values.dtype)
    start = int(sizes[: workers.rank].sum())
    whole[start : start + len(values)] = values
    return workers.exchange(whole)


def all_sizes(workers: Workers, size: int) -> npt.NDArray[np.int64]:
    """A whole number of each worker."""
    own = np.zeros(workers.size)
    own[workers.rank] = size
    return workers.exchange(own).astype(np.int64)


def all_texts(workers: Workers, text: str) -> list[str]:
    """A text of each worker."""
    own = np.frombuffer(text.encode(), np.uint8).astype(np.float64)
    sizes = all_sizes(workers, len(own))
    whole = gathered(workers, own, sizes).astype(np.uint8).tobytes()
    ends = np.cumsum(sizes)
    return [whole[end - size : end].decode() for end, size in zip(ends, sizes, strict=True)]
