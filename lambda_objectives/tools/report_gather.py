"""The facts of a report, collected from a booster and its objective, or from an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lambda_objectives.arrays import brief
from lambda_objectives.objective import Objective
from lambda_objectives.specs import AugmentedLagrangian, as_spec
from lambda_objectives.tools.plots_bounds import MULTIPLIER, bounded
from lambda_objectives.tools.plots_common import shown
from lambda_objectives.tools.report_facts import described, gains, versions

ALONE = "of an estimator of lo.sklearn, which makes its data sets itself, give it alone: lo.report.gather(estimator)"


def gather(
    booster: Any,
    objective: Objective | None = None,
    data: Mapping[str, Any] | None = None,
    best_round: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    judge: str | None = None,
    warnings: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """Collect what there is to report of a training of one's own.

    Parameters
    ----------
    booster
        What ``lightgbm.train`` or ``xgboost.train`` returned; or a fitted estimator of `lo.sklearn`, alone.
    objective
        The Objective that was trained.
    data
        The data sets by name: the Dataset or DMatrix that was trained on, and those that ``objective.metrics``
        evaluated, ``{"train": train, "valid": valid}``.
    best_round
        The round that is kept, from 1; None for the booster's best iteration, else its last one.
    parameters
        The booster's parameters, by name; of an estimator None for its own.
    judge
        The name of the data set on which bounds are judged; None for the one by which early stopping chose the round,
        else the first one. They may be broken by the tolerance of early stopping.
    warnings
        What was warned about, texts or warnings; None leaves it out of the page.

    Returns
    -------
    dict, as `page` and `write` take it; add to it or change it.

    Raises
    ------
    KeyError
        For a data set that the objective has not been used with.
    TypeError, ValueError
        For what is no booster, no Objective, no data set, and for a judge that is none of the data sets.

    Notes
    -----
    Histories of training data have a round's values before its tree; here they are moved, so that round r is after r
    trees. The last round of the training data is then known only where early stopping, or `evals`, evaluated it.
    An estimator does not keep its data: nothing is told of rows and labels.

    Examples
    --------
    >>> import lightgbm as lgb, lambda_objectives as lo
    >>> shop = lo.datasets.product_search(queries=100, seed=0)
    >>> train = lgb.Dataset(shop.X, shop.y, group=shop.group)
    >>> objective = lo.Objective(lo.LambdaRank(lo.NDCG(10)), watch=lo.MAP())
    >>> booster = lgb.train({"objective": objective, "verbosity": -1}, train, 5)
    >>> facts = lo.report.gather(booster, objective, {"train": train})
    >>> facts["data"]["train"]["queries"], list(facts["curves"])
    (100, ['ndcg@10', 'map'])

    >>> ranker = lo.sklearn.LightGBMRanker(lo.LambdaRank(lo.NDCG(10)), n_estimators=5)
    >>> lo.report.gather(ranker.fit(shop.X, shop.y, group=shop.group))["title"]
    'LightGBMRanker, LambdaRank'
    """
    if hasattr(booster, "booster_") and hasattr(booster, "history_"):
        if objective is not None or data is not None:
            raise TypeError(
                f"booster is a {type(booster).__name__}, whose objective and data sets are its own: give it alone, "
                "lo.report.gather(estimator), or what lightgbm.train or xgboost.train returned with objective and data"
            )
        return _of_estimator(booster, best_round, parameters, judge, warnings)
    objective, data = _checked(booster, objective, data)
    spec, kind = as_spec(objective.spec), _kind(booster)
    kept = _rounds(booster) if best_round is None else best_round
    histories = {role: _after(objective, role, there) for role, there in data.items()}
    tolerances = {role: objective.stopped_by(there) for role, there in data.items()}
    stopped_by, tolerance = next(((r, each) for r, each in tolerances.items() if each is not None), (None, 0.0))
    return {
        "title": f"{kind}, {type(objective.spec).__name__}",
        "headline": [_headline(kept, stopped_by)],
        "best_round": kept,
        "objective": repr(objective.spec),
        "data": {role: described(there, spec) for role, there in data.items()},
        "importance": gains(booster, kept),
        "parameters": _parameters("Booster", parameters or {}, kind),
        **_by_round(objective, histories, kept, _judge(judge, stopped_by, histories), tolerance),
        **({} if warnings is None else {"warnings": [str(text) for text in warnings]}),
    }


def _of_estimator(
    estimator: Any, best_round: int | None, parameters: Mapping[str, Any] | None, judge: str | None, warnings: Any
) -> dict[str, Any]:
    """The same of an estimator, by what it keeps."""
    objective, booster, kind = estimator.objective_, estimator.booster_, _kind(estimator.booster_)
    kept = int(estimator.n_iter_) if best_round is None else best_round
    valid = {role: readings for role, readings in estimator.evals_result_.items() if readings}
    histories = {"train": _moved(estimator.history_), **valid}
    patient, bounds = estimator.early_stopping_rounds is not None, isinstance(objective.spec, AugmentedLagrangian)
    stopped_by = next(iter(valid), "train") if patient else "train" if bounds else None
    given = estimator.get_params(deep=False) if parameters is None else parameters
    found = gains(booster, kept)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) == len(found):
        found = dict(zip(map(str, names), found.values(), strict=True))
    return {
        "title": f"{type(estimator).__name__}, {type(objective.spec).__name__}",
        "headline": [_headline(kept, stopped_by)],
        "best_round": kept,
        "objective": repr(objective.spec),
        "importance": found,
        "parameters": _parameters("Estimator", {n: v for n, v in given.items() if v is not None and v != ()}, kind),
        **_by_round(objective, histories, kept, _judge(judge, stopped_by, histories), float(estimator.tolerance)),
        **({} if warnings is None else {"warnings": [str(text) for text in warnings]}),
    }


# -------------------------------------------------------------------------------------------------- what was given


def _checked(booster: Any, objective: Any, data: Any) -> tuple[Objective, Mapping[str, Any]]:
    """The objective and the data sets, if they are what they are to be."""
    if hasattr(objective, "booster_") or any(hasattr(there, "booster_") for there in _values(data)):
        raise TypeError(f"an estimator is in the place of the objective or of a data set: {ALONE}")
    if not (hasattr(booster, "feature_importance") or hasattr(booster, "num_boosted_rounds")):
        within = "; fit it first, or give the Booster in it with objective and data" if hasattr(booster, "fit") else ""
        raise TypeError(
            "booster must be the Booster that lightgbm.train or xgboost.train returned, or a fitted estimator of "
            f"lo.sklearn, found {brief(booster)}{within}"
        )
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be the Objective that was trained, found {brief(objective)}; {ALONE}")
    if not isinstance(data, Mapping) or not data:
        raise TypeError(
            'data must be the data sets by name, such as {"train": train, "valid": valid}, found '
            f"{brief(data)}; {ALONE}"
        )
    for role, there in data.items():
        if not hasattr(there, "get_label"):
            raise TypeError(f"data[{role!r}] must be a Dataset or a DMatrix, found {brief(there)}")
    return objective, data


def _values(data: Any) -> list[Any]:
    return list(data.values()) if isinstance(data, Mapping) else [data]


def _judge(judge: str | None, stopped_by: str | None, roles: Mapping[str, Any]) -> str:
    """The data set on which bounds are judged."""
    if judge is not None and judge not in roles:
        raise ValueError(f"judge={judge!r} is none of the data sets: there is {shown(roles)}")
    return judge or stopped_by or next(iter(roles))


def _kind(booster: Any) -> str:
    return "LightGBM" if hasattr(booster, "feature_importance") else "XGBoost"


def _rounds(booster: Any) -> int:
    """The best round, else the last one."""
    if hasattr(booster, "feature_importance"):
        return int(booster.best_iteration) if booster.best_iteration > 0 else int(booster.current_iteration())
    best = booster.attr("best_iteration")
    return int(booster.num_boosted_rounds()) if best is None else int(best) + 1


def _after(objective: Objective, role: str, data: Any) -> dict[str, list[float]]:
    """The history of a data set, after each round's tree."""
    try:
        history = objective.history(data)
    except KeyError as error:
        raise KeyError(
            f"data[{role!r}]: this objective has not been used with that data set, {brief(data)}: name the very data "
            f"sets that it was trained on or evaluated with; {ALONE}"
        ) from error
    try:
        objective.state(data)
    except KeyError:  # it was not trained on
        return history
    return _moved(history)


