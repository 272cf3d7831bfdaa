"""What a report collects: on which data bounds are judged, what estimators keep, what is no training."""

import pickle

import numpy as np
import pytest

import lambda_objectives as lo

SHOP, OTHER = lo.datasets.product_search(60, 0, products=8), lo.datasets.product_search(30, 1, products=8)
RANK, T2 = lo.LambdaRank(lo.NDCG()), lo.LambdaRank(lo.NDCG(5), label="t2")
TIGHT = lo.AugmentedLagrangian(RANK, [lo.Constraint(T2, at_most=3.0, name="often")])
WATCH = [lo.NDCG(3), lo.MAP()]
BOOSTERS = pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
QUIET = pytest.mark.filterwarnings("ignore::lambda_objectives.LambdaObjectivesWarning")


def trained(booster, spec=TIGHT, rounds=12, on_train=False, stop=True, watch=WATCH, tolerance=0.0):
    """A booster, its objective and data sets."""
    objective = lo.Objective(spec, watch=watch)
    module = pytest.importorskip(booster)
    if booster == "lightgbm":
        train = lo.attach(module.Dataset(SHOP.X, SHOP.y, group=SHOP.group), SHOP.columns)
        valid = lo.attach(train.create_valid(OTHER.X, OTHER.y, group=OTHER.group), OTHER.columns)
        stops = (
            [lo.lightgbm.early_stopping(objective, rounds, train if on_train else None, tolerance=tolerance)]
            if stop
            else []
        )
        params = {"objective": objective, "verbosity": -1, "metric": "None"}
        model = module.train(params, train, rounds, [valid], feval=objective.metrics, callbacks=stops)
    else:
        train, valid = module.DMatrix(SHOP.X, SHOP.y), module.DMatrix(OTHER.X, OTHER.y)
        for matrix, shop in ((train, SHOP), (valid, OTHER)):
            matrix.set_group(shop.group)
            lo.attach(matrix, shop.columns)
        model = module.train(
            {"min_child_weight": 1e-3}, train, rounds, obj=objective, custom_metric=objective.metrics,
            evals=[(valid, "valid")], verbose_eval=False,
            callbacks=[lo.xgboost.EarlyStopping(objective, rounds, train if on_train else None)] if stop else [],
        )  # fmt: skip
    return model, objective, {"train": train, "valid": valid}


@QUIET
@BOOSTERS
@pytest.mark.parametrize("on_train", [False, True], ids=["by valid", "by train"])
def test_bounds_are_judged_where_early_stopping_looked(booster, on_train):
    model, objective, data = trained(booster, on_train=on_train)
    facts = lo.report.gather(model, objective, data)
    judge = "train" if on_train else "valid"
    assert facts["judged_on"] == judge
    often, kept = facts["constraints"]["often"], facts["best_round"]
    assert often["met"] == (often["margin"][judge] >= 0)
    assert facts["headline"] == [f"Round {kept} is kept, chosen on {judge}."]
    page = lo.report.page(facts)
    assert f"bounds are kept on {judge}." in page
    assert f"Whether a bound is met is judged on {judge}." in page
    asked = lo.report.gather(model, objective, data, judge="train" if not on_train else "valid")
    assert asked["judged_on"] != judge
    assert asked["headline"] == facts["headline"]


@QUIET
def test_bounds_that_hold_on_one_data_set_alone():
    def late(bound):
        """No multiplier moves: the model is the same for every bound."""
        constraint = lo.Constraint(T2, at_most=bound, name="often")
        return trained("lightgbm", lo.AugmentedLagrangian(RANK, [constraint], start=50), stop=False)

    _, objective, data = late(3.0)
    at = {role: objective.history(there)["cost/t2.ndcg@5"][6 - (role == "valid")] for role, there in data.items()}
    model, objective, data = late(sum(at.values()) / 2)
    found = {judge: lo.report.gather(model, objective, data, 6, judge=judge) for judge in (None, *data)}
    met = {judge: facts["constraints"]["often"]["met"] for judge, facts in found.items()}
    assert met == {None: met["train"], "train": at["train"] < at["valid"], "valid": at["valid"] < at["train"]}
    assert found[None]["judged_on"] == "train"  # nothing stopped early: the first one
    assert found[None]["headline"] == ["Round 6 is kept."]


@QUIET
def test_bounds_may_be_broken_by_the_tolerance_of_early_stopping():
    narrow = lo.AugmentedLagrangian(RANK, [lo.Constraint(T2, at_most=0.1, name="often")])
    model, objective, data = trained("lightgbm", narrow, tolerance=100.0)
    facts = lo.report.gather(model, objective, data)
    assert facts["constraints"]["often"]["margin"]["valid"] < 0
    assert facts["constraints"]["often"]["met"]
    assert "judged on valid. It may be broken by 10000.00%." in lo.report.page(facts)
    for tolerance in (0.0, 100.0):
        model = ranker("lightgbm", narrow, early_stopping_rounds=5, tolerance=tolerance)
        assert lo.report.gather(model)["constraints"]["often"]["met"] == (tolerance > 0)
    assert "It may be broken" not in lo.report.page(lo.report.gather(ranker("lightgbm")))


