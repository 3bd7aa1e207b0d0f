"""Factorised: all users' preferences are mixtures of a few, which are learned from the reports.

Factorisation bandits learn few factors instead of every user's parameters (Wang et al. 2017, named
as future work by Wang et al. 2020). Here contexts are given, so that factors are directions of
their space: the parameters of a user are normal with a covariance of a few free directions and the
same small variance in all others, learned by expectation maximisation from what the privatised
reports add up to (probabilistic principal components). Learning reads released reports alone, so
that the guarantee is LinUCB's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.contextual.learned_prior import FACTORS
from tacit.contextual.policies.learned_kernel import LearnedKernel
from tacit.core.constraints import Count


@dataclass(frozen=True, kw_only=True)
class Factorised(LearnedKernel):
    """Linear upper confidence bounds, parameters made of a few factors that are learned.

    Guarantee: as `privacy` says; learning factors is post-processing of reports. Parameters and costs
    are those of :class:`LearnedKernel`, and one more.

    Parameters
    ----------
    rank : int, default 3
        How many factors.

    Examples
    --------
    >>> from tacit.contextual import Factorised
    >>> policy = Factorised(n_users=10, dimension=10, epsilon=2.0)
    >>> round(policy.guarantee(horizon=10_000).epsilon, 9)
    2.0

    References
    ----------
    Tipping, Bishop. Probabilistic principal component analysis. 1999.
    """

    name: ClassVar[str] = "factorised"
    summary: ClassVar[str] = "preferences are mixtures of a few, learned from private reports"
    paper: ClassVar[str] = "004, future work"
    learns: ClassVar[int] = FACTORS

    rank: Count = 3

    @property
    def factors(self) -> int:
        """The rank, as far as there are so many features."""
        return min(self.rank, self.dimension)
