"""Composition: what several releases about the same record cost together.

With delta 0 the pure epsilons add up. Otherwise three upper bounds are at hand, and the least is the
answer: the sum of the pure epsilons; the distribution of the total privacy loss, convolved by a
Fourier transform (Gopi, Lee and Wutschitz, NeurIPS 2021), while a quarter of a million points hold it; and,
however many they are, the bound of Chernoff on the same loss. Gaussian releases are one Gaussian
release together, exactly.

A release about one record may be made in either direction of its worst pair, and the next one in
the other. So each counts with the larger of its two curves, which is the curve of a pair again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.privacy.mechanisms.gaussian import DiscreteGaussianRelease, GaussianRelease
from tacit.privacy.releases import Release, connected_dots

Array = NDArray[np.float64]
Parts = Sequence[tuple[Release, int]]
_RESOLUTION, _COARSE = 128, 32
_MANY = 10_000
_POINTS = 2**18
_HOPELESS = 1e5
_OUTSIDE = 1e-18
_MOST = 1e300


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
    return _epsilon(tuple(_merge(releases)), delta)


@lru_cache(maxsize=512)
def _epsilon(parts: tuple[tuple[Release, int], ...], delta: float) -> float:
    # Remembered, because a page about a running experiment asks for the same one again and again.
    pure = math.fsum(count * release.epsilon for release, count in parts)
    if delta == 0 or pure == 0 or not parts:
        return pure
    if len(parts) == 1 and parts[0][1] == 1:
        return _single_epsilon(parts[0][0], delta)
    if _hopeless(parts):
        return pure
    total = _Total(_simple(parts))
    return min(pure, total.chernoff_epsilon(delta), total.convolved_epsilon(delta))


def composed_delta(releases: Parts, epsilon: float) -> float:
    """Return the delta of all releases together at `epsilon`."""
    require("composed_delta", "epsilon", ">= 0", epsilon >= 0, epsilon)
    parts = _merge(releases)
    if math.fsum(count * release.epsilon for release, count in parts) <= epsilon:
        return 0.0
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].delta(epsilon)
    if _hopeless(parts):
        return 1.0
    total = _Total(_simple(parts))
    return min(1.0, total.chernoff_delta(epsilon), total.convolved_delta(epsilon))


def _hopeless(parts: Parts) -> bool:
    """Return whether a single release loses more than a grid of losses holds: nothing is hidden."""
    return any(_HOPELESS < release.epsilon < math.inf for release, _ in parts)


def certain_loss(releases: Parts) -> float:
    """Return the delta that no epsilon avoids: the probability of what betrays the record."""
    kept = 0.0
    for release, count in _merge(releases):
        kept += count * math.log1p(-release.certain) if release.certain < 1 else -math.inf
    return -math.expm1(kept)


def loss_distribution(releases: Parts) -> Any:
    """Return the privacy-loss distribution of all releases together, as dp-accounting has it.

    For those who go on with that library; `composed_epsilon` does without. Every release is counted
    by composing its own distribution with itself: the accountant of dp-accounting 0.6.0 ignores
    the count of a randomized response.
    """
    parts = _merge(releases)
    require("loss_distribution", "releases", "not empty", bool(parts), releases)
    interval = min(release.spread for release, _ in parts) / _RESOLUTION
    total: Any = None
    for release, count in parts:
        distribution = release.loss_distribution(interval)
        if count > 1:
            distribution = distribution.self_compose(count)
        total = distribution if total is None else total.compose(distribution)
    return total


@dataclass(frozen=True)
class _Losses:
    """The loss of one release on a grid, never optimistic: ``masses[i]`` at ``(i - top) step``."""

    step: float
    masses: Array
    certain: float
    """The probability of an infinite loss."""
    variance: float | None = None
    """Of a Gaussian release, whose moments are known without a grid."""

    @staticmethod
    @lru_cache(maxsize=32)
    def of(release: Release, step: float) -> _Losses:
        top = 1 + math.ceil(release._largest_loss() / step)
        epsilon = step * np.arange(top + 1, dtype=np.float64)
        masses, certain = connected_dots(release._hockey_stick(epsilon), step)
        gaussian = isinstance(release, GaussianRelease | DiscreteGaussianRelease)
        return _Losses(step, masses, certain, release.spread**2 if gaussian else None)

    @property
    def top(self) -> int:
        return self.masses.size // 2

    @cached_property
    def values(self) -> Array:
        values: Array = self.step * np.arange(-self.top, self.top + 1, dtype=np.float64)
        return values

    def log_moments(self, orders: Array) -> Array:
        """Return log E[exp(s L)] over finite losses L, for each order s."""
        if self.variance is not None:
            exact: Array = orders * (orders + 1) / 2 * self.variance
            return exact
        few = max(1, 2**22 // self.masses.size)
        some = self.masses > 0  # where there is none, an infinite moment would be not a number
        values, masses = self.values[some], self.masses[some]
        with np.errstate(over="ignore"):
            parts = [
                np.expm1(np.multiply.outer(orders[i : i + few], values)) @ masses
                for i in range(0, orders.size, few)
            ]
        # The moment of order 0 is what is left beside the certain loss. One below rounding is raised to it.
        less = np.maximum(np.concatenate(parts) - self.certain, 2.0**-52 - 1)
        logs: Array = np.log1p(less)
        return logs


class _Total:
    """The sum of the losses of all releases, bounded from above."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.count = sum(count for _, count in parts)
        resolution = _RESOLUTION if self.count <= _MANY else _COARSE
        self.step = min(release.spread for release, _ in parts) / resolution
        widest = max(release._largest_loss() for release, _ in parts)
        self.step = max(self.step, widest / _POINTS)
        self.losses = [(_Losses.of(release, self.step), count) for release, count in parts]
        kept = math.fsum(
            count * (math.log1p(-each.certain) if each.certain < 1 else -math.inf)
            for each, count in self.losses
            if each.variance is None
        )
        self.certain = -math.expm1(kept)

    def _log_moments(self, orders: Array) -> Array:
        total: Array = np.zeros(orders.size)
        for each, count in self.losses:
            total += count * each.log_moments(orders)
        return total

    @cached_property
    def _orders(self) -> Array:
        # No moment overflows: beyond, the exponential of the largest loss would.
        largest = max(float(each.values[-1]) for each, _ in self.losses)
        orders: Array = np.geomspace(1e-13 / largest, 600 / largest, 400)
        return orders

    @cached_property
    def _curve(self) -> Array:
        return self._log_moments(self._orders)

    def chernoff_epsilon(self, delta: float) -> float:
        """Return an epsilon that holds at `delta`: Canonne, Kamath and Steinke (2020), Prop. 12."""
        rest = delta - self.certain
        if rest <= 0:
            return math.inf

        def bound(orders: Array, moments: Array) -> Array:
            slack = orders * np.log(orders) - (1 + orders) * np.log1p(orders) - math.log(rest)
            value: Array = (moments + slack) / orders
            return value

        found = bound(self._orders, self._curve)
        best = int(np.argmin(found))
        near = self._orders[max(0, best - 1) : best + 2]
        fine = np.geomspace(near[0], near[-1], 64)
        least = min(float(found[best]), float(bound(fine, self._log_moments(fine)).min()))
        return max(0.0, least * (1 + 1e-9))

    def chernoff_delta(self, epsilon: float) -> float:
        """Return a delta that holds at `epsilon`, by the same bound."""
        if self.certain == 1:
            return 1.0
        s = self._orders
        exponent = self._curve - s * epsilon + s * np.log(s) - (1 + s) * np.log1p(s)
        return min(1.0, self.certain + math.exp(min(0.0, float(exponent.min()) + 1e-9)))

    @cached_property
    def _window(self) -> tuple[int, int] | None:
        """Return the grid points outside which the loss lies with a probability below 1e-18."""
        if self.certain == 1:
            return None
        level, s = -math.log(_OUTSIDE), self._orders
        high = float(((self._curve + level) / s).min())
        low = float((-(self._log_moments(-s) + level) / s).max())
        reach = sum(count * each.top for each, count in self.losses)
        first = max(-reach, math.floor(low / self.step) - 1)
        last = min(reach, math.ceil(high / self.step) + 1)
        return (first, last) if last - first < _POINTS else None

    @cached_property
    def _convolved(self) -> tuple[Array, Array, float] | None:
        """Return losses, their probabilities, and what lies beyond.

        A transform has a period. What lies below the window comes out above it, which is never
        optimistic; what lies above is bounded and counted as certain.
        """
        if self._window is None:
            return None
        first, last = self._window
        size = 1 << max(1, (last - first).bit_length())
        spectrum: Any = np.ones(size // 2 + 1, np.complex128)
        for each, count in self.losses:
            places = np.arange(-each.top, each.top + 1) % size
            spectrum *= np.fft.rfft(np.bincount(places, each.masses, size)) ** count
        masses = np.maximum(np.fft.irfft(spectrum, size), 0.0)
        values: Array = self.step * np.arange(first, first + size, dtype=np.float64)
        rest = sum(count * each.certain for each, count in self.losses if each.variance is not None)
        beyond = self.certain + rest + _OUTSIDE
        return values, masses[np.arange(first, first + size) % size], beyond

    def convolved_delta(self, epsilon: float) -> float:
        """Return the delta at `epsilon` by convolution; 1 where there are too many releases."""
        if self._convolved is None:
            return 1.0
        values, masses, certain = self._convolved
        above = int(np.searchsorted(values, epsilon, side="right"))
        # Not a product of vectors: for one so short, BLAS wakes threads that cost more than they do.
        inside = np.sum(-np.expm1(epsilon - values[above:]) * masses[above:])
        return min(1.0, float(inside) + certain)

    def convolved_epsilon(self, delta: float) -> float:
        """Return the epsilon at `delta` by convolution; infinite where there are too many."""
        if self._convolved is None:
            return math.inf
        return _least_epsilon(self.convolved_delta, delta, 1e-8)


@lru_cache(maxsize=64)
def _single_epsilon(release: Release, delta: float) -> float:
    """Return the epsilon of one release; of one that may be any of several, the largest of theirs."""
    found = 0.0
    for each in reversed(getattr(release, "releases", (release,))):
        if each.delta(found) > delta:
            found = _least_epsilon(each.delta, delta, 1e-12, each.epsilon)
    return found


def _least_epsilon(
    curve: Callable[[float], float], delta: float, tolerance: float, pure: float = math.inf
) -> float:
    """Return where a curve falls to `delta`, at the latest at `pure`, where it ends.

    By false position on the logarithm, which is nearly straight; an end that stays counts half (the
    Illinois rule), and where two steps do not halve what is left, the next one does.
    """
    above = curve(0.0)
    if above <= delta:
        return 0.0
    low, high = 0.0, min(1.0, pure)
    below = curve(high)
    while high < pure and below > delta:
        low, above, high = high, below, min(2 * high, pure)
        below = curve(high)
        if high > _MOST:
            return math.inf
    if high == pure and curve(pure * (1 - tolerance)) > delta:
        return pure
    over, under = _logarithm(above, delta), _logarithm(below, delta)
    widths, moved = (math.inf, math.inf), 0
    while high - low > tolerance * high:
        share = over / (over - under) if 2 * (high - low) < widths[0] else 0.5
        widths = widths[1], high - low
        middle = low + min(max(share, 1e-3), 1 - 1e-3) * (high - low)
        if middle in (low, high):
            break
        value = _logarithm(curve(middle), delta)
        if value <= 0:
            over = over / 2 if moved < 0 else over
            high, under, moved = middle, value, -1
        else:
            under = under / 2 if moved > 0 else under
            low, over, moved = middle, value, 1
    return high


def _logarithm(value: float, delta: float) -> float:
    return math.log(max(value, 5e-324) / delta)


def _merge(releases: Iterable[tuple[Release, int]]) -> list[tuple[Release, int]]:
    """Return each release once, with its count, and all Gaussian ones as one."""
    counts: dict[Release, int] = {}
    for release, count in releases:
        require("compose", "count", ">= 0", count >= 0, count)
        if count > 0 and release.spread > 0:
            counts[release] = counts.get(release, 0) + count
    gaussian = {r: n for r, n in counts.items() if isinstance(r, GaussianRelease)}
    if sum(gaussian.values()) > 1:
        variance = math.fsum(n * r.spread**2 for r, n in gaussian.items())
        counts = {r: n for r, n in counts.items() if r not in gaussian}
        counts[GaussianRelease(sensitivity=math.sqrt(variance), scale=1.0)] = 1
    return list(counts.items())


def _simple(parts: Parts) -> Parts:
    """Return the releases as composed of such whose curve is known, merged again."""
    return _merge((each, count * n) for release, count in parts for each, n in release.parts())
