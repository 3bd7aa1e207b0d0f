"""The environment of the learning dynamics: options of unknown quality, agents, and who knows whom.

The quality signal of an option in a round is one draw that all agents share; it is a pure function
of a key and the position. The trace keeps the regret of eq. (1), the popularity of every option and
what the agents sent, at the rounds a result needs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.checks import Whole, check, require
from tacit.compiled import kernel
from tacit.generator import key_of, philox, to_unit
from tacit.networks import Graph, Network
from tacit.networks.pieces import localised, rows_of
from tacit.pieces import Population
from tacit.policy import Environment
from tacit.privacy import Neighbours

__all__ = [
    "SocialOptions",
    "Table",
    "Trace",
    "edit_adoption",
    "first_adoptions",
    "first_counts",
    "piece_at",
    "signal",
]

MEASURES = ("regret", "best_popularity", "adopting", "messages", "bits")
_TABLE_STREAM = 0


class Table(NamedTuple):
    """Quality signals of M options for N agents on a network of E edges.

    A table may be that of a piece of a larger population: of its N agents it has `here`, numbered from
    `first`, and the rows of their neighbours.
    """

    key0: np.uint64
    key1: np.uint64
    qualities: NDArray[np.float64]
    """Shape (S, M): the probability eta that an option is good in a round of each piece of time."""
    starts: NDArray[np.int64]
    """Shape (S,): the first round of each piece."""
    shares: NDArray[np.float64]
    """Shape (M,): the share of agents that adopt each option at first, or (0,) for all equally many."""
    n_agents: int
    first: int
    """The number of the first agent here."""
    here: int
    """How many agents are here."""
    indptr: NDArray[np.int64]
    """Shape (here + 1,): where each agent's neighbours begin; (0,) without a network."""
    indices: NDArray[np.int32]
    """The neighbours; in a piece by their rows, those of other pieces after those here."""
    edit_rounds: NDArray[np.int64]
    edit_agents: NDArray[np.int64]
    edit_options: NDArray[np.int64]
    """Shape (X,) each: adoptions that are replaced before a round; in round 0 the first ones."""


