"""Requests on their way from one process of a service to another, over one connection that all share.

A request for an experiment of another process goes to its owner, and what comes back is the answer. What was
passed on is never passed on again. Both ends prove that they know the secret of the database before anything
else is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import re
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.service.http import MAX_BODY, RequestError, problem, read_body
from tacit.service.logs import write_log
from tacit.serving.storage import StoreError

if TYPE_CHECKING:
    from tacit.service.ownership import SharedManager

PATIENCE = 5.0
MISDIRECTED = 421
_OF_ONE = re.compile(r"^/(?:v1/experiments|ofrep/v1/evaluate/flags|experiments)/([^/]+)")
_LISTS = {
    ("GET", "/v1/experiments"): ("experiments", "name"),
    ("POST", "/ofrep/v1/evaluate/flags"): ("flags", "key"),
}
_SENT = (
    *("type", "asgi", "http_version", "method", "path", "raw_path", "query_string", "root_path"),
    *("scheme", "headers"),
)
_FORWARDED = "tacit.forwarded"
_MOST_WAITING = 4096
_LARGEST = 2 * MAX_BODY + (1 << 16)
_GONE = (OSError, EOFError, TimeoutError, ValueError, msgspec.MsgspecError)

Headers = list[tuple[bytes, bytes]]
T = TypeVar("T")


class ForwardedRequest(msgspec.Struct, array_like=True):
    """A request on its way to the owner of its experiment."""

    number: int
    scope: dict[str, Any]
    body: bytes


class ResponsePart(msgspec.Struct, array_like=True):
    """A part of a response on its way back; the first one has status and headers."""

    number: int
    status: int
    headers: Headers
    body: bytes
    more: bool


Parts = AsyncGenerator[ResponsePart, None]


class OwnerError(RequestError):
    """Another process cannot be asked; nothing was sent to it."""

    detail = "the owner of this experiment cannot be reached; nothing was done"

    def __init__(self, detail: str = "", status: int = 503) -> None:
        super().__init__(status, detail or self.detail, "owner", **{"retry-after": "1"})


class UnansweredError(OwnerError):
    """What was sent got no answer: it may have been done or not."""

    detail = "the owner of this experiment went away before it answered; ask again with the same id"


class Peers:
    """The other processes of a service: asks them, and lets those ask that know the database's secret."""

    def __init__(self, address: str, secret: bytes) -> None:
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_server((host.strip("[]"), int(port)))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"peer-address: expected HOST:PORT of this machine, got {address!r} ({error})"
            ) from None
        self.address = f"{host}:{self._socket.getsockname()[1]}"
        self.app: ASGIApp | None = None
        """Answers what others ask."""
        self._secret = secret
        self._connections: dict[str, _PeerConnection] = {}
        self._asking: set[asyncio.StreamWriter] = set()
        self._listening: asyncio.Task[asyncio.Server] | None = None

    def start(self) -> None:
        """Listen."""
        listen = asyncio.start_server(self._serve, sock=self._socket, limit=1 << 16)
        self._listening = asyncio.create_task(listen)

    async def stop(self) -> None:
        """Close all connections."""
        if self._listening is not None:
            (await self._listening).close()
        for writer in list(self._asking):
            writer.close()
        for connection in self._connections.values():
            connection.close()
        self._socket.close()

    def ask(self, address: str, scope: Scope, body: bytes) -> Parts:
        """Return what the process at `address` answers."""
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = _PeerConnection(address, self._secret)
        return connection.ask(scope, body)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks: set[asyncio.Task[None]] = set()
        self._asking.add(writer)
        try:
            async with asyncio.timeout(PATIENCE):
                mine = secrets.token_bytes(32)
                writer.write(mine)
                theirs, proof = await reader.readexactly(32), await reader.readexactly(32)
                if not hmac.compare_digest(proof, _prove(self._secret, b"asks", mine, theirs)):
                    return
                writer.write(_prove(self._secret, b"answers", theirs, mine))
            while len(tasks) < _MOST_WAITING:
                asked = await _read(reader, ForwardedRequest)
                task = asyncio.create_task(self._answer(asked, writer))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        except _GONE:
            pass
        finally:
            writer.close()
            self._asking.discard(writer)

    async def _answer(self, asked: ForwardedRequest, writer: asyncio.StreamWriter) -> None:
        async def send(part: ResponsePart) -> None:
            part.number = asked.number
            _write(writer, part)
            with contextlib.suppress(OSError):
                await writer.drain()

        assert self.app is not None
        scope = {**asked.scope, "client": None, "server": None, _FORWARDED: True}
        await _run(self.app, scope, asked.body, send)


