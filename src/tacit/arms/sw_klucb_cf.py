"""SW-KLUCB-CF: learn from corrupted feedback in an environment that changes.

Each person's reward is corrupted before it leaves them, by a strictly monotone function known to the
learner; randomized response makes that locally private. The learner keeps the last `window` rounds,
bounds each arm's mean *feedback* by a Kullback-Leibler confidence interval, and maps the bound back
through the corruption function. Gajane (2023), Algorithm 1; the same kernels serve kl-UCB and klUCB-CF.

Departures: the window has a log factor by default (the paper's lacks it and is too short); `min` in
the definition of the window is read as `max`; indices are clipped to 1, an arm unseen in the window has
index 1, ties are broken at random and f is floored at 0.

Hardly any index is solved. An arm's index reaches a bar b exactly if N_a d(lambda_a, g_a(b)), the evidence
that its mean is lower, is at most f; evidence changes only with the arm or the bar. If one arm alone reaches
the bar, it is the best. If not, indices are solved, and the largest is the bar from then on.
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
from tacit.checks import require
from tacit.compiled import kernel
from tacit.privacy import Claim, Guarantee, compose
from tacit.tapes import CHOICE, uniform

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
    """Shape (K,): the negative entropy of the mean."""
    evidence: NDArray[np.float64]
    """Shape (K,): N_a d(lambda_a, g_a(b)), or -inf where it is no evidence against reaching b."""
    stale: NDArray[np.bool_]
    """Shape (K,): where entropy and evidence are of an earlier mean."""
    bar: NDArray[np.float64]
    """Shape (1,): b."""
    bar_feedback: NDArray[np.float64]
    """Shape (K, 3): g_a(b), its logarithm, and that of 1 - g_a(b)."""
    tried: NDArray[np.int64]
    """Shape (K,): 1 once an arm was pulled."""
    ring_arms: NDArray[np.int32]
    """Shape (w + 1,): the arm of each round in the window and of this round, -1 if none."""
    ring_values: NDArray[np.float64]
    """Shape (w + 1,): its feedback."""
    now: NDArray[np.int64]
    """Shape (1,): the latest round that was acted in."""
    last: NDArray[np.int64]
    """Shape (1,): the latest arm, whose index is solved first."""
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
        return Rule(
            window=self.window_rounds,
            level=float(exploration(float(self.window_rounds))),
            private=int(corruption is not None),
            corruption=grid,
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
            evidence=np.full(K, -np.inf),
            stale=np.zeros(K, np.bool_),
            bar=np.zeros(1),
            bar_feedback=np.zeros((K, 3)),
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
    summary: ClassVar[str] = (
        "sliding-window kl-UCB on locally private feedback, changing environment"
    )
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
    """Return the arm with the largest index: the only one to reach the bar, if one alone does."""
    _forget(rule, state, t)
    f = rule.level if 0 < rule.window <= t else exploration(float(t))
    best, n = 0, 0
    for i in range(eligible.size):
        a = eligible[i]
        if state.tried[a] == 0:
            state.tried[a] = 1
            state.last[0] = a
            return a
        if state.stale[a]:
            state.entropies[a] = negative_entropy(state.means[a])
            state.evidence[a] = _evidence(rule, state, a)
            state.stale[a] = False
        if state.evidence[a] <= f:
            best = a
            n += 1
    if n != 1:
        if n == 0:
            _set_bar(rule, state, 0.0)
        best = _solve(rule, state, tape, t, eligible, f)
    state.last[0] = best
    return best


@kernel(inlined=False)
def _solve(rule: Any, state: Any, tape: Any, t: Any, eligible: Any, f: Any) -> Any:
    # Solve the index of each arm that reaches the bar, which rises to the largest index so far.
    ties, q, level = 0, -1.0, f
    # The latest arm first: most often it is still the best, and its index rules out the others.
    latest = state.last[0] if _among(state.last[0], eligible) else -1
    for i in range(-1, eligible.size):
        a = latest if i < 0 else eligible[i]
        if a < 0 or (i >= 0 and a == latest) or state.evidence[a] > level:
            continue
        index = 1.0 if state.bar[0] >= 1.0 else _index(rule, state, a, f)
        if index > q:
            q, ties = index, 0
            _set_bar(rule, state, q)
            # At its own index an arm's evidence is f but for rounding, and its twin's is the same.
            level = max(f, state.evidence[a])
        if index == q:
            state.tied[ties] = a
            ties += 1
    if ties == 1:
        return state.tied[0]
    return state.tied[int(uniform(tape, t, 0, CHOICE) * ties)]


@kernel
def _index(rule: Any, state: Any, a: Any, f: Any) -> Any:
    N, lam = state.counts[a], state.means[a]
    if N == 0:
        return 1.0
    rising = rule.corruption[a, 0] < rule.corruption[a, -1]
    bound = upper_root(lam, f / N) if rising else 1.0 - upper_root(1.0 - lam, f / N)
    return grid_inverse(rule.corruption, a, bound)


@kernel(inlined=False)
def _set_bar(rule: Any, state: Any, b: Any) -> None:
    state.bar[0] = b
    at = state.bar_feedback
    for a in range(state.counts.size):
        if a > 0 and rule.shared == 1:
            at[a, 0], at[a, 1], at[a, 2] = at[0, 0], at[0, 1], at[0, 2]
        else:
            g = rule.corruption[a, -1] if b >= 1.0 else grid_value(rule.corruption, a, b)
            at[a, 0] = g
            at[a, 1] = math.log(g) if g > 0.0 else -np.inf
            at[a, 2] = math.log1p(-g) if g < 1.0 else -np.inf
        state.evidence[a] = _evidence(rule, state, a)


@kernel
def _evidence(rule: Any, state: Any, a: Any) -> Any:
    lam, g = state.means[a], state.bar_feedback[a, 0]
    reached = lam >= g if rule.corruption[a, 0] < rule.corruption[a, -1] else lam <= g
    if reached or state.counts[a] == 0 or state.bar[0] <= 0.0:
        return -np.inf
    log_g, log_1g = state.bar_feedback[a, 1], state.bar_feedback[a, 2]
    return state.counts[a] * (state.entropies[a] - lam * log_g - (1.0 - lam) * log_1g)


@kernel
def exploration(s: Any) -> Any:
    """Return f(s) = ln s + 3 ln ln s, at least 0."""
    return max(0.0, math.log(s) + 3.0 * math.log(math.log(s))) if s > 1.0 else 0.0


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
    state.stale[arm] = True


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
