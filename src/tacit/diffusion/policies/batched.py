"""Agents who keep to themselves: Tsallis-INF on noisy mean losses of batches, against any losses.

The comparison that paper 000 lacks. An agent names one state for a batch of B = 1/epsilon rounds, and
learns of them only their mean loss with Laplace noise: one loss moves a mean by 1/B, so that noise of
scale 1 is enough. Asi, Raman, Talwar (ICML 2025) show that this turns any bandit which bears noise
of that size into a private one, at sqrt(KT / epsilon) where the noise on every loss costs
sqrt(KT) / epsilon. The bandit here is follow the regularised leader with the Tsallis entropy of order
1/2 (Zimmert and Seldin 2021), which leaves out the few noisy means that are too large for it, as
Huang, Da and Huang (2022) do.

Rates and bound, for y a noisy mean and s^2 = 1 + 2 / (B epsilon)^2 at least its mean square. In batch n
eta = 1 / (2 s sqrt(n)), and y is left out if |y| > s sqrt(n w) = sqrt(w) / (2 eta), where w is the
probability of the state named. One step adds sqrt(w) x^2 / (eta (1 + x)) to the regret, with
x = eta y / sqrt(w), which is at least -1/2: in expectation 2 eta s^2 sqrt(M) at most. What is left out
adds no more than that, and can only flatter the best state, since y is a mean of losses plus symmetric
noise; the regulariser adds 2 sqrt(M) / eta. Together: 8 s sqrt(M T B) + B, for every agent against
any losses fixed in advance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Count
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, NOISE, uniform
from tacit.diffusion.policy import DiffusionPolicy
from tacit.diffusion.rounds import Kernels, make_kernels
from tacit.diffusion.steps import draw
from tacit.diffusion.table import Table, loss_at, write_truth
from tacit.diffusion.trace import record_choices
from tacit.privacy import Guarantee, Laplace, LaplaceRelease, Mechanism, compose
from tacit.privacy.mechanisms import Epsilon
from tacit.privacy.mechanisms.laplace import release_laplace

_STEPS = 100
_CLOSE = 1e-13


class Params(NamedTuple):
    """What the kernel needs."""

    block: int
    """B."""
    epsilon: float
    """Of one loss; infinite for no noise."""
    size: float
    """s, the root of the largest mean square of a noisy mean."""


class State(NamedTuple):
    """What N agents know, and the batch they are in."""

    mu: NDArray[np.float64]
    """Shape (N, M): w, the probability of naming each state."""
    losses: NDArray[np.float64]
    """Shape (N, M): sums of estimated losses."""
    choices: NDArray[np.int64]
    """Shape (N,): the states named in this batch."""
    suffered: NDArray[np.float64]
    """Shape (N,): the losses of this batch so far."""
    skipped: NDArray[np.int64]
    """Shape (N,): how many noisy means were left out."""


@dataclass(frozen=True, kw_only=True)
class BatchedTsallis(DiffusionPolicy[State]):
    """Name the state of least loss, whatever the losses, and hide each of them.

    Guarantee: pure `epsilon` for each loss of each agent over the whole run, against anybody who sees
    all states named; nothing is sent, and signals are not used.

    Regret: at most 8 s sqrt(M T B) + B for each agent, s^2 = 1 + 2 / (B epsilon)^2, against any losses
    fixed in advance: of order sqrt(M T / epsilon) where epsilon <= 1.

    Parameters
    ----------
    n_states : int
        Number of states M.
    epsilon : float or None
        Privacy of one loss; None adds no noise.
    block : int, optional
        B, the rounds of a batch; by default 1 / epsilon, rounded up.

    Examples
    --------
    >>> import tacit
    >>> from tacit.diffusion import BatchedTsallis, ChangingTruth
    >>> policy = BatchedTsallis(n_states=5, epsilon=0.1)
    >>> policy.rounds_per_report, policy.guarantee(5000).epsilon
    (10, 0.1)
    >>> environment = ChangingTruth(dominance=0.8)
    >>> result = tacit.simulate(policy, environment, horizon=5000, repetitions=4, seed=1)
    >>> bool(result.final("regret").mean() < 1500)  # a uniform belief: 3,000
    True

    References
    ----------
    Asi, Raman, Talwar. Faster rates for private adversarial bandits. ICML, 2025.
    """

    name: ClassVar[str] = "batched-tsallis"
    summary: ClassVar[str] = "each agent alone, from noisy mean losses of batches"
    protects: ClassVar[str] = "each loss, from everybody"
    paper: ClassVar[str] = "Asi, Raman, Talwar 2025"

    epsilon: Epsilon | None
    block: Count | None = None

    @property
    def rounds_per_report(self) -> int:
        """B, the rounds of a batch."""
        return self.block or (1 if self.epsilon is None else math.ceil(1.0 / self.epsilon))

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What a mean loss is told through."""
        if self.epsilon is None:
            return ()
        return (Laplace(epsilon=self.epsilon, sensitivity=1 / self.rounds_per_report),)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what is protected: one loss of one agent."""
        if self.epsilon is None:
            return Guarantee.none("Means are learned from without noise.", unit="loss")
        return Guarantee(
            epsilon=self.epsilon,
            basis="theorem",
            unit="loss",
            trust="local",
            span="run",
            note=(
                "Where one event changes the losses of n agents, n times that. Each loss is in one "
                "mean; for an agent's whole history see history_guarantee."
            ),
            not_protected=("others",),
        )

    def history_guarantee(self, horizon: int, *, delta: float = 0.0) -> Guarantee:
        """Return what is guaranteed to all losses of one agent together."""
        if self.epsilon is None:
            return self.guarantee(horizon)
        B = self.rounds_per_report
        whole = LaplaceRelease(sensitivity=1.0, scale=1 / (B * self.epsilon))
        scope: dict[str, Any] = {"unit": "agent", "trust": "local", "span": "run"}
        return compose([(whole, horizon // B)], delta=delta, not_protected=(), **scope)

    def regret_bound(self, horizon: int) -> float:
        """Return the most that an agent loses in expectation."""
        B = self.rounds_per_report
        return 8.0 * self.params.size * math.sqrt(self.n_states * horizon * B) + B

    @cached_property
    def params(self) -> Params:
        """The numbers the kernel needs."""
        noise = sum(each.variance for each in self.mechanisms)
        return Params(self.rounds_per_report, self.epsilon or math.inf, math.sqrt(1.0 + noise))

    def start(self, table: Table) -> State:
        """Return agents who would name any state."""
        mu = self._uniform(table)
        N = mu.shape[0]
        counts = np.zeros(N, np.int64)
        return State(mu, np.zeros_like(mu), counts, np.zeros(N), counts.copy())

    @property
    def kernels(self) -> Kernels:
        """The kernels of a round: name a state, and learn."""
        return KERNELS

    def messages(self, state: State) -> NDArray[np.float64]:
        """Return an array that nobody writes to: nothing is sent."""
        return state.mu

    def sends_in(self, t: int) -> bool:
        """Return False: nothing is sent."""
        return False


@kernel
def tell(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Draw the state to name where a batch begins."""
    write_truth(table, t, trace.truth)
    if t % params.block == 0:
        for k in range(state.choices.size):
            u = uniform(tape, t, table.first + k, CHOICE)
            state.choices[k] = draw(state.mu[k], u)
            state.suffered[k] = 0.0


