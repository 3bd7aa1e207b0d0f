"""Continual release of sums: after every item, the sum so far, for all items one guarantee.

Three ways. A binary tree adds noise to dyadic blocks, of which each prefix needs few and each item
touches few. A square-root Toeplitz factorisation correlates Gaussian noise over time, better at
every horizon but not pure. Local noise on each item needs no trusted server; its error grows with
the square root of time but not with the dimension, and for long vectors that wins for long.

Each object is calibrated to an item's sensitivity in a named norm, declares its releases, gives the
exact variance of its error after each item, and has a kernel for the noise.

References
----------
Dwork et al. (STOC 2010) and Chan et al. (TISSEC 2011): the tree. Honaker (2015): the online
combination of its nodes. Fichtenberger, Henzinger and Upadhyay (ICML 2023): the factorisation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.compiled import kernel
from tacit.privacy.mechanisms.base import Mechanism
from tacit.privacy.mechanisms.gaussian import (
    GaussianRelease,
    gaussian_scale,
    normal_noise,
    standard_normal,
)
from tacit.privacy.mechanisms.l2_ball import BallRelease, ball_noise
from tacit.privacy.mechanisms.l2_laplace import L2CalibratedLaplaceRelease
from tacit.privacy.mechanisms.laplace import LaplaceRelease, laplace_noise
from tacit.privacy.mechanisms.release import Release
from tacit.tapes import NOISE, SECURE, Tape

__all__ = [
    "BinaryTree",
    "ContinualSum",
    "LocalSum",
    "SquareRootToeplitz",
    "toeplitz_noise",
    "tree_noise",
]

Array = NDArray[np.float64]
LAPLACE, GAUSSIAN, BALL = 0, 1, 2
_KINDS = {"laplace": LAPLACE, "gaussian": GAUSSIAN, "ball": BALL, "l2_laplace": LAPLACE}
_NORMS = {"laplace": "l1", "gaussian": "l2", "ball": "l2", "l2_laplace": "l2"}


class ContinualSum(ABC):
    """A way to release every prefix sum of a sequence of vectors."""

    @property
    @abstractmethod
    def releases(self) -> tuple[tuple[Release, int], ...]:
        """What one item touches in the whole run, for `compose`."""

    @abstractmethod
    def variance(self, items: int) -> float:
        """Return the exact variance of one coordinate of the error after `items` items."""


@dataclass(frozen=True, kw_only=True)
class BinaryTree(ContinualSum):
    """Noise on the nodes of a binary tree over time.

    Parameters
    ----------
    horizon : int
        The number of items T; an item touches floor(log2 T) + 1 nodes.
    epsilon, delta : float
        The guarantee for one item over the whole run; delta > 0 is for Gaussian noise only.
    sensitivity : float
        The largest distance between two values of one item, in `norm`.
    noise : {"laplace", "gaussian", "ball", "l2_laplace"}
        ``"l2_laplace"`` is what paper 004 publishes; it does not meet its epsilon, and `releases`
        says what it does meet.
    norm : {"l1", "l2"}
        Must be the one the noise needs: L1 for Laplace, L2 for the others.
    dimension : int
        The length of an item.
    online : bool
        Combine a node with the nodes below it, which are noisy sums of the same items (Honaker).

    Examples
    --------
    >>> tree = BinaryTree(horizon=10_000, epsilon=2.0, noise="laplace", norm="l1", online=False)
    >>> tree.levels, tree.scale
    (14, 7.0)
    """

    horizon: int
    epsilon: float
    delta: float = 0.0
    sensitivity: float = 1.0
    noise: str = "laplace"
    norm: str = "l1"
    dimension: int = 1
    online: bool = True

    def __post_init__(self) -> None:
        require(self, "horizon", ">= 1", self.horizon >= 1, self.horizon)
        require(self, "epsilon", "> 0 and finite", 0 < self.epsilon < math.inf, self.epsilon)
        require(self, "sensitivity", "> 0", self.sensitivity > 0, self.sensitivity)
        require(self, "noise", f"in {sorted(_KINDS)}", self.noise in _KINDS, self.noise)
        need = _NORMS[self.noise]
        require(self, "norm", f"== {need!r} for {self.noise} noise", self.norm == need, self.norm)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)
        gaussian = self.noise == "gaussian"
        rule = "in (0, 1)" if gaussian else f"== 0 for {self.noise} noise"
        fits = 0 < self.delta < 1 if gaussian else self.delta == 0
        require(self, "delta", rule, fits, self.delta)

    @property
    def levels(self) -> int:
        """The number of nodes that contain an item."""
        return self.horizon.bit_length()

    @property
    def scale(self) -> float:
        """The scale of a node's noise (of its standard deviation, if Gaussian)."""
        if self.noise == "gaussian":
            spread = math.sqrt(self.levels) * self.sensitivity
            return gaussian_scale(self.epsilon, self.delta, spread)
        return self.levels * self.sensitivity / self.epsilon

    @property
    def level(self) -> float:
        """What `tree_noise` takes beside the sensitivity: a node's epsilon, or its scale."""
        if self.kind == LAPLACE:
            return self.epsilon / self.levels
        return self.scale

    @property
    def kind(self) -> int:
        """What `tree_noise` calls the noise."""
        return _KINDS[self.noise]

    @property
    def releases(self) -> tuple[tuple[Release, int], ...]:
        """One node at every level; Gaussian and ``"l2_laplace"`` nodes are counted as one release."""
        s, b, d = self.sensitivity, self.scale, self.dimension
        release: Release
        if self.noise == "laplace":
            release = LaplaceRelease(sensitivity=s, scale=b)
        elif self.noise == "gaussian":
            together = math.sqrt(self.levels) * s
            return ((GaussianRelease(sensitivity=together, scale=b), 1),)
        elif self.noise == "ball":
            release = BallRelease(sensitivity=s, scale=b, dimension=d)
        else:
            published = L2CalibratedLaplaceRelease(
                sensitivity=s, scale=b, dimension=d, nodes=self.levels
            )
            return ((published, 1),)
        return ((release, self.levels),)

    @property
    def node_variance(self) -> float:
        """The variance of one coordinate of a node's own noise."""
        factor = {LAPLACE: 2, GAUSSIAN: 1, BALL: self.dimension + 1}[self.kind]
        return factor * self.scale**2

    def variance(self, items: int) -> float:
        """Return the sum over the nodes of the prefix; an online node of height h has 1 / (2 - 2^-h)."""
        require(self, "items", f"in [0, {self.horizon}]", 0 <= items <= self.horizon, items)
        heights = [h for h in range(items.bit_length()) if items >> h & 1]
        parts = [1 / (2 - 2.0**-h) if self.online else 1.0 for h in heights]
        return self.node_variance * math.fsum(parts)

    def nodes(self) -> Array:
        """Return the state of `tree_noise`, shape (levels + 1, dimension)."""
        return np.zeros((self.levels + 1, self.dimension))


