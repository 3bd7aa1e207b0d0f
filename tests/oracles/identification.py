"""Slow oracles of best-arm identification, written from the definitions: lists and direct searches."""

from __future__ import annotations

import math

from oracles.private_blocks import kl


def d_eps(x, y, epsilon):
    """inf over z of epsilon |z - x| + kl(z, y), where its slope -epsilon + d kl / dz is nought."""
    z = y * math.exp(-epsilon) / (1 - y + y * math.exp(-epsilon))
    if y <= x:
        return 0.0
    return kl(x, y) if z <= x else epsilon * (z - x) + kl(z, y)


def least(cost, low, high):
    """min over q in [low, high] of a convex cost, by golden section."""
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if cost(left) < cost(right) else (left, high)
    return cost((low + high) / 2)


def pair(mean, n, below, above):
    """Leader, and the arm that is cheapest to mistake for a better one; the first of equals.

    ``below(m, q)`` and ``above(m, q)``: what a mean m costs an observation if q, larger or smaller, is true.
    """
    leader = mean.index(max(mean))
    prices = {
        a: least(
            lambda q, a=a: n[a] * below(mean[a], q) + n[leader] * above(mean[leader], q),
            mean[a],
            mean[leader],
        )
        for a in range(len(mean))
        if a != leader
    }
    return leader, min(prices, key=lambda a: (round(prices[a], 9), a))


def dp_top_two(rewards, epsilon, laplace):
    """Leader and challenger by released sums; of the two the one pulled less, the leader if equal."""
    T, K = rewards.shape
    open_, released = [[] for _ in range(K)], [[] for _ in range(K)]
    due = [math.ceil(2 / epsilon)] * K
    S = [0.0] * K
    decisions, duel = [], (0, 0)

    def below(m, q):
        return d_eps(m, q, epsilon)

    def above(m, q):
        return d_eps(1 - m, 1 - q, epsilon)

    for t in range(T):
        full = [a for a in range(K) if len(open_[a]) >= due[a]]
        for a in full:
            S[a] += sum(open_[a]) + laplace(t, a) / epsilon
            released[a] += open_[a]
            due[a], open_[a] = max(1, math.ceil(len(released[a]) / 2)), []
        n = [len(r) for r in released]
        if 0 in n:
            arm = n.index(0)
        else:
            if full:  # means change with releases only
                mean = [min(1.0, max(0.0, S[a] / n[a])) for a in range(K)]
                duel = pair(mean, n, below, above)
            leader, challenger = duel
            fewer = decisions.count(challenger) < decisions.count(leader)
            arm = challenger if fewer else leader
        decisions.append(arm)
        open_[arm].append(rewards[t, arm])
    return decisions, S


def top_two(bits):
    """The same on bits, with the Kullback-Leibler divergence."""
    T, K = bits.shape
    seen = [[] for _ in range(K)]
    decisions = []
    for t in range(T):
        n = [len(s) for s in seen]
        if 0 in n:
            arm = n.index(0)
        else:
            leader, challenger = pair([sum(s) / len(s) for s in seen], n, kl, kl)
            arm = challenger if n[challenger] < n[leader] else leader
        decisions.append(arm)
        seen[arm].append(bits[t, arm])
    return decisions
