"""Algorithm 3: agents who track a changing truth from their own losses, without privacy.

An agent mixes its belief with what its latest signal suggests, names a state drawn from the mixture
of its neighbours' and its own, suffers the loss of that state alone, and lowers its belief in the
state by an importance-weighted exponential step. Odeyomi (2022), Algorithm 3; psi starts from
mu_{t-1} and the loss is divided by the consensus probability P, as in eq. 15: dividing by the
agent's own p, as other steps print, is biased. With adaptive rates the sound step of
:mod:`tacit.diffusion.corrected_step` takes the place of the published one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import one_of
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, uniform
from tacit.diffusion import corrected_step
from tacit.diffusion.policy import DiffusionPolicy, LearningRates
from tacit.diffusion.rounds import Kernels, make_kernels
from tacit.diffusion.steps import Params, State, consensus, draw, intermediate, mix, reweigh
from tacit.diffusion.table import Table, deviation_at, loss_at, signal_at, write_truth
from tacit.diffusion.trace import record_choices
from tacit.privacy import Guarantee


@dataclass(frozen=True, kw_only=True)
class DiffusionBandit(LearningRates, DiffusionPolicy[State | corrected_step.State]):
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
        """Return a guarantee that protects nothing."""
        return Guarantee.none("Beliefs depend on every loss and signal without noise", unit="loss")

    def start(self, table: Table) -> State | corrected_step.State:
        """Return uniform beliefs."""
        mu = self._uniform(table)
        if isinstance(self.params, Params):
            return State.start(mu, table)
        return corrected_step.start(mu, self.params, table.halo)

    @property
    def kernels(self) -> Kernels:
        """Those of the published box, or of the corrected step where rates adapt."""
        return corrected_step.KERNELS if self.rates == "adaptive" else KERNELS

    @cached_property
    def params(self) -> Params | corrected_step.Params:
        """The numbers that the kernels need."""
        eta, gamma = self.eta_and_gamma
        if self.rates == "adaptive":
            return corrected_step.open_params(eta=eta, gamma=gamma)
        return Params(eta, gamma)

    def messages(self, state: State | corrected_step.State) -> NDArray[np.float64]:
        """Return the intermediate probabilities."""
        return state.p


@kernel
def tell(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Write p, what every agent sends (step 1)."""
    truth = trace.truth
    write_truth(table, t, truth)
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


KERNELS = make_kernels(tell, hear)
