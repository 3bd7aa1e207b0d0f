"""GAPU: GAP with a random independent set.

The same phases, noise and elimination as GAP; only the set that a phase explores is drawn uniformly
instead of greedily by mean, which shows what the greedy choice is worth. Paper 002, Section 5.2.

The paper draws from all independent sets. From those an arm may go unobserved, so that its mean does
not exist; this draws from the *maximal* independent sets. Where a connected part of the active graph
has more than 62 arms or 100,000 maximal sets, each is still possible but not equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.arms.elimination import GRAPH, GraphElimination, State, serve
from tacit.arms.policies.gap import begin, learn, phases, select_in_phases
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.kernels import kernel
from tacit.core.tapes import SUBSET, uniform
from tacit.graphs.independent import uniform_independent_set, work_size


@kernel(inlined=False)
def uniform_set(state: Any, tape: Any, t: Any) -> None:
    """Draw one of the maximal independent sets of the active arms."""
    K, g = state.active.size, state.now[GRAPH]
    for a in range(K):  # the new phase clears the sums anyway
        if state.active[a]:
            state.sums[a] = uniform(tape, t, a, SUBSET)
    indptr = state.indptr[g * (K + 1) : (g + 1) * (K + 1)]
    uniform_independent_set(
        indptr, state.indices, state.active, state.sums, state.chosen, state.work
    )


@kernel
def new_phase(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Draw the set to explore and begin."""
    uniform_set(state, tape, t)
    begin(params, state, t)


@dataclass(frozen=True, kw_only=True)
class GAPU(GraphElimination):
    """Eliminate arms by noised means, exploring a random maximal independent set.

    Guarantee: that of :class:`~tacit.arms.GAP`; the set is drawn without looking at any reward.

    Parameters
    ----------
    unit : "reward" or "round", default "reward"
        What is protected, as for GAP.
    noise : "published" or "tight", default "published"
        The scale of the noise, as for GAP.

    Examples
    --------
    >>> from tacit.arms import GAPU
    >>> GAPU(n_arms=3, epsilon=0.5, horizon=1000).guarantee(1000).epsilon
    0.5

    References
    ----------
    Lu, Wang, Qiu, Zhang. Differentially private algorithm for graphical bandits. Journal of
    Software 33(9), 2022 (in Chinese).
    """

    name: ClassVar[str] = "gapu"
    summary: ClassVar[str] = "GAP with uniformly drawn independent sets, to compare"
    paper: ClassVar[str] = "002, Section 5.2"
    kernels: ClassVar[Kernels] = Kernels(
        select=select_in_phases(new_phase), learn=learn, run=phases(new_phase), serve=serve
    )

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing, with room to enumerate sets in."""
        room = np.zeros(work_size(self.n_arms), np.int64)
        return super().start(table)._replace(work=room)
