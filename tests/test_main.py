"""The command line: each command, each error on one line, nothing half-written."""

import gzip
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.__main__ import main
from lambda_objectives.tools import plots, training
from lambda_objectives.tools.arguments import METRICS
from lambda_objectives.tools.files import read, read_split
from lambda_objectives.tools.scoring import kinds, of_empty, parse_metric, reported

BOOSTERS = ["lightgbm", "xgboost"]
MODEL = {"lightgbm": "model.txt", "xgboost": "model.json"}


def letor(queries=40, seed=0, features=4):
    """Lines of a small ranking problem that can be learnt."""
    rng = np.random.default_rng(seed)
    lines = []
    for qid in range(queries):
        X = rng.normal(size=(8, features))
        y = np.clip(1.5 + X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.normal(size=8), 0, 3) // 1
        for row, label in zip(X, y, strict=True):
            lines.append(f"{label:.0f} qid:{qid} " + " ".join(f"{j}:{v:.5f}" for j, v in enumerate(row, 1)) + "\n")
    return "".join(lines)


@pytest.fixture
def files(tmp_path):
    """Paths of a training, a validation and a test file; the last is packed."""
    (tmp_path / "in").mkdir()
    paths = {role: str(tmp_path / "in" / f"{role}.txt") for role in ("train", "valid")}
    for seed, path in enumerate(paths.values()):
        with open(path, "w") as file:
            file.write(letor(seed=seed))
    paths["test"] = str(tmp_path / "in" / "test.txt.gz")
    with gzip.open(paths["test"], "wt") as file:
        file.write(letor(seed=2))
    return paths


@pytest.fixture
def job(files, tmp_path):
    """Arguments of a short training."""

    def arguments(booster="lightgbm", *more, out="out"):
        known = [f"--{role}={path}" for role, path in files.items()]
        return ["train", *known, "--booster", booster, "--rounds", "12", "--out", str(tmp_path / out), *more]

    return arguments


@pytest.fixture
def fails(capfd):
    """Check that a command fails as users' errors do, the boosters' libraries quiet too; return what the line says."""

    def run(*argv):
        capfd.readouterr()  # what was said before
        assert main([str(word) for word in argv]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        return re.fullmatch(r"lambda_objectives: error: (\S[^\n]+)\n", err)[1]

    return run


def numbers(table):
    """Cells of the printed table of metrics, by line and column."""
    lines = table.split("\n\n")[1 if table.startswith(("lightgbm", "xgboost")) else 0].splitlines()
    names = lines[0].split()
    return {words[0]: dict(zip(names, map(float, words[1:]), strict=True)) for words in map(str.split, lines[1:])}


@pytest.mark.parametrize("booster", BOOSTERS)
def test_train_then_evaluate(booster, job, files, tmp_path, capsys):
    assert main(job(booster, "--metric", "dcg@3", "--param", "learning_rate=0.3")) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        ["learning_curve.png", "metrics.json", MODEL[booster]]
    )
    report = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert list(report["metrics"]) == ["train", "valid", "test"]
    assert list(report["metrics"]["test"]) == ["ndcg@1", "ndcg@5", "ndcg@10", "dcg@3"]
    assert report["params"]["learning_rate"] == 0.3
    assert set(report["versions"]) == {"lambda_objectives", booster, "numpy", "python"}
    assert report["metrics"]["train"]["ndcg@10"] > 0.8  # learnt
    for role, printed in numbers(out).items():
        assert printed["rows"] == 320
        for name, value in report["metrics"][role].items():
            assert printed[name] == pytest.approx(value, abs=6e-5)

    model = str(tmp_path / "out" / MODEL[booster])
    for role, path in files.items():
        scores, saved = tmp_path / f"{role}.scores", tmp_path / f"{role}.json"
        argv = ["evaluate", "--model", model, "--data", path, "--metric", "dcg@3", "--json", saved, "--scores", scores]
        assert main([str(word) for word in argv]) == 0
        evaluated = json.loads(saved.read_text())
        assert evaluated["booster"] == booster
        assert (evaluated["queries"], evaluated["rows"]) == (40, 320)
        assert evaluated["metrics"] == pytest.approx(report["metrics"][role], abs=1e-6)
        _, y, group = lo.datasets.load_letor(path)
        assert lo.NDCG(5)(np.loadtxt(scores), y, group=group) == pytest.approx(evaluated["metrics"]["ndcg@5"], abs=1e-9)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_files_may_lack_trailing_features(booster, job, files, tmp_path, capsys):
    with open(files["valid"], "w") as file:
        file.write(letor(seed=1, features=2))
    assert main(job(booster)) == 0
    model = str(tmp_path / "out" / MODEL[booster])
    capsys.readouterr()
    assert main(["evaluate", "--model", model, "--data", files["valid"]]) == 0
    saved = json.loads((tmp_path / "out" / "metrics.json").read_text())["metrics"]["valid"]
    assert numbers(capsys.readouterr().out)["data"]["ndcg@10"] == pytest.approx(saved["ndcg@10"], abs=6e-5)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_features_from_zero_stay_where_they_are(booster, job, files, tmp_path, capsys):
    def shifted(text):
        return re.sub(r" (\d):", lambda match: f" {int(match[1]) - 1}:", text)

    for seed, path in enumerate(files.values()):
        with gzip.open(path, "wt") if path.endswith("gz") else open(path, "w") as file:
            file.write(shifted(letor(seed=seed)))
    with open(files["valid"], "w") as file:  # has no feature 0, so that alone it would count from 1
        file.write(re.sub(r" 0:\S+", "", shifted(letor(seed=1))))
    assert main(job(booster)) == 0
    capsys.readouterr()
    assert main(["evaluate", "--model", str(tmp_path / "out" / MODEL[booster]), "--data", files["valid"]]) == 0
    saved = json.loads((tmp_path / "out" / "metrics.json").read_text())["metrics"]["valid"]
    assert numbers(capsys.readouterr().out)["data"]["ndcg@10"] == pytest.approx(saved["ndcg@10"], abs=6e-5)


