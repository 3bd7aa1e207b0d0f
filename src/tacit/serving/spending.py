"""What may be spent on one person of a running experiment; whole millionths of pure epsilon.

Amounts, their rounding and the windows of the calendar are those of :mod:`tacit.privacy.budgets`. An
experiment's log counts in millionths, and calls a lifetime ``ever``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

from tacit.checks import Positive, check, one_of
from tacit.privacy.budgets import EPSILON_UNIT, Amount, Period, window_start

__all__ = ["WINDOWS", "Allowance", "amount_of"]

WINDOWS = ("day", "month", "year", "ever")
_MICRO = EPSILON_UNIT // 10**6
_SHOWN = {"day": 10, "month": 7, "year": 4}


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
        _ = self.amount

    @property
    def amount(self) -> int:
        """What may be spent, rounded down."""
        return Amount.allowed(self.epsilon).epsilon_units // _MICRO

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
    return -(-Amount.spent(epsilon).epsilon_units // _MICRO)


@lru_cache(maxsize=64)
def _window(window: str, day: int) -> tuple[str, int]:
    if window == "ever":
        return "ever", 0
    begins = window_start(Period(window), datetime.fromtimestamp(day * 86_400, UTC))
    return f"{window} {begins.date().isoformat()[: _SHOWN[window]]}", int(begins.timestamp()) * 1000
