"""SW-KLUCB-CF: learn from corrupted feedback in a world that changes.

Each person's reward is corrupted before it leaves them, by a strictly monotone function known to the
learner; randomized response makes that locally private. The learner keeps the last `window` rounds,
bounds each arm's mean *feedback* by a Kullback-Leibler confidence interval, and maps the bound back
through the corruption function. Gajane (2023), Algorithm 1; the same kernels serve kl-UCB and klUCB-CF.

Departures: the window has a log factor by default (the paper's lacks it and is too short); `min` in
the definition of the window is read as `max`; indices are clipped to 1, an arm unseen in the window has
index 1, ties are broken at random and f is floored at 0. Only about one index a round is solved: an arm
beats the current best index q if its divergence at q is still within the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import (
    Corruption,
    RandomizedResponse,
    corrupted,
    grid_inverse,
    grid_value,
)
from tacit.arms.kl import negative_entropy, upper_root
from tacit.arms.policy import ArmsPolicy
from tacit.arms.tables import observe
from tacit.compiled import kernel
from tacit.policy import require
from tacit.privacy import Claim, Guarantee, compose
from tacit.tapes import uniform

__all__ = ["SWKLUCBCF"]


class Rule(NamedTuple):
    """What the kernels need."""

    window: int
    """w in rounds; 0 keeps everything."""
    level: float
    """f(w)."""
    private: int
    """1 if feedback is corrupted, 0 if it is the reward."""
    corruption: NDArray[np.float64]
    """Shape (K, G): g_a on an even grid of [0, 1]."""
    tops: NDArray[np.float64]
    """Shape (K, 3): g_a(1), its logarithm, and that of 1 - g_a(1)."""
    shared: int
    """1 if all arms have the same g."""
    everyone: NDArray[np.int64]
    """Shape (K,): all arms."""


class State(NamedTuple):
    """What is learned."""

    counts: NDArray[np.int64]
    """Shape (K,): N_a, feedback of each arm in the window."""
    sums: NDArray[np.float64]
    """Shape (K,): its sum."""
    means: NDArray[np.float64]
    """Shape (K,): lambda_a, its mean."""
    entropies: NDArray[np.float64]
    """Shape (K,): the negative entropy of the mean, where it is not stale."""
    stale: NDArray[np.int64]
    """Shape (K,): 1 where the mean has moved since its entropy was last needed."""
    tried: NDArray[np.int64]
    """Shape (K,): 1 once an arm was pulled."""
    ring_arms: NDArray[np.int32]
    """Shape (w + 1,): the arm of each round in the window and of this round, -1 if none."""
    ring_values: NDArray[np.float64]
    """Shape (w + 1,): its feedback."""
    now: NDArray[np.int64]
    """Shape (1,): the latest round that was acted in."""
    last: NDArray[np.int64]
    """Shape (1,): the latest arm, where the search for the best index begins."""
    tied: NDArray[np.int64]
    """Shape (K,): scratch."""


class KLPolicy(ArmsPolicy):
    """What kl-UCB, klUCB-CF and SW-KLUCB-CF share: kernels and state."""

    n_arms: int

    @property
    def corruption_functions(self) -> Corruption | None:
        """The corruption, or None if the reward itself is observed."""
        return None

    @property
    def window_rounds(self) -> int:
        """The window in rounds; 0 keeps everything."""
        return 0

    @cached_property
    def rule(self) -> Rule:
        """The numbers the kernels need."""
        corruption = self.corruption_functions
        grid = np.tile([0.0, 1.0], (self.n_arms, 1))
        if corruption is not None:
            grid = corruption.grid(self.n_arms)
        top = grid[:, -1]
        with np.errstate(divide="ignore"):
            logs, logs_of_rest = np.log(top), np.log1p(-top)
        return Rule(
            window=self.window_rounds,
            level=float(exploration(float(self.window_rounds))),
            private=int(corruption is not None),
            corruption=grid,
            tops=np.stack([top, logs, logs_of_rest], axis=1),
            shared=int(bool((grid == grid[0]).all())),
            everyone=np.arange(self.n_arms),
        )

    def start(self, table: Any = None) -> State:
        """Return a state that has seen nothing."""
        K, slots = self.n_arms, self.window_rounds + 1
        return State(
            counts=np.zeros(K, np.int64),
            sums=np.zeros(K),
            means=np.zeros(K),
            entropies=np.zeros(K),
            stale=np.zeros(K, np.int64),
            tried=np.zeros(K, np.int64),
            ring_arms=np.full(slots, -1, np.int32),
            ring_values=np.zeros(slots),
            now=np.full(1, -1),
            last=np.zeros(1, np.int64),
            tied=np.zeros(K, np.int64),
        )

    def local_guarantee(self, horizon: int, claim: Claim | None) -> Guarantee:
        """Return what the corruption protects: each reward on its own."""
        corruption = self.corruption_functions
        if corruption is None:
            return Guarantee.none(f"{type(self).__name__} without corruption adds no noise")
        return compose(
            [(corruption.release(self.n_arms), 1)],
            unit="reward",
            trust="local",
            span="run",
            claim=claim,
            note="Each reward is corrupted once, before it leaves its owner",
        )


@dataclass(frozen=True, kw_only=True)
class SWKLUCBCF(KLPolicy):
    """Sliding-window kl-UCB on corrupted feedback.

    Guarantee: pure local differential privacy with `epsilon` for each single reward, over the whole
    run. The n rewards of one person cost n epsilon; the window does not cap that.

    Parameters
    ----------
    n_arms : int
        Number of arms K.
    horizon : int
        Number of rounds T, for the window.
    n_segments : int, default 1
        L, the number of stationary segments, for the window.
    epsilon : float, optional
        Privacy of one reward, by the optimal randomized response. Without it and without
        `corruption`, rewards are observed as they are.
    corruption : Corruption, optional
        Any strictly monotone corruption, instead of `epsilon`.
    window : "log", "paper" or int, default "log"
        sqrt(4 e T ln T / (L + 4)), the paper's sqrt(4 e T / (L + 4)), or a number of rounds.

    Examples
    --------
    >>> from tacit.arms import SWKLUCBCF
    >>> policy = SWKLUCBCF(n_arms=2, horizon=100_000, n_segments=10, epsilon=1.0)
    >>> policy.window_rounds
    945
    >>> policy.guarantee(horizon=100_000).epsilon
    1.0

    References
    ----------
    Gajane. Local Differential Privacy for Sequential Decision Making in a Changing Environment. 2023.
    """

    name: ClassVar[str] = "sw-klucb-cf"
    summary: ClassVar[str] = "sliding-window kl-UCB on locally private feedback, changing world"
    paper: ClassVar[str] = "003 Alg. 1"
    protects: ClassVar[str] = "each reward, locally, if epsilon is given"

    n_arms: int
    horizon: int
    n_segments: int = 1
    epsilon: float | None = None
    corruption: Corruption | None = None
    window: int | str = "log"

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)
        require(self, "horizon", ">= 1", self.horizon >= 1, self.horizon)
        require(self, "n_segments", ">= 1", self.n_segments >= 1, self.n_segments)
        check_privacy(self, self.epsilon, self.corruption)
        if isinstance(self.window, str):
            known = self.window in ("log", "paper")
            require(self, "window", "log, paper or a number of rounds", known, self.window)
        else:
            require(self, "window", ">= 1", self.window >= 1, self.window)

    @property
    def window_rounds(self) -> int:
        """The window w in rounds."""
        if not isinstance(self.window, str):
            return int(self.window)
        scale = 4 * math.e * self.horizon / (self.n_segments + 4)
        if self.window == "log":
            scale *= math.log(max(self.horizon, math.e))
        return max(1, math.floor(math.sqrt(scale)))

    @property
    def corruption_functions(self) -> Corruption | None:
        """The corruption in force."""
        return chosen_corruption(self.epsilon, self.corruption)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon for each reward, and that the paper's wording claims more."""
        epsilon = 0.0 if self.epsilon is None else self.epsilon
        claim = Claim(
            epsilon=epsilon,
            delta=0.0,
            unit="user",
            trust="local",
            span="run",
            holds=False,
            why="Definition 2 speaks of whole reward sequences; n rewards of one person compose",
        )
        return self.local_guarantee(horizon, claim if self.epsilon is not None else None)