@BOOSTERS
def test_watched_metrics_are_told(booster):
    model, objective, data = trained(booster, RANK)
    facts = lo.report.gather(model, objective, data)
    assert list(facts["curves"]) == ["ndcg", "ndcg@3", "map"]
    kept = facts["best_round"]
    assert facts["curves"]["map"] == {
        "train": objective.history(data["train"])["map"][1:],
        "valid": objective.history(data["valid"])["map"],
    }
    told = facts["metrics"]["model"]["valid"]["label"]
    rows = OTHER.X if booster == "lightgbm" else data["valid"]
    scores = model.predict(rows, **({} if booster == "lightgbm" else {"iteration_range": (0, kept)}))
    for metric in (lo.NDCG(), *WATCH):
        assert told[metric.name] == pytest.approx(metric(scores, OTHER.y, group=OTHER.group), abs=1e-5)
    for name in ("ndcg@3 by round", "map by round"):
        assert name in lo.report.page(facts)


def test_what_is_watched_and_trained_is_told_once():
    model, objective, data = trained("lightgbm", lo.LambdaRank(lo.NDCG(3)))
    assert list(lo.report.gather(model, objective, data)["curves"]) == ["ndcg@3", "map"]


def test_warnings_are_those_given():
    model, objective, data = trained("lightgbm", RANK)
    assert "warnings" not in lo.report.gather(model, objective, data)
    facts = lo.report.gather(model, objective, data, warnings=["a < b", UserWarning("c")])
    assert facts["warnings"] == ["a < b", "c"]
    assert "a &lt; b" in lo.report.page(facts)


# ------------------------------------------------------------------------------------------------------- estimators


def ranker(booster, spec=TIGHT, evaluated=True, **options):
    pytest.importorskip(booster)
    pandas = pytest.importorskip("pandas")
    names = [f"feature {i}" for i in range(SHOP.X.shape[1])]
    X, X2 = (pandas.DataFrame(shop.X, columns=names) for shop in (SHOP, OTHER))
    made = {"lightgbm": lo.sklearn.LightGBMRanker, "xgboost": lo.sklearn.XGBoostRanker}[booster]
    more = dict(eval_set=[(X2, OTHER.y)], eval_group=[OTHER.group], eval_columns=[OTHER.columns]) if evaluated else {}
    model = made(spec, n_estimators=12, watch=WATCH, **options)
    return model.fit(X, SHOP.y, group=SHOP.group, columns=SHOP.columns, **more)


@QUIET
@BOOSTERS
@pytest.mark.parametrize(
    ("patience", "evaluated", "judge"),
    [(5, True, "valid_0"), (5, False, "train"), (None, True, "train"), (None, False, "train")],
)
def test_an_estimator_alone(booster, patience, evaluated, judge):
    model = ranker(booster, evaluated=evaluated, early_stopping_rounds=patience)
    facts = lo.report.gather(model)
    kept = model.n_iter_
    assert (facts["best_round"], facts["judged_on"]) == (kept, judge)
    assert facts["title"] == f"{type(model).__name__}, AugmentedLagrangian"
    assert "data" not in facts
    assert list(facts["importance"]) == list(model.feature_names_in_)
    told = facts["metrics"]["model"]
    assert judge in told
    assert list(told[judge]["label"]) == ["ndcg", "ndcg@3", "map"]
    margins = facts["constraints"]["often"]["margin"]
    if evaluated:
        assert told["valid_0"]["t2"]["ndcg@5"] == model.evals_result_["valid_0"]["t2.ndcg@5"][kept - 1]
        assert margins["valid_0"] == model.evals_result_["valid_0"]["margin/often"][kept - 1]
    assert facts["constraints"]["often"]["met"] == (margins[judge] >= 0)
    assert facts["curves"]["map"]["train"] == model.history_["map"][1:]
    assert facts["parameters"]["Estimator"]["n_estimators"] == 12
    assert "objective" not in facts["parameters"]["Estimator"]
    page = lo.report.page(facts)
    assert "Rows and queries" not in page
    assert f"judged on {judge}" in page
    assert lo.report.gather(pickle.loads(pickle.dumps(model))) == facts


def test_an_estimator_of_arrays_without_bounds():
    pytest.importorskip("lightgbm")
    model = lo.sklearn.LightGBMRegressor(n_estimators=5).fit(SHOP.X, SHOP.y)
    facts = lo.report.gather(model)
    assert facts["headline"] == ["Round 5 is kept."]
    assert facts["metrics"] == {"model": {}}  # the last round was not evaluated
    assert list(facts["importance"]) == model.booster_.feature_name()
    assert [len(values) for values in facts["curves"]["mse"].values()] == [4]
    assert "mse by round" in lo.report.page(facts)


