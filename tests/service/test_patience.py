"""Connections that are held and not used: they are ended, and nobody else waits for them."""

from __future__ import annotations

import signal
import socket
import subprocess
import time

import httpx
import pytest

from commands import start_python
from tacit.service.server import _Patience

SERVER = """
import sys
from tacit.service import open_service, serve

opened = open_service(sys.argv[1])
serve(opened, port=0, patience=1.5, ready=lambda url: print(url, opened.first_token, flush=True))
"""


@pytest.fixture
def server(tmp_path):
    process = start_python("-c", SERVER, tmp_path / "s.db", stdout=subprocess.PIPE)
    with process.stdout as said:
        yield said.readline().split()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


def ended(connection: socket.socket, drip: bytes = b"") -> bool:
    """Return whether the other side hangs up, while a byte is sent now and then."""
    connection.settimeout(0.2)
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            if drip:
                connection.sendall(drip)
            if not connection.recv(1 << 20):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def flood(connection: socket.socket, seconds: float) -> None:
    """Ask for more and more, and take in nothing."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 50)


def test_who_neither_asks_nor_listens_is_hung_up_on(server):
    url, token = server
    host, port = url.removeprefix("http://").split(":")
    auth = f"authorization: Bearer {token}\r\n"
    post = f"POST /v1/experiments HTTP/1.1\r\nhost: x\r\n{auth}content-length: 1000\r\n\r\n{{"
    starts = {"nothing": b"", "half a head": b"GET / HT", "half a body": post.encode()}
    held = {}
    for what, start in starts.items():
        held[what] = socket.create_connection((host, int(port)))
        held[what].sendall(start)
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect((host, int(port)))
    deaf.settimeout(0.5)
    with pytest.raises(TimeoutError):
        flood(deaf, 15)
    assert ended(held["nothing"])
    assert ended(held["half a head"], b"x")
    assert ended(held["half a body"], b" ")
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}) as http:
        for _ in range(2):
            assert http.get("/v1/experiments").status_code == 200
            # Between two requests a connection may rest.
            time.sleep(2)
    # It took in nothing: what it was to be told is gone with the connection.
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        flood(deaf, 15)
    for each in (*held.values(), deaf):
        each.close()


class Silent:
    """A connection on which nothing ever comes in."""

    def __init__(self) -> None:
        self.cycle = self.timeout_keep_alive_task = None
        self.transport, self.gone = self, False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.gone = True


def test_patience_is_short_in_a_crowd(monkeypatch):
    now = 0.0
    monkeypatch.setattr("tacit.service.server.time.monotonic", lambda: now)
    for n, seconds in ((3, 30.0), (4, 3.0)):
        patience = _Patience(30.0, 4)
        connections = [Silent() for _ in range(n)]
        for passed in (0.0, seconds - 0.1):
            now += passed
            patience.look(connections)
        assert not any(each.gone for each in connections)
        now += 0.2
        patience.look(connections)
        assert all(each.gone for each in connections)
