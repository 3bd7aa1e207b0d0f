"""One experiment as a function of its log: no clock, no files, no randomness of its own.

Every command carries the time. It is checked and applied, and what came of it is appended to `staged`;
whoever owns the core makes that durable, and only then answers. A commit that failed, or whose fate is
unknown, ends the core: another is built from the log. `replay` folds committed events through the same
code. It recomputes every choice, as a check, and takes over released values with the state that they led
to, so that nothing that was released is ever drawn again.

Choices are drawn under a key that is logged. Noise is drawn under a key that lives in memory, is fresh
whenever a core is made, and is written nowhere: a thief of the files cannot subtract it, and a copy of
the files cannot put the same noise on other sums.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Protocol

from tacit.checks import Count, Whole, check, one_of, require
from tacit.deciding import Decider
from tacit.serving.spending import Allowance, amount_of
from tacit.tapes import Tape

__all__ = [
    "MODES",
    "BrokenError",
    "Core",
    "Event",
    "Journal",
    "Open",
    "Receipt",
    "RefusedError",
    "Terms",
]

MODES = ("learn", "frozen", "shadow", "off")
DECIDED, SHOWN, LEARNED, SILENT, TOTAL = range(5)
"""Places in a tally."""
_DAY = 86_400_000
_CROWDED = 100_000
_SPARE = 1_000


class RefusedError(ValueError):
    """A command that was not carried out, and why; nothing changed."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason
        """One word for programs: ``unknown``, ``closed``, ``answered``, ``conflict``, ``full`` ..."""


class BrokenError(RuntimeError):
    """Something failed half-way: the core must be built anew from its log."""


class Event(NamedTuple):
    """What came of a command."""

    kind: str
    at: int
    """Milliseconds since 1970."""
    id: str | None
    """The decision it belongs to."""
    body: dict[str, Any]
    """For JSON."""
    state: bytes | None = None
    """The policy's arrays afterwards, if something was released: what was released stays so."""
    expires: int | None = None
    """When all rows of the decision may be deleted; set by what closes it."""
    charges: tuple[tuple[str, str, int], ...] = ()
    """Who pays: person, window, amount."""


