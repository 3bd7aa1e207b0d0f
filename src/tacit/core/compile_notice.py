"""Tell a person who waits that kernels are being compiled, here or in a worker; imports no compiler."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CompileNotice:
    """A context for compilations: calls whoever asked, once, when they take more than a second."""

    def __init__(self) -> None:
        self.callback: Callable[[], None] | None = None
        self._depth = 0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> None:
        self._depth += 1
        if self.callback is not None and self._timer is None:
            self._timer = threading.Timer(1.0, announce_compiling)
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None


notice = CompileNotice()


def on_compiling(callback: Callable[[], None] | None) -> None:
    """Call `callback` once, as soon as a compilation has taken a second; None takes that back."""
    notice.callback = callback


def announce_compiling() -> None:
    """Call what `on_compiling` was given, at most once: something is being compiled."""
    callback, notice.callback = notice.callback, None
    if callback is not None:
        callback()
