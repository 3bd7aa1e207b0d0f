"""What must hold, said a second time: who was served what, who was charged what, what was released.

Written from the documentation, without a look at the code it is held against. The model believes nothing that
the product says about itself: it knows the commands, the answers, the true rewards and the released values.
"""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from together.fronts import (
    AFTER,
    DEFAULT,
    EPSILON,
    GRACE,
    NAMES,
    TINY,
    Answer,
    first_caps,
    shows,
    visit_scale,
)
from together.options import GRAPHS, LEARNERS, LOCAL, VISITS, Case

GRID = 2.0**-26
"""Sums of rewards are multiples of it; noise on a readable tape is smaller."""
_SLACK = 1e-9
_NORMAL = math.sqrt(2 / math.pi)
"""Of a normal variable that lies as near its middle as a Laplace variable of scale 1, the inverse size."""
_ROUNDED = 0.05
"""Numbers have 53 bits: a scale that is read off beside a large sum is not exact."""


class ViolationError(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant


@dataclass
class Made:
    """One decision, as its person saw it."""

    id: str
    at: int
    request: dict[str, Any]
    offered: list[str]
    answer: Answer
    is_shown: bool = False
    is_asked: bool = False
    is_over: bool = False
    """Whether a report can no longer change what is learned."""
    is_cancelled: bool = False
    is_doubtful: bool = False
    """Whether a copy was put back while it waited: it may be closed, and what it held discarded."""
    is_old: bool = False
    """Whether a copy was put back since: whoever asks again may get another answer."""
    rewards: dict[str, float] | None = None
    """What was reported in time."""


@dataclass
class History:
    """What one line of events knows; a copy that is put back knows less."""

    now: int
    mode: str
    caps: dict[str, float]
    options: list[str]
    retired: list[str] = field(default_factory=list)
    made: dict[str, Made] = field(default_factory=dict)
    spent: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    taken: list[tuple[str, str]] = field(default_factory=list)
    """(decision, option) in the order in which rewards were taken in, where they are at once."""
    releases: list[list[float]] = field(default_factory=list)
    is_exact: bool = True
    """Whether charges are known to the last; after an old copy was put back more counts as spent."""


class Model:
    """Holds every answer against what must be."""

    def __init__(self, case: Case, now: int) -> None:
        self.case = case
        self.is_local = case["policy"] in LOCAL
        self.is_visit = case["policy"] in VISITS
        self.epsilon = EPSILON.get(case["policy"], 1.0)
        self.whole_round = case["unit"] == "round" and case["policy"] in GRAPHS
        self.shows = shows(case)
        self.is_due = case["time"] == "due" or case["front"] not in LEARNERS
        options = [] if case["policy"] in ("linucb", *VISITS) else list(NAMES)
        self.h = History(now=now, mode=case["mode"], caps=first_caps(case), options=options)
        self.loss: dict[tuple[str, str], float] = defaultdict(float)
        """By decision and option (or "" for all of a round): what was released of it, in epsilons."""
        self.reads = 0

    def fork(self) -> History:
        return copy.deepcopy(self.h)

    # What a person costs

    def cost(self, option: str) -> float:
        """Return what a report on this option may release of its person."""
        several = self.case["graph"] != "none" and not self.whole_round
        return self.epsilon * (len(self.shows[option]) if several else 1)

    def is_affordable(self, person: str | None, option: str) -> bool:
        if person is None:
            # Nobody can be charged, so that with a cap nobody is asked.
            return not self.h.caps
        cost, h = self.cost(option), self.h
        return all(
            h.spent[person, window(period, h.now)] + cost <= most + _SLACK
            for period, most in h.caps.items()
        )

    def charge(self, person: str | None, option: str) -> None:
        if person is not None:
            for period in ("day", "month", "year", "lifetime"):
                self.h.spent[person, window(period, self.h.now)] += self.cost(option)

    # Commands and their answers

    def decided(self, id: str, request: dict[str, Any], answer: Answer) -> None:
        h, known = self.h, self.h.made.get(id)
        if known is not None:
            same = (known.answer.option, known.answer.probability)
            again = (answer.option, answer.probability)
            if same != again:
                raise ViolationError("same answer", f"{id}: {same} was answered, then {again}")
            return
        offered = list(request["contexts"] or [o for o in h.options if o not in h.retired])
        if request["eligible"] is not None:
            offered = [option for option in offered if option in request["eligible"]]
        made = Made(id, h.now, request, offered, answer, is_asked=answer.is_asked)
        self._served(made)
        h.made[id] = made
        if h.mode in ("frozen", "off"):
            if answer.is_asked:
                raise ViolationError("modes", f"{id}: asked to report in mode {h.mode}")
        elif not answer.is_asked and answer.reason != "budget":
            raise ViolationError("modes", f"{id}: not asked in mode {h.mode}: {answer.reason!r}")
        if request["shown"]:
            self._shown(made, answer)

    def _served(self, made: Made) -> None:
        """Check that the option and its chance are those of what was served."""
        option, chance, offered = made.answer.option, made.answer.probability, made.offered
        if option not in offered:
            raise ViolationError("served", f"{made.id}: {option!r} is none of {offered}")
        if self.h.mode in ("shadow", "off"):
            if (option, chance) != (offered[0], 1.0):
                raise ViolationError(
                    "served",
                    f"{made.id}: {option!r} with {chance}, not the baseline {offered[0]!r}",
                )
            return
        share, m = self.case["explore"], len(offered)
        ties = [0.0, *(1.0 / k for k in range(1, m + 1))]
        if min(abs(chance - (1 - share) * each - share / m) for each in ties) > _SLACK:
            raise ViolationError("served", f"{made.id}: {chance} of {m}, exploring {share}")
        if chance <= 0:
            raise ViolationError("served", f"{made.id}: {option!r} had no chance")

    def shown(self, id: str, answer: Answer) -> None:
        made = self.h.made[id]
        if not made.is_shown and made.is_asked:
            self._shown(made, answer)
        made.is_shown = True

    def _shown(self, made: Made, answer: Answer) -> None:
        made.is_shown = True
        if answer.reason in ("frozen", "off"):
            return
        person, option = made.request["person"], made.answer.option
        left = self.is_affordable(person, option)
        if answer.is_asked and not left:
            raise ViolationError(
                "budget", f"{made.id}: {self._account(person, option)}, and is asked"
            )
        if not answer.is_asked and left and self.h.is_exact:
            raise ViolationError(
                "budget", f"{made.id}: {self._account(person, option)}, and is not asked"
            )
        made.is_asked = answer.is_asked
        made.answer = made.answer._replace(report_at=answer.report_at)
        if answer.is_asked:
            self.charge(person, option)

    def _account(self, person: str | None, option: str) -> str:
        spent = {
            period: self.h.spent[person or "", window(period, self.h.now)] for period in self.h.caps
        }
        return f"{person} spent {spent} of {self.h.caps}, {option!r} costs {self.cost(option)}"

    def reported(self, id: str, rewards: dict[str, float], status: str) -> None:
        made = self.h.made[id]
        if status in ("learned", "held") and made.rewards is None:
            if not made.is_asked or not made.is_shown or made.is_cancelled or made.is_over:
                raise ViolationError("reports", f"{id}: {status}, but none is awaited")
            made.rewards = rewards
            if not self.is_due:
                made.is_over = True
                self.h.taken += [(id, option) for option in rewards]

    def is_awaited(self, id: str) -> bool:
        """Return whether a report on this decision must be taken in."""
        made = self.h.made.get(id)
        if made is None or made.is_doubtful or made.rewards is not None:
            return False
        return made.is_asked and made.is_shown and not made.is_cancelled and not made.is_over

    def is_due_now(self, id: str) -> bool:
        """Return whether a device has reported on this decision, or will no more."""
        at = self.h.made[id].answer.report_at
        return at is None or self.h.now >= 1000 * at

    def put_back(self, old: History, *, is_load: bool) -> None:
        """Go on from a copy: charges are never forgotten, and open decisions may be closed."""
        spent, now = self.h.spent, self.h.now
        self.h = copy.deepcopy(old)
        if not is_load:
            self.h.spent, self.h.is_exact = spent, False
        self.waited(now)
        for made in self.h.made.values():
            made.is_old = True
            made.is_doubtful |= not self.is_local and not (made.is_over and self.is_due)

    def cancelled(self, id: str) -> None:
        self.h.made[id].is_cancelled = True

    def changed(self, wanted: dict[str, Any]) -> None:
        h = self.h
        h.mode = wanted.get("mode", h.mode)
        h.caps = dict(wanted.get("budget", h.caps))
        h.options += wanted.get("add_options", [])
        h.retired += [name for name in wanted.get("retire_options", []) if name not in h.retired]

    def waited(self, now: int) -> None:
        self.h.now = now
        for made in self.h.made.values():
            at = made.answer.report_at
            if self.is_due and at is not None and now >= 1000 * (at + GRACE):
                made.is_over = True

    # What was released

    def read_releases(self, told: list[list[float]], *, is_stated: Any) -> None:
        """Follow every reward into what was released; check that no record cost more than is stated."""
        fresh, self.reads = told[self.reads :], len(told)
        for values in fresh:
            self.h.releases.append(values)
            if self.case["noise"] == "readable":
                for records, share in self._opened(values):
                    self._count(records, share, values, is_stated)

    def _count(
        self, records: list[tuple[str, str]], share: float, values: Any, is_stated: Any
    ) -> None:
        # Silent ones are all alike, so that nobody can tell which of them is in it.
        told = [self._key(*each) for each in records if self.h.made[each[0]].rewards is not None]
        for key, n in Counter(told).items():
            self.loss[key] += share * n
            if self.loss[key] > 1 + _ROUNDED and not is_stated():
                raise ViolationError(
                    "noise",
                    f"the rewards of {' '.join(key).strip()} were released at {self.loss[key]:.3g} times "
                    f"the stated epsilon, last in {values}",
                )

    def _opened(self, values: list[float]) -> Any:
        """Yield which records each released value is made of, and the share of epsilon it spends."""
        if not self.is_visit:
            for value in values:
                total, scale = _read(value)
                lists = [
                    self._taken(option, sure) for sure in self._ways() for option in self.h.options
                ]
                records = self._run(lists, total, values)
                yield records, 1.0 / (scale * self.epsilon)
            return
        stated = visit_scale(self.case)
        people = sorted({made.request["person"] for made in self.h.made.values()})
        alone = self.case["policy"] == "private-contexts"
        # Of one context number there are two moments: x x and x r. The second tells who is in it.
        for moments in (values[i : i + 2] for i in range(0, len(values), 2)):
            total, scale = _read(moments[1])
            lists = [self._visits(person, sure) for sure in self._ways() for person in people]
            records = [] if total == 0 and not alone else self._run(lists, total, values)
            yield records, (stated / (scale * _NORMAL)) ** 2

    def _run(self, lists: list[Any], total: int, values: Any) -> list[tuple[str, str]]:
        """Return the records in a row that add up to a total; of several such rows the least spent."""
        found: list[tuple[float, list[tuple[str, str]]]] = []
        for records in lists:
            places, at = {0: [0]}, 0
            sums = [0]
            for i, (_, value) in enumerate(records):
                at += value
                sums.append(at)
                for start in places.get(at - total, ()):
                    row = [key for key, _ in records[start : i + 1]]
                    found.append((max(self.loss[self._key(*key)] for key in row), row))
                places.setdefault(at, []).append(i + 1)
        if not found:
            raise ViolationError("releases", f"{values} is no sum of rewards that were reported")
        return min(found)[1]

    def _key(self, id: str, option: str) -> tuple[str, str]:
        return (id, "" if self.whole_round else option)

    def _ways(self) -> tuple[bool, ...]:
        doubt = any(made.is_doubtful for made in self.h.made.values())
        return (False, True) if doubt and self.is_due else (False,)

    def _order(self, sure: bool) -> list[tuple[Made, str, float]]:
        """Return what is learned, in order: of times and decisions where reports wait, else of arrivals."""
        h = self.h
        if not self.is_due:
            return [
                (h.made[id], option, (h.made[id].rewards or {})[option]) for id, option in h.taken
            ]
        learned = [
            made
            for made in h.made.values()
            if made.is_asked and made.is_shown and not made.is_cancelled
            if not (sure and made.is_doubtful)
        ]
        learned.sort(key=lambda made: made.answer.report_at or 0.0)
        return [
            (made, option, value)
            for made in learned
            for option, value in self._rewards(made).items()
        ]

    def _rewards(self, made: Made) -> dict[str, float]:
        """Return what is learned of a decision: what is missing counts as the default."""
        option = made.answer.option
        return dict.fromkeys(self.shows.get(option, [option]), DEFAULT) | (made.rewards or {})

    def _taken(self, option: str, sure: bool) -> list[tuple[tuple[str, str], int]]:
        return [
            ((made.id, each), round(value / GRID))
            for made, each, value in self._order(sure)
            if each == option
        ]

    def _visits(self, person: str, sure: bool) -> list[tuple[tuple[str, str], int]]:
        return [
            ((made.id, each), round(value * made.request["contexts"][each][0] / GRID))
            for made, each, value in self._order(sure)
            if made.request["person"] == person
        ]

    # Numbers

    def tallies(self) -> dict[str, dict[str, int]]:
        """Return by option how many were decided and shown."""
        names = self.h.options or ["all options"]
        out = {name: {"decided": 0, "shown": 0} for name in names}
        for made in self.h.made.values():
            row = out[made.answer.option if self.h.options else "all options"]
            row["decided"] += 1
            row["shown"] += made.is_shown
        return out


def window(period: str, now: int) -> str:
    """Return the name of the calendar window, in UTC, that a time in milliseconds lies in."""
    at = datetime.fromtimestamp(now / 1000, UTC)
    return f"{period} " + at.strftime(
        {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}.get(period, "")
    )


def _read(value: float) -> tuple[int, float]:
    """Return the sum, in steps of the grid, and the scale of the noise of a released value."""
    total = int(value / GRID // 1)
    return total, (value - total * GRID) / TINY


__all__ = ["AFTER", "GRID", "History", "Made", "Model", "ViolationError", "window"]
