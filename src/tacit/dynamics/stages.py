"""The stages of the learning dynamics around dissemination, written once for all engines.

What the population remembers; perturbing (eq. 6), for agents one by one or for their counts; and
choosing from an estimate of popularity (eqs. 8 and 13).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import kernel
from tacit.generator import to_unit
from tacit.privacy.samplers import release_bit
from tacit.tapes import NOISE, WAKE, drawn
from tacit.variates import binomial, block

__all__ = ["Numbers", "State", "awake", "choose", "perturb_counts", "perturb_each"]

_SPOKEN = np.uint64(1 << 63)
_U1 = np.uint64(1)


class Numbers(NamedTuple):
    """What the kernels need."""

    engine: int
    each: bool
    """Whether every agent's perturbed vector is kept, or only the population's counts."""
    silent: bool
    memoised: bool
    p: float
    """Probability that the bit of the adopted option is sent as 1."""
    q: float
    """Probability that another bit is sent as 1."""
    slope: float
    offset: float
    """The estimate (7) is slope * share - offset."""
    beta: float
    mu: float
    tokens: int
    walk: int
    wake: float
    loss: float
    delay: int
    pairs: int


class State(NamedTuple):
    """What the population remembers: N agents, M options, W = delay + 1 rounds under way."""

    adoption: NDArray[np.int16]
    """Shape (N,): the option adopted, -1 for none; (0,) for a crowd."""
    counts: NDArray[np.int64]
    """Shape (M + 1,): adopters of each option, and of none."""
    pool: NDArray[np.int64]
    """Shape (W, 2 M + 1): senders, adopters and ones of each option in the messages under way."""
    message: NDArray[np.uint64]
    """Shape (W, N): perturbed vectors as bits, bit 63 set where something was sent, or (W, 0)."""
    flying: NDArray[np.int64]
    """Shape (W, N): tokens of a message still to travel, or (W, 0)."""
    memo: NDArray[np.uint64]
    """Shape (N,): the vector to repeat, or (0,)."""
    memo_of: NDArray[np.int16]
    """Shape (N,): the adoption it was made of, or (0,)."""
    starts: NDArray[np.int64]
    """Shape (N + 1,): rows of the walk matrix's power, or (0,)."""
    ends: NDArray[np.int32]
    """Where walks can end, row by row."""
    heaps: NDArray[np.float64]
    """The probabilities of a row's ends so far, added up."""
    public: NDArray[np.float64]
    """Shape (3,): mean probability that a hop leaves its agent, changes of adoption so far, slots."""


@kernel
def awake(source: Any, t: Any, a: Any, wake: Any) -> Any:
    """Return whether agent a takes part in round t."""
    return wake >= 1.0 or to_unit(block(source, WAKE, t, a, 0)[0]) < wake


@kernel(inlined=False)
def perturb_each(rule: Any, state: Any, tape: Any, source: Any, t: Any, slot: Any) -> None:
    """Stage 1, eq. (6), agent by agent; what is sent goes to row `slot`."""
    N, M = state.adoption.size, state.counts.size - 1
    state.pool[slot] = 0
    for a in range(N):
        state.message[slot, a] = np.uint64(0)
        state.flying[slot, a] = 0
        x = state.adoption[a]
        if (rule.silent and x < 0) or not awake(source, t, a, rule.wake):
            continue
        sent = _SPOKEN
        if rule.memoised and state.memo[a] != 0 and state.memo_of[a] == x:
            sent = state.memo[a]
        else:
            for j in range(M):
                if release_bit(tape, t, a * M + j, NOISE, x == j, rule.p, 1.0 - rule.q) == 1:
                    sent |= _U1 << np.uint64(j)
        if rule.memoised:
            state.memo[a] = sent
            state.memo_of[a] = x
        state.message[slot, a] = sent
        state.flying[slot, a] = rule.tokens
        state.pool[slot, 0] += 1
        if x >= 0:
            state.pool[slot, 1 + x] += 1
        for j in range(M):
            state.pool[slot, 1 + M + j] += int((sent >> np.uint64(j)) & _U1)


@kernel(inlined=False)
def perturb_counts(
    rule: Any, pool: Any, tape: Any, source: Any, t: Any, slot: Any, senders: Any
) -> None:
    """Stage 1, eq. (6), for the counts of `senders` (the last one adopts nothing)."""
    M = senders.size - 1
    S = 0
    for j in range(M + 1):
        S += senders[j]
    pool[slot, 0] = S
    for j in range(M):
        drawn(tape, t, 2 * j, NOISE, senders[j])
        drawn(tape, t, 2 * j + 1, NOISE, S - senders[j])
        ones = binomial(source, NOISE, t, 2 * j, senders[j], rule.p)
        pool[slot, 1 + j] = senders[j]
        pool[slot, 1 + M + j] = ones + binomial(source, NOISE, t, 2 * j + 1, S - senders[j], rule.q)


@kernel
def choose(u: Any, mu: Any, weights: Any, total: Any) -> Any:
    """Stage 3, eq. (13): explore with probability mu, else follow the estimates (8)."""
    M = weights.size
    if u < mu:
        return min(M - 1, int(u / mu * M))
    u = (u - mu) / (1.0 - mu)
    if total <= 0.0:
        return min(M - 1, int(u * M))
    left = u * total
    last = 0
    for j in range(M):
        if weights[j] > 0.0:
            last = j
            left -= weights[j]
            if left < 0.0:
                return j
    return last
