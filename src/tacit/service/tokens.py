"""Who may do what: tokens of 32 random bytes, of which only a SHA-256 is kept.

They lie in a small file beside the store, or in the database, so that the command line can add and revoke
one while the service runs; the service notices within a second.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tacit.core.constraints import require
from tacit.core.database import Schema, StoreError, connect_postgres
from tacit.core.files import write_atomically

SCOPES = ("decide", "report", "metrics", "admin")
_CHECK_EVERY = 1.0


@dataclass(frozen=True)
class Token:
    """What is known of a token: not the token itself."""

    name: str
    digest: str
    """SHA-256, in hexadecimal digits."""
    scopes: tuple[str, ...]
    origins: tuple[str, ...] = ()
    """Pages that may use it, such as ``https://shop.example``; any client if there are none."""
    created: int = 0
    """Seconds since 1970."""
    ended: Mapping[str, int] = field(default_factory=dict)
    """Sessions that were closed before their time: their digests, and when they would have ended."""

    def may(self, scope: str) -> bool:
        """Return whether it allows what `scope` says; an administrator may do everything."""
        return scope in self.scopes or "admin" in self.scopes


class Tokens:
    """The tokens of one store.

    Parameters
    ----------
    path : path
        A file that only its owner may read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._known: dict[str, Token] = {}
        self._read_at = -_CHECK_EVERY
        self._stamp: tuple[int, int] | None = None

    def find(self, secret: str) -> Token | None:
        """Return the token whose secret this is."""
        self.known()
        return self._known.get(digest_of(secret))

    def known(self) -> list[Token]:
        """Return what is known of every token, at most a second old."""
        if time.monotonic() - self._read_at >= _CHECK_EVERY:
            self._refresh()
        return list(self._known.values())

    def create(self, name: str, scopes: Sequence[str], origins: Sequence[str] = ()) -> str:
        """Make a token and return its secret, which is shown this once."""
        named = 0 < len(name) <= 100
        require("token", "name", "of 1 to 100 characters", named, name)
        unknown = next((scope for scope in scopes if scope not in SCOPES), None)
        require("token", "scope", f"one of {', '.join(SCOPES)}", unknown is None, unknown)
        require("token", "scopes", "at least one", bool(scopes), scopes)
        admin = bool(origins) and "admin" in scopes
        require(
            "token", "origins", "not for an administrator: pages leak tokens", not admin, origins
        )
        for origin in origins:
            plain = origin.startswith(("https://", "http://")) and origin.count("/") == 2
            require("token", "origin", "such as https://shop.example", plain, origin)
        secret = secrets.token_urlsafe(32)
        made = Token(name, digest_of(secret), tuple(scopes), tuple(origins), int(time.time()))

        def add(known: dict[str, Token]) -> None:
            taken = any(token.name == name for token in known.values())
            require("token", "name", "a new one", not taken, name)
            known[made.digest] = made

        self._change(add)
        return secret

    def create_first(self) -> str | None:
        """Make an administrator's token if there is none; return its secret."""
        if any(token.may("admin") for token in self.known()):
            return None
        taken = {token.name for token in self.known()}
        name = "first" if "first" not in taken else f"first-{secrets.token_hex(4)}"
        try:
            return self.create(name, ["admin"])
        except ValueError:
            # Another process has made it in the same moment.
            self._refresh()
            return None

    def revoke(self, name: str) -> None:
        """Make a token worthless."""

        def remove(known: dict[str, Token]) -> None:
            found = [digest for digest, token in known.items() if token.name == name]
            require(
                "token", "name", f"one of {[t.name for t in known.values()]}", bool(found), name
            )
            del known[found[0]]

        self._change(remove)

    def end_session(self, digest: str, session: str, until: int) -> None:
        """Close a session of a token before its time; every process knows within a second."""
        now = time.time()

        def close(known: dict[str, Token]) -> None:
            token = known.get(digest)
            if token is not None:
                left = {each: end for each, end in token.ended.items() if end > now}
                known[digest] = replace(token, ended={**left, digest_of(session): until})

        self._change(close)

    def session_of(self, digest: str, session: str) -> Token | None:
        """Return the token whose open session this is; a revoked token has none."""
        self.known()
        token = self._known.get(digest)
        return token if token is not None and digest_of(session) not in token.ended else None

    def _change(self, change: Callable[[dict[str, Token]], None]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._refresh()
            known = dict(self._known)
            change(known)
            text = json.dumps([asdict(token) for token in known.values()], indent=1)
            write_atomically(self.path, lambda file: file.write_text(text), mode=0o600)
            self._refresh()
        finally:
            os.close(lock)

    def _refresh(self) -> None:
        self._read_at = time.monotonic()
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            self._known, self._stamp = {}, None
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._stamp:
            return
        try:
            self._known = _by_digest(json.loads(self.path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(f"{self.path}: not a file of tokens ({error})") from None
        self._stamp = stamp


class SharedTokens(Tokens):
    """The tokens of a database, which all processes of a service share.

    Parameters
    ----------
    address : str
        ``postgresql://...``, where a service has run.
    """

    def __init__(self, address: str) -> None:
        super().__init__("")
        # Its tables are the store's, which makes them.
        self._database = connect_postgres(address, Schema(kind="a store of experiments"))

    def _refresh(self) -> None:
        self._read_at = time.monotonic()
        try:
            self._known = self._read()
        except StoreError:
            # While the database is away nothing can be committed; tokens stay as they were.
            if not self._known:
                raise

    def _change(self, change: Callable[[dict[str, Token]], None]) -> None:
        with self._database.transaction("tokens"):
            before = self._read()
            after = dict(before)
            change(after)
            for digest in before.keys() - after.keys():
                self._database.run("DELETE FROM tokens WHERE name = ?", before[digest].name)
            for digest, token in after.items():
                if before.get(digest) != token:
                    self._database.run(
                        "INSERT INTO tokens (name, body) VALUES (?, ?)"
                        " ON CONFLICT (name) DO UPDATE SET body = excluded.body",
                        *(token.name, json.dumps(asdict(token))),
                    )
        self._known = after

    def _read(self) -> dict[str, Token]:
        rows = self._database.query("SELECT body FROM tokens ORDER BY name")
        return _by_digest(json.loads(body) for (body,) in rows)


def _by_digest(rows: Iterable[Any]) -> dict[str, Token]:
    tokens = [
        Token(**{**row, "scopes": tuple(row["scopes"]), "origins": tuple(row["origins"])})
        for row in rows
    ]
    return {token.digest: token for token in tokens}


def digest_of(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
