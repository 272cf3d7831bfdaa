"""Rankings that tell little of the price: a penalty while training beside taking the price out of finished scores.

``python -m bench.ranking_decorrelation`` takes the simulator of product search, where customers buy the cheaper ones,
and asks for scores that do not depend on the price within a query. The price is among the features and remains there.
2,000 queries are trained on, 2,000 others reported.

- "penalty": `lo.Decorrelated` around LambdaRank over a sweep of weights, on the price or its logarithm.
- "budget": `lo.AugmentedLagrangian` with a bound on the dependence, a share of the plain model's.
- "slope": the plain model's scores less a share of their linear regression on the price, its logarithm or its rank
  within the query; one slope for all queries, found on those trained on, or one for each query, of its own scores.
- "steps": less a share of the mean score at each tenth of the price's rank within the query, found as before.
- "no price": a model that does not see the features that have the price in them.

NDCG@10 is the mean over queries with a purchase. Dependence is told in three ways, each a mean over queries: "dcor2"
the squared distance correlation with the price (bias-corrected), "scaled" the squared distance covariance of scores
divided by the mean of their deviations within queries, "raw" of the scores as they are. The table at a level of
dependence reads each method's curve where dcor2 is down by so much, between the two points next to it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from bench.common import Array, machine, table, timed

BASE = lo.LambdaRank(lo.NDCG(10))
CONTROLS = ("price", "log_price")
WEIGHTS = (0.3, 1.0, 3.0, 5.0, 10.0, 20.0, 30.0)
BOUNDS = (0.5, 0.2, 0.1, 0.05, 0.02)  # shares of the plain model's dependence on the queries trained on
SHARES = (0.25, 0.5, 0.75, 1.0, 1.25)
PRICED = ("price", "price_ratio", "discount")
LEVELS = (0.5, 0.75, 0.9)
ROUNDS, RATE = 100, 0.1


class Part(NamedTuple):
    """Rows by query."""

    X: Array
    y: Array
    group: Array
    price: Array

    @property
    def query(self) -> Array:
        """Of each row."""
        return np.repeat(np.arange(len(self.group)), self.group)

    @property
    def columns(self) -> dict[str, Array]:
        """Both forms of the control."""
        return {"price": self.price, "log_price": np.log(self.price)}

    @property
    def rank(self) -> Array:
        """Of each row's price within its query, between 0 and 1."""
        order = np.lexsort((self.price, self.query))
        ends = np.cumsum(self.group)
        place = np.empty(len(self.price))
        place[order] = (np.arange(len(order)) - np.repeat(ends - self.group, self.group) + 0.5) / np.repeat(
            self.group, self.group
        )
        return place

    def centred(self, values: Array) -> Array:
        """Less the mean of the row's query."""
        means = np.bincount(self.query, weights=values) / self.group
        return np.asarray(values - means[self.query])


def parts(seed: int, queries: int) -> tuple[Part, Part, tuple[str, ...]]:
    """To train on and to report, and the features' names."""
    data = lo.datasets.product_search(queries=2 * queries, seed=seed)
    n = int(data.group[:queries].sum())
    first = Part(data.X[:n], data.y[:n], data.group[:queries], data.columns["price"][:n])
    return first, Part(data.X[n:], data.y[n:], data.group[queries:], data.columns["price"][n:]), data.feature_names


# ---------------------------------------------------------------------------------------------------- what is measured
def u_centred(values: Array) -> Array:
    """Distances within each row of a matrix, centred so that products of two have an unbiased mean."""
    n = values.shape[1]
    d: Array = np.abs(values[:, :, None] - values[:, None, :])
    sums = d.sum(axis=2)
    d += (sums.sum(axis=1) / (n - 1) / (n - 2))[:, None, None] - (sums[:, :, None] + sums[:, None, :]) / (n - 2)
    d[:, np.arange(n), np.arange(n)] = 0.0
    return d


def distance_correlations(scores: Array, control: Array, group: Array) -> Array:
    """Squared and bias-corrected, of each query."""
    starts = np.cumsum(group) - group
    found = np.zeros(len(group))
    for size in np.unique(group):
        rows = starts[group == size][:, None] + np.arange(size)
        a, b = u_centred(scores[rows]), u_centred(control[rows])
        own = np.sqrt((a * a).sum(axis=(1, 2)) * (b * b).sum(axis=(1, 2)))
        found[group == size] = (a * b).sum(axis=(1, 2)) / np.where(own > 0, own, 1.0)
    return found


