"""Block sums: where the noise of central policies enters.

A policy that trusts its server needs one thing of it: the sum of one arm's block of rewards, privately.
A block is a set of rewards of one arm; every reward lies in at most one block; when a block ends may depend
on decisions and counts, never on the rewards in it. Each block is released once, with noise for what
one unit (a reward, or all rewards of a round) can change in it. Everything later is post-processing, so
the privacy of one release is the privacy of the whole run, whatever the number of blocks.

`TrustedServer` adds Laplace noise to the sum. Whatever else can stand behind the interface (a
shuffler, secure aggregation) says its own guarantee.

On a secure tape rewards are quantised to multiples of 2^-20 as they come in (`on_grid`), so that sums are
exact whatever their order, up to 2^33 rewards, and discrete Laplace noise on a grid hides them exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.core.constraints import Positive, check, one_of
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, SECURE
from tacit.privacy.guarantees import Claim, Guarantee, compose
from tacit.privacy.mechanisms import Mechanism
from tacit.privacy.mechanisms.laplace import Laplace, release_laplace

_STEPS = 2.0**20


@dataclass(frozen=True, kw_only=True)
class BlockSums(ABC):
    """How the learner comes to know the sum of a block, and what that protects."""

    trust: ClassVar[str]
    epsilon: Positive
    unit: Annotated[str, one_of("reward", "round")] = "reward"

    def __post_init__(self) -> None:
        check(self)

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What makes one released sum private, in units of what one record changes."""

    def guarantee(self, claim: Claim | None = None) -> Guarantee:
        """Return what is protected however many blocks are released.

        Examples
        --------
        >>> TrustedServer(epsilon=0.5, unit="round").guarantee().epsilon
        0.5
        """
        return compose(
            [(self.mechanism.release, 1)],
            unit=self.unit,
            trust=self.trust,
            span="run",
            basis="theorem",
            claim=claim,
            note="Decisions and noised sums are covered; each reward enters one of them",
            not_protected=("sending", "others", "server", "sums"),
        )


@dataclass(frozen=True, kw_only=True)
class TrustedServer(BlockSums):
    """A server that sees every reward and adds Laplace noise to every sum it releases.

    Guarantee: pure `epsilon` for one unit over the whole run.
    """

    trust: ClassVar[str] = "central"

    @property
    def mechanism(self) -> Laplace:
        """Laplace noise of scale 1 / epsilon, in units of what one record changes."""
        return Laplace(epsilon=self.epsilon)


@kernel
def on_grid(tape: Any, reward: Any) -> Any:
    """Return the reward, on a secure tape rounded to a multiple of 2^-20."""
    return np.rint(reward * _STEPS) / _STEPS if tape.kind == SECURE else reward


@kernel
def release_sum(tape: Any, t: Any, arm: Any, total: Any, sensitivity: Any, epsilon: Any) -> Any:
    """Release the sum of a block in which one unit changes at most `sensitivity`."""
    return release_laplace(tape, t, arm, NOISE, total, sensitivity, epsilon)


@kernel
def release_mean(
    tape: Any, t: Any, arm: Any, total: Any, count: Any, least: Any, epsilon: Any
) -> Any:
    """Release the mean of `count` rewards as if they were `least`, at most `count`."""
    if tape.kind == SECURE:
        return release_laplace(tape, t, arm, NOISE, total, count / least, epsilon) / count
    return release_laplace(tape, t, arm, NOISE, total / count, 1.0 / least, epsilon)
