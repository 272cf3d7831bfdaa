"""Losses over the rows of a query as a whole: a few sweeps over each query, in double precision, by many threads.

`weights` has one entry a row, or none where every row weighs 1.
"""

import math

import numpy as np

from lambda_objectives.kernels.compiled import compiled
from lambda_objectives.kernels.random import stream, uniform
from lambda_objectives.kernels.threads import longest, run_parts

FAR = 1e290  # differences of scores end here: they themselves, or their sums, may be infinite
TINY = -700.0  # e^x of less is 0: its exponent would not fit
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12 = [1.0 / math.factorial(k) for k in range(2, 13)]
BIAS, MANTISSA_BITS = np.int64(1023), np.int64(52)


@compiled
def _exp(x):
    """e^x for x <= 0. Loops over it become vector instructions, over math.exp they do not.

    The series ends where terms fall below the rounding; relative error 1e-15 down to x = -30, 2e-14 at -700.
    """
    y = max(x, TINY)
    k = np.floor(y * LOG2E + 0.5)
    r = y - k * LN2_HIGH - k * LN2_LOW
    p = E6 + r * (E7 + r * (E8 + r * (E9 + r * (E10 + r * (E11 + r * E12)))))
    p = 1.0 + r * (1.0 + r * (E2 + r * (E3 + r * (E4 + r * (E5 + r * p)))))
    power = np.int64((np.int64(np.int32(k)) + BIAS) << MANTISSA_BITS).view(np.float64)
    return p * power if x >= TINY else 0.0


@compiled
def _centred_part(first, last, scores, labels, weights, ptr, grad, hess, squares):
    weighted, write = len(weights) > 0, len(grad) > 0
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        total, mass = 0.0, 0.0
        for i in range(a, b):
            w = weights[i] if weighted else 1.0
            total += w * (scores[i] - labels[i])
            mass += w
        mean = total / mass if mass > 0 else 0.0
        square = 0.0
        for i in range(a, b):
            w = weights[i] if weighted else 1.0
            error = scores[i] - labels[i] - mean
            square += w * error * error
            if write:
                grad[i] = w * error
                hess[i] = w
        squares[q] = square


def centred(scores, labels, weights, ptr, grad, hess, squares, parts):
    """Errors s - y less their mean in the query: weighted into grad, the sum of w x square of each query into squares.

    Empty grad and hess: the squares alone.
    """
    run_parts(_centred_part, parts, scores, labels, weights, ptr, grad, hess, squares)


@compiled
def _softmax_part(first, last, longest, scores, labels, weights, beta, ptr, order, grad, hess, cost):
    weighted = len(weights) > 0
    e, w = np.empty(longest), np.ones(longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        s, y, g, h = scores[a:b], labels[a:b], grad[a:b], hess[a:b]
        if weighted:
            w[:n] = weights[a:b]
        mass = 0.0
        for i in range(n):
            mass += w[i] * y[i]
        cost[q] = 0.0
        if not mass > 0:
            g[:] = 0.0
            h[:] = 0.0
            continue
        r = 0
        while w[order[a + r]] <= 0:  # ends, since some row has a weight
            r += 1
        best = s[order[a + r]]
        z = 0.0
        for i in range(n):
            e[i] = w[i] * _exp(-beta * max(best - s[i], 0.0))  # above best are rows without a weight only
            z += e[i]
        gaps = 0.0
        for i in range(n):
            gaps += w[i] * y[i] * min(max(best - s[i], 0.0), FAR)
        cost[q] = mass * math.log(z) + beta * gaps
        for i in range(n):
            p = e[i] / z
            g[i] = beta * (mass * p - w[i] * y[i])
            h[i] = beta * beta * mass * (p * (1.0 - p))


def softmax(scores, labels, weights, beta, ptr, order, grad, hess, cost, parts):
    """Gradient, Hessian and the sum of -w y log (p / w) of each query, p being the softmax of beta s + log w."""
    run_parts(_softmax_part, parts, longest(ptr), scores, labels, weights, beta, ptr, order, grad, hess, cost)


@compiled
def _xendcg_part(first, last, longest, scores, power, unit, weights, numbers, ptr, order, grad, hess, cost):
    """Bruch's expansion, arranged so that nothing is divided by 1 - rho of the best row.

    That row, t, is the only one whose rho may come near 1, where 1 - rho is lost to rounding or is 0. Of the others
    rho = part (1 - rho_t), part being the softmax among them alone: wherever the expansion divides by 1 - rho_t it
    multiplies by the rho of another row, and 1 - rho_t cancels.
    """
    part, rho, over = np.empty(longest), np.empty(longest), np.empty(longest)
    g, u = np.empty(longest), np.empty(longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        cost[q] = 0.0
        if n < 2:
            grad[a:b] = 0.0
            hess[a:b] = 0.0
            continue
        s, g_out, h_out = scores[a:b], grad[a:b], hess[a:b]
        t = order[a]
        best, second = s[t], s[order[a + 1]]

        total, gaps = 0.0, 0.0
        for i in range(n):
            g[i] = power[a + i] - unit[q] * uniform(numbers, a + i)
            total += g[i]
            gaps += g[i] * min(best - s[i], FAR)
        z = 0.0
        for i in range(n):
            part[i] = _exp(min(s[i] - second, 0.0))
            z += part[i]
        z -= 1.0  # row t's
        odds = z * math.exp(second - best)
        rho_t, rest_t = 1.0 / (1.0 + odds), odds / (1.0 + odds)
        cost[q] = gaps / total + math.log1p(odds)

        first_t = (total - g[t]) / total - rest_t
        part[t], g[t] = 0.0, 0.0  # so that row t adds nothing to the sums
        sum_u = 0.0
        for i in range(n):
            part[i] /= z
            rho[i] = part[i] * rest_t
            over[i] = 1.0 / (1.0 - rho[i])
            g[i] = rho[i] - g[i] / total
            u[i] = g[i] * over[i]
            sum_u += u[i]
        second_t = rho_t * sum_u
        sum_v = 0.0
        for i in range(n):
            term = part[i] * first_t + rho[i] * (sum_u - u[i])
            g[i] += term
            u[i] = term * over[i]
            sum_v += u[i]
        for i in range(n):
            g_out[i] = g[i] + part[i] * second_t + rho[i] * (sum_v - u[i])
            h_out[i] = rho[i] * (1.0 - rho[i])
        g_out[t] = first_t + second_t + rho_t * sum_v
        h_out[t] = rho_t * rest_t
        if len(weights):
            for i in range(n):
                g_out[i] *= weights[a + i]
                h_out[i] *= weights[a + i]


def xendcg(scores, power, unit, weights, seed, round_, ptr, order, grad, hess, cost, parts):
    """Gradient, Hessian and the cross entropy of each query for phi = 2^y - gamma.

    2^y is given divided by the query's largest, `power` by row, and 1 divided by it, `unit` by query.
    """
    numbers = np.uint64(stream(seed, round_, 0))
    run_parts(_xendcg_part, parts, longest(ptr), scores, power, unit, weights, numbers, ptr, order, grad, hess, cost)
