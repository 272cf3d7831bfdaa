"""Named columns of a Dask collection: they travel with the partitions of the label, and are found again on the workers.

Neither booster has room for columns in what it sends to its workers, but both send each partition of the label as it
is, a pandas Series, whose `attrs` hold them. On a worker the partitions lie on the stack, in the function that trains.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import vector
from lambda_objectives.terms import check_column

ATTRIBUTE = "lambda_objectives"


class Tag:
    """The columns of a partition. Copies of a Series share it; a Series made of several loses it."""

    def __init__(self, columns: dict[str, Any], qid: Any, rows: int) -> None:
        self.columns, self.qid, self.rows = columns, qid, rows  # rows: the fingerprint of the labels

    def __deepcopy__(self, memo: dict[int, Any]) -> Tag:
        return self


class Local(NamedTuple):
    """What a worker has of a data set, besides what the booster says."""

    name: str  # of the data set: "train", or what it is called among those that are evaluated
    rows: int
    columns: dict[str, npt.NDArray[np.float64]]
    qid: Any  # one a row, where it is known
    groups: bool  # whether only the qid tells of the queries


def owns(data: Any) -> bool:
    """Whether it is a Dask collection."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr")


def attach(labels: Any, columns: Mapping[str, Any], qid: Any) -> Any:
    """Give a Dask collection of labels named columns: a Dask Series to train on in its place."""
    import dask
    import dask.dataframe
    import pandas

    for name in columns:
        check_column("column", name)
    parts = _parts("data", labels)
    given = {"qid": qid} if qid is not None else {}
    others = {name: _parts(f"column {name!r}", values) for name, values in {**columns, **given}.items()}
    for name, theirs in others.items():
        if len(theirs) != len(parts):
            raise ValueError(
                f"column {name!r} has {len(theirs)} partitions, the labels have {len(parts)}: give all of them the "
                "same chunks, or make them from one DataFrame"
            )
    tag = dask.delayed(_tagged)
    tagged = [
        tag(part, list(columns), qid is not None, *(theirs[i] for theirs in others.values()))
        for i, part in enumerate(parts)
    ]
    dtype = getattr(labels, "dtype", np.dtype(np.float64))
    meta = pandas.Series([], dtype=dtype, name=getattr(labels, "name", None) if hasattr(labels, "index") else None)
    return dask.dataframe.from_delayed(tagged, meta=meta, verify_meta=False)


def _parts(name: str, values: Any) -> list[Any]:
    """The partitions of a collection, one after the other."""
    if not owns(values) or not hasattr(values, "to_delayed"):
        raise TypeError(f"{name} must be a Dask array or Series, like the labels, found {type(values).__name__}")
    parts: Any = np.asarray(values.to_delayed(), dtype=object)
    if parts.ndim > 1 and parts.shape[1:] != (1,) * (parts.ndim - 1):
        raise ValueError(f"{name} must have one column, found chunks side by side")
    return list(parts.ravel())


def _tagged(labels: Any, names: list[str], with_qid: bool, *columns: Any) -> Any:
    """A partition of the labels with its columns. Runs on the workers."""
    import pandas

    values = np.asarray(labels)
    n = len(values)
    index = getattr(labels, "index", None)
    series = pandas.Series(values.reshape(n), index=index, name=getattr(labels, "name", None))
    read = {
        name: vector(f"column {name!r}", column, n, finite=False)
        for name, column in zip(names, columns, strict=False)
    }  # fmt: skip
    ids = np.asarray(columns[-1]).reshape(-1) if with_qid else None
    if ids is not None and len(ids) != n:
        raise ValueError(f"qid has {len(ids)} values in a partition of {n} rows")
    series.attrs[ATTRIBUTE] = Tag(read, ids, _fingerprint(series))
    return series


def _fingerprint(series: Any) -> int:
    """Of the labels and their index, in their order: what was done to the rows since shows in it."""
    index = np.asarray(series.index)
    index = index if index.dtype.kind in "iufM" else np.empty(0)
    return zlib.crc32(np.asarray(series, dtype=np.float64).tobytes() + index.tobytes())


