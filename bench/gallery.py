"""Every kind of plot, and a report, from trainings on simulated product search: `python -m bench.gallery FOLDER`.

A minute. One PNG a plot, as `lo.plots` draws it from what a training leaves behind, and `report.html`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import lightgbm as lgb
from matplotlib.figure import Figure

import lambda_objectives as lo

ROUNDS = 80
PARAMS: dict[str, Any] = {"verbosity": -1, "num_leaves": 15, "num_threads": 1, "metric": "None"}
RANK, SECOND = lo.LambdaRank(lo.NDCG()), lo.LambdaRank(lo.NDCG(10), label="t1")
PRICE = lo.DistanceCovariance("price", within_group=True)


class Shop:
    """Simulated data, as a training of LightGBM wants them."""

    def __init__(self) -> None:
        self.rows, self.fresh = (lo.datasets.product_search(queries=q, seed=s) for q, s in ((600, 0), (200, 1)))
        self.known = {"group": self.rows.group, "columns": self.rows.columns}

    def train(self, spec: Any) -> tuple[lgb.Booster, lo.Objective, Any, Any]:
        """The booster, its objective and both data sets; of a constrained training the best round within bounds."""
        objective = lo.Objective(spec, watch=lo.NDCG(10))
        train = lgb.Dataset(self.rows.X, self.rows.y, group=self.rows.group, free_raw_data=False)
        valid = train.create_valid(self.fresh.X, self.fresh.y, group=self.fresh.group)
        for data, shop in ((train, self.rows), (valid, self.fresh)):
            lo.attach(data, shop.columns)
        bounded = isinstance(spec, lo.AugmentedLagrangian)
        stop = [lo.lightgbm.early_stopping(objective, ROUNDS, train)] if bounded else []
        watch = {"valid_sets": [train, valid], "valid_names": ["train", "valid"], "feval": objective.metrics}
        booster = lgb.train({**PARAMS, "objective": objective}, train, ROUNDS, callbacks=stop, **watch)
        return booster, objective, train, valid

    def scores(self, spec: Any) -> Any:
        """Scores of a trained model on the rows that it was trained on."""
        return self.train(spec)[0].predict(self.rows.X)

    def evaluate(self, spec: Any, scores: Any) -> dict[str, float]:
        """Costs and metrics of a spec."""
        return lo.evaluate(spec, scores, self.rows.y, **self.known)


def draw(folder: Path, name: str, plot: Any, rows: int = 1) -> None:
    """Save what a function draws on fresh axes."""
    figure = Figure(figsize=(7, 2.6 * rows + 1.6), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=True)
    plot(axes)
    figure.savefig(folder / f"{name}.png", dpi=120)
    print(folder / f"{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description="Every kind of plot, and a report.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    shop = Shop()
    plain = shop.scores(RANK)

    [bound] = lo.planning.bounds(SECOND, plain, shop.rows.y, **shop.known, gain=0.05)
    booster, objective, train, valid = shop.train(lo.AugmentedLagrangian(RANK, [bound]))
    seen = {"train": objective.history(train), "valid": objective.history(valid)}
    best = booster.num_trees()
    draw(folder, "learning_curve", lambda axes: lo.plots.learning_curve(axes, seen, best, "ndcg@10"))
    draw(folder, "constraints",
         lambda axes: lo.plots.constraints(axes, seen["train"], objective.spec, best), rows=2)  # fmt: skip
    lo.report.write(folder / "report.html", lo.report.gather(booster, objective, {"train": train, "valid": valid}))
    print(folder / "report.html")

    lines = lo.planning.probe(shop.scores, RANK, [SECOND], shop.rows.y, **shop.known)
    draw(folder, "cost_line", lambda axes: lo.plots.cost_line(axes, lines))
    models = lo.planning.sweep(shop.scores, RANK, [SECOND], shop.rows.y, **shop.known)
    draw(folder, "front", lambda axes: lo.plots.front(axes, models, "ndcg", "t1.ndcg@10", label="cut"))

    both, weights = lo.WeightedSum([RANK, PRICE], [1, 1]), (0.0, 1.0, 3.0, 10.0, 30.0)
    fair = {weight: shop.scores(lo.Decorrelated(RANK, "price", weight, within_group=True)) for weight in weights}
    points = [{"weight": weight} | shop.evaluate(both, scores) for weight, scores in fair.items()]
    draw(folder, "tradeoff", lambda axes: lo.plots.tradeoff(axes, points, "price.dcov2", "ndcg", label="weight"))
    models = {"without": fair[0.0], "weight 30": fair[30.0]}
    price = shop.rows.columns["price"]
    draw(folder, "calibration", lambda axes: lo.plots.calibration(axes, models, price, control_name="price"))


if __name__ == "__main__":
    main()
