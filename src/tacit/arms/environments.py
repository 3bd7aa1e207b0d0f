"""Worlds of the arms room: a reward distribution, and how its means move.

Every world but :class:`Recorded` is virtual: it costs no memory, whatever the horizon. Rewards lie
in [0, 1]. Regret is measured against the best mean of each round, for a recorded world against the
best fixed arm in hindsight.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import erfc, sqrt
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.records import check_rewards, read_rewards
from tacit.arms.tables import (
    BERNOULLI,
    BETA,
    MEASURES,
    NORMAL,
    RECORDED,
    Table,
    Trace,
    new_trace,
)
from tacit.generator import key_of
from tacit.policy import Environment, require

__all__ = [
    "Adversarial",
    "ArmsEnvironment",
    "Bernoulli",
    "Beta",
    "Drifting",
    "Piecewise",
    "Recorded",
    "Riser",
    "Rotating",
    "TruncatedNormal",
]

_KINDS = {"bernoulli": BERNOULLI, "truncated-normal": NORMAL, "beta": BETA}
_TABLE_STREAM, _SCHEDULE_STREAM = 0, 2


class Schedule(NamedTuple):
    """How the means move: they jump, or go linearly, from one piece to the next."""

    starts: NDArray[np.int64]
    means: NDArray[np.float64]
    linear: bool = False


class ArmsEnvironment(Environment):
    """A world of `n_arms` arms whose rewards scatter around a schedule of means."""

    room: ClassVar[str] = "arms"
    measures: ClassVar[tuple[str, ...]] = MEASURES

    @property
    def rewards(self) -> str:
        """How rewards are distributed: bernoulli, truncated-normal or beta."""
        return "bernoulli"

    @property
    def spread(self) -> float:
        """Standard deviation of the normal, concentration of the beta."""
        return 1.0

    @property
    @abstractmethod
    def n_arms(self) -> int:
        """Number of arms K."""

    @abstractmethod
    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the means of one repetition; `rng` is its own."""

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition."""
        rng = np.random.Generator(
            np.random.Philox(key=key_of(seed, repetition, stream=_SCHEDULE_STREAM))
        )
        starts, means, linear = self.schedule(horizon, rng)
        key0, key1 = key_of(seed, repetition, stream=_TABLE_STREAM)
        return _table(
            kind=_KINDS[self.rewards],
            key=(key0, key1),
            schedule=Schedule(starts, means, linear),
            spread=self.spread,
        )

    def trace(self, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
        """Return an empty trace."""
        return new_trace(self.n_arms, horizon, checkpoints, record=record)

    def facts(self, horizon: int) -> Mapping[str, Any]:
        """Return the number of arms, the horizon and how many pieces the world has."""
        return {"n_arms": self.n_arms, "horizon": horizon, "n_segments": self.n_segments(horizon)}

    def n_segments(self, horizon: int) -> int:
        """Return in how many pieces the means are constant."""
        return 1

    def _check_rewards(self) -> None:
        known = ", ".join(_KINDS)
        require(self, "rewards", f"one of {known}", self.rewards in _KINDS, self.rewards)
        require(self, "spread", "> 0", self.spread > 0, self.spread)


def _table(
    *,
    kind: int,
    key: tuple[Any, Any],
    schedule: Schedule,
    spread: float,
    recorded: NDArray[np.float64] | None = None,
    champion: int = 0,
) -> Table:
    means = np.ascontiguousarray(schedule.means, np.float64)
    n_arms = means.shape[1]
    zero, span = np.zeros_like(means), np.ones_like(means)
    if kind == NORMAL:
        below = np.vectorize(lambda z: 0.5 * erfc(-z / sqrt(2.0)), otypes=[np.float64])
        zero = below(-means / spread)
        span = below((1.0 - means) / spread) - zero
    return Table(
        kind=kind,
        key0=np.uint64(key[0]),
        key1=np.uint64(key[1]),
        starts=np.ascontiguousarray(schedule.starts, np.int64),
        means=means,
        linear=int(schedule.linear),
        best=means.max(axis=1),
        spread=float(spread),
        cdf_zero=zero,
        cdf_span=span,
        recorded=np.empty((0, n_arms)) if recorded is None else recorded,
        champion=champion,
        indptr=np.arange(n_arms + 1),
        indices=np.arange(n_arms),
        edit_rounds=np.empty(0, np.int64),
        edit_arms=np.empty(0, np.int64),
        edit_values=np.empty(0),
    )


def _matrix(owner: Any, means: Any, *, inside: bool) -> NDArray[np.float64]:
    """Return `means` as (pieces, arms), checked."""
    matrix = np.array(means, dtype=np.float64, ndmin=2)
    filled = matrix.ndim == 2 and matrix.size > 0
    require(owner, "means", "a row of numbers or rows of them", filled, matrix.shape)
    low, high = float(matrix.min()), float(matrix.max())
    worst = low if low < 0 else high
    if inside:
        require(owner, "means", "strictly between 0 and 1", low > 0 and high < 1, worst)
    else:
        require(owner, "means", "in [0, 1]", low >= 0 and high <= 1, worst)
    return matrix


@dataclass(frozen=True, kw_only=True)
class _Stationary(ArmsEnvironment):
    means: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", tuple(float(m) for m in np.atleast_1d(self.means)))
        _matrix(self, self.means, inside=self.rewards == "beta")
        self._check_rewards()

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means)

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

    spread: float = 0.1


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

    spread: float = 10.0


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
        Standard deviation or concentration, as in the stationary worlds; Bernoulli ignores it.

    Examples
    --------
    >>> from tacit.arms import Piecewise
    >>> world = Piecewise(means=((0.9, 0.1), (0.1, 0.9)))
    >>> world.table(seed=0, repetition=0, horizon=1000).starts
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
        matrix = _matrix(self, self.means, inside=self.rewards == "beta")
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


class _Derived(ArmsEnvironment):
    """A world that is a piecewise one with a recipe for its means."""

    @cached_property
    @abstractmethod
    def piecewise(self) -> Piecewise:
        """The world with its means written out."""

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.piecewise.n_arms

    def n_segments(self, horizon: int) -> int:
        """Return the number of segments."""
        return self.piecewise.n_segments(horizon)

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the segments."""
        return self.piecewise.schedule(horizon, rng)


