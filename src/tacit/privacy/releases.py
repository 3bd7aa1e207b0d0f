"""Releases: what a mechanism let out, as a record that knows its exact privacy loss.

A release names the norm and the sensitivity it was calibrated to and the scale of its noise. From
these follow, for the worst pair of neighbouring inputs, the pure epsilon, the smallest delta at
every epsilon, and the distribution of the privacy loss that accountants compose. No release of a
policy of this package states an epsilon that was not calculated here.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.policy import require

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
    "release_from_dict",
]

Array = NDArray[np.float64]


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

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values; `release_from_dict` reads it back."""
        return {"kind": type(self).__name__, **dataclasses.asdict(self)}

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
    return kinds[kind](
        **{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    )


@dataclass(frozen=True, kw_only=True)
class LaplaceRelease(Release):
    """Independent Laplace noise on every coordinate, calibrated to an L1 sensitivity.

    Parameters
    ----------
    sensitivity : float
        The largest L1 distance between the true values of two neighbours.
    scale : float
        The scale of the noise; epsilon is ``sensitivity / scale``.
    norm : str
        Must be ``"l1"``: independent Laplace noise is not calibrated by any other.

    Examples
    --------
    >>> release = LaplaceRelease(sensitivity=1.0, scale=2.0)
    >>> release.epsilon
    0.5
    >>> LaplaceRelease(sensitivity=1.0, scale=2.0, norm="l2")
    Traceback (most recent call last):
    ValueError: LaplaceRelease: expected norm == 'l1' (Laplace noise needs it), got 'l2'
    """

    mechanism: ClassVar[str] = "Laplace"
    sensitivity: float = 1.0
    scale: float
    norm: str = "l1"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l1' (Laplace noise needs it)", self.norm == "l1", self.norm)
        _require_noise(self, self.sensitivity, self.scale)

    @property
    def epsilon(self) -> float:
        """The sensitivity in units of the scale."""
        return self.sensitivity / self.scale

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = _laplace_delta(self.epsilon, epsilon)
        return delta, delta

    def grouped(self, records: int) -> LaplaceRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, sensitivity=records * self.sensitivity)


