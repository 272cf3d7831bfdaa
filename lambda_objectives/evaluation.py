"""A spec at given scores, without a booster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import check_order, vector
from lambda_objectives.columns import named_columns
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.specs import as_spec
from lambda_objectives.terms import Floats


def evaluate(
    spec: Any,
    scores: Any,
    labels: Any,
    *,
    group: Any = None,
    qid: Any = None,
    weights: Any = None,
    columns: Mapping[str, Any] | None = None,
    **named: Any,
) -> dict[str, float]:
    """Every cost and metric of a spec at given scores, in double precision.

    Parameters
    ----------
    spec
        A term or a spec.
    scores, labels
        (n,) numbers; the rows of a query must lie together. Of `Gaussian`, (n, 2) scores.
    group, qid
        Sizes of the queries, or one id a row.
    weights
        One a row, or one a query.
    columns, **named
        Further columns, (n,) each.

    Returns
    -------
    dict
        ``cost/NAME`` what is minimised, ``NAME`` a metric in its own direction.

    Raises
    ------
    TypeError, ValueError
        For what is no spec, and for data that do not fit.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.evaluate(lo.LambdaRank(lo.NDCG(1)), [2.0, 1.0], [0, 1], group=[2])
    {'cost/ndcg@1': 1.313261..., 'ndcg@1': 0.0}
    """
    run, s = _standalone(spec, scores, labels, group, qid, weights, columns, named)
    readings = run.evaluate(s)
    return {name: reading.value for name, reading in readings.items()}


def gradient(
    spec: Any,
    scores: Any,
    labels: Any,
    *,
    group: Any = None,
    qid: Any = None,
    weights: Any = None,
    columns: Mapping[str, Any] | None = None,
    **named: Any,
) -> tuple[Floats, Floats]:
    """Gradient and Hessian of a spec at given scores without a booster, in double precision.

    Parameters
    ----------
    spec, scores, labels, group, qid, weights, columns, **named
        As for `evaluate`.

    Returns
    -------
    grad, hess : float64, of the scores' shape

    Raises
    ------
    TypeError, ValueError
        For what is no spec, and for data that do not fit.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.gradient(lo.RankNet(), [1.0, 0.0], [1, 0], group=[2])
    (array([-0.26894142,  0.26894142]), array([0.19661193, 0.19661193]))
    """
    run, s = _standalone(spec, scores, labels, group, qid, weights, columns, named)
    return run.step(s)


def _standalone(
    spec: Any, scores: Any, labels: Any, group: Any, qid: Any, weights: Any, columns: Any, named: Any
) -> tuple[Run, npt.NDArray[np.float64]]:
    as_spec(spec)  # first of all, where arguments are in another order
    values = named_columns(columns, named)
    check_order("scores", scores, "labels", labels)
    queries = Queries.from_arrays(labels, group=group, qid=qid, weights=weights, columns=values)
    run = Run(spec, queries, dtype=np.float64)
    if run.outputs == 1:
        return run, vector("scores", scores, len(queries))
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim == 2:  # anything else is refused where scores are taken
        array = np.stack([vector("scores", column, len(queries)) for column in array.T], axis=1)
    return run, array
