"""Experiments at work in one process: made from a description, kept in a store, asked in batches.

Commands that arrive together share one commit. Nothing is answered before it is durable; a commit that
fails answers nobody in its batch with success, and the core is built anew from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from tacit.core.decider import Decider
from tacit.core.policy import require_secure
from tacit.core.tapes import secure_tape
from tacit.privacy import Guarantee
from tacit.service.description import (
    checked,
    declare_reward,
    description_of,
    named_by,
    request_of,
)
from tacit.service.logs import place_of, write_log
from tacit.service.messages import ExperimentRequest
from tacit.service.warm_up import Rehearsals
from tacit.serving.core import Core, OpenDecision, RefusedError
from tacit.serving.description import Description, read_description
from tacit.serving.experiment import Experiment, Ticket
from tacit.serving.storage import NotOwnedError, Store, StoreError
from tacit.serving.storage.pseudonyms import Pseudonyms

_TICK = 1.0
_PRUNE = 600.0
_LAST_PRUNE = 2.0
"""Seconds: how often what expired is looked for, and how long at the end."""


def clock() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Hosted:
    """One experiment.

    Parameters
    ----------
    request : ExperimentRequest
        What it was made from.
    description : Description
        The same.
    store : Store
    secret : bytes
        The key of pseudonyms, which lies outside the store.
    decider : Decider, optional
        What was made of the same description and has seen nothing; made here unless given.
    """

    def __init__(
        self,
        request: ExperimentRequest,
        description: Description,
        store: Store,
        secret: bytes,
        decider: Decider | None = None,
    ) -> None:
        self.request, self.name, self.store = request, request.name, store
        self.policy = description.policy
        require_secure(self.policy)
        self._description, self._first = description, decider
        self.pseudonyms = Pseudonyms(self.name, secret, old=description.old_names)
        self.experiment = Experiment(
            self._decider,
            lambda: secure_tape(choices=description.choices),
            description.config,
            options=description.options,
            people=description.people,
            aliases=self.pseudonyms.aliases,
            store=store,
            name=request.name,
        )
        lost = store.find_loss(request.name)
        if lost is not None:
            self.experiment.run(Core.begin_epoch, clock(), *lost)
        self._asked: list[tuple[Ticket, asyncio.Future[Any]]] = []

    def _decider(self) -> Decider:
        first, self._first = self._first, None
        return self._description.make_decider() if first is None else first

    @property
    def core(self) -> Core:
        """The core as it is now, to read."""
        return self.experiment.core

    def pseudonym(self, person: str | None) -> str | None:
        """Return what the store calls a person."""
        return None if person is None else self.pseudonyms.of(person)

    async def ask(self, command: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Carry out a command with whatever else is waiting; return its answer once durable."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._asked.append((self.experiment.submit(_at(command), *arguments, **keywords), answer))
        if len(self._asked) == 1:
            # The next turn of the loop: all requests that are readable now are in by then.
            loop.call_soon(self._answer)
        return await answer

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        self.experiment.serve(*(ticket for ticket, _ in asked))
        for ticket, answer in asked:
            if answer.done():
                continue
            try:
                outcome = ticket.outcome()
            except Exception as error:
                outcome = error
            if isinstance(outcome, Exception):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)

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
            seen = "contexts and rewards" if self.hides_contexts else "rewards"
            text += f" The service sees {seen} and keeps them until their decisions are forgotten."
        return text

    def guarantee(self) -> Guarantee:
        """Return what is protected in this experiment as it runs."""
        return self.core.guarantee()

    @property
    def hides_contexts(self) -> bool:
        """Whether contexts are protected like rewards: the unit is a whole visit."""
        return self.core.decider.guarantee(1).unit == "visit"


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
        try:
            self.experiments[name] = Hosted(*found, self.store, self.secret)
        except NotOwnedError:
            return False
        return True

    def described(self, name: str) -> tuple[ExperimentRequest, Description] | None:
        """Return what an experiment in the store was made from, by a service or by a learner."""
        kept = self.store.load(name)
        if kept is None:
            return None
        if "request" in kept.description:
            request = msgspec.convert(kept.description["request"], ExperimentRequest)
            return request, read_description(name, kept)
        try:
            description = read_description(name, kept)
            return request_of(description), description
        except ValueError as error:
            # Not everything that a learner can do goes over HTTP.
            write_log("skipped", experiment=name, detail=str(error))
            return None

    async def create_while_serving(self, request: ExperimentRequest) -> Hosted:
        """Make a new experiment, in a thread as far as it takes long: a model of many people does."""
        self._require_new(request.name)
        request = declare_reward(request)
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
        request = declare_reward(request)
        if decider is None:
            decider = checked(request)
        request = named_by(request, Pseudonyms(request.name, self.secret))
        choices = secrets.token_bytes(32)
        described = {"request": msgspec.to_builtins(request), "choices": choices.hex()}
        self.store.create(request.name, described)
        made = description_of(request, choices)
        hosted = Hosted(request, made, self.store, self.secret, decider)
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
                if self.store.has_expired(hosted.name, clock()):
                    hosted.experiment.checkpoint()
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
        write_log("fault", path="clock", detail=place_of(error))


def _at(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that takes the time when it is carried out."""
    return lambda core, *arguments, **keywords: command(core, clock(), *arguments, **keywords)


def decide_once(
    core: Core,
    now: int,
    id: str | None,
    query: Mapping[str, Any] | None,
    person: str | None,
    shown: bool,
) -> OpenDecision:
    """Decide, or return the decision that was made for the same request under this identity."""
    if id is None:
        return core.decide(now, secrets.token_hex(16), query, person=person, shown=shown)
    return core.decide_once(now, id, query, person, shown)
