"""Algorithm 2: agents who hide their losses and signals from outsiders and from each other.

As Algorithm 1, but what an agent sends to its neighbours is noisy too. Given the noisy losses, a
belief is post-processing and needs no further noise; what a message leaks is the agent's latest
signal. Odeyomi (2022), Algorithm 2, read as: add the noise, then scale, then renormalise P before
drawing.

``published`` follows the box. With b' = 1 and epsilon = 0.1, 90% of the draws on the M probabilities
are replaced by the same constant, and a message is as good as open. ``corrected`` noises what the
message really depends on: the agent shares one state, the nearest to its signal, through randomized
response with M answers, and all agents, itself included, apply Bayes' rule with the likelihood of
that answer. Signals and losses are told once a block: longer blocks share less and spend less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from tacit.core.constraints import NonNegative, Positive
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, MESSAGE, NOISE, uniform
from tacit.diffusion import corrected_step
from tacit.diffusion.policies.bandit import tell as tell_openly
from tacit.diffusion.private import PrivateBanditPolicy
from tacit.diffusion.rounds import Kernels, make_kernels
from tacit.diffusion.steps import Params, add_noise, consensus, draw, reweigh
from tacit.diffusion.table import loss_at
from tacit.diffusion.trace import record_choices
from tacit.privacy import (
    BoundedNoise,
    BoundedNoiseRelease,
    Claim,
    Guarantee,
    KAryResponse,
    Mechanism,
    PureRelease,
    Release,
    compose,
)


@dataclass(frozen=True, kw_only=True)
class SpyPrivateDiffusion(PrivateBanditPolicy):
    """Track the dominant state and hide losses and signals from everybody else, neighbours included.

    Guarantee: corrected, pure `epsilon` + `signal_epsilon` for the loss and the signal of one agent
    in one round, over the whole run; for an agent's whole history see `history_guarantee`.
    Published, none.

    Parameters
    ----------
    n_states : int
        Number of states M.
    epsilon : float
        Privacy of one loss; in the published variant also of one probability.
    signal_epsilon : float, optional
        Privacy of one signal in the corrected variant; by default `epsilon`. 0 shares no signals.
    message_bound : float, default 1
        b' of the published variant.
    variant, mechanism, block, noise_bound
        As in :class:`~tacit.diffusion.OutsiderPrivateDiffusion`.
    rates, learning_rate, exploration_prob, horizon, independence_number
        As in :class:`BanditPolicy`.

    Examples
    --------
    >>> import tacit
    >>> from tacit.diffusion import ChangingTruth, SpyPrivateDiffusion
    >>> policy = SpyPrivateDiffusion(n_states=5, epsilon=1.0, signal_epsilon=0.5)
    >>> round(policy.guarantee(5000).epsilon, 9)
    1.5
    >>> round(policy.history_guarantee(5000).epsilon, 6)
    7500.0
    >>> seldom = SpyPrivateDiffusion.with_report_epsilon(
    ...     n_states=5, report_epsilon=1.0, signal_epsilon=0.5, block=50
    ... )
    >>> round(seldom.history_guarantee(5000).epsilon, 6)
    150.0

    References
    ----------
    Odeyomi. Differential privacy in social networks using multi-armed bandit. IEEE Access, 2022.
    """

    name: ClassVar[str] = "diffusion-spies"
    summary: ClassVar[str] = "agents track a changing truth, losses and signals hidden from all"
    protects: ClassVar[str] = "each loss and signal, from neighbours too (published: nothing)"
    paper: ClassVar[str] = "000 Algorithm 2"

    signal_epsilon: NonNegative | None = None
    message_bound: Positive = 1.0

    @property
    def signal_release(self) -> Release:
        """What one signal, or one probability that was sent, is released through."""
        if not self.corrected:
            gamma = self.published_rates[1]
            return BoundedNoiseRelease(
                sensitivity=gamma, scale=1 / self.epsilon, bound=self.message_bound
            )
        mechanism = self.signal_mechanism
        if mechanism is None:
            return PureRelease(level=0.0, what="nothing about a signal")
        return mechanism.release

    @property
    def signal_mechanism(self) -> KAryResponse | None:
        """What the state nearest to a signal is told through; None where nothing is told."""
        level = self.epsilon if self.signal_epsilon is None else self.signal_epsilon
        if level == 0 or self.n_states == 1:
            return None
        return KAryResponse(epsilon=level, options=self.n_states)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What losses and signals are told through."""
        if not self.corrected:
            message = BoundedNoise(epsilon=self.epsilon, bound=self.message_bound)
            return (self.report_mechanism, message)
        mechanism = self.signal_mechanism
        return (self.report_mechanism,) if mechanism is None else (self.report_mechanism, mechanism)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what is protected: the loss and the signal of one agent in one round."""
        scope: dict[str, Any] = {"unit": "message", "trust": "local", "span": "run"}
        if not self.corrected:
            return self._published_guarantee(scope)
        scope["not_protected"] = ("sending", "others", *self.unprotected)
        releases = [(self.loss_release, 1), (self.signal_release, 1)]
        note = (
            "That is its loss and its signal in one round; where one event changes those of n "
            "agents, n times that."
        )
        if self.rounds_per_report == 1:
            return compose(releases, note=note, **scope)
        note += (
            f" Shared every {self.rounds_per_report} rounds; for an agent's whole history see "
            "history_guarantee."
        )
        total = sum(release.epsilon for release, _ in releases)
        return Guarantee(epsilon=total, basis="theorem", note=note, **scope)

    def _published_guarantee(self, scope: dict[str, Any]) -> Guarantee:
        message = self.signal_release
        constant = math.exp(-self.message_bound * self.epsilon)
        vector = 1.0 - (1.0 - constant) ** self.n_states
        loss = self.loss_guarantee
        why = (
            f"{100 * constant:.1f}% of the draws on a probability are the same constant; a message "
            f"shows one exactly with probability {vector:.5f}"
        )
        return Guarantee.none(
            f"{why[0].upper()}{why[1:]}. One loss alone has epsilon = {self.epsilon:g} at delta = "
            f"{loss.delta:.3g}.",
            claim=Claim(epsilon=self.epsilon, holds=False, why=why, **scope),
            releases=[(self.loss_release, 1), (message, self.n_states)],
            **scope,
        )

    def history_releases(self, horizon: int) -> list[tuple[Release, int]]:
        """Return all reports and signals of one agent."""
        shares = math.ceil(horizon / self.rounds_per_report)
        return [
            (self.block_release, horizon // self.rounds_per_report),
            (self.signal_release, shares if self.corrected else shares * self.n_states),
        ]

    @property
    def keep_signal(self) -> float:
        """Probability that the state nearest to a signal is told, of M answers."""
        mechanism = self.signal_mechanism
        return 1 / self.n_states if mechanism is None else mechanism.keep

    @property
    def published_kernels(self) -> Kernels:
        """The kernels of Algorithm 2."""
        return KERNELS

    @cached_property
    def params(self) -> corrected_step.Params | Params:
        """The numbers that the kernels of the variant need; of the published one also b'."""
        params = super().params
        if isinstance(params, Params):
            return params._replace(message_bound=self.message_bound)
        return params


