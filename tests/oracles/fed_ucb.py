"""Agents who learn one linear model together, from the definitions: whole matrices, lists of rounds.

Noise is handed in as a function of (round, agent) that returns a symmetric matrix and a vector, so that the
policy and this can be given the same.
"""

from __future__ import annotations

import math

import numpy as np


def dyadic(k):
    """Return the intervals (first, last] that a binary tree covers the first k items with."""
    found, end = [], k
    while end > 0:
        length = end & -end
        found.append((end - length, end))
        end -= length
    return found


def play(users, contexts, rewards, noise, n_agents, *, threshold, lam, alpha, scale, clip):
    """Return the picks, and after which rounds agents synchronised.

    With a threshold an agent asks for it when the log determinant of its own matrix has grown by more than
    the threshold over the rounds since the last one, and a prefix of each agent's batches is told as a sum of
    noisy dyadic intervals. Without, agents synchronise after N, 2 N, 4 N, ... rounds and tell each batch.
    """
    T, _, d = contexts.shape
    batches = {i: [] for i in range(n_agents)}  # of each synchronisation, the true sums
    waiting = {i: [] for i in range(n_agents)}
    seen, picks, spoke = {}, [], []

    def sums(pairs):
        G, b = np.zeros((d, d)), np.zeros(d)
        for x, r in pairs:
            G, b = G + np.outer(x, x), b + x * r
        return G, b

    def told(agent):
        """Return the noisy total that an agent has told, and how many releases it is made of."""
        k = len(spoke)
        parts = dyadic(k) if threshold else [(j, j + 1) for j in range(k)]
        G, b = np.zeros((d, d)), np.zeros(d)
        for first, last in parts:
            if (agent, first, last) not in seen:
                Z, z = noise(spoke[last - 1], agent)
                true = [batches[agent][j] for j in range(first, last)]
                seen[agent, first, last] = (
                    sum(g for g, _ in true) + Z,
                    sum(v for _, v in true) + z,
                )
            G, b = G + seen[agent, first, last][0], b + seen[agent, first, last][1]
        return G, b, len(parts)

    def model():
        every = [told(i) for i in range(n_agents)]
        ridge = lam + 2 * scale * math.sqrt(n_agents * every[0][2] * d / 2)
        return sum(e[0] for e in every) + ridge * np.eye(d), sum(e[1] for e in every)

    A, b = model()
    since, size = 0, n_agents
    for t in range(T):
        agent, X = int(users[t]), contexts[t]
        G, v = sums(waiting[agent]) if threshold else (0.0, 0.0)
        C = np.linalg.inv(A + G)
        widths = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", X, C, X), 0))
        a = int(np.argmax(X @ C @ (b + v) + alpha * widths))
        picks.append(a)
        waiting[agent].append((X[a], float(np.clip(rewards[t, a], *clip))))
        since += 1
        if threshold:
            growth = np.linalg.slogdet(A + sums(waiting[agent])[0])[1] - np.linalg.slogdet(A)[1]
            speak = growth * since > threshold
        else:
            speak = since == size
        if speak:
            for i in range(n_agents):
                batches[i].append(sums(waiting[i]))
                waiting[i] = []
            spoke.append(t)
            A, b = model()
            since, size = 0, 2 * size
    return np.array(picks), spoke
