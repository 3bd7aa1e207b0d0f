"""Predictions from sums that were released with noise, and from nothing else.

Released sums zeta of phi r, one for each person, give S zeta. The paper's statistic b, released as eta,
gives B' A^-1 eta, which by the push-through identity is (c - S Phi c) / lambda with c = B' eta and Phi the
sum of phi phi'. So both are S `lift` + `shift`, calculated when somebody arrives, and what is predicted
without noise stays 0. A policy that releases no sums has None in the place of `Streams` and `Sums`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.ridge import Block, Ridge, apply_rows, component
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE
from tacit.privacy.mechanisms.continual_sums import Stream
from tacit.privacy.mechanisms.streams import next_sum

PARAMETER, USER = 0, 1
"""A stream releases the paper's b, or a person's sum of x r."""


class Streams(NamedTuple):
    """How sums are released."""

    stream: Stream
    """Rewards beyond its capacity are not taken in."""
    depth: int
    """How many numbers a stream keeps for each coordinate."""
    space: int
    """What it releases: the paper's b, or each person's own sum."""
    own: int
    """1 if every person has an own stream."""


class Sums(NamedTuple):
    """What was released, and what streams remember."""

    basis: NDArray[np.float64]
    """Shape (N, N): B, where noise is added to b, else (0, 0)."""
    scales: NDArray[np.float64]
    """Shape (streams, 4): scale of a stream's noise; step, noise and reach on a secure tape."""
    steps: NDArray[np.int64]
    """Shape (streams,): how far each stream is."""
    memory: NDArray[np.float64]
    """Shape (streams, dim, depth): what `next_sum` keeps, true sums among it."""
    sums: NDArray[np.float64]
    """Shape (streams, dim): each stream's sum as it was released last."""
    eta: NDArray[np.float64]
    """Shape (N d,): b as it was released, the sum over streams."""
    lift: NDArray[np.float64]
    """Shape (N, d): what S is applied to."""
    shift: NDArray[np.float64]
    """Shape (N, d): what is added to it."""


def new_sums(
    streams: Streams, blocks: Sequence[Block], ridge: Ridge, scales: NDArray[np.float64]
) -> Sums:
    """Return sums of nothing.

    Parameters
    ----------
    streams : Streams
    blocks : sequence of Block
        The matrix B.
    ridge : Ridge
        Made of the same blocks.
    scales : array of shape (streams, 4)
        What sets the noise of each stream, in the order of people.
    """
    n_users, d = ridge.mean.shape
    on_b = streams.space == PARAMETER
    basis = np.zeros((n_users, n_users) if on_b else (0, 0))
    for block in blocks if on_b else ():
        basis[np.ix_(ridge.place[block.rows], ridge.place[block.members])] = block.basis
    order = np.concatenate([block.members for block in blocks])
    n, dim = len(scales), n_users * d if on_b else d
    return Sums(
        basis=basis,
        scales=scales[order] if streams.own else scales.copy(),
        steps=np.zeros(n, np.int64),
        memory=np.zeros((n, dim, streams.depth)),
        sums=np.zeros((n, dim)),
        eta=np.zeros(n_users * d),
        lift=np.zeros((n_users, d)),
        shift=np.zeros((n_users, d)),
    )


def scratch_size(sums: Sums | None) -> int:
    """Return how many numbers `release_sum` needs to work with."""
    return 0 if sums is None else 2 * sums.sums.shape[1]


@kernel(inlined=False)
def add_predictions(sums: Any, ridge: Any, i: Any, p: Any) -> None:
    """Add to the predictions for the person at place i what released sums say."""
    if sums is None:
        return
    part, d = component(ridge, i), p.size
    for a in range(d):
        p[a] += sums.shift[i, a]
    apply_rows(part, sums.lift.reshape(-1)[part.first * d : (part.first + part.size) * d], p)


@kernel
def noise_in_width(sums: Any, streams: Any, so_far: Any) -> Any:
    """Return the sum over streams of the squared scale times the logarithm of the rounds, so far or ever."""
    if sums is None:
        return 0.0
    noise = 0.0
    for s in range(sums.steps.size):
        rounds = sums.steps[s] if so_far else streams.stream.capacity
        noise += math.log(max(rounds, 1)) * sums.scales[s, 0] * sums.scales[s, 0]
    return noise


@kernel
def stream_of(streams: Any, i: Any) -> Any:
    """Return the number of the stream for the person at place i."""
    return i if streams.own == 1 else 0


@kernel(inlined=False)
def release_sum(
    params: Any, state: Any, tape: Any, t: Any, i: Any, s: Any, x: Any, reward: Any
) -> None:
    """Add a reward to the sum of stream s, release it and predict with what is released."""
    sums, streams = state.sums, params.channel.streams
    d, dim = x.size, sums.sums.shape[1]
    item, fresh = state.work[:dim], state.work[dim : 2 * dim]
    if streams.space == USER:
        for a in range(d):
            item[a] = x[a] * reward
    else:
        for u in range(sums.basis.shape[0]):
            for a in range(d):
                item[u * d + a] = sums.basis[u, i] * x[a] * reward
    remove_from_b(params, state, s)
    sums.steps[s] += 1
    scale, grid, memory, out = sums.scales[s, 0], sums.scales[s, 1:], sums.memory[s], sums.sums[s]
    step = sums.steps[s]
    next_sum(tape, t, 0, NOISE, step, streams.stream, scale, grid, item, memory, fresh, out)
    use_released(params, state, i, s)


@kernel
def remove_from_b(params: Any, state: Any, s: Any) -> None:
    """Take the sum of stream s, which is to change, out of b."""
    if params.channel.streams.space == PARAMETER:
        for j in range(state.sums.eta.size):
            state.sums.eta[j] -= state.sums.sums[s, j]


@kernel
def use_released(params: Any, state: Any, i: Any, s: Any) -> None:
    """Predict with the sum of stream s as it was released, for the person at place i."""
    sums, d = state.sums, state.ridge.mean.shape[1]
    if params.channel.streams.space == USER:
        for a in range(d):
            sums.lift[i, a] = sums.sums[s, a]
        return
    for j in range(sums.eta.size):
        sums.eta[j] += sums.sums[s, j]
    _push_through(sums, state.ridge.gram, params.regularisation, state.work[:d])


@kernel
def _push_through(sums: Any, gram: Any, lam: Any, c: Any) -> None:
    """Write B' A^-1 eta as S lift + shift: c = B' eta, shift = c / lambda, lift = -Phi c / lambda."""
    B, n_users, d = sums.basis, gram.shape[0], c.size
    for u in range(n_users):
        for a in range(d):
            c[a] = 0.0
        for v in range(n_users):
            if B[v, u] != 0.0:
                for a in range(d):
                    c[a] += B[v, u] * sums.eta[v * d + a]
        for a in range(d):
            sums.shift[u, a] = c[a] / lam
            total = 0.0
            for b in range(d):
                total += gram[u, a, b] * c[b]
            sums.lift[u, a] = -total / lam
