"""A metric of a user who stops at the first row that satisfies: ERR."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lambda_objectives.arrays import Vector
from lambda_objectives.kernels import CASCADE
from lambda_objectives.metrics.binary import graded, reciprocal_ranks
from lambda_objectives.metrics.tables import (
    Ints,
    Tables,
    call,
    check_cutoff,
    check_number,
    name_with_cutoff,
    values_by_tables,
)


@dataclass(frozen=True)
class ERR:
    """Expected reciprocal rank: of the row at which a user stops, who reads downwards until satisfied.

    ``ERR@k = sum over ranks r < k of R_r / (r + 1) * product over ranks q < r of (1 - R_q)``, with the probability
    ``R = (2^label - 1) / 2^max_grade`` that a row satisfies.

    Parameters
    ----------
    k
        Cut-off; None for the whole list.
    max_grade
        Largest label.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for labels below 0 or above `max_grade`.

    Notes
    -----
    gdeval's ERR, for which a label is at most 4. CatBoost's takes labels as the probabilities. A query without a
    relevant row is worth 0. Rows with equal scores rank in the order of the rows.

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan (2009), "Expected reciprocal rank for graded relevance", equation 4.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.ERR(max_grade=1)([0.3, 0.2, 0.1], [0, 1, 1], group=[3])  # 1/4 + 1/12
    0.333333...
    """

    k: int | None = None
    max_grade: float = 4

    def __post_init__(self) -> None:
        check_cutoff(self.k)
        check_number("max_grade", self.max_grade, above=0.0)
        if self.max_grade > 50:
            raise ValueError(f"max_grade must be at most 50, found {self.max_grade!r}")

    name = property(name_with_cutoff)
    maximise = True
    __call__ = call
    values = values_by_tables

    def tables(self, labels: Vector, ptr: Ints) -> Tables:
        """Return the probability that a row satisfies, and 1 / (rank + 1)."""
        satisfies = (np.exp2(graded(self, labels, self.max_grade)) - 1.0) / 2.0**self.max_grade
        return Tables(np.nan_to_num(satisfies), reciprocal_ranks(self.k, ptr), kind=CASCADE)