def measures(scores: Array, part: Part) -> dict[str, float]:
    """Of one set of scores."""
    s = scores.astype(float)
    bought = np.mean(np.bincount(part.query, weights=part.y) > 0)
    scale = float(np.sqrt(np.bincount(part.query, weights=part.centred(s) ** 2) / part.group).mean()) or 1.0
    term = lo.DistanceCovariance("price", within_group=True)
    raw = lo.evaluate(term, s, part.y, group=part.group, price=part.price)["price.dcov2"]
    return {
        "ndcg": lo.NDCG(10, empty=0.0)(s, part.y, group=part.group) / float(bought),
        "dcor2": float(distance_correlations(s, part.price, part.group).mean()),
        "log dcor2": float(distance_correlations(s, np.log(part.price), part.group).mean()),
        "scaled": raw / scale,
        "raw": raw,
        "scale": scale,
    }


# ------------------------------------------------------------------------------------------------------------ trainings
class Trained(NamedTuple):
    """Seconds, what was warned of, and the scores on both parts."""

    seconds: float
    warned: str
    of_train: Array
    of_test: Array


def fit(booster: str, spec: Any, train: Part, test: Part) -> Trained:
    """One training; under constraints the best round that keeps to them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", lo.LambdaObjectivesWarning)
        found = (by_lightgbm if booster == "LightGBM" else by_xgboost)(spec, train, test)
    told = [str(each.message) for each in caught if issubclass(each.category, lo.LambdaObjectivesWarning)]
    names = ["swings" if "swings" in text else "inflation" if "inflate" in text else "bound" for text in told]
    return found._replace(warned=", ".join(names) or "-")


def by_lightgbm(spec: Any, train: Part, test: Part) -> Trained:
    objective = lo.Objective(spec)
    params = dict(num_leaves=15, learning_rate=RATE, num_threads=1, verbosity=-1, metric="None")
    data = lo.attach(lgb.Dataset(train.X, train.y, group=train.group, params=params).construct(), train.columns)
    calls = [lo.lightgbm.early_stopping(objective, ROUNDS)] if isinstance(spec, lo.AugmentedLagrangian) else []
    seconds, model = timed(lambda: lgb.train({**params, "objective": objective}, data, ROUNDS, callbacks=calls))
    scores = [np.asarray(model.predict(part.X, num_threads=1)) for part in (train, test)]
    return Trained(seconds.cpu, "", *scores)


def by_xgboost(spec: Any, train: Part, test: Part) -> Trained:
    objective = lo.Objective(spec)
    params = dict(max_depth=4, eta=RATE, nthread=1, base_score=0.0, disable_default_eval_metric=1)
    data = xgb.DMatrix(train.X, train.y, nthread=1)
    data.set_group(train.group)
    lo.attach(data, train.columns)
    calls = [lo.xgboost.EarlyStopping(objective, ROUNDS)] if isinstance(spec, lo.AugmentedLagrangian) else []
    seconds, model = timed(lambda: xgb.train(params, data, ROUNDS, obj=objective, callbacks=calls))
    kept = model[: model.best_iteration + 1] if calls else model
    scores = [np.asarray(kept.inplace_predict(part.X), dtype=float) for part in (train, test)]
    return Trained(seconds.cpu, "", *scores)


def reranked(train: Part, test: Part, plain: Trained) -> dict[str, dict[float, Array]]:
    """The plain model's scores less shares of what the price says of them, by method and share."""
    found = {}
    forms = {
        "price": (train.price, test.price),
        "log price": (np.log(train.price), np.log(test.price)),
        "rank": (train.rank, test.rank),
    }
    of_train, of_test = plain.of_train, plain.of_test
    own = test.centred(of_test)
    for name, (a, b) in forms.items():
        x, z = train.centred(a), test.centred(b)
        found[f"slope, {name}"] = (x @ train.centred(of_train) / (x @ x)) * z
        each = np.bincount(test.query, weights=z * own) / np.bincount(test.query, weights=z * z)
        found[f"slope of a query, {name}"] = each[test.query] * z
    tenth, here = (np.minimum(rank * 10, 9).astype(int) for rank in (train.rank, test.rank))
    means = np.bincount(tenth, weights=train.centred(of_train)) / np.bincount(tenth)
    found["steps, rank"] = means[here]
    return {name: {share: of_test - share * fitted for share in SHARES} for name, fitted in found.items()}


