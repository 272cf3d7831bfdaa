"""Checkpoints: a training that is stopped or killed at any moment, and run again, ends with the same model."""

import json
import multiprocessing
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import lightgbm as lgb
import pytest
import xgboost as xgb
from sklearn.model_selection import GroupKFold

import lambda_objectives as lo
from lambda_objectives import checkpoints
from lambda_objectives.specs import as_spec
from tests.interrupted import CASES, EVERY, RANK, ROUNDS, TABLE, go, killed

BOOSTERS = ("lightgbm", "xgboost")
both_boosters = pytest.mark.parametrize("of", BOOSTERS)
no_round = pytest.mark.filterwarnings(
    r"ignore:(no (late )?round|only early rounds):lambda_objectives.LambdaObjectivesWarning"
)
SPEC = repr(as_spec(RANK))


def state(rounds, spec=SPEC):
    return {"rounds": rounds, "spec": spec}


def written(folder, *rounds, keep=9, suffix=".txt", spec=SPEC):
    """A folder with checkpoints."""
    folder.mkdir(exist_ok=True)
    for k in rounds:
        checkpoints.write(folder, state(k, spec), b"tree %d" % k, suffix, keep)
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def pair(rounds, suffix="txt"):
    return [f"lambda_objectives-{rounds:06d}.json", f"lambda_objectives-{rounds:06d}.{suffix}"]


# ------------------------------------------------------------------------------------------------------------ the files


def test_nothing_yet(tmp_path):
    for folder in (tmp_path, tmp_path / "none", str(tmp_path / "none")):
        assert lo.resume(folder) == (None, None, 0)
    assert not (tmp_path / "none").exists()
    assert lo.Objective(RANK, state=lo.resume(tmp_path).state).begins_from is None


def test_the_last_one_is_found(tmp_path):
    there = lo.resume(written(tmp_path, 10, 20, 1_000_000))
    assert there.rounds == 1_000_000
    assert there.state == state(1_000_000)
    assert there.model.read_bytes() == b"tree 1000000"


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_old_ones_go(tmp_path, keep):
    (tmp_path / "model.txt").write_text("the user's")
    for k in (3, 6, 9, 12):
        written(tmp_path, k, keep=keep)
    kept = [name for k in (3, 6, 9, 12)[-keep:] for name in pair(k)]
    assert names(tmp_path) == sorted([*kept, "model.txt"])


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch, call, at):
    """A full disk, an interrupt: at the model, at the state."""
    written(tmp_path, 3)
    before, calls, real = names(tmp_path), [], getattr(checkpoints.os, call)

    def fails(*args):
        calls.append(args)
        if len(calls) == at + 1:
            raise OSError("no space left")
        return real(*args)

    monkeypatch.setattr(checkpoints.os, call, fails)
    if at < {"fsync": 4, "replace": 2}[call]:  # each of the two files, and the folder after each
        with pytest.raises(OSError, match="no space left"):
            written(tmp_path, 6, keep=1)
    else:
        written(tmp_path, 6, keep=1)
    monkeypatch.undo()
    assert not list(tmp_path.glob("*.tmp"))
    whole = at == 3 or (call == "replace" and at == 2)
    assert lo.resume(tmp_path).rounds == (6 if whole else 3)
    assert whole or set(before) <= set(names(tmp_path))
    assert names(written(tmp_path, 9, keep=1)) == pair(9)  # half-written ones go too


def test_what_a_killed_process_left_is_cleaned_up(tmp_path):
    written(tmp_path, 3)
    for name in ("lambda_objectives-000006.txt.123.tmp", "lambda_objectives-000006.json.123.tmp"):
        (tmp_path / name).write_bytes(b'{"lambda')
    (tmp_path / "other-000006.txt.123.tmp").write_text("not ours")
    (tmp_path / pair(6)[1]).write_text("a model without a state")
    assert lo.resume(tmp_path).rounds == 3
    saver = checkpoints.Saver(lo.Objective(RANK, state=None), tmp_path, 3, 1, ".txt")
    with pytest.raises(ValueError, match="holds a checkpoint of round 3"):
        saver.begin(0, [])
    assert len(names(tmp_path)) == 6  # refused before anything is touched
    objective = lo.Objective(RANK)
    objective._state = state(3)
    checkpoints.Saver(objective, tmp_path, 3, 1, ".txt").begin(3, [])
    assert names(tmp_path) == sorted([*pair(3), pair(6)[1], "other-000006.txt.123.tmp"])
    written(tmp_path, 6, keep=1)
    assert names(tmp_path) == sorted([*pair(6), "other-000006.txt.123.tmp"])


