"""What a simulation returns: measures at checkpoints, one row a repetition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.policy import AnyEnvironment, AnyPolicy
from tacit.privacy import Guarantee

__all__ = ["Band", "Result", "band_of"]


@dataclass(frozen=True)
class Band:
    """A mean with a confidence band, checkpoint by checkpoint."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def band_of(values: NDArray[np.float64]) -> Band:
    """Return the mean of rows and its 95% band (Student's t, over repetitions).

    Examples
    --------
    >>> import numpy as np
    >>> band = band_of(np.array([[1.0], [3.0]]))
    >>> float(band.mean[0]), round(float(band.high[0] - band.mean[0]), 2)
    (2.0, 12.71)
    """
    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        return Band(mean, mean, mean)
    half = _student_95(n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return Band(mean, mean - half, mean + half)


# 97.5% points of Student's t for 1 to 30 degrees of freedom; beyond, a series that is within 1e-4.
_T975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip


def _student_95(freedom: int) -> float:
    if freedom <= len(_T975):
        return _T975[freedom - 1]
    z = 1.959963985
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


@dataclass(frozen=True, kw_only=True)
class Result:
    """The repetitions of one policy in one environment.

    Parameters
    ----------
    policy, environment : the descriptions that were run
    horizon, seed : int
    repetitions : array of int
        The numbers of the repetitions, in order.
    checkpoints : array of int, shape (C,)
        Numbers of rounds played.
    measures : mapping of name to array of shape (repetitions, C)
    noise_draws : array of int
        How many draws of privacy noise each repetition read from its tape.
    numerics : str
        ``research``: seeded floating point; never a deployment's privacy.
    traces : list
        The whole traces, if they were asked for.
    """

    policy: AnyPolicy
    environment: AnyEnvironment
    horizon: int
    seed: int
    repetitions: NDArray[np.int64]
    checkpoints: NDArray[np.int64]
    measures: Mapping[str, NDArray[np.float64]]
    noise_draws: NDArray[np.int64]
    numerics: str = "research"
    traces: list[Any] = field(default_factory=list, repr=False, compare=False)

    @property
    def guarantee(self) -> Guarantee:
        """What the policy protects over this horizon."""
        return self.policy.guarantee(self.horizon)

    def final(self, measure: str) -> NDArray[np.float64]:
        """Return the last value of `measure` in every repetition."""
        return self.measures[measure][:, -1]

    def band(self, measure: str) -> Band:
        """Return mean and 95% band of `measure` at every checkpoint."""
        return band_of(self.measures[measure])
