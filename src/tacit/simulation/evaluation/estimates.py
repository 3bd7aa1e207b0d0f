"""Off-policy estimates of what showing arms with given probabilities would earn.

The log was made with other probabilities: each of its rewards is weighted by how much likelier the target is
to show that arm. The doubly robust estimate is that of Dudik, Langford and Li (2011), the self-normalised one
that of Swaminathan and Joachims (2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.simulation.evaluation.log import Log


@dataclass(frozen=True)
class Estimate:
    """An estimated mean reward a decision, and its 95% interval within [0, 1]."""

    method: str
    value: float
    low: float
    high: float
    n: int
    """Decisions it rests on."""
    effective: float
    """How many decisions of the target itself would say as much: (sum w)^2 / sum w^2."""


def weights_of(log: Log, target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much likelier the target shows each logged arm than the log did."""
    target = np.asarray(target, np.float64)
    good = target.shape == (log.n_arms,) and bool((target >= 0).all())
    require("evaluation", "target", f"{log.n_arms} probabilities", good, target.shape)
    total = float(target.sum())
    require("evaluation", "target", "probabilities that add up to 1", abs(total - 1) < 1e-9, total)
    ratio: NDArray[np.float64] = target[log.arms] / log.propensities
    return ratio


def importance_weighted(log: Log, target: NDArray[np.float64]) -> Estimate:
    """Weigh every reward (IPS): unbiased, with a variance that grows with the weights.

    Examples
    --------
    >>> log = Log(arms=[0, 1, 1, 0], rewards=[0, 1, 1, 0], propensities=[0.5] * 4)
    >>> importance_weighted(log, np.array([0.0, 1.0])).value
    1.0
    """
    w = weights_of(log, target)
    return _estimate("ips", w * log.rewards, w)


def self_normalised(log: Log, target: NDArray[np.float64]) -> Estimate:
    """Divide by the sum of weights (SNIPS): a little bias, less variance, never outside [0, 1]."""
    w = weights_of(log, target)
    if not w.sum() > 0:
        return Estimate("snips", float("nan"), 0.0, 1.0, len(log), 0.0)
    value = float((w * log.rewards).sum() / w.sum())
    # The delta method: the ratio of two means, linearised at their values.
    terms = value + w * (log.rewards - value) / w.mean()
    return _estimate("snips", terms, w)


def doubly_robust(log: Log, target: NDArray[np.float64], expected: NDArray[np.float64]) -> Estimate:
    """Start from expected rewards and weigh only what they miss (DR): right if either is.

    Parameters
    ----------
    log : Log
    target : array, shape (n_arms,)
        Probabilities of the arms.
    expected : array, shape (n_arms,)
        What each arm is thought to earn, from other data than this log.
    """
    w = weights_of(log, target)
    terms = float(target @ expected) + w * (log.rewards - expected[log.arms])
    return _estimate("dr", terms, w)


def mean_rewards(log: Log) -> NDArray[np.float64]:
    """Return each arm's mean reward, drawn towards the log's by one decision's worth."""
    counts = np.bincount(log.arms, minlength=log.n_arms)
    sums = np.bincount(log.arms, log.rewards, minlength=log.n_arms)
    means: NDArray[np.float64] = (sums + log.rewards.mean()) / (counts + 1)
    return means


def _estimate(method: str, terms: NDArray[np.float64], w: NDArray[np.float64]) -> Estimate:
    from scipy.stats import t

    n = len(terms)
    value = float(terms.mean())
    effective = float(w.sum() ** 2 / (w**2).sum()) if w.any() else 0.0
    spread = float(terms.std(ddof=1)) if n > 1 else 0.0
    if not spread > 0:  # one reward over and over says nothing of others
        return Estimate(method, value, 0.0, 1.0, n, effective)
    reach = float(t.ppf(0.975, n - 1)) * spread / n**0.5
    return Estimate(method, value, max(0.0, value - reach), min(1.0, value + reach), n, effective)
