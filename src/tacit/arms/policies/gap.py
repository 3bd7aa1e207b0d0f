"""GAP: private arm elimination on a feedback graph.

Pulling an arm shows the rewards of its neighbours too. GAP plays in phases: it pulls a maximal
independent set of the arms still active, which shows every active arm often enough, adds Laplace noise
to the mean reward of each, and drops the arms that are clearly worse. Every reward enters one phase and
one mean only, so the privacy of a phase is the privacy of the whole run.

Paper 002 (Lu et al. 2022), Algorithm 1, to the letter; ties go to the lowest index. A phase ends when
every active arm was observed L times: under full feedback exactly after L pulls of each arm of the set,
and also right when rewards are lost or arms are out of stock. If the graph changes in the middle of a
phase, the phase begins again, because a set of the old graph need not cover the new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.arms.elimination import (
    CURSOR,
    FIRST,
    GRAPH,
    LACKING,
    LEAST,
    PHASE,
    SIZE,
    WANTED,
    GraphElimination,
    planned_factor,
    round_factor,
    serve,
)
from tacit.arms.loops import steady_segment, sum_rewards
from tacit.arms.policy import Kernels
from tacit.arms.table import reward, row_of, segment_at
from tacit.arms.trace import record
from tacit.core.kernels import kernel
from tacit.graphs.independent import greedy_independent_set
from tacit.privacy.block_sums import on_grid, release_mean

_LONGEST = 2.0**62


@kernel(inlined=False)
def begin(params: Any, state: Any, t: Any) -> None:
    """Lines 3 to 12: forget the last phase, plan the next on the independent set chosen."""
    K, tau = state.active.size, state.now[PHASE]
    state.counts[:] = 0
    state.sums[:] = 0.0
    state.pulls[:] = 0
    m = 0
    for a in range(K):
        if state.chosen[a]:
            state.members[m] = a
            m += 1
    state.now[SIZE], state.now[CURSOR], state.now[LEAST], state.now[FIRST] = m, 0, 0, t
    size_A = n_active(state.active)
    epsilon = params.epsilon
    if params.per_round == 1:
        epsilon /= planned_factor(params.tight, state, state.now[GRAPH])
    log_8 = math.log(8.0 * size_A * tau * tau / params.failure_prob)
    log_4 = math.log(4.0 * size_A * tau * tau / params.failure_prob)
    L_1 = 2.0 ** (5 + 2 * tau) * log_8
    L_2 = 2.0 ** (3 + tau) / epsilon * log_4
    state.now[WANTED] = math.ceil(min(max(L_1, L_2), _LONGEST)) + params.extra
    state.now[LACKING] = size_A


@kernel
def n_active(active: Any) -> Any:
    """Return the size of the active set."""
    n = 0
    for a in range(active.size):
        n += active[a]
    return n


@kernel
def pick(state: Any, eligible: Any) -> Any:
    """Line 14: the member pulled least often, or any eligible arm if no member is eligible."""
    arm = state.members[state.now[CURSOR]]
    if eligible.size < state.active.size:
        arm = eligible[0]
        fewest = np.int64(1) << 62
        for i in range(eligible.size):
            a = eligible[i]
            if state.chosen[a] and state.pulls[a] < fewest:
                arm, fewest = a, state.pulls[a]
    state.pulls[arm] += 1
    while state.pulls[state.members[state.now[CURSOR]]] > state.now[LEAST]:
        state.now[CURSOR] += 1
        if state.now[CURSOR] == state.now[SIZE]:
            state.now[CURSOR] = 0
            state.now[LEAST] += 1
    return arm


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Line 17: take in one observed reward, of the pulled arm or of a neighbour."""
    if state.active[arm] and t >= state.now[FIRST]:
        state.counts[arm] += 1
        state.sums[arm] += on_grid(tape, reward)
        if state.counts[arm] == state.now[WANTED]:
            state.now[LACKING] -= 1


@kernel(inlined=False)
def play_phase(
    params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any, last: Any
) -> Any:
    """Lines 13 to 19: play from round t until the phase or the graph ends; return the round."""
    K, g = state.active.size, state.now[GRAPH]
    if g + 1 < state.graph_starts.size:
        last = min(last, state.graph_starts[g + 1])
    while t < last and state.now[LACKING] > 0:
        arm = pick(state, table.all_arms)
        low, high = row_of(state.indptr, K, g, arm)
        if state.now[SIZE] == 1:
            t = play_alone(state, table, tape, trace, t, last, arm, low, high)
            continue
        value = reward(table, t, arm)
        record(table, trace, t, arm, value)
        for e in range(low, high):
            b = state.indices[e]
            if b == arm:
                learn(params, state, tape, t, b, value)
            elif state.active[b]:
                learn(params, state, tape, t, b, reward(table, t, b))
        t += 1
    return t


