"""CLUB: users are cut into clusters that share all they learn.

After Gentile, Li, Zappella (2014), named as future work by Wang et al. (2020). Everybody begins in
one cluster; two users are joined as long as noise explains the difference between their own
estimates, and who is joined, by others too, is a cluster. Departures: distances are compared with
the variance that privatised reports leave, edges that were cut may return, and clusters are found
anew after 50 answers and then whenever there are three tenths more. It reads released reports
alone, so that the guarantee is LinUCB's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.learned_prior import CLUSTERS
from tacit.contextual.policies.learned_kernel import LearnedKernel
from tacit.contextual.ridge import Block
from tacit.core.constraints import require


@dataclass(frozen=True, kw_only=True)
class CLUB(LearnedKernel):
    """Linear upper confidence bounds, one for each cluster of users.

    Guarantee: as `privacy` says; finding clusters is post-processing of reports. Parameters are those of
    :class:`LearnedKernel`, except that `shared` has no meaning here. Somebody new is joined to all, and
    all clusters with it, until reports tell them apart.

    Examples
    --------
    >>> from tacit.contextual import CLUB
    >>> policy = CLUB(n_users=10, dimension=10, epsilon=2.0)
    >>> round(policy.guarantee(horizon=10_000).epsilon, 9)
    2.0

    References
    ----------
    Gentile, Li, Zappella. Online clustering of bandits. ICML 2014.
    """

    name: ClassVar[str] = "club"
    summary: ClassVar[str] = "users in clusters that are found from private reports"
    paper: ClassVar[str] = "004, future work"
    learns: ClassVar[int] = CLUSTERS

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "shared", "not given: clusters share all", self.shared is None, self.shared)

    @property
    def in_common(self) -> float:
        """Nothing beyond the cluster."""
        return 0.0

    def block(self, joined: Any, members: NDArray[np.int64]) -> Block:
        """Return the kernel of one cluster, in which it begins: K = 11'."""
        return Block(np.zeros(1, np.int64), members, np.ones((1, self.n_users)))
