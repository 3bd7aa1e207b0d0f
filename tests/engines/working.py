"""Jobs that the tests of engines run in other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def square(x: float) -> float:
    return x * x


def note_process(folder: str, seconds: float) -> int:
    """Leave a file named after this process, then take a while."""
    (Path(folder) / str(os.getpid())).write_text("")
    time.sleep(seconds)
    return os.getpid()


def fail(x: float) -> float:
    if x == 3:
        raise ValueError("three is not allowed")
    return x


def die(x: float) -> float:
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


class TwoPartsError(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


def fail_oddly(x: float) -> float:
    raise TwoPartsError("cannot", "be sent")
