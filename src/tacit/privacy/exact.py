"""Exact integer samplers: discrete Laplace and discrete Gaussian without a floating-point number.

Canonne, Kamath and Steinke (NeurIPS 2020), Algorithms 1 to 3, on a stream of 64-bit words. Every
decision compares integers, so the probabilities are those of the formulas and not of their
rounding; a value on a grid plus such noise leaks nothing through its low bits.

The stream of position (t, j) is the array `words`, if there is one, and after its end ChaCha20
under `key`. Each sampler takes the index k of the next word and returns it moved on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.compiled import kernel
from tacit.generator import _mulhilo, chacha20

__all__ = ["below", "bernoulli_exp", "discrete_gaussian", "discrete_laplace"]

_MAX = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _BIT32 = np.uint64(1), np.uint64(32)


@kernel(allocates=True)
def _block(key: Any, t: Any, j: Any, k: Any) -> Any:
    # Compiled apart: inlined at every call of every sampler it would fill a minute of compiling.
    return chacha20(
        key[0], key[1], key[2], key[3], np.uint64(t), (np.uint64(j) << _BIT32) | np.uint64(k)
    )


@kernel
def _fresh(key: Any, t: Any, j: Any, k: Any, words: Any) -> Any:
    if k < words.size:
        return words[k]
    return _block(key, t, j, k)


@kernel
def below(n: Any, key: Any, t: Any, j: Any, k: Any, words: Any) -> Any:
    """Return a uniform integer in [0, n) and the next k (Lemire's rejection)."""
    n = np.uint64(n)
    high, low = _mulhilo(_fresh(key, t, j, k, words), n)
    k += 1
    if low < n:
        least = (_MAX - n + _ONE) % n
        while low < least:
            high, low = _mulhilo(_fresh(key, t, j, k, words), n)
            k += 1
    return np.int64(high), k


@kernel(allocates=True)
def bernoulli_exp(a: Any, b: Any, key: Any, t: Any, j: Any, k: Any, words: Any) -> Any:
    """Return True with probability exp(-a / b), for 0 <= a <= b, and the next k (Algorithm 1)."""
    i = 1
    while True:
        u, k = below(b, key, t, j, k, words)
        if u >= a:
            break
        if i > 1:
            u, k = below(i, key, t, j, k, words)
            if u > 0:
                break
        i += 1
    return i % 2 == 1, k


@kernel(allocates=True)
def discrete_laplace(
    numerator: Any, denominator: Any, key: Any, t: Any, j: Any, k: Any, words: Any
) -> Any:
    """Return X with P(X = x) proportional to exp(-|x| denominator / numerator) (Algorithm 2)."""
    while True:
        u, k = below(numerator, key, t, j, k, words)
        accept, k = bernoulli_exp(u, numerator, key, t, j, k, words)
        if not accept:
            continue
        v = 0
        accept, k = bernoulli_exp(1, 1, key, t, j, k, words)
        while accept:
            v += 1
            accept, k = bernoulli_exp(1, 1, key, t, j, k, words)
        x = (u + numerator * v) // denominator
        negative, k = below(2, key, t, j, k, words)
        if negative == 0:
            return x, k
        if x > 0:
            return -x, k


@kernel(allocates=True)
def discrete_gaussian(sigma: Any, key: Any, t: Any, j: Any, k: Any, words: Any) -> Any:
    """Return X with P(X = x) proportional to exp(-x^2 / (2 sigma^2)), sigma a positive integer.

    Algorithm 3 with integer sigma. Its acceptance probability is exp(-(f + q)^2 / 2) with q whole
    and f = r / (sigma scale) below 1: a product of q^2 factors exp(-1/2), q factors exp(-f) and
    one exp(-f^2 / 2), none of which needs a product of large integers.
    """
    scale = sigma + 1
    unit = sigma * scale
    while True:
        x, k = discrete_laplace(scale, 1, key, t, j, k, words)
        distance = abs(abs(x) * scale - sigma * sigma)
        q, r = distance // unit, distance % unit
        accept = True
        i = 0
        while accept and i < q * q:
            accept, k = bernoulli_exp(1, 2, key, t, j, k, words)
            i += 1
        i = 0
        while accept and i < q:
            accept, k = bernoulli_exp(r, unit, key, t, j, k, words)
            i += 1
        if accept:
            accept, k = _bernoulli_exp_half_square(r, unit, key, t, j, k, words)
        if accept:
            return x, k


@kernel(allocates=True)
def _bernoulli_exp_half_square(a: Any, b: Any, key: Any, t: Any, j: Any, k: Any, words: Any) -> Any:
    # exp(-f^2 / 2) with f = a / b: Algorithm 1 whose i-th coin is f, f and 1 / (2 i) together.
    i = 1
    while True:
        u, k = below(b, key, t, j, k, words)
        if u >= a:
            break
        u, k = below(b, key, t, j, k, words)
        if u >= a:
            break
        u, k = below(2 * i, key, t, j, k, words)
        if u > 0:
            break
        i += 1
    return i % 2 == 1, k
