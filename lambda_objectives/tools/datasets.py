"""Data to rank: LETOR files, and a simulator of product search with purchases and four sub-objectives.

References
----------
M. Momma, A. Bagheri Garakani, Y. Sun, *Multi-objective Relevance Ranking*, SIGIR eCom 2019: section 4.1, the data that
`product_search` is modelled on.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import math
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# ---------------------------------------------------------------------------------------------------- LETOR files


class Letor(NamedTuple):
    """Features, labels and sizes of consecutive queries, rows in the order of the file."""

    X: NDArray[np.float64] | csr_matrix
    y: NDArray[np.float64]
    group: NDArray[np.int64]


def load_letor(
    path: str | os.PathLike[str], *, n_features: int | None = None, sparse: bool = False, zero_based: bool | None = None
) -> Letor:
    r"""Read a ranking file in LETOR (SVMlight) format, rows like ``2 qid:10 1:0.5 3:1.5 # comment``.

    Comments, blank lines and CRLF are understood; names in ``.gz`` and ``.bz2`` are unpacked on the way. A feature that
    a row does not name is 0. Feature values may be ``nan``, which both boosters take for missing; labels may not.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_features : int, optional
        Number of columns: makes training, validation and test files equally wide. Default: as many as the file needs.
    sparse : bool
        X as a SciPy CSR matrix instead of a dense array.
    zero_based : bool, optional
        Whether features count from 0 (feature j in column j) or from 1 (in column j - 1), LETOR's way. Default: from 0
        only if the file has a feature 0. Say which when one of several files might happen to lack it.

    Returns
    -------
    Letor
        Named tuple of ``X`` (n, d) and ``y`` (n,), float64, and ``group`` (Q,), int64.

    Raises
    ------
    ValueError
        A message that begins with ``PATH:LINE: ``, for a line that does not parse, a row without qid, a label that is
        not finite, a query whose rows are not together, more features than ``n_features``, and a file without rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import lambda_objectives as lo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.txt")
    ...     _ = path.write_text("2 qid:10 1:0.5 3:1.5 # best\n0 qid:10 2:0.25\n1 qid:11 1:1\n")
    ...     X, y, group = lo.datasets.load_letor(path, n_features=4)
    >>> X.shape, y.tolist(), group.tolist()
    ((3, 4), [2.0, 0.0, 1.0], [2, 1])
    """
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError as error:
        raise ImportError("load_letor reads files with scikit-learn: pip install scikit-learn") from error

    path = os.fsdecode(path)
    if n_features is not None:
        n_features = _integer("n_features", n_features, at_least=1)
    # In blocks, since scikit-learn appends each qid to a new array (quadratic time), and names no line in its errors.
    blocks, labels, qids, lines = [], [], [], []
    for numbers, rows in _blocks_of_rows(path):
        try:
            # Features as they are numbered: where the counting starts shows only at the end of the file.
            X, y, qid = load_svmlight_file(io.BytesIO(b"\n".join(rows)), zero_based=True, query_id=True)
        except (ValueError, OverflowError) as error:
            raise _first_fault(path, numbers, rows, str(error)) from error
        if len(qid) < len(y):  # which is no error to scikit-learn
            raise _first_fault(path, numbers, rows, "a row has no qid")
        blocks.append(X)
        labels.append(y)
        qids.append(qid)
        lines.append(numbers)
    if not blocks:
        raise ValueError(f"{path}:1: no rows in this file; a row is a line like 2 qid:10 1:0.5 3:1.5")

    y, qid, line = np.concatenate(labels), np.concatenate(qids), np.concatenate(lines)
    if not np.isfinite(y).all():
        row = np.argmin(np.isfinite(y))
        raise ValueError(f"{path}:{line[row]}: the label is {y[row]}; give it a finite value or remove the line")
    group = _sizes(path, qid, line)

    return Letor(_columns(path, blocks, line, n_features, sparse, zero_based), y, group)


def _columns(
    path: str,
    blocks: list[csr_matrix],
    line: NDArray[np.int64],
    width: int | None,
    sparse: bool,
    zero_based: bool | None,
) -> NDArray[np.float64] | csr_matrix:
    """Put blocks, whose columns are feature numbers as they stand, into one X of the width asked for."""
    from scipy.sparse import csr_matrix, vstack

    def line_of(wrong: Callable[[NDArray[Any]], NDArray[np.bool_]]) -> int:
        """Find the first line with such a feature; 0 if there is none."""
        before = 0
        for block in blocks:
            if (bad := wrong(block.indices)).any():
                return int(line[before + np.searchsorted(block.indptr, np.argmax(bad), side="right") - 1])
            before += block.shape[0]
        return 0

    zero = line_of(lambda feature: feature == 0)
    if zero and zero_based is False:
        raise ValueError(f"{path}:{zero}: feature 0, against zero_based=False; leave that out if features count from 0")
    first = 0 if zero or zero_based else 1
    last = int(max(block.indices.max(initial=first - 1) for block in blocks))
    found = last + 1 - first
    if width is None:
        width = found
    if beyond := line_of(lambda feature: feature >= first + width):
        raise ValueError(
            f"{path}:{beyond}: a feature beyond n_features={width}; the file has {found} features, "
            f"so pass n_features={found} or more"
        )
    cells = len(line) * width
    if not sparse and cells > max(2**28, 100 * sum(block.nnz for block in blocks)):
        far = line_of(lambda feature: feature == last)
        raise ValueError(
            f"{path}:{far}: feature {last} makes a dense X of {cells / 2**27:.0f} GiB, nearly all of it 0; "
            "pass sparse=True, or correct that feature"
        )

    for block in blocks:
        block.resize(block.shape[0], first + width)
    if sparse:  # csr_matrix and not csr_array, for the boosters ask for that class in places
        return csr_matrix(vstack(blocks, format="csr")[:, first:])
    X, end = np.empty((len(line), width)), len(line)
    while blocks:  # each is freed when copied, so that the data is never held twice
        block = blocks.pop()
        X[end - block.shape[0] : end] = block.toarray()[:, first:]
        end -= block.shape[0]
    return X


def _blocks_of_rows(path: str, rows: int = 4096) -> Iterator[tuple[NDArray[np.int64], list[bytes]]]:
    """Yield the lines that hold rows, without comments, a few thousand at a time, with their numbers from 1."""
    if os.path.isdir(path):
        raise ValueError(f"{path}:1: this is a directory; name a file in it")
    unpack: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    opener = unpack.get(os.path.splitext(path)[1].lower(), open)
    numbers: list[int] = []
    contents: list[bytes] = []
    with opener(path, "rb") as file:
        number = 0
        try:
            for number, line in enumerate(file, 1):
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if content := line.partition(b"#")[0].strip():
                    numbers.append(number)
                    contents.append(content)
                if len(contents) == rows:
                    yield np.array(numbers), contents
                    numbers, contents = [], []
        except (OSError, EOFError, zlib.error) as error:
            if opener is open:
                raise
            raise ValueError(
                f"{path}:{number + 1}: cannot be unpacked from here on ({error}); "
                "pack the file again, or rename it if it is plain text"
            ) from error
    if contents:
        yield np.array(numbers), contents


def _first_fault(path: str, numbers: NDArray[np.int64], rows: list[bytes], otherwise: str) -> ValueError:
    """Say what is wrong with the first bad row, in words that scikit-learn does not have."""
    for number, row in zip(numbers, rows, strict=True):
        if fault := _fault(row.split()):
            return ValueError(f"{path}:{number}: {fault}")
    return ValueError(f"{path}:{numbers[0]}: on this line or below: {otherwise}")


def _fault(words: list[bytes]) -> str | None:
    """Say what is wrong with a row, or nothing."""
    if _number(float, words[0]) is None:
        return f"the label {_shown(words[0])} is not a number; a row begins with its label, like 2 or 0.5"
    if len(words) == 1 or not words[1].startswith(b"qid:"):
        return "no qid; the second word of a row is its query, like qid:10"
    qid = _number(int, words[1][4:])
    if qid is None or not -(2**63) <= qid < 2**63:
        return f"{_shown(words[1])} is not qid: and a whole number of at most 64 bits; number the queries"
    previous = -1
    for word in words[2:]:
        name, colon, value = word.partition(b":")
        feature = _number(int, name)
        if not colon:
            return f"{_shown(word)} has no colon; after the qid come words like 3:1.5, feature and value"
        if feature is None or not 0 <= feature < 2**31 - 1:
            return f"in {_shown(word)} the feature is not a whole number from 0 to 2147483646; number the features"
        if feature <= previous:
            return f"feature {feature} after feature {previous}; features go up within a row, each at most once"
        if _number(float, value) is None:
            return f"in {_shown(word)} the value is not a number; write nan for a missing one"
        previous = feature
    return None


def _number(kind: type[int] | type[float], word: bytes) -> Any:
    """Read a number as scikit-learn's reader does; None if it is not one."""
    try:
        return kind(word)
    except ValueError:
        return None


def _shown(word: bytes) -> str:
    """Quote a word of a file, on one line and not too long."""
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _sizes(path: str, qid: NDArray[np.int64], line: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the rows of each query; they must be together."""
    starts = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]]))
    _, fresh = np.unique(qid[starts], return_index=True)
    if len(fresh) < len(starts):
        row = starts[np.setdiff1d(np.arange(len(starts)), fresh)[0]]
        raise ValueError(
            f"{path}:{line[row]}: qid {qid[row]} comes back (it began on line {line[np.argmax(qid == qid[row])]}); "
            "rows of a query must be together: sort the lines by qid first, as sort -s -k2,2 does"
        )
    return np.diff(starts, append=len(qid)).astype(np.int64)


# ------------------------------------------------------------------------------------------------- product search


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
    queries = _integer("queries", queries, at_least=1)
    seed = _integer("seed", seed, at_least=0)
    products = _integer("products", products, at_least=1)
    chunk = _integer("chunk", chunk, at_least=1)
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


def _integer(name: str, value: Any, *, at_least: int) -> int:
    """Check a whole number given as an argument."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < at_least:
        raise ValueError(f"{name} must be a whole number, {at_least} or more; got {value!r}")
    return int(value)
