"""Where noise enters: on one reward, or on the sums of rewards times contexts.

A *scalar* mechanism privatises each reward by itself, before anybody else sees it. A *stream*
privatises a growing sum, by a binary tree or by the square root of the Toeplitz matrix of ones: one
stream for the paper's b, held by a trusted server, or one for each user. Contexts are public, so a
reward moves a sum by at most the width of its range times the length of its context.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import kernel
from tacit.privacy.samplers import (
    release_ball,
    release_bit,
    release_laplace,
    release_piecewise,
    round_to_bit,
    standard_laplace,
    standard_normal,
)
from tacit.tapes import released

__all__ = ["advance", "best_scalar", "privatise", "scalar_variance", "toeplitz_coefficients"]

NONE = 0
LAPLACE, BIT, PIECEWISE = 1, 2, 3
"""Scalar mechanisms; Laplace is a stream's noise too."""
GAUSSIAN, BALL = 4, 5
"""Noise of a stream."""
SMALL = 128
"""Below this many numbers, loops instead of BLAS."""
PARAMETER, USER = 0, 1
"""A stream releases the paper's b, or a user's sum of x r."""
SCALARS = {"laplace": LAPLACE, "bit": BIT, "piecewise": PIECEWISE}
VECTORS = {"gaussian": GAUSSIAN, "ball": BALL}


def scalar_variance(mechanism: str, epsilon: float) -> float:
    """Return the largest variance, over rewards in [0, 1], of a privatised reward.

    Examples
    --------
    >>> [round(scalar_variance(name, 2.0), 3) for name in ("laplace", "bit", "piecewise")]
    [0.5, 0.431, 0.307]
    """
    if mechanism == "laplace":
        return 2.0 / epsilon**2
    if mechanism == "bit":
        return 1.0 / (4.0 * math.tanh(epsilon / 2.0) ** 2)
    excess = math.expm1(epsilon / 2.0)
    return (1.0 / excess + (excess + 4.0) / (3.0 * excess**2)) / 4.0


def best_scalar(epsilon: float) -> str:
    """Return the scalar mechanism whose largest variance is smallest.

    Examples
    --------
    >>> best_scalar(0.5), best_scalar(2.0)
    ('bit', 'piecewise')
    """
    return min(SCALARS, key=lambda mechanism: scalar_variance(mechanism, epsilon))


def toeplitz_coefficients(steps: int) -> NDArray[np.float64]:
    """Return the first column of the square root of the lower triangular matrix of ones."""
    j = np.arange(1, steps)
    return np.concatenate([[1.0], np.cumprod((2 * j - 1) / (2 * j))])


@kernel
def privatise(rule: Any, tape: Any, t: Any, reward: Any) -> Any:
    """Return what the server is told of a reward in [low, high]; unbiased."""
    if rule.scalar == NONE:
        return reward
    span = rule.high - rule.low
    if rule.scalar == LAPLACE:
        return release_laplace(tape, t, 0, reward, span, rule.epsilon)
    if rule.scalar == BIT:
        keep = 1.0 / (1.0 + math.exp(-rule.epsilon))
        bit = round_to_bit(tape, t, 1, (reward - rule.low) / span)
        told = release_bit(tape, t, 0, bit, keep, keep)
        return rule.low + span * (told - (1.0 - keep)) / (2.0 * keep - 1.0)
    centred = 2.0 * (reward - rule.low) / span - 1.0
    return rule.low + span * (release_piecewise(tape, t, 0, centred, rule.epsilon) + 1.0) / 2.0


@kernel(allocates=True)
def dot(a: Any, b: Any) -> Any:
    """Return the inner product; without BLAS where it is short, to be the same when interpreted."""
    if a.size > SMALL:
        return np.dot(a, b)
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(allocates=True)
def _step(rule: Any, state: Any, tape: Any, t: Any, s: Any) -> None:
    """Draw the noise of stream s for one more step and release its noisy sum."""
    k = state.steps[s] + 1
    state.steps[s] = k
    nodes, total, scale = state.nodes[s], state.current[s], state.scales[s]
    toeplitz = rule.coefficients.size > 0
    slot = k - 1
    if not toeplitz:
        # Step k closes the node of the last 2^slot steps, which replaces all smaller ones.
        slot = 0
        while (k >> slot) & 1 == 0:
            nodes[:, slot] = 0.0
            slot += 1
    if rule.stream == BALL:
        before = state.response[s].copy()
        for j in range(total.size):
            before[j] += dot(nodes[j], np.ones(nodes.shape[1])) - nodes[j, slot]
        after = np.empty(total.size)
        release_ball(tape, t, 0, before, scale, after)
        for j in range(total.size):
            nodes[j, slot] = after[j] - before[j]
            total[j] = after[j] - state.response[s, j]
        return
    past = rule.coefficients[rule.coefficients.size - k :] if toeplitz else np.ones(nodes.shape[1])
    for j in range(total.size):
        if rule.stream == LAPLACE:
            nodes[j, slot] = scale * standard_laplace(tape, t, j)
        else:
            nodes[j, slot] = scale * standard_normal(tape, t, j)
        total[j] = dot(nodes[j, : past.size], past)
        released(tape, state.response[s, j] + total[j])


@kernel(allocates=True)
def advance(rule: Any, state: Any, tape: Any, t: Any, i: Any, x: Any, r: Any) -> None:
    """Add a reward of the user at place i to the sums, and the next noise to their releases."""
    n_users, d = state.mean.shape
    s = i if rule.local == 1 else 0
    if rule.space == USER:
        for a in range(d):
            state.response[s, a] += x[a] * r
        _step(rule, state, tape, t, s)
        for a in range(d):
            state.lift[i, a] = state.current[s, a]
        return
    B, lam = state.basis, rule.regularisation
    for u in range(n_users):
        for a in range(d):
            state.response[s, u * d + a] += B[u, i] * x[a] * r
    for a in range(d):
        for b in range(d):
            state.gram[i, a, b] += x[a] * x[b]
    eta = state.eta.reshape(-1)
    for j in range(eta.size):
        eta[j] -= state.current[s, j]
    _step(rule, state, tape, t, s)
    for j in range(eta.size):
        eta[j] += state.current[s, j]
    c = np.empty(d)
    for u in range(n_users):
        c[:] = 0.0
        for v in range(n_users):
            if B[v, u] != 0.0:
                for a in range(d):
                    c[a] += B[v, u] * state.eta[v, a]
        for a in range(d):
            state.shift[u, a] = c[a] / lam
            total = 0.0
            for b in range(d):
                total += state.gram[u, a, b] * c[b]
            state.lift[u, a] = -total / lam
