"""AlphaSample: elimination on a feedback graph that is never shown.

A sample pulls arms at random, among those not yet observed, until every active arm was observed once;
that takes about as many pulls as the graph has independent arms, though the graph is unknown. After
enough samples the arms that are clearly worse are dropped. Cohen, Hazan and Koren (2016), Section 4; no
noise is added.

Phase r takes 8 ln(1 / failure_prob) 4^r samples and drops the arms that are 2^-r worse than the best: of
two means each may be off by half of that, the radius sqrt(2 ln(1 / failure_prob) / n) of UCB1. These
constants are this project's reading: paper 002 gives none, and they come closest to its setting's regrets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.elimination import Elimination
from tacit.arms.policies.aae import Params
from tacit.arms.policy import Kernels, PlainPolicy
from tacit.arms.table import Table, reward, row_of, segment_at
from tacit.arms.trace import record
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, uniform


class State(NamedTuple):
    """What is learned."""

    active: NDArray[np.bool_]
    """Shape (K,): arms not dropped."""
    unseen: NDArray[np.bool_]
    """Shape (K,): active arms not yet observed in this sample."""
    sums: NDArray[np.float64]
    """Shape (K,): one reward of each sample of this phase, summed."""
    now: NDArray[np.int64]
    """Shape (5,): where the phase stands, by the names below."""


PHASE = 0
"""r, from 1; 0 before the first round."""
WANTED = 1
"""How many samples the phase takes."""
SAMPLES = 2
"""How many are complete."""
UNSEEN = 3
"""How many arms this sample has not yet observed."""
FIRST = 4
"""The round the sample began in; rewards of earlier rounds are ignored."""


@kernel(inlined=False)
def next_phase(params: Any, state: Any) -> None:
    """Drop the arms that are clearly worse and begin the next phase."""
    K = state.active.size
    r, n = state.now[PHASE], state.now[SAMPLES]
    if r > 0:
        largest = 0.0
        for a in range(K):
            if state.active[a]:
                largest = max(largest, state.sums[a] / n)
        for a in range(K):
            if state.active[a] and state.sums[a] / n < largest - 2.0**-r:
                state.active[a] = False
    state.sums[:] = 0.0
    state.now[PHASE] = r + 1
    state.now[SAMPLES] = 0
    samples = 8.0 * math.log(1.0 / params.failure_prob) * 4.0 ** min(r + 1, 25)
    state.now[WANTED] = max(1, math.ceil(samples))


@kernel(inlined=False)
def next_sample(params: Any, state: Any, t: Any) -> None:
    """Begin a sample: every active arm is to be observed once more."""
    if state.now[SAMPLES] == state.now[WANTED]:
        next_phase(params, state)
    state.now[UNSEEN] = 0
    for a in range(state.active.size):
        state.unseen[a] = state.active[a]
        state.now[UNSEEN] += state.active[a]
    state.now[FIRST] = t


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Return an arm drawn from those not yet observed in this sample."""
    if state.now[UNSEEN] == 0:
        next_sample(params, state, t)
    n = 0
    for i in range(eligible.size):
        n += state.unseen[eligible[i]]
    u = uniform(tape, t, 0, CHOICE)
    if n == 0:
        return eligible[int(u * eligible.size)]
    skip = int(u * n)
    for i in range(eligible.size):
        if state.unseen[eligible[i]]:
            if skip == 0:
                return eligible[i]
            skip -= 1
    return eligible[0]


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Take in one observed reward if it is the arm's first in this sample."""
    if state.unseen[arm] and t >= state.now[FIRST]:
        state.unseen[arm] = False
        state.now[UNSEEN] -= 1
        state.sums[arm] += reward
        if state.now[UNSEEN] == 0:
            state.now[SAMPLES] += 1


@kernel
def run(params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any) -> None:
    """Play rounds first to last - 1."""
    K = state.active.size
    for t in range(first, last):
        arm = select(params, state, tape, t, table.all_arms)
        value = reward(table, t, arm)
        record(table, trace, t, arm, value)
        graph = segment_at(table.graph_starts, t)
        low, high = row_of(table.indptr, K, graph, arm)
        for e in range(low, high):
            b = table.indices[e]
            if state.unseen[b]:
                learn(params, state, tape, t, b, value if b == arm else reward(table, t, b))


@kernel
def probabilities(params: Any, state: Any, t: Any, eligible: Any, out: Any) -> None:
    """Write the probability of every arm in the draw of round t."""
    n = 0
    for i in range(eligible.size):
        n += state.unseen[eligible[i]]
    for a in range(out.size):
        out[a] = 0.0
    for i in range(eligible.size):
        a = eligible[i]
        if n == 0:
            out[a] = 1.0 / eligible.size
        elif state.unseen[a]:
            out[a] = 1.0 / n


@dataclass(frozen=True, kw_only=True)
class AlphaSample(Elimination[State], PlainPolicy[State]):
    """Cover the active arms at random, again and again, and drop those that are clearly worse.

    Guarantee: none; the decisions depend on every observed reward without noise.

    Parameters
    ----------
    failure_prob : float, optional
        Probability with which one confidence bound may fail; 1/T if not given.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import AlphaSample, Bernoulli, GraphFeedback
    >>> environment = GraphFeedback(environment=Bernoulli(means=(0.9, 0.1, 0.2)), edge_prob=0.5)
    >>> policy = AlphaSample(n_arms=3, horizon=10_000)
    >>> bool(tacit.simulate(policy, environment, horizon=10_000).final("regret")[0] < 1000)
    True

    References
    ----------
    Cohen, Hazan, Koren. Online learning with feedback graphs without the graphs. ICML 2016.
    """

    name: ClassVar[str] = "alpha-sample"
    summary: ClassVar[str] = "elimination on a feedback graph that is never shown, no noise"
    paper: ClassVar[str] = "Cohen et al. 2016"
    side_observations: ClassVar[bool] = True
    kernels: ClassVar[Kernels] = Kernels(
        select=select, learn=learn, run=run, probabilities=probabilities
    )

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(self.confidence_loss)

    def shown_with(self, arm: int) -> frozenset[int]:
        """Return all arms: the graph is not known, so any reward may have been shown."""
        return frozenset(range(self.n_arms))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        K = self.n_arms
        return State(
            np.ones(K, np.bool_), np.zeros(K, np.bool_), np.zeros(K), np.zeros(5, np.int64)
        )

    def retire(self, state: State, arm: int) -> None:
        """Drop the arm; a sample no longer waits for it."""
        super().retire(state, arm)
        if state.unseen[arm]:
            state.unseen[arm] = False
            state.now[UNSEEN] -= 1
            state.now[SAMPLES] += state.now[UNSEEN] == 0

    def carry_over(self, state: State, larger: State) -> None:
        """Keep which arms were dropped; a new arm needs phases of its own."""
        larger.active[: self.n_arms] = state.active
