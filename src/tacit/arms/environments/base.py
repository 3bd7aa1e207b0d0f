"""What every environment of the arms setting is: a reward distribution, and a schedule of its means.

An environment is virtual unless recorded: it costs no memory, whatever the horizon. Rewards lie in [0, 1].
Regret is measured against the best mean of each round, for a recorded environment against the best fixed arm
in hindsight.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import product
from math import erfc, sqrt
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.neighbours import edit_rewards
from tacit.arms.table import BERNOULLI, BETA, NORMAL, RECORDED, Table, address_of_drawing
from tacit.arms.trace import MEASURES, Trace, new_trace
from tacit.core.constraints import one_of, require
from tacit.core.generator import key_of
from tacit.core.policy import Environment
from tacit.privacy import NeighbouringPair

_KINDS = {"bernoulli": BERNOULLI, "truncated-normal": NORMAL, "beta": BETA}
TABLE_STREAM, _SCHEDULE_STREAM = 0, 2
_UNITS = ("reward", "round", "user")
TELLING = 18
"""Pairs of tables that are chosen because they tell most; those beyond are drawn at random."""
_FEW_ENTRIES = 8
"""An exact audit tries all tables of so many rewards."""

Rewards = Annotated[str, one_of(*_KINDS)]
"""How rewards scatter around their mean."""


class Schedule(NamedTuple):
    """How the means move: they jump, or go linearly, from one piece to the next."""

    starts: NDArray[np.int64]
    means: NDArray[np.float64]
    linear: bool = False


class ArmsEnvironment(Environment[Table, Trace]):
    """An environment of `n_arms` arms whose rewards scatter around a schedule of means."""

    setting: ClassVar[str] = "arms"
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

    @property
    def sizes(self) -> Mapping[str, int]:
        """The number of arms."""
        return {"n_arms": self.n_arms}

    @abstractmethod
    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the means of one repetition; `rng` is its own."""

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition."""
        rng = np.random.Generator(
            np.random.Philox(key=key_of(seed, repetition, stream=_SCHEDULE_STREAM))
        )
        return make_table(
            kind=_KINDS[self.rewards],
            key=key_of(seed, repetition, stream=TABLE_STREAM),
            schedule=self.schedule(horizon, rng),
            spread=self.spread,
        )

    def trace(self, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
        """Return an empty trace."""
        return new_trace(self.n_arms, horizon, checkpoints, record=record)

    def public_parameters(self, horizon: int) -> Mapping[str, Any]:
        """Return the number of arms, the horizon, the pieces and, if known, how much means move."""
        known = {**super().public_parameters(horizon), "n_segments": self.n_segments(horizon)}
        moved = self.variation_budget(horizon)
        return known if moved is None else {**known, "variation": moved}

    def n_segments(self, horizon: int) -> int:
        """Return in how many pieces the means are constant."""
        return 1

    def variation_budget(self, horizon: int) -> float | None:
        """Return V, the sum over rounds of the largest change of any mean; None if nobody knows."""
        return None

    def neighbours(
        self, unit: str, horizon: int, *, seed: int = 0, limit: int = TELLING
    ) -> list[NeighbouringPair]:
        """Return pairs of tables that differ in one reward, all of one round, or all of them.

        What differs is 0 in one table and 1 in the other. The rest is the environment's own table,
        all 0 or all 1. Of the first 18 pairs half are the earliest there are, because what they change
        lasts longest, and half are spread over later rounds. All others are drawn from every round.

        Parameters
        ----------
        unit : "reward", "round" or "user"
            One entry, every arm's entry of one round, or the whole table, as if one person had
            provided it.
        horizon : int
        seed : int
            Chooses the table, and the pairs after the first 18.
        limit : int
            At most so many pairs.
        """
        require(self, "unit", f"one of {', '.join(_UNITS)}", unit in _UNITS, unit)
        own, K = self.table(seed, 0, horizon), self.n_arms
        flat = [
            own._replace(kind=RECORDED, recorded=np.full((horizon, K), level))
            for level in (0.0, 1.0)
        ]
        if unit == "user":
            return [NeighbouringPair(flat[0], flat[1], "all rewards: 0 against 1")]
        rounds = sorted({min(horizon - 1, int(t)) for t in (0, 1, 2, 3, *np.geomspace(4, 1024, 9))})
        rest = [
            (own, ""),
            (flat[0], ", all other rewards 0"),
            (flat[1], ", all other rewards 1"),
        ]
        changed = [[a] for a in range(K)] if unit == "reward" else [list(range(K))]
        size = len(rest) * len(changed)
        places = [t * size + i for t in rounds for i in range(size)]
        few = min(limit, TELLING)
        early = min(few // 2, len(places))
        later = min(few, len(places)) - early
        chosen = [*range(early), *np.linspace(early, len(places) - 1, later, dtype=int)]
        pairs = []
        for place in add_drawn([places[i] for i in chosen], horizon * size, limit, seed):
            t, (table, words) = place // size, rest[place % size // len(changed)]
            arms = changed[place % len(changed)]
            left, right = (edit_rewards(table, [(t, a, end) for a in arms]) for end in (0.0, 1.0))
            what = f"arm {arms[0]}" if unit == "reward" else "all arms"
            pairs.append(NeighbouringPair(left, right, f"round {t}, {what}: 0 against 1{words}"))
        return pairs

    def count_pairs(self, unit: str, horizon: int) -> int:
        """Return how many pairs `neighbours` has to choose from."""
        entries = {"reward": horizon * self.n_arms, "round": horizon}
        return 3 * entries[unit] if unit in entries else 1

    def every_pair(self, unit: str, horizon: int) -> list[NeighbouringPair]:
        """Return all pairs of tables of 0 and 1 that differ in a unit, if there are few enough."""
        K = self.n_arms
        few = horizon * K <= _FEW_ENTRIES
        require(self, "horizon", f"<= {_FEW_ENTRIES // K} for {K} arms to try all", few, horizon)
        own = self.table(0, 0, horizon)
        tables = {
            bits: own._replace(kind=RECORDED, recorded=np.array(bits).reshape(horizon, K))
            for bits in product((0.0, 1.0), repeat=horizon * K)
        }
        size = {"reward": 1, "round": K, "user": horizon * K}
        require(self, "unit", f"one of {', '.join(_UNITS)}", unit in _UNITS, unit)
        pairs = []
        for left, right in product(tables, repeat=2):
            changed = [i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b]
            if left < right and changed and changed[-1] // size[unit] == changed[0] // size[unit]:
                words = " against ".join(_rows(bits, K) for bits in (left, right))
                pairs.append(NeighbouringPair(tables[left], tables[right], f"rewards {words}"))
        return pairs


def add_drawn(first: Sequence[int], count: int, limit: int, seed: int) -> list[int]:
    """Return `first` and, up to `limit`, others of ``range(count)`` in an order that `seed` draws."""
    known = set(first)
    wanted = min(limit, count) - len(known)
    if wanted <= 0:
        return list(first)
    others = np.random.default_rng(seed).permutation(count).tolist()
    return [*first, *[place for place in others if place not in known][:wanted]]


def _rows(bits: tuple[float, ...], K: int) -> str:
    """Return the rewards of each round as digits."""
    digits = "".join(f"{bit:.0f}" for bit in bits)
    return " ".join(digits[i : i + K] for i in range(0, len(digits), K))


def make_table(
    *,
    kind: int,
    key: NDArray[np.uint64],
    schedule: Schedule,
    spread: float,
    recorded: NDArray[np.float64] | None = None,
    champion: int = 0,
) -> Table:
    """Return the table of a kind of rewards that scatter around a schedule of means."""
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
        all_arms=np.arange(n_arms),
        indptr=np.arange(n_arms + 1),
        indices=np.arange(n_arms),
        edit_rounds=np.empty(0, np.int64),
        edit_arms=np.empty(0, np.int64),
        edit_values=np.empty(0),
        drawing=address_of_drawing(kind),
    )


def check_means(owner: Any, means: Any, rewards: str) -> NDArray[np.float64]:
    """Return `means` as (pieces, arms) if `rewards` can have them."""
    matrix = np.array(means, dtype=np.float64, ndmin=2)
    filled = matrix.ndim == 2 and matrix.size > 0
    require(owner, "means", "a row of numbers or rows of them", filled, matrix.shape)
    low, high = float(matrix.min()), float(matrix.max())
    worst = low if low < 0 else high
    if rewards == "beta":
        require(owner, "means", "strictly between 0 and 1", low > 0 and high < 1, worst)
    else:
        require(owner, "means", "in [0, 1]", low >= 0 and high <= 1, worst)
    return matrix
