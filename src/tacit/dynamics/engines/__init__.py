"""How perturbed adoptions travel: the second stage of the learning dynamics, simulated in five ways.

`disseminate` moves what agents sent in a round, `estimate` turns what reached one agent into its
estimate (7) of popularity; `Mail` lies between them. An engine decides how:

- ``tokens``: every token hops over the network by eq. (2), through the queues of the CONGEST model;
- ``endpoints``: where tokens end is drawn from the rows of the walk matrix's power;
- ``dealt``: every token goes to a uniformly random agent, which is what a long walk does;
- ``moments``: what an agent receives of well-mixed tokens has the right mean and covariance;
- ``crowd``: the same with counts in place of agents (:mod:`tacit.dynamics.engines.crowd`).

Each exists because the one before it is too slow for the next size. CPU time of one round of the
paper's setting, 20 options (``python benchmarks/dynamics.py speed scale walk``): walking all 41,143
tokens of 10^4 agents some ten minutes; endpoints 0.8 s for 3,000 agents; moments 2.4 ms for 10^4 and
0.25 s for 10^6; a crowd 0.025 ms for any number. The first three have the distribution of the
paper's algorithm, the last two its moments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import kernel
from tacit.dynamics.engines.endpoints import spread
from tacit.dynamics.engines.moments import (
    Crowd,
    crowd_of,
    draw_normals,
    new_crowd,
    receive,
    tokens_received,
)
from tacit.dynamics.engines.tokens import arrivals, deal, walk

__all__ = [
    "CROWD",
    "DEALT",
    "ENDPOINTS",
    "MOMENTS",
    "TOKENS",
    "Mail",
    "disseminate",
    "estimate",
    "new_mail",
    "unbiased",
]

TOKENS, ENDPOINTS, DEALT, MOMENTS, CROWD = 0, 1, 2, 3, 4


class Mail(NamedTuple):
    """What is under way between agents in a round: N agents (0 where only moments are), M options."""

    got: NDArray[np.int64]
    """Shape (N,): tokens that ended at each agent."""
    received: NDArray[np.int64]
    """Shape (N, M): how many of them have the bit of each option set."""
    launched: NDArray[np.int64]
    """Shape (W, N): tokens that travel now, by the round they were sent in; (W, 0) unless walking."""
    crowd: Crowd
    """Moments of what any agent receives."""
    normals: NDArray[np.float64]
    """Shape (M,): room to work."""


@kernel(allocates=True)
def new_mail(rule: Any, N: Any, M: Any) -> Any:
    """Return empty mail."""
    tallied = N if rule.engine != MOMENTS else 0
    walking = N if rule.engine == TOKENS else 0
    return Mail(
        np.zeros(tallied, np.int64),
        np.zeros((tallied, M), np.int64),
        np.zeros((rule.delay + 1, walking), np.int64),
        new_crowd(M),
        np.zeros(M),
    )


@kernel(inlined=False)
def disseminate(rule: Any, state: Any, table: Any, source: Any, t: Any, mail: Any) -> Any:
    """Stage 2: let the tokens travel that are due in round t; return the messages that costs."""
    N, W = table.n_agents, state.pool.shape[0]
    hops = float(rule.tokens) * rule.walk * state.public[0]
    traffic = state.pool[t % W, 0] * hops
    if rule.engine == MOMENTS:
        crowd_of(rule, state.pool, N, mail.crowd)
        return traffic
    mail.received[:] = 0
    mail.got[:] = 0
    for d in range(min(W, t + 1)):
        row = (t - d) % W
        for a in range(N):
            if state.flying[row, a] == 0:
                continue
            going, n = arrivals(rule, source, t, d, N, a, state.flying[row, a])
            state.flying[row, a] -= going
            sent = state.message[row, a]
            if rule.engine == TOKENS:
                mail.launched[row, a] = n
            elif rule.engine == ENDPOINTS:
                spread(source, t, d, a, n, sent, state, mail.got, mail.received)
            else:
                deal(source, t, d, N, a, n, sent, mail.got, mail.received)
    if rule.engine == TOKENS:
        moved, slots = walk(rule, source, t, state.message, table, mail)
        mail.launched[:] = 0
        state.public[2] += slots
        return float(moved)
    return traffic


@kernel
def estimate(rule: Any, mail: Any, source: Any, t: Any, a: Any, word: Any, Q: Any) -> Any:
    """Write agent a's estimates (7), not yet clipped, and return whether it heard anything."""
    if rule.engine != MOMENTS:
        return unbiased(rule, mail.received, mail.got[a], a, Q)
    numbers = mail.crowd.numbers
    v = tokens_received(word, source, t, a, numbers[0], numbers[1], numbers[3])
    if v > 0.0:
        Ux = draw_normals(source, t, a, mail.crowd.tilt, mail.normals)
        receive(rule, mail.crowd, v, mail.normals, Ux, 1.0, source, t, a, Q)
    return v > 0.0


@kernel
def unbiased(rule: Any, received: Any, got: Any, a: Any, Q: Any) -> Any:
    """Write the estimates (7) from what row a received of `got` tokens; return whether it can."""
    if got == 0:
        return False
    for j in range(Q.size):
        Q[j] = rule.slope * (received[a, j] / got) - rule.offset
    return True
