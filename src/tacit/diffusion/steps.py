"""Steps that the diffusion policies share, in the paper's symbols, and the state of its boxes.

Paper: Odeyomi, "Differential privacy in social networks using multi-armed bandit", IEEE Access 2022.
Every step takes whole arrays and an agent's number, because a slice costs a reference count.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel
from tacit.diffusion.table import Table
from tacit.privacy.mechanisms.bounded_noise import release_bounded

# Beliefs stay above e^-700 over M, so that none is ever zero.
_SMALLEST = -700.0


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
    """Shape (N + halo, M): what agents send, intermediate probabilities."""
    P: NDArray[np.float64]
    """Shape (N, M): consensus probabilities."""
    choices: NDArray[np.int64]
    """Shape (N,): the states named."""

    @classmethod
    def start(cls, mu: NDArray[np.float64], table: Table) -> State:
        """Return the state in which every agent believes in all states alike."""
        choices = np.zeros(mu.shape[0], np.int64)
        return cls(mu, np.zeros_like(mu), add_halo(mu, table.halo), mu.copy(), choices)


def add_halo(rows: NDArray[np.float64], halo: int) -> NDArray[np.float64]:
    """Return a copy of the rows of agents, and `halo` rows more for those whom they hear elsewhere."""
    return np.concatenate((rows, np.tile(rows[:1], (halo, 1))))


@kernel
def intermediate(log_mu: Any, k: Any, S: Any, sigma: Any, psi: Any) -> None:
    """Write psi_k, the belief mu_k after Bayes' rule on the signal S (eqs. 3 and 4)."""
    log_intermediate(log_mu, k, S, sigma, psi)
    shares(psi, k, psi)


@kernel
def log_intermediate(log_mu: Any, k: Any, S: Any, sigma: Any, log_psi: Any) -> None:
    """Write ln psi_k, but for a constant."""
    for theta in range(log_mu.shape[1]):
        far = (S - theta) / sigma
        log_psi[k, theta] = log_mu[k, theta] - 0.5 * far * far
    centre(log_psi, k)


@kernel
def centre(logs: Any, k: Any) -> None:
    """Take the largest of row k from all of them."""
    most = logs[k, 0]
    for theta in range(1, logs.shape[1]):
        most = max(most, logs[k, theta])
    for theta in range(logs.shape[1]):
        logs[k, theta] -= most


@kernel
def shares(logs: Any, k: Any, out: Any) -> None:
    """Write what the logarithms of row k, of which the largest is 0, stand for."""
    M = logs.shape[1]
    total = 0.0
    for theta in range(M):
        out[k, theta] = math.exp(max(logs[k, theta], _SMALLEST))
        total += out[k, theta]
    for theta in range(M):
        out[k, theta] /= total


@kernel
def normalise(logs: Any, k: Any) -> None:
    """Take from row k what makes the sum of what it stands for 1."""
    total = 0.0
    for theta in range(logs.shape[1]):
        total += math.exp(logs[k, theta])
    shift = math.log(total)
    for theta in range(logs.shape[1]):
        logs[k, theta] -= shift


@kernel
def mix(mu: Any, k: Any, gamma: Any, p: Any) -> None:
    """Turn psi_k, which `p` holds, into p_k = (1 - gamma) mu_k + gamma psi_k (step 1)."""
    for theta in range(mu.shape[1]):
        p[k, theta] = (1.0 - gamma) * mu[k, theta] + gamma * p[k, theta]


@kernel
def consensus(indptr: Any, senders: Any, weights: Any, p: Any, k: Any, P: Any) -> None:
    """Write P_k, the weighted sum of what agent k hears (eq. 5; step 2)."""
    M = p.shape[1]
    for theta in range(M):
        P[theta] = 0.0
    for i in range(indptr[k], indptr[k + 1]):
        j, a_jk = senders[i], weights[i]
        for theta in range(M):
            P[theta] += a_jk * p[j, theta]


@kernel
def log_consensus(
    indptr: Any, senders: Any, weights: Any, log_psi: Any, k: Any, log_mu: Any
) -> None:
    """Write ln mu_k, but for a constant, the weighted sum of the beliefs agent k hears (eq. 5)."""
    M = log_psi.shape[1]
    for theta in range(M):
        most = -math.inf
        for i in range(indptr[k], indptr[k + 1]):
            most = max(most, log_psi[senders[i], theta])
        total = 0.0
        for i in range(indptr[k], indptr[k + 1]):
            total += weights[i] * math.exp(log_psi[senders[i], theta] - most)
        log_mu[k, theta] = most + math.log(total)
    centre(log_mu, k)


@kernel
def draw(P: Any, u: Any) -> Any:
    """Return the state at quantile u of P, which need not be normalised."""
    total = 0.0
    for theta in range(P.size):
        total += P[theta]
    below, last = 0.0, 0
    for theta in range(P.size):
        if P[theta] > 0.0:
            below += P[theta]
            last = theta
            if u * total < below:
                return theta
    return last


@kernel
def reweigh(mu: Any, log_mu: Any, k: Any, theta: Any, exponent: Any) -> None:
    """Multiply mu_k(theta) by exp(-exponent) and normalise (step 8), in logarithms.

    A belief too small for a float still has its logarithm, and comes back when others lose.
    """
    if exponent != 0.0:  # without a loss everything stays
        log_mu[k, theta] -= exponent
        centre(log_mu, k)
        shares(log_mu, k, mu)


@kernel
def add_noise(tape: Any, t: Any, index: Any, purpose: Any, value: Any, epsilon: Any, b: Any) -> Any:
    """Return a value of [0, 1] with the published noise, squeezed from [-b, b + 1] into [0, 1]."""
    noisy = release_bounded(tape, t, index, purpose, value, 1.0, epsilon, b)
    return (noisy + b) / (2.0 * b + 1.0)
