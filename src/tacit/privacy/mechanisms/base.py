"""What every mechanism is: a frozen description that declares its release and knows how to run.

A mechanism stands in one file of this package: its record, its release (the exact privacy loss), its
kernels, its exact sampler, its variance, what a device sends and the pairs an audit should try.
Policies hold mechanisms. Those of one number make a `Channel`, which any kernel can use without
knowing the mechanism behind it.
"""

from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.constraints import Constraint, Count, check, require
from tacit.core.kernels import address_of, evaluate, kernel
from tacit.core.tapes import NOISE, ROUNDING, SECURE, Tape, secure_tape, seeded_tape, uniform
from tacit.device.instructions import make_instructions
from tacit.privacy.releases import Array, Release

LOWEST_EPSILON, HIGHEST_EPSILON = 1e-9, 30.0

Epsilon = Annotated[
    float,
    Constraint(
        "between 1e-9 and 30",
        lambda v: LOWEST_EPSILON <= v <= HIGHEST_EPSILON,
        {"minimum": LOWEST_EPSILON, "maximum": HIGHEST_EPSILON},
    ),
]
"""An epsilon that every mechanism keeps, in floating point and in integers."""

Sensitivity = Annotated[
    float,
    Constraint(
        "between 1e-100 and 1e100",
        lambda v: 1e-100 <= v <= 1e100,
        {"minimum": 1e-100, "maximum": 1e100},
    ),
]
"""A sensitivity whose noise, and the grid of its noise, are numbers: none is 0 or infinite."""


def numerics_of(tape: Tape) -> str:
    """Return ``"secure"`` for a tape of the operating system's randomness, else ``"research"``."""
    return "secure" if tape.kind == SECURE else "research"


class NeighbouringPair(NamedTuple):
    """Two inputs that differ in one protected record."""

    left: Any
    right: Any
    words: str = ""
    """How they differ."""


class Channel(NamedTuple):
    """What a kernel needs to privatise a number in a declared range; made by `Mechanism.channel`."""

    address: Any
    """Where the mechanism's kernel begins."""
    numbers: NDArray[np.float64]
    """Shape (n,): offset and slope of the estimate, the range, then the mechanism's own."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Name the kernel instead of its address, which means nothing to another process."""
        return _found_again, (*_kernels.get(self.address, (self.address, "")), self.numbers)


_kernels: dict[Any, tuple[str, str]] = {}


def make_channel(send: Callable[..., Any], *numbers: float) -> Channel:
    """Return the channel of a kernel ``send(numbers, tape, t, index, purpose, value)``.

    It returns an estimate of `value`. The first four numbers are offset and slope of the estimate
    as a function of what a device would send, and the range of `value`.
    """
    return _channel(send, np.array(numbers, np.float64))


def open_channel(low: float = 0.0, high: float = 1.0) -> Channel:
    """Return the channel that sends the value itself and reads no noise."""
    return make_channel(send_openly, 0.0, 1.0, low, high)


