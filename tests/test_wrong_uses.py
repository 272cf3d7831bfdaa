"""Wrong uses of the package, and what users are told: the argument, what was found there, and the way out.

A row has a name, the wrong use, the kind of error, and three texts that its message must hold: what the argument or
setting is called, what was found there, and what to write instead or what would be taken.
"""

import json
import warnings
from typing import NamedTuple

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb

import lambda_objectives as lo
from lambda_objectives.terms import no_objective
from lambda_objectives.tools.console import UserError
from lambda_objectives.tools.scoring import parse_metric

RNG = np.random.default_rng(0)
QUERIES, ROWS = 12, 96  # of 8 rows each
X = RNG.normal(size=(ROWS, 4))
Y = np.clip(np.round(X[:, 0] + 1), 0, 3)
GROUP, QID = [8] * QUERIES, np.repeat(np.arange(QUERIES), 8)
QUALITY = (X[:, 1] > 0) * 1.0
S = X[:, 0]  # scores
ONES = np.ones(ROWS)

NDCG, RANK = lo.NDCG(10), lo.LambdaRank(lo.NDCG(10))
WELL = lo.LambdaRank(lo.NDCG(10), label="quality")
BOUND = lo.Constraint(WELL, at_most=1.0)
MESSY = QID[::-1].reshape(8, QUERIES).ravel("F")  # rows of a query here and there


def but(values, value, row=3):
    """The values, but for one."""
    return [value if i == row else each for i, each in enumerate(values)]


def evaluate(spec, scores=S, labels=Y, **data):
    return lo.evaluate(spec, scores, labels, **{"group": GROUP, "quality": QUALITY} | data)


def train(spec, **data):
    """The first round of a training, by hand."""
    return lo.gradient(spec, S, Y, **{"group": GROUP, "quality": QUALITY} | data)


class LightGBM:
    """The booster's own names for what the rows below do with both."""

    stop, save = lo.lightgbm.early_stopping, lo.lightgbm.checkpoint

    @staticmethod
    def data(labels=Y, group=GROUP, weight=None):
        return lgb.Dataset(X, labels, group=group, weight=weight)

    @staticmethod
    def train(objective, data=None, params=None, valid=False, metrics=None, callbacks=()):
        data = LightGBM.data() if data is None else data
        params = {"objective": objective, "verbosity": -1, "num_threads": 1, "metric": "None", **(params or {})}
        sets = [LightGBM.data()] if valid or metrics else None
        return lgb.train(params, data, 3, valid_sets=sets, feval=metrics, callbacks=list(callbacks))


class XGBoost:
    """Likewise."""

    stop, save = lo.xgboost.EarlyStopping, lo.xgboost.Checkpoint

    @staticmethod
    def data(labels=Y, group=GROUP, weight=None):
        if weight is not None and group is not None:
            weight = weight[:QUERIES]
        return xgb.DMatrix(X, labels, qid=None if group is None else QID, weight=weight)

    @staticmethod
    def train(objective, data=None, params=None, valid=False, metrics=None, callbacks=()):
        data = XGBoost.data() if data is None else data
        params = {"nthread": 1, "min_child_weight": 1e-3, "disable_default_eval_metric": True, **(params or {})}
        evals = [(XGBoost.data(), "valid")] if valid or metrics else []
        return xgb.train(
            params, data, 3, obj=objective, evals=evals, custom_metric=metrics, callbacks=list(callbacks),
            verbose_eval=False,
        )  # fmt: skip


BOOSTERS = [LightGBM, XGBoost]


class Wrong(NamedTuple):
    """A row."""

    id: str
    use: object  # a function of nothing, below of a booster
    kind: type
    argument: str
    found: str
    way_out: str


# fmt: off
TURNED = pd.Series(np.arange(len(Y)) * 1.0).iloc[::-1]  # the rows of pd.Series(Y) from the last to the first
ORDER = [  # an index of pandas tells it
    Wrong("scores in another order", lambda: lo.evaluate(RANK, TURNED, pd.Series(Y), group=GROUP), ValueError,
          "scores", "row 0 is", "values.loc[labels.index]"),
    Wrong("a column in another order", lambda: lo.evaluate(RANK, S, pd.Series(Y), group=GROUP, price=TURNED),
          ValueError, "column 'price'", "row 0 is", "values.to_numpy()"),
    Wrong("scores of a metric in another order", lambda: lo.MAP()(TURNED, pd.Series(Y), group=GROUP), ValueError,
          "scores", "in labels", "values.loc[labels.index]"),
    Wrong("attached in another order", lambda: lo.attach(lgb.Dataset(X, pd.Series(Y)), price=TURNED), ValueError,
          "column 'price'", "in another order", "values.loc"),
    Wrong("relative to nothing", lambda: lgb.train(
        {"objective": lo.Objective(lo.AugmentedLagrangian(
            lo.LogLoss(), [lo.Constraint(lo.DistanceCovariance("price"), 0.5, relative=True)], start=0)),
         "verbosity": -1}, lo.attach(lgb.Dataset(X, Y > 1), price=S), 3),
        ValueError, "start", "that is 0", "start=30"),
]
METRICS = [
    Wrong("k=0", lambda: lo.NDCG(0), ValueError, "k ", "found 0", "whole number from 1"),
    Wrong("k is a text", lambda: lo.NDCG("10"), ValueError, "k ", "'10'", "whole number from 1"),
    Wrong("k=2.5", lambda: lo.MAP(2.5), ValueError, "k ", "found 2.5", "whole number from 1"),
    Wrong("no k where one is needed", lambda: lo.Precision(None), ValueError, "k ", "found None",
          "whole number from 1"),
    Wrong("scores given to the class", lambda: lo.NDCG(S), ValueError, "k ", "ndarray of shape (96,)", "whole number"),
    Wrong("unknown gain", lambda: lo.NDCG(10, gain="exp"), ValueError, "gain", "'exp'", "'exp2', 'linear'"),
    Wrong("gains that fall", lambda: lo.NDCG(gain=[0, 3, 1]), ValueError, "gain", "(0.0, 3.0, 1.0)", "must not be"),
    Wrong("unknown discount", lambda: lo.NDCG(10, discount="log"), ValueError, "discount", "'log'", "'log2'"),
    Wrong("linear discount without k", lambda: lo.NDCG(discount="linear"), ValueError, "discount", "linear", "give k"),
    Wrong("unknown ties", lambda: lo.NDCG(ties="average"), ValueError, "ties", "'average'", "'row'"),
    Wrong("persistence of 1", lambda: lo.RBP(persistence=1.0), ValueError, "persistence", "1.0", "below 1"),
    Wrong("grades up to 60", lambda: lo.ERR(max_grade=60), ValueError, "max_grade", "60", "at most 50"),
    Wrong("threshold is a text", lambda: lo.AUC("a"), ValueError, "threshold", "'a'", "finite number"),
    Wrong("custom metric by name", lambda: lo.CustomMetric("ndcg", "mine"), TypeError, "function", "'ndcg'",
          "callable"),
    Wrong("custom metric of NaN", lambda: lo.CustomMetric(lambda labels: np.nan, "mine")(S, Y, group=GROUP), ValueError,
          "mine: what the function returned", "found nan", "finite number"),
    Wrong("metric misspelt on the command line", lambda: parse_metric("ngdc@10"), UserError, "metric", "'ngdc@10'",
          "did you mean 'ndcg'"),
    Wrong("name misspelt", lambda: lo.NDGC, AttributeError, "attribute", "'NDGC'", "did you mean 'NDCG'"),
]

