"""The staircase mechanism: of all noise for a number, the least in absolute value.

Its density falls in steps: by e^-epsilon from one width of the sensitivity to the next, and within
each once, at a share `inner` of the width. At small epsilon it is Laplace noise, at large epsilon its
noise is smaller by far (Geng and Viswanath, The optimal mechanism in differential privacy, ISIT
2014). A secure tape draws its twin on a grid of 1024 steps of the sensitivity.

This file is the whole of it; `docs/mechanisms.md` builds on it to show how one is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.core.constraints import Constraint
from tacit.core.kernels import kernel
from tacit.core.tapes import SECURE, Tape, drawn, noise_uniform, released, secure_place
from tacit.privacy.exact import below, bernoulli_exp
from tacit.privacy.mechanisms.base import AdditiveNoise, Channel, make_channel, round_to_level
from tacit.privacy.mechanisms.device_weights import keep_probability
from tacit.privacy.releases import L1, Array, PureRelease, Release, Scale

STEPS = 1024
_LEAST = 2.0**-54
_NO_WORDS = np.empty(0, np.uint64)
_FINEST = 2.0**-40


@dataclass(frozen=True, kw_only=True)
class StaircaseRelease(Release):
    """Staircase noise, whose loss is either nothing or its level, in one direction or the other.

    Parameters
    ----------
    level : float
        The pure epsilon.
    telling : float
        The probability of losing the level, for values a whole sensitivity apart. The density is
        symmetric and falls, so that this grows with their distance.
    """

    mechanism: ClassVar[str] = "staircase"
    level: Scale
    telling: Annotated[float, Constraint("in (0, 1]", lambda value: 0 < value <= 1)]
    norm: L1 = "l1"

    @property
    def epsilon(self) -> float:
        """The level."""
        return self.level

    def _hockey_stick(self, epsilon: Array) -> Array:
        delta: Array = self.telling * np.maximum(
            0.0, -np.expm1(np.minimum(epsilon - self.level, 0.0))
        )
        return delta

    def group(self, records: int) -> Release:
        """Return what is left for several records: a pure level as many times as large."""
        return self if records == 1 else PureRelease(level=records * self.level, what="staircase")


@dataclass(frozen=True, kw_only=True)
class Staircase(AdditiveNoise):
    """Staircase noise on a number.

    Guarantee: pure epsilon for numbers that differ by at most `sensitivity`.

    Examples
    --------
    At epsilon 10 the noise has a ninth of the variance of Laplace noise:

    >>> from tacit.privacy import Laplace
    >>> round(Laplace(epsilon=10.0).variance, 4), round(Staircase(epsilon=10.0).variance, 4)
    (0.02, 0.0023)
    """

    name: ClassVar[str] = "staircase"
    summary: ClassVar[str] = "the least noise on a number of a known sensitivity"

    @property
    def inner(self) -> float:
        """The share of a step that is likely, 1 / (1 + e^(epsilon/2)), for the least mean size."""
        return 1 - keep_probability(self.epsilon / 2)

    @property
    def _whole_inner(self) -> int:
        return max(1, round(self.inner * STEPS))

    @property
    def _rational(self) -> float:
        """The epsilon of the exact sampler, rounded down to a multiple of 2^-40."""
        return math.floor(self.epsilon / _FINEST) * _FINEST

    def _telling(self, inner: float, epsilon: float) -> float:
        fall = math.exp(-epsilon)
        below_half = inner + fall * (0.5 - inner) if inner < 0.5 else 0.5
        return below_half / (inner + fall * (1 - inner))

    @property
    def release(self) -> StaircaseRelease:
        """Continuous staircase noise as a record."""
        return StaircaseRelease(level=self.epsilon, telling=self._telling(self.inner, self.epsilon))

    @property
    def secure_release(self) -> StaircaseRelease:
        """Its twin on a grid; rounding to it at random costs nothing."""
        n, inner, fall = STEPS, self._whole_inner, math.exp(-self._rational)
        weight = np.where(np.arange(n) < inner, 1.0, fall)
        # Of all x: twice the weights of a width and of its lesser repetitions, 0 counted once.
        total = 2 * weight.sum() / -math.expm1(-self._rational) - weight[0]
        near = 2 * weight[: n // 2].sum() - weight[0] + weight[n // 2]
        telling = near / total / -math.expm1(-self._rational)
        return StaircaseRelease(level=self._rational, telling=min(1.0, float(telling)))

    @property
    def variance(self) -> float:
        """Of the continuous noise, summed over all steps."""
        g, fall = self.inner, math.exp(-self.epsilon)
        rest = -math.expm1(-self.epsilon)
        ones, first, second = 1 / rest, fall / rest**2, fall * (1 + fall) / rest**3
        inside = g * second + g**2 * first + g**3 / 3 * ones
        outside = (1 - g) * second + (1 - g**2) * first + (1 - g**3) / 3 * ones
        height = rest / (g + fall * (1 - g))
        return height * (inside + fall * outside) * self.sensitivity**2

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return the channel; securely, a level of the range plus whole steps of noise."""
        width = self._width(low, high)
        return make_channel(
            send_stairs,
            *(low, width / STEPS, low, high, width, self.epsilon, self.inner),
            *(self._whole_inner, self._rational / _FINEST),
        )

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        self._send(tape, values, out, 0.0, self.sensitivity)


