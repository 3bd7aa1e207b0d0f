"""Forks wait until nobody is inside a database, and leave its sessions to the parent.

A child inherits its parent's connections with whatever is under way in them. A transaction that it copied
is rolled back when the child ends, in the file that its parent writes; and a mutex of a thread that
the child does not have is never let go, so that it hangs when the connection is collected. Whoever owns a
connection therefore hands in the lock under which it is used, and a fork takes all of them first.

A session with a database server lasts, and holds its locks, as long as any process has its socket; and what a
child says there, such as a farewell, is taken for its parent's word. So a child gives the sockets up before
it does anything else.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

_MOMENT = 0.05  # seconds, after which locks that are taken in another order elsewhere are let go
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


def _pause() -> None:
    _forking.acquire()
    while not all(_taken(lock) for lock in list(_locks.values())):
        _let_go()


def _taken(lock: Any) -> bool:
    taken: bool = lock.acquire(timeout=_MOMENT)
    if taken:
        _held.append(lock)
    return taken


def _let_go() -> None:
    while _held:
        _held.pop().release()


def _resume() -> None:
    _let_go()
    _forking.release()


def _leave_all() -> None:
    if not _sessions:
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    for session in list(_sessions):
        # One that is closed has no socket.
        with contextlib.suppress(Exception):
            os.dup2(nowhere, session.fileno(), inheritable=False)
    os.close(nowhere)
    _sessions.clear()


def in_child(change: Callable[[], None]) -> None:
    """Call `change` in every process that is forked from this one, before anything else there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=change)


class Owner:
    """Whoever made a thing that only one process may use: a file, a connection, a key."""

    def __init__(self) -> None:
        self._forks = _forks[0]

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked after the thing was made, so that it belongs to another one."""
        return self._forks != _forks[0]


def _count() -> None:
    _forks[0] += 1


in_child(_count)
in_child(_leave_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_resume)
