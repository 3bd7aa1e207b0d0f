"""A population of agents who track a changing truth, in pieces that exchange what they tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.tapes import seeded_tape
from tacit.diffusion.policy import DiffusionPolicy
from tacit.diffusion.table import Table
from tacit.diffusion.trace import (
    Trace,
    add_distances,
    add_up,
    agree,
    keep_beliefs,
    new_trace,
    record_updated,
    write_measures,
)
from tacit.populations.partitions import (
    Arrays,
    Border,
    Fold,
    Maker,
    Piece,
    Population,
    arrays_of,
)

_MEETING = -1
#: What does not change in a run, or is no more than room to work.
_FIXED = {"checkpoints", "threshold", "truth", "certain", "sums"}


class DiffusionPiece(Piece):
    """The agents of one range: their table, their beliefs, and their part of the trace."""

    def __init__(
        self,
        policy: DiffusionPolicy[Any],
        table: Table,
        trace: Callable[[], Trace],
        border: Border,
        seed: int,
        repetition: int,
        horizon: int,
    ) -> None:
        self.policy, self.table, self.border = policy, table, border
        self._trace, self._seeds = trace, (seed, repetition)
        kernels = policy.kernels
        self._tell, self._hear = kernels.tell, kernels.hear
        super().__init__(horizon, border.bounds.size - 1)

    def start(self) -> None:
        """Begin with uniform beliefs."""
        self.trace = self._trace()
        self.tape = seeded_tape(*self._seeds)
        self.state = self.policy.start(self.table)
        program = self.policy.program(self.state, self.table, self.tape, self.trace)
        self._arguments = program[1]

    def begin(self, t: int) -> tuple[Any, Sequence[Any]]:
        """Make up what to tell, and hand over what crosses the border."""
        if t == _MEETING:
            return None, self.border.wants()
        self._tell(*self._arguments, t)
        if not self.policy.sends_in(t):
            return None, self.no_mail
        return None, self.border.outgoing(self.policy.messages(self.state))

    def finish(self, t: int, news: Any, mail: Sequence[Any]) -> Any:
        """Hear, learn, and say what the agents here are certain of."""
        if t == _MEETING:
            self.border.learn(mail)
            return None
        self.border.incoming(mail, self.policy.messages(self.state))
        self._hear(*self._arguments, t)
        trace = self.trace
        record_updated(self.table, trace, t, self.state.mu)
        checkpoint = np.searchsorted(trace.checkpoints, t + 1)
        if checkpoint < trace.checkpoints.size and trace.checkpoints[checkpoint] == t + 1:
            trace.cursor[0] = checkpoint
            keep_beliefs(trace, self.state.mu)
        one = agree(self.table.group, self.state.mu, trace.threshold, trace.certain)
        return trace.certain.copy() if one else None

    def add_up(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add the agents here to the sums of a checkpoint."""
        sums = sums.copy()
        add_up(self.table, self.trace, self.state.mu, sums)
        return sums

    def add_distances(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add how far the agents here are from the mean belief."""
        sums = sums.copy()
        add_distances(self.state.mu, sums)
        return sums

    def recorded(self) -> tuple[Any, int]:
        """Return beliefs and choices, if they were kept, and the draws of noise."""
        return (self.trace.beliefs, self.trace.decisions), int(self.tape.reads[1])

    def memory(self) -> Arrays:
        """Return beliefs, what they are made of, and the trace so far."""
        arrays = arrays_of(_FIXED, state=self.state, trace=self.trace)
        return {**arrays, "reads": self.tape.reads}


class DiffusionPopulation(Population):
    """The middle: measures at checkpoints, and convergence."""

    first = _MEETING

    def __init__(
        self,
        policy: DiffusionPolicy[Any],
        environment: Any,
        bounds: NDArray[np.int64],
        *,
        seed: int,
        repetition: int,
        horizon: int,
        checkpoints: NDArray[np.int64],
        record: bool,
    ) -> None:
        self.bounds, self.horizon = bounds, horizon
        self._policy, self._environment = policy, environment
        self._run = (seed, repetition, horizon)
        self._kept = (checkpoints, record)
        self._n = environment.n_agents
        shape = (0, environment.n_groups, 0, environment.state_count)
        threshold = environment.threshold
        self.trace: Trace = new_trace(
            shape, horizon, checkpoints, threshold=threshold, record=record
        )

    def maker(self, i: int) -> Maker:
        """Return what makes piece i: there if the network is described, else of what is cut out here."""
        if self._environment.is_lazy:
            return made_there, (
                self._policy,
                self._environment,
                self.bounds,
                i,
                self._run,
                self._kept,
            )
        parts = _parts(self._environment, self.bounds, i, self._run, self._kept)
        return DiffusionPiece, (self._policy, *parts, *self._run)

    def begun(self, t: int, said: Sequence[Any], fold: Fold) -> Any:
        """Know nothing that agents must hear."""
        return None

    def finished(self, t: int, said: Sequence[Any], fold: Fold) -> None:
        """Look for convergence after round t, and fill the checkpoint if there is one."""
        trace = self.trace
        if t < 0:
            return
        if trace.converged_at[0] == 0 and _one_mind(said):
            trace.converged_at[0] = t + 1
        cursor = trace.cursor[0]
        if cursor < trace.checkpoints.size and trace.checkpoints[cursor] == t + 1:
            sums = fold("add_up", np.zeros_like(trace.sums))
            trace.sums[:] = fold("add_distances", sums)
            write_measures(trace, t, self._n)

    def ended(self, recorded: Sequence[Any], draws: Sequence[int]) -> tuple[Trace, int]:
        """Return the trace with what every piece recorded."""
        beliefs = np.concatenate([each[0] for each in recorded], axis=1)
        decisions = np.concatenate([each[1] for each in recorded], axis=1)
        return self.trace._replace(beliefs=beliefs, decisions=decisions), sum(draws)

    def memory(self) -> Arrays:
        """Return the trace so far."""
        return arrays_of(_FIXED, trace=self.trace)


def made_there(
    policy: DiffusionPolicy[Any],
    environment: Any,
    bounds: NDArray[np.int64],
    i: int,
    run: tuple[int, int, int],
    kept: tuple[NDArray[np.int64], bool],
) -> DiffusionPiece:
    """Return piece i of a described network, made here."""
    return DiffusionPiece(policy, *_parts(environment, bounds, i, run, kept), *run)


def _parts(
    environment: Any,
    bounds: NDArray[np.int64],
    i: int,
    run: tuple[int, int, int],
    kept: tuple[NDArray[np.int64], bool],
) -> tuple[Table, Callable[[], Trace], Border]:
    first, last = int(bounds[i]), int(bounds[i + 1])
    table, ghosts = environment.partition(*run, first, last)
    shape = (last - first, environment.n_groups, table.row_agent.size, table.n_states)
    threshold, record = environment.threshold, kept[1]
    trace = partial(new_trace, shape, run[2], kept[0], threshold=threshold, record=record)
    return table, trace, Border(bounds, i, ghosts)


def _one_mind(said: Sequence[NDArray[np.int64] | None]) -> bool:
    """Return whether all are certain, in each group of one state; -1 is for a group without members."""
    sure = [each for each in said if each is not None]
    if len(sure) < len(said):
        return False
    certain = np.stack(sure)
    most = certain.max(axis=0)
    return bool(np.all((certain == most) | (certain < 0)))
