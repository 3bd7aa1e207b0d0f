"""What one agent receives of well-mixed tokens: the right mean and covariance, at no cost per token.

Let S agents send, w_j of them adopters of option j, and let C_j / S = L_j of the sent vectors have
bit j set. A token drawn at random has bit j with probability L_j, and two bits have the covariance
-d_j d_k - kappa: independent bits (unary encoding) meet only through the option behind them, so that
d = (p - q) w and kappa = 0; subsets of a fixed size shift d and add kappa. The covariance of v
tokens' mean is therefore (diag(a) - V V') / v with a = L (1 - L) + d^2 + kappa and two columns
V = (d, sqrt(kappa)), and a root of it needs two inner products: sqrt(a) (x - U G U'x), where
U = V / sqrt(a) and G = (1 - sqrt(1 - U'U)) / U'U, a function of a 2 x 2 matrix.

Where agents have L levels of epsilon, this holds for the tokens of each level; what an agent receives of
all of them counts by the number of tokens and the weight of a level.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import to_unit
from tacit.core.kernels import kernel
from tacit.core.samplers import binomial, block, invert_binomial, normal
from tacit.core.tapes import COUNT, FEW, RECEIVE

#: Below this expected number of ones (or zeros) a count is drawn as a binomial, not a normal.
SMALL = 32.0
#: Above this mean the number of tokens an agent receives is drawn as a rounded normal.
LARGE = 1000.0


class Crowd(NamedTuple):
    """What one agent receives under perfect mixing, given what the population sent, by level."""

    shares: NDArray[np.float64]
    """Shape (levels, M): L, the share of sent vectors with the bit set."""
    base: NDArray[np.float64]
    """Shape (levels, M): the estimate (7) at L, before clipping."""
    reach: NDArray[np.float64]
    """Shape (levels, M): slope sqrt(a); -1 where the count is small and drawn as a binomial."""
    tilt: NDArray[np.float64]
    """Shape (levels, 2, M): U'."""
    turn: NDArray[np.float64]
    """Shape (levels, 2, 2): G."""
    numbers: NDArray[np.float64]
    """Shape (levels, 3): mean and standard deviation of the tokens received, tokens under way."""


class Sample(NamedTuple):
    """What one agent receives of each level: tokens, and normals for the bits they hold."""

    tokens: NDArray[np.float64]
    """Shape (levels,): v."""
    normals: NDArray[np.float64]
    """Shape (levels, M): x."""
    turned: NDArray[np.float64]
    """Shape (levels, 2): U'x."""
    part: NDArray[np.float64]
    """Shape (M,): room to work."""


@kernel(allocates=True)
def new_crowd(levels: Any, M: Any) -> Any:
    """Return an empty crowd."""
    shares, base, reach = np.zeros((levels, M)), np.zeros((levels, M)), np.zeros((levels, M))
    tilt, turn = np.zeros((levels, 2, M)), np.zeros((levels, 2, 2))
    return Crowd(shares, base, reach, tilt, turn, np.zeros((levels, 3)))


@kernel(allocates=True)
def new_sample(levels: Any, M: Any) -> Any:
    """Return an empty sample."""
    return Sample(np.zeros(levels), np.zeros((levels, M)), np.zeros((levels, 2)), np.zeros(M))


@kernel(inlined=False)
def crowd_of(params: Any, pool: Any, N: Any, crowd: Any) -> None:
    """Work out the moments from the pool of messages under way: senders, adopters, ones."""
    for level in range(pool.shape[1]):
        _level_of(params, pool, N, crowd, level)


@kernel(inlined=False)
def _level_of(params: Any, pool: Any, N: Any, crowd: Any, level: Any) -> None:
    M = crowd.shares.shape[1]
    S = 0
    for s in range(pool.shape[0]):
        S += pool[s, level, 0]
    arrive = (1.0 - params.loss) / (N * (params.delay + 1.0))
    under_way = float(S) * params.tokens  # of 10^9 agents more than an integer holds
    mean = under_way * arrive
    crowd.numbers[level, 0] = mean
    crowd.numbers[level, 1] = math.sqrt(mean * (1.0 - arrive))
    crowd.numbers[level, 2] = under_way
    if S == 0:
        return
    first, both, second = 0.0, 0.0, 0.0
    for j in range(M):
        D, C = 0, 0
        for s in range(pool.shape[0]):
            D += pool[s, level, 1 + j]
            C += pool[s, level, 1 + M + j]
        L = C / S
        d = (params.p[level] - params.q[level]) * D / S - params.shift[level]
        a = L * (1.0 - L) + d * d + params.common[level]
        few = mean * min(L, 1.0 - L) < SMALL
        crowd.shares[level, j] = L
        crowd.base[level, j] = params.slope[level] * L - params.offset[level]
        crowd.reach[level, j] = -1.0 if few else params.slope[level] * math.sqrt(a)
        u0 = 0.0 if few else d / math.sqrt(a)
        u1 = 0.0 if few else math.sqrt(params.common[level] / a)
        crowd.tilt[level, 0, j], crowd.tilt[level, 1, j] = u0, u1
        first += u0 * u0
        both += u0 * u1
        second += u1 * u1
    _turn(first, both, second, crowd.turn, level)