class Forwarding:
    """What stands before the service: requests for experiments of other processes go there."""

    def __init__(self, app: ASGIApp, manager: SharedManager) -> None:
        self._app, self._manager = app, manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request here, or elsewhere."""
        try:
            await self._pass_on(scope, receive, send)
            return
        except ClientDisconnect:
            return
        except RequestError as error:
            refused = error
        except StoreError:
            refused = OwnerError("the store cannot be reached; nothing was done")
        except ValueError as error:
            refused = OwnerError(f"this experiment cannot be continued here: {error}")
        answer = problem(refused.status, refused.detail, refused.reason, refused.headers)
        await answer(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope.get("path", ""), scope.get("method", "")
        one, many = _OF_ONE.match(path), _LISTS.get((method, path.rstrip("/")))
        here, forwarded = one is None or self._manager.owns(one[1]), _FORWARDED in scope
        if forwarded and not here:
            raise OwnerError("asked the wrong process", MISDIRECTED)
        if forwarded or (here and many is None):
            await self._app(scope, receive, send)
            return
        body = await read_body(Request(scope, receive), None)
        if many is not None:
            await self._merge(many, scope, body, send)
            return
        assert one is not None
        parts = await self._manager.ask_owner(one[1], scope, body)
        if parts is None:
            await self._app(scope, _replay(body), send)
            return
        try:
            async for part in parts:
                await _send(part, send)
        except OwnerError:
            # Half an answer must not look like a whole one: the server cuts the connection.
            write_log("cut", detail="the owner of an experiment went away while it answered")

    async def _merge(self, fields: tuple[str, str], scope: Scope, body: bytes, send: Send) -> None:
        """Put together what all processes answer for their own experiments."""
        known = dict(scope["headers"]).get(b"if-none-match", b"")
        kept = [pair for pair in scope["headers"] if pair[0] != b"if-none-match"]
        scope = {**scope, "headers": kept}
        parts: list[ResponsePart] = []

        async def keep(part: ResponsePart) -> None:
            parts.append(part)

        await _run(self._app, scope, body, keep)
        whole = parts[0]
        whole.body, whole.more = b"".join(part.body for part in parts), False
        if whole.status == 200:
            many, by = fields
            texts = [whole.body, *await self._manager.ask_all(scope, body)]
            rows = [row for text in texts for row in msgspec.json.decode(text)[many]]
            whole.body = msgspec.json.encode({many: sorted(rows, key=lambda row: str(row[by]))})
            tag = f'"{hashlib.blake2b(whole.body, digest_size=12).hexdigest()}"'.encode()
            if known == tag:
                whole.status, whole.body = 304, b""
            new = {b"etag": tag, b"content-length": str(len(whole.body)).encode()}
            whole.headers = [(name, new.get(name, value)) for name, value in whole.headers]
        await _send(whole, send)


class _PeerConnection:
    """One connection to another process; all who wait for its answers share it."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._address, self._secret = address, secret
        self._waiting: dict[int, asyncio.Queue[ResponsePart | None]] = {}
        self._numbers = itertools.count()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def ask(self, scope: Scope, body: bytes) -> Parts:
        """Yield what is answered; raise `OwnerError` if nothing was sent."""
        writer = await self._open()
        if len(self._waiting) >= _MOST_WAITING:
            raise OwnerError
        number, more = next(self._numbers), True
        parts = self._waiting[number] = asyncio.Queue()
        sent = {word: scope[word] for word in _SENT if word in scope}
        try:
            _write(writer, ForwardedRequest(number, sent, body))
            while more:
                async with asyncio.timeout(PATIENCE):
                    part = await parts.get()
                if part is None:
                    raise UnansweredError
                yield part
                more = part.more
        except TimeoutError:
            raise UnansweredError from None
        finally:
            del self._waiting[number]

    async def _open(self) -> asyncio.StreamWriter:
        async with self._opening:
            if self._writer is not None and not self._writer.is_closing():
                return self._writer
            host, _, port = self._address.rpartition(":")
            try:
                async with asyncio.timeout(PATIENCE / 2):
                    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                    theirs, mine = await reader.readexactly(32), secrets.token_bytes(32)
                    writer.write(mine + _prove(self._secret, b"asks", theirs, mine))
                    proof = await reader.readexactly(32)
            except _GONE:
                raise OwnerError from None
            if not hmac.compare_digest(proof, _prove(self._secret, b"answers", mine, theirs)):
                writer.close()
                raise OwnerError
            self._writer = writer
            self._reading = asyncio.create_task(self._read(reader, writer))
            return writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                part = await _read(reader, ResponsePart)
                if part.number in self._waiting:
                    self._waiting[part.number].put_nowait(part)
        except _GONE:
            pass
        finally:
            writer.close()
            for waiting in self._waiting.values():
                waiting.put_nowait(None)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _prove(secret: bytes, who: bytes, first: bytes, second: bytes) -> bytes:
    return hmac.digest(secret, who + first + second, "sha256")


async def _read(reader: asyncio.StreamReader, kind: type[T]) -> T:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > _LARGEST:
        raise ValueError(f"expected at most {_LARGEST:,} bytes, got {size:,}")
    return msgspec.msgpack.decode(await reader.readexactly(size), type=kind)


def _write(writer: asyncio.StreamWriter, message: msgspec.Struct) -> None:
    if not writer.is_closing():
        written = msgspec.msgpack.encode(message)
        writer.write(len(written).to_bytes(4, "big") + written)


async def chain(first: ResponsePart, others: Parts) -> Parts:
    """Yield the first part of a response, then the others."""
    yield first
    async for part in others:
        yield part


async def _send(part: ResponsePart, send: Send) -> None:
    if part.headers:
        headers = [(name, value) for name, value in part.headers]
        start = {"type": "http.response.start", "status": part.status, "headers": headers}
        await send(start)
    await send({"type": "http.response.body", "body": part.body, "more_body": part.more})


def _replay(body: bytes) -> Receive:
    """Return what reads a body that was read before; then nothing comes, and nobody has gone."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.get_running_loop().create_future()
        return messages.pop()

    return receive


async def _run(
    app: ASGIApp, scope: Scope, body: bytes, take: Callable[[ResponsePart], Awaitable[None]]
) -> None:
    """Let an app answer, and hand over the parts of the response, none of them too large."""
    status, headers = 500, Headers()

    async def send(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = [(bytes(name), bytes(value)) for name, value in message["headers"]]
            return
        whole, more = message.get("body", b""), message.get("more_body", False)
        for at in range(0, max(1, len(whole)), MAX_BODY):
            left = more or at + MAX_BODY < len(whole)
            part = ResponsePart(0, status, headers, whole[at : at + MAX_BODY], left)
            headers = []
            await take(part)

    with contextlib.suppress(Exception):
        # The service has logged and answered its own faults.
        await app(scope, _replay(body), send)
