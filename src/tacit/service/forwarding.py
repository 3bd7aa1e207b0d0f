"""Several processes on one database: each experiment has one owner, and whoever is asked passes it on.

A request that names an experiment of another process is handed to that process over one connection, which
all waiting requests share, and answered with what comes back. What was handed on is never handed on
again. Both ends show that they know the secret of the database before anything else is said. When an owner
is gone, the next request, or the next second, finds another one that goes on from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.core.decider import Decider
from tacit.service.experiments import Host, Hosted
from tacit.service.http import MAX_BODY, problem
from tacit.service.logs import write_log
from tacit.service.messages import ExperimentRequest
from tacit.serving.core import RefusedError
from tacit.serving.storage import NotOwnedError, StoreError
from tacit.serving.storage.postgres import PostgresStore, Server

_OF_ONE = re.compile(r"^/(?:v1/experiments|ofrep/v1/evaluate/flags|experiments)/([^/]+)")
_LISTS = {
    ("GET", "/v1/experiments"): ("experiments", "name"),
    ("POST", "/ofrep/v1/evaluate/flags"): ("flags", "key"),
}
_FORWARDED = "tacit.forwarded"
_PATIENCE = 5.0
_MOST_WAITING = 4096
_LARGEST = 2 * MAX_BODY + (1 << 16)
_MISDIRECTED = 421

_encode = msgspec.msgpack.Encoder().encode


class Asked(msgspec.Struct, array_like=True):
    """A request on its way to the owner of its experiment."""

    number: int
    method: str
    path: str
    query: bytes
    scheme: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Piece(msgspec.Struct, array_like=True):
    """A part of an answer on its way back; the first one has status and headers."""

    number: int
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    more: bool


_asked = msgspec.msgpack.Decoder(Asked)
_piece = msgspec.msgpack.Decoder(Piece)


class UnreachableError(Exception):
    """Nothing was sent: whoever was to be asked cannot be reached."""


class UnansweredError(Exception):
    """What was sent got no answer: it may have been done or not."""


class Answer:
    """What another process answers, as it comes in."""

    def __init__(self, first: Piece, following: Callable[[], Awaitable[Piece]]) -> None:
        self.status, self.headers = first.status, first.headers
        self._last, self._following = first, following

    async def pieces(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Return the parts of its body, each with whether there are more."""
        yield self._last.body, self._last.more
        while self._last.more:
            self._last = await self._following()
            yield self._last.body, self._last.more

    async def whole(self) -> bytes:
        """Return its body."""
        return b"".join([body async for body, _ in self.pieces()])


