"""kl-UCB, and klUCB-CF on corrupted feedback: SW-KLUCB-CF without a window.

In an environment that does not change nothing need be forgotten. kl-UCB (Garivier and Cappe 2011) sees the
rewards; klUCB-CF (Gajane, Urvoy and Kaufmann 2018) sees feedback that was corrupted on the way. The
kernels are those of :mod:`tacit.arms.sw_klucb_cf`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.arms.corruption import Corruption
from tacit.arms.sw_klucb_cf import KLPolicy, check_privacy, chosen_corruption
from tacit.checks import require
from tacit.privacy import Guarantee

__all__ = ["KLUCB", "KLUCBCF"]


@dataclass(frozen=True, kw_only=True)
class KLUCB(KLPolicy):
    """Pull the arm with the largest Kullback-Leibler upper confidence bound.

    Guarantee: none; the decisions depend on every reward without noise.

    Parameters
    ----------
    n_arms : int
        Number of arms K.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import KLUCB, Bernoulli
    >>> result = tacit.simulate(KLUCB(n_arms=2), Bernoulli(means=(0.4, 0.6)), horizon=1000, seed=1)
    >>> bool(result.final("regret").mean() < 40)
    True

    References
    ----------
    Garivier, Cappe. The KL-UCB algorithm for bounded stochastic bandits and beyond. 2011.
    """

    name: ClassVar[str] = "klucb"
    summary: ClassVar[str] = "Kullback-Leibler upper confidence bound for an unchanging environment"
    paper: ClassVar[str] = "Garivier and Cappe 2011"

    n_arms: int

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return that nothing is protected."""
        return self.local_guarantee(horizon, None)


@dataclass(frozen=True, kw_only=True)
class KLUCBCF(KLPolicy):
    """kl-UCB on corrupted feedback.

    Guarantee: pure local differential privacy with `epsilon` for each single reward.

    Parameters
    ----------
    n_arms : int
        Number of arms K.
    epsilon : float, optional
        Privacy of one reward, by the optimal randomized response; 1 if no `corruption` is given.
    corruption : Corruption, optional
        Any strictly monotone corruption, instead of `epsilon`.

    Examples
    --------
    >>> from tacit.arms import KLUCBCF
    >>> round(KLUCBCF(n_arms=2, epsilon=0.5).guarantee(horizon=10).epsilon, 9)
    0.5

    References
    ----------
    Gajane, Urvoy, Kaufmann. Corrupt bandits for preserving local privacy. 2018.
    """

    name: ClassVar[str] = "klucb-cf"
    summary: ClassVar[str] = "kl-UCB on locally private feedback, unchanging environment"
    paper: ClassVar[str] = "Gajane et al. 2018"
    protects: ClassVar[str] = "each reward, locally"

    n_arms: int
    epsilon: float | None = None
    corruption: Corruption | None = None

    def __post_init__(self) -> None:
        require(self, "n_arms", ">= 1", self.n_arms >= 1, self.n_arms)
        if self.epsilon is None and self.corruption is None:
            object.__setattr__(self, "epsilon", 1.0)
        check_privacy(self, self.epsilon, self.corruption)

    @property
    def corruption_functions(self) -> Corruption | None:
        """The corruption in force."""
        return chosen_corruption(self.epsilon, self.corruption)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon for each reward."""
        return self.local_guarantee(horizon, None)
