"""P-IMED-CF: learn from private bits in an environment that changes, told nothing about it.

IMED on the bits that randomized response sends: pull the arm with the least evidence of being worse. Two
things watch for changes. A test of the pulled arm's own bits restarts everything when they changed; and
trailing arms are probed for a short while now and then, the more rarely the surer one is of them, so that
one which rises is noticed. Neither the horizon nor the number of changes is told. This project's own; it
answers question 5 of paper 003. Line numbers are those of the box in ``docs/changing.md``.

Late feedback: a bit of a round before the last restart is dropped; an arm waits for its first bit while
others are pulled; bits of rounds before a probe began count for the arm but not for the probe. In an
environment without change regret grows like sqrt(T), the price of watching; `expected_changes` is the dial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.change_test import (
    History,
    forget_all,
    largest_ratio,
    new_history,
    remember,
    two_sample_ratio,
)
from tacit.arms.corruption import Feedback
from tacit.arms.divergence import negative_entropy
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import local_kernels
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.constraints import Positive
from tacit.core.kernels import kernel
from tacit.privacy.mechanisms import Epsilon

_ENOUGH = 0.5  # c1: evidence that ends a probe
_ALARM = 3.0  # c2: evidence, beyond ln(t) / 2, that a probed arm has risen
_SURE = 8.0  # evidence against an arm before it is probed
_TIE = 1e-9  # evidence that differs by less is the same; the leader is then pulled
_EVERY = 10  # the test of an arm with 100 bits or more runs at every tenth


class Params(NamedTuple):
    """What the kernels need."""

    keep: float
    """p, the probability that a bit is told as it is."""
    expected_changes: float
    """k0."""
    feedback: Feedback
    """How a reward becomes a bit."""


class State(NamedTuple):
    """What is learned since the last restart."""

    counts: NDArray[np.int64]
    """Shape (K,): n, bits received."""
    sums: NDArray[np.float64]
    """Shape (K,): S, their sums."""
    pulls: NDArray[np.int64]
    """Shape (K,): pulls, whose bits may still be under way."""
    looked: NDArray[np.int64]
    """Shape (K,): last, the round in which an arm was last looked at closely."""
    known: NDArray[np.int64]
    """Shape (K,): nl, its bits at that time."""
    means: NDArray[np.float64]
    """Shape (K, 5): S / n, its negative entropy, ln n, the smoothed mean s, its negative entropy."""
    history: History
    probe: NDArray[np.float64]
    """Shape (5,): W, the frozen s of the probed arm and of the leader, bits of the probe, their sum."""
    now: NDArray[np.int64]
    """Shape (5,): by the names below."""


PROBED = 0
"""The arm that is probed, -1 if none."""
SINCE = 1
"""The round in which the probe began."""
RESTART = 2
"""The first round after the last restart; bits of earlier rounds are dropped."""
CHANGES = 3
"""ns, changes that were found in other arms than the most pulled one."""
LEADER = 4
"""b, the arm of largest mean at the last decision; -1 before every arm was pulled."""


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Lines 2 to 9: probe, begin, begin a probe, or pull the arm with the least evidence."""
    arm = _choice(params, state, t, eligible)
    state.pulls[arm] += 1
    return arm


@kernel
def _choice(params: Any, state: Any, t: Any, eligible: Any) -> Any:
    n, probed = eligible.size, state.now[PROBED]
    fewest, best = eligible[0], -1
    for i in range(n):
        a = eligible[i]
        if a == probed:
            return a
        if state.pulls[a] < state.pulls[fewest]:
            fewest = a
        if state.counts[a] > 0 and (best < 0 or state.means[a, 0] > state.means[best, 0]):
            best = a
    if state.pulls[fewest] == 0 or best < 0:
        return fewest
    state.now[LEADER] = best
    arm = best if probed >= 0 else _due_for_probe(params, state, t, best, eligible)
    return arm if arm != best else _least_evidence(state, best, eligible)


@kernel
def _due_for_probe(params: Any, state: Any, t: Any, best: Any, eligible: Any) -> Any:
    # Lines 5 to 8; D <= t - last is compared in squares.
    slope, s_b = 2.0 * params.keep - 1.0, state.means[best, 3]
    log_b, log_1b = math.log(s_b), math.log1p(-s_b)
    room = max((params.keep - s_b) / slope, 0.05)
    level = (t + 1.0) * state.counts.size * _ENOUGH / slope
    watch = (params.expected_changes + state.now[CHANGES]) * room * room
    for i in range(eligible.size):
        a = eligible[i]
        s = state.means[a, 3]
        if a != best and state.counts[a] > 0 and s < s_b:
            d = state.means[a, 4] - s * log_b - (1.0 - s) * log_1b
            waited = float(t - state.looked[a])
            due = waited * waited * d * watch >= level * (s_b - s)
            if due and state.counts[best] * d >= _SURE:
                state.now[PROBED], state.now[SINCE] = a, t
                state.probe[0], state.probe[1], state.probe[2] = 0.0, s, s_b
                state.probe[3], state.probe[4] = 0.0, 0.0
                return a
    return best


@kernel
def _least_evidence(state: Any, best: Any, eligible: Any) -> Any:
    # Line 9: argmin n kl(mean, best mean) + ln n.
    m = state.means[best, 0]
    log_m = math.log(m) if m > 0.0 else -np.inf
    log_1m = math.log1p(-m) if m < 1.0 else -np.inf
    arm, least = best, state.means[best, 2]
    for i in range(eligible.size):
        a = eligible[i]
        if state.counts[a] > 0:
            weight = state.means[a, 2]
            mean = state.means[a, 0]
            if mean < m:
                d = state.means[a, 1] - (1.0 - mean) * log_1m if mean < 1.0 else state.means[a, 1]
                d -= mean * log_m if mean > 0.0 else 0.0
                weight += state.counts[a] * d
            if weight < least - _TIE:
                arm, least = a, weight
    return arm


