"""A population that copies what is popular and good, in pieces that exchange tokens or only counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.kernels import kernel
from tacit.core.samplers import source_of
from tacit.core.tapes import seeded_tape
from tacit.dynamics.algorithm import bits_of, perturb, sample_and_adopt
from tacit.dynamics.engines import ENDPOINTS, MOMENTS, new_mail, send, senders_of, traffic
from tacit.dynamics.engines.crowd import perturb_counts
from tacit.dynamics.engines.moments import crowd_of
from tacit.dynamics.engines.tokens import deliver_all
from tacit.dynamics.policies.learning_dynamics import LearningDynamics, leave, rows_of_ends
from tacit.dynamics.table import Table, piece_at, replace_adoptions
from tacit.dynamics.trace import Trace, record, record_popularity
from tacit.graphs import Graph, LazyGraph
from tacit.graphs.walks import Ends, Walk, added_up, nonzero, times
from tacit.populations.partitions import (
    Arrays,
    Border,
    Fold,
    Maker,
    Piece,
    Population,
    arrays_of,
)

#: What does not change in a run.
_FIXED = {"starts", "ends", "chances", "entries", "checkpoints"}


class DynamicsPiece(Piece):
    """The agents of one range: what they adopt, and what of theirs is under way.

    Steps before the first round: who needs whom; how many neighbours each has; for `endpoints`, a step for
    each hop but the first, in which rows of the walk matrix's power cross borders; how many entries the
    rows have.
    """

    def __init__(
        self,
        policy: LearningDynamics,
        table: Table,
        border: Border,
        seed: int,
        repetition: int,
        horizon: int,
    ) -> None:
        self.policy, self.table, self.border = policy, table, border
        self._seeds, self._first = (seed, repetition), first_step(policy, table.indptr.size > 0)
        super().__init__(horizon, border.bounds.size - 1)

    def start(self) -> None:
        """Adopt what the table says."""
        self.tape = seeded_tape(*self._seeds)
        self.state = self.policy.start(self.table)
        self._degrees = np.diff(self.table.indptr)
        self._mail: Any = None

    def begin(self, t: int) -> tuple[Any, Sequence[Any]]:
        """Perturb, and send what is due; return adopters, and who sends or what was sent."""
        if t < 0:
            return self._prepare(t)
        params, state, table = self.policy.params, self.state, self.table
        if self._mail is None:
            self._mail = new_mail(params, table, self._room())
        senders = np.zeros((params.weight.size, table.qualities.shape[1] + 1), np.int64)
        _begin(params, state, table, self.tape, t, senders, self._mail)
        sent = state.pool[t % state.pool.shape[0]].copy() if params.each else senders
        letters = self.no_mail if params.engine == MOMENTS else self._letters()
        return (state.counts.copy(), sent), letters

    def finish(self, t: int, news: Any, mail: Sequence[Any]) -> Any:
        """Hear, choose and adopt; return the adopters of each option."""
        if t < 0:
            self._learn(t, news, mail)
            return None
        params, state = self.policy.params, self.state
        state.pool[t % state.pool.shape[0]] = news
        if params.engine == MOMENTS:
            crowd_of(params, state.pool, self.table.n_agents, self._mail.crowd)
        for letter in mail:
            if letter is not None:
                deliver_all(params, self._mail, *(np.array(each) for each in letter))
        _finish(params, state, self.table, self.tape, t, self._mail)
        return state.counts.copy()

    def recorded(self) -> tuple[Any, int]:
        """Return the draws of noise; what is recorded is in the middle."""
        return None, int(self.tape.reads[1])

    def memory(self) -> Arrays:
        """Return adoptions, memories, and what is under way."""
        return {**arrays_of(_FIXED, state=self.state), "reads": self.tape.reads}

    def leave(self, total: float) -> float:
        """Add the probabilities that a hop leaves the agents here."""
        return float(leave(self.table.indptr, self.table.indices, self._degrees, total))

    def _prepare(self, t: int) -> tuple[Any, Sequence[Any]]:
        if t == self._first:
            return None, self.border.wants()
        if t == self._first + 1:
            return None, self.border.outgoing(self._degrees)
        if t == -1:
            return (self._rows[1].size if self._walks else 0), self.no_mail
        wanted = self.border.wanted
        return None, [None if each is None else _some(self._rows, each) for each in wanted]

    def _learn(self, t: int, news: Any, mail: Sequence[Any]) -> None:
        if t == self._first:
            self.border.learn(mail)
        elif t == self._first + 1:
            degrees = np.zeros(self.table.here + self.border.ghosts.size, np.int64)
            degrees[: self.table.here] = self._degrees
            self.border.incoming(mail, degrees)
            self._degrees = degrees
            if self._walks:
                mine = np.arange(self.table.first, self.table.first + self.table.here)
                names = np.concatenate((mine, self.border.ghosts)).astype(np.int32)
                self._psi = _transition(self.table, degrees, names)
                starts, columns, chances = self._psi
                self._rows: Ends = (starts, names[columns], chances)
        elif t == -1:
            before, total = news
            ends = added_up(*self._rows) if self._walks else None
            rows = rows_of_ends(ends, before[self.border.me], total)
            self.state = self.state._replace(**rows)
        else:
            known = _joined([self._rows, *(each for each in mail if each is not None)])
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

    def _letters(self) -> list[Any]:
        mail, n = self._mail, int(self._mail.away[0])
        away = (mail.away_to, mail.away_sent, mail.away_count, mail.away_level)
        to, *rest = (each[:n] for each in away)
        owner = np.searchsorted(self.border.bounds, to, side="right") - 1
        order = np.argsort(owner, kind="stable")
        cuts = np.searchsorted(owner[order], np.arange(self.n_pieces + 1))
        letters: list[Any] = self.no_mail
        for i in range(self.n_pieces):
            some = order[cuts[i] : cuts[i + 1]]
            if some.size:
                letters[i] = (to[some], *(each[some] for each in rest))
        return letters


class DynamicsPopulation(Population):
    """The middle: adopters and what was sent, added up, and the trace."""

    def __init__(
        self,
        policy: LearningDynamics,
        environment: Any,
        bounds: NDArray[np.int64],
        *,
        seed: int,
        repetition: int,
        horizon: int,
        checkpoints: NDArray[np.int64],
        record: bool,
    ) -> None:
        divisible = policy.engine in ("mixed", "endpoints")
        rule = "mixed or endpoints in pieces (a crowd has no members, walking tokens wait for each other)"
        require(policy, "engine", rule, divisible, policy.engine)
        network = environment.network
        if policy.engine == "endpoints" and isinstance(network, Graph):
            Walk(network)  # complains where walks cannot settle
        self.bounds, self.horizon = bounds, horizon
        self._policy, self._environment = policy, environment
        self._run = (seed, repetition, horizon)
        self._qualities, self._starts = environment.schedule(horizon)
        M = environment.n_options
        self.first = first_step(policy, network is not None)
        self.trace: Trace = environment.trace(horizon, checkpoints, record=record)
        self._tape = seeded_tape(seed, repetition)
        self._pool = np.zeros((policy.delay + 1, policy.params.weight.size, 2 * M + 1), np.int64)
        self._leaving, self._messages = 1.0, 0.0

    def maker(self, i: int) -> Maker:
        """Return what makes piece i: there if the network is described, else of what is cut out here."""
        if isinstance(self._environment.network, LazyGraph):
            return made_there, (self._policy, self._environment, self.bounds, i, self._run)
        parts = _parts(self._environment, self.bounds, i, self._run)
        return DynamicsPiece, (self._policy, *parts, *self._run)

    def begun(self, t: int, said: Sequence[Any], fold: Fold) -> Any:
        """Add up who adopts what and what was sent; where only counts are perturbed, perturb them."""
        if t == -1:
            self._leaving = fold("leave", 0.0) / int(self.bounds[-1])
            ends = np.concatenate(([0], np.cumsum(said)))
            return ends[:-1].tolist(), int(ends[-1])
        if t < 0:
            return None
        params, slot = self._policy.params, t % self._pool.shape[0]
        now = piece_at(self._starts, t)
        record_popularity(
            self._qualities, now, self.trace, np.sum([counts for counts, _ in said], axis=0)
        )
        sent = np.sum([each for _, each in said], axis=0)
        if params.each:
            self._pool[slot] = sent
        else:
            _perturb_counts(params, self._pool, self._tape, t, sent)
        self._messages = traffic(params, senders_of(self._pool, slot), self._leaving)
        return self._pool[slot].copy()

    def finished(self, t: int, said: Sequence[Any], fold: Fold) -> None:
        """Write the end of round t to the trace."""
        if t < 0:
            return
        counts, bits = np.sum(said, axis=0), bits_of(self._policy.params, self._qualities.shape[1])
        now = piece_at(self._starts, t)
        record(self._qualities, now, self.trace, t, counts, self._messages, bits)

    def ended(self, recorded: Sequence[Any], draws: Sequence[int]) -> tuple[Trace, int]:
        """Return the trace, and the noise that was drawn there and here."""
        return self.trace, sum(draws) + int(self._tape.reads[1])

    def memory(self) -> Arrays:
        """Return the trace so far, and what is under way."""
        trace = arrays_of(_FIXED, trace=self.trace)
        return {**trace, "pool": self._pool, "reads": self._tape.reads}


def first_step(policy: LearningDynamics, networked: bool) -> int:
    """Return the number of the first step: there are some before the first round on a network."""
    if not networked:
        return 0
    return -2 - policy.hops if policy.engine == "endpoints" else -3


def made_there(
    policy: LearningDynamics,
    environment: Any,
    bounds: NDArray[np.int64],
    i: int,
    run: tuple[int, int, int],
) -> DynamicsPiece:
    """Return piece i of a described network, made here."""
    return DynamicsPiece(policy, *_parts(environment, bounds, i, run), *run)


def _parts(
    environment: Any, bounds: NDArray[np.int64], i: int, run: tuple[int, int, int]
) -> tuple[Table, Border]:
    table, ghosts = environment.piece(*run, int(bounds[i]), int(bounds[i + 1]))
    return table, Border(bounds, i, ghosts)


def _transition(table: Table, degrees: NDArray[np.int64], names: NDArray[np.int32]) -> Ends:
    """Return the rows of the walk matrix here, eq. (2); columns are rows of the piece."""
    n = table.here
    rows = np.repeat(np.arange(n), degrees[:n])
    move = 1.0 / np.maximum(degrees[rows], degrees[table.indices])
    stay = 1.0 - np.bincount(rows, weights=move, minlength=n)
    stay[stay < 1e-12] = 0.0  # what rounding leaves of zero
    below = np.bincount(rows, weights=names[table.indices] < names[rows], minlength=n)
    place = table.indptr[:-1] + below.astype(np.int64)
    columns = np.insert(table.indices, place, np.arange(n, dtype=np.int32))
    return nonzero(table.indptr + np.arange(n + 1), columns, np.insert(move, place, stay))


def _some(rows: Ends, which: NDArray[np.int64]) -> Ends:
    starts, columns, values = rows
    sizes = np.diff(starts)[which]
    new = np.concatenate(([0], np.cumsum(sizes)))
    entries = np.repeat(starts[which] - new[:-1], sizes) + np.arange(new[-1])
    return new, columns[entries], values[entries]


def _joined(parts: Sequence[Ends]) -> Ends:
    sizes = np.concatenate([np.diff(starts) for starts, _, _ in parts])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    columns, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    return starts, columns, values


@kernel(inlined=False)
def _begin(params: Any, state: Any, table: Any, tape: Any, t: Any, senders: Any, mail: Any) -> None:
    source = source_of(tape)
    replace_adoptions(table, t, state.adoption, state.counts)
    perturb(params, state, table, tape, source, t, senders)
    if params.engine != MOMENTS:
        send(params, state, table, source, t, mail)


@kernel(inlined=False)
def _finish(params: Any, state: Any, table: Any, tape: Any, t: Any, mail: Any) -> None:
    sample_and_adopt(params, state, table, source_of(tape), t, mail)


@kernel(allocates=True)
def _perturb_counts(params: Any, pool: Any, tape: Any, t: Any, senders: Any) -> None:
    M, slot = senders.shape[1] - 1, t % pool.shape[0]
    perturb_counts(params, pool, tape, source_of(tape), t, slot, senders, np.zeros((M, M)))
