"""From a folder to a running service: store, keys, tokens, and a graceful end."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import uvicorn
from starlette.applications import Starlette

from tacit.checks import require
from tacit.service.app import make_app
from tacit.service.hosting import Host
from tacit.service.tokens import SharedTokens, Tokens
from tacit.serving.keys import key_beside
from tacit.serving.opening import is_database, open_store
from tacit.serving.store import Store

__all__ = ["Opened", "open_service", "pseudonym_key", "serve", "tokens_of"]

_KEY = "TACIT_PSEUDONYM_KEY"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Opened(NamedTuple):
    """A service that is ready to listen."""

    app: Starlette
    host: Host
    tokens: Tokens
    first_token: str | None
    """An administrator's token, made because there was none yet; shown this once."""


def open_service(
    store: str | os.PathLike[str],
    *,
    restored: bool = False,
    beside: str | os.PathLike[str] | None = None,
    internal: str = "127.0.0.1:0",
) -> Opened:
    """Open a store with all its experiments, or make one.

    Parameters
    ----------
    store : str or path
        A SQLite file; beside it lie its mark, the key of pseudonyms and the tokens. Or the address of
        a PostgreSQL database, ``postgresql://...``, which other processes may serve as well.
    restored : bool
        Accept an old copy: what was lost counts as spent.
    beside : path, optional
        For a database: what the names of mark and key, outside of it, begin with.
    internal : str
        For a database: ``HOST:PORT`` at which the other processes reach this one.
    """
    many = is_database(store)
    outside = beside if many else store
    if outside is not None:
        Path(outside).parent.mkdir(parents=True, exist_ok=True)
    kept = open_store(store, beside=beside, restored=restored)
    try:
        assert kept.beside is not None
        secret, tokens = pseudonym_key(kept.beside), tokens_of(store)
        host = _clustered(kept, secret, internal) if many else Host(kept, secret)
        first = tokens.create("first", ["admin"]) if not tokens.known() else None
    except BaseException:
        kept.close()
        raise
    app = make_app(host, tokens)
    if many:
        _join(app, host)
    return Opened(app, host, tokens, first)


def _clustered(store: Store, secret: bytes, internal: str) -> Host:
    from tacit.service.cluster import ClusterHost
    from tacit.serving.postgres import PostgresStore

    # What it says when a connection is lost, the service says in its own words.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    assert isinstance(store, PostgresStore)
    store.require_key(secret)
    return ClusterHost(store, secret, internal=internal)


def _join(app: Starlette, host: Host) -> None:
    from tacit.service.cluster import ClusterHost, Forwarding

    assert isinstance(host, ClusterHost)
    app.add_middleware(Forwarding, host=host)
    host.app = app


def tokens_of(store: str | os.PathLike[str]) -> Tokens:
    """Return the tokens of a store."""
    address = os.fspath(store)
    return SharedTokens(address) if is_database(address) else Tokens(f"{address}.tokens")


def pseudonym_key(store: Path) -> bytes:
    """Return the key of pseudonyms: from the environment, or from a file beside the store."""
    given = os.environ.get(_KEY)
    if given is not None:
        try:
            key = bytes.fromhex(given)
        except ValueError:
            key = b""
        require("service", _KEY, "64 hexadecimal digits", len(key) == 32, "something else")
        return key
    return key_beside(store)


def serve(
    opened: Opened,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Listen until the process is told to stop; what was accepted is finished and committed.

    Parameters
    ----------
    opened : Opened
    host, port
        Where to listen; port 0 takes a free one.
    ready : callable, optional
        Called with the address once the service listens.
    """
    config = uvicorn.Config(
        opened.app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        limit_concurrency=4096,
        backlog=1024,
    )
    _Server(config, ready).run()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn would raise the signal once more when all is done, and end as if it had been killed.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self.handle_exit)
        yield

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        # What lives until the end need not be looked at again and again.
        gc.collect()
        gc.freeze()
        if self._ready is not None and self.started:
            place = self.servers[0].sockets[0].getsockname()
            name = f"[{place[0]}]" if ":" in place[0] else place[0]
            self._ready(f"http://{name}:{place[1]}")
