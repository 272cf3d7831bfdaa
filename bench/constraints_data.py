"""Data sets with a primary label and further ones to constrain, for the benches of constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import lambda_objectives as lo
from bench.quality import load

Array = npt.NDArray[Any]


class Part(NamedTuple):
    """Rows to train on, or held out."""

    X: Array
    y: Array
    group: Array
    columns: dict[str, Array]


class Labelled(NamedTuple):
    """A data set in two parts, and how long to train on it."""

    name: str
    train: Part
    test: Part
    rounds: int


def simulated(impressions: int, labels: Sequence[str], seed: int, rounds: int = 100) -> Labelled:
    """Product search: the first half of the impressions to train on, the other held out (seed 004, section 4.2)."""
    shop = lo.datasets.product_search(impressions, seed)
    half = impressions // 2
    row = int(shop.group[:half].sum())
    parts = [
        Part(shop.X[rows], shop.y[rows], shop.group[queries], {name: shop.columns[name][rows] for name in labels})
        for rows, queries in ((slice(0, row), slice(0, half)), (slice(row, None), slice(half, None)))
    ]
    return Labelled("product search", *parts, rounds)


def letor(
    name: str, train: Sequence[str], test: Sequence[str], secondary: dict[str, int], rounds: int = 150
) -> Labelled:
    """LETOR files; secondary: label -> feature number, from 1, below 0 where less is better; taken out of X."""
    first, second = load(list(train)), load(list(test))
    width = min(first[0].shape[1], second[0].shape[1])
    taken = [abs(number) - 1 for number in secondary.values()]
    parts = []
    for X, y, group in (first, second):
        columns = {
            label: lo.datasets.grades(np.sign(number) * X[:, abs(number) - 1], group)
            for label, number in secondary.items()
        }
        parts.append(Part(np.delete(X[:, :width], taken, axis=1), y, group, columns))
    return Labelled(name, *parts, rounds)
