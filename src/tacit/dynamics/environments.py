"""The environment of the learning dynamics: options of unknown quality, agents, and who knows whom."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Whole, check, require
from tacit.core.generator import key_of
from tacit.core.policy import Environment
from tacit.dynamics.neighbours import pairs_of
from tacit.dynamics.table import Table
from tacit.dynamics.trace import MEASURES, Trace
from tacit.graphs import Graph, LazyGraph
from tacit.graphs.lazy import number_locally, slice_rows
from tacit.privacy import NeighbouringPair

_TABLE_STREAM = 0


@dataclass(frozen=True, kw_only=True)
class SocialOptions(Environment[Table, Trace]):
    """Options of unknown quality and a population that chooses among them.

    Parameters
    ----------
    qualities : sequence of float, or several of these
        The probability that each option is good in a round; several rows follow each other.
    changes : sequence of int, optional
        The rounds, from 0, at which the second row of `qualities` and the further ones begin; by
        default all rows last equally long.
    popularity : sequence of float, optional
        The share of agents that adopt each option at first; what is left to 1 adopts nothing. By
        default all options have equally many adopters.
    n_agents : int, optional
        The number of agents N; with a network, its number of nodes.
    network : Graph, optional
        Who can talk to whom; without one the population mixes perfectly.

    Examples
    --------
    >>> from tacit.dynamics import SocialOptions
    >>> environment = SocialOptions(qualities=(0.9, 0.5, 0.1), n_agents=1000)
    >>> environment.public_parameters(horizon=10)["n_options"]
    3
    >>> turned = SocialOptions(qualities=((0.9, 0.1), (0.1, 0.9)), popularity=(0.5, 0.2), n_agents=10)
    >>> turned.table(0, 0, horizon=100).starts
    array([ 0, 50])
    """

    name: ClassVar[str] = "social-options"
    setting: ClassVar[str] = "dynamics"
    summary: ClassVar[str] = "options of unknown quality, a population and its network"
    measures: ClassVar[tuple[str, ...]] = MEASURES

    qualities: tuple[float, ...] | tuple[tuple[float, ...], ...]
    n_agents: Whole = 0
    network: LazyGraph | Graph | None = None
    changes: tuple[int, ...] | None = None
    popularity: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check(self)
        self._check_qualities()
        if self.network is not None:
            nodes = self.network.n_nodes
            directed = isinstance(self.network, Graph) and self.network.directed
            require(self, "network", "undirected", not directed, self.network)
            fits = self.n_agents in (0, nodes)
            require(self, "n_agents", f"0 or the {nodes} nodes", fits, self.n_agents)
            object.__setattr__(self, "n_agents", nodes)
        require(self, "n_agents", ">= 1", self.n_agents >= 1, self.n_agents)

    def _check_qualities(self) -> None:
        require(self, "qualities", "not empty", len(self.qualities) > 0, self.qualities)
        nested = isinstance(self.qualities[0], (tuple, list, np.ndarray))
        given: Any = self.qualities if nested else (self.qualities,)
        rows: list[list[float]] = [list(row) for row in given]
        even = len({len(row) for row in rows}) == 1 and len(rows[0]) > 0
        require(self, "qualities", "rows of the same length", even, self.qualities)
        inside = all(0.0 <= x <= 1.0 for row in rows for x in row)
        require(self, "qualities", "in [0, 1]", inside, self.qualities)
        plain = tuple(tuple(float(x) for x in row) for row in rows)
        object.__setattr__(self, "qualities", plain if nested else plain[0])
        if self.changes is not None:
            changes = tuple(int(t) for t in self.changes)
            object.__setattr__(self, "changes", changes)
            later = all(a < b for a, b in itertools.pairwise((0, *changes)))
            fits = later and len(changes) == len(rows) - 1
            rule = (
                f"{len(rows) - 1} rounds above 0, increasing, one for each further row of qualities"
            )
            require(self, "changes", rule, fits, self.changes)
        if self.popularity is not None:
            shares = tuple(float(x) for x in self.popularity)
            object.__setattr__(self, "popularity", shares)
            fits = len(shares) == len(rows[0]) and all(x >= 0.0 for x in shares)
            fits = fits and math.fsum(shares) <= 1.0 + 1e-9
            rule = f"{len(rows[0])} shares >= 0 that add up to 1 at most"
            require(self, "popularity", rule, fits, self.popularity)

    @property
    def n_options(self) -> int:
        """Number of options M."""
        return int(self._rows.shape[1])

    @property
    def _rows(self) -> NDArray[np.float64]:
        return np.array(self.qualities, np.float64, ndmin=2)

    def schedule(self, horizon: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the qualities of each segment of time, and its first round."""
        rows = self._rows
        starts = np.arange(len(rows)) * horizon // len(rows)
        if self.changes is not None:
            starts = np.array((0, *self.changes))
        return rows, starts.astype(np.int64)

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition."""
        return self.partition(seed, repetition, horizon, 0, self.n_agents)[0]

    def partition(
        self, seed: int, repetition: int, horizon: int, first: int, last: int
    ) -> tuple[Table, NDArray[np.int64]]:
        """Return the table of the agents `first` to `last` - 1, and which others they know."""
        indptr, indices = np.empty(0, np.int64), np.empty(0, np.int32)
        halo = np.empty(0, np.int64)
        if isinstance(self.network, Graph) and last - first == self.n_agents:
            indptr, indices = self.network.csr
        elif self.network is not None:
            rows = slice_rows(self.network, first, last)
            indices, halo = number_locally(rows.indices, first, last)
            indptr = rows.indptr
        key0, key1 = key_of(seed, repetition, stream=_TABLE_STREAM)
        qualities, starts = self.schedule(horizon)
        table = Table(
            key0=np.uint64(key0),
            key1=np.uint64(key1),
            qualities=qualities,
            starts=starts,
            shares=np.array(self.popularity or (), np.float64),
            n_agents=self.n_agents,
            first=first,
            here=last - first,
            indptr=indptr,
            indices=indices,
            edit_rounds=np.empty(0, np.int64),
            edit_agents=np.empty(0, np.int64),
            edit_options=np.empty(0, np.int64),
        )
        return table, halo

    def trace(self, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
        """Return an empty trace."""
        n_options = self.n_options
        return Trace(
            np.ascontiguousarray(checkpoints, np.int64),
            np.zeros((len(checkpoints), len(MEASURES))),
            np.zeros(4),
            np.zeros(1, np.int64),
            np.zeros((len(checkpoints), n_options)),
            np.zeros((horizon if record else 0, n_options), np.int64),
        )

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers of options and of agents."""
        return {"n_options": self.n_options, "n_agents": self.n_agents}

    def neighbours(
        self, unit: str, horizon: int, *, seed: int = 0, limit: int = 18
    ) -> list[NeighbouringPair]:
        """Return pairs of tables that differ in one ``"message"`` of an agent, or in all (``"agent"``)."""
        return pairs_of(self.table(seed, 0, horizon), unit, horizon, limit)
