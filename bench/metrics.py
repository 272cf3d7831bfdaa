"""Cost of a round for every metric and term, beside `LambdaRank(NDCG())`: 2,000 queries of 120 rows, one thread.

    python -m bench.metrics [--quick] [--auc]

A round is `Run.step`: copy, checks, ranking, gradient, cost and metric logged, at scores that drift as in a training.
All are measured in turn, again and again; a figure is the median of the ratios of processor time within a repetition.
With --auc also one query of 100,000 rows, for what a query of any length costs.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from typing import Any

import numba
import numpy as np

import lambda_objectives as lo
from bench.common import Ranked, machine, median_ratio, seconds, simulated, table
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run

METRICS = [
    lo.NDCG(), lo.NDCG(10), lo.DCG(), lo.MAP(), lo.MAP(10), lo.MAP(gain="linear"), lo.MRR(), lo.MRR(10), lo.HitRate(10),
    lo.ERR(), lo.ERR(10), lo.Precision(10), lo.Recall(10), lo.RBP(), lo.AUC(), lo.Kendall(), lo.Spearman(),
    lo.NDCG(ties="mean"),
]  # fmt: skip


def _short(metric: Any) -> str:
    """A metric's call without what is at its default."""
    options = [f"{name}={value!r}" for name, value in vars(metric).items() if value != _default(metric, name)]
    return f"{type(metric).__name__}({', '.join(options)})".replace("k=", "")


def _default(metric: Any, name: str) -> Any:
    return type(metric).__dataclass_fields__[name].default


TERMS = {
    **{_short(metric): lo.LambdaRank(metric) for metric in METRICS},
    "NDCG, both norms": lo.LambdaRank(lo.NDCG(), score_gap_norm=True, log_norm=True),
    "MAP, both norms": lo.LambdaRank(lo.MAP(), score_gap_norm=True, log_norm=True),
    "NDCG, 2 pairs drawn a row": lo.LambdaRank(lo.NDCG(), sample=2),
    "RankNet": lo.RankNet(),
    "RankNet, hinge": lo.RankNet(loss="hinge"),
    "LambdaLoss 2++": lo.LambdaLoss(),
    "YetiRank, 10 draws": lo.YetiRank(),
    "XENDCG": lo.XENDCG(),
    "QueryRMSE": lo.QueryRMSE(),
    "QuerySoftMax": lo.QuerySoftMax(),
}
ROUNDS = 3  # of one of them before the next has its turn
DRIFT = 0.02  # of each score in a round


def walk_of(data: Ranked) -> list[np.ndarray]:
    """Scores that drift from round to round."""
    rng = np.random.default_rng(2)
    drifts = (DRIFT * rng.normal(size=len(data.scores)) for _ in range(8))
    return list(itertools.accumulate(drifts, initial=data.scores))


def measured(data: Ranked, repeats: int) -> dict[str, list[float]]:
    """Seconds of processor time of a round, by term, each time in turn."""
    queries, walk = Queries.from_arrays(data.labels, group=data.group), walk_of(data)
    runs = {name: Run(term, queries, threads=1) for name, term in TERMS.items()}
    scores = {name: itertools.cycle(walk + walk[-2:0:-1]) for name in runs}
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(-1, repeats):
        for name, run in runs.items():
            spent = seconds(lambda run=run, name=name: run.step(next(scores[name])), ROUNDS)
            if repeat >= 0:
                taken[name].append(spent.cpu)
    return taken


def one_long_query(rows: int, repeats: int) -> list[list[Any]]:
    """Milliseconds of a round of AUC on one query, all pairs and drawn ones, and of its value alone."""
    found = []
    for share in (0.01, 0.5):
        rng = np.random.default_rng(0)
        labels = (rng.random(rows) < share) * 1.0
        scores = rng.normal(size=rows) + 0.3 * labels
        queries = Queries.from_arrays(labels, group=[rows])
        row: list[Any] = [f"{rows:,} rows, {share:.0%} relevant"]
        for term in (lo.LambdaRank(lo.AUC()), lo.LambdaRank(lo.AUC(), sample=10)):
            run = Run(term, queries, threads=1)
            run.step(scores)
            row.append(1e3 * seconds(lambda run=run, s=scores: run.step(s), repeats).cpu)
        lo.AUC()(scores, labels, group=[rows])
        row.append(1e3 * seconds(lambda s=scores, y=labels: lo.AUC()(s, y, group=[rows]), repeats).cpu)
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 repetitions instead of 25")
    parser.add_argument("--auc", action="store_true", help="also one query of 100,000 rows")
    options = parser.parse_args()
    numba.set_num_threads(1)
    repeats = 5 if options.quick else 25
    print(machine() + "\n")
    columns = {}
    for labels in ("graded", "rare"):
        taken = measured(simulated(2000, 120, labels), repeats)
        columns[labels] = {name: median_ratio(spent, taken["NDCG()"]) for name, spent in taken.items()}
        print(f"NDCG(), {labels}: {1e3 * statistics.median(taken['NDCG()']):.1f} ms of processor time a round")
    rows = [[name, *(columns[labels][name] for labels in columns)] for name in TERMS]
    print("\n" + table(["a round, over NDCG()'s", "labels 0 to 4", "one in thirty relevant"], rows))
    if options.auc:
        header = ["AUC, one query, ms", "all pairs", "10 pairs a row", "value alone"]
        print("\n" + table(header, one_long_query(100_000, 3)))


if __name__ == "__main__":
    main()
