"""Actors: they hold the partitions of a population, which work in step and send each other messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tacit.populations.partitions import Maker, Partition

#: What partitions send each other, by the numbers of sender and receiver.
Messages = dict[tuple[int, int], Any]
Files = Sequence[str] | None
#: The name of a method of an actor, and its arguments.
Order = tuple[Any, ...]


class LostError(Exception):
    """A partition was lost with the process or the machine it was on."""


class Actor:
    """Holds some partitions where they live, by their numbers, and does what it is ordered."""

    def __init__(self, makers: Mapping[int, Maker] | None = None) -> None:
        self._makers = dict(makers or {})
        self._partitions: dict[int, Partition] = {}
        self._messages: Messages = {}

    def __call__(self, order: str, *arguments: Any) -> Any:
        """Carry out an order."""
        return getattr(self, order)(*arguments)

    def reset(self, makers: Mapping[int, Maker] | None = None) -> None:
        """Let the partitions begin again; make those that are not made yet."""
        self._messages = {}
        self._makers.update(makers or {})
        for partition in self._partitions.values():
            partition.reset()
        while self._makers:
            i, make = self._makers.popitem()
            self._partitions[i] = make()
        self._partitions = dict(sorted(self._partitions.items()))

    def step(
        self, t: int, shared: Any, save: Files, load: Files, messages: Messages, count: int
    ) -> tuple[dict[int, tuple[Any, Any]], Messages]:
        """Let the partitions do step t; return their reports, and what they send elsewhere."""
        self._messages |= messages
        reports: dict[int, tuple[Any, Any]] = {}
        sent: Messages = {}
        for i, partition in self._partitions.items():
            received = [self._messages.get((j, i)) for j in range(count)]
            files = {"save": save[i] if save else None, "load": load[i] if load else None}
            report = partition.step(t, shared, received, **files)
            reports[i] = report.finished, report.begun
            sent |= {(i, j): each for j, each in enumerate(report.messages) if each is not None}
        self._messages = {way: each for way, each in sent.items() if way[1] in self._partitions}
        return reports, {way: each for way, each in sent.items() if way not in self._messages}

    def call(self, i: int, method: str, *arguments: Any) -> Any:
        """Return what a method of one partition returns."""
        return getattr(self._partitions[i], method)(*arguments)


class ActorGroup(ABC):
    """All actors of a population: actor w holds the partitions ``held[w]``."""

    def __init__(self, makers: Sequence[Maker], n_actors: int) -> None:
        cuts = [w * len(makers) // n_actors for w in range(n_actors + 1)]
        self.held = [range(a, b) for a, b in pairwise(cuts)]
        self._count = len(makers)
        self._messages: list[Messages] = [{} for _ in self.held]

    def step(
        self, t: int, shared: Any, *, save: Files = None, load: Files = None
    ) -> tuple[list[Any], list[Any]]:
        """Let every partition do step t; return what they say of what they finished and began.

        `shared` is for every partition, `save` and `load` have a file for each. Raises `LostError` if a
        partition is gone; `restart` brings it back as it was made.
        """
        shared, count = self._share(shared), self._count
        answers = self._order_all(
            [("step", t, shared, save, load, messages, count) for messages in self._messages]
        )
        reports = {i: each for answer, _ in answers for i, each in answer.items()}
        self._messages = [
            {way: each for _, sent in answers for way, each in sent.items() if way[1] in held}
            for held in self.held
        ]
        return [reports[i][0] for i in range(count)], [reports[i][1] for i in range(count)]

    def reduce(self, method: str, value: Any) -> Any:
        """Call ``value = partition.method(value)`` on every partition in order; return the last value."""
        for w, held in enumerate(self.held):
            for i in held:
                value = self._order(w, ("call", i, method, value))
        return value

    def ask(self, method: str) -> list[Any]:
        """Call a method without arguments on every partition."""
        return [
            self._order(w, ("call", i, method)) for w, held in enumerate(self.held) for i in held
        ]

    @abstractmethod
    def restart(self) -> None:
        """Make the lost partitions again, and let all begin again."""

    @abstractmethod
    def close(self) -> None:
        """End the actors."""

    @abstractmethod
    def _order(self, w: int, order: Order) -> Any:
        """Return what actor w answers to an order."""

    @abstractmethod
    def _order_all(self, orders: Sequence[Order]) -> list[Any]:
        """Give each actor its order, all at once, and return their answers."""

    def _share(self, value: Any) -> Any:
        """Return a value as an order to every actor holds it."""
        return value


class LocalActors(ActorGroup):
    """One actor in this process."""

    def __init__(self, makers: Sequence[Maker]) -> None:
        super().__init__(makers, 1)
        self._actor = Actor(dict(enumerate(makers)))
        self._actor.reset()

    @property
    def partitions(self) -> list[Partition]:
        """All partitions, in order."""
        return list(self._actor._partitions.values())

    def restart(self) -> None:
        """Let all partitions begin again."""
        self._actor.reset()

    def close(self) -> None:
        """Let all partitions go."""
        self._actor = Actor()

    def _order(self, w: int, order: Order) -> Any:
        return self._actor(*order)

    def _order_all(self, orders: Sequence[Order]) -> list[Any]:
        return [self._actor(*order) for order in orders]
