"""Tier one: what the declared releases cost by calculation, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.core.constraints import require
from tacit.privacy.accounting import composed_delta, composed_epsilon
from tacit.privacy.releases import Release


@dataclass(frozen=True, kw_only=True)
class DeclaredResult:
    """What a list of releases costs, against a claim."""

    epsilon: float
    """The claim."""
    delta: float
    accounted_epsilon: float
    """What the releases cost together at `delta`; infinite if no epsilon will do."""
    accounted_delta: float
    """What delta they need at `epsilon`."""

    @property
    def covered(self) -> bool:
        """Whether the claim follows from the declared releases."""
        return self.accounted_epsilon <= self.epsilon or self.accounted_delta <= self.delta

    def sentence(self) -> str:
        """Return the finding in words."""
        claim = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        if self.covered:
            return f"The declared releases cover the claim {claim}."
        return (
            f"The declared releases do not cover the claim {claim}: at that delta they cost "
            f"epsilon={self.accounted_epsilon:.4g}, at that epsilon delta={self.accounted_delta:.3g}."
        )


def check_declared(
    releases: Sequence[tuple[Release, int]], *, epsilon: float, delta: float = 0.0
) -> DeclaredResult:
    """Compare a claim with the composed privacy loss of the releases a mechanism declares.

    It says nothing of releases that were made and not declared: that is what `audit` looks for.

    Parameters
    ----------
    releases : sequence of (Release, int)
        Each release with the number of times it is made about the same record.
    epsilon, delta : float
        The claim.

    Examples
    --------
    >>> from tacit.privacy import LaplaceRelease
    >>> check_declared([(LaplaceRelease(scale=2.0), 3)], epsilon=1.5).covered
    True
    >>> check_declared([(LaplaceRelease(scale=2.0), 4)], epsilon=1.5).covered
    False
    """
    require("check_declared", "epsilon", ">= 0", epsilon >= 0, epsilon)
    require("check_declared", "delta", "in [0, 1)", 0 <= delta < 1, delta)
    return DeclaredResult(
        epsilon=epsilon,
        delta=delta,
        accounted_epsilon=composed_epsilon(releases, delta),
        accounted_delta=composed_delta(releases, epsilon),
    )
