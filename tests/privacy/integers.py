"""Many exact integers at once, for the tests and benchmarks of the exact samplers."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.kernels import kernel
from tacit.privacy.exact import discrete_gaussian, discrete_laplace

_LONGEST, _LIMIT = 1 << 15, 1 << 31


def laplace_integers(scale: float | Fraction, size: int) -> NDArray[np.int64]:
    """Return integers x with probability proportional to exp(-abs(x) / scale), exactly.

    Parameters
    ----------
    scale : float or Fraction
        A rational number; its numerator and denominator must be below 2^31. A float that is not
        such a fraction is rounded up to the next multiple of 2^-20.
    size : int
        How many.
    """
    ratio = Fraction(scale)
    if max(ratio.numerator, ratio.denominator) >= _LIMIT:
        ratio = Fraction(math.ceil(ratio * 2**20), 2**20)
    rule = "> 0, with numerator and denominator below 2^31"
    fits = ratio > 0 and max(ratio.numerator, ratio.denominator) < _LIMIT
    require("laplace_integers", "scale", rule, fits, scale)
    return _fill(_fill_laplace, size, ratio.numerator, ratio.denominator)


def gaussian_integers(sigma: int, size: int) -> NDArray[np.int64]:
    """Return integers x with probability proportional to exp(-x^2 / (2 sigma^2)), exactly.

    Parameters
    ----------
    sigma : int
        A positive integer below 2^28. For noise of another standard deviation choose the grid
        so that it is a whole number of steps.
    size : int
        How many.
    """
    whole = int(sigma) == sigma and 0 < sigma < 2**28
    require("gaussian_integers", "sigma", "a whole number in [1, 2^28)", whole, sigma)
    return _fill(_fill_gaussian, size, int(sigma), 1)


def _fill(
    fill: Callable[..., int], size: int, numerator: int, denominator: int
) -> NDArray[np.int64]:
    require("exact", "size", ">= 0", size >= 0, size)
    out = np.empty(size, np.int64)
    done = 0
    while done < size:
        key = tuple(np.frombuffer(secrets.token_bytes(32), dtype=np.uint64))
        count = min(_LONGEST, 16 * (size - done))
        words = np.frombuffer(bytearray(secrets.token_bytes(8 * count)), dtype=np.uint64)
        done = fill(out, done, numerator, denominator, key, words)
    return out


@kernel
def _fill_laplace(
    out: Any, done: Any, numerator: Any, denominator: Any, key: Any, words: Any
) -> Any:
    # The last draw runs on past the words: to drop it would favour draws that need few.
    k = 0
    while done < out.size and k < words.size:
        out[done], k = discrete_laplace(numerator, denominator, key, 0, 0, k, words)
        done += 1
    return done


@kernel
def _fill_gaussian(
    out: Any, done: Any, numerator: Any, denominator: Any, key: Any, words: Any
) -> Any:
    k = 0
    while done < out.size and k < words.size:
        out[done], k = discrete_gaussian(numerator, key, 0, 0, k, words)
        done += 1
    return done
