"""The trace of the diffusion setting: regret, belief, disagreement and convergence at the checkpoints."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel
from tacit.diffusion.table import loss_at, loss_in_row

MEASURES = (
    "regret",
    "belief",
    "disagreement",
    "converged",
    "convergence_time",
    "choice_regret",
    "regret_after_update",
)


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


@kernel
def record_choices(table: Any, trace: Any, t: Any, mu: Any, choices: Any) -> None:
    """Add round t to the losses of beliefs, states and choices; `mu` is from before the round."""
    truth, M = trace.truth, mu.shape[1]
    for row in range(table.row_agent.size):
        who, true_state = table.row_agent[row], truth[table.row_group[row]]
        for state in range(M):
            trace.state_loss[row, state] += loss_in_row(table, t, who, row, state, true_state)
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
def record_updated(table: Any, trace: Any, t: Any, mu: Any) -> None:
    """Add round t to the losses of the beliefs that it left behind (eq. 10)."""
    for k in range(mu.shape[0]):
        trace.updated_loss[k] += _expected(table, t, k, mu, trace.truth[table.group[k]])


@kernel
def record(table: Any, trace: Any, t: Any, mu: Any) -> None:
    """Charge the new beliefs, look for convergence, and fill the checkpoint if there is one."""
    record_updated(table, trace, t, mu)
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
