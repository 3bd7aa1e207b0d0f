"""Slow oracles of policies that detect changes on private bits, written from their boxes.

``reward(t, a)`` is what an arm pays, ``bit(t, a, r)`` what its device sends; feedback is a list of buckets.
"""

from __future__ import annotations

import math

from oracles.arms import exploration_bonus, kl_index


def kl(p, q):
    total = 0.0
    if p > 0:
        total += math.inf if q <= 0 else p * math.log(p / q)
    if p < 1:
        total += math.inf if q >= 1 else (1 - p) * math.log((1 - p) / (1 - q))
    return total


def insert(buckets, value):
    """Put a value in front; of nine buckets of one size the two oldest become one."""
    buckets.insert(0, (1, value))
    size = 1
    while sum(1 for n, _ in buckets if n == size) > 8:
        *_, newer, older = [i for i, (n, _) in enumerate(buckets) if n == size]
        merged = (2 * size, buckets[newer][1] + buckets[older][1])
        del buckets[older]
        buckets[newer] = merged
        size *= 2


def ratio(first, second):
    (n1, s1), (n2, s2) = first, second
    m = (s1 + s2) / (n1 + n2)
    return n1 * kl(s1 / n1, m) + n2 * kl(s2 / n2, m)


def largest_ratio(buckets):
    n, total = sum(n for n, _ in buckets), sum(s for _, s in buckets)
    best, late, late_sum = 0.0, 0, 0.0
    for size, value in buckets[:-1]:
        late, late_sum = late + size, late_sum + value
        best = max(best, ratio((n - late, total - late_sum), (late, late_sum)))
    return best


def p_imed_cf(K, T, reward, bit, p=1.0, k0=0.1, c1=0.5, c2=3.0):
    """The box of P-IMED-CF; return the decisions and the rounds of restarts."""
    n, S, buckets = [0] * K, [0.0] * K, [[] for _ in range(K)]
    last, nl, ns, probe = [0] * K, [0] * K, 0, None
    decisions, restarts = [], []
    for t in range(T):
        mean = [S[a] / n[a] if n[a] else 0.0 for a in range(K)]
        low, high = max(1 - p, 0.001), min(p, 0.999)
        s = [min(high, max(low, (S[a] + 1) / (n[a] + 2))) for a in range(K)]
        b = max(range(K), key=lambda a: (mean[a], -a)) if all(n) else None
        arm = None
        if probe:
            arm = probe["arm"]
        elif not all(n):
            arm = n.index(0)
        else:
            for i in range(K):
                if i != b and s[i] < s[b]:
                    d, gap = kl(s[i], s[b]), (s[b] - s[i]) / (2 * p - 1)
                    room = max((p - s[b]) / (2 * p - 1), 0.05)
                    D = math.sqrt((t + 1) * K * gap * c1 / (d * (k0 + ns))) / room
                    if t - last[i] >= D and n[b] * d >= 8:
                        probe = {"arm": i, "W": 0.0, "s": s[i], "sb": s[b], "n": 0, "S": 0.0}
                        arm = i
                        break
            if arm is None:
                weight = [n[a] * kl(mean[a], mean[b]) + math.log(n[a]) for a in range(K)]
                arm = b
                for a in range(K):  # what differs by rounding only is a tie, which the leader wins
                    if weight[a] < weight[arm] - 1e-9:
                        arm = a
        decisions.append(arm)
        x = bit(t, arm, reward(t, arm))
        n[arm] += 1
        S[arm] += x
        insert(buckets[arm], x)
        change = False
        if probe:
            probe["W"] += x * math.log(probe["sb"] / probe["s"])
            probe["W"] += (1 - x) * math.log((1 - probe["sb"]) / (1 - probe["s"]))
            probe["n"] += 1
            probe["S"] += x
            h = c2 + 0.5 * math.log(t + 1)
            if probe["W"] <= -c1 or probe["W"] >= h:
                if probe["W"] >= h:
                    old = (n[arm] - probe["n"], S[arm] - probe["S"])
                    change = ratio(old, (probe["n"], probe["S"])) >= h / 2
                probe, last[arm], nl[arm] = None, t, n[arm]
        elif b is not None and arm != b and (n[arm] - nl[arm]) * kl(S[arm] / n[arm], mean[b]) >= c1:
            last[arm], nl[arm] = t, n[arm]
        if not change and n[arm] >= 4 and (n[arm] < 100 or n[arm] % 10 == 0):
            bar = 1.5 * math.log(n[arm]) + 0.5 * math.log(t + 1)
            change = largest_ratio(buckets[arm]) > bar
        if change:
            ns += arm != n.index(max(n))
            n, S, buckets = [0] * K, [0.0] * K, [[] for _ in range(K)]
            last, nl, probe = [t] * K, [0] * K, None
            restarts.append(t)
    return decisions, restarts


