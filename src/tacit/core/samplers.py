"""Random variates that are pure functions of a tape position: normal, beta, binomial, multinomial.

A sampler that needs several words, or an unknown number of them, reads them at its own position of
the tape, so a run can still be repeated, resumed or split anywhere. Normals come from a ziggurat of
128 layers (Marsaglia and Tsang 2000, in the form of Doornik 2005), betas from two gammas (Marsaglia and
Tsang, A simple method for generating gamma variables, 2000), binomials from inversion or from Hormann's
transformed rejection BTRS (1993); all are exact up to the 53 bits of a float.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import chacha20_words, philox, to_open_unit, to_unit
from tacit.core.kernels import kernel
from tacit.core.tapes import RECORDED, SEEDED, secure_place

_LAYERS, _EDGE, _AREA = 128, 3.442619855899, 9.91256303526217e-3
_TWO54 = 2.0**-54
_LOW7 = np.uint64(127)
_SPARE = 1 << 16
_BLOCKS = 1 << 22


def _ziggurat() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = np.zeros(_LAYERS + 1)
    density = math.exp(-0.5 * _EDGE * _EDGE)
    x[0], x[1] = _AREA / density, _EDGE
    for i in range(2, _LAYERS):
        x[i] = math.sqrt(-2.0 * math.log(_AREA / x[i - 1] + density))
        density = math.exp(-0.5 * x[i] * x[i])
    return x, x[1:] / x[:-1]


_X, _RATIO = _ziggurat()


@kernel
def source_of(tape: Any) -> Any:
    """Return the scalars that a tape's words are made of, cheap to hand from kernel to kernel."""
    if tape.kind == RECORDED:
        raise ValueError("source_of: expected a seeded or secure tape, got a recorded one")
    key = tape.key
    return tape.kind, key[4], key[5], key[6], key[7]


@kernel
def chooser_of(tape: Any) -> Any:
    """Return the same for draws that choose and hide nothing."""
    if tape.kind == RECORDED:
        raise ValueError("chooser_of: expected a seeded or secure tape, got a recorded one")
    key = tape.key
    return tape.kind, key[0], key[1], key[2], key[3]


@kernel
def block(source: Any, purpose: Any, t: Any, j: Any, k: Any) -> Any:
    """Return the four words of block k at position (t, j, purpose); k is below 2^22."""
    kind, key0, key1, key2, key3 = source
    if kind == SEEDED:
        return philox(key0, key1, np.uint64(t), np.uint64(j), np.uint64(purpose), np.uint64(k))
    return _secure_block(key0, key1, key2, key3, purpose, t, j, k)


@kernel(inlined=False)
def _secure_block(
    key0: Any, key1: Any, key2: Any, key3: Any, purpose: Any, t: Any, j: Any, k: Any
) -> Any:
    if k >= _BLOCKS:
        raise ValueError("secure tape: expected fewer than 2^22 blocks at one position")
    c1 = secure_place(j, purpose) | np.uint64(k)
    return chacha20_words(key0, key1, key2, key3, np.uint64(t), c1)


@kernel
def normal(word: Any, source: Any, purpose: Any, t: Any, j: Any, k: Any) -> Any:
    """Return a standard normal made of `word`; one in fifty needs spare blocks of draw k."""
    layer = word & _LOW7
    u = 2.0 * to_unit(word) - 1.0
    if abs(u) < _RATIO[layer]:
        return u * _X[layer]
    return _outside(u, layer, source, np.int64(purpose), np.int64(t), np.int64(j), np.int64(k))


@kernel(inlined=False)
def _outside(u: Any, layer: Any, source: Any, purpose: Any, t: Any, j: Any, k: Any) -> Any:
    spare = _SPARE + 64 * k
    while True:
        w0, w1, w2, _ = block(source, purpose, t, j, spare)
        spare += 1
        u0, u1 = to_open_unit(w0), to_open_unit(w1)
        if layer == np.uint64(0):
            x = -math.log(u0) / _EDGE
            if -2.0 * math.log(u1) >= x * x:
                return _EDGE + x if u > 0.0 else -_EDGE - x
            continue
        x = u * _X[layer]
        outer = math.exp(-0.5 * (_X[layer] * _X[layer] - x * x))
        inner = math.exp(-0.5 * (_X[layer + np.uint64(1)] ** 2 - x * x))
        if inner + u0 * (outer - inner) < 1.0:
            return x
        layer = w2 & _LOW7
        u = 2.0 * to_unit(w2) - 1.0
        if abs(u) < _RATIO[layer]:
            return u * _X[layer]


@kernel
def beta(source: Any, purpose: Any, t: Any, j: Any, a: Any, b: Any) -> Any:
    """Return a beta(a, b) variate, a and b at least 1, made of the blocks at (t, j)."""
    return _beta(source, np.int64(purpose), np.int64(t), np.int64(j), a, b)