@kernel(inlined=False)
def play_alone(
    state: Any, table: Any, tape: Any, trace: Any, t: Any, last: Any, arm: Any, low: Any, high: Any
) -> Any:
    """Pull the only member of the set until it has shown some arm L times; return the next round.

    Rounds that share their random words are looked up together: 2.4 times as fast on ten arms that all
    show each other.
    """
    L = state.now[WANTED]
    for e in range(low, high):
        b = state.indices[e]
        if state.active[b] and state.counts[b] < L:
            last = min(last, t + L - state.counts[b])
    segment = steady_segment(table, t, last)
    for e in range(low, high):
        b = state.indices[e]
        if state.active[b]:
            total, before = state.sums[b], state.counts[b]
            state.sums[b] = sum_rewards(total, table, tape, trace, t, last, b, arm, segment)
            state.counts[b] += last - t
            state.now[LACKING] -= before < L <= state.counts[b]
    state.pulls[arm] += last - t - 1  # one is counted already
    state.now[LEAST] = state.pulls[arm]
    return last


@kernel(inlined=False)
def eliminate(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Lines 20 to 23: noise the means, drop the arms that are clearly worse."""
    K = state.active.size
    L, tau = state.now[WANTED], state.now[PHASE]
    size_A = n_active(state.active)
    epsilon = params.epsilon
    if params.per_round == 1:
        epsilon /= round_factor(params.tight, state, state.now[GRAPH], L)
    largest = -np.inf
    for a in range(K):
        if state.active[a]:
            o = state.counts[a]
            least = o if params.tight == 1 else L
            state.means[a] = release_mean(tape, t, a, state.sums[a], o, least, epsilon)
            largest = max(largest, state.means[a])
    h = math.sqrt(2.0 * math.log(8.0 * size_A * tau * tau / params.failure_prob) / L)
    c = 2.0 * math.log(4.0 * size_A * tau * tau / params.failure_prob) / (epsilon * L)
    for a in range(K):
        if state.active[a] and state.means[a] < largest - h - c:
            state.active[a] = False


@kernel(inlined=False)
def greedy_set(state: Any) -> None:
    """Lines 26 to 32: take arms by descending mean, each barring its neighbours."""
    K = state.active.size
    order = state.members
    n = 0
    for a in range(K):
        if state.active[a]:
            i = n
            while i > 0 and state.means[order[i - 1]] < state.means[a]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = a
            n += 1
    indptr = state.indptr[state.now[GRAPH] * (K + 1) : (state.now[GRAPH] + 1) * (K + 1)]
    greedy_independent_set(indptr, state.indices, state.active, order[:n], state.chosen)


@kernel
def turn(params: Any, state: Any, tape: Any, t: Any) -> Any:
    """End the phase if it is complete; return whether a phase begins in round t."""
    graph = 0
    if state.graph_starts.size > 1:
        graph = segment_at(state.graph_starts, t)
    if state.now[LACKING] > 0 and graph == state.now[GRAPH]:
        return False
    if state.now[LACKING] == 0:
        if state.now[PHASE] > 0:
            eliminate(params, state, tape, t)
        state.now[PHASE] += 1
    state.now[GRAPH] = graph
    return True


@kernel
def new_phase(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Choose the set to explore and begin."""
    greedy_set(state)
    begin(params, state, t)


def select_in_phases(new_phase: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``select`` of a policy whose phases begin so."""

    @kernel
    def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
        """Return the arm of round t."""
        if turn(params, state, tape, t):
            new_phase(params, state, tape, t)
        return pick(state, eligible)

    return select


def phases(new_phase: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` of such a policy."""

    @kernel
    def run(
        params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        """Play rounds first to last - 1."""
        t = first
        while t < last:
            if turn(params, state, tape, t):
                new_phase(params, state, tape, t)
            t = play_phase(params, state, table, tape, trace, t, last)

    return run


@dataclass(frozen=True, kw_only=True)
class GAP(GraphElimination):
    """Eliminate arms by noised means, exploring a greedy independent set of the feedback graph.

    Guarantee: pure differential privacy with `epsilon` for one reward (one arm, one round), or with
    ``unit="round"`` for all rewards of one round, over the whole run; the server is trusted.

    Parameters
    ----------
    epsilon : float
        Privacy of the protected unit.
    horizon : int
        Number of rounds T, for the failure probability.
    failure_prob : float, optional
        Probability with which the confidence bounds may fail; 1/T if not given.
    unit : "reward" or "round", default "reward"
        What is protected. A round multiplies the noise by the largest sum of L / o over the active
        neighbours of a pulled arm, a number known before any reward is seen.
    noise : "published" or "tight", default "published"
        Laplace noise of scale 1 / (epsilon L), as published, or 1 / (epsilon o), which is enough for
        an arm observed o times.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import GAP, GraphFeedback, Bernoulli
    >>> environment = GraphFeedback(environment=Bernoulli(means=(0.9, 0.5, 0.4)), edge_prob=0.5)
    >>> policy = GAP(n_arms=3, epsilon=1.0, horizon=20_000)
    >>> result = tacit.simulate(policy, environment, horizon=20_000, repetitions=4)
    >>> bool(result.final("regret").mean() < 4000)
    True
    >>> policy.guarantee(20_000).epsilon
    1.0

    References
    ----------
    Lu, Wang, Qiu, Zhang. Differentially private algorithm for graphical bandits. Journal of
    Software 33(9), 2022 (in Chinese).
    """

    name: ClassVar[str] = "gap"
    summary: ClassVar[str] = "private elimination on a feedback graph, greedy independent sets"
    paper: ClassVar[str] = "002, Algorithm 1"
    kernels: ClassVar[Kernels] = Kernels(
        select=select_in_phases(new_phase), learn=learn, run=phases(new_phase), serve=serve
    )
