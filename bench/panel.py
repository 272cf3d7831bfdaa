"""Returns of assets without the market's: what a penalty on dependence gains beside neutralising afterwards.

``python -m bench.panel`` simulates a panel after the design of the EvoTrees tutorial on decorrelation: each row is an
asset on a date. The control is the asset's exposure to the market, with a level that all assets of a date share. The
target is the exposure times the market's return of the date, a part that is worth finding, and chance. The market
rises on average, so a plain fit favours exposed assets, which it sees through two of its four features. The first 250
dates are trained on, the next 75 choose a weight, the last 75 are reported.

Per date, and averaged over dates:

- "corr": correlation of predictions and target.
- "neutral": the same with the residual of the target's regression on the control within the date, which is what the
  assets earn beside the market. The predictions are left as they are.
- "within": squared distance correlation of predictions and control (bias-corrected: near 0 under independence, at
  times below); "pooled" is that of all rows at once. Neither changes when all predictions shrink.
- "dcov2": squared distance covariance, which is what the penalty weighs and the budget bounds.

"neutralised" is the plain fit less its regression on the control within each date. It needs the control when
predicting, all others need it in training alone. The budget is a tenth of the plain fit's dcov2 on the dates trained
on, and the round is the best one that keeps to it there. Trees have 16 leaves (depth 4 in XGBoost, which the tutorial
calls 5). Seconds are those of the processor for one training, and beside the plain one's.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from typing import Any, ClassVar, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.common import Array, machine, table, timed

DATES, ASSETS = 400, 150
SPANS = {"train": slice(0, 250), "valid": slice(250, 325), "test": slice(325, 400)}
ROUNDS, RATE = 200, 0.05
WEIGHTS = (1.0, 3.0, 10.0, 30.0)
MEASURES = ("corr", "neutral", "within", "pooled", "dcov2")
WITHIN = lo.DistanceCovariance("control", within_group="date")


class Panel(NamedTuple):
    """Rows by date; as many on every date."""

    X: Array
    y: Array
    control: Array
    date: Array


def simulated(seed: int, dates: int = DATES, assets: int = ASSETS) -> Panel:
    """All dates of the panel."""
    rng = np.random.default_rng(seed)
    shape = (dates, assets)

    def noise(scale: float = 1.0) -> Array:
        return scale * rng.normal(size=shape)

    exposure = 1 + 0.3 * rng.normal(size=(dates, 1)) + noise(0.4)
    market = 0.5 + rng.normal(size=(dates, 1))
    own = noise()
    target = exposure * market + 0.5 * own + noise()
    features = [own + noise(0.5), exposure + noise(0.2), 0.5 * (own + exposure) + noise(0.5), noise()]
    X = np.stack(features, axis=-1).reshape(-1, len(features))
    return Panel(X, target.ravel(), exposure.ravel(), np.repeat(np.arange(dates), assets))


def cut(panel: Panel, name: str) -> Panel:
    """The dates of one part."""
    span = SPANS[name]
    rows = slice(span.start * ASSETS, span.stop * ASSETS)
    return Panel(*(values[rows] for values in panel))


def neutralised(values: Array, part: Panel) -> Array:
    """Residuals of the regression on the control within each date."""
    v, c = (each.reshape(-1, ASSETS) for each in (values, part.control))
    v, c = (each - each.mean(axis=1, keepdims=True) for each in (v, c))
    residuals: Array = v - c * ((v * c).sum(axis=1) / (c * c).sum(axis=1))[:, None]
    return residuals.ravel()


def correlation(a: Array, b: Array) -> float:
    """Mean over dates."""
    pairs = zip(a.reshape(-1, ASSETS), b.reshape(-1, ASSETS), strict=True)
    return statistics.fmean(float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 else 0.0 for x, y in pairs)


def distance_covariance(a: Array, b: Array) -> float:
    """Of all rows, in the units of both."""
    found = lo.evaluate(lo.DistanceCovariance("b"), a, np.zeros(len(a)), b=b)
    return found["b.dcov2"] * float(b.std())


def distance_correlation(a: Array, b: Array) -> float:
    """Squared and bias-corrected, of all rows."""
    if a.std() == 0:
        return 0.0
    return distance_covariance(a, b) / math.sqrt(distance_covariance(a, a) * distance_covariance(b, b))


def measures(predictions: Array, part: Panel) -> dict[str, float]:
    """What the tables report."""
    p, c = predictions.astype(float), part.control
    dates = zip(p.reshape(-1, ASSETS), c.reshape(-1, ASSETS), strict=True)
    return {
        "corr": correlation(p, part.y),
        "neutral": correlation(p, neutralised(part.y, part)),
        "within": statistics.fmean(distance_correlation(*each) for each in dates),
        "pooled": distance_correlation(p, c),
        "dcov2": lo.evaluate(WITHIN, p, part.y, control=c, date=part.date)["control.dcov2"],
        "spread": float(p.std()),
    }


class LightGBM:
    """Trainings by LightGBM."""

    params: ClassVar[dict[str, Any]] = dict(
        num_leaves=16, min_data_in_leaf=1, reg_lambda=1.0, num_threads=1, verbosity=-1, metric="None"
    )

    def __init__(self, part: Panel) -> None:
        self.part = part
        self.data = lgb.Dataset(part.X, part.y, free_raw_data=False, params=self.params).construct()
        lo.attach(self.data, control=part.control, date=part.date)

    def fit(self, spec: Any, rounds: int = ROUNDS, rate: float = RATE) -> Any:
        """A model; under constraints the best round that keeps to them; None for the booster's own squared error."""
        objective = "regression" if spec is None else lo.Objective(spec)
        stop = [lo.lightgbm.early_stopping(objective, rounds)] if isinstance(spec, lo.AugmentedLagrangian) else []
        params = {**self.params, "objective": objective, "learning_rate": rate}
        return lgb.train(params, self.data, rounds, callbacks=stop)

    @staticmethod
    def predict(model: Any, X: Array) -> Array:
        """Raw scores."""
        return np.asarray(model.predict(X, num_threads=1))


