"""The kernels compiled by numba."""

from lambda_objectives.kernels import ADDITIVE, UNIT
from lambda_objectives.kernels import pairs as plain
from lambda_objectives.kernels.ordering import rank
from lambda_objectives.kernels.sums import weighted_sum
from lambda_objectives.kernels.threads import split
from lambda_objectives.kernels.values import metric_values

__all__ = ["metric_values", "pair_gradients", "rank", "split", "weighted_sum"]

EXTRAS = ("scale", "silent", "label", "better", "given", "costs")


def pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts):
    """Write gradient and Hessian of each row, and the cost of each query; formulas in kernels.reference."""
    simple = pairs.kind in (UNIT, ADDITIVE) and not (pairs.ties or pairs.hinge or pairs.sample or len(pairs.risk.now))
    if simple and not any(len(getattr(pairs, name)) for name in EXTRAS):
        plain.pair_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts)
        return
    from lambda_objectives.kernels.swaps import swap_gradients  # compiled only where it is wanted

    swap_gradients(pairs, scores, ptr, order, rank, weights, grad, hess, cost, parts)
