"""Orders drawn by adding noise to the scores, and the pairs of neighbours in them."""

import math

import numpy as np

from lambda_objectives.kernels import ADDITIVE, CASCADE, CONCORDANCE, FIRST, PRECISION
from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.random import stream, uniform
from lambda_objectives.kernels.threads import longest, run_parts

LOGISTIC, GAUSSIAN = 0, 1


@compiled
def _noisy_part(first, last, seed, round_, draw, noise, power, scores, ptr, out):
    one, two = stream(seed, round_, 2 * draw), stream(seed, round_, 2 * draw + 1)
    for i in range(ptr[first], ptr[last]):
        u = uniform(one, i)
        if noise == LOGISTIC:
            drawn = math.log((u + 1e-16) / (1.0 - u))
        else:
            drawn = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * uniform(two, i))
        out[i] = scores[i] + power * drawn


def noisy_scores(seed, round_, draw, noise, power, scores, ptr, out, parts):
    """Write the scores plus noise: logistic, the difference of two Gumbel variables, or Gaussian (Box-Muller)."""
    run_parts(_noisy_part, parts, seed, round_, draw, noise, power, scores, ptr, out)


@compiled
def _neighbour_part(
    first, last, longest, kind, gain, discount, grade, scale, sigma, truncation, share, scores, ptr, order, weights,
    grad, hess, cost,
):  # fmt: skip
    number, worth = np.zeros(longest + 1), np.zeros(longest + 1)  # of the rows above, by class
    for q in range(first, last):
        start = ptr[q]
        n = ptr[q + 1] - start
        times = share * (scale[q] if len(scale) else 1.0)
        seen, going = 0.0, 1.0
        if kind == PRECISION:
            for i in range(start, start + n):
                number[grade[i]], worth[grade[i]] = 0.0, gain[i]
        classes = 0
        for i in range(start, start + n if kind == PRECISION else start):
            classes = max(classes, grade[i] + 1)
        for r in range(min(n - 1, truncation)):
            upper, lower = start + order[start + r], start + order[start + r + 1]
            g, d = abs(gain[upper] - gain[lower]), discount[r] - discount[r + 1]
            w = 0.0
            if g > 0:
                if kind == ADDITIVE:
                    w = g * d
                elif kind == FIRST:
                    w = d if seen == 0 else 0.0
                elif kind == CASCADE:
                    w = going * g * d
                elif kind == CONCORDANCE:
                    w = 2.0
                elif kind == PRECISION:
                    high, low = max(gain[upper], gain[lower]), min(gain[upper], gain[lower])
                    more = g
                    for c in range(classes):
                        more += number[c] * (min(worth[c], high) - min(worth[c], low))
                    w = more * d
            seen += gain[upper] > 0
            going *= 1.0 - gain[upper]
            if kind == PRECISION:
                number[grade[upper]] += 1.0
            if not w > 0:
                continue
            w *= times
            h, k = (upper, lower) if gain[upper] > gain[lower] else (lower, upper)
            z = sigma * min(max(scores[h] - scores[k], -1e290), 1e290)
            small = math.exp(-abs(z))
            wp = sigma * w * ((small if z > 0 else 1.0) / (1.0 + small))
            wh = sigma * wp * ((1.0 if z > 0 else small) / (1.0 + small))
            cost[q] += w * (math.log1p(small) + max(-z, 0.0))
            grad[h] -= wp * (weights[h] if len(weights) else 1.0)
            grad[k] += wp * (weights[k] if len(weights) else 1.0)
            hess[h] += wh * (weights[h] if len(weights) else 1.0)
            hess[k] += wh * (weights[k] if len(weights) else 1.0)


def neighbour_gradients(
    kind, gain, discount, grade, scale, sigma, truncation, share, scores, ptr, order, weights, grad, hess, cost, parts
):
    """Add gradient and Hessian of the pairs of rows next to each other in an order, each times a share.

    A pair weighs what swapping its rows changes in the metric at that order: nothing lies between them.
    """
    run_parts(
        _neighbour_part, parts, longest(ptr), kind, gain, discount, grade, scale, sigma, truncation, share, scores, ptr,
        order, weights, grad, hess, cost,
    )  # fmt: skip
