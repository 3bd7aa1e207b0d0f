"""Releases inside kernels: noise by position on a tape, and the one place where numerics is chosen.

A seeded or recorded tape gives floating-point noise (``research``): it can be repeated, and its low
bits can betray a value, so a result made with it says so. A secure tape gives exact integer
sampling on a grid (``secure``): the value is rounded to the grid, the sensitivity is rounded up to
whole steps with one more for the rounding, and the scale is rounded up, so that the epsilon
achieved is at most the one asked for.

Every kernel reads position (t, index, purpose) of the tape (vectors read one index a coordinate) and
logs what it released.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.compiled import kernel
from tacit.generator import inverse_normal
from tacit.privacy.exact import below, discrete_gaussian, discrete_laplace
from tacit.tapes import (
    RADIUS,
    SECURE,
    Tape,
    drawn,
    noise_uniform,
    noise_word,
    released,
    secure_place,
    uniform,
)

__all__ = [
    "ball_noise",
    "gaussian_steps",
    "happens",
    "laplace_noise",
    "laplace_steps",
    "normal_noise",
    "numerics_of",
    "release_ball",
    "release_bit",
    "release_bounded",
    "release_clamped",
    "release_gaussian",
    "release_laplace",
    "release_laplace_vector",
    "release_option",
    "release_piecewise",
    "round_to_bit",
    "standard_laplace",
    "standard_normal",
]

_NO_WORDS = np.empty(0, np.uint64)
_LEAST = 2.0**-54
_TWO53 = 2.0**53
_U11 = np.uint64(11)


def numerics_of(tape: Tape) -> str:
    """Return ``"secure"`` for a tape of the operating system's randomness, else ``"research"``."""
    return "secure" if tape.kind == SECURE else "research"


@kernel
def _laplace_quantile(u: Any) -> Any:
    value = math.log(2.0 * max(min(u, 1.0 - u), _LEAST))
    return value if u < 0.5 else -value


@kernel
def standard_laplace(tape: Any, t: Any, index: Any, purpose: Any) -> Any:
    """Return a Laplace variable of scale 1; 0 at u = 1/2. NaN on a secure tape: use a release."""
    if tape.kind == SECURE:
        return np.nan
    return _laplace_quantile(noise_uniform(tape, t, index, purpose))


@kernel
def standard_normal(tape: Any, t: Any, index: Any, purpose: Any) -> Any:
    """Return a standard normal variable; 0 at u = 1/2. NaN on a secure tape: use a release."""
    if tape.kind == SECURE:
        return np.nan
    u = noise_uniform(tape, t, index, purpose)
    return inverse_normal(min(max(u, _LEAST), 1.0 - 2.0 * _LEAST))


@kernel
def laplace_steps(sensitivity: Any, epsilon: Any, coordinates: Any) -> Any:
    """Return the grid of secure Laplace noise: step, L1 sensitivity and scale in whole steps.

    Rounding moves two neighbours apart by at most one more step a coordinate.
    """
    finest = min(sensitivity / epsilon * 2.0**-10, sensitivity / coordinates)
    grid = math.ldexp(1.0, math.frexp(finest)[1] - 11)
    steps = math.floor(sensitivity / grid) + coordinates
    return grid, steps, math.floor(steps / epsilon) + 1


@kernel
def gaussian_steps(sensitivity: Any, sigma: Any) -> Any:
    """Return the grid of secure Gaussian noise: step, sensitivity and sigma in whole steps."""
    grid = math.ldexp(1.0, math.frexp(min(sigma * 2.0**-5, sensitivity))[1] - 11)
    steps = math.floor(sensitivity / grid) + 1
    return grid, steps, math.floor(steps * (sigma / sensitivity)) + 1


@kernel(allocates=True)
def _secure_below(k0: Any, k1: Any, k2: Any, k3: Any, t: Any, place: Any, n: Any) -> Any:
    return below(n, (k0, k1, k2, k3), t, place, 1, _NO_WORDS)[0]


@kernel(allocates=True)
def _secure_laplace(k0: Any, k1: Any, k2: Any, k3: Any, t: Any, place: Any, scale: Any) -> Any:
    return discrete_laplace(scale, 1, (k0, k1, k2, k3), t, place, 0, _NO_WORDS)[0]


@kernel(allocates=True)
def _secure_gaussian(k0: Any, k1: Any, k2: Any, k3: Any, t: Any, place: Any, sigma: Any) -> Any:
    return discrete_gaussian(sigma, (k0, k1, k2, k3), t, place, 0, _NO_WORDS)[0]


