"""Releases of which nothing but epsilon and delta is known, for accounting."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.core.constraints import require
from tacit.privacy.mechanisms.release import Array, Release


@dataclass(frozen=True, kw_only=True)
class PureRelease(Release):
    """Anything known to be epsilon-private and nothing more.

    Parameters
    ----------
    level : float
        The epsilon.
    what : str
        What was released, for sentences.
    """

    mechanism: ClassVar[str] = "pure"
    level: float
    what: str = ""

    def __post_init__(self) -> None:
        require(self, "level", ">= 0", self.level >= 0, self.level)

    @property
    def epsilon(self) -> float:
        """The level."""
        return self.level

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = pure_delta(self.level, epsilon)
        return delta, delta

    def grouped(self, records: int) -> PureRelease:
        """Return the release with `records` times the level."""
        return dataclasses.replace(self, level=records * self.level)


@dataclass(frozen=True, kw_only=True)
class ApproximateRelease(Release):
    """Anything known to be (epsilon, delta)-private and nothing more; delta 1 is no privacy.

    Parameters
    ----------
    level : float
        The epsilon.
    failure : float
        The delta.
    what : str
        What was released, for sentences.
    """

    mechanism: ClassVar[str] = "approximate"
    level: float
    failure: float
    what: str = ""

    def __post_init__(self) -> None:
        require(self, "level", ">= 0", self.level >= 0, self.level)
        require(self, "failure", "in [0, 1]", 0 <= self.failure <= 1, self.failure)

    @property
    def epsilon(self) -> float:
        """The level if delta is zero, else infinite."""
        return self.level if self.failure == 0 else math.inf

    @property
    def spread(self) -> float:
        """The level."""
        return self.level if self.level > 0 else 1.0

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = self.failure + (1 - self.failure) * pure_delta(self.level, epsilon)
        return delta, delta

    def grouped(self, records: int) -> ApproximateRelease:
        """Return the release by group privacy: failures add up, each worth e^level more."""
        if self.level > 0:
            last = min(700.0, records * self.level)
            growth = math.expm1(last) / math.expm1(self.level)
        else:
            growth = float(records)
        return dataclasses.replace(
            self, level=records * self.level, failure=min(1.0, growth * self.failure)
        )


def pure_delta(level: float, epsilon: Array) -> Array:
    """Return the largest delta at each epsilon that pure `level` leaves possible."""
    # e^level / (1 + e^level) - e^epsilon / (1 + e^level), written without overflow.
    delta: Array = -np.expm1(np.minimum(epsilon - level, 0.0)) / (1 + math.exp(-level))
    return delta
