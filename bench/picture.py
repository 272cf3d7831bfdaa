"""The picture of the README: what a gradient takes, a cost led to its bound, a score made independent of a price.

    python -m bench.picture [FILE]

Simulated product search; LightGBM, one thread. The three are a measurement each (a minute in all): the gradient as in
`bench.gradients`, 2,000 queries of 120 rows; a second label whose NDCG@10 is to be 10 % more than without a constraint;
a penalty on dependence within queries.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

import lightgbm as lgb
import numpy as np
from matplotlib.figure import Figure

import lambda_objectives as lo
from bench.common import simulated
from bench.gradients import ALL, OURS, measure, milliseconds, steps_of

ROUNDS = 150
BLUE, GREY, RED = "#0072B2", "#999999", "#D55E00"
RANK, SECOND = lo.LambdaRank(lo.NDCG()), lo.LambdaRank(lo.NDCG(10), label="t1")
PARAMS: dict[str, Any] = {"verbosity": -1, "learning_rate": 0.1, "num_leaves": 15, "num_threads": 1}


def gradients(axes: Any) -> None:
    """CPU time of a gradient, over ours with the same pairs."""
    place = (2000, 120, "graded")
    ms = milliseconds(measure({place: steps_of(simulated(*place), 1)}, 9)[place], "cpu")
    names = {
        "XGBoost": "XGBoost,\n30 ranks",
        "LightGBM": "LightGBM,\n30 ranks",
        OURS: "here,\n30 ranks",
        ALL: "here,\nall pairs",
    }
    middle = [statistics.median(ms[name]) for name in names]
    bars = axes.barh(list(names.values()), middle, color=[GREY, GREY, BLUE, BLUE], height=0.6)
    axes.bar_label(bars, [f"{value:.0f} ms" for value in middle], padding=4)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * max(middle))
    axes.set_xlabel("CPU time of a gradient, 240,000 rows")
    axes.spines[["top", "right"]].set_visible(False)


def train(spec: Any, shop: Any, choose: bool = False) -> tuple[lgb.Booster, dict[str, list[float]], int]:
    """A model, the history of its training data, and how many trees are kept."""
    objective = lo.Objective(spec)
    data = lo.attach(lgb.Dataset(shop.X, shop.y, group=shop.group), shop.columns)
    stop = [lo.lightgbm.early_stopping(objective, ROUNDS)] if choose else []
    booster = lgb.train({**PARAMS, "objective": objective}, data, ROUNDS, callbacks=stop)
    return booster, objective.history(data), booster.num_trees()


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "bench/picture.png"
    shop = lo.datasets.product_search(queries=2000, seed=0)
    figure = Figure(figsize=(13, 3.9), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1, 1.15, 1), wspace=0.04)

    left.suptitle("Rank: any metric, exact, all pairs")
    gradients(left.subplots())

    free, before, _ = train(lo.WeightedSum([RANK, SECOND], [1, 0]), shop)  # the second is only watched
    scores = free.predict(shop.X)
    bounds = lo.planning.bounds(SECOND, scores, shop.y, group=shop.group, columns=shop.columns, gain=0.1)
    _, history, kept = train(lo.AugmentedLagrangian(RANK, bounds), shop, choose=True)
    middle.suptitle("Constrain: a second label, 10 % better than it was")
    above, below = middle.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    above.plot(np.arange(1, ROUNDS + 1), before["t1.ndcg@10"], color=GREY, label="without")
    above.plot(np.arange(1, ROUNDS + 1), history["t1.ndcg@10"][:ROUNDS], color=BLUE, label="with a constraint")
    above.axhline(bounds[0].at_least, color=RED, linestyle="--", label="its bound")
    above.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, columnspacing=1.2)
    above.set_ylabel("NDCG@10 of it")
    above.set_ylim(bottom=0.48)  # the first round is far below
    below.fill_between(np.arange(1, ROUNDS + 1), history["multiplier/t1.ndcg@10"], color=BLUE, alpha=0.4)
    below.set_ylabel("multiplier")
    below.set_xlabel("round")
    for axes in (above, below):
        axes.axvline(kept, color=RED, linewidth=1, linestyle=":")
        axes.spines[["top", "right"]].set_visible(False)

    fair, *_ = train(lo.Decorrelated(RANK, "price", weight=30, within_group=True), shop)
    right.suptitle("Decorrelate: a score that does not know the price")
    ends = np.cumsum(shop.group)
    place = np.concatenate(
        [np.argsort(np.argsort(part)) / len(part) for part in np.split(shop.columns["price"], ends[:-1])]
    )
    models = {"without": scores, "with a penalty": fair.predict(shop.X)}
    centred = {
        name: np.concatenate([(part - part.mean()) / part.std() for part in np.split(values, ends[:-1])])
        for name, values in models.items()
    }
    axes = right.subplots()
    lo.plots.calibration(axes, centred, place, control_name="price within the query, cheapest to dearest",
                         score_name="mean score within the query")  # fmt: skip
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