class ClusterHost(Host):
    """The experiments that this process owns, among all of a database.

    Parameters
    ----------
    store : PostgresStore
    secret : bytes
        The key of pseudonyms.
    internal : str
        ``HOST:PORT`` at which other processes reach this one; port 0 takes a free one.
    """

    store: PostgresStore

    def __init__(self, store: PostgresStore, secret: bytes, *, internal: str) -> None:
        name, _, port = internal.rpartition(":")
        try:
            self._socket = socket.create_server((name.strip("[]"), int(port)))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"internal: expected HOST:PORT of this machine, got {internal!r} ({error})"
            ) from None
        super().__init__(store, secret)
        self.app: ASGIApp | None = None
        self._known_by = store.secret
        self._lines: dict[str, _Line] = {}
        self._owners: dict[str, Server] = {}
        self._named: tuple[float, frozenset[str]] = (float("-inf"), frozenset())
        self._listening: asyncio.Task[asyncio.Server] | None = None
        self._asking: set[asyncio.StreamWriter] = set()
        self._refused: set[str] = set()
        self._rehearsed: set[str] = set()
        self._taking: dict[str, asyncio.Task[bool]] = {}
        store.announce(f"{name}:{self._socket.getsockname()[1]}")

    def names(self) -> list[str]:
        """Return the experiments of the service, those of other processes included."""
        return self.store.names()

    def create(self, request: ExperimentRequest, decider: Decider | None = None) -> Hosted:
        """Make a new experiment, or say what is wrong with its description."""
        taken = RefusedError("conflict", f"{request.name}: expected a new name, got one in use")
        if self.store.load(request.name) is not None:
            raise taken
        try:
            return super().create(request, decider)
        except StoreError:
            # Another process may have made one of this name in the same moment.
            if self.store.load(request.name) is None or self.store.is_owner(request.name):
                raise
            raise taken from None

    def start(self) -> None:
        """Listen to the other processes, and look after what is due."""
        super().start()
        self._listening = asyncio.create_task(
            asyncio.start_server(self._serve, sock=self._socket, limit=1 << 16)
        )

    async def stop(self) -> None:
        """Finish what was accepted, and leave the experiments to others."""
        if self._listening is not None:
            (await self._listening).close()
        for writer in list(self._asking):
            writer.close()
        for line in self._lines.values():
            line.close()
        for task in list(self._taking.values()):
            task.cancel()
        await super().stop()
        self._socket.close()

    def look_after(self) -> None:
        """Take over what nobody owns, as soon as it can be continued here."""
        for name in self.store.orphans():
            self._take_over(name)

    def _take_over(self, name: str) -> asyncio.Task[bool]:
        """Begin to take an experiment; all who wait for it wait for the same."""
        task = self._taking.get(name)
        if task is None:
            task = self._taking[name] = asyncio.create_task(self._rehearse_and_take(name))
            task.add_done_callback(partial(self._taken, name))
        return task

    async def _rehearse_and_take(self, name: str) -> bool:
        if name not in self._rehearsed and (found := self.described(name)) is not None:
            await self.rehearsals.of(found[0])
            self._rehearsed.add(name)
        return self.answers(name) or self.take(name)

    def _taken(self, name: str, task: asyncio.Task[bool]) -> None:
        del self._taking[name]
        error = None if task.cancelled() else task.exception()
        # One that cannot be continued here must not keep the others from it.
        if isinstance(error, ValueError) and name not in self._refused:
            self._refused.add(name)
            write_log("refused", detail=str(error))

    def answers(self, name: str) -> bool:
        """Return whether this process owns an experiment, also after its connection was lost."""
        hosted = self.experiments.get(name)
        if hosted is None:
            return False
        if not self.store.is_owner(name):
            try:
                hosted.experiment.reload()
            except NotOwnedError:
                del self.experiments[name]
                return False
        return True

    def elsewhere(self) -> list[Server]:
        """Return the other processes."""
        return [each for each in self.store.servers() if each.id != self.store.server]

    async def find(self, name: str, ask: Callable[[_Line], Awaitable[Answer]]) -> Answer | None:
        """Return what the owner of an experiment answers; None if it is to be answered here."""
        until, pause = time.monotonic() + _PATIENCE, 0.02
        while True:
            if self.answers(name) or not self._exists(name):
                return None
            owner = self._owners.get(name) or self.store.owner(name)
            if owner is not None and owner.id != self.store.server:
                self._owners[name] = owner
                with contextlib.suppress(UnreachableError):
                    answer = await ask(self._line(owner))
                    if answer.status != _MISDIRECTED:
                        return answer
            self._owners.pop(name, None)
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    if await asyncio.shield(self._take_over(name)):
                        return None
            except TimeoutError:
                raise UnreachableError from None
            await asyncio.sleep(pause)
            pause = min(0.5, 2 * pause)

    def _exists(self, name: str) -> bool:
        read_at, names = self._named
        if name not in names and time.monotonic() - read_at > 1.0:
            self._named = time.monotonic(), frozenset(self.store.names())
        return name in self._named[1]

    def _line(self, server: Server) -> _Line:
        line = self._lines.get(server.address)
        if line is None:
            line = self._lines[server.address] = _Line(server.address, self._known_by)
        return line

    async def ask_all(self, ask: Callable[[_Line], Awaitable[Answer]]) -> list[bytes]:
        """Return what all other processes answer, if they do."""
        answers = await asyncio.gather(*(ask(self._line(each)) for each in self.elsewhere()))
        return [await answer.whole() for answer in answers if answer.status == 200]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks: set[asyncio.Task[None]] = set()
        self._asking.add(writer)
        try:
            async with asyncio.timeout(_PATIENCE):
                mine = secrets.token_bytes(32)
                writer.write(mine)
                theirs, proof = await reader.readexactly(32), await reader.readexactly(32)
                if not hmac.compare_digest(proof, self._proof(b"asks", mine, theirs)):
                    return
                writer.write(self._proof(b"answers", theirs, mine))
            while True:
                asked = _asked.decode(await _read(reader, _LARGEST))
                if len(tasks) >= _MOST_WAITING:
                    return
                task = asyncio.create_task(self._answer(asked, writer))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        except (OSError, EOFError, TimeoutError, ValueError, msgspec.MsgspecError):
            pass
        finally:
            writer.close()
            self._asking.discard(writer)

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        assert self.app is not None
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": asked.method,
            "path": asked.path,
            "raw_path": asked.path.encode(),
            "query_string": asked.query,
            "root_path": "",
            "scheme": asked.scheme,
            "headers": asked.headers,
            "client": None,
            "server": None,
            _FORWARDED: True,
        }
        start: Message = {"status": 500, "headers": []}

        async def send(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            body, more = message.get("body", b""), message.get("more_body", False)
            headers = [(bytes(name), bytes(value)) for name, value in start["headers"]]
            for at in range(0, max(1, len(body)), MAX_BODY):
                left = more or at + MAX_BODY < len(body)
                part = body[at : at + MAX_BODY]
                _write(writer, _encode(Piece(asked.number, start["status"], headers, part, left)))
                headers = []
            with contextlib.suppress(OSError):
                await writer.drain()
            start = {"status": start["status"], "headers": []}

        with contextlib.suppress(Exception):
            # The service has logged and answered its own faults.
            await self.app(scope, _given(asked.body), send)

    def _proof(self, who: bytes, first: bytes, second: bytes) -> bytes:
        return _proof(self._known_by, who, first, second)


class Forwarding:
    """What stands before the service: requests for experiments of other processes go there."""

    def __init__(self, app: ASGIApp, host: ClusterHost) -> None:
        self._app, self._host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request here, or elsewhere."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        found = _OF_ONE.match(scope["path"])
        fields = _LISTS.get((scope["method"], scope["path"].rstrip("/")))
        try:
            if found is not None:
                await self._one(found[1], scope, receive, send)
            elif fields is not None and _FORWARDED not in scope:
                await self._all(fields, scope, receive, send)
            else:
                await self._app(scope, receive, send)
        except ClientDisconnect:
            return
        except StoreError:
            await _unavailable("the store cannot be reached; nothing was done")(
                scope, receive, send
            )
        except ValueError as error:
            await _unavailable(f"this experiment cannot be continued here: {error}")(
                scope, receive, send
            )

    async def _one(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        host = self._host
        if _FORWARDED in scope:
            if host.answers(name):
                await self._app(scope, receive, send)
            else:
                await _unavailable("asked the wrong process", _MISDIRECTED)(scope, receive, send)
            return
        if name in host.experiments and host.answers(name):
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:
            too_large = f"expected a body of at most {MAX_BODY:,} bytes"
            await problem(413, too_large)(scope, receive, send)
            return
        try:
            answer = await host.find(name, lambda line: line.ask(scope, body))
        except UnreachableError:
            await _unavailable("the owner of this experiment cannot be reached; nothing was done")(
                scope, receive, send
            )
        except UnansweredError:
            await _unavailable(
                "the owner of this experiment went away before it answered; ask again with the same id"
            )(scope, receive, send)
        else:
            if answer is None:
                await self._app(scope, _given(body), send)
                return
            try:
                await _relay(answer, send)
            except UnansweredError:
                # Half an answer must not look like a whole one: the server cuts the connection.
                write_log("cut", detail="the owner of an experiment went away while it answered")

    async def _all(
        self, fields: tuple[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Put together what all processes answer for their own experiments."""
        body = await _body(receive)
        if body is None:
            too_large = f"expected a body of at most {MAX_BODY:,} bytes"
            await problem(413, too_large)(scope, receive, send)
            return
        known = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
        kept = [(name, value) for name, value in scope["headers"] if name != b"if-none-match"]
        whole = {**scope, "headers": kept}
        status, headers, here = await _collected(self._app, whole, body)
        if status != 200:
            await _sent(status, headers, here, send)
            return
        try:
            there = await self._host.ask_all(lambda line: line.ask(whole, body))
        except (UnreachableError, UnansweredError):
            await _unavailable("another process of this service cannot be reached")(
                scope, receive, send
            )
            return
        many, by = fields
        rows = [row for text in (here, *there) for row in msgspec.json.decode(text)[many]]
        merged = msgspec.json.encode({many: sorted(rows, key=lambda row: str(row[by]))})
        left = [pair for pair in headers if pair[0] not in (b"content-length", b"etag")]
        if any(name == b"etag" for name, _ in headers):
            tag = f'"{hashlib.blake2b(merged, digest_size=12).hexdigest()}"'
            left.append((b"etag", tag.encode()))
            if known == tag:
                await _sent(304, left, b"", send)
                return
        left.append((b"content-length", str(len(merged)).encode()))
        await _sent(200, left, merged, send)


class _Line:
    """One connection to another process; all who wait for its answers share it."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._address, self._secret = address, secret
        self._waiting: dict[int, asyncio.Queue[Piece | None]] = {}
        self._number = 0
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def ask(self, scope: Scope, body: bytes) -> Answer:
        """Return what is answered; raise `UnreachableError` if nothing was sent."""
        writer = await self._open()
        if len(self._waiting) >= _MOST_WAITING:
            raise UnreachableError
        self._number += 1
        number = self._number
        asked = Asked(
            number,
            scope["method"],
            scope["path"],
            scope["query_string"],
            scope["scheme"],
            list(scope["headers"]),
            body,
        )
        queue: asyncio.Queue[Piece | None] = asyncio.Queue()
        self._waiting[number] = queue
        _write(writer, _encode(asked))

        async def following() -> Piece:
            piece = None
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PATIENCE):
                        piece = await queue.get()
                if piece is None:
                    raise UnansweredError
                return piece
            finally:
                if piece is None or not piece.more:
                    self._waiting.pop(number, None)

        return Answer(await following(), following)

    async def _open(self) -> asyncio.StreamWriter:
        async with self._opening:
            if self._writer is not None and not self._writer.is_closing():
                return self._writer
            host, _, port = self._address.rpartition(":")
            try:
                async with asyncio.timeout(_PATIENCE / 2):
                    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                    theirs, mine = await reader.readexactly(32), secrets.token_bytes(32)
                    writer.write(mine + _proof(self._secret, b"asks", theirs, mine))
                    proof = await reader.readexactly(32)
            except (OSError, EOFError, TimeoutError, ValueError):
                raise UnreachableError from None
            if not hmac.compare_digest(proof, _proof(self._secret, b"answers", mine, theirs)):
                writer.close()
                raise UnreachableError
            self._writer = writer
            self._reading = asyncio.create_task(self._read(reader, writer))
            return writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                piece = _piece.decode(await _read(reader, _LARGEST))
                if piece.number in self._waiting:
                    self._waiting[piece.number].put_nowait(piece)
        except (OSError, EOFError, ValueError, msgspec.MsgspecError):
            pass
        finally:
            writer.close()
            for waiting in self._waiting.values():
                waiting.put_nowait(None)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _proof(secret: bytes, who: bytes, first: bytes, second: bytes) -> bytes:
    return hmac.digest(secret, who + first + second, "sha256")


async def _read(reader: asyncio.StreamReader, most: int) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > most:
        raise ValueError(f"expected at most {most:,} bytes, got {size:,}")
    return await reader.readexactly(size)


def _write(writer: asyncio.StreamWriter, message: bytes) -> None:
    if not writer.is_closing():
        writer.write(len(message).to_bytes(4, "big") + message)


async def _body(receive: Receive) -> bytes | None:
    """Return what was sent; None if it is too large."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            # Half a request is none.
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def _given(body: bytes) -> Receive:
    """Return what reads a body that was read before; then nothing comes, and nobody has gone."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.get_running_loop().create_future()
        return messages.pop()

    return receive


async def _collected(
    app: ASGIApp, scope: Scope, body: bytes
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of an answer, without sending it."""
    found: dict[str, Any] = {"status": 500, "headers": []}
    parts: list[bytes] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.update(status=message["status"], headers=list(message["headers"]))
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    with contextlib.suppress(Exception):
        # The service has logged and answered its own faults.
        await app(scope, _given(body), send)
    return found["status"], found["headers"], b"".join(parts)


async def _sent(status: int, headers: list[tuple[bytes, bytes]], body: bytes, send: Send) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _relay(answer: Answer, send: Send) -> None:
    start = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
    await send(start)
    async for body, more in answer.pieces():
        await send({"type": "http.response.body", "body": body, "more_body": more})


def _unavailable(detail: str, status: int = 503) -> Any:
    return problem(status, detail, "owner", {"retry-after": "1"})
