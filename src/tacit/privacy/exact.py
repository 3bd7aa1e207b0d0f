"""Exact integer samplers: discrete Laplace and discrete Gaussian without a floating-point number.

Canonne, Kamath and Steinke (NeurIPS 2020), Algorithms 1 to 3, on a stream of 64-bit words. Every
decision compares integers, so the probabilities are those of the formulas and not of their
rounding; a value on a grid plus such noise leaks nothing through its low bits.

The stream of a position, round t and `place` (`tacit.core.tapes.secure_place`), is the array `words`, if
there is one, and after its end ChaCha20 under `key`. Each sampler takes the index k of the next
word and returns it moved on. Each calls the next from as few places as possible: what it calls is
compiled into it.

On a tape, `happens`, `whole` and `noise_below` are the exact draws that response mechanisms need.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.core.generator import _mulhilo, chacha20
from tacit.core.kernels import kernel
from tacit.core.tapes import SECURE, drawn, noise_uniform, noise_word, secure_place

_MAX = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_WORDS = 1 << 24
_NO_WORDS = np.empty(0, np.uint64)
_WIDEST = 1 << 28
_LARGEST = 1 << 52
_TWO53 = 2.0**53
_U11 = np.uint64(11)


@kernel
def below(n: Any, key: Any, t: Any, place: Any, k: Any, words: Any) -> Any:
    """Return a uniform integer in [0, n) and the next k (Lemire's rejection)."""
    n = np.uint64(n)
    while True:
        if k < words.size:
            word = words[k]
        else:
            if k >= _WORDS:
                raise ValueError("secure tape: expected fewer than 2^24 words at one position")
            c1 = np.uint64(place) | np.uint64(k)
            word = chacha20(key[0], key[1], key[2], key[3], np.uint64(t), c1)
        high, low = _mulhilo(word, n)
        k += 1
        if low >= n or low >= (_MAX - n + _ONE) % n:
            return np.int64(high), k


@kernel(allocates=True)
def bernoulli_exp(a: Any, b: Any, key: Any, t: Any, place: Any, k: Any, words: Any) -> Any:
    """Return True with probability exp(-a / b), for 0 <= a <= b, and the next k (Algorithm 1)."""
    i = 1
    while True:
        u, k = below(i * b, key, t, place, k, words)
        if u >= a:
            return i % 2 == 1, k
        i += 1


@kernel(allocates=True)
def discrete_laplace(
    numerator: Any, denominator: Any, key: Any, t: Any, place: Any, k: Any, words: Any
) -> Any:
    """Return X with P(X = x) proportional to exp(-|x| denominator / numerator) (Algorithm 2)."""
    while True:
        u, k = below(2 * numerator, key, t, place, k, words)
        sign, u = 1 - 2 * (u & 1), u >> 1
        # First exp(-u / numerator) accepts u, then a run of exp(-1) counts whole scales.
        v, a, b = -1, u, numerator
        while True:
            accept, k = bernoulli_exp(a, b, key, t, place, k, words)
            if not accept:
                break
            v, a, b = v + 1, 1, 1
        if v < 0:
            continue
        x = (u + numerator * v) // denominator
        if sign > 0 or x > 0:
            return sign * x, k


@kernel(allocates=True)
def discrete_gaussian(sigma: Any, key: Any, t: Any, place: Any, k: Any, words: Any) -> Any:
    """Return X with P(X = x) proportional to exp(-x^2 / (2 sigma^2)), sigma a positive integer.

    Algorithm 3 with integer sigma. Its acceptance probability is exp(-(q + f)^2 / 2) with q whole
    and f = r / (sigma scale) below 1: a product of q^2 factors exp(-1/2), q factors exp(-f) and
    one exp(-f^2 / 2), none of which needs a product of large integers.
    """
    scale = sigma + 1
    unit = sigma * scale
    while True:
        x, k = discrete_laplace(scale, 1, key, t, place, k, words)
        distance = abs(abs(x) * scale - sigma * sigma)
        q, r = distance // unit, distance % unit
        accept, i = True, 0
        while accept and i < q * q + q:
            a, b = (1, 2) if i < q * q else (r, unit)
            accept, k = bernoulli_exp(a, b, key, t, place, k, words)
            i += 1
        if accept:
            accept, k = _bernoulli_exp_half_square(r, unit, key, t, place, k, words)
        if accept:
            return x, k


@kernel(allocates=True)
def _bernoulli_exp_half_square(
    a: Any, b: Any, key: Any, t: Any, place: Any, k: Any, words: Any
) -> Any:
    # exp(-f^2 / 2) with f = a / b: Algorithm 1 whose i-th coin is f, f and 1 / (2 i) together.
    i = 1
    while True:
        for coin in range(3):
            wins, of = (a, b) if coin < 2 else (1, 2 * i)
            u, k = below(of, key, t, place, k, words)
            if u >= wins:
                return i % 2 == 1, k
        i += 1


@kernel(allocates=True)
def _below(k0: Any, k1: Any, k2: Any, k3: Any, t: Any, place: Any, n: Any, k: Any) -> Any:
    return below(n, (k0, k1, k2, k3), t, place, k, _NO_WORDS)[0]


@kernel(allocates=True)
def _laplace(k0: Any, k1: Any, k2: Any, k3: Any, t: Any, place: Any, scale: Any) -> Any:
    return discrete_laplace(scale, 1, (k0, k1, k2, k3), t, place, 0, _NO_WORDS)[0]


@kernel(allocates=True)
def _gaussian(k0: Any, k1: Any, k2: Any, k3: Any, t: Any, place: Any, sigma: Any) -> Any:
    return discrete_gaussian(sigma, (k0, k1, k2, k3), t, place, 0, _NO_WORDS)[0]


@kernel
def secure_below(tape: Any, t: Any, index: Any, purpose: Any, n: Any, k: Any) -> Any:
    """Return a uniform integer in [0, n) from word k on of a position; it is not counted."""
    key, place = tape.key, secure_place(index, purpose)
    return _below(key[4], key[5], key[6], key[7], t, place, n, k)


@kernel
def secure_laplace(tape: Any, t: Any, index: Any, purpose: Any, scale: Any) -> Any:
    """Return discrete Laplace noise of a whole scale, and count it."""
    if scale < 1 or scale >= _LARGEST:
        raise ValueError("secure Laplace noise: expected a scale of 1 to 2^52 steps")
    drawn(tape, t, index, purpose, 1)
    key, place = tape.key, secure_place(index, purpose)
    return _laplace(key[4], key[5], key[6], key[7], t, place, np.int64(scale))


@kernel
def secure_gaussian(tape: Any, t: Any, index: Any, purpose: Any, sigma: Any) -> Any:
    """Return discrete Gaussian noise of a whole sigma, and count it."""
    if sigma < 1 or sigma >= _WIDEST:
        raise ValueError("secure Gaussian noise: expected a sigma of 1 to 2^28 steps")
    drawn(tape, t, index, purpose, 1)
    key, place = tape.key, secure_place(index, purpose)
    return _gaussian(key[4], key[5], key[6], key[7], t, place, np.int64(sigma))


@kernel
def happens(tape: Any, t: Any, index: Any, purpose: Any, probability: Any) -> Any:
    """Return True with the given probability, on a secure tape rounded down to 2^-53 and exact."""
    if tape.kind == SECURE:
        word = np.int64(noise_word(tape, t, index, purpose, 0) >> _U11)
        return word < np.int64(math.floor(probability * _TWO53))
    return noise_uniform(tape, t, index, purpose) < probability


@kernel
def whole(tape: Any, t: Any, index: Any, purpose: Any, n: Any) -> Any:
    """Return a uniform integer in [0, n), n below 2^53: exactly so on a secure tape."""
    if tape.kind == SECURE:
        drawn(tape, t, index, purpose, 1)
        return secure_below(tape, t, index, purpose, np.int64(n), 0)
    return min(np.int64(noise_uniform(tape, t, index, purpose) * n), np.int64(n) - 1)


@kernel
def noise_below(tape: Any, t: Any, index: Any, purpose: Any, k: Any, n: Any) -> Any:
    """Return a uniform whole number below n from word k on, and the next word's number."""
    limit = np.uint64(n)
    while True:
        high, low = _mulhilo(noise_word(tape, t, index, purpose, k), limit)
        k += 1
        if low >= limit or low >= (_MAX - limit + _ONE) % limit:
            return np.int64(high), k
