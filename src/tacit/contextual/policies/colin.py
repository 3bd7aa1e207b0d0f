"""CoLin: users whose rewards are mixtures of their neighbours' preferences.

A relational matrix W says how much of every user's taste goes into a user's reward, so that each
reward teaches something about all of them. Wang et al. (2020), Algorithms 1 and 2, after Wu et al.
(2016). Contexts are spread by column u of W, as equation 2 has it (Lemma 1 says row, which agrees for
symmetric W only); Algorithm 2 forgets an inverse in line 5; `Published` is the paper's noise, and
every other noise is sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.model import LEMMA_2
from tacit.contextual.policy import CollaborativePolicy
from tacit.contextual.ridge import Block, find_groups
from tacit.core.constraints import require


@dataclass(frozen=True, kw_only=True)
class CoLin(CollaborativePolicy):
    """Linear upper confidence bounds, users joined by a relational matrix.

    Guarantee: as `privacy` says; see :class:`CollaborativePolicy`, which documents all parameters.
    With `epsilon` alone each reward is privatised by itself, with pure epsilon, before the server
    sees it.

    Examples
    --------
    >>> from tacit.contextual import CoLin, Published
    >>> policy = CoLin(n_users=10, dimension=10, epsilon=2.0)
    >>> policy.protection.chosen, round(policy.guarantee(horizon=10_000).epsilon, 9)
    ('piecewise', 2.0)
    >>> paper = Published(epsilon=2.0, trust="central", horizon=10_000)
    >>> policy = CoLin(n_users=10, dimension=10, privacy=paper)
    >>> round(policy.guarantee(horizon=10_000).epsilon, 1)
    30.4

    References
    ----------
    Wang, Zhao, Wu, Chopra, Khaitan, Wang. Global and local differential privacy for collaborative
    bandits. RecSys 2020.
    """

    name: ClassVar[str] = "colin"
    summary: ClassVar[str] = "users joined by a relational matrix learn together"
    paper: ClassVar[str] = "004, Algorithms 1 and 2"
    joined_by: ClassVar[str] = "weights"
    width: ClassVar[int] = LEMMA_2

    def groups(self, joined: Any) -> Sequence[NDArray[np.int64]]:
        """Return users whose columns of W share a row, which meet in W'W."""
        sums = np.abs(joined.sum(axis=0) - 1.0)
        require(self, "weights", "with columns that sum to one", sums.max() < 1e-9, sums.max())
        return list(find_groups(joined))

    def block(self, joined: Any, members: NDArray[np.int64]) -> Block:
        """Return W (line 4 of Algorithm 1)."""
        columns = joined[:, members]
        rows = np.unique(columns.nonzero()[0])
        return Block(rows, members, columns[rows].toarray())
