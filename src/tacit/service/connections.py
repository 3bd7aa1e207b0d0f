"""Connections: where they come in, how many there may be, and how long one may be held."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tacit.service.http import problem
from tacit.service.logs import write_log

INSIDE = "tacit.inside"
"""In the scope of a request that came in at the address for metrics."""
_HEALTH = ("/healthz", "/readyz")
_CONNECTIONS = 4096
_SPARE = 64
_OWN_FILES = 128
_AHEAD = 64
"""Requests that one connection may send before the first of them is answered."""


def bind(host: str, port: int, what: str = "serve") -> list[socket.socket]:
    """Return sockets that are bound to an address, or say why there are none."""
    bound: list[socket.socket] = []
    why: OSError | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        found, why = [], error
    for family, kind, protocol, _, address in found:
        try:
            each = socket.socket(family, kind, protocol)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind(address)
            # Two that are only bound can share a port; of two that listen the second is refused.
            each.listen(1024)
            bound.append(each)
        except OSError as error:
            each.close()
            why = error
    if not bound:
        reason = "" if why is None else f" ({why.strerror})"
        raise ValueError(f"{what}: expected an address to listen at, got {host}:{port}{reason}")
    return bound


def make_room() -> int:
    """Return how many connections there may be, beside the files that a service has open."""
    import resource  # which Windows has not

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _SPARE + _OWN_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(1, wanted - _SPARE - _OWN_FILES)


class _Crowded(asyncio.Protocol):
    """Where there is no room left, a new connection takes the place of one that rests."""

    most = _CONNECTIONS
    connections: set[Any]
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most + _SPARE:
            resting = (each for each in self.connections if each is not self and _rests(each))
            _hang_up(next(resting, self))


def protocol(most: int) -> type[asyncio.Protocol]:
    """Return what reads requests, for at most so many connections: httptools, else h11."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return type("Plain", (_Crowded, H11Protocol), {"most": most})

    class Fast(_Crowded, HttpToolsProtocol):
        """It takes in a few of the requests that are sent ahead: uvicorn would take in all."""

        answering: Any = None
        """The request that is being answered; `cycle` is the last that came in."""

        def connection_lost(self, exc: Exception | None) -> None:
            if self.answering is not None:
                self.answering.disconnected = True
            super().connection_lost(exc)

        def on_headers_complete(self) -> None:
            if len(self.pipeline) >= _AHEAD:
                _hang_up(self)
                raise ValueError("too many requests ahead of their answers")
            super().on_headers_complete()
            if not self.pipeline:
                self.answering = self.cycle

        def on_response_complete(self) -> None:
            if self.pipeline:
                self.answering = self.pipeline[-1][0]
            super().on_response_complete()
            if self.pipeline and not self.transport.is_closing():
                self.flow.pause_reading()

        def send_400_response(self, msg: str) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                # It would stand in the middle of another answer.
                _hang_up(self)
            if not self.transport.is_closing():
                super().send_400_response(msg)

    Fast.most = most
    return Fast


class Patience:
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
                _hang_up(each)
            else:
                still[each] = what, since
        self._waiting = still


def _awaited(connection: Any) -> Any:
    """Return what a client is to do next, another value whenever it did something; None if nothing."""
    cycle, unread = connection.cycle, connection.transport.get_write_buffer_size()
    if unread:
        return "read", cycle, unread
    if _rests(connection):
        # The server itself ends what is idle between two requests.
        return ("ask", cycle) if connection.timeout_keep_alive_task is None else None
    return ("send", cycle) if cycle.more_body else None


def _hang_up(connection: Any) -> None:
    """End a connection at once; what is under way writes nothing more, which uvloop would refuse."""
    answering = getattr(connection, "answering", connection.cycle)
    if answering is not None:
        answering.disconnected = True
    connection.transport.abort()


def _rests(connection: Any) -> bool:
    return connection.cycle is None or connection.cycle.response_complete


class Door:
    """What a request passes first: the limit on connections and work, which health is exempt from.

    At the port `inside` metrics and health are told to everybody, and nothing else is.
    """

    def __init__(
        self, app: ASGIApp, most: int, *, inside: int | None = None, access_log: bool = False
    ) -> None:
        self._app, self._most, self._inside, self._logs = app, most, inside, access_log
        self.state: Any = None
        """Who is connected: uvicorn's ``server_state``."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not self._logs:
            await self._let_in(scope, receive, send)
        else:
            await self._let_in_and_log(scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        health = scope["path"].endswith(_HEALTH)
        if self._inside is not None and (scope.get("server") or ("", 0))[1] == self._inside:
            if not health and scope["path"] != "/metrics":
                await problem(404, "expected /metrics, /healthz or /readyz here")(
                    scope, receive, send
                )
                return
            scope[INSIDE] = True
        elif not health and self._is_full():
            busy = {"retry-after": "1", "connection": "close"}
            await problem(503, "too many connections; nothing was done", "busy", busy)(
                scope, receive, send
            )
            return
        await self._app(scope, receive, send)

    def _is_full(self) -> bool:
        return self.state is not None and (
            len(self.state.connections) > self._most or len(self.state.tasks) > self._most
        )

    async def _let_in_and_log(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, status, size = time.monotonic(), 0, 0

        async def count(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._let_in(scope, receive, count)
        finally:
            # Its route, not its path: a path has identities of decisions in it.
            route = getattr(scope.get("route"), "path", "")
            write_log(
                "request",
                method=scope["method"],
                path=route,
                experiment=scope.get("path_params", {}).get("name", ""),
                status=status,
                bytes=size,
                ms=round(1000 * (time.monotonic() - begun), 1),
                address=(scope.get("client") or ("",))[0],
            )
