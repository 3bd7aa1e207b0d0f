"""LearnedKernel: who resembles whom is learned from the reports, nobody has to tell.

CoLin is told a relational matrix, GOBLin a graph. Where neither is known, the parameters of all
users are taken to be normal with covariance K (x) Sigma, and both are learned by expectation
maximisation from what the privatised reports add up to: after 50 answers and then whenever there
are three tenths more, five steps each. In between it is LinUCB with the kernel of the moment.
Learning reads released reports alone, so that the guarantee is LinUCB's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.learned_prior import KERNEL
from tacit.contextual.model import CONSTANT
from tacit.contextual.policy import CollaborativePolicy, Theory
from tacit.contextual.privacy import NoisySums, Published
from tacit.contextual.ridge import Block
from tacit.core.constraints import require


@dataclass(frozen=True, kw_only=True)
class LearnedKernel(CollaborativePolicy):
    """Linear upper confidence bounds, users joined by a kernel that is learned.

    Guarantee: as `privacy` says; learning the kernel is post-processing of reports. See
    :class:`CollaborativePolicy`, which documents all parameters; `privacy` is `PerReward`, `Residual`
    or None, `exploration` a number, and `shared` (by default 1) the weight of what users have in
    common in the kernel it begins with, I + shared 11'.

    A step costs the cube of the number of parameters, N d: milliseconds for a hundred, seconds for
    two thousand.

    Examples
    --------
    >>> from tacit.contextual import LearnedKernel
    >>> policy = LearnedKernel(n_users=10, dimension=10, epsilon=2.0)
    >>> round(policy.guarantee(horizon=10_000).epsilon, 9)
    2.0

    References
    ----------
    Dempster, Laird, Rubin. Maximum likelihood from incomplete data via the EM algorithm. 1977.
    """

    name: ClassVar[str] = "learned-kernel"
    summary: ClassVar[str] = "who resembles whom is learned from private reports"
    paper: ClassVar[str] = "004, without its W"
    protects: ClassVar[str] = "each reward, if epsilon is given"
    learns: ClassVar[int] = KERNEL
    width: ClassVar[int] = CONSTANT

    def __post_init__(self) -> None:
        super().__post_init__()
        single = not isinstance(self.privacy, NoisySums | Published)
        require(self, "privacy", "PerReward, Residual or None", single, self.privacy)
        constant = not isinstance(self.exploration, Theory)
        require(self, "exploration", "a number: there is no theorem", constant, self.exploration)

    @property
    def in_common(self) -> float:
        """The weight of 11' that learning begins with."""
        return 1.0 if self.shared is None else float(self.shared)

    def groups(self, joined: Any) -> Sequence[NDArray[np.int64]]:
        """Return everybody in one group: anybody may turn out to resemble anybody."""
        return [np.arange(self.n_users)]

    def block(self, joined: Any, members: NDArray[np.int64]) -> Block:
        """Return the identity."""
        return Block(members, members, np.eye(self.n_users))
