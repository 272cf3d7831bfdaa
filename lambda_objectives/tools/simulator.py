"""A simulator of product search with purchases and four sub-objectives.

References
----------
M. Momma, A. Bagheri Garakani, Y. Sun, *Multi-objective Relevance Ranking*, SIGIR eCom 2019: section 4.1, the data that
`product_search` is modelled on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lambda_objectives.arrays import whole_number


@dataclass(frozen=True, eq=False)
class ProductSearch:
    """Simulated search impressions, rows of a query together.

    Parameters
    ----------
    X : ndarray of float32, shape (n, d)
        Features of query, product and the pair.
    y : ndarray of float64, shape (n,)
        1 for the products that were bought, else 0.
    group : ndarray of int64, shape (Q,)
        Number of products in each impression.
    columns : dict of str to ndarray of float64, shape (n,)
        The sub-objectives ``t1`` to ``t4``, 0 or 1, and the ``price``.
    feature_names : tuple of str
        Names of the columns of X.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> data = lo.datasets.product_search(queries=10, seed=0)
    >>> data.y.shape == data.columns["t1"].shape == (data.group.sum(),)
    True
    """

    X: NDArray[np.float32]
    y: NDArray[np.float64]
    group: NDArray[np.int64]
    columns: dict[str, NDArray[np.float64]]
    feature_names: tuple[str, ...]


def product_search(queries: int = 2000, seed: int = 0, *, products: int = 24) -> ProductSearch:
    """Simulate product search: what was shown, what was bought, and four sub-objectives.

    A shop has a catalogue of products in categories. Each impression is a customer's query and the products shown for
    it, in random order. Hidden usefulness, which no feature shows as it is, decides on purchases: how well the product
    meets the query (and the better so the higher its quality), what it costs beyond the customer's habit, quality,
    popularity in the customer's segment, and chance. Most impressions end with one purchase or none.

    Sub-objectives are binary. ``t2``, ``t3`` and ``t4`` are benefits that build on each other: products with t4 have
    t3, those with t3 have t2, and the higher ones are rarer and dearer. ``t1`` marks products of good quality that are
    popular in the customer's segment, among those with t2. Purchases go along with t1 and a little with t2, hardly with
    t3, and against t4 and ``price``.

    Parameters
    ----------
    queries : int
        Number of impressions. The first m of a longer simulation are the simulation of m.
    seed : int
        At least 0. Draws the catalogue too: the same seed is the same shop.
    products : int
        Products in an impression, on average; sizes vary by a quarter, and are at least 2.

    Returns
    -------
    ProductSearch
        ``X``, ``y``, ``group``, ``columns`` and ``feature_names``.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> data = lo.datasets.product_search(queries=100, seed=1)
    >>> len(data.group), data.X.shape[1] == len(data.feature_names), sorted(data.columns)
    (100, True, ['price', 't1', 't2', 't3', 't4'])
    >>> bool((data.columns["t4"] <= data.columns["t3"]).all())
    True
    """
    return next(product_search_chunks(queries, seed, products=products, chunk=queries))


def product_search_chunks(
    queries: int, seed: int = 0, *, products: int = 24, chunk: int = 10_000
) -> Iterator[ProductSearch]:
    """Simulate product search piece by piece, in memory for one piece only.

    Parameters
    ----------
    queries, seed, products
        As in `product_search`; all pieces together are what it returns, bit for bit, whatever ``chunk`` is.
    chunk : int
        Impressions in each piece; the last may have fewer.

    Returns
    -------
    iterator of ProductSearch
        The pieces, in order.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> [len(piece.group) for piece in lo.datasets.product_search_chunks(250, seed=1, chunk=100)]
    [100, 100, 50]
    """
    queries = whole_number("queries", queries, at_least=1)
    seed = whole_number("seed", seed, at_least=0)
    products = whole_number("products", products, at_least=1)
    chunk = whole_number("chunk", chunk, at_least=1)
    return _pieces(queries, seed, products, chunk)  # a generator apart: this function checks when called


def _pieces(queries: int, seed: int, products: int, chunk: int) -> Iterator[ProductSearch]:
    """Cut whole blocks of random numbers into pieces: an impression depends on the seed and its block alone."""
    block_size = max(1, 12_288 // products)  # impressions; about as many rows whatever the number of products
    # The last block is kept, since pieces may be smaller than blocks.
    block = lru_cache(maxsize=1)(partial(_impressions, _catalogue(seed, products), seed, products, block_size))
    for start in range(0, queries, chunk):
        stop = min(start + chunk, queries)
        numbers = range(start // block_size, (stop - 1) // block_size + 1)
        yield _joined([_cut(block(b), start - b * block_size, stop - b * block_size) for b in numbers])


def _cut(data: ProductSearch, start: int, stop: int) -> ProductSearch:
    """Keep the impressions from start to stop, which may lie outside."""
    end = np.cumsum(data.group)
    start, stop = max(start, 0), min(stop, len(end))
    rows = slice(end[start] - data.group[start], end[stop - 1])
    columns = {name: column[rows] for name, column in data.columns.items()}
    return ProductSearch(data.X[rows], data.y[rows], data.group[start:stop], columns, data.feature_names)


def _joined(pieces: list[ProductSearch]) -> ProductSearch:
    """Put pieces one after the other, in memory of their own."""
    return ProductSearch(
        np.concatenate([piece.X for piece in pieces]),
        np.concatenate([piece.y for piece in pieces]),
        np.concatenate([piece.group for piece in pieces]),
        {name: np.concatenate([piece.columns[name] for piece in pieces]) for name in pieces[0].columns},
        pieces[0].feature_names,
    )


_CATEGORIES, _SEGMENTS, _TASTES = 40, 3, 3


class _Catalogue(NamedTuple):
    """The shop: C products, category by category; hidden traits first, then what anyone can see."""

    quality: NDArray[np.float64]  # (C,)
    popularity: NDArray[np.float64]  # (C, segments)
    style: NDArray[np.float64]  # (C, tastes)
    benefit: NDArray[np.int64]  # (C,) 0, or the highest of t2, t3, t4 as 1, 2, 3
    level: NDArray[np.float64]  # (categories,) typical log price
    seen: dict[str, NDArray[Any]]  # (C,) each
    segment_sales: NDArray[np.float64]  # (C, segments)


def _catalogue(seed: int, products: int) -> _Catalogue:
    """Draw the shop."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    # A prime number of products in each category lets an impression walk it in any stride without meeting one twice.
    shelf = next(n for n in count(max(100, 2 * products)) if all(n % d for d in range(2, math.isqrt(n) + 1)))
    n = _CATEGORIES * shelf
    level = rng.normal(3.2, 0.7, _CATEGORIES)
    quality = rng.normal(size=n)
    popular = 0.4 * quality + 0.9 * rng.normal(size=n)
    popularity = popular[:, None] + 0.6 * rng.normal(size=(n, _SEGMENTS))
    dearness = 0.1 * quality + 0.35 * rng.normal(size=n)
    # Benefits go to what sells, and are paid for in the price.
    rank = np.argsort(np.argsort(0.3 * popular + 0.1 * quality + 1.7 * dearness + 0.7 * rng.normal(size=n)))
    benefit = np.searchsorted([0.55, 0.8, 0.93], rank / n, side="right")
    price = np.round(np.exp(np.repeat(level, shelf) + dearness + 0.1 * benefit), 2)
    seen: dict[str, NDArray[Any]] = {
        "price": price,
        "rating": np.clip(np.round(4.0 + 0.4 * quality + 0.25 * rng.normal(size=n), 1), 1, 5),
        "reviews": np.floor(np.exp(3.5 + popular + 0.7 * rng.normal(size=n))),
        "sales": np.floor(np.exp(3.0 + 1.1 * popular + 0.4 * rng.normal(size=n))),
        "returns": np.round(1 / (1 + np.exp(2.5 + 0.5 * quality + 0.4 * rng.normal(size=n))), 3),
        "discount": np.round(np.maximum(0, 0.15 * rng.normal(size=n) - 0.1 * dearness), 2),
        "delivery_days": np.clip(np.round(5 - 1.2 * benefit + rng.normal(size=n)), 1, 9),
        "days_on_sale": np.ceil(rng.exponential(400, n)),
    }
    segment_sales = np.floor(np.exp(2.0 + 1.1 * popularity + 0.4 * rng.normal(size=(n, _SEGMENTS))))
    return _Catalogue(quality, popularity, rng.normal(size=(n, _TASTES)), benefit, level, seen, segment_sales)


