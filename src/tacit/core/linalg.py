"""Inner products, the same whether compiled or interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.core.kernels import kernel

SMALL = 128
"""Below this many numbers, loops instead of BLAS."""


@kernel(allocates=True)
def _blas_dot(a: Any, b: Any) -> Any:
    return np.dot(a, b)


@kernel
def dot(a: Any, b: Any) -> Any:
    """Return the inner product; without BLAS where it is short, to be the same when interpreted."""
    if a.size > SMALL:
        return _blas_dot(a, b)
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total
