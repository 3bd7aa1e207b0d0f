"""The table of agents who track a changing truth: true states, signals and losses.

The true state of a round, the signal an agent gets about it and the loss of every state an agent
could name are pure functions of a key and the position, or cells of recorded arrays; a few signals
and losses may be overridden, which makes a neighbouring table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import inverse_normal, philox, to_open_unit, to_unit
from tacit.core.kernels import kernel
from tacit.core.segments import segment_at

MATCH, DISTANCE, RECORDED = 0, 1, 2
_TRUTH, _SIGNAL, _LOSS = np.uint64(1), np.uint64(2), np.uint64(3)
SIGNAL_EDIT = -1


class Table(NamedTuple):
    """N agents, M states, G groups that share a truth; E overridden entries; T recorded rounds.

    A table may be that of a partition of a larger population: its N agents are numbered from `first`, and
    they hear `halo` others, whose rows come after their own.
    """

    key0: np.uint64
    key1: np.uint64
    n_states: int
    n_agents: int
    """Agents of the whole population."""
    first: int
    """The number of the first agent here."""
    halo: int
    """How many agents are heard that are not here."""
    group: NDArray[np.int64]
    """Shape (N,): the group of each agent; agents of a group have the same true state."""
    starts: NDArray[np.int64]
    """Shape (S,): the first round of each segment of the truth's schedule."""
    dominant: NDArray[np.int64]
    """Shape (S, G): the state that dominates in each segment."""
    dominance: float
    """Probability that the dominant state is the true one in a round; else another, uniformly."""
    states: NDArray[np.int64]
    """Shape (T, G): recorded true states, or (0, G)."""
    signal_std: NDArray[np.float64]
    """Shape (1 or T, 1 or N): of all signals, of each agent's, or of each round and agent."""
    signals: NDArray[np.float64]
    """Shape (T, N): recorded signals, or (0, N)."""
    loss_kind: int
    """0 match, 1 distance, 2 recorded."""
    losses: NDArray[np.float64]
    """Shape (T, L, M): recorded losses of each group or agent, or (0, L, M)."""
    flip_prob: float
    """Probability that an agent's loss l is replaced by 1 - l, independently for every agent."""
    loss_row: NDArray[np.int64]
    """Shape (N,): whose losses an agent suffers, its group's or its own."""
    row_agent: NDArray[np.int64]
    """Shape (L,): the number of an agent that suffers the losses of each row."""
    row_group: NDArray[np.int64]
    """Shape (L,): its group."""
    indptr: NDArray[np.int64]
    """Shape (N + 1,): where the column of each agent starts."""
    senders: NDArray[np.int32]
    """The rows of the agents j that agent k listens to, itself among them."""
    weights: NDArray[np.float64]
    """a_jk of each; a column sums to one."""
    edit_rounds: NDArray[np.int64]
    edit_agents: NDArray[np.int64]
    edit_states: NDArray[np.int64]
    """-1 where the agent's signal is overridden, else the state whose loss is."""
    edit_values: NDArray[np.float64]
    """Shape (E,) each: the overridden entries."""


@kernel
def write_truth(table: Any, t: Any, truth: Any) -> None:
    """Write the true state of every group in round t."""
    for g in range(truth.size):
        if table.states.shape[0] > 0:
            truth[g] = table.states[t, g]
            continue
        state = table.dominant[segment_at(table.starts, t), g]
        words = philox(table.key0, table.key1, np.uint64(t), np.uint64(g), _TRUTH, np.uint64(0))
        if table.n_states > 1 and to_unit(words[0]) >= table.dominance:
            other = int(to_unit(words[1]) * (table.n_states - 1))
            state = other + 1 if other >= state else other
        truth[g] = state


@kernel
def signal_at(table: Any, t: Any, k: Any, true_state: Any) -> Any:
    """Return the signal S of the agent in row k in round t (eq. 2), on the scale of states."""
    who = table.first + k
    for e in range(table.edit_rounds.size):
        if table.edit_rounds[e] == t and table.edit_agents[e] == who and table.edit_states[e] < 0:
            return table.edit_values[e]
    if table.signals.shape[0] > 0:
        return table.signals[t, k]
    words = philox(table.key0, table.key1, np.uint64(t), np.uint64(who), _SIGNAL, np.uint64(0))
    return true_state + deviation_at(table, t, k) * inverse_normal(to_open_unit(words[0]))


@kernel
def deviation_at(table: Any, t: Any, k: Any) -> Any:
    """Return sigma_kt, the standard deviation of the signal of the agent in row k in round t (eq. 3)."""
    sigma = table.signal_std
    return sigma[t if sigma.shape[0] > 1 else 0, k if sigma.shape[1] > 1 else 0]


@kernel
def loss_at(table: Any, t: Any, k: Any, state: Any, true_state: Any) -> Any:
    """Return the loss of the agent in row k in round t if it names `state`."""
    return loss_in_row(table, t, table.first + k, table.loss_row[k], state, true_state)


@kernel
def loss_in_row(table: Any, t: Any, who: Any, row: Any, state: Any, true_state: Any) -> Any:
    """Return the loss of a state in a round of one agent's row, edits counted."""
    for e in range(table.edit_rounds.size):
        if (
            table.edit_rounds[e] == t
            and table.edit_agents[e] == who
            and table.edit_states[e] == state
        ):
            return table.edit_values[e]
    if table.loss_kind == RECORDED:
        value = table.losses[t, row, state]
    elif table.loss_kind == DISTANCE:
        value = abs(state - true_state) / max(1.0, table.n_states - 1.0)
    else:
        value = 0.0 if state == true_state else 1.0
    if table.flip_prob > 0.0:
        place = np.uint64(t), np.uint64(who), _LOSS, np.uint64(state)
        words = philox(table.key0, table.key1, place[0], place[1], place[2], place[3])
        if to_unit(words[0]) < table.flip_prob:
            value = 1.0 - value
    return value
