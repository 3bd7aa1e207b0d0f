"""DP-SE: private successive elimination without a graph.

Pull every active arm equally often, double the precision from phase to phase, noise the means of the
phase and drop the arms that are clearly worse; when one arm is left, pull it for ever. Sajed and Sheffet
(2019), Algorithm 2.

Its phases are those of GAP on a graph without edges, with one more pull of each arm, so the kernels are
GAP's; rewards of neighbours, where an environment shows them, are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.arms.elimination import WANTED, PrivateElimination
from tacit.arms.policies.gap import begin, learn, n_active, phases, select_in_phases
from tacit.arms.policy import Kernels
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
    epsilon : float
        Privacy of one reward.

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
    extra: ClassVar[int] = 1
    kernels: ClassVar[Kernels] = Kernels(
        select=select_in_phases(new_phase), learn=learn, run=phases(new_phase)
    )
