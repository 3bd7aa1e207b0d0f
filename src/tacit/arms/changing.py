"""Environments that change: means that jump, drift, or are moved by an adversary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tacit.arms.environments import ArmsEnvironment, Schedule, checked_means
from tacit.checks import require

__all__ = ["Adversarial", "Drifting", "Piecewise", "Riser", "Rotating"]


@dataclass(frozen=True, kw_only=True)
class Piecewise(ArmsEnvironment):
    """Means that jump at breakpoints and are constant between them.

    Parameters
    ----------
    means : sequence of sequences of float
        One row of means for each segment.
    breakpoints : "even", "drawn" or sequence of int, default "even"
        The first rounds of the second and later segments: evenly spaced, drawn anew for each
        repetition, or given.
    rewards : "bernoulli", "truncated-normal" or "beta"
    spread : float
        Standard deviation or concentration, as in the stationary environments; Bernoulli ignores it.

    Examples
    --------
    >>> from tacit.arms import Piecewise
    >>> environment = Piecewise(means=((0.9, 0.1), (0.1, 0.9)))
    >>> environment.table(seed=0, repetition=0, horizon=1000).starts
    array([  0, 500])
    """

    name: ClassVar[str] = "piecewise"
    summary: ClassVar[str] = "means that jump at given or drawn breakpoints"

    means: tuple[tuple[float, ...], ...]
    breakpoints: str | tuple[int, ...] = "even"
    rewards: str = "bernoulli"
    spread: float = 0.1

    def __post_init__(self) -> None:
        self._check_rewards()
        matrix = checked_means(self, self.means, self.rewards)
        object.__setattr__(self, "means", tuple(map(tuple, matrix.tolist())))
        if isinstance(self.breakpoints, str):
            known = self.breakpoints in ("even", "drawn")
            require(self, "breakpoints", "even, drawn or a list", known, self.breakpoints)
        else:
            points = tuple(int(b) for b in self.breakpoints)
            object.__setattr__(self, "breakpoints", points)
            rule = f"{len(matrix) - 1} increasing rounds >= 1"
            increasing = all(a < b for a, b in zip((0, *points), points, strict=False))
            require(self, "breakpoints", rule, increasing, points)
            require(self, "breakpoints", rule, len(points) == len(matrix) - 1, points)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means[0])

    def n_segments(self, horizon: int) -> int:
        """Return the number of segments that begin before `horizon`."""
        if isinstance(self.breakpoints, str):
            return len(self.means)
        return 1 + sum(b < horizon for b in self.breakpoints)

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the segments."""
        n = len(self.means)
        if not isinstance(self.breakpoints, str):
            starts = np.array([0, *self.breakpoints])
        else:
            require(self, "horizon", f">= {n}, one round a segment", horizon >= n, horizon)
            if self.breakpoints == "even":
                starts = np.arange(n) * horizon // n
            else:
                drawn = np.sort(rng.choice(horizon - 1, n - 1, replace=False)) + 1
                starts = np.array([0, *drawn])
        return Schedule(starts, np.array(self.means))


