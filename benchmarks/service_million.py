"""A million decisions and reports over HTTP: memory of the server, size of its files, time to start again.

    python benchmarks/service_million.py [--pairs 1000000] [--open 0]

The server is a process of its own with everything as it is by default: a SQLite file, every commit durable,
and a retention that deletes nothing meanwhile. 64 connections each ask for 16 decisions, one by one, and
report on all of them at once. With --open so many decisions stay without a report at first. Then the server
is killed and started again: that is timed until it serves, the start of Python included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import tempfile
import time
from pathlib import Path

from service import EXPERIMENT, Connection, Server

CONNECTIONS, TURN = 64, 16
PLACE = "/v1/experiments/bench"


def memory(server: Server, what: str = "VmRSS") -> float:
    """Return the memory of a server in MB, or the most that it ever had (VmHWM)."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) / 1024


async def decide(line: Connection) -> str:
    answer = await line.post(f"{PLACE}/decisions", b'{"shown": true}')
    return str(json.loads(answer)["id"])


async def report(line: Connection, ids: list[str]) -> None:
    reports = [{"v": 1, "id": id, "value": i % 2} for i, id in enumerate(ids)]
    answer = await line.post(f"{PLACE}/reports", json.dumps(reports).encode())
    assert {each["status"] for each in json.loads(answer)["reports"]} == {"learned"}


async def load(server: Server, pairs: int, waiting: int) -> list[float]:
    """Decide and report; return the memory of the server on the way, eleven times."""
    lines = [Connection(server.url, server.token) for _ in range(CONNECTIONS)]
    await asyncio.gather(*(line.open() for line in lines))
    await lines[0].post("/v1/experiments", json.dumps({**EXPERIMENT, "max_open": 100_000}).encode())

    async def leave(line: Connection) -> None:
        for _ in range(waiting // CONNECTIONS):
            await decide(line)

    await asyncio.gather(*map(leave, lines))
    seen, done = [memory(server)], 0

    async def drive(line: Connection) -> None:
        nonlocal done
        while done < pairs:
            done += TURN
            await report(line, [await decide(line) for _ in range(TURN)])
            if done >= len(seen) * pairs / 10:
                seen.append(memory(server))

    await asyncio.gather(*map(drive, lines))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--open", type=int, default=0, help="decisions that stay without a report")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        command = ["-m", "tacit", "serve", "--store", f"{folder}/million.db", "--port", "0"]
        server = Server(*command)
        token, cpu, begun = server.token, server.cpu(), time.perf_counter()
        seen = asyncio.run(load(server, given.pairs, given.open))
        rate = given.pairs / (time.perf_counter() - begun)
        busy = 1e6 * (server.cpu() - cpu) / given.pairs
        most = memory(server, "VmHWM")
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        begun = time.perf_counter()
        server = Server(*command)
        restart, restart_cpu = time.perf_counter() - begun, server.cpu()
        server.token = token
        learned = asyncio.run(statistics(server))
        after = memory(server)
        begun = time.perf_counter()
        server.stop()
        stop = time.perf_counter() - begun
    assert learned >= given.pairs
    print(f"{learned:,} decisions and reports: {rate:,.0f} a second, {busy:.0f} us of CPU each")
    print(f"memory  {' '.join(f'{each:.0f}' for each in seen)} MB, at most {most:.0f} MB (< 300)")
    print(f"files   {size:.0f} MB (< 400), {1e6 * size / given.pairs:.0f} bytes a pair")
    print(f"killed and started again in {restart:.2f} s (< 3), {restart_cpu:.2f} s of CPU")
    print(f"then {after:.0f} MB, and stopped in {stop:.2f} s (< 5)")


async def statistics(server: Server) -> int:
    line = Connection(server.url, server.token)
    await line.open()
    found = json.loads(await line.ask("GET", f"{PLACE}/statistics"))
    return sum(row["learned"] for row in found["options"])


if __name__ == "__main__":
    main()
