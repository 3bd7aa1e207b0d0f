"""Environments of agents who track a changing truth.

In every round there is a true state. Each agent gets a signal, the true state plus normal noise, and a
loss for the state it names. :class:`ChangingTruth` draws the true states so that one of them
dominates, as in the simulations of Odeyomi (2022); :class:`RecordedTruth` reads them from arrays.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Constraint, Count, Probability, Whole, check, one_of, require
from tacit.core.generator import key_of
from tacit.core.policy import Environment
from tacit.diffusion.neighbours import pairs_of
from tacit.diffusion.table import DISTANCE, MATCH, RECORDED, Table
from tacit.diffusion.trace import MEASURES, Trace, new_trace
from tacit.graphs import Graph, LazyGraph, independence_number
from tacit.graphs.lazy import number_locally
from tacit.graphs.mixing_matrix import Columns, MixingMatrix, slice_uniform
from tacit.privacy import NeighbouringPair

#: The network of the paper's simulations, Fig. 1.
THREE_AGENTS = ((0.2, 0.2, 0.8), (0.5, 0.4, 0.1), (0.3, 0.4, 0.1))

_KINDS = {"match": MATCH, "distance": DISTANCE}
_TABLE_STREAM, _SCHEDULE_STREAM = 0, 2
_LARGEST_EXACT = 1000


@dataclass(frozen=True, kw_only=True)
class TruthEnvironment(Environment[Table, Trace]):
    """What the environments of this setting share: the network, groups, signals and losses of agents."""

    setting: ClassVar[str] = "diffusion"
    measures: ClassVar[tuple[str, ...]] = MEASURES

    network: LazyGraph | Graph | Any = THREE_AGENTS
    weights: Annotated[str, one_of("uniform", "metropolis", "laplacian", "from_weights")] = (
        "uniform"
    )
    connectivity: Annotated[str, one_of("strong", "weak")] = "strong"
    groups: Sequence[int] | None = None
    signal_std: float | Sequence[float] | Sequence[Sequence[float]] = 1.0
    losses: Any = "match"
    flip_prob: Probability = 0.0
    threshold: Annotated[float, Constraint("in [1/2, 1)", lambda v: 0.5 <= v < 1)] = 0.99

    def __post_init__(self) -> None:
        check(self)
        if not isinstance(self.network, (Graph, LazyGraph, MixingMatrix, tuple)):
            object.__setattr__(self, "network", MixingMatrix.from_matrix(self.network))
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(self.groups))
        if self.is_lazy:
            even = self.weights == "uniform"
            require(self, "weights", "uniform for a lazy network", even, self.weights)
            rule = "weak for a lazy network, which nobody sees whole"
            require(self, "connectivity", rule, self.connectivity == "weak", self.connectivity)
        if self.connectivity == "strong":
            self.mixing_matrix.require_strongly_connected(type(self).__name__)
        n = self.n_agents
        fits = self.groups is None or (
            self.group.shape == (n,) and set(self.groups) == set(range(self.n_groups))
        )
        require(self, "groups", f"{n} group numbers 0, 1, ... without gaps", fits, self.groups)
        object.__setattr__(self, "signal_std", _plain(self.signal_std))
        rows = self._rounds_of_signals
        even = rows is None or len({np.shape(row) for row in rows}) == 1
        fits = even and np.shape(self.signal_std)[-1:] in ((), (n,))
        rule = f"a number, {n} numbers, or {n} numbers for each round"
        require(self, "signal_std", rule, fits, self.signal_std)
        inside = bool(np.all((self._deviations > 0) & np.isfinite(self._deviations)))
        require(self, "signal_std", "> 0 and finite", inside, self.signal_std)

    @property
    def _rounds_of_signals(self) -> Any:
        """The rows of `signal_std` where every round has its own, else None."""
        rows = self.signal_std if isinstance(self.signal_std, tuple) else ()
        return rows if any(isinstance(row, tuple) for row in rows) else None

    @cached_property
    def _deviations(self) -> NDArray[np.float64]:
        """The standard deviations of signals, shape (1 or T, 1 or n_agents)."""
        return np.array(self.signal_std, np.float64, ndmin=2)

    @property
    def is_lazy(self) -> bool:
        """Whether the network is lazy, and made where it is needed."""
        return isinstance(self.network, LazyGraph)

    @cached_property
    def mixing_matrix(self) -> MixingMatrix:
        """The weights that agents give to each other's messages."""
        if isinstance(self.network, MixingMatrix):
            return self.network
        network = self.network.graph() if isinstance(self.network, LazyGraph) else self.network
        if isinstance(network, Graph):
            matrix: MixingMatrix = getattr(MixingMatrix, self.weights)(network)
            return matrix
        return MixingMatrix.from_matrix(self.network)

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """The group of each agent, shape (n_agents,)."""
        if self.groups is None:
            return np.zeros(self.n_agents, np.int64)
        return np.array(self.groups, np.int64)

    @property
    def n_agents(self) -> int:
        """Number of agents N."""
        return self.network.n_nodes if self.is_lazy else self.mixing_matrix.n_agents

    @property
    def n_groups(self) -> int:
        """Number of groups that have a truth of their own."""
        return 1 if self.groups is None else max(self.groups) + 1

    @property
    @abstractmethod
    def state_count(self) -> int:
        """Number of states M."""

    @property
    def _own_losses(self) -> bool:
        return self.flip_prob > 0

    def trace(self, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
        """Return an empty trace; with `record`, beliefs at checkpoints and every choice are kept."""
        rows = self.n_agents if self._own_losses else self.n_groups
        shape = (self.n_agents, self.n_groups, rows, self.state_count)
        return new_trace(shape, horizon, checkpoints, threshold=self.threshold, record=record)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers of agents and of states."""
        return {"n_agents": self.n_agents, "n_states": self.state_count}

    def public_parameters(self, horizon: int) -> Mapping[str, Any]:
        """Return the numbers of agents and states, the horizon, and alpha for smaller networks."""
        public = dict(super().public_parameters(horizon))
        if self.n_agents <= _LARGEST_EXACT and not self.is_lazy:
            graph = self.mixing_matrix.graph().undirected()
            public["independence_number"] = independence_number(graph).upper
        return public

    def neighbours(
        self, unit: str, horizon: int, *, seed: int = 0, limit: int = 18
    ) -> list[NeighbouringPair]:
        """Return pairs of tables that differ in one agent's loss, message or history ("agent")."""
        return pairs_of(self.table(seed, 0, horizon), unit, horizon, limit)

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition."""
        return self.partition(seed, repetition, horizon, 0, self.n_agents)[0]

    @abstractmethod
    def _recorded(self, seed: int, repetition: int, horizon: int) -> dict[str, Any]:
        """Return what is particular in the table of one repetition: of all agents."""

    def _columns(self, first: int, last: int) -> tuple[Columns, NDArray[np.int64]]:
        if not self.is_lazy and last - first == self.n_agents:
            return self.mixing_matrix.columns, np.empty(0, np.int64)
        if isinstance(self.network, LazyGraph):
            indptr, senders, weights = slice_uniform(self.network.rows(first, last))
        else:
            indptr, senders, weights = self.mixing_matrix.columns
            here = slice(indptr[first], indptr[last])
            indptr = indptr[first : last + 1] - indptr[first]
            senders, weights = senders[here], weights[here].copy()
        local, halo = number_locally(senders, first, last)
        return Columns(indptr, local, weights), halo

    def partition(
        self, seed: int, repetition: int, horizon: int, first: int, last: int
    ) -> tuple[Table, NDArray[np.int64]]:
        """Return the table of the agents `first` to `last` - 1, and which others they hear."""
        key0, key1 = key_of(seed, repetition, stream=_TABLE_STREAM)
        n, M, G = last - first, self.state_count, self.n_groups
        columns, halo = self._columns(first, last)
        group = np.zeros(n, np.int64) if self.groups is None else self.group[first:last].copy()
        rows, row_agent, row_group = group, np.zeros(1, np.int64), np.arange(G)
        if self._own_losses:
            rows, row_agent, row_group = np.arange(n), first + np.arange(n), group
        elif self.groups is not None:
            row_agent = np.unique(self.group, return_index=True)[1]
        recorded = self._recorded(seed, repetition, horizon)
        sigma = self._deviations
        if self._rounds_of_signals is not None:
            rule = f"<= {len(sigma)}, the rounds of signal_std"
            require(self, "horizon", rule, horizon <= len(sigma), horizon)
        if "signals" in recorded:
            recorded["signals"] = np.ascontiguousarray(recorded["signals"][:, first:last])
        if "losses" in recorded and self._own_losses:
            recorded["losses"] = np.ascontiguousarray(recorded["losses"][:, first:last])
        none = np.empty(0, np.int64)
        table = Table(
            key0=key0,
            key1=key1,
            n_states=M,
            n_agents=self.n_agents,
            first=first,
            halo=halo.size,
            group=group,
            starts=np.zeros(1, np.int64),
            dominant=np.zeros((1, G), np.int64),
            dominance=1.0,
            states=np.empty((0, G), np.int64),
            signal_std=(sigma if sigma.shape[1] == 1 else sigma[:, first:last]).copy(),
            signals=np.empty((0, n)),
            loss_kind=_KINDS[self.losses] if isinstance(self.losses, str) else RECORDED,
            losses=np.empty((0, row_agent.size, M)),
            flip_prob=float(self.flip_prob),
            loss_row=rows,
            row_agent=row_agent,
            row_group=row_group,
            indptr=columns.indptr,
            senders=columns.senders,
            weights=columns.weights,
            edit_rounds=none,
            edit_agents=none,
            edit_states=none,
            edit_values=np.empty(0),
        )
        return table._replace(**recorded), halo


def _plain(value: Any) -> Any:
    """Return numbers, arrays and lists of lists as something that can be compared and hashed."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, kw_only=True)
class ChangingTruth(TruthEnvironment):
    """A true state that changes every round, one of them more frequent than the others.

    Parameters
    ----------
    n_states : int, default 5
        Number of states M.
    dominance : float, default 0.8
        Probability q that the dominant state is the true one in a round; else it is one of the
        others, all equally likely.
    dominant : int or sequence of int, optional
        The dominant state of each group; drawn anew for each repetition unless given.
    switches : int, default 0
        How often, evenly spaced, the dominant state jumps to another one.
    network : Graph, MixingMatrix or matrix, default the paper's three agents
        Who hears whom; a_jk in row j and column k of a matrix is the weight k gives to j.
    weights : "uniform", "metropolis", "laplacian" or "from_weights"
        How a graph becomes a mixing matrix.
    connectivity : "strong" or "weak", default "strong"
        Whether every agent must hear of every other, at least by hearsay.
    groups : sequence of int, optional
        The group of each agent; every group has a truth of its own. One group unless given.
    signal_std : float, or one for each agent, or rows of these for each round, default 1
        Standard deviation of the signals, sigma_kt of eq. 3; agents know it, and it is no secret.
    losses : "match" or "distance", default "match"
        0 for the true state and 1 for others, or the distance to the true state over M - 1.
    flip_prob : float, default 0
        Probability that an agent's loss l is 1 - l instead; then losses differ among agents.
    threshold : float, default 0.99
        The belief, held by every agent of a group in the same state, that counts as convergence.

    Examples
    --------
    >>> from tacit.diffusion import ChangingTruth
    >>> from tacit.graphs import ring
    >>> ChangingTruth(network=ring(10), weights="metropolis").public_parameters(500)["independence_number"]
    5
    """

    name: ClassVar[str] = "changing-truth"
    summary: ClassVar[str] = "a true state that changes every round while one state dominates"

    n_states: Count = 5
    dominance: Probability = 0.8
    dominant: int | Sequence[int] | None = None
    switches: Whole = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.losses in tuple(_KINDS)
        require(self, "losses", f"one of {', '.join(_KINDS)}", known, self.losses)
        if self.dominant is not None:
            chosen = np.atleast_1d(self.dominant)
            fits = chosen.shape == (self.n_groups,)
            fits = fits and bool(np.all((chosen >= 0) & (chosen < self.n_states)))
            rule = f"a state in 0..{self.n_states - 1} for each of {self.n_groups} groups"
            require(self, "dominant", rule, fits, self.dominant)

    @property
    def state_count(self) -> int:
        """Number of states M."""
        return self.n_states

    def _recorded(self, seed: int, repetition: int, horizon: int) -> dict[str, Any]:
        rng = np.random.Generator(
            np.random.Philox(key=key_of(seed, repetition, stream=_SCHEDULE_STREAM))
        )
        segments = min(self.switches, horizon - 1) + 1
        dominant = np.empty((segments, self.n_groups), np.int64)
        drawn = rng.integers(self.n_states, size=self.n_groups)
        dominant[0] = drawn if self.dominant is None else self.dominant
        for i in range(1, segments):
            jump = rng.integers(1, max(2, self.n_states), size=self.n_groups)
            dominant[i] = (dominant[i - 1] + jump) % self.n_states
        return {
            "starts": np.arange(segments) * horizon // segments,
            "dominant": dominant,
            "dominance": float(self.dominance),
        }


@dataclass(frozen=True, kw_only=True)
class RecordedTruth(TruthEnvironment):
    """True states, and perhaps signals and losses, read from arrays.

    Parameters
    ----------
    states : array of int, shape (T,) or (T, n_groups)
        The true states, from 0.
    n_states : int, optional
        Number of states M; by default the largest state plus one.
    signals : array, shape (T, n_agents), optional
        Recorded signals; drawn around the true states unless given.
    losses : "match", "distance" or array of shape (T, M) or (T, n_agents, M), default "match"
        Recorded losses in [0, 1], shared or of each agent.
    network, weights, connectivity, groups, signal_std, flip_prob, threshold
        As in :class:`ChangingTruth`.

    Examples
    --------
    >>> from tacit.diffusion import RecordedTruth
    >>> RecordedTruth(states=[0, 2, 2, 1]).public_parameters(4)["n_states"]
    3
    """

    name: ClassVar[str] = "recorded-truth"
    summary: ClassVar[str] = "true states, signals and losses from arrays"

    states: Any
    n_states: Count | None = None
    signals: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        T, M, N, G = len(self._states), self.state_count, self.n_agents, self.n_groups
        inside = self._states.shape == (T, G) and T > 0
        inside = inside and bool(np.all((self._states >= 0) & (self._states < M)))
        rule = f"states in 0..{M - 1}, one column for each of {G} groups"
        require(self, "states", rule, inside, self.states)
        if self.signals is not None:
            fits = self._signals.shape == (T, N) and bool(np.isfinite(self._signals).all())
            require(self, "signals", f"finite, of shape {(T, N)}", fits, self._signals.shape)
        if isinstance(self.losses, str):
            known = self.losses in _KINDS
            require(self, "losses", f"one of {', '.join(_KINDS)} or an array", known, self.losses)
        else:
            shape = (T, N, M) if self._own_losses else (T, 1, M)
            fits = self._losses.shape == shape and G == 1
            rule = f"of shape {(T, M)} or {(T, N, M)}, with one group"
            require(self, "losses", rule, fits, self._losses.shape)
            inside = bool(np.all((self._losses >= 0) & (self._losses <= 1)))
            require(self, "losses", "in [0, 1]", inside, "others")

    def __hash__(self) -> int:
        return hash(self._content)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, RecordedTruth) and self._content == other._content
        return same and all(
            getattr(self, name) == getattr(other, name)
            for name in ("network", "weights", "groups", "signal_std", "flip_prob", "threshold")
        )

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        losses = self.losses if isinstance(self.losses, str) else self._losses.tobytes()
        return (self.state_count, self._states.tobytes(), self._signals.tobytes(), losses)

    @cached_property
    def _states(self) -> NDArray[np.int64]:
        states = np.array(self.states, np.int64)
        return states[:, None] if states.ndim == 1 else states

    @cached_property
    def _signals(self) -> NDArray[np.float64]:
        none = np.empty((0, self.n_agents))
        return none if self.signals is None else np.array(self.signals, np.float64)

    @cached_property
    def _losses(self) -> NDArray[np.float64]:
        losses = np.array(self.losses, np.float64)
        return losses[:, None] if losses.ndim == 2 else losses

    @property
    def _own_losses(self) -> bool:
        recorded = not isinstance(self.losses, str) and np.ndim(self.losses) == 3
        return self.flip_prob > 0 or recorded

    @property
    def state_count(self) -> int:
        """Number of states M."""
        return self.n_states or int(self._states.max()) + 1

    def _recorded(self, seed: int, repetition: int, horizon: int) -> dict[str, Any]:
        rounds = len(self._states)
        require(self, "horizon", f"<= {rounds} recorded rounds", horizon <= rounds, horizon)
        changes: dict[str, Any] = {"states": self._states, "signals": self._signals}
        if not isinstance(self.losses, str):
            rows = self.n_agents if self._own_losses else 1
            # A copy: numba would compile every kernel again for the read-only view.
            changes["losses"] = np.array(
                np.broadcast_to(self._losses, (rounds, rows, self.state_count))
            )
        return changes
