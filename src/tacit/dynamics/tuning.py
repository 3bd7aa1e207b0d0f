"""Choosing beta and mu of the learning dynamics from the noise of the popularity estimate.

Perturbed counts give all agents the same error in the popularity of every option, and an estimate
below zero is clipped: what is clipped leaks from the popular options to all others. Selection must
outrun the leak, so beta grows with the noise; but signals are shared too, and a large beta makes
the whole population flee a good option on its bad days, so it should not be larger than that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.checks import require
from tacit.privacy import UnaryRelease

__all__ = ["Recommendation", "popularity_noise", "recommend", "release_of"]

_STRENGTH, _STRONGEST = 0.82, 0.95


class Recommendation(NamedTuple):
    """What to set, and why."""

    beta: float
    """Probability to adopt a good option."""
    mu: float
    """Probability to choose uniformly."""
    noise: float
    """Standard error of an agent's estimate of one option's popularity, near uniform popularity."""


def release_of(epsilon: float, encoding: str) -> UnaryRelease:
    """Return what an agent's message of one round reveals."""
    if math.isinf(epsilon):
        return UnaryRelease(keep_one=1.0, keep_zero=1.0)
    if encoding == "plain":
        return UnaryRelease.symmetric(epsilon)
    return UnaryRelease.optimised(epsilon)


def popularity_noise(
    *,
    n_agents: int,
    n_options: int,
    epsilon: float,
    tokens: float = math.inf,
    variant: str = "corrected",
    encoding: str = "plain",
) -> float:
    """Return the standard error of an agent's estimate of one option's popularity.

    Half of the agents are taken to have an adoption. The error that perturbing gives all agents
    alike falls with their number, the one of each agent's own sample with the tokens it gets.

    Examples
    --------
    >>> round(100 * popularity_noise(n_agents=10_000, n_options=20, epsilon=1.0), 1)
    4.0
    """
    release = release_of(epsilon, encoding)
    p, q = release.keep_one, 1.0 - release.keep_zero
    adopting = 0.5
    if variant == "corrected":
        speaking, share = 1.0, adopting / n_options
    else:
        speaking, share = adopting, 1.0 / n_options
    ones = q + (p - q) * share
    samples = 1.0 / (1.0 / (speaking * n_agents) + 1.0 / (speaking * tokens))
    unit = (p - q) * (adopting if variant == "corrected" else 1.0)
    return math.sqrt(ones * (1.0 - ones) / samples) / unit


def recommend(
    *,
    n_agents: int,
    n_options: int,
    epsilon: float,
    tokens: float = math.inf,
    variant: str = "corrected",
    encoding: str = "plain",
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
    epsilon : float
        Privacy of one message.
    tokens : float, default many
        Tokens an agent sends a round.
    variant, encoding : str
        As in `LearningDynamics`.

    Examples
    --------
    >>> from tacit.dynamics import recommend
    >>> chosen = recommend(n_agents=10_000, n_options=10, epsilon=1.0)
    >>> round(chosen.beta, 2), chosen.mu
    (0.83, 0.001)
    """
    require("recommend", "n_agents", ">= 1", n_agents >= 1, n_agents)
    require("recommend", "n_options", ">= 1", n_options >= 1, n_options)
    require("recommend", "epsilon", "> 0", epsilon > 0, epsilon)
    noise = popularity_noise(
        n_agents=n_agents,
        n_options=n_options,
        epsilon=epsilon,
        tokens=tokens,
        variant=variant,
        encoding=encoding,
    )
    strength = min(_STRONGEST, _STRENGTH * (n_options * noise) ** 0.25)
    beta = (1.0 + strength) / 2.0
    log_odds = math.log(beta / (1.0 - beta))
    return Recommendation(beta, min(log_odds**2 / 6.0, n_options / n_agents), noise)