@kernel
def staircase_quantile(u: Any, epsilon: Any, inner: Any) -> Any:
    """Return the u-quantile of staircase noise of sensitivity 1; 0 at u = 1/2."""
    survival = 2.0 * max(min(u, 1.0 - u), _LEAST)
    # Beyond k widths lies exp(-k epsilon).
    k = math.floor(-math.log(survival) / epsilon)
    left = -math.expm1(math.log(survival) + k * epsilon)
    fall = math.exp(-epsilon)
    first = inner * -math.expm1(-epsilon) / (inner + fall * (1.0 - inner))
    if left <= first:
        x = k + inner * left / first
    else:
        second = -math.expm1(-epsilon) - first
        x = k + inner + (1.0 - inner) * min(1.0, (left - first) / second)
    return -x if u < 0.5 else x


@kernel(allocates=True)
def _stairs(k0: Any, k1: Any, k2: Any, k3: Any, t: Any, place: Any, inner: Any, parts: Any) -> Any:
    # A cell of the first width, kept with exp(-epsilon) beyond `inner`; then geometrically many
    # widths, as in Algorithm 2 of Canonne, Kamath and Steinke; epsilon is parts / 2^40.
    key, k, one = (k0, k1, k2, k3), 0, 1 << 40
    while True:
        cell, k = below(2 * STEPS, key, t, place, k, _NO_WORDS)
        sign, cell = 1 - 2 * (cell & 1), cell >> 1
        u, k = below(one, key, t, place, k, _NO_WORDS)
        # Coins of exp(-a / b): for the cell, for u, then of exp(-1) while they come up.
        left, v = parts if cell >= inner else 0, -1
        while True:
            a = min(left, one) if left > 0 else u if v < 0 else one
            accept, k = bernoulli_exp(a, one, key, t, place, k, _NO_WORDS)
            if not accept:
                break
            if left > 0:
                left -= one
            else:
                v += 1
        if v < 0:
            continue
        widths = (u + one * v) // parts
        if cell > 0 or widths > 0 or sign > 0:
            return sign * (cell + STEPS * widths)


@kernel
def send_stairs(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel."""
    if tape.kind == SECURE:
        level = round_to_level(numbers, tape, t, index, value, STEPS)
        drawn(tape, t, index, purpose, 1)
        key, place = tape.key, secure_place(index, purpose)
        inner, parts = np.int64(numbers[7]), np.int64(numbers[8])
        noise = _stairs(key[4], key[5], key[6], key[7], t, place, inner, parts)
        return released(tape, numbers[0] + numbers[1] * (level + noise))
    u = noise_uniform(tape, t, index, purpose)
    clipped = min(max(value, numbers[2]), numbers[3])
    return released(tape, clipped + numbers[4] * staircase_quantile(u, numbers[5], numbers[6]))
