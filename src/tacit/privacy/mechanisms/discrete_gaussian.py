"""Discrete Gaussian noise on a vector: Gaussian noise that is exact on a secure tape.

Coordinates are rounded to a grid, and whole steps of noise are added, drawn exactly (Canonne, Kamath
and Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020). Rounding may move two
neighbours apart by one more step in every coordinate, so that a sensitivity of s is s / grid + sqrt(d)
steps, D. The Rényi divergence of order a is at most a D^2 / (2 sigma^2) in any number of dimensions
(their Theorem 14 with Proposition 5), which is zero-concentrated privacy of D^2 / (2 sigma^2); delta
follows by their Proposition 12 at the best order.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.checks import Count, Share, require
from tacit.compiled import kernel
from tacit.privacy.exact import secure_gaussian
from tacit.privacy.mechanisms.base import VectorNoise
from tacit.privacy.mechanisms.gaussian import standard_normal
from tacit.privacy.mechanisms.release import Array, Release
from tacit.tapes import NOISE, SECURE, Tape, released

__all__ = [
    "DiscreteGaussian",
    "DiscreteGaussianVectorRelease",
    "concentrated_delta",
    "concentrated_level",
    "release_steps",
]

_ORDERS = 1 + np.geomspace(1e-3, 1e15, 8000)
_MOST, _LEAST = 2**27, 64


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianVectorRelease(Release):
    """Independent discrete Gaussian noise on every coordinate of a vector on a grid.

    Parameters
    ----------
    steps : float
        The L2 sensitivity in grid steps, rounding included.
    sigma : int
        The parameter sigma of the noise in grid steps.
    norm : str
        Must be ``"l2"``.
    """

    mechanism: ClassVar[str] = "discrete Gaussian on a vector"
    steps: float
    sigma: int
    norm: str = "l2"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2'", self.norm == "l2", self.norm)
        require(self, "steps", ">= 0 and finite", 0 <= self.steps < math.inf, self.steps)
        require(self, "sigma", "> 0", self.sigma > 0, self.sigma)

    @property
    def concentrated(self) -> float:
        """The level rho of zero-concentrated privacy; it adds up over releases."""
        return (self.steps / self.sigma) ** 2 / 2

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise has no pure guarantee."""
        return math.inf if self.steps > 0 else 0.0

    @property
    def spread(self) -> float:
        """The sensitivity in units of sigma."""
        return self.steps / self.sigma

    def _largest_loss(self) -> float:
        return self.spread**2 / 2 + 9 * self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = np.array([concentrated_delta(self.concentrated, float(e)) for e in epsilon])
        return delta, delta

    def grouped(self, records: int) -> DiscreteGaussianVectorRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, steps=records * self.steps)


def concentrated_delta(rho: float, epsilon: float) -> float:
    """Return a delta that rho-zero-concentrated privacy meets at `epsilon`, at the best order.

    Examples
    --------
    >>> round(concentrated_delta(0.05, 1.0), 6)
    0.000386
    """
    if rho == 0:
        return 0.0
    rest = _ORDERS - 1
    log = rest * (_ORDERS * rho - epsilon) - np.log(rest) + _ORDERS * np.log1p(-1 / _ORDERS)
    return float(min(1.0, math.exp(min(0.0, float(log.min())))))


def concentrated_level(epsilon: float, delta: float) -> float:
    """Return the largest rho for which `concentrated_delta` at `epsilon` is at most `delta`."""
    require("concentrated_level", "delta", "in [1e-14, 1)", 1e-14 <= delta < 1, delta)
    low, high = 2.0**-120, 1.0
    while concentrated_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = math.sqrt(low * high)
        if middle in (low, high):
            break
        low, high = (
            (middle, high) if concentrated_delta(middle, epsilon) <= delta else (low, middle)
        )
    return low


class _Grid(NamedTuple):
    step: float
    steps: float
    sigma: int


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(VectorNoise):
    """Discrete Gaussian noise on a vector of a known L2 sensitivity, exact on a secure tape.

    Guarantee: (epsilon, delta) by zero-concentrated privacy. The noise is larger than that of
    `Gaussian`, by a tenth or so: its accounting holds for every direction of a change.

    Parameters
    ----------
    epsilon, delta, sensitivity : float
    dimension : int
        How many coordinates.

    Examples
    --------
    >>> mechanism = DiscreteGaussian(epsilon=2.0, delta=1e-6, dimension=25)
    >>> mechanism.secure_release.delta(2.0) <= 1e-6
    True
    >>> mechanism.run([0.5] * 25).shape
    (1, 25)
    """

    name: ClassVar[str] = "discrete-gaussian"
    summary: ClassVar[str] = "Gaussian noise on a vector, in whole steps of a grid"
    length: ClassVar[float] = 2.0

    delta: Share
    dimension: Count = 1

    @cached_property
    def grid(self) -> _Grid:
        """The step of the grid, and sensitivity and sigma in steps.

        A million steps for the sensitivity, or fewer where sigma would be more than 2^27 of them.
        """
        ratio = 1 / math.sqrt(2 * concentrated_level(self.epsilon, self.delta))
        step = math.ldexp(1.0, math.frexp(self.sensitivity)[1] - 21)
        while True:
            steps = self.sensitivity / step + math.sqrt(self.dimension)
            sigma = math.floor(steps * ratio * (1 + 2.0**-40)) + 1
            if sigma < _MOST or step > self.sensitivity:
                return _Grid(step, steps, sigma)
            step *= 2

    @property
    def insecure_because(self) -> str:
        """Only where a grid that integers can count would be coarser than the sensitivity."""
        coarse = self.sensitivity / self.grid.step < _LEAST
        return "its noise is too wide for a grid of 64 steps a sensitivity" if coarse else ""

    @property
    def scale(self) -> float:
        """The parameter sigma, which is the standard deviation but for 1e-9 of it."""
        return self.grid.step * self.grid.sigma

    @property
    def release(self) -> DiscreteGaussianVectorRelease:
        """The noise as a record; seeded noise is rounded to the same steps."""
        return DiscreteGaussianVectorRelease(steps=self.grid.steps, sigma=self.grid.sigma)

    @property
    def variance(self) -> float:
        """The scale squared."""
        return self.scale**2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run(tape, values, self.grid.step, self.grid.sigma, out)


@kernel
def release_steps(
    tape: Any, t: Any, index: Any, purpose: Any, values: Any, step: Any, sigma: Any, out: Any
) -> None:
    """Release a vector rounded to a grid plus whole steps of noise, into `out`; reads d indices."""
    for i in range(values.size):
        if tape.kind == SECURE:
            noise = np.float64(secure_gaussian(tape, t, index + i, purpose, sigma))
        else:
            noise = np.rint(sigma * standard_normal(tape, t, index + i, purpose))
        out[i] = released(tape, step * (np.rint(values[i] / step) + noise))


@kernel
def _run(tape: Any, values: Any, step: Any, sigma: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        release_steps(tape, i, 0, NOISE, values, step, sigma, out[i])
