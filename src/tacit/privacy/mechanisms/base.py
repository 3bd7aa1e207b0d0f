"""What every mechanism is: a frozen description that knows its release, its variance and how to run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import require
from tacit.privacy.releases import Release
from tacit.tapes import Tape, secure_tape, seeded_tape

__all__ = ["AdditiveNoise", "Array", "Mechanism", "VectorNoise"]


Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """Something that turns a true value into a released one."""

    epsilon: float

    def __post_init__(self) -> None:
        require(self, "epsilon", "> 0 and finite", 0 < self.epsilon < math.inf, self.epsilon)

    @property
    def secure(self) -> bool:
        """Whether it can run on a secure tape."""
        return True

    @property
    @abstractmethod
    def release(self) -> Release:
        """What one use releases, for real-valued noise."""

    @property
    def secure_release(self) -> Release:
        """What one use releases on a secure tape; its epsilon is at most that of `release`."""
        require(self, "secure", "True", self.secure, self.secure)
        return self.release

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of (an unbiased estimate from) one released coordinate, at the worst value."""

    @abstractmethod
    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        """Release `values` once for each row of `out`."""

    def _check(self, values: Array) -> None:
        require(self, "value", "a number", values.size == 1, values.size)

    def run(self, value: ArrayLike, n: int, seed: int | None = 0) -> Array:
        """Release `value` n times, independently.

        Parameters
        ----------
        value : float or array of shape (d,)
            The true value.
        n : int
            How often.
        seed : int or None
            Seeds floating-point noise; None draws exact noise from the operating system.

        Returns
        -------
        array of shape (n, d)
        """
        values = np.atleast_1d(np.asarray(value, dtype=np.float64))
        self._check(values)
        require(self, "n", ">= 1", n >= 1, n)
        require(self, "seed", "an integer (no secure sampler is known)",
                self.secure or seed is not None, seed)  # fmt: skip
        tape = secure_tape() if seed is None else seeded_tape(seed)
        out = np.empty((n, values.size))
        self._fill(tape, values, out)
        return out


@dataclass(frozen=True, kw_only=True)
class AdditiveNoise(Mechanism):
    """Noise whose scale is set by a sensitivity, on a number."""

    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive = 0 < self.sensitivity < math.inf
        require(self, "sensitivity", "> 0 and finite", positive, self.sensitivity)

    @property
    def scale(self) -> float:
        """The scale of the noise, sensitivity / epsilon."""
        return self.sensitivity / self.epsilon


@dataclass(frozen=True, kw_only=True)
class VectorNoise(AdditiveNoise):
    """The same on a vector."""

    dimension: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)

    def _check(self, values: Array) -> None:
        rule = f"of {self.dimension} coordinates"
        require(self, "value", rule, values.size == self.dimension, values.size)