@kernel
def hear(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Suffer the loss of the state named, and learn where a batch ends."""
    B, choices = params.block, state.choices
    record_choices(table, trace, t, state.mu, choices)
    for k in range(choices.size):
        state.suffered[k] += loss_at(table, t, k, choices[k], trace.truth[table.group[k]])
    if t % B == B - 1:
        for k in range(choices.size):
            learn(params, state, tape, t, k, table.first + k)


KERNELS = make_kernels(tell, hear)


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, k: Any, who: Any) -> None:
    """Add the noisy mean loss of the batch that ends with round t, and lead accordingly."""
    n, theta = (t + 1) // params.block, state.choices[k]
    y = state.suffered[k] / params.block
    if params.epsilon < math.inf:
        y = release_laplace(tape, t, who, NOISE, y, 1.0 / params.block, params.epsilon)
    if abs(y) > params.size * math.sqrt(n * state.mu[k, theta]):
        state.skipped[k] += 1
    else:
        state.losses[k, theta] += y / state.mu[k, theta]
    lead(state.losses, k, 0.5 / (params.size * math.sqrt(n + 1.0)), state.mu)


@kernel
def lead(losses: Any, k: Any, eta: Any, w: Any) -> None:
    """Write w_k, the point of the simplex where losses w less 2 sum sqrt(w) / eta is least.

    There eta^2 (loss - level)^2 w = 1 for every state. Newton's method finds how far below the least
    loss the level is at which the w add up to 1; it never overshoots, since their sum is convex.
    """
    M = w.shape[1]
    least = losses[k, 0]
    for theta in range(1, M):
        least = min(least, losses[k, theta])
    below, total = 1.0 / eta, 0.0
    for _ in range(_STEPS):
        total, slope = 0.0, 0.0
        for theta in range(M):
            far = eta * (losses[k, theta] - least + below)
            w[k, theta] = 1.0 / (far * far)
            total += w[k, theta]
            slope += 2.0 * eta * w[k, theta] / far
        if total - 1.0 <= _CLOSE:
            break
        below += (total - 1.0) / slope
    for theta in range(M):
        w[k, theta] /= total
