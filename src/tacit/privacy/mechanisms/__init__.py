"""Mechanisms: one file for each, with all that is known and done about it.

A mechanism is a frozen record. It declares what one use releases, with the exact privacy loss, and
it does it: in compiled kernels, in exact integers on a secure tape, and as instructions for devices.
Policies hold mechanisms; guarantees, accounting and audits ask them.
"""

import importlib
import inspect
import pkgutil

from tacit.privacy.mechanisms.base import (
    HIGHEST_EPSILON,
    LOWEST_EPSILON,
    Channel,
    Epsilon,
    Mechanism,
    NeighbouringPair,
    channel_of,
    debiased,
    numerics_of,
    open_channel,
    privatised,
    round_to_level,
)
from tacit.privacy.mechanisms.binary_tree import BinaryTree
from tacit.privacy.mechanisms.bounded_noise import (
    BoundedNoise,
    BoundedNoiseRelease,
    release_bounded,
)
from tacit.privacy.mechanisms.clamped_laplace import ClampedLaplace, release_clamped
from tacit.privacy.mechanisms.continual_sums import (
    NO_NOISE,
    ContinualSum,
    Grid,
    LocalSum,
    Stream,
)
from tacit.privacy.mechanisms.device_weights import keep_probability
from tacit.privacy.mechanisms.gaussian import (
    DiscreteGaussianRelease,
    Gaussian,
    GaussianRelease,
    gaussian_delta,
    gaussian_scale,
    gaussian_steps,
    release_gaussian,
    standard_normal,
)
from tacit.privacy.mechanisms.gaussian_moments import GaussianMoments
from tacit.privacy.mechanisms.generic_releases import ApproximateRelease, PureRelease
from tacit.privacy.mechanisms.k_ary_response import (
    KAryResponse,
    KAryResponseRelease,
    release_option,
)
from tacit.privacy.mechanisms.l2_ball import BallRelease, L2Ball, ball_noise, release_ball
from tacit.privacy.mechanisms.l2_laplace import L2CalibratedLaplace, L2CalibratedLaplaceRelease
from tacit.privacy.mechanisms.laplace import (
    DiscreteLaplaceRelease,
    Laplace,
    LaplaceRelease,
    laplace_noise,
    laplace_quantile,
    laplace_steps,
    release_laplace,
    release_laplace_vector,
    standard_laplace,
)
from tacit.privacy.mechanisms.least_private import LeastPrivateRelease, least_private
from tacit.privacy.mechanisms.piecewise import Piecewise, PiecewiseRelease
from tacit.privacy.mechanisms.randomized_response import (
    AsymmetricResponse,
    RandomizedResponse,
    RandomizedResponseRelease,
    release_bit,
    round_to_bit,
)
from tacit.privacy.mechanisms.release import Release, release_from_dict
from tacit.privacy.mechanisms.shuffled_bits import (
    ShuffledBits,
    ShuffledBitsRelease,
    flipped_bit,
)
from tacit.privacy.mechanisms.staircase import Staircase, StaircaseRelease
from tacit.privacy.mechanisms.streams import next_sum
from tacit.privacy.mechanisms.subset_selection import (
    SubsetRelease,
    SubsetSelection,
    release_subset,
)
from tacit.privacy.mechanisms.toeplitz import SquareRootToeplitz
from tacit.privacy.mechanisms.unary_encoding import UnaryEncoding, UnaryRelease

__all__ = [
    "HIGHEST_EPSILON",
    "LOWEST_EPSILON",
    "NO_NOISE",
    "ApproximateRelease",
    "AsymmetricResponse",
    "BallRelease",
    "BinaryTree",
    "BoundedNoise",
    "BoundedNoiseRelease",
    "Channel",
    "ClampedLaplace",
    "ContinualSum",
    "DiscreteGaussianRelease",
    "DiscreteLaplaceRelease",
    "Epsilon",
    "Gaussian",
    "GaussianMoments",
    "GaussianRelease",
    "Grid",
    "KAryResponse",
    "KAryResponseRelease",
    "L2Ball",
    "L2CalibratedLaplace",
    "L2CalibratedLaplaceRelease",
    "Laplace",
    "LaplaceRelease",
    "LeastPrivateRelease",
    "LocalSum",
    "Mechanism",
    "NeighbouringPair",
    "Piecewise",
    "PiecewiseRelease",
    "PureRelease",
    "RandomizedResponse",
    "RandomizedResponseRelease",
    "Release",
    "ShuffledBits",
    "ShuffledBitsRelease",
    "SquareRootToeplitz",
    "Staircase",
    "StaircaseRelease",
    "Stream",
    "SubsetRelease",
    "SubsetSelection",
    "UnaryEncoding",
    "UnaryRelease",
    "ball_noise",
    "channel_of",
    "debiased",
    "flipped_bit",
    "gaussian_delta",
    "gaussian_scale",
    "gaussian_steps",
    "keep_probability",
    "laplace_noise",
    "laplace_quantile",
    "laplace_steps",
    "least_private",
    "next_sum",
    "numerics_of",
    "open_channel",
    "privatised",
    "registry",
    "release_ball",
    "release_bit",
    "release_bounded",
    "release_clamped",
    "release_from_dict",
    "release_gaussian",
    "release_laplace",
    "release_laplace_vector",
    "release_option",
    "release_subset",
    "round_to_bit",
    "round_to_level",
    "standard_laplace",
    "standard_normal",
]


def registry() -> dict[str, type[Mechanism]]:
    """Return every mechanism of this package by its name, found in its files.

    Examples
    --------
    >>> registry()["laplace"](epsilon=2.0).variance
    0.5
    """
    found = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if (
                issubclass(kind, Mechanism)
                and kind.__module__ == module.name
                and "name" in vars(kind)
            ):
                found[kind.name] = kind
    return dict(sorted(found.items()))
