"""What may be spent on one person, in windows of UTC time; whole millionths of epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

from tacit.checks import Positive, check, one_of, require

__all__ = ["WINDOWS", "Allowance", "amount_of"]

WINDOWS = ("day", "month", "year", "ever")
_MICRO = 10**6


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """How much epsilon may be spent on one person in a calendar day, month, year, or ever.

    Two windows touch: a person may spend one allowance at the end of a day and another right after.
    A lifetime cap is the window ``ever``.

    Examples
    --------
    >>> Allowance(epsilon=2.0, window="day").of(1_700_000_000_000)
    ('day 2023-11-14', 1699920000000)
    """

    epsilon: Positive
    window: Annotated[str, one_of(*WINDOWS)] = "ever"

    def __post_init__(self) -> None:
        check(self)

    @property
    def amount(self) -> int:
        """What may be spent, rounded down."""
        return math.floor(_exact(self.epsilon) * _MICRO)

    def of(self, now: int) -> tuple[str, int]:
        """Return the name of the window that a time (milliseconds) lies in, and when it began."""
        return _window(self.window, now // 86_400_000)


def amount_of(epsilon: float) -> int:
    """Return what an epsilon costs, rounded up.

    Examples
    --------
    >>> amount_of(0.1), amount_of(1e-9)
    (100000, 1)
    """
    require("Allowance", "epsilon", "finite", math.isfinite(epsilon), epsilon)
    return math.ceil(_exact(epsilon) * _MICRO)


def _exact(epsilon: float) -> Fraction:
    return Fraction(repr(float(epsilon)))


@lru_cache(maxsize=64)
def _window(window: str, day: int) -> tuple[str, int]:
    if window == "ever":
        return "ever", 0
    date = datetime.fromtimestamp(day * 86_400, UTC)
    begins = {
        "day": date,
        "month": date.replace(day=1),
        "year": date.replace(month=1, day=1),
    }[window]
    name = begins.date().isoformat()[: {"day": 10, "month": 7, "year": 4}[window]]
    return f"{window} {name}", int(begins.timestamp()) * 1000
