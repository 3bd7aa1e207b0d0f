"""A wire between clients and a service that writes down every request, and can be cut.

It speaks just enough HTTP/1.1 to know where a request ends, so that what it notes is what left the
device: the bytes, and when they came.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

KINDS = {".html": "text/html", ".js": "text/javascript"}


class Sent(NamedTuple):
    """A request that arrived."""

    at: float
    method: str
    path: str
    body: bytes


class Wire:
    """Listens on a free port of the loopback, in a thread of its own.

    Parameters
    ----------
    answer : callable, optional
        Answers a request itself; without it, or where it returns None, `service` does.
    """

    def __init__(self, answer: Callable[[Sent], Any] | None = None) -> None:
        self.answer = answer
        self.service: tuple[str, int] | None = None
        self.network = "up"
        """``up``; ``down``: nothing arrives; ``deaf``: it arrives and the answer is lost."""
        self.sent: list[Sent] = []
        self.pages: dict[str, bytes] = {}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def posts(self, ending: str) -> list[Sent]:
        return [each for each in self.sent if each.method == "POST" and each.path.endswith(ending)]

    def reports(self, id: str) -> list[Sent]:
        return [each for each in self.posts("/reports") if json.loads(each.body)["id"] == id]

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._open: set[asyncio.StreamWriter] = set()
        await self._end.wait()
        server.close()
        for writer in self._open:
            writer.transport.abort()
        while self._open:
            await asyncio.sleep(0.001)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        upstream = None
        try:
            while True:
                head, body = await _message(reader)
                method, path, _ = head.split(b" ", 2)
                if self.network == "down":
                    break
                asked = Sent(time.time(), method.decode(), path.decode(), body)
                reply = self._own(asked)
                if reply is None:
                    if upstream is None:
                        upstream = await asyncio.open_connection(*self.service)
                    upstream[1].write(head + body)
                    reply = b"".join(await _message(upstream[0]))
                if self.network == "deaf" and method == b"POST":
                    break
                writer.write(reply)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            for each in (writer, upstream and upstream[1]):
                if each is not None:
                    with contextlib.suppress(OSError):
                        each.close()

    def _own(self, asked: Sent) -> bytes | None:
        page = self.pages.get(asked.path.split("?")[0])
        if asked.method == "GET" and page is not None:
            kind = KINDS[Path(asked.path.split("?")[0]).suffix]
            return _reply(page, f"content-type: {kind}\r\n")
        self.sent.append(asked)
        said = self.answer(asked) if self.answer else None
        return None if said is None else _reply(json.dumps(said).encode())


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return head, await reader.readexactly(int(length[1])) if length else b""


def _reply(body: bytes, headers: str = "content-type: application/json\r\n") -> bytes:
    return f"HTTP/1.1 200 OK\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body