@kernel(inlined=False)
def _beta(source: Any, purpose: Any, t: Any, j: Any, a: Any, b: Any) -> Any:
    x, y, k = 0.0, 0.0, 0
    while x == 0.0 or y == 0.0:
        w0, w1, w2, w3 = block(source, purpose, t, j, k)
        if x == 0.0:
            x = _gamma(a, normal(w0, source, purpose, t, j, 2 * k), to_open_unit(w1))
        if y == 0.0:
            y = _gamma(b, normal(w2, source, purpose, t, j, 2 * k + 1), to_open_unit(w3))
        k += 1
    return x / (x + y)


@kernel
def _gamma(shape: Any, z: Any, u: Any) -> Any:
    """Make a gamma variate of a normal one, or 0 if u rejects it; the shape is at least 1."""
    d = shape - 1.0 / 3.0
    v = 1.0 + z / math.sqrt(9.0 * d)
    if v <= 0.0:
        return 0.0
    v = v * v * v
    square = z * z
    if u < 1.0 - 0.0331 * square * square:  # which implies what follows
        return d * v
    return d * v if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)) else 0.0


@kernel
def binomial(source: Any, purpose: Any, t: Any, j: Any, n: Any, p: Any) -> Any:
    """Return a binomial(n, p) variate, n at most 2^40, made of the blocks at (t, j)."""
    if n <= 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return int(n)
    # One set of types, so that it is compiled once.
    return _binomial(source, np.int64(purpose), np.int64(t), np.int64(j), np.float64(n), p)


@kernel(inlined=False)
def _binomial(source: Any, purpose: Any, t: Any, j: Any, n: Any, p: Any) -> Any:
    small = min(p, 1.0 - p)
    if n * small < 10.0:
        x = invert_binomial(to_unit(block(source, purpose, t, j, 0)[0]), n, small)
    else:
        x = _btrs(source, purpose, t, j, n, small)
    return int(x if p <= 0.5 else n - x)


@kernel(inlined=False)
def invert_binomial(u: Any, n: Any, p: Any) -> Any:
    """Return the u-quantile of binomial(n, p) by searching upwards from 0; meant for small n p."""
    odds = p / (1.0 - p)
    mass = math.exp(n * math.log1p(-p))
    k = 0.0
    while u >= mass and k < n and mass > 1e-300:
        u -= mass
        k += 1.0
        mass *= (n - k + 1.0) * odds / k
    return k


@kernel(inlined=False)
def _btrs(source: Any, purpose: Any, t: Any, j: Any, n: Any, p: Any) -> Any:
    spread = math.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = n * p + 0.5
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    odds = p / (1.0 - p)
    mode = np.floor((n + 1.0) * p)
    k = 0
    while True:
        w0, w1, w2, w3 = block(source, purpose, t, j, k)
        k += 1
        for half in range(2):
            u = to_unit(w0 if half == 0 else w2) - 0.5
            v = to_open_unit(w1 if half == 0 else w3)
            room = 0.5 - abs(u) + _TWO54
            x = np.floor((2.0 * a / room + b) * u + centre)
            if room >= 0.07 and v <= squeeze:
                return x
            if x < 0 or x > n:
                continue
            ratio = (
                (mode + 0.5) * math.log((mode + 1.0) / (odds * (n - mode + 1.0)))
                + (n + 1.0) * math.log((n - mode + 1.0) / (n - x + 1.0))
                + (x + 0.5) * math.log(odds * (n - x + 1.0) / (x + 1.0))
                + _stirling(mode)
                + _stirling(n - mode)
                - _stirling(x)
                - _stirling(n - x)
            )
            if math.log(v * alpha / (a / (room * room) + b)) <= ratio:
                return x


@kernel(inlined=False)
def _stirling(k: Any) -> Any:
    # ln k! less its Stirling approximation at k + 1, by its asymptotic series or exactly.
    if k < 10:
        z = k + 1.0
        return math.lgamma(z) - (z - 0.5) * math.log(z) + z - 0.9189385332046727
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)


@kernel
def multinomial(source: Any, purpose: Any, t: Any, j: Any, n: Any, weights: Any, out: Any) -> None:
    """Write a multinomial of n over `weights` (any positive total) from (t, j), (t, j + 1), ..."""
    mass = 0.0
    for i in range(weights.size):
        mass += weights[i]
    for i in range(weights.size - 1):
        share = weights[i] / mass if mass > 0.0 else 0.0
        out[i] = binomial(source, purpose, t, j + i, n, min(1.0, share))
        n -= out[i]
        mass -= weights[i]
    out[weights.size - 1] = n
