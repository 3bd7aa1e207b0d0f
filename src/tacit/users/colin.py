"""CoLin: users whose rewards are mixtures of their neighbours' preferences.

A relational matrix W says how much of every user's taste goes into a user's reward, so that each
reward teaches something about all of them. Wang et al. (2020), Algorithms 1 and 2, after Wu et al.
(2016). Contexts are spread by column u of W, as equation 2 has it (Lemma 1 says row, which agrees for
symmetric W only); Algorithm 2 forgets an inverse in line 5; the corrected variant adds sound noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.users.policy import CollaborativePolicy

__all__ = ["CoLin"]


@dataclass(frozen=True, kw_only=True)
class CoLin(CollaborativePolicy):
    """Linear upper confidence bounds, users joined by a relational matrix.

    Guarantee: as `epsilon`, `variant` and `mechanism` say; see :class:`CollaborativePolicy`, which
    documents all parameters. By default each reward is privatised by itself, with pure epsilon,
    before the server sees it.

    Examples
    --------
    >>> from tacit.users import CoLin
    >>> policy = CoLin(n_users=10, dimension=10, epsilon=2.0)
    >>> policy.chosen_mechanism, policy.guarantee(horizon=10_000).epsilon
    ('piecewise', 2.0)
    >>> paper = CoLin(n_users=10, dimension=10, epsilon=2.0, variant="published", trust="central",
    ...               horizon=10_000)
    >>> round(paper.guarantee(horizon=10_000).epsilon, 1)
    30.4

    References
    ----------
    Wang, Zhao, Wu, Chopra, Khaitan, Wang. Global and local differential privacy for collaborative
    bandits. RecSys 2020.
    """

    name: ClassVar[str] = "colin"
    summary: ClassVar[str] = "users joined by a relational matrix learn together"
    paper: ClassVar[str] = "004, Algorithms 1 and 2"

    def basis(
        self, weights: NDArray[np.float64], adjacency: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return W."""
        worst = float(np.abs(weights.sum(axis=0) - 1.0).max())
        require(self, "weights", "with columns that sum to one", worst < 1e-9, worst)
        require(self, "weights", ">= 0", bool(weights.min() >= 0), float(weights.min()))
        return weights
