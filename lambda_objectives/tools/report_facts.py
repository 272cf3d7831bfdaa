"""What a report has to say of data sets, boosters and trainings, as plain mappings."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from lambda_objectives.columns import columns_of
from lambda_objectives.objective import Objective
from lambda_objectives.specs import AugmentedLagrangian, as_spec
from lambda_objectives.tools.plots_bounds import MULTIPLIER, bounded
from lambda_objectives.version import __version__

FEW = 12  # values of a label that are counted one by one


def describe(labels: Mapping[str, Any], group: Any, **more: Any) -> dict[str, Any]:
    """What there is to say of a data set.

    Parameters
    ----------
    labels
        (n,) labels by name.
    group
        (Q,) sizes of the queries; None for rows without queries.
    more
        ``file`` and ``features``, and what else there is.

    Returns
    -------
    dict, as `lo.report.page` takes it.
    """
    n, group = len(next(iter(labels.values()))), None if group is None else np.asarray(group, dtype=np.int64)
    facts: dict[str, Any] = {**more, "rows": n}
    if group is not None:
        facts["queries"] = len(group)
        facts["rows_per_query"] = {
            "least": int(group.min()), "median": float(np.median(group)), "mean": float(group.mean()),
            "most": int(group.max()),
        }  # fmt: skip
    facts["label_values"] = {name: _label(np.asarray(column), group) for name, column in labels.items()}
    return facts


def _label(column: Any, group: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= FEW:
        facts["counts"] = {f"{value:g}": int(n) for value, n in zip(values, counts, strict=True)}
    else:
        at = np.quantile(column, [0, 0.25, 0.5, 0.75, 1])
        facts["spread"] = dict(
            zip(("least", "lower quarter", "median", "upper quarter", "most"), at.tolist(), strict=True)
        )
        facts["spread"]["mean"] = float(column.mean())
    if group is not None:
        starts = np.cumsum(group) - group
        facts["without_relevant"] = int((np.maximum.reduceat(column, starts) <= 0).sum())
    return facts


def gains(booster: Any, rounds: int | None = None) -> dict[str, float]:
    """By how much the splits on each feature lowered the loss in all, of either booster's trees."""
    if hasattr(booster, "feature_importance"):
        found = booster.feature_importance("gain", iteration=rounds)
        return dict(zip(booster.feature_name(), map(float, found), strict=True))
    handle = booster if rounds is None or rounds >= booster.num_boosted_rounds() else booster[:rounds]
    names = handle.feature_names or [f"f{i}" for i in range(handle.num_features())]
    found = handle.get_score(importance_type="total_gain")
    return {name: float(found.get(name, 0.0)) for name in names}


