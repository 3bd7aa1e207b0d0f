"""Forks wait until nobody is inside a database.

A child inherits its parent's connections with whatever is under way in them. A transaction that it copied
is rolled back when the child ends, in the file that its parent writes; and a mutex of a thread that
the child does not have is never let go, so that it hangs when the connection is collected. Whoever owns a
connection therefore hands in the lock under which it is used, and a fork takes all of them first.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["wait_for"]

_MOMENT = 0.05  # seconds, after which locks that are taken in another order elsewhere are let go
_locks: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_forking = threading.Lock()
_held: list[Any] = []


def wait_for(owner: Any, lock: Any) -> None:
    """Let no process be forked while another thread has `lock`, an ``RLock``, as long as `owner` lives."""
    _locks[owner] = lock


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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_resume)
