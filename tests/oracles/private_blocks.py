"""Slow oracles of policies that decide by noised block sums, written from their definitions.

Rewards are an array (rounds, arms); ``shows(t)`` is a list of sets, the arms that pulling an arm shows in
round t; ``laplace(t, a)`` is noise of scale 1. Every block is a list of what fell into it.
"""

from __future__ import annotations

import math

import numpy as np


def kl(p, q):
    total = 0.0
    if p > 0:
        total += math.inf if q <= 0 else p * math.log(p / q)
    if p < 1:
        total += math.inf if q >= 1 else (1 - p) * math.log((1 - p) / (1 - q))
    return total


def d_eps(x, y, epsilon):
    """inf over z of epsilon |z - x| + kl(z, y), by ternary search: the sum is convex in z.

    Sixty steps leave 3e-11 of the interval; of the sum, which is flat there, less than a float tells apart.
    """
    if y <= x:
        return 0.0
    low, high = x, y
    for _ in range(60):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if epsilon * (a - x) + kl(a, y) <= epsilon * (b - x) + kl(b, y):
            high = b
        else:
            low = a
    z = (low + high) / 2
    return min(epsilon * (z - x) + kl(z, y), kl(x, y), epsilon * (y - x))


def largest_mean(x, bound, epsilon):
    """max{q: d_eps(x, q) <= bound}, by bisection."""
    if d_eps(x, 1.0, epsilon) <= bound:
        return 1.0
    low, high = x, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if d_eps(x, middle, epsilon) <= bound else (low, middle)
    return low


def blocks(rewards, shows, epsilon, laplace, *, rule, unit="reward"):
    """DP-IMED (rule "imed") or DP-KLUCB ("klucb"); return decisions, S and n."""
    T, K = rewards.shape
    open_ = [[] for _ in range(K)]
    due = [math.ceil(2 / epsilon)] * K
    S, n, B = [0.0] * K, [0] * K, [1] * K
    decisions, arm, before = [], None, None
    for t in range(T):
        near = shows(t)
        full = [a for a in range(K) if len(open_[a]) >= due[a]]
        for a in full:
            b = max(b for _, b in open_[a]) if unit == "round" else 1
            S[a] += sum(r for r, _ in open_[a]) + laplace(t, a) * b / epsilon
            n[a] += len(open_[a])
            B[a] = max(B[a], b)
            due[a], open_[a] = max(1, math.ceil(n[a] / 2)), []
        if full or near != before:
            mean = [min(1.0, max(0.0, S[a] / n[a])) if n[a] else 0.0 for a in range(K)]
            unknown = {a for a in range(K) if n[a] == 0}
            if unknown:
                arm = max(range(K), key=lambda a: (len(near[a] & unknown), -a))
            else:
                eps = [epsilon / B[a] for a in range(K)]
                if rule == "imed":
                    best = max(mean)
                    weight = [
                        n[a] * d_eps(mean[a], best, eps[a]) + math.log(n[a]) for a in range(K)
                    ]
                    target = min(range(K), key=lambda a: (weight[a], a))
                else:
                    bound = math.log(t + 1)
                    index = [largest_mean(mean[a], bound / n[a], eps[a]) for a in range(K)]
                    target = min(range(K), key=lambda a: (-round(index[a], 12), n[a], a))
                showing = [a for a in range(K) if target in near[a]]
                arm = max(showing, key=lambda a: (mean[a], -a))
        before = near
        decisions.append(arm)
        for b in near[arm]:
            open_[b].append((rewards[t, b], len(near[arm])))
    return decisions, S, n


def adap_klucb(rewards, epsilon, laplace, alpha=3.1):
    """Azize and Basu (2022), Algorithm 1 with the index of AdaP-KLUCB."""
    T, K = rewards.shape
    decisions, episodes, noised = [], [[] for _ in range(K)], [0.0] * K

    def play(a, times):
        episode = []
        for _ in range(times):
            if len(decisions) < T:
                episode.append(rewards[len(decisions), a])
                decisions.append(a)
        episodes[a].append(episode)
        noised[a] = (sum(episode) + laplace(len(decisions), a) / epsilon) / len(episode)

    for a in range(min(K, T)):
        play(a, 1)
    while len(decisions) < T:
        bonus = alpha * math.log(len(decisions) + 1)
        index = []
        for a in range(K):
            m = len(episodes[a][-1])
            centre = min(1.0, max(0.0, noised[a] + bonus / (epsilon * m)))
            low, high = centre, 1.0
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if kl(centre, middle) <= bonus / m else (low, middle)
            index.append(round(low, 12))
        a = index.index(max(index))
        play(a, sum(map(len, episodes[a])))
    return decisions


