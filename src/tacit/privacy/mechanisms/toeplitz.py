"""Sums released with Gaussian noise that is correlated over time by a square root of a matrix.

The summing matrix A of ones on and below its diagonal is C C with C_(t, t-k) = c_k = binomial(2k, k) /
4^k. To release C x + z, with z independent Gaussian noise, and to multiply it by C gives the sums A x with
noise C z. One item moves C x by its length times that of a column of C, at most the root of the sum of
c_k^2, which grows with the logarithm of the horizon only.

On a secure tape items are whole numbers of steps and so is what is released: coefficients are rounded to
C' in whole multiples of 2^-m, the sum C' x is calculated exactly and rounded to y, and discrete
Gaussian noise is added. Neighbours are then apart by at most the column of C' times the distance of the
items, and one step more for each of T d coordinates that were rounded. From y the sums are
decoded with 2 C - C': with E = C' - C that gives (C - E)(C + E) = A - E E, off by less than
T^2 4^-(m + 1) of an item.

Beyond 2^20 items the sums of c_k and of c_k^2 are replaced by upper bounds, so that a guarantee can be told
for any horizon. The numbers (k + 1/4) c_k^2 increase, because each is the one before times
(k^3 + 9/4 k^2 + 3/2 k + 5/16) / (k^3 + 9/4 k^2 + 3/2 k + 1/4), and by Wallis they tend to 1 / pi. So
c_k^2 < 1 / (pi (k + 1/4)), which is convex in k and thus at most its integral from k - 1/2 to k + 1/2: from
k = n to T - 1 they sum to less than ln((T - 1/4) / (n - 1/4)) / pi. And c_0 + ... + c_(T-1) = 2 T c_T, by
induction.

References
----------
Fichtenberger, Henzinger and Upadhyay (ICML 2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tacit.core.constraints import Share, require
from tacit.core.kernels import kernel
from tacit.core.linalg import dot
from tacit.core.tapes import NOISE, SECURE, Tape
from tacit.privacy.exact import secure_gaussian
from tacit.privacy.mechanisms.continual_sums import GAUSSIAN, LONGEST, ContinualSum, Grid, Stream
from tacit.privacy.mechanisms.gaussian import (
    DiscreteGaussianRelease,
    GaussianRelease,
    gaussian_scale,
    standard_normal,
)
from tacit.privacy.releases import Array

_SUMMED = 2**20
"""Of so many coefficients the sums are calculated; of more they are bounded."""


@dataclass(frozen=True, kw_only=True)
class SquareRootToeplitz(ContinualSum):
    """Every prefix sum of a sequence of vectors, with Gaussian noise correlated over time.

    Guarantee: (epsilon, delta) for one item over the whole run, with noise smaller than that of a tree
    at every horizon. It keeps all earlier noise, and a step takes time that grows with their number.

    Parameters are those of `ContinualSum`, with an L2 sensitivity, and `delta`.
    """

    name: ClassVar[str] = "square-root-toeplitz"
    summary: ClassVar[str] = (
        "every prefix sum of a sequence, by Gaussian noise correlated over time"
    )

    delta: Share

    @cached_property
    def coefficients(self) -> Array:
        """The numbers c_0 to c_(T-1)."""
        return _first_coefficients(self.horizon)

    @cached_property
    def _squares(self) -> Array:
        squares: Array = np.cumsum(_first_coefficients(min(self.horizon, _SUMMED)) ** 2)
        return squares

    def _sum_of_squares(self, items: int) -> float:
        """Return that of the first `items` coefficients, or a bound above it by less than 1e-13."""
        if items <= _SUMMED:
            return float(self._squares[items - 1])
        rest = math.log((items - 0.25) / (_SUMMED - 0.25)) / math.pi
        return float(self._squares[-1]) + rest

    @cached_property
    def _sum(self) -> float:
        """That of all coefficients, or a bound above it."""
        T = self.horizon
        if T <= _SUMMED:
            return float(self.coefficients.sum())
        return 2 * T / math.sqrt(math.pi * (T + 0.25))

    @property
    def scale(self) -> float:
        """The standard deviation of each z."""
        return gaussian_scale(self.epsilon, self.delta, self.factored_sensitivity)

    @property
    def factored_sensitivity(self) -> float:
        """How far one item moves the factored sequence, in L2."""
        return self.sensitivity * math.sqrt(self._sum_of_squares(self.horizon))

    @property
    def release(self) -> GaussianRelease:
        """One Gaussian release of the whole factored sequence."""
        return GaussianRelease(sensitivity=self.factored_sensitivity, scale=self.scale)

    @property
    def secure_release(self) -> DiscreteGaussianRelease:
        """One release of the whole factored sequence, in whole steps."""
        self.require_secure()
        return self._whole_release(*self._moved)

    @property
    def insecure_because(self) -> str:
        """Only where whole numbers would not reach far enough."""
        return self.out_of_reach

    @cached_property
    def grid(self) -> Grid:
        """How sums are kept on a secure tape."""
        return self._gaussian_grid(self.epsilon, self.delta, *self._moved)

    @cached_property
    def _moved(self) -> tuple[float, int]:
        """The length of the longest column of C', and how many coordinates are rounded."""
        # No coefficient is rounded up by more than 2^-21 of the first: m is never less than 20.
        up, T = 2.0**-20, self.horizon
        if T <= _SUMMED:
            squares = float(np.sum((self.coefficients + up) ** 2))
        else:
            squares = self._sum_of_squares(T) + 2 * up * self._sum + T * up**2
        return math.sqrt(squares), T * self.dimension

    @cached_property
    def stream(self) -> Stream:
        """What `next_sum` must know."""
        reversed_factor = self.coefficients[::-1].copy()
        whole = np.rint(reversed_factor * self._parts)
        return Stream(GAUSSIAN, 0, self.horizon, reversed_factor, whole, self._parts)

    @cached_property
    def _parts(self) -> float:
        """How many multiples a coefficient of C' is in, for each 1."""
        largest = self.grid.reach / self.grid.step + 1
        m = math.floor(math.log2(LONGEST / (largest * (self._sum + 1))))
        return 2.0 ** min(m, 40)

    @property
    def out_of_reach(self) -> str:
        """Why whole numbers would not reach far enough, or nothing."""
        if self._parts < 2.0**20:
            return "its factored sums are longer than 2^52 steps of its grid"
        return super().out_of_reach

    @property
    def depth(self) -> int:
        """The noise of every step; and on a secure tape every item, else their sum."""
        return 2 * self.horizon

    def variance_after(self, items: int) -> float:
        """Return scale^2 times the sum of the first `items` squared coefficients, of very many a bound."""
        require(self, "items", f"in [0, {self.horizon}]", 0 <= items <= self.horizon, items)
        return self.scale**2 * self._sum_of_squares(items) if items > 0 else 0.0

    def path(self, tape: Tape, index: int = 0, purpose: Any = NOISE) -> Array:
        """Return the noise of all prefix sums at once, shape (horizon, dimension), by FFT.

        Equal, up to rounding, to what `next_sum` adds step by step; not for secure tapes, where noise
        is never known without what it hides.
        """
        rule = "seeded, because noise alone cannot be released"
        require(self, "tape", rule, tape.kind != SECURE, "secure")
        z = np.zeros((self.horizon, self.dimension))
        _fill_normal(tape, index, purpose, self.scale, z)
        size = 1 << (2 * self.horizon - 1).bit_length()
        spectrum = np.fft.rfft(self.coefficients, size)[:, None]
        noise: Array = np.fft.irfft(np.fft.rfft(z, size, axis=0) * spectrum, size, axis=0)
        return noise[: self.horizon]