ARRAYS = [
    Wrong("labels of two columns", lambda: NDCG(S, np.ones((ROWS, 2)), group=GROUP), ValueError, "labels", "(96, 2)",
          "one number a row"),
    Wrong("labels are text", lambda: NDCG(S, ["good"] * ROWS, group=GROUP), ValueError, "labels", "text such as 'good'",
          "numpy.unique(values, return_inverse=True)"),
    Wrong("labels are dates", lambda: NDCG(S, np.array(["2026-01-01"] * ROWS, "M8[D]"), group=GROUP), ValueError,
          "labels", "2026-01-01", "one number a row"),
    Wrong("labels NaN", lambda: NDCG(S, but(Y, np.nan), group=GROUP), ValueError, "labels", "row 3 is nan",
          "leave these rows out"),
    Wrong("labels negative", lambda: NDCG(S, Y - 1, group=GROUP), ValueError, "label", "is -1", "begin at 0"),
    Wrong("labels above the largest grade", lambda: lo.ERR(max_grade=2)(S, Y, group=GROUP), ValueError, "label",
          " is 3", "from 0 to max_grade=2"),
    Wrong("labels without a gain", lambda: lo.NDCG(gain=[0, 1, 3])(S, Y, group=GROUP), ValueError, "gain", " has 3",
          "an entry for each label"),
    Wrong("fractions where gains are a table", lambda: lo.NDCG(gain=[0, 1, 3, 7])(S, but(Y, 0.5), group=GROUP),
          ValueError, "gain", "row 3 has 0.5", "gain='linear'"),
    Wrong("labels in cents", lambda: NDCG(S, Y * 100, group=GROUP), ValueError, "gain", "label 100", "gain='linear'"),
    Wrong("labels outside of 0 and 1", lambda: evaluate(lo.LogLoss()), ValueError, "label", " is 2", "from 0 to 1"),
    Wrong("counts below 0", lambda: evaluate(lo.Poisson(), labels=Y - 1), ValueError, "label", " is -1", "from 0"),
    Wrong("amounts of 0", lambda: evaluate(lo.Gamma()), ValueError, "label", " is 0", "above 0"),
    Wrong("scores of other length", lambda: evaluate(RANK, S[:-1]), ValueError, "scores", "95", "96 rows"),
    Wrong("scores of two columns", lambda: evaluate(RANK, np.ones((ROWS, 2))), ValueError, "scores", "(96, 2)",
          "one number a row"),
    Wrong("scores infinite", lambda: evaluate(RANK, but(S, np.inf)), ValueError, "scores", "row 3 is inf", "fill"),
    Wrong("one score a row where two are wanted", lambda: evaluate(lo.Gaussian()), ValueError, "scores", "(96,)",
          "num_class=2"),
    Wrong("three scores a row where two are wanted", lambda: evaluate(lo.Gaussian(), np.ones((ROWS, 3))), ValueError,
          "scores", "(96, 3)", "num_class=2"),
    Wrong("arguments in another order", lambda: lo.evaluate(S, Y, RANK), TypeError, "spec", "ndarray of shape (96,)",
          "a spec comes first"),
    Wrong("column of other length", lambda: evaluate(WELL, quality=QUALITY[1:]), ValueError, "'quality'", "95",
          "96 rows"),
    Wrong("column NaN", lambda: evaluate(WELL, quality=but(QUALITY, np.nan)), ValueError, "'quality'", "row 3 is nan",
          "leave these rows out"),
    Wrong("column is a table of pandas", lambda: evaluate(WELL, quality=pd.DataFrame({"a": S, "b": S})), ValueError,
          "'quality'", "(96, 2)", "one number a row"),
    Wrong("column is a table of polars", lambda: evaluate(WELL, quality=pl.DataFrame({"a": S, "b": S})), ValueError,
          "'quality'", "(96, 2)", "one number a row"),
    Wrong("column of categories", lambda: evaluate(WELL, quality=pd.Series(["x", "y"] * 48, dtype="category")),
          ValueError, "'quality'", "'x'", "numpy.unique(values, return_inverse=True)"),
    Wrong("column is its own name", lambda: evaluate(WELL, quality="quality"), ValueError, "'quality'",
          "text such as 'quality'", "one number a row"),
    Wrong("columns are a table", lambda: evaluate(WELL, columns=pd.DataFrame({"a": S})), TypeError, "columns",
          "DataFrame of shape (96, 1)", "{name: table[name] for name in table.columns}"),
    Wrong("columns are names", lambda: evaluate(WELL, columns=["quality"]), TypeError, "columns", "['quality']",
          "dict"),
    Wrong("weights negative", lambda: evaluate(RANK, weights=but(ONES, -1)), ValueError, "weights", "row 3 is -1",
          "0 leaves a row out"),
    Wrong("weights NaN", lambda: evaluate(RANK, weights=but(ONES, np.nan)), ValueError, "weights", "row 3 is nan",
          "fill them in"),
    Wrong("weights of neither rows nor queries", lambda: evaluate(RANK, weights=ONES[:5]), ValueError, "weights",
          "5 values", "96 rows in 12 queries: one a row, or one a query"),
    Wrong("weights are text", lambda: evaluate(RANK, weights=["a"] * ROWS), ValueError, "weights", "'a'", "one number"),
    Wrong("weights negative in a round by hand", lambda: lo.Objective(RANK)(Y, S, but(ONES, -1), GROUP), ValueError,
          "weights",
          "row 3 is -1", "0 leaves a row out"),
    Wrong("a data set given to a metric", lambda: NDCG(S, lgb.Dataset(X, Y)), TypeError, "labels", "a Dataset",
          "objective.metrics"),
]

