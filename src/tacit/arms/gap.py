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
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.graph_environments import Feedback, closed_rows
from tacit.arms.policy import ArmsPolicy
from tacit.arms.tables import (
    NORMAL,
    book,
    observe,
    piece_of,
    reward,
    reward_of,
    row_of,
    words_of,
)
from tacit.compiled import kernel
from tacit.networks import Graph
from tacit.networks.independent import greedy_independent_set
from tacit.policy import require
from tacit.privacy import Claim, Guarantee, LaplaceRelease, compose
from tacit.privacy.samplers import release_laplace

__all__ = ["GAP"]

_LONGEST = 2.0**62
_MOST_BITS = 62


class Rule(NamedTuple):
    """What the kernels need."""

    epsilon: float
    failure_prob: float
    per_round: int
    """1 if a whole round is protected, 0 if one reward is."""
    tight: int
    """1 if the noise of a mean shrinks with its own count, 0 if with L."""
    extra: int
    """Observations of each arm beyond L (DP-SE asks for one)."""
    everyone: NDArray[np.int64]
    """Shape (K,): all arms."""


class State(NamedTuple):
    """What is learned. Sums and counts are raw: only `means` and what follows from them is private."""

    graph_starts: NDArray[np.int64]
    """Shape (G,): the first round of each feedback graph."""
    indptr: NDArray[np.int64]
    """Shape (G (K + 1),): graph after graph, where each arm's row begins."""
    indices: NDArray[np.int64]
    """The arms observed with an arm, itself among them."""
    active: NDArray[np.bool_]
    """Shape (K,): the set A."""
    means: NDArray[np.float64]
    """Shape (K,): the noised means of the last phase."""
    counts: NDArray[np.int64]
    """Shape (K,): o, observations in this phase."""
    sums: NDArray[np.float64]
    """Shape (K,): c, their sums."""
    pulls: NDArray[np.int64]
    """Shape (K,): n, pulls in this phase."""
    chosen: NDArray[np.bool_]
    """Shape (K,): the independent set Omega as a mask."""
    near: NDArray[np.int64]
    """Shape (K,): which active arms each member shows, as bits; unused beyond 62 arms."""
    members: NDArray[np.int64]
    """Shape (K,): its arms in increasing order, `SIZE` of them; also the order they are tried in."""
    now: NDArray[np.int64]
    """Shape (8,): where the phase stands, by the names below."""
    work: NDArray[np.int64]
    """Room to work in for GAPU; (0,) for others."""


SIZE = 0
"""The size of Omega."""
CURSOR = 1
"""The first member among those pulled LEAST times."""
LEAST = 2
PHASE = 3
"""tau, from 1; 0 before the first round."""
FIRST = 4
"""The round the phase began in; rewards of earlier rounds are ignored."""
GRAPH = 5
"""The number of the graph in force."""
WANTED = 6
"""L, the observations that every active arm needs."""
LACKING = 7
"""How many active arms have fewer; the phase ends at 0."""


class Elimination(ArmsPolicy):
    """What GAP, GAPU and DP-SE share: phases of elimination by noised means."""

    epsilon: float
    horizon: int
    failure_prob: float | None

    def _check(self) -> None:
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)
        finite = 0 < self.epsilon < math.inf
        require(self, "epsilon", "> 0 and finite", finite, self.epsilon)
        require(self, "horizon", ">= 1", self.horizon >= 1, self.horizon)
        given = self.failure_prob is None or 0 < self.failure_prob < 1
        require(self, "failure_prob", "in (0, 1)", given, self.failure_prob)

    @property
    def confidence_loss(self) -> float:
        """The failure probability in force: 1/T unless given."""
        return 1.0 / self.horizon if self.failure_prob is None else self.failure_prob

    def _empty(self, feedback: Feedback) -> State:
        K = self.n_arms
        rows = feedback.graph_starts.size * (K + 1)
        fits = feedback.indptr.size == rows
        require(self, "n_arms", "the number of arms of the table", fits, K)
        return State(
            graph_starts=feedback.graph_starts,
            indptr=feedback.indptr,
            indices=feedback.indices,
            active=np.ones(K, np.bool_),
            means=np.zeros(K),
            counts=np.zeros(K, np.int64),
            sums=np.zeros(K),
            pulls=np.zeros(K, np.int64),
            chosen=np.zeros(K, np.bool_),
            near=np.zeros(K, np.int64),
            members=np.zeros(K, np.int64),
            now=np.zeros(8, np.int64),
            work=np.zeros(0, np.int64),
        )


