"""What every peer does: read messages with care, keep its state before it speaks, never repeat noise.

A step may draw noise for a private value. Before its messages are handed out, the state with its
counter and the messages themselves are on disk; a peer that starts again goes on from there under a
fresh key, and hands out the same bytes again rather than the same value with other noise.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from tacit.core.arrays import load, save
from tacit.core.constraints import require
from tacit.core.json_codec import dumps
from tacit.core.policy import AnyPolicy, require_secure
from tacit.core.tapes import Tape, secure_tape, seeded_tape

#: The number of a neighbour, and what to send to it.
Outgoing = tuple[int, bytes]
_LONGEST = 1 << 24
P = TypeVar("P", bound=AnyPolicy)


class Peer(ABC, Generic[P]):
    """One agent of a population.

    Parameters
    ----------
    policy : Policy
        The same for all peers.
    number : int
        Who this peer is, from 0.
    path : path, optional
        Where its state is kept. If there is one already, the peer goes on from it. Without a path a
        crash forgets the state, and starting over releases noise for old values anew.
    seed : int, optional
        Repeats a simulation. Without one, noise comes from the operating system.
    """

    kind: str
    """What its messages are marked with: a name and a version."""

    def __init__(
        self,
        policy: P,
        number: int,
        state: Any,
        *,
        path: str | Path | None = None,
        seed: int | None = None,
    ) -> None:
        require(self, "number", ">= 0", number >= 0, number)
        if seed is None:
            require_secure(policy)
        self.policy, self.number = policy, number
        self.round = 0
        """The round that the next step plays."""
        self.refused = 0
        """How many messages could not be read, or came from nobody this peer listens to."""
        self.outbox: list[Outgoing] = []
        """What the last step returned; after a restart, what must be sent again."""
        self._state = state
        self._tape: Tape = secure_tape() if seed is None else seeded_tape(seed)
        self._path = None if path is None else Path(path)
        if self._path is not None and self._path.exists():
            self._restore(self._path)

    def step(self, received: Iterable[bytes] = ()) -> list[Outgoing]:
        """Take in messages and return those to send; the state is kept before this returns."""
        for message in received:
            content = self._read(message)
            if content is None or not self._take(content):
                self.refused += 1
        self.outbox = self._advance()
        if self._path is not None:
            self._keep(self._path)
        return self.outbox

    @abstractmethod
    def _take(self, content: Mapping[str, Any]) -> bool:
        """Take one message in; return False if it makes no sense."""

    @abstractmethod
    def _advance(self) -> list[Outgoing]:
        """Do what this step does."""

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """Return what is not an array of the state, as JSON."""

    @abstractmethod
    def _recall(self, about: Mapping[str, Any]) -> None:
        """Take back what `_about` said."""

    def _write(self, **content: Any) -> bytes:
        return dumps({"kind": self.kind, "from": self.number, **content}).encode()

    def _read(self, message: bytes) -> Mapping[str, Any] | None:
        if len(message) > _LONGEST:
            return None
        try:
            content = json.loads(message)
        except (ValueError, RecursionError):
            return None
        marked = isinstance(content, dict) and content.get("kind") == self.kind
        return content if marked and isinstance(content.get("from"), int) else None

    def _keep(self, path: Path) -> None:
        outbox = [[to, message.decode()] for to, message in self.outbox]
        about = {
            "kind": self.kind,
            "policy": repr(self.policy),
            "number": self.number,
            "round": self.round,
            "outbox": outbox,
            **self._about(),
        }
        save(path, self._state, about)
        for place in (path, path.parent):  # a power cut must not bring an older state back
            handle = os.open(place, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _restore(self, path: Path) -> None:
        state, about = load(path, self._state)
        for name, mine in (
            ("kind", self.kind),
            ("policy", repr(self.policy)),
            ("number", self.number),
        ):
            fits = about.get(name) == mine
            require(self, name, f"the saved {about.get(name)} of {path}", fits, mine)
        self._state, self.round = state, int(about["round"])
        self.outbox = [(int(to), message.encode()) for to, message in about["outbox"]]
        self._recall(about)
