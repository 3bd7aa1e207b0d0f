"""BOCPD-klUCB-CF: kl-UCB on private bits, restarted by Bayesian change-point detection.

Question 4 of paper 003 asks for a Bayesian algorithm. Randomized response leaves bits, and bits whose mean
was drawn evenly have a posterior in closed form whatever the privacy: the restarted Bayesian online
change-point detector (R-BOCPD) of Alami, Maillard and Feraud (2020) applies as it is. It compares
forecasters that began at different times, each predicting the next bit by Laplace's rule, and restarts when
one that began later has become more likely than the one that began at the last restart. The product of
Laplace's predictions is B(S + 1, n - S + 1), so the comparison is a ratio of three such.

A forecaster that began later has prior odds 1 / (n sqrt(T)): were the arm's mean drawn evenly, the chance of
a false alarm at one look, all splits together, is then at most 1 / sqrt(T) (Markov's inequality). All else
is GLR-klUCB-CF's: kl-UCB since the last restart, the share of rounds that explores all arms in turn, looks at
every tenth observation of an arm at the splits that are kept, restarts of all arms, and feedback of a round
before the last restart dropped. A reward that is neither private nor a bit counts as part of a one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.arms.change_test import largest_odds
from tacit.arms.klucb_index import probabilities
from tacit.arms.loops import local_kernels
from tacit.arms.policies.glr_klucb_cf import GLRKLUCBCF, restart, select, take_in
from tacit.arms.policy import Kernels
from tacit.core.kernels import kernel


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, feedback: Any) -> None:
    """Take in feedback of round t; restart if a later beginning is more likely than the last."""
    if take_in(params, state, t, arm, feedback):
        n = state.counts[arm]
        prior = -math.log(float(n)) - 0.5 * math.log(params.horizon)
        if prior + largest_odds(state.history, arm, n, state.sums[arm]) > 0.0:
            restart(state, t)


@dataclass(frozen=True, kw_only=True)
class BOCPDKLUCBCF(GLRKLUCBCF):
    """kl-UCB on corrupted feedback with Bayesian change-point detection and restarts.

    Guarantee: pure local differential privacy with `epsilon` for each single reward, over the whole
    run; without it none.

    Parameters
    ----------
    horizon : int
        Number of rounds T, for the prior odds of a change and the explored share.

    Examples
    --------
    >>> from tacit.arms import BOCPDKLUCBCF
    >>> round(BOCPDKLUCBCF(n_arms=2, horizon=1000, epsilon=1.0).guarantee(1000).epsilon, 9)
    1.0

    References
    ----------
    Alami, Maillard, Feraud. Restarted Bayesian online change-point detector achieves optimal detection
    delay. ICML 2020.
    """

    name: ClassVar[str] = "bocpd-klucb-cf"
    summary: ClassVar[str] = "kl-UCB on locally private feedback, Bayesian change detection"
    paper: ClassVar[str] = "after Alami et al. 2020, for question 4 of 003"
    kernels: ClassVar[Kernels] = local_kernels(
        select, learn_from_report, probabilities=probabilities
    )
