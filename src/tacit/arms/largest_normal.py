"""The chance that one of several independent normal draws is the largest, by quadrature.

For draw a it is the integral of its density times the others' distribution functions. Every factor is
smooth on the scale of its own deviation, so the line is cut at each draw's mean plus whole multiples
of one and a half of its deviations, and each piece takes ten Gauss-Legendre points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.compiled import kernel

__all__ = ["largest_chances"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_CUTS, _APART = 13, 1.5
_ROOT_HALF, _ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2.0 * math.pi)


@kernel(allocates=True)
def largest_chances(means: Any, deviations: Any, out: Any) -> None:
    """Write the chance of each of the normal draws to be the largest.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.zeros(2)
    >>> largest_chances(np.array([0.0, 0.0]), np.array([1.0, 5.0]), out)
    >>> out.round(12)
    array([0.5, 0.5])
    """
    K = means.size
    cuts = np.empty(K * _CUTS)
    for a in range(K):
        out[a] = 0.0
        for i in range(_CUTS):
            cuts[a * _CUTS + i] = means[a] + (i - _CUTS // 2) * _APART * deviations[a]
    cuts.sort()
    below = np.empty(K)
    for piece in range(cuts.size - 1):
        half = (cuts[piece + 1] - cuts[piece]) / 2.0
        if half <= 0.0:
            continue
        for node in range(_NODES.size):
            x = cuts[piece] + half * (1.0 + _NODES[node])
            for a in range(K):
                below[a] = 0.5 * math.erfc((means[a] - x) / deviations[a] * _ROOT_HALF)
            before = half * _WEIGHTS[node]
            for a in range(K):
                others = before
                for b in range(a + 1, K):
                    others *= below[b]
                z = (x - means[a]) / deviations[a]
                out[a] += others * math.exp(-0.5 * z * z) / (deviations[a] * _ROOT_TWO_PI)
                before *= below[a]
    total = 0.0
    for a in range(K):
        total += out[a]
    for a in range(K):
        out[a] = min(1.0, out[a] / total)
