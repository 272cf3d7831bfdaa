"""Checkpoints of LightGBM's trainings."""

from __future__ import annotations

from typing import Any

from lambda_objectives.checkpoints import Saver

ALIASES = {  # of what LightGBM begins anew when it goes on from a model
    "bagging_fraction": ("sub_row", "subsample", "bagging"),
    "bagging_freq": ("subsample_freq",),
    "feature_fraction": ("sub_feature", "colsample_bytree"),
    "feature_fraction_bynode": ("sub_feature_bynode", "colsample_bynode"),
    "extra_trees": ("extra_tree",),
    "boosting": ("boosting_type", "boost"),
    "linear_tree": ("linear_trees",),
}


def checkpoint(objective: Any, folder: Any, every: int = 10, keep: int = 2) -> Checkpointing:
    """Write a checkpoint every few rounds, from which a training that was stopped or killed goes on.

    A checkpoint is LightGBM's own model file with a JSON file beside it, which holds the state of the objective. It is
    there as a whole or not at all, whenever the process is killed. `lo.resume(folder)` finds the last one. The trees
    are those of a training that was never stopped, but for the settings named below.

    Parameters
    ----------
    objective
        The `Objective` that is trained.
    folder
        Where to write; made if it is not there. One training at a time has it for itself. Files of other names than
        ours, ``lambda_objectives-ROUND.txt`` and ``.json``, are left alone.
    every
        Rounds from one checkpoint to the next, those before a resume counted.
    keep
        How many stay; older ones go once a new one is complete.

    Returns
    -------
    A callback for `lightgbm.train` and LightGBM's estimators.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; before the first round in `lightgbm.cv`, where the folder holds checkpoints of
        another spec or of more rounds than the training begins with, and for a state without its model.
    FileExistsError
        If a file of one of our names is there and not ours.

    Notes
    -----
    The checkpoint of a round is written when the next round begins. The last round has none, so that the same script
    run again, when all is done, repeats the last few rounds and ends with the same model.

    `lo.lightgbm.early_stopping` goes on with its choice: a round before the stop can still be the one returned.
    LightGBM's own `early_stopping` begins anew, as do histories, records of evaluations and what is given by round,
    such as ``reset_parameter(learning_rate=[...])``.

    LightGBM begins its random draws anew when it goes on from a model. With `bagging_fraction` (and `bagging_freq`),
    `feature_fraction`, `feature_fraction_bynode`, `extra_trees`, GOSS, `boosting="dart"` and `use_quantized_grad` (but
    for ``stochastic_rounding=False``) the trees after a resume are other ones. So are those of
    `cegb_penalty_feature_coupled`, which forgets what has been paid for, and, in the last digits, of `linear_tree`. A
    warning says so. What a spec draws itself, as `YetiRank` does, goes by the round and stays the same. On several
    threads LightGBM promises the same trees twice, stopped or not, only with ``deterministic=True`` and
    ``force_row_wise=True`` (or ``force_col_wise=True``).

    On several machines the first one writes, to a folder that all of them must see.

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
    ...     return lgb.train(params, train, rounds - there.rounds, init_model=there.model, callbacks=[save])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = script(folder, 10)
    ...     lo.resume(folder).rounds, script(folder, 20).num_trees()
    (8, 20)
    """
    return Checkpointing(Saver(objective, folder, every, keep, ".txt"))


class Checkpointing:
    """What `checkpoint` returns."""

    def __init__(self, saver: Saver) -> None:
        # LightGBM looks for these on the object itself
        self.order, self.before_iteration = 0, True
        self._saver = saver

    def __call__(self, env: Any) -> None:
        """Before a round."""
        booster = env.model
        if hasattr(booster, "boosters"):
            raise ValueError("checkpoint: lightgbm.cv cannot go on from a model; leave it out there")
        if env.iteration == env.begin_iteration:
            self._saver.begin(booster.current_iteration(), _afresh(booster.params))
        else:
            self._saver.before_round(booster, lambda: booster.model_to_string(num_iteration=-1).encode())


def _afresh(params: dict[str, Any]) -> list[str]:
    """The settings with which a training that goes on from a model is another one."""

    def get(name: str) -> Any:
        return next((params[key] for key in (name, *ALIASES.get(name, ())) if params.get(key) is not None), None)

    def on(name: str) -> bool:
        return get(name) in (True, 1, "1", "true", "True", "+")

    def share(name: str) -> bool:
        return get(name) is not None and float(get(name)) < 1

    found = {
        "bagging_fraction": share("bagging_fraction") and float(get("bagging_freq") or 0) > 0,
        "feature_fraction": share("feature_fraction"),
        "feature_fraction_bynode": share("feature_fraction_bynode"),
        "extra_trees": on("extra_trees"),
        "goss": "goss" in (get("boosting"), get("data_sample_strategy")),
        "dart": get("boosting") == "dart",
        "use_quantized_grad": on("use_quantized_grad")
        and (get("stochastic_rounding") is None or on("stochastic_rounding")),
        "linear_tree": on("linear_tree"),
        "cegb_penalty_feature_coupled": get("cegb_penalty_feature_coupled") is not None,
    }
    return [name for name, applies in found.items() if applies]
