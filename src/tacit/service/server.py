"""From a folder to a running service: store, keys, tokens, and a graceful end."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from tacit.core.constraints import require
from tacit.core.files import write_atomically
from tacit.core.kernels import ensure_cache_folder
from tacit.service.app import make_app
from tacit.service.connections import Door, Patience, bind, make_room, protocol
from tacit.service.experiments import ExperimentManager
from tacit.service.logs import gather_logs, write_log
from tacit.service.tokens import SharedTokens, Tokens
from tacit.serving.storage import Store, is_database, open_store
from tacit.serving.storage.pseudonyms import key_of

TRUSTED = "127.0.0.1,::1"
"""Proxies that are believed who asks, and how: those of this machine."""
_KEY = "TACIT_PSEUDONYM_KEY"
_PATIENCE = 30.0


@dataclass(frozen=True)
class Opened:
    """A service that is ready to listen."""

    app: Starlette
    manager: ExperimentManager
    tokens: Tokens

    @cached_property
    def first_token(self) -> str | None:
        """An administrator's token, made now because there was none; None if there is one."""
        return self.tokens.create_first()

    def write_first_token(self) -> Path | None:
        """Make the first administrator's token; return the file it is in, readable by its owner."""
        secret = self.first_token
        if secret is None:
            return None
        place = Path(f"{self.manager.store.beside}.first-token")
        write_atomically(place, lambda file: file.write_text(f"{secret}\n"), mode=0o600)
        return place.absolute()


def open_service(
    store: str | os.PathLike[str],
    *,
    restored: bool = False,
    beside: str | os.PathLike[str] | None = None,
    peer_address: str = "127.0.0.1:0",
    root_path: str = "",
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
    peer_address : str
        For a database: ``HOST:PORT`` at which the other processes reach this one.
    root_path : str
        What a proxy puts before every path, such as ``/tacit``.
    """
    plain = not root_path or (root_path.startswith("/") and root_path.strip("/").isprintable())
    require("service", "root_path", "such as /tacit", plain, root_path)
    many = is_database(store)
    outside = beside if many else store
    if outside is not None:
        Path(outside).parent.mkdir(parents=True, exist_ok=True)
    kept = open_store(store, beside=beside, restored=restored)
    try:
        assert kept.beside is not None
        _keep_kernels(kept.beside)
        secret, tokens = key_of(kept, given_key()), tokens_of(store)
        manager = _share(kept, secret, peer_address) if many else ExperimentManager(kept, secret)
    except BaseException:
        kept.close()
        raise
    prefix = root_path.rstrip("/")
    app = make_app(manager, tokens, prefix=prefix)
    if many:
        _join(app, manager)
    if prefix:
        app.add_middleware(_Prefixed, prefix=prefix)
    return Opened(app, manager, tokens)


def _keep_kernels(beside: Path) -> None:
    """Find a place for compiled kernels, since numba may find none: beside the store."""
    made = ensure_cache_folder(Path(f"{beside}.kernels"))
    if made is not None:
        write_log("kernels", detail=f"numba finds no place for compiled kernels; kept in {made}")


class _Prefixed:
    """Takes the prefix of a proxy from paths, whether the proxy does so as well or not."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path == self._prefix or path.startswith(f"{self._prefix}/"):
            scope["path"] = path.removeprefix(self._prefix) or "/"
        await self._app(scope, receive, send)


def _share(store: Store, secret: bytes, address: str) -> ExperimentManager:
    from tacit.service.ownership import SharedManager
    from tacit.serving.storage.postgres import PostgresStore

    # What it says when a connection is lost, the service says in its own words.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    assert isinstance(store, PostgresStore)
    return SharedManager(store, secret, address=address)


def _join(app: Starlette, manager: ExperimentManager) -> None:
    from tacit.service.forwarding import Forwarding
    from tacit.service.ownership import SharedManager

    assert isinstance(manager, SharedManager)
    app.add_middleware(Forwarding, manager=manager)
    manager.peers.app = app


def tokens_of(store: str | os.PathLike[str]) -> Tokens:
    """Return the tokens of a store."""
    address = os.fspath(store)
    return SharedTokens(address) if is_database(address) else Tokens(f"{address}.tokens")


def given_key() -> bytes | None:
    """Return the key of pseudonyms that the environment gives, if it does."""
    given = os.environ.get(_KEY)
    if given is None:
        return None
    try:
        key = bytes.fromhex(given)
    except ValueError:
        key = b""
    require("service", _KEY, "64 hexadecimal digits", len(key) == 32, "something else")
    return key


def serve(
    opened: Opened,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    sockets: list[socket.socket] | None = None,
    metrics: list[socket.socket] | None = None,
    trusted: str = TRUSTED,
    access_log: bool = False,
    ready: Callable[[str], None] | None = None,
    patience: float = _PATIENCE,
) -> None:
    """Listen until the process is told to stop; what was accepted is finished and committed.

    Parameters
    ----------
    opened : Opened
    host, port
        Where to listen; port 0 takes a free one.
    sockets : list of sockets, optional
        Where to listen instead, from `bind`.
    metrics : list of sockets, optional
        Where metrics are told to whoever asks, from `bind`.
    trusted : str
        Proxies whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed: addresses and networks.
    access_log : bool
        Whether each request is a line of the log.
    ready : callable, optional
        Called with the address once the service listens.
    patience : float
        Seconds for sending a request, or for taking in some of an answer; a tenth of them while
        half of all connections are in use.
    """
    listening = bind(host, port) if sockets is None else sockets
    most = make_room()
    inside = metrics[0].getsockname()[1] if metrics else None
    door = Door(opened.app, most, inside=inside, access_log=access_log)
    gather_logs()
    config = uvicorn.Config(
        door,
        http=protocol(most),
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        forwarded_allow_ips=trusted,
        backlog=1024,
    )
    server = _Server(config, ready, Patience(patience, most // 2))
    door.state = server.server_state
    server.run(sockets=[*listening, *(metrics or [])])


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn would raise the signal once more when all is done, and end as if it had been killed.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self.handle_exit)
        yield

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[str], None] | None, patience: Patience
    ) -> None:
        super().__init__(config)
        self._ready, self._patience = ready, patience

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._patience.look(self.server_state.connections)
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What lives until the end need not be looked at again and again.
        gc.collect()
        gc.freeze()
        if self._ready is not None and self.started:
            place = self.servers[0].sockets[0].getsockname()
            name = f"[{place[0]}]" if ":" in place[0] else place[0]
            self._ready(f"http://{name}:{place[1]}")