@dataclass(frozen=True, kw_only=True)
class SquareRootToeplitz(ContinualSum):
    """Gaussian noise correlated over time by the square root of the summing matrix.

    Row t of the released noise is the sum of c_k z_(t-k) with c_k = binomial(2k, k) / 4^k.

    Parameters
    ----------
    horizon : int
        The number of items T.
    epsilon, delta : float
        The guarantee for one item over the whole run.
    sensitivity : float
        The largest L2 distance between two values of one item.
    dimension : int
        The length of an item.
    """

    horizon: int
    epsilon: float
    delta: float
    sensitivity: float = 1.0
    dimension: int = 1

    def __post_init__(self) -> None:
        require(self, "horizon", ">= 1", self.horizon >= 1, self.horizon)
        require(self, "epsilon", "> 0 and finite", 0 < self.epsilon < math.inf, self.epsilon)
        require(self, "delta", "in (0, 1)", 0 < self.delta < 1, self.delta)
        require(self, "sensitivity", "> 0", self.sensitivity > 0, self.sensitivity)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)

    @cached_property
    def coefficients(self) -> Array:
        """The numbers c_0 to c_(T-1)."""
        k = np.arange(1, self.horizon)
        return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])

    @cached_property
    def _squares(self) -> Array:
        squares: Array = np.cumsum(self.coefficients**2)
        return squares

    @property
    def scale(self) -> float:
        """The standard deviation of each z."""
        return gaussian_scale(self.epsilon, self.delta, self.factored_sensitivity)

    @property
    def factored_sensitivity(self) -> float:
        """How far one item moves the factored sequence, in L2."""
        return self.sensitivity * math.sqrt(float(self._squares[-1]))

    @property
    def releases(self) -> tuple[tuple[Release, int], ...]:
        """One Gaussian release of the whole factored sequence."""
        return ((GaussianRelease(sensitivity=self.factored_sensitivity, scale=self.scale), 1),)

    def variance(self, items: int) -> float:
        """Return scale^2 times the sum of the first `items` squared coefficients."""
        require(self, "items", f"in [0, {self.horizon}]", 0 <= items <= self.horizon, items)
        return self.scale**2 * float(self._squares[items - 1]) if items > 0 else 0.0

    def history(self) -> Array:
        """Return the state of `toeplitz_noise`, shape (horizon, dimension)."""
        return np.zeros((self.horizon, self.dimension))

    def path(self, tape: Tape, index: int = 0, purpose: Any = NOISE) -> Array:
        """Return the noise of all prefix sums at once, shape (horizon, dimension), by FFT.

        Equal, up to rounding, to what `toeplitz_noise` gives step by step; not for secure tapes.
        """
        rule = "seeded, because the factored sequence is not on a grid"
        require(self, "tape", rule, tape.kind != SECURE, "secure")
        z = self.history()
        _fill_normal(tape, index, purpose, self.scale, z)
        size = 1 << (2 * self.horizon - 1).bit_length()
        spectrum = np.fft.rfft(self.coefficients, size)[:, None]
        noise: Array = np.fft.irfft(np.fft.rfft(z, size, axis=0) * spectrum, size, axis=0)
        return noise[: self.horizon]


