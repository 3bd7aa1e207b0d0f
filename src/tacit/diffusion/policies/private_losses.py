"""Algorithm 1: agents who trust each other and hide their losses from outsiders.

As Algorithm 3, but the loss an agent learns from has been through a private channel, so that beliefs,
messages and the states named show no more of a loss than the channel does. Odeyomi (2022),
Algorithm 1.

``published`` follows the box: Laplace noise, replaced by b/2 where it leaves [-b, b], then squeezed
from [-b, b + 1] into [0, 1]. The replacement leaves an atom and ends that do not overlap, so no pure
epsilon holds; the squeeze makes loss 0 and loss 1 differ by 1 / (2b + 1), about 0.008 at the paper's
numbers, and nothing is learned. ``corrected`` takes the sound step of
:mod:`tacit.diffusion.corrected_step` instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, NOISE, uniform
from tacit.diffusion.policies.bandit import tell
from tacit.diffusion.private import PrivateBanditPolicy
from tacit.diffusion.rounds import Kernels, make_kernels
from tacit.diffusion.steps import add_noise, consensus, draw, reweigh
from tacit.diffusion.table import loss_at
from tacit.diffusion.trace import record_choices
from tacit.privacy import Guarantee, Release


@dataclass(frozen=True, kw_only=True)
class OutsiderPrivateDiffusion(PrivateBanditPolicy):
    """Track the dominant state and hide every loss from whoever is not an agent.

    Guarantee: corrected, pure `epsilon` for each loss of each agent over the whole run, against
    anybody who sees all messages, beliefs and states named; signals are not protected. Published,
    no better than delta = e^(-epsilon b) (1 + (e^epsilon - 1) / 2) at `epsilon` or at any larger one.

    Regret: corrected, of order sqrt(T M ln M / (epsilon a_kk)) for an agent with self-weight a_kk
    where epsilon <= 1; published, that of a uniform belief.

    Parameters
    ----------
    n_states : int
        Number of states M.
    epsilon : float
        Privacy of one loss.
    variant : "corrected" or "published", default "corrected"
    mechanism : "response" or "laplace", default "response"
        The channel of the corrected variant: one randomized bit, or a clamped noisy mean.
    block : int, optional
        B, the rounds between two reports of the corrected variant; by default the best for
        `epsilon`, 2 / (e^epsilon - 1).
    noise_bound : float, optional
        b of the published variant; by default ln T / epsilon, for which `horizon` must be given.
    rates, learning_rate, exploration_prob, horizon, independence_number
        As in :class:`BanditPolicy`; the published variant has no adaptive rates and takes the
        paper's constants unless told "theory".

    Examples
    --------
    >>> import tacit
    >>> from tacit.diffusion import ChangingTruth, OutsiderPrivateDiffusion
    >>> policy = OutsiderPrivateDiffusion(n_states=5, epsilon=1.0)
    >>> round(policy.guarantee(5000).epsilon, 9)
    1.0
    >>> environment = ChangingTruth(dominance=0.8)
    >>> result = tacit.simulate(policy, environment, horizon=5000, repetitions=4, seed=1)
    >>> bool(result.final("regret").mean() < 300)  # a uniform belief: 3,000
    True

    References
    ----------
    Odeyomi. Differential privacy in social networks using multi-armed bandit. IEEE Access, 2022.
    """

    name: ClassVar[str] = "diffusion-outsiders"
    summary: ClassVar[str] = "agents track a changing truth, losses hidden from outsiders"
    protects: ClassVar[str] = "each loss, from outsiders (published: not as claimed)"
    paper: ClassVar[str] = "000 Algorithm 1"
    unprotected: ClassVar[tuple[str, ...]] = ("signals", "graph")

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what is protected: one loss of one agent."""
        return self.loss_guarantee

    def history_releases(self, horizon: int) -> list[tuple[Release, int]]:
        """Return all reports of one agent."""
        return [(self.block_release, horizon // self.rounds_per_report)]

    @property
    def published_kernels(self) -> Kernels:
        """The kernels of Algorithm 1, in which agents tell what they do without privacy."""
        return KERNELS


@kernel
def hear(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Name a state by what one hears, and learn from its noisy loss."""
    mu, log_mu, p, P, choices = state
    truth = trace.truth
    N = mu.shape[0]
    for k in range(N):
        consensus(table.indptr, table.senders, table.weights, p, k, P[k])
        choices[k] = draw(P[k], uniform(tape, t, table.first + k, CHOICE))
    record_choices(table, trace, t, mu, choices)
    for k in range(N):
        theta = choices[k]
        loss = loss_at(table, t, k, theta, truth[table.group[k]])
        who = table.first + k
        scaled = add_noise(tape, t, who, NOISE, loss, params.epsilon, params.b)  # steps 4 to 6
        reweigh(mu, log_mu, k, theta, params.eta * scaled / P[k, theta])  # steps 7, 8


KERNELS = make_kernels(tell, hear)
