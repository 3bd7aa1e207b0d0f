"""A policy at work: decide for real people, learn from what their devices report.

A learner is names and defaults over an :class:`~tacit.serving.Experiment`, which keeps rounds, noise,
identities, silence and restarts. Its kernels are the simulator's.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tacit.core.constraints import require
from tacit.core.decider import decider_for
from tacit.core.files import write_atomically
from tacit.core.policy import AnyPolicy, Policy
from tacit.device import Reporter
from tacit.graphs import Graph
from tacit.privacy import Guarantee
from tacit.serving.core import Core, OpenDecision, Receipt, RefusedError
from tacit.serving.description import (
    Description,
    by_value,
    find_differences,
    find_option,
    read_config,
    read_description,
    read_request,
    read_seconds,
    same_by_value,
)
from tacit.serving.experiment import Experiment
from tacit.serving.storage import NotOwnedError, SQLiteReader, Store, StoreError, open_store
from tacit.serving.storage.pseudonyms import Pseudonyms, key_of

_SAVED = 3
"""Of a saved file; the first did not keep what people spent, the second had the pseudonyms of 0.2."""
_LONGEST = 128
_MADE_WITH = ("name", "options", "budget", "explore", "baseline", "grace", "retention", "max_open")
_DECIDE: dict[str, Any] = {
    **dict.fromkeys(("id", "person", "eligible", "contexts")),
    "shown": True,
    "report_at": None,
}
"""The words of `Learner.decide`, in the order of an experiment's."""


