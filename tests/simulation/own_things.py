"""Policies and environments as a newcomer would write them."""

from __future__ import annotations

import math

from tacit.privacy import RandomizedResponseRelease, compose


class Greedy:
    """The best mean so far, now and then any arm."""

    def __init__(self, n_arms, rng, explore: float = 0.1):
        self.rng, self.explore = rng, explore
        self.sums, self.counts = [0.0] * n_arms, [0] * n_arms

    def select(self):
        if self.rng.random() < self.explore:
            return self.rng.integers(len(self.sums))
        means = [s / n if n else 1.0 for s, n in zip(self.sums, self.counts, strict=True)]
        return means.index(max(means))

    def update(self, arm, reward):
        self.sums[arm] += reward
        self.counts[arm] += 1


class Outside:
    def select(self):
        return 5

    def update(self, arm, reward):
        pass


def tide(t, arm, rng):
    """Two arms that are good in turn."""
    return float(rng.random() < (0.8 if (t // 100) % 2 == arm else 0.2))


def beyond(t, arm, rng):
    return 1.5


class Coy:
    """Greedy on bits that are flipped now and then; says what it let out, and what that costs."""

    def __init__(self, n_arms, rng, epsilon: float = 1.0, spent: float = 1.0):
        self.rng, self.epsilon = rng, epsilon
        self.keep = 1 / (1 + math.exp(-epsilon * spent))
        self.sums, self.released = [0.0] * n_arms, []

    def select(self):
        return self.sums.index(max(self.sums))

    def update(self, arm, reward):
        bit = reward if self.rng.random() < self.keep else 1 - reward
        self.released.append(bit)
        self.sums[arm] += 2 * bit - 1

    def guarantee(self, horizon):
        release = RandomizedResponseRelease.symmetric(self.epsilon)
        return compose([(release, 1)], unit="reward", trust="local", span="run")