def study(seed: int, booster: str, queries: int) -> list[dict[str, Any]]:
    """All of one seed."""
    train, test, names = parts(seed, queries)
    rows: list[dict[str, Any]] = []

    def add(method: str, at: float, scores: Array, seconds: float = 0.0, warned: str = "-") -> None:
        named = {"seed": seed, "booster": booster, "method": method, "at": at, "seconds": seconds, "warned": warned}
        rows.append(named | measures(scores, test))

    def trained(method: str, at: float, spec: Any, a: Part = train, b: Part = test) -> Trained:
        found = fit(booster, spec, a, b)
        add(method, at, found.of_test, found.seconds, found.warned)
        print(seed, booster, method, at, f"{found.seconds:.1f} s", found.warned, file=sys.stderr)
        return found

    plain = trained("plain", 0.0, BASE)
    for method, by_share in reranked(train, test, plain).items():
        for share, scores in by_share.items():
            add(method, share, scores)
    seen = [i for i, name in enumerate(names) if name not in PRICED]
    trained("no price", 0.0, BASE, train._replace(X=train.X[:, seen]), test._replace(X=test.X[:, seen]))
    for control in CONTROLS:
        for weight in WEIGHTS:
            spec = lo.Decorrelated(BASE, control, weight, within_group=True)
            trained(f"penalty, {control}", weight, spec)
    term = lo.DistanceCovariance("price", within_group=True)
    found = lo.evaluate(term, plain.of_train, train.y, group=train.group, price=train.price)["price.dcov2"]
    for share in BOUNDS:
        bound = lo.Constraint(term, at_most=share * found)
        trained("budget, price", share, lo.AugmentedLagrangian(BASE, [bound]))
    return rows


# --------------------------------------------------------------------------------------------------------------- tables
def lost_at(points: list[dict[str, Any]], plain: dict[str, Any], level: float) -> float | None:
    """NDCG@10 lost where dcor2 is down by a share, along the curve from the plain model; None if it never is."""
    curve: list[tuple[float, float]] = [(0.0, 0.0)]
    curve += [(1 - row["dcor2"] / plain["dcor2"], plain["ndcg"] - row["ndcg"]) for row in points]
    for (x0, y0), (x1, y1) in itertools.pairwise(curve):
        if x0 < level <= x1:
            return y0 + (y1 - y0) * (level - x0) / (x1 - x0)
    return None


def spread(values: list[float], digits: int = 4) -> str:
    off = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{off}"


def show(booster: str, rows: list[dict[str, Any]]) -> None:
    """Every point, then each method where dependence is down by so much."""
    seeds = sorted({row["seed"] for row in rows})
    plains = {row["seed"]: row for row in rows if row["method"] == "plain"}
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines, levels = [], []
    for method in methods:
        of = [row for row in rows if row["method"] == method]
        for at in dict.fromkeys(row["at"] for row in of):
            here = [row for row in of if row["at"] == at]
            down = [
                [1 - row[key] / plains[row["seed"]][key] for row in here]
                for key in ("dcor2", "log dcor2", "scaled", "raw")
            ]
            lines.append([
                method, f"{at:g}", spread([row["ndcg"] for row in here]),
                spread([plains[row["seed"]]["ndcg"] - row["ndcg"] for row in here]),
                spread([row["dcor2"] for row in here]), *(f"{100 * statistics.fmean(each):.1f}" for each in down),
                f"{statistics.fmean(row['scale'] for row in here):.2f}",
                f"{statistics.fmean(row['seconds'] for row in here):.1f}",
                "; ".join(dict.fromkeys(row["warned"] for row in here)),
            ])  # fmt: skip
        cells = []
        for level in LEVELS:
            lost = [lost_at([row for row in of if row["seed"] == seed], plains[seed], level) for seed in seeds]
            there = [each for each in lost if each is not None]
            cells.append(spread(there) if len(there) == len(seeds) else f"{len(there)} of {len(seeds)} seeds")
        if len(of) > len(seeds):
            levels.append([method, *cells])
    print(f"\n{booster}, {len(seeds)} seeds, mean ± standard deviation\n")
    head = ["NDCG@10", "lost", "dcor2", "down, %", "log dcor2", "scaled", "raw", "scale", "s", "warned"]
    print(table(["method", "at", *head], lines))
    print(f"\n{booster}: NDCG@10 lost where dcor2 is down by\n")
    print(table(["method", *(f"{level:.0%}" for level in LEVELS)], levels))


def main() -> None:
    parser = argparse.ArgumentParser(description="A penalty on the dependence of a ranking on the price.")
    parser.add_argument("--results", metavar="FILE", help="one JSON object a line, to look further")
    parser.add_argument("--queries", type=int, default=2000, help="to train on; as many are reported")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--boosters", nargs="+", default=["LightGBM", "XGBoost"], choices=["LightGBM", "XGBoost"])
    options = parser.parse_args()
    print(machine())
    for booster in options.boosters:
        train, test, _ = parts(0, 50)
        fit(booster, lo.Decorrelated(BASE, "price", 1.0, within_group=True), train, test)  # compiles
        rows = [row for seed in options.seeds for row in study(seed, booster, options.queries)]
        if options.results:
            with Path(options.results).open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        show(booster, rows)


if __name__ == "__main__":
    main()
