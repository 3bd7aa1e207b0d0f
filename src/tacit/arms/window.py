"""A sliding window: the arm and the feedback of the last w rounds, and what leaves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel


class Window(NamedTuple):
    """A ring of w + 1 rounds: those in the window and the present one."""

    arms: NDArray[np.int32]
    """Shape (w + 1,): the arm of each round, -1 if it gave no feedback or has left."""
    values: NDArray[np.float64]
    """Shape (w + 1,): its feedback."""
    now: NDArray[np.int64]
    """Shape (1,): the latest round that was acted in."""


def new_window(rounds: int) -> Window:
    """Return an empty window."""
    return Window(np.full(rounds + 1, -1, np.int32), np.zeros(rounds + 1), np.full(1, -1))


def forget_with(drop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that gives `drop` all that has left a window when round t begins.

    Parameters
    ----------
    drop : kernel of (params, state, arm, value)
        Takes one round's feedback out of what is learned.
    """

    @kernel
    def forget(params: Any, state: Any, window: Any, t: Any) -> None:
        """Drop what has left the window."""
        arm, value = _next_leaving(window, t)
        while arm >= 0:
            drop(params, state, arm, value)
            arm, value = _next_leaving(window, t)

    return forget


@kernel
def _next_leaving(window: Any, t: Any) -> Any:
    """Return arm and feedback of one round that has left when round t begins; arm -1 after the last."""
    slots = window.arms.size
    while window.now[0] < t:
        window.now[0] = max(window.now[0] + 1, t - slots + 1)
        slot = window.now[0] % slots
        arm = np.int64(window.arms[slot])
        if arm >= 0:
            window.arms[slot] = -1
            return arm, window.values[slot]
    return np.int64(-1), 0.0


@kernel
def put_in_window(window: Any, t: Any, arm: Any, value: Any) -> Any:
    """Put the feedback of round t in; return False if that round has left already."""
    slots = window.arms.size
    if t < window.now[0] - slots + 1:
        return False
    window.arms[t % slots] = arm
    window.values[t % slots] = value
    return True
