"""One answer from a log: what a policy learns from its first half, and what that would earn in the second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.simulation.evaluation.estimates import (
    Estimate,
    doubly_robust,
    importance_weighted,
    mean_rewards,
    self_normalised,
)
from tacit.simulation.evaluation.log import Log
from tacit.simulation.evaluation.replay import replay


@dataclass(frozen=True)
class Evaluation:
    """What was estimated of one policy."""

    policy: str
    shares: NDArray[np.float64]
    """With which probability it shows each arm, once it has learned."""
    rounds: int
    """How many decisions of the first half it could learn from."""
    estimates: tuple[Estimate, ...]
    """Replay of the whole log, then IPS, SNIPS and DR of `shares` on the second half."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each estimate, for a table."""
        return [
            {
                "policy": self.policy,
                "estimate": each.method,
                "reward": each.value,
                "low": each.low,
                "high": each.high,
                "decisions": each.n,
                "effective": each.effective,
            }
            for each in self.estimates
        ]


def evaluate(log: Log, policy: Any, *, seed: int = 0) -> Evaluation:
    """Estimate a policy's reward a decision from a log, in four ways.

    *Replay* plays the policy through the whole log, learning included. For the others it learns from the
    first half of the log; the shares of arms in the later half of what it chose there are then a fixed way
    to decide, whose value the second half of the log estimates. Intervals are 95%, for many decisions: with
    few successes they are too narrow, and the effective number of decisions says so.

    Parameters
    ----------
    log : Log
    policy : ArmsPolicy
    seed : int, default 0

    Examples
    --------
    >>> from tacit.arms import KLUCBCF
    >>> rng = np.random.default_rng(1)
    >>> arms = rng.integers(0, 2, 4000)
    >>> log = Log(arms=arms, rewards=rng.random(4000) < 0.2 + 0.6 * arms, propensities=[0.5] * 4000)
    >>> found = evaluate(log, KLUCBCF(n_arms=2, epsilon=2.0))
    >>> [f"{each.method} {each.value:.1f}" for each in found.estimates]
    ['replay 0.8', 'ips 0.8', 'snips 0.8', 'dr 0.8']
    """
    require("evaluate", "log", "with at least 4 decisions", len(log) >= 4, len(log))
    middle = len(log) // 2
    first, second = log.part(0, middle), log.part(middle, len(log))
    whole, learned = replay(log, policy, seed=seed), replay(first, policy, seed=seed)
    late = learned.arms[len(learned.arms) // 2 :]
    if len(late) == 0:
        raise ValueError(
            f"evaluate: {log.source} has no decision that {policy.name} would have made; "
            f"{len(first)} decisions are too few for {log.n_arms} arms"
        )
    shares = np.bincount(late, minlength=log.n_arms) / len(late)
    return Evaluation(
        policy=str(policy.name),
        shares=shares,
        rounds=len(learned.arms),
        estimates=(
            _replayed(whole.rewards),
            importance_weighted(second, shares),
            self_normalised(second, shares),
            doubly_robust(second, shares, mean_rewards(first)),
        ),
    )


def _replayed(rewards: NDArray[np.float64]) -> Estimate:
    """Return the mean of the rounds played: of successes with the exact binomial interval."""
    n = len(rewards)
    if np.isin(rewards, (0.0, 1.0)).all():
        from scipy.stats import binomtest

        hits = int(rewards.sum())
        low, high = binomtest(hits, n).proportion_ci(0.95, method="exact")
        return Estimate("replay", hits / n, float(low), float(high), n, float(n))
    one = Log(arms=np.zeros(n, int), rewards=rewards, propensities=np.ones(n), source="replay")
    found = importance_weighted(one, np.ones(1))
    return Estimate("replay", found.value, found.low, found.high, n, float(n))
