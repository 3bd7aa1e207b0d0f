"""Synthetic environments of the users setting: as the paper writes it, and as its table implies.

As written, features and preferences are uniform on [0, 1]^d; there even a random policy has far less
regret than the paper's table shows. The fitted environment, with normal features and sparse groups,
reproduces most of that table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.generator import key_of
from tacit.policy import Environment
from tacit.users.tables import MEASURES, SYNTHETIC, Table, Trace, joined, new_table, new_trace

__all__ = ["Fitted", "Synthetic"]

_TABLE_STREAM, _WORLD_STREAM = 0, 2


@dataclass(frozen=True, kw_only=True)
class Synthetic(Environment[Table, Trace]):
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
    >>> from tacit.users import Synthetic
    >>> table = Synthetic(n_users=4).table(seed=1, repetition=0, horizon=100)
    >>> table.weights.sum(axis=0).round(12)
    array([1., 1., 1., 1.])
    """

    name: ClassVar[str] = "synthetic-users"
    setting: ClassVar[str] = "users"
    summary: ClassVar[str] = "similar users, items with uniform features: the paper as written"
    measures: ClassVar[tuple[str, ...]] = MEASURES
    reward_range: ClassVar[tuple[float, float]] = (0.0, 1.0)

    n_users: int = 10
    dimension: int = 10
    n_items: int = 1000
    n_shown: int = 10
    threshold: float = 0.0
    spread: float = 0.1

    def __post_init__(self) -> None:
        for name in ("n_users", "dimension", "n_shown"):
            require(self, name, ">= 1", getattr(self, name) >= 1, getattr(self, name))
        enough = self.n_items >= self.n_shown
        require(self, "n_items", f">= {self.n_shown}, those shown", enough, self.n_items)
        require(self, "threshold", ">= 0", self.threshold >= 0, self.threshold)
        require(self, "spread", ">= 0", self.spread >= 0, self.spread)

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
            key0=np.uint64(key0),
            key1=np.uint64(key1),
            weights=weights,
            adjacency=joined(weights),
            n_shown=self.n_shown,
            features=features,
            preferences=weights.T @ preferences,
            spread=float(self.spread),
        )

    def trace(self, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
        """Return an empty trace."""
        return new_trace(horizon, checkpoints, record=record)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers of users and of features."""
        return {"n_users": self.n_users, "dimension": self.dimension}

    def public_parameters(self, horizon: int) -> Mapping[str, Any]:
        """Return the sizes, the rounds of one user and the range of rewards."""
        return {
            **super().public_parameters(horizon),
            "visits": -(-horizon // self.n_users),
            "reward_range": self.reward_range,
        }


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
    >>> from tacit.users import Fitted
    >>> Fitted().public_parameters(horizon=10_000)["visits"]
    1000
    """

    name: ClassVar[str] = "fitted-users"
    summary: ClassVar[str] = "sparse groups of users and items, normal features: fits the table"
    reward_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    n_groups: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "n_groups", ">= 1", self.n_groups >= 1, self.n_groups)

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