class GraphElimination(Elimination):
    """What GAP and GAPU share: parameters about the graph and the unit of protection."""

    unit: str
    noise: str
    graph: Graph | None

    def _check(self) -> None:
        super()._check()
        require(self, "unit", "reward or round", self.unit in ("reward", "round"), self.unit)
        known = self.noise in ("published", "tight")
        require(self, "noise", "published or tight", known, self.noise)
        nodes = self.n_arms if self.graph is None else self.graph.n_nodes
        require(self, "graph", f"of {self.n_arms} arms", nodes == self.n_arms, nodes)

    @property
    def rewards_per_round(self) -> int:
        """The largest number of rewards one pull shows: a degree and one, at most K."""
        return self.n_arms if self.graph is None else int(self.graph.degrees.max()) + 1

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon for one reward, or for one whole round, over the whole run."""
        claim = Claim(
            epsilon=self.epsilon,
            unit="reward",
            trust="central",
            span="run",
            holds=True,
            why="every active arm is observed at least L times, and a reward enters one mean only",
        )
        # In units of a mean's sensitivity; a record touches the release of one phase only.
        release = LaplaceRelease(sensitivity=1.0, scale=1.0 / self.epsilon)
        return compose(
            [(release, 1)],
            unit=self.unit,
            trust="central",
            span="run",
            basis="theorem",
            claim=claim,
            note="Decisions and noised means are covered; raw sums and counts are not",
        )

    @cached_property
    def rule(self) -> Rule:
        """The numbers the kernels need."""
        return Rule(
            epsilon=float(self.epsilon),
            failure_prob=float(self.confidence_loss),
            per_round=int(self.unit == "round"),
            tight=int(self.noise == "tight"),
            extra=0,
            everyone=np.arange(self.n_arms),
        )

    def start(self, table: Any = None) -> State:
        """Return a state that has seen nothing, on the graph of `table` or the policy's own."""
        if table is None:
            table = closed_rows(self.n_arms, [] if self.graph is None else [self.graph])
        return self._empty(Feedback(table.graph_starts, table.indptr, table.indices))


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
    >>> world = GraphFeedback(world=Bernoulli(means=(0.9, 0.5, 0.4)), edge_prob=0.5)
    >>> policy = GAP(n_arms=3, epsilon=1.0, horizon=20_000)
    >>> result = tacit.simulate(policy, world, horizon=20_000, repetitions=4)
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
    protects: ClassVar[str] = "each reward, or each round; trusts the server"
    paper: ClassVar[str] = "002, Algorithm 1"

    n_arms: int
    epsilon: float = 1.0
    horizon: int
    failure_prob: float | None = None
    unit: str = "reward"
    noise: str = "published"
    graph: Graph | None = None

    def __post_init__(self) -> None:
        self._check()


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
            state.means[a] = release_laplace(tape, t, a, state.sums[a] / o, sensitivity, epsilon)
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


@kernel(inlined=False)
def begin(rule: Any, state: Any, t: Any) -> None:
    """Lines 3 to 12: forget the last phase, plan the next on the independent set chosen."""
    K = state.active.size
    state.counts[:] = 0
    state.sums[:] = 0.0
    state.pulls[:] = 0
    m = 0
    for a in range(K):
        if state.chosen[a]:
            state.members[m] = a
            m += 1
    state.now[SIZE], state.now[CURSOR], state.now[LEAST], state.now[FIRST] = m, 0, 0, t
    if K <= _MOST_BITS:
        for i in range(m):
            a, bits = state.members[i], 0
            low, high = row_of(state.indptr, K, state.now[GRAPH], a)
            for e in range(low, high):
                b = state.indices[e]
                if state.active[b]:
                    bits |= 1 << b
            state.near[a] = bits
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


@kernel
def n_active(active: Any) -> Any:
    """Return the size of the active set."""
    n = 0
    for a in range(active.size):
        n += active[a]
    return n


