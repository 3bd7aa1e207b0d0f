"""Replay by rejection: a policy learns from the logged decisions that it would have made itself.

Li, Chu, Langford and Wang (2011). The policy chooses; the log is read on to the next decision that shows that
arm; its reward is the policy's. Of a log with unequal chances a decision is taken with a probability in
inverse proportion to its chance, so that what is read is as if all arms had been shown alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.tapes import seeded_tape
from tacit.simulation.evaluation.log import Log

_THINNING = 13


@dataclass(frozen=True)
class Replay:
    """The rounds that a policy played from a log."""

    arms: NDArray[np.int64]
    rewards: NDArray[np.float64]
    rows: NDArray[np.int64]
    """Which decision of the log each round used, increasing."""

    @property
    def value(self) -> float:
        """Mean reward a round."""
        return float(self.rewards.mean()) if len(self.rewards) else float("nan")


def replay(log: Log, policy: Any, *, seed: int = 0, rounds: int | None = None) -> Replay:
    """Play an arms policy from a log until the log, or the number of rounds, ends.

    Parameters
    ----------
    log : Log
    policy : ArmsPolicy
        With as many arms as the log.
    seed : int, default 0
        Of the policy's own draws, its privacy noise among them.
    rounds : int, optional
        At most so many; a policy with a horizon is not played past it.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> rng = np.random.default_rng(1)
    >>> arms = rng.integers(0, 2, 2000)
    >>> log = Log(arms=arms, rewards=rng.random(2000) < 0.2 + 0.6 * arms, propensities=[0.5] * 2000)
    >>> found = replay(log, UCB1(n_arms=2))
    >>> len(found.rows) > 800, bool(found.arms.mean() > 0.9)
    (True, True)
    """
    setting = getattr(policy, "setting", "")
    require("replay", "policy", "of the setting arms", setting == "arms", setting)
    require(
        "replay",
        "n_arms",
        f"{log.n_arms} as in the log",
        policy.n_arms == log.n_arms,
        policy.n_arms,
    )
    taken = np.flatnonzero(_kept(log, seed))
    waiting = [taken[log.arms[taken] == arm] for arm in range(log.n_arms)]
    limit = min(rounds or len(taken), getattr(policy, "horizon", None) or len(taken))
    state, tape = policy.start(None), seeded_tape(seed)
    eligible = np.arange(log.n_arms)
    at, rows, arms = -1, [], []
    for t in range(limit):
        arm = policy.select(state, tape, t, eligible)
        ahead = waiting[arm]
        place = int(np.searchsorted(ahead, at, side="right"))
        if place == len(ahead):
            break
        at = int(ahead[place])
        policy.update(state, tape, t, arm, float(log.rewards[at]))
        rows.append(at)
        arms.append(arm)
    used = np.array(rows, np.int64)
    return Replay(np.array(arms, np.int64), log.rewards[used], used)


def _kept(log: Log, seed: int) -> NDArray[np.bool_]:
    if log.uniform:
        return np.ones(len(log), bool)
    rng = np.random.Generator(np.random.Philox(key=[seed, _THINNING]))
    kept: NDArray[np.bool_] = rng.random(len(log)) < log.propensities.min() / log.propensities
    return kept