GROUPS = [
    Wrong("sizes off by one", lambda: NDCG(S, Y, group=but(GROUP, 7)), ValueError, "group", "95 in 12 queries",
          "add up to the number of rows"),
    Wrong("ids given as sizes", lambda: NDCG(S, Y, group=QID), ValueError, "group", "entry 0 is 0", "use qid="),
    Wrong("ids from 1 given as sizes", lambda: NDCG(S, Y, group=QID + 1), ValueError, "group", "624", "use qid="),
    Wrong("borders given as sizes", lambda: NDCG(S, Y, group=np.arange(13) * 8), ValueError, "group", "entry 0 is 0",
          "numpy.diff(borders)"),
    Wrong("one size for all", lambda: NDCG(S, Y, group=8), ValueError, "group", "shape ()", "one number a query"),
    Wrong("half a row", lambda: NDCG(S, Y, group=but(GROUP, 8.5)), ValueError, "group", "8.5", "whole numbers from 1"),
    Wrong("sizes given as ids", lambda: NDCG(S, Y, qid=GROUP), ValueError, "qid", "(12,)", "use group="),
    Wrong("ids not sorted", lambda: NDCG(S, Y, qid=MESSY), ValueError, "qid", "query 11", "numpy.argsort(qid"),
    Wrong("an id is NaN", lambda: NDCG(S, Y, qid=but(QID, np.nan)), ValueError, "qid", "row 3, found nan", "give each"),
    Wrong("an id is None", lambda: NDCG(S, Y, qid=np.array(but(QID, None), object)), ValueError, "qid",
          "row 3, found None", "give each row"),
    Wrong("an id is pandas' NA", lambda: NDCG(S, Y, qid=pd.Series(but(QID, pd.NA), dtype="object")), ValueError, "qid",
          "row 3, found <NA>", "give each row"),
    Wrong("both sizes and ids", lambda: NDCG(S, Y, group=GROUP, qid=QID), ValueError, "qid=", "found both", "not both"),
    Wrong("ranking without queries", lambda: evaluate(RANK, group=None), ValueError, "group", "96 rows has none",
          "qid= (one id a row)"),
    Wrong("Pearson without groups", lambda: evaluate(lo.Pearson(), group=None), ValueError, "within_group=True",
          "96 rows has none", "qid= (one id a row)"),
]

COLUMNS = [
    Wrong("no such label", lambda: evaluate(lo.LambdaRank(NDCG, label="qualty")), ValueError, "label='qualty'",
          "(there: 'quality')", "did you mean 'quality'"),
    Wrong("no such control", lambda: evaluate(lo.DistanceCovariance("price")), ValueError, "control='price'",
          "(there: 'quality')", "attach(data, price=values)"),
    Wrong("no such group column", lambda: evaluate(lo.DistanceCovariance("quality", within_group="era")), ValueError,
          "within_group='era'", "(there: 'quality')", "attach(data, era=values)"),
    Wrong("no such propensities", lambda: evaluate(lo.LambdaRank(NDCG, propensity="seen")), ValueError,
          "propensity='seen'", "(there: 'quality')", "attach(data, seen=values)"),
    Wrong("propensities of 0", lambda: evaluate(lo.LambdaRank(NDCG, propensity="quality"), quality=0 * ONES),
          ValueError, "propensity", "row 0 is 0", "above 0 and up to 1"),
    Wrong("control NaN", lambda: evaluate(lo.DistanceCovariance("quality"), quality=but(ONES, np.nan)), ValueError,
          "'quality'", "row 3 is nan", "leave these rows out"),
    Wrong("control constant", lambda: evaluate(lo.DistanceCovariance("quality"), quality=ONES), ValueError, "control",
          "'quality' has no usable spread", "leave the control out"),
    Wrong("control constant in each query",
          lambda: train(lo.Decorrelated(RANK, "quality", 1, within_group=True), quality=QID), ValueError, "control",
          "none of the 12 groups", "choose larger groups"),
    Wrong("constraint on a constant column", lambda: train(lo.AugmentedLagrangian(RANK, [BOUND]), quality=ONES),
          ValueError, "constraint 'quality.ndcg@10'", "no query with two different values", "attach another column"),
    Wrong("attached to an array", lambda: lo.attach(X, quality=QUALITY), TypeError, "data", "ndarray",
          "lightgbm.Dataset(X, y, ...)"),
    Wrong("attached to a table", lambda: lo.attach(pd.DataFrame(X), quality=QUALITY), TypeError, "data", "DataFrame",
          "XGBoost DMatrix"),
]

