"""Shuffled klUCB-CF: kl-UCB on the numbers of ones in shuffled blocks of flipped bits.

Each person's reward becomes a bit and is flipped on its owner's device. A shuffler collects the bits of
one arm's block and tells the learner how many are ones, so that people hide among each other and their bits
need be flipped far less than without (:mod:`tacit.privacy.shuffler`). The learner bounds the mean of
all told bits of an arm by the Kullback-Leibler interval of klUCB-CF and maps the bound back.

A block holds a quarter of what is told of its arm already, at least `block` and at most 65,536 reports; its
size and how its bits are flipped are fixed before it opens. Bits of different blocks are flipped
differently, and at work so are late ones of one block, which were asked for an earlier block. The mean of an
arm of mean mu then is the line through the average ends, and a sum of bits of different means lies no
further from its mean than one of equal ones (Hoeffding, 1956), so the bound holds. Nothing changes between
two releases but t, so an arm is pulled until its block is full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.blocks import contains
from tacit.arms.klucb_index import (
    Exploration,
    ExplorationFunction,
    level,
    solve_index,
    tabulate_exploration,
)
from tacit.arms.loops import kernels_of
from tacit.arms.policy import ArmsPolicy, Kernels
from tacit.arms.table import Table
from tacit.core.constraints import Count, Share
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, ROUNDING, released, uniform
from tacit.privacy import Guarantee, Mechanism
from tacit.privacy.mechanisms import Epsilon
from tacit.privacy.mechanisms.shuffled_bits import flip_bit
from tacit.privacy.shuffler import Shuffler

if TYPE_CHECKING:
    from tacit.core.decider import Decider, Estimate

_MOST = 2**16


class Params(NamedTuple):
    """What the kernels need."""

    exploration: Exploration
    sizes: NDArray[np.int64]
    """Shape (J,): of an arm's blocks, one after the other; the last from then on."""
    keeps: NDArray[np.float64]
    """Shape (J,): the probability that a bit of the block is told as it is."""
    all_arms: NDArray[np.int64]
    """Shape (K,)."""


class State(NamedTuple):
    """What the shuffler holds of K arms, and what was told."""

    open_ones: NDArray[np.int64]
    """Shape (K,): ones in the open block; only the shuffler knows."""
    open_counts: NDArray[np.int64]
    """Shape (K,): reports in the open block."""
    open_excess: NDArray[np.float64]
    """Shape (K,): by how much they were flipped more than the block asks, summed: late ones were
    asked for an earlier block."""
    blocks: NDArray[np.int64]
    """Shape (K,): blocks that were told."""
    ones: NDArray[np.int64]
    """Shape (K,): ones in them."""
    counts: NDArray[np.int64]
    """Shape (K,): n, reports in them."""
    ends: NDArray[np.float64]
    """Shape (K, 2): the mean of these bits where the mean reward is 0 and 1."""
    now: NDArray[np.int64]
    """Shape (2,): the arm that is pulled until the next release, and 1 if there was one."""


@kernel(inlined=False)
def choose(params: Any, state: Any, t: Any, eligible: Any) -> Any:
    """Return the first arm without a release, else the one with the largest index."""
    best, largest = eligible[0], -1.0
    f = level(params.exploration, float(t))
    for i in range(eligible.size):
        a = eligible[i]
        n = state.counts[a]
        if n == 0:
            return a
        index = solve_index(state.ends, a, n, state.ones[a] / n, f)
        if index > largest or (index == largest and n < state.counts[best]):
            best, largest = a, index
    return best


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Choose anew after a release; return the arm of round t."""
    if state.now[1] == 1:
        state.now[0], state.now[1] = choose(params, state, t, params.all_arms), 0
    arm = state.now[0]
    if eligible.size < state.counts.size and not contains(eligible, arm):
        arm = choose(params, state, t, eligible)
    return arm


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, report: Any, asked: Any) -> None:
    """Put a bit, flipped as block `asked` says, into the arm's open block; tell the block if it is full."""
    last = params.sizes.size - 1
    j = min(state.blocks[arm], last)
    keep = params.keeps[j]
    state.open_ones[arm] += np.int64(report)
    state.open_counts[arm] += 1
    state.open_excess[arm] += keep - params.keeps[min(asked, last)]
    if state.open_counts[arm] == params.sizes[j]:
        m = state.open_counts[arm]
        keep -= state.open_excess[arm] / m
        state.ones[arm] += state.open_ones[arm]
        state.counts[arm] += m
        share = m / state.counts[arm]
        state.ends[arm, 0] += share * (1.0 - keep - state.ends[arm, 0])
        state.ends[arm, 1] += share * (keep - state.ends[arm, 1])
        state.open_ones[arm], state.open_counts[arm], state.open_excess[arm] = 0, 0, 0.0
        state.blocks[arm] += 1
        state.now[1] = 1


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Put the flipped bit of a reward into the arm's open block; tell the block if it is full."""
    bit = reward
    if 0.0 < reward < 1.0:
        bit = 1.0 if uniform(tape, t, arm, ROUNDING) < reward else 0.0
    asked, before = state.blocks[arm], state.ones[arm]
    keep = params.keeps[min(asked, params.keeps.size - 1)]
    learn_from_report(params, state, t, arm, float(flip_bit(tape, t, arm, NOISE, bit, keep)), asked)
    if state.blocks[arm] > asked:
        _ = released(tape, float(state.ones[arm] - before))


