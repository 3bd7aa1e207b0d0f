"""Mechanisms, guarantees that are values, accounting and auditing; knows nothing of bandits."""

from tacit.privacy.accounting import composed_delta, composed_epsilon, loss_distribution
from tacit.privacy.auditing import (
    AuditResult,
    DeclaredResult,
    NeighbouringPair,
    OneRunResult,
    SearchResult,
    audit,
    audit_one_run,
    check_declared,
    search,
)
from tacit.privacy.budgets import Amount, BudgetExceededError, Cap, LedgerError, Outcome, Period
from tacit.privacy.guarantees import NOT_PROTECTED, Claim, Guarantee, brief, compose, strength
from tacit.privacy.ledger import Charge, Entry, Ledger
from tacit.privacy.mechanisms import Mechanism, numerics_of
from tacit.privacy.mechanisms.binary_tree import BinaryTree
from tacit.privacy.mechanisms.bounded_noise import BoundedNoise, BoundedNoiseRelease
from tacit.privacy.mechanisms.clamped_laplace import ClampedLaplace
from tacit.privacy.mechanisms.continual_sums import ContinualSum, LocalSum
from tacit.privacy.mechanisms.device_weights import keep_probability
from tacit.privacy.mechanisms.gaussian import (
    DiscreteGaussianRelease,
    Gaussian,
    GaussianRelease,
    gaussian_scale,
)
from tacit.privacy.mechanisms.gaussian_moments import GaussianMoments
from tacit.privacy.mechanisms.k_ary_response import KAryResponse, KAryResponseRelease
from tacit.privacy.mechanisms.l2_ball import BallRelease, L2Ball
from tacit.privacy.mechanisms.l2_laplace import L2CalibratedLaplace, L2CalibratedLaplaceRelease
from tacit.privacy.mechanisms.laplace import DiscreteLaplaceRelease, Laplace, LaplaceRelease
from tacit.privacy.mechanisms.piecewise import Piecewise, PiecewiseRelease
from tacit.privacy.mechanisms.randomized_response import (
    AsymmetricResponse,
    RandomizedResponse,
    RandomizedResponseRelease,
)
from tacit.privacy.mechanisms.shuffled_bits import ShuffledBits, ShuffledBitsRelease
from tacit.privacy.mechanisms.staircase import Staircase, StaircaseRelease
from tacit.privacy.mechanisms.subset_selection import SubsetRelease, SubsetSelection
from tacit.privacy.mechanisms.toeplitz import SquareRootToeplitz
from tacit.privacy.mechanisms.unary_encoding import UnaryEncoding, UnaryRelease
from tacit.privacy.releases import (
    ApproximateRelease,
    LeastPrivateRelease,
    PureRelease,
    Release,
    least_private,
)

__all__ = [
    "NOT_PROTECTED",
    "Amount",
    "ApproximateRelease",
    "AsymmetricResponse",
    "AuditResult",
    "BallRelease",
    "BinaryTree",
    "BoundedNoise",
    "BoundedNoiseRelease",
    "BudgetExceededError",
    "Cap",
    "Charge",
    "Claim",
    "ClampedLaplace",
    "ContinualSum",
    "DeclaredResult",
    "DiscreteGaussianRelease",
    "DiscreteLaplaceRelease",
    "Entry",
    "Gaussian",
    "GaussianMoments",
    "GaussianRelease",
    "Guarantee",
    "KAryResponse",
    "KAryResponseRelease",
    "L2Ball",
    "L2CalibratedLaplace",
    "L2CalibratedLaplaceRelease",
    "Laplace",
    "LaplaceRelease",
    "LeastPrivateRelease",
    "Ledger",
    "LedgerError",
    "LocalSum",
    "Mechanism",
    "NeighbouringPair",
    "OneRunResult",
    "Outcome",
    "Period",
    "Piecewise",
    "PiecewiseRelease",
    "PureRelease",
    "RandomizedResponse",
    "RandomizedResponseRelease",
    "Release",
    "SearchResult",
    "ShuffledBits",
    "ShuffledBitsRelease",
    "SquareRootToeplitz",
    "Staircase",
    "StaircaseRelease",
    "SubsetRelease",
    "SubsetSelection",
    "UnaryEncoding",
    "UnaryRelease",
    "audit",
    "audit_one_run",
    "brief",
    "check_declared",
    "compose",
    "composed_delta",
    "composed_epsilon",
    "gaussian_scale",
    "keep_probability",
    "least_private",
    "loss_distribution",
    "numerics_of",
    "search",
    "strength",
]