def test_features_numbered_otherwise_than_the_models(job, files, tmp_path, fails):
    main(job())
    with open(files["valid"], "w") as file:
        file.write("1 qid:1 0:2\n")
    line = fails("evaluate", "--model", tmp_path / "out" / "model.txt", "--data", files["valid"])
    assert "features are numbered from 0, those of the model from 1; if feature 0 was a label" in line


def test_queries_without_relevant_rows_are_counted(job, files, capsys):
    with open(files["valid"], "a") as file:
        file.write("0 qid:900 1:1\n0 qid:900 2:1\n")
    assert main(job()) == 0
    assert re.search(
        r"\(\d in train, [1-9] in valid, \d in test\) count 1 in ndcg@1, ndcg@5 and ndcg@10", capsys.readouterr().out
    )


def test_other_options(job, tmp_path):
    assert (
        main(job("lightgbm", "--train-cutoff", "5", "--truncation", "3", "--early-stopping", "0", "--seed", "3")) == 0
    )
    report = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert "NDCG(k=5," in report["objective"]
    assert "truncation=3" in report["objective"]
    assert report["params"]["seed"] == 3
    assert report["best_round"] == report["rounds_trained"] == 12


def test_metrics_that_count_1_for_queries_without_a_relevant_row(job, capsys):
    said = {"map": "ndcg@5, ndcg@10 and map, as", "mrr": "ndcg@1, ndcg@5 and ndcg@10, as", "auc": "ndcg@10 and auc, as"}
    assert "have NDCG" not in of_empty(["ndcg"])
    for metric, words in said.items():
        assert words in of_empty([kind.name for kind in reported(parse_metric(metric))])


