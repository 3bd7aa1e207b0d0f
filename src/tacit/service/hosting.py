"""Experiments at work in one process: made from a description, kept in a store, asked in batches.

Commands that arrive together share one commit. Nothing is answered before it is durable; a commit that
fails answers nobody in its batch with success, and the core is built anew from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from tacit.deciding import Decider
from tacit.policy import require_secure
from tacit.privacy import Guarantee
from tacit.service.description import (
    checked,
    decider_of,
    named_by,
    policy_of,
    pseudonym,
    terms_of,
)
from tacit.service.messages import ExperimentRequest
from tacit.service.rehearsal import Rehearsals
from tacit.serving.core import Core, Open, RefusedError
from tacit.serving.experiment import Experiment
from tacit.serving.store import NotOwnedError, Store, StoreError
from tacit.tapes import secure_tape

__all__ = ["Host", "Hosted", "clock", "decide_once"]

_TICK = 1.0
_PRUNE = 600.0
_LAST_PRUNE = 2.0
"""Seconds: how often what expired is looked for, and how long at the end."""


def clock() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class _Waiting(NamedTuple):
    command: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    answer: asyncio.Future[Any]


class Hosted:
    """One experiment.

    Parameters
    ----------
    request : ExperimentRequest
        What it was made from.
    choices : bytes
        The key of its choices, which is logged.
    store : Store
    secret : bytes
        The key of pseudonyms, which lies outside the store.
    decider : Decider, optional
        What was made of the same description and has seen nothing; made here unless given.
    """

    def __init__(
        self,
        request: ExperimentRequest,
        choices: bytes,
        store: Store,
        secret: bytes,
        decider: Decider | None = None,
    ) -> None:
        self.request, self.name, self.store = request, request.name, store
        self.policy = policy_of(request)
        require_secure(self.policy)
        self._secret, self._choices, self._first = secret, choices, decider
        terms, options = terms_of(request), list(request.options or ())
        self.experiment = Experiment(
            self._decider,
            lambda: secure_tape(choices=choices, log=4096),
            terms,
            options=options,
            people=request.people or (),
            store=store,
            name=request.name,
        )
        lost = store.lost(request.name)
        if lost is not None:
            self.experiment.run(Core.begin_epoch, clock(), *lost)
        self._queue: list[_Waiting] = []

    def _decider(self) -> Decider:
        first, self._first = self._first, None
        return decider_of(self.policy, self.request) if first is None else first

    @property
    def core(self) -> Core:
        """The core as it is now, to read."""
        return self.experiment.core

    def pseudonym(self, person: str | None) -> str | None:
        """Return what the store calls a person."""
        return None if person is None else pseudonym(self.name, person, self._secret)

    async def ask(self, command: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Carry out a command with whatever else is waiting; return its answer once durable."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._queue.append(_Waiting(command, arguments, keywords, answer))
        if len(self._queue) == 1:
            # The next turn of the loop: all requests that are readable now are in by then.
            loop.call_soon(self._commit)
        return await answer

    def _commit(self) -> None:
        batch, self._queue = self._queue, []
        now = clock()
        try:
            answers = self.experiment.run_many(
                [(each.command, (now, *each.arguments), each.keywords) for each in batch]
            )
        except Exception as error:
            for each in batch:
                if not each.answer.done():
                    each.answer.set_exception(error)
            return
        for each, answer in zip(batch, answers, strict=True):
            if each.answer.done():
                continue
            if isinstance(answer, RefusedError):
                each.answer.set_exception(answer)
            else:
                each.answer.set_result(answer)

    async def tick(self) -> None:
        """Close what is due."""
        await self.ask(Core.tick)

    def sentence(self) -> str:
        """Return what is protected here, and what is not, in words."""
        text = self.guarantee().sentence()
        core = self.core
        if core.decider.trust == "local":
            text += (
                " Clients of this project report at a fixed time whatever the reward is; where leaving "
                "is itself the outcome, silence tells."
            )
        else:
            text += " The service sees rewards until their decisions are forgotten."
        for since, until, _ in core.debts:
            span = " to ".join(
                time.strftime("%Y-%m-%d %H:%M", time.gmtime(t / 1000)) for t in (since, until)
            )
            text += (
                f" An old copy was restored: what happened from {span} (UTC) is counted as spent."
            )
        return text

    def guarantee(self) -> Guarantee:
        """Return what is protected in this experiment as it runs."""
        core = self.core
        return core.decider.guarantee(max(core.rounds, core.decider.horizon or 1))


class Host:
    """All experiments of a store.

    Parameters
    ----------
    store : Store
    secret : bytes
        The key of pseudonyms.
    """

    def __init__(self, store: Store, secret: bytes) -> None:
        self.store, self.secret = store, secret
        self.experiments: dict[str, Hosted] = {}
        self.rehearsals = Rehearsals()
        self._building = asyncio.Lock()
        for name in store.names():
            self.take(name)
        self._ticking: asyncio.Task[None] | None = None

    def names(self) -> list[str]:
        """Return the experiments of the service, those of other processes included."""
        return list(self.experiments)

    def take(self, name: str) -> bool:
        """Own an experiment that is in the store; return False if another process does."""
        found = self.described(name)
        if found is None:
            return False
        request, choices = found
        try:
            self.experiments[name] = Hosted(request, choices, self.store, self.secret)
        except NotOwnedError:
            return False
        return True

    def described(self, name: str) -> tuple[ExperimentRequest, bytes] | None:
        """Return what an experiment in the store was made from, and the key of its choices."""
        kept = self.store.load(name)
        if kept is None or "request" not in kept.description:
            return None
        request = msgspec.convert(kept.description["request"], ExperimentRequest)
        return request, bytes.fromhex(kept.description["choices"])

    async def create_while_serving(self, request: ExperimentRequest) -> Hosted:
        """Make a new experiment, in a thread as far as it takes long: a model of many people does."""
        self._require_new(request.name)
        await self.rehearsals.of(request)
        async with self._building:
            decider = await asyncio.to_thread(checked, request)
            return self.create(request, decider)

    def create(self, request: ExperimentRequest, decider: Decider | None = None) -> Hosted:
        """Make a new experiment, or say what is wrong with its description.

        Parameters
        ----------
        request : ExperimentRequest
        decider : Decider, optional
            What `checked` made of it; it is checked now unless given.
        """
        self._require_new(request.name)
        if decider is None:
            decider = checked(request)
        request = named_by(request, self.secret)
        choices = secrets.token_bytes(32)
        described = {"request": msgspec.to_builtins(request), "choices": choices.hex()}
        self.store.create(request.name, described)
        hosted = Hosted(request, choices, self.store, self.secret, decider)
        self.experiments[request.name] = hosted
        return hosted

    def _require_new(self, name: str) -> None:
        if name in self.experiments:
            raise RefusedError("conflict", f"{name}: expected a new name, got one in use")

    def start(self) -> None:
        """Begin to close decisions by the clock."""
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Finish what was accepted, delete what expired and keep snapshots."""
        if self._ticking is not None:
            self._ticking.cancel()
        # What was answered is durable already; a store that went away cannot keep this from ending.
        with contextlib.suppress(StoreError):
            for hosted in self.experiments.values():
                await hosted.tick()
            await self.prune(_LAST_PRUNE)
            for hosted in self.experiments.values():
                with _going_on():
                    hosted.experiment.close()
        self.store.close()

    async def prune(self, seconds: float = math.inf) -> bool:
        """Delete what is past its retention; return whether the time was enough."""
        until = time.monotonic() + seconds
        left = await self._pruned(await self._covered(until), until)
        return not left and time.monotonic() < until

    async def _covered(self, until: float) -> list[Hosted]:
        """Return the experiments of which something expired, each with a snapshot that covers it."""
        covered = []
        for hosted in list(self.experiments.values()):
            if time.monotonic() >= until:
                break
            with _going_on():
                if self.store.expired(hosted.name, clock()):
                    hosted.experiment.cover()
                    covered.append(hosted)
            await asyncio.sleep(0)
        return covered

    async def _pruned(self, waiting: list[Hosted], until: float) -> list[Hosted]:
        """Delete what expired, a bit at a time; return what is left to do when the time is over."""
        left = list(waiting)
        while left and time.monotonic() < until:
            if not left[0].experiment.prune_some(clock()):
                left.pop(0)
            # Others decide in between.
            await asyncio.sleep(0)
        return left

    async def _tick(self) -> None:
        covered, expired = time.monotonic(), list[Hosted]()
        while True:
            await asyncio.sleep(_TICK)
            with _going_on():
                self.look_after()
            for hosted in list(self.experiments.values()):
                # One that fails must not keep the others from closing what is due.
                with _going_on():
                    if hosted.core.due(clock()):
                        await hosted.tick()
            with _going_on():
                if time.monotonic() - covered >= _PRUNE:
                    covered, expired = time.monotonic(), await self._covered(math.inf)
                expired = await self._pruned(expired, time.monotonic() + _TICK / 4)

    def look_after(self) -> None:
        """Do what is to be done every second beside closing what is due."""


@contextlib.contextmanager
def _going_on() -> Iterator[None]:
    """Let a failure be one line in the log: the next turn tries again."""
    try:
        yield
    except StoreError:
        # A store that went away may come back; whoever asks for something is told.
        pass
    except Exception as error:
        line = {"event": "fault", "path": "clock", "detail": type(error).__name__}
        print(json.dumps(line), file=sys.stderr, flush=True)


def decide_once(
    core: Core,
    now: int,
    id: str | None,
    query: Mapping[str, Any] | None,
    person: str | None,
    shown: bool,
) -> Open:
    """Decide, or return the decision that was made for the same request under this identity."""
    if id is None:
        return core.decide(now, secrets.token_hex(16), query, person=person, shown=shown)
    return core.decide_once(now, id, query, person, shown)
