"""Connections that are held and not used: they are ended, and nobody else waits for them."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx2
import pytest

from tacit.service.connections import Patience

SERVER = """
import sys

if sys.argv[2] == "h11":
    sys.modules["httptools"] = None  # as if it were not installed
from tacit.service import connections, open_service, serve

connections._CONNECTIONS = int(sys.argv[3])
opened = open_service(sys.argv[1])
serve(opened, port=0, patience=1.5, ready=lambda url: print(url, opened.first_token, flush=True))
"""


@pytest.fixture(params=["httptools", "h11"])
def parser(request):
    if request.param == "httptools":
        pytest.importorskip("httptools")
    return request.param


@contextlib.contextmanager
def served(folder, parser, most=4096):
    """A server of its own, on one of the two parsers, for so many connections."""
    with (folder / "log").open("w") as log:
        words = ("-c", SERVER, folder / "s.db", parser, most)
        process = subprocess.Popen(
            [sys.executable, *map(str, words)], stdout=subprocess.PIPE, stderr=log, text=True
        )
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
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 20)
        # A server may refuse at once who asks for far more than was answered.
        time.sleep(0.02)


# Finding S18
def test_who_neither_asks_nor_listens_is_hung_up_on(tmp_path, parser):
    with served(tmp_path, parser) as (url, token):
        hold_connections(url, token)
    said = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert not [line for line in said if line["event"] == "fault"]


def hold_connections(url, token):
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
    with pytest.raises((TimeoutError, ConnectionResetError, BrokenPipeError)):
        flood(deaf, 30)
    assert ended(held["nothing"])
    assert ended(held["half a head"], b"x")
    assert ended(held["half a body"], b" ")
    with httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}) as http:
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
    monkeypatch.setattr("tacit.service.connections.time.monotonic", lambda: now)
    for n, seconds in ((3, 30.0), (4, 3.0)):
        patience = Patience(30.0, 4)
        connections = [Silent() for _ in range(n)]
        for passed in (0.0, seconds - 0.1):
            now += passed
            patience.look(connections)
        assert not any(each.gone for each in connections)
        now += 0.2
        patience.look(connections)
        assert all(each.gone for each in connections)


# Finding S18
def test_requests_that_are_sent_ahead_of_their_answers_are_bounded(tmp_path, parser):
    """Uvicorn's httptools protocol would queue all of them, and look at nothing else meanwhile."""
    with served(tmp_path, parser) as (url, _):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as few:
            few.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n" * 20)
            few.settimeout(20)
            said = b""
            while said.count(b'"up"') < 20:
                said += few.recv(1 << 16)
        with socket.create_connection((host, int(port))) as many:
            many.settimeout(20)
            asked = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 5000
            sending = threading.Thread(target=send_what_is_taken, args=(many, asked))
            sending.start()
            with httpx2.Client(base_url=url) as http:
                assert http.get("/healthz").status_code == 200
            with contextlib.suppress(OSError):
                many.shutdown(socket.SHUT_RDWR)
            sending.join()


def send_what_is_taken(connection, text):
    with contextlib.suppress(OSError):
        connection.sendall(text)


# Finding S8
def test_health_is_told_where_there_is_no_room(tmp_path, parser):
    with served(tmp_path, parser, most=20) as (url, token):
        host, port = url.removeprefix("http://").split(":")
        held = [socket.create_connection((host, int(port))) for _ in range(30)]
        with httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}) as http:
            for path in ("/healthz", "/readyz"):
                assert http.get(path).status_code == 200
            full = http.get("/v1/experiments")
            assert full.status_code == 503
            assert full.json()["reason"] == "busy"
            assert "retry-after" in full.headers
        # However many more come, one that rests makes room for one that asks.
        held += [socket.create_connection((host, int(port))) for _ in range(200)]
        assert httpx2.get(f"{url}/healthz").status_code == 200
        for each in held:
            each.close()
