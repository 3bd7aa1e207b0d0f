"""The policy of an experiment at work: what it is asked, what it chooses, learns and releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.core.constraints import require
from tacit.core.decider import Decider
from tacit.core.tapes import Tape
from tacit.serving.core.config import ExperimentConfig, require_mode
from tacit.serving.core.decisions import OpenDecision
from tacit.serving.core.events import BrokenError, Change, RefusedError

DECIDED, SHOWN, LEARNED, SILENT, TOTAL = range(5)
"""Places in a tally."""
_ROOM = 4096
"""Released values that one call may log at least; more where there are more options."""


class Outcome(NamedTuple):
    """What a policy released in a round, and its arrays afterwards if that is logged."""

    released: Sequence[float] = ()
    state: bytes | None = None


NOTHING = Outcome()


class Rounds:
    """A policy with the options and people that it knows, and what it did so far in numbers."""

    def __init__(
        self,
        decider: Decider,
        config: ExperimentConfig,
        tape: Tape,
        options: Iterable[str],
        people: Iterable[str],
        logs: bool,
    ) -> None:
        self.decider, self.config, self.tape = decider, config, tape
        reads: Any = tape.reads
        self._reads = memoryview(reads)
        self.options = list(options)
        self.people = {person: place for place, person in enumerate(people)}
        self.retired: set[int] = set()
        self.mode = config.mode
        self.rounds = self.learned = self.late = self.releases = 0
        self.tallies: list[list[float]] = [[0] * 5 for _ in range(decider.n_options or 1)]
        """For each option (for all together where they come with each decision): how many decisions,
        shown, learned, silent; and the sum of reported numbers where these are private."""
        self._logs = logs
        self._one_tally = decider.n_options is None
        self._everything: Any = None

    def parse_query(self, query: Mapping[str, Any] | None) -> Any:
        """Return what is asked as the policy reads it, or raise ``ValueError``."""
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
            require("decide", "eligible", "with an option that is not retired", bool(left), named)
            given["eligible"] = left
        return self.decider.asked(given)

    def choose(self, decision: OpenDecision, asked: Any) -> Outcome:
        """Let the policy choose for a decision, or serve the baseline; return what was released."""
        mode = self.mode
        if mode == "off":
            decision.option, decision.reason = self._baseline(asked), "off"
            return NOTHING
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
            return NOTHING
        if not decision.reason and self.decider.full(decision.record):
            decision.reason = "capacity"
        return self._read_releases(decision)

    def _baseline(self, asked: Any) -> int:
        """Return the baseline, or the first that is offered where it is not."""
        offered = self.decider.offered(asked)
        return self.config.baseline if self.config.baseline in offered else int(offered[0])

    def choose_again(
        self, logged: OpenDecision, query: Mapping[str, Any] | None, outcome: Outcome
    ) -> None:
        """Take over what was released with a choice, or else choose again and compare."""
        if outcome.state is not None:
            self.decider.unpack_release(outcome.state, logged.record)
            self.rounds = logged.round + 1
            self.releases += len(outcome.released)
            return
        again = OpenDecision(logged.id, logged.at)
        fresh = self.choose(again, self.parse_query(query))
        one, other = (
            (each.round, each.option, each.probability, each.would) for each in (again, logged)
        )
        if fresh.released or one != other:
            raise RefusedError(
                "mismatch",
                f"decision {logged.id}: expected option {logged.option} with probability "
                f"{logged.probability!r} as the log has it, got {again.option} with "
                f"{again.probability!r}; was the log written by another version or machine?",
            )

    def learn(self, decision: OpenDecision, value: Any, logged: Outcome | None) -> Outcome:
        """Let the policy learn, or take over what it released then; return what was released."""
        watched = self.decider.releases
        if logged is not None and logged.state is not None:
            self.decider.unpack_release(logged.state, decision.record)
            self.releases += len(logged.released)
            outcome = logged
        else:
            patience = self.decider.patience
            old = patience is not None and self.rounds - decision.round >= patience
            if old or (watched and self.decider.full(decision.record)):
                self.late += 1
                return NOTHING
            if watched:
                self._reads[1] = 0
            option, record = decision.option, decision.record
            try:
                self.decider.learn(self.tape, decision.round, option, record, value)
            except Exception as error:
                raise BrokenError(f"decision {decision.id}: {error}") from error
            outcome = self._read_releases(decision) if watched else NOTHING
            as_logged = logged is None or not outcome.released
            require("Core", "releases", "as in the log, none", as_logged, decision.id)
        self.learned += 1
        self.count(decision, LEARNED)
        if self.decider.trust == "local" and type(value) is int:
            self.count(decision, TOTAL, value)
        return outcome

    def count(self, decision: OpenDecision, place: int, amount: float = 1) -> None:
        """Add to the tally of a decision's option."""
        self.tallies[0 if self._one_tally else decision.option][place] += amount

    def _read_releases(self, decision: OpenDecision) -> Outcome:
        n = self._reads[1]
        if n == 0:
            return NOTHING
        try:
            values = self.decider.released(self.tape, n, decision.record)
            state = self.decider.pack_release(decision.record) if self._logs else None
        except Exception as error:
            # What was drawn is used nowhere unless it is logged.
            raise BrokenError(f"decision {decision.id}: {error}") from error
        self.releases += len(values)
        return Outcome(values, state)

    def make_decider(self, record: Change) -> tuple[Decider, Change]:
        """Return the decider after a change, and the change with what it calls called."""
        decider, new = self.decider, record.people or ()
        for _ in record.options or ():
            decider = decider.grown()
        for _, near in new:
            decider = decider.with_person(near)
        if record.joined is not None:
            people = [*self.people, *(each for each, _ in new)]
            if callable(record.joined):
                record = record._replace(joined=record.joined(decider, people))
            decider = decider.with_edges(len(people), record.joined)
        if record.mode is not None:
            require_mode(decider, record.mode)
        return decider, record

    def adopt(self, decider: Decider, record: Change) -> None:
        """Go on with what a change made of the decider, or raise ``ValueError`` and change nothing."""
        names, retire = record.options or (), record.retire or ()
        retired = self.retired.union(retire)
        if retire:
            n = len(self.options) + len(names)
            left = [option for option in range(n) if option not in retired]
            require("experiment", "options", "left after retiring one", bool(left), left)
            before = decider.pack()
            try:
                for option in retire:
                    decider.retire(option)
            except ValueError:
                decider.unpack(before)
                raise
        self.decider, self.retired = decider, retired
        self.options.extend(names)
        self.tallies.extend([0] * 5 for _ in names)
        for person, _ in record.people or ():
            self.people[person] = len(self.people)
        self.mode = record.mode or self.mode

    def refresh(self) -> None:
        """Work out anew what follows from the options."""
        self._everything = None
        n = self.decider.n_options
        if n is not None:
            self._everything = self.parse_query(None)
            if self.tape.log.size < max(n, _ROOM):
                # A call may release something of every option.
                self.tape = self.tape._replace(log=np.zeros(max(n, _ROOM)))
