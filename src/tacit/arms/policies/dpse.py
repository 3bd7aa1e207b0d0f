"""DP-SE: private successive elimination without a graph.

Pull every active arm equally often, double the precision from phase to phase, noise the means of the
phase and drop the arms that are clearly worse; when one arm is left, pull it for ever. Sajed and Sheffet
(2019), Algorithm 2.

Its phases are those of GAP on a graph without edges, with one more pull of each arm, so the kernels are
GAP's; rewards of neighbours, where an environment shows them, are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tacit.arms.elimination import WANTED, Params, PrivateElimination, State
from tacit.arms.environments.graph_feedback import closed_rows
from tacit.arms.policies.gap import begin, deciding, learn, n_active, phases
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.kernels import kernel

_FOR_EVER = 1 << 62


@kernel
def new_phase(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Explore all active arms; the last one left is never judged again."""
    for a in range(state.active.size):
        state.chosen[a] = state.active[a]
    begin(params, state, t)
    if n_active(state.active) == 1:
        state.now[WANTED] = _FOR_EVER


@dataclass(frozen=True, kw_only=True)
class DPSE(PrivateElimination):
    """Eliminate arms by noised means, each arm showing its own reward only.

    Guarantee: pure differential privacy with `epsilon` for one round, of which one reward is seen,
    over the whole run; the server is trusted.

    Parameters
    ----------
    n_arms : int
        Number of arms K.
    epsilon : float
        Privacy of one reward.
    horizon : int
        Number of rounds T, for the failure probability.
    failure_prob : float, optional
        Probability with which the confidence bounds may fail; 1/T if not given.

    Examples
    --------
    >>> from tacit.arms import DPSE
    >>> DPSE(n_arms=3, epsilon=0.5, horizon=1000).guarantee(1000).epsilon
    0.5

    References
    ----------
    Sajed, Sheffet. An optimal private stochastic-MAB algorithm based on optimal private stopping
    rule. ICML 2019.
    """

    name: ClassVar[str] = "dpse"
    summary: ClassVar[str] = "private successive elimination, no graph"
    protects: ClassVar[str] = "each reward; trusts the server"
    paper: ClassVar[str] = "Sajed and Sheffet 2019, Algorithm 2"
    why: ClassVar[str] = "every reward enters the noised mean of one arm in one phase"
    kernels: ClassVar[Kernels] = Kernels(
        select=deciding(new_phase), learn=learn, run=phases(new_phase)
    )

    @property
    def unit(self) -> str:
        """A round, of which one reward is seen."""
        return "round"

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(float(self.epsilon), self.confidence_loss, 0, 0, 1, np.arange(self.n_arms))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        return self._empty(closed_rows(self.n_arms))
