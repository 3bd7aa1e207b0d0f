"""SW-UCB: UCB on the last few rounds only.

Forget what is older than the window, so that an arm that was bad long ago is tried again. It is the
yardstick for changing environments, private if asked to be. Garivier and Moulines (2011), Section 3.2;
ties go to the lowest index, an arm unseen in the window is pulled first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import RandomizedResponse, corrupted
from tacit.arms.policy import ArmsPolicy
from tacit.arms.tables import observe
from tacit.checks import require
from tacit.compiled import kernel
from tacit.privacy import Guarantee, compose

__all__ = ["SWUCB"]


class Rule(NamedTuple):
    """What the kernels need."""

    window: int
    exploration: float
    private: int
    """1 if feedback is randomized response on the reward, 0 if it is the reward."""
    corruption: NDArray[np.float64]
    """Shape (K, 2): the end points of the corruption function."""
    everyone: NDArray[np.int64]
    """Shape (K,): all arms."""


class State(NamedTuple):
    """What is learned."""

    counts: NDArray[np.int64]
    """Shape (K,): rewards of each arm in the window."""
    sums: NDArray[np.float64]
    """Shape (K,): their sums."""
    ring_arms: NDArray[np.int32]
    """Shape (w + 1,): the arm of each round in the window and of this round, -1 if none."""
    ring_values: NDArray[np.float64]
    """Shape (w + 1,): its reward."""
    now: NDArray[np.int64]
    """Shape (1,): the latest round that was acted in."""


@dataclass(frozen=True, kw_only=True)
class SWUCB(ArmsPolicy):
    """UCB over a sliding window.

    Guarantee: pure local differential privacy with `epsilon` for each single reward; without it
    none, the decisions then depend on every reward without noise.

    Parameters
    ----------
    n_arms : int
        Number of arms K.
    horizon : int
        Number of rounds T, for the window.
    n_segments : int, default 1
        Number of stationary segments L, for the window.
    window : "theory" or int, default "theory"
        2 sqrt(T ln T / L), or a number of rounds.
    exploration : float, default 0.6
        xi in the bonus sqrt(xi ln(min(t, w)) / n).
    epsilon : float, optional
        Privacy of one reward, by randomized response. The bits are averaged as they are: the
        corruption is the same for every arm, so the order of the arms survives it.

    Examples
    --------
    >>> from tacit.arms import SWUCB
    >>> SWUCB(n_arms=2, horizon=100_000, n_segments=10).window_rounds
    678

    References
    ----------
    Garivier, Moulines. On upper-confidence bound policies for switching bandit problems. 2011.
    """

    name: ClassVar[str] = "sw-ucb"
    summary: ClassVar[str] = "UCB over a sliding window, changing environment"
    paper: ClassVar[str] = "Garivier and Moulines 2011"
    protects: ClassVar[str] = "each reward, locally, if epsilon is given"

    n_arms: int
    horizon: int
    n_segments: int = 1
    window: int | str = "theory"
    exploration: float = 0.6
    epsilon: float | None = None

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)
        require(self, "horizon", ">= 1", self.horizon >= 1, self.horizon)
        require(self, "n_segments", ">= 1", self.n_segments >= 1, self.n_segments)
        require(self, "exploration", ">= 0", self.exploration >= 0, self.exploration)
        if self.epsilon is not None:
            require(self, "epsilon", "> 0", self.epsilon > 0, self.epsilon)
        if isinstance(self.window, str):
            known = self.window == "theory"
            require(self, "window", "theory or a number of rounds", known, self.window)
        else:
            require(self, "window", ">= 1", self.window >= 1, self.window)

    @property
    def window_rounds(self) -> int:
        """The window w in rounds."""
        if not isinstance(self.window, str):
            return int(self.window)
        T = self.horizon
        return max(1, math.floor(2 * math.sqrt(T * math.log(max(T, 2)) / self.n_segments)))

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon for each reward, or that nothing is protected."""
        if self.epsilon is None:
            return Guarantee.none("SW-UCB without epsilon adds no noise")
        release = RandomizedResponse.optimal(self.epsilon).release(self.n_arms)
        return compose([(release, 1)], unit="reward", trust="local", span="run")

    @cached_property
    def rule(self) -> Rule:
        """The numbers the kernels need."""
        corruption = np.tile([0.0, 1.0], (self.n_arms, 1))
        if self.epsilon is not None:
            corruption = RandomizedResponse.optimal(self.epsilon).grid(self.n_arms)
        return Rule(
            window=self.window_rounds,
            exploration=float(self.exploration),
            private=int(self.epsilon is not None),
            corruption=corruption,
            everyone=np.arange(self.n_arms),
        )

    def start(self, table: Any = None) -> State:
        """Return a state that has seen nothing."""
        slots = self.window_rounds + 1
        return State(
            counts=np.zeros(self.n_arms, np.int64),
            sums=np.zeros(self.n_arms),
            ring_arms=np.full(slots, -1, np.int32),
            ring_values=np.zeros(slots),
            now=np.full(1, -1),
        )


@kernel
def act(rule: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Forget what left the window, then return the arm with the largest index."""
    w = rule.window
    for round_ in range(max(state.now[0] + 1, t - w), t + 1):
        slot = round_ % (w + 1)
        arm = state.ring_arms[slot]
        if arm >= 0:
            state.counts[arm] -= 1
            state.sums[arm] -= state.ring_values[slot]
            state.ring_arms[slot] = -1
    state.now[0] = t
    log_s = rule.exploration * math.log(min(t + 1.0, float(w)))
    best, largest = eligible[0], -1.0
    for i in range(eligible.size):
        a = eligible[i]
        N = state.counts[a]
        if N == 0:
            return a
        index = state.sums[a] / N + math.sqrt(log_s / N)
        if index > largest:
            best, largest = a, index
    return best


@kernel
def learn(rule: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Take the reward in, corrupted if private, unless its round has left the window."""
    value = reward
    if rule.private == 1:
        value = corrupted(rule.corruption, tape, t, arm, reward)
    if t >= state.now[0] - rule.window:
        slot = t % (rule.window + 1)
        state.ring_arms[slot] = arm
        state.ring_values[slot] = value
        state.counts[arm] += 1
        state.sums[arm] += value


@kernel
def run(rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any) -> None:
    """Play rounds first to last - 1."""
    for t in range(first, last):
        arm = act(rule, state, tape, t, rule.everyone)
        learn(rule, state, tape, t, arm, observe(table, trace, t, arm))


SWUCB.act, SWUCB.learn, SWUCB.run = act, learn, run
