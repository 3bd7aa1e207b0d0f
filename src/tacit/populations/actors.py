"""A crew: one actor for each piece of a population, that work in step and write to each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tacit.populations.partitions import Answer, Maker, Piece


class LostError(Exception):
    """A piece was lost with the process or the machine it was on."""


class Crew(ABC):
    """Pieces that live somewhere; what they send each other does not pass through the caller."""

    @abstractmethod
    def step(
        self, t: int, news: Any, *, save: Sequence[str] | None, load: Sequence[str] | None
    ) -> tuple[list[Any], list[Any]]:
        """Let every piece do step t; return what they say of what they finished and began.

        Parameters
        ----------
        t : int
        news : anything
            For every piece.
        save, load : sequence of str, optional
            A file for each piece.

        Raises
        ------
        LostError
            If a piece is gone; `mend` brings it back as it was made.
        """

    @abstractmethod
    def fold(self, method: str, value: Any) -> Any:
        """Call ``value = piece.method(value)`` on every piece in order, and return the last value."""

    @abstractmethod
    def ask(self, method: str) -> list[Any]:
        """Call a method without arguments on every piece."""

    @abstractmethod
    def mend(self) -> None:
        """Make the lost pieces again, and let all be as they were made."""

    @abstractmethod
    def close(self) -> None:
        """Let all pieces go."""


class CrewHere(Crew):
    """Pieces in this process, one after the other."""

    def __init__(self, makers: Sequence[Maker]) -> None:
        self._pieces = [made(maker) for maker in makers]
        self._mail: list[list[Any]] = [[None] * len(makers) for _ in makers]

    def step(
        self, t: int, news: Any, *, save: Sequence[str] | None, load: Sequence[str] | None
    ) -> tuple[list[Any], list[Any]]:
        """Let every piece do step t."""
        answers: list[Answer] = []
        for i, piece in enumerate(self._pieces):
            kept, known = save[i] if save else None, load[i] if load else None
            answers.append(piece.step(t, news, self._mail[i], save=kept, load=known))
        self._mail = [[each.mail[i] for each in answers] for i in range(len(answers))]
        return [each.finished for each in answers], [each.begun for each in answers]

    def fold(self, method: str, value: Any) -> Any:
        """Call a method of every piece on what the one before it returned."""
        for piece in self._pieces:
            value = getattr(piece, method)(value)
        return value

    def ask(self, method: str) -> list[Any]:
        """Call a method of every piece."""
        return [getattr(piece, method)() for piece in self._pieces]

    def mend(self) -> None:
        """Let all pieces begin again."""
        for piece in self._pieces:
            piece.reset()

    def close(self) -> None:
        """Let all pieces go."""
        self._pieces, self._mail = [], []


class Host:
    """Some pieces of a crew in one process, which gets its orders as jobs."""

    def __init__(self) -> None:
        self._pieces: dict[int, Piece] = {}
        self._mail: dict[tuple[int, int], Any] = {}

    def __call__(self, order: str, *words: Any) -> Any:
        """Carry out an order."""
        return getattr(self, order)(*words)

    def make(self, makers: dict[int, Maker]) -> None:
        """Make pieces."""
        self._pieces = {i: made(maker) for i, maker in makers.items()}

    def reset(self) -> None:
        """Let the pieces begin again."""
        self._mail = {}
        for piece in self._pieces.values():
            piece.reset()

    def step(
        self,
        t: int,
        news: Any,
        save: Sequence[str] | None,
        load: Sequence[str] | None,
        mail: dict[tuple[int, int], Any],
        count: int,
    ) -> tuple[dict[int, tuple[Any, Any]], dict[tuple[int, int], Any]]:
        """Return what the pieces say, and what they send elsewhere."""
        self._mail |= mail
        said: dict[int, tuple[Any, Any]] = {}
        sent: dict[tuple[int, int], Any] = {}
        for i, piece in self._pieces.items():
            letters = [self._mail.get((j, i)) for j in range(count)]
            kept, known = save[i] if save else None, load[i] if load else None
            answer = piece.step(t, news, letters, save=kept, load=known)
            said[i] = answer.finished, answer.begun
            sent |= {(i, j): each for j, each in enumerate(answer.mail) if each is not None}
        self._mail = {way: each for way, each in sent.items() if way[1] in self._pieces}
        return said, {way: each for way, each in sent.items() if way[1] not in self._pieces}

    def call(self, i: int, method: str, *words: Any) -> Any:
        """Return what a method of one piece returns."""
        return getattr(self._pieces[i], method)(*words)


def made(maker: Maker) -> Piece:
    """Return the piece that `maker` makes."""
    function, arguments = maker
    return function(*arguments)
