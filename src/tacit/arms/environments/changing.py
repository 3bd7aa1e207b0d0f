"""Environments that change: means that jump, drift, or are moved by an adversary."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Annotated, ClassVar

import numpy as np

from tacit.arms.environments.base import ArmsEnvironment, Rewards, Schedule, check_means
from tacit.core.constraints import (
    Constraint,
    Count,
    NonNegative,
    Positive,
    Probability,
    Share,
    check,
    require,
)

_MOST = 1_000_000
_Arms = Annotated[
    int,
    Constraint(f"in 1..{_MOST:,}", lambda n: 1 <= n <= _MOST, {"minimum": 1, "maximum": _MOST}),
]
_Several = Annotated[
    int,
    Constraint(f"in 2..{_MOST:,}", lambda n: 2 <= n <= _MOST, {"minimum": 2, "maximum": _MOST}),
]
_Growth = Annotated[
    float, Constraint("> 1 and finite", lambda g: 1 < g < inf, {"exclusiveMinimum": 1})
]


@dataclass(frozen=True, kw_only=True)
class Switching(ArmsEnvironment):
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
    >>> from tacit.arms import Switching
    >>> environment = Switching(means=((0.9, 0.1), (0.1, 0.9)))
    >>> environment.table(seed=0, repetition=0, horizon=1000).starts
    array([  0, 500])
    """

    name: ClassVar[str] = "switching"
    summary: ClassVar[str] = "means that jump at given or drawn breakpoints"

    means: tuple[tuple[float, ...], ...]
    breakpoints: str | tuple[int, ...] = "even"
    rewards: Rewards = "bernoulli"
    spread: Positive = 0.1

    def __post_init__(self) -> None:
        check(self)
        matrix = check_means(self, self.means, self.rewards)
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

    def variation_budget(self, horizon: int) -> float:
        """Return the sum of the largest jumps at breakpoints before `horizon`."""
        rows = np.array(self.means[: self.n_segments(horizon)])
        return float(np.abs(np.diff(rows, axis=0)).max(axis=1).sum())

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
class Rotating(Switching):
    """Evenly spaced means that move on by one arm in every segment.

    Parameters
    ----------
    n_arms : int
    segments : int, default 10
    high, low : float
        The largest and the smallest mean.
    breakpoints, rewards, spread
        As in :class:`Switching`.
    """

    name: ClassVar[str] = "rotating"
    summary: ClassVar[str] = "the best arm moves on in every segment"

    means: tuple[tuple[float, ...], ...] = field(init=False, repr=False)
    n_arms: _Arms = 2
    segments: Count = 10
    high: Probability = 0.9
    low: Probability = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", ())
        check(self)
        row = np.linspace(self.high, self.low, self.n_arms)
        object.__setattr__(self, "means", [np.roll(row, i) for i in range(self.segments)])
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Riser(Switching):
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
        As in :class:`Switching`.
    """

    name: ClassVar[str] = "riser"
    summary: ClassVar[str] = "a steady arm against arms that alternate between worst and best"

    means: tuple[tuple[float, ...], ...] = field(init=False, repr=False)
    n_arms: _Several = 2
    segments: Count = 10
    steady: Probability = 0.5
    low: Probability = 0.1
    high: Probability = 0.9

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", ())
        check(self)
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
        As in :class:`Switching`.
    """

    name: ClassVar[str] = "drifting"
    summary: ClassVar[str] = "means that drift smoothly within a variation budget"

    n_arms: _Arms = 2
    variation: NonNegative = 3.0
    knots: Count = 30
    rewards: Rewards = "bernoulli"
    spread: Positive = 0.1

    _LOW: ClassVar[float] = 0.05
    _HIGH: ClassVar[float] = 0.95

    def __post_init__(self) -> None:
        check(self)
        largest = (self._HIGH - self._LOW) / 2 * self.knots
        rule = f"in [0, {largest:g}] for {self.knots} knots"
        require(self, "variation", rule, self.variation <= largest, self.variation)

    def variation_budget(self, horizon: int) -> float:
        """Return `variation`."""
        return self.variation

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

    n_arms: _Arms = 2
    gap: Share = 0.1
    growth: _Growth = 1.6

    def __post_init__(self) -> None:
        check(self)

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