class Trace(NamedTuple):
    """What is kept of a run: C checkpoints, and all R = T rounds if asked for."""

    checkpoints: NDArray[np.int64]
    """Shape (C,): numbers of rounds played, increasing."""
    measures: NDArray[np.float64]
    """Shape (C, 5): regret (eq. 1, where qualities change against the best of each round), popularity
    of the option that is best now, share of agents with an adoption, messages and bits sent by an agent
    in a round on average so far."""
    totals: NDArray[np.float64]
    """Shape (4,): rewards of the population, messages, bits, and rewards of the best options so far."""
    cursor: NDArray[np.int64]
    """Shape (1,): the next checkpoint."""
    popularity: NDArray[np.float64]
    """Shape (C, M): the popularity Q of every option."""
    decisions: NDArray[np.int64]
    """Shape (R, M): how many agents adopt each option after every round."""


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
    network: Network | Graph | None = None
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
        """Return the qualities of each piece of time, and its first round."""
        rows = self._rows
        starts = np.arange(len(rows)) * horizon // len(rows)
        if self.changes is not None:
            starts = np.array((0, *self.changes))
        return rows, starts.astype(np.int64)

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition."""
        network = self.network.graph() if isinstance(self.network, Network) else self.network
        indptr, indices = np.empty(0, np.int64), np.empty(0, np.int32)
        if network is not None:
            indptr, indices = network.csr
        return self._table(seed, repetition, horizon, 0, self.n_agents, indptr, indices)

    def piece(
        self, seed: int, repetition: int, horizon: int, first: int, last: int
    ) -> tuple[Table, NDArray[np.int64]]:
        """Return the table of the agents `first` to `last` - 1, and which others they know."""
        indptr, indices, ghosts = (
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            np.empty(0, np.int64),
        )
        if self.network is not None:
            rows = rows_of(self.network, first, last)
            indices, ghosts = localised(rows.indices, first, last)
            indptr = rows.indptr
        return self._table(seed, repetition, horizon, first, last, indptr, indices), ghosts

    @property
    def population_kind(self) -> Callable[..., Population]:
        """What makes a run in pieces."""
        from tacit.dynamics.pieces import DynamicsPopulation

        return DynamicsPopulation

    def _table(
        self,
        seed: int,
        repetition: int,
        horizon: int,
        first: int,
        last: int,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
    ) -> Table:
        key0, key1 = key_of(seed, repetition, stream=_TABLE_STREAM)
        qualities, starts = self.schedule(horizon)
        return Table(
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
    ) -> list[Neighbours]:
        """Return pairs of tables that differ in what one agent adopts.

        Parameters
        ----------
        unit : {"message", "agent"}
            The adoption that one message tells, or those of all rounds.
        horizon : int
        seed : int
            Chooses the table.
        limit : int
            At most so many pairs, the most telling ones first.
        """
        unit = {"round": "message", "user": "agent"}.get(unit, unit)
        require(self, "unit", "one of message, agent", unit in ("message", "agent"), unit)
        table = self.table(seed, 0, horizon)
        last, rounds = self.n_options - 1, range(horizon)
        spans = [rounds] if unit == "agent" else [range(t, t + 1) for t in rounds]
        pairs = []
        for span in spans:
            when = f"rounds 0 to {span[-1]}" if unit == "agent" else f"round {span[0]}"
            for agent in sorted({0, self.n_agents - 1}):
                for left, right in ((0, last), (0, -1), (last, -1))[0 if last > 0 else 1 :]:
                    ends = [_adopting(table, agent, option, span) for option in (left, right)]
                    other = "none" if right < 0 else f"option {right}"
                    words = f"{when}, agent {agent} adopts option {left} against {other}"
                    pairs.append(Neighbours(ends[0], ends[1], words))
        return pairs[:limit]


def _adopting(table: Table, agent: int, option: int, rounds: range) -> Table:
    for t in rounds:
        table = edit_adoption(table, agent, option, before=t)
    return table


def edit_adoption(table: Table, agent: int, option: int, *, before: int = 0) -> Table:
    """Return the neighbouring table in which `agent` enters a round with another adoption.

    Parameters
    ----------
    table : Table
    agent : int
    option : int
        What it adopts, or -1 for nothing.
    before : int, default 0
        The round; 0 changes what the agent begins with.
    """
    M = table.qualities.shape[1]
    place = (before, agent)
    edited = set(zip(table.edit_rounds.tolist(), table.edit_agents.tolist(), strict=True))
    require("edit_adoption", "agent", "edited once a round", place not in edited, agent)
    inside = 0 <= agent < table.n_agents
    require("edit_adoption", "agent", f"in 0..{table.n_agents - 1}", inside, agent)
    require("edit_adoption", "option", f"in -1..{M - 1}", -1 <= option < M, option)
    require("edit_adoption", "before", ">= 0", before >= 0, before)
    return table._replace(
        edit_rounds=np.append(table.edit_rounds, np.int64(before)),
        edit_agents=np.append(table.edit_agents, np.int64(agent)),
        edit_options=np.append(table.edit_options, np.int64(option)),
    )


def first_adoptions(table: Table, agents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what agents of these numbers adopt at first, -1 for nothing: it depends on nothing else.

    Without shares an agent's number modulo M. With shares agents are dealt out in an order that spreads the
    adopters of an option evenly over all numbers: i = number x stride modulo N, of which the first share
    adopts the first option and so on.
    """
    M, N = table.qualities.shape[1], table.n_agents
    options: NDArray[np.int64] = agents % M
    if table.shares.size > 0:
        place = agents * _stride(N) % N
        options = np.searchsorted(_bounds(table), place, side="right")
        options[options == M] = -1
    return options


