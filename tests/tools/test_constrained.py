"""The command line under constraints: further labels from features, bounds, the report."""

import json
import re

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.__main__ import main
from lambda_objectives.tools import constrained, constraint_report
from lambda_objectives.tools.constrained import Wanted, parse_bounds
from lambda_objectives.tools.files import Ranked
from lambda_objectives.tools.settings import Settings
from lambda_objectives.tools.training import Trained
from tests.data import letor

BOOSTERS = ["lightgbm", "xgboost"]
MODEL = {"lightgbm": "model.txt", "xgboost": "model.json"}
PRICE, RATING, STOCKED, LAST = 5, 6, 19, 20  # of 20 features in the files
LABELS = ["--label", f"cheap=-{PRICE}", "--label", f"stocked={STOCKED}"]
ROLES = ("train", "valid", "test")


def shop_file(queries, seed):
    """A shop's queries; feature 19 is an attribute that is 0 or 1, feature 20 a number."""
    shop = lo.datasets.product_search(queries, seed)
    return letor(np.column_stack([shop.X, shop.columns["t2"], shop.columns["price"] % 7]), shop.y, shop.group)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    paths = {role: folder / f"{role}.txt" for role in ROLES}
    for seed, (role, path) in enumerate(paths.items()):
        path.write_text(shop_file(60 if role == "train" else 30, seed))
    return paths


@pytest.fixture
def job(files, tmp_path):
    """Arguments of a short training."""

    def arguments(booster, *more, labels=LABELS):
        known = [f"--{role}={path}" for role, path in files.items()]
        short = ["--rounds", "20", "--early-stopping", "0", "--param", "learning_rate=0.1"]
        return ["train", *known, "--booster", booster, *short, "--out", str(tmp_path / "out"), *labels, *more]

    return arguments