@kernel
def tell(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Write the noisy p that every agent sends."""
    p, b = state.p, params.message_bound
    N, M = state.mu.shape
    tell_openly(params, state, table, tape, trace, t)
    for k in range(N):
        for theta in range(M):  # steps 2 to 4
            at = (table.first + k) * M + theta
            p[k, theta] = add_noise(tape, t, at, MESSAGE, p[k, theta], params.epsilon, b)


@kernel
def hear(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Name a state by what one hears, and learn from its noisy loss."""
    mu, log_mu, p, P, choices = state
    truth = trace.truth
    N, M = mu.shape
    for k in range(N):
        consensus(table.indptr, table.senders, table.weights, p, k, P[k])
        total = 0.0
        for theta in range(M):
            total += P[k, theta]
        for theta in range(M):
            P[k, theta] /= total
        choices[k] = draw(P[k], uniform(tape, t, table.first + k, CHOICE))
    record_choices(table, trace, t, mu, choices)
    for k in range(N):
        theta = choices[k]
        loss = loss_at(table, t, k, theta, truth[table.group[k]])
        who = table.first + k
        scaled = add_noise(tape, t, who, NOISE, loss, params.epsilon, params.b)  # steps 7 to 9
        reweigh(mu, log_mu, k, theta, params.eta * scaled / P[k, theta])  # steps 10, 11


KERNELS = make_kernels(tell, hear)
