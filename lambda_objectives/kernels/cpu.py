"""The kernels compiled by numba."""

from lambda_objectives.kernels.ordering import discounted_sums, rank
from lambda_objectives.kernels.pairs import pair_gradients
from lambda_objectives.kernels.threads import split

__all__ = ["discounted_sums", "pair_gradients", "rank", "split"]
