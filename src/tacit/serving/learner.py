"""A policy at work: decide for real people, learn from what their devices report.

Rounds, noise, identities, silence and restarts are the learner's business. Its kernels are the simulator's.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import time
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tacit.core.constraints import require
from tacit.core.decider import decider_for, require_exact
from tacit.core.files import write_atomically
from tacit.core.json_codec import plain
from tacit.core.policy import AnyPolicy, Policy
from tacit.core.tapes import secure_tape, seeded_tape
from tacit.device import Reporter
from tacit.graphs import Graph
from tacit.privacy import Guarantee
from tacit.serving.core import (
    Core,
    ExperimentConfig,
    OpenDecision,
    Receipt,
    RefusedError,
    require_mode,
)
from tacit.serving.core.budget import read_allowances, require_budget
from tacit.serving.description import Description, by_value, read_description
from tacit.serving.experiment import Experiment
from tacit.serving.storage import NotOwnedError, SQLiteReader, Store, StoreError, open_store
from tacit.serving.storage.pseudonyms import Pseudonyms, key_of

_SAVED = 3
"""Of a saved file; the first did not keep what people spent, the second had the pseudonyms of 0.2."""
_IDS = 256
_LONGEST = 128


class Decision:
    """What was decided for somebody, and the device's half of what follows."""

    __slots__ = ("_device", "_learner", "_names", "_open")

    def __init__(
        self, learner: Learner, decision: OpenDecision, names: Sequence[Any] | None
    ) -> None:
        self._learner, self._open, self._names = learner, decision, names
        self._device: Reporter | None = None

    @property
    def id(self) -> str:
        """Its identity: 32 random hexadecimal digits, or what the caller gave."""
        return self._open.id

    @property
    def option(self) -> Any:
        """The name of what was chosen, or its number where options have no names."""
        names = self._names
        return self._open.option if names is None else names[self._open.option]

    @property
    def probability(self) -> float:
        """The exact chance with which it was chosen, for whoever evaluates logs."""
        return self._open.probability

    @property
    def report_at(self) -> float | None:
        """When the device reports, in seconds since 1970, whatever happens until then."""
        at = self._open.report_at
        return None if at is None else at / 1000

    @property
    def reason(self) -> str:
        """Why the device does not report: ``budget``, ``frozen`` or ``off``; empty if it does."""
        return self._open.reason

    @property
    def instructions(self) -> dict[str, Any] | None:
        """What the device is told, for JSON; None if it does not report."""
        return self._learner._core.instructions(self._open)

    @property
    def device(self) -> Reporter:
        """The device's half, where it runs in this process."""
        if self._device is None:
            asked = self.instructions
            rule = "used only where reason is empty: nothing is asked here"
            require("Decision", "device", rule, asked is not None, self.reason)
            self._device = Reporter(
                asked or {}, id=self.id, max_epsilon=None, report_at=self.report_at
            )
        return self._device

    def __repr__(self) -> str:
        return f"Decision(id={self.id!r}, option={self.option!r}, probability={self.probability:g})"


