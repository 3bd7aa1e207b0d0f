"""The level that all rewards have in common, where it is learned: c of y = c + x' theta.

It is not shrunk. Given c the predictions are S b - c S a, with a the sum of phi over all answers. The best
c makes what predictions leave of answers, and of ones, go together: both are added up as answers come.

A policy that learns no level has None in its place, and every kernel here then does nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel
from tacit.core.linalg import dot


class Level(NamedTuple):
    """What answers say of the level, by place."""

    reports: NDArray[np.float64]
    """Shape (4,): the sums of 1 / v and of y / v; the precision of the level, and that times the level."""
    ones: NDArray[np.float64]
    """Shape (N, d): the sum of x / v."""
    lifted: NDArray[np.float64]
    """Shape (N, d): what predictions would be had every answer been 1, S times `ones`."""


def new_level(n_users: int, dimension: int) -> Level:
    """Return a level of which nothing is known."""
    shape = (n_users, dimension)
    return Level(np.zeros(4), np.zeros(shape), np.zeros(shape))


@kernel
def value_of(level: Any) -> Any:
    """Return c, by least squares; 0 before anything says what it is."""
    if level is None:
        return 0.0
    return level.reports[3] / level.reports[2] if level.reports[2] > 0.0 else 0.0


@kernel
def subtract_level(level: Any, i: Any, p: Any) -> None:
    """Take the level out of the coefficients of the predictions for the person at place i."""
    if level is None:
        return
    common = value_of(level)
    for a in range(p.size):
        p[a] -= common * level.lifted[i, a]


@kernel
def subtract_from_all(level: Any, values: Any, sums: Any) -> None:
    """Take the level out of all people's predictions or, of `sums`, out of their sums of x y / v."""
    if level is None:
        return
    common, ones = value_of(level), level.ones if sums else level.lifted
    for i in range(ones.shape[0]):
        for a in range(ones.shape[1]):
            values[i, a] -= common * ones[i, a]


@kernel(inlined=False)
def observe_level(
    level: Any, first: Any, i: Any, x: Any, g: Any, y: Any, v: Any, square: Any, step: Any
) -> None:
    """Take in what an answer says of the level: how much of 1, and of y, was not predicted."""
    if level is None:
        return
    d = x.size
    missing = 1.0
    for a in range(d):
        missing -= x[a] * level.lifted[i, a]
        level.ones[i, a] += x[a] / v
    lifted = level.lifted.reshape(-1)[first * d : first * d + g.size]
    for j in range(lifted.size):
        lifted[j] += missing / (v + square) * g[j]
    level.reports[0] += 1.0 / v
    level.reports[1] += y / v
    level.reports[2] += missing * missing / (v + square)
    level.reports[3] += missing * step


@kernel
def fade_level(level: Any, factor: Any) -> None:
    """Let all earlier answers count less."""
    if level is None:
        return
    for i in range(level.ones.shape[0]):
        for a in range(level.ones.shape[1]):
            level.ones[i, a] *= factor
    level.reports[0] *= factor
    level.reports[1] *= factor


@kernel
def restart_level(level: Any) -> None:
    """Begin to find the level anew: every component is to be added."""
    if level is None:
        return
    level.reports[2], level.reports[3] = level.reports[0], level.reports[1]


@kernel(inlined=False)
def add_to_level(level: Any, first: Any, S: Any, mean: Any) -> None:
    """Add what one component says, given its S, up to date and whole, and its predictions."""
    if level is None:
        return
    n, d = S.shape[0], level.ones.shape[1]
    ones = level.ones.reshape(-1)[first * d : first * d + n]
    lifted = level.lifted.reshape(-1)[first * d : first * d + n]
    for j in range(n):
        lifted[j] = dot(S[j], ones)
        level.reports[2] -= ones[j] * lifted[j]
        level.reports[3] -= ones[j] * mean[j]
