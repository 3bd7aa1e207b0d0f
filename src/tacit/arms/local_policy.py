"""What policies on locally private feedback share: the corruption they hold and what it protects."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tacit.arms.corruption import Corruption, CorruptionSchedule, Feedback
from tacit.arms.policy import ArmsPolicy, S
from tacit.core.constraints import require
from tacit.privacy import (
    AsymmetricResponse,
    Claim,
    Guarantee,
    Mechanism,
    RandomizedResponse,
    compose,
)


class LocalPolicy(ArmsPolicy[S]):
    """A policy whose feedback is corrupted before it leaves its owner, or not at all.

    The device's half is `corruption_in_force`; the server's half is the kernel ``learn_from_report``,
    which learns from the corrupted feedback alone. In a simulation ``learn`` does both.

    Parameters
    ----------
    epsilon : float, optional
        Privacy of one reward, by the optimal randomized response. Without it, and without a
        `corruption`, rewards are observed as they are.
    corruption : Corruption, optional
        Any randomized response, one for all arms or one for each, instead of `epsilon`.
    exploration : "paper", "log" or function of t, default "paper"
        f, as in :class:`~tacit.arms.KLUCB`.
    """

    protects: ClassVar[str] = "each reward, locally, if epsilon is given"
    epsilon: float | None
    corruption: Corruption | None = None

    @property
    def corruption_in_force(self) -> Corruption | None:
        """The corruption, or None if the reward itself is observed."""
        return self.corruption if self.epsilon is None else Corruption.optimal(self.epsilon)

    @property
    def schedule_in_force(self) -> CorruptionSchedule | None:
        """When which corruption is in force; None if the reward itself is observed."""
        corruption = self.corruption_in_force
        return None if corruption is None else CorruptionSchedule(corruptions=(corruption,))

    @property
    def feedback(self) -> Feedback:
        """What the kernels need of it."""
        corruption = self.corruption_in_force
        if corruption is None:
            return Feedback(0, np.array([[0.0, 1.0]]))
        rows = self.n_arms if len(corruption.values) > 1 else 1
        return Feedback(1, corruption.response_probabilities(rows))

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The responses of the arms, each kind once; one that never flips is no mechanism."""
        schedule = self.schedule_in_force
        if schedule is None:
            return ()
        if self.epsilon is not None:
            return (RandomizedResponse(epsilon=self.epsilon),)
        rows = dict.fromkeys(
            map(tuple, schedule.response_probabilities(self.n_arms).reshape(-1, 2).tolist())
        )
        return tuple(
            AsymmetricResponse(keep_one=one, keep_zero=1.0 - zero)
            for zero, one in rows
            if 0.0 < zero < 1.0 and 0.0 < one < 1.0
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        one = self.epsilon is None or self.corruption is None
        require(self, "epsilon or corruption", "given, not both", one, self.epsilon)
        if self.corruption is not None:
            self.corruption.response_probabilities(self.n_arms)

    def local_guarantee(self, claim: Claim | None = None) -> Guarantee:
        """Return what the corruption protects: each reward on its own."""
        schedule = self.schedule_in_force
        if schedule is None:
            return Guarantee.none(f"{type(self).__name__} without corruption adds no noise")
        return compose(
            [(schedule.release(self.n_arms), 1)],
            unit="reward",
            trust="local",
            span="run",
            claim=claim,
            note="Each reward is corrupted once, before it leaves its owner",
        )

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon for each reward; without corruption a guarantee that protects nothing."""
        return self.local_guarantee()