TERMS = [
    Wrong("metric by name", lambda: lo.LambdaRank("ndcg"), TypeError, "metric", "'ndcg'", "write NDCG()"),
    Wrong("metric by a misspelt name", lambda: lo.LambdaRank("ngdc@10"), TypeError, "metric", "'ngdc@10'",
          "write NDCG(10)"),
    Wrong("metric of a name unknown", lambda: lo.YetiRank("bpref"), TypeError, "metric", "'bpref'", "there are AUC, "),
    Wrong("metric is a class", lambda: lo.LambdaRank(lo.NDCG), TypeError, "metric", "the class NDCG", "NDCG(...)"),
    Wrong("metric is a cut-off", lambda: lo.LambdaRank(10), TypeError, "metric", "found 10", "such as NDCG(10)"),
    Wrong("label is a number", lambda: lo.LambdaRank(NDCG, label=5), ValueError, "label", "found 5", "a column's name"),
    Wrong("label is an array", lambda: lo.LambdaRank(NDCG, label=QUALITY), ValueError, "label",
          "ndarray of shape (96,)", "attach(data, NAME=values)"),
    Wrong("label has a blank", lambda: lo.LogLoss("was clicked"), ValueError, "label", "'was clicked'",
          "'was_clicked'"),
    Wrong("label is a metric", lambda: lo.QueryRMSE(NDCG), ValueError, "label", "NDCG(k=10", "a column's name"),
    Wrong("sigma=0", lambda: lo.LambdaRank(NDCG, sigma=0), ValueError, "sigma", "found 0", "above 0"),
    Wrong("sigma is a text", lambda: lo.RankNet(sigma="1"), ValueError, "sigma", "'1'", "finite number"),
    Wrong("truncation=0", lambda: lo.LambdaRank(NDCG, truncation=0), ValueError, "truncation", "found 0", "from 1"),
    Wrong("a switch is a number", lambda: lo.LambdaRank(NDCG, log_norm=1), ValueError, "log_norm", "found 1",
          "True or False"),
    Wrong("seed below 0", lambda: lo.YetiRank(NDCG, seed=-1), ValueError, "seed", "found -1", "whole number from 0"),
    Wrong("unknown loss", lambda: lo.RankNet(loss="hinges"), ValueError, "loss", "'hinges'", "'logistic' or 'hinge'"),
    Wrong("unknown variant", lambda: lo.LambdaLoss(lo.NDCG(), "3"), ValueError, "variant", "'3'", "'1', '2' or '2++'"),
    Wrong("bounds on DCG cut off", lambda: lo.LambdaLoss(NDCG), ValueError, "metric", "k=10", "without a cut-off"),
    Wrong("baseline is an array", lambda: lo.RiskRank(NDCG, S), ValueError, "baseline", "(96,)", "name of a column"),
    Wrong("rho=3", lambda: lo.Tweedie(rho=3), ValueError, "rho", "found 3", "between 1 and 2"),
    Wrong("Pearson over all rows", lambda: lo.Pearson(within_group=False), ValueError, "within_group", "found False",
          "True or a column's name"),
    Wrong("five joint controls", lambda: lo.DistanceCovariance(list("abcde")), ValueError, "control", "found 5",
          "two to four columns"),
    Wrong("control is an array", lambda: lo.DistanceCovariance(QUALITY), ValueError, "control", "(96,)",
          "write 'NAME'"),
    Wrong("unknown link", lambda: lo.DistanceCovariance("p", link="sigmoid"), ValueError, "link", "'sigmoid'",
          "'logit'"),
]

