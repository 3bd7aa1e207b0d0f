"""Where noise enters: on one reward, or on the sums of rewards times contexts.

A *scalar* mechanism privatises each reward by itself, before anybody else sees it. A *stream*
privatises a growing sum, by a binary tree or by the square root of the Toeplitz matrix of ones: one
stream for the paper's b, held by a trusted server, or one for each user. Contexts are public, so a
reward moves a sum by at most the width of its range times the length of its context.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.compiled import kernel
from tacit.privacy.mechanisms import (
    release_ball,
    standard_laplace,
    standard_normal,
)
from tacit.tapes import NOISE, released

__all__ = [
    "next_noise",
    "push_through",
]

NONE = 0
LAPLACE, GAUSSIAN, BALL = 1, 2, 3
"""Noise of a stream."""
SMALL = 128
"""Below this many numbers, loops instead of BLAS."""
PARAMETER, USER = 0, 1
"""A stream releases the paper's b, or a user's sum of x r."""


@kernel(allocates=True)
def _blas_dot(a: Any, b: Any) -> Any:
    return np.dot(a, b)


@kernel
def dot(a: Any, b: Any) -> Any:
    """Return the inner product; without BLAS where it is short, to be the same when interpreted."""
    if a.size > SMALL:
        return _blas_dot(a, b)
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(inlined=False)
def next_noise(
    tape: Any,
    t: Any,
    k: Any,
    kind: Any,
    scale: Any,
    coefficients: Any,
    response: Any,
    nodes: Any,
    total: Any,
    work: Any,
) -> None:
    """Draw what step k of a stream adds, release `response` with its noise, write it to `total`."""
    dim = total.size
    toeplitz = coefficients.size > 0
    slot = k - 1
    if not toeplitz:
        # Step k closes the node of the last 2^slot steps, which replaces all smaller ones.
        slot = 0
        while (k >> slot) & 1 == 0:
            for j in range(dim):
                nodes[j, slot] = 0.0
            slot += 1
    if kind == BALL:
        before, after = work[:dim], work[dim : 2 * dim]
        for j in range(dim):
            before[j] = response[j]
            for level in range(slot + 1, nodes.shape[1]):
                before[j] += nodes[j, level]
        release_ball(tape, t, 0, NOISE, before, scale, after)
        for j in range(dim):
            nodes[j, slot] = after[j] - before[j]
            total[j] = after[j] - response[j]
        return
    for j in range(dim):
        if kind == LAPLACE:
            nodes[j, slot] = scale * standard_laplace(tape, t, j, NOISE)
        else:
            nodes[j, slot] = scale * standard_normal(tape, t, j, NOISE)
        if toeplitz:
            total[j] = dot(nodes[j, :k], coefficients[coefficients.size - k :])
        else:
            total[j] = 0.0
            for level in range(nodes.shape[1]):
                total[j] += nodes[j, level]
        released(tape, response[j] + total[j])


@kernel
def push_through(B: Any, eta: Any, gram: Any, lam: Any, lift: Any, shift: Any, c: Any) -> None:
    """Write B' A^-1 eta as S lift + shift: c = B' eta, shift = c / lambda, lift = -Phi c / lambda."""
    n_users, d = lift.shape
    for u in range(n_users):
        for a in range(d):
            c[a] = 0.0
        for v in range(n_users):
            if B[v, u] != 0.0:
                for a in range(d):
                    c[a] += B[v, u] * eta[v * d + a]
        for a in range(d):
            shift[u, a] = c[a] / lam
            total = 0.0
            for b in range(d):
                total += gram[u, a, b] * c[b]
            lift[u, a] = -total / lam
