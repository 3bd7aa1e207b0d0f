"""Releases: what a mechanism let out, as a record that knows its exact privacy loss.

A release names the norm and the sensitivity it was calibrated to and the scale of its noise. From
these follow, for the worst pair of neighbouring inputs, the pure epsilon, the smallest delta at
every epsilon, and the distribution of the privacy loss that accountants compose. No release of a
policy of this package states an epsilon that was not calculated here.
"""

from tacit.privacy.releases.ball import BallRelease
from tacit.privacy.releases.base import Release, release_from_dict
from tacit.privacy.releases.bits import RandomizedResponseRelease, UnaryRelease
from tacit.privacy.releases.bounded import BoundedNoiseRelease
from tacit.privacy.releases.gaussian import (
    DiscreteGaussianRelease,
    GaussianRelease,
    gaussian_delta,
    gaussian_scale,
)
from tacit.privacy.releases.l2_laplace import L2CalibratedLaplaceRelease
from tacit.privacy.releases.laplace import DiscreteLaplaceRelease, LaplaceRelease
from tacit.privacy.releases.piecewise import PiecewiseRelease
from tacit.privacy.releases.stated import ApproximateRelease, PureRelease

__all__ = [
    "ApproximateRelease",
    "BallRelease",
    "BoundedNoiseRelease",
    "DiscreteGaussianRelease",
    "DiscreteLaplaceRelease",
    "GaussianRelease",
    "L2CalibratedLaplaceRelease",
    "LaplaceRelease",
    "PiecewiseRelease",
    "PureRelease",
    "RandomizedResponseRelease",
    "Release",
    "UnaryRelease",
    "gaussian_delta",
    "gaussian_scale",
    "release_from_dict",
]
