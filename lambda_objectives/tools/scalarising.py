"""What constraints replace: weights of impressions, of terms and of labels, to be tried one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import Vector, group_or_qid, vector, whole_number
from lambda_objectives.columns import named_columns
from lambda_objectives.metrics import check_number
from lambda_objectives.queries import Queries
from lambda_objectives.specs import WeightedSum
from lambda_objectives.terms import Term, check_seed


def overweighted(
    factors: Mapping[str, float],
    *,
    group: Any = None,
    qid: Any = None,
    weights: Any = None,
    columns: Mapping[str, Any] | None = None,
    on: str = "query",
    **named: Any,
) -> Vector:
    """Weights that multiply each query with a flagged row, for each flag by its factor (over-weighting).

    Parameters
    ----------
    factors
        The factor of each flag, by the name of its column.
    group, qid
        Sizes of the queries, or one id a row.
    weights
        Weights to begin with, one a row or one a query; None for 1.
    columns, **named
        The flags, (n,) each: a row has it where it is above 0.
    on
        ``"query"``: every row of a query with a flagged row. ``"row"``: the flagged rows alone.

    Returns
    -------
    (n,) weights of the rows, for `weight=` of a LightGBM Dataset. XGBoost wants one a query: with ``on="query"`` that
    of its first row, ``weights[numpy.cumsum(group) - group]``.

    Raises
    ------
    ValueError
        For no factors, a negative one, one without a column; for data that do not fit.

    Notes
    -----
    ``weight of a row = its weight to begin with x product of the factors of the flags that its query has``

    Where nearly every query has a flagged row, all weights are nearly equal, and so the models. The flag of what was
    bought tells more: ``overweighted({"t1": 3}, group=group, t1=t1 * bought)``.

    References
    ----------
    Momma, Bagheri Garakani and Sun (2019), "Multi-objective relevance ranking", section 4.3.2.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.planning.overweighted({"t1": 3.0, "t2": 2.0}, group=[2, 2], t1=[0, 1, 0, 0], t2=[1, 0, 0, 1]).tolist()
    [6.0, 6.0, 2.0, 2.0]
    """
    flags = named_columns(columns, named)
    if not factors:
        raise ValueError("factors must hold at least one column's name and factor, such as {'t1': 2.0}")
    if on not in ("query", "row"):
        raise ValueError(f"on must be 'query' or 'row', found {on!r}")
    for name, factor in factors.items():
        if name not in flags:
            there = ", ".join(map(repr, flags)) or "none"
            raise ValueError(f"factors: no column {name!r} is given (there: {there}); give it as {name}=values")
        check_number(f"factors[{name!r}]", factor)
        if factor < 0:
            raise ValueError(f"factors[{name!r}] must not be negative, found {factor!r}")
    queries = Queries.from_arrays(flags[next(iter(factors))], group=group, qid=qid, weights=weights, columns=flags)
    out: Vector = np.ones(len(queries)) if queries.weights is None else queries.weights.copy()
    for name, factor in factors.items():
        has = queries.column(name) > 0
        if on == "query":
            sizes = np.diff(queries.borders)
            has = np.repeat(np.logical_or.reduceat(has, queries.borders[:-1]), sizes) if len(sizes) else has
        out[has] *= factor
    return out


def grid(values: Mapping[str, Sequence[float]]) -> Iterator[dict[str, float]]:
    """Every combination of factors, for `overweighted`.

    Parameters
    ----------
    values
        The factors to try, by the name of the column.

    Returns
    -------
    iterator of dict, one factor for each name; the last name's factor changes first.

    Raises
    ------
    ValueError
        For a name without a factor.

    Notes
    -----
    As many as the product of the numbers of factors: the paper's 12 for each of two labels are 144 trainings.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> list(lo.planning.grid({"t1": [1, 4], "t2": [2]}))
    [{'t1': 1.0, 't2': 2.0}, {'t1': 4.0, 't2': 2.0}]
    >>> len(list(lo.planning.grid(dict.fromkeys(["t1", "t2"], range(1, 13)))))
    144
    """
    factors = [vector(f"values[{name!r}]", list(each)).tolist() for name, each in values.items()]
    for name, each in zip(values, factors, strict=True):
        if not each:
            raise ValueError(f"values[{name!r}] must hold at least one factor, found none")
    return (dict(zip(values, each, strict=True)) for each in product(*factors))


def scalarisations(terms: Sequence[Term], steps: int) -> Iterator[WeightedSum]:
    """Every weighted sum of terms whose weights are multiples of 1 / steps and add up to 1 (linear scalarisation).

    Parameters
    ----------
    terms
        The terms; the first one is the primary.
    steps
        From 1; with 1 each term alone.

    Returns
    -------
    iterator of WeightedSum, (steps + T - 1)! / (steps! (T - 1)!) of them for T terms, the primary alone first.

    Raises
    ------
    TypeError, ValueError
        For no terms, something that is no term, a number of steps below 1.

    Notes
    -----
    No weighted sum reaches a part of the front that is not convex, and equal weights do not mean equal say where one
    term's cost is larger than another's.

    References
    ----------
    Das and Dennis (1998), "Normal-boundary intersection", section 3.1: the lattice of weights.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> terms = [lo.LambdaRank(lo.NDCG(5)), lo.LambdaRank(lo.NDCG(5), label="t1")]
    >>> [spec.weights for spec in lo.planning.scalarisations(terms, steps=2)]
    [(1.0, 0.0), (0.5, 0.5), (0.0, 1.0)]
    """
    steps = whole_number("steps", steps, at_least=1)
    terms = tuple(terms)
    WeightedSum(terms, weights=[1.0] * len(terms))  # checks the terms now, not when the first sum is asked for
    return (WeightedSum(terms, weights=[part / steps for part in parts]) for parts in _splits(steps, len(terms)))


def _splits(total: int, parts: int) -> Iterator[list[int]]:
    """All ways to write a number as an ordered sum of so many numbers from 0: walls among marks in a row."""
    places = total + parts - 1
    for walls in reversed(list(combinations(range(places), parts - 1))):
        edges = [-1, *walls, places]
        yield [b - a - 1 for a, b in pairwise(edges)]


def aggregated(labels: Sequence[Any], weights: Sequence[float]) -> Vector:
    """One label out of several: their weighted sum.

    Parameters
    ----------
    labels
        T labels, (n,) each.
    weights
        T numbers.

    Returns
    -------
    (n,) ``sum over t of weights[t] labels[t]``.

    Raises
    ------
    ValueError
        For no labels, labels of different lengths, another number of weights.

    References
    ----------
    Carmel, Haramaty, Lazerson and Lewin-Eytan (2020), "Multi-objective ranking optimization for product search using
    stochastic label aggregation", section 3: linear label aggregation.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.planning.aggregated([[1, 0, 0], [0, 1, 1]], weights=[2.0, 0.5]).tolist()
    [2.0, 0.5, 0.5]
    """
    columns, w = _labels_and_weights(labels, weights)
    mixed: Vector = w @ columns
    return mixed


def drawn(labels: Sequence[Any], weights: Sequence[float], seed: int, *, group: Any = None, qid: Any = None) -> Vector:
    """One label out of several: each row, or each query, draws whose it has (stochastic label aggregation).

    Parameters
    ----------
    labels
        T labels, (n,) each.
    weights
        T numbers from 0: how likely each label is, as a share of their sum.
    seed
        From 0. Another one draws anew; the same one draws the same.
    group, qid
        Sizes of the queries, or one id a row: all rows of a query have the same label. None: each row draws.

    Returns
    -------
    (n,) the labels that were drawn.

    Raises
    ------
    ValueError
        For no labels, labels of different lengths, weights that are no probabilities.

    Notes
    -----
    Where a query draws, the expected cost is the weighted sum of the costs of the labels, as in `WeightedSum`. Where
    rows draw, pairs compare different labels.

    References
    ----------
    Carmel, Haramaty, Lazerson and Lewin-Eytan (2020), "Multi-objective ranking optimization for product search using
    stochastic label aggregation", section 4.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> lo.planning.drawn([[1, 0, 1, 0], [5, 6, 7, 8]], weights=[0.5, 0.5], seed=1, group=[2, 2]).tolist()
    [5.0, 6.0, 7.0, 8.0]
    """
    columns, w = _labels_and_weights(labels, weights)
    check_seed(seed)
    if (w < 0).any() or not w.sum() > 0:
        raise ValueError(f"weights must not be negative, and not all 0: they are probabilities, found {weights!r}")
    n = columns.shape[1]
    ptr = group_or_qid(group, qid, n)
    draws = n if ptr is None else len(ptr) - 1
    which = np.random.default_rng(seed).choice(len(columns), size=draws, p=w / w.sum())
    if ptr is not None:
        which = np.repeat(which, np.diff(ptr))
    out: Vector = columns[which, np.arange(n)]
    return out


def _labels_and_weights(labels: Sequence[Any], weights: Sequence[float]) -> tuple[npt.NDArray[np.float64], Vector]:
    """(T, n) labels and (T,) weights, checked."""
    columns = [vector(f"labels[{t}]", values) for t, values in enumerate(labels)]
    if not columns:
        raise ValueError("labels must hold at least one label, found none")
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ValueError(f"labels must have the same number of rows each, found {lengths}")
    w = vector("weights", list(weights))
    if len(w) != len(columns):
        raise ValueError(f"weights: one for each label wanted, found {len(w)} for {len(columns)} labels")
    return np.array(columns), w
