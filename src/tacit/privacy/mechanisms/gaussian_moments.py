"""Gaussian noise on the second moments of a context and its reward: a symmetric matrix and a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.core.constraints import Count, Share, require
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, SECURE, Tape
from tacit.privacy.mechanisms.base import NeighbouringPair, Sensitivity, UsesNoise
from tacit.privacy.mechanisms.continual_sums import A_LITTLE
from tacit.privacy.mechanisms.gaussian import Gaussian, gaussian_steps, release_gaussian
from tacit.privacy.releases import Array


@dataclass(frozen=True, kw_only=True)
class GaussianMoments(UsesNoise):
    """Gaussian noise on a sum of (x x', x r), in which one pair (x, r) is replaced by another.

    The matrix is symmetric: its diagonal and what lies below it, times the root of 2, has the
    Frobenius norm for its length, so that d (d + 1) / 2 + d numbers get noise of one deviation.

    Guarantee: (epsilon, delta) for contexts no longer than 1 and rewards of at most `largest`. The
    sensitivity is exact but for 2^-28 of it, by which contexts may be too long: for contexts at an
    angle of cosine c and opposite rewards R the squared change is 2 - 2 c^2 + 2 R^2 (1 + c), largest at
    c = min(1, R^2 / 2). On a secure tape noise is discrete, as for `Gaussian`, and products are rounded
    to its grid one by one, so that sums are exact and one pair moves each coordinate by at most a step
    more.

    Parameters
    ----------
    epsilon, delta : float
        Privacy of one pair that enters the sum.
    dimension : int
        Length d of a context.
    largest : float, default 1
        The largest reward, in absolute value.

    `run` takes one context and its reward, d + 1 numbers, and releases d (d + 3) / 2.

    Examples
    --------
    >>> moments = GaussianMoments(epsilon=2.0, delta=1e-6, dimension=3)
    >>> moments.coordinates, round(moments.sensitivity, 4), round(moments.scale, 2)
    (9, 2.1213, 4.73)
    """

    name: ClassVar[str] = "gaussian-moments"
    summary: ClassVar[str] = "Gaussian noise on contexts and rewards summed as (x x', x r)"

    delta: Share
    dimension: Count
    largest: Sensitivity = 1.0

    @property
    def coordinates(self) -> int:
        """How many numbers are released."""
        return self.dimension * (self.dimension + 3) // 2

    @property
    def sensitivity(self) -> float:
        """The largest L2 distance that one pair makes."""
        R = self.largest
        exact = math.sqrt(2) * (1 + R * R / 2) if R * R <= 2 else 2 * R
        return exact * A_LITTLE

    @property
    def step(self) -> float:
        """The grid to whose multiples products are rounded on a secure tape."""
        return float(gaussian_steps(self.sensitivity, self.scale, self.coordinates)[0])

    @property
    def noise(self) -> Gaussian:
        """The noise on all of them."""
        size, change = self.coordinates, self.sensitivity
        return Gaussian(epsilon=self.epsilon, delta=self.delta, sensitivity=change, dimension=size)

    @property
    def scale(self) -> float:
        """The standard deviation."""
        return self.noise.scale

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return two contexts with opposite rewards at the worst angle, and one context alone."""
        R, axis = self.largest, np.eye(1, self.dimension)[0]
        pairs = [
            NeighbouringPair(
                np.append(axis, R), np.append(axis, -R), "opposite rewards of one context"
            )
        ]
        if self.dimension > 1:
            cosine = min(1.0, R * R / 2)
            turned = cosine * axis + math.sqrt(1 - cosine**2) * np.eye(1, self.dimension, 1)[0]
            words = "opposite rewards of two contexts"
            pairs.insert(0, NeighbouringPair(np.append(axis, R), np.append(turned, -R), words))
        return pairs

    def _check(self, values: Array) -> None:
        size = self.dimension + 1
        rule = f"a context and a reward, {size} numbers"
        require(self, "value", rule, values.size == size, values.size)
        length = float(np.linalg.norm(values[:-1]))
        require(self, "value", "of a context of length <= 1", length <= 1 + 1e-9, length)
        bounded = abs(float(values[-1])) <= self.largest
        require(self, "value", f"of a reward within {self.largest:g}", bounded, float(values[-1]))

    def _prepare(self, tape: Tape, values: Array) -> Array:
        sums = np.zeros(self.coordinates)
        add_moments(values[:-1], values[-1], self.step if tape.kind == SECURE else 0.0, sums)
        return sums

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        for i in range(len(out)):
            release_moments(tape, i, values, self.sensitivity, self.scale, out[i])


@kernel
def _rounded(value: Any, step: Any) -> Any:
    return step * np.rint(value / step) if step > 0.0 else value


@kernel
def add_moments(x: Any, reward: Any, step: Any, sums: Any) -> None:
    """Add (x x', x r) to sums: the matrix row by row to its diagonal, then the vector.

    Products are rounded to multiples of `step`, a power of two; 0 for none.
    """
    j, root = 0, math.sqrt(2.0)
    for a in range(x.size):
        for b in range(a):
            sums[j] += _rounded(root * x[a] * x[b], step)
            j += 1
        sums[j] += _rounded(x[a] * x[a], step)
        j += 1
    for a in range(x.size):
        sums[j + a] += _rounded(x[a] * reward, step)


@kernel
def matrix_of_moments(sums: Any, matrix: Any) -> None:
    """Write the symmetric matrix that sums stand for."""
    j, root = 0, math.sqrt(2.0)
    for a in range(matrix.shape[0]):
        for b in range(a):
            matrix[a, b] = matrix[b, a] = sums[j] / root
            j += 1
        matrix[a, a] = sums[j]
        j += 1


@kernel
def release_moments(tape: Any, t: Any, sums: Any, sensitivity: Any, scale: Any, out: Any) -> None:
    """Write sums plus noise; one position of the tape for each number, in round t.

    On a secure tape sums are multiples of the grid of this noise, as `add_moments` leaves them.
    """
    for j in range(sums.size):
        out[j] = release_gaussian(tape, t, j, NOISE, sums[j], sensitivity, scale, sums.size)