def lazy_dp_ts(rewards, epsilon, laplace, beta):
    """Hu and Hegde (2022), Algorithm 2; ``beta(t, a, alpha, beta)`` draws from the posterior."""
    T, K = rewards.shape
    decisions, fresh, used, noised = [], [[] for _ in range(K)], [0] * K, [0.0] * K
    for t in range(T):
        for a in range(K):
            if len(fresh[a]) == max(1, 2 * used[a]):
                noised[a] = sum(fresh[a]) + laplace(t, a) / epsilon
                used[a], fresh[a] = len(fresh[a]), []
        if t < K:
            arm = t
        else:
            draws = []
            for a in range(K):
                O = used[a]  # noqa: E741
                mu = min(1.0, max(0.0, noised[a] / O + 3 * math.log(t + 1) / (epsilon * O)))
                draws.append(beta(t, a, mu * O + 1, (1 - mu) * O + 1))
            arm = int(np.argmax(draws))
        decisions.append(arm)
        fresh[arm].append(rewards[t, arm])
    return decisions


def zooming(rewards, epsilon, laplace, lipschitz, sooner):
    """Cells of arms on a line: the leaf with the largest bound, halved when its mean is known well.

    A cell is a dict with its arms, the cell it is half of, its released sum S and count n, and the
    rewards of its open block. Noise is named by the cell's number: halves of v are 2 v + 1, 2 v + 2.
    """
    T, K = rewards.shape
    root = {"v": 0, "arms": range(K), "of": None, "S": 0.0, "n": 0, "open": []}
    root["due"] = math.ceil(2 / epsilon)
    leaves, decisions, arm = [root], [], None

    def middle(cell):
        return (cell["arms"].start + cell["arms"].stop) // 2

    def reach(cell):
        return lipschitz * max(abs(a - middle(cell)) for a in cell["arms"]) / K

    def distance(x, y):
        """The infimum in closed form: it is reached at z, or at x if that is larger."""
        z = y * math.exp(-epsilon) / (1 - y + y * math.exp(-epsilon))
        return kl(x, y) if z <= x else epsilon * (z - x) + kl(z, y)

    def index(cell, t):
        mean = min(1.0, max(0.0, cell["S"] / cell["n"]))
        low, high, bound = mean, 1.0, math.log(t + 1) / cell["n"]
        if distance(mean, 1.0) <= bound:
            return mean, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if distance(mean, middle) <= bound else (low, middle)
        return mean, low

    def bound(cell, t):
        around, least = cell, 1.0
        while around is not None:
            if around["n"]:
                least = min(least, index(around, t)[1] + reach(around))
            around = around["of"]
        return round(least, 9)

    for t in range(T):
        full = [cell for cell in leaves if len(cell["open"]) >= cell["due"]]
        for cell in full:
            cell["S"] += sum(cell["open"]) + laplace(t, cell["v"]) / epsilon
            cell["n"] += len(cell["open"])
            cell["due"], cell["open"] = max(1, math.ceil(cell["n"] / 2)), []
            mean, q = index(cell, t)
            if len(cell["arms"]) > 1 and q - mean <= sooner * reach(cell):
                cut = middle(cell)
                ends = (range(cell["arms"].start, cut), range(cut, cell["arms"].stop))
                for i, arms in enumerate(ends):
                    half = {"v": 2 * cell["v"] + 1 + i, "arms": arms, "of": cell, "S": 0.0, "n": 0}
                    leaves.append({**half, "open": [], "due": math.ceil(2 / epsilon)})
                leaves.remove(cell)
        if full or t == 0:
            leaves.sort(key=lambda cell: cell["arms"].start)
            best = min(leaves, key=lambda cell: (-bound(cell, t), cell["n"]))
            arm = middle(best)
        decisions.append(arm)
        next(cell for cell in leaves if arm in cell["arms"])["open"].append(rewards[t, arm])
    return decisions, leaves
