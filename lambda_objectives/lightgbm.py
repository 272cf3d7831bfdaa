"""LightGBM: reading its data sets, refusing what it breaks in silence, shaping what it is given back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import lightgbm
import numpy as np

from lambda_objectives.arrays import check_order, nearest
from lambda_objectives.columns import add_columns, borders_of_part, columns_of
from lambda_objectives.lightgbm_checkpoint import checkpoint as checkpoint
from lambda_objectives.meeting import of_lightgbm
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.stopping import Choice
from lambda_objectives.terms import Reading, Term
from lambda_objectives.warn import warn, warn_small_hessian
from lambda_objectives.workers import Workers

Booster = lightgbm.Booster
POSITION = "position"  # the column under which terms find a Dataset's own positions
ALIASES = {
    "boosting": ("boosting_type", "boost"),
    "num_threads": ("num_thread", "nthread", "nthreads", "n_jobs"),
    "num_machines": ("num_machine",),
    "tree_learner": ("tree", "tree_type", "tree_learner_type"),
    "learning_rate": ("shrinkage_rate", "eta"),
    "min_sum_hessian_in_leaf": ("min_sum_hessian_per_leaf", "min_sum_hessian", "min_hessian", "min_child_weight"),
    "lambdarank_norm": (),
    "lambdarank_truncation_level": (),
    "lambdarank_position_bias_regularization": (),
    "sigmoid": (),
    "label_gain": (),
    "pos_bagging_fraction": ("pos_sub_row", "pos_subsample", "pos_bagging"),
    "neg_bagging_fraction": ("neg_sub_row", "neg_subsample", "neg_bagging"),
    "is_unbalance": ("unbalance", "unbalanced_sets"),
    "scale_pos_weight": (),
}
UNUSED = {  # parameter -> (its default, what to do instead)
    "lambdarank_norm": (True, "LambdaRank(score_gap_norm=..., log_norm=...)"),
    "lambdarank_truncation_level": (30, "LambdaRank(truncation=...)"),
    "lambdarank_position_bias_regularization": (0.0, "UnbiasedRank(form='additive', regularization=...)"),
    "sigmoid": (1.0, "LambdaRank(sigma=...)"),
    "label_gain": (None, "NDCG(gain=[...])"),
    "pos_bagging_fraction": (1.0, "weights or bagging_fraction"),
    "neg_bagging_fraction": (1.0, "weights or bagging_fraction"),
    "is_unbalance": (False, "weights"),
    "scale_pos_weight": (1.0, "weights"),
}


def owns(data: Any) -> bool:
    """Whether this adapter reads such data."""
    return isinstance(data, lightgbm.Dataset)


def attach(data: lightgbm.Dataset, columns: dict[str, Any], qid: Any) -> lightgbm.Dataset:
    """Attach columns to a Dataset."""
    label = data.label if getattr(data, "_handle", getattr(data, "handle", None)) is None else data.get_label()
    n = len(label) if label is not None and hasattr(label, "__len__") else None
    for rows in (data.data, data.label):  # where they are there still
        check_order("column", columns, "the Dataset", rows)
    add_columns(data, n, columns, qid)
    return data


def read(data: lightgbm.Dataset, needs_queries: bool) -> Queries:
    """Read labels, queries, weights and columns of a Dataset, or of the part of one that cross-validation makes."""
    labels = data.get_label()
    if labels is None:
        raise ValueError("label: the Dataset has none; give label=, one number a row")
    n = len(labels)
    columns = columns_of(data)
    group = data.get_group()
    ptr = None if group is None else np.concatenate([[0], np.cumsum(group, dtype=np.int64)])
    position = data.get_position() if hasattr(data, "get_position") else None
    rows = getattr(data, "used_indices", None)
    if columns.ptr is not None:
        ptr = columns.ptr
    if rows is not None and data.reference is not None:
        rows, whole = np.asarray(rows), columns_of(data.reference)
        group = data.reference.get_group()
        borders = whole.ptr if group is None or whole.ptr is not None else np.concatenate([[0], np.cumsum(group)])
        if borders is not None and columns.ptr is None:
            advice = (
                "lightgbm.cv splits rows unless told otherwise: folds=sklearn.model_selection.GroupKFold(n_splits=5)"
            )
            part = borders_of_part(borders, rows, needs_queries, advice)
            ptr = ptr if part is None else part
        columns = whole.part(rows, columns)
        if hasattr(data, "get_position") and data.reference.get_position() is not None:
            position = np.asarray(data.reference.get_position())[rows]
    named = dict(columns)
    if position is not None:
        named.setdefault(POSITION, np.asarray(position, dtype=np.float64))
    if ptr is not None and ptr[-1] != n:
        raise ValueError(f"group: the queries hold {ptr[-1]} rows, the Dataset has {n}")
    for name, values in named.items():
        if len(values) != n:
            raise ValueError(f"column {name!r} has {len(values)} values, the Dataset has {n} rows")
    weights = data.get_weight()
    if weights is not None:
        weights = np.array(weights, dtype=np.float64)
        weights[weights > 9e37] = np.inf  # what LightGBM makes of infinity
    return Queries.from_arrays(labels, group=None if ptr is None else np.diff(ptr), weights=weights, columns=named)


def check_names(params: Mapping[str, Any]) -> None:
    """Refuse parameters that LightGBM does not know: it says so on stdout at most, and goes on."""
    aliases: Mapping[str, Sequence[str]] = getattr(
        getattr(lightgbm.basic, "_ConfigAliases", None), "_get_all_param_aliases", dict
    )()
    known = {name for main, others in aliases.items() for name in (main, *others)}
    for name in params:
        if known and name not in known:
            hint = nearest(name, aliases) or nearest(name, known)
            raise ValueError(f"{name}={params[name]!r}: LightGBM has no such parameter{hint}")


def check(booster: Any, data: lightgbm.Dataset | None, terms: Sequence[Term]) -> None:
    """Refuse or warn about settings that LightGBM breaks or ignores beside a custom objective."""
    ranks = any(term.needs_order for term in terms)
    reads_position = any(getattr(term, "position", None) == POSITION for term in terms)
    data = booster.train_set if data is None else data
    params = {**(data.params or {}), **booster.params}
    if params.get("bagging_by_query") in (True, 1, "true", "True"):
        raise ValueError(
            "bagging_by_query=True trains on the wrong rows beside any custom objective (LightGBM 4.6 to 4.7, without "
            "a word); leave it out and use bagging_fraction"
        )
    if _get(params, "boosting") == "dart":
        warn(
            "boosting='dart': the objective is given scores of the trees left after dropout, so costs in the history "
            "are not those of the whole model; use boosting='gbdt' if you read or act on them"
        )
    for name, (default, instead) in UNUSED.items():
        value = _get(params, name)
        if value is not None and (default is None or value != default):
            warn(f"{name}={value!r} has no effect beside a custom objective; use {instead}")
    if ranks and not reads_position and hasattr(data, "get_position") and data.get_position() is not None:
        warn(
            "position: LightGBM's correction for position bias has no effect beside a custom objective; "
            "UnbiasedRank(metric, 'position') has one"
        )


def check_hessian(booster: Any, total: float, rows: int) -> None:
    """Warn where min_sum_hessian_in_leaf is large against the Hessians."""
    value = _get(booster.params, "min_sum_hessian_in_leaf")
    warn_small_hessian("min_sum_hessian_in_leaf", float(1e-3 if value is None else value), total, rows)


def threads(booster: Any) -> int | None:
    """Number of threads that the user gave LightGBM, or None."""
    value = _get(booster.params, "num_threads")
    return int(value) if value is not None and int(value) > 0 else None


def workers(booster: Any) -> Workers:
    """The workers that LightGBM trains with."""
    machines = _get(booster.params, "num_machines")
    return of_lightgbm(1 if machines is None else int(machines), str(_get(booster.params, "tree_learner") or "serial"))


def evaluated(booster: Any) -> list[str]:
    """The data sets that are evaluated, which LightGBM does on those workers only that have rows of them."""
    return list(booster.name_valid_sets)


def learning_rate(booster: Any) -> float:
    """The learning rate of a booster."""
    value = _get(booster.params, "learning_rate")
    return 0.1 if value is None else float(value)


def keep(booster: Any, run: Run) -> None:
    """A LightGBM model has no place for the state of a training."""


def rounds(booster: Any) -> int:
    """Rounds that a booster has behind it."""
    return int(booster.current_iteration())


def metrics(readings: dict[str, Reading], primary: str) -> list[tuple[str, float, bool]]:
    """As feval returns them: the primary first, for `first_metric_only`."""
    names = sorted(readings, key=lambda name: (name != primary, name.startswith("cost/")))
    return [(name, readings[name].value, readings[name].maximise) for name in names]


def _get(params: dict[str, Any], name: str) -> Any:
    return next((params[key] for key in (name, *ALIASES[name]) if params.get(key) is not None), None)


def early_stopping(
    objective: Any, rounds: int, data: Any = None, metric: str | None = None, tolerance: float = 0.0
) -> EarlyStopping:
    """Stop when no better round comes, and return the model at the best round that keeps to every bound.

    Of the rounds that keep to all bounds the one with the best metric is chosen; where none does, the one that breaks
    them the least, with a warning that gives each constraint's margin. A round that keeps to a bound only because that
    had not been broken yet, by scores that were small, comes after all that do so later. Rounds in which an
    `AugmentedLagrangian` does not yet ask for all that is wanted do not count as waiting, nor do those that come closer
    to the bounds than any since they were broken most. With any other spec this is
    early stopping by the primary metric, in its own direction; with `Decorrelated` by the metric and the penalty, where
    these go together.

    Parameters
    ----------
    objective
        The `Objective` that is trained.
    rounds
        Stop after so many rounds without a better one; as many as there are to train never stops and only chooses.
    data
        The Dataset to watch; None for the first validation set, without one the training data.
    metric
        The reading to watch, such as ``"ndcg@10"``; None for the primary term's metric.
    tolerance
        Share of a bound by which it may be broken.

    Returns
    -------
    A callback for `lightgbm.train` and `lightgbm.cv` (there means over the folds count); afterwards it has `best`, with
    `trees`, `value` and `margins`. Good for any number of trainings, one after the other. Where `checkpoint` writes, a
    training that goes on from what `lo.resume` returns goes on with the choice as well.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range; while training, if the validation set is not evaluated by `objective.metrics`, and
        with dart, where no earlier round is to be had.

    Examples
    --------
    >>> import lightgbm as lgb, numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)); y = (X[:, 0] + rng.normal(size=400) > 1) * 1.0
    >>> train = lo.attach(lgb.Dataset(X, y, group=[20] * 20), quality=(X[:, 1] > 1) * 1.0)
    >>> quality = lo.Constraint(lo.LambdaRank(lo.NDCG(10), label="quality"), at_most=0.8)
    >>> objective = lo.Objective(lo.AugmentedLagrangian(lo.LambdaRank(lo.NDCG(10)), [quality]))
    >>> stop = lo.lightgbm.early_stopping(objective, 40)
    >>> booster = lgb.train({"objective": objective, "verbosity": -1}, train, 40, callbacks=[stop])
    >>> booster.num_trees() == stop.best.trees, stop.best.margins["quality.ndcg@10"] >= 0
    (True, True)
    """
    return EarlyStopping(Choice(objective, rounds, data, metric, tolerance))


class EarlyStopping:
    """What `early_stopping` returns."""

    def __init__(self, choice: Choice) -> None:
        # LightGBM looks for these on the object itself: 30 comes after its log and record of evaluations
        self.order, self.before_iteration = 30, False
        self._choice = choice

    @property
    def best(self) -> Any:
        """The round that was chosen: its `trees`, `value` (greater is better) and `margins`."""
        return self._choice.best

    def __call__(self, env: Any) -> None:
        """After a round."""
        folds = getattr(env.model, "boosters", None)
        boosters = [env.model] if folds is None else folds
        choice, trees = self._choice, env.iteration - env.begin_iteration + 1
        if trees == 1:
            if any(_get(booster.params, "boosting") == "dart" for booster in boosters):
                raise ValueError(
                    "early_stopping: with boosting='dart' no earlier round is to be had, its trees change later; train "
                    "with boosting='gbdt', or without early_stopping"
                )
            evaluates = folds is not None or any(getattr(b, "valid_sets", ()) for b in boosters)
            choice.begin(boosters, evaluates, env.begin_iteration)
        stop = choice.offer(trees, env.evaluation_result_list)
        if stop or env.iteration == env.end_iteration - 1:
            if choice.watched[0].lags:
                last = [_after_last(w.run, b) for w, b in zip(choice.watched, boosters, strict=True)]
                choice.offer(trees, env.evaluation_result_list, last)
            best = choice.finish()
            raise lightgbm.callback.EarlyStopException(choice.start + best.trees - 1, _results(best.results))


def _results(rows: Any) -> list[Any]:
    """What LightGBM knew of a round, as it wants it back: a checkpoint keeps plain lists of it."""
    kind = getattr(lightgbm, "EvalResult", None)  # since 4.7
    return [tuple(row) if kind is None else kind(*row) for row in rows or ()]


def _after_last(run: Run, booster: Any) -> dict[str, Reading]:
    """All there is to say of the training data after the last tree; logged."""
    scores: list[Any] = []

    def take(predictions: Any, data: Any) -> tuple[str, float, bool]:
        scores.append(predictions.copy())
        return "", 0.0, True

    booster.eval_train(take)
    readings = run.evaluate(scores[0])
    run.record(readings)
    return readings
