"""Shuffled bits: people flip their bits now and then, and somebody mixes the reports.

Each of n people answers by randomized response and a shuffler forwards the answers without saying whose
they are. What is left of them is their number, a sum of flipped bits: the others' flips hide each person's,
and an outsider learns far less than the person's own epsilon allows. How much less is calculated exactly.

Let k of the n - 1 others have a 1, and let A be the distribution of their answers' sum, a sum of two
binomials. Against an outsider who knows k, delta at epsilon is the sum over c of the positive part of
u A(c - 1) - v A(c), with u = p - e^epsilon q and v = e^epsilon p - q. A is log-concave, so the positive
terms are those from some c on, found by bisection. Two things are cut short, both proved and both counted:

- Binomials are summed where all but e^-60 of their probability lies (Bernstein); the rest is added to delta.
- The worst k is among all up to 1,024 reports. Beyond, one more honest report can only hide more: it
  is added to both sums alike. So delta for k in [j, j + s] is at most that of j ones and n - 1 - j - s
  zeros, and 256 such corners cover all k, as if 1/256 of the reports were missing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.core.constraints import Constraint, Count, require
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, Tape, released
from tacit.privacy.exact import happens
from tacit.privacy.mechanisms.base import HIGHEST_EPSILON, Mechanism, NeighbouringPair
from tacit.privacy.mechanisms.device_weights import keep_probability
from tacit.privacy.releases import Array, Release, Replace

_EXACT, _CORNERS = 1024, 256
_TAIL = 60.0  # of each binomial, e^-60 on either side is left out
_LEFT_OUT = 1e-25  # at least four times that
_FAINT = math.exp(-2 * _TAIL)


@dataclass(frozen=True, kw_only=True)
class ShuffledBitsRelease(Release):
    """The number of ones among flipped bits of `reports` people.

    Parameters
    ----------
    reports : int
        How many people answer, the protected one among them.
    keep : float
        The probability that each tells the truth.
    records : int
        How many records of one person are protected together, in one such release or in several:
        by group privacy, one record after the other.
    """

    mechanism: ClassVar[str] = "shuffled bits"
    reports: Count
    keep: Annotated[float, Constraint("in [0.5, 1)", lambda value: 0.5 <= value < 1)]
    records: Count = 1
    norm: Replace = "replace"

    @property
    def epsilon(self) -> float:
        """The local epsilon, times the records: if all others are ones, a sum of n is a one, too."""
        return self.records * math.log1p((2 * self.keep - 1) / (1 - self.keep))

    @property
    def spread(self) -> float:
        """What one bit moves, in standard deviations of the sum."""
        p = self.keep
        return self.records * (2 * p - 1) / math.sqrt(self.reports * p * (1 - p))

    def _largest_loss(self) -> float:
        # What lies beyond is counted as a certain loss.
        return min(self.epsilon, self.spread**2 / 2 + 9 * self.spread)

    def _hockey_stick(self, epsilon: Array) -> Array:
        m = self.records
        delta = np.empty(epsilon.size)
        worst_delta(self.reports, self.keep, np.ascontiguousarray(epsilon / m), delta, 1.0)
        if m > 1:
            # Times (e^epsilon - 1) / (e^(epsilon / m) - 1), which is m at 0.
            each = np.maximum(epsilon / m, 1e-12)
            growth = (m - 1) * each + np.log(np.expm1(-m * each) / np.expm1(-each))
            with np.errstate(divide="ignore"):
                delta = np.exp(np.minimum(0.0, np.log(delta) + growth))
        delta[epsilon >= self.epsilon] = 0.0
        # Zeros and ones changed for each other turn one direction into the other.
        return delta

    def group(self, records: int) -> ShuffledBitsRelease:
        """Return the release as seen by so many records of one person, wherever they are counted."""
        return dataclasses.replace(self, records=records * self.records)


@dataclass(frozen=True, kw_only=True)
class ShuffledBits(Mechanism):
    """The number of ones among `reports` people's bits, each flipped with probability 1 / (e^epsilon + 1).

    Guarantee: pure epsilon for each bit, even from the shuffler; from everybody else far less, with
    a delta: `central_epsilon` tells it, if the shuffler does not tell whose a report is and the
    others flip their bits as said.

    Parameters
    ----------
    epsilon : float
        The local epsilon.
    reports : int
        How many people's bits are shuffled.

    Examples
    --------
    >>> bits = ShuffledBits(epsilon=2.0, reports=1000)
    >>> round(bits.central_epsilon(delta=1e-6), 3)
    0.323
    >>> round(ShuffledBits.calibrate(epsilon=0.323, delta=1e-6, reports=1000).epsilon, 2)
    2.0
    """

    name: ClassVar[str] = "shuffled-bits"
    summary: ClassVar[str] = "the number of ones among many people's flipped bits"
    scope: ClassVar[Mapping[str, Any]] = {"unit": "message", "trust": "shuffler", "span": "message"}

    reports: Count

    @classmethod
    def calibrate(cls, *, epsilon: float, delta: float, reports: int) -> ShuffledBits:
        """Return the largest local epsilon of a block that is (epsilon, delta)-private from outside."""
        require(cls.__name__, "epsilon", "> 0", epsilon > 0, epsilon)
        require(cls.__name__, "delta", "in [0, 1)", 0 <= delta < 1, delta)
        require(cls.__name__, "reports", ">= 1", reports >= 1, reports)
        return cls(
            epsilon=_largest_local(float(epsilon), float(delta), int(reports)), reports=reports
        )

    @property
    def keep(self) -> float:
        """The probability that each person tells the truth."""
        return keep_probability(self.epsilon)

    @property
    def release(self) -> ShuffledBitsRelease:
        """The number of ones as a record."""
        return ShuffledBitsRelease(reports=self.reports, keep=self.keep)

    def central_epsilon(self, delta: float) -> float:
        """Return the epsilon from outside the shuffler, at `delta`."""
        from tacit.privacy.accounting import composed_epsilon

        return composed_epsilon([(self.release, 1)], delta)

    @property
    def variance(self) -> float:
        """Of the estimated number of true ones, however many there are."""
        p = self.keep
        return self.reports * p * (1 - p) / (2 * p - 1) ** 2

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return a one more among zeros, among ones and among both."""
        n = self.reports
        return [
            NeighbouringPair(float(k), float(k + 1), f"{k} ones against {k + 1}")
            for k in sorted({0, (n - 1) // 2, n - 1})
        ]

    def _check(self, values: Array) -> None:
        count = values.size == 1 and values[0] in range(self.reports + 1)
        require(self, "value", f"a count 0 to {self.reports}", count, values.tolist())

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run(tape, int(values[0]), self.reports, self.keep, out)


@lru_cache(maxsize=256)
def _largest_local(epsilon: float, delta: float, reports: int) -> float:
    """Return the largest local epsilon, to five digits from below."""
    low, high = min(epsilon, HIGHEST_EPSILON), HIGHEST_EPSILON
    curve, at = np.empty(1), np.array([epsilon])
    while high - low > 1e-5 * low:
        middle = (low + high) / 2
        worst_delta(reports, keep_probability(middle), at, curve, delta)
        low, high = (middle, high) if curve[0] <= delta else (low, middle)
    return low


@kernel
def flip_bit(tape: Any, t: Any, index: Any, purpose: Any, bit: Any, keep: Any) -> Any:
    """Return a bit that stays itself with probability `keep`; only the shuffler sees it."""
    kept = happens(tape, t, index, purpose, keep)
    return 1 if (bit != 0) == kept else 0


@kernel
def _run(tape: Any, ones: Any, reports: Any, keep: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        count = 0
        for j in range(reports):
            count += flip_bit(tape, i, j, NOISE, j < ones, keep)
        out[i, 0] = released(tape, float(count))


@kernel(allocates=True)
def worst_delta(n: Any, p: Any, epsilon: Any, out: Any, enough: Any) -> None:
    """Write delta at each epsilon for the worst number of ones among the n - 1 others.

    Once all are above `enough`, no further number is tried.
    """
    out[:] = 0.0
    s = 0 if n <= _EXACT else -(-n // _CORNERS)
    # As a rule the most ones are the worst.
    for i in range((n - 1) // (s + 1), -1, -1):
        j = i * (s + 1)
        _raise_to(j, max(n - 1 - j - s, 0), p, epsilon, out)
        if out.min() > enough:
            return


@kernel(allocates=True)
def _raise_to(k: Any, m: Any, p: Any, epsilon: Any, out: Any) -> None:
    """Raise delta to that of k ones and m zeros among the others."""
    q = 1.0 - p
    x, cut_x = _binomial(k, p)
    y, cut_y = _binomial(m, q)
    above = np.zeros(y.size + 1)
    for i in range(y.size - 1, -1, -1):
        above[i] = above[i + 1] + y[i]
    size = x.size + y.size - 1
    masses, tails = np.full(size, -1.0), np.full(size + 1, -1.0)
    begin = 0
    for e in range(epsilon.size):
        growth = math.exp(min(epsilon[e], 700.0))
        u, v = p - growth * q, growth * p - q
        if u <= 0.0:
            continue
        # The first place c with u A(c - 1) > v A(c); A is 0 after its last place.
        low, high = -1, size
        if e > 0 and epsilon[e] >= epsilon[e - 1]:
            low = begin
        while high - low > 1:
            c = (low + high) >> 1
            if c > 0 and u * _mass(x, y, c - 1, masses) > v * _mass(x, y, c, masses):
                high = c
            else:
                low = c
        begin = low
        delta = u * _tail(x, above, high - 1, tails) - v * _tail(x, above, high, tails)
        if cut_x or cut_y:
            delta += _LEFT_OUT
        out[e] = max(out[e], delta)


@kernel(allocates=True)
def _binomial(n: Any, p: Any) -> Any:
    """Return the probabilities of how many of n draws hit, and whether some are cut off."""
    reach = _TAIL / 3.0 + math.sqrt(_TAIL * _TAIL / 9.0 + 2.0 * _TAIL * n * p * (1.0 - p))
    low = max(0, math.floor(n * p - reach))
    high = min(n, math.ceil(n * p + reach))
    peak = min(max(int((n + 1) * p), low), high)
    masses = np.zeros(high - low + 1)
    masses[peak - low] = 1.0
    last, odds = peak, p / (1.0 - p)
    for j in range(peak, high):
        value = masses[j - low] * (n - j) / (j + 1.0) * odds
        if value < _FAINT:
            break
        masses[j + 1 - low] = value
        last = j + 1
    first = peak
    for j in range(peak, low, -1):
        value = masses[j - low] * j / (n - j + 1.0) / odds
        if value < _FAINT:
            break
        masses[j - 1 - low] = value
        first = j - 1
    kept = masses[first - low : last - low + 1]
    kept /= kept.sum()
    return kept, first > 0 or last < n


@kernel
def _mass(x: Any, y: Any, c: Any, known: Any) -> Any:
    # A(c), c counted from the first place; remembered, because epsilons ask for the same places.
    if known[c] < 0.0:
        total = 0.0
        for i in range(max(0, c - y.size + 1), min(x.size, c + 1)):
            total += x[i] * y[c - i]
        known[c] = total
    return known[c]


@kernel
def _tail(x: Any, above: Any, c: Any, known: Any) -> Any:
    # The probability of c and more; above[i] is that of y from place i on.
    if known[c] < 0.0:
        total = 0.0
        for i in range(x.size):
            total += x[i] * above[min(max(0, c - i), above.size - 1)]
        known[c] = total
    return known[c]
