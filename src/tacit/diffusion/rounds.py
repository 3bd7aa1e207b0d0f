"""How rounds are played, whatever the policy: tell, hear, record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.core.kernels import kernel
from tacit.diffusion.trace import record


def rounds(tell: Callable[..., None], hear: Callable[..., None]) -> Callable[..., None]:
    """Return the kernel that plays rounds of these two halves."""

    @kernel
    def run(
        params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        """Play rounds first to last - 1."""
        for t in range(first, last):
            tell(params, state, table, tape, trace, t)
            hear(params, state, table, tape, trace, t)
            record(table, trace, t, state.mu)

    return run
