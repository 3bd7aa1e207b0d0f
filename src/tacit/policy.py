"""What every policy and environment offers, whatever its setting.

A policy is a frozen description; its state is a ``NamedTuple`` of arrays; its kernel is one compiled
function. An environment makes the table a repetition is played on and the trace it is written to.
The simulator, the battery, the audit and the command line know nothing more than this page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.tapes import Tape

if TYPE_CHECKING:
    from tacit.privacy import Guarantee

__all__ = ["Environment", "Policy", "Program", "require_secure"]

#: A kernel and all its arguments but the last two, the rounds to play.
Program = tuple[Callable[..., None], tuple[Any, ...]]


class Policy(ABC):
    """A frozen description of how to decide; subclasses are keyword-only frozen dataclasses."""

    name: ClassVar[str]
    """What the command line and study files call it."""
    setting: ClassVar[str]
    """The setting: ``arms``, ``users`` or ``agents``."""
    summary: ClassVar[str]
    """One line for ``tacit policies``."""
    paper: ClassVar[str] = ""
    """The paper's number and algorithm, or a reference."""
    protects: ClassVar[str] = "nothing"
    """What is private, in a few words; `guarantee` says it exactly."""
    example_environment: ClassVar[str]
    """A small environment to try it in, written as on the command line."""

    @property
    def rewards_per_round(self) -> int:
        """How many rewards of one round may enter what is released."""
        return 1

    @property
    def secure(self) -> bool:
        """Whether its noise has an exact sampler, so that it can run on a secure tape."""
        return True

    @abstractmethod
    def guarantee(self, horizon: int) -> Guarantee:
        """Return what is protected when this policy runs for `horizon` rounds."""

    @abstractmethod
    def start(self, table: Any) -> Any:
        """Return a fresh state, sized for `table`."""

    @abstractmethod
    def program(self, state: Any, table: Any, tape: Tape, trace: Any) -> Program:
        """Return the kernel that plays, and its arguments.

        ``kernel(*arguments, first, last)`` plays rounds `first` to `last` - 1 in compiled code and
        changes `state`, `tape` and `trace`. A tape the policy cannot run on is refused here.
        """

    def play(self, state: Any, table: Any, tape: Tape, trace: Any, first: int, last: int) -> None:
        """Play rounds `first` to `last` - 1 in compiled code, changing `state` and `trace`."""
        kernel, arguments = self.program(state, table, tape, trace)
        kernel(*arguments, first, last)


class Environment(ABC):
    """A frozen description of an environment; subclasses are keyword-only frozen dataclasses."""

    name: ClassVar[str]
    setting: ClassVar[str]
    summary: ClassVar[str]
    measures: ClassVar[tuple[str, ...]]
    """Names of the columns of `Trace.measures`; the first is the one to plot."""

    @abstractmethod
    def table(self, seed: int, repetition: int, horizon: int) -> Any:
        """Return the table of one repetition, the same for every policy."""

    @abstractmethod
    def trace(self, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Any:
        """Return an empty trace with a row of ``measures`` for each checkpoint.

        A checkpoint is a number of rounds played. With `record`, every decision is kept too.
        """

    @abstractmethod
    def public_parameters(self, horizon: int) -> Mapping[str, Any]:
        """Return what is public (number of arms, horizon, ...) that fill a policy's parameters."""


def require_secure(policy: Policy) -> None:
    """Raise ``ValueError`` if `policy` cannot run on a secure tape."""
    rule = "seeded, because its noise has no exact sampler on a secure tape"
    require(policy, "tape", rule, policy.secure, "secure")