def test_what_is_no_training():
    lightgbm = pytest.importorskip("lightgbm")
    model, objective, data = trained("lightgbm", RANK)
    estimator = lo.sklearn.LightGBMRegressor(n_estimators=2).fit(SHOP.X, SHOP.y)
    own, alone = (estimator.booster_, estimator.objective_), r"lo.report.gather\(estimator\)"

    def refused(error, match, *arguments, **options):
        with pytest.raises(error, match=match):
            lo.report.gather(*arguments, **options)

    refused(KeyError, f"data\\['train'\\]: this objective has not been used with that data set, .*{alone}", *own, data)
    refused(TypeError, f"data must be the data sets by name, .* found None; .*{alone}", *own)
    refused(TypeError, "data must be the data sets by name, .* found a Dataset", *own, data["train"])
    refused(TypeError, r"data must be the data sets by name, .* found {}", model, objective, {})
    refused(TypeError, r"data\['x'\] must be a Dataset or a DMatrix, found None", model, objective, {"x": None})
    refused(TypeError, f"objective must be the Objective that was trained, found None; .*{alone}", model)
    refused(TypeError, "objective must be the Objective .* found SquaredError", model, lo.SquaredError(), data)
    refused(TypeError, f"an estimator is in the place of the objective .*{alone}", estimator.booster_, estimator)
    refused(TypeError, "an estimator is in the place", model, objective, {"train": estimator})
    refused(TypeError, "booster is a LightGBMRegressor, .* give it alone", estimator, objective, data)
    refused(TypeError, "booster must be the Booster .* found None", None, objective, data)
    refused(TypeError, "booster must be .* found LGBMRanker.*; fit it first", lightgbm.LGBMRanker(), objective, data)
    refused(TypeError, "booster must be .* found LightGBMRanker.*; fit it first", lo.sklearn.LightGBMRanker())
    refused(ValueError, "judge='test' is none of the data sets: there is 'train'", model, objective, data, judge="test")
    refused(ValueError, "judge='valid' is none of the data sets: there is 'train'", estimator, judge="valid")


# -------------------------------------------------------------------------------------------------- how it is shown


def bounded(judge, margins, **more):
    """A page of one constraint."""
    curves = {"train": [3.0, 2.0], "valid": [5.0, 4.0]}
    c = {"what": "cost", "at_most": 0.161, "returned": {"train": 0.09375, "valid": 1.0}, "margin": margins}
    c |= {"met": True, "by_round": curves, **more}
    facts = {"constraints": {"c": c}, "best_round": 2}
    return lo.report.page(facts | ({} if judge is None else {"judged_on": judge}))


def test_the_best_round_is_marked_on_the_judged_data(monkeypatch):
    marks = []
    draw = lo.tools.report_html.learning_curve

    def note(axes, *arguments):
        draw(axes, *arguments)
        marks.append(axes.get_legend_handles_labels()[1][-1])
        return axes

    monkeypatch.setattr(lo.tools.report_html, "learning_curve", note)
    for judge in ("train", "valid", "test", None):
        bounded(judge, {})
    assert marks == [f"best round 2: {value}.0000" for value in (2, 4, 4, 4)]


def test_margins_below_0_are_shown_as_broken():
    page = bounded("train", {"train": 0.25, "valid": -0.5})
    assert '<span class="bad"><data value="-0.5">\N{MINUS SIGN}50.00%</data></span>' in page
    assert '<td class="number"><data value="0.25">+25.00%</data></td>' in page


def test_numbers_that_stand_together_have_one_format():
    page = bounded("train", {})
    for text in ('<data value="0.161">0.1610<', '<data value="0.09375">0.0938<', '<data value="1.0">1.0000<'):
        assert text in page
    metrics = {role: {"label": {"a": a, "b": b}} for role, a, b in (("x", 0.09375, 12.5), ("y", 0.161, 3.25))}
    page = lo.report.page({"metrics": {"model": metrics}})
    assert all(text in page for text in (">0.0938<", ">0.1610<", ">12.5000<", ">3.2500<"))
    page = lo.report.page({"metrics": {"before": metrics, "after": metrics}})
    assert all(text in page for text in (">0.0938<", ">0.1610<", ">12.5000<", ">+0.0000<"))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.161, 0.09375, None, float("nan")], ["0.1610", "0.0938"]),
        ([0.09375, 0.0123], ["0.09375", "0.01230"]),
        ([0.5, 0.00031], ["0.50000", "0.00031"]),
        ([1234.5, 3.0], ["1,234.5", "3.0"]),
        ([0.0, 0.0], ["0.0000", "0.0000"]),
        ([1e6, 1e-6], None),
        ([1e-12], None),
    ],
)
def test_one_format(values, told):
    form = lo.tools.plots_common.alike(values)
    if told is None:
        assert form is None
    else:
        assert [format(value, form) for value in values if value is not None and np.isfinite(value)] == told


def test_one_format_of_four_digits():
    alike = lo.tools.plots_common.alike
    assert [alike([most, 1e-9], significant=True) for most in (28856, 12.5, 0.5)] == [",.0f", ",.2f", ",.4f"]
