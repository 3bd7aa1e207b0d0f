"""A population that copies what is popular and good, in partitions that exchange tokens or counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.kernels import kernel
from tacit.core.samplers import source_of
from tacit.core.segments import segment_at
from tacit.core.tapes import seeded_tape
from tacit.dynamics.algorithm import perturb, sample_and_adopt
from tacit.dynamics.dissemination import (
    ENDPOINTS,
    MOMENTS,
    message_bits,
    new_deliveries,
    send,
    senders_of,
    traffic,
)
from tacit.dynamics.dissemination.crowd import perturb_counts
from tacit.dynamics.dissemination.moments import crowd_of
from tacit.dynamics.dissemination.tokens import deliver_all
from tacit.dynamics.environments import SocialOptions
from tacit.dynamics.policies.learning_dynamics import LearningDynamics, leave, rows_of_ends
from tacit.dynamics.table import Table, replace_adoptions
from tacit.dynamics.trace import Trace, record, record_popularity
from tacit.graphs import Graph
from tacit.graphs.walks import Ends, Walk, added_up, nonzero, times, transition_rows
from tacit.populations.partitions import (
    Arrays,
    Border,
    Partition,
    Population,
    Reduce,
    Run,
    name_arrays,
)

#: What does not change in a run.
_FIXED = {"starts", "ends", "chances", "entries", "checkpoints"}


class DynamicsPartition(Partition):
    """The agents of one range: what they adopt, and what of theirs is under way.

    Steps before the first round: who needs whom; how many neighbours each has; for `endpoints`, a step for
    each hop but the first, in which rows of the walk matrix's power cross borders; how many entries the
    rows have.
    """

    def __init__(self, policy: LearningDynamics, table: Table, border: Border, run: Run) -> None:
        self.policy, self.table, self.border = policy, table, border
        self._run, self._first = run, _first_step(policy, table.indptr.size > 0)
        super().__init__(run.horizon, border.bounds.size - 1)

    @classmethod
    def cut(
        cls,
        policy: LearningDynamics,
        environment: SocialOptions,
        bounds: NDArray[np.int64],
        i: int,
        run: Run,
    ) -> Callable[[], Self]:
        """Cut partition i out, and return what makes it elsewhere."""
        table, halo = environment.partition(*run[:3], int(bounds[i]), int(bounds[i + 1]))
        return partial(cls, policy, table, Border(bounds, i, halo), run)

    def start(self) -> None:
        """Adopt what the table says."""
        self.tape = seeded_tape(self._run.seed, self._run.repetition)
        self.state = self.policy.start(self.table)
        self._degrees = np.diff(self.table.indptr)
        self._deliveries: Any = None

    def begin(self, t: int) -> tuple[Any, Sequence[Any]]:
        """Perturb, and send what is due; return adopters, and who sends or what was sent."""
        if t < 0:
            return self._prepare(t)
        params, state, table = self.policy.params, self.state, self.table
        if self._deliveries is None:
            self._deliveries = new_deliveries(params, table, self._room())
        senders = np.zeros((params.weight.size, table.qualities.shape[1] + 1), np.int64)
        _begin(params, state, table, self.tape, t, senders, self._deliveries)
        sent = state.pool[t % state.pool.shape[0]].copy() if params.each else senders
        messages = self.no_messages if params.engine == MOMENTS else self._address_deliveries()
        return (state.counts.copy(), sent), messages

    def finish(self, t: int, shared: Any, messages: Sequence[Any]) -> Any:
        """Hear, choose and adopt; return the adopters of each option."""
        if t < 0:
            self._meet(t, shared, messages)
            return None
        params, state = self.policy.params, self.state
        state.pool[t % state.pool.shape[0]] = shared
        if params.engine == MOMENTS:
            crowd_of(params, state.pool, self.table.n_agents, self._deliveries.crowd)
        for deliveries in messages:
            if deliveries is not None:
                deliver_all(params, self._deliveries, *(np.array(each) for each in deliveries))
        _finish(params, state, self.table, self.tape, t, self._deliveries)
        return state.counts.copy()

    def recorded(self) -> tuple[Any, int]:
        """Return the draws of noise; what is recorded is in the population."""
        return None, int(self.tape.reads[1])

    def arrays(self) -> Arrays:
        """Return adoptions, memories, and what is under way."""
        return {**name_arrays(_FIXED, state=self.state), "reads": self.tape.reads}

    def leave(self, total: float) -> float:
        """Add the probabilities that a hop leaves the agents here."""
        return float(leave(self.table.indptr, self.table.indices, self._degrees, total))

    def _prepare(self, t: int) -> tuple[Any, Sequence[Any]]:
        if t == self._first:
            return None, self.border.ask()
        if t == self._first + 1:
            return None, self.border.send(self._degrees)
        if t == -1:
            return (self._rows[1].size if self._walks else 0), self.no_messages
        wanted = self.border.wanted
        return None, [None if each is None else _pick_rows(self._rows, each) for each in wanted]

    def _meet(self, t: int, shared: Any, messages: Sequence[Any]) -> None:
        if t == self._first:
            self.border.take_requests(messages)
        elif t == self._first + 1:
            degrees = np.zeros(self.table.here + self.border.halo.size, np.int64)
            degrees[: self.table.here] = self._degrees
            self.border.receive(messages, degrees)
            self._degrees = degrees
            if self._walks:
                mine = np.arange(self.table.first, self.table.first + self.table.here)
                names = np.concatenate((mine, self.border.halo)).astype(np.int32)
                table = self.table
                self._psi = nonzero(*transition_rows(table.indptr, table.indices, degrees, names))
                starts, columns, chances = self._psi
                self._rows: Ends = (starts, names[columns], chances)
        elif t == -1:
            before, total = shared
            ends = added_up(*self._rows) if self._walks else None
            rows = rows_of_ends(ends, before[self.border.me], total)
            self.state = self.state._replace(**rows)
        else:
            known = _stack_rows([self._rows, *(each for each in messages if each is not None)])
            self._rows = times(*self._psi, *known, self.table.n_agents)

    @property
    def _walks(self) -> bool:
        return self.policy.params.engine == ENDPOINTS

    def _room(self) -> int:
        """Return how many deliveries a round can have at most."""
        params = self.policy.params
        if params.engine == MOMENTS:
            return 0
        rounds = params.delay + 1
        if not self._walks:
            return rounds * params.tokens * self.table.here
        return rounds * int(np.minimum(np.diff(self.state.starts), params.tokens).sum())

    def _address_deliveries(self) -> list[Any]:
        traffic, n = self._deliveries, int(self._deliveries.away[0])
        away = (traffic.away_to, traffic.away_sent, traffic.away_count, traffic.away_level)
        to, *rest = (each[:n] for each in away)
        owner = np.searchsorted(self.border.bounds, to, side="right") - 1
        order = np.argsort(owner, kind="stable")
        cuts = np.searchsorted(owner[order], np.arange(self.count + 1))
        messages: list[Any] = self.no_messages
        for i in range(self.count):
            some = order[cuts[i] : cuts[i + 1]]
            if some.size:
                messages[i] = (to[some], *(each[some] for each in rest))
        return messages


class DynamicsPopulation(Population):
    """Adopters and what was sent, added up, and the trace."""

    kind: ClassVar[type[Partition]] = DynamicsPartition

    def __init__(
        self,
        policy: LearningDynamics,
        environment: SocialOptions,
        bounds: NDArray[np.int64],
        run: Run,
    ) -> None:
        divisible = policy.engine in ("mixed", "endpoints")
        rule = "mixed or endpoints in partitions (a crowd has no members, walking tokens wait for each other)"
        require(policy, "engine", rule, divisible, policy.engine)
        network = environment.network
        if policy.engine == "endpoints" and isinstance(network, Graph):
            Walk(network)  # complains where walks cannot settle
        super().__init__(policy, environment, bounds, run)
        self._dynamics = policy
        self._qualities, self._starts = environment.schedule(run.horizon)
        self.first = _first_step(policy, network is not None)
        self.trace = environment.trace(run.horizon, run.checkpoints, record=run.record)
        self._tape = seeded_tape(run.seed, run.repetition)
        M, L = environment.n_options, policy.params.weight.size
        self._pool = np.zeros((policy.delay + 1, L, 2 * M + 1), np.int64)
        self._leaving, self._messages = 1.0, 0.0

    def after_begin(self, t: int, reports: Sequence[Any], reduce: Reduce) -> Any:
        """Add up who adopts what and what was sent; where only counts are perturbed, perturb them."""
        if t == -1:
            self._leaving = reduce("leave", 0.0) / int(self.bounds[-1])
            ends = np.concatenate(([0], np.cumsum(reports)))
            return ends[:-1].tolist(), int(ends[-1])
        if t < 0:
            return None
        params, slot = self._dynamics.params, t % self._pool.shape[0]
        now = segment_at(self._starts, t)
        record_popularity(
            self._qualities, now, self.trace, np.sum([counts for counts, _ in reports], axis=0)
        )
        sent = np.sum([each for _, each in reports], axis=0)
        if params.each:
            self._pool[slot] = sent
        else:
            _perturb_counts(params, self._pool, self._tape, t, sent)
        self._messages = traffic(params, senders_of(self._pool, slot), self._leaving)
        return self._pool[slot].copy()

    def after_finish(self, t: int, reports: Sequence[Any], reduce: Reduce) -> None:
        """Write the end of round t to the trace."""
        if t < 0:
            return
        counts, bits = (
            np.sum(reports, axis=0),
            message_bits(self._dynamics.params, self._qualities.shape[1]),
        )
        now = segment_at(self._starts, t)
        record(self._qualities, now, self.trace, t, counts, self._messages, bits)

    def collect(self, recorded: Sequence[Any], draws: Sequence[int]) -> tuple[Trace, int]:
        """Return the trace, and the noise that was drawn there and here."""
        return self.trace, sum(draws) + int(self._tape.reads[1])

    def arrays(self) -> Arrays:
        """Return the trace so far, and what is under way."""
        trace = name_arrays(_FIXED, trace=self.trace)
        return {**trace, "pool": self._pool, "reads": self._tape.reads}


def _first_step(policy: LearningDynamics, networked: bool) -> int:
    """Return the number of the first step: there are some before the first round on a network."""
    if not networked:
        return 0
    return -2 - policy.hops if policy.engine == "endpoints" else -3


def _pick_rows(rows: Ends, which: NDArray[np.int64]) -> Ends:
    starts, columns, values = rows
    sizes = np.diff(starts)[which]
    new = np.concatenate(([0], np.cumsum(sizes)))
    entries = np.repeat(starts[which] - new[:-1], sizes) + np.arange(new[-1])
    return new, columns[entries], values[entries]


def _stack_rows(parts: Sequence[Ends]) -> Ends:
    sizes = np.concatenate([np.diff(starts) for starts, _, _ in parts])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    columns, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    return starts, columns, values


@kernel(inlined=False)
def _begin(
    params: Any, state: Any, table: Any, tape: Any, t: Any, senders: Any, deliveries: Any
) -> None:
    source = source_of(tape)
    replace_adoptions(table, t, state.adoption, state.counts)
    perturb(params, state, table, tape, source, t, senders)
    if params.engine != MOMENTS:
        send(params, state, table, source, t, deliveries)


@kernel(inlined=False)
def _finish(params: Any, state: Any, table: Any, tape: Any, t: Any, deliveries: Any) -> None:
    sample_and_adopt(params, state, table, source_of(tape), t, deliveries)


@kernel(allocates=True)
def _perturb_counts(params: Any, pool: Any, tape: Any, t: Any, senders: Any) -> None:
    M, slot = senders.shape[1] - 1, t % pool.shape[0]
    perturb_counts(params, pool, tape, source_of(tape), t, slot, senders, np.zeros((M, M)))
