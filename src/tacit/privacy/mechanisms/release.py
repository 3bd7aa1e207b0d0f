"""The record that every release is, and what follows from it whatever the mechanism."""

from __future__ import annotations

import dataclasses
import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require

Array = NDArray[np.float64]


def dp_accounting_for(needed_by: str) -> Any:
    """Return the library dp-accounting, or say how to install it."""
    try:
        return importlib.import_module("dp_accounting")
    except ModuleNotFoundError:
        needed = f"{needed_by} needs dp-accounting: pip install 'tacit[privacy]'"
        raise ModuleNotFoundError(needed, name="dp_accounting") from None


@dataclass(frozen=True, kw_only=True)
class Release(ABC):
    """One message, seen by somebody outside, about one protected record.

    Subclasses say how far apart the message's distributions are under the two worst neighbouring
    inputs; everything else is derived from that.
    """

    mechanism: ClassVar[str]
    """What the mechanism is called in sentences and tables."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The smallest pure epsilon, or infinity if there is none."""

    @abstractmethod
    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        """Return the smallest delta at each epsilon >= 0, in either direction of the pair."""

    @abstractmethod
    def grouped(self, records: int) -> Release:
        """Return this release as seen by `records` protected records changing at once."""

    @property
    def spread(self) -> float:
        """The size of a typical privacy loss; accounting chooses its resolution by it."""
        return self.epsilon

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta for which one release is (epsilon, delta)-private."""
        require(self, "epsilon", ">= 0", epsilon >= 0, epsilon)
        forth, back = self._hockey_stick(np.array([float(epsilon)]))
        return float(max(forth[0], back[0]))

    def loss_distribution(self, interval: float | None = None) -> Any:
        """Return the privacy-loss distribution, never optimistic, as ``dp_accounting`` has it.

        Parameters
        ----------
        interval : float, optional
            The grid of the losses. The curve of delta over epsilon is exact on the grid and
            replaced by its chords, which lie above it, in between.
        """
        dp_accounting_for("loss_distribution")
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

        step = interval if interval is not None else self.spread / 128
        top = 1 + math.ceil(self._largest_loss() / step)
        grid = np.arange(-top, top + 1)
        losses: Array = step * grid.astype(np.float64)
        forth, back = self._hockey_stick(losses[top:])
        pmfs = [
            pld_pmf.create_pmf_pessimistic_connect_dots(step, grid, _both_sides(a, b, losses))
            for a, b in ((forth, back), (back, forth))
        ]
        if np.array_equal(forth, back):
            return privacy_loss_distribution.PrivacyLossDistribution(pmfs[0])
        return privacy_loss_distribution.PrivacyLossDistribution(*pmfs)

    def _largest_loss(self) -> float:
        return self.epsilon

    def parts(self) -> list[tuple[Release, int]]:
        """Return releases, with counts, that together are this one or worse; accounting uses them."""
        return [(self, 1)]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values; `release_from_dict` reads it back."""
        return {"kind": type(self).__name__, **dataclasses.asdict(self)}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Release:
        """Return the release of these fields, as JSON holds them."""
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})

    def describe(self) -> str:
        """Return mechanism and calibration in a few words."""
        values = ", ".join(
            f"{field.name} {getattr(self, field.name):g}"
            for field in dataclasses.fields(self)
            if isinstance(getattr(self, field.name), (int, float))
        )
        return f"{self.mechanism} ({values})"


def release_from_dict(record: Mapping[str, Any]) -> Release:
    """Return the release that `Release.to_dict` described."""
    kinds = {kind.__name__: kind for kind in Release.__subclasses__()}
    values = dict(record)
    kind = str(values.pop("kind", None))
    require("release_from_dict", "kind", f"in {sorted(kinds)}", kind in kinds, kind)
    return kinds[kind].from_values(values)


def connected_dots(curve: Array, step: float) -> tuple[Array, float]:
    """Return the distribution of the loss whose curve of delta is the chords of `curve`.

    Algorithm 1 of Doroshenko et al. (2022) for a pair that is the same in both directions: a curve is
    convex in exp(epsilon), so that its chords are never optimistic.

    Parameters
    ----------
    curve : array of shape (m + 1,)
        Delta at epsilon 0, step, ..., m step.
    step : float

    Returns
    -------
    masses : array of shape (2 m + 1,)
        The probability of each loss from -m step to m step.
    certain : float
        The probability of an infinite one.
    """
    epsilon: Array = step * np.arange(-(curve.size - 1), curve.size, dtype=np.float64)
    deltas = _both_sides(curve, curve, epsilon)
    rises = np.diff(deltas) / math.expm1(step)
    masses = np.append(rises, 0.0)
    masses[0] += 1 - deltas[0]
    masses[1:] -= math.exp(step) * rises
    return np.maximum(masses, 0.0), float(deltas[-1])


def _both_sides(forth: Array, back: Array, epsilon: Array) -> Array:
    # H(-e) of a pair follows from H(e) of the reversed pair.
    e = epsilon[forth.size :]
    negative = -np.expm1(-e) + np.exp(-e) * back[1:]
    deltas: Array = np.minimum.accumulate(np.clip(np.append(negative[::-1], forth), 0.0, 1.0))
    return deltas


def require_noise(owner: Release, sensitivity: float, scale: float) -> None:
    """Check what all additive noise must have."""
    require(owner, "sensitivity", ">= 0 and finite", 0 <= sensitivity < math.inf, sensitivity)
    require(owner, "scale", "> 0", scale > 0, scale)
