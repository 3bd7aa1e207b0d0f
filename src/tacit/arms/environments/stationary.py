"""Environments that do not change: rewards of each arm are drawn from one distribution for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arms.environments.base import (
    TABLE_STREAM,
    TELLING,
    ArmsEnvironment,
    Schedule,
    add_drawn,
    check_means,
    make_table,
)
from tacit.arms.neighbours import edit_rewards
from tacit.arms.table import GAUSSIAN, Table
from tacit.core.constraints import Positive, check, require
from tacit.core.generator import key_of
from tacit.privacy import NeighbouringPair

_FAR = 1e6


@dataclass(frozen=True, kw_only=True)
class _Constant(ArmsEnvironment):
    means: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", tuple(float(m) for m in np.atleast_1d(self.means)))

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
class _Stationary(_Constant):
    def __post_init__(self) -> None:
        super().__post_init__()
        check_means(self, self.means, self.rewards)
        check(self)


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


@dataclass(frozen=True, kw_only=True)
class Gaussian(_Constant):
    """Normal rewards of any size: what sub-Gaussian means before anything is clipped.

    Policies that need rewards in [0, 1] refuse it.

    Parameters
    ----------
    means : sequence of float
    spread : float or sequence of float, default 1
        The standard deviation, of all arms or of each.

    Examples
    --------
    >>> from tacit.arms import Gaussian
    >>> Gaussian(means=(-1.0, 2.5), spread=(1.0, 3.0)).table(0, 0, 10).cdf_span
    array([[1., 3.]])
    """

    name: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "normal rewards of any size, constant means"

    spread: float | tuple[float, ...] = 1.0  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        finite = len(self.means) > 0 and bool(np.isfinite(self.means).all())
        require(self, "means", "finite numbers", finite, self.means)
        spreads = np.atleast_1d(np.asarray(self.spread, float))
        one_each = spreads.size in (1, len(self.means)) and bool((spreads > 0).all())
        require(self, "spread", "> 0, one or one an arm", one_each, self.spread)

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition."""
        made = make_table(
            kind=GAUSSIAN,
            key=key_of(seed, repetition, stream=TABLE_STREAM),
            schedule=self.schedule(horizon, np.random.default_rng(0)),
            spread=1.0,
        )
        spreads = np.broadcast_to(np.asarray(self.spread, float), (1, self.n_arms))
        return made._replace(cdf_span=np.array(spreads, order="C"))

    def neighbours(
        self, unit: str, horizon: int, *, seed: int = 0, limit: int = TELLING
    ) -> list[NeighbouringPair]:
        """Return pairs of tables that differ in rewards far below and far above everything else."""
        own, K = self.table(seed, 0, horizon), range(self.n_arms)
        units = {
            "reward": [[(t, a)] for t in range(horizon) for a in K],
            "round": [[(t, a) for a in K] for t in range(horizon)],
            "user": [[(t, a) for t in range(horizon) for a in K]],
        }
        require(self, "unit", f"one of {', '.join(units)}", unit in units, unit)
        count = len(units[unit])
        first = range(min(count, limit, TELLING))
        pairs = []
        for places in map(units[unit].__getitem__, add_drawn(first, count, limit, seed)):
            left, right = (
                edit_rewards(own, [(*place, end) for place in places]) for end in (-_FAR, _FAR)
            )
            words = f"{unit} from round {places[0][0]}, arm {places[0][1]}: far below against above"
            pairs.append(NeighbouringPair(left, right, words))
        return pairs

    def count_pairs(self, unit: str, horizon: int) -> int:
        """Return how many pairs `neighbours` has to choose from."""
        return {"reward": horizon * self.n_arms, "round": horizon}.get(unit, 1)