@dataclass(frozen=True, kw_only=True)
class GaussianRelease(Release):
    """Independent Gaussian noise on every coordinate, calibrated to an L2 sensitivity.

    Parameters
    ----------
    sensitivity : float
        The largest L2 distance between the true values of two neighbours.
    scale : float
        The standard deviation of the noise.
    norm : str
        Must be ``"l2"``.

    References
    ----------
    Balle and Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018, Theorem 8.
    """

    mechanism: ClassVar[str] = "Gaussian"
    sensitivity: float = 1.0
    scale: float
    norm: str = "l2"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2' (Gaussian noise needs it)", self.norm == "l2", self.norm)
        _require_noise(self, self.sensitivity, self.scale)

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise has no pure guarantee."""
        return math.inf if self.sensitivity > 0 else 0.0

    @property
    def spread(self) -> float:
        """The sensitivity in units of the standard deviation."""
        return self.sensitivity / self.scale

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = np.array([gaussian_delta(self.spread, float(e)) for e in epsilon])
        return delta, delta

    def _largest_loss(self) -> float:
        # Beyond 9 standard deviations lies a mass below 1e-18, which is counted as a certain loss.
        return self.spread**2 / 2 + 9 * self.spread

    def grouped(self, records: int) -> GaussianRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, sensitivity=records * self.sensitivity)


@dataclass(frozen=True, kw_only=True)
class RandomizedResponseRelease(Release):
    """A bit that is told truly with probability ``keep_one`` or ``keep_zero`` and else flipped.

    Parameters
    ----------
    keep_one : float
        Probability of answering 1 when the bit is 1.
    keep_zero : float
        Probability of answering 0 when the bit is 0.
    norm : str
        ``"replace"``: any bit for any other.
    """

    mechanism: ClassVar[str] = "randomized response"
    keep_one: float
    keep_zero: float
    norm: str = "replace"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'replace'", self.norm == "replace", self.norm)
        for name in ("keep_one", "keep_zero"):
            value = getattr(self, name)
            require(self, name, "in [0, 1]", 0 <= value <= 1, value)

    @classmethod
    def symmetric(cls, epsilon: float) -> RandomizedResponseRelease:
        """Return the release that flips either bit with probability 1 / (e^epsilon + 1)."""
        require(cls.__name__, "epsilon", ">= 0", epsilon >= 0, epsilon)
        keep = 1 / (1 + math.exp(-epsilon))
        release = cls(keep_one=keep, keep_zero=keep)
        while release.epsilon > epsilon:  # by a rounding error
            keep = math.nextafter(keep, 0.5)
            release = cls(keep_one=keep, keep_zero=keep)
        return release

    def _pair(self) -> tuple[list[float], list[float]]:
        return [self.keep_one, 1 - self.keep_one], [1 - self.keep_zero, self.keep_zero]

    @property
    def epsilon(self) -> float:
        """The largest log ratio of the probabilities of an answer."""
        return _largest_log_ratio(*self._pair())

    @property
    def spread(self) -> float:
        """The largest finite loss."""
        return _largest_finite_log_ratio(*self._pair())

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        one, zero = self._pair()
        return _discrete_delta(one, zero, epsilon), _discrete_delta(zero, one, epsilon)

    def grouped(self, records: int) -> Release:
        """Return this release: a bit answers for one record."""
        return self


@dataclass(frozen=True, kw_only=True)
class UnaryRelease(Release):
    """A one-hot vector (or zeros) whose bits pass through randomized response independently.

    Parameters
    ----------
    keep_one : float
        Probability that the hot bit stays 1.
    keep_zero : float
        Probability that a cold bit stays 0.
    norm : str
        ``"replace"``: one option for another, the worst case, changes two bits;
        ``"presence"``: an option for none (all zeros) changes one.
    """

    mechanism: ClassVar[str] = "unary encoding"
    keep_one: float
    keep_zero: float
    norm: str = "replace"

    def __post_init__(self) -> None:
        rule = "in ('replace', 'presence')"
        require(self, "norm", rule, self.norm in ("replace", "presence"), self.norm)
        for name in ("keep_one", "keep_zero"):
            value = getattr(self, name)
            require(self, name, "in [0, 1]", 0 <= value <= 1, value)

    @classmethod
    def symmetric(cls, epsilon: float) -> UnaryRelease:
        """Return the release that flips every bit with probability 1 / (e^(epsilon/2) + 1)."""
        require(cls.__name__, "epsilon", ">= 0", epsilon >= 0, epsilon)
        keep = 1 / (1 + math.exp(-epsilon / 2))
        release = cls(keep_one=keep, keep_zero=keep)
        while release.epsilon > epsilon:  # by a rounding error
            keep = math.nextafter(keep, 0.5)
            release = cls(keep_one=keep, keep_zero=keep)
        return release

    @classmethod
    def optimised(cls, epsilon: float) -> UnaryRelease:
        """Return the release of least variance: the hot bit is a fair coin (Wang et al. 2017)."""
        require(cls.__name__, "epsilon", ">= 0", epsilon >= 0, epsilon)
        release = cls(keep_one=0.5, keep_zero=1 / (1 + math.exp(-epsilon)))
        while release.epsilon > epsilon:  # by a rounding error
            release = cls(keep_one=0.5, keep_zero=math.nextafter(release.keep_zero, 0.5))
        return release

    def _pair(self) -> tuple[list[float], list[float]]:
        hot, cold = [self.keep_one, 1 - self.keep_one], [1 - self.keep_zero, self.keep_zero]
        if self.norm == "presence":
            return hot, cold
        return [a * b for a in hot for b in cold], [b * a for b in cold for a in hot]

    @property
    def epsilon(self) -> float:
        """The largest log ratio of the probabilities of a vector."""
        return _largest_log_ratio(*self._pair())

    @property
    def spread(self) -> float:
        """The largest finite loss."""
        return _largest_finite_log_ratio(*self._pair())

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        left, right = self._pair()
        if self.norm == "replace":
            delta = _discrete_delta(left, right, epsilon)
            return delta, delta
        return _discrete_delta(left, right, epsilon), _discrete_delta(right, left, epsilon)

    def grouped(self, records: int) -> Release:
        """Return this release: a vector answers for one record."""
        return self


@dataclass(frozen=True, kw_only=True)
class BallRelease(Release):
    """Noise in R^d of density proportional to exp(-|z| / scale), calibrated to an L2 sensitivity.

    Its radius is Gamma(d, scale) and its direction uniform.

    Parameters
    ----------
    sensitivity : float
        The largest L2 distance between the true values of two neighbours.
    scale : float
        The scale of the radius; epsilon is ``sensitivity / scale``.
    dimension : int
        The dimension d.
    norm : str
        Must be ``"l2"``.

    Notes
    -----
    Let v be the shift. The loss, the length of z - v minus that of z in units of the scale, is
    constant on hyperboloids with foci 0 and v: in prolate coordinates it is one coordinate, and the
    other integrates to Bessel functions. In high dimension the loss concentrates near zero, which
    composition over many releases profits from.
    """

    mechanism: ClassVar[str] = "L2 ball"
    sensitivity: float = 1.0
    scale: float
    dimension: int
    norm: str = "l2"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2' (ball noise needs it)", self.norm == "l2", self.norm)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)
        _require_noise(self, self.sensitivity, self.scale)

    @property
    def epsilon(self) -> float:
        """The sensitivity in units of the scale."""
        return self.sensitivity / self.scale

    @property
    def spread(self) -> float:
        """The standard deviation of the loss, about epsilon / sqrt(dimension)."""
        return self.epsilon / math.sqrt(self.dimension)

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        if self.dimension == 1:
            delta = _laplace_delta(self.epsilon, epsilon)
        else:
            delta = _ball_delta(self.epsilon, self.dimension, epsilon)
        return delta, delta

    def grouped(self, records: int) -> BallRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, sensitivity=records * self.sensitivity)


@dataclass(frozen=True, kw_only=True)
class BoundedNoiseRelease(Release):
    """Laplace noise of which draws outside [-bound, bound] become the constant bound / 2.

    This is the mechanism of Odeyomi, not a sound one: the ends of the two supports do not overlap
    and the constant betrays the value, so no finite pure epsilon holds and delta never falls below
    ``delta(sensitivity / scale)``.

    Parameters
    ----------
    sensitivity : float
        The largest difference between the true values of two neighbours.
    scale : float
        The scale of the Laplace noise before it is bounded.
    bound : float
        The bound b.
    norm : str
        Must be ``"l1"``.
    """

    mechanism: ClassVar[str] = "bounded noise"
    sensitivity: float = 1.0
    scale: float
    bound: float
    norm: str = "l1"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l1'", self.norm == "l1", self.norm)
        require(self, "bound", "> 0", self.bound > 0, self.bound)
        _require_noise(self, self.sensitivity, self.scale)

    @property
    def epsilon(self) -> float:
        """Infinite, whatever the bound."""
        return math.inf if self.sensitivity > 0 else 0.0

    @property
    def spread(self) -> float:
        """The loss where the supports overlap."""
        return self.sensitivity / self.scale

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        s, b = self.sensitivity / self.scale, self.bound / self.scale
        # The overlap is [s - b, b]; there the loss exceeds epsilon left of (s - epsilon) / 2.
        low = np.full_like(epsilon, s - b)
        high = np.maximum(low, np.minimum(b, np.where(epsilon < s, (s - epsilon) / 2, -np.inf)))
        here = _laplace_cdf(high) - _laplace_cdf(low)
        there = _laplace_cdf(high - s) - _laplace_cdf(low - s)
        end = _laplace_cdf(np.minimum(low, b)) - _laplace_cdf(np.full_like(epsilon, -b))
        delta = math.exp(-b) + end + here - np.exp(np.minimum(epsilon, s)) * there
        delta = np.clip(delta, 0.0, 1.0)
        return delta, delta

    def grouped(self, records: int) -> BoundedNoiseRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, sensitivity=records * self.sensitivity)


@dataclass(frozen=True, kw_only=True)
class L2CalibratedLaplaceRelease(Release):
    """Independent Laplace noise in R^d whose scale was set from an L2 sensitivity.

    This is what Wang et al. publish for linear bandits. Its true pure epsilon is up to the square
    root of the dimension larger than ``sensitivity / scale``. Where the changed vector is known
    in magnitude, `shift` lists the absolute change of every coordinate and the loss is exact.

    Parameters
    ----------
    sensitivity : float
        The largest L2 distance between the true values of two neighbours.
    scale : float
        The scale of the Laplace noise of a coordinate.
    dimension : int
        The dimension d.
    shift : tuple of float
        Worst absolute change of each coordinate, if known; empty assumes the worst of all.
    norm : str
        Must be ``"l2"``: with an L1 sensitivity this is `LaplaceRelease`.
    """

    mechanism: ClassVar[str] = "Laplace with an L2 sensitivity"
    sensitivity: float = 1.0
    scale: float
    dimension: int
    shift: tuple[float, ...] = ()
    norm: str = "l2"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2'", self.norm == "l2", self.norm)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)
        _require_noise(self, self.sensitivity, self.scale)
        length = math.sqrt(math.fsum(x * x for x in self.shift))
        rule = f"of L2 length at most the sensitivity {self.sensitivity:g}"
        require(self, "shift", rule, length <= self.sensitivity * (1 + 1e-9), self.shift)
        fits = len(self.shift) in (0, self.dimension)
        require(self, "shift", "empty or of one entry a coordinate", fits, len(self.shift))

    @property
    def epsilon(self) -> float:
        """The L1 length of the worst change in units of the scale."""
        if self.shift:
            return math.fsum(abs(x) for x in self.shift) / self.scale
        return math.sqrt(self.dimension) * self.sensitivity / self.scale

    @property
    def spread(self) -> float:
        """The standard deviation of the loss if `shift` is known, else epsilon."""
        return self.sensitivity / self.scale if self.shift else self.epsilon

    def _parts(self) -> dict[LaplaceRelease, int]:
        parts: dict[LaplaceRelease, int] = {}
        for x in self.shift:
            if x != 0:
                part = LaplaceRelease(sensitivity=abs(x), scale=self.scale)
                parts[part] = parts.get(part, 0) + 1
        return parts

    def loss_distribution(self, interval: float | None = None) -> Any:
        """Return the loss distribution of the coordinates of `shift`, or of the pure bound."""
        parts = self._parts()
        if not parts:
            return super().loss_distribution(interval)
        step = interval if interval is not None else min(part.spread for part in parts) / 16
        total: Any = None
        for part, count in parts.items():
            once = part.loss_distribution(step).self_compose(count)
            total = once if total is None else total.compose(once)
        return total

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        if self.shift:
            curve = self.loss_distribution()
            delta = np.array([curve.get_delta_for_epsilon(float(e)) for e in epsilon])
        else:
            delta = _pure_delta(self.epsilon, epsilon)
        return delta, delta

    def grouped(self, records: int) -> L2CalibratedLaplaceRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(
            self,
            sensitivity=records * self.sensitivity,
            shift=tuple(records * x for x in self.shift),
        )


@dataclass(frozen=True, kw_only=True)
class PiecewiseRelease(Release):
    """A bounded value told by the piecewise mechanism of Wang et al. (ICDE 2019).

    Parameters
    ----------
    level : float
        The epsilon it was built for, which it meets exactly.
    norm : str
        ``"replace"``: any value for any other.
    """

    mechanism: ClassVar[str] = "piecewise"
    level: float
    norm: str = "replace"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'replace'", self.norm == "replace", self.norm)
        require(self, "level", "> 0", self.level > 0, self.level)

    @property
    def epsilon(self) -> float:
        """The level."""
        return self.level

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        # The two extremes favour disjoint intervals; elsewhere they agree.
        likely = 1 / (1 + math.exp(-self.level / 2))
        delta = likely * np.maximum(0.0, -np.expm1(np.minimum(epsilon - self.level, 0.0)))
        return delta, delta

    def grouped(self, records: int) -> Release:
        """Return this release: a value answers for one record."""
        return self


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceRelease(Release):
    """Discrete Laplace noise on a grid: the secure twin of `LaplaceRelease`.

    Parameters
    ----------
    steps : int
        The L1 sensitivity in grid steps, rounded up.
    scale : int
        The scale of the noise in grid steps; epsilon is ``steps / scale``.
    norm : str
        Must be ``"l1"``.
    """

    mechanism: ClassVar[str] = "discrete Laplace"
    steps: int
    scale: int
    norm: str = "l1"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l1' (Laplace noise needs it)", self.norm == "l1", self.norm)
        require(self, "steps", ">= 0", self.steps >= 0, self.steps)
        require(self, "scale", "> 0", self.scale > 0, self.scale)

    @property
    def epsilon(self) -> float:
        """The sensitivity in units of the scale."""
        return self.steps / self.scale

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        # The loss of x exceeds epsilon below (steps - epsilon scale) / 2.
        last = np.ceil((self.steps - np.minimum(epsilon, self.epsilon) * self.scale) / 2) - 1
        here, there = self._cdf(last), self._cdf(last - self.steps)
        grown = np.exp(np.minimum(epsilon, self.epsilon)) * there
        delta = np.where(epsilon < self.epsilon, np.maximum(0.0, here - grown), 0.0)
        return delta, delta

    def _cdf(self, x: Array) -> Array:
        tail = np.exp(-(np.abs(x) + np.where(x < 0, 0.0, 1.0)) / self.scale)
        tail = tail / (1 + math.exp(-1 / self.scale))
        cdf: Array = np.where(x < 0, tail, 1 - tail)
        return cdf

    def grouped(self, records: int) -> DiscreteLaplaceRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, steps=records * self.steps)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianRelease(Release):
    """Discrete Gaussian noise on a grid: the secure twin of `GaussianRelease`.

    Parameters
    ----------
    steps : int
        The sensitivity in grid steps, rounded up.
    sigma : float
        The parameter sigma of the noise in grid steps.
    norm : str
        Must be ``"l2"``; the loss of one coordinate is exact.
    """

    mechanism: ClassVar[str] = "discrete Gaussian"
    steps: int
    sigma: float
    norm: str = "l2"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2'", self.norm == "l2", self.norm)
        require(self, "steps", ">= 0", self.steps >= 0, self.steps)
        require(self, "sigma", "> 0 and finite", 0 < self.sigma < math.inf, self.sigma)

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise has no pure guarantee."""
        return math.inf if self.steps > 0 else 0.0

    @property
    def spread(self) -> float:
        """The sensitivity in units of sigma."""
        return self.steps / self.sigma

    def _largest_loss(self) -> float:
        return self.spread**2 / 2 + 9 * self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        if self.steps == 0:
            return np.zeros_like(epsilon), np.zeros_like(epsilon)
        # P(x >= k) - e^epsilon P(x >= k + steps) with k the first point whose loss exceeds epsilon.
        reach = math.ceil(12 * self.sigma) + self.steps + 2
        tail = _discrete_gaussian_tail(self.sigma, reach)
        # The loss of x against x + steps is (2 steps x + steps^2) / (2 sigma^2).
        first = np.floor(epsilon * self.sigma**2 / self.steps - self.steps / 2) + 1
        index = np.clip(first + reach, 0, tail.size - 1).astype(np.int64)
        other = np.clip(first + self.steps + reach, 0, tail.size - 1).astype(np.int64)
        delta = np.maximum(0.0, tail[index] - np.exp(np.minimum(epsilon, 700.0)) * tail[other])
        return delta, delta

    def grouped(self, records: int) -> DiscreteGaussianRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, steps=records * self.steps)


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
    level: float
    what: str = ""

    def __post_init__(self) -> None:
        require(self, "level", ">= 0", self.level >= 0, self.level)

    @property
    def epsilon(self) -> float:
        """The level."""
        return self.level

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = _pure_delta(self.level, epsilon)
        return delta, delta

    def grouped(self, records: int) -> PureRelease:
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
    level: float
    failure: float
    what: str = ""

    def __post_init__(self) -> None:
        require(self, "level", ">= 0", self.level >= 0, self.level)
        require(self, "failure", "in [0, 1]", 0 <= self.failure <= 1, self.failure)

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

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = self.failure + (1 - self.failure) * _pure_delta(self.level, epsilon)
        return delta, delta

    def grouped(self, records: int) -> ApproximateRelease:
        """Return the release by group privacy: failures add up, each worth e^level more."""
        growth = math.fsum(math.exp(min(700.0, i * self.level)) for i in range(records))
        return dataclasses.replace(
            self, level=records * self.level, failure=min(1.0, growth * self.failure)
        )