class XGBoost:
    """The same by XGBoost."""

    params: ClassVar[dict[str, Any]] = dict(max_depth=4, min_child_weight=1, reg_lambda=1.0, nthread=1, base_score=0.0)

    def __init__(self, part: Panel) -> None:
        self.part = part
        self.data = lo.attach(xgb.DMatrix(part.X, part.y, nthread=1), control=part.control, date=part.date)

    def fit(self, spec: Any, rounds: int = ROUNDS, rate: float = RATE) -> Any:
        """The same for this booster."""
        params = {**self.params, "eta": rate}
        if spec is None:
            return xgb.train({**params, "objective": "reg:squarederror"}, self.data, rounds)
        params["disable_default_eval_metric"] = 1
        objective = lo.Objective(spec)
        stop = [lo.xgboost.EarlyStopping(objective, rounds)] if isinstance(spec, lo.AugmentedLagrangian) else []
        model = xgb.train(params, self.data, rounds, obj=objective, callbacks=stop)
        return model[: model.best_iteration + 1] if stop else model

    @staticmethod
    def predict(model: Any, X: Array) -> Array:
        """Raw scores."""
        return np.asarray(model.inplace_predict(X))


BOOSTERS: dict[str, type[LightGBM] | type[XGBoost]] = {"LightGBM": LightGBM, "XGBoost": XGBoost}


def specs() -> dict[str, Any]:
    """What is trained, but for the budget."""
    base = lo.SquaredError()
    found: dict[str, Any] = {"built in": None, "plain": base}
    for name, within in (("pooled", False), ("within", "date")):
        for weight in WEIGHTS:
            found[f"{name} {weight:g}"] = lo.Decorrelated(base, "control", weight, within_group=within)
    pearson = lo.Pearson(within_group="date")
    found["Pearson"] = pearson
    for weight in WEIGHTS:
        found[f"Pearson, within {weight:g}"] = lo.Decorrelated(pearson, "control", weight, within_group="date")
    return found


