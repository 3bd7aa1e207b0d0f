"""One experiment as a function of its log: no clock, no files, no randomness of its own.

Every command carries the time. It is checked and becomes a record. `_apply` carries the record out and
appends it to `staged`. Whoever owns the core makes that durable, and only then answers. A commit that
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
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tacit.core.constraints import require
from tacit.core.decider import Decider
from tacit.core.tapes import Tape
from tacit.privacy import Guarantee
from tacit.serving.core import events
from tacit.serving.core.budget import Budget, cost_of, read_allowances, require_budget
from tacit.serving.core.config import ExperimentConfig
from tacit.serving.core.decisions import LIFE, Decisions, OpenDecision, Receipt
from tacit.serving.core.events import Charges, Event, Journal, Record, RefusedError
from tacit.serving.core.rounds import DECIDED, NOTHING, SHOWN, SILENT, Outcome, Rounds

_LONG = 10**9
"""Rounds that no experiment plays."""
_COUNTERS = (
    *("mode", "now", "rounds", "epoch", "decided", "shown_count", "learned", "silent", "late"),
    *("lapsed", "releases", "changes"),
)


class Core(Rounds):
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
        super().__init__(decider, config, tape, options, people, journal is not None)
        self.staged: list[Event] = []
        self.budget = Budget(config.allowances, journal, aliases)
        self.now = self.epoch = self.decided = self.shown_count = self.silent = self.lapsed = 0
        self.changes = 0
        """How often something was changed that is not a decision: mode, options, people, budgets."""
        self.decisions = Decisions(config.report_after, config.grace, journal, remember)
        self.open = self.decisions.open
        self._staged_at = 0
        self._costs: dict[int, int] = {}
        self._stated: tuple[tuple[int, int | None], Guarantee | None] = ((0, None), None)
        self.hides_silence = decider.trust == "central" and config.report_after is not None
        """Whether it is protected who answered and when: value and silence are one record then."""
        self.refresh()

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
        kept = self.decisions
        if id in self.open or id in kept.closed or id in kept.closed_before:
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
        outcome = self.choose(decision, self.parse_query(query))
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
            # Not what follows from its time and the config.
            usual = after is not None and decision.report_at == now + after
            row = decision.row("id", "at", "close_at", *(("report_at",) if usual else ()))
            self._stage(events.Decide(row, query), decision, outcome, charges)
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
        decision = self.open.get(id) or self.decisions.find_closed(id)
        if decision is not None and decision.digest not in digests:
            raise RefusedError("conflict", f"decision {id}: expected the request it was made for")
        return decision

    def show(self, now: int, id: str) -> OpenDecision:
        """Note that a decision was shown: from here on its person pays and its report is awaited."""
        now = self._advance(now)
        decision = self._find(id)
        if decision.shown:
            return decision
        decision.after("show")
        reason, charges = self._charge(decision, now)
        after, report_at = self.config.report_after, None
        # Unless the caller of `decide` named a time of its own.
        if not reason and after is not None and decision.report_at == decision.at + after:
            report_at = now + after if now > decision.at else None
        self._apply(events.Show(reason or None, report_at), decision, charges=charges)
        return decision

    def report(self, now: int, id: str, value: Any) -> Receipt:
        """Take in what a device reported on a decision; each counts once."""
        now = self._advance(now)
        decision = self.open.get(id)
        if decision is None:
            return self._report_too_late(self._find(id), value)
        if not decision.shown:
            raise RefusedError("unasked", f"decision {id}: expected to be shown before a report")
        value = self.decider.checked(decision.option, decision.record, value)
        if decision.value is not None:
            return _repeat(decision, value)
        if self.hides_silence and decision.close_at is not None:
            self._apply(events.Report(value), decision)
            given = len(value) if isinstance(value, dict) else 1
            missing = len(self.decider.shown_with(decision.option)) - given
            reason = f"{missing} shown options without a reward count as the default"
            return Receipt(id, "held", reason if missing else "")
        learned = self.learned
        self._apply(events.Learn(value), decision)
        if self.learned == learned:
            return Receipt(id, "late", "the policy learns from nothing that comes so late")
        return Receipt(id, "learned")

    def cancel(self, now: int, id: str) -> OpenDecision:
        """Give a decision up: nothing is awaited, nothing learned; what was charged stays so."""
        self._advance(now)
        decision = self._find(id)
        if decision.status != "cancelled":
            self._apply(events.Cancel(), decision)
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

        Options to retire are numbers, people pseudonyms, each with those to join. `joined` is what the
        decider's `joined` returned, changed, or a callable that returns it of a decider and its people.
        """
        self._advance(now)
        used = next((name for name in options if name in self.options), None)
        if used is not None:
            raise RefusedError("conflict", f"option {used!r}: expected a new name, got one in use")
        placed, places = [], dict(self.people)
        for person, near in people:
            if person in places:
                sentence = f"person {person}: expected a new one, got one in use"
                raise RefusedError("conflict", sentence)
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
        self._apply(events.Clock(before, now + self.config.retention), charges=charges)
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
        self._apply(events.Epoch(since, lost * self.cost, lost))
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
        return max(cost_of(self.decider, option) for option in range(self.decider.n_options or 1))

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
        due = self.decisions.due
        return bool(due) and due[0][0] <= now

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
                decision = self.decisions.read(record, event)
                self.choose_again(decision, record.query, logged)
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
        n = len(self.people) or None
        if self.decider.joined != about["joined"] or self.decider.n_people != n:
            self.decider = self.decider.with_edges(len(self.people), about["joined"])
        self.budget.allowances = read_allowances(about["allowances"])
        self.budget.debts = [tuple(debt) for debt in about["debts"]]
        self.budget.forgotten = about.get("forgotten", 0)
        self.tallies = [list(tally) for tally in about["tallies"]]
        self.refresh()
        self.decider.unpack(state)
        opened = sorted(map(OpenDecision.of, decisions), key=lambda decision: decision.round)
        self.open.clear()
        self.decisions.due.clear()
        for decision in opened:
            self.decisions.file(decision)

    def committed(self) -> None:
        """Note that all that was staged is durable."""
        self.staged.clear()
        self.budget.pending.clear()

    def refresh(self) -> None:
        """Work out anew what follows from the options."""
        super().refresh()
        self._costs.clear()
        self._stated = ((0, None), None)

    # Inside

    def _advance(self, now: int) -> int:
        # The clock of a machine may be set back; the experiment's never is.
        self.now = max(self.now, now)
        due = self.decisions.due
        while due and due[0][0] <= self.now:
            decision = self.decisions.pop_due()
            if decision is not None:
                self._apply(events.Close(self._completes(decision) or None), decision)
        return self.now

    def _apply(
        self,
        record: Record,
        decision: OpenDecision | None = None,
        logged: Outcome | None = None,
        charges: Charges = (),
    ) -> None:
        """Carry out what happens now, in memory and in the log, or what happened if it is `logged`."""
        outcome = NOTHING
        if decision is not None:
            close_at = decision.close_at
            if isinstance(record, events.Show):
                self.shown_count += 1
                self.count(decision, SHOWN)
            elif isinstance(record, events.Learn):
                outcome = self.learn(decision, record.value, logged)
            elif isinstance(record, events.Close):
                outcome = self._learn_silence(decision, bool(record.complete), logged)
            decision.follow(record, self.config.grace)
            if decision.state not in LIFE or decision.close_at != close_at:
                # What is due at an old time is passed over then.
                self.decisions.file(decision)
        elif isinstance(record, events.Late):
            self.late += 1
        elif isinstance(record, events.Change):
            self._change(record, logged=True)
        elif isinstance(record, events.Epoch):
            self._begin_epoch(record)
        if self._logs:
            self._stage(record, decision, outcome, charges)

    def _stage(
        self,
        record: Record,
        decision: OpenDecision | None = None,
        outcome: Outcome = NOTHING,
        charges: Charges = (),
    ) -> None:
        self._staged_at = self.now
        body, kind = events.write_body(record), type(record).__name__.lower()
        if outcome.released:
            body["released"] = outcome.released
        id = expires = None
        if decision is not None:
            id = decision.id
            if decision.state not in LIFE:
                expires = max(self.now, decision.close_at or 0) + self.config.retention
        self.staged.append(Event(kind, self.now, id, body, outcome.state, expires, charges))

    def _completes(self, decision: OpenDecision) -> bool:
        """Whether rewards that are missing from the report on a decision count as the default."""
        several = len(self.decider.shown_with(decision.option)) > 1
        return decision.shown and self.hides_silence and several

    def _learn_silence(
        self, decision: OpenDecision, complete: bool, logged: Outcome | None
    ) -> Outcome:
        """Learn what is known of a decision when its time is over."""
        if not decision.shown:
            self.lapsed += 1
            return NOTHING
        value = decision.value
        if value is None:
            self.silent += 1
            self.count(decision, SILENT)
        if not self.hides_silence:
            return NOTHING
        # Value or silence: one protected record, learned now whatever arrived when.
        asked, option = self.instructions(decision) or {}, decision.option
        if value is None:
            value = self.decider.checked(option, decision.record, asked["default"])
        if complete:
            given = value if isinstance(value, dict) else {option: value}
            value = dict.fromkeys(self.decider.shown_with(option), asked["default"]) | given
        return self.learn(decision, value, logged)

    def _charge(self, decision: OpenDecision, now: int) -> tuple[str, Charges]:
        """Charge the person of a decision that is shown, or return why the device is not asked."""
        # The same for every option where they come with each decision.
        place = 0 if self._one_tally else decision.option
        cost = self._costs.get(place)
        if cost is None:
            cost = self._costs[place] = cost_of(self.decider, place)
        charges = self.budget.charge(decision.person, cost, now)
        return ("budget", ()) if charges is None else ("", charges)

    def _enter(self, decision: OpenDecision) -> None:
        """Count a new decision, and wait for it unless nothing is to come."""
        self.decided += 1
        self.count(decision, DECIDED)
        if decision.shown:
            self.shown_count += 1
            self.count(decision, SHOWN)
        decision.begin(self.config.grace)
        self.decisions.file(decision)

    def _find(self, id: str) -> OpenDecision:
        decision = self.open.get(id) or self.decisions.find_closed(id)
        if decision is None:
            raise RefusedError("unknown", f"decision {id}: expected one that was made here")
        return decision

    def _report_too_late(self, decision: OpenDecision, value: Any) -> Receipt:
        if decision.status in ("answered", "silent", "lapsed"):
            value = self.decider.checked(decision.option, decision.record, value)
        if decision.status == "answered":
            return _repeat(decision, value)
        if decision.status in ("silent", "lapsed"):
            self._apply(events.Late())
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
        decider, record = self.make_decider(record)
        allowances = read_allowances(record.allowances or {})
        if not logged:
            require_budget("experiment", decider, allowances)
        self.adopt(decider, record)
        if record.allowances is not None:
            self.budget.allowances = allowances
        self.changes += 1
        self.refresh()
        return record

    def _lose(self, decisions: Iterable[OpenDecision]) -> None:
        """Close decisions that nothing is to be learned from."""
        for decision in list(decisions):
            self._apply(events.Lose(), decision)

    def _begin_epoch(self, record: events.Epoch) -> None:
        self.epoch += 1
        self.changes += 1
        self.budget.debts.append((record.since, self.now, record.debt))
        if self.decider.releases:
            # What came in after the copy was made may have been released already.
            self.decider.discard()


def _digest(
    query: Mapping[str, Any] | None, person: str | None, shown: bool, report_at: int | None
) -> str:
    request = [query, person, shown, *(() if report_at is None else (report_at,))]
    written = json.dumps(request, sort_keys=True).encode()
    return hashlib.blake2b(written, digest_size=16).hexdigest()


def _repeat(decision: OpenDecision, value: Any) -> Receipt:
    if decision.value == value and type(decision.value) is type(value):
        return Receipt(decision.id, "repeated")
    raise RefusedError(
        "answered", f"decision {decision.id}: expected the report it has, got another one"
    )
