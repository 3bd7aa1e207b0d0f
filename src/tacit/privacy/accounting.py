"""Composition: what several releases about the same record cost together.

With delta 0 the pure epsilons add up. Otherwise the distributions of the privacy loss are convolved
(dp-accounting, imported when first needed) and the smaller of the two answers is taken; both are
upper bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tacit.checks import require
from tacit.privacy.mechanisms import Release

__all__ = ["certain_loss", "composed_delta", "composed_epsilon", "loss_distribution"]

Parts = Sequence[tuple[Release, int]]
_RESOLUTION = 128
_UNDERFLOW = 700.0
_MOST = 1e9


def composed_epsilon(releases: Parts, delta: float = 0.0) -> float:
    """Return the epsilon of all releases together at `delta`; infinite if there is none.

    Parameters
    ----------
    releases : sequence of (Release, int)
        Each release with the number of times it is made about the same record.
    delta : float
        The delta, in [0, 1).

    Examples
    --------
    >>> from tacit.privacy import LaplaceRelease
    >>> composed_epsilon([(LaplaceRelease(scale=10.0), 500)])
    50.0
    >>> round(composed_epsilon([(LaplaceRelease(scale=10.0), 500)], 1e-6), 1)
    12.3
    """
    require("composed_epsilon", "delta", "in [0, 1)", 0 <= delta < 1, delta)
    parts = _merged(releases)
    pure = math.fsum(count * release.epsilon for release, count in parts)
    if delta == 0 or pure == 0 or not parts:
        return pure
    if len(parts) == 1 and parts[0][1] == 1:
        return min(pure, _least_epsilon(parts[0][0].delta, delta, 1e-12))
    return min(pure, _epsilon_of(loss_distribution(parts), delta))


def composed_delta(releases: Parts, epsilon: float) -> float:
    """Return the delta of all releases together at `epsilon`."""
    require("composed_delta", "epsilon", ">= 0", epsilon >= 0, epsilon)
    parts = _merged(releases)
    if math.fsum(count * release.epsilon for release, count in parts) <= epsilon:
        return 0.0
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].delta(epsilon)
    return min(1.0, float(loss_distribution(parts).get_delta_for_epsilon(epsilon)))


def certain_loss(releases: Parts) -> float:
    """Return the delta that no epsilon avoids: the probability of what betrays the record."""
    kept = [1.0, 1.0]
    for release, count in _merged(releases):
        for side, delta in enumerate(release._hockey_stick(np.array([_MOST]))):
            kept[side] *= (1 - float(delta[0])) ** count
    return 1 - min(kept)


def loss_distribution(releases: Parts) -> Any:
    """Return the privacy-loss distribution of all releases together.

    Every release is counted by composing its own distribution with itself: the accountant of
    dp-accounting 0.6.0 ignores the count of a randomized response.
    """
    parts = _merged(releases)
    require("loss_distribution", "releases", "not empty", bool(parts), releases)
    interval = min(release.spread for release, _ in parts) / _RESOLUTION
    total: Any = None
    for release, count in parts:
        distribution = release.loss_distribution(interval)
        if count > 1:
            distribution = distribution.self_compose(count)
        total = distribution if total is None else total.compose(distribution)
    return total


def _epsilon_of(distribution: Any, delta: float) -> float:
    try:
        epsilon = float(distribution.get_epsilon_for_delta(delta))
    except OverflowError:
        epsilon = _UNDERFLOW
    if epsilon < _UNDERFLOW or math.isinf(epsilon):
        return epsilon
    # Where exp(-epsilon) underflows, dp-accounting returns the next point of its grid, or fails.
    return _least_epsilon(distribution.get_delta_for_epsilon, delta, 1e-9)


def _least_epsilon(curve: Callable[[float], float], delta: float, tolerance: float) -> float:
    if curve(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while curve(high) > delta:
        low, high = high, 2 * high
        if high > _MOST:
            return math.inf
    while high - low > tolerance * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return high


def _merged(releases: Iterable[tuple[Release, int]]) -> list[tuple[Release, int]]:
    counts: dict[Release, int] = {}
    for release, count in releases:
        require("compose", "count", ">= 0", count >= 0, count)
        if count > 0 and release.spread > 0:
            counts[release] = counts.get(release, 0) + count
    return list(counts.items())
