"""Counter-based random numbers: a pure function of a key and a position.

Tables and seeded tapes use Philox4x64-10 (Salmon et al., SC 2011), bit for bit the one of NumPy.
Secure tapes use the ChaCha20 block function (RFC 8439): Philox is fast but not unpredictable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tacit.core.kernels import INTERPRETED, kernel

_MASK64 = 0xFFFFFFFFFFFFFFFF
_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_U11, _U12, _U32, _LOW32 = np.uint64(11), np.uint64(12), np.uint64(32), np.uint64(0xFFFFFFFF)
_TWO52, _TWO53 = 2.0**-52, 2.0**-53


def key_of(seed: int, repetition: int, *, stream: int) -> NDArray[np.uint64]:
    """Return two key words; distinct (seed, repetition, stream) give independent generators."""
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, repetition))
    return sequence.generate_state(2, np.uint64).astype(np.uint64)


if INTERPRETED:

    def _mulhilo(a: Any, b: Any) -> Any:
        product = int(a) * int(b)
        return np.uint64(product >> 64), np.uint64(product & _MASK64)

    def philox(key0: Any, key1: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> Any:
        """Return the four 64-bit words of block (c0, c1, c2, c3) under a two-word key."""
        keys, c = [int(key0), int(key1)], [int(each) for each in (c0, c1, c2, c3)]
        for _ in range(10):
            low, high = int(_M0) * c[0], int(_M1) * c[2]
            c = [high >> 64 ^ c[1] ^ keys[0], high, low >> 64 ^ c[3] ^ keys[1], low]
            c = [each & _MASK64 for each in c]
            keys = [(keys[0] + int(_W0)) & _MASK64, (keys[1] + int(_W1)) & _MASK64]
        return tuple(map(np.uint64, c))

else:

    @intrinsic
    def _mulhilo(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            from llvmlite import ir

            wide = ir.IntType(128)
            product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
            high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
            low = builder.trunc(product, ir.IntType(64))
            return context.make_tuple(builder, signature.return_type, (high, low))

        pair: Any = types.UniTuple
        return pair(types.uint64, 2)(types.uint64, types.uint64), generate

    @kernel
    def philox(key0: Any, key1: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> Any:
        """Return the four 64-bit words of block (c0, c1, c2, c3) under a two-word key."""
        for _ in range(10):
            high0, low0 = _mulhilo(_M0, c0)
            high1, low1 = _mulhilo(_M1, c2)
            c0, c1, c2, c3 = high1 ^ c1 ^ key0, low1, high0 ^ c3 ^ key1, low0
            key0, key1 = key0 + _W0, key1 + _W1
        return c0, c1, c2, c3


@kernel
def to_unit(word: Any) -> Any:
    """Map a 64-bit word to [0, 1) on the grid of 2^-53."""
    return np.float64(word >> _U11) * _TWO53


@kernel
def to_open_unit(word: Any) -> Any:
    """Map a 64-bit word to (0, 1), in the middle of the cells of 2^-52, without rounding."""
    return (np.float64(word >> _U12) + 0.5) * _TWO52


@kernel
def _rotate(word: Any, left: Any) -> Any:
    return ((word << left) | (word >> (_U32 - left))) & _LOW32


@kernel
def _quarter_round(a: Any, b: Any, c: Any, d: Any) -> Any:
    a = (a + b) & _LOW32
    d = _rotate(d ^ a, np.uint64(16))
    c = (c + d) & _LOW32
    b = _rotate(b ^ c, np.uint64(12))
    a = (a + b) & _LOW32
    d = _rotate(d ^ a, np.uint64(8))
    c = (c + d) & _LOW32
    b = _rotate(b ^ c, np.uint64(7))
    return a, b, c, d


# Not inlined: every draw of every policy has a place for it, which only secure tapes reach.
@kernel(inlined=False)
def chacha20(key0: Any, key1: Any, key2: Any, key3: Any, c0: Any, c1: Any) -> Any:
    """Return the first 64-bit word of the ChaCha20 block at 128-bit position (c0, c1)."""
    return chacha20_words(key0, key1, key2, key3, c0, c1)[0]


@kernel
def chacha20_words(key0: Any, key1: Any, key2: Any, key3: Any, c0: Any, c1: Any) -> Any:
    """Return the first four 64-bit words of that block."""
    x0, x1 = np.uint64(0x61707865), np.uint64(0x3320646E)
    x2, x3 = np.uint64(0x79622D32), np.uint64(0x6B206574)
    x4, x5, x6, x7 = key0 & _LOW32, key0 >> _U32, key1 & _LOW32, key1 >> _U32
    x8, x9, x10, x11 = key2 & _LOW32, key2 >> _U32, key3 & _LOW32, key3 >> _U32
    x12, x13, x14, x15 = c0 & _LOW32, c0 >> _U32, c1 & _LOW32, c1 >> _U32
    y0, y1, y2, y3, y4, y5, y6, y7 = x0, x1, x2, x3, x4, x5, x6, x7
    for _ in range(10):
        x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
    return (
        _pair(x0 + y0, x1 + y1),
        _pair(x2 + y2, x3 + y3),
        _pair(x4 + y4, x5 + y5),
        _pair(x6 + y6, x7 + y7),
    )


@kernel
def _pair(low: Any, high: Any) -> Any:
    return (low & _LOW32) | ((high & _LOW32) << _U32)


# Wichura (1988), Algorithm AS 241 (PPND16): numerators and denominators, highest power first.
_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_MIDDLE = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
     1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055,
     4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
     0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494,
     2.05319162663775882187, 1.0),
)  # fmt: skip
_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
     0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358,
     5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
     7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
     0.59983220655588793769, 1.0),
)  # fmt: skip


@kernel
def _ratio(coefficients: Any, r: Any) -> Any:
    numerator, denominator = 0.0, 0.0
    for i in range(8):
        numerator = numerator * r + coefficients[0][i]
        denominator = denominator * r + coefficients[1][i]
    return numerator / denominator


@kernel
def _outer(p: Any) -> Any:
    lower = p < 0.5
    tail = p if lower else 1.0 - p
    if tail <= 0.0:
        return -np.inf if lower else np.inf
    r = np.sqrt(-np.log(tail))
    value = _ratio(_MIDDLE, r - 1.6) if r <= 5.0 else _ratio(_TAIL, r - 5.0)
    return -value if lower else value


@kernel
def inverse_normal(p: Any) -> Any:
    """Return the standard normal quantile of p, to about 1e-16 (AS 241)."""
    q = p - 0.5
    return q * _ratio(_CENTRE, 0.180625 - q * q) if abs(q) <= 0.425 else _outer(p)