def first_counts(table: Table) -> NDArray[np.int64]:
    """Return how many of all agents adopt each option at first, and none."""
    M, N = table.qualities.shape[1], table.n_agents
    if table.shares.size == 0:
        return np.array([N // M + (j < N % M) for j in range(M)] + [0], np.int64)
    counts: NDArray[np.int64] = np.diff(np.concatenate(([0], _bounds(table), [N])))
    return counts


def _bounds(table: Table) -> NDArray[np.int64]:
    """Return the places in the order of agents where the adopters of each option end."""
    ends: NDArray[np.int64] = np.rint(
        np.minimum(np.cumsum(table.shares), 1.0) * table.n_agents
    ).astype(np.int64)
    return ends


def _stride(N: int) -> int:
    """Return a number near the golden section of N that has no divisor in common with it."""
    stride = max(1, round(N * (math.sqrt(5) - 1) / 2))
    while math.gcd(stride, N) > 1:
        stride += 1
    return stride


@kernel
def replace_adoptions(table: Any, t: Any, adoption: Any, counts: Any) -> None:
    """Give agents the adoptions that the table wants before round t."""
    for e in range(table.edit_rounds.size):
        if table.edit_rounds[e] == t:
            a, option = table.edit_agents[e] - table.first, table.edit_options[e]
            if 0 <= a < adoption.size:
                counts[adoption[a]] -= 1
                counts[option] += 1
                adoption[a] = option


@kernel
def signal(table: Any, t: Any, j: Any) -> Any:
    """Return whether option j is good in round t: Phi_j^t, the same for all agents."""
    zero = np.uint64(0)
    word = philox(table.key0, table.key1, np.uint64(t), np.uint64(j), zero, zero)[0]
    return to_unit(word) < table.qualities[piece_at(table.starts, t), j]


@kernel
def piece_at(starts: Any, t: Any) -> Any:
    """Return in which piece of time round t lies."""
    piece = starts.size - 1
    while starts[piece] > t:
        piece -= 1
    return piece


@kernel
def watch(qualities: Any, now: Any, trace: Any, counts: Any) -> None:
    """Add the round's expected reward under the popularity before it (eq. 1), and the best there is.

    `now` is the row of `qualities` that holds in the round.
    """
    M = qualities.shape[1]
    adopting = 0
    for j in range(M):
        adopting += counts[j]
    best = 0.0
    for j in range(M):
        popularity = counts[j] / adopting if adopting > 0 else 1.0 / M
        trace.totals[0] += popularity * qualities[now, j]
        best = max(best, qualities[now, j])
    trace.totals[3] += best


@kernel
def note(
    qualities: Any, now: Any, trace: Any, t: Any, counts: Any, messages: Any, bits: Any
) -> None:
    """Write the end of round t to the trace: adopters (the last count is nobody's) and traffic."""
    M = qualities.shape[1]
    N = 0
    for j in range(M + 1):
        N += counts[j]
    trace.totals[1] += messages / N
    trace.totals[2] += messages / N * bits
    if trace.decisions.shape[0] > 0:
        for j in range(M):
            trace.decisions[t, j] = counts[j]
    cursor = trace.cursor[0]
    if cursor < trace.checkpoints.size and trace.checkpoints[cursor] == t + 1:
        adopting = N - counts[M]
        best = 0
        for j in range(M):
            best = j if qualities[now, j] > qualities[now, best] else best
            trace.popularity[cursor, j] = counts[j] / adopting if adopting > 0 else 1.0 / M
        trace.measures[cursor, 0] = (trace.totals[3] - trace.totals[0]) / (t + 1)
        trace.measures[cursor, 1] = trace.popularity[cursor, best]
        trace.measures[cursor, 2] = adopting / N
        trace.measures[cursor, 3] = trace.totals[1] / (t + 1)
        trace.measures[cursor, 4] = trace.totals[2] / (t + 1)
        trace.cursor[0] += 1
