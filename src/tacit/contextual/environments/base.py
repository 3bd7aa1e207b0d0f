"""Synthetic environments of the users setting: as the paper writes it, and as its table implies.

As written, features and preferences are uniform on [0, 1]^d; there even a random policy has far less
regret than the paper's table shows. The fitted environment, with normal features and sparse groups,
reproduces most of that table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.neighbours import edit_rewards, edit_user, edit_visit, level_rewards
from tacit.contextual.table import SYNTHETIC, Table, joined, new_table
from tacit.contextual.trace import MEASURES, Trace, new_trace
from tacit.core.constraints import Count, NonNegative, check, require
from tacit.core.generator import key_of
from tacit.core.policy import Environment
from tacit.privacy import NeighbouringPair

_TABLE_STREAM, _WORLD_STREAM = 0, 2


class UsersEnvironment(Environment[Table, Trace]):
    """What all environments of the setting have in common."""

    setting: ClassVar[str] = "users"
    measures: ClassVar[tuple[str, ...]] = MEASURES
    rewards_between: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """Where rewards lie; normal noise may carry them beyond, and is then clipped."""

    def trace(self, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
        """Return an empty trace."""
        return new_trace(horizon, checkpoints, record=record)

    @property
    def reward(self) -> str:
        """What is known of rewards, as the policies' parameter of this name has it."""
        return "bounded"

    def visits(self, horizon: int) -> int:
        """Return in how many of the rounds one user may come."""
        return horizon

    def public_parameters(self, horizon: int) -> Mapping[str, Any]:
        """Return the sizes, the rounds of one user, the kind and the range of rewards."""
        return {
            **super().public_parameters(horizon),
            "visits": self.visits(horizon),
            "reward": self.reward,
            "reward_range": self.rewards_between,
        }

    def neighbours(
        self, unit: str, horizon: int, *, seed: int = 0, limit: int = 18
    ) -> list[NeighbouringPair]:
        """Return pairs of tables that differ in all rewards of one unit, lowest against highest.

        Parameters
        ----------
        unit : {"reward", "round", "visit", "user"}
            One candidate's reward in one round, those of all candidates of a round, these and their
            contexts, or all rewards of one user.
        horizon : int
        seed : int
            Chooses the table.
        limit : int
            At most so many pairs: the earliest rounds first, because what they change lasts
            longest, then some later ones. The other rewards are those of the environment, all
            lowest or all highest.
        """
        require(self, "unit", f"one of {', '.join(_UNITS)}", unit in _UNITS, unit)
        table = self.table(seed, 0, horizon)
        low, high = self.rewards_between
        backgrounds = [("", table)] + [
            (f", all other rewards {level:g}", level_rewards(table, level)) for level in (low, high)
        ]
        if unit == "user":
            places = [(user, 0) for user in range(table.n_users)]
        else:
            rounds = sorted({min(horizon - 1, int(t)) for t in (0, 1, 2, 3, *_LATER)})
            slots = range(table.n_shown) if unit == "reward" else (0,)
            places = list(itertools.product(rounds, slots))
        found = []
        for (where, slot), (words, rest) in itertools.product(places, backgrounds):
            if unit == "user":
                left, right = (edit_user(rest, where, end) for end in (low, high))
                what = f"all rewards of user {where}"
            elif unit == "visit":
                one, other = _far_apart(table.features.shape[1])
                left = edit_visit(rest, where, one, low)
                right = edit_visit(rest, where, other, high)
                what = f"round {where}, its contexts and rewards"
            else:
                changed = [slot] if unit == "reward" else range(table.n_shown)
                left, right = (
                    edit_rewards(rest, [(where, j, end) for j in changed]) for end in (low, high)
                )
                what = f"round {where}, " + (f"slot {slot}" if unit == "reward" else "all of it")
            found.append(NeighbouringPair(left, right, f"{what}: {low:g} against {high:g}{words}"))
        early = min(limit // 2, len(found))
        later = min(limit, len(found)) - early
        chosen = [*range(early), *np.linspace(early, len(found) - 1, later, dtype=int)]
        return [found[i] for i in chosen]


_UNITS = ("reward", "round", "visit", "user")


def _far_apart(dimension: int) -> NDArray[np.float64]:
    """Return two contexts whose moments differ most where their rewards are 1 and -1."""
    pair = np.zeros((2, dimension))
    pair[0, 0] = 1.0
    pair[1, :2] = (0.5, math.sqrt(0.75)) if dimension > 1 else 1.0
    return pair


_LATER = (4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, kw_only=True)
class Synthetic(UsersEnvironment):
    """Users with similar preferences, joined by how similar they are: the paper as written.

    Users come in turn. A reward is linear in the item's features, with the mixture of all users'
    preferences that the relational matrix gives (equation 2), plus normal noise.

    Parameters
    ----------
    n_users : int, default 10
    dimension : int, default 10
    n_items : int, default 1000
        The pool of arms.
    n_shown : int, default 10
        How many of them are shown in a round, all different.
    threshold : float, default 0
        Inner products of preferences up to this are dropped from the relational matrix.
    spread : float, default 0.1
        Standard deviation of the reward noise.

    Examples
    --------
    >>> from tacit.contextual import Synthetic
    >>> table = Synthetic(n_users=4).table(seed=1, repetition=0, horizon=100)
    >>> table.n_users, table.features.shape
    (4, (1000, 10))
    """

    name: ClassVar[str] = "synthetic-users"
    summary: ClassVar[str] = "similar users, items with uniform features: the paper as written"

    n_users: Count = 10
    dimension: Count = 10
    n_items: Count = 1000
    n_shown: Count = 10
    threshold: NonNegative = 0.0
    spread: NonNegative = 0.1

    def __post_init__(self) -> None:
        check(self)
        enough = self.n_items >= self.n_shown
        require(self, "n_items", f">= {self.n_shown}, those shown", enough, self.n_items)

    def _features(self, rng: np.random.Generator) -> NDArray[np.float64]:
        return _unit_rows(rng.random((self.n_items, self.dimension)))

    def _preferences(self, rng: np.random.Generator) -> NDArray[np.float64]:
        return _unit_rows(rng.random((self.n_users, self.dimension)))

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition, with its own users and items."""
        rng = np.random.Generator(
            np.random.Philox(key=key_of(seed, repetition, stream=_WORLD_STREAM))
        )
        preferences = self._preferences(rng)
        features = self._features(rng)
        weights = preferences @ preferences.T
        weights[weights <= self.threshold] = 0.0
        np.fill_diagonal(weights, 1.0)
        weights /= weights.sum(axis=0)
        key0, key1 = key_of(seed, repetition, stream=_TABLE_STREAM)
        return new_table(
            kind=SYNTHETIC,
            n_users=self.n_users,
            key0=np.uint64(key0),
            key1=np.uint64(key1),
            weights=weights,
            graph=joined(weights),
            n_shown=self.n_shown,
            features=features,
            preferences=weights.T @ preferences,
            spread=float(self.spread),
        )

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers of users and of features."""
        return {"n_users": self.n_users, "dimension": self.dimension}

    @property
    def reward(self) -> str:
        """Symmetric: noise is normal."""
        return "symmetric"

    def visits(self, horizon: int) -> int:
        """Return each user's share of the rounds: users come in turn."""
        return -(-horizon // self.n_users)


@dataclass(frozen=True, kw_only=True)
class Fitted(Synthetic):
    """The synthetic environment whose regret matches the paper's table.

    Items have normal features. Users and items each fall into groups of consecutive numbers, and a
    group has a random subset of the features, never none: the others are zero.

    Parameters
    ----------
    n_groups : int, default 5
        Groups of users, and of items.
    n_users, dimension, n_items, n_shown, threshold, spread
        As in :class:`Synthetic`.

    Examples
    --------
    >>> from tacit.contextual import Fitted
    >>> Fitted().public_parameters(horizon=10_000)["visits"]
    1000
    """

    name: ClassVar[str] = "fitted-users"
    summary: ClassVar[str] = "sparse groups of users and items, normal features: fits the table"
    rewards_between: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    n_groups: Count = 5

    def _masks(self, rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
        masks = np.zeros((self.n_groups, self.dimension))
        for g in range(self.n_groups):
            while not masks[g].any():
                masks[g] = rng.integers(0, 2, self.dimension)
        return masks[np.arange(rows) * self.n_groups // rows]

    def _features(self, rng: np.random.Generator) -> NDArray[np.float64]:
        drawn = rng.standard_normal((self.n_items, self.dimension))
        return _unit_rows(drawn * self._masks(rng, self.n_items))

    def _preferences(self, rng: np.random.Generator) -> NDArray[np.float64]:
        drawn = rng.random((self.n_users, self.dimension))
        return _unit_rows(drawn * self._masks(rng, self.n_users))


def _unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