@dataclass(frozen=True, kw_only=True)
class LocalSum(ContinualSum):
    """Noise on every item before anybody else sees it; the sum is post-processing.

    Parameters
    ----------
    mechanism : Mechanism
        What is done to one item.
    """

    mechanism: Mechanism

    @property
    def releases(self) -> tuple[tuple[Release, int], ...]:
        """One use of the mechanism."""
        return ((self.mechanism.release, 1),)

    def variance(self, items: int) -> float:
        """Return the sum of `items` variances, at the worst values."""
        require(self, "items", ">= 0", items >= 0, items)
        return items * self.mechanism.variance


@kernel
def tree_noise(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    kind: Any,
    sensitivity: Any,
    level: Any,
    online: Any,
    nodes: Any,
    out: Any,
) -> None:
    """Write the noise of the sum of items 0 to t into `out`; call it once for every t, in order.

    Row h of `nodes` is the noise of the complete node of height h that the prefix uses; the last
    row is scratch. The node of height h that ends at t reads d indices of round t, from index + h d on.
    On a secure tape items must be multiples of the
    noise's grid, and Gaussian noise of several dimensions and ball noise are NaN.
    """
    top, d = nodes.shape[0] - 1, out.size
    height = 0
    while (t + 1) >> height & 1 == 0:
        height += 1
    first = 0 if online else height
    for h in range(first, height + 1):
        fresh = nodes[top]
        if kind == BALL:
            ball_noise(tape, t, index + h * d, purpose, level, fresh)
        else:
            for i in range(d):
                at = index + h * d + i
                if kind == LAPLACE:
                    fresh[i] = laplace_noise(tape, t, at, purpose, sensitivity, level, d)
                elif d == 1:
                    fresh[i] = normal_noise(tape, t, at, purpose, sensitivity, level)
                else:
                    fresh[i] = level * standard_normal(tape, t, at, purpose)
        # Inverse-variance weights: own noise 1, the two nodes below 2^h / (2^h - 1) together.
        own = 2.0**h / (2.0 ** (h + 1) - 1.0) if online else 1.0
        for i in range(d):
            children = nodes[h - 1, i] + out[i] if h > first else 0.0
            out[i] = own * fresh[i] + (1.0 - own) * children
    for i in range(d):
        nodes[height, i] = out[i]
        for h in range(height + 1, top):
            if (t + 1) >> h & 1:
                out[i] += nodes[h, i]


@kernel
def toeplitz_noise(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    sigma: Any,
    coefficients: Any,
    history: Any,
    out: Any,
) -> None:
    """Write the noise of the sum of items 0 to t into `out`; call it once for every t, in order.

    Research only, NaN on a secure tape: the factored sequence is not on a grid.
    """
    for i in range(out.size):
        history[t, i] = sigma * standard_normal(tape, t, index + i, purpose)
        total = 0.0
        for k in range(t + 1):
            total += coefficients[k] * history[t - k, i]
        out[i] = total


@kernel
def _fill_normal(tape: Any, index: Any, purpose: Any, sigma: Any, z: Any) -> None:
    for t in range(z.shape[0]):
        for i in range(z.shape[1]):
            z[t, i] = sigma * standard_normal(tape, t, index + i, purpose)
