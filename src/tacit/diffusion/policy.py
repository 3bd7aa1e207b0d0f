"""What the diffusion policies have in common: their rates, and how they start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.diffusion.tables import Table, Trace
from tacit.policy import Policy

__all__ = ["BanditPolicy", "DiffusionPolicy"]


@dataclass(frozen=True, kw_only=True)
class DiffusionPolicy(Policy[Table, Any, Trace]):
    """A policy of agents who name one of `n_states` states and share what they believe.

    Parameters
    ----------
    n_states : int
        Number of states M.
    """

    setting: ClassVar[str] = "diffusion"
    example_environment: ClassVar[str] = "changing-truth"

    n_states: int

    def __post_init__(self) -> None:
        require(self, "n_states", ">= 1", self.n_states >= 1, self.n_states)

    @property
    def secure(self) -> bool:
        """Whether all its noise has an exact sampler."""
        return True

    def _uniform(self, table: Table) -> NDArray[np.float64]:
        same = table.n_states == self.n_states
        require(self, "n_states", f"== {table.n_states}, as the table has", same, self.n_states)
        return np.full((table.group.size, self.n_states), 1.0 / self.n_states)


@dataclass(frozen=True, kw_only=True)
class BanditPolicy(DiffusionPolicy):
    """A diffusion policy that learns from losses at some rate.

    Parameters
    ----------
    rates : "constant", "theory" or "adaptive"
        Constant: `learning_rate` and `exploration_prob` as given, by default the paper's numbers.
        Theory: eta = sqrt(ln M / (alpha T)) and gamma = min(8 alpha eta, 1/2), from the paper's
        appendix. Adaptive: nothing to tune, see :mod:`tacit.diffusion.sound`.
    learning_rate : float, default 0.1
        eta where the rates are constant.
    exploration_prob : float, default 0.1
        gamma, the weight of the latest signal; theory sets its own.
    horizon : int, optional
        T, for theory.
    independence_number : int, optional
        alpha, the size of the largest set of agents of whom no two are linked, for theory.
    """

    rates: str = "adaptive"
    learning_rate: float = 0.1
    exploration_prob: float = 0.1
    horizon: int | None = None
    independence_number: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.rates in ("constant", "theory", "adaptive")
        require(self, "rates", "one of constant, theory, adaptive", known, self.rates)
        require(self, "learning_rate", "> 0", self.learning_rate > 0, self.learning_rate)
        inside = 0 <= self.exploration_prob <= 0.5
        require(self, "exploration_prob", "in [0, 1/2]", inside, self.exploration_prob)
        for name in ("horizon", "independence_number"):
            value = getattr(self, name)
            if value is not None or self.rates == "theory":
                require(self, name, ">= 1", value is not None and value >= 1, value)

    @property
    def eta_and_gamma(self) -> tuple[float, float]:
        """The learning and the exploration rate; eta is 0 where it adapts."""
        if self.rates == "constant":
            return self.learning_rate, self.exploration_prob
        if self.rates == "adaptive":
            return 0.0, self.exploration_prob
        T, alpha = float(self.horizon or 1), float(self.independence_number or 1)
        eta = math.sqrt(math.log(self.n_states) / (alpha * T))
        return eta, min(8.0 * alpha * eta, 0.5)

    @property
    def published_rates(self) -> tuple[float, float]:
        """The rates of a published box: theory if told so, else the constants."""
        if self.rates == "theory":
            return self.eta_and_gamma
        return self.learning_rate, self.exploration_prob
