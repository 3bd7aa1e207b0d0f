"""What may be spent on one person of a running experiment; whole millionths of pure epsilon.

Amounts, their rounding, the periods and the windows of the calendar are those of
:mod:`tacit.privacy.budgets`. An experiment's log counts in millionths. Version 0.2 called a lifetime
``ever``, which is still read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Annotated, Any

from tacit.core.constraints import Positive, check, one_of, require
from tacit.core.decider import Decider
from tacit.privacy.budgets import EPSILON_UNIT, Amount, Period, window_start
from tacit.serving.core.events import Charges, Journal, RefusedError

WINDOWS = tuple(period.value for period in Period)
_LIFETIME = Period.LIFETIME.value
_MICRO = EPSILON_UNIT // 10**6
_SHOWN = {"day": 10, "month": 7, "year": 4}
_CROWDED = 100_000
"""Amounts in memory, where nothing else keeps them, from which on windows that are over are dropped."""


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """How much epsilon may be spent on one person in a calendar day, month, year or lifetime.

    Two windows touch: a person may spend one allowance at the end of a day and another right after.

    Examples
    --------
    >>> Allowance(epsilon=2.0, window="day").of(1_700_000_000_000)
    ('day 2023-11-14', 1699920000000)
    """

    epsilon: Positive
    window: Annotated[str, one_of(*WINDOWS)] = _LIFETIME

    def __post_init__(self) -> None:
        if self.window == "ever":
            object.__setattr__(self, "window", _LIFETIME)
        check(self)
        _ = self.amount

    @cached_property
    def amount(self) -> int:
        """What may be spent, rounded down."""
        return Amount.allowed(self.epsilon).epsilon_units // _MICRO

    def of(self, now: int) -> tuple[str, int]:
        """Return the name of the window that a time (milliseconds) lies in, and when it began."""
        return window_of(self.window, now)


class Budget:
    """What may be spent on each person of an experiment, and what was.

    The journal knows what was spent and committed; without one all of that is kept here. What was spent
    under all names of a person adds up: `aliases` has what else people were called.
    """

    def __init__(
        self,
        allowances: tuple[Allowance, ...],
        journal: Journal | None,
        aliases: Mapping[str, Sequence[str]],
    ) -> None:
        self.allowances, self._journal, self.aliases = allowances, journal, aliases
        self.debts: list[tuple[int, int, int]] = []
        """Of restored copies: from when, to when, and what every person may have spent unseen."""
        self.counted = 0
        """Since when every window is charged; before, only those of the budgets then in force were."""
        self.forgotten = 0
        """Windows that were over at this time are no longer known, where nothing else keeps them."""
        self.pending: dict[tuple[str, str], int] = {}
        """By person and window: what was taken, and the journal does not know yet."""
        self._crowded = _CROWDED

    def charge(self, person: str | None, cost: int, now: int) -> Charges | None:
        """Charge a person in every window, a budget or not; None if an allowance does not suffice."""
        for allowance in self.allowances:
            if person is None or self._spent(person, allowance, now) + cost > allowance.amount:
                return None
        if person is None or not cost:
            return ()
        charges = tuple((person, window_of(period, now)[0], cost) for period in WINDOWS)
        self.take(charges)
        if self._journal is None and len(self.pending) > self._crowded:
            self._forget_windows(now)
        return charges

    def take(self, charges: Iterable[tuple[str, str, int]]) -> None:
        """Count what was spent."""
        for person, window, amount in charges:
            key = (person, _LIFETIME if window == "ever" else window)
            self.pending[key] = self.pending.get(key, 0) + amount

    def charges(self) -> Iterator[tuple[str, str, int]]:
        """Return all that was spent: person, window, amount; an amount may come in parts."""
        if self._journal is not None:
            yield from self._journal.charges()
        for (person, window), amount in self.pending.items():
            yield person, window, amount

    def reset_clock(self, now: int) -> Charges:
        """Charge what was spent in windows of a false time in those of `now` too."""
        if now < self.forgotten:
            raise RefusedError(
                "clock",
                "the clock cannot be set back so far, because what was spent in earlier windows was "
                "forgotten; make a new learner, or keep a store",
            )
        meant = {period: window_of(period, now)[0] for period in WINDOWS if period != _LIFETIME}
        false: dict[tuple[str, str], int] = {}
        for person, window, amount in self.charges():
            period = window.partition(" ")[0]
            # Names of a period's windows are in the order of time.
            if period in meant and window > meant[period]:
                key = (person, meant[period])
                false[key] = false.get(key, 0) + amount
        charges = tuple((*key, amount) for key, amount in false.items())
        self.take(charges)
        return charges

    def describe_gaps(self) -> list[str]:
        """Return what nobody knows about what was spent, in words."""
        gaps = [
            f"what happened from {_date(since)} to {_date(until)} (UTC), which is unknown because "
            "an old copy was restored, and is counted as spent"
            for since, until, _ in self.debts
        ]
        if self.counted and self.allowances:
            gaps.append(
                f"what was spent before {_date(self.counted)} (UTC) beyond what the budgets of that "
                "time counted"
            )
        return gaps

    def _spent(self, person: str, allowance: Allowance, now: int) -> int:
        window, begins = window_of(allowance.window, now)
        spent = 0
        for name in (person, *self.aliases.get(person, ())):
            spent += self.pending.get((name, window), 0)
            if self._journal is not None:
                spent += self._journal.spent(name, window)
        return spent + sum(debt for _, until, debt in self.debts if until >= begins)

    def _forget_windows(self, now: int) -> None:
        current = dict(window_of(period, now) for period in WINDOWS)
        self.pending = {key: spent for key, spent in self.pending.items() if key[1] in current}
        self._crowded = max(_CROWDED, 2 * len(self.pending))
        self.forgotten = max(current.values())


def read_allowances(each: Mapping[Any, float]) -> tuple[Allowance, ...]:
    """Return the allowances of a mapping of windows to epsilons."""
    return tuple(Allowance(epsilon=most, window=window) for window, most in each.items())


def _date(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def amount_of(epsilon: float) -> int:
    """Return what an epsilon costs, rounded up.

    Examples
    --------
    >>> amount_of(0.1), amount_of(1e-9)
    (100000, 1)
    """
    return -(-Amount.spent(epsilon).epsilon_units // _MICRO)


def cost_of(decider: Decider, option: int) -> int:
    """Return what showing an option costs its person: every reward that its report may carry.

    Nothing where no reward is protected: no budget can count that.
    """
    epsilon = decider.epsilon
    return decider.rewards(option) * amount_of(epsilon) if epsilon < math.inf else 0


def require_budget(owner: str, decider: Decider, allowances: Sequence[Allowance]) -> None:
    """Raise ``ValueError`` unless these allowances can be kept, and let every option be asked about."""
    if not allowances:
        return
    given = {each.window: each.epsilon for each in allowances}
    finite = decider.epsilon < math.inf
    require(owner, "budget", "only where rewards are protected", finite, given)
    pure = decider.guarantee(1).delta == 0
    require(owner, "budget", "only where delta is 0: it counts epsilon", pure, given)
    most = max(cost_of(decider, option) for option in range(decider.n_options or 1))
    enough = all(each.amount >= most for each in allowances)
    rule = f"of at least {most / 10**6:g}, what one report costs, so that anybody is asked"
    require(owner, "budget", rule, enough, given)


def window_of(period: str, now: int) -> tuple[str, int]:
    """Return the name of a period's window at a time (milliseconds), and when it began.

    Examples
    --------
    >>> window_of("month", 1_700_000_000_000)
    ('month 2023-11', 1698796800000)
    """
    return _window(period, now // 86_400_000)


@lru_cache(maxsize=64)
def _window(window: str, day: int) -> tuple[str, int]:
    if window == _LIFETIME:
        return _LIFETIME, 0
    begins = window_start(Period(window), datetime.fromtimestamp(day * 86_400, UTC))
    return f"{window} {begins.date().isoformat()[: _SHOWN[window]]}", int(begins.timestamp()) * 1000