@pytest.fixture
def fails(capfd, tmp_path):
    """Check that a command fails as users' errors do, and leaves nothing behind; return what the line says."""

    def run(*argv):
        capfd.readouterr()
        assert main([str(word) for word in argv]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert list(tmp_path.iterdir()) == []
        return re.fullmatch(r"lambda_objectives: error: (\S[^\n]+)\n", err)[1]

    return run


def features_of(path):
    """Names of the features in a saved model."""
    text = path.read_text()
    if path.suffix == ".txt":
        return re.search(r"^feature_names=(.*)$", text, re.MULTILINE)[1].split()
    return json.loads(text)["learner"]["feature_names"]


def lines(out, start):
    """Cells of a printed table by the name of the line, split where two blanks are."""
    table = next(block for block in out.split("\n\n") if block.startswith(start)).splitlines()
    return {cells[0]: cells[1:] for cells in (re.split(r" {2,}", line.strip()) for line in table)}


# ------------------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("booster", BOOSTERS)
def test_bounds_on_the_training_data_are_kept(booster, job, files, tmp_path, capsys):
    bounds = ["--constrain", "cheap<=0.95*baseline", "--constrain", "stocked >= 1.02*baseline"]
    assert main(job(booster, *bounds)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    folder = tmp_path / "out"
    names = {"constraints.json", "constraints.png", "learning_curve.png", "metrics.json", MODEL[booster]}
    assert {path.name for path in folder.iterdir()} == names
    report = json.loads((folder / "constraints.json").read_text())
    assert report["all_met"]
    assert report["judged_on"] == "train"
    cheap, stocked = report["constraints"]["cheap"], report["constraints"]["stocked"]
    assert cheap["at_most"] == pytest.approx(0.95 * cheap["baseline"]["train"])
    assert stocked["at_least"] == pytest.approx(1.02 * stocked["baseline"]["train"])
    assert (cheap["what"], stocked["what"]) == ("cost/cheap.ndcg", "stocked.ndcg@10")
    assert min(cheap["margin"]["train"], stocked["margin"]["train"]) >= 0
    assert list(cheap["margin"]) == list(ROLES)
    for role in ROLES:  # each data set by what the baseline has there
        bound = 0.95 * cheap["baseline"][role]
        assert cheap["bound"][role] == pytest.approx(bound)
        assert cheap["margin"][role] == pytest.approx(1 - cheap["returned"][role] / bound)
        bound = 1.02 * stocked["baseline"][role]
        assert stocked["margin"][role] == pytest.approx(stocked["returned"][role] / bound - 1)

    # the features are gone and the others keep their numbers
    others = [f"feature_{number}" for number in range(1, 21) if number not in (PRICE, STOCKED)]
    assert features_of(folder / MODEL[booster]) == others
    # what is told of each round is of the model of that round
    rounds, last = report["rounds_trained"], report["returned_round"]
    assert rounds == report["baseline_rounds_trained"] == 20
    for role in ("train", "valid"):
        for name in ("cheap", "stocked"):
            values = report["values_by_round"][role][name]
            assert len(values) == len(report["margins_by_round"][role][name]) == rounds
            returned = report["constraints"][name]["returned"][role]
            assert values[last - 1] == pytest.approx(returned, abs=2e-6)
            margin = report["constraints"][name]["margin"][role]
            assert report["margins_by_round"][role][name][last - 1] == pytest.approx(margin, abs=1e-5)
    assert [len(values) for values in report["multipliers_by_round"].values()] == [rounds, rounds]
    assert max(report["multipliers_by_round"]["cheap"]) > 0

    # and what is printed is what is written
    given = "with as many rounds as the baseline kept"
    assert f"\nconstrained, {given}: round {last} of 20 is returned, the best by ndcg on train" in out
    assert "margins on valid and test are against what it has there." in out
    assert f"The model takes 18 features: {PRICE} and {STOCKED} are labels." in out
    table = lines(out, "constraint, on train")
    assert table["cost of cheap, cheap<=0.95*baseline"][0] == f"{cheap['at_most']:.4f}"
    margins = [f"{stocked['margin'][role]:+.2%}" for role in ROLES]
    assert table["ndcg@10 of stocked, stocked>=1.02*baseline"][3:] == [margins[0], "yes", *margins[1:]]
    table = lines(out, "ndcg@10 by label")
    assert len(table) == 1 + 3 * len(ROLES)
    for name in ("label", "cheap", "stocked"):
        for role in ROLES:
            before, after = (report["metrics"][what][role][name]["ndcg@10"] for what in ("baseline", "constrained"))
            assert table[f"{name}, {role}"] == [f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}"]
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["label_metrics"] == report["metrics"]["constrained"]
    assert metrics["labels"]["cheap"]["feature"] == PRICE
    assert metrics["objective"] == report["objective"]

    # the saved model is scored on files that have the features
    argv = ["evaluate", "--model", str(folder / MODEL[booster]), "--data", str(files["test"])]
    assert main(argv) == 0
    assert f"was trained without these features of the file: {PRICE}, {STOCKED}." in capsys.readouterr().out
    assert main([*argv, *LABELS, "--json", str(tmp_path / "e.json")]) == 0
    assert "cheap: feature 5, less is better, graded within each query" in capsys.readouterr().out
    evaluated = json.loads((tmp_path / "e.json").read_text())
    for name, values in metrics["label_metrics"]["test"].items():
        assert evaluated["label_metrics"]["data"][name] == pytest.approx(values, abs=1e-6)

    # a training without constraints puts their report away
    assert main(job(booster, "--overwrite", "--rounds", "2", labels=[])) == 0
    assert not [path for path in folder.iterdir() if path.name.startswith("constraints")]


@pytest.mark.parametrize("booster", BOOSTERS)
def test_numbers_as_bounds_the_validation_data_as_judge(booster, job, tmp_path, capsys):
    more = ["--constrain", "stocked<=99", "--judge", "valid", "--update", "carry", "--mu", "2", "--early-stopping", "4"]
    assert main(job(booster, *more, "--objective", "query-rmse", "--rounds", "40")) == 0
    out = capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "constraints.json").read_text())
    assert (report["update"], report["mu"], report["judged_on"]) == ("carry", 2.0, "valid")
    assert report["constraints"]["stocked"]["at_most"] == 99
    assert set(report["multipliers_by_round"]["stocked"]) == {0.0}  # far from it
    assert report["rounds_trained"] == min(40, report["returned_round"] + 4)
    assert "QueryRMSE on query_rmse under 1 constraint, update carry, mu 2" in out
    assert "margin on train" in out
    assert "against what it has there" not in out
    assert "as many rounds" not in out
    stocked = report["constraints"]["stocked"]
    assert stocked["bound"] == dict.fromkeys(ROLES, 99)  # the same on all
    assert stocked["margin"] == pytest.approx({role: 1 - stocked["returned"][role] / 99 for role in ROLES})


