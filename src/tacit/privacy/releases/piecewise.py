"""The piecewise mechanism: a bounded number, told as one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.checks import require
from tacit.privacy.releases.base import Array, Release

__all__ = ["PiecewiseRelease"]


@dataclass(frozen=True, kw_only=True)
class PiecewiseRelease(Release):
    """A bounded value told by the piecewise mechanism of Wang et al. (ICDE 2019).

    Parameters
    ----------
    level : float
        The epsilon it was built for, which it meets exactly.
    norm : str
        ``"replace"``: any value for any other.
    """

    mechanism: ClassVar[str] = "piecewise"
    level: float
    norm: str = "replace"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'replace'", self.norm == "replace", self.norm)
        require(self, "level", "> 0", self.level > 0, self.level)

    @property
    def epsilon(self) -> float:
        """The level."""
        return self.level

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        # The two extremes favour disjoint intervals; elsewhere they agree.
        likely = 1 / (1 + math.exp(-self.level / 2))
        delta = likely * np.maximum(0.0, -np.expm1(np.minimum(epsilon - self.level, 0.0)))
        return delta, delta

    def grouped(self, records: int) -> Release:
        """Return this release: a value answers for one record."""
        return self
