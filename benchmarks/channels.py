"""What it costs to call a mechanism through its channel, beside its kernel by name.

Run: python benchmarks/channels.py
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, seeded_tape
from tacit.privacy import Laplace, Piecewise, RandomizedResponse
from tacit.privacy.mechanisms import open_channel, privatise
from tacit.privacy.mechanisms.randomized_response import send_bit

CALLS = 2_000_000


@kernel
def by_name(numbers: Any, tape: Any, calls: Any) -> Any:
    """Send a bit by the kernel of randomized response."""
    total = 0.0
    for t in range(calls):
        total += send_bit(numbers, tape, np.int64(t), np.int64(0), NOISE, 0.3)
    return total


@kernel
def by_channel(channel: Any, tape: Any, calls: Any) -> Any:
    """Send a number by any channel."""
    total = 0.0
    for t in range(calls):
        total += privatise(channel, tape, t, 0, NOISE, 0.3)
    return total


def nanoseconds(send: Callable[..., float], what: Any) -> float:
    """Return the best CPU time a call of seven repeats, after one to compile."""
    tape, best = seeded_tape(0), math.inf
    send(what, tape, 10)
    for _ in range(7):
        start = time.process_time()
        send(what, tape, CALLS)
        best = min(best, time.process_time() - start)
    return best / CALLS * 1e9


def main() -> None:
    bit = RandomizedResponse(epsilon=1.0).channel()
    print(f"{'randomized response, by name':<36}{nanoseconds(by_name, bit.numbers):>8.1f} ns")
    for name, channel in (
        ("randomized response", bit),
        ("Laplace", Laplace(epsilon=1.0).channel()),
        ("piecewise", Piecewise(epsilon=1.0).channel()),
        ("nothing at all", open_channel()),
    ):
        print(f"{name + ', by its channel':<36}{nanoseconds(by_channel, channel):>8.1f} ns")


if __name__ == "__main__":
    main()
