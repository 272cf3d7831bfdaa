"""What a process pays once: the import, and the compiled kernels read from their cache at the first call.

    python -m bench.startup [--quick]

Each figure is the median over fresh processes. The first call of an objective, on 2,000 rows, is taken less a later
one, with the kernels compiled and cached by an earlier process. What numba does once for whatever it runs first is
shown on its own: its import, and the tables that it sets up before it loads or compiles its first function.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

from bench.common import machine, table

IMPORT = """
import json, time, numpy
t = time.perf_counter()
import lambda_objectives
print(json.dumps({"import lambda_objectives, after numpy": time.perf_counter() - t}))
"""
FIRST_CALL = """
import json, time, numpy as np, lightgbm as lgb, lambda_objectives as lo
t = time.perf_counter()
import numba
imported = time.perf_counter() - t
t = time.perf_counter()
from numba.core.registry import cpu_target
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
tables = time.perf_counter() - t
rng = np.random.default_rng(0)
y, s = rng.integers(0, 5, 2000), rng.normal(size=2000)
train = lgb.Dataset(rng.normal(size=(2000, 1)), y, group=[20] * 100, params={"verbosity": -1}).construct()
objective = lo.Objective(lo.LambdaRank(lo.NDCG()))
def call(scores):
    t = time.perf_counter()
    objective(scores, train)
    return time.perf_counter() - t
first = call(s)
call(s + 0.01 * y)
later = call(s + 0.02 * y)
found = {
    "import numba, after numpy and lightgbm": imported,
    "numba's own tables, before its first call of anything": tables,
    "our first call, kernels from their cache, less a later call": first - later,
}
print(json.dumps(found))
"""


def run(code: str) -> dict[str, float]:
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of the import, and of the first call in a second process.")
    parser.add_argument("--quick", action="store_true", help="3 processes each instead of 11")
    options = parser.parse_args()
    run(FIRST_CALL)  # compiles and fills the cache
    found: dict[str, list[float]] = {}
    for _ in range(3 if options.quick else 11):
        for name, value in (run(IMPORT) | run(FIRST_CALL)).items():
            found.setdefault(name, []).append(value)
    print(f"{machine()}\n")
    print(table(["once a process", "s", "least"], [[name, statistics.median(v), min(v)] for name, v in found.items()]))


if __name__ == "__main__":
    main()
