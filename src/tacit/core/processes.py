"""A process and those it forks or starts: Ctrl-C, and what a forked child must leave alone.

Forks wait until nobody is inside a database. A child inherits its parent's connections with whatever is under
way in them: a transaction that it copied is rolled back in the parent's file when the child ends, and a mutex
of a thread that the child does not have is never released. The owner of a connection therefore hands in
the lock under which it is used, and a fork takes all of these locks first.

A session with a database server lasts, and holds its locks, as long as any process has its socket, and the
server takes what a child says there for its parent's word. So a child gives the sockets up first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

PATIENCE = 2.0
"""Seconds that stopping may take before another Ctrl-C ends the process at once."""
_MOMENT = 0.05  # seconds, after which locks that are taken in another order elsewhere are released
_locks: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_sessions: weakref.WeakSet[Any] = weakref.WeakSet()
_forking = threading.Lock()
_held: list[Any] = []
_forks = [0]


def wait_for(owner: Any, lock: Any) -> None:
    """Let no process be forked while another thread has `lock`, an ``RLock``, as long as `owner` lives."""
    _locks[owner] = lock


def leave_to_parent(session: Any) -> None:
    """Let no forked child keep the socket of `session`, which has a ``fileno``."""
    _sessions.add(session)


def in_child(change: Callable[[], None]) -> None:
    """Call `change` in every process that is forked from this one, before anything else there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=change)


class Owner:
    """The process that made a thing that only one process may use: a file, a connection, a key."""

    def __init__(self) -> None:
        self._forks = _forks[0]

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked after the thing was made, so that it belongs to another one."""
        return self._forks != _forks[0]


def _acquire_all() -> None:
    _forking.acquire()
    while not all(map(_acquire, list(_locks.values()))):
        _release_locks()


def _acquire(lock: Any) -> bool:
    acquired: bool = lock.acquire(timeout=_MOMENT)
    if acquired:
        _held.append(lock)
    return acquired


def _release_locks() -> None:
    while _held:
        _held.pop().release()


def _release_all() -> None:
    _release_locks()
    _forking.release()


def _leave_sessions() -> None:
    _forks[0] += 1
    if not _sessions:
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    for session in list(_sessions):
        # One that is closed has no socket.
        with contextlib.suppress(Exception):
            os.dup2(nowhere, session.fileno(), inheritable=False)
    os.close(nowhere)
    _sessions.clear()


in_child(_leave_sessions)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all, after_in_parent=_release_all, after_in_child=_release_all
    )


def install_sigint_handler() -> None:
    """Let the first Ctrl-C raise ``KeyboardInterrupt`` and ignore more of them for two seconds.

    A later one ends the process at once. Files are whole in every case, because they are moved into place
    when written, and workers end with the process that started them.

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


def exit_interrupted() -> NoReturn:
    """End the process with 130 at once: what was begun has been cleared away by whoever began it.

    Libraries that were stopped while they began, Ray among them, take seconds to end with Python, or crash.
    """
    os._exit(130)


@contextlib.contextmanager
def block_sigint() -> Iterator[None]:
    """Put off Ctrl-C until the end of the block; processes started in it never hear it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
