"""Checkpoints of XGBoost's trainings."""

from __future__ import annotations

import json
from typing import Any

import xgboost

from lambda_objectives.checkpoints import Saver


class Checkpoint(xgboost.callback.TrainingCallback):  # type: ignore[misc]
    """Write a checkpoint every few rounds, from which a training that was stopped or killed goes on.

    A checkpoint is XGBoost's own model file with a JSON file beside it, which holds the state of the objective. It is
    there as a whole or not at all, whenever the process is killed. `lo.resume(folder)` finds the last one. The trees
    are those of a training that was never stopped, but for the settings named below.

    Parameters
    ----------
    objective
        The `Objective` that is trained.
    folder
        Where to write; made if it is not there. One training at a time has it for itself. Files of other names than
        ours, ``lambda_objectives-ROUND.ubj`` and ``.json``, are left alone.
    every
        Rounds from one checkpoint to the next, those before a resume counted.
    keep
        How many stay; older ones go once a new one is complete.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; before the first round in `xgboost.cv`, where the folder holds checkpoints of
        another spec or of more rounds than the training begins with, and for a state without its model.
    FileExistsError
        If a file of one of our names is there and not ours.

    Notes
    -----
    The checkpoint of a round is written when the next round begins. The last round has none, so that the same script
    run again, when all is done, repeats the last few rounds and ends with the same model. Its place among the callbacks
    does not matter. Of several workers the first one writes, to a folder that all of them must see.

    `lo.xgboost.EarlyStopping` goes on with its choice: a round before the stop can still be the one returned. XGBoost's
    own `EarlyStopping` begins anew, as do histories, `evals_result` and what is given by round, such as
    `LearningRateScheduler`.

    XGBoost begins its random draws anew when it goes on from a model file. With `subsample`, `colsample_bytree`,
    `colsample_bylevel`, `colsample_bynode` (but for ``seed_per_iteration=True`` from XGBoost 3.4 on) and with dropout
    the trees after a resume are other ones. So
    are those of ``tree_method="approx"``, whose bins come from the first Hessians of each training. A warning says so.
    What a spec draws itself, as `YetiRank` does, goes by the round and stays the same.

    Examples
    --------
    >>> import tempfile, numpy as np, xgboost as xgb, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)); y = (X[:, 0] + rng.normal(size=400) > 1) * 1.0
    >>> def script(folder, rounds):
    ...     there, train = lo.resume(folder), xgb.DMatrix(X, y, qid=np.repeat(range(20), 20))
    ...     objective = lo.Objective(lo.LambdaRank(lo.NDCG(10)), state=there.state)
    ...     save, params = lo.xgboost.Checkpoint(objective, folder, every=4), {"min_child_weight": 1e-3}
    ...     rounds -= there.rounds
    ...     return xgb.train(params, train, rounds, obj=objective, xgb_model=there.model, callbacks=[save])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = script(folder, 10)
    ...     lo.resume(folder).rounds, script(folder, 20).num_boosted_rounds()
    (8, 20)
    """

    def __init__(self, objective: Any, folder: Any, every: int = 10, keep: int = 2) -> None:
        super().__init__()
        self._saver = Saver(objective, folder, every, keep, ".ubj")

    def before_training(self, model: Any) -> Any:
        """Refuse what would go wrong later."""
        if hasattr(model, "cvfolds"):
            raise ValueError("Checkpoint: xgboost.cv cannot go on from a model; leave it out there")
        if _writes():
            self._saver.begin(model.num_boosted_rounds(), _afresh(model))
        return model

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Before a round."""
        if epoch > 0 and _writes():
            self._saver.before_round(model, lambda: bytes(model.save_raw("ubj")))
        return False


def _writes() -> bool:
    return int(xgboost.collective.get_rank()) == 0


def _afresh(booster: Any) -> list[str]:
    """The settings with which a training that goes on from a model is another one."""
    learner = json.loads(booster.save_config())["learner"]
    config = learner["gradient_booster"]
    dropout, trees = config.get("dart_train_param", {}), config.get("gbtree", config)
    parameters = trees.get("tree_train_param", {})
    names: tuple[str, ...] = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")
    by_round = learner["generic_param"].get("seed_per_iteration") in ("1", "true")
    if by_round and tuple(map(int, xgboost.__version__.split(".")[:2])) >= (3, 4):
        names = ()
    found = [name for name in names if float(parameters.get(name, 1)) < 1]
    found += [name for name in ("rate_drop", "one_drop") if float(dropout.get(name, 0)) > 0]
    if trees.get("gbtree_train_param", {}).get("tree_method") == "approx":
        found.append("tree_method='approx'")
    return found
