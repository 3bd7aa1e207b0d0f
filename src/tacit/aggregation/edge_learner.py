"""The learner of an experiment at the edge: batched Thompson sampling on noised histograms.

Devices choose an option from a published model and report one symbol (segment, option, reward) to two
aggregators. The learner sees one noised histogram an epoch. Three things make the noise cheap:

- An epoch counts by its information, not by its size.
- What is added up is centred, (1 - c) ones - c zeros, with the c of least variance.
- The first epoch is so long that the noise of an option's mean is small, whatever epsilon is.

The denominators are expected counts. The share of people who answer is learned from the noised counts, so
silence about one option does not mislead. Everything that the learner uses is public: models, numbers of
reports, earlier releases. So it adds nothing to the privacy loss.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve, solve_triangular

from tacit.core.constraints import Constraint, Count, check, require
from tacit.privacy.mechanisms import Epsilon

Array = NDArray[np.float64]

#: Probabilities are whole multiples of 2^-24: the same number on every device, in JSON, and here.
ONE = 1 << 24
FIRST, GROWTH, LEAST, DRAWS = 60.0, 0.5, 500, 400
LONGEST, LONGEST_FIRST = 20_000, 10
PRIOR, RESPONSE = 0.3, 0.2
#: Standard deviations of what all share, of a segment, of an option, and of the two together (one of these).
COMMON, SEGMENT, OPTION = 0.5, 0.2, 0.2
INTERACTIONS = (0.01, 0.03, 0.1, 0.25)
_STREAM = 11


class Model(NamedTuple):
    """What devices download: how to choose an option in each segment, and how long the epoch is."""

    epoch: int
    reports: int
    """Reports that close the epoch."""
    weights: NDArray[np.int64]
    """Shape (S, K): chances, as whole multiples of 2^-24; each row adds up to 2^24."""

    def to_json(self) -> dict[str, Any]:
        """Return it as it is published."""
        weights = self.weights.tolist()
        return {
            "v": 1,
            "epoch": self.epoch,
            "reports": self.reports,
            "one": ONE,
            "weights": weights,
        }

    @property
    def hash(self) -> str:
        """What a report names its model by: a hash of the published bytes."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class EdgePlan:
    """What an edge experiment fixes for its whole life.

    Guarantee: a report (segment, option and reward together) is in one epoch, and each of two aggregators
    adds discrete Laplace noise of scale 2 / epsilon to each cell. So the symbol is epsilon-private against
    everybody together with either aggregator.

    Parameters
    ----------
    n_options : int
        K.
    epsilon : float
        Of one report.
    n_segments : int, default 1
        S. More segments pay where visits times epsilon / (S K) exceed about 400.
    half_life : float, optional
        After how many reports an observation counts half, for a world that changes. The longest epoch is then
        a fifth of it.
    floor : float, default 0
        Least chance of an option, which bounds what a shown option tells of the segment.
    seed : int, default 0
        Of the learner's own draws, which are public.

    Examples
    --------
    >>> plan = EdgePlan(n_options=3, epsilon=0.5)
    >>> plan.epoch_size(0), plan.epoch_size(10_000), plan.epoch_size(10**6)
    (500, 5000, 20000)
    """

    n_options: Count
    epsilon: Epsilon
    n_segments: Count = 1
    half_life: Annotated[float, Constraint("> 0", lambda h: h > 0)] | None = None
    floor: Annotated[float, Constraint("in [0, 1)", lambda p: 0 <= p < 1)] = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check(self)
        room = 1.0 / self.n_options
        require(
            self, "floor", f"<= {room:g}, one of {self.n_options}", self.floor <= room, self.floor
        )

    @property
    def n_cells(self) -> int:
        """C, the symbols that a report can be."""
        return 2 * self.n_segments * self.n_options

    @property
    def noise_variance(self) -> float:
        """Of one cell after both aggregators' draws, and after cells were made to add up."""
        q = math.exp(-self.epsilon / 2)
        return 2 * 2 * q / (1 - q) ** 2 * (1 - 1 / self.n_cells)

    def epoch_size(self, seen: float) -> int:
        """Return how many reports the epoch has that begins after `seen` reports."""
        first = max(LEAST, FIRST * self.n_options / self.epsilon)
        most = max(LONGEST, LONGEST_FIRST * first)
        if self.half_life is not None:
            most = min(most, max(LEAST, self.half_life / 5))
        return int(min(max(first, GROWTH * seen), most))