class Receipt(NamedTuple):
    """What became of a report."""

    id: str
    status: str
    """``learned``; ``held`` until the decision closes; ``repeated``; ``late``; ``refused``."""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is fixed for an experiment beside its policy; times in milliseconds.

    Parameters
    ----------
    report_after : int, optional
        How long after a decision its report is due. None: whenever it comes.
    grace : int
        How long after that a report still counts.
    retention : int
        How long a decision is remembered after it was closed.
    default : float, optional
        The reward that stands for a missing one; the lowest unless given.
    max_open : int
        More open decisions than this are refused.
    allowances : tuple of Allowance
        What may be spent on one person.
    mode : {"learn", "frozen", "shadow", "off"}
        At the start.
    baseline : int
        The option that is served in the modes ``shadow`` and ``off``.
    """

    report_after: Whole | None = None
    grace: Whole = 60_000
    retention: Whole = 30 * _DAY
    default: float | None = None
    max_open: Count = 100_000
    allowances: tuple[Allowance, ...] = ()
    mode: Annotated[str, one_of(*MODES)] = "learn"
    baseline: Whole = 0

    def __post_init__(self) -> None:
        check(self)


class Open:
    """A decision that waits: for being shown, for its report, or for its time."""

    id: str
    round: int
    """-1 where the policy was not asked."""
    option: int
    at: int
    record: Any = None
    report_at: int | None = None
    close_at: int | None = None
    shown: bool = True
    reason: str = ""
    """Why devices do not report on it: ``budget``, ``capacity``, ``frozen``, ``off``; empty if they do."""
    person: str | None = None
    digest: str | None = None
    """Of the request, to tell a repeated one from another with the same identity."""
    value: Any = None
    """What was reported, where it is learned later."""
    name: str | None = None
    """What was chosen is called, where options come with each decision."""
    would: int | None = None
    """What the policy would have chosen, where the baseline was served."""
    status: str = "open"
    """Then ``answered``, ``silent``, ``lapsed`` (never shown), ``unasked``, ``cancelled`` or ``lost``."""

    @property
    def probability(self) -> float:
        """The exact chance of what was chosen, worked out when it is first asked for."""
        known: Any = self.__dict__["probability"]
        if callable(known):
            known = self.__dict__["probability"] = known()
        return float(known)

    @probability.setter
    def probability(self, known: float | Callable[[], float]) -> None:
        self.__dict__["probability"] = known

    def row(self) -> dict[str, Any]:
        """Return what must be kept, for JSON."""
        row = {**self.__dict__, "value": _plain(self.value), "probability": self.probability}
        return {name: value for name, value in row.items() if value is not None}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Open:
        """Return the decision that `row` was made of."""
        decision = cls()
        decision.__dict__.update(row)
        if "value" in row:
            decision.value = _value(row["value"])
        return decision


class Journal(Protocol):
    """What a core may ask of the store that keeps it: what is committed."""

    def find(self, id: str) -> list[Event]:
        """Return the events of a decision, in order."""

    def spent(self, person: str, window: str) -> int:
        """Return what was spent on a person in a window."""


class Core:
    """An experiment in memory.

    Parameters
    ----------
    decider : Decider
    terms : Terms
    tape : Tape
        Its first key for choices, its second for noise.
    journal : Journal, optional
        Where closed decisions and spending are looked up. Without it nothing is staged, and closed
        decisions are remembered for a while only.
    options : list of str
        Names, if the policy has options of its own.
    people : list of str
        Pseudonyms in the order of the policy's people, if it knows any.
    remember : int
        At least so many of the latest closed decisions are kept in memory, at most twice as many.
    """

    def __init__(
        self,
        decider: Decider,
        terms: Terms,
        tape: Tape,
        *,
        journal: Journal | None = None,
        options: Iterable[str] = (),
        people: Iterable[str] = (),
        remember: int = 10_000,
    ) -> None:
        self.decider, self.terms, self.tape, self.journal = decider, terms, tape, journal
        reads: Any = tape.reads
        self._reads = memoryview(reads)
        self.staged: list[Event] = []
        self.options = list(options)
        self.people = {person: place for place, person in enumerate(people)}
        self.allowances = terms.allowances
        self.retired: set[int] = set()
        self.mode = terms.mode
        self.now = self.rounds = self.epoch = 0
        self.open: dict[str, Open] = {}
        self.decided = self.shown_count = self.learned = self.silent = self.late = self.lapsed = 0
        self.releases = 0
        self.changes = 0
        """How often something was changed that is not a decision: mode, options, people, budgets."""
        self.tallies: list[list[float]] = []
        """For each option (for all together where they come with each decision): how many decisions,
        shown, learned, silent; and the sum of reported numbers where these are private."""
        self.debts: list[tuple[int, int, int]] = []
        """Of restored copies: from when, to when, and what every person may have spent unseen."""
        self._logs = journal is not None
        # Two generations: to forget the oldest of one dict takes ever longer.
        self._closed: dict[str, Open] = {}
        self._before: dict[str, Open] = {}
        self._remember = remember
        self._due: list[tuple[int, int, str]] = []
        self._pending: dict[tuple[str, str], int] = {}
        self._staged_at = 0
        self._crowded = _CROWDED
        self._later = decider.trust == "central" and terms.report_after is not None
        self._everything = None if decider.n_options is None else decider.asked({})
        self._local = decider.trust == "local"
        self._one_tally = decider.n_options is None
        self.tallies = [[0, 0, 0, 0, 0] for _ in range(decider.n_options or 1)]

    # Commands

    def decide(
        self,
        now: int,
        id: str,
        query: Mapping[str, Any] | None = None,
        *,
        person: str | None = None,
        shown: bool = True,
        report_at: int | None = None,
        digest: str | None = None,
    ) -> Open:
        """Decide under a new identity; see `earlier` for one that may have been used."""
        now = self._advance(now)
        if id in self.open or id in self._closed or id in self._before:
            raise RefusedError("conflict", f"decision {id}: expected a new id, got one in use")
        if len(self.open) >= self.terms.max_open:
            raise RefusedError(
                "full",
                f"expected fewer than {self.terms.max_open:,} open decisions, got as many: report "
                "or cancel some, or set report_after, so that silence closes them",
            )
        if self.allowances and person is None:
            raise RefusedError("person", "expected a person to charge, got none")
        decision = Open()
        decision.id, decision.at, decision.person, decision.digest = id, now, person, digest
        released, state = self._choose(decision, self._asked(query))
        if query and "names" in query:
            decision.name = query["names"][decision.option]
        after = self.terms.report_after
        if report_at is not None:
            decision.report_at = report_at if report_at > now else now
        elif after is not None:
            decision.report_at = now + after
        charges = self._show(decision, now) if shown else ()
        if not shown:
            decision.shown = False
        if decision.reason:
            decision.status = "unasked"
        elif decision.report_at is not None:
            decision.close_at = decision.report_at + self.terms.grace
        expires = self._enter(decision)
        if self._logs:
            body = self._body(decision)
            if query:
                body["query"] = dict(query)
            if released:
                body["released"] = released
            self._stage("decide", id, body, state, expires, charges)
        return decision

    def earlier(self, id: str, digest: str | None) -> Open | None:
        """Return the decision that was made under this identity for the same request, if any."""
        decision = self.open.get(id) or self._recent(id)
        if decision is not None and decision.digest != digest:
            raise RefusedError("conflict", f"decision {id}: expected the request it was made for")
        return decision

    def decide_once(
        self,
        now: int,
        id: str,
        query: Mapping[str, Any] | None,
        person: str | None,
        shown: bool,
        report_at: int | None = None,
    ) -> Open:
        """Decide, or return the decision that was made for the same request under this identity."""
        request = [query, person, shown, *(() if report_at is None else (report_at,))]
        written = json.dumps(request, sort_keys=True).encode()
        digest = hashlib.blake2b(written, digest_size=16).hexdigest()
        return self.earlier(id, digest) or self.decide(
            now, id, query, person=person, shown=shown, report_at=report_at, digest=digest
        )

    def show(self, now: int, id: str) -> Open:
        """Note that a decision was shown: from here on its person pays and its report is awaited."""
        now = self._advance(now)
        decision = self.open.get(id) or self._known(id)
        if decision.shown:
            return decision
        if decision.status != "open":
            raise RefusedError(
                "closed", f"decision {id}: expected an open one, got {decision.status}"
            )
        charges = self._show(decision, now)
        expires = None
        if decision.reason:
            self._close(decision, "unasked")
            expires = self._expiry(decision)
        if self._logs:
            body = {"reason": decision.reason} if decision.reason else {}
            self._stage("show", id, body, expires=expires, charges=charges)
        return decision

    def report(self, now: int, id: str, value: Any) -> Receipt:
        """Take in what a device reported on a decision; each counts once."""
        now = self._advance(now)
        decision = self.open.get(id)
        if decision is None:
            return self._too_late(self._known(id), value)
        if not decision.shown:
            raise RefusedError("unasked", f"decision {id}: expected to be shown before a report")
        checked = self.decider.checked(decision.option, decision.record, value)
        if decision.value is not None:
            return _same(decision, checked)
        if self._later and decision.close_at is not None:
            decision.value = checked
            if self._logs:
                self._stage("report", id, {"value": _plain(checked)})
            return Receipt(id, "held")
        learned = self.learned
        released, state = self._learn(decision, checked)
        decision.value = checked
        self._close(decision, "answered")
        if self._logs:
            body: dict[str, Any] = {"value": _plain(checked)}
            if released:
                body["released"] = released
            self._stage("learn", id, body, state, self._expiry(decision))
        if self.learned == learned:
            return Receipt(id, "late", "the policy learns from nothing that comes so late")
        return Receipt(id, "learned")

    def cancel(self, now: int, id: str) -> Open:
        """Give a decision up: nothing is awaited, nothing learned; what was charged stays so."""
        self._advance(now)
        decision = self.open.get(id)
        if decision is None:
            decision = self._known(id)
            if decision.status != "cancelled":
                raise RefusedError(
                    "closed", f"decision {id}: expected an open one, got {decision.status}"
                )
            return decision
        self._close(decision, "cancelled")
        if self._logs:
            self._stage("cancel", id, {}, expires=self._expiry(decision))
        return decision

    def tick(self, now: int) -> int:
        """Close what is due; return how many decisions that were."""
        before = len(self.open)
        self._advance(now)
        return before - len(self.open)

    def set_mode(self, now: int, mode: str) -> None:
        """Learn, decide only, serve the baseline and watch, or serve the baseline."""
        self._advance(now)
        self._set_mode(mode)
        if self._logs:
            self._stage("mode", None, {"mode": mode})

    def add_option(self, now: int, name: str) -> int:
        """Add an option; return its number."""
        self._advance(now)
        if name in self.options:
            raise RefusedError("conflict", f"option {name!r}: expected a new name, got one in use")
        option = self._add_option(name)
        if self._logs:
            self._stage("option", None, {"name": name})
        return option

    def retire(self, now: int, option: int) -> None:
        """Never choose an option again; reports on it still count."""
        self._advance(now)
        left = [o for o in range(len(self.options)) if o not in self.retired and o != option]
        require("Learner", "options", "left after retiring one", bool(left), left)
        if option not in self.retired:
            self._retire(option)
            if self._logs:
                self._stage("retire", None, {"option": option})

    def add_person(self, now: int, person: str, near: Sequence[str] = ()) -> int:
        """Add somebody, joined to those named; return the person's place."""
        self._advance(now)
        if person in self.people:
            raise RefusedError("conflict", f"person {person}: expected a new one, got one in use")
        places = [self.people[other] for other in near if other in self.people]
        require("Core", "near", "people who were added", len(places) == len(near), list(near))
        place = self._add_person(person, places)
        if self._logs:
            self._stage("person", None, {"person": person, "near": places})
        return place

    def set_edges(self, now: int, joined: Any) -> None:
        """Join people anew: what each has taught is kept, what others learn from it changes.

        `joined` is plain: what the decider's `joined` returned, changed.
        """
        self._advance(now)
        self._join(joined)
        if self._logs:
            self._stage("edges", None, {"joined": joined})

    def set_allowances(self, now: int, allowances: Mapping[str, float]) -> None:
        """Change what may be spent on one person, by window; what was spent stays spent."""
        self._advance(now)
        made = tuple(Allowance(epsilon=most, window=each) for each, most in allowances.items())
        if made:
            _ = self.cost
        self.allowances = made
        if self._logs:
            self._stage("allowances", None, {"each": dict(allowances)})

    def begin_epoch(self, now: int, lost: int, since: int) -> None:
        """Go on from a restored copy: `lost` charged decisions since then are not in the log.

        Sums that were not released are discarded and open decisions are closed, because the lost log
        may have released their rewards; every person counts as charged for all that was lost.
        """
        self._advance(now)
        debt = lost * (self.cost if self.decider.epsilon < math.inf else 0)
        self._begin_epoch(since, self.now, debt)
        if self._logs:
            self._stage("epoch", None, {"since": since, "debt": debt, "lost": lost})
        if self.decider.releases:
            for decision in list(self.open.values()):
                self._close(decision, "lost")
                if self._logs:
                    self._stage("lose", decision.id, {}, expires=self._expiry(decision))

    # What is known

    @property
    def cost(self) -> int:
        """What a shown decision costs its person, in the units of an allowance."""
        return amount_of(self.decider.epsilon)

    def due(self, now: int) -> bool:
        """Return whether a decision is to be closed at this time."""
        return bool(self._due) and self._due[0][0] <= now

    @property
    def hides_silence(self) -> bool:
        """Whether it is protected who answered and when: value and silence are one record then."""
        return self._later

    @property
    def past_horizon(self) -> bool:
        """Whether more rounds were played than the policy is made for."""
        return self.decider.horizon is not None and self.rounds > self.decider.horizon

    def instructions(self, decision: Open) -> dict[str, Any] | None:
        """Return what the device of a decision is told; None if it need not report."""
        if decision.reason:
            return None
        return self.decider.instructions(decision.option, decision.record, self.terms.default)

    # The fold

    def replay(self, events: Iterable[Event]) -> int:
        """Apply committed events in order; return how many."""
        logs, self._logs = self._logs, False
        n = 0
        for event in events:
            self.now = self._staged_at = max(self.now, event.at)
            getattr(self, f"_replay_{event.kind}")(event)
            self.changes += event.kind in _CHANGES
            n += 1
        self._logs = logs
        return n

    def snapshot(self) -> tuple[dict[str, Any], bytes, list[dict[str, Any]]]:
        """Return counters and names, the policy's arrays, and the open decisions."""
        return *self.summary(), list(self.rows())

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the open decisions one by one, since there may be many."""
        return map(Open.row, self.open.values())

    def summary(self) -> tuple[dict[str, Any], bytes]:
        """Return counters and names, and the policy's arrays."""
        about = {name: getattr(self, name) for name in _COUNTERS}
        if self._logs:
            about["now"] = self._staged_at
        about |= {
            "options": list(self.options),
            "retired": sorted(self.retired),
            "debts": [list(debt) for debt in self.debts],
            "allowances": {each.window: each.epsilon for each in self.allowances},
            "people": list(self.people),
            "joined": self.decider.joined,
            "tallies": [list(tally) for tally in self.tallies],
        }
        return about, self.decider.pack()

    def restore(
        self, about: Mapping[str, Any], state: bytes, decisions: Iterable[Mapping[str, Any]]
    ) -> None:
        """Set everything to what `snapshot` returned."""
        for name in _COUNTERS:
            setattr(self, name, about.get(name, 0))
        self._staged_at = self.now
        for name in about["options"][len(self.options) :]:
            self._add_option(name)
        self.options = list(about["options"])
        self.retired = set(about["retired"])
        self.people = {person: place for place, person in enumerate(about["people"])}
        if self.decider.joined != about["joined"] or self.decider.n_people != (
            len(self.people) or None
        ):
            self.decider = self.decider.rejoined(len(self.people), about["joined"])
        each = about["allowances"].items()
        self.allowances = tuple(Allowance(epsilon=most, window=name) for name, most in each)
        self.debts = [tuple(debt) for debt in about["debts"]]
        self.tallies = [list(tally) for tally in about["tallies"]]
        self._refresh()
        self.decider.unpack(state)
        opened = sorted(map(Open.of, decisions), key=lambda decision: decision.round)
        self.open = {decision.id: decision for decision in opened}
        self._due = [
            (d.close_at, d.round, d.id) for d in self.open.values() if d.close_at is not None
        ]
        heapq.heapify(self._due)

    def committed(self) -> None:
        """Note that all that was staged is durable."""
        self.staged.clear()
        self._pending.clear()

    # Inside

    def _advance(self, now: int) -> int:
        # The clock of a machine may be set back; the experiment's never is.
        self.now = max(self.now, now)
        due = self._due
        while due and due[0][0] <= self.now:
            self._close_due(heapq.heappop(due))
        return self.now

    def _close_due(self, due: tuple[int, int, str]) -> None:
        decision = self.open.get(due[2])
        if decision is None or decision.close_at != due[0]:
            return
        released, state = self._close_silent(decision)
        if self._logs:
            body: dict[str, Any] = {"released": released} if released else {}
            self._stage("close", decision.id, body, state, self._expiry(decision))

    def _close_silent(self, decision: Open) -> tuple[list[float], bytes | None]:
        released: list[float] = []
        state = None
        if not decision.shown:
            self.lapsed += 1
            self._close(decision, "lapsed")
        elif self._later:
            # Value or silence: one protected record, learned now whatever arrived when.
            value = decision.value
            if value is None:
                self._count_silent(decision)
                asked = self.instructions(decision) or {}
                value = self.decider.checked(decision.option, decision.record, asked["default"])
            released, state = self._learn(decision, value)
            self._close(decision, "answered" if decision.value is not None else "silent")
        else:
            self._count_silent(decision)
            self._close(decision, "silent")
        return released, state

    def _stage(
        self,
        kind: str,
        id: str | None,
        body: dict[str, Any],
        state: bytes | None = None,
        expires: int | None = None,
        charges: tuple[tuple[str, str, int], ...] = (),
    ) -> None:
        self._staged_at = self.now
        self.changes += kind in _CHANGES
        self.staged.append(Event(kind, self.now, id, body, state, expires, charges))

    def _asked(self, query: Mapping[str, Any] | None) -> Any:
        if not query and self._everything is not None:
            return self._everything
        given = dict(query or {})
        if self.decider.n_people is not None:
            place = self.people.get(given.get("person", ""))
            if place is None:
                raise RefusedError("person", "expected a person who was added, got another or none")
            given["person"] = place
        if self.retired and self.decider.n_options is not None:
            eligible = given.get("eligible")
            if eligible is None:
                eligible = range(self.decider.n_options)
            left = [option for option in eligible if option not in self.retired]
            named = [self.options[option] for option in eligible]
            require("Learner", "eligible", "with an option that is not retired", bool(left), named)
            given["eligible"] = left
        return self.decider.asked(given)

    def _choose(self, decision: Open, asked: Any) -> tuple[list[float], bytes | None]:
        mode = self.mode
        if mode == "off":
            decision.round, decision.option, decision.probability = -1, self._baseline(asked), 1.0
            decision.reason = "off"
            return [], None
        decision.round = t = self.rounds
        kept = None
        if mode == "frozen":
            decision.reason = "frozen"
            # A policy that releases could release again what is put back, so it goes on.
            kept = None if self.decider.releases else self.decider.pack()
        if self.decider.releases:
            self._reads[1] = 0
        try:
            choice = self.decider.choose(self.tape, t, asked)
        except Exception as error:
            raise BrokenError(f"round {t}: {error}") from error
        if kept is not None:
            self.decider.unpack(kept)
        self.rounds = t + 1
        decision.option, decision.probability = choice.option, choice.probability
        if choice.record is not None:
            decision.record = choice.record
        if mode == "shadow":
            decision.would = choice.option
            decision.option, decision.probability = self._baseline(asked), 1.0
        if not self.decider.releases:
            return [], None
        if not decision.reason and self.decider.full(decision.record):
            decision.reason = "capacity"
        return self._released(decision)

    def _baseline(self, asked: Any) -> int:
        """Return the baseline, or the first that is offered where it is not."""
        offered = self.decider.offered(asked)
        return self.terms.baseline if self.terms.baseline in offered else int(offered[0])

    def _learn(self, decision: Open, value: Any) -> tuple[list[float], bytes | None]:
        patience, watched = self.decider.patience, self.decider.releases
        old = patience is not None and self.rounds - decision.round >= patience
        if old or (watched and self.decider.full(decision.record)):
            self.late += 1
            return [], None
        if watched:
            self._reads[1] = 0
        try:
            self.decider.learn(self.tape, decision.round, decision.option, decision.record, value)
        except Exception as error:
            raise BrokenError(f"decision {decision.id}: {error}") from error
        self._count_learned(decision, value)
        return self._released(decision) if watched else ([], None)

    def _tally(self, decision: Open) -> list[float]:
        return self.tallies[0 if self._one_tally else decision.option]

    def _count_shown(self, decision: Open) -> None:
        self.shown_count += 1
        self._tally(decision)[SHOWN] += 1

    def _count_learned(self, decision: Open, value: Any) -> None:
        self.learned += 1
        tally = self._tally(decision)
        tally[LEARNED] += 1
        if self._local and type(value) is int:
            tally[TOTAL] += value

    def _count_silent(self, decision: Open) -> None:
        self.silent += 1
        self._tally(decision)[SILENT] += 1

    def _released(self, decision: Open) -> tuple[list[float], bytes | None]:
        n = self._reads[1]
        if n == 0:
            return [], None
        values = self.decider.released(self.tape, n, decision.record)
        self.releases += len(values)
        return values, self.decider.pack_release(decision.record) if self._logs else None

    def _show(self, decision: Open, now: int) -> tuple[tuple[str, str, int], ...]:
        decision.shown = True
        self._count_shown(decision)
        if decision.reason or not self.allowances:
            return ()
        person = decision.person or ""
        cost, charges = self.cost, []
        for allowance in self.allowances:
            window, begins = allowance.of(now)
            key = (person, window)
            spent = self._pending.get(key, 0)
            if self.journal is not None:
                spent += self.journal.spent(person, window)
            spent += sum(debt for _, until, debt in self.debts if until >= begins)
            if spent + cost > allowance.amount:
                decision.reason = "budget"
                return ()
            charges.append((person, window, cost))
        for person, window, amount in charges:
            self._pending[person, window] = self._pending.get((person, window), 0) + amount
        if self.journal is None and len(self._pending) > self._crowded:
            self._forget_windows(now)
        return tuple(charges)

    def _forget_windows(self, now: int) -> None:
        """Drop what was spent in windows that are over, where nothing else keeps it."""
        current = {allowance.of(now)[0] for allowance in self.allowances}
        self._pending = {key: spent for key, spent in self._pending.items() if key[1] in current}
        self._crowded = max(_CROWDED, 2 * len(self._pending))

    def _enter(self, decision: Open) -> int | None:
        """Count a new decision, and wait for it unless nothing is to come; then return its expiry."""
        self.decided += 1
        self._tally(decision)[DECIDED] += 1
        if decision.status == "open":
            self.open[decision.id] = decision
            if decision.close_at is not None:
                heapq.heappush(self._due, (decision.close_at, decision.round, decision.id))
                if len(self._due) > 2 * len(self.open) + _SPARE:
                    self._forget_answered()
            return None
        self._note(decision)
        return self._expiry(decision)

    def _forget_answered(self) -> None:
        """Drop from what is due the decisions that were closed before their time."""
        self._due = [due for due in self._due if due[2] in self.open]
        heapq.heapify(self._due)

    def _close(self, decision: Open, status: str) -> None:
        decision.status = status
        del self.open[decision.id]
        self._note(decision)

    def _note(self, decision: Open) -> None:
        closed = self._closed
        closed[decision.id] = decision
        if len(closed) >= self._remember:
            self._before, self._closed = closed, {}

    def _expiry(self, decision: Open) -> int:
        end = self.now if decision.close_at is None else max(self.now, decision.close_at)
        return end + self.terms.retention

    def _known(self, id: str) -> Open:
        decision = self._recent(id)
        if decision is None:
            raise RefusedError("unknown", f"decision {id}: expected one that was made here")
        return decision

    def _recent(self, id: str) -> Open | None:
        return self._closed.get(id) or self._before.get(id) or self._found(id)

    def _found(self, id: str) -> Open | None:
        if self.journal is None:
            return None
        decision = None
        for event in self.journal.find(id):
            if event.kind == "decide":
                decision = self._logged(event)
            elif decision is not None:
                _fold(decision, event)
        if decision is not None and decision.status == "open":
            return None
        return decision

    def _too_late(self, decision: Open, value: Any) -> Receipt:
        if decision.status in ("answered", "silent", "lapsed"):
            value = self.decider.checked(decision.option, decision.record, value)
        if decision.status == "answered":
            return _same(decision, value)
        if decision.status in ("silent", "lapsed"):
            self.late += 1
            if self._logs:
                self._stage("late", None, {})
            return Receipt(decision.id, "late", "it came after the decision was closed")
        asked = not decision.reason
        why = f"it was {decision.status}" if asked else f"of {decision.reason}"
        raise RefusedError(
            "closed" if asked else "unasked",
            f"decision {decision.id}: expected no report, because {why}",
        )

    def _set_mode(self, mode: str) -> None:
        require("Core", "mode", f"one of {', '.join(MODES)}", mode in MODES, mode)
        if mode == "shadow":
            why = self.decider.not_explored or (
                "" if self.decider.n_options is not None else "options come with each decision"
            )
            require("Core", "mode", f"another one: {why}", not why, mode)
        self.mode = mode

    def _add_option(self, name: str) -> int:
        self.decider = self.decider.grown()
        self.options.append(name)
        self.tallies.append([0, 0, 0, 0, 0])
        self._refresh()
        return len(self.options) - 1

    def _retire(self, option: int) -> None:
        self.decider.retire(option)
        self.retired.add(option)
        self._refresh()

    def _add_person(self, person: str, near: Sequence[int]) -> int:
        place = len(self.people)
        self.decider = self.decider.with_person(near)
        self.people[person] = place
        return place

    def _join(self, joined: Any) -> None:
        self.decider = self.decider.rejoined(len(self.people), joined)

    def _refresh(self) -> None:
        if self.decider.n_options is not None:
            self._everything = None
            self._everything = self._asked(None)

    def _begin_epoch(self, since: int, until: int, debt: int) -> None:
        self.epoch += 1
        self.debts.append((since, until, debt))
        if self.decider.releases:
            # What came in after the copy was made may have been released already.
            self.decider.discard()

    def _body(self, decision: Open) -> dict[str, Any]:
        """Return what the log has of a decision: not what follows from its time and the terms."""
        body = decision.row()
        del body["id"], body["at"]
        after = self.terms.report_after
        if after is not None and decision.report_at == decision.at + after:
            del body["report_at"]
        body.pop("close_at", None)
        return body

    def _logged(self, event: Event) -> Open:
        left_out = ("query", "released")
        body = {name: value for name, value in event.body.items() if name not in left_out}
        decision = Open.of({**body, "id": event.id, "at": event.at})
        after = self.terms.report_after
        if decision.report_at is None and after is not None:
            decision.report_at = event.at + after
        if decision.report_at is not None and not decision.reason:
            decision.close_at = decision.report_at + self.terms.grace
        return decision

    def _replay_decide(self, event: Event) -> None:
        query, released = event.body.get("query"), event.body.get("released", ())
        logged = self._logged(event)
        if event.state is not None:
            self.decider.unpack_release(event.state, logged.record)
            self.rounds = logged.round + 1
            self.releases += len(released)
        else:
            again = Open()
            fresh, _ = self._choose(again, self._asked(query))
            same = not fresh and (again.round, again.option, again.probability, again.would) == (
                logged.round,
                logged.option,
                logged.probability,
                logged.would,
            )
            if not same:
                raise RefusedError(
                    "mismatch",
                    f"decision {logged.id}: expected option {logged.option} with probability "
                    f"{logged.probability!r} as the log has it, got {again.option} with "
                    f"{again.probability!r}; was the log written by another version or machine?",
                )
        if logged.shown:
            self._count_shown(logged)
        self._enter(logged)

    def _replay_show(self, event: Event) -> None:
        decision = self.open[str(event.id)]
        self._count_shown(decision)
        _fold(decision, event)
        if decision.reason:
            self._close(decision, "unasked")

    def _replay_report(self, event: Event) -> None:
        self.open[str(event.id)].value = _value(event.body["value"])

    def _replay_learn(self, event: Event) -> None:
        decision, value = self.open[str(event.id)], _value(event.body["value"])
        self._relearn(decision, value, event)
        decision.value = value
        self._close(decision, "answered")

    def _replay_close(self, event: Event) -> None:
        decision = self.open[str(event.id)]
        if event.state is None:
            self._close_silent(decision)
            return
        self._relearn(decision, None, event)
        if decision.value is None:
            self._count_silent(decision)
        self._close(decision, "answered" if decision.value is not None else "silent")

    def _relearn(self, decision: Open, value: Any, event: Event) -> None:
        if event.state is None:
            released, _ = self._learn(decision, value)
            require("Core", "releases", "as in the log, none", not released, decision.id)
        else:
            self.decider.unpack_release(event.state, decision.record)
            self._count_learned(decision, value)
            self.releases += len(event.body["released"])

    def _replay_cancel(self, event: Event) -> None:
        self._close(self.open[str(event.id)], "cancelled")

    def _replay_lose(self, event: Event) -> None:
        self._close(self.open[str(event.id)], "lost")

    def _replay_late(self, event: Event) -> None:
        self.late += 1

    def _replay_mode(self, event: Event) -> None:
        self._set_mode(event.body["mode"])

    def _replay_option(self, event: Event) -> None:
        self._add_option(event.body["name"])

    def _replay_retire(self, event: Event) -> None:
        self._retire(event.body["option"])

    def _replay_person(self, event: Event) -> None:
        self._add_person(event.body["person"], event.body["near"])

    def _replay_edges(self, event: Event) -> None:
        self._join(event.body["joined"])

    def _replay_allowances(self, event: Event) -> None:
        each = event.body["each"].items()
        self.allowances = tuple(Allowance(epsilon=most, window=name) for name, most in each)

    def _replay_epoch(self, event: Event) -> None:
        self._begin_epoch(event.body["since"], event.at, event.body["debt"])


