"""Restarting LinUCB: a change detector around LinUCB, on privatised rewards.

Paper 003 leaves contexts to future work. Each user has a ridge regression, as in LinUCB, and a watch over its
prediction errors. While a user's preferences stay what they are, the errors of a Bayesian regression, divided
by the standard deviations that it expects of them, are white: of mean 0 and variance 1. After a change they
are not. Page's test (1954) adds them up as long as they go one way, each less half a smallest shift delta:
up <- max(0, up + z - delta / 2), and the same downwards. When a sum exceeds h, the user is forgotten and
learned anew. Errors are told by privatised rewards alone, so the guarantee is LinUCB's.

If errors are sub-Gaussian of mean 0 and variance 1, exp(delta (z - delta / 2)) has a mean of at most 1. By
Ville's inequality a sum that began with the s-th error ever exceeds ln(2 s (s + 1) / alpha) / delta with
probability at most alpha / (2 s (s + 1)); with that h a user who never changes is ever forgotten with
probability at most alpha. Rewards told as they are, by a bit or by the piecewise mechanism are bounded, hence
sub-Gaussian; that their errors have mean 0 is the regression's assumption. Laplace noise is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.loops import Kernels, rounds
from tacit.contextual.model import (
    Params,
    State,
    Watch,
    answer,
    ask,
    parameter_error,
    select,
    take,
)
from tacit.contextual.policies.linucb import LinUCB
from tacit.contextual.policy import Theory
from tacit.contextual.privacy import NoisySums, PerReward, Published, Residual
from tacit.contextual.ridge import component
from tacit.core.constraints import Positive, Share, require
from tacit.core.kernels import kernel

_RESTARTS = 3


@kernel
def observe_error(params: Any, state: Any, user: Any, x: Any, question: Any, reported: Any) -> None:
    """Take in a told reward; forget the user if the errors go one way for too long."""
    ridge, watch = state.ridge, params.watch
    i = ridge.place[user]
    guess, volume = 0.0, ridge.log_volume[0]
    for a in range(x.size):
        guess += x[a] * ridge.mean[i, a]
    take(params, state, user, x, question, reported)
    # The volume has grown by ln(1 + x'Sx), with S as it was.
    expected = watch.deviation * math.exp(0.5 * (ridge.log_volume[0] - volume))
    z = (reported - guess) / expected
    sums = state.watch[i]
    sums[0] = max(0.0, sums[0] + z - 0.5 * watch.shift)
    sums[1] = max(0.0, sums[1] - z - 0.5 * watch.shift)
    sums[2] += 1.0
    h = math.log(2.0 * sums[2] * (sums[2] + 1.0) / watch.alpha) / watch.shift
    if max(sums[0], sums[1]) > h:
        sums[0], sums[1], sums[2] = 0.0, 0.0, 0.0
        sums[_RESTARTS] += 1.0
        _forget(ridge, i)


@kernel(inlined=False)
def _forget(ridge: Any, i: Any) -> None:
    """Set a user, whom nothing joins to others, to what was known before anything was told."""
    part, d = component(ridge, i), ridge.mean.shape[1]
    prior = ridge.kernel[ridge.layout[i, 4] // (d * d)]
    for a in range(d):
        ridge.mean[i, a], ridge.response[i, a] = 0.0, 0.0
        for b in range(d):
            ridge.gram[i, a, b] = 0.0
            part.S[a, b] = prior if a == b else 0.0
    ridge.pending[part.first] = 0


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, user: Any, x: Any, reward: Any) -> Any:
    """Hide the reward of context x and take in what is told of it."""
    question = ask(params, state, user, x)
    observe_error(params, state, user, x, question, answer(params, tape, t, question, reward))
    return True


@dataclass(frozen=True, kw_only=True)
class RestartingLinUCB(LinUCB):
    """LinUCB that forgets a user whose preferences have changed.

    Guarantee: as `privacy` says, which is None or `PerReward` here; see :class:`CollaborativePolicy`,
    which documents all other parameters.

    Parameters
    ----------
    epsilon : float, optional
        Short for ``PerReward(epsilon=...)``, whatever the kind of `reward`.
    smallest_change : float, default 0.3
        By how much predictions must be wrong, on average, to be noticed soon; as a share of the range
        of rewards.
    false_alarm_prob : float, default 0.05
        With at most this probability a user who never changes is ever forgotten.

    Examples
    --------
    >>> from tacit.contextual import RestartingLinUCB
    >>> policy = RestartingLinUCB(n_users=10, dimension=5, epsilon=2.0)
    >>> round(policy.guarantee(horizon=1000).epsilon, 9)
    2.0

    References
    ----------
    Page. Continuous inspection schemes. Biometrika 1954.
    """

    name: ClassVar[str] = "restarting-linucb"
    summary: ClassVar[str] = "LinUCB on private rewards that forgets users who changed"
    paper: ClassVar[str] = "Tacit's own, for question 3 of 003"
    kernels: ClassVar[Kernels] = Kernels(
        select, learn, rounds(select, learn, parameter_error), learn_from_report=observe_error
    )

    smallest_change: Positive = 0.3
    false_alarm_prob: Share = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        other = isinstance(self.protection, Residual | NoisySums | Published)
        rule = "None or PerReward, for errors to be told"
        require(self, "privacy", rule, not other, self.privacy)
        laplace = isinstance(self.protection, PerReward) and self.protection.chosen == "laplace"
        rule = "without Laplace noise, whose tails are too heavy for the test"
        require(self, "privacy", rule, not laplace, self.privacy)
        centred = isinstance(self.protection, PerReward) and self.protection.centred
        require(self, "reward", "told as it is, not centred", not centred, self.reward)
        theory = isinstance(self.exploration, Theory)
        rule = "a number, because no theorem knows of restarts"
        require(self, "exploration", rule, not theory, self.exploration)
        require(
            self, "shared", "0, because users are forgotten alone", not self.shared, self.shared
        )

    @property
    def protection(self) -> PerReward | Residual | NoisySums | Published | None:
        """What hides rewards: `privacy`, or with `epsilon` each reward by itself."""
        return self.privacy if self.epsilon is None else PerReward(epsilon=self.epsilon)

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need, those of Page's test among them."""
        low, high = self.reward_range
        hidden, deviation = self.protection, (high - low) / 2
        if hidden is not None:
            deviation = hidden.reach(self._sizes)
        shift = self.smallest_change * (high - low) / deviation
        return super().params._replace(watch=Watch(deviation, shift, float(self.false_alarm_prob)))

    def restarts(self, state: State) -> NDArray[np.int64]:
        """Return how often each user was forgotten."""
        assert state.watch is not None
        return np.asarray(state.watch[state.ridge.place, _RESTARTS], np.int64)
