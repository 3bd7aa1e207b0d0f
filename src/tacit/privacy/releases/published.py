"""Two mechanisms of the papers that do not keep what is claimed of them, with what they do keep."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.policy import require
from tacit.privacy.releases.base import Array, Release, require_noise
from tacit.privacy.releases.laplace import LaplaceRelease, laplace_cdf
from tacit.privacy.releases.stated import pure_delta

__all__ = ["BoundedNoiseRelease", "L2CalibratedLaplaceRelease"]


@dataclass(frozen=True, kw_only=True)
class BoundedNoiseRelease(Release):
    """Laplace noise of which draws outside [-bound, bound] become the constant bound / 2.

    This is the mechanism of Odeyomi, not a sound one: the ends of the two supports do not overlap
    and the constant betrays the value, so no finite pure epsilon holds and delta never falls below
    ``delta(sensitivity / scale)``.

    Parameters
    ----------
    sensitivity : float
        The largest difference between the true values of two neighbours.
    scale : float
        The scale of the Laplace noise before it is bounded.
    bound : float
        The bound b.
    norm : str
        Must be ``"l1"``.
    """

    mechanism: ClassVar[str] = "bounded noise"
    sensitivity: float = 1.0
    scale: float
    bound: float
    norm: str = "l1"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l1'", self.norm == "l1", self.norm)
        require(self, "bound", "> 0", self.bound > 0, self.bound)
        require_noise(self, self.sensitivity, self.scale)

    @property
    def epsilon(self) -> float:
        """Infinite, whatever the bound."""
        return math.inf if self.sensitivity > 0 else 0.0

    @property
    def spread(self) -> float:
        """The loss where the supports overlap."""
        return self.sensitivity / self.scale

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        s, b = self.sensitivity / self.scale, self.bound / self.scale
        # The overlap is [s - b, b]; there the loss exceeds epsilon left of (s - epsilon) / 2.
        low = np.full_like(epsilon, s - b)
        high = np.maximum(low, np.minimum(b, np.where(epsilon < s, (s - epsilon) / 2, -np.inf)))
        here = laplace_cdf(high) - laplace_cdf(low)
        there = laplace_cdf(high - s) - laplace_cdf(low - s)
        end = laplace_cdf(np.minimum(low, b)) - laplace_cdf(np.full_like(epsilon, -b))
        delta = math.exp(-b) + end + here - np.exp(np.minimum(epsilon, s)) * there
        delta = np.clip(delta, 0.0, 1.0)
        return delta, delta

    def grouped(self, records: int) -> BoundedNoiseRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, sensitivity=records * self.sensitivity)


@dataclass(frozen=True, kw_only=True)
class L2CalibratedLaplaceRelease(Release):
    """Independent Laplace noise in R^d whose scale was set from an L2 sensitivity.

    This is what Wang et al. publish for linear bandits. Its true pure epsilon is up to the square
    root of the dimension larger than ``sensitivity / scale``. Where the changed vector is known
    in magnitude, `shift` lists the absolute change of every coordinate and the loss is exact.

    Parameters
    ----------
    sensitivity : float
        The largest L2 distance between the true values of two neighbours.
    scale : float
        The scale of the Laplace noise of a coordinate.
    dimension : int
        The dimension d.
    shift : tuple of float
        Worst absolute change of each coordinate, if known; empty assumes the worst of all.
    norm : str
        Must be ``"l2"``: with an L1 sensitivity this is `LaplaceRelease`.
    """

    mechanism: ClassVar[str] = "Laplace with an L2 sensitivity"
    sensitivity: float = 1.0
    scale: float
    dimension: int
    shift: tuple[float, ...] = ()
    norm: str = "l2"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2'", self.norm == "l2", self.norm)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)
        require_noise(self, self.sensitivity, self.scale)
        length = math.sqrt(math.fsum(x * x for x in self.shift))
        rule = f"of L2 length at most the sensitivity {self.sensitivity:g}"
        require(self, "shift", rule, length <= self.sensitivity * (1 + 1e-9), self.shift)
        fits = len(self.shift) in (0, self.dimension)
        require(self, "shift", "empty or of one entry a coordinate", fits, len(self.shift))

    @property
    def epsilon(self) -> float:
        """The L1 length of the worst change in units of the scale."""
        if self.shift:
            return math.fsum(abs(x) for x in self.shift) / self.scale
        return math.sqrt(self.dimension) * self.sensitivity / self.scale

    @property
    def spread(self) -> float:
        """The standard deviation of the loss if `shift` is known, else epsilon."""
        return self.sensitivity / self.scale if self.shift else self.epsilon

    def _parts(self) -> dict[LaplaceRelease, int]:
        parts: dict[LaplaceRelease, int] = {}
        for x in self.shift:
            if x != 0:
                part = LaplaceRelease(sensitivity=abs(x), scale=self.scale)
                parts[part] = parts.get(part, 0) + 1
        return parts

    def loss_distribution(self, interval: float | None = None) -> Any:
        """Return the loss distribution of the coordinates of `shift`, or of the pure bound."""
        parts = self._parts()
        if not parts:
            return super().loss_distribution(interval)
        step = interval if interval is not None else min(part.spread for part in parts) / 16
        total: Any = None
        for part, count in parts.items():
            once = part.loss_distribution(step).self_compose(count)
            total = once if total is None else total.compose(once)
        return total

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        if self.shift:
            curve = self.loss_distribution()
            delta = np.array([curve.get_delta_for_epsilon(float(e)) for e in epsilon])
        else:
            delta = pure_delta(self.epsilon, epsilon)
        return delta, delta

    def grouped(self, records: int) -> L2CalibratedLaplaceRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(
            self,
            sensitivity=records * self.sensitivity,
            shift=tuple(records * x for x in self.shift),
        )
