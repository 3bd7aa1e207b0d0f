"""Algorithm 3: agents who track a changing truth from their own losses, without privacy.

An agent mixes its belief with what its latest signal suggests, names a state drawn from the mixture
of its neighbours' and its own, suffers the loss of that state alone, and lowers its belief in the
state by an importance-weighted exponential step. Odeyomi (2022), Algorithm 3; psi starts from
mu_{t-1} and the loss is divided by the consensus probability P, as in eq. 15: dividing by the
agent's own p, as other steps print, is biased. With adaptive rates the sound step of
:mod:`tacit.diffusion.corrected_step` takes the place of the published one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import one_of
from tacit.core.kernels import kernel
from tacit.core.policy import Program
from tacit.core.tapes import CHOICE, Tape, uniform
from tacit.diffusion import corrected_step
from tacit.diffusion.policy import BanditPolicy, Half, with_ghosts
from tacit.diffusion.rounds import rounds
from tacit.diffusion.steps import consensus, draw, intermediate, mix, reweigh
from tacit.diffusion.table import Table, deviation_at, loss_at, signal_at, truth_at
from tacit.diffusion.trace import Trace, record_choices
from tacit.privacy import Guarantee


class Params(NamedTuple):
    """The numbers of the paper's boxes."""

    eta: float
    gamma: float
    epsilon: float = math.inf
    """Of the noise on losses and messages, where there is any."""
    b: float = 0.0
    """Its bound on losses."""
    message_bound: float = 0.0
    """b', its bound on messages."""


class State(NamedTuple):
    """What N agents believe."""

    mu: NDArray[np.float64]
    """Shape (N, M): beliefs."""
    log_mu: NDArray[np.float64]
    """Shape (N, M): their logarithms, 0 for the largest."""
    p: NDArray[np.float64]
    """Shape (N + ghosts, M): what agents send, intermediate probabilities."""
    P: NDArray[np.float64]
    """Shape (N, M): consensus probabilities."""
    choices: NDArray[np.int64]
    """Shape (N,): the states named."""

    @classmethod
    def of(cls, mu: NDArray[np.float64], table: Table) -> State:
        """Return the state in which every agent believes in all states alike."""
        choices = np.zeros(mu.shape[0], np.int64)
        return cls(mu, np.zeros_like(mu), with_ghosts(mu, table), mu.copy(), choices)


@dataclass(frozen=True, kw_only=True)
class DiffusionBandit(BanditPolicy[State | corrected_step.State]):
    """Track the dominant state from losses and signals, sharing in the open.

    Guarantee: none; beliefs depend on every loss and signal without noise.

    Regret: with theory's rates of order sqrt(alpha T ln M) for each agent, by the paper.

    Parameters
    ----------
    n_states : int
        Number of states M.
    rates : "constant", "theory" or "adaptive", default "constant"
        Constant and theory run the published box, adaptive the sound step.
    learning_rate, exploration_prob : float, default 0.1
        The paper's constants.
    horizon, independence_number : int, optional
        For theory.

    Examples
    --------
    >>> import tacit
    >>> from tacit.diffusion import ChangingTruth, DiffusionBandit
    >>> policy, environment = DiffusionBandit(n_states=5), ChangingTruth(dominance=0.8)
    >>> result = tacit.simulate(policy, environment, horizon=500, repetitions=20, seed=1)
    >>> bool(result.final("regret").mean() < 60)
    True

    References
    ----------
    Odeyomi. Differential privacy in social networks using multi-armed bandit. IEEE Access, 2022.
    """

    name: ClassVar[str] = "diffusion-bandit"
    summary: ClassVar[str] = "agents track a changing truth from their own losses, not private"
    paper: ClassVar[str] = "000 Algorithm 3"

    rates: Annotated[str, one_of("constant", "theory", "adaptive")] = "constant"

    def guarantee(self, horizon: int) -> Guarantee:
        """Return that nothing is protected."""
        return Guarantee.none("Beliefs depend on every loss and signal without noise", unit="loss")

    def start(self, table: Table) -> State | corrected_step.State:
        """Return uniform beliefs."""
        mu = self._uniform(table)
        if self.rates == "adaptive":
            return corrected_step.start(mu, self.params, table.ghosts)
        return State.of(mu, table)

    def program(
        self, state: State | corrected_step.State, table: Table, tape: Tape, trace: Trace
    ) -> Program:
        """Return the kernel and its arguments."""
        if self.rates == "adaptive":
            return corrected_step.run, (self.params, state, table, tape, trace)
        return run, (Params(*self.eta_and_gamma), state, table, tape, trace)

    @property
    def halves(self) -> tuple[Half, Half]:
        """The kernels of a round."""
        return (
            (corrected_step.tell, corrected_step.hear) if self.rates == "adaptive" else (tell, hear)
        )

    def messages(self, state: State | corrected_step.State) -> NDArray[np.float64]:
        """Return the intermediate probabilities."""
        return state.p

    @cached_property
    def params(self) -> corrected_step.Params:
        """The numbers of the sound step, which adaptive rates take."""
        eta, gamma = self.eta_and_gamma
        return corrected_step.open_params(eta=eta, gamma=gamma)


@kernel
def tell(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Write p, what every agent sends (step 1)."""
    truth = trace.truth
    truth_at(table, t, truth)
    for k in range(state.mu.shape[0]):
        S = signal_at(table, t, k, truth[table.group[k]])
        intermediate(state.log_mu, k, S, deviation_at(table, t, k), state.p)
        mix(state.mu, k, params.gamma, state.p)


@kernel
def hear(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Name a state by what one hears, suffer its loss, and believe accordingly."""
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
        reweigh(mu, log_mu, k, theta, params.eta * loss / P[k, theta])


run = rounds(tell, hear)
