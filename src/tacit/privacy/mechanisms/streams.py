"""One step of a stream of sums, whatever the mechanism behind it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, SECURE, released_vector
from tacit.privacy.mechanisms.binary_tree import tree_step
from tacit.privacy.mechanisms.toeplitz import toeplitz_step


@kernel(inlined=False)
def next_sum(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    k: Any,
    stream: Any,
    scale: Any,
    grid: Any,
    item: Any,
    memory: Any,
    fresh: Any,
    out: Any,
) -> None:
    """Take in item k, counted from 1, and release the sum of the first k items into `out`.

    Parameters
    ----------
    tape, t, index, purpose
        Noise is read from (t, index, purpose) on, at an index for each coordinate.
    k : int
        At most ``stream.capacity``.
    stream : Stream
    scale : float
        ``ContinualSum.scale``.
    grid : array of shape (3,)
        ``ContinualSum.grid``.
    item : array of shape (d,)
        It is used up.
    memory : array of shape (d, depth)
        ``ContinualSum.memory``, kept from step to step.
    fresh : array of shape (d,)
        Scratch.
    out : array of shape (d,)
    """
    if tape.kind == SECURE:
        for j in range(item.size):
            item[j] = np.rint(min(max(item[j], -grid[2]), grid[2]) / grid[0])
    if stream.coefficients.size > 0:
        toeplitz_step(tape, t, index, purpose, k, stream, scale, grid, item, memory, out)
    else:
        tree_step(tape, t, index, purpose, k, stream, scale, grid, item, memory, fresh, out)
    if tape.kind == SECURE:
        for j in range(out.size):
            out[j] *= grid[0]
    released_vector(tape, out)


@kernel(allocates=True)
def run_sums(
    tape: Any, stream: Any, scale: Any, grid: Any, items: Any, memory: Any, out: Any
) -> None:
    """Release all prefix sums of `items`, shape (T, d), once for each row of `out`."""
    T, d = items.shape
    item, fresh = np.empty(d), np.empty(d)
    for i in range(out.shape[0]):
        memory[:] = 0.0
        for k in range(1, T + 1):
            item[:] = items[k - 1]
            released = out[i, (k - 1) * d : k * d]
            t = i * T + k - 1
            next_sum(tape, t, 0, NOISE, k, stream, scale, grid, item, memory, fresh, released)