def test_help_names_every_metric(capsys):
    assert METRICS.split(", ") == sorted(kinds())
    for command in ("train", "evaluate"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert METRICS in " ".join(capsys.readouterr().out.split())


# ----------------------------------------------------------------------------------------------- a share to validate on


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_share_of_the_queries_to_validate_on(booster, job, files, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(job(booster, "--valid", "0.25")) == 0
    out = capsys.readouterr().out
    assert f"valid: 10 of the 40 queries of {files['train']}, at random by --seed 0\n" in out
    data = json.loads((tmp_path / "out" / "metrics.json").read_text())["data"]
    assert [data[role]["queries"] for role in ("train", "valid", "test")] == [30, 10, 40]
    assert data["valid"]["file"] == f"{files['train']} (10 of its 40 queries, by --seed 0)"
    (tmp_path / "0.25").write_text(letor(queries=7, seed=3))  # a file of that name wins
    assert main(job(booster, "--valid", "0.25", "--overwrite")) == 0
    assert "at random" not in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["data"]["valid"]["queries"] == 7


def test_both_sides_of_a_share_are_whole_queries(files):
    whole = read({"train": files["train"]})["train"]
    starts = np.cumsum(whole.group) - whole.group
    first = {whole.X[start, 0]: (start, size) for start, size in zip(starts, whole.group, strict=True)}

    def queries(part):
        found = [first[part.X[start, 0]] for start in np.cumsum(part.group) - part.group]
        rows = np.concatenate([np.arange(start, start + size) for start, size in found])
        np.testing.assert_array_equal(part.X, whole.X[rows])
        np.testing.assert_array_equal(part.y, whole.y[rows])
        return found

    drawn = []
    for seed in (0, 0, 1):
        data = read_split({"train": files["train"], "valid": "0.3", "test": files["test"]}, 0.3, seed)
        assert list(data) == ["train", "valid", "test"]
        assert len(data["valid"].group) == 12
        sides = [queries(data[role]) for role in ("train", "valid")]
        assert sides == [sorted(side) for side in sides]  # in the order of the file
        assert sorted(sides[0] + sides[1]) == sorted(first.values())
        drawn.append(sides[1])
    assert drawn[0] == drawn[1] != drawn[2]


# ------------------------------------------------------------------------------------------------------------- outputs


def test_existing_output_is_refused(job, tmp_path, fails):
    (tmp_path / "out").mkdir()
    assert main(job("xgboost")) == 0  # empty is as good as new
    (tmp_path / "out" / "mine.txt").write_text("keep")
    assert "is not empty" in fails(*job("lightgbm"))
    assert main(job("lightgbm", "--overwrite")) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"mine.txt", "model.txt", "metrics.json", "learning_curve.png"}  # the other booster's model is gone
    assert "exists" in fails(*job(out="out/mine.txt"))
    assert "is a file" in fails(*job(out="out/mine.txt/below"))


def test_existing_files_of_evaluate_are_refused(job, files, tmp_path, fails):
    main(job())
    argv = ["evaluate", "--model", tmp_path / "out" / "model.txt", "--data", files["test"], "--scores", files["valid"]]
    assert "exists" in fails(*argv)
    assert "is a directory" in fails(*argv[:-1], tmp_path / "in", "--overwrite")
    assert main([str(word) for word in [*argv, "--overwrite"]]) == 0
    assert len(np.loadtxt(files["valid"])) == 320


@pytest.mark.parametrize("out", ["out", "new/deep/out"])
@pytest.mark.parametrize(
    ("failure", "status"),
    [(OSError(28, "No space left on device"), 2), (KeyboardInterrupt(), 130), (KeyError("x"), None)],
)
def test_nothing_half_written(failure, status, out, job, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise failure

    monkeypatch.setattr(plots, "save_learning_curve", fail)  # the model is written by then
    if status is None:
        with pytest.raises(KeyError):
            main(job(out=out))
    else:
        assert main(job(out=out)) == status
        out, err = capsys.readouterr()
        assert out == ""
        said = "error: No space left on device" if status == 2 else "interrupted"
        assert err == f"lambda_objectives: {said}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_nothing_written_when_interrupted_in_training(job, tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "progress", interrupt)
    (tmp_path / "out").mkdir()
    assert main(job()) == 130
    assert capsys.readouterr().err == "lambda_objectives: interrupted\n"
    assert list((tmp_path / "out").iterdir()) == []


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "train.txt:1: no rows in this file"),
        ("1 1:2\n", "train.txt:1: no qid"),
        ("1 qid:1 1:2\n1 qid:1 x\n", "train.txt:2: 'x' has no colon"),
        ("1 qid:1 1:2\n1 qid:2 1:2\n0 qid:1 1:3\n", "train.txt:3: qid 1 comes back"),
        ("1 qid:1 1:2\n-1 qid:1 1:3\n", "train.txt: label: NDCG(k=1"),
        ("nan qid:1 1:2\n", "train.txt:1: the label is nan"),
        ("1 qid:1 1:2\n1 qid:1 1:3\n", "no feature can split the data"),
        (re.sub(r"^\d", "1", letor(), flags=re.MULTILINE), "the Hessian is nowhere positive"),
        ("999 qid:1 1:2\n", "train.txt: gain: the gain of label 999 (row 0) is too large"),
    ],
)
def test_bad_content(content, said, files, job, fails, tmp_path):
    with open(files["train"], "w") as file:
        file.write(content)
    assert said in fails(*job())
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_files_without_features(files, job, fails):
    for path in files.values():
        with gzip.open(path, "wt") if path.endswith("gz") else open(path, "w") as file:
            file.write("1 qid:1\n0 qid:1\n")
    assert "no features in this file" in fails(*job())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--train", "nowhere.txt"], "nowhere.txt: No such file or directory"),
        (["--metric", "accuracy"], "unknown metric 'accuracy': there are "),
        (["--metric", "ndcg@"], "after the @ comes a whole number from 1"),
        (["--metric", "ndcg@0"], "after the @ comes a whole number from 1"),
        (["--metric", "ndcg@ten"], "after the @ comes a whole number from 1"),
        (["--metric", "lambdarank"], "unknown metric 'lambdarank'"),
        (["--param", "max_depth"], "--param 'max_depth': name=value is wanted"),
        (["--param", "=3"], "name=value is wanted"),
        (["--param", "objective=lambdarank"], "there is the option --objective for that"),
        (["--param", "eval_metric=map"], "there is the option --metric for that"),
        (["--param", "num_iterations=7"], "there is the option --rounds for that"),
        (["--param", "depth=7"], "--param depth"),
        (["--param", "learning_rat=.1"], "no such parameter"),
        (["--param", "learning_rat=.1"], "(did you mean 'learning_rate'?)"),
        (["--valid", "1.5"], "--valid 1.5: there is no such file, and a share of the queries is between 0 and 1"),
        (["--valid", "0"], "--valid 0: there is no such file"),
        (["--valid", "0.01"], "train.txt, which has 40, is left to validate on"),
        (["--valid", "0.99"], "train.txt, which has 40, is left to train on"),
        (["--param", "max_depth=deep"], "max_depth"),
        (["--param", "learning_rate=-1"], "learning_rate"),
        (["--param", "booster=dart", "--param", "boosting=dart"], "say --early-stopping 0"),
        (["--rounds", "0"], "argument --rounds: '0' is not a whole number from 1"),
        (["--early-stopping", "-3"], "is not a whole number from 0"),
        (["--booster", "catboost"], "invalid choice"),
        (["--colour"], "unrecognized arguments: --colour"),
    ],
)
@pytest.mark.parametrize("booster", BOOSTERS)
def test_bad_arguments(booster, more, said, job, fails, tmp_path):
    assert said in fails(*job(booster, *more))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_bad_command(fails):
    assert "invalid choice: 'learn'" in fails("learn")
    assert "are required" in fails()
    assert "--queries" in fails("demo", "--queries", "few")
    assert "required: --data" in fails("evaluate", "--model", "m")


