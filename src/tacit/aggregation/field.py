"""Arithmetic in the two prime fields of Prio3, compiled.

An element is two 64-bit words, the low one first; an element of the small field has a high word of 0. The
large field has the order p = 2^128 - 28 * 2^64 + 1, the small one 2^64 - 2^32 + 1 (VDAF, section 6.1).

Products are Montgomery's: ``multiply(a, b)`` is a b / 2^128. So one factor of each product is kept times
2^128, and what is added up and sent stays as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import _mulhilo as multiply_words
from tacit.core.kernels import kernel

Vector = NDArray[np.uint64]

SMALL = 2**64 - 2**32 + 1
LARGE = 2**128 - 28 * 2**64 + 1
_RADIX = 2**128
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


class Field:
    """One of the two fields: how its elements are written, and its roots of unity.

    Parameters
    ----------
    modulus : int
        The order, `SMALL` or `LARGE`.
    """

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
        self.size = 8 if modulus == SMALL else 16
        self.words = np.array([modulus & (2**64 - 1), modulus >> 64], np.uint64)
        square = pow(_RADIX, 2, modulus)
        self.square = np.array([square & (2**64 - 1), square >> 64], np.uint64)
        #: Minus the inverse of the modulus, modulo 2^64, for Montgomery's reduction.
        self.negated_inverse = np.uint64(-pow(modulus, -1, 2**64) % 2**64)

    def roots(self, n: int) -> list[int]:
        """Return the powers 0 to n - 1 of a primitive n-th root of unity, n a power of two."""
        order = 2**32 if self.modulus == SMALL else 2**66
        root = pow(pow(7, (self.modulus - 1) // order, self.modulus), order // n, self.modulus)
        return [pow(root, k, self.modulus) for k in range(n)]

    def vector(self, values: list[int]) -> Vector:
        """Return whole numbers as elements."""
        words = [
            [value % self.modulus & (2**64 - 1), value % self.modulus >> 64] for value in values
        ]
        return np.array(words, np.uint64).reshape(-1, 2)

    def factors(self, values: list[int]) -> Vector:
        """Return whole numbers as elements times 2^128, as a factor of `multiply` must be."""
        return self.vector([value * _RADIX for value in values])

    def integers(self, vector: Vector) -> list[int]:
        """Return elements as whole numbers."""
        return [int(low) | int(high) << 64 for low, high in vector.reshape(-1, 2)]

    def encode(self, vector: Vector) -> bytes:
        """Return the bytes of elements, each little-endian."""
        words = vector[..., 0] if self.size == 8 else vector
        return np.ascontiguousarray(words, "<u8").tobytes()

    def decode(self, encoded: bytes) -> tuple[Vector, NDArray[np.bool_]]:
        """Return elements, and which of them are smaller than the modulus, as they must be."""
        words = np.frombuffer(encoded, "<u8").astype(np.uint64)
        if self.size == 8:
            return np.stack([words, np.zeros_like(words)], axis=1), words < np.uint64(SMALL)
        pairs = words.reshape(-1, 2)
        top, low = self.words[1], self.words[0]
        fits = (pairs[:, 1] < top) | ((pairs[:, 1] == top) & (pairs[:, 0] < low))
        return pairs, fits


@kernel
def add(p: Any, a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
    """Return a + b."""
    low = a0 + b0
    carry = _ONE if low < a0 else _ZERO
    high = a1 + b1
    over = high < a1
    high += carry
    over = over or high < carry
    return _reduce_once(p, low, high, over)


@kernel
def subtract(p: Any, a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
    """Return a - b."""
    borrow = _ONE if a0 < b0 else _ZERO
    low = a0 - b0
    high = a1 - b1
    under = a1 < b1 or high < borrow
    high -= borrow
    if under:
        low += p[0]
        high += p[1] + (_ONE if low < p[0] else _ZERO)
    return low, high


@kernel
def _reduce_once(p: Any, low: Any, high: Any, over: Any) -> Any:
    if over or high > p[1] or (high == p[1] and low >= p[0]):
        borrow = _ONE if low < p[0] else _ZERO
        low -= p[0]
        high -= p[1] + borrow
    return low, high


@kernel
def multiply(p: Any, negated: Any, a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
    """Return a b / 2^128 (Montgomery, word by word; a b is below p 2^128, so the result is below 2 p)."""
    t0, t1, t2 = _ZERO, _ZERO, _ZERO
    for word in (b0, b1):
        high0, low0 = multiply_words(a0, word)
        high1, low1 = multiply_words(a1, word)
        t0 += low0
        carry = high0 + (_ONE if t0 < low0 else _ZERO)
        t1 += carry
        over = _ONE if t1 < carry else _ZERO
        t1 += low1
        over += _ONE if t1 < low1 else _ZERO
        carry = high1 + over
        t2 += carry
        t3 = _ONE if t2 < carry else _ZERO
        m = t0 * negated
        high0, low0 = multiply_words(m, p[0])
        high1, low1 = multiply_words(m, p[1])
        carry = high0 + (_ONE if t0 + low0 < low0 else _ZERO)
        t1 += carry
        over = _ONE if t1 < carry else _ZERO
        t0 = t1 + low1
        over += _ONE if t0 < low1 else _ZERO
        carry = high1 + over
        t1 = t2 + carry
        t2 = t3 + (_ONE if t1 < carry else _ZERO)
    return _reduce_once(p, t0, t1, t2 > _ZERO)
