"""Numbers drawn at random: the same everywhere, even, and independent enough."""

import numpy as np

from lambda_objectives.kernels import random, reference


def test_the_same_numbers_on_every_machine():
    out = np.empty(3)
    random.uniforms(3, 5, 0, out)
    assert out.tolist() == [0.6542435737097425, 0.2585864501946086, 0.7919201657212356]


def test_whole_numbers_are_those_of_plain_python():
    for seed, round_, draw, row, n in (
        (0, 0, 0, 0, 7),
        (1, 2, 3, 4, 10),
        (2**40, 10**6, 9, 10**9, 2**31),
        (5, 1, 0, 8, 1),
    ):
        stream = np.uint64(random.stream(seed, round_, draw))
        assert random.below(stream, row, n) == reference._below(seed, round_, draw, row, n)


def test_uniforms_are_uniform_in_every_direction():
    """Over rows, rounds, draws and seeds; mean within five standard errors, and no correlation with the next one."""
    n = 20_000
    out = np.empty(n)
    random.uniforms(0, 0, 0, out)
    columns = {"rows": out.copy()}
    one = np.empty(1)
    for name in ("seeds", "rounds", "draws"):
        column = np.empty(n)
        for i in range(n):
            random.uniforms(*(i if name == which else 1 for which in ("seeds", "rounds", "draws")), one)
            column[i] = one[0]
        columns[name] = column
    for name, column in columns.items():
        assert column.min() >= 0, name
        assert column.max() < 1, name
        assert abs(column.mean() - 0.5) < 5 * np.sqrt(1 / 12 / n), name
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 5 / np.sqrt(n), name
        counts = np.histogram(column, 20, (0, 1))[0]
        assert ((counts - n / 20) ** 2 / (n / 20)).sum() < 60, name  # chi squared with 19 degrees of freedom


def test_whole_numbers_are_even():
    stream = np.uint64(random.stream(4, 5, 6))
    counts = np.bincount([random.below(stream, row, 7) for row in range(70_000)], minlength=7)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 35  # chi squared with 6 degrees of freedom