class Learner:
    """Decide one step at a time with any policy of the settings arms and users.

    Parameters
    ----------
    policy : Policy
    options : sequence of str, optional
        Names of the policy's arms; their numbers unless given.
    people : sequence of str or Graph, optional
        Names of the people that the policy knows, in its order (the number 7 is called 7); or the
        graph that joins them, whose labels are their names. Their numbers unless given.
    explore : float
        The share of decisions drawn evenly from what is eligible, so that logs of a policy that
        decides without chance can be evaluated. Some policies learn only from what they chose.
    store : str, path or Store, optional
        Where everything is kept, committed before it is answered: a file, or the address of a
        PostgreSQL database, ``postgresql://...``. Without it a crash forgets.
    name : str
        Of the experiment in the store.
    report_after : float, optional
        Seconds after a decision is shown at which its device reports. Without it a report counts whenever it
        comes, a decision waits for ever, and a trusted server's decisions show when rewards arrive.
    grace : float
        Seconds after `report_after` at which a decision is closed.
    retention : float
        Seconds after which a closed decision is forgotten, in a store.
    default : float, optional
        The reward that stands for a missing one; the lowest unless given.
    max_open : int
        More open decisions than this are refused.
    budget : mapping, optional
        What may be spent on one person, such as ``{"day": 1.0, "lifetime": 20.0}``; decisions then need a
        `person`, and one who has nothing left is served without being asked.
    mode : {"learn", "frozen", "shadow", "off"}
        Learn; decide only; serve the baseline while the policy watches; serve the baseline.
    baseline : str or int, optional
        The option of the modes ``shadow`` and ``off``; the first unless given.
    seed : int, optional
        For experiments that must repeat. Without it randomness is the operating system's, and only
        then does the guarantee hold against someone who knows the code.
    restored : bool
        Accept a store that is an old copy: its open sums are discarded, what was lost counts as
        spent, and the guarantee says so.
    key : bytes, optional
        What pseudonyms of people are made with, 32 bytes. Unless given it lies beside the store.
    **given
        What the policy's setting needs beside it, such as `graph` or `weights`.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import KLUCBCF
    >>> learner = tacit.Learner(KLUCBCF(n_arms=2, epsilon=1.0), options=["red", "blue"], seed=7)
    >>> first = learner.decide()
    >>> second = learner.decide(eligible=["blue"])         # decisions may overlap ...
    >>> second.option, second.probability
    ('blue', 1.0)
    >>> learner.learn(second.device.report(1.0)).status     # ... and reports come in any order
    'learned'
    >>> learner.learn(first.device.report(0.0)).status
    'learned'
    """

    def __init__(
        self,
        policy: AnyPolicy,
        *,
        options: Sequence[str] | None = None,
        people: Sequence[str] | Graph | None = None,
        explore: float = 0.0,
        store: str | os.PathLike[str] | Store | None = None,
        name: str = "learner",
        report_after: float | None = None,
        grace: float = 60.0,
        retention: float = 30 * 86_400.0,
        default: float | None = None,
        max_open: int = 100_000,
        budget: Mapping[str, float] | None = None,
        mode: str = "learn",
        baseline: str | int | None = None,
        seed: int | None = None,
        restored: bool = False,
        key: bytes | None = None,
        **given: Any,
    ) -> None:
        if not isinstance(policy, Policy):
            raise ValueError(
                "Learner: expected a policy of a setting that can serve, such as UCB1(n_arms=2), got "
                f"{policy!r}"
            )
        require(
            "Learner",
            "seed",
            "not given with a store, whose noise must be secret",
            seed is None or store is None,
            seed,
        )
        self.policy, self.seed = policy, seed
        self._owned: Store | None = None
        known_windows = budget is None or isinstance(budget, Mapping)
        rule = "a mapping of windows to epsilons, such as {'day': 1.0, 'lifetime': 20.0}"
        require("Learner", "budget", rule, known_windows, budget)
        if isinstance(people, Graph):
            given, people = {"graph": people, **given}, labels_of(people)
        number = isinstance(explore, int | float)
        require("Learner", "explore", "a number in [0, 1)", number, explore)
        require("Learner", "key", "of 32 bytes", key is None or len(key) == 32, "another")
        decider = decider_for(policy, explore=float(explore), **given)
        if seed is None:
            require_exact(decider, "; with a seed this makes trial runs")
        names = _names("options", decider.n_options, options)
        known = _names("people", decider.n_people, people)
        config = ExperimentConfig(
            report_after=_milliseconds("report_after", report_after),
            grace=_milliseconds("grace", grace) or 0,
            retention=_milliseconds("retention", retention) or 0,
            default=default,
            max_open=max_open,
            allowances=read_allowances(budget or {}),
            mode=mode,
            baseline=0 if baseline is None else _place(names, baseline),
        )
        low, high = decider.reward_range
        fits = default is None or low <= default <= high
        require("Learner", "default", f"in [{low:g}, {high:g}]", fits, default)
        require_budget("Learner", decider, config.allowances)
        require_mode(decider, mode)
        wanted = Description(
            name=name,
            policy=policy,
            config=config,
            choices=secrets.token_bytes(32),
            explore=float(explore),
            options=names or (),
            join=lambda: given,
        )
        if store is None:
            pseudonyms = Pseudonyms(name, key or secrets.token_bytes(32))
            self._begin(_with_people(wanted, pseudonyms, known), None, pseudonyms)
            return
        why = decider.not_stored
        require("Learner", "store", f"not given, because {why}", not why, store)
        kept = store if isinstance(store, Store) else open_store(store, restored=restored)
        self._owned = None if kept is store else kept
        try:
            self._begin(*_agreed(kept, wanted, known, key))
        except BaseException:
            if self._owned is not None:
                self._owned.close()
            raise

    @classmethod
    def open(
        cls,
        store: str | os.PathLike[str],
        name: str = "learner",
        *,
        policy: AnyPolicy | None = None,
        restored: bool = False,
        key: bytes | None = None,
    ) -> Learner:
        """Open an experiment that is in a store, made by a learner or by a service.

        While another process serves it, it can be read: what is protected, counts, options. Then every
        call that would change it raises ``StoreError``.

        Parameters
        ----------
        store : str or path
            A file, or the address of a PostgreSQL database.
        name : str
            Of the experiment in the store.
        policy : Policy, optional
            The one it was made with, where that cannot be read from the store: one of your own.
        restored, key
            As for a new learner.
        """
        try:
            kept = open_store(store, restored=restored)
        except NotOwnedError:
            kept = SQLiteReader(store)
        try:
            for turns_left in (2, 1, 0):
                known = kept.load(name)
                if known is None:
                    have = ", ".join(kept.names()) or "none"
                    where = f"an experiment of {kept.place}, which has {have}"
                    raise ValueError(f"Learner: expected {where}, got {name!r}")
                described = read_description(name, known, policy)
                learner = cls.__new__(cls)
                learner.policy, learner.seed, learner._owned = described.policy, None, kept
                pseudonyms = Pseudonyms(name, key_of(kept, key), old=described.old_names)
                try:
                    learner._begin(described, kept, pseudonyms)
                except NotOwnedError:
                    kept.read_only = True
                except StoreError:
                    # The process that writes it went on in between.
                    if not kept.read_only or not turns_left:
                        raise
                else:
                    return learner
            raise StoreError(f"{kept.place}: {name} cannot be read, because it changes too fast")
        except BaseException:
            kept.close()
            raise

    def _begin(self, described: Description, kept: Store | None, pseudonyms: Pseudonyms) -> None:
        tape = partial(secure_tape, choices=described.choices)
        if self.seed is not None:
            tape = partial(seeded_tape, self.seed)
        self._pseudonyms = pseudonyms
        self._experiment = Experiment(
            described.make_decider,
            tape,
            described.config,
            options=described.options,
            people=described.people,
            aliases=pseudonyms.aliases,
            store=kept,
            name=described.name,
        )
        self.trust = self._core.decider.trust
        self.loads = 0
        self._ids: list[str] = []
        self._warned = False
        self._horizon = self._core.decider.horizon
        lost = None if kept is None else kept.find_loss(described.name)
        if lost is not None:
            self._run(Core.begin_epoch, *lost)

    def decide(
        self,
        *,
        eligible: Iterable[Any] | None = None,
        person: str | None = None,
        contexts: Any = None,
        id: str | None = None,
        shown: bool = True,
        report_at: float | None = None,
    ) -> Decision:
        """Decide.

        Parameters
        ----------
        eligible : names of options, optional
            Which ones may be chosen this time; all that are not retired unless given.
        person : str, optional
            For whom. Needed with a budget, and by policies that know people.
        contexts : array of shape (n, d), or mapping of names to vectors, optional
            What may be offered, where options come with each decision.
        id : str, optional
            An identity of the caller's own. The same request with the same id gets the same answer.
        shown : bool
            False if it is not yet known whether the person will see it; say so with `show`. Only
            what was shown is charged, awaited and learned.
        report_at : float, optional
            When the device reports, in seconds since 1970, instead of `report_after` from now.
        """
        names: Sequence[Any] | None = self._core.options or None
        query, pseudonym = None, None
        if eligible is not None or person is not None or contexts is not None:
            query, pseudonym, names = self._query(eligible, person, contexts, names)
        at = _milliseconds("report_at", report_at)
        if id is None:
            id = self._new_id()
            decision = self._run(
                Core.decide, id, query, person=pseudonym, shown=shown, report_at=at
            )
        else:
            decision = self._run(Core.decide_once, _short(id), query, pseudonym, shown, at)
        if self._horizon is not None and not self._warned:
            self._speak_up()
        return Decision(self, decision, names)

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Decide for several at once, durably with one commit; each request is as for `decide`."""
        prepared: list[Sequence[Any] | None] = []
        commands: list[Any] = []
        for request in requests:
            rule = "a mapping with the words of decide"
            require("Learner", "request", rule, isinstance(request, Mapping), request)
            given = dict(request)
            words = ("eligible", "person", "contexts")
            eligible, person, contexts = (given.pop(word, None) for word in words)
            at, shown = given.pop("report_at", None), given.pop("shown", True)
            id = given.pop("id", None)
            require("Learner", "request", "with the words of decide", not given, request)
            names: Sequence[Any] | None = self._core.options or None
            query, pseudonym, names = self._query(eligible, person, contexts, names)
            at = _milliseconds("report_at", at)
            now = self._clock()
            if id is None:
                arguments: tuple[Any, ...] = (now, self._new_id(), query)
                keywords = {"person": pseudonym, "shown": shown, "report_at": at}
                commands.append((Core.decide, arguments, keywords))
            else:
                arguments = (now, _short(id), query, pseudonym, shown, at)
                commands.append((Core.decide_once, arguments, {}))
            prepared.append(names)
        answers = self._experiment.run_many(commands)
        self._speak_up()
        decisions = []
        for answer, names in zip(answers, prepared, strict=True):
            if isinstance(answer, RefusedError):
                raise answer
            decisions.append(Decision(self, answer, names))
        return decisions

    def learn(self, report: Any) -> Any:
        """Learn from a device's report, or from a list of them.

        Parameters
        ----------
        report : dict or list of dict
            ``{"v": 1, "id": ..., "value": ...}``, what a device's `report` returned. Where a feedback
            graph shows several options, `value` may map each one's name to its reward.

        Returns
        -------
        Receipt or list of Receipt
            A report that is refused raises ``RefusedError``; among several it gets a receipt that says so.
        """
        if type(report) is not dict and not isinstance(report, Mapping):
            if not isinstance(report, Iterable) or isinstance(report, str | bytes):
                raise ValueError(
                    "report: expected one or a list of what decision.device.report(reward) returns, "
                    f"got {repr(report)[:1000]}"
                )
            return self.learn_many(report)
        id, value = self._read(report)
        return self._run(Core.report, id, value)

    def learn_many(self, reports: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Learn from several reports, durably with one commit."""
        now = self._clock()
        read = [self._read(report) for report in reports]
        answers = self._experiment.run_many(
            [(Core.report, (now, id, value), {}) for id, value in read]
        )
        return [
            Receipt(id, "refused", f"{answer.reason}: {answer}")
            if isinstance(answer, RefusedError)
            else answer
            for (id, _), answer in zip(read, answers, strict=True)
        ]

    def show(self, decision: Decision | str) -> None:
        """Say that a decision made with ``shown=False`` is now seen by its person."""
        self._run(Core.show, _id(decision))

    def cancel(self, decision: Decision | str) -> None:
        """Give a decision up: no report is awaited; what was charged stays charged."""
        self._run(Core.cancel, _id(decision))

    def tick(self) -> int:
        """Close decisions that are due; every other call does so too. Return how many."""
        return int(self._run(Core.tick))

    def set_mode(self, mode: str) -> None:
        """Switch between ``learn``, ``frozen``, ``shadow`` and ``off``."""
        self._run(Core.change, mode=mode)

    def add_option(self, name: str) -> None:
        """Add an option; the others keep what was learned about them."""
        self._require_options()
        self._run(Core.change, options=[_named("option", name)])

    def retire(self, option: Any) -> None:
        """Never choose an option again; reports that are under way still count."""
        self._require_options()
        self._run(Core.change, retire=[_place(self._core.options, option)])

    def add_person(self, person: str, near: Sequence[str] = ()) -> None:
        """Add somebody whom the policy shall know, joined to people it knows already."""
        others = [each for each in near if self._member(each) is None]
        require("Learner", "near", "people who were added", not others, others)
        if self._member(person) is not None:
            raise RefusedError("conflict", f"person {person!r}: expected a new one, got one in use")
        new = self._pseudonym(person), [self._member(each) for each in near]
        self._run(Core.change, people=[new])

    def set_edges(self, *, graph: Any = None, weights: Any = None) -> None:
        """Join the people anew; what each one reported is kept.

        The model is rebuilt from each person's own sums, as if these edges had been there from the
        start.
        """
        given = {"graph": graph, "weights": weights}
        policy, joins = self._core.decider.policy, self._core.decider.joined is not None
        require(policy, "set_edges", "not called: it joins no people", joins, given)
        self._run(Core.change, joined=decider_for(policy, **given).joined)

    def reset_clock(self) -> None:
        """Set the learner's clock back to the machine's, which was ahead for a while and is right now.

        What was spent meanwhile stays spent, and decisions that were made meanwhile are closed.
        """
        self._run(Core.reset_clock)

    def prune(self) -> int:
        """Delete from the store what is past its retention; return how many events."""
        return self._experiment.prune(self._clock())

    @property
    def options(self) -> list[str]:
        """Names of the options that are not retired."""
        core = self._core
        return [name for i, name in enumerate(core.options) if i not in core.retired]

    @property
    def rounds(self) -> int:
        """How often the policy was asked."""
        return self._core.rounds

    @property
    def open_decisions(self) -> int:
        """How many decisions wait."""
        return len(self._core.open)

    @property
    def counts(self) -> dict[str, int]:
        """What happened so far, in numbers."""
        core = self._core
        names = ("decided", "learned", "silent", "late", "lapsed", "releases", "epoch")
        return {"shown": core.shown_count, **{name: getattr(core, name) for name in names}}

    @property
    def numerics(self) -> str:
        """``secure`` or ``research``: where the noise comes from."""
        return "secure" if self.seed is None else "research"

    def guarantee(self, horizon: int | None = None) -> Guarantee:
        """Return what is protected of the rewards that this learner sees.

        Parameters
        ----------
        horizon : int, optional
            In rounds; the policy's own unless given.
        """
        stated = self._core.guarantee(horizon)
        if not self.loads:
            return stated
        often = "" if self.loads == 1 else f", which was loaded {self.loads} times"
        still = (
            *(stated.not_protected or ()),
            f"what other learners spend on a person after this state was saved{often}",
        )
        note = stated.note
        if self._core.decider.releases:
            note += " Rewards that no release had told of when it was saved were discarded."
        return dataclasses.replace(stated, not_protected=still, note=note.strip())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that is known to a file that only its owner can read.

        With a store there is no need. What people spent is in it, with the key of their pseudonyms. The
        key of the noise is not; the sums of a central policy are, so that whoever has the file is
        trusted as the server is.
        """
        experiment = self._experiment
        experiment.check_process()
        with experiment.lock:
            about, state, decisions = experiment.core.snapshot()
            head = {
                "format": _SAVED,
                "policy": by_value(self.policy),
                "secret": self._pseudonyms.key.hex(),
                "name": experiment.name,
                "old_names": self._pseudonyms.old,
                "trust": self.trust,
                "options": experiment.options or None,
                "private": self._core.decider.releases,
                "seed": self.seed,
                "terms": plain(experiment.core.config),
                "choices": experiment.core.tape.key[:4].tolist(),
                "loads": 0,
                "about": about,
                "decisions": decisions,
                "charges": list(experiment.core.budget.charges()),
            }
        _write(Path(path), head, state)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], policy: AnyPolicy, *, again: bool = False, **given: Any
    ) -> Learner:
        """Return the learner saved at `path`.

        Of a central policy the rewards that no release has told of are discarded and open decisions are
        closed, because the learner that was saved may have gone on and released them.

        Parameters
        ----------
        path : str or path
        policy : Policy
            The one it was saved with, by value.
        again : bool
            Learners loaded from the same file know nothing of what the others spend. Where people
            were charged, or the policy is central, loading marks the file; a second time must be
            asked for, and the guarantee says it.
        **given
            As for a new learner: `explore` and what the setting needs.
        """
        file = Path(path)
        head, state = _read_save(file)
        rule = f"{head['policy']} as in {file.name}"
        require("Learner", "policy", rule, by_value(policy) == head["policy"], by_value(policy))
        rule = "not given: what was saved goes on without one"
        require("Learner", "store", rule, "store" not in given, given.get("store"))
        once = head["private"] or bool(head["charges"] or head["terms"]["allowances"])
        if once:
            if head["loads"] and not again:
                raise ValueError(
                    f"{file}: loaded before; two learners would each spend what is left of a person's "
                    "budget, with again=True if that is meant"
                )
            _write(file, {**head, "loads": head["loads"] + 1}, state)
        terms = dict(head["terms"])
        learner = cls(
            policy,
            options=head["options"],
            seed=head["seed"],
            report_after=_seconds(terms["report_after"]),
            grace=terms["grace"] / 1000,
            retention=terms["retention"] / 1000,
            default=terms["default"],
            max_open=terms["max_open"],
            budget={each["window"]: each["epsilon"] for each in terms["allowances"]},
            baseline=terms["baseline"],
            key=None if head["secret"] is None else bytes.fromhex(head["secret"]),
            **{"name": head.get("name", "learner"), **given},
        )
        learner._pseudonyms.old = head.get("old_names", head["format"] < _SAVED)
        core = learner._core
        core.tape.key[:4] = head["choices"]
        core.restore(head["about"], state, head["decisions"])
        core.budget.take((*who, amount) for *who, amount in head["charges"])
        if head["format"] == 1 and core.budget.allowances:
            # Nobody knows what each person spent, so that all was spent on everybody.
            core.budget.debts.append((0, core.now, core.shown_count * core.cost))
        core.discard()
        learner.loads = head["loads"] + 1 if once else 0
        return learner

    def close(self) -> None:
        """Keep a snapshot and let others use the store, if the learner opened it."""
        self._experiment.close()
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            "Learner: expected save and load, got a copy, which would release sums twice"
        )

    def __repr__(self) -> str:
        return f"<Learner of {self.policy!r}: {self.rounds} rounds, {self.open_decisions} open>"

    @property
    def _core(self) -> Core:
        return self._experiment.core

    def _run(self, command: Any, *arguments: Any, **keywords: Any) -> Any:
        return self._experiment.run(command, self._clock(), *arguments, **keywords)

    def _require_options(self) -> None:
        own = self._core.decider.n_options is not None
        rule = "given as contexts of each decision, where they come and go"
        require(self.policy, "options", rule, own, "a change of them")

    def _clock(self) -> int:
        return time.time_ns() // 1_000_000

    def _new_id(self) -> str:
        # Taking from a list cannot give two threads the same.
        try:
            return self._ids.pop()
        except IndexError:
            block = os.urandom(16 * _IDS).hex()
            fresh = [block[at : at + 32] for at in range(0, len(block), 32)]
            id = fresh.pop()
            self._ids.extend(fresh)
            return id

    def _query(
        self, eligible: Any, person: Any, contexts: Any, names: Sequence[Any] | None
    ) -> tuple[dict[str, Any] | None, str | None, Sequence[Any] | None]:
        query: dict[str, Any] = {}
        pseudonym = None
        if contexts is not None:
            if isinstance(contexts, Mapping):
                names, contexts = list(contexts), list(contexts.values())
                query["names"] = [str(name) for name in names]
            else:
                names = None
            query["contexts"] = plain(contexts)
        if eligible is not None:
            several = not isinstance(eligible, str | bytes) and isinstance(eligible, Iterable)
            require("Learner", "eligible", "a list of options", several, eligible)
            query["eligible"] = [_place(names, option) for option in eligible]
            require("Learner", "eligible", "at least one option", bool(query["eligible"]), [])
        knows = self._core.decider.n_people is not None
        if person is not None:
            pseudonym = self._pseudonym(person)
        if knows and person is not None:
            query["person"] = self._member(person)
        if knows and query.get("person") is None:
            raise RefusedError(
                "person",
                f"Learner: expected a person who was added (add_person does it), got {person!r}",
            )
        return query or None, pseudonym, names

    def _pseudonym(self, person: Any) -> str:
        return self._pseudonyms.of(person)

    def _member(self, person: Any) -> str | None:
        """Return what the policy knows a person as, if it does."""
        return self._pseudonyms.find(person, self._core.people)

    def _read(self, report: Any) -> tuple[str, Any]:
        try:
            id, value = report["id"], report["value"]
            whole = report["v"] == 1 and len(report) == 3 and type(id) is str
        except (TypeError, KeyError):
            whole = False
        if not whole:
            raise ValueError(
                "report: expected v = 1, id and value, as decision.device.report(reward) returns "
                f"them, got {repr(report)[:1000]}"
            )
        if len(id) > _LONGEST:
            _short(id)
        if type(value) is dict:
            names = self._core.options or None
            placed = {_place(names, name): reward for name, reward in value.items()}
            if len(placed) < len(value):
                raise ValueError(f"report: expected each option once, got {repr(value)[:1000]}")
            value = placed
        return id, value

    def _speak_up(self) -> None:
        if not self._warned and self._core.past_horizon:
            self._warned = True
            warnings.warn(
                f"Learner: {type(self.policy).__name__} is made for {self._horizon:,} rounds; it goes on, "
                "but what is said about its regret does not",
                RuntimeWarning,
                stacklevel=3,
            )


def _with_people(
    wanted: Description, pseudonyms: Pseudonyms, known: Sequence[str] | None
) -> Description:
    people = [pseudonyms.at_start(person) for person in known or ()]
    require("Learner", "people", "all different", len(set(people)) == len(people), known)
    return dataclasses.replace(wanted, people=people)


def _agreed(
    kept: Store, wanted: Description, known: Sequence[str] | None, key: bytes | None
) -> tuple[Description, Store, Pseudonyms]:
    """Hold what a store has against what is wanted, and take its keys; or make a new experiment."""
    secret = key_of(kept, key) if kept.beside is not None else key or secrets.token_bytes(32)
    found = kept.load(wanted.name)
    stored = {} if found is None else found.description
    pseudonyms = Pseudonyms(wanted.name, secret, old=stored.get("format") == 1)
    wanted = _with_people(wanted, pseudonyms, known)
    words = wanted.write()
    if found is None:
        kept.create(wanted.name, words)
        return wanted, kept, pseudonyms
    if "request" in stored:
        stored = read_description(wanted.name, found).write()
    for word in (word for word in words if word in stored and word not in ("format", "choices")):
        was, now = _apart(stored[word], words[word])
        require("Learner", word, f"as in the store, {was!r}", was == now, now)
    choices = bytes.fromhex(stored["choices"])
    return dataclasses.replace(wanted, choices=choices), kept, pseudonyms


def _apart(was: Any, now: Any) -> tuple[Any, Any]:
    """Return two values, or of two mappings what differs."""
    if not (isinstance(was, dict) and isinstance(now, dict)):
        return was, now
    names = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    return {name: was.get(name) for name in names}, {name: now.get(name) for name in names}


def _names(what: str, n: int | None, given: Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None if n is None else [str(i) for i in range(n)]
    names: list[Any] = [given] if isinstance(given, str) else list(given)
    if what == "people":
        names = [str(name) if type(name) is int else name for name in names]
    rule = "not given with this policy" if n is None else f"{n} different names"
    distinct = len(set(names)) == len(names) == n and all(type(name) is str for name in names)
    require("Learner", what, rule, distinct, names)
    return [_named(what, name) for name in names] if what == "options" else names


def _place(names: Sequence[Any] | None, option: Any) -> int:
    if names is None:
        return int(option)
    if option in names:
        return names.index(option)
    if type(option) is int and 0 <= option < len(names):
        return option
    raise ValueError(f"Learner: expected an option of {list(names)}, got {option!r}")


def _id(decision: Decision | str) -> str:
    return decision.id if isinstance(decision, Decision) else _short(decision)


def _short(id: Any) -> str:
    """Return an identity of the caller's that a log can keep and a sentence can name."""
    return _named("id", id)


