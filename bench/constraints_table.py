"""What `bench.constraints` has found, as tables.

A setting is a data set, a booster and a cut. The rival of a setting is the rule among equations 13 and 14, at every mu,
with and without kappa, that has the least median primary cost over the seeds there: chosen afresh for each setting. A
training that returns no feasible round counts as infinitely dear.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.common import table

OURS = "auto"
Row = dict[str, Any]


def show(path: Path) -> None:
    """Print all tables."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    runs = [row for row in rows if row["rule"] != "unconstrained"]
    free = {(row["data"], row["booster"], row["seed"]): row for row in rows if row["rule"] == "unconstrained"}
    by_setting: dict[tuple[str, str, float], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in runs:
        by_setting[row["data"], row["booster"], row["cut"]][row["rule"]].append(row)
    print(settings(by_setting, free), "\n")
    print(rules(by_setting, free), "\n")
    print(held_out(by_setting, free))


def settings(by_setting: dict[Any, dict[str, list[Row]]], free: dict[Any, Row]) -> str:
    """Ours beside the best rival of each setting."""
    lines = []
    for (data, booster, cut), of in sorted(by_setting.items()):
        ours, (name, best) = of.get(OURS, []), _rival(of)
        if not ours:
            continue
        unconstrained = statistics.median(free[data, booster, row["seed"]]["primary"] for row in ours)
        excess = _percent(_cost(ours), _cost(best))
        lines.append([
            data, booster, f"{cut:.0%}", f"{_met(ours)} of {len(ours)}", _share(row["margin"] for row in ours),
            f"{unconstrained:.4f}", f"{_cost(ours):.4f}", f"{_cost(best):.4f}", excess, name,
        ])  # fmt: skip
    head = ["data", "booster", "cut", "feasible", "margin", "without", "auto", "best rival", "auto above", "rival"]
    return table(head, lines, left=2)


def rules(by_setting: dict[Any, dict[str, list[Row]]], free: dict[Any, Row]) -> str:
    """Every rule over all settings: each training against the least cost that any rule had there with that seed."""
    least: dict[Any, float] = {}
    for key, of in by_setting.items():
        for row in (row for name, several in of.items() if name != OURS for row in several if row["margin"] >= 0):
            least[*key, row["seed"]] = min(row["primary"], least.get((*key, row["seed"]), math.inf))
    collected: dict[str, list[tuple[Any, Row]]] = defaultdict(list)
    for key, of in by_setting.items():
        for name, several in of.items():
            collected[name] += [((*key, row["seed"]), row) for row in several]
    lines = []
    for name, several in collected.items():
        excess = [math.log(row["primary"] / least[key]) for key, row in several if row["margin"] >= 0 and key in least]
        lines.append([
            name, f"{_met([row for _, row in several])} of {len(several)}", _share(row["margin"] for _, row in several),
            f"{statistics.fmean(row['late'] for _, row in several):.2f}",
            f"{statistics.median(excess):+.2%}", f"{statistics.fmean(excess):+.2%}", f"{max(excess):+.1%}",
        ])  # fmt: skip
    lines.sort(key=lambda line: float(line[4].rstrip("%")))
    head = ["rule", "feasible", "median margin", "late rounds feasible", "above the luckiest: median", "mean", "worst"]
    return table(head, lines)


def held_out(by_setting: dict[Any, dict[str, list[Row]]], free: dict[Any, Row]) -> str:
    """NDCG@10 of every label on held-out queries: unconstrained, by the best rival, by ours; means over the seeds."""
    lines = []
    for (data, booster, cut), of in sorted(by_setting.items()):
        ours, (_, best) = of.get(OURS, []), _rival(of)
        if not ours:
            continue
        base = [free[data, booster, row["seed"]] for row in ours]
        labels = sorted((name for name in ours[0]["test"] if name.endswith("ndcg@10")), key=lambda n: "." in n)
        cells = [
            " / ".join(f"{statistics.fmean(row['test'][label] for row in rows):.3f}" for rows in (base, best, ours))
            for label in labels
        ]
        lines.append([data, booster, f"{cut:.0%}", *cells])
    return table(
        ["data", "booster", "cut", "primary: without / rival / auto", "first label", "second label"], lines, left=2
    )


def _rival(of: dict[str, list[Row]]) -> tuple[str, list[Row]]:
    most = max(len(rows) for rows in of.values())
    others = {name: rows for name, rows in of.items() if name != OURS and len(rows) == most}
    return min(others.items(), key=lambda item: _cost(item[1])) if others else ("none", [])


def _cost(rows: list[Row]) -> float:
    """Median over the seeds."""
    return statistics.median(row["primary"] if row["margin"] >= 0 else math.inf for row in rows) if rows else math.nan


def _met(rows: list[Row]) -> int:
    return sum(row["margin"] >= 0 for row in rows)


def _share(values: Iterable[float], of: Callable[[Iterable[float]], float] = statistics.median) -> str:
    return f"{of(values):.2%}"


def _percent(ours: float, theirs: float) -> str:
    return f"{math.log(ours / theirs):+.2%}" if theirs > 0 and math.isfinite(ours / theirs) else "-"
