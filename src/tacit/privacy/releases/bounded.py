"""The bounded noise of paper 000, which does not keep what is claimed of it, and what it keeps."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.checks import require
from tacit.privacy.releases.base import Array, Release, require_noise
from tacit.privacy.releases.laplace import laplace_cdf

__all__ = ["BoundedNoiseRelease"]


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
