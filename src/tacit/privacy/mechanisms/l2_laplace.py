"""Laplace noise scaled to the wrong norm, and what it does protect.

Let a be the change of the vector in units of the scale, n the number of nodes it enters and A its
L2 length. Which direction of a is worst depends on epsilon: a single coordinate near 0, all alike
in the tail. No closed form covers all, so a release has two ends. The upper one holds for
every direction; the lower one is attained by changes of m equal coordinates.

The upper end is the least of four bounds. "Below" means a smaller delta at every epsilon, which
composition keeps; G(v) is a pair of Gaussians whose means are sqrt(v) standard deviations apart.

1. Pure: n sqrt(d) A.
2. Rényi. That of one coordinate, psi(a), has a derivative that is concave in a and 0 at 0, so
   that psi is concave in a^2: all coordinates alike is worst.
3. Gaussian. Written as exp(-e/2) delta(e), Laplace noise is half the integral of exp(-t/2) over
   t from |e| to a, and G(c^2 a^2) with c^2 = pi/2 is half that of
   exp(-c^2 t^2 / 8) exp(-e^2 / (2 c^2 t^2)) over t from 0 to a. For a <= 8/pi the first factor is
   at least exp(-t/2), which falls, while the second has at least the integral of [t > |e|]
   and reaches it earlier. So one coordinate is below G(c^2 a^2), and all are below G(c^2 n A^2).
4. Smoothing. For a <= 1 and v >= k(a) = a (2 + a) / 3, one coordinate with G(v) is below
   G(v + a^2): with m^2 = v this is, at e = m x, the inequality between the integrals over q
   from 0 to a/m of exp(-mq/2) J(q) and q exp(-m^2 q^2 / 8) (1 + q^2)^(-1/2) exp(x^2 q^2 / (2 + 2 q^2)),
   where J(q), the integral of cosh(xs) exp(-s^2/2) up to q, is at most
   q exp(x^2 q^2 / 6 - q^2 / 6 + q^4 / 40); it holds for every q. Replace coordinates by Gaussians
   from the smallest up, each at c^2 a^2 until the sum is k(a) and at a^2 from there on: if none
   exceeds b, all are below G(n A^2 + x(b)), where x(b) = (1 - 1/c^2) k(b) + (c^2 - 1) b^2. If
   coordinates up to b have squares that add up to k(A), the same holds whatever the others are;
   if not, most of the change sits in coordinates above b, where the Rényi bound is smaller. The
   larger of the two, at the best b, is a bound.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Self

import numpy as np

from tacit.core.constraints import Count, require
from tacit.core.tapes import Tape
from tacit.privacy.mechanisms.base import VectorNoise
from tacit.privacy.mechanisms.gaussian import GaussianRelease, gaussian_delta
from tacit.privacy.mechanisms.laplace import LaplaceRelease, laplace_delta, repeat_laplace
from tacit.privacy.releases import L2, Array, NoiseRelease, PureRelease, Release, pure_delta

_C2 = math.pi / 2
_ORDERS = 1 + np.geomspace(1e-2, 1e4, 800)
_THRESHOLDS = np.geomspace(0.02, 1.0, 32)


@dataclass(frozen=True, kw_only=True)
class L2CalibratedLaplaceRelease(NoiseRelease):
    """Independent Laplace noise in R^d whose scale was set from an L2 sensitivity.

    This is what Wang et al. publish for linear bandits. Its true pure epsilon is up to the square
    root of the dimension larger than ``sensitivity / scale``; `delta` is the upper end, which
    holds for every change of that length, and `attained_delta` the lower end, which some change
    attains. Where the changed vector is known in magnitude, `shift` lists the absolute change of
    every coordinate and the loss is exact.

    Parameters
    ----------
    sensitivity, scale, norm
        As in `NoiseRelease`; with an L1 sensitivity this is `LaplaceRelease`.
    dimension : int
        The dimension d.
    shift : tuple of float
        Worst absolute change of each coordinate, if known; empty assumes the worst of all.
    nodes : int
        How many such vectors the change enters, as in a tree over time.
    alike : bool
        Whether the change of all nodes is settled before the first is seen, as that of one record
        is. If a change may answer to earlier nodes, as between rounds of a person, smoothing by
        order of size is not allowed.

    Examples
    --------
    What a claim of epsilon 2 is worth for a vector of 2500 in a tree of 14 levels:

    >>> release = L2CalibratedLaplaceRelease(scale=7.0, dimension=2500, nodes=14)
    >>> round(release.epsilon, 6)
    100.0
    >>> low, high = release.bracket(1e-6)
    >>> round(low, 2), round(high, 2)
    (2.42, 2.52)
    """

    mechanism: ClassVar[str] = "Laplace with an L2 sensitivity"
    dimension: Count
    shift: tuple[float, ...] = ()
    nodes: Count = 1
    alike: bool = True
    norm: L2 = "l2"

    def __post_init__(self) -> None:
        super().__post_init__()
        length = math.sqrt(math.fsum(x * x for x in self.shift))
        rule = f"of L2 length at most the sensitivity {self.sensitivity:g}"
        require(self, "shift", rule, length <= self.sensitivity * (1 + 1e-9), self.shift)
        fits = len(self.shift) in (0, self.dimension)
        require(self, "shift", "empty or of one entry a coordinate", fits, len(self.shift))

    @property
    def _length(self) -> float:
        return self.sensitivity / self.scale

    @property
    def _change(self) -> tuple[float, ...]:
        return (self.sensitivity,) if self.dimension == 1 and not self.shift else self.shift

    @property
    def epsilon(self) -> float:
        """The L1 length of the worst change in units of the scale, in all nodes together."""
        if self._change:
            return self.nodes * math.fsum(abs(x) for x in self._change) / self.scale
        return self.nodes * math.sqrt(self.dimension) * self._length

    @property
    def spread(self) -> float:
        """About the standard deviation of the loss."""
        return math.sqrt(self.nodes) * self._length

    def _parts(self) -> dict[LaplaceRelease, int]:
        parts: dict[LaplaceRelease, int] = {}
        for x in self._change:
            if x != 0:
                part = LaplaceRelease(sensitivity=abs(x), scale=self.scale)
                parts[part] = parts.get(part, 0) + self.nodes
        return parts

    def parts(self) -> list[tuple[Release, int]]:
        """Return the coordinates of a known change, else the Gaussian or pure bound of any."""
        if self._change:
            return list(self._parts().items())
        variance = _gaussian_bound(self._length, self.nodes, self.alike)
        if math.isinf(variance):
            return [(PureRelease(level=self.epsilon), 1)]
        return [(GaussianRelease(sensitivity=math.sqrt(variance), scale=1.0), 1)]

    def loss_distribution(self, interval: float | None = None) -> Any:
        """Return the loss distribution of a known change, else of one that is worse than any.

        That is the Gaussian pair of bounds 3 and 4, or, for changes too long for these, the pure
        bound. `delta`, of this release alone, may be smaller.
        """
        parts = self._parts()
        if not parts:
            ((worse, _),) = self.parts()
            return worse.loss_distribution(interval)
        step = interval if interval is not None else min(part.spread for part in parts) / 16
        total: Any = None
        for part, count in parts.items():
            once = part.loss_distribution(step).self_compose(count)
            total = once if total is None else total.compose(once)
        return total

    def _hockey_stick(self, epsilon: Array) -> Array:
        at = (
            _distribution_of(self).get_delta_for_epsilon
            if self._change
            else _upper_delta(self._length, self.dimension, self.nodes, self.alike)
        )
        return np.array([float(at(float(e))) for e in epsilon])

    def attained_delta(self, epsilon: float) -> float:
        """Return a delta that some change of the declared length, or `shift`, needs at `epsilon`.

        The largest over changes of m equal coordinates, m = 1, 2, 4, ..., d.
        """
        require(self, "epsilon", ">= 0", epsilon >= 0, epsilon)
        return max((_exact_delta(parts, epsilon) for parts in self._candidates()), default=0.0)

    def bracket(self, delta: float) -> tuple[float, float]:
        """Return two epsilons at `delta`: one that is needed, and one that is enough."""
        require(self, "delta", "in (0, 1)", 0 < delta < 1, delta)
        enough = _least(self.delta, delta, 0.0, self.epsilon)[1]
        needed = 0.0
        for parts in self._candidates():
            needed = _least(partial(_exact_delta, parts), delta, needed, enough)[0]
        return needed, enough

    def _candidates(self) -> list[dict[float, int]]:
        if self._change:
            return [{part.epsilon: count for part, count in self._parts().items()}]
        sizes = {2**i for i in range(self.dimension.bit_length())} | {self.dimension}
        return [{self._length / math.sqrt(m): self.nodes * m} for m in sorted(sizes, reverse=True)]

    def group(self, records: int) -> Self:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(
            self,
            sensitivity=records * self.sensitivity,
            shift=tuple(records * x for x in self.shift),
            alike=self.alike and records == 1,
        )


@dataclass(frozen=True, kw_only=True)
class L2CalibratedLaplace(VectorNoise):
    """What paper 004 publishes: Laplace noise on a vector, its scale set by the L2 sensitivity.

    Guarantee: not `epsilon` but up to sqrt(dimension) times it; `release` says how much. Kept to
    reproduce and refute it.
    """

    name: ClassVar[str] = "l2-calibrated-laplace"
    summary: ClassVar[str] = "the noise published in paper 004, on the wrong norm"
    length: ClassVar[float] = 2.0

    @property
    def insecure_because(self) -> str:
        """It is not offered securely."""
        return "it does not keep its epsilon whatever the numerics"

    @property
    def release(self) -> L2CalibratedLaplaceRelease:
        """The noise as a record, whose true epsilon is larger than the one asked for."""
        return L2CalibratedLaplaceRelease(
            sensitivity=self.sensitivity, scale=self.scale, dimension=self.dimension
        )

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2 * self.scale**2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        repeat_laplace(tape, values, self.sensitivity, self.epsilon, out)


@lru_cache(maxsize=8)
def _distribution_of(release: L2CalibratedLaplaceRelease) -> Any:
    return release.loss_distribution()


def _least(
    curve: Callable[[float], float], delta: float, low: float, high: float
) -> tuple[float, float]:
    # Where a curve, at most `delta` at `high`, falls to `delta`: an epsilon before and one after.
    if curve(low) <= delta:
        return low, low
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return low, high


def _smoothing(a: Any) -> Any:
    return a * (2 + a) / 3


def _excess(b: Any) -> Any:
    return (1 - 1 / _C2) * _smoothing(b) + (_C2 - 1) * b * b


def _gaussian_bound(length: float, nodes: int, alike: bool) -> float:
    # The variance v of bounds 3 and 4 without a threshold; infinite if neither is proved.
    if length > 8 / math.pi:
        return math.inf
    more = (_C2 - 1) * nodes * length**2
    if alike and length <= 1:
        more = min(more, _excess(length))
    return nodes * length**2 + more


def _renyi(a: Any) -> Array:
    # Mironov (CSF 2017), Table II, at every order.
    rest = (_ORDERS - 1) * np.exp(-(2 * _ORDERS - 1) * a)
    divergence: Array = a + np.log((_ORDERS + rest) / (2 * _ORDERS - 1)) / (_ORDERS - 1)
    return divergence


def _renyi_delta(divergence: Array, epsilon: float) -> Array:
    # Canonne, Kamath and Steinke (NeurIPS 2020), Proposition 12, at the best order.
    rest = _ORDERS - 1
    log = rest * (divergence - epsilon + np.log(rest / _ORDERS)) - np.log(_ORDERS)
    delta: Array = np.exp(np.minimum(0.0, log.min(axis=-1)))
    return delta


def _upper_delta(length: float, d: int, nodes: int, alike: bool) -> Callable[[float], float]:
    total = nodes * length**2
    pure = nodes * math.sqrt(d) * length
    dense = nodes * d * _renyi(length / math.sqrt(d))
    variance = _gaussian_bound(length, nodes, alike)
    kept = _smoothing(length)
    variances, split = np.empty(0), np.empty((0, _ORDERS.size))
    if alike and length <= 1 and kept < total:
        b = (length * _THRESHOLDS)[:, None]
        variances = total + _excess(b[:, 0])
        split = kept * _ORDERS / 2 + (total - kept) / b**2 * _renyi(b)

    def delta(epsilon: float) -> float:
        bounds = [float(pure_delta(pure, np.array(epsilon))), float(_renyi_delta(dense, epsilon))]
        if variance < math.inf:
            bounds.append(gaussian_delta(math.sqrt(variance), epsilon))
        for v, other in zip(variances, _renyi_delta(split, epsilon), strict=True):
            bounds.append(max(gaussian_delta(math.sqrt(v), epsilon), float(other)))
        return min(bounds)

    return delta


def _exact_delta(parts: dict[float, int], epsilon: float) -> float:
    """Return delta of independent Laplace coordinates, from below, by a Fourier integral.

    (1 - exp(epsilon - L))+ is the integral of exp(z (L - epsilon)) / (2 pi i z (z + 1)) over any line
    Re z = s > 0, and the expectation of exp(z L) is a product over coordinates. What lies beyond
    the last point is bounded and taken off.
    """
    if not parts or math.fsum(a * n for a, n in parts.items()) <= epsilon:
        return 0.0
    if sum(parts.values()) == 1:
        (a,) = parts
        return float(laplace_delta(a, np.array(epsilon)))

    def log_moment(z: Any) -> Any:
        return sum(
            n * (z * a + np.log((z + 1 + z * np.exp(-(2 * z + 1) * a)) / (2 * z + 1)))
            for a, n in parts.items()
        )

    lines = np.geomspace(1e-4, 1e4, 600)
    # Delta falls with epsilon: where it is all but 1, a later one bounds it without cancellation.
    epsilon = max(epsilon, (float(log_moment(lines[0])) - 1) / lines[0])
    height = log_moment(lines) - lines * epsilon - np.log(lines * (lines + 1))
    s = float(lines[np.argmin(height)])
    # A sum over points repeats the function with period 2 pi / step, here where it is exp(-60).
    decay = 60 + max(0.0, float(log_moment(2 * s) - log_moment(s)) - s * epsilon)
    step = 2 * math.pi * s / decay
    for points in (1 << 10, 1 << 14, 1 << 17):
        z = s + 1j * step * np.arange(points)
        values = np.exp(log_moment(z) - z * epsilon) / (z * (z + 1))
        total = float(values.real.sum() - values.real[0] / 2) * step / math.pi
        last = step * (points - 1)
        beyond = sum(
            n * (s * a + math.log((1 + 1 / last) * (1 + math.exp(-(2 * s + 1) * a)) / 2))
            for a, n in parts.items()
        )
        rest = math.exp(min(beyond, float(log_moment(s))) - s * epsilon) / (math.pi * last)
        if rest < 1e-5 * total + 1e-13:
            break
    return min(1.0, max(0.0, total - rest))
