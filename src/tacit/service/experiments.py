"""Experiments at work in one process: made from a description, kept in a store, closed by the clock."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from tacit.core.decider import Decider
from tacit.core.policy import require_secure
from tacit.service.logs import describe_fault, write_log
from tacit.service.messages import ExperimentRequest
from tacit.service.warm_up import WarmUps
from tacit.serving.core import Core, RefusedError
from tacit.serving.description import Description, declare_reward, read_description, read_request
from tacit.serving.experiment import Experiment
from tacit.serving.storage import NotOwnedError, Store, StoreError
from tacit.serving.storage.pseudonyms import Pseudonyms

_TICK = 1.0
_PRUNE = 600.0
_LAST_PRUNE = 2.0
"""Seconds: how often what expired is looked for, and how long at the end."""


class ExperimentManager:
    """All experiments of a store; `secret` is the key of their pseudonyms."""

    def __init__(self, store: Store, secret: bytes) -> None:
        self.store, self.secret = store, secret
        self.experiments: dict[str, Experiment] = {}
        self.warm_ups = WarmUps()
        self._building = asyncio.Lock()
        for name in store.names():
            self.take(name)
        self._ticking: asyncio.Task[None] | None = None

    def names(self) -> list[str]:
        """Return the experiments of the service, those of other processes included."""
        return list(self.experiments)

    def take(self, name: str) -> bool:
        """Own an experiment that is in the store; return False if another process does."""
        description = self.read(name)
        if description is None:
            return False
        try:
            self.experiments[name] = Experiment(description, self.store, key=self.secret)
        except NotOwnedError:
            return False
        return True

    def read(self, name: str) -> Description | None:
        """Return what an experiment in the store was made from; None if it cannot be served."""
        kept = self.store.load(name)
        if kept is None:
            return None
        try:
            description = read_description(name, kept)
            description.require_served()
        except ValueError as error:
            # Not everything that a learner can do goes over HTTP.
            write_log("skipped", experiment=name, detail=str(error))
            return None
        require_secure(description.policy)
        return description

    async def create_while_serving(self, request: ExperimentRequest) -> Experiment:
        """Make a new experiment, in a thread as far as it takes long: a model of many people does."""
        self.require_new(request.name)
        wanted = _read(request)
        await self.warm_ups.run(wanted)
        async with self._building:
            decider = await asyncio.to_thread(wanted.check_served)
            return self.create(request, decider)

    def create(self, request: ExperimentRequest, decider: Decider | None = None) -> Experiment:
        """Make a new experiment, with the decider of its `check_served` if that was called before."""
        self.require_new(request.name)
        wanted = _read(request, secrets.token_bytes(32))
        if decider is None:
            decider = wanted.check_served()
        wanted = wanted.hide_people(Pseudonyms(wanted.name, self.secret))
        self.store.create(wanted.name, wanted.write())
        made = Experiment(wanted, self.store, key=self.secret, decider=decider)
        self.experiments[wanted.name] = made
        return made

    def require_new(self, name: str) -> None:
        """Refuse the name of an experiment that is there."""
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
            for each in self.experiments.values():
                await each.ask(Core.tick)
            await self.prune(_LAST_PRUNE)
            for each in self.experiments.values():
                with _log_failures():
                    each.close()
        self.store.close()

    async def prune(self, seconds: float = math.inf) -> bool:
        """Delete what is past its retention; return whether the time was enough."""
        until = time.monotonic() + seconds
        left = await self._prune_some(await self._cover(until), until)
        return not left and time.monotonic() < until

    async def _cover(self, until: float) -> list[Experiment]:
        """Return the experiments of which something expired, each with a snapshot that covers it."""
        covered = []
        for each in list(self.experiments.values()):
            if time.monotonic() >= until:
                break
            with _log_failures():
                if self.store.has_expired(each.name, each.clock()):
                    each.checkpoint()
                    covered.append(each)
            await asyncio.sleep(0)
        return covered

    async def _prune_some(self, waiting: list[Experiment], until: float) -> list[Experiment]:
        """Delete what expired, a bit at a time; return what is left to do when the time is over."""
        left = list(waiting)
        while left and time.monotonic() < until:
            if not left[0].prune_some():
                left.pop(0)
            # Others decide in between.
            await asyncio.sleep(0)
        return left

    async def _tick(self) -> None:
        covered, expired = time.monotonic(), list[Experiment]()
        while True:
            await asyncio.sleep(_TICK)
            with _log_failures():
                self.take_over_orphans()
            for each in list(self.experiments.values()):
                # One that fails must not keep the others from closing what is due.
                with _log_failures():
                    if each.core.is_due(each.clock()):
                        await each.ask(Core.tick)
            with _log_failures():
                if time.monotonic() - covered >= _PRUNE:
                    covered, expired = time.monotonic(), await self._cover(math.inf)
                expired = await self._prune_some(expired, time.monotonic() + _TICK / 4)

    def take_over_orphans(self) -> None:
        """Take over what no process owns, where several share a store."""


def _read(request: ExperimentRequest, choices: bytes = b"") -> Description:
    wanted: dict[str, Any] = msgspec.to_builtins(request)
    return read_request(declare_reward(wanted), choices)


@contextlib.contextmanager
def _log_failures() -> Iterator[None]:
    """Let a failure be one line in the log: the next turn tries again."""
    try:
        yield
    except StoreError:
        # A store that went away may come back; whoever asks for something is told.
        pass
    except Exception as error:
        write_log("fault", path="clock", detail=describe_fault(error))
