"""GOBLin: users whose preferences vary smoothly over a graph.

The graph Laplacian L pulls the parameters of joined users together: ridge regression with the user
kernel (I + L)^-1. Wang et al. (2020), section 5, after Cesa-Bianchi et al. (2013). On the complete
graph the L2 sensitivity is sqrt(2 / (N + 1)), where the paper has 2 / sqrt(N + 1). The width of
equation 5 is given for lambda = 1; here it is for any, and log(1 / delta) has the factor 2 that the
theorem behind it (Abbasi-Yadkori et al. 2011) has. `Published` is the paper's noise, and every other
noise is sound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.model import EQUATION_5
from tacit.contextual.policy import CollaborativePolicy
from tacit.contextual.ridge import Block
from tacit.core.constraints import require


@dataclass(frozen=True, kw_only=True)
class GOBLin(CollaborativePolicy):
    """Linear upper confidence bounds, users joined by a graph Laplacian.

    Guarantee: as `privacy` says; see :class:`CollaborativePolicy`, which documents all parameters
    but one. With `epsilon` alone each reward is privatised by itself, with pure epsilon, before the
    server sees it.

    Parameters
    ----------
    weighted : bool, default False
        Whether the Laplacian has the weights of the edges; the paper's has none.

    Examples
    --------
    >>> from tacit.contextual import GOBLin
    >>> policy = GOBLin(n_users=10, dimension=10, epsilon=0.5)
    >>> policy.protection.chosen, round(policy.guarantee(horizon=10_000).epsilon, 9)
    ('bit', 0.5)

    References
    ----------
    Wang, Zhao, Wu, Chopra, Khaitan, Wang. Global and local differential privacy for collaborative
    bandits. RecSys 2020.
    """

    name: ClassVar[str] = "goblin"
    summary: ClassVar[str] = "users joined by a graph learn similar preferences"
    paper: ClassVar[str] = "004, section 5"
    joined_by: ClassVar[str] = "graph"
    width: ClassVar[int] = EQUATION_5

    weighted: bool = False

    def groups(self, joined: Any) -> Sequence[NDArray[np.int64]]:
        """Return the components of the graph."""
        from tacit.graphs import components, from_scipy

        symmetric = (joined != joined.T).nnz == 0
        require(self, "graph", "symmetric", symmetric, "one that is not")
        joined.setdiag(0.0)
        joined.eliminate_zeros()
        labels = components(from_scipy(joined, directed=False, weighted=True))
        return [np.flatnonzero(labels == label) for label in range(int(labels.max()) + 1)]

    def block(self, joined: Any, members: NDArray[np.int64]) -> Block:
        """Return G^(-1/2) with G = I + L (section 5.1)."""
        from tacit.graphs import from_scipy, sparse_laplacian

        graph = from_scipy(joined[members][:, members], directed=False, weighted=True)
        G = np.eye(len(members)) + sparse_laplacian(graph, weighted=self.weighted).toarray()
        values, vectors = np.linalg.eigh(G)
        return Block(members, members, (vectors / np.sqrt(values)) @ vectors.T)

    def size_of_parameters(self, joined: Any) -> float:
        """Return the length of G^(1/2) theta for parameters of length at most 1.

        Its square is the sum of all squared lengths and of all squared differences over an edge,
        each at most 4 times the weight. Equation 5 has the sum of the roots, which is more.
        """
        edges = joined.data.sum() if self.weighted else joined.nnz
        return math.sqrt(self.n_users + 2.0 * float(edges))