def _impressions(shop: _Catalogue, seed: int, products: int, queries: int, block: int) -> ProductSearch:
    """Simulate one block of impressions."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))
    spread = products // 4
    group = np.maximum(2, products + rng.integers(-spread, spread + 1, queries))
    starts = np.cumsum(group) - group
    query = np.repeat(np.arange(queries), group)  # of each row
    n = len(query)

    # The customer.
    category = rng.integers(_CATEGORIES, size=queries)
    segment = rng.choice(_SEGMENTS, size=queries, p=[0.5, 0.3, 0.2])
    habit = shop.level[category] + 0.35 * rng.normal(size=queries)  # log price
    words = 1 + rng.binomial(5, 0.35, queries)
    taste = rng.normal(size=(queries, _TASTES))

    # What is shown: different products, most of the category that was meant.
    shelf = len(shop.quality) // _CATEGORIES
    meant = rng.random(n) < 0.75
    aisle = (category[query] + ~meant * rng.integers(1, 4, n)) % _CATEGORIES
    stride = rng.integers(1, shelf, queries)[query] * (np.arange(n) - starts[query])
    item = aisle * shelf + (rng.integers(shelf, size=queries)[query] + stride) % shelf

    # Longer queries say more exactly what is wanted: the product's style has to be nearer.
    distance = ((shop.style[item] - taste[query]) ** 2).sum(axis=1)
    match = np.where(meant, 1.0, 0.3) * np.exp(-distance * words[query] / 12)
    quality = shop.quality[item]
    popularity = shop.popularity[item, segment[query]]
    benefit = shop.benefit[item]
    price = shop.seen["price"][item]
    dear = np.log(price) - habit[query]
    dear = 0.4 * dear + np.maximum(0, dear)  # a bargain pleases less than the same difference hurts
    # The weights leave purchases in favour of t1, nearly neutral to t2 and t3, against t4 and price; and with this much
    # chance (the Gumbel terms) a good ranker stays far from a perfect one.
    useful = (
        3.5 * match * (1 + 0.6 * np.tanh(quality))
        - np.array([1.5, 2.5, 4.0])[segment[query]] * dear
        + 0.45 * quality
        + 0.4 * popularity
        + 0.4 * (benefit >= 1)
        + 0.9 * rng.gumbel(size=n)
    )

    # Bought: the most useful if it is worth it to this customer; sometimes the next one too.
    worth = 3.2 + 0.7 * rng.gumbel(size=queries)
    best = useful == np.maximum.reduceat(useful, starts)[query]
    second = np.where(best, -np.inf, useful)
    second = (second == np.maximum.reduceat(second, starts)[query]) & (rng.random(queries) < 0.2)[query]
    bought = (best | second) & (useful > worth[query])

    features = {
        "query_words": words[query],
        "query_volume": np.floor(np.exp(rng.normal(6 - 0.5 * words, 1.0)))[query],
        "segment": segment[query],
        "usual_price": np.round(np.exp(habit + 0.15 * rng.normal(size=queries)), 2)[query],
        **{name: value[item] for name, value in shop.seen.items()},
        "segment_sales": shop.segment_sales[item, segment[query]],
        "category_match": meant ^ (rng.random(n) < 0.05),
        "text_match": np.sqrt(match) + 0.2 * rng.normal(size=n),
        "title_overlap": rng.binomial(words[query], 0.1 + 0.8 * match) / words[query],
        "past_clicks": rng.poisson(2 * match * np.exp(0.5 * popularity)),
    }
    features["price_ratio"] = price / features["usual_price"]
    columns = {"t1": (benefit >= 1) & (popularity > 0.4) & (quality > 0.2)}
    columns |= {f"t{level + 1}": benefit >= level for level in (1, 2, 3)} | {"price": price}
    return ProductSearch(
        np.column_stack(list(features.values())).astype(np.float32),
        bought.astype(np.float64),
        group.astype(np.int64),
        {name: column.astype(np.float64) for name, column in columns.items()},
        tuple(features),
    )