def _first_coefficients(n: int) -> Array:
    k = np.arange(1, n)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


@kernel
def toeplitz_step(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    k: Any,
    stream: Any,
    scale: Any,
    grid: Any,
    item: Any,
    memory: Any,
    out: Any,
) -> None:
    """Take in item k, counted from 1, and write the noisy sum of the first k items into `out`."""
    T = stream.coefficients.size
    for j in range(out.size):
        if tape.kind == SECURE:
            memory[j, T + k - 1] = item[j]
            factored = dot(memory[j, T : T + k], stream.factor[T - k :])
            noise = secure_gaussian(tape, t, index + j, purpose, np.int64(grid[1]))
            memory[j, k - 1] = np.rint(factored / stream.parts) + noise
            twice = 2.0 * dot(memory[j, :k], stream.coefficients[T - k :])
            out[j] = twice - dot(memory[j, :k], stream.factor[T - k :]) / stream.parts
        else:
            memory[j, T] += item[j]
            memory[j, k - 1] = scale * standard_normal(tape, t, index + j, purpose)
            out[j] = memory[j, T] + dot(memory[j, :k], stream.coefficients[T - k :])


@kernel
def _fill_normal(tape: Any, index: Any, purpose: Any, sigma: Any, z: Any) -> None:
    for t in range(z.shape[0]):
        for i in range(z.shape[1]):
            z[t, i] = sigma * standard_normal(tape, t, index + i, purpose)
