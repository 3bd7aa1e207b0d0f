"""Environments that do not change: rewards of each arm are drawn from one distribution for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arms.environments import ArmsEnvironment, Schedule, checked_means
from tacit.checks import Positive, check

__all__ = ["Bernoulli", "Beta", "TruncatedNormal"]


@dataclass(frozen=True, kw_only=True)
class _Stationary(ArmsEnvironment):
    means: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", tuple(float(m) for m in np.atleast_1d(self.means)))
        checked_means(self, self.means, self.rewards)
        check(self)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means)

    def variation_budget(self, horizon: int) -> float:
        """Return that the means do not move."""
        return 0.0

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return means that never move."""
        return Schedule(np.zeros(1, np.int64), np.array([self.means]))


@dataclass(frozen=True, kw_only=True)
class Bernoulli(_Stationary):
    """Rewards 0 or 1 with constant means.

    Parameters
    ----------
    means : sequence of float
        The probability of a reward of 1, arm by arm.

    Examples
    --------
    >>> from tacit.arms import Bernoulli
    >>> Bernoulli(means=(0.2, 0.8)).n_arms
    2
    """

    name: ClassVar[str] = "bernoulli"
    summary: ClassVar[str] = "rewards 0 or 1, constant means"
    rewards: ClassVar[str] = "bernoulli"
    spread: ClassVar[float] = 1.0


@dataclass(frozen=True, kw_only=True)
class TruncatedNormal(_Stationary):
    """Normal rewards conditioned to lie in [0, 1].

    Parameters
    ----------
    means : sequence of float
        The nominal means, before truncation; regret is measured with these.
    spread : float, default 0.1
        The nominal standard deviation.
    """

    name: ClassVar[str] = "truncated-normal"
    summary: ClassVar[str] = "normal rewards truncated to [0, 1], constant means"
    rewards: ClassVar[str] = "truncated-normal"

    spread: Positive = 0.1


@dataclass(frozen=True, kw_only=True)
class Beta(_Stationary):
    """Beta distributed rewards.

    Parameters
    ----------
    means : sequence of float
        Means strictly between 0 and 1.
    spread : float, default 10
        The concentration: the larger, the closer the rewards lie to the mean.
    """

    name: ClassVar[str] = "beta"
    summary: ClassVar[str] = "beta rewards, constant means"
    rewards: ClassVar[str] = "beta"

    spread: Positive = 10.0
