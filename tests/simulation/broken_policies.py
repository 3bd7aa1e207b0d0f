"""Policies that claim epsilon 1 for a reward: ten that hide a reward in what they let out, and sound ones.

Each broken one has infinite epsilon; the sound one is the same without its mistake.
"""

from __future__ import annotations

import numpy as np

from tacit.privacy import LaplaceRelease, compose


class Sound:
    """Release the sum of each block of four rewards once, with Laplace noise, and decide by it."""

    block = 4

    def __init__(self, n_arms, horizon, rng):
        self.n_arms, self.horizon, self.rng = n_arms, horizon, rng
        self.rewards, self.released, self.means = [], [], []

    @property
    def t(self):
        return len(self.rewards)

    def select(self):
        return self.t // self.block % self.n_arms

    def update(self, arm, reward):
        self.rewards.append(reward)
        if self.t % self.block == 0:
            self.release(sum(self.rewards[-self.block :]))

    def release(self, total):
        self.released.append(total + self.rng.laplace())

    def guarantee(self, horizon):
        release = LaplaceRelease(scale=1.0)
        return compose([(release, 1)], unit="reward", trust="central", span="run")


class SoundRounded(Sound):
    """What is released has eight decimals."""

    def release(self, total):
        self.released.append(round(total + self.rng.laplace(), 8))


class SoundArgmax(Sound):
    """The largest noisy sum is released once more."""

    def release(self, total):
        super().release(total)
        if self.t == self.horizon:
            self.released.append(max(self.released))


class LastDecisionCopies(Sound):
    def select(self):
        last = self.t == self.horizon - 1
        return int(self.rewards[-1]) if last else super().select()


class ClearRound(Sound):
    """The reward of round 11 is released as it is."""

    def update(self, arm, reward):
        if self.t == 11:
            self.released.append(reward)
        super().update(arm, reward)


class ArgmaxDecides(Sound):
    """Only the larger of two true sums is released: which one it was is seen."""

    def update(self, arm, reward):
        self.rewards.append(reward)
        if self.t == self.horizon:
            half = self.horizon // 2
            sums = [sum(self.rewards[:half]), sum(self.rewards[half:])]
            best = int(np.argmax(sums))
            noisy = sums[best] + self.rng.laplace()
            self.released += [noisy if i == best else 0.0 for i in range(2)]


class NinthDecimal(SoundRounded):
    """The last reward of the third block sits below the noise."""

    def release(self, total):
        super().release(total)
        if self.t == 12:
            self.released[-1] += 1e-9 * self.rewards[-1]


class SeedReused(Sound):
    """The noise is the same in every game."""

    def __init__(self, n_arms, horizon, rng):
        super().__init__(n_arms, horizon, np.random.default_rng(7))


class EvenOnly(Sound):
    """Every second release has no noise."""

    def release(self, total):
        self.released.append(total + (self.rng.laplace() if self.t % 8 else 0.0))


class CountTells(Sound):
    """Where a budget is used up sooner, there are fewer releases."""

    def __init__(self, n_arms, horizon, rng):
        super().__init__(n_arms, horizon, rng)
        self.left = 6

    def release(self, total):
        self.left -= 1 + self.rewards[-1]
        if self.left > 0:
            super().release(total)


class LengthTells(Sound):
    """A reward in round 6 adds a line of pure noise."""

    def update(self, arm, reward):
        super().update(arm, reward)
        if self.t == 7 and reward:
            self.released.append(self.rng.laplace())


class OrderTells(Sound):
    """The last two sums are released with the larger true one first."""

    def update(self, arm, reward):
        self.rewards.append(reward)
        if self.t == self.horizon:
            sums = [sum(self.rewards[-4:]), sum(self.rewards[-8:-4])]
            order = np.argsort(sums, kind="stable")
            for i in order:
                self.released += [float(i), sums[i] + self.rng.laplace()]


class NoiseCancels(Sound):
    """The noise that one release adds, the next one subtracts."""

    def release(self, total):
        noise = self.rng.laplace()
        self.released += [total + noise, total - noise]


BROKEN = [
    LastDecisionCopies,
    ClearRound,
    ArgmaxDecides,
    NinthDecimal,
    SeedReused,
    EvenOnly,
    CountTells,
    LengthTells,
    OrderTells,
    NoiseCancels,
]
SOUND = [Sound, SoundRounded, SoundArgmax]
