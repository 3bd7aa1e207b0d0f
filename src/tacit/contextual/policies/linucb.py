"""LinUCB: every user learns alone.

The upper confidence bound of a ridge regression for each user, nothing shared. It is the yardstick
for CoLin and GOBLin: the same update with the identity for the user kernel. Li et al. (2010); its
private form as one dN-dimensional tree is the DP-LinUCB of Wang et al. (2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.model import LEMMA_2
from tacit.contextual.policy import CollaborativePolicy
from tacit.contextual.ridge import Block


@dataclass(frozen=True, kw_only=True)
class LinUCB(CollaborativePolicy):
    """A linear upper confidence bound for each user by itself.

    Guarantee: as `privacy` says; see :class:`CollaborativePolicy`, which documents all parameters.

    Examples
    --------
    >>> from tacit.contextual import LinUCB
    >>> round(LinUCB(n_users=10, dimension=5, epsilon=2.0).guarantee(horizon=1000).epsilon, 9)
    2.0

    References
    ----------
    Li, Chu, Langford, Schapire. A contextual-bandit approach to personalized news article
    recommendation. 2010.
    """

    name: ClassVar[str] = "linucb"
    summary: ClassVar[str] = "a linear upper confidence bound for each user by itself"
    paper: ClassVar[str] = "004, baseline"
    width: ClassVar[int] = LEMMA_2

    @property
    def spread_over(self) -> int:
        """How many coordinates of b one reward may change: those of its user."""
        return self.dimension

    def groups(self, joined: Any) -> Sequence[NDArray[np.int64]]:
        """Return everybody alone."""
        return [np.array([user]) for user in range(self.n_users)]

    def block(self, joined: Any, members: NDArray[np.int64]) -> Block:
        """Return the identity: nobody learns from anybody else."""
        return Block(members, members, np.eye(1))