@kernel
def laplace_noise(
    tape: Any, t: Any, index: Any, purpose: Any, sensitivity: Any, epsilon: Any, coordinates: Any
) -> Any:
    """Return the noise of one coordinate of a Laplace release, on the grid on a secure tape."""
    if tape.kind == SECURE:
        drawn(tape, t, index, purpose, 1)
        grid, _, scale = laplace_steps(sensitivity, epsilon, coordinates)
        key = tape.key
        return grid * _secure_laplace(
            key[4], key[5], key[6], key[7], t, secure_place(index, purpose), scale
        )
    return (sensitivity / epsilon) * _laplace_quantile(noise_uniform(tape, t, index, purpose))


@kernel
def normal_noise(tape: Any, t: Any, index: Any, purpose: Any, sensitivity: Any, sigma: Any) -> Any:
    """Return the noise of one Gaussian release, a multiple of the grid on a secure tape."""
    if tape.kind == SECURE:
        drawn(tape, t, index, purpose, 1)
        grid, _, steps = gaussian_steps(sensitivity, sigma)
        key = tape.key
        return grid * _secure_gaussian(
            key[4], key[5], key[6], key[7], t, secure_place(index, purpose), steps
        )
    return sigma * standard_normal(tape, t, index, purpose)


@kernel
def release_laplace(
    tape: Any, t: Any, index: Any, purpose: Any, value: Any, sensitivity: Any, epsilon: Any
) -> Any:
    """Release `value` plus Laplace noise of scale sensitivity / epsilon."""
    noise = laplace_noise(tape, t, index, purpose, sensitivity, epsilon, 1)
    if tape.kind == SECURE:
        grid = laplace_steps(sensitivity, epsilon, 1)[0]
        value = grid * np.rint(value / grid)
    return released(tape, value + noise)


@kernel
def release_laplace_vector(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    values: Any,
    sensitivity: Any,
    epsilon: Any,
    out: Any,
) -> None:
    """Release a vector of L1 sensitivity `sensitivity`, into `out`; reads d indices."""
    d = values.size
    for i in range(d):
        noise = laplace_noise(tape, t, index + i, purpose, sensitivity, epsilon, d)
        value = values[i]
        if tape.kind == SECURE:
            grid = laplace_steps(sensitivity, epsilon, d)[0]
            value = grid * np.rint(value / grid)
        out[i] = released(tape, value + noise)


@kernel
def release_clamped(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    value: Any,
    sensitivity: Any,
    epsilon: Any,
    low: Any,
    high: Any,
) -> Any:
    """Release `value` plus Laplace noise, clamped to [low, high], which costs nothing."""
    noise = laplace_noise(tape, t, index, purpose, sensitivity, epsilon, 1)
    if tape.kind == SECURE:
        grid = laplace_steps(sensitivity, epsilon, 1)[0]
        value = grid * np.rint(value / grid)
    return released(tape, min(max(value + noise, low), high))


@kernel
def release_bounded(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    value: Any,
    sensitivity: Any,
    epsilon: Any,
    bound: Any,
) -> Any:
    """Release `value` plus the bounded noise of paper 000: beyond the bound it is bound / 2."""
    noise = laplace_noise(tape, t, index, purpose, sensitivity, epsilon, 1)
    if tape.kind == SECURE:
        grid = laplace_steps(sensitivity, epsilon, 1)[0]
        value = grid * np.rint(value / grid)
    if abs(noise) > bound:
        noise = bound / 2
    return released(tape, value + noise)


@kernel
def release_gaussian(
    tape: Any, t: Any, index: Any, purpose: Any, value: Any, sensitivity: Any, sigma: Any
) -> Any:
    """Release `value` plus Gaussian noise of standard deviation `sigma`.

    The sensitivity does not change the noise; a secure tape needs it to round the right way.
    """
    noise = normal_noise(tape, t, index, purpose, sensitivity, sigma)
    if tape.kind == SECURE:
        grid = gaussian_steps(sensitivity, sigma)[0]
        value = grid * np.rint(value / grid)
    return released(tape, value + noise)


@kernel
def happens(tape: Any, t: Any, index: Any, purpose: Any, probability: Any) -> Any:
    """Return True with the given probability, on a secure tape rounded down to 2^-53 and exact."""
    if tape.kind == SECURE:
        word = np.int64(noise_word(tape, t, index, purpose, 0) >> _U11)
        return word < np.int64(math.floor(probability * _TWO53))
    return noise_uniform(tape, t, index, purpose) < probability


