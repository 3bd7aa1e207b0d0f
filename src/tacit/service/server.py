"""From a folder to a running service: store, keys, tokens, and a graceful end."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
_CONNECTIONS = 4096
_OWN_FILES = 128
_PATIENCE = 30.0


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
    patience: float = _PATIENCE,
) -> None:
    """Listen until the process is told to stop; what was accepted is finished and committed.

    Parameters
    ----------
    opened : Opened
    host, port
        Where to listen; port 0 takes a free one.
    ready : callable, optional
        Called with the address once the service listens.
    patience : float
        Seconds for sending a request, or for taking in some of an answer; a tenth of them while
        half of all connections are in use.
    """
    most = _room()
    config = uvicorn.Config(
        opened.app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        limit_concurrency=most,
        backlog=1024,
    )
    _Server(config, ready, _Patience(patience, most // 2)).run()


def _room() -> int:
    """Return how many connections there may be, beside the files that a service has open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _OWN_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(1, wanted - _OWN_FILES)


class _Patience:
    """Hangs up on those who hold a connection and neither finish a request nor take in the answer."""

    def __init__(self, seconds: float, crowd: int) -> None:
        self._seconds, self._crowd = seconds, crowd
        self._waiting: dict[Any, tuple[Any, float]] = {}

    def look(self, connections: Iterable[Any]) -> None:
        """Look at all connections once more."""
        now, every, still = time.monotonic(), list(connections), {}
        seconds = self._seconds if len(every) < self._crowd else self._seconds / 10
        for each in every:
            what = _awaited(each)
            if what is None:
                continue
            known, since = self._waiting.get(each, (None, now))
            if known != what:
                since = now
            if now - since >= seconds:
                each.transport.abort()
            else:
                still[each] = what, since
        self._waiting = still


def _awaited(connection: Any) -> Any:
    """Return what a client is to do next, another value whenever it did something; None if nothing."""
    cycle, unread = connection.cycle, connection.transport.get_write_buffer_size()
    if unread:
        return "read", cycle, unread
    if cycle is None or cycle.response_complete:
        # The server itself ends what is idle between two requests.
        return ("ask", cycle) if connection.timeout_keep_alive_task is None else None
    return ("send", cycle) if cycle.more_body else None


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn would raise the signal once more when all is done, and end as if it had been killed.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self.handle_exit)
        yield

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[str], None] | None, patience: _Patience
    ) -> None:
        super().__init__(config)
        self._ready, self._patience = ready, patience

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._patience.look(self.server_state.connections)
        return await super().on_tick(counter)

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        # What lives until the end need not be looked at again and again.
        gc.collect()
        gc.freeze()
        if self._ready is not None and self.started:
            place = self.servers[0].sockets[0].getsockname()
            name = f"[{place[0]}]" if ":" in place[0] else place[0]
            self._ready(f"http://{name}:{place[1]}")