def gaussian_delta(ratio: float, epsilon: float) -> float:
    """Return the exact delta of Gaussian noise (Balle and Wang 2018, Theorem 8).

    Parameters
    ----------
    ratio : float
        Sensitivity divided by standard deviation.
    epsilon : float
        The epsilon, at least 0.
    """
    if ratio == 0:
        return 0.0
    a, b = epsilon / ratio - ratio / 2, epsilon / ratio + ratio / 2
    # e^epsilon Phi(-b) = e^(-a^2/2) erfcx(b / sqrt 2) / 2, which cannot overflow.
    second = math.exp(-a * a / 2) * _erfcx(b / math.sqrt(2)) / 2
    return max(0.0, math.erfc(a / math.sqrt(2)) / 2 - second)


def gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation that is (epsilon, delta)-private, to 1e-12.

    Examples
    --------
    >>> round(gaussian_scale(1.0, 1e-5), 4)
    3.7306
    """
    require("gaussian_scale", "epsilon", "> 0", epsilon > 0, epsilon)
    require("gaussian_scale", "delta", "in (0, 1)", 0 < delta < 1, delta)
    low, high = 1e-12, 1.0
    while gaussian_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = math.sqrt(low * high)
        if middle in (low, high):
            break
        if gaussian_delta(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return sensitivity / low


def _erfcx(x: float) -> float:
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    y = 1 / (2 * x * x)
    return (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y)))) / (x * math.sqrt(math.pi))


def _both_sides(forth: Array, back: Array, epsilon: Array) -> Array:
    # H(-e) of a pair follows from H(e) of the reversed pair.
    e = epsilon[forth.size :]
    negative = -np.expm1(-e) + np.exp(-e) * back[1:]
    deltas: Array = np.minimum.accumulate(np.clip(np.append(negative[::-1], forth), 0.0, 1.0))
    return deltas


def _laplace_delta(level: float, epsilon: Array) -> Array:
    return -np.expm1(np.minimum(epsilon - level, 0.0) / 2)


def _pure_delta(level: float, epsilon: Array) -> Array:
    # e^level / (1 + e^level) - e^epsilon / (1 + e^level), written without overflow.
    delta: Array = -np.expm1(np.minimum(epsilon - level, 0.0)) / (1 + math.exp(-level))
    return delta


def _laplace_cdf(x: ArrayLike) -> Array:
    x = np.asarray(x, dtype=np.float64)
    half = np.exp(-np.abs(x)) / 2
    cdf: Array = np.where(x < 0, half, 1 - half)
    return cdf


def _discrete_delta(left: list[float], right: list[float], epsilon: Array) -> Array:
    grown = np.exp(np.minimum(epsilon, 700.0))[:, None] * np.array(right)
    delta: Array = np.maximum(0.0, np.array(left) - grown).sum(axis=1)
    return delta


def _largest_log_ratio(left: list[float], right: list[float]) -> float:
    if any((a == 0) != (b == 0) for a, b in zip(left, right, strict=True)):
        return math.inf
    return _largest_finite_log_ratio(left, right)


def _largest_finite_log_ratio(left: list[float], right: list[float]) -> float:
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a > 0 and b > 0]
    if not pairs:
        return 1.0
    return max(abs(math.log(a) - math.log(b)) for a, b in pairs)


@functools.lru_cache(maxsize=4)
def _discrete_gaussian_tail(sigma: float, reach: int) -> Array:
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    tail: Array = np.append(np.cumsum(weights[::-1])[::-1], 0.0) / weights.sum()
    return tail


def _ball_delta(level: float, dimension: int, epsilon: Array) -> Array:
    a, d = level / 2, dimension
    ratio = (d - 1) / a * _bessel_ratio(d / 2 - 1, a)
    # nu = cos(theta); the loss is -2 a nu. Nearly all mass lies within a few / sqrt(d) of pi / 2.
    width = min(math.pi / 2, (14 + a) / math.sqrt(d))
    nodes, weights = np.polynomial.legendre.leggauss(400)

    def mass(theta: Array) -> Array:
        sine = np.sin(theta)
        with np.errstate(divide="ignore"):
            log = -a * np.cos(theta) + (d - 2) * np.log(sine)
        density: Array = np.exp(log) * (ratio + sine * sine)
        return density

    def integral(low: float, high: float, penalty: float | None) -> float:
        theta = low + (high - low) * (nodes + 1) / 2
        value = mass(theta)
        if penalty is not None:
            value = value * np.maximum(0.0, -np.expm1(penalty + 2 * a * np.cos(theta)))
        return float(weights @ value) * (high - low) / 2

    low, high = math.pi / 2 - width, math.pi / 2 + width
    total = integral(low, high, None)
    result = np.zeros_like(epsilon)
    for i, e in enumerate(epsilon):
        if e < level:
            start = max(low, math.acos(-e / level))
            if start < high:
                result[i] = integral(start, high, float(e)) / total
    return result


def _bessel_ratio(order: float, x: float) -> float:
    # K_(order + 1)(x) / K_order(x) for integer or half-integer order, by the forward recurrence.
    if order == int(order):
        t = np.linspace(0.0, math.acosh(1 + 745 / x), 4001)
        weights = np.exp(-x * (np.cosh(t) - 1))
        weights[0] /= 2
        ratio, start = float((weights @ np.cosh(t)) / weights.sum()), 0.0
    else:
        ratio, start = 1.0, -0.5
    while start < order:
        start += 1
        ratio = 2 * start / x + 1 / ratio
    return ratio


def _require_noise(owner: Release, sensitivity: float, scale: float) -> None:
    require(owner, "sensitivity", ">= 0 and finite", 0 <= sensitivity < math.inf, sensitivity)
    require(owner, "scale", "> 0", scale > 0, scale)
