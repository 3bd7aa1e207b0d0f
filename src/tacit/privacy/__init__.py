"""Mechanisms, guarantees that are values, accounting and auditing; knows nothing of bandits."""

from tacit.privacy.accounting import composed_delta, composed_epsilon, loss_distribution
from tacit.privacy.guarantees import Claim, Guarantee, compose
from tacit.privacy.releases import (
    ApproximateRelease,
    BallRelease,
    BoundedNoiseRelease,
    DiscreteGaussianRelease,
    GaussianRelease,
    L2CalibratedLaplaceRelease,
    LaplaceRelease,
    PiecewiseRelease,
    PureRelease,
    RandomizedResponseRelease,
    Release,
    UnaryRelease,
    gaussian_scale,
)

__all__ = [
    "ApproximateRelease",
    "BallRelease",
    "BoundedNoiseRelease",
    "Claim",
    "DiscreteGaussianRelease",
    "GaussianRelease",
    "Guarantee",
    "L2CalibratedLaplaceRelease",
    "LaplaceRelease",
    "PiecewiseRelease",
    "PureRelease",
    "RandomizedResponseRelease",
    "Release",
    "UnaryRelease",
    "compose",
    "composed_delta",
    "composed_epsilon",
    "gaussian_scale",
    "loss_distribution",
]
