"""An environment of one's own: a shop whose customers want other things at night.

What is needed is a schedule: from which round on which arm pays with what probability. Everything else
(tables, regret, repetitions, comparisons, the audit) comes with the setting.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import tacit
from tacit.arms import KLUCB, SWKLUCBCF
from tacit.arms.environments.base import ArmsEnvironment, Schedule


@tacit.register
@dataclass(frozen=True, kw_only=True)
class DayAndNight(ArmsEnvironment):
    """Two offers: one sells by day, the other by night."""

    name: ClassVar[str] = "day-and-night"
    summary: ClassVar[str] = "one arm is good by day, the other by night"
    rewards: ClassVar[str] = "bernoulli"
    spread: ClassVar[float] = 1.0

    day: int = 2_000

    @property
    def n_arms(self) -> int:
        """Two offers."""
        return 2

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the purchase rates of each half day."""
        starts = np.arange(0, horizon, self.day // 2)
        by_day, by_night = [0.8, 0.3], [0.2, 0.5]
        return Schedule(starts, np.array([by_day, by_night] * len(starts))[: len(starts)])


if __name__ == "__main__":
    environment, horizon = DayAndNight(), 10_000
    for policy in (
        KLUCB(n_arms=2),
        SWKLUCBCF(n_arms=2, horizon=horizon, n_segments=10),
        SWKLUCBCF(n_arms=2, horizon=horizon, n_segments=10, epsilon=3.0),
    ):
        result = tacit.simulate(policy, environment, horizon=horizon, repetitions=8)
        regret = result.final("regret")
        print(f"{regret.mean():7.0f} +- {regret.std(ddof=1) / len(regret) ** 0.5:4.0f}  {policy!r}")