SPECS = [
    Wrong("objective of a metric", lambda: lo.Objective(NDCG), TypeError, "spec", "NDCG(k=10",
          "write LambdaRank(NDCG("),
    Wrong("objective of a name", lambda: lo.Objective("lambdarank"), TypeError, "spec", "'lambdarank'",
          "such as LambdaRank(NDCG(10))"),
    Wrong("objective of a class", lambda: lo.Objective(lo.LambdaRank), TypeError, "spec", "the class LambdaRank",
          "write LambdaRank(...)"),
    Wrong("objective of a list", lambda: lo.Objective([RANK, WELL]), TypeError, "spec", "[LambdaRank(",
          "WeightedSum(["),
    Wrong("objective of a constraint", lambda: lo.Objective(BOUND), TypeError, "spec", "Constraint(",
          "AugmentedLagrangian(primary, constraints=[...])"),
    Wrong("objective of an objective", lambda: lo.Objective(lo.Objective(RANK)), TypeError, "spec", "Objective(",
          "objective.spec"),
    Wrong("objective evaluated", lambda: evaluate(lo.Objective(RANK)), TypeError, "spec", "Objective(",
          "objective.spec"),
    Wrong("metric evaluated as a spec", lambda: evaluate(NDCG), TypeError, "spec", "NDCG(k=10", "write LambdaRank("),
    Wrong("constraint of an objective", lambda: lo.Constraint(lo.Objective(RANK), at_most=1), TypeError, "term",
          "Objective(", "objective.spec"),
    Wrong("constraint of a metric", lambda: lo.Constraint(NDCG, at_most=1), TypeError, "term", "NDCG(k=10",
          "write LambdaRank(NDCG("),
    Wrong("constraint of a spec", lambda: lo.Constraint(lo.WeightedSum([RANK], [1]), at_most=1), TypeError, "term",
          "WeightedSum(", "name one of them"),
    Wrong("constraint of a column", lambda: lo.Constraint("quality", at_most=1), TypeError, "term", "'quality'",
          "such as LambdaRank(NDCG(10))"),
    Wrong("constraint without a bound", lambda: lo.Constraint(WELL), ValueError, "bound", "found none", "at_most="),
    Wrong("constraint with two bounds", lambda: lo.Constraint(WELL, at_most=1, at_least=0.5), ValueError, "bound",
          "found both", "at_least= for its metric"),
    Wrong("bound NaN", lambda: lo.Constraint(WELL, at_most=np.nan), ValueError, "at_most", "found nan",
          "finite number"),
    Wrong("bound on a cost below 0", lambda: train(lo.AugmentedLagrangian(RANK, [lo.Constraint(WELL, at_most=-0.5)])),
          ValueError, "at_most", "=-0.5", "write at_least="),
    Wrong("bound on a metric in per cent",
          lambda: train(lo.AugmentedLagrangian(RANK, [lo.Constraint(WELL, at_least=70)])), ValueError, "at_least",
          "=70", "to 1, whatever the ranking"),
    Wrong("bound on a metric below 0",
          lambda: train(lo.AugmentedLagrangian(RANK, [lo.Constraint(WELL, at_least=-0.7)])), ValueError, "at_least",
          "=-0.7", "write a bound between"),
    Wrong("bound on a metric that is not there",
          lambda: train(lo.AugmentedLagrangian(RANK, [lo.Constraint(lo.RankNet("quality"), at_least=0.5)])), ValueError,
          "at_least", "RankNet(", "use at_most="),
    Wrong("name of a constraint has a blank", lambda: lo.Constraint(WELL, at_most=1, name="my bound"), ValueError,
          "name", "'my bound'", "'my_bound'"),
    Wrong("no constraints", lambda: lo.AugmentedLagrangian(RANK, []), ValueError, "constraints", "found none",
          "at least one Constraint"),
    Wrong("constraints are terms", lambda: lo.AugmentedLagrangian(RANK, [WELL]), TypeError, "constraints[0]",
          "LambdaRank(", "Constraint(term, at_most=...)"),
    Wrong("constraints are a number", lambda: lo.AugmentedLagrangian(RANK, 0.9), TypeError, "constraints", "found 0.9",
          "[Constraint(term, at_most=...)]"),
    Wrong("two constraints of one name", lambda: lo.AugmentedLagrangian(RANK, [BOUND, BOUND]), ValueError,
          "'quality.ndcg@10'", "2 constraints", "name="),
    Wrong("unknown update", lambda: lo.AugmentedLagrangian(RANK, [BOUND], update="rest"), ValueError, "update",
          "'rest'", "'auto', 'carry' or 'reset'"),
    Wrong("mu=0", lambda: lo.AugmentedLagrangian(RANK, [BOUND], mu=0), ValueError, "mu", "found 0", "above 0"),
    Wrong("two mu, one constraint", lambda: lo.AugmentedLagrangian(RANK, [BOUND], mu=[1, 2]), ValueError, "mu",
          "found 2", "one for each constraint"),
    Wrong("primary is a metric", lambda: lo.AugmentedLagrangian(NDCG, [BOUND]), TypeError, "primary", "NDCG(k=10",
          "write LambdaRank(NDCG("),
    Wrong("sum of one term without brackets", lambda: lo.WeightedSum(RANK, [1]), TypeError, "terms", "LambdaRank(",
          "write [term]"),
    Wrong("sum of objectives", lambda: lo.WeightedSum([lo.Objective(RANK)], [1]), TypeError, "terms[0]", "Objective(",
          "objective.spec"),
    Wrong("sum of nothing", lambda: lo.WeightedSum([], []), ValueError, "terms", "found none", "at least one term"),
    Wrong("another number of weights", lambda: lo.WeightedSum([RANK, WELL], [1]), ValueError, "weights", "found 1",
          "one for each term"),
    Wrong("one weight for all", lambda: lo.WeightedSum([RANK, WELL], 0.5), ValueError, "weights", "found 0.5",
          "a list"),
    Wrong("negative weight in a sum", lambda: lo.WeightedSum([RANK, WELL], [1, -1]), ValueError, "weights[1]",
          "found -1",
          "0 leaves the term out"),
    Wrong("weights all 0", lambda: lo.WeightedSum([RANK, WELL], [0, 0]), ValueError, "weights", "(0.0, 0.0)",
          "give the primary a weight"),
    Wrong("negative penalty", lambda: lo.Decorrelated(RANK, "price", -1), ValueError, "weight", "found -1",
          "must not be negative"),
    Wrong("penalty is a text", lambda: lo.Decorrelated(RANK, "price", "5"), ValueError, "weight", "'5'",
          "finite number"),
    Wrong("no controls", lambda: lo.Decorrelated(RANK, [], 1), ValueError, "controls", "found none", "at least one"),
    Wrong("controls are values", lambda: lo.Decorrelated(RANK, QUALITY, 1), ValueError, "controls", "(96,)",
          "attach(data, NAME=values)"),
    Wrong("another number of control weights", lambda: lo.Decorrelated(RANK, "price", 1, [1, 2]), ValueError,
          "control_weights", "found 2", "one for each control"),
    Wrong("base is a metric", lambda: lo.Decorrelated(NDCG, "price", 1), TypeError, "base", "NDCG(k=10",
          "write LambdaRank(NDCG("),
    Wrong("Pearson's level left open", lambda: lo.Decorrelated(lo.Pearson(), "price", 1), ValueError, "within_group",
          "Pearson", "write within_group=True"),
    Wrong("unknown device", lambda: lo.Objective(RANK, device="gpu"), ValueError, "device", "'gpu'", "'cpu' or 'cuda'"),
    Wrong("nothing for a GPU", lambda: lo.Objective(RANK, device="cuda"), ValueError, "device", "'cuda'",
          "leave device out"),
    Wrong("categories on a GPU", lambda: lo.Objective(lo.DistanceCovariance("sex", categorical=True), device="cuda"),
          ValueError, "device", "categorical", "leave device out"),
]


def state():
    objective = lo.Objective(RANK)
    objective(Y, S, None, GROUP)
    return objective.state()


STATES = [
    Wrong("state is a path", lambda: lo.Objective(RANK, state="state.json"), ValueError, "state", "'state.json'",
          "json.loads(text)"),
    Wrong("state is still text", lambda: lo.Objective(RANK, state=json.dumps(state())), ValueError, "state",
          "version", "json.loads(text)"),
    Wrong("state is something else", lambda: lo.Objective(RANK, state={"version": 3}), ValueError, "state",
          "{'version': 3}", "what Objective.state returned"),
    Wrong("state of another spec", lambda: lo.Objective(lo.LambdaRank(lo.NDCG(5)), state=state()), ValueError, "state",
          "NDCG(k=10", "write the spec as it was"),
    Wrong("state before a training", lambda: lo.Objective(RANK).state(), KeyError, "data", "not been trained",
          "a data set that it was trained on"),
    Wrong("history of other data", lambda: lo.Objective(RANK).history(lgb.Dataset(X, Y)), KeyError, "data", "a Dataset",
          "the very object"),
    Wrong("state in a LightGBM model", lambda: lo.xgboost.saved_state(LightGBM.train(lo.Objective(RANK))), TypeError,
          "booster", "a Booster", "Objective.state"),
    Wrong("state where there is none", lambda: lo.xgboost.saved_state(XGBoost.train(lo.Objective(RANK))), ValueError,
          "booster", "no saved state", "by a rule with a state"),
    Wrong("no folder", lambda: lo.resume(None), TypeError, "folder", "found None", "write a text"),
    Wrong("folder is a file", lambda: lo.resume(__file__), ValueError, "folder", "test_wrong_uses.py", "name a folder"),
]