@dataclass(frozen=True, kw_only=True)
class Rotating(Piecewise):
    """Evenly spaced means that move on by one arm in every segment.

    Parameters
    ----------
    n_arms : int
    segments : int, default 10
    high, low : float
        The largest and the smallest mean.
    breakpoints, rewards, spread
        As in :class:`Piecewise`.
    """

    name: ClassVar[str] = "rotating"
    summary: ClassVar[str] = "the best arm moves on in every segment"

    means: tuple[tuple[float, ...], ...] = field(init=False, repr=False)
    n_arms: int = 2
    segments: int = 10
    high: float = 0.9
    low: float = 0.1

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)
        require(self, "segments", ">= 1", self.segments >= 1, self.segments)
        row = np.linspace(self.high, self.low, self.n_arms)
        object.__setattr__(self, "means", [np.roll(row, i) for i in range(self.segments)])
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Riser(Piecewise):
    """One steady arm, and others that alternate between hopeless and best.

    The environment that breaks a policy without a window: once an arm has been written off for long, its
    rise goes unseen.

    Parameters
    ----------
    n_arms : int, default 2
    segments : int, default 10
    steady, low, high : float
        The mean of arm 0; what the other arms have in odd and in even segments.
    breakpoints, rewards, spread
        As in :class:`Piecewise`.
    """

    name: ClassVar[str] = "riser"
    summary: ClassVar[str] = "a steady arm against arms that alternate between worst and best"

    means: tuple[tuple[float, ...], ...] = field(init=False, repr=False)
    n_arms: int = 2
    segments: int = 10
    steady: float = 0.5
    low: float = 0.1
    high: float = 0.9

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 2", self.n_arms >= 2, self.n_arms)
        require(self, "segments", ">= 1", self.segments >= 1, self.segments)
        others = [(level,) * (self.n_arms - 1) for level in (self.low, self.high)]
        rows = [(self.steady, *others[i % 2]) for i in range(self.segments)]
        object.__setattr__(self, "means", rows)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Drifting(ArmsEnvironment):
    """Means that wander along straight lines and spend an exact variation budget.

    Between two knots every mean moves up or down by the same step, so that the sum over knots of the
    largest change of any mean is `variation`.

    Parameters
    ----------
    n_arms : int
    variation : float, default 3
        The budget V: total movement over the horizon.
    knots : int, default 30
        How often directions are drawn anew.
    rewards, spread
        As in :class:`Piecewise`.
    """

    name: ClassVar[str] = "drifting"
    summary: ClassVar[str] = "means that drift smoothly within a variation budget"

    n_arms: int = 2
    variation: float = 3.0
    knots: int = 30
    rewards: str = "bernoulli"
    spread: float = 0.1

    _LOW: ClassVar[float] = 0.05
    _HIGH: ClassVar[float] = 0.95

    def __post_init__(self) -> None:
        self._check_rewards()
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)
        require(self, "knots", ">= 1", self.knots >= 1, self.knots)
        largest = (self._HIGH - self._LOW) / 2 * self.knots
        within = 0 <= self.variation <= largest
        require(self, "variation", f"in [0, {largest:g}] for {self.knots} knots", within,
                self.variation)  # fmt: skip

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Draw one path of means."""
        knots = min(self.knots, horizon)
        step = self.variation / knots
        means = np.empty((knots + 1, self.n_arms))
        means[0] = rng.uniform(self._LOW, self._HIGH, self.n_arms)
        for i in range(knots):
            move = np.where(rng.random(self.n_arms) < 0.5, step, -step)
            leaves = (means[i] + move > self._HIGH) | (means[i] + move < self._LOW)
            means[i + 1] = means[i] + np.where(leaves, -move, move)
        return Schedule(np.arange(knots + 1) * horizon // knots, means, linear=True)


@dataclass(frozen=True, kw_only=True)
class Adversarial(ArmsEnvironment):
    """An oblivious adversary: arm 0 is always better by `gap`, while all levels jump up and down.

    Phases grow geometrically and alternate between rewards near 0 and near 1, which misleads
    policies that compare an arm's old rewards with another arm's new ones (Zimmert and Seldin 2021).

    Parameters
    ----------
    n_arms : int, default 2
    gap : float, default 0.1
    growth : float, default 1.6
        Ratio of the lengths of successive phases.
    """

    name: ClassVar[str] = "adversarial"
    summary: ClassVar[str] = "levels that jump in ever longer phases to mislead the learner"
    rewards: ClassVar[str] = "bernoulli"
    spread: ClassVar[float] = 1.0

    n_arms: int = 2
    gap: float = 0.1
    growth: float = 1.6

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)
        require(self, "gap", "in (0, 1)", 0 < self.gap < 1, self.gap)
        require(self, "growth", "> 1", self.growth > 1, self.growth)

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the phases."""
        starts, length = [0], 1.0
        while starts[-1] + length < horizon:
            starts.append(starts[-1] + int(length))
            length *= self.growth
        means = np.zeros((len(starts), self.n_arms))
        means[1::2] = 1.0 - self.gap
        means[:, 0] += self.gap
        return Schedule(np.array(starts), means)