@pytest.mark.parametrize("bound", ["cheap<=0.85*baseline", "cheap>=1.1*baseline"])
@pytest.mark.parametrize("booster", BOOSTERS)
def test_bounds_on_the_validation_data_are_kept(booster, bound, job, tmp_path, capsys):
    more = ["--constrain", bound, "--judge", "valid", "--early-stopping", "15", "--rounds", "80"]
    assert main(job(booster, *more)) == 0
    out = capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "constraints.json").read_text())
    cheap = report["constraints"]["cheap"]
    assert report["all_met"]
    planned = max(report["baseline_round"], min(50, report["baseline_rounds_trained"]))
    assert f"rounds={planned}, follow='valid'" in report["objective"]
    least, share = "at_least" in cheap, float(re.search(r"[\d.]+", bound)[0])
    number = cheap["at_least" if least else "at_most"]
    assert number == cheap["bound"]["valid"] == pytest.approx(share * cheap["baseline"]["valid"])
    assert (cheap["returned"]["valid"] >= number) if least else (cheap["returned"]["valid"] <= number)
    # led there by multipliers, not a stump that is within the bound since its scores are small
    assert report["returned_round"] > 5
    assert max(report["multipliers_by_round"]["cheap"][: report["returned_round"]]) > 0
    table = lines(out, "constraint, on valid")
    assert table[f"{'ndcg@10' if least else 'cost'} of cheap, {bound}"][0] == f"{number:.4f}"
    assert "margins on train and test are against what it has there." in out


@pytest.mark.parametrize(
    ("best", "trained", "rounds", "said"),
    [
        (84, 134, 84, "with as many rounds as the baseline kept"),
        (12, 62, 50, "with 50 rounds, for the baseline kept no more than 12"),
        (12, 22, 22, "with 22 rounds, for the baseline kept no more than 12"),
    ],
)
def test_as_many_rounds_as_the_baseline_kept(best, trained, rounds, said, monkeypatch):
    rng = np.random.default_rng(0)
    parts = {}
    for role in ("train", "valid"):
        X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60).astype(float)
        other = rng.integers(0, 2, 60).astype(float)
        parts[role] = Ranked(role, X, y, np.full(6, 10), (1, 2, 3), {"other": other})
    asked = []

    class Zero:
        def scores(self, X):
            return X[:, 0]

    def train(settings, data, goal=None, what=None):
        asked.append((settings.rounds, goal and goal.patience))
        round, count = (best, trained) if goal is None else (settings.rounds, settings.rounds)
        return Trained(Zero(), round, {role: [0.5] * count for role in parts})

    monkeypatch.setattr(constrained, "train", train)
    settings = Settings("lightgbm", lo.NDCG(10), early_stopping=50)
    outcome = constrained.run(settings, Wanted(parse_bounds(["other<=2*baseline"], ["other"])), parts)
    assert asked == [(1000, None), (rounds, rounds)]  # no early stopping
    assert f"constrained, {said}: round {rounds} of {rounds} is returned" in constraint_report.headline(
        outcome, settings
    )