@dataclass(frozen=True, kw_only=True)
class ShuffledKLUCBCF(ArmsPolicy[State]):
    """kl-UCB on shuffled blocks of locally randomised bits.

    Guarantee: (`epsilon`, `delta`) differential privacy for each single reward, over the whole run,
    from everybody but the shuffler; from the shuffler itself the larger local epsilon of the bits.

    Parameters
    ----------
    epsilon : float
        Of one reward, from outside the shuffler.
    delta : float, default 1e-6
        The probability of what epsilon does not cover.
    block : int, optional
        The least reports of a block: 125 / epsilon and at most 1,000, if not given. Many arms that
        are soon seen to be bad want less, few arms that are hard to tell apart more.
    exploration : "paper", "log" or function of t, default "log"
        f, as in :class:`~tacit.arms.KLUCB`.

    Examples
    --------
    >>> from tacit.arms import ShuffledKLUCBCF
    >>> policy = ShuffledKLUCBCF(n_arms=2, epsilon=0.5)
    >>> policy.guarantee(10_000).brief()
    'epsilon 0.5, delta 1e-06 a reward, shuffler'
    >>> policy.block, round(policy.shuffler.bits(250).epsilon, 2)
    (250, 1.52)

    References
    ----------
    Gajane, Urvoy, Kaufmann. Corrupt bandits for preserving local privacy. 2018.
    """

    name: ClassVar[str] = "shuffled-klucb-cf"
    summary: ClassVar[str] = "kl-UCB on shuffled blocks of private bits, unchanging environment"
    paper: ClassVar[str] = "after Gajane et al. 2018"
    protects: ClassVar[str] = "each reward; trusts a shuffler"
    kernels: ClassVar[Kernels] = kernels_of(select, learn)

    epsilon: Epsilon
    delta: Share = 1e-6
    block: Count | None = None
    exploration: ExplorationFunction = "log"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block is None:
            object.__setattr__(self, "block", min(1000, math.ceil(125 / self.epsilon)))
        _ = tabulate_exploration(self, self.exploration)

    @cached_property
    def shuffler(self) -> Shuffler:
        """Who mixes the reports."""
        least = self.block or 1
        return Shuffler(epsilon=self.epsilon, delta=self.delta, least=least, most=max(_MOST, least))

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The bits that are flipped least."""
        return (self.shuffler.mechanism,)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon and delta for each reward over the whole run."""
        # The shuffler sees the reports of a block that is never filled too.
        opened = min(int(np.searchsorted(np.cumsum(self._sizes), horizon)), len(self._sizes) - 1)
        return self.shuffler.guarantee(largest=int(self._sizes[opened]))

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        least = self.shuffler.least
        sizes, total = [least], least
        while sizes[-1] < _MOST and total < 4 * _MOST:
            sizes.append(min(max(least, -(-total // 4)), max(_MOST, least)))
            total += sizes[-1]
        return np.array(sizes)

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(
            tabulate_exploration(self, self.exploration),
            self._sizes,
            np.array([self.shuffler.bits(size).keep for size in self._sizes.tolist()]),
            np.arange(self.n_arms),
        )

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        K = self.n_arms
        return State(
            open_ones=np.zeros(K, np.int64),
            open_counts=np.zeros(K, np.int64),
            open_excess=np.zeros(K),
            blocks=np.zeros(K, np.int64),
            ones=np.zeros(K, np.int64),
            counts=np.zeros(K, np.int64),
            ends=np.zeros((K, 2)),
            now=np.array([0, 1]),
        )

    def forget_unreleased(self, state: State) -> None:
        """Empty the open blocks."""
        state.open_ones[:] = 0
        state.open_counts[:] = 0
        state.open_excess[:] = 0.0

    def released_means(self, state: State) -> list[Estimate | None]:
        """Return what the told blocks say of each arm."""
        from tacit.core.decider import mean_of_bits

        blocks = zip(state.counts.tolist(), state.ones.tolist(), state.ends.tolist(), strict=True)
        return [mean_of_bits(n, ones, *ends) for n, ones, ends in blocks]

    def decider(self, *, explore: float = 0.0) -> Decider:
        """Return this policy at work, with the learner for a shuffler."""
        from tacit.arms.decider import ShufflingDecider

        return ShufflingDecider(self, explore=explore)
