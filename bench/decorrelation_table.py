"""What `bench.decorrelation` has found, as tables.

A level is a share of what the plain LightGBM of the same split depends on the controls, summed over them, on the
held-out half. A method's AUC there is read off straight lines between neighbouring settings of its sweep, which starts
at the plain model of its booster; where several lines cross a level, the one with the best AUC counts. There is no
figure where a split has no crossing.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.common import table
from bench.decorrelation_data import KINDS

LEVELS = (0.75, 0.5, 0.25)
Row = dict[str, Any]


def show(path: Path, measures: Sequence[str]) -> None:
    """Print all tables."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for name in dict.fromkeys(row["data"] for row in rows):
        of_set = [row for row in rows if row["data"] == name]
        for measure in measures:
            for kind in KINDS:
                print(f"\n{name}, dependence of the {measure}, {kind}\n\n{levels(of_set, measure, kind)}")
    print(f"\nBudgets\n\n{budgets(rows)}")


def levels(rows: Sequence[Row], measure: str, kind: str) -> str:
    """AUC of each method at each level, with the standard error of its difference from the plain LightGBM's."""
    plain = {row["seed"]: row for row in rows if row["method"] == "LightGBM plain"}
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        of_seed = {seed: sweep(rows, method, seed) for seed in plain}
        of_seed = {seed: found for seed, found in of_seed.items() if len(found) > 1 or method.endswith("plain")}
        if not of_seed:
            continue
        cells, base = [], [plain[seed]["auc"] for seed in of_seed]
        for level in LEVELS if not method.endswith("plain") else ():
            found = [
                crossing(
                    [(total(row, measure, kind), row["auc"]) for row in of_seed[seed]],
                    level * total(plain[seed], measure, kind),
                )
                for seed in of_seed
            ]
            cells.append(_with_error(found, base))
        if method.endswith("plain"):
            cells = [_with_error([found[0]["auc"] for found in of_seed.values()], base), "", ""]
        least = statistics.fmean(
            min(total(row, measure, kind) for row in found) / total(plain[seed], measure, kind)
            for seed, found in of_seed.items()
        )
        lines.append([method, len(of_seed), *cells, f"{least:.0%}"])
    return table(["method", "splits", *(f"AUC at {level:.0%}" for level in LEVELS), "least"], lines)


def sweep(rows: Sequence[Row], method: str, seed: int) -> list[Row]:
    """Results of a method on one split, from none of its remedy to most: shares of a budget come in falling order."""
    mine = [row for row in rows if row["seed"] == seed and row["method"] == method]
    mine.sort(key=lambda row: row["setting"], reverse="budget" in method)
    words = method.split()
    if words[0] == "hep_ml" or words[-1] == "plain":
        return mine
    start = f"{words[0] if len(words) > 1 else 'LightGBM'} plain"
    return [row for row in rows if row["seed"] == seed and row["method"] == start] + mine


def crossing(points: Sequence[tuple[float, float]], level: float) -> float:
    """Best AUC on the lines between neighbours, of dependence and AUC, at a level of dependence; NaN without one."""
    found = [
        auc + (other - auc) * (level - at) / (to - at)
        for (at, auc), (to, other) in pairwise(points)
        if min(at, to) <= level <= max(at, to) and at != to
    ]
    return max(found, default=math.nan)


def total(row: Row, measure: str, kind: str) -> float:
    """Over the controls."""
    return float(sum(row["dependence"][measure][kind].values()))


def budgets(rows: Sequence[Row]) -> str:
    """How near each control's dependence on the training half comes to its budget, and what is left held out."""
    mine = [row for row in rows if "budgets" in row]
    plain = {(row["data"], row["seed"], row["method"]): row for row in rows if row["method"].endswith("plain")}
    lines = []
    for data, method, share in dict.fromkeys((row["data"], row["method"], row["setting"]) for row in mine):
        of = [row for row in mine if (row["data"], row["method"], row["setting"]) == (data, method, share)]
        names, kind = list(of[0]["budgets"]), method.split()[-1]
        means = [[statistics.fmean(row[what][name] for row in of) for name in names] for what in ("budgets", "reached")]
        ratios = [[row["reached"][name] / row["budgets"][name] for row in of] for name in names]
        left = statistics.fmean(
            total(row, "raw", kind) / total(plain[data, row["seed"], f"{method.split()[0]} plain"], "raw", kind)
            for row in of
        )
        within = sum(all(row["reached"][name] <= row["budgets"][name] for name in names) for row in of)
        lines.append([
            data, method, f"{share:.0%}", *(", ".join(f"{value:.2g}" for value in each) for each in means),
            ", ".join(f"{statistics.fmean(each):.2f}" for each in ratios), f"{within} of {len(of)}",
            f"{statistics.fmean(row['trees'] for row in of):.0f}", f"{left:.0%}",
            f"{statistics.fmean(row['auc'] for row in of):.4f}",
        ])  # fmt: skip
    head = ["data", "method", "share", "budgets", "reached", "ratios", "kept", "trees", "left held out", "AUC"]
    return table(head, lines, left=2)


def _with_error(found: Sequence[float], base: Sequence[float]) -> str:
    mean = statistics.fmean(found)
    if math.isnan(mean):
        return "-"
    if len(found) < 2:
        return f"{mean:.4f}"
    error = statistics.stdev(a - b for a, b in zip(found, base, strict=True)) / math.sqrt(len(found))
    return f"{mean:.4f} ± {error:.4f}"
