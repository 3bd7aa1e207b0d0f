"""The table of agents who track a changing truth: true states, signals and losses.

The true state of a round, the signal an agent gets about it and the loss of every state an agent
could name are pure functions of a key and the position, or cells of recorded arrays; a few signals
and losses may be overridden, which makes a neighbouring table. A trace keeps what a result needs:
regret, belief, disagreement and convergence at the checkpoints, and everything only when asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import kernel
from tacit.generator import inverse_normal, philox, to_open_unit, to_unit

__all__ = [
    "MEASURES",
    "Table",
    "Trace",
    "add_distances",
    "add_up",
    "agree",
    "charge_updated",
    "deviation_at",
    "edit_losses",
    "edit_signals",
    "keep_beliefs",
    "new_trace",
    "note",
    "rounds",
    "write_measures",
]

MATCH, DISTANCE, RECORDED = 0, 1, 2
MEASURES = (
    "regret",
    "belief",
    "disagreement",
    "converged",
    "convergence_time",
    "choice_regret",
    "regret_after_update",
)
_TRUTH, _SIGNAL, _LOSS = np.uint64(1), np.uint64(2), np.uint64(3)
_SIGNAL_EDIT = -1


class Table(NamedTuple):
    """N agents, M states, G groups that share a truth; E overridden entries; T recorded rounds.

    A table may be that of a piece of a larger population: its N agents are numbered from `first`, and
    they hear `ghosts` others, whose rows come after their own.
    """

    key0: np.uint64
    key1: np.uint64
    n_states: int
    n_agents: int
    """Agents of the whole population."""
    first: int
    """The number of the first agent here."""
    ghosts: int
    """How many agents are heard that are not here."""
    group: NDArray[np.int64]
    """Shape (N,): the group of each agent; agents of a group have the same true state."""
    starts: NDArray[np.int64]
    """Shape (S,): the first round of each piece of the truth's schedule."""
    dominant: NDArray[np.int64]
    """Shape (S, G): the state that dominates in each piece."""
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


class Trace(NamedTuple):
    """What is kept of a run: C checkpoints; C x N beliefs and T x N choices if asked for."""

    checkpoints: NDArray[np.int64]
    """Shape (C,): numbers of rounds played, increasing."""
    measures: NDArray[np.float64]
    """Shape (C, 7): a column for each of MEASURES."""
    cursor: NDArray[np.int64]
    """Shape (1,): the next checkpoint."""
    threshold: float
    """The belief that counts as certainty."""
    converged_at: NDArray[np.int64]
    """Shape (1,): rounds played at convergence, 0 before."""
    belief_loss: NDArray[np.float64]
    """Shape (N,): sum over rounds of the loss expected under the belief held when a round begins."""
    updated_loss: NDArray[np.float64]
    """Shape (N,): the same under the belief that the round left behind, as eq. 10 prints it."""
    state_loss: NDArray[np.float64]
    """Shape (L, M): sum over rounds of the loss of each state."""
    choice_loss: NDArray[np.float64]
    """Shape (N,): sum over rounds of the loss suffered."""
    beliefs: NDArray[np.float64]
    """Shape (C, N, M), or (0, N, M) when not recorded."""
    decisions: NDArray[np.int32]
    """Shape (T, N), or (0, N) when not recorded."""
    truth: NDArray[np.int64]
    """Shape (G,): the true state of each group in the round being played."""
    certain: NDArray[np.int64]
    """Shape (G,): what the agents of each group agree on, -1 for nothing yet."""
    sums: NDArray[np.float64]
    """Shape (5 + M,): room to work: regret, belief, disagreement, regret of choices and of updated
    beliefs, mean belief."""


