"""Releases: records of what somebody outside sees of one protected record, and what follows from them.

Every mechanism declares its own kind beside its code. Here stand what all kinds share, and the kinds
that belong to no mechanism: those of which only epsilon and delta are known, and "one of several".
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Constraint, NonNegative, Probability, check, require

Array = NDArray[np.float64]

Level = Annotated[float, Constraint(">= 0", lambda value: value >= 0)]
"""An epsilon, which may be infinite."""
Scale = Annotated[float, Constraint("> 0", lambda value: value > 0)]
"""The scale of some noise."""
L1 = Annotated[str, Constraint("== 'l1'", lambda v: v == "l1")]
L2 = Annotated[str, Constraint("== 'l2'", lambda v: v == "l2")]
Replace = Annotated[str, Constraint("== 'replace'", lambda v: v == "replace")]
"""The relation of neighbours in which any value may stand for any other."""


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

    def __post_init__(self) -> None:
        check(self)

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The smallest pure epsilon, or infinity if there is none."""

    @abstractmethod
    def _hockey_stick(self, epsilon: Array) -> Array:
        """Return the smallest delta at each epsilon >= 0, in the worse direction of the pair."""

    @abstractmethod
    def group(self, records: int) -> Release:
        """Return this release as seen by `records` protected records changing at once."""

    @property
    def spread(self) -> float:
        """The size of a typical privacy loss; accounting chooses its resolution by it."""
        return self.epsilon

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta for which one release is (epsilon, delta)-private."""
        require(self, "epsilon", ">= 0", epsilon >= 0, epsilon)
        return float(self._hockey_stick(np.array([float(epsilon)]))[0])

    @property
    def certain(self) -> float:
        """The delta that no epsilon avoids: the probability of what betrays the record."""
        return self.delta(1e9)

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
        deltas = _both_sides(self._hockey_stick(losses[top:]), losses)
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots(step, grid, deltas)
        return privacy_loss_distribution.PrivacyLossDistribution(pmf)

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


@dataclass(frozen=True, kw_only=True)
class NoiseRelease(Release):
    """Noise of a scale, on values that differ by at most a sensitivity.

    Parameters
    ----------
    sensitivity : float
        The largest distance between the true values of two neighbours, in `norm`.
    scale : float
        The scale of the noise; its standard deviation, if it is Gaussian.
    norm : str
        The one that the noise is calibrated by: ``"l1"`` or ``"l2"``, and no other.
    """

    sensitivity: NonNegative = 1.0
    scale: Scale

    @property
    def epsilon(self) -> float:
        """The sensitivity in units of the scale."""
        return self.sensitivity / self.scale

    def group(self, records: int) -> Self:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, sensitivity=records * self.sensitivity)


class AnswersOnce(Release):
    """A release that answers for one record: any number of records have one answer each."""

    def group(self, records: int) -> Self:
        """Return this release: one answer is about one record."""
        return self


class FewAnswers(AnswersOnce):
    """One of finitely many answers, described by their probabilities."""

    @abstractmethod
    def _pair(self) -> tuple[list[float], list[float]]:
        """Return the probabilities of all answers for the two worst inputs."""

    @property
    def epsilon(self) -> float:
        """The largest log ratio of the probabilities of an answer."""
        return largest_log_ratio(*self._pair())

    @property
    def spread(self) -> float:
        """The largest finite loss."""
        return largest_finite_log_ratio(*self._pair())

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> Array:
        # Repeated answers may change in either direction, so the curve must hold for both.
        left, right = (np.array(side) for side in self._pair())
        growth = np.exp(np.minimum(epsilon, 700.0))[:, None]
        forth = np.maximum(0.0, left - growth * right).sum(axis=1)
        back = np.maximum(0.0, right - growth * left).sum(axis=1)
        delta: Array = np.maximum(forth, back)
        return delta


@dataclass(frozen=True, kw_only=True)
class PureRelease(Release):
    """Anything known to be epsilon-private and nothing more.

    Parameters
    ----------
    level : float
        The epsilon.
    what : str
        What was released, for sentences.
    """

    mechanism: ClassVar[str] = "pure"
    level: Level
    what: str = ""

    @property
    def epsilon(self) -> float:
        """The level."""
        return self.level

    def _hockey_stick(self, epsilon: Array) -> Array:
        return pure_delta(self.level, epsilon)

    def group(self, records: int) -> PureRelease:
        """Return the release with `records` times the level."""
        return dataclasses.replace(self, level=records * self.level)


@dataclass(frozen=True, kw_only=True)
class ApproximateRelease(Release):
    """Anything known to be (epsilon, delta)-private and nothing more; delta 1 is no privacy.

    Parameters
    ----------
    level : float
        The epsilon.
    failure : float
        The delta.
    what : str
        What was released, for sentences.
    """

    mechanism: ClassVar[str] = "approximate"
    level: Level
    failure: Probability
    what: str = ""

    @property
    def epsilon(self) -> float:
        """The level if delta is zero, else infinite."""
        return self.level if self.failure == 0 else math.inf

    @property
    def spread(self) -> float:
        """The level."""
        return self.level if self.level > 0 else 1.0

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> Array:
        return self.failure + (1 - self.failure) * pure_delta(self.level, epsilon)

    def group(self, records: int) -> ApproximateRelease:
        """Return the release by group privacy: failures add up, each worth e^level more."""
        level, growth = records * self.level, float(records)
        if self.level > 0:
            growth = math.expm1(min(700.0, level)) / math.expm1(self.level)
        return dataclasses.replace(self, level=level, failure=min(1.0, growth * self.failure))


@dataclass(frozen=True, kw_only=True)
class LeastPrivateRelease(Release):
    """One of several releases, whichever somebody chooses, who may know what was released before.

    Its delta at every epsilon is the largest of theirs, in either direction. A largest curve of
    convex ones is convex, so it belongs to a pair of distributions, and that pair dominates every
    choice: many such releases compose like so many uses of the pair, in any order of choices (Zhu,
    Dong and Wang, AISTATS 2022, Theorem 10). Which one has the largest pure epsilon says nothing.

    Parameters
    ----------
    releases : tuple of Release
        What may happen.
    """

    mechanism: ClassVar[str] = "the least private of several"
    releases: Annotated[tuple[Release, ...], Constraint("at least one", bool)]

    @property
    def epsilon(self) -> float:
        """The largest."""
        return max(release.epsilon for release in self.releases)

    @property
    def spread(self) -> float:
        """The smallest, so that accounting resolves every one."""
        return min((r.spread for r in self.releases if r.spread > 0), default=1.0)

    def _largest_loss(self) -> float:
        return max(release._largest_loss() for release in self.releases)

    def _hockey_stick(self, epsilon: Array) -> Array:
        delta: Array = np.max([each._hockey_stick(epsilon) for each in self.releases], axis=0)
        return delta

    def group(self, records: int) -> Release:
        """Return the least private of the grouped releases."""
        return least_private(release.group(records) for release in self.releases)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {"kind": type(self).__name__, "releases": [r.to_dict() for r in self.releases]}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Release:
        """Return the release that `to_dict` described."""
        return cls(releases=tuple(release_from_dict(record) for record in values["releases"]))

    def describe(self) -> str:
        """Return the releases in a few words."""
        return f"{self.mechanism} ({', '.join(r.describe() for r in self.releases)})"


def least_private(releases: Iterable[Release]) -> Release:
    """Return a release that stands for whichever of `releases` happens.

    Examples
    --------
    The second of these has the larger pure epsilon, the first costs more when it is repeated:

    >>> from tacit.privacy import RandomizedResponseRelease, composed_epsilon
    >>> first = RandomizedResponseRelease(keep_zero=0.731, keep_one=0.731)
    >>> second = RandomizedResponseRelease(keep_zero=0.999, keep_one=0.0027186)
    >>> [round(release.epsilon, 4) for release in (first, second)]
    [0.9997, 1.0001]
    >>> either = least_private([first, second])
    >>> [round(composed_epsilon([(r, 100)], 1e-6), 1) for r in (first, second, either)]
    [83.5, 4.9, 83.5]
    """
    different = tuple(dict.fromkeys(releases))
    return different[0] if len(different) == 1 else LeastPrivateRelease(releases=different)


def release_from_dict(record: Mapping[str, Any]) -> Release:
    """Return the release that `Release.to_dict` described."""
    kinds = {kind.__name__: kind for kind in _kinds(Release.__subclasses__())}
    values = dict(record)
    kind = str(values.pop("kind", None))
    require("release_from_dict", "kind", f"in {sorted(kinds)}", kind in kinds, kind)
    return kinds[kind].from_values(values)


def _kinds(kinds: Iterable[type[Release]]) -> Iterator[type[Release]]:
    for kind in kinds:
        if "mechanism" in vars(kind):
            yield kind
        yield from _kinds(kind.__subclasses__())


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
    deltas = _both_sides(curve, epsilon)
    rises = np.diff(deltas) / math.expm1(step)
    masses = np.append(rises, 0.0)
    masses[0] += 1 - deltas[0]
    masses[1:] -= math.exp(step) * rises
    return np.maximum(masses, 0.0), float(deltas[-1])


def _both_sides(curve: Array, epsilon: Array) -> Array:
    # H(-e) of a pair follows from H(e) of the reversed pair, which has the same curve.
    e = epsilon[curve.size :]
    negative = -np.expm1(-e) + np.exp(-e) * curve[1:]
    deltas: Array = np.minimum.accumulate(np.clip(np.append(negative[::-1], curve), 0.0, 1.0))
    return deltas


def pure_delta(level: float, epsilon: Array) -> Array:
    """Return the largest delta at each epsilon that pure `level` leaves possible."""
    # e^level / (1 + e^level) - e^epsilon / (1 + e^level), written without overflow.
    delta: Array = -np.expm1(np.minimum(epsilon - level, 0.0)) / (1 + math.exp(-level))
    return delta


def largest_log_ratio(left: list[float], right: list[float]) -> float:
    """Return the pure epsilon of two such distributions; infinite if only one allows an answer."""
    if any((a == 0) != (b == 0) for a, b in zip(left, right, strict=True)):
        return math.inf
    return largest_finite_log_ratio(left, right)


def largest_finite_log_ratio(left: list[float], right: list[float]) -> float:
    """Return the largest loss of an answer that both allow; 1 if there is none."""
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a > 0 and b > 0]
    if not pairs:
        return 1.0
    return max(math.log1p(abs(a - b) / min(a, b)) for a, b in pairs)