class EdgeLearner:
    """Turn released histograms into models, one epoch after the other.

    It is a function of its plan and of the releases: given the same ones again, it publishes the same models.

    Parameters
    ----------
    plan : EdgePlan
        The experiment.

    Examples
    --------
    >>> learner = EdgeLearner(EdgePlan(n_options=2, epsilon=1.0))
    >>> learner.model.weights.tolist()
    [[8388608, 8388608]]
    >>> model = learner.learn([[[300, 0], [0, 300]]], {learner.model.hash: 600})
    >>> bool(model.weights[0, 0] > model.weights[0, 1])
    True
    """

    def __init__(self, plan: EdgePlan) -> None:
        S, K = plan.n_segments, plan.n_options
        self.plan = plan
        self.seen = 0
        self.mean, self.variance = np.full((S, K), 0.5), np.full((S, K), PRIOR**2)
        self._precision, self._weighted = np.zeros((S, K)), np.zeros((S, K))
        self._response_precision = np.full((S, K), RESPONSE**-2)
        self._response_weighted = self._response_precision.copy()
        self._share_precision, self._share_weighted = np.zeros(S), np.zeros(S)
        self._models: dict[str, Array] = {}
        self.model = self._publish(0, np.full((S, K), 1.0 / K))

    def _publish(self, epoch: int, chances: Array) -> Model:
        plan = self.plan
        chances = plan.floor + (1.0 - plan.n_options * plan.floor) * chances
        weights = np.floor(chances * ONE).astype(np.int64)
        weights[np.arange(plan.n_segments), chances.argmax(axis=1)] += ONE - weights.sum(axis=1)
        self.model = Model(epoch, plan.epoch_size(self.seen), weights)
        # Devices may be one model behind; an older one is refused by the aggregators.
        self._models = {**dict(list(self._models.items())[-1:]), self.model.hash: weights / ONE}
        return self.model

    def learn(self, histogram: ArrayLike, reports: Mapping[str, int]) -> Model:
        """Take in the release of an epoch, and return the next model.

        Parameters
        ----------
        histogram : array_like
            Shape (S, K, 2): the sum of both aggregators' noised shares; first rewards of 1, then of 0.
        reports : mapping
            How many reports each model has, by its hash: the present one and the one before.
        """
        plan, nu = self.plan, self.plan.noise_variance
        h = np.asarray(histogram, np.float64)
        wanted = (plan.n_segments, plan.n_options, 2)
        require("EdgeLearner", "histogram", f"of shape {wanted}", h.shape == wanted, h.shape)
        unknown = [each for each in reports if each not in self._models]
        require("EdgeLearner", "reports", "of the last two models", not unknown, unknown)
        N = float(sum(reports.values()))
        require("EdgeLearner", "reports", ">= 1", N >= 1, N)
        # The number of reports is public, so what noise added to the whole is taken out again.
        h = h - (h.sum() - N) / h.size
        p = np.add.reduce([n * self._models[name] for name, n in reports.items()]) / N
        expected = p * self._segment_counts(h, N)[:, None]
        shown = expected > 0
        m = np.where(shown, expected, 1.0)
        weight = np.where(shown, m**2 / (m + 2 * nu), 0.0)
        self._response_precision += weight
        self._response_weighted += weight * h.sum(axis=-1) / m
        m = m * np.clip(self._response_weighted / self._response_precision, 0.2, 3.0)
        # The centre of least variance: 1/2 where noise rules, the mean where chance does.
        mu = np.clip(self.mean, 0.0, 1.0)
        k = m * (1 - p)
        c = (k * mu + nu) / (k + 2 * nu)
        y = (1 - c) * h[..., 0] - c * h[..., 1]
        sd = np.sqrt(self.variance)
        widest = mu + np.clip(0.5 - mu, -sd, sd)
        spread = widest * (1 - widest) + (1 - p) * ((mu - c) ** 2 + np.minimum(self.variance, 0.1))
        information = np.where(shown, m**2 / (m * spread + nu * ((1 - c) ** 2 + c**2)), 0.0)
        if plan.half_life is not None:
            fade = 0.5 ** (N / plan.half_life)
            self._precision *= fade
            self._weighted *= fade
        self._precision += information
        self._weighted += information * (c + y / m)
        self.seen += int(N)
        draws = self._draw_values(self.model.epoch + 1)
        best = draws.argmax(axis=-1)
        chances = np.stack([(best == a).mean(axis=0) for a in range(plan.n_options)], axis=-1)
        return self._publish(self.model.epoch + 1, chances)

    def _segment_counts(self, h: Array, N: float) -> Array:
        """Return how many reports each segment had: the noised sum of now, and the share learned so far."""
        S = self.plan.n_segments
        if S == 1:
            return np.array([N])
        now, variance = h.sum(axis=(1, 2)), 2 * self.plan.n_options * self.plan.noise_variance
        weight = 1 / (variance + N * 0.25 / S)
        self._share_precision += weight * N * N
        self._share_weighted += weight * N * now
        share = np.clip(self._share_weighted / self._share_precision, 0.1 / S, 1.0)
        share /= share.sum()
        chance = N * share * (1 - share) + 1.0
        both = (now / variance + share * N / chance) / (1 / variance + 1 / chance)
        return np.asarray(np.maximum(both, 1.0))

    def _draw_values(self, epoch: int) -> Array:
        """Update the posterior; return joint draws of all values, shape (draws, S, K)."""
        S, K = self.plan.n_segments, self.plan.n_options
        random = np.random.Generator(np.random.Philox(key=[self.plan.seed, epoch << 8 | _STREAM]))
        if S > 1:
            self.mean, self.variance, draws = self._hierarchy.draw(
                random, self._precision, self._weighted
            )
            return draws
        pooled = np.clip(self._weighted.sum() / self._precision.sum(), 0.0, 1.0)
        precision = self._precision + PRIOR**-2
        self.mean = (self._weighted + pooled * PRIOR**-2) / precision
        self.variance = 1.0 / precision
        standard: Array = random.standard_normal((DRAWS, S, K))
        return np.asarray(self.mean + np.sqrt(self.variance) * standard)

    @cached_property
    def _hierarchy(self) -> _Hierarchy:
        return _Hierarchy(self.plan.n_segments, self.plan.n_options)


