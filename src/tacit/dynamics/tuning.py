"""Choosing beta and mu of the learning dynamics from the noise of the popularity estimate.

Perturbed counts give all agents the same error in the popularity of every option, and an estimate
below zero is clipped: what is clipped leaks from the popular options to all others. Selection must
outrun the leak, so beta grows with the noise; but signals are shared too, and a large beta makes
the whole population flee a good option on its bad days, so it should not be larger than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tacit.core.constraints import require
from tacit.privacy import Mechanism, SubsetSelection, UnaryEncoding

ENCODINGS = ("plain", "optimised", "subset", "least")
_STRENGTH, _STRONGEST = 0.82, 0.95
_PATIENCE, _SMOOTHED_BETA = 0.08, 0.9


class Recommendation(NamedTuple):
    """What to set, and why."""

    beta: float
    """Probability to adopt a good option."""
    mu: float
    """Probability to choose uniformly."""
    noise: float
    """Standard error of an agent's estimate of one option's popularity, near uniform popularity."""
    rho: float = 1.0
    """Weight of the newest estimate of popularity; 1 keeps no memory."""


class Encoder(NamedTuple):
    """How an adoption is told, as the bits of a vector."""

    mechanism: Mechanism | None
    """The mechanism, or None where nothing is perturbed."""
    p: float
    q: float
    """Probability that the bit of the adopted option is sent as 1, and that of another."""
    size: int = 0
    """How many symbols a subset holds; 0 for independent bits."""
    pair_one: float = 0.0
    pair_none: float = 0.0
    """Probability that two bits are 1 together, one of them the adopted option's, or neither."""

    @property
    def shift(self) -> float:
        """How the fixed size of a subset moves the covariance of two bits with their popularity."""
        if self.size == 0:
            return 0.0
        slope = self.pair_one - self.pair_none - self.q * (self.p - self.q)
        return slope / (self.p - self.q)

    @property
    def common(self) -> float:
        """By how much it makes any two bits exclude each other."""
        if self.size == 0:
            return 0.0
        return max(0.0, self.q**2 - self.pair_none - self.shift**2)


def encoder(epsilon: float, n_options: int, encoding: str) -> Encoder:
    """Return how an adoption is told; ``"least"`` has the least exact variance.

    Examples
    --------
    >>> encoder(1.0, 10, "least").mechanism
    SubsetSelection(epsilon=1.0, options=11, size=None)
    """
    if math.isinf(epsilon):
        return Encoder(None, 1.0, 0.0)
    if encoding == "least":
        codings = [encoder(epsilon, n_options, each) for each in ENCODINGS[:-1]]
        return min(codings, key=lambda each: float(_variance(each, 0.5 / n_options)))
    if encoding == "subset":
        subset = SubsetSelection(epsilon=epsilon, options=n_options + 1)
        return Encoder(subset, *subset.chances, subset.best_size, *subset.joint_chances)
    unary = UnaryEncoding(epsilon=epsilon, options=n_options, optimised=encoding == "optimised")
    return Encoder(unary, unary.release.keep_one, 1.0 - unary.release.keep_zero)


def _variance(coding: Encoder, share: float) -> float:
    """Return the variance of one message's estimate of an option that `share` of agents adopt."""
    ones = coding.q + (coding.p - coding.q) * share
    return ones * (1.0 - ones) / (coding.p - coding.q) ** 2


def levels_of(epsilon: float | Sequence[float]) -> tuple[float, ...]:
    """Return the levels of epsilon, one or several."""
    return tuple(epsilon) if isinstance(epsilon, Sequence) else (epsilon,)


def message_variance(coding: Encoder, n_options: int, variant: str) -> float:
    """Return the variance of one message's estimate near uniform popularity, half of the agents adopting."""
    return _variance(coding, (0.5 if variant == "corrected" else 1.0) / n_options)


def popularity_noise(
    *,
    n_agents: int,
    n_options: int,
    epsilon: float | Sequence[float],
    tokens: float = math.inf,
    variant: str = "corrected",
    encoding: str = "plain",
) -> float:
    """Return the standard error of an agent's estimate of one option's popularity.

    Half of the agents are taken to have an adoption. The error that perturbing gives all agents
    alike falls with their number, the one of each agent's own sample with the tokens it gets. Of
    several epsilons equally many agents have each, and messages count by the inverse of their variance.

    Examples
    --------
    >>> round(100 * popularity_noise(n_agents=10_000, n_options=20, epsilon=1.0), 1)
    4.0
    """
    speaking, unit = (1.0, 0.5) if variant == "corrected" else (0.5, 1.0)
    samples = 1.0 / (1.0 / (speaking * n_agents) + 1.0 / (speaking * tokens))
    variances = [
        message_variance(encoder(level, n_options, encoding), n_options, variant)
        for level in levels_of(epsilon)
    ]
    if len(variances) == 1:
        return math.sqrt(variances[0] / samples) / unit
    return math.sqrt(len(variances) / sum(1.0 / each for each in variances) / samples) / unit


def recommend(
    *,
    n_agents: int,
    n_options: int,
    epsilon: float | Sequence[float],
    tokens: float = math.inf,
    variant: str = "corrected",
    encoding: str = "plain",
    smoothed: bool = False,
) -> Recommendation:
    """Return beta and mu for a population, when nothing is known of the options.

    With x the noise summed over the options, 2 beta - 1 = 0.82 x^(1/4): a fit to the best beta of
    options evenly spaced from 0.9 to 0.1, for 3 to 20 options, epsilon from 0.5 to 4 and 10^3 to
    10^7 agents. Options that differ by little want a smaller beta and many agents. mu lets one
    agent explore each option in a round, within the bound 6 mu <= ln^2(beta / (1 - beta)) of the
    paper.

    Parameters
    ----------
    n_agents, n_options : int
        N and M.
    epsilon : float or sequence of float
        Privacy of one message, or of those of equally many agents each.
    tokens : float, default many
        Tokens an agent sends a round.
    variant, encoding : str
    smoothed : bool
        As in `LearningDynamics`. With smoothing beta is 0.9 and rho = 0.08 / sqrt(M noise), at
        most 1: the noisier an estimate, the longer it is averaged.

    Examples
    --------
    >>> from tacit.dynamics import recommend
    >>> chosen = recommend(n_agents=10_000, n_options=10, epsilon=1.0)
    >>> round(chosen.beta, 2), chosen.mu
    (0.83, 0.001)
    """
    require("recommend", "n_agents", ">= 1", n_agents >= 1, n_agents)
    require("recommend", "n_options", ">= 1", n_options >= 1, n_options)
    positive = all(level > 0 for level in levels_of(epsilon))
    require("recommend", "epsilon", "> 0", positive, epsilon)
    noise = popularity_noise(
        n_agents=n_agents,
        n_options=n_options,
        epsilon=epsilon,
        tokens=tokens,
        variant=variant,
        encoding=encoding,
    )
    spread = n_options * noise
    beta = (1.0 + min(_STRONGEST, _STRENGTH * spread**0.25)) / 2.0
    if smoothed:
        beta = _SMOOTHED_BETA
    log_odds = math.log(beta / (1.0 - beta))
    mu = min(log_odds**2 / 6.0, n_options / n_agents)
    rho = min(1.0, _PATIENCE / math.sqrt(spread)) if smoothed and spread > 0 else 1.0
    return Recommendation(beta, mu, noise, rho)
