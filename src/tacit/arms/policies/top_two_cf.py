"""TopTwo-CF: which arm is best, from bits that were corrupted on the way.

The leader is the arm of largest mean feedback, the challenger the one that is cheapest to mistake for a
better one: the least n_l kl + n_c kl at which both could have one mean. Of the two the one seen less often
is pulled. With randomized response the order of the mean feedbacks is that of the mean rewards, so that all
of it happens among bits. The threshold is that of a mixture of likelihoods, which holds at all times at once:
n kl(mean, p) >= ln((n + 1) / e) ever happens with probability e at most, if p is the true mean of the bits.

After the top-two rules of Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022), who give the leader half
of all pulls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import Feedback
from tacit.arms.identification import Identifying, Named, pooled_cost
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import local_kernels
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.kernels import kernel
from tacit.privacy.mechanisms import Epsilon


class Params(NamedTuple):
    """What the kernels need."""

    feedback: Feedback


class State(NamedTuple):
    """What is learned."""

    counts: NDArray[np.int64]
    """Shape (K,): pulls whose feedback has come."""
    sums: NDArray[np.float64]
    """Shape (K,): the sum of that feedback."""
    pulls: NDArray[np.int64]
    """Shape (K,): pulls."""


@kernel
def confusion(state: Any, leader: Any, arm: Any) -> Any:
    """Return the least cost at which the leader and another arm could have one mean."""
    sums, counts = state.sums, state.counts
    return pooled_cost(sums[leader], counts[leader], sums[arm], counts[arm])


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Pull an arm without feedback, else of leader and challenger the one pulled less often."""
    leader = eligible[0]
    for i in range(eligible.size):
        a = eligible[i]
        unknown, known = state.counts[a] == 0, state.counts[leader] > 0
        if unknown and (known or state.pulls[a] < state.pulls[leader]):
            leader = a
        elif known and not unknown:
            mean, best = state.sums[a] / state.counts[a], state.sums[leader] / state.counts[leader]
            if mean > best:
                leader = a
    arm = leader
    if state.counts[leader] > 0:
        challenger, least = leader, math.inf
        for i in range(eligible.size):
            a = eligible[i]
            if a != leader:
                cost = confusion(state, leader, a)
                if cost < least:
                    challenger, least = a, cost
        if state.pulls[challenger] < state.pulls[leader]:
            arm = challenger
    state.pulls[arm] += 1
    return arm


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, feedback: Any) -> None:
    """Add the feedback to the arm's sum."""
    state.counts[arm] += 1
    state.sums[arm] += feedback


@dataclass(frozen=True, kw_only=True)
class TopTwoCF(LocalPolicy[State], Identifying):
    """Pull the leader or its closest challenger, judged by corrupted bits, to identify the best arm.

    Guarantee: pure local differential privacy with `epsilon` for each single reward.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import Bernoulli, TopTwoCF
    >>> found = tacit.identify(TopTwoCF(n_arms=2, epsilon=1.0), Bernoulli(means=(0.2, 0.8)))
    >>> found.arms.tolist(), bool(found.rounds.max() < 1000)
    ([1], True)

    References
    ----------
    Jourdan, Degenne, Baudry, de Heide, Kaufmann. Top two algorithms revisited. 2022.
    """

    name: ClassVar[str] = "top-two-cf"
    summary: ClassVar[str] = "which arm is best: leader and challenger, from locally private bits"
    paper: ClassVar[str] = "after Jourdan et al. 2022"
    kernels: ClassVar[Kernels] = local_kernels(select, learn_from_report)

    epsilon: Epsilon | None = None

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(self.feedback)

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        K = self.n_arms
        return State(np.zeros(K, np.int64), np.zeros(K), np.zeros(K, np.int64))

    def best_arm(self, state: State) -> Named:
        """Return the leader, and how sure its feedback makes it.

        If a wrong arm leads, the best one is among those it is compared with, and their two means as
        they are cost at least what the least cost says: the product of two mixtures is a fair bet.
        """
        if self.n_arms == 1 or state.counts.min() == 0:
            return Named(0, 0.0 if self.n_arms == 1 else 1.0)
        leader = int(np.argmax(state.sums / state.counts))
        others = [a for a in range(self.n_arms) if a != leader]
        allowed = np.log1p(state.counts[others]) + math.log1p(state.counts[leader])
        costs = np.array([confusion(state, leader, a) for a in others])
        least = float((costs - allowed).min())
        return Named(leader, min(1.0, (self.n_arms - 1) * math.exp(-max(least, 0.0))))