class _Hierarchy:
    """Values that are a common level, one of the segment, one of the option, and one of the two together.

    All are normal. The last one's standard deviation is averaged over a few values by their likelihood.
    """

    def __init__(self, S: int, K: int) -> None:
        self.shape = S, K
        self.segment, self.option = np.repeat(np.arange(S), K), np.tile(np.arange(K), S)
        same_segment = self.segment[:, None] == self.segment
        same_option = self.option[:, None] == self.option
        common = COMMON**2 + SEGMENT**2 * same_segment + OPTION**2 * same_option
        self.covariances = [common + each**2 * np.eye(S * K) for each in INTERACTIONS]

    def draw(
        self, random: np.random.Generator, precision: Array, weighted: Array
    ) -> tuple[Array, Array, Array]:
        """Return mean, variance and joint draws of the values, given what was observed of each."""
        (S, K), n = self.shape, precision.size
        known = np.maximum(precision.ravel(), 1e-4)
        seen = np.where(precision.ravel() > 0, weighted.ravel() / known, 0.5) - 0.5
        factors, likelihoods = [], []
        for covariance in self.covariances:
            factor = np.linalg.cholesky(covariance + np.diag(1 / known))
            u = solve_triangular(factor, seen, lower=True)
            factors.append(factor)
            likelihoods.append(-0.5 * u @ u - np.log(np.diag(factor)).sum())
        weights = np.exp(np.array(likelihoods) - max(likelihoods))
        weights /= weights.sum()
        mean, parts = np.zeros(n), []
        counts = random.multinomial(DRAWS, weights)
        for sd, covariance, factor, weight, k in zip(
            INTERACTIONS, self.covariances, factors, weights, counts, strict=True
        ):
            # Matheron: a draw of the prior, moved by what its own noisy observation lacks.
            prior = (
                COMMON * random.standard_normal((1, k))
                + SEGMENT * random.standard_normal((S, k))[self.segment]
                + OPTION * random.standard_normal((K, k))[self.option]
                + sd * random.standard_normal((n, k))
            )
            noise = np.sqrt(1 / known)[:, None] * random.standard_normal((n, k))
            lacking = np.column_stack([seen, seen[:, None] - prior - noise])
            moved = covariance @ cho_solve((factor, True), lacking)
            parts.append((prior + moved[:, 1:]).T)
            mean += weight * moved[:, 0]
        draws = 0.5 + np.concatenate(parts).reshape(-1, S, K)
        return 0.5 + mean.reshape(S, K), draws.var(axis=0), draws