def gather(
    booster: Any,
    objective: Objective,
    data: Mapping[str, Any],
    best_round: int | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Collect what there is to report of a training of one's own.

    Parameters
    ----------
    booster
        What ``lightgbm.train`` or ``xgboost.train`` returned.
    objective
        The Objective that was trained.
    data
        The data sets by name: the Dataset or DMatrix that was trained on, and those that ``objective.metrics``
        evaluated, ``{"train": train, "valid": valid}``.
    best_round
        The round that is kept, from 1; None for the booster's best iteration, else its last one.
    parameters
        The booster's parameters, by name.

    Returns
    -------
    dict, as `page` and `write` take it; add to it or change it.

    Raises
    ------
    KeyError
        For a data set that the objective has not been used with.

    Notes
    -----
    Histories of training data have a round's values before its tree; here they are moved, so that round r is after r
    trees. The last round of the training data is then known only where early stopping, or `evals`, evaluated it.
    Constraints are judged on the first of the data sets.

    Examples
    --------
    >>> import lightgbm as lgb, lambda_objectives as lo
    >>> shop = lo.datasets.product_search(queries=100, seed=0)
    >>> train = lgb.Dataset(shop.X, shop.y, group=shop.group)
    >>> objective = lo.Objective(lo.LambdaRank(lo.NDCG(10)))
    >>> booster = lgb.train({"objective": objective, "verbosity": -1}, train, 5)
    >>> facts = lo.report.gather(booster, objective, {"train": train})
    >>> facts["data"]["train"]["queries"], list(facts["curves"])
    (100, ['ndcg@10'])
    """
    spec = as_spec(objective.spec)
    kind, last = (
        ("LightGBM", _lightgbm_rounds) if hasattr(booster, "feature_importance") else ("XGBoost", _xgboost_rounds)
    )
    kept = last(booster) if best_round is None else best_round
    histories = {role: _after(objective, data_set) for role, data_set in data.items()}
    facts: dict[str, Any] = {
        "title": f"{kind}, {type(objective.spec).__name__}",
        "headline": [f"Round {kept} is kept."],
        "best_round": kept,
        "objective": repr(objective.spec),
        "data": {role: _described(data_set, spec) for role, data_set in data.items()},
        "importance": gains(booster, kept),
        "parameters": {
            "Booster": {name: value for name, value in (parameters or {}).items() if name != "objective"},
            "Versions": {
                "lambda_objectives": __version__,
                kind.lower(): str(getattr(sys.modules.get(kind.lower()), "__version__", "")),
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        },
    }
    curves: dict[str, dict[str, list[float]]] = {}
    final: dict[str, dict[str, dict[str, float]]] = {role: {} for role in data}
    for term in spec.terms:
        for role, history in histories.items():
            name = term.name if term.name in history else f"cost/{term.name}"
            curves.setdefault(name, {})[role] = history[name]
            if len(history[name]) >= kept:
                label = getattr(term, "label", None)
                metric = name.removeprefix(f"{label}.") if label else name
                final[role].setdefault(label or "label", {})[metric] = history[name][kept - 1]
    facts["curves"] = curves
    facts["metrics"] = {"model": {role: values for role, values in final.items() if values}}
    if isinstance(spec, AugmentedLagrangian):
        facts |= _kept(spec, histories, kept)
    return facts


def _lightgbm_rounds(booster: Any) -> int:
    return int(booster.best_iteration) if booster.best_iteration > 0 else int(booster.current_iteration())


def _xgboost_rounds(booster: Any) -> int:
    best = booster.attr("best_iteration")
    return int(booster.num_boosted_rounds()) if best is None else int(best) + 1


def _after(objective: Objective, data: Any) -> dict[str, list[float]]:
    """The history of a data set, all of it after the round's tree; multipliers are those of the round's tree."""
    history = objective.history(data)
    try:
        objective.state(data)
    except KeyError:  # it was not trained on
        return history
    return {name: values if name.startswith(MULTIPLIER) else values[1:] for name, values in history.items()}


def _described(data: Any, spec: Any) -> dict[str, Any]:
    labels = {"label": np.asarray(data.get_label(), dtype=np.float64)}
    attached = columns_of(data)
    wanted = {getattr(term, "label", None) for term in spec.terms}
    labels |= {name: column for name, column in attached.items() if name in wanted}
    if hasattr(data, "get_uint_info"):  # XGBoost
        borders = data.get_uint_info("group_ptr")
        group, features = (np.diff(borders) if len(borders) > 1 else None), data.num_col()
    else:
        group, features = data.get_group(), data.num_feature()
    return describe(labels, group, features=int(features))


def _kept(spec: AugmentedLagrangian, histories: Mapping[str, Any], kept: int) -> dict[str, Any]:
    """The constraints, judged on the first data set, and their multipliers."""
    judge = next(iter(histories))
    found: dict[str, Any] = {}
    for role, history in histories.items():
        for constraint, line in zip(spec.constraints, bounded(history, spec), strict=True):
            bound = np.atleast_1d(line.bound)
            known = bound[np.isfinite(bound)]
            margins = history[f"margin/{constraint.label}"]
            c = found.setdefault(constraint.label, {
                "what": line.reading,
                "at_most" if constraint.sign > 0 else "at_least": float(known[-1]) if len(known) else float("nan"),
                "returned": {}, "margin": {}, "by_round": {},
            })  # fmt: skip
            c["by_round"][role] = list(line.values)
            if len(margins) >= kept:
                c["returned"][role], c["margin"][role] = line.values[kept - 1], margins[kept - 1]
            if role == judge:
                c["met"] = bool(margins[kept - 1] >= 0) if len(margins) >= kept else None
    weights: dict[str, Any] = {}
    for history in histories.values():
        weights |= {n.removeprefix(MULTIPLIER): values for n, values in history.items() if n.startswith(MULTIPLIER)}
    return {"constraints": found, "judged_on": judge, "multipliers": weights}
