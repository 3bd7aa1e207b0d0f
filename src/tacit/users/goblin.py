"""GOBLin: users whose preferences vary smoothly over a graph.

The graph Laplacian L pulls the parameters of joined users together: ridge regression with the user
kernel (I + L)^-1. Wang et al. (2020), section 5, after Cesa-Bianchi et al. (2013). The Laplacian is
that of the unweighted graph; on the complete graph the L2 sensitivity is sqrt(2 / (N + 1)), where the
paper has 2 / sqrt(N + 1); the corrected variant adds sound noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.users.policy import CollaborativePolicy

__all__ = ["GOBLin"]


@dataclass(frozen=True, kw_only=True)
class GOBLin(CollaborativePolicy):
    """Linear upper confidence bounds, users joined by a graph Laplacian.

    Guarantee: as `epsilon`, `variant` and `mechanism` say; see :class:`CollaborativePolicy`, which
    documents all parameters. By default each reward is privatised by itself, with pure epsilon,
    before the server sees it.

    Examples
    --------
    >>> from tacit.users import GOBLin
    >>> policy = GOBLin(n_users=10, dimension=10, epsilon=0.5)
    >>> policy.chosen_mechanism, round(policy.guarantee(horizon=10_000).epsilon, 9)
    ('bit', 0.5)

    References
    ----------
    Wang, Zhao, Wu, Chopra, Khaitan, Wang. Global and local differential privacy for collaborative
    bandits. RecSys 2020.
    """

    name: ClassVar[str] = "goblin"
    summary: ClassVar[str] = "users joined by a graph learn similar preferences"
    paper: ClassVar[str] = "004, section 5"

    def basis(
        self, weights: NDArray[np.float64], adjacency: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return (I + L)^(-1/2)."""
        symmetric = np.array_equal(adjacency, adjacency.T)
        require(self, "adjacency", "symmetric", symmetric, "one that is not")
        laplacian = np.diag(adjacency.sum(axis=1)) - adjacency
        values, vectors = np.linalg.eigh(np.eye(len(adjacency)) + laplacian)
        root: NDArray[np.float64] = (vectors / np.sqrt(values)) @ vectors.T
        return root
