"""What experiments call people, and the key of that, which lies beside a store and not in it."""

from __future__ import annotations

import hashlib
import os
import secrets
import unicodedata
from pathlib import Path
from typing import Any

from tacit.core.constraints import require
from tacit.core.database import StoreError
from tacit.serving.storage.experiments import Store


class Pseudonyms:
    """What an experiment calls its people: the store alone cannot be searched for a name.

    One name is one person, in whichever way its accents are encoded; in another experiment the same person
    has another pseudonym.

    Parameters
    ----------
    experiment : str
    key : bytes
        Lies outside the store.
    old : bool
        A learner of version 0.2 made pseudonyms here too, one for each encoding of a name.
    """

    def __init__(self, experiment: str, key: bytes, *, old: bool = False) -> None:
        self.experiment, self.key, self.old = experiment, key, old
        self.aliases: dict[str, tuple[str, ...]] = {}
        """By pseudonym: what version 0.2 called the same person; of those who were asked for."""

    def of(self, person: Any) -> str:
        """Return what the store calls a person."""
        name = str(person)
        pseudonym = self._hashed(f"{self.experiment}\0{same_name(name)}")
        if self.old:
            forms = (same_name(name), unicodedata.normalize("NFD", name), name)
            known = self.aliases.get(pseudonym, ())
            self.aliases[pseudonym] = tuple(dict.fromkeys((*known, *map(self._hashed, forms))))
        return pseudonym

    def at_start(self, person: Any) -> str:
        """Return what the store called a person when the experiment was made."""
        return self._hashed(str(person)) if self.old else self.of(person)

    def find(self, person: Any, people: Any) -> str | None:
        """Return the pseudonym of a person among `people`; None if it is not there."""
        pseudonym = self.of(person)
        names = (pseudonym, *self.aliases.get(pseudonym, ()))
        return next((name for name in names if name in people), None)

    def _hashed(self, name: str) -> str:
        written = name.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(written, key=self.key, digest_size=16).hexdigest()


def same_name(name: str) -> str:
    """Return what all ways to write a name have in common: letters with their accents in one."""
    return unicodedata.normalize("NFC", name)


def key_of(store: Store, given: bytes | None = None) -> bytes:
    """Return the key that a store's pseudonyms are made with; raise `StoreError` on another one.

    Parameters
    ----------
    store : Store
        It remembers a fingerprint of its key.
    given : bytes, optional
        The key. Unless given it lies beside the store, and is made for a store that knows nobody yet.
    """
    if given is None:
        assert store.beside is not None
        place = Path(f"{store.beside}.key")
        # In this order: another process makes the file before its fingerprint is known.
        if store.knows_people() and not place.exists():
            raise StoreError(
                f"{store.place}: expected the key of pseudonyms in {place} (or in "
                "TACIT_PSEUDONYM_KEY), found none; bring it back, because with another one everybody "
                "would be somebody new, whose budget is whole"
            )
        given = _key_in(place)
    store.require_key(given)
    return given


def _key_in(place: Path) -> bytes:
    """Return the 32 bytes in a file, which is made if it is missing."""
    try:
        handle = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        key = place.read_bytes()
        require("store", str(place), "of 32 bytes", len(key) == 32, len(key))
        return key
    key = secrets.token_bytes(32)
    with os.fdopen(handle, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key
