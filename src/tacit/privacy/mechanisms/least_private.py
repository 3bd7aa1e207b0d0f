"""Several releases of which any one may happen: as private as the least private of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.core.constraints import require
from tacit.privacy.mechanisms.release import Array, Release, release_from_dict


@dataclass(frozen=True, kw_only=True)
class LeastPrivateRelease(Release):
    """One of several releases, whichever somebody chooses, who may know what was released before.

    Its delta at every epsilon is the largest of theirs, in either direction. A largest curve of
    convex ones is convex, so it belongs to a pair of distributions, and that pair dominates every
    choice: many such releases compose like so many uses of the pair, in any order of choices (Zhu,
    Dong and Wang, AISTATS 2022, Theorem 10). Which one has the largest pure epsilon says nothing.

    Parameters
    ----------
    releases : tuple of Release
        What may happen.
    """

    mechanism: ClassVar[str] = "the least private of several"
    releases: tuple[Release, ...]

    def __post_init__(self) -> None:
        require(self, "releases", "at least one", len(self.releases) > 0, self.releases)

    @property
    def epsilon(self) -> float:
        """The largest."""
        return max(release.epsilon for release in self.releases)

    @property
    def spread(self) -> float:
        """The smallest, so that accounting resolves every one."""
        return min((r.spread for r in self.releases if r.spread > 0), default=1.0)

    def _largest_loss(self) -> float:
        return max(release._largest_loss() for release in self.releases)

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        curves = [curve for release in self.releases for curve in release._hockey_stick(epsilon)]
        delta: Array = np.max(curves, axis=0)
        return delta, delta

    def grouped(self, records: int) -> Release:
        """Return the least private of the grouped releases."""
        return least_private(release.grouped(records) for release in self.releases)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {"kind": type(self).__name__, "releases": [r.to_dict() for r in self.releases]}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Release:
        """Return the release that `to_dict` described."""
        return cls(releases=tuple(release_from_dict(record) for record in values["releases"]))

    def describe(self) -> str:
        """Return the releases in a few words."""
        return f"{self.mechanism} ({', '.join(r.describe() for r in self.releases)})"


def least_private(releases: Iterable[Release]) -> Release:
    """Return a release that stands for whichever of `releases` happens.

    Examples
    --------
    The second of these has the larger pure epsilon, the first costs more when it is repeated:

    >>> from tacit.privacy import RandomizedResponseRelease, composed_epsilon
    >>> first = RandomizedResponseRelease(keep_zero=0.731, keep_one=0.731)
    >>> second = RandomizedResponseRelease(keep_zero=0.999, keep_one=0.0027186)
    >>> [round(release.epsilon, 4) for release in (first, second)]
    [0.9997, 1.0001]
    >>> either = least_private([first, second])
    >>> [round(composed_epsilon([(r, 100)], 1e-6), 1) for r in (first, second, either)]
    [83.5, 4.9, 83.5]
    """
    different = tuple(dict.fromkeys(releases))
    return different[0] if len(different) == 1 else LeastPrivateRelease(releases=different)
