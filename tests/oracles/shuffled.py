"""Slow oracles of a shuffler: every set of bits, every flip, and klUCB-CF on blocks by its definition."""

from __future__ import annotations

import itertools
import math

from oracles.changing import kl


def seen(bits, p):
    """The law of what a shuffler tells, the reports in any order, of people with these bits."""
    law = {}
    for answers in itertools.product((0, 1), repeat=len(bits)):
        chance = math.prod(p if a == b else 1 - p for a, b in zip(answers, bits, strict=True))
        told = tuple(sorted(answers))
        law[told] = law.get(told, 0) + chance
    return law


def hockey_stick(left, right, factor):
    return sum(max(0, mass - factor * right.get(told, 0)) for told, mass in left.items())


def worst_delta(n, p, epsilon):
    """Over everybody's bits and whoever of them changes, in both directions."""
    worst = 0.0
    for others in itertools.product((0, 1), repeat=n - 1):
        if list(others) != sorted(others):
            continue  # who has which bit does not matter to a shuffler
        one, zero = seen((*others, 1), p), seen((*others, 0), p)
        for left, right in ((one, zero), (zero, one)):
            worst = max(worst, hockey_stick(left, right, math.exp(epsilon)))
    return worst


def sums(parts):
    """The law of a sum of bits, from pairs (how many, the probability of a one)."""
    law = [1.0]
    for count, chance in parts:
        for _ in range(count):
            law = [
                (law[c] if c < len(law) else 0.0) * (1 - chance)
                + (law[c - 1] * chance if c else 0.0)
                for c in range(len(law) + 1)
            ]
    return law


def klucb_on_blocks(rewards, flipped, sizes, keeps, f):
    """klUCB-CF on told blocks: ``flipped(t, a, r, keep)`` is a report; return decisions and told."""
    T, K = rewards.shape
    told, open_ = [[] for _ in range(K)], [[] for _ in range(K)]
    decisions, arm = [], None
    for t in range(T):
        if arm is None:
            arm = _largest(told, t, f)
        decisions.append(arm)
        j = min(len(told[arm]), len(sizes) - 1)
        open_[arm].append(flipped(t, arm, rewards[t, arm], keeps[j]))
        if len(open_[arm]) == sizes[j]:
            told[arm].append((sum(open_[arm]), sizes[j], keeps[j]))
            open_[arm], arm = [], None
    return decisions, told


def _largest(told, t, f):
    index = []
    for a, blocks in enumerate(told):
        if not blocks:
            return a
        n = sum(size for _, size, _ in blocks)
        mean = sum(ones for ones, _, _ in blocks) / n
        high = sum(size * keep for _, size, keep in blocks) / n
        low = sum(size * (1 - keep) for _, size, keep in blocks) / n
        # The largest mean reward whose bits the told ones do not contradict.
        q0, q1 = 0.0, 1.0
        if n * kl(mean, high) <= f(t) or mean >= high:
            q0 = 1.0
        else:
            for _ in range(60):
                q = (q0 + q1) / 2
                bits = low + (high - low) * q
                q0, q1 = (q, q1) if bits <= mean or n * kl(mean, bits) <= f(t) else (q0, q)
        index.append((round(q0, 12), -n, -a))
    return -max(index)[2]
