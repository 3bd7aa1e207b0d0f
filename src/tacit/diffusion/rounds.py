"""How every diffusion policy plays a round: tell, hear, record.

The simulator runs the three in one kernel, a partition of a population exchanges messages between `tell` and
`hear`, and a peer on its own device does what these kernels do to one agent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tacit.core.kernels import kernel
from tacit.diffusion.trace import record


class Kernels(NamedTuple):
    """The kernels of a round, which take (params, state, table, tape, trace, t), and of many."""

    tell: Callable[..., None]
    """Write what agents send."""
    hear: Callable[..., None]
    """Name states by what agents hear, suffer their losses, and learn."""
    run: Callable[..., None]
    """Play rounds first to last - 1; takes these two in place of t."""


def make_kernels(tell: Callable[..., None], hear: Callable[..., None]) -> Kernels:
    """Return the kernels of a policy whose rounds have these two halves."""

    @kernel
    def run(
        params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        for t in range(first, last):
            tell(params, state, table, tape, trace, t)
            hear(params, state, table, tape, trace, t)
            record(table, trace, t, state.mu)

    return Kernels(tell, hear, run)