def test_directory_instead_of_a_file(job, tmp_path, fails):
    assert "directory" in fails(*job("lightgbm", "--train", tmp_path))
    assert "directory" in fails("evaluate", "--model", tmp_path, "--data", tmp_path)


def test_no_model(files, tmp_path, fails):
    assert "No such file" in fails("evaluate", "--model", tmp_path / "none", "--data", files["valid"])
    for content, said in {
        "": "neither a model that LightGBM saved",
        "hello": "neither a model that LightGBM saved",
        "{": "not a whole model of XGBoost",
        '{"learner": 3}': "not a whole model of XGBoost",
        "tree\nversion=v4\n": "not a whole model of LightGBM",
        "tree\nversion=v4\nend of trees\n": "not a whole model of LightGBM",
    }.items():
        (tmp_path / "model").write_text(content)
        assert said in fails("evaluate", "--model", tmp_path / "model", "--data", files["valid"])


@pytest.mark.parametrize("booster", BOOSTERS)
def test_broken_models_and_wider_data(booster, job, files, tmp_path, fails):
    main(job(booster))
    model = tmp_path / "out" / MODEL[booster]
    content = model.read_bytes()
    with open(files["valid"], "w") as file:
        file.write(letor(features=6))
    line = fails("evaluate", "--model", model, "--data", files["valid"])
    assert "valid.txt: the model knows features up to 4, the file has more: 5, 6; take the file" in line
    model.write_bytes(content[: len(content) // 2])
    assert "not a whole model" in fails("evaluate", "--model", model, "--data", files["test"])


@pytest.mark.parametrize("missing", ["lightgbm", "xgboost", "sklearn", "matplotlib", "tqdm"])
def test_missing_dependency(missing, job, fails, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    argv = job("xgboost" if missing == "xgboost" else "lightgbm")
    assert fails(*argv) == f'{missing} is not installed: pip install "lambda-objectives[cpu]"'
    if missing not in ("sklearn", "matplotlib"):
        assert f"{missing} is not installed" in fails("demo")


# --------------------------------------------------------------------------------------------------------- other models


def test_models_trained_elsewhere(files, tmp_path, capsys):
    import lightgbm
    import xgboost

    X, y, group = lo.datasets.load_letor(files["train"])
    narrow = lightgbm.train({"verbosity": -1, "objective": "lambdarank"}, lightgbm.Dataset(X[:, :3], y, group=group), 5)
    narrow.save_model(tmp_path / "c")
    assert main(["evaluate", "--model", str(tmp_path / "c"), "--data", files["train"]]) == 2
    assert "the file has 4 features, the model 3" in capsys.readouterr().err
    one = lightgbm.train({"verbosity": -1, "objective": "lambdarank"}, lightgbm.Dataset(X, y, group=group), 5)
    one.save_model(tmp_path / "a")
    other = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, y > 1), 5)
    (tmp_path / "b").write_bytes(other.save_raw("ubj"))
    for name, scores in {"a": one.predict(X), "b": other.predict(xgboost.DMatrix(X), output_margin=True)}.items():
        argv = ["evaluate", "--model", str(tmp_path / name), "--data", files["train"], "--metric", "ndcg"]
        assert main(argv) == 0
        printed = numbers(capsys.readouterr().out)["data"]
        assert printed["ndcg"] == pytest.approx(lo.NDCG()(scores, y, group=group), abs=6e-5)


def test_model_with_several_outputs(files, tmp_path, fails):
    import lightgbm

    X, y, _ = lo.datasets.load_letor(files["train"])
    params = {"verbosity": -1, "objective": "multiclass", "num_class": 4}
    lightgbm.train(params, lightgbm.Dataset(X, y), 2).save_model(tmp_path / "a")
    assert "4 outputs a row" in fails("evaluate", "--model", tmp_path / "a", "--data", files["train"])


# --------------------------------------------------------------------------------------------------- demo, and the rest


def test_demo(capsys):
    assert main(["demo", "--queries", "60", "--rounds", "4", "--seed", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = [line for line in out.splitlines() if line.startswith(("LightGBM, ", "XGBoost, "))]
    assert [line.split("  ")[0] for line in rows] == [
        "LightGBM, lambdarank", "LightGBM, ours", "XGBoost, rank:ndcg", "XGBoost, ours",
    ]  # fmt: skip
    assert len({len(line) for line in rows}) == 1  # aligned
    ndcg = {line.split("  ")[0]: float(line.split()[4]) for line in rows}
    assert all(0 < value < 1 for value in ndcg.values())
    text = " ".join(out.split())
    for title, own in (("LightGBM", "lambdarank"), ("XGBoost", "rank:ndcg")):
        difference = ndcg[f"{title}, ours"] - ndcg[f"{title}, {own}"]
        words = re.search(rf"{title}: NDCG@10 with ours is (the same as|([\d.]+) (higher|lower) than) with {own}", text)
        told = 0.0 if words[2] is None else float(words[2]) * (1 if words[3] == "higher" else -1)
        assert told == pytest.approx(difference, abs=1.6e-4)


def test_version_and_help(capsys):
    for argv, said in (
        (["--version"], lo.__version__),
        (["--help"], "evaluate"),
        (["train", "--help"], "--early-stopping"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 0
        assert said in capsys.readouterr().out


@pytest.mark.slow
def test_as_a_process(files, tmp_path):
    def run(*argv):
        command = [sys.executable, "-m", "lambda_objectives", *argv]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    argv = ["train", "--train", files["train"], "--valid", files["valid"], "--booster", "lightgbm", "--rounds", "3"]
    done = run(*argv, "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "model.txt" in done.stdout
    done = run("evaluate", "--model", str(tmp_path), "--data", files["valid"])
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"lambda_objectives: error: [^\n]+\n", done.stderr)


def test_warnings_take_one_line(job, capsys):
    with pytest.warns(lo.LambdaObjectivesWarning):  # pytest keeps the warning from being printed
        assert main(job("lightgbm", "--param", "min_sum_hessian_in_leaf=1e3")) == 0
