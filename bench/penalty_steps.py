"""From which weight x learning rate on a penalty on dependence overshoots, and whether the package says so.

``python -m bench.penalty_steps`` trains on the panel of `bench.panel` with weights and learning rates on a grid, in as
many rounds as make rounds x rate the same, over all rows and within dates, under squared error and under log loss (of
a target above 0). A weight sets what is minimised, so that models of one weight can be compared on what they make of
it on the 150 dates that are not trained on: "excess" is the penalised metric less that of the best rate.

Over the last 20 rounds "turns" are the changes of side of the correlation of scores and control on the dates trained
on, "swing" its mean change from round to round; "spread" is the standard deviation of the scores, as a multiple of the
plain fit's at that rate. "warned" names the warnings. The last three columns are those of a training with
``damp=True``: the share of the weight that is left, turns and excess.

``--inflation`` trains with weights that are out of all proportion instead, at a rate of .01.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import lightgbm as lgb
import numpy as np

import lambda_objectives as lo
from bench.common import Array, machine, table
from bench.panel import ASSETS, SPANS, LightGBM, Panel, cut, simulated

WEIGHTS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
RATES = (0.05, 0.1, 0.3)
LENGTH = 10.0  # rounds x rate
LAST = 20
LOSSES: dict[str, Any] = {"mse": lo.SquaredError(), "logloss": lo.LogLoss()}
KINDS: dict[str, bool | str] = {"pooled": False, "within": "date"}


class Study:
    """Trainings on one panel with one loss."""

    def __init__(self, loss: str, seed: int) -> None:
        panel = simulated(seed)
        if loss == "logloss":
            panel = panel._replace(y=(panel.y > 0).astype(float))
        self.loss = loss
        self.train = cut(panel, "train")
        self.rest = Panel(*(values[SPANS["valid"].start * ASSETS :] for values in panel))
        self.bench = LightGBM(self.train)
        self.spreads: dict[float, float] = {}  # of plain fits, by rate

    def fit(self, spec: Any, rate: float, rounds: int) -> tuple[lgb.Booster, str, dict[str, list[float]]]:
        """A model, what it was warned of, and its history."""
        objective = lo.Objective(spec)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", lo.LambdaObjectivesWarning)
            params = {**LightGBM.params, "objective": objective, "learning_rate": rate}
            model = lgb.train(params, self.bench.data, rounds)
        told = [str(each.message) for each in caught if issubclass(each.category, lo.LambdaObjectivesWarning)]
        names = ["swings" if "swings" in text else "inflation" if "inflate" in text else "other" for text in told]
        return model, ", ".join(names) or "-", objective.history(self.bench.data)

    def plain_spread(self, rate: float, rounds: int) -> float:
        """Of the scores without a penalty."""
        if rate not in self.spreads:
            model = self.fit(LOSSES[self.loss], rate, rounds)[0]
            self.spreads[rate] = float(model.predict(self.rest.X, num_threads=1).std())
        return self.spreads[rate]

    def run(self, kind: str, weight: float, rate: float, rounds: int, damp: bool = False) -> dict[str, Any]:
        """One training."""
        spec = lo.Decorrelated(LOSSES[self.loss], "control", weight, within_group=KINDS[kind], damp=damp)
        model, warned, history = self.fit(spec, rate, rounds)
        leanings = self.leanings(model, kind, rounds)
        p = model.predict(self.rest.X, num_threads=1)
        found = lo.evaluate(spec, p, self.rest.y, control=self.rest.control, date=self.rest.date)
        return {
            "turns": int((leanings[1:] * leanings[:-1] < 0).sum()),
            "swing": float(np.abs(np.diff(leanings)).mean()),
            "spread": float(p.std()) / self.plain_spread(rate, rounds),
            "metric": found[self.loss],
            "penalised": found[f"penalised/{self.loss}"],
            "dependence": found["control.dcov2"],
            "warned": warned,
            "damping": history.get("damping", [1.0])[-1],
        }

    def leanings(self, model: Any, kind: str, rounds: int) -> Array:
        """Correlation of scores and control on the dates trained on, before each of the last trees and after them."""
        part = self.train
        scores = model.predict(part.X, num_iteration=rounds - LAST, num_threads=1)
        found = [leaning(scores, part.control, kind)]
        for i in range(rounds - LAST, rounds):
            scores = scores + model.predict(part.X, start_iteration=i, num_iteration=1, num_threads=1)
            found.append(leaning(scores, part.control, kind))
        return np.array(found)


def leaning(scores: Array, control: Array, kind: str) -> float:
    """Correlation over all rows, or the mean of those within dates."""
    size = ASSETS if kind == "within" else len(scores)
    s, c = (each.reshape(-1, size) for each in (scores, control))
    s, c = (each - each.mean(axis=1, keepdims=True) for each in (s, c))
    deviations = s.std(axis=1) * c.std(axis=1)
    return float(((s * c).mean(axis=1) / np.where(deviations > 0, deviations, 1.0)).mean())


def grid(study: Study, kind: str) -> list[list[Any]]:
    """Lines of the table, by weight and rate."""
    lines = []
    for weight in WEIGHTS:
        plain, damped = [], []
        for rate in RATES:
            rounds = round(LENGTH / rate)
            plain.append(study.run(kind, weight, rate, rounds))
            damped.append(study.run(kind, weight, rate, rounds, damp=True))
            print(study.loss, kind, weight, rate, file=sys.stderr)
        best = min(row["penalised"] for row in plain + damped)
        for rate, row, other in zip(RATES, plain, damped, strict=True):
            lines.append([
                f"{weight:g}", f"{rate:g}", f"{weight * rate:g}", row["turns"], f"{row['swing']:.3f}",
                f"{row['spread']:.2f}", f"{row['metric']:.4f}", f"{row['dependence']:.4f}",
                f"{row['penalised'] - best:.4f}", row["warned"],
                f"{other['damping']:.3f}", other["turns"], f"{other['penalised'] - best:.4f}",
            ])  # fmt: skip
    return lines


def inflation(study: Study) -> list[list[Any]]:
    """The same with weights that make predictions inflate, and with some that do not."""
    lines = []
    for rounds in (200, 1000):
        for weight in (10.0, 100.0, 1000.0, 10_000.0):
            row = study.run("within", weight, 0.01, rounds)
            lines.append([
                f"{weight:g}", rounds, row["turns"], f"{row['swing']:.3f}", f"{row['spread']:.2f}",
                f"{row['metric']:.4f}", f"{row['dependence']:.4f}", row["warned"],
            ])  # fmt: skip
            print(study.loss, weight, rounds, file=sys.stderr)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="Weights and learning rates at which a penalty overshoots.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=list(LOSSES))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--inflation", action="store_true")
    options = parser.parse_args()
    print(machine())
    for loss in options.losses:
        study = Study(loss, options.seed)
        if options.inflation:
            head = ["weight", "rounds", "turns", "swing", "spread", loss, "dcov2", "warned"]
            print(f"\n{loss}, within dates, learning rate .01\n\n{table(head, inflation(study), left=0)}")
            continue
        for kind in options.kinds:
            head = ["weight", "rate", "product", "turns", "swing", "spread", loss, "dcov2", "excess", "warned"]
            damped = ["damping", "turns", "excess"]
            print(f"\n{loss}, {kind}\n\n{table([*head, *damped], grid(study, kind), left=0)}")


if __name__ == "__main__":
    main()
