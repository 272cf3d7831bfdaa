"""A script that trains, may be stopped at any moment, and goes on when it is run again. For test_checkpoints.

``python -m tests.interrupted FOLDER/CASE.BOOSTER.WHEN ...`` finishes these trainings; their trees as JSON.
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import lambda_objectives as lo
from lambda_objectives import checkpoints
from tests.data import Table

ROUNDS, EVERY = 24, 3
TABLE, VALID = Table.random(30, seed=3), Table.random(8, seed=9)
RANK, QUALITY = lo.LambdaRank(lo.NDCG(10)), lo.LambdaRank(lo.NDCG(10), label="quality")
LGB = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 4, "metric": "None"}
XGB = {"nthread": 1, "min_child_weight": 1e-3, "max_depth": 2, "eta": 0.1}
BOUND = [lo.Constraint(QUALITY, at_most=2.0)]


class Case(NamedTuple):
    """How to train: on a validation set as well, with early stopping after so many rounds."""

    spec: Any
    valid: bool = False
    patience: int | None = None


CASES = {
    "rank": Case(RANK),
    "auto": Case(lo.AugmentedLagrangian(RANK, BOUND)),
    "carry": Case(lo.AugmentedLagrangian(RANK, BOUND, update="carry", mu=2.0)),
    "follow": Case(lo.AugmentedLagrangian(RANK, BOUND, update="carry", mu=2.0, follow="valid"), valid=True),
    "damp": Case(lo.Decorrelated(lo.QueryRMSE(), "place", weight=300.0, damp=True)),
    "draws": Case(lo.WeightedSum([lo.XENDCG(), lo.YetiRank(lo.NDCG(10))], [1.0, 0.5])),
    "learns": Case(lo.UnbiasedRank(lo.NDCG(10), "shown")),
    # the best round is neither the first nor the last of most of these
    "chooses": Case(lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=2.6)]), patience=ROUNDS),
    "chooses by valid": Case(lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=1.5)]), True, ROUNDS),
    "stops": Case(lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=2.6)]), patience=5),
    "stops by valid": Case(RANK, valid=True, patience=5),
}


class Rounds(xgb.callback.TrainingCallback):
    """Says how many rounds are done."""

    def __init__(self, tell, before):
        super().__init__()
        self.tell, self.before = tell, before

    def after_iteration(self, model, epoch, evals_log):
        self.tell(self.before + epoch + 1)
        return False


def sets(make, of_table, case):
    """The training data, and the validation set if there is one."""
    shown = np.concatenate([np.arange(n) for n in of_table.group])
    train = lo.attach(make(of_table), {**of_table.columns, "shown": shown})
    return train, lo.attach(make(VALID), VALID.columns) if case.valid else None


def go(of, case, folder, tell=None, rounds=ROUNDS, every=EVERY, params=None):
    """Begin a training or go on with it, to its end: the trees and what early stopping says of them."""
    case, tells = CASES[case], []
    there = lo.resume(folder) if folder else checkpoints.Checkpoint(None, None, 0)
    objective, stop = lo.Objective(case.spec, state=there.state), None
    left = rounds - there.rounds
    if of == "lightgbm":
        if tell:
            tells.append(lambda env: tell(there.rounds + env.iteration - env.begin_iteration + 1))
        if folder:
            tells.append(lo.lightgbm.checkpoint(objective, folder, every=every))
        if case.patience:
            tells.append(stop := lo.lightgbm.early_stopping(objective, case.patience))
        train, valid = sets(lambda t: lgb.Dataset(t.X, t.y, group=t.group), TABLE, case)
        more = {} if valid is None else {"valid_sets": [valid], "feval": objective.metrics}
        params = {**LGB, **(params or {}), "objective": objective}
        model = lgb.train(params, train, left, init_model=there.model, callbacks=tells, **more)
        trees = model.model_to_string().split("\nTree=")[1:]
        trees = [tree.split("\n\n")[0].partition("\n")[2] for tree in trees]
    else:
        if tell:
            tells.append(Rounds(tell, there.rounds))
        if folder:
            tells.append(lo.xgboost.Checkpoint(objective, folder, every=every))
        if case.patience:
            tells.append(stop := lo.xgboost.EarlyStopping(objective, case.patience))
        train, valid = sets(lambda t: xgb.DMatrix(t.X, t.y, qid=t.qid), TABLE, case)
        more = {} if valid is None else {"evals": [(valid, "v")], "custom_metric": objective.metrics}
        more |= {"verbose_eval": False, "obj": objective, "xgb_model": there.model, "callbacks": tells}
        model = xgb.train({**XGB, **(params or {})}, train, left, **more)
        # the model as XGBoost writes it, but for the attributes
        saved = json.loads(model.save_raw("json"))["learner"]["gradient_booster"]
        trees = saved.get("gbtree", saved)["model"]["trees"]
    best = [] if stop is None else [stop.best.trees, stop.best.value, stop.best.margins, model.best_iteration]
    return json.loads(json.dumps([trees, best, objective.state()]))


def killed(of, case, folder, pipe, rounds, hold=None):
    """The same for a process that is to be killed; tells its rounds, and when it holds still in the midst of a write.

    hold: the round of a checkpoint, and the name of a function of os at whose call for it, of such a number, to stop.
    """
    warnings.simplefilter("ignore")
    if hold is not None:
        of_round, name, number = hold
        real, calls = getattr(os, name), []

        def held(path, *more):
            calls.append(path)
            if len(calls) == number:
                pipe.send("writing")
                time.sleep(60)
            return real(path, *more)

        def tell(round):
            pipe.send(round)
            if round == of_round:
                setattr(os, name, held)
    else:
        tell = pipe.send
    pipe.send(go(of, case, folder, tell, rounds))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {}
    for name in sys.argv[1:]:
        case, of, _ = Path(name).name.split(".")
        found[Path(name).name] = go(of, case, name)
    sys.stdout.write(json.dumps(found))
