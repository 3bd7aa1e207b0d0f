"""Secure samplers for arrays: exact distributions on the randomness of the operating system.

These are for code outside kernels; inside, the releases of `tacit.privacy.samplers` do the same
on a secure tape.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import require
from tacit.compiled import kernel
from tacit.privacy.exact import discrete_gaussian as _draw_gaussian
from tacit.privacy.exact import discrete_laplace as _draw_laplace

__all__ = ["discrete_gaussian", "discrete_laplace", "randomized_response"]

_WORDS = 1 << 15
_LIMIT = 1 << 31


def discrete_laplace(scale: float | Fraction, size: int) -> NDArray[np.int64]:
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
    require("discrete_laplace", "scale", rule, fits, scale)
    return _fill(_fill_laplace, size, ratio.numerator, ratio.denominator)


def discrete_gaussian(sigma: int, size: int) -> NDArray[np.int64]:
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
    require("discrete_gaussian", "sigma", "a whole number in [1, 2^28)", whole, sigma)
    return _fill(_fill_gaussian, size, int(sigma), 1)


def randomized_response(bits: ArrayLike, epsilon: float) -> NDArray[np.bool_]:
    """Return the bits, each flipped independently with probability 1 / (e^epsilon + 1).

    The probability of telling the truth is rounded down to a multiple of 2^-53, so that the
    epsilon achieved is never above the one asked for.
    """
    require("randomized_response", "epsilon", ">= 0", epsilon >= 0, epsilon)
    truth = np.asarray(bits, dtype=np.bool_)
    keep = math.exp(epsilon - np.logaddexp(0.0, epsilon))
    # Two roundings in float are worth at most 4 units in the last place.
    threshold = max(1 << 52, math.floor(keep * 2.0**53) - 4)
    words = np.frombuffer(secrets.token_bytes(8 * truth.size), dtype=np.uint64)
    kept = (words >> np.uint64(11)) < np.uint64(threshold)
    answers: NDArray[np.bool_] = truth == kept.reshape(truth.shape)
    return answers


def _fill(
    fill: Callable[..., int], size: int, numerator: int, denominator: int
) -> NDArray[np.int64]:
    require("secure", "size", ">= 0", size >= 0, size)
    out = np.empty(size, np.int64)
    done = 0
    while done < size:
        key = tuple(np.frombuffer(secrets.token_bytes(32), dtype=np.uint64))
        count = min(_WORDS, 16 * (size - done))
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
        out[done], k = _draw_laplace(numerator, denominator, key, 0, 0, k, words)
        done += 1
    return done


@kernel
def _fill_gaussian(
    out: Any, done: Any, numerator: Any, denominator: Any, key: Any, words: Any
) -> Any:
    k = 0
    while done < out.size and k < words.size:
        out[done], k = _draw_gaussian(numerator, key, 0, 0, k, words)
        done += 1
    return done
