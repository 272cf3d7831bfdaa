"""What the benches share: data, clocks, a table in Markdown."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import lambda_objectives

Array = npt.NDArray[Any]
PACKAGES = ("numpy", "numba", "lightgbm", "xgboost", "xgboost-cpu")


class Ranked(NamedTuple):
    """Scores, labels and sizes of queries of equal length."""

    scores: Array
    labels: Array
    group: Array


def simulated(queries: int, rows: int, labels: str, seed: int = 0) -> Ranked:
    """Labels "graded" (0 to 4) or "rare" (one row in thirty relevant); scores that know a little of them."""
    rng = np.random.default_rng(seed)
    n = queries * rows
    if labels == "graded":
        y = rng.choice(5, n, p=[0.5, 0.25, 0.15, 0.07, 0.03]).astype(float)
    else:
        y = (rng.random(n) < 1 / 30).astype(float)
    return Ranked(rng.normal(size=n) + 0.3 * y, y, np.full(queries, rows))


class Seconds(NamedTuple):
    """Of all threads together, and on the wall."""

    cpu: float
    wall: float


def timed(step: Callable[[], Any]) -> tuple[Seconds, Any]:
    """Time of one call, and what it returned."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = step()
    return Seconds(time.process_time() - cpu, time.perf_counter() - wall), result


def seconds(step: Callable[[], Any], rounds: int) -> Seconds:
    """Median over the rounds, each clock on its own."""
    return Seconds(*np.median([timed(step)[0] for _ in range(rounds)], axis=0).tolist())


def median_ratio(over: Iterable[float], under: Iterable[float]) -> float:
    """Median of the ratios of what was measured side by side."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def machine() -> str:
    """One line with versions and the processor."""
    found = [f"lambda_objectives {lambda_objectives.__version__}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2] for line in lines if line.startswith("model name")]
    model = " ".join((models[0] if models else platform.processor() or platform.machine()).split())
    return f"Python {platform.python_version()}, {', '.join(found)}; {model}, {os.cpu_count()} cores"


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """Aligned Markdown; the first `left` columns are text, floats have three figures."""
    cells = [list(header)] + [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        [c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        for row in cells
    ]
    lines.insert(1, ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"
