"""Numbers drawn at random that are the same on every machine, for any number of threads and after a resume.

There is no generator with a state: a number is a function of the seed, the round, the row and the draw. The function is
the finaliser of SplitMix64 (Steele, Lea and Flood 2014), integers only.
"""

import numpy as np

from lambda_objectives.kernels.compiled import compiled

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S30, S27, S31, S11, S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11), np.uint64(32)


@compiled
def mixed(x):
    """Scramble the bits of an uint64."""
    x = (x ^ (x >> S30)) * FIRST
    x = (x ^ (x >> S27)) * SECOND
    return x ^ (x >> S31)


@compiled
def stream(seed, round_, draw):
    """An uint64 that stands for a draw of a round: the first argument of `uniform` and `below`."""
    x = mixed(np.uint64(seed) + GOLDEN)
    x = mixed(x ^ (np.uint64(round_) * GOLDEN))
    return mixed(x ^ (np.uint64(draw) * GOLDEN + FIRST))


@compiled
def uniform(stream, row):
    """A float64 from [0, 1) for a row, with 53 random bits."""
    return np.float64(mixed(np.uint64(stream) + np.uint64(row) * GOLDEN) >> S11) * (1.0 / 9007199254740992.0)


@compiled
def below(stream, row, n):
    """A whole number from 0 to n - 1 for a row, n < 2^32; off from even chances by less than n / 2^32."""
    bits = mixed(np.uint64(stream) + np.uint64(row) * GOLDEN) >> S32
    return np.int64((bits * np.uint64(n)) >> S32)


@compiled
def _uniforms(stream, out):
    for row in range(len(out)):
        out[row] = uniform(stream, row)


def uniforms(seed, round_, draw, out):
    """Write one number from [0, 1) for each row."""
    _uniforms(np.uint64(stream(seed, round_, draw)), out)