TOOLS = [
    Wrong("cut of a cost of 0", lambda: lo.planning.bounds(WELL, S, Y, group=GROUP, quality=0 * ONES), ValueError,
          "cost/quality.ndcg@10", "is 0", "Constraint(term, at_most=...)"),
    Wrong("cut and gain", lambda: lo.planning.bounds(WELL, S, Y, group=GROUP, quality=QUALITY, cut=0.1, gain=0.2),
          ValueError, "gain=", "0.1 and 0.2", "not both"),
    Wrong("cut in per cent", lambda: lo.planning.bounds(WELL, S, Y, group=GROUP, quality=QUALITY, cut=10), ValueError,
          "cut", "found 10", "a share below 1"),
    Wrong("bounds of a metric", lambda: lo.planning.bounds(NDCG, S, Y, group=GROUP), TypeError, "terms", "NDCG(k=10",
          "write LambdaRank(NDCG("),
    Wrong("bounds of a table", lambda: lo.planning.bounds(WELL, S, Y, group=GROUP, columns=pd.DataFrame({"a": S})),
          TypeError, "columns", "DataFrame", "table[name]"),
    Wrong("first 0 ranks", lambda: lo.planning.shown(S, QUALITY, group=GROUP, k=0), ValueError, "k ", "found 0",
          "from 1"),
    Wrong("no queries", lambda: lo.datasets.product_search(queries=0), ValueError, "queries", "found 0", "from 1"),
    Wrong("half a query", lambda: lo.datasets.product_search(queries=2.5), ValueError, "queries", "found 2.5",
          "whole number"),
]