def study(seed: int, booster: str) -> list[dict[str, Any]]:
    """All trainings of one seed."""
    panel = simulated(seed)
    train, valid, test = (cut(panel, name) for name in SPANS)
    bench = BOOSTERS[booster](train)
    rows: list[dict[str, Any]] = []
    plain = 0.0

    def once(name: str, spec: Any) -> Any:
        seconds, model = timed(lambda: bench.fit(spec))
        p = bench.predict(model, test.X)
        row = {"method": name, "seconds": seconds.cpu, "neutral, valid": 0.0} | measures(p, test)
        row["neutral, valid"] = correlation(bench.predict(model, valid.X), neutralised(valid.y, valid))
        rows.append(row)
        print(seed, booster, name, f"{seconds.cpu:.1f} s", file=sys.stderr)
        return model

    bench.fit(lo.Decorrelated(lo.SquaredError(), "control", 1.0), rounds=2)  # compiles
    for name, spec in specs().items():
        model = once(name, spec)
        if name == "plain":
            p = neutralised(bench.predict(model, test.X), test)
            rows.append(rows[-1] | {"method": "plain, neutralised"} | measures(p, test))
            rows[-1]["neutral, valid"] = correlation(
                neutralised(bench.predict(model, valid.X), valid), neutralised(valid.y, valid)
            )
            plain = measures(bench.predict(model, train.X), train)["dcov2"]
    bound = lo.Constraint(WITHIN, at_most=0.1 * plain)
    once("budget", lo.AugmentedLagrangian(lo.SquaredError(), [bound]))
    return rows


def spread(values: list[float], digits: int = 4) -> str:
    """Mean and standard deviation."""
    off = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{off}"


def show(booster: str, found: dict[int, list[dict[str, Any]]]) -> None:
    """Means over the seeds; reductions and ratios are those of a seed first."""
    by_seed = [{row["method"]: row for row in rows} for rows in found.values()]
    lines = []
    for name in by_seed[0]:
        here, plain = [rows[name] for rows in by_seed], [rows["plain"] for rows in by_seed]
        left = [100 * (1 - a["within"] / b["within"]) for a, b in zip(here, plain, strict=True)]
        gain = [a["neutral"] - b["neutral"] for a, b in zip(here, plain, strict=True)]
        times = [a["seconds"] / b["seconds"] for a, b in zip(here, plain, strict=True)]
        lines.append([
            name, *(spread([row[key] for row in here]) for key in MEASURES), spread(left, 1), spread(gain),
            f"{statistics.fmean(row['seconds'] for row in here):.2f}", f"{statistics.fmean(times):.2f}",
        ])  # fmt: skip
    head = ["within down by, %", "neutral, gain", "s", "times plain"]
    print(f"\n{booster}, {len(by_seed)} seeds, test dates, mean ± standard deviation\n")
    print(table(["model", *MEASURES, *head], lines))
    for kind in ("pooled", "within", "Pearson, within"):
        names = [f"{kind} {weight:g}" for weight in WEIGHTS]
        best = [max(names, key=lambda name, rows=rows: rows[name]["neutral, valid"]) for rows in by_seed]  # type: ignore[misc]
        chosen = [rows[name]["neutral"] for rows, name in zip(by_seed, best, strict=True)]
        print(f"chosen by neutral correlation on validation dates: {', '.join(best)}: neutral {spread(chosen)} on test")


def main() -> None:
    parser = argparse.ArgumentParser(description="A penalty on dependence beside neutralising afterwards.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--boosters", nargs="+", default=list(BOOSTERS), choices=list(BOOSTERS))
    options = parser.parse_args()
    print(machine())
    for booster in options.boosters:
        show(booster, {seed: study(seed, booster) for seed in options.seeds})


if __name__ == "__main__":
    main()
