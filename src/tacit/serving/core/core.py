"""One experiment as a function of its log: no clock, no files, no randomness of its own.

Every command carries the time. It is checked, becomes a record, and `_apply` carries the record out; it is
then appended to `staged`. Whoever owns the core makes that durable, and only then answers. A commit that
failed, or whose fate is unknown, ends the core: another is built from the log. `replay` gives the records
of committed events to the same `_apply`. It recomputes every choice, as a check, and takes over released
values with the state that they led to, so that nothing that was released is ever drawn again.

Choices are drawn under a key that is logged. Noise is drawn under a key that lives in memory, is fresh
whenever a core is made, and is written nowhere: a thief of the files cannot subtract it, and a copy of
the files cannot put the same noise on other sums.
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np

from tacit.core.constraints import Count, Whole, check, one_of, require
from tacit.core.decider import Decider
from tacit.core.tapes import Tape
from tacit.privacy import Guarantee
from tacit.serving.core import events
from tacit.serving.core.budget import Allowance, Budget, cost_of, read_allowances, require_budget
from tacit.serving.core.decisions import OpenDecision, Receipt, read_value, write_value
from tacit.serving.core.events import BrokenError, Charges, Event, Journal, Record, RefusedError

MODES = ("learn", "frozen", "shadow", "off")
DECIDED, SHOWN, LEARNED, SILENT, TOTAL = range(5)
"""Places in a tally."""
_DAY = 86_400_000
_SPARE = 1_000
_LONG = 10**9
"""Rounds that no experiment plays."""
_ROOM = 4096
"""Released values that one call may log at least; more where there are more options."""


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """What is fixed for an experiment beside its policy; times in milliseconds.

    Parameters
    ----------
    report_after : int, optional
        How long after a decision is shown its report is due. None: whenever it comes.
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


class Outcome(NamedTuple):
    """What a policy released in a round, and its arrays afterwards if that is logged."""

    released: Sequence[float] = ()
    state: bytes | None = None


_NOTHING = Outcome()