@pytest.mark.parametrize("judge", ["train", "valid"])
def test_start_and_land(judge, job, tmp_path):
    more = ["--constrain", "cheap<=0.8*baseline", "--start", "5", "--land", "0.5", "--judge", judge]
    more += ["--early-stopping", "9"] if judge == "valid" else []  # shares are of the baseline's rounds
    assert main(job("lightgbm", *more)) == 0
    report = json.loads((tmp_path / "out" / "constraints.json").read_text())
    assert (report["start"], report["land"]) == (5, 0.5)
    assert "start=5, land=0.5, rounds=" in report["objective"]
    weights = report["multipliers_by_round"]["cheap"]
    assert not any(weights[:5])
    assert max(weights[5:]) > 0


def test_no_feasible_round(job, tmp_path, capsys):
    with pytest.warns(lo.LambdaObjectivesWarning, match="no round keeps to every bound on the training data"):
        assert main(job("lightgbm", "--constrain", "cheap<=0.01*baseline", "--rounds", "6")) == 0
    out = capsys.readouterr().out
    assert "which breaks the bounds on train the least: NO ROUND KEEPS TO ALL OF THEM" in out
    report = json.loads((tmp_path / "out" / "constraints.json").read_text())
    assert not report["all_met"]
    assert report["constraints"]["cheap"]["margin"]["train"] < 0


def test_tolerance(job, tmp_path):
    bound = ["--constrain", "cheap<=0.7*baseline", "--update", "carry", "--mu", "1e-9", "--rounds", "6"]
    assert main(job("lightgbm", *bound, "--tolerance", "0.9")) == 0
    cheap = json.loads((tmp_path / "out" / "constraints.json").read_text())["constraints"]["cheap"]
    assert cheap["met"]
    assert cheap["margin"]["train"] < 0


# ------------------------------------------------------------------------------------------------------------- labels