# ---------------------------------------------------------------------------------------------------- on the workers
def find(data: Any, booster: Any) -> Local | None:
    """What the partitions that a Dataset or DMatrix was made of had in their tags; None outside of Dask."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        module, seen = frame.f_globals.get("__name__", ""), frame.f_code.co_varnames
        if "train_ref" in seen and "refs" in seen and module.startswith("xgboost.dask"):
            return _of_xgboost(frame.f_locals, data)
        if "list_of_parts" in seen and module == "lightgbm.dask":
            return _of_lightgbm(frame.f_locals, data, booster)
        frame = frame.f_back
    return None


def _of_xgboost(there: dict[str, Any], data: Any) -> Local | None:
    name, ref = "train", there["train_ref"]
    if data is not there["Xy"]:
        at = next((i for i, (matrix, _) in enumerate(there["evals"]) if matrix is data), None)
        if at is None:
            return None
        name, ref = there["evals"][at][1], there["refs"][at]
    parts = ref["parts"] or []
    labels = [part["label"] for part in parts if part.get("label") is not None]  # none at all, or one in each part
    local = _joined(name, labels, [part.get("qid") for part in parts])
    # XGBoost sorts by its own qid only; differences would not do, those of unsigned numbers are never negative
    if local.qid is None or local.groups or (local.qid[1:] >= local.qid[:-1]).all():
        return _checked(local, labels, slice(None), data)
    order = np.argsort(local.qid)  # as XGBoost sorts the rows of a worker
    columns = {key: values[order] for key, values in local.columns.items()}
    local = local._replace(columns=columns, qid=local.qid[order])
    return _checked(local, labels, order, data)


def _of_lightgbm(there: dict[str, Any], data: Any, booster: Any) -> Local | None:
    parts = there["list_of_parts"]
    if data is booster.train_set:
        name, labels = "train", [part["label"] for part in parts]
    else:
        at = next((i for i, valid in enumerate(booster.valid_sets) if valid is data), None)
        if at is None:
            return None
        name, number = booster.name_valid_sets[at], there["eval_component_idx"][at]
        labels = []
        for part in parts:
            if part.get("eval_set"):
                given = part["eval_set"][number]
                own = [part["label"]] if not isinstance(given, tuple) else given[1]
                labels.extend(one for one in own if one is not None)
    return _checked(_joined(name, labels, [None] * len(labels)), labels, slice(None), data)


def _joined(name: str, labels: list[Any], ids: list[Any]) -> Local:
    """The columns of several partitions, one after the other."""
    tags = [getattr(label, "attrs", {}).get(ATTRIBUTE) for label in labels]
    tagged = [tag for tag, label in zip(tags, labels, strict=True) if tag is not None and len(label)]
    if tagged and len(tagged) < sum(len(label) > 0 for label in labels):
        raise ValueError(
            f"columns: of {len(labels)} partitions of {name!r} only {len(tagged)} have columns: call attach() last, on "
            "the labels that are trained on, after any other step with them"
        )
    for tag, label in zip(tags, labels, strict=True):
        if tag is not None and tag.rows != _fingerprint(label):
            raise ValueError(
                f"columns: rows of {name!r} are not those that columns were attached to, or in another order: call "
                "attach() last, on the labels that are trained on"
            )
    names = sorted({key for tag in tagged for key in tag.columns})
    columns = {key: np.concatenate([tag.columns[key] for tag in tagged]) for key in names}
    qid, groups = None, False
    if all(one is not None for one in ids) and ids:
        qid = np.concatenate([np.asarray(one).reshape(-1) for one in ids])
    elif tagged and all(tag.qid is not None for tag in tagged):
        qid, groups = np.concatenate([tag.qid for tag in tagged]), True
    return Local(name, sum(map(len, labels)), columns, qid, groups)


def _checked(local: Local, labels: list[Any], order: Any, data: Any) -> Local:
    """Refuse columns whose rows cannot be those of the data set."""
    if not local.columns and not local.groups:
        return local
    whole = np.concatenate([np.asarray(label).reshape(-1) for label in labels])
    there = np.asarray(data.get_label())
    if not np.array_equal(whole[order].astype(np.float32), there.astype(np.float32), equal_nan=True):
        raise ValueError(
            f"columns: the labels of {local.name!r} in the partitions are not those that the booster has, so that "
            "columns cannot be told to belong to its rows"
        )
    return local