def new_trace(
    shape: tuple[int, int, int, int],
    horizon: int,
    checkpoints: NDArray[np.int64],
    *,
    threshold: float,
    record: bool,
) -> Trace:
    """Return an empty trace for (agents, groups, rows of losses, states)."""
    n_agents, n_groups, n_rows, n_states = shape
    return Trace(
        np.ascontiguousarray(checkpoints, np.int64),
        np.zeros((len(checkpoints), len(MEASURES))),
        np.zeros(1, np.int64),
        float(threshold),
        np.zeros(1, np.int64),
        np.zeros(n_agents),
        np.zeros(n_agents),
        np.zeros((n_rows, n_states)),
        np.zeros(n_agents),
        np.zeros((len(checkpoints) if record else 0, n_agents, n_states)),
        np.zeros((horizon if record else 0, n_agents), np.int32),
        np.zeros(n_groups, np.int64),
        np.zeros(n_groups, np.int64),
        np.zeros(5 + n_states),
    )


def edit_losses(table: Table, entries: Sequence[tuple[int, int, int, float]]) -> Table:
    """Return the neighbouring table in which losses (round, agent, state) have the given values."""
    for t, k, state, value in entries:
        inside = t >= 0 and 0 <= k < table.n_agents and 0 <= state < table.n_states
        if not inside or not 0.0 <= value <= 1.0:
            raise ValueError(
                f"edit_losses: expected round >= 0, agent in 0..{table.n_agents - 1}, state in "
                f"0..{table.n_states - 1} and value in [0, 1], got {(t, k, state, value)}"
            )
    return _edited(table, entries)


def edit_signals(table: Table, entries: Sequence[tuple[int, int, float]]) -> Table:
    """Return the neighbouring table in which signals (round, agent) have the given values."""
    for t, k, value in entries:
        if t < 0 or not 0 <= k < table.n_agents or not np.isfinite(value):
            raise ValueError(
                f"edit_signals: expected round >= 0, agent in 0..{table.n_agents - 1} and a "
                f"finite value, got {(t, k, value)}"
            )
    return _edited(table, [(t, k, _SIGNAL_EDIT, value) for t, k, value in entries])


def _edited(table: Table, entries: Sequence[tuple[int, int, int, float]]) -> Table:
    # Later entries win, so they come first: the accessors take the first match.
    rounds, agents, states, values = zip(*reversed(entries), strict=True)
    return table._replace(
        edit_rounds=np.concatenate((np.array(rounds, np.int64), table.edit_rounds)),
        edit_agents=np.concatenate((np.array(agents, np.int64), table.edit_agents)),
        edit_states=np.concatenate((np.array(states, np.int64), table.edit_states)),
        edit_values=np.concatenate((np.array(values, np.float64), table.edit_values)),
    )


@kernel
def truth_at(table: Any, t: Any, truth: Any) -> None:
    """Write the true state of every group in round t."""
    for g in range(truth.size):
        if table.states.shape[0] > 0:
            truth[g] = table.states[t, g]
            continue
        piece = table.starts.size - 1
        while table.starts[piece] > t:
            piece -= 1
        state = table.dominant[piece, g]
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
    return _loss(table, t, table.first + k, table.loss_row[k], state, true_state)


@kernel
def _loss(table: Any, t: Any, who: Any, row: Any, state: Any, true_state: Any) -> Any:
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


@kernel
def charge(table: Any, trace: Any, t: Any, mu: Any, choices: Any) -> None:
    """Add round t to the losses of beliefs, states and choices; `mu` is from before the round."""
    truth, M = trace.truth, mu.shape[1]
    for row in range(table.row_agent.size):
        who, true_state = table.row_agent[row], truth[table.row_group[row]]
        for state in range(M):
            trace.state_loss[row, state] += _loss(table, t, who, row, state, true_state)
    for k in range(mu.shape[0]):
        trace.belief_loss[k] += _expected(table, t, k, mu, truth[table.group[k]])
        trace.choice_loss[k] += loss_at(table, t, k, choices[k], truth[table.group[k]])
    if trace.decisions.shape[0] > 0:
        for k in range(mu.shape[0]):
            trace.decisions[t, k] = choices[k]


@kernel
def _expected(table: Any, t: Any, k: Any, mu: Any, true_state: Any) -> Any:
    """Return the loss that agent k expects in round t under the belief mu."""
    expected = 0.0
    for state in range(mu.shape[1]):
        expected += mu[k, state] * loss_at(table, t, k, state, true_state)
    return expected


