"""A policy at work: decide for real users, learn from what they answer.

The kernels are the simulator's. Rewards may come late, in batches or never; some arms may be out of
stock; the state survives a restart. Without a seed, noise comes from a secure tape whose secret key
lives in memory only: after a restart a new one is drawn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.arms.policy import ArmsPolicy
from tacit.checks import require
from tacit.compiled import bound
from tacit.policy import require_secure
from tacit.state import load, save
from tacit.tapes import Tape, secure_tape, seeded_tape

__all__ = ["Decision", "Learner"]

_MAX_OPEN = 1_000_000


class Decision(NamedTuple):
    """The arm chosen in a round; give it back with the reward."""

    round: int
    arm: int


class Learner:
    """Decide one step at a time with any policy of the arms setting.

    Parameters
    ----------
    policy : ArmsPolicy
    seed : int, optional
        For experiments that must repeat. Without it randomness is the operating system's, and
        only then does the policy's guarantee hold against someone who knows the code.

    Examples
    --------
    >>> from tacit.arms import KLUCBCF, Learner
    >>> learner = Learner(KLUCBCF(n_arms=3, epsilon=1.0), seed=7)
    >>> first = learner.select()
    >>> second = learner.select(eligible=[0, 2])   # decisions may overlap ...
    >>> learner.update(second, 1.0)                # ... and rewards come in any order
    >>> learner.update(first, 0.0)
    >>> learner.rounds
    2
    """

    def __init__(self, policy: ArmsPolicy, *, seed: int | None = None) -> None:
        fits = isinstance(policy, ArmsPolicy)
        require("Learner", "policy", "of the arms setting", fits, policy)
        if seed is None:
            require_secure(policy)
        self.policy = policy
        self.seed = seed
        self.rounds = 0
        self._state: Any = policy.start(None)
        self._tape: Tape = secure_tape() if seed is None else seeded_tape(seed)
        self._open: dict[int, int] = {}
        self._everyone = np.arange(policy.n_arms)
        self._lock = threading.Lock()
        self._rule: Any = policy.rule
        common = (self._rule, self._state, self._tape, 0)
        self._act = bound(type(policy).act, *common, self._everyone)
        self._learn = bound(type(policy).learn, *common, 0, 0.0)

    @property
    def numerics(self) -> str:
        """``secure`` or ``research``: where the noise comes from."""
        return "secure" if self.seed is None else "research"

    @property
    def noise_draws(self) -> int:
        """How many draws of privacy noise were used."""
        return int(self._tape.reads[1])

    @property
    def open_decisions(self) -> int:
        """How many decisions still wait for their reward."""
        return len(self._open)

    def select(self, eligible: Sequence[int] | None = None) -> Decision:
        """Choose an arm, among `eligible` ones if given."""
        arms = self._everyone if eligible is None else self._checked(eligible)
        with self._lock:
            t = self.rounds
            arm = int(self._act(self._rule, self._state, self._tape, t, arms))
            self.rounds = t + 1
            self._open[t] = arm
            if len(self._open) > _MAX_OPEN:
                del self._open[next(iter(self._open))]
        return Decision(t, arm)

    def update(
        self, decision: Decision, reward: float, seen: Mapping[int, float] | None = None
    ) -> None:
        """Learn the reward of an earlier decision, in [0, 1]; each decision counts once.

        With a feedback graph, `seen` gives the rewards of the other arms that were shown with it.
        """
        t, arm = decision
        if seen is not None:
            self.policy.require_shown(arm, seen)
        rewards = {arm: reward, **(seen or {})}
        for observed, value in rewards.items():
            try:
                fits = 0 <= observed < self.policy.n_arms and 0.0 <= value <= 1.0
            except TypeError:
                fits = False
            if not fits:
                raise ValueError(
                    f"Learner: expected reward in [0, 1] of an arm in 0..{self.policy.n_arms - 1}, "
                    f"got {value!r} of arm {observed} in round {t}"
                )
        with self._lock:
            if self._open.get(t) != arm:
                raise ValueError(f"Learner: decision {tuple(decision)} is not waiting for a reward")
            del self._open[t]
            for observed in sorted(rewards):
                value = float(rewards[observed])
                self._learn(self._rule, self._state, self._tape, t, observed, value)

    def update_many(self, feedback: Iterable[tuple[Decision, float]]) -> None:
        """Learn a batch of rewards."""
        for decision, reward in feedback:
            self.update(decision, reward)

    def save(self, path: str | Path) -> None:
        """Write everything learned to `path`; the key of a secure tape is not among it."""
        with self._lock:
            about = {
                "policy": repr(self.policy),
                "seed": self.seed,
                "rounds": self.rounds,
                "reads": self._tape.reads.tolist(),
                "open": list(self._open.items()),
            }
            save(path, self._state, about)

    @classmethod
    def load(cls, path: str | Path, policy: ArmsPolicy) -> Learner:
        """Return the learner saved at `path`; `policy` must be the one it was saved with."""
        state, about = load(path, policy.start(None))
        if about["policy"] != repr(policy):
            raise ValueError(f"{path}: expected {about['policy']}, got {policy!r}")
        learner = cls(policy, seed=about["seed"])
        learner.rounds = int(about["rounds"])
        learner._state = state
        learner._tape.reads[:] = about["reads"]
        learner._open = {int(t): int(arm) for t, arm in about["open"]}
        return learner

    def _checked(self, eligible: Sequence[int]) -> Any:
        arms = np.unique(np.asarray(eligible))
        whole = arms.size > 0 and arms.dtype.kind in "iu"
        if not whole or arms[0] < 0 or arms[-1] >= self.policy.n_arms:
            raise ValueError(
                f"Learner: expected eligible arms in 0..{self.policy.n_arms - 1}, got {eligible!r}"
            )
        return arms.astype(np.int64)
