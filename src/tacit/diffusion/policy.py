"""What the diffusion policies have in common: their rates, and how they start."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Constraint, Count, Positive, check, one_of, require
from tacit.core.policy import Policy, Program, require_secure
from tacit.core.tapes import SECURE, Tape
from tacit.diffusion.rounds import Kernels
from tacit.diffusion.table import Table
from tacit.diffusion.trace import Trace
from tacit.privacy import Mechanism


class BeliefState(Protocol):
    """A state of such a policy."""

    @property
    def mu(self) -> NDArray[np.float64]:
        """Shape (N, M): beliefs."""


S = TypeVar("S", bound=BeliefState)

_Exploration = Annotated[
    float, Constraint("in [0, 1/2]", lambda v: 0 <= v <= 0.5, {"minimum": 0, "maximum": 0.5})
]


@dataclass(frozen=True, kw_only=True)
class DiffusionPolicy(Policy[Table, S, Trace]):
    """A policy of agents who name one of `n_states` states and share what they believe.

    Parameters
    ----------
    n_states : int
        Number of states M.
    """

    setting: ClassVar[str] = "diffusion"
    example_environment: ClassVar[str] = "changing-truth"

    n_states: Count

    def __post_init__(self) -> None:
        check(self)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """None: it adds no noise."""
        return ()

    @property
    @abstractmethod
    def kernels(self) -> Kernels:
        """The kernels that play a round."""

    @property
    @abstractmethod
    def params(self) -> tuple[Any, ...]:
        """The numbers that the kernels need."""

    @abstractmethod
    def messages(self, state: S) -> NDArray[np.float64]:
        """Return what agents send, a row for each, and then one for each agent of the halo."""

    def sends_in(self, t: int) -> bool:
        """Return whether agents send each other anything in round t."""
        return True

    def program(self, state: S, table: Table, tape: Tape, trace: Trace) -> Program:
        """Return the kernel and its arguments."""
        if tape.kind == SECURE:
            require_secure(self)
        return self.kernels.run, (self.params, state, table, tape, trace)

    def _uniform(self, table: Table) -> NDArray[np.float64]:
        same = table.n_states == self.n_states
        require(self, "n_states", f"== {table.n_states}, as the table has", same, self.n_states)
        return np.full((table.group.size, self.n_states), 1.0 / self.n_states)


@dataclass(frozen=True, kw_only=True)
class LearningRates:
    """The rates of a diffusion policy that learns from losses.

    Parameters
    ----------
    rates : "constant", "theory" or "adaptive"
        Constant: `learning_rate` and `exploration_prob` as given, by default the paper's numbers.
        Theory: eta = sqrt(ln M / (alpha T)) and gamma = min(8 alpha eta, 1/2), from the paper's
        appendix. Adaptive: nothing to tune, see :mod:`tacit.diffusion.corrected_step`.
    learning_rate : float, default 0.1
        eta where the rates are constant.
    exploration_prob : float, default 0.1
        gamma, the weight of the latest signal; theory sets its own.
    horizon : int, optional
        T, for theory.
    independence_number : int, optional
        alpha, the size of the largest set of agents of whom no two are linked, for theory.
    """

    n_states: Count
    rates: Annotated[str, one_of("constant", "theory", "adaptive")] = "adaptive"
    learning_rate: Positive = 0.1
    exploration_prob: _Exploration = 0.1
    horizon: Count | None = None
    independence_number: Count | None = None

    def __post_init__(self) -> None:
        check(self)
        for name in ("horizon", "independence_number"):
            given = getattr(self, name) is not None
            require(self, name, ">= 1", given or self.rates != "theory", None)

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