@kernel
def send_openly(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Return the value."""
    return value


def _channel(send: Any, numbers: NDArray[np.float64]) -> Channel:
    zero = np.int64(0)
    address = address_of(send, numbers, seeded_tape(0), zero, zero, NOISE, 0.5)
    if address is not send:
        _kernels[address] = (send.__module__, send.__name__)
    return Channel(address, numbers)


def _found_again(module: Any, name: str, numbers: NDArray[np.float64]) -> Channel:
    send = getattr(importlib.import_module(module), name) if name else module
    return _channel(send, numbers)


@kernel
def privatise(channel: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a value through a channel and return what the receiver makes of it, an estimate.

    The noise is read at (t, index, purpose); a mechanism that rounds the value first reads
    (t, index, ROUNDING) too. The call through an address costs about 12 nanoseconds more than the
    mechanism's kernel by name (`benchmarks/channels.py`), which is what a policy uses whose rounds
    are nearly as short and whose mechanism is given, such as kl-UCB with randomized response.
    """
    return evaluate(
        channel.address,
        (channel.numbers, tape, np.int64(t), np.int64(index), np.int64(purpose), np.float64(value)),
    )


@kernel
def debias(channel: Any, symbol: Any) -> Any:
    """Return the estimate that a symbol stands for, which a device sent."""
    return channel.numbers[0] + channel.numbers[1] * symbol


@kernel
def round_to_level(numbers: Any, tape: Any, t: Any, index: Any, value: Any, top: Any) -> Any:
    """Return one of the levels 0 to `top` next to a value of the range, at random, without bias."""
    low, high = numbers[2], numbers[3]
    clipped = min(max(value, low), high)
    position = min((clipped - low) * top / (high - low), np.float64(top))
    level = np.int64(position)
    return level + (1 if uniform(tape, t, index, ROUNDING) < position - level else 0)


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """Something that turns a true value into a released one."""

    name: ClassVar[str]
    """What the command line calls it."""
    summary: ClassVar[str]
    """One line for lists of mechanisms."""
    scope: ClassVar[Mapping[str, Any]] = {"unit": "message", "trust": "local", "span": "message"}
    """What one use protects, from whom and for how long, as `compose` has it."""

    epsilon: Epsilon

    def __post_init__(self) -> None:
        check(self)

    @property
    def secure(self) -> bool:
        """Whether it can run on a secure tape."""
        return not self.insecure_because

    @property
    def insecure_because(self) -> str:
        """Why it cannot run on a secure tape; empty if it can."""
        return ""

    @property
    @abstractmethod
    def release(self) -> Release:
        """What one use releases, for real-valued noise."""

    @property
    def releases(self) -> tuple[tuple[Release, int], ...]:
        """What one use releases, in parts with their numbers, for `compose`."""
        return ((self.release, 1),)

    @property
    def secure_release(self) -> Release:
        """What one use releases on a secure tape; its epsilon is at most that of `release`."""
        self.require_secure()
        return self.release

    def require_secure(self) -> None:
        """Raise ``ValueError`` with the reason if it cannot run on a secure tape."""
        rule = f"seeded, because {self.insecure_because}"
        require(self, "tape", rule, self.secure, "secure")

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of (an unbiased estimate from) one released coordinate, at the worst value of `run`."""

    @property
    def channel_variance(self) -> float:
        """The largest variance of what a channel makes of a number in a range of width 1."""
        return self.variance

    @property
    def half_range(self) -> float:
        """Half the width of all that a channel may make of a number in a range of width 1."""
        return math.inf

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return what a kernel needs to send numbers of [low, high] through this mechanism.

        `privatise` then gives an unbiased estimate of a number at the cost of `epsilon` for any
        number of the range against any other.
        """
        raise ValueError(f"{self._owner}: expected one number for a channel, got something else")

    def instructions(
        self, *, low: float = 0.0, high: float = 1.0, default: float | None = None
    ) -> dict[str, Any]:
        """Return what a device is told, so that it sends what the channel would.

        Parameters
        ----------
        low, high : float
            The range to which the device clips.
        default : float, optional
            What stands for a missing value; `low` unless given.
        """
        levels, answer = self._answer(low, high)
        question = {"low": float(low), "high": float(high), "levels": levels}
        return make_instructions(self._owner, question, answer, default)

    def _answer(self, low: float, high: float) -> tuple[int, dict[str, Any]]:
        """Return how many levels a device is asked for, and its answer as instructions have it."""
        raise ValueError(f"{self._owner}: expected a mechanism that devices know, got this one")

    @abstractmethod
    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return pairs of values, for `run`, that are the hardest to hide from each other."""

    @abstractmethod
    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        """Release `values` once for each row of `out`."""

    def _check(self, values: Array) -> None:
        require(self, "value", "a number", values.size == 1, values.size)

    @property
    def _owner(self) -> str:
        return type(self).__name__

    def run(self, value: ArrayLike, n: int = 1, seed: int | None = None) -> Array:
        """Release `value` n times, independently.

        Parameters
        ----------
        value : float or array of shape (d,)
            The true value.
        n : int
            How often.
        seed : int, optional
            Makes the noise repeatable, for experiments: whoever knows the seed can subtract it.
            Unless it is given, noise is drawn exactly, from the operating system.

        Returns
        -------
        array of shape (n, d)
        """
        values = np.atleast_1d(np.asarray(value, dtype=np.float64))
        self._check(values)
        require(self, "n", ">= 1", n >= 1, n)
        if seed is None:
            self.require_secure()
        tape = secure_tape() if seed is None else seeded_tape(seed)
        values = self._prepare(tape, values)
        out = np.empty((n, values.size))
        self._fill(tape, values, out)
        return out

    def _prepare(self, tape: Tape, values: Array) -> Array:
        """Return what noise is added to, if that is not the value itself."""
        return values

    def _send(self, tape: Tape, values: Array, out: Array, low: float, high: float) -> None:
        _repeat(self.channel(low, high), tape, values[0], out)


class UsesNoise(Mechanism):
    """A mechanism that is as private as the noise in it."""

    @property
    @abstractmethod
    def noise(self) -> Mechanism:
        """The noise, as a mechanism of its own."""

    @property
    def insecure_because(self) -> str:
        """What the noise says."""
        return self.noise.insecure_because

    @property
    def release(self) -> Release:
        """That of the noise."""
        return self.noise.release

    @property
    def secure_release(self) -> Release:
        """That of the noise."""
        self.require_secure()
        return self.noise.secure_release

    @property
    def variance(self) -> float:
        """That of the noise."""
        return self.noise.variance


@dataclass(frozen=True, kw_only=True)
class AdditiveNoise(Mechanism):
    """Noise whose scale is set by a sensitivity, on a number.

    Its channel takes the width of the range as the sensitivity.
    """

    sensitivity: Sensitivity = 1.0

    @property
    def scale(self) -> float:
        """The scale of the noise, sensitivity / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def channel_variance(self) -> float:
        """That of the noise for a sensitivity of 1."""
        return self.variance / self.sensitivity**2

    def _width(self, low: float, high: float) -> float:
        """Return the width of a range, which must be what the noise was made for."""
        require(self, "high", f"> low = {low:g}", high > low, high)
        wide = 1e-100 <= high - low <= 1e100
        require(self, "high", f"from 1e-100 to 1e100 above low = {low:g}", wide, high)
        fits = self.sensitivity in (1.0, high - low)
        rule = f"1 or the width of [{low:g}, {high:g}]"
        require(self, "sensitivity", rule, fits, self.sensitivity)
        return high - low

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return 0 against the sensitivity."""
        return [NeighbouringPair(0.0, self.sensitivity, f"0 against {self.sensitivity:g}")]


@dataclass(frozen=True, kw_only=True)
class VectorNoise(AdditiveNoise):
    """The same on a vector."""

    dimension: Count
    length: ClassVar[float]
    """The power p of the norm in which the sensitivity is measured."""

    def _check(self, values: Array) -> None:
        rule = f"of {self.dimension} coordinates"
        require(self, "value", rule, values.size == self.dimension, values.size)

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return 0 against a change of one coordinate, and of all of them."""
        d, sensitivity = self.dimension, self.sensitivity
        zero, axis = np.zeros(d), np.eye(1, d)[0] * sensitivity
        pairs = [NeighbouringPair(zero, axis, f"0 against {sensitivity:g} in one coordinate")]
        if d > 1:
            dense = np.full(d, sensitivity / d ** (1 / self.length))
            pairs.append(NeighbouringPair(zero, dense, "0 against a vector of equal coordinates"))
        return pairs

    def _number_only(self) -> None:
        require(self, "dimension", "== 1 for a channel", self.dimension == 1, self.dimension)


@kernel
def _repeat(channel: Any, tape: Any, value: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = privatise(channel, tape, i, 0, NOISE, value)
