"""Linear bandits whose rounds are released in sums, from the definition: whole matrices, lists of rounds.

Noise is handed in as a function of the round that returns a symmetric matrix and a vector, so that the policy
and this can be given the same.
"""

from __future__ import annotations

import math

import numpy as np


def play(users, contexts, rewards, noise, *, doubling, lam, alpha, scale, clip):
    """Return the picks.

    With `doubling` a user's rounds are released in groups of 1, 2, 4, ..., else one by one. The ridge
    grows by the spectral norm that the noise has in the limit of large matrices: off the diagonal it
    has the variance scale^2 / 2 for each of n releases, so that the norm is 2 scale sqrt(d n / 2).
    """
    T, _, d = contexts.shape
    released = {u: [] for u in set(users.tolist())}
    waiting = {u: [] for u in released}
    picks = []
    for t in range(T):
        u, X = int(users[t]), contexts[t]
        n = len(released[u])
        A = sum((G for G, _ in released[u]), np.eye(d) * (lam + 2 * scale * math.sqrt(d * n / 2)))
        b = sum((v for _, v in released[u]), np.zeros(d))
        C = np.linalg.inv(A)
        widths = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", X, C, X), 0))
        a = int(np.argmax(X @ C @ b + alpha * widths))
        picks.append(a)
        waiting[u].append((X[a], float(np.clip(rewards[t, a], *clip))))
        if len(waiting[u]) == (2**n if doubling else 1):
            Z, z = noise(t)
            G = sum(np.outer(x, x) for x, _ in waiting[u])
            released[u].append((G + Z, sum(r * x for x, r in waiting[u]) + z))
            waiting[u] = []
    return np.array(picks)
