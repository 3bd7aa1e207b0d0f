"""A population of agents who track a changing truth, in partitions that exchange what they tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.core.tapes import seeded_tape
from tacit.diffusion.environments import TruthEnvironment
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
    Partition,
    Population,
    Reduce,
    Run,
    name_arrays,
)

_MEETING = -1
#: What does not change in a run, or is no more than room to work.
_FIXED = {"checkpoints", "threshold", "truth", "certain", "sums"}


class DiffusionPartition(Partition):
    """The agents of one range: their table, their beliefs, and their part of the trace."""

    def __init__(
        self,
        policy: DiffusionPolicy[Any],
        table: Table,
        trace: Callable[[], Trace],
        border: Border,
        run: Run,
    ) -> None:
        self.policy, self.table, self.border = policy, table, border
        self._new_trace, self._run = trace, run
        super().__init__(run.horizon, border.bounds.size - 1)

    @classmethod
    def cut(
        cls,
        policy: DiffusionPolicy[Any],
        environment: TruthEnvironment,
        bounds: NDArray[np.int64],
        i: int,
        run: Run,
    ) -> Callable[[], Self]:
        """Cut partition i out, and return what makes it elsewhere."""
        first, last = int(bounds[i]), int(bounds[i + 1])
        table, halo = environment.partition(*run[:3], first, last)
        shape = (last - first, environment.n_groups, table.row_agent.size, table.n_states)
        trace = _trace_maker(environment, shape, run)
        return partial(cls, policy, table, trace, Border(bounds, i, halo), run)

    def start(self) -> None:
        """Begin with uniform beliefs."""
        self.trace = self._new_trace()
        self.tape = seeded_tape(self._run.seed, self._run.repetition)
        self.state = self.policy.start(self.table)
        self._kernels = self.policy.kernels
        program = self.policy.program(self.state, self.table, self.tape, self.trace)
        self._arguments = program[1]

    def begin(self, t: int) -> tuple[Any, Sequence[Any]]:
        """Make up what to tell, and hand over what crosses the border."""
        if t == _MEETING:
            return None, self.border.ask()
        self._kernels.tell(*self._arguments, t)
        if not self.policy.sends_in(t):
            return None, self.no_messages
        return None, self.border.send(self.policy.messages(self.state))

    def finish(self, t: int, shared: Any, messages: Sequence[Any]) -> Any:
        """Hear, learn, and say what the agents here are certain of."""
        if t == _MEETING:
            self.border.take_requests(messages)
            return None
        self.border.receive(messages, self.policy.messages(self.state))
        self._kernels.hear(*self._arguments, t)
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

    def arrays(self) -> Arrays:
        """Return beliefs, what they are made of, and the trace so far."""
        arrays = name_arrays(_FIXED, state=self.state, trace=self.trace)
        return {**arrays, "reads": self.tape.reads}


class DiffusionPopulation(Population):
    """Measures at checkpoints, and convergence."""

    kind: ClassVar[type[Partition]] = DiffusionPartition
    first = _MEETING

    def __init__(
        self,
        policy: DiffusionPolicy[Any],
        environment: TruthEnvironment,
        bounds: NDArray[np.int64],
        run: Run,
    ) -> None:
        super().__init__(policy, environment, bounds, run)
        shape = (0, environment.n_groups, 0, environment.state_count)
        self.trace = _trace_maker(environment, shape, run)()

    def after_begin(self, t: int, reports: Sequence[Any], reduce: Reduce) -> None:
        """Do nothing: agents must hear nothing of the population."""

    def after_finish(self, t: int, reports: Sequence[Any], reduce: Reduce) -> None:
        """Look for convergence after round t, and fill the checkpoint if there is one."""
        trace = self.trace
        if t < 0:
            return
        if trace.converged_at[0] == 0 and _have_one_mind(reports):
            trace.converged_at[0] = t + 1
        cursor = trace.cursor[0]
        if cursor < trace.checkpoints.size and trace.checkpoints[cursor] == t + 1:
            sums = reduce("add_up", np.zeros_like(trace.sums))
            trace.sums[:] = reduce("add_distances", sums)
            write_measures(trace, t, int(self.bounds[-1]))

    def collect(self, recorded: Sequence[Any], draws: Sequence[int]) -> tuple[Trace, int]:
        """Return the trace with what every partition recorded."""
        beliefs = np.concatenate([each[0] for each in recorded], axis=1)
        decisions = np.concatenate([each[1] for each in recorded], axis=1)
        return self.trace._replace(beliefs=beliefs, decisions=decisions), sum(draws)

    def arrays(self) -> Arrays:
        """Return the trace so far."""
        return name_arrays(_FIXED, trace=self.trace)


def _trace_maker(
    environment: TruthEnvironment, shape: tuple[int, int, int, int], run: Run
) -> Callable[[], Trace]:
    threshold, record = environment.threshold, run.record
    return partial(
        new_trace, shape, run.horizon, run.checkpoints, threshold=threshold, record=record
    )


def _have_one_mind(reports: Sequence[NDArray[np.int64] | None]) -> bool:
    """Return whether all are certain, in each group of one state; -1 is for a group without members."""
    sure = [each for each in reports if each is not None]
    if len(sure) < len(reports):
        return False
    certain = np.stack(sure)
    most = certain.max(axis=0)
    return bool(np.all((certain == most) | (certain < 0)))