@kernel
def charge_updated(table: Any, trace: Any, t: Any, mu: Any) -> None:
    """Add round t to the losses of the beliefs that it left behind (eq. 10)."""
    for k in range(mu.shape[0]):
        trace.updated_loss[k] += _expected(table, t, k, mu, trace.truth[table.group[k]])


@kernel
def note(table: Any, trace: Any, t: Any, mu: Any) -> None:
    """Charge the new beliefs, look for convergence, and fill the checkpoint if there is one."""
    charge_updated(table, trace, t, mu)
    if trace.converged_at[0] == 0 and agree(table.group, mu, trace.threshold, trace.certain):
        trace.converged_at[0] = t + 1
    cursor = trace.cursor[0]
    if cursor >= trace.checkpoints.size or trace.checkpoints[cursor] != t + 1:
        return
    trace.sums[:] = 0.0
    add_up(table, trace, mu, trace.sums)
    add_distances(mu, trace.sums)
    keep_beliefs(trace, mu)
    write_measures(trace, t, table.n_agents)


@kernel
def agree(group: Any, mu: Any, threshold: Any, certain: Any) -> Any:
    """Return whether all agents of a group are certain of one state, and write which."""
    for g in range(certain.size):
        certain[g] = -1
    for k in range(mu.shape[0]):
        likely = 0
        for state in range(mu.shape[1]):
            if mu[k, state] > mu[k, likely]:
                likely = state
        if mu[k, likely] <= threshold:
            return False
        if certain[group[k]] < 0:
            certain[group[k]] = likely
        elif certain[group[k]] != likely:
            return False
    return True


@kernel
def add_up(table: Any, trace: Any, mu: Any, sums: Any) -> None:
    """Add these agents to the sums of a checkpoint: regrets, beliefs and the mean belief."""
    for k in range(mu.shape[0]):
        row, best = table.loss_row[k], 0
        for state in range(mu.shape[1]):
            sums[5 + state] += mu[k, state] / table.n_agents
            if trace.state_loss[row, state] < trace.state_loss[row, best]:
                best = state
        sums[0] += trace.belief_loss[k] - trace.state_loss[row, best]
        sums[1] += mu[k, best]
        sums[3] += trace.choice_loss[k] - trace.state_loss[row, best]
        sums[4] += trace.updated_loss[k] - trace.state_loss[row, best]


@kernel
def add_distances(mu: Any, sums: Any) -> None:
    """Add how far these agents are from the mean belief, which the sums hold."""
    for k in range(mu.shape[0]):
        for state in range(mu.shape[1]):
            sums[2] += 0.5 * abs(mu[k, state] - sums[5 + state])


@kernel
def keep_beliefs(trace: Any, mu: Any) -> None:
    """Record the beliefs of a checkpoint if they are asked for."""
    if trace.beliefs.shape[0] > 0:
        for k in range(mu.shape[0]):
            for state in range(mu.shape[1]):
                trace.beliefs[trace.cursor[0], k, state] = mu[k, state]


@kernel
def write_measures(trace: Any, t: Any, N: Any) -> None:
    """Fill the checkpoint after round t from the sums over all N agents."""
    cursor, done = trace.cursor[0], trace.converged_at[0]
    trace.measures[cursor, 0] = trace.sums[0] / N
    trace.measures[cursor, 1] = trace.sums[1] / N
    trace.measures[cursor, 2] = trace.sums[2] / N
    trace.measures[cursor, 3] = 1.0 if done > 0 else 0.0
    trace.measures[cursor, 4] = done if done > 0 else t + 1
    trace.measures[cursor, 5] = trace.sums[3] / N
    trace.measures[cursor, 6] = trace.sums[4] / N
    trace.cursor[0] += 1


def rounds(tell: Callable[..., None], hear: Callable[..., None]) -> Callable[..., None]:
    """Return the kernel that plays rounds of these two halves."""

    @kernel
    def run(
        rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        """Play rounds first to last - 1."""
        for t in range(first, last):
            tell(rule, state, table, tape, trace, t)
            hear(rule, state, table, tape, trace, t)
            note(table, trace, t, state.mu)

    return run
