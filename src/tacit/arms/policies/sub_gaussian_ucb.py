"""Sub-Gaussian UCB: rewards of any size, and what of them can be private.

Paper 003 speaks of sub-Gaussian rewards; its Algorithm 1 and its bound are for bits. Without privacy the
index for rewards whose noise is no heavier than that of a normal with standard deviation sigma is
mean + sigma sqrt(2 f / N) (Bubeck and Cesa-Bianchi 2012, Section 2.2).

With privacy such rewards cannot be had as they are. What an epsilon-private device sends of a reward x has at
most e^epsilon times the probabilities that it has for 0; so an estimate with mean x would have
|x| <= e^epsilon E|estimate of 0| for every x, which no estimate of finite mean has. Rewards are therefore
clipped to a range on the device, told as bits, and learned from as klUCB-CF does. What is then learned
is the mean of the *clipped* reward. It differs from the mean by at most `clipping_bias`, which falls like
exp(-m^2 / (2 sigma^2)) in the room m that the range leaves around the mean; the noise grows with the width
of the range. Arms that scatter alike keep their order whatever the range. Arms that do not may change it, and
then regret is linear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.arms.corruption import Feedback
from tacit.arms.klucb_index import (
    Exploration,
    ExplorationFunction,
    largest_index,
    level,
    probabilities,
    record_single_choice,
    tabulate_exploration,
)
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import corrupt, kernels_of
from tacit.arms.policies.klucb import State, count, first_untried, new_state
from tacit.arms.policies.sw_klucb_cf import forget
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.arms.window import put_in_window
from tacit.core.constraints import Count, Positive, require
from tacit.core.kernels import kernel
from tacit.privacy.mechanisms import Epsilon


class Params(NamedTuple):
    """What the kernels need."""

    sigma: float
    low: float
    high: float
    window: int
    """w in rounds, 0 if nothing is forgotten."""
    exploration: Exploration
    feedback: Feedback


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Pull every arm once, then the one with the largest index of rewards or of bits."""
    if params.window > 0:
        forget(params, state, state.window, t)
    arm = first_untried(state, eligible) if state.untried[0] > 0 else -1
    if arm >= 0:
        return arm
    f = level(params.exploration, float(min(t, params.window) if params.window > 0 else t))
    if params.feedback.private == 1:
        return largest_index(params.feedback.ends, state, tape, t, eligible, f)
    best, largest = eligible[0], -np.inf
    for i in range(eligible.size):
        a = eligible[i]
        N = state.counts[a]
        if N == 0:
            return record_single_choice(state.lazy, a)
        index = state.sums[a] / N + params.sigma * math.sqrt(2.0 * f / N)
        if index > largest:
            best, largest = a, index
    return record_single_choice(state.lazy, best)


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, value: Any) -> None:
    """Add a reward or a bit to the arm's sum, unless its round has left the window."""
    if params.window == 0 or put_in_window(state.window, t, arm, value):
        count(params, state, t, arm, value)


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Clip the reward and corrupt it, if private, and take in what is left."""
    value = reward
    if params.feedback.private == 1:
        share = (min(params.high, max(params.low, reward)) - params.low) / (
            params.high - params.low
        )
        value = corrupt(params.feedback.ends, tape, t, arm, share)
    learn_from_report(params, state, t, arm, value)


@dataclass(frozen=True, kw_only=True)
class SubGaussianUCB(LocalPolicy[State]):
    """UCB for rewards of any size; with privacy for what is left of them inside a range.

    Guarantee: pure local differential privacy with `epsilon` for each single reward, whatever its
    size, because it is clipped before anything else; without `epsilon` none.

    Parameters
    ----------
    sigma : float, default 0.5
        How much rewards scatter: their noise is sigma-sub-Gaussian. Rewards in [0, 1] are with 0.5.
    reward_range : (float, float), default (0, 1)
        What private rewards are clipped to, and what rewards reported to a learner must lie in.
    epsilon : float, optional
        Privacy of one reward, by the optimal randomized response. Without it rewards are observed
        as they are, not clipped.
    window : int, optional
        How many rounds are remembered; all unless given.

    Examples
    --------
    >>> from tacit.arms import SubGaussianUCB
    >>> policy = SubGaussianUCB(n_arms=2, sigma=1.0, reward_range=(-3, 4), epsilon=1.0)
    >>> round(policy.guarantee(100).epsilon, 9), round(policy.clipping_bias(1.0), 4)
    (1.0, 0.0034)

    References
    ----------
    Bubeck, Cesa-Bianchi. Regret analysis of stochastic and nonstochastic multi-armed bandit problems. 2012.
    """

    name: ClassVar[str] = "sub-gaussian-ucb"
    summary: ClassVar[str] = "UCB for rewards of any size, locally private if clipped"
    paper: ClassVar[str] = "003, sub-Gaussian rewards"
    unbounded: ClassVar[bool] = True
    kernels: ClassVar[Kernels] = kernels_of(
        select, learn, learn_from_report=learn_from_report, probabilities=probabilities
    )

    sigma: Positive = 0.5
    reward_range: tuple[float, float] = (0.0, 1.0)
    epsilon: Epsilon | None = None
    window: Count | None = None
    exploration: ExplorationFunction = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = (float(end) for end in self.reward_range)
        finite = -math.inf < low < high < math.inf
        require(self, "reward_range", "(low, high) with low < high", finite, (low, high))
        object.__setattr__(self, "reward_range", (low, high))
        _ = self.params

    def clipping_bias(self, mean: float) -> float:
        """Return by how much clipping may move the mean of an arm with this mean.

        A sigma-sub-Gaussian tail beyond a distance m has at most the integral of
        exp(-x^2 / (2 sigma^2)) from m on; what is cut off below and above pulls in opposite directions.
        """
        low, high = self.reward_range
        room = min(mean - low, high - mean)
        if room < 0:
            return -room + self.sigma * math.sqrt(math.pi / 2)
        return self.sigma * math.sqrt(math.pi / 2) * math.erfc(room / (self.sigma * math.sqrt(2)))

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(
            sigma=float(self.sigma),
            low=self.reward_range[0],
            high=self.reward_range[1],
            window=self.window or 0,
            exploration=tabulate_exploration(self, self.exploration),
            feedback=self.feedback,
        )

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        return new_state(self.n_arms, self.params.window)
