"""Ranking files in LETOR (SVMlight) format, read by scikit-learn, with errors that name the line."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lambda_objectives.arrays import whole_number

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Letor(NamedTuple):
    """Features, labels and sizes of consecutive queries, rows in the order of the file.

    Examples
    --------
    >>> import numpy as np, lambda_objectives as lo
    >>> lo.datasets.Letor(np.zeros((3, 2)), np.array([1.0, 0.0, 2.0]), np.array([2, 1])).group.tolist()
    [2, 1]
    """

    X: NDArray[np.float64] | csr_matrix
    y: NDArray[np.float64]
    group: NDArray[np.int64]


def load_letor(
    path: str | os.PathLike[str], *, n_features: int | None = None, sparse: bool = False, zero_based: bool | None = None
) -> Letor:
    r"""Read a ranking file in LETOR (SVMlight) format, rows like ``2 qid:10 1:0.5 3:1.5 # comment``.

    Comments, blank lines and CRLF are understood; names in ``.gz`` and ``.bz2`` are unpacked on the way. A feature that
    a row does not name is 0. Feature values may be ``nan``, which both boosters take for missing; labels may not. Rows
    without qid are understood if the sizes of their queries, one a line, are in a file beside, as the boosters' own
    readers want it: ``train.txt.query`` or ``train.query`` for LightGBM, ``train.txt.group`` for XGBoost.

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
        n_features = whole_number("n_features", n_features, at_least=1)
    # In blocks, since scikit-learn appends each qid to a new array (quadratic time), and names no line in its errors.
    blocks, labels, qids, lines = [], [], [], []
    sizes = _sizes_beside(path)
    for numbers, rows in _blocks_of_rows(path):
        if sizes:
            rows = sizes.number(rows)
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
    if sizes:
        sizes.close()
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
        return (
            "no qid; the second word of a row is its query, like qid:10, "
            "unless the sizes of the queries are in a file beside this one that ends in .query"
        )
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


class _SizesBeside:
    """Query sizes from a file of their own, dealt out to rows that have no qid."""

    def __init__(self, path: str) -> None:
        self.path, self.left, self.qid, self.used = path, 0, 0, False
        with open(path, "rb") as file:
            self.sizes = file.read().split()

    def number(self, rows: list[bytes]) -> list[bytes]:
        """Put a qid behind the label of each row, unless the rows have theirs."""
        if not self.used and rows[0].split()[1:2] and rows[0].split()[1].startswith(b"qid:"):
            self.sizes = []  # the file beside is not wanted
            return rows
        if not self.used and not self.sizes:
            return rows
        self.used = True
        numbered = []
        for row in rows:
            while self.left == 0:
                if self.qid == len(self.sizes):
                    raise ValueError(f"{self.path}:{self.qid}: the sizes end here, and there are more rows")
                size = _number(int, self.sizes[self.qid])
                self.qid += 1
                if size is None or size < 1:
                    word = _shown(self.sizes[self.qid - 1])
                    raise ValueError(
                        f"{self.path}:{self.qid}: {word} is not the size of a query, a whole number from 1"
                    )
                self.left = size
            self.left -= 1
            label, _, features = row.partition(b" ") if b"\t" not in row else row.replace(b"\t", b" ").partition(b" ")
            numbered.append(b"%s qid:%d %s" % (label, self.qid, features))
        return numbered

    def close(self) -> None:
        """Complain if there are sizes, but no rows, left."""
        if self.used and (self.left or self.qid < len(self.sizes)):
            raise ValueError(f"{self.path}:{self.qid}: the sizes add up to more rows than there are")


def _sizes_beside(path: str) -> _SizesBeside | None:
    """Find the file with the sizes of the queries; None if there is none."""
    stem = path
    for ending in (".gz", ".bz2"):
        stem = stem.removesuffix(ending)
    for beside in (f"{stem}.query", os.path.splitext(stem)[0] + ".query", f"{stem}.group"):
        if os.path.isfile(beside) and beside != path:
            return _SizesBeside(beside)
    return None


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
