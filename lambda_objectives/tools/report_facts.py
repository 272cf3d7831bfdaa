"""What a report has to say of data sets and boosters, as plain mappings."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from lambda_objectives.columns import columns_of
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


def described(data: Any, spec: Any) -> dict[str, Any]:
    """What there is to say of a booster's data set: of its own label, and of those that a spec names."""
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


def versions(kind: str) -> dict[str, str]:
    """Versions of what a model was made with."""
    return {
        "lambda_objectives": __version__,
        kind.lower(): str(getattr(sys.modules.get(kind.lower()), "__version__", "")),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
