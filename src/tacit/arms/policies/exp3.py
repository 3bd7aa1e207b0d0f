"""EXP3: exponential weights for rewards that an adversary chose.

Draw an arm in proportion to its weight, mixed with a little uniform exploration, and raise its weight
by its reward divided by the probability of having seen it. It needs no assumption about how rewards
arise. Auer, Cesa-Bianchi, Freund and Schapire (2002), Fig. 1, in log weights so that nothing overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.loops import kernels_of
from tacit.arms.policy import Kernels, PlainPolicy
from tacit.arms.table import Table
from tacit.core.constraints import Constraint, Count
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, uniform


class Params(NamedTuple):
    """What the kernels need."""

    exploration_prob: float
    delay: int
    """How many decisions are remembered for rewards that come late."""


class State(NamedTuple):
    """What is learned."""

    log_weights: NDArray[np.float64]
    """Shape (K,): log weights, the largest kept near 0."""
    scratch: NDArray[np.float64]
    """Shape (K,): probabilities of the eligible arms."""
    chances: NDArray[np.float64]
    """Shape (delay,): the probability of the arm drawn in each recent round."""


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Draw an arm in proportion to its weight, with some uniform exploration."""
    n, gamma = eligible.size, params.exploration_prob
    largest = state.log_weights[eligible[0]]
    for i in range(1, n):
        largest = max(largest, state.log_weights[eligible[i]])
    total = 0.0
    for i in range(n):
        state.scratch[i] = math.exp(state.log_weights[eligible[i]] - largest)
        total += state.scratch[i]
    u = uniform(tape, t, 0, CHOICE)
    i, chance = 0, (1.0 - gamma) * state.scratch[0] / total + gamma / n
    while u >= chance and i + 1 < n:
        u -= chance
        i += 1
        chance = (1.0 - gamma) * state.scratch[i] / total + gamma / n
    state.chances[t % params.delay] = chance
    return eligible[i]


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Raise the arm's log weight by its importance-weighted reward."""
    gain = params.exploration_prob / state.log_weights.size
    state.log_weights[arm] += gain * reward / state.chances[t % params.delay]


@kernel
def probabilities(params: Any, state: Any, t: Any, eligible: Any, out: Any) -> None:
    """Write the probability of every arm in the draw of round t, whose weights are in the scratch."""
    n, gamma, total = eligible.size, params.exploration_prob, 0.0
    for i in range(n):
        total += state.scratch[i]
    for a in range(out.size):
        out[a] = 0.0
    for i in range(n):
        out[eligible[i]] = (1.0 - gamma) * state.scratch[i] / total + gamma / n


@dataclass(frozen=True, kw_only=True)
class EXP3(PlainPolicy[State]):
    """Exponential weights with importance-weighted rewards.

    Guarantee: none is stated; the weights depend on every reward without added noise.

    Parameters
    ----------
    horizon : int
        Number of rounds T, for the exploration probability.
    exploration_prob : float, optional
        gamma; by default min(1, sqrt(K ln K / ((e - 1) T))).
    max_delay : int, default 4096
        How many rounds a reward may come late.

    Examples
    --------
    >>> from tacit.arms import EXP3
    >>> round(EXP3(n_arms=10, horizon=100_000).params.exploration_prob, 4)
    0.0116

    References
    ----------
    Auer, Cesa-Bianchi, Freund, Schapire. The nonstochastic multiarmed bandit problem. 2002.
    """

    name: ClassVar[str] = "exp3"
    summary: ClassVar[str] = "exponential weights against an adversary"
    paper: ClassVar[str] = "Auer et al. 2002"
    learns_from_any: ClassVar[bool] = False
    kernels: ClassVar[Kernels] = kernels_of(select, learn, probabilities=probabilities)

    horizon: Count
    exploration_prob: Annotated[float, Constraint("in (0, 1]", lambda p: 0 < p <= 1)] | None = None
    max_delay: Count = 4096

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        gamma = self.exploration_prob
        if gamma is None:
            K = self.n_arms
            gamma = min(1.0, math.sqrt(K * math.log(max(K, 2)) / ((math.e - 1) * self.horizon)))
        return Params(gamma, self.max_delay)

    def start(self, table: Table | None = None) -> State:
        """Return equal weights."""
        K = self.n_arms
        return State(np.zeros(K), np.zeros(K), np.ones(self.max_delay))
