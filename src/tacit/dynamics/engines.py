"""How perturbed adoptions travel: four engines for the second stage of the learning dynamics.

`walk` moves every token over the network hop by hop, with the queues of the CONGEST model. `spread`
draws where all tokens of an agent end from the rows of the walk matrix's power: the same
distribution without the hops. `deal` gives every token to a uniformly random agent, which is what a
long walk does. `Crowd` keeps only the mean and the covariance of what one agent then receives; its
cost does not depend on the number of tokens, nor need it on the number of agents.

The covariance. Let S agents send, w_j of them adopters of option j, and let C_j / S = L_j of the
sent vectors have bit j set. A token drawn at random has bit j with probability L_j; bits j and k
are dependent only through the option behind them, with covariance -(p - q)^2 w_j w_k. So the
covariance of v tokens' mean is (diag(a) - c c') / v with c = (p - q) w and a = L (1 - L) + c^2, and
a root of it needs one inner product: sqrt(a) (x - gamma u (u'x)), u = c / sqrt(a).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import kernel
from tacit.generator import to_unit
from tacit.networks.walks import metropolis_step
from tacit.tapes import ARRIVE, COUNT, DEAL, FEW, LOSE, RECEIVE, SPREAD, WALK
from tacit.variates import binomial, block, invert_binomial, normal

__all__ = ["Crowd", "crowd_of", "deal", "receive", "spread", "walk"]

#: Below this expected number of ones (or zeros) a count is drawn as a binomial, not a normal.
SMALL = 32.0
#: Above this mean the number of tokens an agent receives is drawn as a rounded normal.
LARGE = 1000.0
_LOW16, _LOW24 = np.uint64(0xFFFF), np.uint64(0xFFFFFF)
_U1, _U16, _U40 = np.uint64(1), np.uint64(16), np.uint64(40)


class Crowd(NamedTuple):
    """What one agent receives under perfect mixing, given what the population sent."""

    shares: NDArray[np.float64]
    """Shape (M,): L, the share of sent vectors with the bit set."""
    base: NDArray[np.float64]
    """Shape (M,): the estimate (7) at L, before clipping."""
    reach: NDArray[np.float64]
    """Shape (M,): slope sqrt(a); -1 where the count is small and drawn as a binomial."""
    tilt: NDArray[np.float64]
    """Shape (M,): u."""
    numbers: NDArray[np.float64]
    """Shape (4,): mean and standard deviation of the tokens received, gamma, tokens under way."""


@kernel(allocates=True)
def new_crowd(M: Any) -> Any:
    """Return an empty crowd."""
    return Crowd(np.zeros(M), np.zeros(M), np.zeros(M), np.zeros(M), np.zeros(4))


@kernel(inlined=False)
def crowd_of(rule: Any, pool: Any, N: Any, crowd: Any) -> None:
    """Work out the moments from the pool of messages under way: senders, adopters, ones."""
    M = crowd.shares.size
    S = 0
    for s in range(pool.shape[0]):
        S += pool[s, 0]
    arrive = (1.0 - rule.loss) / (N * (rule.delay + 1.0))
    mean = S * rule.tokens * arrive
    crowd.numbers[0] = mean
    crowd.numbers[1] = math.sqrt(mean * (1.0 - arrive))
    crowd.numbers[3] = S * rule.tokens
    if S == 0:
        return
    length = 0.0
    for j in range(M):
        D, C = 0, 0
        for s in range(pool.shape[0]):
            D += pool[s, 1 + j]
            C += pool[s, 1 + M + j]
        L = C / S
        c = (rule.p - rule.q) * D / S
        a = L * (1.0 - L) + c * c
        few = mean * min(L, 1.0 - L) < SMALL
        crowd.shares[j] = L
        crowd.base[j] = rule.slope * L - rule.offset
        crowd.reach[j] = -1.0 if few else rule.slope * math.sqrt(a)
        crowd.tilt[j] = 0.0 if few else c / math.sqrt(a)
        length += crowd.tilt[j] * crowd.tilt[j]
    crowd.numbers[2] = (1.0 - math.sqrt(max(0.0, 1.0 - length))) / length if length > 0 else 0.0


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
    """Fill x with the normals of agent a in round t and return u'x."""
    M = x.size
    inner = 0.0
    for k in range(0, M, 4):
        w0, w1, w2, w3 = block(source, RECEIVE, t, a, 1 + (k >> 2))
        x[k] = normal(w0, source, RECEIVE, t, a, k)
        inner += tilt[k] * x[k]
        if k + 1 < M:
            x[k + 1] = normal(w1, source, RECEIVE, t, a, k + 1)
            inner += tilt[k + 1] * x[k + 1]
        if k + 2 < M:
            x[k + 2] = normal(w2, source, RECEIVE, t, a, k + 2)
            inner += tilt[k + 2] * x[k + 2]
        if k + 3 < M:
            x[k + 3] = normal(w3, source, RECEIVE, t, a, k + 3)
            inner += tilt[k + 3] * x[k + 3]
    return inner


@kernel
def receive(
    slope: Any, offset: Any, shares: Any, base: Any, reach: Any, tilt: Any,
    v: Any, x: Any, inner: Any, sign: Any, source: Any, t: Any, a: Any, weights: Any,
) -> Any:  # fmt: skip
    """Write the estimates (7) of an agent that received v tokens; return their sum."""
    total = 0.0
    scale = sign / math.sqrt(v)
    for j in range(x.size):
        if reach[j] >= 0.0:
            estimate = base[j] + scale * reach[j] * (x[j] - inner * tilt[j])
        else:
            u = to_unit(block(source, FEW, t, a, j)[0])
            estimate = slope * _few(u if sign > 0.0 else 1.0 - u, v, shares[j]) / v - offset
        weights[j] = max(estimate, 0.0)
        total += weights[j]
    return total