@kernel
def _turn(x: Any, y: Any, z: Any, G: Any, at: Any) -> None:
    """Write (1 - sqrt(1 - A)) / A for the symmetric A with entries x, y, y, z to G[at]."""
    G[at] = 0.0
    if z == 0.0:
        G[at, 0, 0] = _shrink(x)
        return
    middle = 0.5 * (x + z)
    radius = math.sqrt(0.25 * (x - z) * (x - z) + y * y)
    low, high = _shrink(middle - radius), _shrink(middle + radius)
    slope = (high - low) / (2.0 * radius) if radius > 0.0 else 0.0
    G[at, 0, 0] = low + slope * (x - middle + radius)
    G[at, 1, 1] = low + slope * (z - middle + radius)
    G[at, 0, 1] = G[at, 1, 0] = slope * y


@kernel
def _shrink(length: Any) -> Any:
    return (1.0 - math.sqrt(max(0.0, 1.0 - length))) / length if length > 0.0 else 0.0


@kernel
def draw_sample(crowd: Any, sample: Any, word: Any, source: Any, t: Any, a: Any) -> None:
    """Draw what agent a receives of every level in round t; `word` is its first word."""
    levels = sample.tokens.size
    for level in range(levels):
        who, numbers = a * levels + level, crowd.numbers
        if level > 0:
            word = block(source, RECEIVE, t, who, 0)[0]
        mean, sd, n = numbers[level, 0], numbers[level, 1], numbers[level, 2]
        sample.tokens[level] = _tokens_received(word, source, t, who, mean, sd, n)
        if sample.tokens[level] > 0.0:
            tilt, x = crowd.tilt[level], sample.normals[level]
            turned = _draw_normals(source, t, who, tilt[0], tilt[1], x)
            sample.turned[level, 0], sample.turned[level, 1] = turned


@kernel
def _tokens_received(word: Any, source: Any, t: Any, a: Any, mean: Any, sd: Any, n: Any) -> Any:
    """Return how many of the n tokens under way reach agent a in round t."""
    if mean > LARGE:
        return max(1.0, math.floor(mean + sd * normal(word, source, RECEIVE, t, a, 255) + 0.5))
    n = min(n, 2.0**40)
    if n <= 0.0:
        return 0.0
    return float(binomial(source, COUNT, t, a, int(n), mean / n))


@kernel(inlined=False)
def _draw_normals(source: Any, t: Any, a: Any, u0: Any, u1: Any, x: Any) -> Any:
    """Fill x with the normals of agent a in round t; return U'x."""
    M = x.size
    for k in range(0, M, 4):
        w0, w1, w2, w3 = block(source, RECEIVE, t, a, 1 + (k >> 2))
        x[k] = normal(w0, source, RECEIVE, t, a, k)
        if k + 1 < M:
            x[k + 1] = normal(w1, source, RECEIVE, t, a, k + 1)
        if k + 2 < M:
            x[k + 2] = normal(w2, source, RECEIVE, t, a, k + 2)
        if k + 3 < M:
            x[k + 3] = normal(w3, source, RECEIVE, t, a, k + 3)
    first, second = 0.0, 0.0
    for j in range(M):
        first += u0[j] * x[j]
        second += u1[j] * x[j]
    return first, second


@kernel
def receive(
    params: Any, crowd: Any, sample: Any, sign: Any, source: Any, t: Any, a: Any, Q: Any
) -> Any:
    """Write the estimates (7), not yet clipped, of an agent with a sample; return if it heard anything."""
    levels = sample.tokens.size
    if levels == 1:
        if sample.tokens[0] > 0.0:
            _receive(params, crowd, sample, 0, sign, source, t, a, Q)
        return sample.tokens[0] > 0.0
    total, part = 0.0, sample.part
    Q[:] = 0.0
    for level in range(levels):
        if sample.tokens[level] > 0.0:
            _receive(params, crowd, sample, level, sign, source, t, a * levels + level, part)
            weight = params.weight[level] * sample.tokens[level]
            total += weight
            for j in range(Q.size):
                Q[j] += weight * part[j]
    if total > 0.0:
        for j in range(Q.size):
            Q[j] /= total
    return total > 0.0


@kernel
def _receive(
    params: Any,
    crowd: Any,
    sample: Any,
    level: Any,
    sign: Any,
    source: Any,
    t: Any,
    a: Any,
    Q: Any,
) -> None:
    """Write the estimates from the v tokens of one level."""
    v, x, G = sample.tokens[level], sample.normals[level], crowd.turn[level]
    base, reach = crowd.base[level], crowd.reach[level]
    u0, u1 = crowd.tilt[level, 0], crowd.tilt[level, 1]
    one, two = sample.turned[level, 0], sample.turned[level, 1]
    first, second = G[0, 0] * one + G[0, 1] * two, G[1, 0] * one + G[1, 1] * two
    scale = sign / math.sqrt(v)
    for j in range(Q.size):
        Q[j] = base[j] + scale * reach[j] * (x[j] - first * u0[j] - second * u1[j])
    for j in range(Q.size):
        if reach[j] < 0.0:
            u = to_unit(block(source, FEW, t, a, j)[0])
            ones = _few(u if sign > 0.0 else 1.0 - u, v, crowd.shares[level, j])
            Q[j] = params.slope[level] * ones / v - params.offset[level]


@kernel
def _few(u: Any, v: Any, share: Any) -> Any:
    if share <= 0.5:
        return invert_binomial(u, v, share)
    return v - invert_binomial(u, v, 1.0 - share)