def likelihood_says(buckets, n, T):
    """Besson et al. (2022): the ratio exceeds its threshold at delta = 1 / sqrt(T)."""
    return largest_ratio(buckets) > math.log(3 * n * math.sqrt(n) * math.sqrt(T))


def laplace(n, ones):
    """The log of the product of Laplace's predictions (ones so far + 1) / (values so far + 2).

    The order of the values does not matter: here all ones come first. Parts of a one come between.
    """
    whole = math.floor(ones)
    total = sum(math.log((i + 1) / (i + 2)) for i in range(whole))
    if ones > whole:  # a fraction: the integral of p^ones (1 - p)^(n - ones), by Simpson's rule
        steps = 4000
        area = 0.0
        for i in range(1, steps):
            p = i / steps
            area += (4 if i % 2 else 2) * math.exp(ones * math.log(p) + (n - ones) * math.log1p(-p))
        return math.log(area / (3 * steps))
    return total + sum(math.log((i + 1) / (whole + i + 2)) for i in range(n - whole))


def forecasters_say(buckets, n, T):
    """Alami et al. (2020): a forecaster that began at a kept split is likelier than the first one.

    Its prior odds are 1 / (n sqrt(T)).
    """
    whole = sum(s for _, s in buckets)
    late, late_sum, best = 0, 0.0, -math.inf
    for size, value in buckets[:-1]:
        late, late_sum = late + size, late_sum + value
        odds = laplace(n - late, whole - late_sum) + laplace(late, late_sum) - laplace(n, whole)
        best = max(best, odds)
    return best > math.log(n) + 0.5 * math.log(T)


def glr_klucb(K, T, reward, bit, draw, g=lambda q: q, share=0.1, every=10, changed=likelihood_says):
    """Besson et al. (2022), Algorithm 1 with global restarts, on feedback whose mean is g(mean).

    The explored share after k restarts is 0.1 sqrt((k + 1) K ln T / T); the test `changed` is made at
    every tenth value of an arm. Ties are drawn from a list that begins with the latest arm.
    """
    tau, restarts, seen, buckets = 0, [], [[] for _ in range(K)], [[] for _ in range(K)]
    decisions = []
    for t in range(T):
        alpha = min(1.0, share * math.sqrt((len(restarts) + 1) * K * math.log(T) / T))
        turn = (t - tau) % max(K, math.floor(K / alpha))
        if turn < K:
            arm = turn
        else:
            f = exploration_bonus(t - tau)
            index = [kl_index(values, g, f) for values in seen]
            ties = [a for a in range(K) if index[a] == max(index)]
            ties.sort(key=lambda a: a != decisions[-1])
            arm = ties[int(draw(t) * len(ties))] if len(ties) > 1 else ties[0]
        decisions.append(arm)
        x = bit(t, arm, reward(t, arm))
        seen[arm].append(x)
        insert(buckets[arm], x)
        n = len(seen[arm])
        if n % every == 0 and changed(buckets[arm], n, T):
            seen, buckets = [[] for _ in range(K)], [[] for _ in range(K)]
            tau = t + 1
            restarts.append(t)
    return decisions, restarts