def _named(what: str, name: Any) -> str:
    text = type(name) is str and 1 <= len(name) <= _LONGEST
    text = text and not any("\ud800" <= letter <= "\udfff" for letter in name)
    shown = name if type(name) is not str else ascii(name)[:_LONGEST]
    require("Learner", what, f"of 1 to {_LONGEST} characters, a string", text, shown)
    return str(name)


def labels_of(graph: Graph) -> list[str]:
    """Return the names of a graph's nodes, or their numbers."""
    names = range(graph.n_nodes) if graph.labels is None else graph.labels.tolist()
    return [str(name) for name in names]


def _milliseconds(name: str, seconds: float | None) -> int | None:
    if seconds is None:
        return None
    number = isinstance(seconds, int | float) and 0 <= seconds < 1e11
    require("Learner", name, ">= 0 seconds, a number", number, seconds)
    return round(seconds * 1000)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _write(path: Path, head: Mapping[str, Any], state: bytes) -> None:
    def write(file: Path) -> None:
        file.chmod(0o600)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("about.json", json.dumps(head))
            archive.writestr("state.bin", state)

    write_atomically(path, write, mode=0o600)


def _read_save(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            head, state = json.loads(archive.read("about.json")), archive.read("state.bin")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not a saved learner ({error})") from None
    if head.get("format") not in range(1, _SAVED + 1):
        raise ValueError(f"{path}: expected format {_SAVED}, got {head.get('format')}")
    return {"charges": [], **head}, state
