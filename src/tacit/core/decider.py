"""The seam between serving and a setting: one policy at work, one decision at a time.

A `Decider` owns the arrays of a policy and knows how to choose, what a device is asked, and how to learn
from what comes back. It knows no clock, no identities, no files: rounds, tapes, silence, restarts and
budgets belong to :mod:`tacit.serving`, which in turn knows nothing of any setting's arrays.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.core.arrays import leaves, pack, unpack
from tacit.core.constraints import require
from tacit.core.policy import AnyPolicy, insecure_because
from tacit.core.tapes import Tape

if TYPE_CHECKING:
    from tacit.privacy import Guarantee

ALPHA = 0.05
"""How often an interval of an option's mean may fail, at any time."""
_MIXED = 10.0


class Choice(NamedTuple):
    """What was chosen, with which chance, and what must be kept to learn from it later."""

    option: int
    probability: float | Callable[[], float]
    """The exact chance with which this option was chosen, exploration included; or what works it out."""
    record: Any = None
    """Plain values for JSON, beside the option: who was asked and what was shown."""


class Estimate(NamedTuple):
    """A mean reward, and an interval that holds at all times with probability 0.95, noise included."""

    value: float
    low: float
    high: float


def mean_of_bits(n: float, ones: float, zero: float, one: float) -> Estimate | None:
    """Estimate a mean reward from n reported bits, 1 with probability `zero` to `one`.

    The interval is Robbins' normal mixture for bounded variables, which holds at all n at once.

    Examples
    --------
    >>> [round(each, 3) for each in mean_of_bits(1000, 500, 0.25, 0.75)]
    [0.5, 0.402, 0.598]
    """
    if n == 0:
        return None
    spread = n / 4.0 + _MIXED
    radius = math.sqrt(spread * math.log(spread / (_MIXED * ALPHA**2))) / n
    ends = sorted((ones / n + sign * radius - zero) / (one - zero) for sign in (-1, 1))
    low, high = (min(1.0, max(0.0, end)) for end in ends)
    return Estimate(min(1.0, max(0.0, (ones / n - zero) / (one - zero))), low, high)


