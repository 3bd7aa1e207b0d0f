"""The chance that one of several independent draws is the largest, by quadrature.

For draw a it is the integral of its density times the others' distribution functions. Below the largest of
the low ends of all draws the product is nought, and above the high end of a draw its factor is one, so the
line is cut into pieces from there on, each no longer than one and a half deviations of any draw that is not
past its end, and each takes ten Gauss-Legendre points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel

_N = 10
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_N)
_APART = 1.5
_NORMAL_END = 8.5  # beyond so many deviations a normal has less than 1e-17
_BETA_END = 40.0  # and any draw whose density is log-concave
_FIRST, _MOST = 2.0**-30, 4096
_ROOT_HALF, _ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2.0 * math.pi)


def _integrals() -> NDArray[np.float64]:
    """Return the matrix that makes integrals from each node to 1 of the values at all nodes."""
    legendre = np.polynomial.legendre
    values = legendre.legvander(_NODES, _N - 1)
    above = np.empty((_N, _N))
    for k in range(_N):
        rising = legendre.legint(np.eye(_N)[k])
        above[:, k] = legendre.legval(1.0, rising) - legendre.legval(_NODES, rising)
    return np.ascontiguousarray(above @ np.linalg.inv(values))


_ABOVE = _integrals()


@kernel
def _share(out: Any) -> None:
    """Let chances that add up to one but for rounding add up to one."""
    total = 0.0
    for a in range(out.size):
        total += out[a]
    for a in range(out.size):
        out[a] = min(1.0, out[a] / total)


@kernel(allocates=True)
def largest_normal(means: Any, deviations: Any, out: Any) -> None:
    """Write the chance of each of the normal draws to be the largest.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.zeros(2)
    >>> largest_normal(np.array([0.0, 0.0]), np.array([1.0, 5.0]), out)
    >>> out.round(12)
    array([0.5, 0.5])
    """
    K = means.size
    x, end = -np.inf, -np.inf
    for a in range(K):
        out[a] = 0.0
        x = max(x, means[a] - _NORMAL_END * deviations[a])
        end = max(end, means[a] + _NORMAL_END * deviations[a])
    below, near = np.empty(K), np.empty(K, np.int64)
    while x < end:
        n, step = 0, end - x
        for a in range(K):
            if x < means[a] + _NORMAL_END * deviations[a]:
                near[n] = a
                n += 1
                step = min(step, _APART * deviations[a])
        for node in range(_N):
            y = x + 0.5 * step * (1.0 + _NODES[node])
            for i in range(n):
                a = near[i]
                below[i] = 0.5 * math.erfc((means[a] - y) / deviations[a] * _ROOT_HALF)
            before = 0.5 * step * _WEIGHTS[node]
            for i in range(n):
                a = near[i]
                others = before
                for j in range(i + 1, n):
                    others *= below[j]
                z = (y - means[a]) / deviations[a]
                out[a] += others * math.exp(-0.5 * z * z) / (deviations[a] * _ROOT_TWO_PI)
                before *= below[i]
        x = end if step == end - x else x + step
    _share(out)


@kernel(allocates=True)
def largest_beta(alphas: Any, betas: Any, out: Any) -> None:
    """Write the chance of each of the beta draws, of parameters of at least 1, to be the largest.

    Distribution functions are integrals of the densities at the same points. Towards 0 and 1, where a
    density may be a broken power, pieces halve.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.zeros(2)
    >>> largest_beta(np.array([2.0, 1.0]), np.array([1.0, 1.0]), out)
    >>> out.round(12)
    array([0.66666667, 0.33333333])
    """
    K = alphas.size
    ends, lengths, scales = np.empty(K), np.empty(K), np.empty(K)
    x, end = 0.0, 0.0
    for a in range(K):
        n = alphas[a] + betas[a]
        mean = alphas[a] / n
        deviation = math.sqrt(mean * (1.0 - mean) / (n + 1.0))
        x = max(x, mean - _BETA_END * deviation)
        ends[a] = min(1.0, mean + _BETA_END * deviation)
        end = max(end, ends[a])
        lengths[a] = _APART * deviation
        scales[a] = math.lgamma(n) - math.lgamma(alphas[a]) - math.lgamma(betas[a])
        out[a] = 0.0
    cuts, pieces = np.empty(_MOST + 1), 0
    cuts[0] = x
    while x < end and pieces < _MOST:
        step = min(max(x, _FIRST), max(0.5 * (1.0 - x), _FIRST))
        for a in range(K):
            if x < ends[a]:
                step = min(step, lengths[a])
        x = min(end, x + step)
        pieces += 1
        cuts[pieces] = x
    above, density, beyond = np.zeros(K), np.empty((_N, K)), np.empty((_N, K))
    for piece in range(pieces - 1, -1, -1):
        half = 0.5 * (cuts[piece + 1] - cuts[piece])
        for node in range(_N):
            y = cuts[piece] + half * (1.0 + _NODES[node])
            log_y, log_rest = math.log(y), math.log1p(-y)
            for a in range(K):
                density[node, a] = math.exp(
                    scales[a] + (alphas[a] - 1.0) * log_y + (betas[a] - 1.0) * log_rest
                )
        for node in range(_N):
            for a in range(K):
                total = 0.0
                for other in range(_N):
                    total += _ABOVE[node, other] * density[other, a]
                beyond[node, a] = min(1.0, max(0.0, above[a] + half * total))
        for node in range(_N):
            before = half * _WEIGHTS[node]
            for a in range(K):
                others = before
                for b in range(a + 1, K):
                    others *= 1.0 - beyond[node, b]
                out[a] += others * density[node, a]
                before *= 1.0 - beyond[node, a]
        for a in range(K):
            for node in range(_N):
                above[a] += half * _WEIGHTS[node] * density[node, a]
    _share(out)