@kernel
def _refresh(params: Any, state: Any, a: Any) -> None:
    n, total = state.counts[a], state.sums[a]
    mean = min(1.0, max(0.0, total / n))
    low, high = max(1.0 - params.keep, 0.001), min(params.keep, 0.999)
    s = min(high, max(low, (total + 1.0) / (n + 2.0)))
    state.means[a, 0], state.means[a, 1] = mean, negative_entropy(mean)
    state.means[a, 2] = math.log(n)
    state.means[a, 3], state.means[a, 4] = s, negative_entropy(s)


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, bit: Any) -> None:
    """Lines 10 to 19: take in a bit of round t; end the probe, or restart, if it says so."""
    if t < state.now[RESTART]:
        return
    state.counts[arm] += 1
    state.sums[arm] += bit
    remember(state.history, arm, bit)
    _refresh(params, state, arm)
    n = state.counts[arm]
    changed = False
    if arm == state.now[PROBED]:
        if t >= state.now[SINCE]:
            changed = _probe_tells(state, t, arm, bit)
    elif state.now[LEADER] >= 0 and arm != state.now[LEADER]:
        evidence = two_means(state.means[arm, 0], state.means[state.now[LEADER], 0])
        if (n - state.known[arm]) * evidence >= _ENOUGH:
            state.looked[arm], state.known[arm] = t, n
    if not changed and n >= 4 and (n < 100 or n % _EVERY == 0):
        bar = 1.5 * math.log(n) + 0.5 * math.log(t + 1.0)
        changed = largest_ratio(state.history, arm, n, state.sums[arm]) > bar
    if changed:
        restart(state, t, arm)


@kernel
def two_means(p: Any, q: Any) -> Any:
    """Return kl(p, q), infinite where q is 0 or 1 and p is not."""
    if p == q:
        return 0.0
    if q <= 0.0 or q >= 1.0:
        return np.inf
    return negative_entropy(p) - p * math.log(q) - (1.0 - p) * math.log1p(-q)


@kernel
def _probe_tells(state: Any, t: Any, arm: Any, bit: Any) -> Any:
    # Lines 11 to 14: a sequential test of s against the leader's s_b.
    s, s_b = state.probe[1], state.probe[2]
    state.probe[0] += bit * math.log(s_b / s) + (1.0 - bit) * math.log((1.0 - s_b) / (1.0 - s))
    state.probe[3] += 1.0
    state.probe[4] += bit
    alarm = _ALARM + 0.5 * math.log(t + 1.0)
    if -_ENOUGH < state.probe[0] < alarm:
        return False
    risen = False
    if state.probe[0] >= alarm:
        n1, sum1 = state.probe[3], state.probe[4]
        n0, sum0 = state.counts[arm] - n1, state.sums[arm] - sum1
        risen = two_sample_ratio(n0, sum0, n1, sum1) >= 0.5 * alarm
    state.now[PROBED] = -1
    state.looked[arm], state.known[arm] = t, state.counts[arm]
    return risen


@kernel(inlined=False)
def restart(state: Any, t: Any, arm: Any) -> None:
    """Lines 18 and 19: forget all arms."""
    most = 0
    for a in range(state.counts.size):
        if state.counts[a] > state.counts[most]:
            most = a
    if arm != most:
        state.now[CHANGES] += 1
    state.counts[:] = 0
    state.sums[:] = 0.0
    state.pulls[:] = 0
    state.known[:] = 0
    state.looked[:] = t
    forget_all(state.history)
    state.now[PROBED], state.now[RESTART], state.now[LEADER] = -1, t + 1, -1


@dataclass(frozen=True, kw_only=True)
class PIMEDCF(LocalPolicy[State]):
    """IMED on randomized bits, restarted when something changes, with probes of trailing arms.

    Guarantee: pure local differential privacy with `epsilon` for each single reward, over the whole
    run; without it none.

    Parameters
    ----------
    expected_changes : float, default 0.1
        k0: the larger, the more often trailing arms are probed before any change was seen.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import PIMEDCF, Rotating
    >>> policy = PIMEDCF(n_arms=2, epsilon=2.0)
    >>> result = tacit.simulate(policy, Rotating(n_arms=2), horizon=20_000, repetitions=4)
    >>> bool(result.final("regret").mean() < 1000)
    True
    >>> round(policy.guarantee(20_000).epsilon, 9)
    2.0
    """

    name: ClassVar[str] = "p-imed-cf"
    summary: ClassVar[str] = "IMED on locally private bits, changing environment, told nothing"
    paper: ClassVar[str] = "Tacit's own, for question 5 of 003"
    kernels: ClassVar[Kernels] = local_kernels(select, learn_from_report)

    epsilon: Epsilon | None = None
    expected_changes: Positive = 0.1

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        feedback = self.feedback
        return Params(
            keep=float(feedback.ends[0, 1]),
            expected_changes=float(self.expected_changes),
            feedback=feedback,
        )

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        K = self.n_arms
        return State(
            counts=np.zeros(K, np.int64),
            sums=np.zeros(K),
            pulls=np.zeros(K, np.int64),
            looked=np.zeros(K, np.int64),
            known=np.zeros(K, np.int64),
            means=np.zeros((K, 5)),
            history=new_history(K),
            probe=np.zeros(5),
            now=np.array([-1, 0, 0, 0, -1]),
        )
