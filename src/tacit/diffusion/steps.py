"""Steps that the diffusion policies share, in the paper's symbols.

Paper: Odeyomi, "Differential privacy in social networks using multi-armed bandit", IEEE Access 2022.
Every step takes whole arrays and an agent's number, because a slice costs a reference count.
"""

from __future__ import annotations

import math
from typing import Any

from tacit.compiled import kernel

__all__ = ["consensus", "draw", "intermediate", "mix", "reweigh"]


@kernel
def intermediate(mu: Any, k: Any, S: Any, sigma: Any, psi: Any) -> None:
    """Write psi_k, the belief mu_k after Bayes' rule on the signal S (eqs. 3 and 4)."""
    M = mu.shape[1]
    nearest = min(max(S, 0.0), M - 1.0)
    nearest = math.floor(nearest + 0.5)
    total = 0.0
    for theta in range(M):
        # Relative to the likeliest state, so that a wild signal does not make all of them zero.
        near, far = S - nearest, S - theta
        exponent = near * near - far * far
        psi[k, theta] = mu[k, theta] * math.exp(exponent / (2.0 * sigma * sigma))
        total += psi[k, theta]
    for theta in range(M):
        psi[k, theta] = psi[k, theta] / total if total > 0.0 else mu[k, theta]


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
def reweigh(mu: Any, k: Any, theta: Any, exponent: Any) -> None:
    """Multiply mu_k(theta) by exp(-exponent) and normalise (step 8)."""
    mu[k, theta] *= math.exp(-exponent)
    total = 0.0
    for state in range(mu.shape[1]):
        total += mu[k, state]
    for state in range(mu.shape[1]):
        mu[k, state] /= total
