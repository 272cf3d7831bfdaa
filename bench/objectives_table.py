"""The tables of bench.objectives: metrics of each test query, their means and paired errors."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import lambda_objectives as lo
from bench.common import Array, table
from lambda_objectives.kernels import cpu
from lambda_objectives.metrics import values
from lambda_objectives.queries import Queries, Ranking

COLUMNS = (
    "NDCG(10)", "NDCG()", "MAP()", "MRR()", "ERR()", "Precision(10)", "Recall(10)", "HitRate(1)", "HitRate(10)",
    "RBP()", "AUC()", "Kendall()", "Spearman()",
)  # fmt: skip
LEGEND = (
    "Means over {queries} test queries with a relevant row; in brackets the standard error, in units of the last "
    "digit, of the difference from {baseline}, paired by query. **Best of the column**, *within one paired standard "
    "error of it*; ° the row optimises the column's metric."
)


class NotYet(Exception):
    """The package, or a booster, lacks something."""


def made(expression: str) -> Any:
    """A term or metric from its expression, with the names of the package."""
    try:
        return eval(expression, {name: getattr(lo, name) for name in lo.__all__ if name[0].isupper()})
    except NameError as error:
        raise NotYet(str(error)) from None


class Watched:
    """A metric on one data set at ever new scores."""

    def __init__(self, expression: str, labels: Array, group: Array) -> None:
        self._metric = made(expression)
        self.maximise: bool = self._metric.maximise
        self._queries = Queries.from_arrays(labels, group=group)
        self._tables = self._metric.tables(self._queries.labels, self._queries.borders)
        self._ranking = Ranking(self._queries, cpu)

    def values(self, scores: Array) -> Array:
        """One a query."""
        self._ranking.update(np.asarray(scores, dtype=float), ranked=True)
        found: Array = values(self._metric, self._tables, self._ranking)
        return found

    def __call__(self, scores: Array) -> float:
        """Mean over all queries, with or without a relevant row."""
        return float(self.values(scores).mean())


def packed(scores: Array) -> str:
    """Numbers as text, to the last bit."""
    return base64.b64encode(np.asarray(scores, dtype="<f8").tobytes()).decode()


def unpacked(text: str) -> Array:
    """Numbers from what `packed` made."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8")


def per_query(column: str, results: Mapping[Any, dict[str, Any]], tests: Sequence[Any]) -> dict[tuple[str, str], Array]:
    """A metric's value of each test query with a relevant row, mean over the seeds, by booster and objective.

    Rows of which a fold is missing are left out.
    """
    watched = [Watched(column, y, group) for _, y, group in tests]
    relevant = [np.add.reduceat(y, np.cumsum(group) - group) > 0 for _, y, group in tests]
    found: dict[tuple[str, str], list[list[Array]]] = {}
    for task, result in results.items():
        folds = found.setdefault((task.booster, task.objective), [[] for _ in tests])
        folds[task.fold].append(watched[task.fold].values(unpacked(result["scores"]))[relevant[task.fold]])
    return {
        row: np.concatenate([np.mean(fold, axis=0) for fold in folds])
        for row, folds in found.items()
        if all(folds)
    }  # fmt: skip


def error(difference: Array) -> float:
    """Standard error of a mean."""
    return float(difference.std(ddof=1) / np.sqrt(len(difference)))


def print_tables(
    rows: list[Any],
    results: Mapping[Any, dict[str, Any]],
    tests: Sequence[Any],
    baselines: Sequence[str],
    wanted: Sequence[str],
) -> None:
    """One table a booster."""
    columns = {}
    for column in wanted:
        try:
            columns[column] = per_query(column, results, tests)
        except NotYet as reason:
            print(f"left out: column {column}: {reason}", file=sys.stderr)
    complete = next(iter(columns.values()))
    for booster in dict.fromkeys(booster for booster, _, _ in rows):
        shown = [objective for name, objective, _ in rows if name == booster and (name, objective) in complete]
        if not shown:
            continue
        baseline = next((name for name in shown if f"{booster} {name}" in baselines), shown[0])
        cells = [[objective, *_count(booster, objective, results)] for objective in shown]
        for column, found in columns.items():
            of_row = {name: found[booster, name] for name in shown}
            for row, cell in zip(cells, _column(column, of_row, baseline), strict=True):
                row.append(cell)
        print(f"\n{booster}\n")
        print(table(["objective", "seeds", "trees", *(made(column).name for column in columns)], cells))
        print("\n" + LEGEND.format(queries=len(complete[booster, shown[0]]), baseline=baseline))


def print_differences(row: str, results: Mapping[Any, dict[str, Any]], tests: Sequence[Any], column: str) -> None:
    """Every row beside one, of whatever booster: mean, difference and its paired standard error, best first."""
    found = per_query(column, results, tests)
    named = {f"{booster} {objective}": values for (booster, objective), values in found.items()}
    if row not in named:
        raise SystemExit(f"--against: no row {row!r} is complete")
    cells = [
        [name, f"{mine.mean():.4f}", f"{(mine - named[row]).mean():+.4f} ± {error(mine - named[row]):.4f}"]
        for name, mine in sorted(named.items(), key=lambda item: -item[1].mean())
    ]
    print("\n" + table(["", made(column).name, f"less {row}"], cells))


def _count(booster: str, objective: str, results: Mapping[Any, dict[str, Any]]) -> tuple[int, int]:
    """Seeds and mean number of trees."""
    mine = {task: result for task, result in results.items() if (task.booster, task.objective) == (booster, objective)}
    return len({task.seed for task in mine}), round(np.mean([result["trees"] for result in mine.values()]))


def _column(column: str, of_row: dict[str, Array], baseline: str) -> list[str]:
    """Cells of one metric."""
    best = max(of_row, key=lambda name: of_row[name].mean())
    cells = []
    for name, mine in of_row.items():
        text = f"{mine.mean():.4f}".replace("0.", ".", 1)
        if name != baseline:
            text += f"({1e4 * error(mine - of_row[baseline]):.0f})"
        gap = of_row[best] - mine
        mark = "**" if name == best else "*" if gap.mean() <= error(gap) else ""
        own = "°" if name.endswith(")") and getattr(made(name), "metric", None) == made(column) else ""
        cells.append(f"{mark}{text}{mark}{own}")
    return cells