def test_labels_are_only_reported_without_bounds(job, files, tmp_path, capsys):
    assert main(job("lightgbm", labels=[*LABELS, "--label", f"last={LAST}", "--label", f"idle=-{STOCKED}"])) == 0
    out = capsys.readouterr().out
    assert "stocked: feature 19 as it is, whole grades" in out
    assert "idle: 1 - feature 19, whole grades, for less is better" in out
    assert "last: feature 20, graded within each query (percentiles 50, 75, 90, 97)" in out
    folder = tmp_path / "out"
    assert not (folder / "constraints.json").exists()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert list(metrics["label_metrics"]["valid"]) == ["label", "cheap", "stocked", "last", "idle"]
    X, _, group = lo.datasets.load_letor(files["valid"])
    kept = np.delete(X, [PRICE - 1, STOCKED - 1, LAST - 1], axis=1)
    import lightgbm

    scores = lightgbm.Booster(model_file=folder / "model.txt").predict(kept)
    cheap = lo.datasets.grades(-X[:, PRICE - 1], group)
    for name, column in {"cheap": cheap, "idle": 1 - X[:, STOCKED - 1]}.items():
        wanted = lo.NDCG(10)(scores, column, group=group)
        assert metrics["label_metrics"]["valid"][name]["ndcg@10"] == pytest.approx(wanted, abs=1e-12)
        assert lines(out, "ndcg@10 by label")[name][1] == f"{wanted:.4f}"

    # the last feature was a label: without being told one cannot know
    argv = ["evaluate", "--model", str(folder / "model.txt"), "--data", str(files["valid"])]
    assert main(argv) == 2
    assert "the model knows features up to 18, the file has more: 19, 20; take " in capsys.readouterr().err
    assert main([*argv, "--label", "last=20", "--label", "stocked=19"]) == 0
    assert "without these features of the file: 5, 19, 20." in capsys.readouterr().out


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--label", "x"], "--label 'x': NAME=NUMBER is wanted"),
        (["--label", "x=a"], "NAME=NUMBER is wanted"),
        (["--label", "x y=3"], "NAME=NUMBER is wanted"),
        (["--label", "cheap=3"], "there are two labels of the name 'cheap'"),
        (["--label", "label=3"], "'label' is what the file's own labels are called"),
        (["--label", "far=21"], "--label far=21: there are features 1 to 20 in "),
        (["--label", "none=0"], "--label none=0: there are features 1 to 20 in "),
        (["--constrain", "fresh<=0.9*baseline"], "unknown label 'fresh': there are cheap, stocked"),
        (["--constrain", "cheap<0.9*baseline"], "write cheap<=0.9*baseline"),
        (["--constrain", "cheap=<0.9"], "write cheap<=0.9"),
        (["--constrain", "cheap > 0.9"], "write cheap>=0.9"),
        (["--constrain", "cheap=0.9"], "= is not understood, <= and >= are; a bound is quality<=0.9*baseline or "),
        (["--constrain", "cheap"], "--constrain 'cheap': not a bound; a bound is quality<=0.9*baseline or "),
        (["--constrain", "cheap<=90%"], "not a bound; a bound is "),
        (["--constrain", "cheap<=-1"], "not a bound; a bound is "),
        (["--constrain", "cheap<=0*baseline"], "a number above 0 is wanted, found 0"),
        (["--constrain", "cheap<=1", "--constrain", "cheap>=.5"], "there is another bound on 'cheap'"),
        (["--update", "carry"], "--update belongs to --constrain"),
        (["--tolerance", "0"], "--tolerance belongs to --constrain"),
        (["--land", "0.5"], "--land belongs to --constrain"),
        (["--constrain", "cheap<=1", "--land", "0.5", "--update", "carry"], "land belongs to update='auto'"),
        (["--constrain", "cheap<=1", "--start", "-1"], "start must not be negative"),
        (["--constrain", "cheap<=1", "--start", ".5", "--land", ".4"], "land must not come before start"),
        (["--constrain", "cheap<=1", "--tolerance", "2"], "'2' is not a share from 0 to below 1"),
        (["--constrain", "cheap<=1", "--judge", "test"], "invalid choice: 'test'"),
        (["--constrain", "cheap<=1", "--param", "booster=dart"], "no --constrain with it"),
    ],
)
def test_bad_arguments(more, said, job, fails):
    assert said in fails(*job("lightgbm", *more))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--constrain", "cheap>=9*baseline"], "times the baseline's"),
        (
            ["--constrain", "cheap>=1.1"],
            "ndcg@10 of 1.1000 is out of reach: the best ranking there is has 1.0000 on ",
        ),
        (["--constrain", "cheap<=1", "--mu", "-1"], "mu must be "),
        (
            ["--label", "volume=2", "--constrain", "volume<=0.9*baseline"],
            "--constrain volume<=0.9*baseline: no query of ",
        ),
    ],
)
def test_bounds_that_cannot_be(more, said, job, fails):
    assert said in fails(*job("xgboost", "--rounds", "2", *more))


def small(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("small") / "a.txt"
    path.write_text("".join(rows))
    return ["train", f"--train={path}", f"--valid={path}", "--booster=lightgbm", "--param=min_data_in_leaf=1"]


def test_bad_features(tmp_path, tmp_path_factory, fails):
    known = small(tmp_path_factory, ["1 qid:1 1:2 2:nan\n", "0 qid:1 1:1 2:3\n"])
    out = ["--out", tmp_path / "out", "--rounds=2"]
    assert "feature 2 is nan in row 1 of " in fails(*known, *out, "--label=x=2")
    known = small(tmp_path_factory, ["1 qid:1 1:2 2:1\n", "0 qid:1 1:1 2:3\n"])
    assert "are labels, and none is left" in fails(*known, *out, "--label=x=1", "--label=y=2")


def test_a_share_of_nothing(tmp_path, tmp_path_factory, fails):
    rows = [f"{i % 2} qid:{q} 1:{i % 2} 2:{1 - i % 2}\n" for q in range(9) for i in range(4)]
    known = small(tmp_path_factory, rows)
    line = fails(*known, "--out", tmp_path / "out", "--rounds=2", "--metric=precision@1", "--label=x=2",
                 "--constrain=x>=1.1*baseline")  # fmt: skip
    assert "the baseline's precision@1 of 'x' on " in line
    assert "is 0, and every share of it; give a number, as in x>=0.1" in line