class Decider(ABC):
    """A policy with its state; every setting has its own."""

    policy: AnyPolicy
    trust: str
    """``local`` if devices report privately, ``central`` if they send the reward, ``shuffler`` if they
    report privately and only what the learner publishes hides them as well as is stated."""
    n_options: int | None
    """How many options there are; None where they come with each decision."""
    n_people: int | None = None
    """How many people it knows; None where it tells nobody apart."""
    horizon: int | None = None
    """How many rounds the policy is made for, if it is made for some."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """Where rewards lie."""
    patience: int | None = None
    """After how many rounds a report is too old to be learned from; None for never."""
    not_explored: str = ""
    """Why an exploration floor is refused; empty if it is not."""
    not_stored: str = ""
    """Why it cannot continue from a log; empty if it can."""
    exact_instead: str = "docs/mechanisms.md says which noise is"
    """What to take where its noise has no exact sampler."""
    releases: bool = False
    """Whether it releases sums, so that calls must be watched and open sums never told twice."""

    @abstractmethod
    def choose(self, tape: Tape, t: int, query: Any) -> Choice:
        """Choose in round `t`; `query` is what the setting's `asked` made of the caller's words."""

    @abstractmethod
    def asked(self, query: Mapping[str, Any]) -> Any:
        """Check what a caller asks (``eligible``, ``person``, ``contexts``) and return the query."""

    def offered(self, asked: Any) -> Any:
        """Return the options that a question lets one choose from, in order."""
        return asked

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """What one reward costs its person; infinite if nothing is protected."""

    def shown_with(self, option: int) -> Sequence[int]:
        """Return the options whose rewards a report on a served one may carry, itself among them."""
        return (option,)

    def rewards(self, option: int) -> int:
        """Return how many protected records the report on a served option may carry at most."""
        return 1

    @abstractmethod
    def instructions(self, option: int, record: Any, default: float | None) -> dict[str, Any]:
        """Return what a device is told, as in ``schemas/instructions.schema.json``."""

    @abstractmethod
    def checked(self, option: int, record: Any, value: Any) -> Any:
        """Return a reported value ready for `learn`, or raise ``ValueError``."""

    @abstractmethod
    def learn(self, tape: Tape, t: int, option: int, record: Any, value: Any) -> None:
        """Take in a reported value that `checked` let pass."""

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what is protected where whoever runs this decider sees all that it is told."""
        stated = self.policy.guarantee(horizon)
        still = (*(stated.not_protected or ()), *self.unprotected)
        return dataclasses.replace(stated, not_protected=still)

    @property
    def unprotected(self) -> tuple[str, ...]:
        """What a running learner leaves open beside what the policy's guarantee says."""
        return ()

    def full(self, record: Any) -> bool:
        """Return whether nothing more can be taken in about whom a decision is for."""
        return False

    def released(self, tape: Tape, n: int, record: Any) -> list[float]:
        """Return what the latest call released with `n` draws of noise."""
        log = tape.log
        require(self.policy, "released values", f"at most {log.size}", n <= log.size, n)
        values: list[float] = log[:n].tolist()
        return values

    def pack_release(self, record: Any) -> bytes:
        """Return what a release made of the arrays, for `unpack_release`; all of them unless less will do."""
        return self.pack()

    def unpack_release(self, data: bytes, record: Any) -> None:
        """Set the arrays to what they were after a release, without drawing anything."""
        self.unpack(data)

    def estimates(self, tallies: Sequence[Sequence[float]]) -> list[Estimate | None] | None:
        """Return what is known of each option's mean reward from released values alone.

        Parameters
        ----------
        tallies : sequence of (decided, shown, learned, silent, total) for each option
            Of a local policy; its reports are public.

        Returns
        -------
        list of Estimate or None
            None for an option of which nothing was released; None for all where options come with
            each decision, or rewards are not protected.
        """
        return None

    @property
    def leverage(self) -> float | None:
        """How far lying reports move an option's estimate, for each share of them that lies."""
        return None

    @property
    @abstractmethod
    def state(self) -> Any:
        """The arrays, a ``NamedTuple``; they are changed in place and never replaced."""

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays take."""
        return sum(value.nbytes for _, value in leaves(self.state) if hasattr(value, "nbytes"))

    def pack(self) -> bytes:
        """Return the arrays as bytes."""
        return pack(self.state)

    def unpack(self, data: bytes) -> None:
        """Set the arrays to what `pack` returned."""
        unpack(self.state, data)

    def grown(self) -> Decider:
        """Return a decider with one option more that knows what this one does."""
        raise ValueError(f"{type(self.policy).__name__}: expected options with each decision")

    @property
    def joined(self) -> Any:
        """Who is joined to whom, plain for JSON; None where nobody is."""
        return None

    def with_edges(self, n_people: int, joined: Any) -> Decider:
        """Return a decider for so many people, joined anew, that knows what this one does."""
        raise ValueError(f"{type(self.policy).__name__}: expected no people to join")

    def with_person(self, near: Sequence[int]) -> Decider:
        """Return a decider for one person more, joined to those at these places."""
        raise ValueError(f"{type(self.policy).__name__}: expected no people to add")

    @abstractmethod
    def retire(self, option: int) -> None:
        """Prepare for never choosing `option` again."""

    @abstractmethod
    def discard(self) -> None:
        """Forget sums that were not released, so that they never will be."""


def decider_for(policy: AnyPolicy, *, explore: float = 0.0, **given: Any) -> Decider:
    """Return the decider of a policy's setting, with a state that has seen nothing.

    Parameters
    ----------
    policy : Policy
        Of a setting that can serve.
    explore : float
        The share of decisions that are drawn evenly from what is eligible.
    **given
        What the setting needs beside the policy, such as a graph of people.
    """
    made = getattr(policy, "decider", None)
    if made is None:
        raise ValueError(
            "Learner: expected a policy that can serve, not one for simulations alone (agents have peers, "
            f"tacit.serving.peers), got {policy!r}"
        )
    takes = inspect.signature(made).parameters
    extra = next((name for name in given if name not in takes), None)
    value = None if extra is None else given[extra]
    require(policy, str(extra), "not given with this policy", extra is None, value)
    decider: Decider = made(explore=explore, **given)
    return decider


def require_exact(decider: Decider, otherwise: str = "") -> None:
    """Refuse noise that has no exact sampler: people rely on it.

    Parameters
    ----------
    decider : Decider
    otherwise : str
        What else may be done with such a policy, to end the sentence.
    """
    policy = decider.policy
    if not policy.secure:
        held = policy.mechanisms or ()
        rule = (
            "that is exact on a secure tape, as people need it, and this is not "
            f"({insecure_because(policy)}); {decider.exact_instead}{otherwise}"
        )
        inexact = ", ".join(each.name for each in held if not each.secure) or "another"
        require(policy, "noise", rule, False, inexact)