DAMAGES = {
    "cut short": (lambda json_, model: json_.write_bytes(json_.read_bytes()[:40]), "json is cut short, or no JSON"),
    "empty": (lambda json_, model: json_.write_bytes(b""), "json is cut short, or no JSON"),
    "no model": (lambda json_, model: model.unlink(), r"names the model file .*txt, which is not there"),
    "model cut short": (lambda json_, model: model.write_bytes(b"tre"), "txt is not as it was written"),
    "model changed": (lambda json_, model: model.write_bytes(b"tree 8"), "txt is not as it was written"),
    "another format": (
        lambda json_, model: json_.write_text('{"lambda_objectives": 2}'),
        "no checkpoint that this ver",
    ),
    "no object": (lambda json_, model: json_.write_text("[1, 2]"), "no checkpoint that this version reads"),
}


@pytest.mark.parametrize(("damage", "match"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_files(tmp_path, damage, match):
    """An older checkpoint that is whole serves, with a warning; without one it is an error."""
    alone, older = written(tmp_path / "alone", 6), written(tmp_path / "older", 3, 6)
    for folder in (alone, older):
        damage(*(folder / name for name in pair(6)))
    with pytest.raises(ValueError, match=rf"folder: no checkpoint in it is whole.*{match}.*To begin anew, delete"):
        lo.resume(alone)
    with pytest.warns(
        lo.LambdaObjectivesWarning, match=rf"{match}.*: going on from the checkpoint before it, of round 3"
    ):
        assert lo.resume(older).rounds == 3
    checkpoints.check(older, SPEC, 3)  # it is in nobody's way
    if damage is not DAMAGES["no object"][0]:  # which nobody would know for ours
        assert lo.resume(written(older, 6)).rounds == 6
    assert names(written(older, 4, keep=1))[:2] == pair(4)


def test_files_that_are_not_ours_stay(tmp_path):
    foreign = tmp_path / pair(6)[0]
    foreign.write_text('{"somebody": "else"}')
    (tmp_path / pair(6)[1]).write_text("else's")
    with pytest.raises(FileExistsError, match=r"000006\.json is there and no checkpoint of ours: move it, or name"):
        written(tmp_path, 6)
    written(tmp_path, 9, keep=1)
    assert names(tmp_path) == sorted(pair(6) + pair(9))
    assert foreign.read_text() == '{"somebody": "else"}'


@both_boosters
def test_folders_of_others(of, tmp_path):
    go(of, "rank", tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for spec, match in [
        (
            RANK,
            rf"folder='{tmp_path}' holds a checkpoint of round 21, the training begins at round 0: go on from what lo",
        ),
        (
            lo.RankNet(),
            r"holds checkpoints of another spec: of .*LambdaRank.*the objective is of .*RankNet.*name another",
        ),
    ]:
        with pytest.raises(ValueError, match=match):
            fit(of, lo.Objective(spec), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def fit(of, objective, folder, rounds=6, params=None, save=None, model=None):
    save = save or (lo.lightgbm.checkpoint if of == "lightgbm" else lo.xgboost.Checkpoint)(objective, folder, every=2)
    save = save if isinstance(save, list) else [save]
    if of == "lightgbm":
        params = {"verbosity": -1, "num_threads": 1, "num_leaves": 4, **(params or {}), "objective": objective}
        train = lgb.Dataset(TABLE.X, TABLE.y, group=TABLE.group)
        return lgb.train(params, train, rounds, callbacks=save, init_model=model)
    params = {"nthread": 1, "min_child_weight": 1e-3, "max_depth": 2, **(params or {})}
    train = xgb.DMatrix(TABLE.X, TABLE.y, qid=TABLE.qid)
    return xgb.train(params, train, rounds, obj=objective, callbacks=save, xgb_model=model)


@both_boosters
def test_what_is_refused(of, tmp_path):
    objective = lo.Objective(RANK)
    make = lo.lightgbm.checkpoint if of == "lightgbm" else lo.xgboost.Checkpoint
    with pytest.raises(ValueError, match="every must be a whole number from 1, found 0"):
        make(objective, tmp_path, every=0)
    with pytest.raises(ValueError, match=r"keep must be a whole number from 1, found 1\.5"):
        make(objective, tmp_path, keep=1.5)
    with pytest.raises(TypeError, match="objective must be the Objective that is trained"):
        make(RANK, tmp_path)
    (tmp_path / "file").write_text("")
    for call in (lo.resume, lambda folder: make(objective, folder)):
        with pytest.raises(ValueError, match="file' is a file; name a folder"):
            call(tmp_path / "file")
    with pytest.raises(ValueError, match="checkpoints must be given the very Objective that is trained"):
        fit(of, lo.Objective(RANK), tmp_path, save=make(objective, tmp_path))
    fit(of, objective, tmp_path / "there")
    there = lo.resume(tmp_path / "there")
    assert there.rounds == 4
    with pytest.raises(ValueError, match=r"state is of a training with 4 rounds done, but the booster has no trees"):
        fit(of, lo.Objective(RANK, state=there.state), tmp_path / "there")
    with pytest.raises(ValueError, match=r"cv cannot go on from a model; leave it out there"):
        cross_validate(of, objective, make(objective, tmp_path / "cv"))
    assert not (tmp_path / "cv").exists()


def cross_validate(of, objective, save):
    if of == "lightgbm":
        train = lgb.Dataset(TABLE.X, TABLE.y, group=TABLE.group)
        lgb.cv({"objective": objective, "verbosity": -1}, train, 4, folds=GroupKFold(3), callbacks=[save])
    else:
        train = xgb.DMatrix(TABLE.X, TABLE.y, qid=TABLE.qid)
        xgb.cv({}, train, 4, obj=objective, callbacks=[save])


SEEDED = {"subsample": 0.5, "seed_per_iteration": True}
BY_ROUND = tuple(map(int, xgb.__version__.split(".")[:2])) >= (3, 4)  # since then it does what it says
AFRESH = {
    "lightgbm": [
        {"subsample": 0.5, "bagging_freq": 1}, {"feature_fraction": 0.5}, {"feature_fraction_bynode": 0.5},
        {"extra_trees": True}, {"data_sample_strategy": "goss", "learning_rate": 0.5}, {"boosting": "dart"},
        {"use_quantized_grad": True}, {"linear_tree": True}, {"cegb_penalty_feature_coupled": [1.0] * 5},
    ],
    "xgboost": [
        {"subsample": 0.5}, *([] if BY_ROUND else [SEEDED]), {"colsample_bytree": 0.5},
        {"colsample_bylevel": 0.5}, {"colsample_bynode": 0.5}, {"booster": "dart", "rate_drop": 0.5},
        {"booster": "dart", "one_drop": True}, {"tree_method": "approx"},
    ],
}  # fmt: skip
THE_SAME = {
    "lightgbm": [
        {}, {"bagging_fraction": 0.5}, {"use_quantized_grad": True, "stochastic_rounding": False}],
    "xgboost": [
        {}, {"booster": "dart"}, {"tree_method": "exact"}, {"num_parallel_tree": 2}, *([SEEDED] if BY_ROUND else [])],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:boost(ing|er)='dart':lambda_objectives.LambdaObjectivesWarning")
@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")
@pytest.mark.filterwarnings("ignore:the first tree moved all scores alike:lambda_objectives.LambdaObjectivesWarning")
@pytest.mark.parametrize("same", [True, False], ids=["the same", "others"])
@both_boosters
def test_settings_with_which_the_trees_are_others(of, same, tmp_path):
    """A warning names them, and none comes where nothing changes."""
    for i, params in enumerate((THE_SAME if same else AFRESH)[of]):
        wanted, folder = go(of, "rank", None, params=params), tmp_path / str(i)
        go(of, "rank", folder, rounds=ROUNDS // 2, params=params)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert (go(of, "rank", folder, params=params)[0] == wanted[0]) is same, params
        said = [str(w.message) for w in caught if "does not keep in its model where these were" in str(w.message)]
        assert len(said) == (not same), params


# --------------------------------------------------------------------------- stopped, and gone on with in a new process


class Stopped(Exception):
    """The process ends here."""


def until(round):
    def tell(done):
        if done == round:
            raise Stopped

    return tell


@no_round
def test_the_same_in_a_new_process(tmp_path):
    wanted, left = {}, {}
    for case in CASES:
        for of in BOOSTERS:
            whole = go(of, case, None)
            for at in (1, 8, 17) if case == "auto" else (8, 17):
                folder = tmp_path / f"{case}.{of}.{at}"
                try:
                    go(of, case, folder, until(at), every=1 if at == 8 else EVERY)
                except Stopped:
                    assert lo.resume(folder).rounds == (7 if at == 8 else (at - 1) // EVERY * EVERY)
                else:
                    assert case.startswith("stops")
                wanted[folder.name], left[folder.name] = whole, str(folder)
    command = [sys.executable, "-m", "tests.interrupted", *left.values()]
    done = subprocess.run(command, capture_output=True, cwd=Path(__file__).parent.parent, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = json.loads(done.stdout)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name] == value, name


@no_round
@both_boosters
@pytest.mark.parametrize("case", ["chooses", "stops by valid"])
def test_run_again_when_all_is_done(of, case, tmp_path):
    first = go(of, case, tmp_path)
    assert lo.resume(tmp_path).rounds > 0
    assert go(of, case, tmp_path) == first


@no_round
@both_boosters
def test_another_metric_after_the_stop(of, tmp_path):
    """The choice so far is of no use then, and that is said."""
    with pytest.raises(Stopped):
        go(of, "chooses", tmp_path, until(11))
    there = lo.resume(tmp_path)
    assert there.state["choice"]["trees"] == there.rounds == 9
    there.state["choice"]["tolerance"] = 0.5
    checkpoints.write(tmp_path, there.state, there.model.read_bytes(), there.model.suffix, 2)
    with pytest.warns(lo.LambdaObjectivesWarning, match=r"early stopping begins anew at round 10.*another tolerance"):
        trees, best, _ = go(of, "chooses", tmp_path)
    assert len(trees) == best[0] + 9


@both_boosters
@pytest.mark.parametrize("first", [True, False], ids=["checkpoint first", "early stopping first"])
def test_a_model_of_another_training_below(of, first, tmp_path):
    """Rounds count from where the objective began; the order of the callbacks does not matter."""
    base = fit(of, lo.Objective(RANK), tmp_path / "base", 5)
    stop_kind = lo.lightgbm.early_stopping if of == "lightgbm" else lo.xgboost.EarlyStopping
    save_kind = lo.lightgbm.checkpoint if of == "lightgbm" else lo.xgboost.Checkpoint

    def going_on(folder, rounds, tell=None):
        there = lo.resume(folder)
        objective = lo.Objective(lo.RankNet(), state=there.state)
        stop, save = stop_kind(objective, 30, metric="cost/ranknet"), save_kind(objective, folder, every=2)
        both = [save, stop] if first else [stop, save]
        model = fit(of, objective, folder, rounds - there.rounds, save=both, model=there.model or base)
        return stop.best.trees, stop.best.value, model.best_iteration, model.num_trees() if of == "lightgbm" else 0

    wanted = going_on(tmp_path / "whole", 12)
    going_on(tmp_path / "parts", 7)
    assert lo.resume(tmp_path / "parts").state["choice"]["start"] == 5
    assert lo.resume(tmp_path / "parts").rounds == 6
    assert going_on(tmp_path / "parts", 12) == wanted


def test_ranker(tmp_path):
    """LightGBM's estimators take the callback too."""

    def script(rounds):
        there = lo.resume(tmp_path)
        objective = lo.Objective(RANK, state=there.state)
        model = lgb.LGBMRanker(objective=objective, n_estimators=rounds - there.rounds, n_jobs=1, verbosity=-1)
        save = lo.lightgbm.checkpoint(objective, tmp_path, every=2)
        return model.fit(TABLE.X, TABLE.y, group=TABLE.group, callbacks=[save], init_model=there.model)

    script(5)
    assert lo.resume(tmp_path).rounds == 4
    assert script(8).booster_.num_trees() == 8


# -------------------------------------------------------------------------------------------------------------- killed

# where in the write of a checkpoint: the file of the model, then that of the state, then old ones are removed
MIDST = [("fsync", 1), ("replace", 1), ("fsync", 3), ("replace", 2), ("unlink", 1), ("unlink", 2)]


@pytest.mark.slow
@no_round
@both_boosters
def test_killed_ten_times(of, tmp_path):
    """At rounds drawn at random, about half of them in the midst of a write: the same model in the end."""
    seed, rounds, case = random.SystemRandom().randrange(10**6), 60, "chooses"
    print(f"seed {seed}")  # noqa: T201
    draw, wanted, found, kills = random.Random(seed), go(of, case, None, rounds=rounds), None, 0
    context = multiprocessing.get_context("forkserver")  # a process of its own each time, without the imports
    context.set_forkserver_preload(["tests.interrupted", "lambda_objectives.kernels.cpu"])
    midst = draw.sample(MIDST, 5)
    while found is None:
        begun, target, hold = lo.resume(tmp_path).rounds, None, None
        assert begun % EVERY == 0
        if kills < 10:
            if (
                kills % 2 and 2 * EVERY <= begun < rounds - 2 * EVERY
            ):  # there is something to remove, and a write to come
                hold = (begun + EVERY, *midst[kills // 2])
            else:
                target = min(begun + draw.randint(1, 2 * EVERY), rounds - 2) if kills else 2 * EVERY + 2
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=killed, args=(of, case, tmp_path, there, rounds, hold))
        process.start()
        there.close()
        told = None
        while not isinstance(told, list):
            told = here.recv()
            if told in ("writing", target):
                time.sleep(0 if told == "writing" else draw.uniform(0, 0.005))  # in this round or one of the next
                process.kill()
                break
        process.join()
        if process.exitcode == -signal.SIGKILL:  # else it was done before, or is to be done
            kills += 1
        elif kills == 10:
            found = told
    assert found == wanted
    assert lo.resume(tmp_path).rounds == rounds - EVERY
    assert len(names(tmp_path)) == 4