@kernel(inlined=False)
def planned_factor(rule: Any, state: Any) -> Any:
    """Return the noise factor of a whole round if every member is pulled equally often."""
    K = state.active.size
    largest = 1.0
    for i in range(state.now[SIZE]):
        total = 0.0
        low, high = row_of(state.indptr, K, state.now[GRAPH], state.members[i])
        for e in range(low, high):
            b = state.indices[e]
            if state.active[b]:
                seen_by = 0
                low_b, high_b = row_of(state.indptr, K, state.now[GRAPH], b)
                for f in range(low_b, high_b):
                    seen_by += state.chosen[state.indices[f]]
                total += 1.0 if rule.tight == 1 else 1.0 / seen_by
        largest = max(largest, total)
    return largest


@kernel(inlined=False)
def round_factor(rule: Any, state: Any) -> Any:
    """Return the noise factor of a whole round, given how often every arm was observed."""
    K, L = state.active.size, state.now[WANTED]
    largest = 1.0
    for a in range(K):
        if state.pulls[a] > 0:
            total = 0.0
            low, high = row_of(state.indptr, K, state.now[GRAPH], a)
            for e in range(low, high):
                b = state.indices[e]
                if state.active[b]:
                    total += 1.0 if rule.tight == 1 else L / state.counts[b]
            largest = max(largest, total)
    return largest


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
def learn(rule: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Line 17: take in one observed reward, of the pulled arm or of a neighbour."""
    if state.active[arm] and t >= state.now[FIRST]:
        state.counts[arm] += 1
        state.sums[arm] += reward
        if state.counts[arm] == state.now[WANTED]:
            state.now[LACKING] -= 1


@kernel
def act(rule: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Return the arm of round t."""
    if turn(rule, state, tape, t):
        greedy_set(state)
        begin(rule, state, t)
    return pick(state, eligible)


@kernel(inlined=False)
def play_phase(rule: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any, last: Any) -> Any:
    """Lines 13 to 19: play from round t until the phase or the graph ends; return the round."""
    K, g = state.active.size, state.now[GRAPH]
    if g + 1 < state.graph_starts.size:
        last = min(last, state.graph_starts[g + 1])
    by_four = K <= _MOST_BITS and table.kind <= NORMAL
    latest = state.members[state.now[SIZE] - 1]
    while t < last and state.now[LACKING] > 0:
        # A member is observed when it is pulled only, so the phase has as many rounds left.
        if (
            by_four
            and t % 4 == 0
            and t + 4 <= last
            and state.counts[latest] + 4 < state.now[WANTED]
        ):
            four_rounds(rule, state, table, tape, trace, t)
            t += 4
            continue
        arm = pick(state, rule.everyone)
        value = observe(table, trace, t, arm)
        low, high = row_of(state.indptr, K, g, arm)
        for e in range(low, high):
            b = state.indices[e]
            if b == arm:
                learn(rule, state, tape, t, b, value)
            elif state.active[b]:
                learn(rule, state, tape, t, b, reward(table, t, b))
        t += 1
    return t


@kernel
def four_rounds(rule: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Play rounds t to t + 3, for which an arm's random words are made at once."""
    a0, a1 = pick(state, rule.everyone), pick(state, rule.everyone)
    a2, a3 = pick(state, rule.everyone), pick(state, rule.everyone)
    near0, near1, near2, near3 = state.near[a0], state.near[a1], state.near[a2], state.near[a3]
    shown = near0 | near1 | near2 | near3
    r0, r1, r2, r3 = 0.0, 0.0, 0.0, 0.0
    for b in range(state.active.size):
        if (shown >> b) & 1 == 0:
            continue
        word0, word1, word2, word3 = words_of(table, t, b)
        if (near0 >> b) & 1 == 1:
            r = reward_of(table, t, b, word0)
            learn(rule, state, tape, t, b, r)
            r0 = r if b == a0 else r0
        if (near1 >> b) & 1 == 1:
            r = reward_of(table, t + 1, b, word1)
            learn(rule, state, tape, t + 1, b, r)
            r1 = r if b == a1 else r1
        if (near2 >> b) & 1 == 1:
            r = reward_of(table, t + 2, b, word2)
            learn(rule, state, tape, t + 2, b, r)
            r2 = r if b == a2 else r2
        if (near3 >> b) & 1 == 1:
            r = reward_of(table, t + 3, b, word3)
            learn(rule, state, tape, t + 3, b, r)
            r3 = r if b == a3 else r3
    book(table, trace, t, a0, r0)
    book(table, trace, t + 1, a1, r1)
    book(table, trace, t + 2, a2, r2)
    book(table, trace, t + 3, a3, r3)


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