# What is wrong with the data or the way of a training, with both boosters: functions of one of them.
TRAININGS = [
    Wrong("a term as the objective", lambda of: of.train(RANK), TypeError, "objective", "LambdaRank(",
          "lambda_objectives.Objective(spec)"),
    Wrong("a spec as the objective", lambda of: of.train(lo.WeightedSum([RANK], [1])), TypeError, "objective",
          "WeightedSum(", "lambda_objectives.Objective(spec)"),
    Wrong("a constraint as the objective", lambda of: of.train(BOUND), TypeError, "objective", "Constraint(",
          "lambda_objectives.Objective(spec)"),
    Wrong("a metric as the objective", lambda of: of.train(NDCG), TypeError, "takes arrays", "found a D",
          "lambda_objectives.Objective(LambdaRank(NDCG("),
    Wrong("a class as the objective", lambda of: of.train(lo.LambdaRank), TypeError, "metric", "ndarray of shape (96,)",
          "Objective(spec)"),
    Wrong("the class Objective as the objective", lambda of: of.train(lo.Objective), TypeError, "spec",
          "ndarray of shape (96,)", "Objective(spec)"),
    Wrong("metrics as the objective", lambda of: of.train(lo.Objective(RANK).metrics), TypeError, "objective",
          "found objective.metrics", "the Objective itself"),
    Wrong("the objective as its metrics", lambda of: of.train(o := lo.Objective(RANK), metrics=o), TypeError, "feval",
          "the Objective itself", "write objective.metrics"),
    Wrong("a metric as feval", lambda of: of.train(lo.Objective(RANK), metrics=NDCG), TypeError, "feval=", "found a D",
          "objective.metrics"),
    Wrong("a term as feval", lambda of: of.train(lo.Objective(RANK), metrics=RANK), TypeError, "feval=", "LambdaRank(",
          "objective.metrics"),
    Wrong("called with the data set first", lambda of: lo.Objective(RANK)(of.data(), S), TypeError, "arguments",
          "was found first",
          "scores first, then the data set"),
    Wrong("called with a text", lambda of: lo.Objective(RANK)(S, "train"), TypeError, "second argument", "'train'",
          "LightGBM Dataset, an XGBoost DMatrix or scores"),
    Wrong("column attached under another name", lambda of: of.train(lo.Objective(WELL), lo.attach(of.data(), qualty=S)),
          ValueError, "label='quality'", "(there: 'qualty')", "attach(data, quality=values)"),
    Wrong("nothing attached", lambda of: of.train(lo.Objective(WELL)), ValueError, "label='quality'", "(there: none)",
          "attach(data, quality=values)"),
    Wrong("attached column of other length", lambda of: lo.attach(of.data(), quality=S[1:]), ValueError, "'quality'",
          "95", "96 rows"),
    Wrong("attached column is text", lambda of: lo.attach(of.data(), quality=["a"] * ROWS), ValueError, "'quality'",
          "text such as 'a'", "numpy.unique(values, return_inverse=True)"),
    Wrong("attached column is infinite",
          lambda of: of.train(lo.Objective(WELL), lo.attach(of.data(), quality=but(S, np.inf))), ValueError,
          "'quality'", "row 3 is inf", "leave these rows out"),
    Wrong("attached name with a blank", lambda of: lo.attach(of.data(), {"my price": S}), ValueError, "column",
          "'my price'", "write 'my_price'"),
    Wrong("attached name with a colon", lambda of: lo.attach(of.data(), {"a:b": S}), ValueError, "column", "'a:b'",
          "write 'a_b'"),
    Wrong("attached twice", lambda of: lo.attach(of.data(), {"price": S}, price=S), ValueError, "'price'",
          "given twice", "leave one of them out"),
    Wrong("attached without a name", lambda of: lo.attach(of.data(), QUALITY), TypeError, "columns",
          "ndarray of shape (96,)", "{'price': price}"),
    Wrong("attached table", lambda of: lo.attach(of.data(), pd.DataFrame({"price": S})), TypeError, "columns",
          "DataFrame of shape (96, 1)", "table[name]"),
    Wrong("attached ids not sorted", lambda of: lo.attach(of.data(), qid=MESSY), ValueError, "qid", "query 11",
          "numpy.argsort(qid"),
    Wrong("queries missing", lambda of: of.train(lo.Objective(RANK), of.data(group=None)), ValueError, "group",
          "96 rows has none", "qid= (one id a row)"),
    Wrong("all labels equal", lambda of: of.train(lo.Objective(RANK), of.data(labels=ONES)), ValueError, "label",
          "0 over 96 rows", "two different labels"),
    Wrong("labels below 0", lambda of: of.train(lo.Objective(RANK), of.data(labels=Y - 1)), ValueError, "label",
          " is -1", "begin at 0"),
    Wrong("all weights 0", lambda of: of.train(lo.Objective(RANK), of.data(weight=0 * ONES)), ValueError, "weight",
          "0 over 96 rows", "any row with a weight"),
    Wrong("two scores a row and no num_class", lambda of: of.train(lo.Objective(lo.Gaussian()), of.data(group=None)),
          ValueError, "scores", "(96,)", "num_class=2"),
    Wrong("num_class where there is one score a row",
          lambda of: of.train(lo.Objective(RANK), params={"num_class": 2}), ValueError, "scores", "(96, 2)",
          "leave num_class out"),
    Wrong("control constant in training",
          lambda of: of.train(lo.Objective(lo.Decorrelated(RANK, "price", 1)), lo.attach(of.data(), price=ONES)),
          ValueError, "control", "'price' has no usable spread", "leave the control out"),
    Wrong("following a validation set that is not there",
          lambda of: of.train(lo.Objective(lo.AugmentedLagrangian(RANK, [BOUND], follow="valid")),
                              lo.attach(of.data(), quality=QUALITY)), ValueError,
          "follow='valid'", "no data set besides the training data", "give a validation set"),
    Wrong("early stopping of a spec", lambda of: of.stop(RANK, 5), TypeError, "objective", "LambdaRank(",
          "the Objective that is trained"),
    Wrong("early stopping of another objective",
          lambda of: of.train(lo.Objective(RANK), callbacks=[of.stop(lo.Objective(WELL), 5)]), ValueError, "objective",
          "found another one, of LambdaRank(", "the very Objective that is trained"),
    Wrong("early stopping after 2.5 rounds", lambda of: of.stop(lo.Objective(RANK), 2.5), ValueError, "rounds",
          "found 2.5",
          "whole number from 1"),
    Wrong("early stopping with a negative tolerance", lambda of: of.stop(lo.Objective(RANK), 5, tolerance=-0.1),
          ValueError, "tolerance", "-0.1", "such as 0.01"),
    Wrong("early stopping by a metric that is not there",
          lambda of: of.train(o := lo.Objective(RANK), callbacks=[of.stop(o, 5, metric="ngdc@10")]), ValueError,
          "metric", "'ngdc@10'", "did you mean 'ndcg@10'"),
    Wrong("early stopping by data that are not evaluated",
          lambda of: of.train(o := lo.Objective(RANK), callbacks=[of.stop(o, 5, data=of.data())]), ValueError,
          "data=", "evaluated: 0", "=objective.metrics"),
    Wrong("early stopping without metrics",
          lambda of: of.train(o := lo.Objective(RANK), valid=True, callbacks=[of.stop(o, 5)]), ValueError,
          "data=None", "evaluated: 0", "=objective.metrics"),
    Wrong("checkpoints of a spec", lambda of: of.save(RANK, "nowhere"), TypeError, "objective", "LambdaRank(",
          "the Objective that is trained"),
    Wrong("checkpoints every 0 rounds", lambda of: of.save(lo.Objective(RANK), "nowhere", every=0), ValueError, "every",
          "found 0", "from 1"),
    Wrong("checkpoints of another objective",
          lambda of: of.train(lo.Objective(RANK), callbacks=[of.save(lo.Objective(WELL), "nowhere")]), ValueError,
          "objective", "found another one, of LambdaRank(", "the very Objective that is trained"),
]

