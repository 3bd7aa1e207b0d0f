"""Noise whose density falls with the L2 distance: pure epsilon for an L2 sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.core.constraints import Count
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, RADIUS, SECURE, Tape, noise_uniform, released_vector
from tacit.privacy.mechanisms.base import VectorNoise
from tacit.privacy.mechanisms.gaussian import standard_normal
from tacit.privacy.mechanisms.laplace import laplace_delta
from tacit.privacy.releases import L2, Array, NoiseRelease

_LEAST = 2.0**-54


@dataclass(frozen=True, kw_only=True)
class BallRelease(NoiseRelease):
    """Noise in R^d of density proportional to exp(-|z| / scale), calibrated to an L2 sensitivity.

    Its radius is Gamma(d, scale) and its direction uniform.

    Parameters
    ----------
    sensitivity, scale, norm
        As in `NoiseRelease`; the scale is that of the radius.
    dimension : int
        The dimension d.

    Notes
    -----
    Let v be the shift. The loss, the length of z - v minus that of z in units of the scale, is
    constant on hyperboloids with foci 0 and v: in prolate coordinates it is one coordinate, and the
    other integrates to Bessel functions. In high dimension the loss concentrates near zero, which
    composition over many releases profits from.
    """

    mechanism: ClassVar[str] = "L2 ball"
    dimension: Count
    norm: L2 = "l2"

    @property
    def spread(self) -> float:
        """The standard deviation of the loss, about epsilon / sqrt(dimension)."""
        return self.epsilon / math.sqrt(self.dimension)

    def _hockey_stick(self, epsilon: Array) -> Array:
        if self.dimension == 1:
            return laplace_delta(self.epsilon, epsilon)
        return _ball_delta(self.epsilon, self.dimension, epsilon)


@dataclass(frozen=True, kw_only=True)
class L2Ball(VectorNoise):
    """Noise of density proportional to exp(-|z| epsilon / sensitivity) on a vector.

    Guarantee: pure epsilon for vectors that differ by at most `sensitivity` in L2.
    """

    name: ClassVar[str] = "l2-ball"
    summary: ClassVar[str] = "pure noise on a vector of a known L2 sensitivity"
    length: ClassVar[float] = 2.0

    @property
    def insecure_because(self) -> str:
        """Nobody knows how."""
        return "no exact sampler on a grid is known for noise that depends on a length"

    @property
    def release(self) -> BallRelease:
        """The noise as a record."""
        return BallRelease(sensitivity=self.sensitivity, scale=self.scale, dimension=self.dimension)

    @property
    def variance(self) -> float:
        """(d + 1) times the scale squared."""
        return (self.dimension + 1) * self.scale**2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run(tape, values, self.scale, out)


def _ball_delta(level: float, dimension: int, epsilon: Array) -> Array:
    a, d = level / 2, dimension
    ratio = (d - 1) / a * _bessel_ratio(d / 2 - 1, a)
    # nu = cos(theta); the loss is -2 a nu. Nearly all mass lies within a few / sqrt(d) of pi / 2.
    width = min(math.pi / 2, (14 + a) / math.sqrt(d))
    nodes, weights = np.polynomial.legendre.leggauss(400)
    top = ((d - 2) - math.hypot(d - 2, 2 * a)) / (2 * a)
    peak = -a * top + ((d - 2) / 2 * math.log1p(-top * top) if d > 2 else 0.0)

    def mass(theta: Array) -> Array:
        sine = np.sin(theta)
        with np.errstate(divide="ignore"):
            log = -a * np.cos(theta) + (d - 2) * np.log(sine)
        density: Array = np.exp(log - peak) * (ratio + sine * sine)
        return density

    def integral(low: float, high: float, penalty: float | None) -> float:
        theta = low + (high - low) * (nodes + 1) / 2
        value = mass(theta)
        if penalty is not None:
            value = value * np.maximum(0.0, -np.expm1(penalty + 2 * a * np.cos(theta)))
        return float(weights @ value) * (high - low) / 2

    low, high = math.pi / 2 - width, math.pi / 2 + width
    total = integral(low, high, None)
    result = np.zeros_like(epsilon)
    for i, e in enumerate(epsilon):
        if e < level:
            start = max(low, math.acos(-e / level))
            if start < high:
                result[i] = integral(start, high, float(e)) / total
    return result


def _bessel_ratio(order: float, x: float) -> float:
    # K_(order + 1)(x) / K_order(x) for integer or half-integer order, by the forward recurrence.
    if order == int(order):
        t = np.linspace(0.0, math.acosh(1 + 745 / x), 4001)
        weights = np.exp(-x * (np.cosh(t) - 1))
        weights[0] /= 2
        ratio, start = float((weights @ np.cosh(t)) / weights.sum()), 0.0
    else:
        ratio, start = 1.0, -0.5
    while start < order:
        start += 1
        ratio = 2 * start / x + 1 / ratio
    return ratio


@kernel
def ball_noise(tape: Any, t: Any, index: Any, purpose: Any, scale: Any, out: Any) -> None:
    """Write noise of density proportional to exp(-|z| / scale) into `out`, of length d.

    Reads d indices for the direction, and d of RADIUS for the Gamma(d) radius. Research only: no
    exact sampler on a grid is known for it, so on a secure tape `out` is NaN.
    """
    d = out.size
    if tape.kind == SECURE:
        out[:] = np.nan
        return
    length, radius, product = 0.0, 0.0, 1.0
    for i in range(d):
        out[i] = standard_normal(tape, t, index + i, purpose)
        length += out[i] * out[i]
        product *= max(noise_uniform(tape, t, index + i, RADIUS), _LEAST)
        if i % 16 == 15:
            radius -= math.log(product)
            product = 1.0
    radius -= math.log(product)
    factor = scale * radius / math.sqrt(length) if length > 0 else 0.0
    for i in range(d):
        out[i] *= factor


@kernel
def release_ball(
    tape: Any, t: Any, index: Any, purpose: Any, values: Any, scale: Any, out: Any
) -> None:
    """Release a vector plus the noise of `ball_noise`, into `out`."""
    ball_noise(tape, t, index, purpose, scale, out)
    for i in range(values.size):
        out[i] += values[i]
    released_vector(tape, out)


@kernel
def _run(tape: Any, values: Any, scale: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        release_ball(tape, i, 0, NOISE, values, scale, out[i])