_COUNTERS = (
    "mode",
    "now",
    "rounds",
    "epoch",
    "decided",
    "shown_count",
    "learned",
    "silent",
    "late",
    "lapsed",
    "releases",
    "changes",
)
_CHANGES = frozenset({"mode", "option", "retire", "person", "edges", "allowances", "epoch"})
_LAST = {"learn": "answered", "cancel": "cancelled", "lose": "lost"}


def _fold(decision: Open, event: Event) -> None:
    if event.kind == "show":
        decision.shown = True
        if event.body.get("reason"):
            decision.reason, decision.status = event.body["reason"], "unasked"
    elif event.kind in ("report", "learn"):
        decision.value = _value(event.body["value"])
    elif event.kind == "close":
        answered = decision.value is not None
        decision.status = "lapsed" if not decision.shown else "answered" if answered else "silent"
    if event.kind in _LAST:
        decision.status = _LAST[event.kind]


def _same(decision: Open, value: Any) -> Receipt:
    if decision.value == value and type(decision.value) is type(value):
        return Receipt(decision.id, "repeated")
    raise RefusedError(
        "answered", f"decision {decision.id}: expected the report it has, got another one"
    )


def _plain(value: Any) -> Any:
    return {"each": list(value.items())} if type(value) is dict else value


def _value(plain: Any) -> Any:
    return {int(arm): reward for arm, reward in plain["each"]} if type(plain) is dict else plain
