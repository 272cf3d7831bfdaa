"""XGBoost: reading its matrices, refusing what it breaks in silence, shaping what it is given back."""

from __future__ import annotations

import itertools
import json
import weakref
from typing import Any

import numpy as np
import xgboost

from lambda_objectives.columns import Columns, add_columns, columns_of
from lambda_objectives.queries import Queries
from lambda_objectives.terms import Reading
from lambda_objectives.warn import warn, warn_small_hessian

Booster = xgboost.Booster
# xgb.cv makes new matrices of the rows of a fold and keeps nothing of the old one but its fields. Two of these are free
# unless the objective is a survival model: they carry the number of the matrix and the row, 24 bits in each float32.
CARRIERS = ("label_lower_bound", "label_upper_bound")
_numbers = itertools.count(1)
_carried: weakref.WeakValueDictionary[int, Columns] = weakref.WeakValueDictionary()
MAXIMISED = ("auc", "aucpr", "pre", "map", "ndcg")  # beginnings of the names that XGBoost's EarlyStopping maximises


def owns(data: Any) -> bool:
    """Whether this adapter reads such data."""
    return isinstance(data, xgboost.DMatrix)


def attach(data: xgboost.DMatrix, columns: dict[str, Any], qid: Any) -> xgboost.DMatrix:
    """Attach columns to a DMatrix, so that the parts of it that xgb.cv makes have them too."""
    n = data.num_row()
    attached = add_columns(data, n, columns, qid)
    if all(data.get_float_info(field).size == 0 for field in CARRIERS):
        number = next(_numbers) % 2**16
        row = np.arange(n)
        data.set_float_info(CARRIERS[0], (row % 2**24).astype(np.float32))
        data.set_float_info(CARRIERS[1], (number * 256 + row // 2**24).astype(np.float32))
        _carried[number] = attached
    return data


def _columns(data: xgboost.DMatrix) -> Columns:
    own = columns_of(data)
    if len(own) or own.ptr is not None:
        return own
    low, high = (data.get_float_info(field) for field in CARRIERS)
    n = data.num_row()
    if len(low) != n or len(high) != n or n == 0:
        return own
    number, rows = int(high[0]) // 256, low.astype(np.int64) + (high.astype(np.int64) % 256) * 2**24
    carried = _carried.get(number)
    if carried is None or any(rows.max() >= len(values) for values in carried.values()):
        return own
    return carried.take(rows)


def read(data: xgboost.DMatrix, needs_queries: bool) -> Queries:
    """Read labels, queries, weights and columns of a DMatrix, or of the part of one that cross-validation makes."""
    n = data.num_row()
    labels = data.get_label()
    if labels.size != n:
        raise ValueError(f"label: one a row wanted, the matrix has {labels.size} for {n} rows")
    columns = _columns(data)
    ptr = data.get_uint_info("group_ptr").astype(np.int64)
    group = np.diff(ptr) if len(ptr) > 1 else None
    weights = data.get_weight()
    if columns.ptr is not None:
        if weights.size == len(ptr) - 1 != n:
            weights = np.repeat(weights, np.diff(ptr))
        group = np.diff(columns.ptr)
    return Queries.from_arrays(labels, group=group, weights=weights if weights.size else None, columns=columns)


def check(booster: Any, data: xgboost.DMatrix, needs_queries: bool) -> None:
    """Refuse or warn about settings that XGBoost breaks beside a custom objective."""
    if booster is None:
        return
    learner = _config(booster)
    named = learner["learner_train_param"].get("objective", "")
    if named in ("reg:absoluteerror", "reg:quantileerror"):
        raise ValueError(
            f"objective={named!r} in the parameters overwrites the leaves of a custom objective (XGBoost up to 3.2); "
            "leave it out"
        )
    if learner["gradient_booster"]["name"] == "dart":
        warn(
            "booster='dart': the objective is given scores of the trees left after dropout, so costs in the history "
            "are not those of the whole model; use booster='gbtree' if you read or act on them"
        )


def check_hessian(booster: Any, data: xgboost.DMatrix, total: float, rows: int) -> None:
    """Warn where min_child_weight, 1 unless set, is large against the Hessians."""
    if booster is None:
        return
    trees = _config(booster)["gradient_booster"]
    value = trees.get("gbtree", trees).get("tree_train_param", {}).get("min_child_weight")
    if value is not None:
        warn_small_hessian("min_child_weight", float(value), total, rows)


def threads(booster: Any, data: xgboost.DMatrix) -> int | None:
    """Number of threads that the user gave XGBoost, or None."""
    if booster is None:
        return None
    value = int(_config(booster)["generic_param"].get("nthread", 0))
    return value if value > 0 else None


def metrics(readings: dict[str, Reading], primary: str) -> list[tuple[str, float]]:
    """As custom_metric returns them. XGBoost's EarlyStopping watches the last one and guesses from its name which way
    is better: the primary comes last if it would guess right, else the primary's cost.
    """
    watched = primary if primary.startswith(MAXIMISED) == readings[primary].maximise else f"cost/{primary}"
    names = sorted(readings, key=lambda name: name == watched)
    return [(name, readings[name].value) for name in names]


def _config(booster: Any) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return config
