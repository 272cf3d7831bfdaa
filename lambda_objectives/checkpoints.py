"""Checkpoints of a training: a booster's model file with the state beside it, there as a whole or not at all."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lambda_objectives.arrays import brief, whole_number
from lambda_objectives.specs import as_spec
from lambda_objectives.warn import warn

MARK, FORMAT = "lambda_objectives", 1  # a state file begins with them, by which ours are known even if cut short
OURS = re.compile(r"lambda_objectives-(\d{6,})\.(json|txt|ubj)")
TEMPORARY = re.compile(r"lambda_objectives-\d{6,}\.(json|txt|ubj)\.\d+\.tmp")


class Checkpoint(NamedTuple):
    """Where a training can go on."""

    model: Path | None  # of the booster's own model file; None before the first checkpoint
    state: dict[str, Any] | None  # for Objective(spec, state=...)
    rounds: int  # that are done


class Damaged(Exception):
    """A state file that is not as it was written, or whose model is not; says what is wrong."""


def resume(folder: str | os.PathLike[str]) -> Checkpoint:
    """Find the last checkpoint in a folder, to go on from there; or to begin, where there is none.

    Parameters
    ----------
    folder
        The one that `lo.lightgbm.checkpoint` or `lo.xgboost.Checkpoint` writes to; it need not exist.

    Returns
    -------
    A named tuple: `model`, the path for `init_model` or `xgb_model`; `state`, for `Objective(spec, state=...)`;
    `rounds`, how many are done. Without a checkpoint None, None and 0, so that one script begins and goes on.

    Raises
    ------
    ValueError
        If `folder` is a file, or all checkpoints in it are damaged.

    Warns
    -----
    LambdaObjectivesWarning
        If the last checkpoint is damaged and an older one is whole: that one is returned.

    Examples
    --------
    >>> import tempfile, lightgbm as lgb, numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)); y = (X[:, 0] + rng.normal(size=400) > 1) * 1.0
    >>> def script(folder, rounds):
    ...     there, train = lo.resume(folder), lgb.Dataset(X, y, group=[20] * 20)
    ...     objective = lo.Objective(lo.LambdaRank(lo.NDCG(10)), state=there.state)
    ...     save = lo.lightgbm.checkpoint(objective, folder, every=4)
    ...     params = {"objective": objective, "verbosity": -1}
    ...     left = rounds - there.rounds
    ...     return there.rounds, lgb.train(params, train, left, init_model=there.model, callbacks=[save])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for rounds in (10, 20):
    ...         begun, model = script(folder, rounds)
    ...         print(begun, model.num_trees())
    0 10
    8 20
    """
    broken = []
    for path in _state_files(_folder(folder)):
        try:
            found = _read(path)
        except Damaged as damage:
            broken.append(str(damage))
        else:
            if broken:
                warn(f"{broken[0]}: going on from the checkpoint before it, of round {found.rounds}")
            return found
    if broken:
        raise ValueError(
            f"folder: no checkpoint in it is whole. {'; '.join(broken)}. To begin anew, delete them or name another "
            "folder"
        )
    return Checkpoint(None, None, 0)


class Saver:
    """Writes the checkpoints of a training, between its rounds.

    That of a round is written when the next one is about to begin: whatever else is done after a round, such as early
    stopping, is done by then. The last round has none: its model is what the training returns.

    Parameters
    ----------
    objective
        What is trained.
    folder
        Where to write.
    every
        Rounds from one checkpoint to the next.
    keep
        How many stay.
    suffix
        Of the model files: ".txt" or ".ubj".
    """

    def __init__(self, objective: Any, folder: Any, every: int, keep: int, suffix: str) -> None:
        if not hasattr(objective, "checkpoint"):
            raise TypeError(f"objective must be the Objective that is trained, found {brief(objective)}")
        self.objective, self.folder, self.suffix = objective, _folder(folder), suffix
        self.every, self.keep = whole_number("every", every, at_least=1), whole_number("keep", keep, at_least=1)

    def begin(self, trees: int, afresh: Sequence[str]) -> None:
        """Before the first round of a training; refuse what would go wrong later, or lose what is in the folder.

        Parameters
        ----------
        trees
            How many the booster has.
        afresh
            Settings whose random draws the booster begins anew when it goes on from a model.
        """
        state = self.objective.begins_from
        begun = 0 if state is None else int(state["rounds"])
        if begun and not trees:
            raise ValueError(
                f"state is of a training with {begun} rounds done, but the booster has no trees: give it the model "
                "too, resume(folder).model, as init_model= (LightGBM) or xgb_model= (XGBoost)"
            )
        check(self.folder, repr(as_spec(self.objective.spec)), begun)
        self.folder.mkdir(parents=True, exist_ok=True)  # what cannot be made is better known now than in a while
        for path in list(self.folder.iterdir()):
            if TEMPORARY.fullmatch(path.name):  # of a process that was killed
                path.unlink(missing_ok=True)
        if begun and afresh:
            warn(
                f"{', '.join(afresh)}: the booster does not keep in its model where these were, so that the trees from "
                "here on differ from those of a training that was never stopped; no better and no worse"
            )

    def before_round(self, booster: Any, model: Callable[[], bytes]) -> None:
        """Before any other round: write what was done up to now, if it is time to."""
        state = self.objective.checkpoint(booster)
        if state is not None and state["rounds"] % self.every == 0:
            write(self.folder, state, model(), self.suffix, self.keep)


def check(folder: Path, spec: str, begun: int) -> None:
    """Refuse a folder with checkpoints of another spec, or of a training farther on than the one that begins."""
    for path in _state_files(folder):
        try:
            found = _read(path)
        except Damaged:
            continue
        assert found.state is not None
        if found.state["spec"] != spec:
            raise ValueError(
                f"folder={str(folder)!r} holds checkpoints of another spec: of {found.state['spec']}, the objective "
                f"is of {spec}; name another folder, or delete this one"
            )
        if found.rounds > begun:
            raise ValueError(
                f"folder={str(folder)!r} holds a checkpoint of round {found.rounds}, the training begins at round "
                f"{begun}: go on from what lo.resume(folder) returns (its state to Objective(spec, state=...), its "
                "model to init_model= or xgb_model=), name another folder, or delete this one"
            )


def write(folder: Path, state: dict[str, Any], model: bytes, suffix: str, keep: int) -> None:
    """Write a checkpoint, then remove those that are not wanted any more.

    The state file comes last and names its model, so that one without the other is no checkpoint.
    """
    rounds = int(state["rounds"])
    path = folder / f"lambda_objectives-{rounds:06d}.json"
    if not _is_ours(path):
        raise FileExistsError(f"folder: {path} is there and no checkpoint of ours: move it, or name another folder")
    beside = path.with_suffix(suffix)
    entry = {"model": beside.name, "bytes": len(model), "crc32": zlib.crc32(model), "rounds": rounds, "state": state}
    _put(beside, model)
    _put(path, json.dumps({MARK: FORMAT, **entry}).encode())
    _remove_old(folder, rounds, keep)


def _remove_old(folder: Path, rounds: int, keep: int) -> None:
    """Leave the checkpoint just written, whole ones before it up to a number, and what is not ours."""
    # one of a later round can only be damaged: a training does not begin in a folder that is farther on
    known = [path for path in _state_files(folder) if _rounds(path) <= rounds and _is_ours(path)]
    stay = {path.stem for path in known[:keep]}
    # state files first: what remains if this is cut short is models that no state names
    files = sorted(folder.iterdir(), key=lambda path: path.suffix != ".json")
    for path in files:
        if OURS.fullmatch(path.name) and path.stem not in stay and _is_ours(path.with_suffix(".json")):
            path.unlink(missing_ok=True)


def _folder(folder: Any) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder must be a path, found {brief(folder)}: write a text, such as 'checkpoints'")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ValueError(f"folder={str(path)!r} is a file; name a folder, it is made if it is not there")
    return path


def _rounds(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def _state_files(folder: Path) -> list[Path]:
    """The state files in a folder, the last round first."""
    return sorted(_named(folder), key=_rounds, reverse=True)


def _named(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir() if folder.exists() else ():
        match = OURS.fullmatch(path.name)
        if match and match[2] == "json":
            yield path


def _is_ours(path: Path) -> bool:
    """Whether a state file is ours or not there: it begins as ours do, as far as it goes."""
    start = json.dumps({MARK: FORMAT})[:-2].encode()  # of any format
    if not path.exists():
        return True
    with path.open("rb") as file:
        found = file.read(len(start))
    return start.startswith(found)


def _read(path: Path) -> Checkpoint:
    """Read a checkpoint by its state file."""
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        raise Damaged(f"{path} is cut short, or no JSON") from None
    if not isinstance(found, dict) or found.get(MARK) != FORMAT:
        raise Damaged(f"{path} is no checkpoint that this version reads")
    model = path.with_name(str(found.get("model")))
    if not model.is_file():
        raise Damaged(f"{path} names the model file {model.name}, which is not there")
    content = model.read_bytes()
    if len(content) != found.get("bytes") or zlib.crc32(content) != found.get("crc32"):
        raise Damaged(f"{model} is not as it was written")
    return Checkpoint(model, found["state"], int(found["rounds"]))


def _put(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all, whatever happens meanwhile."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name is on the disk too; Windows has no such call
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
