"""TS-N: Thompson sampling that also learns from its neighbours' rewards.

Draw a plausible mean for every arm from its posterior and pull the arm with the largest draw; every
reward that is observed, whichever arm was pulled, sharpens the posterior of its arm. Tossou, Dimitrakakis
and Dubhashi (2017), Algorithm 1, to compare with GAP.

The posterior is Gaussian, N(mean, spread^2 / (n + 1)), as in Agrawal and Goyal (2013), Algorithm 2: it
suits any rewards in [0, 1], whose standard deviation is at most the default spread of 1/2, where the beta
posterior of the paper suits binary ones only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.largest_draw import largest_normal
from tacit.arms.loops import rounds_on_graph
from tacit.arms.policy import Kernels, PlainPolicy
from tacit.arms.table import Table
from tacit.core.constraints import Positive
from tacit.core.generator import inverse_normal
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, uniform
from tacit.graphs import Graph

_TWO54 = 2.0**-54


class Params(NamedTuple):
    """What the kernels need."""

    spread: float


class State(NamedTuple):
    """What is learned."""

    counts: NDArray[np.int64]
    """Shape (K,): rewards taken in."""
    sums: NDArray[np.float64]
    """Shape (K,): their sums."""


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Return the arm with the largest draw from its posterior."""
    best, largest = eligible[0], -np.inf
    for i in range(eligible.size):
        a = eligible[i]
        n = state.counts[a] + 1.0
        z = inverse_normal(uniform(tape, t, a, CHOICE) * (1.0 - 2.0 * _TWO54) + _TWO54)
        draw = state.sums[a] / n + params.spread * z / math.sqrt(n)
        if draw > largest:
            best, largest = a, draw
    return best


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Take in one observed reward, of the pulled arm or of a neighbour."""
    state.counts[arm] += 1
    state.sums[arm] += reward


@kernel
def posterior(params: Any, state: Any, t: Any, eligible: Any, out: Any) -> None:
    """Write mean and standard deviation of each eligible arm."""
    for i in range(eligible.size):
        n = state.counts[eligible[i]] + 1.0
        out[0, i], out[1, i] = state.sums[eligible[i]] / n, params.spread / math.sqrt(n)


@dataclass(frozen=True, kw_only=True)
class TSN(PlainPolicy[State]):
    """Thompson sampling with side observations.

    Guarantee: none; the decisions depend on every observed reward without calibrated noise.

    Parameters
    ----------
    spread : float, default 0.5
        Standard deviation of one reward in the model.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import TSN, Bernoulli
    >>> result = tacit.simulate(TSN(n_arms=2), Bernoulli(means=(0.4, 0.6)), horizon=1000, seed=1)
    >>> bool(result.final("regret").mean() < 40)
    True

    References
    ----------
    Tossou, Dimitrakakis, Dubhashi. Thompson sampling for stochastic bandits with graph feedback.
    AAAI 2017.
    """

    name: ClassVar[str] = "ts-n"
    summary: ClassVar[str] = "Thompson sampling with side observations"
    paper: ClassVar[str] = "Tossou et al. 2017"

    side_observations: ClassVar[bool] = True
    kernels: ClassVar[Kernels] = Kernels(
        select=select,
        learn=learn,
        run=rounds_on_graph(select, learn),
        posterior=posterior,
        largest=largest_normal,
    )

    spread: Positive = 0.5
    graph: Graph | None = None

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(float(self.spread))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        return State(np.zeros(self.n_arms, np.int64), np.zeros(self.n_arms))
