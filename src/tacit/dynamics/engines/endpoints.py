"""Where walks end, drawn from the rows of the walk matrix's power: the hops are not made."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.core.generator import to_unit
from tacit.core.kernels import kernel
from tacit.core.samplers import binomial, block
from tacit.core.tapes import SPREAD
from tacit.dynamics.engines.tokens import deliver, level_of


@kernel(inlined=False)
def spread(
    params: Any,
    source: Any,
    t: Any,
    d: Any,
    a: Any,
    who: Any,
    n: Any,
    sent: Any,
    state: Any,
    mail: Any,
) -> None:
    """Send n tokens of the agent `who` in row a to the ends of their walks.

    Many tokens: one binomial for each possible end, given none of the earlier ones. Few: one search
    for each token.
    """
    starts, ends, chances = state.starts, state.ends, state.chances
    first, last = starts[a], starts[a + 1]
    level = level_of(params, who)
    place = d * state.entries[1] + state.entries[0]
    if 4 * n < last - first:
        for k in range(n):
            u = to_unit(block(source, SPREAD, t, place + first, k)[0]) * chances[last - 1]
            e = min(first + np.searchsorted(chances[first:last], u, side="right"), last - 1)
            deliver(params, mail, ends[e], sent, 1, level)
        return
    below = 0.0
    for e in range(first, last):
        share = (chances[e] - below) / (chances[last - 1] - below) if e < last - 1 else 1.0
        below = chances[e]
        c = binomial(source, SPREAD, t, place + e, n, share)
        if c > 0:
            deliver(params, mail, ends[e], sent, c, level)
            n -= c
        if n == 0:
            return
