"""Partitions of a population: consecutive agents, which send each other what crosses their borders.

A run goes in steps. In step t every partition finishes what came before with the messages that it got, begins
round t, and says what is for others. Steps below 0 come before the first round: partitions learn who needs
whom. A partition draws by position (round, agent, purpose), as one process does, so that a step that is done
again draws the same noise for the same data. What all must know the population adds up: whole numbers in any
order, real ones agent after agent, so that the sums are those of one process to the bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.core.arrays import leaves, read_npz, write_npz
from tacit.core.files import write_atomically
from tacit.graphs import LazyGraph

Arrays = dict[str, NDArray[Any]]
#: Makes a partition where it is to live; can be pickled.
Maker = Callable[[], "Partition"]
#: ``reduce("name", value)`` calls a method of each partition, in order, on what the one before it returned.
Reduce = Callable[[str, Any], Any]


class Run(NamedTuple):
    """Which repetition is played, and what is kept of it."""

    seed: int
    repetition: int
    horizon: int
    checkpoints: NDArray[np.int64]
    record: bool


class StepReport(NamedTuple):
    """What a partition says after a step."""

    finished: Any
    """Of what it finished, for the population."""
    begun: Any
    """Of what it began, for the population."""
    messages: Sequence[Any]
    """For each partition, None where there is nothing to say."""


class Checkpointable(ABC):
    """Something that can be broken off between two rounds and go on elsewhere."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return, by name, the very arrays that later rounds depend on and that change."""

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take what `arrays` returned elsewhere."""
        for name, array in self.arrays().items():
            array[...] = arrays[name]


class Partition(Checkpointable):
    """Some agents of a population, where they live."""

    def __init__(self, horizon: int, count: int) -> None:
        self._horizon, self.count = horizon, count
        self.reset()

    @classmethod
    @abstractmethod
    def cut(
        cls, policy: Any, environment: Any, bounds: NDArray[np.int64], i: int, run: Run
    ) -> Callable[[], Self]:
        """Cut partition i out, and return what makes it elsewhere."""

    @classmethod
    def make(
        cls, policy: Any, environment: Any, bounds: NDArray[np.int64], i: int, run: Run
    ) -> Self:
        """Return partition i, cut out here."""
        return cls.cut(policy, environment, bounds, i, run)()

    def reset(self) -> None:
        """Go back to the beginning, before partitions have met."""
        self._at: int | None = None
        self._report: StepReport | None = None
        self.start()

    def step(
        self,
        t: int,
        shared: Any,
        messages: Sequence[Any],
        *,
        save: str | None = None,
        load: str | None = None,
    ) -> StepReport:
        """Finish what was begun, and begin step t; asked again, report the same again.

        `shared` is what the population made of the latest reports, `messages` what each partition sent here.
        `save` names a file that receives the arrays before step t begins, `load` one of a run that was
        broken off there.
        """
        if self._report is not None and self._at == t:
            return self._report
        self._report = None
        finished = None if self._at is None else self.finish(self._at, shared, messages)
        if load is not None:
            self.restore(read_npz(load))
        if save is not None:
            save_arrays(save, self.arrays())
        begun, sent = self.begin(t) if t < self._horizon else (None, self.no_messages)
        self._at, self._report = t, StepReport(finished, begun, sent)
        return self._report

    @property
    def no_messages(self) -> list[Any]:
        """Nothing for anybody."""
        return [None] * self.count

    @abstractmethod
    def start(self) -> None:
        """Make the state before the first round."""

    @abstractmethod
    def begin(self, t: int) -> tuple[Any, Sequence[Any]]:
        """Begin step t; return what is for the population and what for each partition."""

    @abstractmethod
    def finish(self, t: int, shared: Any, messages: Sequence[Any]) -> Any:
        """Finish step t with what came; return what is for the population."""

    @abstractmethod
    def recorded(self) -> tuple[Any, int]:
        """Return what was recorded, for the population, and the draws of noise."""


class Population(Checkpointable):
    """A run in partitions: it adds up what they report, and keeps the trace.

    Partition i has the agents bounds[i] to bounds[i + 1] - 1.
    """

    kind: ClassVar[type[Partition]]
    first: int
    """The number of the first step, at most 0."""

    def __init__(self, policy: Any, environment: Any, bounds: NDArray[np.int64], run: Run) -> None:
        self.bounds, self.horizon = bounds, run.horizon
        self._policy, self._environment, self._run = policy, environment, run

    def maker(self, i: int) -> Maker:
        """Return what makes partition i: all of it there if the network is lazy, else of what is cut here."""
        about = (self._policy, self._environment, self.bounds, i, self._run)
        lazy = isinstance(self._environment.network, LazyGraph)
        return partial(self.kind.make, *about) if lazy else self.kind.cut(*about)

    @abstractmethod
    def after_begin(self, t: int, reports: Sequence[Any], reduce: Reduce) -> Any:
        """Take what partitions say of step t that began; return what to share with all of them."""

    @abstractmethod
    def after_finish(self, t: int, reports: Sequence[Any], reduce: Reduce) -> None:
        """Take what partitions say of round t that they finished."""

    @abstractmethod
    def collect(self, recorded: Sequence[Any], draws: Sequence[int]) -> tuple[Any, int]:
        """Return the trace and the draws of noise, given what every partition recorded and drew."""


@dataclass
class Border:
    """Which of a partition's values others need, and which of theirs it needs."""

    bounds: NDArray[np.int64]
    me: int
    """The number of this partition."""
    halo: NDArray[np.int64]
    """The nodes of others that it needs, increasing."""

    def __post_init__(self) -> None:
        self.cuts = np.searchsorted(self.halo, self.bounds)
        self.wanted: list[NDArray[np.int64] | None] = [None] * (self.bounds.size - 1)

    @property
    def here(self) -> int:
        """Number of nodes of this partition."""
        return int(self.bounds[self.me + 1] - self.bounds[self.me])

    def ask(self) -> list[NDArray[np.int64] | None]:
        """Return which nodes are needed of every partition."""
        cuts = self.cuts
        return [self.halo[a:b] if b > a else None for a, b in pairwise(cuts)]

    def take_requests(self, requests: Sequence[NDArray[np.int64] | None]) -> None:
        """Remember what every partition needs of this one."""
        mine = self.bounds[self.me]
        self.wanted = [None if each is None else each - mine for each in requests]

    def send(self, values: NDArray[Any]) -> list[NDArray[Any] | None]:
        """Return the rows of `values` that every partition needs."""
        return [None if each is None else values[each] for each in self.wanted]

    def receive(self, messages: Sequence[NDArray[Any] | None], values: NDArray[Any]) -> None:
        """Write what came to the rows of the halo."""
        for i, rows in enumerate(messages):
            if rows is not None:
                values[self.here + self.cuts[i] : self.here + self.cuts[i + 1]] = rows


def name_arrays(fixed: Container[str] = (), **parts: Any) -> Arrays:
    """Return the arrays of some ``NamedTuple`` by name, but for the `fixed` ones."""
    return {
        name: array
        for part, tree in parts.items()
        for name, array in leaves(tree, part)
        if name.rpartition(".")[2] not in fixed
    }


def split_agents(n_agents: int, count: int) -> NDArray[np.int64]:
    """Return where partitions of nearly equal numbers of agents begin, and the end.

    Examples
    --------
    >>> split_agents(10, 3)
    array([ 0,  3,  6, 10])
    """
    return np.arange(count + 1, dtype=np.int64) * n_agents // count


def save_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name, whole or not at all."""

    def write(file: Path) -> None:
        with file.open("wb") as handle:
            write_npz(handle, arrays)

    write_atomically(Path(path), write, mode=0o600)
