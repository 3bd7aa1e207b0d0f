"""What one agent receives of well-mixed tokens: the right mean and covariance, at no cost per token.

Let S agents send, w_j of them adopters of option j, and let C_j / S = L_j of the sent vectors have
bit j set. A token drawn at random has bit j with probability L_j, and two bits have the covariance
-d_j d_k - kappa: independent bits (unary encoding) meet only through the option behind them, so that
d = (p - q) w and kappa = 0; subsets of a fixed size shift d and add kappa. The covariance of v
tokens' mean is therefore (diag(a) - V V') / v with a = L (1 - L) + d^2 + kappa and two columns
V = (d, sqrt(kappa)), and a root of it needs two inner products: sqrt(a) (x - U G U'x), where
U = V / sqrt(a) and G = (1 - sqrt(1 - U'U)) / U'U, a function of a 2 x 2 matrix.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import kernel
from tacit.generator import to_unit
from tacit.tapes import COUNT, FEW, RECEIVE
from tacit.variates import binomial, block, invert_binomial, normal

__all__ = ["Crowd", "crowd_of", "draw_normals", "new_crowd", "receive", "tokens_received"]

#: Below this expected number of ones (or zeros) a count is drawn as a binomial, not a normal.
SMALL = 32.0
#: Above this mean the number of tokens an agent receives is drawn as a rounded normal.
LARGE = 1000.0


class Crowd(NamedTuple):
    """What one agent receives under perfect mixing, given what the population sent."""

    shares: NDArray[np.float64]
    """Shape (M,): L, the share of sent vectors with the bit set."""
    base: NDArray[np.float64]
    """Shape (M,): the estimate (7) at L, before clipping."""
    reach: NDArray[np.float64]
    """Shape (M,): slope sqrt(a); -1 where the count is small and drawn as a binomial."""
    tilt: NDArray[np.float64]
    """Shape (2, M): U'."""
    turn: NDArray[np.float64]
    """Shape (2, 2): G."""
    numbers: NDArray[np.float64]
    """Shape (4,): mean and standard deviation of the tokens received, unused, tokens under way."""


@kernel(allocates=True)
def new_crowd(M: Any) -> Any:
    """Return an empty crowd."""
    row = (np.zeros(M), np.zeros(M), np.zeros(M), np.zeros((2, M)))
    return Crowd(row[0], row[1], row[2], row[3], np.zeros((2, 2)), np.zeros(4))


@kernel(inlined=False)
def crowd_of(rule: Any, pool: Any, N: Any, crowd: Any) -> None:
    """Work out the moments from the pool of messages under way: senders, adopters, ones."""
    M = crowd.shares.size
    S = 0
    for s in range(pool.shape[0]):
        S += pool[s, 0]
    arrive = (1.0 - rule.loss) / (N * (rule.delay + 1.0))
    under_way = float(S) * rule.tokens  # of 10^9 agents more than an integer holds
    mean = under_way * arrive
    crowd.numbers[0] = mean
    crowd.numbers[1] = math.sqrt(mean * (1.0 - arrive))
    crowd.numbers[3] = under_way
    if S == 0:
        return
    first, both, second = 0.0, 0.0, 0.0
    for j in range(M):
        D, C = 0, 0
        for s in range(pool.shape[0]):
            D += pool[s, 1 + j]
            C += pool[s, 1 + M + j]
        L = C / S
        d = (rule.p - rule.q) * D / S - rule.shift
        a = L * (1.0 - L) + d * d + rule.common
        few = mean * min(L, 1.0 - L) < SMALL
        crowd.shares[j] = L
        crowd.base[j] = rule.slope * L - rule.offset
        crowd.reach[j] = -1.0 if few else rule.slope * math.sqrt(a)
        u0 = 0.0 if few else d / math.sqrt(a)
        u1 = 0.0 if few else math.sqrt(rule.common / a)
        crowd.tilt[0, j], crowd.tilt[1, j] = u0, u1
        first += u0 * u0
        both += u0 * u1
        second += u1 * u1
    _turn(first, both, second, crowd.turn)


@kernel
def _turn(x: Any, y: Any, z: Any, G: Any) -> None:
    """Write (1 - sqrt(1 - A)) / A for the symmetric A with entries x, y, y, z."""
    G[:] = 0.0
    if z == 0.0:
        G[0, 0] = _shrink(x)
        return
    middle = 0.5 * (x + z)
    radius = math.sqrt(0.25 * (x - z) * (x - z) + y * y)
    low, high = _shrink(middle - radius), _shrink(middle + radius)
    slope = (high - low) / (2.0 * radius) if radius > 0.0 else 0.0
    G[0, 0] = low + slope * (x - middle + radius)
    G[1, 1] = low + slope * (z - middle + radius)
    G[0, 1] = G[1, 0] = slope * y


@kernel
def _shrink(length: Any) -> Any:
    return (1.0 - math.sqrt(max(0.0, 1.0 - length))) / length if length > 0.0 else 0.0


@kernel
def tokens_received(word: Any, source: Any, t: Any, a: Any, mean: Any, sd: Any, n: Any) -> Any:
    """Return how many of the n tokens under way reach agent a in round t."""
    if mean > LARGE:
        return max(1.0, math.floor(mean + sd * normal(word, source, RECEIVE, t, a, 255) + 0.5))
    n = min(n, 2.0**40)
    if n <= 0.0:
        return 0.0
    return float(binomial(source, COUNT, t, a, int(n), mean / n))


@kernel(inlined=False)
def draw_normals(source: Any, t: Any, a: Any, tilt: Any, x: Any) -> Any:
    """Fill x with the normals of agent a in round t and return U'x."""
    M = x.size
    first, second = 0.0, 0.0
    for k in range(0, M, 4):
        w0, w1, w2, w3 = block(source, RECEIVE, t, a, 1 + (k >> 2))
        for j in range(k, min(k + 4, M)):
            x[j] = normal(w0, source, RECEIVE, t, a, j)
            first += tilt[0, j] * x[j]
            second += tilt[1, j] * x[j]
            w0, w1, w2, w3 = w1, w2, w3, w0
    return first, second


@kernel
def receive(
    rule: Any, crowd: Any, v: Any, x: Any, Ux: Any, sign: Any, source: Any, t: Any, a: Any, Q: Any
) -> None:
    """Write the estimates (7), not yet clipped, of an agent that received v tokens."""
    tilt, G = crowd.tilt, crowd.turn
    first, second = G[0, 0] * Ux[0] + G[0, 1] * Ux[1], G[1, 0] * Ux[0] + G[1, 1] * Ux[1]
    scale = sign / math.sqrt(v)
    for j in range(x.size):
        if crowd.reach[j] >= 0.0:
            turned = x[j] - first * tilt[0, j] - second * tilt[1, j]
            Q[j] = crowd.base[j] + scale * crowd.reach[j] * turned
        else:
            u = to_unit(block(source, FEW, t, a, j)[0])
            ones = _few(u if sign > 0.0 else 1.0 - u, v, crowd.shares[j])
            Q[j] = rule.slope * ones / v - rule.offset


@kernel
def _few(u: Any, v: Any, share: Any) -> Any:
    if share <= 0.5:
        return invert_binomial(u, v, share)
    return v - invert_binomial(u, v, 1.0 - share)
