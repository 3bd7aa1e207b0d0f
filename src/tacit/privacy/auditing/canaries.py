"""The one-run audit: many canaries, one execution.

Include each of m canaries by its own coin, run once, rank the canaries by how included they look
and guess the extremes. An (epsilon, delta)-private mechanism lets no guesser be right too often.
One execution thus audits what is too slow to repeat, at a weaker bound.

References
----------
Steinke, Nasr and Jagielski (2023). Privacy auditing with one (1) training run. NeurIPS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.privacy.auditing.bounds import LowerBound, claim_words, one_run_epsilon
from tacit.privacy.auditing.core import derive_seed


@dataclass(frozen=True, kw_only=True)
class OneRunResult(LowerBound):
    """What a one-run audit found."""

    canaries: int
    guesses: int
    correct: int

    def sentence(self) -> str:
        """Return the finding in words."""
        return (
            f"{claim_words(self.epsilon, self.delta)} is {self.verdict} by one run: epsilon is at least "
            f"{self.lower_bound:.4g} with confidence {100 * (1 - self.alpha):g}%. "
            f"{self.correct} of {self.guesses} guesses about {self.canaries} canaries were right."
        )


def audit_one_run(
    run: Callable[[NDArray[np.bool_], int], NDArray[np.float64]],
    canaries: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    guesses: int | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> OneRunResult:
    """Try to refute a claim by a single execution with many canaries.

    Parameters
    ----------
    run : callable
        ``run(included, seed)`` executes once, with the canaries for which `included` is True in
        the data and the others left out (or replaced by their alternative), and returns a score
        for each canary: the larger, the likelier it was included.
    canaries : int
        How many canaries there are; every one must be a protected record of its own.
    epsilon, delta : float
        The claim, for one canary going in or out.
    guesses : int, optional
        How many canaries to guess, half of them at each end of the scores; the others are left
        open. All of them unless told. Fixed before the run, as the bound demands.
    alpha : float
        The probability of refuting a true claim is at most this.
    seed : int
        Same seed, same coins.

    Returns
    -------
    OneRunResult

    Examples
    --------
    >>> def noisy(included, seed):
    ...     return included + np.random.default_rng(seed).laplace(size=len(included))
    >>> audit_one_run(noisy, 20_000, epsilon=0.5, guesses=2_000).verdict
    'refuted'
    >>> audit_one_run(noisy, 20_000, epsilon=1.0, guesses=2_000).verdict
    'not refuted'
    """
    wanted = canaries if guesses is None else guesses
    require("audit_one_run", "epsilon", ">= 0", epsilon >= 0, epsilon)
    require("audit_one_run", "delta", "in [0, 1]", 0 <= delta <= 1, delta)
    require("audit_one_run", "alpha", "in (0, 1)", 0 < alpha < 1, alpha)
    require("audit_one_run", "canaries", ">= 1", canaries >= 1, canaries)
    require("audit_one_run", "guesses", "in [1, canaries]", 1 <= wanted <= canaries, wanted)
    coins = np.random.default_rng(derive_seed(seed, 0))
    included = coins.random(canaries) < 0.5
    scores = np.asarray(run(included.copy(), derive_seed(seed, 1)), dtype=np.float64)
    rule = "one score a canary"
    require("audit_one_run", "run to return", rule, scores.shape == (canaries,), scores.shape)
    # equal scores are ordered by coins of the auditor, never by the order of the canaries
    order = np.lexsort((coins.random(canaries), np.nan_to_num(scores, nan=-np.inf)))
    lower = wanted // 2
    upper = wanted - lower
    correct = int(np.count_nonzero(~included[order[:lower]]))
    correct += int(np.count_nonzero(included[order[canaries - upper :]]))
    return OneRunResult(
        epsilon=epsilon,
        delta=delta,
        lower_bound=one_run_epsilon(canaries, wanted, correct, delta=delta, alpha=alpha),
        alpha=alpha,
        canaries=canaries,
        guesses=wanted,
        correct=correct,
    )
