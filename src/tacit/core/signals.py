"""Ctrl-C: the first stops the work in order, more of them do not disturb that, a late one ends it all."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

PATIENCE = 2.0
"""Seconds that stopping may take before another Ctrl-C ends the process at once."""


def stop_once() -> None:
    """Let the first Ctrl-C raise ``KeyboardInterrupt`` and the next ones be patient.

    One that comes more than two seconds later ends the process at once. Files are whole in every case,
    because they are moved into place when written, and workers end with the process that started them.

    An import is finished first, for up to two seconds, because extension modules that are imported by half
    crash. Python drops an exception that is raised while it clears away an object: a Ctrl-C that is
    lost like this is sent again.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    asked: list[float] = []
    raised: list[float] = []
    main, before = threading.get_ident(), sys.unraisablehook

    def interrupt() -> None:
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, signal.SIGINT)
        else:  # on Windows
            signal.raise_signal(signal.SIGINT)

    def send_again() -> None:
        soon = threading.Timer(0.02, interrupt)
        soon.daemon = True
        soon.start()

    def stop(_number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not asked:
            asked.append(now)
        if raised:
            if now - raised[0] > PATIENCE:
                os._exit(130)
        elif _imports(frame) and now - asked[0] < PATIENCE:
            send_again()
        else:
            raised.append(now)
            raise KeyboardInterrupt

    def lost(dropped: sys.UnraisableHookArgs) -> None:
        if raised and dropped.exc_type is KeyboardInterrupt:
            raised.clear()
            send_again()
        else:
            before(dropped)

    sys.unraisablehook = lost
    signal.signal(signal.SIGINT, stop)


def _imports(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def stopped() -> NoReturn:
    """End the process with 130 at once: what was begun has been cleared away by whoever began it.

    Libraries that were stopped while they began, Ray among them, take seconds to end with Python, or crash.
    """
    os._exit(130)


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
