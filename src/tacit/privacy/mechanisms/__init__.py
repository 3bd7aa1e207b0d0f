"""Mechanisms: frozen descriptions that know their release, their variance and how to run.

Each names what it was calibrated to. ``run(value, n, seed)`` releases the same value n times, in
compiled code, which is what an audit asks for; without a seed it does so securely.
"""

from tacit.privacy.mechanisms.base import Mechanism
from tacit.privacy.mechanisms.euclidean import Gaussian, L2Ball
from tacit.privacy.mechanisms.laplace import (
    BoundedNoise,
    ClampedLaplace,
    L2CalibratedLaplace,
    Laplace,
)
from tacit.privacy.mechanisms.values import Piecewise, RandomizedResponse, UnaryEncoding

__all__ = [
    "BoundedNoise",
    "ClampedLaplace",
    "Gaussian",
    "L2Ball",
    "L2CalibratedLaplace",
    "Laplace",
    "Mechanism",
    "Piecewise",
    "RandomizedResponse",
    "UnaryEncoding",
]
