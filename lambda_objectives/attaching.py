"""Named columns for the data sets of both boosters, and for the labels of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambda_objectives import partitions
from lambda_objectives.callers import adapter_of
from lambda_objectives.columns import named_columns


def attach(data: Any, columns: Mapping[str, Any] | None = None, *, qid: Any = None, **named: Any) -> Any:
    """Give a Dataset or DMatrix named columns: further labels, controls.

    Parameters
    ----------
    data
        A LightGBM Dataset or an XGBoost DMatrix. Cross-validation folds of it have the columns too. Or the labels of a
        training on a Dask cluster, a Dask Series or array: train on what is returned, in their place.
    columns, **named
        (n,) numbers each, of any array kind; `columns` for names that are no identifiers. For Dask labels Dask Series
        or arrays of the same partitions. A name that was attached before gets the new values.
    qid
        One id a row, (n,): takes the place of the data set's own queries. For an XGBoost DataIter, which makes two
        queries of one that lies across two batches; for LightGBM on Dask, where nothing else tells of a query that is
        cut by the border of a partition.

    Returns
    -------
    data, so that the call can stand where the data set is made.

    Raises
    ------
    TypeError
        For another kind of data set; for columns that are no dict.
    ValueError
        For a column that is no vector of n numbers, or a name that cannot stand in a history.

    Examples
    --------
    >>> import lightgbm as lgb, lambda_objectives as lo
    >>> train = lo.attach(lgb.Dataset([[1.0], [2.0]], [0, 1], group=[2]), quality=[1, 0])
    """
    values = named_columns(columns, named)
    if partitions.owns(data):
        return partitions.attach(data, values, qid)
    adapter = adapter_of(data)
    if adapter is None:
        raise TypeError(
            f"data must be a LightGBM Dataset or an XGBoost DMatrix, found {type(data).__name__}: columns are attached "
            "to what the booster is trained on, attach(lightgbm.Dataset(X, y, ...), price=price)"
        )
    return adapter.attach(data, values, qid)