class Core:
    """An experiment in memory.

    Parameters
    ----------
    decider : Decider
    config : ExperimentConfig
    tape : Tape
        Its first key for choices, its second for noise.
    journal : Journal, optional
        Where closed decisions and spending are looked up. Without it nothing is staged, and closed
        decisions are remembered for a while only.
    options : list of str
        Names, if the policy has options of its own.
    people : list of str
        Pseudonyms in the order of the policy's people, if it knows any.
    aliases : mapping
        What else people were called, by pseudonym.
    remember : int
        At least so many of the latest closed decisions are kept in memory, at most twice as many.
    """

    def __init__(
        self,
        decider: Decider,
        config: ExperimentConfig,
        tape: Tape,
        *,
        journal: Journal | None = None,
        options: Iterable[str] = (),
        people: Iterable[str] = (),
        aliases: Mapping[str, Sequence[str]] = MappingProxyType({}),
        remember: int = 10_000,
    ) -> None:
        self.decider, self.config, self.tape, self.journal = decider, config, tape, journal
        reads: Any = tape.reads
        self._reads = memoryview(reads)
        self.staged: list[Event] = []
        self.options = list(options)
        self.people = {person: place for place, person in enumerate(people)}
        self.budget = Budget(config.allowances, journal, aliases)
        self.retired: set[int] = set()
        self.mode = config.mode
        self.now = self.rounds = self.epoch = 0
        self.open: dict[str, OpenDecision] = {}
        self.decided = self.shown_count = self.learned = self.silent = self.late = self.lapsed = 0
        self.releases = 0
        self.changes = 0
        """How often something was changed that is not a decision: mode, options, people, budgets."""
        self.tallies: list[list[float]] = []
        """For each option (for all together where they come with each decision): how many decisions,
        shown, learned, silent; and the sum of reported numbers where these are private."""
        self._logs = journal is not None
        # Two generations: to forget the oldest of one dict takes ever longer.
        self._closed: dict[str, OpenDecision] = {}
        self._before: dict[str, OpenDecision] = {}
        self._remember = remember
        self._due: list[tuple[int, int, str]] = []
        self._staged_at = 0
        self._costs: dict[int, int] = {}
        self._everything: Any = None
        self._stated: tuple[tuple[int, int | None], Guarantee | None] = ((0, None), None)
        self._later = decider.trust == "central" and config.report_after is not None
        self._local = decider.trust == "local"
        self._one_tally = decider.n_options is None
        self.tallies = [[0, 0, 0, 0, 0] for _ in range(decider.n_options or 1)]
        self._refresh()

    # Commands

    def decide(
        self,
        now: int,
        id: str,
        query: Mapping[str, Any] | None = None,
        person: str | None = None,
        shown: bool = True,
        report_at: int | None = None,
        digest: str | None = None,
    ) -> OpenDecision:
        """Decide under a new identity; see `decide_once` for one that may have been used."""
        now = self._advance(now)
        if id in self.open or id in self._closed or id in self._before:
            raise RefusedError("conflict", f"decision {id}: expected a new id, got one in use")
        if len(self.open) >= self.config.max_open:
            raise RefusedError(
                "full",
                f"expected fewer than {self.config.max_open:,} open decisions, got as many: report "
                "or cancel some, or set report_after, so that silence closes them",
            )
        if self.budget.allowances and person is None:
            raise RefusedError("person", "expected a person to charge, got none")
        decision = OpenDecision(id, now, person=person, digest=digest, shown=shown)
        outcome = self._choose(decision, self._asked(query))
        if query and "names" in query:
            decision.name = query["names"][decision.option]
        after = self.config.report_after
        if report_at is not None:
            decision.report_at = report_at if report_at > now else now
        elif after is not None:
            decision.report_at = now + after
        charges: Charges = ()
        if shown and not decision.reason:
            decision.reason, charges = self._charge(decision, now)
        self._enter(decision)
        if self._logs:
            self._stage(events.Decide(self._row(decision), query), decision, outcome, charges)
        return decision

    def decide_once(
        self,
        now: int,
        id: str,
        query: Mapping[str, Any] | None = None,
        person: str | None = None,
        shown: bool = True,
        report_at: int | None = None,
    ) -> OpenDecision:
        """Decide, or return the decision that was made for the same request under this identity."""
        names = (person, *self.budget.aliases.get(person or "", ()))
        digests = [_digest(query, name, shown, report_at) for name in names]
        return self.find_repeat(id, *digests) or self.decide(
            now, id, query, person, shown, report_at, digests[0]
        )

    def find_repeat(self, id: str, *digests: str | None) -> OpenDecision | None:
        """Return the decision that was made under this identity for such a request, if any."""
        decision = self.open.get(id) or self._recent(id)
        if decision is not None and decision.digest not in digests:
            raise RefusedError("conflict", f"decision {id}: expected the request it was made for")
        return decision

    def show(self, now: int, id: str) -> OpenDecision:
        """Note that a decision was shown: from here on its person pays and its report is awaited."""
        now = self._advance(now)
        decision = self.open.get(id) or self._known(id)
        if decision.shown:
            return decision
        decision.after("show")
        reason, charges = self._charge(decision, now)
        after, report_at = self.config.report_after, None
        # Unless the caller of `decide` named a time of its own.
        if not reason and after is not None and decision.report_at == decision.at + after:
            report_at = now + after if now > decision.at else None
        self._carry_out(events.Show(reason or None, report_at), decision, charges)
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
            self._carry_out(events.Report(write_value(checked)), decision)
            given = len(checked) if isinstance(checked, dict) else 1
            missing = len(self.decider.shown_with(decision.option)) - given
            reason = f"{missing} shown options without a reward count as the default"
            return Receipt(id, "held", reason if missing else "")
        learned = self.learned
        self._carry_out(events.Learn(write_value(checked)), decision)
        if self.learned == learned:
            return Receipt(id, "late", "the policy learns from nothing that comes so late")
        return Receipt(id, "learned")

    def cancel(self, now: int, id: str) -> OpenDecision:
        """Give a decision up: nothing is awaited, nothing learned; what was charged stays so."""
        self._advance(now)
        decision = self.open.get(id) or self._known(id)
        if decision.status != "cancelled":
            self._carry_out(events.Cancel(), decision)
        return decision

    def tick(self, now: int) -> int:
        """Close what is due; return how many decisions that were."""
        before = len(self.open)
        self._advance(now)
        return before - len(self.open)

    def change(
        self,
        now: int,
        *,
        allowances: Mapping[str, float] | None = None,
        options: Sequence[str] = (),
        retire: Sequence[int] = (),
        mode: str | None = None,
        people: Sequence[tuple[str, Sequence[str]]] = (),
        joined: Any = None,
    ) -> None:
        """Change several things at once: all of them, as one event, or none.

        Parameters
        ----------
        now : int
        allowances : mapping of windows to epsilons, optional
            What may be spent on one person from now on; what was spent stays spent.
        options : sequence of str
            Names of new ones.
        retire : sequence of int
            Options never to choose again; reports on them still count.
        mode : {"learn", "frozen", "shadow", "off"}, optional
        people : sequence of (person, people to join)
            New ones.
        joined : plain value, or callable of a decider that returns it, optional
            Who is joined to whom: what the decider's `joined` returned, changed. What each person has
            taught is kept, what others learn from it changes.
        """
        self._advance(now)
        for name in options:
            if name in self.options:
                raise RefusedError(
                    "conflict", f"option {name!r}: expected a new name, got one in use"
                )
        placed, places = [], dict(self.people)
        for person, near in people:
            if person in places:
                raise RefusedError(
                    "conflict", f"person {person}: expected a new one, got one in use"
                )
            known = [places[other] for other in near if other in places]
            require("Core", "near", "people who were added", len(known) == len(near), list(near))
            placed.append([person, known])
            places[person] = len(places)
        fresh = [option for option in dict.fromkeys(retire) if option not in self.retired]
        record = events.Change(
            list(options) or None,
            placed or None,
            fresh or None,
            mode,
            None if allowances is None else dict(allowances),
            joined,
        )
        if record != events.Change():
            record = self._change(record)
            if self._logs:
                self._stage(record)

    def clock_lead(self, now: int) -> int:
        """Return how many milliseconds the experiment's clock is ahead of a time."""
        return max(0, self.now - now)

    def reset_clock(self, now: int) -> None:
        """Set the clock back to `now`, after a machine's clock was ahead.

        What was spent meanwhile stays spent in the windows of the false time, and counts in those of
        `now` too, where it may have been spent in truth. Decisions that were made in the false time
        are closed, and nothing is learned from them: their devices report when nobody waits.
        """
        before = self.now
        if now >= before:
            raise RefusedError("clock", "expected a clock that is ahead, got one that is not")
        charges = self.budget.reset_clock(now)
        self.now = now
        self._carry_out(events.Clock(before, now + self.config.retention), charges=charges)
        self._lose(decision for decision in self.open.values() if decision.at > now)

    def begin_epoch(self, now: int, lost: int, since: int) -> None:
        """Go on from a restored copy: `lost` charged decisions since then are not in the log.

        Sums that were not released are discarded and open decisions are closed, because the lost log
        may have released their rewards; every person counts as charged for all that was lost.
        """
        if self.decider.releases:
            # Nothing that is due is learned first: the lost log may have released it.
            self.now = max(self.now, now)
        else:
            self._advance(now)
        self._carry_out(events.Epoch(since, lost * self.cost, lost))
        if self.decider.releases:
            self._lose(self.open.values())

    def discard(self) -> None:
        """Drop what was not released and close what waits, in a copy: the original may release it."""
        if self.decider.releases:
            self.decider.discard()
            self._lose(self.open.values())

    # What is known

    @property
    def cost(self) -> int:
        """What a shown decision costs its person at most, in the units of an allowance."""
        return max(map(self._cost, range(self.decider.n_options or 1)))

    def guarantee(self, horizon: int | None = None) -> Guarantee:
        """Return what is protected in this experiment as it runs; composed anew when it changes.

        Parameters
        ----------
        horizon : int, optional
            In rounds; the policy's own, or as many as were played, unless given.
        """
        if horizon is not None:
            return self._compose(horizon)
        rounds = max(1, self.rounds, self.decider.horizon or 0)
        (changes, composed_for), stated = self._stated
        if stated is None or changes != self.changes or composed_for not in (rounds, None):
            stated = self._compose(rounds)
            same_for_ever = stated == self._compose(max(rounds, _LONG))
            self._stated = (self.changes, None if same_for_ever else rounds), stated
        return stated

    def _compose(self, horizon: int) -> Guarantee:
        stated = self.decider.guarantee(horizon)
        still = list(stated.not_protected or ())
        if self.decider.trust == "central" and self.config.report_after is None:
            still.append("when a reward arrives, which decisions may show (set report_after)")
        still += self.budget.describe_gaps()
        return dataclasses.replace(stated, not_protected=tuple(still))

    def is_due(self, now: int) -> bool:
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

    def instructions(self, decision: OpenDecision) -> dict[str, Any] | None:
        """Return what the device of a decision is told; None if it need not report."""
        if decision.reason:
            return None
        return self.decider.instructions(decision.option, decision.record, self.config.default)

    # The fold

    def replay(self, log: Iterable[Event]) -> int:
        """Apply committed events in order; return how many."""
        logs, self._logs = self._logs, False
        n = 0
        for event in log:
            self.now = event.at if event.kind == "clock" else max(self.now, event.at)
            self._staged_at = self.now
            record = events.read_record(event)
            logged = Outcome(event.body.get("released", ()), event.state)
            if isinstance(record, events.Decide):
                decision = self._read_decision(record, event)
                self._choose_again(decision, record.query, logged)
                self._enter(decision)
            else:
                self._apply(record, None if event.id is None else self.open[event.id], logged)
            n += 1
        self._logs = logs
        return n

    def snapshot(self) -> tuple[dict[str, Any], bytes, list[dict[str, Any]]]:
        """Return counters and names, the policy's arrays, and the open decisions."""
        return *self.summary(), list(self.rows())

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the open decisions one by one, since there may be many."""
        return map(OpenDecision.row, self.open.values())

    def summary(self) -> tuple[dict[str, Any], bytes]:
        """Return counters and names, and the policy's arrays."""
        about = {name: getattr(self, name) for name in _COUNTERS}
        about["forgotten"] = self.budget.forgotten
        if self._logs:
            about["now"] = self._staged_at
        about |= {
            "options": list(self.options),
            "retired": sorted(self.retired),
            "debts": [list(debt) for debt in self.budget.debts],
            "allowances": {each.window: each.epsilon for each in self.budget.allowances},
            "people": list(self.people),
            "joined": self.decider.joined,
            "tallies": [list(tally) for tally in self.tallies],
        }
        return about, self.decider.pack()

    def restore(
        self, about: Mapping[str, Any], state: bytes, decisions: Iterable[Mapping[str, Any]]
    ) -> None:
        """Set everything to what `snapshot` returned."""
        self._change(events.Change(options=about["options"][len(self.options) :]))
        for name in _COUNTERS:
            setattr(self, name, about.get(name, 0))
        self._staged_at = self.now
        self.options = list(about["options"])
        self.retired = set(about["retired"])
        self.people = {person: place for place, person in enumerate(about["people"])}
        if self.decider.joined != about["joined"] or self.decider.n_people != (
            len(self.people) or None
        ):
            self.decider = self.decider.with_edges(len(self.people), about["joined"])
        self.budget.allowances = read_allowances(about["allowances"])
        self.budget.debts = [tuple(debt) for debt in about["debts"]]
        self.budget.forgotten = about.get("forgotten", 0)
        self.tallies = [list(tally) for tally in about["tallies"]]
        self._refresh()
        self.decider.unpack(state)
        opened = sorted(map(OpenDecision.of, decisions), key=lambda decision: decision.round)
        self.open = {decision.id: decision for decision in opened}
        self._due = [
            (d.close_at, d.round, d.id) for d in self.open.values() if d.close_at is not None
        ]
        heapq.heapify(self._due)

    def committed(self) -> None:
        """Note that all that was staged is durable."""
        self.staged.clear()
        self.budget.committed()

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
        if decision is not None and decision.close_at == due[0]:
            self._carry_out(events.Close(self._completes(decision) or None), decision)

    def _carry_out(
        self, record: Record, decision: OpenDecision | None = None, charges: Charges = ()
    ) -> None:
        """Let something happen: in memory, and in the log."""
        outcome = self._apply(record, decision)
        if self._logs:
            self._stage(record, decision, outcome, charges)

    def _apply(
        self,
        record: Record,
        decision: OpenDecision | None,
        logged: Outcome | None = None,
    ) -> Outcome:
        """Carry out what happens now, or what happened if it is `logged`; return what was released."""
        outcome = _NOTHING
        if decision is not None:
            close_at = decision.close_at
            if isinstance(record, events.Show):
                self._count_shown(decision)
            elif isinstance(record, events.Learn):
                outcome = self._learn(decision, read_value(record.value), logged)
            elif isinstance(record, events.Close):
                outcome = self._learn_silence(decision, bool(record.complete), logged)
            decision.follow(record, self.config.grace)
            if not decision.is_open:
                del self.open[decision.id]
                self._note(decision)
            elif decision.close_at != close_at:
                # What is due at the old time is passed over then.
                self._await(decision)
        elif isinstance(record, events.Late):
            self.late += 1
        elif isinstance(record, events.Change):
            self._change(record, logged=True)
        elif isinstance(record, events.Epoch):
            self._begin_epoch(record)
        return outcome

    def _stage(
        self,
        record: Record,
        decision: OpenDecision | None = None,
        outcome: Outcome = _NOTHING,
        charges: Charges = (),
    ) -> None:
        self._staged_at = self.now
        body, kind = events.write_body(record), type(record).__name__.lower()
        if outcome.released:
            body["released"] = outcome.released
        id = expires = None
        if decision is not None:
            id = decision.id
            expires = None if decision.is_open else self._expiry(decision)
        self.staged.append(Event(kind, self.now, id, body, outcome.state, expires, charges))

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

    def _choose(self, decision: OpenDecision, asked: Any) -> Outcome:
        mode = self.mode
        if mode == "off":
            decision.option, decision.reason = self._baseline(asked), "off"
            return _NOTHING
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
        decision.option, decision.chance = choice.option, choice.probability
        if choice.record is not None:
            decision.record = choice.record
        if mode == "shadow":
            decision.would = choice.option
            decision.option, decision.chance = self._baseline(asked), 1.0
        if not self.decider.releases:
            return _NOTHING
        if not decision.reason and self.decider.full(decision.record):
            decision.reason = "capacity"
        return self._released(decision)

    def _baseline(self, asked: Any) -> int:
        """Return the baseline, or the first that is offered where it is not."""
        offered = self.decider.offered(asked)
        return self.config.baseline if self.config.baseline in offered else int(offered[0])

    def _choose_again(
        self, logged: OpenDecision, query: Mapping[str, Any] | None, outcome: Outcome
    ) -> None:
        """Take over what was released with a choice, or else choose again and compare."""
        if outcome.state is not None:
            self.decider.unpack_release(outcome.state, logged.record)
            self.rounds = logged.round + 1
            self.releases += len(outcome.released)
            return
        again = OpenDecision(logged.id, logged.at)
        fresh = self._choose(again, self._asked(query))
        same = (again.round, again.option, again.probability, again.would) == (
            logged.round,
            logged.option,
            logged.probability,
            logged.would,
        )
        if fresh.released or not same:
            raise RefusedError(
                "mismatch",
                f"decision {logged.id}: expected option {logged.option} with probability "
                f"{logged.probability!r} as the log has it, got {again.option} with "
                f"{again.probability!r}; was the log written by another version or machine?",
            )

    def _learn(self, decision: OpenDecision, value: Any, logged: Outcome | None) -> Outcome:
        if logged is not None and logged.state is not None:
            self.decider.unpack_release(logged.state, decision.record)
            self._count_learned(decision, value)
            self.releases += len(logged.released)
            return logged
        patience, watched = self.decider.patience, self.decider.releases
        old = patience is not None and self.rounds - decision.round >= patience
        if old or (watched and self.decider.full(decision.record)):
            self.late += 1
            return _NOTHING
        if watched:
            self._reads[1] = 0
        try:
            self.decider.learn(self.tape, decision.round, decision.option, decision.record, value)
        except Exception as error:
            raise BrokenError(f"decision {decision.id}: {error}") from error
        self._count_learned(decision, value)
        outcome = self._released(decision) if watched else _NOTHING
        as_logged = logged is None or not outcome.released
        require("Core", "releases", "as in the log, none", as_logged, decision.id)
        return outcome

    def _completes(self, decision: OpenDecision) -> bool:
        """Whether rewards that are missing from the report on a decision count as the default."""
        return decision.shown and self._later and len(self.decider.shown_with(decision.option)) > 1

    def _learn_silence(
        self, decision: OpenDecision, complete: bool, logged: Outcome | None
    ) -> Outcome:
        """Learn what is known of a decision when its time is over."""
        if not decision.shown:
            self.lapsed += 1
            return _NOTHING
        value = decision.value
        if value is None:
            self.silent += 1
            self._tally(decision)[SILENT] += 1
        if not self._later:
            return _NOTHING
        # Value or silence: one protected record, learned now whatever arrived when.
        asked, option = self.instructions(decision) or {}, decision.option
        if value is None:
            value = self.decider.checked(option, decision.record, asked["default"])
        if complete:
            given = value if isinstance(value, dict) else {option: value}
            value = dict.fromkeys(self.decider.shown_with(option), asked["default"]) | given
        return self._learn(decision, value, logged)

    def _tally(self, decision: OpenDecision) -> list[float]:
        return self.tallies[0 if self._one_tally else decision.option]

    def _count_shown(self, decision: OpenDecision) -> None:
        self.shown_count += 1
        self._tally(decision)[SHOWN] += 1

    def _count_learned(self, decision: OpenDecision, value: Any) -> None:
        self.learned += 1
        tally = self._tally(decision)
        tally[LEARNED] += 1
        if self._local and type(value) is int:
            tally[TOTAL] += value

    def _released(self, decision: OpenDecision) -> Outcome:
        n = self._reads[1]
        if n == 0:
            return _NOTHING
        try:
            values = self.decider.released(self.tape, n, decision.record)
            state = self.decider.pack_release(decision.record) if self._logs else None
        except Exception as error:
            # What was drawn is used nowhere unless it is logged.
            raise BrokenError(f"decision {decision.id}: {error}") from error
        self.releases += len(values)
        return Outcome(values, state)

    def _charge(self, decision: OpenDecision, now: int) -> tuple[str, Charges]:
        """Charge the person of a decision that is shown, or return why the device is not asked."""
        charges = self.budget.charge(decision.person, self._cost(decision.option), now)
        return ("budget", ()) if charges is None else ("", charges)

    def _cost(self, option: int) -> int:
        # The same for every option where they come with each decision.
        place = 0 if self._one_tally else option
        cost = self._costs.get(place)
        if cost is None:
            cost = self._costs[place] = cost_of(self.decider, place)
        return cost

    def _await(self, decision: OpenDecision) -> None:
        if decision.close_at is not None:
            heapq.heappush(self._due, (decision.close_at, decision.round, decision.id))
            if len(self._due) > 2 * len(self.open) + _SPARE:
                # Some were closed before their time.
                self._due = [due for due in self._due if due[2] in self.open]
                heapq.heapify(self._due)

    def _enter(self, decision: OpenDecision) -> None:
        """Count a new decision, and wait for it unless nothing is to come."""
        self.decided += 1
        self._tally(decision)[DECIDED] += 1
        if decision.shown:
            self._count_shown(decision)
        decision.begin(self.config.grace)
        if decision.is_open:
            self.open[decision.id] = decision
            self._await(decision)
        else:
            self._note(decision)

    def _note(self, decision: OpenDecision) -> None:
        closed = self._closed
        closed[decision.id] = decision
        if len(closed) >= self._remember:
            self._before, self._closed = closed, {}

    def _expiry(self, decision: OpenDecision) -> int:
        end = self.now if decision.close_at is None else max(self.now, decision.close_at)
        return end + self.config.retention

    def _known(self, id: str) -> OpenDecision:
        decision = self._recent(id)
        if decision is None:
            raise RefusedError("unknown", f"decision {id}: expected one that was made here")
        return decision

    def _recent(self, id: str) -> OpenDecision | None:
        return self._closed.get(id) or self._before.get(id) or self._found(id)

    def _found(self, id: str) -> OpenDecision | None:
        if self.journal is None:
            return None
        decision = None
        for event in self.journal.find(id):
            record = events.read_record(event)
            if isinstance(record, events.Decide):
                decision = self._read_decision(record, event)
                decision.begin(self.config.grace)
            elif decision is not None:
                decision.follow(record, self.config.grace)
        if decision is not None and decision.is_open:
            return None
        return decision

    def _too_late(self, decision: OpenDecision, value: Any) -> Receipt:
        if decision.status in ("answered", "silent", "lapsed"):
            value = self.decider.checked(decision.option, decision.record, value)
        if decision.status == "answered":
            return _same(decision, value)
        if decision.status in ("silent", "lapsed"):
            self._carry_out(events.Late())
            return Receipt(decision.id, "late", "it came after the decision was closed")
        asked = not decision.reason
        why = f"it was {decision.status}" if asked else f"of {decision.reason}"
        raise RefusedError(
            "closed" if asked else "unasked",
            f"decision {decision.id}: expected no report, because {why}",
        )

    def _change(self, record: events.Change, *, logged: bool = False) -> events.Change:
        """Carry out a change, or raise ``ValueError`` and leave everything as it was.

        A budget that was once accepted stays in force. What `joined` calls is called.
        """
        names, new = record.options or (), record.people or ()
        decider = self.decider
        for _ in names:
            decider = decider.grown()
        for _, near in new:
            decider = decider.with_person(near)
        if record.joined is not None:
            if callable(record.joined):
                people = [*self.people, *(each for each, _ in new)]
                record = record._replace(joined=record.joined(decider, people))
            decider = decider.with_edges(len(self.people) + len(new), record.joined)
        if record.mode is not None:
            require_mode(decider, record.mode)
        allowances = read_allowances(record.allowances or {})
        if not logged:
            require_budget("experiment", decider, allowances)
        retired = self._retire(decider, len(self.options) + len(names), record.retire or ())
        self.decider, self.retired = decider, retired
        self.options.extend(names)
        self.tallies.extend([0, 0, 0, 0, 0] for _ in names)
        for person, _ in new:
            self.people[person] = len(self.people)
        self.mode = record.mode or self.mode
        if record.allowances is not None:
            self.budget.allowances = allowances
        self.changes += 1
        self._refresh()
        return record

    def _retire(self, decider: Decider, n: int, options: Sequence[int]) -> set[int]:
        """Let a decider of n options do without some; return all that are retired then."""
        retired = self.retired.union(options)
        if options:
            left = [option for option in range(n) if option not in retired]
            require("Learner", "options", "left after retiring one", bool(left), left)
            before = decider.pack()
            try:
                for option in options:
                    decider.retire(option)
            except ValueError:
                decider.unpack(before)
                raise
        return retired

    def _refresh(self) -> None:
        """Work out anew what follows from the options."""
        self._costs.clear()
        self._everything = None
        self._stated = ((0, None), None)
        n = self.decider.n_options
        if n is not None:
            self._everything = self._asked(None)
            if self.tape.log.size < max(n, _ROOM):
                # A call may release something of every option.
                self.tape = self.tape._replace(log=np.zeros(max(n, _ROOM)))

    def _lose(self, decisions: Iterable[OpenDecision]) -> None:
        """Close decisions that nothing is to be learned from."""
        for decision in list(decisions):
            self._carry_out(events.Lose(), decision)

    def _begin_epoch(self, record: events.Epoch) -> None:
        self.epoch += 1
        self.changes += 1
        self.budget.debts.append((record.since, self.now, record.debt))
        if self.decider.releases:
            # What came in after the copy was made may have been released already.
            self.decider.discard()

    def _row(self, decision: OpenDecision) -> dict[str, Any]:
        """Return what the log has of a decision: not what follows from its time and the config."""
        row = decision.row()
        del row["id"], row["at"]
        after = self.config.report_after
        if after is not None and decision.report_at == decision.at + after:
            del row["report_at"]
        row.pop("close_at", None)
        return row

    def _read_decision(self, record: events.Decide, event: Event) -> OpenDecision:
        decision = OpenDecision.of({**record.row, "id": event.id, "at": event.at})
        decision.state = "new"
        after = self.config.report_after
        if decision.report_at is None and after is not None:
            decision.report_at = event.at + after
        return decision


_COUNTERS = (
    *("mode", "now", "rounds", "epoch", "decided", "shown_count", "learned", "silent", "late"),
    *("lapsed", "releases", "changes"),
)


def require_mode(decider: Decider, mode: str) -> None:
    """Raise ``ValueError`` unless a policy can be in this mode."""
    require("Core", "mode", f"one of {', '.join(MODES)}", mode in MODES, mode)
    if mode == "shadow":
        why = decider.not_explored or (
            "" if decider.n_options is not None else "options come with each decision"
        )
        require("Core", "mode", f"another one: {why}", not why, mode)


def _digest(
    query: Mapping[str, Any] | None, person: str | None, shown: bool, report_at: int | None
) -> str:
    request = [query, person, shown, *(() if report_at is None else (report_at,))]
    written = json.dumps(request, sort_keys=True).encode()
    return hashlib.blake2b(written, digest_size=16).hexdigest()


def _same(decision: OpenDecision, value: Any) -> Receipt:
    if decision.value == value and type(decision.value) is type(value):
        return Receipt(decision.id, "repeated")
    raise RefusedError(
        "answered", f"decision {decision.id}: expected the report it has, got another one"
    )
