"""The rows of all workers in one place, for what cannot be told from sums: each worker has a copy."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt

from lambda_objectives.queries import Queries
from lambda_objectives.workers import all_sizes, all_texts


class Whole:
    """A data set that is spread over workers, as one.

    Attributes
    ----------
    queries
        All rows, those of the first worker first.
    own
        Where the rows of this worker lie among them.
    """

    def __init__(self, part: Queries) -> None:
        self.workers = part.workers
        self.sizes = all_sizes(self.workers, len(part))
        start = int(self.sizes[: self.workers.rank].sum())
        self.own = slice(start, start + len(part))
        names = self._names(part)
        weighted = part.total(part.weights is not None)[0] > 0
        ones = np.ones(len(part))
        columns = {name: self.gather(part.columns[name] if name in part.columns else ones[:0]) for name in names}
        weights = self.gather(ones if part.weights is None else part.weights) if weighted else None
        self.queries = Queries(self.gather(part.labels), self._borders(part), weights, columns)

    def gather(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(n,) of all rows, from the part of each worker."""
        return self.workers.gather(values)

    def _names(self, part: Queries) -> list[str]:
        """Names of the columns, which all workers must have that have rows."""
        of_each = [json.loads(text) for text in all_texts(self.workers, json.dumps(sorted(part.columns)))]
        known = [names for names, size in zip(of_each, self.sizes, strict=True) if size] or [[]]
        if any(names != known[0] for names in known):
            raise ValueError(f"columns: the workers do not have the same ones: {' / '.join(map(str, known))}")
        return list(known[0])

    def _borders(self, part: Queries) -> npt.NDArray[np.int64] | None:
        ptr = part.ptr
        if part.total(ptr is not None and len(part) > 0)[0] == 0:
            return None
        sizes = np.empty(0) if ptr is None else np.diff(ptr).astype(np.float64)
        sizes = self.workers.gather(sizes)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
