"""Diffusion learning: weigh your own evidence, then average with your neighbours.

Every round an agent gets a noisy signal of the true state, applies Bayes' rule to its belief, and
replaces the belief by a weighted mean of its neighbours'. It needs no losses and learns a truth
that stands still; it is the part of the diffusion bandits that does not learn from losses. Odeyomi
(2022), eqs. 2 to 5. The state an agent names is the one it believes in most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel
from tacit.diffusion.policy import DiffusionPolicy
from tacit.diffusion.rounds import Kernels, make_kernels
from tacit.diffusion.steps import add_halo, log_consensus, log_intermediate, normalise, shares
from tacit.diffusion.table import Table, deviation_at, signal_at, write_truth
from tacit.diffusion.trace import record_choices
from tacit.privacy import Guarantee


class State(NamedTuple):
    """What N agents believe."""

    mu: NDArray[np.float64]
    """Shape (N, M): beliefs."""
    log_mu: NDArray[np.float64]
    """Shape (N, M): their logarithms."""
    log_psi: NDArray[np.float64]
    """Shape (N + halo, M): logarithms of beliefs after the signal, before the neighbours."""
    choices: NDArray[np.int64]
    """Shape (N,): the states named."""


@dataclass(frozen=True, kw_only=True)
class DiffusionLearning(DiffusionPolicy[State]):
    """Learn from signals and neighbours, without losses.

    Guarantee: none; the intermediate beliefs that agents exchange show their signals.

    Parameters
    ----------
    n_states : int
        Number of states M.

    Examples
    --------
    >>> import tacit
    >>> from tacit.diffusion import ChangingTruth, DiffusionLearning
    >>> policy, environment = DiffusionLearning(n_states=5), ChangingTruth(dominance=1.0)
    >>> result = tacit.simulate(policy, environment, horizon=100, seed=1)
    >>> bool(result.final("belief").mean() > 0.99)
    True

    References
    ----------
    Odeyomi. Differential privacy in social networks using multi-armed bandit. IEEE Access, 2022.
    """

    name: ClassVar[str] = "diffusion"
    summary: ClassVar[str] = "Bayes on your own signal, then average with your neighbours"
    paper: ClassVar[str] = "000 eqs. 4-5"

    def guarantee(self, horizon: int) -> Guarantee:
        """Return a guarantee that protects nothing."""
        return Guarantee.none("Agents exchange beliefs that show their signals", unit="message")

    def start(self, table: Table) -> State:
        """Return uniform beliefs."""
        mu = self._uniform(table)
        told = np.log(add_halo(mu, table.halo))
        return State(mu, np.log(mu), told, np.zeros(mu.shape[0], np.int64))

    @property
    def kernels(self) -> Kernels:
        """The kernels of a round: weigh one's signal, and average."""
        return KERNELS

    @property
    def params(self) -> tuple[()]:
        """Nothing: there is nothing to tune."""
        return ()

    def messages(self, state: State) -> NDArray[np.float64]:
        """Return the logarithms of beliefs after the signal."""
        return state.log_psi


@kernel
def tell(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Write psi, what every agent believes after its signal."""
    truth = trace.truth
    write_truth(table, t, truth)
    for k in range(state.mu.shape[0]):
        S = signal_at(table, t, k, truth[table.group[k]])
        log_intermediate(state.log_mu, k, S, deviation_at(table, t, k), state.log_psi)
        normalise(state.log_psi, k)


@kernel
def hear(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Name a state, and then believe what one hears."""
    mu, log_mu, log_psi, choices = state
    N, M = mu.shape
    for k in range(N):
        choices[k] = 0
        for theta in range(1, M):
            if mu[k, theta] > mu[k, choices[k]]:
                choices[k] = theta
    record_choices(table, trace, t, mu, choices)
    for k in range(N):
        log_consensus(table.indptr, table.senders, table.weights, log_psi, k, log_mu)
        shares(log_mu, k, mu)


KERNELS = make_kernels(tell, hear)
