"""What every policy and environment offers, whatever its setting.

A policy is a frozen description; its state is a ``NamedTuple`` of arrays; its kernel is one compiled
function. An environment makes the table a repetition is played on and the trace it is written to.
The simulator, the battery, the audit and the command line know nothing more than this page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.tapes import Tape

if TYPE_CHECKING:
    from tacit.privacy import Guarantee, Mechanism, NeighbouringPair

#: A kernel and all its arguments but the last two, the rounds to play.
Program = tuple[Callable[..., None], tuple[Any, ...]]


class AnyTrace(Protocol):
    """What every trace has; the settings add to it."""

    @property
    def measures(self) -> NDArray[np.float64]:
        """Shape (checkpoints, measures)."""

    @property
    def decisions(self) -> NDArray[Any]:
        """What was decided, first axis rounds; empty unless recorded."""


Table = TypeVar("Table")
State = TypeVar("State")
Trace = TypeVar("Trace", bound=AnyTrace)


class Policy(ABC, Generic[Table, State, Trace]):
    """A frozen description of how to decide; subclasses are keyword-only frozen dataclasses."""

    name: ClassVar[str]
    """What the command line and study files call it."""
    setting: ClassVar[str]
    """Which tables it plays on: ``arms``, ``users``, ``diffusion``, ``dynamics`` or one's own."""
    summary: ClassVar[str]
    """One line for ``tacit policies``."""
    paper: ClassVar[str] = ""
    """The paper's number and algorithm, or a reference."""
    compiled: ClassVar[bool] = True
    """False if its program is plain Python, some microseconds a round."""
    protects: ClassVar[str] = "nothing"
    """What is private, in a few words; `guarantee` says it exactly."""
    example_environment: ClassVar[str]
    """A small environment to try it in, written as on the command line."""

    @property
    def mechanisms(self) -> tuple[Mechanism, ...] | None:
        """The mechanisms that add its noise: none where it adds none, None where that is unknown."""
        return None

    @property
    def rewards_per_round(self) -> int:
        """How many rewards of one round may enter what is released."""
        return 1

    @property
    def secure(self) -> bool:
        """Whether all its noise has an exact sampler, so that it can run on a secure tape."""
        held = self.mechanisms
        return held is not None and all(mechanism.secure for mechanism in held)

    def require_size(self, most: int, **given: Any) -> None:
        """Refuse to be served if the state would take more than so many bytes, before it is built.

        Parameters
        ----------
        most : int
        **given
            What a decider is given beside the policy. By default a state is taken to be small.
        """

    @abstractmethod
    def guarantee(self, horizon: int) -> Guarantee:
        """Return what is protected when this policy runs for `horizon` rounds."""

    @abstractmethod
    def start(self, table: Table) -> State:
        """Return a fresh state, sized for `table`."""

    @abstractmethod
    def program(self, state: State, table: Table, tape: Tape, trace: Trace) -> Program:
        """Return the kernel that plays, and its arguments.

        ``kernel(*arguments, first, last)`` plays rounds `first` to `last` - 1 in compiled code and
        changes `state`, `tape` and `trace`. A tape the policy cannot run on is refused here.
        """

    def play(
        self, state: State, table: Table, tape: Tape, trace: Trace, first: int, last: int
    ) -> None:
        """Play rounds `first` to `last` - 1 in compiled code, changing `state` and `trace`."""
        kernel, arguments = self.program(state, table, tape, trace)
        kernel(*arguments, first, last)


class Environment(ABC, Generic[Table, Trace]):
    """A frozen description of what is played on; subclasses are keyword-only frozen dataclasses."""

    name: ClassVar[str]
    setting: ClassVar[str]
    summary: ClassVar[str]
    measures: ClassVar[tuple[str, ...]]
    """Names of the columns of `Trace.measures`; the first is the one to plot."""

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """What a policy must agree with: ``n_arms``, ``n_users`` and the like."""

    @abstractmethod
    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition, the same for every policy."""

    @abstractmethod
    def trace(self, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
        """Return an empty trace with a row of ``measures`` for each checkpoint.

        A checkpoint is a number of rounds played. With `record`, every decision is kept too.
        """

    def public_parameters(self, horizon: int) -> Mapping[str, Any]:
        """Return what is public and may fill a policy's parameters: sizes, horizon and more."""
        return {**self.sizes, "horizon": horizon}

    def neighbours(
        self, unit: str, horizon: int, *, seed: int = 0, limit: int = 18
    ) -> list[NeighbouringPair]:
        """Return pairs of tables that differ in all that one `unit` contains, for the audit.

        Parameters
        ----------
        unit : str
            What a guarantee protects, such as ``"reward"``, ``"round"`` or ``"user"``.
        horizon : int
        seed : int
            Chooses the table.
        limit : int
            At most so many pairs, the most telling ones first.
        """
        raise ValueError(
            f"{self.name}: expected pairs of tables for the unit {unit!r}, got none; "
            "give them as neighbours="
        )

    def count_pairs(self, unit: str, horizon: int) -> int | None:
        """Return how many pairs `neighbours` has to choose from; None if nobody counted."""
        return None

    def every_pair(self, unit: str, horizon: int) -> list[NeighbouringPair]:
        """Return all the pairs of tables of a small game, for an exact audit.

        By default all that `neighbours` names.
        """
        return self.neighbours(unit, horizon, limit=2**16)


AnyPolicy = Policy[Any, Any, Any]
AnyEnvironment = Environment[Any, Any]


def require_same_setting(policy: Any, environment: Any) -> None:
    """Raise ``ValueError`` unless a policy and an environment, or their classes, fit together."""
    if policy.setting != environment.setting:
        raise ValueError(
            f"{policy.name} plays in the setting {policy.setting!r}, {environment.name} is an environment "
            f"of {environment.setting!r}; `tacit environments` lists them by setting"
        )


def require_secure(policy: AnyPolicy) -> None:
    """Raise ``ValueError`` if `policy` cannot run on a secure tape."""
    rule = f"seeded, because its noise is not exact on a secure tape: {insecure_because(policy)}"
    require(policy, "tape", rule, policy.secure, "secure")


def insecure_because(policy: AnyPolicy) -> str:
    """Return why a policy that is not secure is not."""
    held = policy.mechanisms
    reasons = [each.insecure_because for each in held or () if not each.secure]
    unsaid = "nobody knows its mechanisms" if held is None else "it is not drawn value by value"
    return reasons[0] if reasons else unsaid
