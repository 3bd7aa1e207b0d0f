"""Ctrl-C: the first stops the work in order, more of them do not disturb that, a late one ends it all."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["deaf", "stop_once", "stopped"]

PATIENCE = 2.0
"""Seconds that stopping may take before another Ctrl-C ends the process at once."""


def stop_once() -> None:
    """Let the first Ctrl-C raise ``KeyboardInterrupt`` and the next ones be patient.

    One that comes more than two seconds later ends the process at once. Files are whole in every case,
    because they are moved into place when written, and workers end with the process that started them.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    first: list[float] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        if not first:
            first.append(time.monotonic())
            raise KeyboardInterrupt
        if time.monotonic() - first[0] > PATIENCE:
            os._exit(130)

    signal.signal(signal.SIGINT, stop)


def stopped() -> None:
    """Ignore further Ctrl-C: the process is about to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def deaf() -> Iterator[None]:
    """Put off Ctrl-C until the end of the block; processes started in it never hear it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
