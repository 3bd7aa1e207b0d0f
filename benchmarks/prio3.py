"""How many reports an aggregator verifies in a second of CPU: ``python benchmarks/prio3.py``.

It prints reports a second for leader and helper, without HPKE and HTTP, and the CPU of a client's report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tacit.aggregation import Prio3, Report

BATCH = 500
KEY, CONTEXT = bytes(32), b"benchmark"


def best(call: Callable[[], Any], times: int = 5) -> float:
    """Return the least CPU seconds of a call: the machine is shared."""
    call()
    found = []
    for _ in range(times):
        begun = time.process_time()
        call()
        found.append(time.process_time() - begun)
    return min(found)


def main() -> None:
    """Measure."""
    print("cells  client ms  leader/s  helper/s  combine/s  upload bytes")
    for length in (1, 6, 24, 96, 320):
        vdaf = Prio3(length=length) if length > 1 else Prio3(histogram=False)
        made = []
        for b in range(BATCH):
            nonce = os.urandom(16)
            parts = vdaf.shard(CONTEXT, b % length, nonce, os.urandom(vdaf.random_size))
            made.append((nonce, *parts))
        client = best(partial(vdaf.shard, CONTEXT, 0, bytes(16), bytes(vdaf.random_size)), 20)
        states = []
        rates = []
        for who in range(2):
            reports = [Report(nonce, public, shares[who]) for nonce, public, shares in made]
            states.append(vdaf.start(KEY, CONTEXT, who, reports))
            rates.append(BATCH / best(partial(vdaf.start, KEY, CONTEXT, who, reports)))
        sent = [state.verifier_shares for state in states]
        together = BATCH / best(partial(vdaf.combine, CONTEXT, sent))
        size = len(made[0][1]) + sum(map(len, made[0][2])) + 16 + 2 * 48
        times = f"{1e3 * client:9.2f}  {rates[0]:8,.0f}  {rates[1]:8,.0f}  {together:9,.0f}"
        print(f"{length:5}  {times}  {size:6,}")


if __name__ == "__main__":
    main()