def _moved(history: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """The history of training data, all of it after the round's tree; multipliers are those of the round's tree."""
    return {name: values if name.startswith(MULTIPLIER) else values[1:] for name, values in history.items()}


# ----------------------------------------------------------------------------------------------------- what is told


def _headline(kept: int, stopped_by: str | None) -> str:
    return f"Round {kept} is kept{'' if stopped_by is None else f', chosen on {stopped_by}'}."


def _parameters(heading: str, given: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        heading: {name: value for name, value in given.items() if name != "objective"},
        "Versions": versions(kind),
    }


def _by_round(
    objective: Objective, histories: Mapping[str, Any], kept: int, judge: str, tolerance: float
) -> dict[str, Any]:
    """Curves, metrics of the round that is kept, and constraints."""
    spec = as_spec(objective.spec)
    curves: dict[str, dict[str, list[float]]] = {}
    final: dict[str, dict[str, dict[str, float]]] = {role: {} for role in histories}
    own = {getattr(term, "label", None) for term in spec.terms}
    watched: list[tuple[str, str | None]] = [(term.name, getattr(term, "label", None)) for term in spec.terms]
    watched += [(metric.name, None) for metric in objective.watch]
    for wanted, label in dict.fromkeys(watched):
        for role, history in histories.items():
            name = wanted if wanted in history else f"cost/{wanted}"
            if name not in history:
                continue
            curves.setdefault(name, {})[role] = list(history[name])
            if len(history[name]) >= kept:
                metric = name.removeprefix(f"{label}.") if label in own and label else name
                final[role].setdefault(label or "label", {})[metric] = history[name][kept - 1]
    facts = {"curves": curves, "metrics": {"model": {role: values for role, values in final.items() if values}}}
    return facts | _kept(spec, histories, kept, judge, tolerance) if isinstance(spec, AugmentedLagrangian) else facts


def _kept(
    spec: AugmentedLagrangian, histories: Mapping[str, Any], kept: int, judge: str, tolerance: float
) -> dict[str, Any]:
    """The constraints, and their multipliers."""
    found: dict[str, Any] = {}
    for role, history in histories.items():
        for constraint, line in zip(spec.constraints, bounded(history, spec), strict=True):
            bound = np.atleast_1d(line.bound)
            known = bound[np.isfinite(bound)]
            margins = history[f"margin/{constraint.label}"]
            c = found.setdefault(constraint.label, {
                "what": line.reading,
                "at_most" if constraint.sign > 0 else "at_least": float(known[-1]) if len(known) else float("nan"),
                "returned": {}, "margin": {}, "met": None, "by_round": {},
            })  # fmt: skip
            c["by_round"][role] = list(line.values)
            if len(margins) >= kept:
                c["returned"][role], c["margin"][role] = line.values[kept - 1], margins[kept - 1]
                if role == judge:
                    c["met"] = bool(margins[kept - 1] >= -tolerance)
    weights: dict[str, Any] = {}
    for history in histories.values():
        weights |= {n.removeprefix(MULTIPLIER): values for n, values in history.items() if n.startswith(MULTIPLIER)}
    return {"constraints": found, "judged_on": judge, "tolerance": tolerance, "multipliers": weights}
