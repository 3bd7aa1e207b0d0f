"""What repetitions say: means and quantiles with their errors, and numbers as the report prints them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Summary:
    """Mean, 95% interval and standard error of repetitions."""

    mean: float
    low: float
    high: float
    error: float
    n: int

    def text(self) -> str:
        """Return the mean and its standard error, to two digits of the error.

        Examples
        --------
        >>> summarise([12590.0, 12610.0, 12620.0]).text()
        '12,606.7 ± 8.8'
        """
        return format_estimate(self.mean, self.error)


def format_estimate(value: float, error: float) -> str:
    """Return a number and its standard error, to two digits of the error.

    Examples
    --------
    >>> format_estimate(3e6, 0.0), format_estimate(0.04512, 0.00021)
    ('3,000,000 ± 0', '0.04512 ± 0.00021')
    """
    if not error > 1e-9 * abs(value):
        known = "(one run)" if math.isnan(error) else "± 0"
        return f"{value:,.6g} {known}" if abs(value) < 1e6 else f"{value:,.0f} {known}"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:,.{places}f} ± {error:,.{places}f}"


def is_close(
    measured: Summary, known: float, known_runs: float, *, digit: float = 0.0, least: float = 0.0
) -> bool:
    """Say whether a mean is within 5 standard errors, and rounding, of one of `known_runs` runs.

    The standard error is taken to be at least `least`.
    """
    error = max(measured.error * math.sqrt(1 + measured.n / known_runs), least)
    return abs(measured.mean - known) <= 5 * error + digit


def summarise(values: Sequence[float]) -> Summary:
    """Summarise independent repetitions."""
    from tacit.simulation import band_of

    array = np.asarray(values, float)
    band = band_of(array[:, None])
    error = float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else math.nan
    return Summary(float(band.mean[0]), float(band.low[0]), float(band.high[0]), error, len(array))


@dataclass(frozen=True)
class Quantile:
    """A quantile of repetitions and its 95% interval."""

    value: float
    low: float
    high: float

    def text(self) -> str:
        """Return the quantile and its interval."""
        return f"{format_short(self.value)} ({format_short(self.low)} to {format_short(self.high)})"


def format_short(value: float) -> str:
    """Write a number to three digits, or whole.

    Examples
    --------
    >>> format_short(1451.2), format_short(78.24), format_short(0.04512)
    ('1,451', '78.2', '0.0451')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


_BEYOND, _Z = 20, 1.96


def estimate_quantile(values: Sequence[float], share: float) -> Quantile:
    """Return a quantile of independent repetitions, if at least 20 of them lie beyond it.

    The interval goes from one run to another, in the order of their values: those between which the number
    of runs below the true quantile lies in 95% of all cases. It assumes no distribution.

    Examples
    --------
    >>> estimate_quantile(range(1, 402), 0.5).text()
    '201 (180 to 221)'
    >>> estimate_quantile(range(20), 0.9)
    Traceback (most recent call last):
    ValueError: a 90% quantile cannot be printed, because only 2 of 20 runs lie beyond it; play 200 instead
    """
    ordered = np.sort(np.asarray(values, float))
    n, rest = len(ordered), min(share, 1.0 - share)
    needed = math.ceil(round(_BEYOND / rest, 6))
    if n < needed:
        raise ValueError(
            f"a {100 * share:g}% quantile cannot be printed, because only {rest * n:.0f} of {n} runs "
            f"lie beyond it; play {needed} instead"
        )
    spread = _Z * math.sqrt(n * share * (1.0 - share))
    low, high = math.floor(n * share - spread), math.ceil(n * share + spread)
    value = float(np.quantile(ordered, share))
    return Quantile(value, float(ordered[low - 1]), float(ordered[high - 1]))