class Decision:
    """What was decided for somebody, and the device's half of what follows."""

    __slots__ = ("_contexts", "_device", "_learner", "_open")

    def __init__(self, learner: Learner, decision: OpenDecision, contexts: Any) -> None:
        self._learner, self._open, self._contexts = learner, decision, contexts
        self._device: Reporter | None = None

    @property
    def id(self) -> str:
        """Its identity: 32 random hexadecimal digits, or what the caller gave."""
        return self._open.id

    @property
    def option(self) -> Any:
        """The name of what was chosen, or its number where options have no names."""
        contexts, option = self._contexts, self._open.option
        if contexts is None:
            names = self._learner._core.options
            return names[option] if names else option
        return list(contexts)[option] if isinstance(contexts, Mapping) else option

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
        secret = seed is None or store is None
        rule = "not given with a store, whose noise must be secret"
        require("Learner", "seed", rule, secret, seed)
        known_windows = budget is None or isinstance(budget, Mapping)
        rule = "a mapping of windows to epsilons, such as {'day': 1.0, 'lifetime': 20.0}"
        require("Learner", "budget", rule, known_windows, budget)
        number = isinstance(explore, int | float)
        require("Learner", "explore", "a number in [0, 1)", number, explore)
        require("Learner", "key", "of 32 bytes", key is None or len(key) == 32, "another")
        if isinstance(people, Graph):
            given, people = {"graph": people, **given}, labels_of(people)
        decider = decider_for(policy, explore=float(explore), **given)
        request = {
            "name": name,
            "policy": by_value(policy),
            "options": _names(options, decider.n_options),
            "reward": {"default": default, "report_after": report_after},
            "budget": budget,
            "mode": mode,
            "explore": float(explore),
            "baseline": baseline,
            "grace": grace,
            "retention": retention,
            "max_open": max_open,
            "people": _names(people, decider.n_people),
        }
        wanted = read_request(request, secrets.token_bytes(32), policy)
        wanted = dataclasses.replace(wanted, given=given)
        wanted.check(seeded=seed is not None)
        self._owned: Store | None = None
        if store is None:
            pseudonyms = Pseudonyms(name, key or secrets.token_bytes(32))
            wanted = wanted.hide_people(pseudonyms)
            self._begin(Experiment(wanted, key=pseudonyms.key, seed=seed), seed)
            return
        why = decider.not_stored
        require("Learner", "store", f"not given, because {why}", not why, store)
        kept = store if isinstance(store, Store) else open_store(store, restored=restored)
        self._owned = None if kept is store else kept
        try:
            self._begin(_find_or_create(kept, wanted, key))
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
        learner = cls.__new__(cls)
        learner._owned = kept
        try:
            for turns_left in (2, 1, 0):
                try:
                    secret = key_of(kept, key)
                    learner._begin(Experiment.open(kept, name, key=secret, policy=policy))
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

    def _begin(self, experiment: Experiment, seed: int | None = None) -> None:
        self._experiment, self.policy, self.seed = experiment, experiment.policy, seed
        self.trust = self._core.decider.trust
        self.loads = 0
        self._horizon, self._warned = self._core.decider.horizon, False

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
        at = None if report_at is None else read_seconds("report_at", report_at)
        checked = None if id is None else _require_id(id)
        decision = self._experiment.run(
            self._experiment.decide, checked, person, eligible, contexts, shown, at
        )
        self._warn_past_horizon()
        return Decision(self, decision, contexts)

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Decide for several at once, durably with one commit; each request is as for `decide`."""
        commands, offered = [], []
        for request in requests:
            rule = "a mapping with the words of decide"
            require("Learner", "request", rule, isinstance(request, Mapping), request)
            given = {**_DECIDE, **request}
            known = len(given) == len(_DECIDE)
            require("Learner", "request", "with the words of decide", known, request)
            id, person, eligible, contexts, shown, at = given.values()
            id, at = None if id is None else _require_id(id), read_seconds("report_at", at)
            command = self._experiment.decide
            commands.append((command, (id, person, eligible, contexts, shown, at)))
            offered.append(contexts)
        answers = self._experiment.run_many(commands)
        self._warn_past_horizon()
        decisions = []
        for answer, contexts in zip(answers, offered, strict=True):
            if isinstance(answer, RefusedError):
                raise answer
            decisions.append(Decision(self, answer, contexts))
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
        if type(report) is dict or isinstance(report, Mapping):
            return self._experiment.run(Core.report, *self._read(report))
        if not isinstance(report, Iterable) or isinstance(report, str | bytes):
            raise ValueError(
                "report: expected one or a list of what decision.device.report(reward) returns, "
                f"got {repr(report)[:1000]}"
            )
        return self.learn_many(report)

    def learn_many(self, reports: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Learn from several reports, durably with one commit."""
        read = [self._read(report) for report in reports]
        answers = self._experiment.run_many((Core.report, each) for each in read)
        return [
            Receipt(id, "refused", f"{answer.reason}: {answer}")
            if isinstance(answer, RefusedError)
            else answer
            for (id, _), answer in zip(read, answers, strict=True)
        ]

    def show(self, decision: Decision | str) -> None:
        """Say that a decision made with ``shown=False`` is now seen by its person."""
        self._experiment.run(Core.show, _id(decision))

    def cancel(self, decision: Decision | str) -> None:
        """Give a decision up: no report is awaited; what was charged stays charged."""
        self._experiment.run(Core.cancel, _id(decision))

    def tick(self) -> int:
        """Close decisions that are due; every other call does so too. Return how many."""
        return self._experiment.run(Core.tick)

    def set_mode(self, mode: str) -> None:
        """Switch between ``learn``, ``frozen``, ``shadow`` and ``off``."""
        self._change(mode=mode)

    def add_option(self, name: str) -> None:
        """Add an option; the others keep what was learned about them."""
        self._change(add_options=[name])

    def retire(self, option: Any) -> None:
        """Never choose an option again; reports that are under way still count."""
        self._change(retire_options=[option])

    def add_person(self, person: str, near: Sequence[str] = ()) -> None:
        """Add somebody whom the policy shall know, joined to people it knows already."""
        self._change(add_people={str(person): [str(each) for each in near]})

    def set_edges(self, *, graph: Any = None, weights: Any = None) -> None:
        """Join the people anew; what each one reported is kept.

        The model is rebuilt from each person's own sums, as if these edges had been there from the
        start.
        """
        given = {"graph": graph, "weights": weights}
        policy, joins = self._core.decider.policy, self._core.decider.joined is not None
        require(policy, "set_edges", "not called: it joins no people", joins, given)
        self._change(joined=decider_for(policy, **given).joined)

    def _change(self, **wanted: Any) -> None:
        self._experiment.run(self._experiment.change, **wanted)

    def reset_clock(self) -> None:
        """Set the learner's clock back to the machine's, which was ahead for a while and is right now.

        What was spent meanwhile stays spent, and decisions that were made meanwhile are closed.
        """
        self._experiment.run(Core.reset_clock)

    def prune(self) -> int:
        """Delete from the store what is past its retention; return how many events."""
        return self._experiment.prune()

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
        spent = f"what other learners spend on a person after this state was saved{often}"
        note = stated.note
        if self._core.decider.releases:
            note += " Rewards that no release had told of when it was saved were discarded."
        still = (*(stated.not_protected or ()), spent)
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
            core, pseudonyms = experiment.core, experiment.pseudonyms
            about, state, decisions = core.snapshot()
            request = experiment.description.request()
            head = {
                "format": _SAVED,
                "policy": by_value(self.policy),
                "made_with": {word: request[word] for word in _MADE_WITH}
                | {word: request["reward"][word] for word in ("default", "report_after")}
                | {"seed": self.seed, "key": pseudonyms.key.hex()},
                "old_names": pseudonyms.old,
                "private": core.decider.releases,
                "choices": core.tape.key[:4].tolist(),
                "loads": 0,
                "about": about,
                "decisions": decisions,
                "charges": list(core.budget.charges()),
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
        saved, now = same_by_value(head["policy"]), by_value(policy)
        require("Learner", "policy", f"{saved} as in {file.name}", saved == now, now)
        rule = "not given: what was saved goes on without one"
        require("Learner", "store", rule, "store" not in given, given.get("store"))
        made_with = head["made_with"]
        once = head["private"] or bool(head["charges"] or made_with["budget"])
        if once:
            if head["loads"] and not again:
                raise ValueError(
                    f"{file}: loaded before; two learners would each spend what is left of a person's "
                    "budget, with again=True if that is meant"
                )
            _write(file, {**head, "loads": head["loads"] + 1}, state)
        learner = cls(policy, **{**made_with, **given})
        learner._experiment.pseudonyms.old = head["old_names"]
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
            _require_id(id)
        if type(value) is dict:
            names = self._core.options
            placed = {find_option(names, name): reward for name, reward in value.items()}
            if len(placed) < len(value):
                raise ValueError(f"report: expected each option once, got {repr(value)[:1000]}")
            value = placed
        return id, value

    def _warn_past_horizon(self) -> None:
        if self._horizon is not None and not self._warned and self._core.past_horizon:
            self._warned = True
            warnings.warn(
                f"Learner: {type(self.policy).__name__} is made for {self._horizon:,} rounds; it goes on, "
                "but what is said about its regret does not",
                RuntimeWarning,
                stacklevel=3,
            )


def _find_or_create(store: Store, wanted: Description, key: bytes | None) -> Experiment:
    """Return an experiment of a store, made if there is none; one of the same name must be the same."""
    secret = key_of(store, key) if store.beside is not None else key or secrets.token_bytes(32)
    found = store.load(wanted.name)
    was = None if found is None else read_description(wanted.name, found, wanted.policy)
    wanted = wanted.hide_people(
        Pseudonyms(wanted.name, secret, old=was is not None and was.old_names)
    )
    if was is None:
        store.create(wanted.name, wanted.write())
        return Experiment(wanted, store, key=secret)
    for word, before, now in find_differences(was, wanted):
        require("Learner", word, f"as in the store, {before!r}", False, now)
    wanted = dataclasses.replace(wanted, choices=was.choices, old_names=was.old_names)
    return Experiment(wanted, store, key=secret)


def _names(given: Sequence[Any] | None, n: int | None) -> list[str] | None:
    if given is None:
        return None if n is None else [str(i) for i in range(n)]
    names = [given] if isinstance(given, str) else list(given)
    return [str(name) if type(name) is int else name for name in names]


def _id(decision: Decision | str) -> str:
    return decision.id if isinstance(decision, Decision) else _require_id(decision)


def _require_id(id: Any) -> str:
    """Return an identity of the caller's that a log can keep and a sentence can name."""
    text = type(id) is str and 1 <= len(id) <= _LONGEST
    text = text and not any("\ud800" <= letter <= "\udfff" for letter in id)
    shown = ascii(id)[:_LONGEST] if type(id) is str else id
    require("Learner", "id", f"of 1 to {_LONGEST} characters, a string", text, shown)
    return str(id)


def labels_of(graph: Graph) -> list[str]:
    """Return the names of a graph's nodes, or their numbers."""
    names = range(graph.n_nodes) if graph.labels is None else graph.labels.tolist()
    return [str(name) for name in names]


def _write(path: Path, head: Mapping[str, Any], state: bytes) -> None:
    def write(file: Path) -> None:
        file.chmod(0o600)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("about.json", json.dumps(head, default=bytes.hex))
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
    if head["format"] < _SAVED:
        made_with = head.get("made_with") or _read_terms(head)
        head = {"charges": [], "old_names": True, **head, "made_with": made_with}
    made_with = head["made_with"]
    key = made_with["key"]
    return {**head, "made_with": {**made_with, "key": key and bytes.fromhex(key)}}, state


def _read_terms(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a learner of version 0.2 was made with."""
    config = read_config(head["terms"])
    after = config.report_after
    return {
        "options": head["options"],
        "budget": {each.window: each.epsilon for each in config.allowances},
        "baseline": config.baseline if head["options"] else None,
        "grace": config.grace / 1000,
        "retention": config.retention / 1000,
        "max_open": config.max_open,
        "default": config.default,
        "report_after": None if after is None else after / 1000,
        "seed": head["seed"],
        "key": head["secret"],
    }
