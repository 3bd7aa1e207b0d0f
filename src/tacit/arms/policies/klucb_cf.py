"""klUCB-CF: kl-UCB on feedback that was corrupted on the way.

Each person's reward is corrupted before it leaves them; randomized response makes that locally private.
The learner bounds each arm's mean *feedback* by a Kullback-Leibler confidence interval and maps the bound
back through the corruption function. Gajane, Urvoy and Kaufmann (2018), Algorithm 1; indices are
clipped to [0, 1] and ties are broken at random. The kernels are kl-UCB's, on feedback.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tacit.arms.corruption import Corruption
from tacit.arms.klucb_index import ExplorationFunction, probabilities, tabulate_exploration
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import local_kernels
from tacit.arms.policies.klucb import Params, State, count, new_state, select
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.privacy.mechanisms import Epsilon


@dataclass(frozen=True, kw_only=True)
class KLUCBCF(LocalPolicy[State]):
    """kl-UCB on corrupted feedback.

    Guarantee: pure local differential privacy with `epsilon` for each single reward.

    Parameters
    ----------
    epsilon : float, optional
        Privacy of one reward, by the optimal randomized response; 1 if no `corruption` is given.

    Examples
    --------
    >>> from tacit.arms import KLUCBCF
    >>> round(KLUCBCF(n_arms=2, epsilon=0.5).guarantee(horizon=10).epsilon, 9)
    0.5

    References
    ----------
    Gajane, Urvoy, Kaufmann. Corrupt bandits for preserving local privacy. 2018.
    """

    name: ClassVar[str] = "klucb-cf"
    summary: ClassVar[str] = "kl-UCB on locally private feedback, unchanging environment"
    paper: ClassVar[str] = "Gajane et al. 2018"
    protects: ClassVar[str] = "each reward, locally"
    kernels: ClassVar[Kernels] = local_kernels(select, count, probabilities=probabilities)

    epsilon: Epsilon | None = None
    corruption: Corruption | None = None
    exploration: ExplorationFunction = "paper"

    def __post_init__(self) -> None:
        if self.epsilon is None and self.corruption is None:
            object.__setattr__(self, "epsilon", 1.0)
        super().__post_init__()
        _ = self.params

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(tabulate_exploration(self, self.exploration), self.feedback)

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        return new_state(self.n_arms)
