"""What the two private diffusion bandits share: the channel of a loss and its guarantee."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Count, Positive, one_of, require
from tacit.diffusion import corrected_step
from tacit.diffusion.policy import DiffusionPolicy, LearningRates
from tacit.diffusion.rounds import Kernels
from tacit.diffusion.steps import Params, State
from tacit.diffusion.table import Table
from tacit.privacy import (
    BoundedNoise,
    Claim,
    ClampedLaplace,
    Guarantee,
    LaplaceRelease,
    Mechanism,
    PureRelease,
    RandomizedResponse,
    Release,
    compose,
)
from tacit.privacy.mechanisms import Epsilon

# Asking for this much less keeps the loss of one record below epsilon whatever is rounded.
_BELOW = 1 - 1e-12
_WHY = (
    "noise outside [-b, b] is replaced by the constant b/2, which betrays the loss, and near the "
    "ends only one loss is possible"
)


@dataclass(frozen=True, kw_only=True)
class PrivateBanditPolicy(LearningRates, DiffusionPolicy[State | corrected_step.State]):
    """What the two private policies share: a channel for losses."""

    epsilon: Epsilon
    variant: Annotated[str, one_of("corrected", "published")] = "corrected"
    mechanism: Annotated[str, one_of("response", "laplace")] = "response"
    block: Count | None = None
    noise_bound: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.corrected or self.noise_bound is not None or self.horizon is not None
        rule = "given, or a horizon T for the paper's ln T / epsilon, if published"
        require(self, "noise_bound", rule, known, None)

    @classmethod
    def with_report_epsilon(
        cls, *, report_epsilon: float, block: int, mechanism: str = "response", **settings: Any
    ) -> Self:
        """Return the corrected policy that reports every `block` rounds and spends less.

        `report_epsilon` is what one report costs even if all losses of its block change, so that an
        agent's whole history costs this once a block. `epsilon`, for one loss, follows and is smaller.
        """
        require(cls.__name__, "report_epsilon", "> 0", report_epsilon > 0, report_epsilon)
        require(cls.__name__, "block", ">= 1", block >= 1, block)
        epsilon = report_epsilon / block
        if mechanism == "response":
            epsilon = math.log1p(math.expm1(report_epsilon) / block)
        return cls(epsilon=epsilon, block=block, mechanism=mechanism, **settings)

    #: What its guarantees leave open, beside what all of them do.
    unprotected: ClassVar[tuple[str, ...]] = ("graph",)

    @property
    def corrected(self) -> bool:
        """Whether it takes the corrected step."""
        return self.variant == "corrected"

    @property
    def rounds_per_report(self) -> int:
        """B, the length of a block."""
        if not self.corrected:
            return 1
        return self.block or corrected_step.best_block(self.epsilon)

    @property
    def bound(self) -> float:
        """The published b: `noise_bound`, else ln T / epsilon."""
        return self.noise_bound or math.log(max(2, self.horizon or 1)) / self.epsilon

    @property
    def report_mechanism(self) -> Mechanism:
        """What an agent's loss, or its mean loss of a block, is told through."""
        if not self.corrected:
            return BoundedNoise(epsilon=self.epsilon, bound=self.bound)
        B = self.rounds_per_report
        if self.mechanism == "laplace":
            bound = corrected_step.CLAMP_SCALES / (B * self.epsilon)
            return ClampedLaplace(
                epsilon=self.epsilon, sensitivity=1 / B, low=-bound, high=1 + bound
            )
        if B == 1:
            return RandomizedResponse(epsilon=self.epsilon)
        # A loss moves the mean by 1 / B only, so that the bit about the mean may be truer.
        return RandomizedResponse(epsilon=math.log1p(B * math.expm1(self.epsilon * _BELOW)))

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What losses are told through."""
        return (self.report_mechanism,)

    @property
    def loss_release(self) -> Release:
        """What one loss is released through, as a change of that loss alone sees it."""
        if self.corrected and self.mechanism == "response" and self.rounds_per_report > 1:
            return PureRelease(level=self.epsilon, what="a bit about the mean loss of a block")
        return self.report_mechanism.release

    @property
    def block_release(self) -> Release:
        """The same as a change of all losses of the block sees it."""
        B = self.rounds_per_report
        if self.corrected and self.mechanism == "laplace":
            return LaplaceRelease(sensitivity=1.0, scale=1 / (B * self.epsilon))
        return self.report_mechanism.release

    @property
    def loss_guarantee(self) -> Guarantee:
        """What is guaranteed to one loss of one agent over the whole run."""
        scope: dict[str, Any] = {"unit": "loss", "trust": "local", "span": "run"}
        left_open = ("sending", "others", *self.unprotected)
        release, B = self.loss_release, self.rounds_per_report
        if not self.corrected:
            return compose(
                [(release, 1)],
                delta=release.delta(self.epsilon),
                claim=Claim(epsilon=self.epsilon, holds=False, why=_WHY, **scope),
                not_protected=left_open,
                **scope,
            )
        note = "Where one event changes the losses of n agents, n times that."
        if B == 1:
            return compose([(release, 1)], note=note, not_protected=left_open, **scope)
        # Without releases: the losses of a block meet in one release, which Guarantee.for_user,
        # where every record has its own, would undercount.
        note += f" Reported every {B} rounds; for an agent's whole history see history_guarantee."
        return Guarantee(
            epsilon=release.epsilon, basis="theorem", note=note, not_protected=left_open, **scope
        )

    @property
    def keep_signal(self) -> float:
        """Probability that the state nearest to a signal is told; here signals are not hidden."""
        return corrected_step.OPEN_SIGNAL

    @cached_property
    def params(self) -> corrected_step.Params | Params:
        """The numbers that the kernels of the variant need."""
        if not self.corrected:
            return Params(*self.published_rates, self.epsilon, self.bound)
        eta, gamma = self.eta_and_gamma
        return corrected_step.params_of(
            self.report_mechanism,
            eta=eta,
            gamma=gamma,
            block=self.rounds_per_report,
            keep_signal=self.keep_signal,
        )

    def start(self, table: Table) -> State | corrected_step.State:
        """Return uniform beliefs."""
        mu = self._uniform(table)
        if isinstance(self.params, Params):
            return State.start(mu, table)
        return corrected_step.start(mu, self.params, table.halo)

    @property
    @abstractmethod
    def published_kernels(self) -> Kernels:
        """The kernels of the published variant."""

    @property
    def kernels(self) -> Kernels:
        """The kernels of the variant."""
        return corrected_step.KERNELS if self.corrected else self.published_kernels

    @abstractmethod
    def history_releases(self, horizon: int) -> list[tuple[Release, int]]:
        """Return all that is released of one agent in `horizon` rounds."""

    def history_guarantee(self, horizon: int, *, delta: float = 0.0) -> Guarantee:
        """Return what is guaranteed to everything about one agent together."""
        return compose(
            self.history_releases(horizon),
            delta=delta,
            unit="agent",
            trust="local",
            span="run",
            not_protected=("sending", *self.unprotected),
        )

    def messages(self, state: State | corrected_step.State) -> NDArray[np.float64]:
        """Return the intermediate probabilities."""
        return state.p

    def sends_in(self, t: int) -> bool:
        """Return whether a block begins with round t."""
        return t % self.rounds_per_report == 0
