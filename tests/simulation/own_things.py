"""Policies and environments as a newcomer would write them."""

from __future__ import annotations


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
