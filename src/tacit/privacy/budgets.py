"""The arithmetic of budgets, without a file: amounts, windows of the calendar, caps, decisions.

Amounts are whole numbers of 1e-12 of epsilon and 1e-18 of delta, so that sums are exact; what is spent
is rounded up and what is allowed is rounded down, so that every rounding is against the spender. A cap
holds in each window of the calendar (UTC) or for a lifetime, and several may hold at once. Charges add
up by basic composition, which holds even when later charges depend on earlier answers.

The ledger decides here and keeps its rows in a file or a database. What a running experiment may spend on one
person is counted in the experiment's own log (`tacit.serving.core.budget`), with these amounts and windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

Number = float | int | Decimal | Fraction
EPSILON_UNIT, DELTA_UNIT = 10**12, 10**18
_LIMIT = 4 * 10**18  # two of them stay below 2^63, what a database can hold


class LedgerError(ValueError):
    """A charge, a budget or a file that the ledger does not accept."""


class BudgetExceededError(LedgerError):
    """A charge would exceed a budget: nothing was recorded, nothing may be released."""


class Outcome(Enum):
    """What became of a charge. It is neither true nor false: ask which it is."""

    CHARGED = "charged"
    """Charged now: the answer may be made and released, once."""
    REPEATED = "repeated"
    """Charged before under the same key: the *same* answer may be sent again, never a new one."""

    def __bool__(self) -> bool:
        raise TypeError(f"Outcome: neither true nor false; ask whether it is {self}")


class Period(Enum):
    """How long a cap counts before it begins anew, by the calendar of UTC."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    LIFETIME = "lifetime"


@dataclass(frozen=True, order=True)
class Amount:
    """So much epsilon and delta, exactly.

    Examples
    --------
    >>> Amount.spent(0.1) + Amount.spent(0.2) == Amount.spent(0.3)
    True
    >>> Amount.spent(1e-13).epsilon_units, Amount.allowed(1e-13).epsilon_units
    (1, 0)
    """

    epsilon_units: int
    """Whole numbers of 1e-12."""
    delta_units: int = 0
    """Whole numbers of 1e-18."""

    @classmethod
    def spent(cls, epsilon: Number, delta: Number = 0) -> Amount:
        """Return an amount rounded up; a float stands for the decimal number that it prints as."""
        return cls(
            _units("epsilon", epsilon, EPSILON_UNIT, math.ceil),
            _units("delta", delta, DELTA_UNIT, math.ceil),
        )

    @classmethod
    def allowed(cls, epsilon: Number, delta: Number = 0) -> Amount:
        """Return an amount rounded down."""
        return cls(
            _units("epsilon", epsilon, EPSILON_UNIT, math.floor),
            _units("delta", delta, DELTA_UNIT, math.floor),
        )

    @property
    def epsilon(self) -> float:
        """The nearest number."""
        return self.epsilon_units / EPSILON_UNIT

    @property
    def delta(self) -> float:
        """The nearest number."""
        return self.delta_units / DELTA_UNIT

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.epsilon_units + other.epsilon_units, self.delta_units + other.delta_units
        )

    def less(self, other: Amount) -> Amount:
        """Return what is left when `other` is taken away, never below nought."""
        return Amount(
            max(0, self.epsilon_units - other.epsilon_units),
            max(0, self.delta_units - other.delta_units),
        )

    def covers(self, other: Amount) -> bool:
        """Whether both numbers of `other` fit."""
        return other.epsilon_units <= self.epsilon_units and other.delta_units <= self.delta_units

    def __str__(self) -> str:
        epsilon = Decimal(self.epsilon_units).scaleb(-12).normalize()
        delta = Decimal(self.delta_units).scaleb(-18).normalize()
        return f"epsilon {epsilon:f} and delta {delta:f}"


@dataclass(frozen=True)
class Cap:
    """At most so much in each window of a period."""

    amount: Amount
    period: Period = Period.LIFETIME

    def __str__(self) -> str:
        span = "in all" if self.period is Period.LIFETIME else f"a {self.period.value}"
        return f"{self.amount} {span}"


def window_start(period: Period, now: datetime) -> datetime:
    """Return when the window of `now` began, in UTC; a lifetime began before everything.

    Examples
    --------
    >>> window_start(Period.MONTH, datetime(2026, 11, 16, 9, 30, tzinfo=UTC)).isoformat()
    '2026-11-01T00:00:00+00:00'
    """
    if now.tzinfo is None:
        raise ValueError(f"window_start: expected a time with its zone, got {now!r}")
    at = now.astimezone(UTC)
    if period is Period.LIFETIME:
        return datetime.min.replace(tzinfo=UTC)
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if period is Period.DAY:
        return day
    return day.replace(day=1) if period is Period.MONTH else day.replace(day=1, month=1)


def left_of(caps: Iterable[Cap], spent: Mapping[Period, Amount]) -> Amount:
    """Return what may still be spent under every cap, `spent` in the present window of each."""
    left = [cap.amount.less(spent[cap.period]) for cap in caps]
    if not left:
        return Amount(0, 0)
    return Amount(min(x.epsilon_units for x in left), min(x.delta_units for x in left))


def require_within(
    subject: str, key: str, charge: Amount, caps: Iterable[Cap], spent: Mapping[Period, Amount]
) -> None:
    """Raise `BudgetExceededError` if a charge would exceed a cap.

    Parameters
    ----------
    subject, key : str
        Whom and what it is for, for the complaint.
    charge : Amount
    caps : iterable of Cap
        All of which must hold.
    spent : mapping of Period to Amount
        What was spent so far in the present window of each cap's period.

    Examples
    --------
    >>> year = Cap(Amount.allowed(1), Period.YEAR)
    >>> require_within("ada", "round 7", Amount.spent(0.6), [year], {Period.YEAR: Amount.spent(0.5)})
    Traceback (most recent call last):
    tacit.privacy.budgets.BudgetExceededError: Ledger: 'ada' has epsilon 0.5 and delta 0 left of epsilon 1 \
and delta 0 a year, too little for epsilon 0.6 and delta 0 (key 'round 7')
    """
    for cap in caps:
        left = cap.amount.less(spent[cap.period])
        if not left.covers(charge):
            raise BudgetExceededError(
                f"Ledger: {subject!r} has {left} left of {cap}, too little for {charge} (key {key!r})"
            )


def _units(name: str, value: Any, unit: int, rounding: Any) -> int:
    try:
        exact = Fraction(repr(float(value)) if isinstance(value, float) else value)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"Amount: expected {name} a finite number, got {value!r}") from None
    if exact < 0:
        raise ValueError(f"Amount: expected {name} >= 0, got {value!r}")
    units = int(rounding(exact * unit))
    if units > _LIMIT:
        raise ValueError(f"Amount: expected {name} <= {_LIMIT // unit:,}, got {value!r}")
    return units
