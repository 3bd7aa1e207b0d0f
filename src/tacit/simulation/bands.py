"""A mean over repetitions with its 95% band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    from scipy.special import stdtrit

    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        return Band(mean, mean, mean)
    half = float(stdtrit(n - 1, 0.975)) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return Band(mean, mean - half, mean + half)
