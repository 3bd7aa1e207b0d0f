"""Several processes on one database: each experiment has one owner, which the others ask.

When an owner is gone, the next request, or the next second, finds another one that goes on from the log.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial

from starlette.types import Scope

from tacit.core.decider import Decider
from tacit.service.experiments import ExperimentManager
from tacit.service.forwarding import (
    MISDIRECTED,
    PATIENCE,
    OwnerError,
    Parts,
    Peers,
    UnansweredError,
    chain,
)
from tacit.service.logs import write_log
from tacit.service.messages import ExperimentRequest
from tacit.serving.core import RefusedError
from tacit.serving.experiment import Experiment
from tacit.serving.storage import NotOwnedError, StoreError
from tacit.serving.storage.postgres import PostgresStore, Server


class SharedManager(ExperimentManager):
    """The experiments that this process owns, among all of a database; others reach it at `address`."""

    store: PostgresStore

    def __init__(self, store: PostgresStore, secret: bytes, *, address: str) -> None:
        self.peers = Peers(address, store.secret)
        super().__init__(store, secret)
        self._owners: dict[str, Server] = {}
        self._named: tuple[float, frozenset[str]] = (float("-inf"), frozenset())
        self._refused: set[str] = set()
        self._warm: set[str] = set()
        self._taking: dict[str, asyncio.Task[bool]] = {}
        store.announce(self.peers.address)

    def names(self) -> list[str]:
        """Return the experiments of the service, those of other processes included."""
        return self.store.names()

    def create(self, request: ExperimentRequest, decider: Decider | None = None) -> Experiment:
        """Make a new experiment, or say what is wrong with its description."""
        taken = RefusedError("conflict", f"{request.name}: expected a new name, got one in use")
        if self.store.load(request.name) is not None:
            raise taken
        try:
            return super().create(request, decider)
        except StoreError:
            # Another process may have made one of this name in the same moment.
            if self.store.load(request.name) is None or self.store.is_owner(request.name):
                raise
            raise taken from None

    def start(self) -> None:
        """Listen to the other processes, and close decisions by the clock."""
        super().start()
        self.peers.start()

    async def stop(self) -> None:
        """Finish what was accepted, and leave the experiments to others."""
        await self.peers.stop()
        for task in list(self._taking.values()):
            task.cancel()
        await super().stop()

    def take_over_orphans(self) -> None:
        """Take over what nobody owns, as soon as it can be continued here."""
        for name in self.store.orphans():
            self._take_over(name)

    def _take_over(self, name: str) -> asyncio.Task[bool]:
        """Begin to take an experiment; all who wait for it wait for the same."""
        task = self._taking.get(name)
        if task is None:
            task = self._taking[name] = asyncio.create_task(self._warm_up_and_take(name))
            task.add_done_callback(partial(self._end_taking, name))
        return task

    async def _warm_up_and_take(self, name: str) -> bool:
        if name not in self._warm and (found := self.read(name)) is not None:
            await self.warm_ups.run(found)
            self._warm.add(name)
        return self.owns(name) or self.take(name)

    def _end_taking(self, name: str, task: asyncio.Task[bool]) -> None:
        del self._taking[name]
        error = None if task.cancelled() else task.exception()
        # One that cannot be continued here must not keep the others from it.
        if isinstance(error, ValueError) and name not in self._refused:
            self._refused.add(name)
            write_log("refused", detail=str(error))

    def owns(self, name: str) -> bool:
        """Return whether this process owns an experiment, also after its connection was lost."""
        experiment = self.experiments.get(name)
        if experiment is not None and not self.store.is_owner(name):
            try:
                experiment.reload()
            except NotOwnedError:
                del self.experiments[name]
                return False
        return experiment is not None

    def _exists(self, name: str) -> bool:
        read_at, names = self._named
        if name not in names and time.monotonic() - read_at > 1.0:
            self._named = time.monotonic(), frozenset(self.store.names())
        return name in self._named[1]

    async def ask_owner(self, name: str, scope: Scope, body: bytes) -> Parts | None:
        """Return what the owner of an experiment answers; None if it is to be answered here."""
        until, pause = time.monotonic() + PATIENCE, 0.02
        while True:
            if self.owns(name) or not self._exists(name):
                return None
            owner = self._owners.get(name) or self.store.owner(name)
            if owner is not None and owner.id != self.store.server:
                self._owners[name] = owner
                try:
                    parts = self.peers.ask(owner.address, scope, body)
                    first = await anext(parts)
                    if first.status != MISDIRECTED:
                        return chain(first, parts)
                except UnansweredError:
                    raise
                except OwnerError:
                    pass
            self._owners.pop(name, None)
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    if await asyncio.shield(self._take_over(name)):
                        return None
            except TimeoutError:
                raise OwnerError from None
            await asyncio.sleep(pause)
            pause = min(0.5, 2 * pause)

    async def ask_all(self, scope: Scope, body: bytes) -> list[bytes]:
        """Return what all other processes answer."""

        async def ask(address: str) -> tuple[int, bytes]:
            parts = [part async for part in self.peers.ask(address, scope, body)]
            return parts[0].status, b"".join(part.body for part in parts)

        others = [each for each in self.store.servers() if each.id != self.store.server]
        answers = await asyncio.gather(*(ask(each.address) for each in others))
        return [body for status, body in answers if status == 200]
