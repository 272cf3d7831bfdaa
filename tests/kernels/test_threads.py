"""Cutting the work into parts, and running them."""

import numpy as np
import pytest

from lambda_objectives.kernels.threads import run_parts, split


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "sizes", [[], [1], [100_000], [50] * 4000, [1, 90_000, 1, 5, 90_000]], ids=lambda s: str(s)[:20]
)
def test_parts_cover_every_query_once(sizes, threads):
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    parts = split(ptr, threads)
    assert parts[0] == 0
    assert parts[-1] == len(sizes)
    assert (np.diff(parts) > 0).all() or len(sizes) == 0
    if sizes == [50] * 4000 and threads > 1:
        assert len(parts) == 4 * threads + 1
        assert np.diff(parts).max() <= 1.02 * np.diff(parts).min()


def test_small_work_is_not_cut():
    assert len(split(np.arange(0, 1001, 10), 8)) == 2


def test_every_part_runs_once_and_an_error_reaches_the_caller():
    parts = split(np.arange(0, 200_001, 50), 3)
    seen = []
    run_parts(lambda first, last: seen.append((first, last)), parts)
    assert sorted(seen) == list(zip(parts[:-1].tolist(), parts[1:].tolist(), strict=True))

    def fails(first, last):
        if first == parts[3]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_parts(fails, parts)
