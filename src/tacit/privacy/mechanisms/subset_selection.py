"""One of several symbols, told as a random subset that holds it more often than not.

A subset of w of the D symbols is sent: with probability p = w e^eps / (w e^eps + D - w) one of those
that hold the true symbol, else one of those that do not, all of a kind alike. With w = 1 this is k-ary
response; the best size is near D / (e^eps + 1). Of all ways to tell one of many symbols it has the
least variance at small and middle epsilon. Wang et al., Mutual information optimally local private
discrete distribution estimation, 2016; Ye and Barg, 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.core.constraints import Constraint, Count, Share, require
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, Tape, released
from tacit.device.instructions import subset_size
from tacit.privacy.exact import happens, noise_below
from tacit.privacy.mechanisms.base import Mechanism, NeighbouringPair
from tacit.privacy.mechanisms.device_weights import BITS, weights_of
from tacit.privacy.releases import AnswersOnce, Array

_Options = Annotated[
    int, Constraint("in 2..64", lambda v: 2 <= v <= 64, {"minimum": 2, "maximum": 64})
]
_U1 = np.uint64(1)


@dataclass(frozen=True, kw_only=True)
class SubsetRelease(AnswersOnce):
    """A subset of a fixed size that holds the true symbol with probability `keep`.

    Parameters
    ----------
    options : int
        D.
    size : int
        w.
    keep : float
        p.
    """

    mechanism: ClassVar[str] = "subset selection"
    options: Count
    size: Count
    keep: Share

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "size", f"below {self.options} options", self.size < self.options, self.size)

    @property
    def _masses(self) -> tuple[float, float]:
        # Of the subsets that hold one of two symbols: the true one alone, the other one alone.
        D, w = self.options, self.size
        return self.keep * (D - w) / (D - 1), (1 - self.keep) * w / (D - 1)

    @property
    def epsilon(self) -> float:
        """The log ratio of those that hold the one to those that hold the other."""
        mine, other = self._masses
        return abs(math.log(mine) - math.log(other))

    def _hockey_stick(self, epsilon: Array) -> Array:
        mine, other = max(self._masses), min(self._masses)
        delta: Array = np.maximum(0.0, mine - np.exp(np.minimum(epsilon, 700.0)) * other)
        return delta


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(Mechanism):
    """One of several symbols as a random subset of them; with size 1 k-ary response.

    Guarantee: pure epsilon for any symbol against any other, without a trusted server. `variance` is
    of the debiased bit of a symbol that is not the true one.

    Parameters
    ----------
    epsilon : float
    options : int
        How many symbols D there are, from 2 to 64.
    size : int, optional
        How many of them a subset holds; by default the best, near D / (e^epsilon + 1).

    Examples
    --------
    >>> SubsetSelection(epsilon=1.0, options=11).best_size
    3
    >>> SubsetSelection(epsilon=2.0, options=11).best_size
    1
    >>> round(SubsetSelection(epsilon=1.0, options=11).release.epsilon, 9)
    1.0
    """

    name: ClassVar[str] = "subset-selection"
    summary: ClassVar[str] = "one of several symbols, as a random subset that often holds it"

    options: _Options
    size: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = self.best_size < self.options
        require(self, "size", f"below {self.options} options", fits, self.size)

    @property
    def best_size(self) -> int:
        """w, the one given or the best."""
        if self.size is not None:
            return self.size
        return subset_size(self.epsilon, self.options)

    @property
    def release(self) -> SubsetRelease:
        """The subset as a record; its epsilon is never above the one asked for."""
        D, w = self.options, self.best_size
        a, b = weights_of(self.epsilon, w, D - w)
        keep = float((w * a << BITS) // (w * a + (D - w) * b)) * 2.0**-BITS
        return SubsetRelease(options=D, size=w, keep=keep)

    @property
    def chances(self) -> tuple[float, float]:
        """Probabilities that a subset holds the true symbol, and any other one."""
        D, w, p = self.options, self.best_size, self.release.keep
        return p, (w - p) / (D - 1)

    @property
    def joint_chances(self) -> tuple[float, float]:
        """Probabilities that it holds two given symbols, one of them the true one, or neither."""
        D, w, p = self.options, self.best_size, self.release.keep
        if D == 2:
            return 0.0, 0.0
        return p * (w - 1) / (D - 1), (w - 1) * (w - 2 * p) / ((D - 1) * (D - 2))

    @property
    def variance(self) -> float:
        """That is q (1 - q) / (p - q)^2."""
        p, q = self.chances
        return q * (1 - q) / (p - q) ** 2

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return one symbol against another; all are alike."""
        return [NeighbouringPair(0.0, self.options - 1.0, "the first symbol against the last")]

    def _check(self, values: Array) -> None:
        symbol = values[0] if values.size == 1 else -1.0
        inside = symbol == int(symbol) and 0 <= symbol < self.options
        require(self, "value", f"a symbol in 0..{self.options - 1}", inside, values.tolist())

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        release = self.release
        _run_subsets(tape, int(values[0]), self.options, release.size, release.keep, out)


@kernel
def release_subset(
    tape: Any, t: Any, index: Any, purpose: Any, symbol: Any, symbols: Any, size: Any, keep: Any
) -> Any:
    """Release a subset that holds `symbol` with probability `keep`, as the bits of a word.

    All words are read at (t, index, purpose): the first decides whether the symbol is in, others
    which of the rest are, by selection sampling with whole numbers.
    """
    chosen, wanted, k = np.uint64(0), size, 1
    if happens(tape, t, index, purpose, keep):
        chosen = _U1 << np.uint64(symbol)
        wanted = size - 1
    left = symbols - 1
    for other in range(symbols):
        if other != symbol:
            draw, k = noise_below(tape, t, index, purpose, k, left)
            if draw < wanted:
                chosen |= _U1 << np.uint64(other)
                wanted -= 1
            left -= 1
    released(tape, float(chosen))
    return chosen


@kernel
def _run_subsets(tape: Any, symbol: Any, symbols: Any, size: Any, keep: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = float(release_subset(tape, i, 0, NOISE, symbol, symbols, size, keep))
