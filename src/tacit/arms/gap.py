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
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.arms.elimination import GRAPH, LACKING, PHASE, WANTED, GraphElimination
from tacit.arms.phases import (
    learn,
    n_active,
    pick,
    plan,
    planned_factor,
    play_phase,
    round_factor,
)
from tacit.arms.tables import piece_of
from tacit.compiled import kernel
from tacit.networks.independent import greedy_independent_set
from tacit.privacy.mechanisms import release_laplace
from tacit.tapes import NOISE

__all__ = ["GAP"]

_LONGEST = 2.0**62


@dataclass(frozen=True, kw_only=True)
class GAP(GraphElimination):
    """Eliminate arms by noised means, exploring a greedy independent set of the feedback graph.

    Guarantee: pure differential privacy with `epsilon` for one reward (one arm, one round), or with
    ``unit="round"`` for all rewards of one round, over the whole run; the server is trusted.

    Parameters
    ----------
    n_arms : int
        Number of arms K.
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
    graph : Graph, optional
        The feedback graph when the policy decides on its own; in a simulation the table has it.

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


@kernel(inlined=False)
def begin(rule: Any, state: Any, t: Any) -> None:
    """Lines 3 to 12: forget the last phase, plan the next on the independent set chosen."""
    plan(state, t)
    size_A, tau = n_active(state.active), state.now[PHASE]
    epsilon = rule.epsilon
    if rule.per_round == 1:
        epsilon /= planned_factor(rule, state)
    log_8 = math.log(8.0 * size_A * tau * tau / rule.failure_prob)
    log_4 = math.log(4.0 * size_A * tau * tau / rule.failure_prob)
    L_1 = 2.0 ** (5 + 2 * tau) * log_8
    L_2 = 2.0 ** (3 + tau) / epsilon * log_4
    state.now[WANTED] = math.ceil(min(max(L_1, L_2), _LONGEST)) + rule.extra
    state.now[LACKING] = size_A


@kernel(inlined=False)
def eliminate(rule: Any, state: Any, tape: Any, t: Any) -> None:
    """Lines 20 to 23: noise the means, drop the arms that are clearly worse."""
    K = state.active.size
    L, tau = state.now[WANTED], state.now[PHASE]
    size_A = n_active(state.active)
    factor = round_factor(rule, state) if rule.per_round == 1 else 1.0
    epsilon = rule.epsilon / factor
    largest = -np.inf
    for a in range(K):
        if state.active[a]:
            o = state.counts[a]
            sensitivity = 1.0 / (o if rule.tight == 1 else L)
            state.means[a] = release_laplace(
                tape, t, a, NOISE, state.sums[a] / o, sensitivity, epsilon
            )
            largest = max(largest, state.means[a])
    h = math.sqrt(2.0 * math.log(8.0 * size_A * tau * tau / rule.failure_prob) / L)
    c = 2.0 * math.log(4.0 * size_A * tau * tau / rule.failure_prob) / (epsilon * L)
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
def turn(rule: Any, state: Any, tape: Any, t: Any) -> Any:
    """End the phase if it is complete; return whether a phase begins in round t."""
    graph = 0
    if state.graph_starts.size > 1:
        graph = piece_of(state.graph_starts, t)
    if state.now[LACKING] > 0 and graph == state.now[GRAPH]:
        return False
    if state.now[LACKING] == 0:
        if state.now[PHASE] > 0:
            eliminate(rule, state, tape, t)
        state.now[PHASE] += 1
    state.now[GRAPH] = graph
    return True


@kernel
def act(rule: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Return the arm of round t."""
    if turn(rule, state, tape, t):
        greedy_set(state)
        begin(rule, state, t)
    return pick(state, eligible)


@kernel
def run(rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any) -> None:
    """Play rounds first to last - 1."""
    t = first
    while t < last:
        if turn(rule, state, tape, t):
            greedy_set(state)
            begin(rule, state, t)
        t = play_phase(rule, state, table, tape, trace, t, last)


GAP.act, GAP.learn, GAP.run = act, learn, run