def check_privacy(owner: Any, epsilon: float | None, corruption: Corruption | None) -> None:
    """Refuse an epsilon that is not positive, and two answers to one question."""
    if epsilon is not None:
        require(owner, "epsilon", "> 0", epsilon > 0, epsilon)
        require(owner, "epsilon or corruption", "given, not both", corruption is None, epsilon)


def chosen_corruption(epsilon: float | None, corruption: Corruption | None) -> Corruption | None:
    """Return the corruption that `epsilon` asks for, or the one given."""
    if epsilon is None:
        return corruption
    return RandomizedResponse.optimal(epsilon)


@kernel
def act(rule: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Return the arm with the largest index; solve an index only where it can be the largest."""
    _forget(rule, state, t)
    for i in range(eligible.size):
        a = eligible[i]
        if state.tried[a] == 0:
            state.tried[a] = 1
            state.last[0] = a
            return a
    f = rule.level if 0 < rule.window <= t else exploration(float(t))
    ties, q, g = 0, -1.0, 0.0
    # The latest arm first: most often it is still the best, and its index rules out the others.
    latest = state.last[0] if _among(state.last[0], eligible) else -1
    for i in range(-1, eligible.size):
        a = latest if i < 0 else eligible[i]
        if a < 0 or (i >= 0 and a == latest):
            continue
        N, lam = state.counts[a], state.means[a]
        rising = rule.corruption[a, 0] < rule.corruption[a, -1]
        if N == 0 or (lam >= 1.0 if rule.private == 0 else _at_top(rule, state, a, f, rising)):
            index = 1.0
        elif q >= 1.0:
            continue
        else:
            if q > 0.0:
                if rule.shared == 0 or g < 0.0:
                    g = grid_value(rule.corruption, a, q)
                    log_g, log_1g = math.log(g), math.log1p(-g)
                twin = state.tied[0]
                alike = state.counts[twin] == N and lam == state.means[twin]
                if not alike and not _within(state, a, f, g, log_g, log_1g, rising):
                    continue
            bound = upper_root(lam, f / N) if rising else 1.0 - upper_root(1.0 - lam, f / N)
            index = grid_inverse(rule.corruption, a, bound)
        if index > q:
            q, g, ties = index, -1.0, 0
        if index == q:
            state.tied[ties] = a
            ties += 1
    best = state.tied[0]
    if ties > 1:
        best = state.tied[int(uniform(tape, t, 0) * ties)]
    state.last[0] = best
    return best


@kernel
def _at_top(rule: Any, state: Any, a: Any, f: Any, rising: Any) -> Any:
    return _within(state, a, f, rule.tops[a, 0], rule.tops[a, 1], rule.tops[a, 2], rising)


@kernel
def exploration(s: Any) -> Any:
    """Return f(s) = ln s + 3 ln ln s, at least 0."""
    return max(0.0, math.log(s) + 3.0 * math.log(math.log(s))) if s > 1.0 else 0.0


@kernel
def _within(state: Any, a: Any, f: Any, g: Any, log_g: Any, log_1g: Any, rising: Any) -> Any:
    # Is the feedback g still inside the arm's confidence interval, so that its index is above?
    lam = state.means[a]
    if lam >= g if rising else lam <= g:
        return True
    d = 0.0
    if lam > 0.0:
        d -= lam * log_g
    if lam < 1.0:
        d -= (1.0 - lam) * log_1g
    if d == math.inf:
        return False
    if state.stale[a] == 1:
        state.entropies[a] = negative_entropy(lam)
        state.stale[a] = 0
    return state.counts[a] * (state.entropies[a] + d) <= f


@kernel
def _among(arm: Any, eligible: Any) -> Any:
    # Increasing indices: in the full set arm a stands in place a.
    if arm < eligible.size and eligible[arm] == arm:
        return True
    for i in range(eligible.size):
        if eligible[i] == arm:
            return True
    return False


@kernel
def _forget(rule: Any, state: Any, t: Any) -> None:
    w = rule.window
    if w > 0:
        for round_ in range(max(state.now[0] + 1, t - w), t + 1):
            slot = round_ % (w + 1)
            arm = state.ring_arms[slot]
            if arm >= 0:
                _count(state, arm, -1, -state.ring_values[slot])
                state.ring_arms[slot] = -1
    state.now[0] = t


@kernel
def _count(state: Any, arm: Any, n: Any, value: Any) -> None:
    state.counts[arm] += n
    state.sums[arm] += value
    N = state.counts[arm]
    mean = min(1.0, max(0.0, state.sums[arm] / N)) if N > 0 else 0.0
    if N == 0:
        state.sums[arm] = 0.0
    state.means[arm] = mean
    state.stale[arm] = 1


@kernel
def learn(rule: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Corrupt the reward and take the feedback in, unless its round has left the window."""
    value = reward
    if rule.private == 1:
        value = corrupted(rule.corruption, tape, t, arm, reward)
    w = rule.window
    if w > 0:
        if t < state.now[0] - w:
            return
        slot = t % (w + 1)
        state.ring_arms[slot] = arm
        state.ring_values[slot] = value
    _count(state, arm, 1, value)


@kernel
def run(rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any) -> None:
    """Play rounds first to last - 1."""
    for t in range(first, last):
        arm = act(rule, state, tape, t, rule.everyone)
        learn(rule, state, tape, t, arm, observe(table, trace, t, arm))


KLPolicy.act, KLPolicy.learn, KLPolicy.run = act, learn, run
