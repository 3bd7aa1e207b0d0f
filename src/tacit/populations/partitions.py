"""Populations in pieces: contiguous ranges of agents that send each other what crosses their borders.

A run goes in steps. In step t every piece finishes what came before with what it was sent, begins round t
and says what is for others; negative steps come before the first round, in which pieces get to know each
other. A piece draws by position (round, agent, purpose), as one process does, so that a step that is done
again draws the same noise for the same data. What all of them must know is added up in the middle: whole
numbers in any order, real ones agent after agent, so that the sums are those of one process to the bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.arrays import leaves, read_npz, write_npz
from tacit.core.files import write_atomically

Arrays = dict[str, NDArray[Any]]
#: A function that others can import, and its arguments: it makes a piece where the piece is to live.
Maker = tuple[Callable[..., "Piece"], tuple[Any, ...]]
#: ``fold("name", value)`` hands `value` from piece to piece, in order, and returns what came of it.
Fold = Callable[[str, Any], Any]


class Answer(NamedTuple):
    """What a piece says after a step."""

    finished: Any
    """Of what it finished, for the middle."""
    begun: Any
    """Of what it began, for the middle."""
    mail: Sequence[Any]
    """For each piece, None where there is nothing to say."""


class Remembering(ABC):
    """Something that can be broken off between two rounds and go on elsewhere."""

    @abstractmethod
    def memory(self) -> Arrays:
        """Return, by name, the very arrays that later rounds depend on and that change."""

    def recall(self, memory: Mapping[str, NDArray[Any]]) -> None:
        """Take what `memory` returned elsewhere."""
        for name, array in self.memory().items():
            array[...] = memory[name]


class Piece(Remembering):
    """Some agents of a population, where they live."""

    def __init__(self, horizon: int, n_pieces: int) -> None:
        self._horizon, self.n_pieces = horizon, n_pieces
        self.reset()

    def reset(self) -> None:
        """Be as it was made: at the beginning, before pieces have met."""
        self._at: int | None = None
        self._answer: Answer | None = None
        self.start()

    def step(
        self,
        t: int,
        news: Any,
        mail: Sequence[Any],
        *,
        save: str | None = None,
        load: str | None = None,
    ) -> Answer:
        """Finish what was begun, and begin step t; asked again, say the same again.

        Parameters
        ----------
        t : int
        news : anything
            What the middle made of the latest answers.
        mail : sequence
            What each piece sent here, in its latest answer.
        save : str, optional
            A file that receives what must be remembered before step t begins.
        load : str, optional
            Such a file, of a run that was broken off there: it takes the place of all rounds before.
        """
        if self._answer is not None and self._at == t:
            return self._answer
        self._answer = None
        finished = None if self._at is None else self.finish(self._at, news, mail)
        if load is not None:
            self.recall(load_arrays(load))
        if save is not None:
            save_arrays(save, self.memory())
        begun, letters = self.begin(t) if t < self._horizon else (None, self.no_mail)
        self._at, self._answer = t, Answer(finished, begun, letters)
        return self._answer

    @property
    def no_mail(self) -> list[Any]:
        """Nothing for anybody."""
        return [None] * self.n_pieces

    @abstractmethod
    def start(self) -> None:
        """Make the state before the first round."""

    @abstractmethod
    def begin(self, t: int) -> tuple[Any, Sequence[Any]]:
        """Begin step t; return what is for the middle and what for each piece."""

    @abstractmethod
    def finish(self, t: int, news: Any, mail: Sequence[Any]) -> Any:
        """Finish step t with what came; return what is for the middle."""

    @abstractmethod
    def recorded(self) -> tuple[Any, int]:
        """Return what was recorded, for the middle, and the draws of noise."""


class Population(Remembering):
    """The middle of a run in pieces: it adds up, and keeps the trace."""

    bounds: NDArray[np.int64]
    """Shape (pieces + 1,): piece i has the agents bounds[i] to bounds[i + 1] - 1."""
    first: int
    """The number of the first step, at most 0."""
    horizon: int
    trace: Any

    @abstractmethod
    def maker(self, i: int) -> Maker:
        """Return what makes piece i."""

    @abstractmethod
    def begun(self, t: int, said: Sequence[Any], fold: Fold) -> Any:
        """Take what pieces said of step t that began; return the news for all of them."""

    @abstractmethod
    def finished(self, t: int, said: Sequence[Any], fold: Fold) -> None:
        """Take what pieces said of round t that they finished."""

    @abstractmethod
    def ended(self, recorded: Sequence[Any], draws: Sequence[int]) -> tuple[Any, int]:
        """Return the trace and the draws of noise, given what every piece recorded and drew."""


@dataclass
class Border:
    """Which of a piece's values others need, and which of theirs it needs.

    Parameters
    ----------
    bounds : array of int, shape (pieces + 1,)
    me : int
        The number of this piece.
    ghosts : array of int
        The nodes of others that it needs, increasing.
    """

    bounds: NDArray[np.int64]
    me: int
    ghosts: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.cuts = np.searchsorted(self.ghosts, self.bounds)
        self.wanted: list[NDArray[np.int64] | None] = [None] * (self.bounds.size - 1)

    @property
    def here(self) -> int:
        """Number of nodes of this piece."""
        return int(self.bounds[self.me + 1] - self.bounds[self.me])

    def wants(self) -> list[NDArray[np.int64] | None]:
        """Return which nodes are needed of every piece."""
        return [
            self.ghosts[a:b] if b > a else None
            for a, b in zip(self.cuts[:-1], self.cuts[1:], strict=True)
        ]

    def learn(self, wants: Sequence[NDArray[np.int64] | None]) -> None:
        """Take what every piece needs of this one."""
        mine = self.bounds[self.me]
        self.wanted = [None if each is None else each - mine for each in wants]

    def outgoing(self, values: NDArray[Any]) -> list[NDArray[Any] | None]:
        """Return the rows of `values` that every piece needs."""
        return [None if each is None else values[each] for each in self.wanted]

    def incoming(self, mail: Sequence[NDArray[Any] | None], values: NDArray[Any]) -> None:
        """Write what came to the rows of the ghosts."""
        for i, rows in enumerate(mail):
            if rows is not None:
                values[self.here + self.cuts[i] : self.here + self.cuts[i + 1]] = rows


def arrays_of(fixed: Container[str] = (), **parts: Any) -> Arrays:
    """Return the arrays of some ``NamedTuple`` by name, but for the `fixed` ones."""
    return {
        name: array
        for part, tree in parts.items()
        for name, array in leaves(tree, part)
        if name.rpartition(".")[2] not in fixed
    }


def bounds_of(n_agents: int, n_pieces: int) -> NDArray[np.int64]:
    """Return where pieces of nearly equal numbers of agents begin, and the end.

    Examples
    --------
    >>> bounds_of(10, 3)
    array([ 0,  3,  6, 10])
    """
    return np.arange(n_pieces + 1, dtype=np.int64) * n_agents // n_pieces


def save_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name, whole or not at all."""

    def write(file: Path) -> None:
        with file.open("wb") as handle:
            write_npz(handle, arrays)

    write_atomically(Path(path), write, mode=0o600)


def load_arrays(path: str | Path) -> Arrays:
    """Return arrays by name."""
    return read_npz(path)
