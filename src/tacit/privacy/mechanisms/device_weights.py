"""What mechanisms tell devices: the same integers that their secure kernels draw with."""

from __future__ import annotations

from tacit.core.constraints import require
from tacit.device import MAX_EPSILON
from tacit.device.instructions import weights

BITS = 52
"""Probabilities are multiples of 2 to the power -52: exact in a double, on a tape and on a device."""


def weights_of(epsilon: float, inside: int, outside: int) -> tuple[int, int]:
    """Return integers a and b, a / b <= e^epsilon, for `inside` outcomes and `outside` others."""
    require("keep_probability", "epsilon", "in [0, 30]", 0 <= epsilon <= MAX_EPSILON, epsilon)
    return weights(epsilon, inside, outside)


def keep_probability(epsilon: float, others: int = 1, *, bits: int = BITS) -> float:
    """Return e^epsilon / (e^epsilon + others), rounded down to a multiple of 2 to the power -bits.

    The probability that the truth is told where each of `others` other answers is e^epsilon times
    less likely. It is calculated here and nowhere else.

    Examples
    --------
    >>> round(keep_probability(1.0), 6), round(keep_probability(1.0, others=4), 6)
    (0.731059, 0.40461)
    """
    a, b = weights_of(epsilon, 1, others)
    return float((a << bits) // (a + others * b)) * 2.0**-bits
