"""How perturbed adoptions travel: the second stage of the learning dynamics, simulated in five ways.

`disseminate` moves what agents sent in a round, `estimate` turns what reached one agent into its
estimate (7) of popularity; `Deliveries` lies between them. The engine of the policy decides how:

- ``tokens``: every token hops over the network by eq. (2), through the queues of the CONGEST model;
- ``endpoints``: where tokens end is drawn from the rows of the walk matrix's power;
- ``dealt``: every token goes to a uniformly random agent, which is what a long walk does;
- ``moments``: what an agent receives of well-mixed tokens has the right mean and covariance;
- ``crowd``: the same with counts in place of agents (:mod:`tacit.dynamics.dissemination.crowd`).

Each exists because the one before it is too slow for the next size. CPU time of one round of the
paper's setting, 20 options (``python benchmarks/dynamics.py speed scale walk``): walking all 41,143
tokens of 10^4 agents some ten minutes; endpoints 0.8 s for 3,000 agents; moments 2.4 ms for 10^4 and
0.25 s for 10^6; a crowd 0.025 ms for any number. The first three have the distribution of the
paper's algorithm, the last two its moments.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel
from tacit.dynamics.dissemination.moments import (
    Crowd,
    Sample,
    crowd_of,
    draw_sample,
    new_crowd,
    new_sample,
    receive,
)
from tacit.dynamics.dissemination.tokens import arrivals, deal, spread, walk

TOKENS, ENDPOINTS, DEALT, MOMENTS, CROWD = 0, 1, 2, 3, 4


class Deliveries(NamedTuple):
    """What is under way between agents in a round: N agents (0 where only moments are), M options."""

    got: NDArray[np.float64]
    """Shape (N,): tokens that ended at each agent, by their weight."""
    received: NDArray[np.float64]
    """Shape (N, M): how many of them have the bit of each option set, by weight and slope."""
    lifted: NDArray[np.float64]
    """Shape (N,): what their offsets add up to, beyond the first level's, by weight."""
    launched: NDArray[np.int64]
    """Shape (W, N): tokens that travel now, by the round they were sent in; (W, 0) unless walking."""
    crowd: Crowd
    """Moments of what any agent receives."""
    sample: Sample
    """What one agent receives."""
    estimates: NDArray[np.float64]
    good: NDArray[np.bool_]
    """Shape (M,) each: room to work."""
    first: int
    """The number of the first agent here."""
    away: NDArray[np.int64]
    """Shape (1,): how many deliveries are for agents who are not here."""
    away_to: NDArray[np.int64]
    away_sent: NDArray[np.uint64]
    away_count: NDArray[np.int64]
    away_level: NDArray[np.int64]
    """Shape (room,) each: to whom, which perturbed vector, how many tokens of it, of which level."""


@kernel(allocates=True)
def new_deliveries(params: Any, table: Any, room: Any) -> Any:
    """Return empty deliveries of the agents here, with room for deliveries to others."""
    N, M = table.here, table.qualities.shape[1]
    tallied = N if params.engine != MOMENTS else 0
    walking = N if params.engine == TOKENS else 0
    L = params.weight.size
    return Deliveries(
        np.zeros(tallied),
        np.zeros((tallied, M)),
        np.zeros(tallied),
        np.zeros((params.delay + 1, walking), np.int64),
        new_crowd(L, M),
        new_sample(L, M),
        np.zeros(M),
        np.zeros(M, np.bool_),
        table.first,
        np.zeros(1, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.uint64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
    )


@kernel(inlined=False)
def disseminate(params: Any, state: Any, table: Any, source: Any, t: Any, deliveries: Any) -> Any:
    """Stage 2: let the tokens travel that are due in round t; return the messages that costs."""
    if params.engine == MOMENTS:
        crowd_of(params, state.pool, table.n_agents, deliveries.crowd)
    else:
        send(params, state, table, source, t, deliveries)
    if params.engine == TOKENS:
        moved, slots = walk(params, source, t, state.message, table, deliveries)
        deliveries.launched[:] = 0
        state.public[2] += slots
        return float(moved)
    return traffic(params, senders_of(state.pool, t % state.pool.shape[0]), state.public[0])


@kernel
def senders_of(pool: Any, slot: Any) -> Any:
    """Return how many agents sent a message in a round."""
    S = 0
    for level in range(pool.shape[1]):
        S += pool[slot, level, 0]
    return S


@kernel
def message_bits(params: Any, M: Any) -> Any:
    """Return the bits of a message: one for each option, and the hops left."""
    return M + math.ceil(math.log2(params.walk + 1.0))


@kernel
def traffic(params: Any, senders: Any, leaving: Any) -> Any:
    """Return the expected messages of a round: tokens, hops, and how many of them leave their agent."""
    return senders * (float(params.tokens) * params.walk * leaving)


@kernel(inlined=False)
def send(params: Any, state: Any, table: Any, source: Any, t: Any, deliveries: Any) -> None:
    """Deliver, or launch on their walks, the tokens of agents here that are due in round t."""
    N, W = table.n_agents, state.pool.shape[0]
    deliveries.received[:] = 0
    deliveries.got[:] = 0
    deliveries.lifted[:] = 0
    deliveries.away[0] = 0
    for d in range(min(W, t + 1)):
        row = (t - d) % W
        for a in range(table.here):
            if state.flying[row, a] == 0:
                continue
            who = table.first + a
            going, n = arrivals(params, source, t, d, N, who, state.flying[row, a])
            state.flying[row, a] -= going
            sent = state.message[row, a]
            if params.engine == TOKENS:
                deliveries.launched[row, a] = n
            elif params.engine == ENDPOINTS:
                spread(params, source, t, d, a, who, n, sent, state, deliveries)
            else:
                deal(params, source, t, d, N, who, n, sent, deliveries)


@kernel
def estimate(
    params: Any, deliveries: Any, source: Any, t: Any, a: Any, who: Any, word: Any, Q: Any
) -> Any:
    """Write the estimates (7) of the agent in row a, not yet clipped; return if it heard anything."""
    if params.engine != MOMENTS:
        return unbiased(params, deliveries.received, deliveries.got[a], deliveries.lifted[a], a, Q)
    draw_sample(deliveries.crowd, deliveries.sample, word, source, t, who)
    return receive(params, deliveries.crowd, deliveries.sample, 1.0, source, t, who, Q)


@kernel
def unbiased(params: Any, received: Any, got: Any, lifted: Any, a: Any, Q: Any) -> Any:
    """Write the estimates (7) from what row a received of tokens of weight `got`; return whether it can.

    Every message is undone by its own sender's slope and offset, and counts by its weight.
    """
    if got == 0:
        return False
    for j in range(Q.size):
        Q[j] = params.slope[0] * (received[a, j] / got) - params.offset[0] - lifted / got
    return True