# What only one of the boosters knows.
ONE_BOOSTER = [
    Wrong("LightGBM: bagging by query", lambda: LightGBM.train(lo.Objective(RANK), params={"bagging_by_query": True}),
          ValueError, "bagging_by_query", "=True", "use bagging_fraction"),
    Wrong("LightGBM: folds that cut queries",
          lambda: lgb.cv({"objective": lo.Objective(RANK), "verbosity": -1}, LightGBM.data(), 2, nfold=3,
                         stratified=False),
          ValueError, "folds", "of 12 queries are cut", "GroupKFold(n_splits=5)"),
    Wrong("LightGBM: early stopping with dart",
          lambda: LightGBM.train(o := lo.Objective(RANK), params={"boosting": "dart"},
                                 callbacks=[LightGBM.stop(o, 5)]),
          ValueError, "early_stopping", "'dart'", "boosting='gbdt'"),
    Wrong("LightGBM: a setting of lambdarank", lambda: LightGBM.train(lo.Objective(RANK), params={"sigmoid": 2.0}),
          lo.LambdaObjectivesWarning, "sigmoid", "2.0", "LambdaRank(sigma=...)"),
    Wrong("LightGBM: the gains of lambdarank",
          lambda: LightGBM.train(lo.Objective(RANK), params={"label_gain": [0, 1, 3]}), lo.LambdaObjectivesWarning,
          "label_gain", "[0, 1, 3]", "NDCG(gain=[...])"),
    Wrong("LightGBM: an estimator of a term", lambda: lgb.LGBMRanker(objective=RANK, n_estimators=2).fit(X, Y,
          group=GROUP),
          TypeError, "objective", "LambdaRank(", "lambda_objectives.Objective(spec)"),
    Wrong("LightGBM: ranking by an estimator without queries",
          lambda: lgb.LGBMRegressor(objective=lo.Objective(RANK), verbosity=-1).fit(X, Y), ValueError, "group",
          "96 rows has none", "qid= (one id a row)"),
    Wrong("XGBoost: early stopping with dart",
          lambda: XGBoost.train(o := lo.Objective(RANK), params={"rate_drop": 0.5, "booster": "dart"},
                                callbacks=[XGBoost.stop(o, 5)]),
          ValueError, "EarlyStopping", "'dart'", "train without dropout"),
    Wrong("XGBoost: an objective beside ours that overwrites leaves",
          lambda: XGBoost.train(lo.Objective(lo.SquaredError()), params={"objective": "reg:absoluteerror"}), ValueError,
          "objective", "'reg:absoluteerror'", "leave it out"),
    Wrong("XGBoost: an objective beside ours with settings of its own",
          lambda: XGBoost.train(lo.Objective(RANK), params={"objective": "rank:ndcg", "lambdarank_unbiased": True}),
          lo.LambdaObjectivesWarning, "lambdarank_unbiased", "=1", "UnbiasedRank(...)"),
    Wrong("XGBoost: no labels", lambda: XGBoost.train(lo.Objective(lo.SquaredError()), xgb.DMatrix(X)), ValueError,
          "label", "the matrix has 0", "give label="),
    Wrong("XGBoost: labels of two columns",
          lambda: XGBoost.train(lo.Objective(lo.SquaredError()), xgb.DMatrix(X, np.stack([Y, QUALITY], 1))), ValueError,
          "label", "2 for each of 96 rows", "one a row"),
    Wrong("XGBoost: an estimator of a term", lambda: xgb.XGBRegressor(objective=RANK, n_estimators=2).fit(X, Y),
          TypeError, "objective", "LambdaRank(", "lambda_objectives.Objective(spec)"),
    Wrong("XGBoost: metrics of an estimator",
          lambda: xgb.XGBRegressor(objective=(o := lo.Objective(lo.SquaredError())), eval_metric=o.metrics,
                                   n_estimators=2).fit(X, Y, eval_set=[(X, Y)], verbose=False),
          TypeError, "metrics", "XGBoost's estimators", "xgboost.train(custom_metric=objective.metrics)"),
]
# fmt: on


def is_told(wrong, *arguments):
    """Make the mistake; the message must hold the three texts."""
    with warnings.catch_warnings():
        if wrong.kind is not lo.LambdaObjectivesWarning:
            warnings.simplefilter("ignore")
        with pytest.raises(wrong.kind) as caught:
            wrong.use(*arguments)
    message = str(caught.value)
    wanted = {"argument": wrong.argument, "value found": wrong.found, "way out": wrong.way_out}
    missing = {what: text for what, text in wanted.items() if text not in message}
    assert not missing, message
    assert " object at 0x" not in message


BY_HAND = [*ORDER, *METRICS, *ARRAYS, *GROUPS, *COLUMNS, *TERMS, *SPECS, *STATES, *TOOLS, *ONE_BOOSTER]


@pytest.mark.parametrize("wrong", BY_HAND, ids=lambda wrong: wrong.id)
def test_wrong_uses_are_told(wrong):
    is_told(wrong)


@pytest.mark.parametrize("of", BOOSTERS, ids=lambda of: of.__name__)
@pytest.mark.parametrize("wrong", TRAININGS, ids=lambda wrong: wrong.id)
def test_wrong_trainings_are_told(wrong, of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some would write to a folder
    is_told(wrong, of)


@pytest.mark.parametrize("of", BOOSTERS, ids=lambda of: of.__name__)
def test_a_folder_of_another_spec_is_told(of, tmp_path):
    def run(spec):
        objective = lo.Objective(spec)
        of.train(objective, callbacks=[of.save(objective, tmp_path, every=1)])

    run(RANK)
    is_told(Wrong("", lambda: run(lo.RankNet()), ValueError, "folder=", "of another spec", "name another folder"))


@pytest.mark.parametrize(
    ("content", "found", "way_out"),
    [
        ("1 1:0.5 2:1\n", "no qid", "like qid:10"),
        ("1 qid:a 1:0.5\n", "'qid:a'", "number the queries"),
        ("1 qid:2 1:1\n0 qid:1 1:1\n1 qid:2 1:1\n", "qid 2 comes back", "sort the lines by qid"),
    ],
    ids=["no qid", "qid is no number", "not sorted"],
)
def test_a_wrong_file_is_told(content, found, way_out, tmp_path):
    path = tmp_path / "letor.txt"
    path.write_text(content)
    is_told(Wrong("", lambda: lo.datasets.load_letor(path), ValueError, f"{path}:", found, way_out))


@pytest.mark.parametrize("of", BOOSTERS, ids=lambda of: of.__name__)
def test_functions_of_ones_own_may_call_both(of):
    objective, seen = lo.Objective(RANK), []

    def logged(scores, data):
        seen.extend(objective.metrics(scores, data))
        return objective(scores, data)

    of.train(logged)
    assert len(seen) == 3 * len(evaluate(RANK))


SPECS_AND_TERMS = [
    kind
    for kind in map(vars(lo).get, lo.__all__)
    if isinstance(kind, type) and (hasattr(kind, "prepare") or hasattr(kind, "advance") or kind is lo.Constraint)
]


@pytest.mark.parametrize("kind", SPECS_AND_TERMS, ids=lambda kind: kind.__name__)
def test_no_term_and_no_spec_is_taken_for_an_objective(kind):
    assert len(SPECS_AND_TERMS) > 20
    assert vars(kind)["__call__"] is no_objective


@pytest.mark.parametrize("peer", ["lightgbm", "xgboost", "catboost", "ranklib"])
def test_no_term_of_a_peer_is_taken_for_an_objective(peer):
    is_told(Wrong("", lambda: getattr(lo.compat, peer)()(S, Y), TypeError, "objective", f"compat.{peer}(", "(spec)"))


def test_each_row_has_a_name_of_its_own():
    names = [wrong.id for wrong in [*BY_HAND, *TRAININGS]]
    assert len(set(names)) == len(names) > 150