@kernel
def release_bit(
    tape: Any, t: Any, index: Any, purpose: Any, bit: Any, keep_one: Any, keep_zero: Any
) -> Any:
    """Release a bit that stays 1 with probability `keep_one` and 0 with `keep_zero`.

    To round these down, as a secure tape does, can only lower epsilon.
    """
    kept = happens(tape, t, index, purpose, keep_one if bit else keep_zero)
    answer = 1 if (bit != 0) == kept else 0
    released(tape, float(answer))
    return answer


@kernel
def release_option(
    tape: Any, t: Any, index: Any, purpose: Any, option: Any, options: Any, keep: Any
) -> Any:
    """Release one of several options: itself with probability `keep`, else any other alike."""
    other = -1
    if tape.kind == SECURE:
        if not happens(tape, t, index, purpose, keep) and options > 1:
            key = tape.key
            other = _secure_below(
                key[4], key[5], key[6], key[7], t, secure_place(index, purpose), options - 1
            )
    else:
        u = noise_uniform(tape, t, index, purpose)
        if u >= keep:
            other = min(int((u - keep) / (1.0 - keep) * (options - 1)), options - 2)
    answer = option if other < 0 else other + 1 if other >= option else other
    released(tape, float(answer))
    return answer


@kernel
def round_to_bit(tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Return 1 with probability `value` in [0, 1], else 0; a draw for choosing, not for privacy."""
    return 1 if uniform(tape, t, index, purpose) < value else 0


@kernel
def release_piecewise(tape: Any, t: Any, index: Any, purpose: Any, value: Any, epsilon: Any) -> Any:
    """Release `value` in [-1, 1] by the piecewise mechanism (Wang et al. 2019, Algorithm 2).

    Unbiased; a likely window of length C - 1 around the value, rarely the rest of [-C, C]. A secure
    tape draws one of 2^20 cells, with the window's probability rounded down.
    """
    h = math.exp(epsilon / 2)
    C = (h + 1) / (h - 1)
    low = (C + 1) / 2 * value - (C - 1) / 2
    if tape.kind == SECURE:
        return released(tape, _secure_piecewise(tape, t, index, purpose, low, C, epsilon))
    u, q = noise_uniform(tape, t, index, purpose), h / (h + 1)
    if u < q:
        return released(tape, low + (C - 1) * u / q)
    y = -C + (C + 1) * (u - q) / (1 - q)
    return released(tape, y if y < low else y + C - 1)


@kernel
def _secure_piecewise(
    tape: Any, t: Any, index: Any, purpose: Any, low: Any, C: Any, epsilon: Any
) -> Any:
    n = 1 << 20
    window = max(1, int(n * (C - 1) / (2 * C)))
    first = min(max(int((low + C) / (2 * C) * n + 0.5), 0), n - window)
    # q / window <= e^epsilon (1 - q) / (n - window); the 2^-40 covers the rounding of exp.
    grown = math.exp(epsilon) * window
    q = grown / (grown + (n - window)) * (1 - 2.0**-40)
    likely = happens(tape, t, index, purpose, q)
    cells = window if likely else n - window
    key = tape.key
    cell = _secure_below(key[4], key[5], key[6], key[7], t, secure_place(index, purpose), cells)
    if likely:
        cell += first
    elif cell >= first:
        cell += window
    return (cell + 0.5) / n * 2 * C - C


@kernel
def ball_noise(tape: Any, t: Any, index: Any, purpose: Any, scale: Any, out: Any) -> None:
    """Write noise of density proportional to exp(-|z| / scale) into `out`, of length d.

    Reads d indices for the direction, and d of RADIUS for the Gamma(d) radius. Research only: no
    exact sampler on a grid is known for it, so on a secure tape `out` is NaN.
    """
    d = out.size
    if tape.kind == SECURE:
        out[:] = np.nan
        return
    length, radius, product = 0.0, 0.0, 1.0
    for i in range(d):
        out[i] = standard_normal(tape, t, index + i, purpose)
        length += out[i] * out[i]
        product *= max(noise_uniform(tape, t, index + i, RADIUS), _LEAST)
        if i % 16 == 15:
            radius -= math.log(product)
            product = 1.0
    radius -= math.log(product)
    factor = scale * radius / math.sqrt(length) if length > 0 else 0.0
    for i in range(d):
        out[i] *= factor


@kernel
def release_ball(
    tape: Any, t: Any, index: Any, purpose: Any, values: Any, scale: Any, out: Any
) -> None:
    """Release a vector plus the noise of `ball_noise`, into `out`."""
    ball_noise(tape, t, index, purpose, scale, out)
    before = tape.reads[1] - values.size
    for i in range(values.size):
        out[i] += values[i]
        if 0 <= before + i < tape.log.size:
            tape.log[before + i] = out[i]
