"""The report says what the files say, needs nothing but itself, escapes what users name, and is whole in a browser."""

import json
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.__main__ import main
from lambda_objectives.tools import training_report

ROLES = ("train", "valid", "test")
KINDS = [(booster, bounded) for booster in ("lightgbm", "xgboost") for bounded in (False, True)]  # see conftest.py
each = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}{'-constrained' if kind[1] else ''}")


class Page(HTMLParser):
    """What a page says: rows of cells by heading, each a text or, of numbers, (text, value); and all its words."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.words, self.attributes, self.tags = {}, [], [], []
        self.path, self.cell, self.heading, self.value = {}, None, None, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag in ("h2", "h3"):
            self.heading, self.path[tag] = tag, ""
            if tag == "h2":
                self.path["h3"] = ""
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th"):
            self.cell = ""
        elif tag == "data" and self.value is None:  # a share may follow
            self.value = float(dict(attrs)["value"])

    def handle_endtag(self, tag):
        if tag == self.heading:
            self.heading = None
        elif tag in ("td", "th"):
            self.row.append(self.cell if self.value is None else (self.cell, self.value))
            self.cell = self.value = None
        elif tag == "tr":
            self.rows.setdefault((self.path["h2"], self.path.get("h3", "")), []).append(self.row)

    def handle_data(self, data):
        self.words.append(data)
        if self.heading:
            self.path[self.heading] += data
        if self.cell is not None:
            self.cell += data

    def table(self, *path):
        """Rows under a heading by their names; a row with one cell names a group."""
        found, group = {}, ""
        for name, *cells in self.rows[path]:
            if not cells:
                group = name
            else:
                found[(group, name) if group else name] = cells
        return found


def read(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    files = [
        json.loads(path.read_text()) for path in (folder / "metrics.json", folder / "constraints.json") if path.exists()
    ]
    return Page(text), *files


def values(cells):
    return [cell[1] for cell in cells]


@each
def test_every_number_is_that_of_the_files(kind, reports):
    page, metrics, *constraints = read(reports(kind))
    names = ["ndcg@10", "ndcg@1", "ndcg@5"]
    if not constraints:
        for label, heading in (("label", "Label"), ("t2", "Label t2")):
            table = page.table("Result", heading)
            assert table.pop("") == names
            assert list(table) == list(ROLES)
            for role, cells in table.items():
                assert values(cells) == [metrics["label_metrics"][role][label][name] for name in names]
                assert [cell[0] for cell in cells] == [f"{value:.4f}" for value in values(cells)]
    else:
        (bounds,) = constraints
        for name in names:
            table = page.table("Result", name)
            assert table.pop("") == ["baseline", "constrained", "change"]
            assert len(table) == 3 * len(ROLES)
            for (label, role), cells in table.items():
                label = label.removeprefix("Label ").lower()
                before, after = (bounds["metrics"][what][role][label][name] for what in ("baseline", "constrained"))
                assert values(cells) == [before, after, after - before]
        for name, asked in (("t2", "at most"), ("cheap", "at least")):
            c = bounds["constraints"][name]
            table = page.table("Constraints", f"{name}: {'met' if c['met'] else 'NOT MET'}")
            for role in ROLES:
                assert values(table[role]) == [c[what][role] for what in ("baseline", "bound", "returned", "margin")]
                assert table[role][3][0] == f"{c['margin'][role]:+.2%}".replace("-", "\N{MINUS SIGN}")
            bound = c[asked.replace(" ", "_")]
            where = " on train" if name == "t2" else ""  # a share of the baseline's, on each data set another number
            told = f"{bound:.4f}" if bound >= 0.1 else f"{bound:#.4g}"
            assert f"{c['what']} {asked} {told}{where}, asked for as {c['asked']}" in "".join(page.words)
        assert ("All bounds are kept on train." in page.words) == bounds["all_met"]

    data = metrics["data"]
    rows = page.table("Data", "Rows and queries")
    for name in ("queries", "rows", "features"):
        assert values(rows[name]) == [data[role][name] for role in ROLES]
    for name in ("least", "median", "mean", "most"):
        assert values(rows[f"rows per query, {name}"]) == [data[role]["rows_per_query"][name] for role in ROLES]
    assert page.table("Data", "Files") == {role: [data[role]["file"]] for role in ROLES}
    table = page.table("Data", "Label")
    for value in ("0", "1"):
        counts = [data[role]["label_values"]["label"]["counts"][value] for role in ROLES]
        assert values(table[value]) == counts
        shares = [f"{n:,d}{n / data[role]['rows']:.1%}" for n, role in zip(counts, ROLES, strict=True)]
        assert [cell[0] for cell in table[value]] == shares
    lacking = [data[role]["label_values"]["label"]["without_relevant"] for role in ROLES]
    assert values(table["queries without a relevant row"]) == lacking

    features = page.table("Features", "")
    features.pop("feature")
    gains = metrics["importance"]
    assert list(features) == sorted((name for name in gains if gains[name]), key=lambda name: -gains[name])[:20]
    for name, (_, gain, share) in features.items():
        assert gain[1] == gains[name]
        assert share[1] == pytest.approx(gains[name] / sum(gains.values()))
    settings = page.table("Settings", "Booster")
    assert settings == {name: [str(value)] for name, value in metrics["params"].items()}
    assert page.table("Settings", "Versions") == {name: [text] for name, text in metrics["versions"].items()}
    assert metrics["objective"] in page.words


def test_data_are_those_of_the_files(reports):
    _, metrics = read(reports(KINDS[0]))
    for role, part in metrics["data"].items():
        _, y, group = lo.datasets.load_letor(part["file"])
        assert (part["rows"], part["queries"]) == (len(y), len(group))
        assert part["label_values"]["label"]["counts"] == {f"{v:.0f}": int((y == v).sum()) for v in np.unique(y)}
        starts = np.cumsum(group) - group
        assert part["label_values"]["label"]["without_relevant"] == (np.add.reduceat(y, starts) == 0).sum(), role
        assert part["rows_per_query"]["mean"] == group.mean()


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_labels_are_followed_by_round_to_the_very_metrics_at_the_end(booster, reports):
    for bounded in (False, True):
        _, metrics, *constraints = read(reports((booster, bounded)))
        best = metrics["best_round"]
        curves = metrics["label_curves"]
        assert list(curves) == (["t2", "cheap"] if bounded else ["t2"])
        for label, by_role in curves.items():
            for role in ("train", "valid"):
                assert len(by_role[role]) == 20
                final = metrics["label_metrics"][role][label]["ndcg@10"]
                assert by_role[role][best - 1] == pytest.approx(final, abs=2e-6)
        for bounds in constraints:
            assert list(bounds["baseline_curves"]) == ["label", "t2", "cheap"]
            for label, by_role in bounds["baseline_curves"].items():
                final = bounds["metrics"]["baseline"]["valid"][label]["ndcg@10"]
                assert by_role["valid"][bounds["baseline_round"] - 1] == pytest.approx(final, abs=2e-6)


@each
def test_a_page_needs_nothing_else(kind, reports):
    text = (reports(kind) / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not re.search(r"https?://|file:|//\w+\.\w+/", text)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)
    for tag, name, value in page.attributes:
        if name in ("src", "href", "xlink:href", "srcset", "action"):
            assert value.startswith("#"), (tag, name, value)
        assert not name.startswith("on")
    assert not re.search(r"url\((?!#)|@import", text)
    assert page.tags.count("svg") == (3 + 2 + 1 if kind[1] else 2)


NASTY = "<script>alert('&\"1')</script>"


def nasty():
    """Facts in which every text is one that would be a tag, every number another."""
    numbers = iter(np.linspace(0.11, 0.99, 100))

    def by_role():
        return {NASTY: next(numbers), "valid": next(numbers)}

    curve = [0.2, 0.4, 0.3]
    return {
        "title": NASTY,
        "headline": [NASTY],
        "notes": [NASTY],
        "metric": NASTY,
        "best_round": 2,
        "metrics": {name: {NASTY: {NASTY: by_role()}} for name in (NASTY, "other")},
        "curves": {NASTY: {NASTY: curve, "valid": curve}},
        "constraints": {
            NASTY: {
                "asked": NASTY, "what": NASTY, "at_most": 0.3, "returned": by_role(), "margin": by_role(),
                "baseline": by_role(), "bound": by_role(), "met": False, "by_round": {NASTY: curve},
            }
        },
        "judged_on": NASTY,
        "multipliers": {NASTY: curve},
        "data": {NASTY: {"file": NASTY, "rows": 3, "label_values": {NASTY: {"spread": {NASTY: 0.5}}}}},
        "labels": {NASTY: NASTY},
        "importance": {NASTY: 2.0},
        "objective": NASTY,
        "parameters": {NASTY: {NASTY: NASTY}},
        "warnings": [NASTY],
        "written": NASTY,
    }  # fmt: skip


def test_all_that_users_name_is_escaped():
    facts = nasty()
    page = Page(lo.report.page(facts))
    assert "script" not in page.tags
    assert sum(word.count(NASTY) for word in page.words) >= len(facts) + 10
    assert {tag for tag, name, value in page.attributes if NASTY in (value or "")} == {"svg"}  # as what it is called


def test_numbers_of_all_sizes_are_told_to_four_digits():
    found = [0.0, 0.5, 0.0123, 1.234567e-5, -123.45678, 1234567.8, float("nan"), float("inf"), np.float32(0.25)]
    facts = {"metrics": {"m": {"d": {"label": {str(i): value for i, value in enumerate(found)}}}}}
    (cells,) = (row[1:] for row in Page(lo.report.page(facts)).rows["Result", "Label"][1:])
    told = ["0.0000", "0.5000", "0.01230", "1.235e-05", "\N{MINUS SIGN}123.4568", "1,234,567.8", "-", "inf", "0.2500"]
    assert [cell if isinstance(cell, str) else cell[0] for cell in cells] == told
    assert [cell[1] for cell in cells if not isinstance(cell, str)] == [value for value in found if value == value]


def test_names_are_not_read_as_formulas():
    text = lo.report.page({"curves": {"$a_": {"valid $x^": [0.1, 0.2], "$\\frac{": [0.1, 0.3]}}})
    assert "$a_ by round: valid $x^, $\\frac{" in text


def test_a_page_of_nothing_and_unknown_facts():
    assert Page(lo.report.page({})).tags.count("h2") == 0
    with pytest.raises(ValueError, match="facts: 'metrix' is not known, there are 'title', 'headline'"):
        lo.report.page({"metrix": {}})


def test_whether_bounds_are_kept_is_told():
    def said(*states):
        c = {"what": "cost", "at_most": 1.0, "returned": {}, "margin": {}}
        facts = {"constraints": {f"c{i}": {**c, "met": met} for i, met in enumerate(states)}, "judged_on": "train"}
        return " ".join(Page(lo.report.page(facts)).words)

    assert "All bounds are kept on train." in said(True, True)
    assert "Not all bounds are kept on train." in said(True, False)
    assert "whether all bounds are kept is not known" in said(True, None)


def test_warnings_of_a_training_are_in_its_report(reports, tmp_path):
    _, metrics = read(reports(KINDS[0]))
    data = [word for role in ("train", "valid") for word in (f"--{role}", metrics["data"][role]["file"])]
    few = ["--booster", "lightgbm", "--rounds", "5", "--param", "min_sum_hessian_in_leaf=50"]
    with pytest.warns(lo.LambdaObjectivesWarning) as shown:
        assert main(["train", *data, *few, "--out", str(tmp_path / "out"), "--report"]) == 0
    page = Page((tmp_path / "out" / "report.html").read_text())
    assert {str(each.message) for each in shown} <= set(page.words)
    assert any("min_sum_hessian_in_leaf=50" in word for word in page.words)
    assert "None." not in page.words


def test_what_is_overheard_is_shown_as_ever():
    with warnings.catch_warnings(record=True) as shown, training_report.overheard() as said:
        warnings.simplefilter("always")
        for text in ("one", "two"):
            warnings.warn(text, stacklevel=1)
    assert said == [str(each.message) for each in shown] == ["one", "two"]


def test_a_report_of_an_earlier_training_goes(reports, tmp_path):
    _, metrics = read(reports(KINDS[0]))
    data = [word for role in ("train", "valid") for word in (f"--{role}", metrics["data"][role]["file"])]
    job = ["train", *data, "--booster", "lightgbm", "--rounds", "3", "--out", str(tmp_path / "out"), "--overwrite"]
    main([*job, "--report"])
    assert (tmp_path / "out" / "report.html").exists()
    main(job)
    assert not (tmp_path / "out" / "report.html").exists()


# ------------------------------------------------------------------------------------------------- one's own training


SHOP, OTHER = lo.datasets.product_search(60, 0, products=8), lo.datasets.product_search(30, 1, products=8)
RANK, T2 = lo.LambdaRank(lo.NDCG(5)), lo.LambdaRank(lo.NDCG(5), label="t2")
SPEC = lo.AugmentedLagrangian(RANK, [lo.Constraint(T2, at_most=3.0, name="often"), lo.Constraint(RANK, at_least=0.2)])


def own_training(booster, spec):
    """A booster, its objective and data sets, all evaluated."""
    objective, rounds = lo.Objective(spec), 12
    if booster == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        train = lo.attach(lightgbm.Dataset(SHOP.X, SHOP.y, group=SHOP.group), SHOP.columns)
        valid = lo.attach(train.create_valid(OTHER.X, OTHER.y, group=OTHER.group), OTHER.columns)
        params = {"objective": objective, "verbosity": -1, "metric": "None"}
        stop = [lo.lightgbm.early_stopping(objective, rounds, train)]
        sets = dict(valid_sets=[train, valid], feval=objective.metrics, callbacks=stop)
        return lightgbm.train(params, train, rounds, **sets), objective, {"train": train, "valid": valid}
    xgboost = pytest.importorskip("xgboost")
    train, valid = xgboost.DMatrix(SHOP.X, SHOP.y), xgboost.DMatrix(OTHER.X, OTHER.y)
    for matrix, shop in ((train, SHOP), (valid, OTHER)):
        matrix.set_group(shop.group)
        lo.attach(matrix, shop.columns)
    model = xgboost.train(
        {"min_child_weight": 1e-3, "base_score": 0.0}, train, rounds, obj=objective, custom_metric=objective.metrics,
        evals=[(train, "train"), (valid, "valid")], verbose_eval=False,
        callbacks=[lo.xgboost.EarlyStopping(objective, rounds, train)],
    )  # fmt: skip
    return model, objective, {"train": train, "valid": valid}


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_gathered_facts_are_those_of_the_model(booster, tmp_path):
    model, objective, data = own_training(booster, SPEC)
    facts = lo.report.gather(model, objective, data, parameters={"objective": objective, "eta": 0.1})
    scores = {
        "train": model.predict(SHOP.X if booster == "lightgbm" else data["train"]),
        "valid": model.predict(OTHER.X if booster == "lightgbm" else data["valid"]),
    }
    for role, shop in (("train", SHOP), ("valid", OTHER)):
        found = lo.evaluate(SPEC, scores[role], shop.y, group=shop.group, columns=shop.columns)
        if role in facts["metrics"]["model"]:
            own = facts["metrics"]["model"][role]
            assert own["label"]["ndcg@5"] == pytest.approx(found["ndcg@5"], abs=1e-5)
            assert own["t2"]["ndcg@5"] == pytest.approx(found["t2.ndcg@5"], abs=1e-5)
            often = facts["constraints"]["often"]
            assert often["returned"][role] == pytest.approx(found["cost/t2.ndcg@5"], abs=1e-5)
            assert often["margin"][role] == pytest.approx(found["margin/often"], abs=1e-5)
        assert facts["data"][role]["queries"] == len(shop.group)
        assert facts["data"][role]["label_values"]["t2"]["counts"]["1"] == shop.columns["t2"].sum()
    assert "valid" in facts["metrics"]["model"]
    assert facts["parameters"]["Booster"] == {"eta": 0.1}
    assert sum(facts["importance"].values()) > 0
    assert len(facts["importance"]) == SHOP.X.shape[1]
    assert list(facts["multipliers"]) == ["often", "ndcg@5"]
    lo.report.write(tmp_path / "own.html", facts)
    page = Page((tmp_path / "own.html").read_text(encoding="utf-8"))
    assert values(page.table("Result", "Label t2")["valid"]) == [facts["metrics"]["model"]["valid"]["t2"]["ndcg@5"]]


def test_rounds_that_were_not_evaluated_are_not_told(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    train = lightgbm.Dataset(SHOP.X, SHOP.y, group=SHOP.group)
    objective = lo.Objective(lo.AugmentedLagrangian(RANK, [lo.Constraint(RANK, at_least=0.2)]))
    model = lightgbm.train({"objective": objective, "verbosity": -1}, train, 5)
    facts = lo.report.gather(model, objective, {"train": train})
    assert facts["metrics"] == {"model": {}}
    assert facts["constraints"]["ndcg@5"]["met"] is None
    assert facts["curves"]["ndcg@5"]["train"] == objective.history(train)["ndcg@5"][1:]
    assert "not known" in lo.report.page(facts)


def test_rows_without_queries():
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    matrix = xgboost.DMatrix(X, X[:, 0] + rng.normal(size=100))
    objective = lo.Objective(lo.SquaredError())
    options = dict(custom_metric=objective.metrics, evals=[(matrix, "train")], verbose_eval=False)
    facts = lo.report.gather(xgboost.train({}, matrix, 4, obj=objective, **options), objective, {"all rows": matrix})
    (part,) = facts["data"].values()
    assert "queries" not in part
    assert part["label_values"]["label"]["spread"]["median"] == pytest.approx(np.median(matrix.get_label()))
    assert "all rows" in lo.report.page(facts)
