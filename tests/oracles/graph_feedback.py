"""Slow oracles of the policies on feedback graphs, written from the papers.

Arms are elements of sets, rewards an array, neighbours a list of sets that contain the arm itself;
randomness comes from callables of (round, number). Nothing here is shared with the kernels.
"""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import NormalDist

import numpy as np


def greedy_set(active, mean, near):
    rest, chosen = set(active), set()
    while rest:
        best = sorted(rest, key=lambda a: (-mean[a], a))[0]
        chosen.add(best)
        rest -= near[best]
    return chosen


def maximal_sets(active, near):
    """Return every maximal independent set of the active arms, by trying all subsets."""
    arms = sorted(active)
    found = []
    for bits in range(1 << len(arms)):
        subset = {a for i, a in enumerate(arms) if bits >> i & 1}
        independent = all(not (near[a] - {a}) & subset for a in subset)
        covering = all(near[a] & subset for a in arms)
        if independent and covering:
            found.append(frozenset(subset))
    return found


def gap(rewards, near, epsilon, failure_prob, laplace, *, unit="reward", tight=False, choose=None):
    """Paper 002, Algorithm 1; return the decisions and, for each phase, what it released."""
    T, K = rewards.shape
    choose = choose or (lambda t, active, mean: greedy_set(active, mean, near))
    A, mean, t, tau = set(range(K)), defaultdict(float), 0, 1
    decisions, phases = [], []
    while t < T:
        omega = choose(t, A, mean)
        k = {b: len(near[b] & omega) for b in A}
        factor = 1.0
        if unit == "round":
            shares = {b: 1.0 if tight else 1 / k[b] for b in A}
            factor = max(sum(shares[b] for b in near[a] & A) for a in omega)
        eps = epsilon / factor
        ln8 = math.log(8 * len(A) * tau**2 / failure_prob)
        ln4 = math.log(4 * len(A) * tau**2 / failure_prob)
        L = math.ceil(max(2 ** (5 + 2 * tau) * ln8, 2 ** (3 + tau) / eps * ln4))
        schedule = (sorted(omega) * L)[: T - t]
        seen = defaultdict(list)
        for a in schedule:
            for b in near[a] & A:
                seen[b].append(rewards[t, b])
            decisions.append(a)
            t += 1
        if t == T:
            break
        assert all(len(seen[b]) == L * k[b] for b in A)
        counts = {b: len(seen[b]) if tight else L for b in A}
        mean = {b: sum(seen[b]) / len(seen[b]) + laplace(t, b) / (eps * counts[b]) for b in A}
        phases.append({"L": L, "omega": omega, "mean": dict(mean), "factor": factor})
        bar = max(mean.values()) - math.sqrt(2 * ln8 / L) - 2 * ln4 / (eps * L)
        A = {b for b in A if mean[b] >= bar}
        tau += 1
    return np.array(decisions), phases


def dpse(rewards, epsilon, failure_prob, laplace):
    """Sajed and Sheffet 2019, Algorithm 2."""
    T, K = rewards.shape
    S, epoch, decisions = list(range(K)), 0, []
    while len(decisions) < T and len(S) > 1:
        epoch += 1
        gap_e = 2.0**-epoch
        ln8 = math.log(8 * len(S) * epoch**2 / failure_prob)
        ln4 = math.log(4 * len(S) * epoch**2 / failure_prob)
        R = max(32 * ln8 / gap_e**2, 8 * ln4 / (epsilon * gap_e)) + 1
        total, r = dict.fromkeys(S, 0.0), 0
        while r < R:
            r += 1
            for i in S:
                if len(decisions) == T:
                    return np.array(decisions)
                total[i] += rewards[len(decisions), i]
                decisions.append(i)
        if len(decisions) == T:
            break
        noisy = {i: total[i] / r + laplace(len(decisions), i) / (epsilon * r) for i in S}
        slack = 2 * math.sqrt(ln8 / (2 * r)) + 2 * ln4 / (r * epsilon)
        S = [i for i in S if max(noisy.values()) - noisy[i] <= slack]
    decisions += S[:1] * (T - len(decisions))
    return np.array(decisions)


def aae(rewards, failure_prob):
    """Even-Dar et al. 2006, Algorithm 3, c = 4."""
    T, K = rewards.shape
    S, total, n, decisions = list(range(K)), np.zeros(K), 0, []
    while len(decisions) < T:
        n += 1
        for a in S:
            if len(decisions) < T:
                total[a] += rewards[len(decisions), a]
                decisions.append(a)
        radius = math.sqrt(math.log(4 * K * n**2 / failure_prob) / n)
        best = max(total[a] / n for a in S)
        S = [a for a in S if best - total[a] / n < 2 * radius]
    return np.array(decisions)


def alpha_sample(rewards, near, samples_of, cut_of, uniform):
    """Cohen et al. 2016: random covers of the active arms, `samples_of(r)` of them in phase r."""
    T, K = rewards.shape
    V, r, decisions = set(range(K)), 0, []
    while len(decisions) < T:
        r += 1
        n, total = samples_of(r), dict.fromkeys(V, 0.0)
        for _ in range(n):
            unseen = set(V)
            while unseen:
                t = len(decisions)
                if t == T:
                    return np.array(decisions)
                arm = sorted(unseen)[int(uniform(t, 0) * len(unseen))]
                decisions.append(arm)
                for b in near[arm] & unseen:
                    total[b] += rewards[t, b]
                unseen -= near[arm]
        best = max(total.values()) / n
        V = {a for a in V if total[a] / n >= best - cut_of(r)}
    return np.array(decisions)


def ucb_n(rewards, near, exploration=2.0):
    """Caron et al. 2012, Algorithm 1."""
    T, K = rewards.shape
    seen = [[] for _ in range(K)]
    decisions = []
    for t in range(T):
        index = [
            np.mean(s) + math.sqrt(exploration * math.log(max(1, t)) / len(s)) if s else math.inf
            for s in seen
        ]
        arm = int(np.argmax(index))
        decisions.append(arm)
        for b in near[arm]:
            seen[b].append(rewards[t, b])
    return np.array(decisions)


def ts_n(rewards, near, uniform, spread=0.5):
    """Thompson sampling with Gaussian posteriors and side observations."""
    T, K = rewards.shape
    n, total, decisions = np.zeros(K), np.zeros(K), []
    for t in range(T):
        draws = [
            NormalDist(total[a] / (n[a] + 1), spread / math.sqrt(n[a] + 1)).inv_cdf(uniform(t, a))
            for a in range(K)
        ]
        arm = int(np.argmax(draws))
        decisions.append(arm)
        for b in near[arm]:
            n[b] += 1
            total[b] += rewards[t, b]
    return np.array(decisions)