@kernel
def _few(u: Any, v: Any, share: Any) -> Any:
    if share <= 0.5:
        return invert_binomial(u, v, share)
    return v - invert_binomial(u, v, 1.0 - share)


@kernel(inlined=False)
def arrivals(rule: Any, source: Any, t: Any, d: Any, N: Any, a: Any, flying: Any) -> Any:
    """Return how many of `flying` tokens, sent d rounds ago, travel now and how many of them last.

    Delays are uniform on 0, ..., `delay`, so a token that has waited d rounds goes with
    probability 1 / (delay + 1 - d).
    """
    going = binomial(source, ARRIVE, t, d * N + a, flying, 1.0 / (rule.delay + 1 - d))
    return going, binomial(source, LOSE, t, d * N + a, going, 1.0 - rule.loss)


@kernel
def _deliver(got: Any, received: Any, b: Any, mask: Any, c: Any) -> None:
    got[b] += c
    for j in range(received.shape[1]):
        if (mask >> np.uint64(j)) & _U1 != 0:
            received[b, j] += c


@kernel(inlined=False)
def spread(
    source: Any, t: Any, d: Any, a: Any, n: Any, mask: Any,
    starts: Any, ends: Any, heaps: Any, got: Any, received: Any,
) -> None:  # fmt: skip
    """Send n tokens of agent a to the ends of their walks, whose probabilities add up to `heaps`.

    Many tokens: one binomial for each possible end, given none of the earlier ones. Few: one search
    for each token.
    """
    first, last = starts[a], starts[a + 1]
    if 4 * n < last - first:
        for k in range(n):
            u = to_unit(block(source, SPREAD, t, d * heaps.size + first, k)[0]) * heaps[last - 1]
            e = min(first + np.searchsorted(heaps[first:last], u, side="right"), last - 1)
            _deliver(got, received, ends[e], mask, 1)
        return
    below = 0.0
    for e in range(first, last):
        share = (heaps[e] - below) / (heaps[last - 1] - below) if e < last - 1 else 1.0
        below = heaps[e]
        c = binomial(source, SPREAD, t, d * heaps.size + e, n, share)
        if c > 0:
            _deliver(got, received, ends[e], mask, c)
            n -= c
        if n == 0:
            return


@kernel(inlined=False)
def deal(
    source: Any, t: Any, d: Any, N: Any, a: Any, n: Any, mask: Any, got: Any, received: Any
) -> None:
    """Give each of n tokens of agent a to a uniformly random agent."""
    w0, w1, w2, w3 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for k in range(n):
        if k & 3 == 0:
            w0, w1, w2, w3 = block(source, DEAL, t, d * N + a, k >> 2)
        b = int(to_unit(w0) * N)
        w0, w1, w2, w3 = w1, w2, w3, w0
        _deliver(got, received, b, mask, 1)


@kernel(allocates=True)
def walk(
    source: Any, t: Any, launched: Any, messages: Any, length: Any, quota: Any,
    indptr: Any, indices: Any, got: Any, received: Any,
) -> Any:  # fmt: skip
    """Walk every token `length` hops by eq. (2); return messages sent and time slots taken.

    In a slot an agent forwards the first `quota` tokens of its queue. Staying costs no message.
    `launched` and `messages` have one row for each round that tokens are still under way from.
    """
    N = got.size
    alive = 0
    for s in range(launched.shape[0]):
        for a in range(N):
            alive += launched[s, a]
    # A token is (index of its message, where it is, hops left) in 24, 24 and 16 bits.
    queue = np.empty(alive, np.uint64)
    moved = np.empty(alive, np.uint64)
    k = 0
    for s in range(launched.shape[0]):
        for a in range(N):
            token = (np.uint64(s * N + a) << _U40) | (np.uint64(a) << _U16) | np.uint64(length)
            for _ in range(launched[s, a]):
                queue[k] = token
                k += 1
    used = np.zeros(N, np.int64)
    sent, slots = 0, 0
    w0, w1, w2, w3 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    while alive > 0:
        used[:] = 0
        waiting, moving = 0, 0
        for k in range(alive):
            if k & 3 == 0:
                w0, w1, w2, w3 = block(source, WALK, t, k >> 2, slots)
            word = w0
            w0, w1, w2, w3 = w1, w2, w3, w0
            token = queue[k]
            here = int((token >> _U16) & _LOW24)
            if used[here] >= quota:
                queue[waiting] = token
                waiting += 1
                continue
            used[here] += 1
            there = metropolis_step(indptr, indices, here, to_unit(word))
            sent += there != here
            left = (token & _LOW16) - _U1
            index = token >> _U40
            if left == 0:
                got[there] += 1
                mask = messages[int(index) // N, int(index) % N]
                for j in range(received.shape[1]):
                    received[there, j] += int((mask >> np.uint64(j)) & _U1)
            else:
                moved[moving] = (index << _U40) | (np.uint64(there) << _U16) | left
                moving += 1
        for k in range(moving):
            queue[waiting + k] = moved[k]
        alive = waiting + moving
        slots += 1
    return sent, slots