@dataclass(frozen=True, kw_only=True)
class Rotating(_Derived):
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

    n_arms: int = 2
    segments: int = 10
    high: float = 0.9
    low: float = 0.1
    breakpoints: str | tuple[int, ...] = "even"
    rewards: str = "bernoulli"
    spread: float = 0.1

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)
        require(self, "segments", ">= 1", self.segments >= 1, self.segments)
        _ = self.piecewise

    @cached_property
    def piecewise(self) -> Piecewise:
        """The world with its means written out."""
        row = np.linspace(self.high, self.low, self.n_arms)
        rows = tuple(tuple(np.roll(row, i)) for i in range(self.segments))
        return Piecewise(
            means=rows, breakpoints=self.breakpoints, rewards=self.rewards, spread=self.spread
        )


@dataclass(frozen=True, kw_only=True)
class Riser(_Derived):
    """One steady arm, and others that alternate between hopeless and best.

    The world that breaks a policy without a window: once an arm has been written off for long, its
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

    n_arms: int = 2
    segments: int = 10
    steady: float = 0.5
    low: float = 0.1
    high: float = 0.9
    breakpoints: str | tuple[int, ...] = "even"
    rewards: str = "bernoulli"
    spread: float = 0.1

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 2", self.n_arms >= 2, self.n_arms)
        require(self, "segments", ">= 1", self.segments >= 1, self.segments)
        _ = self.piecewise

    @cached_property
    def piecewise(self) -> Piecewise:
        """The world with its means written out."""
        rows = tuple(
            (self.steady, *[self.low if i % 2 == 0 else self.high] * (self.n_arms - 1))
            for i in range(self.segments)
        )
        return Piecewise(
            means=rows, breakpoints=self.breakpoints, rewards=self.rewards, spread=self.spread
        )


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


@dataclass(frozen=True, kw_only=True)
class Recorded(ArmsEnvironment):
    """Rewards read from an array or a file: every repetition replays the same table.

    Parameters
    ----------
    data : array of shape (rounds, arms), optional
    file : path, optional
        A ``.csv`` file with one column an arm (a header line is allowed), a ``.parquet`` file or a
        ``.npy`` file. Give `data` or `file`.

    Raises
    ------
    ValueError
        If a reward is missing, not a number or outside [0, 1]; the message names row and value.

    Examples
    --------
    >>> from tacit.arms import Recorded
    >>> Recorded(data=[[0, 1], [0.5, 0.25]]).n_arms
    2
    """

    name: ClassVar[str] = "recorded"
    summary: ClassVar[str] = "rewards from an array, CSV or Parquet"
    rewards: ClassVar[str] = "recorded"
    spread: ClassVar[float] = 1.0

    data: Any = None
    file: str | Path | None = None

    def __post_init__(self) -> None:
        one = (self.data is None) != (self.file is None)
        require(self, "data or file", "given, not both", one, (self.data is not None, self.file))
        _ = self.array

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recorded) and np.array_equal(self.array, other.array)

    @cached_property
    def array(self) -> NDArray[np.float64]:
        """The rewards, checked."""
        if self.file is not None:
            return read_rewards(Path(self.file))
        return check_rewards(np.array(self.data, dtype=np.float64), "Recorded")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return int(self.array.shape[1])

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the mean record of each arm, for information."""
        return Schedule(np.zeros(1, np.int64), self.array[:horizon].mean(axis=0)[None])

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the recorded table."""
        rounds = self.array.shape[0]
        require(self, "horizon", f"<= {rounds} recorded rounds", horizon <= rounds, horizon)
        schedule = self.schedule(horizon, np.random.default_rng(0))
        return _table(
            kind=RECORDED,
            key=(0, 0),
            schedule=schedule,
            spread=1.0,
            recorded=self.array,
            champion=int(schedule.means[0].argmax()),
        )
