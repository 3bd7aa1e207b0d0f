"""What may be done to hide rewards: one value for each way, made of what means something for it.

`PerReward` privatises each reward by itself, before anybody else sees it. `NoisySums` adds noise to
growing sums of contexts times rewards, kept by their users or by a server. `Published` is what the
paper does, which is less than it claims. Contexts are public, so a reward moves a sum by at most the
width of its range times the length of its context.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.noisy_sums import PARAMETER, USER, Streams
from tacit.contextual.questions import Bins
from tacit.core.constraints import Constraint, Count, Positive, check, one_of, require
from tacit.privacy import (
    BinaryTree,
    Claim,
    Guarantee,
    KAryResponse,
    L2CalibratedLaplace,
    L2CalibratedLaplaceRelease,
    Laplace,
    Mechanism,
    Piecewise,
    RandomizedResponse,
    Release,
    SquareRootToeplitz,
    compose,
    least_private,
)
from tacit.privacy.mechanisms import Channel as Report
from tacit.privacy.mechanisms import Epsilon, open_channel
from tacit.privacy.mechanisms.continual_sums import LAPLACE, Stream

_LOCAL, _CENTRAL = "local", "central"
_SCALARS = ("laplace", "bit", "piecewise")
_OPEN = ("sending", "others", "contexts", "graph")
"""What the guarantees of this setting leave open."""
Trust = Annotated[str, one_of(_LOCAL, _CENTRAL)]
SmallDelta = Annotated[
    float, Constraint("in [0, 1)", lambda v: 0 <= v < 1, {"minimum": 0, "exclusiveMaximum": 1})
]


class Sizes(NamedTuple):
    """What noise is calibrated to."""

    n_users: int
    dimension: int
    spread_over: int
    """How many coordinates of the paper's b one reward may change."""
    low: float
    high: float


class Channel(NamedTuple):
    """What the kernels need of it."""

    low: float
    high: float
    """Rewards are clipped to [low, high]."""
    report: Report
    """Through which a reward is told, openly or by a mechanism."""
    centred: int = 0
    """1 if rewards have a level of their own, which is learned."""
    streams: Streams | None = None
    """How sums are released, where they get noise."""
    bins: Bins | None = None
    """How residuals are told, where a device is asked about them."""


class Privacy(ABC):
    """How rewards are hidden; subclasses are keyword-only frozen dataclasses."""

    kind: ClassVar[str]
    """What study files and the command line call it."""
    epsilon: float

    @abstractmethod
    def mechanisms(self, sizes: Sizes) -> tuple[Mechanism, ...]:
        """Return the mechanisms that add the noise."""

    @abstractmethod
    def guarantee(self, sizes: Sizes) -> Guarantee:
        """Return what one reward is protected from over a run, whatever its length."""

    @abstractmethod
    def channel(self, sizes: Sizes) -> Channel:
        """Return what the kernels need."""

    def scales(self, sizes: Sizes, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what sets the noise of each stream, for columns of B of these lengths.

        Shape (streams, 4): its scale; on a secure tape step, noise and reach, else NaN.
        """
        return np.empty((0, 4))

    def reward_variance(self, sizes: Sizes) -> float:
        """Return the largest variance that privatising a reward by itself adds to it."""
        return 0.0

    def reach(self, sizes: Sizes) -> float:
        """Return R: a report scatters around its mean no more than a normal of this deviation."""
        return 1.0


@dataclass(frozen=True, kw_only=True)
class PerReward(Privacy):
    """Each reward is privatised by itself: local, pure, for any number of rounds.

    Parameters
    ----------
    epsilon : float
        Privacy of one reward.
    mechanism : {"auto", "laplace", "bit", "piecewise"}
        Laplace noise, one bit by randomized response, or the piecewise mechanism; "auto" is the
        one whose largest variance is smallest.
    centred : bool, default False
        Whether rewards have a level of their own, c of y = c + x' theta, the same for all users: it
        is learned from all reports, beside what contexts say, and contexts need not explain it.

    Examples
    --------
    >>> PerReward(epsilon=0.5).chosen, PerReward(epsilon=2.0).chosen
    ('bit', 'piecewise')
    >>> PerReward(epsilon=2.0, mechanism="gaussian")
    Traceback (most recent call last):
    ValueError: PerReward: expected mechanism one of auto, laplace, bit, piecewise, got 'gaussian'
    """

    kind: ClassVar[str] = "per-reward"

    epsilon: Epsilon
    mechanism: Annotated[str, one_of("auto", "laplace", "bit", "piecewise")] = "auto"
    centred: bool = False

    def __post_init__(self) -> None:
        check(self)

    @property
    def chosen(self) -> str:
        """The mechanism that "auto" stands for."""
        if self.mechanism != "auto":
            return self.mechanism
        return min(_SCALARS, key=lambda name: _scalar(name, self.epsilon, 1.0).channel_variance)

    @property
    def variance(self) -> float:
        """The largest variance, over rewards in [0, 1], of a privatised reward.

        Examples
        --------
        >>> names = ("laplace", "bit", "piecewise")
        >>> [round(PerReward(epsilon=2.0, mechanism=name).variance, 3) for name in names]
        [0.5, 0.431, 0.307]
        """
        return _scalar(self.chosen, self.epsilon, 1.0).channel_variance

    def mechanisms(self, sizes: Sizes) -> tuple[Mechanism, ...]:
        """Return the chosen one."""
        return (_scalar(self.chosen, self.epsilon, sizes.high - sizes.low),)

    def reward_variance(self, sizes: Sizes) -> float:
        """Return `variance` in units of the range of rewards."""
        return (sizes.high - sizes.low) ** 2 * self.variance

    def reach(self, sizes: Sizes) -> float:
        """Return half the range of reports, by Hoeffding's lemma; infinite for Laplace noise."""
        (mechanism,) = self.mechanisms(sizes)
        return (sizes.high - sizes.low) * mechanism.half_range

    def guarantee(self, sizes: Sizes) -> Guarantee:
        """Return the guarantee of the mechanism: one use a reward."""
        (mechanism,) = self.mechanisms(sizes)
        return compose(
            [(mechanism.release, 1)],
            unit="reward",
            trust=_LOCAL,
            span="run",
            note="Each reward is privatised by itself, before the server sees it.",
            not_protected=_OPEN,
        )

    def channel(self, sizes: Sizes) -> Channel:
        """Return what the kernels need."""
        (mechanism,) = self.mechanisms(sizes)
        report = mechanism.channel(sizes.low, sizes.high)
        return Channel(sizes.low, sizes.high, report, centred=int(self.centred))


def _scalar(name: str, epsilon: float, span: float) -> Mechanism:
    if name == "laplace":
        return Laplace(epsilon=epsilon, sensitivity=span)
    if name == "bit":
        return RandomizedResponse(epsilon=epsilon)
    return Piecewise(epsilon=epsilon)


@dataclass(frozen=True, kw_only=True)
class Residual(Privacy):
    """Each report says where the reward lies relative to the prediction, by k-ary response.

    The prediction is public, made of earlier reports, so that noise follows the residual and not the
    range of rewards. A device is told finite cuts around the prediction and answers with a bin.
    For rewards whose noise is symmetric about their mean only: what is found is the median.

    Parameters
    ----------
    epsilon : float
        Privacy of one reward, at any horizon, whatever cuts a server sends.
    sigma : float, optional
        Standard deviation of a reward around its mean. Unless given it is learned: it begins at a
        tenth of the range, and every 20th question asks, instead of the bin, whether the reward is
        within one standard deviation of the prediction.

    Examples
    --------
    >>> [Residual(epsilon=e).bins for e in (1.0, 2.5, 5.0)]
    [2, 3, 7]
    """

    kind: ClassVar[str] = "residual"

    epsilon: Epsilon
    sigma: Positive | None = None

    def __post_init__(self) -> None:
        check(self)

    @property
    def bins(self) -> int:
        """How many equally likely bins keep most of the information."""
        return max(range(2, _MOST_BINS), key=lambda k: _gains(self._keep(k), k)[1])

    def _keep(self, bins: int) -> float:
        return KAryResponse(epsilon=self.epsilon, options=bins).keep

    def mechanisms(self, sizes: Sizes) -> tuple[Mechanism, ...]:
        """Return the response that tells the bin, and the one that tells what is near."""
        bins = KAryResponse(epsilon=self.epsilon, options=self.bins)
        near = KAryResponse(epsilon=self.epsilon, options=2)
        return (bins,) if self.sigma is not None or bins == near else (bins, near)

    def guarantee(self, sizes: Sizes) -> Guarantee:
        """Return what the less private of the responses costs: a reward is asked about once."""
        costly = least_private([each.release for each in self.mechanisms(sizes)])
        return compose(
            [(costly, 1)],
            unit="reward",
            trust=_LOCAL,
            span="run",
            note="Each reward is told by one symbol, before the server sees it, whatever it asks.",
            not_protected=_OPEN,
        )

    def channel(self, sizes: Sizes) -> Channel:
        """Return what the kernels need."""
        k = self.bins
        keep = self._keep(k)
        gains, information = _gains(keep, k)
        sigma = (sizes.high - sizes.low) / 10 if self.sigma is None else self.sigma
        bins = Bins(
            cuts=_cuts(k),
            gains=gains,
            keep=keep,
            information=information,
            near_keep=self._keep(2),
            learns_sigma=int(self.sigma is None),
            log_sigma=math.log(sigma),
        )
        return Channel(sizes.low, sizes.high, open_channel(), bins=bins)


_MOST_BINS = 33


def _cuts(bins: int) -> NDArray[np.float64]:
    """Return where equally likely bins of a standard normal end."""
    return np.array([NormalDist().inv_cdf(i / bins) for i in range(1, bins)])


def _gains(keep: float, bins: int) -> tuple[NDArray[np.float64], float]:
    """Return what each answer says of a standard normal on average, and the mean of its square."""
    density = np.array([0.0, *(NormalDist().pdf(cut) for cut in _cuts(bins)), 0.0])
    means = bins * (density[:-1] - density[1:])
    gains = (keep - (1 - keep) / (bins - 1)) * means
    return gains, float(np.mean(gains**2))


@dataclass(frozen=True, kw_only=True)
class _Streams(Privacy):
    """Noise on sums that grow: one stream for each user, or one for all of them."""

    epsilon: Positive
    trust: Trust = _LOCAL
    horizon: Count | None = None
    visits: Count | None = None

    def __post_init__(self) -> None:
        check(self)
        words = "or visits given" if self.own_streams else "given"
        require(self, "horizon", f"{words} for noise on sums", self.steps > 0, self.horizon)

    @property
    @abstractmethod
    def on_b(self) -> bool:
        """Whether noise is added to the paper's b, rather than to each user's sum."""

    @property
    def own_streams(self) -> bool:
        """Whether every user has an own stream, so that a reward touches no other."""
        return self.trust == _LOCAL or not self.on_b

    @property
    def steps(self) -> int:
        """How many rewards a stream is calibrated for."""
        return int((self.own_streams and self.visits) or self.horizon or 0)

    @abstractmethod
    def numbers(self, sizes: Sizes, length: float) -> tuple[float, ...]:
        """Return what sets a stream's noise, for contexts spread to at most this length."""

    def scales(self, sizes: Sizes, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a row for each user, or one for the longest of all."""
        if not self.on_b:
            lengths = np.ones(sizes.n_users)
        elif not self.own_streams:
            lengths = lengths.max(keepdims=True)
        found = {length: self.numbers(sizes, length) for length in set(lengths.tolist())}
        return np.array([found[length] for length in lengths.tolist()])


@dataclass(frozen=True, kw_only=True)
class NoisySums(_Streams):
    """Noise on sums of contexts times rewards: of a ball (pure), or Gaussian.

    Parameters
    ----------
    epsilon : float
        Privacy of one reward over the whole run.
    delta : float, default 0
        0 is noise of a density that falls with the length, in the L2 ball; else noise is Gaussian.
    trust : {"local", "central"}
        Whether a server may see true rewards. Users can keep their own sums as well as a server.
    statistic : {"sums", "b"}
        Which sums get the noise: each user's own, d numbers each; or the paper's b, dN numbers that
        only a trusted server can keep. Gaussian noise on b is smaller where users are much alike.
    continual : {"tree", "toeplitz"}
        How noise is correlated over time; the Toeplitz factorisation is for Gaussian noise.
    horizon, visits : int, optional
        Rounds in all, and rounds of one user, that noise is calibrated for; rewards beyond are not
        taken in. Where `visits` is not given a user may come in every round.

    Examples
    --------
    >>> NoisySums(epsilon=2.0, delta=1e-6, visits=100).steps
    100
    >>> NoisySums(epsilon=2.0, statistic="b", horizon=100)
    Traceback (most recent call last):
    ValueError: NoisySums: expected statistic 'sums' unless trust is 'central', got 'b'
    """

    kind: ClassVar[str] = "noisy-sums"

    epsilon: Epsilon
    delta: SmallDelta = 0.0
    statistic: Annotated[str, one_of("sums", "b")] = "sums"
    continual: Annotated[str, one_of("tree", "toeplitz")] = "tree"

    def __post_init__(self) -> None:
        check(self)
        kept = self.statistic == "sums" or self.trust == _CENTRAL
        require(self, "statistic", "'sums' unless trust is 'central'", kept, self.statistic)
        known = self.continual == "tree" or self.delta > 0
        require(self, "continual", "'tree' unless delta > 0", known, self.continual)
        super().__post_init__()

    @property
    def on_b(self) -> bool:
        """Whether noise is added to the paper's b."""
        return self.statistic == "b"

    def sums(self, sizes: Sizes, length: float = 1.0) -> BinaryTree | SquareRootToeplitz:
        """Return how one stream is released."""
        sensitivity = (sizes.high - sizes.low) * length
        dimension = sizes.dimension * (sizes.n_users if self.on_b else 1)
        reach = max(abs(sizes.low), abs(sizes.high)) * length
        epsilon, delta = float(self.epsilon), float(self.delta)
        return _sums(self.continual, self.steps, epsilon, delta, sensitivity, dimension, reach)

    def numbers(self, sizes: Sizes, length: float) -> tuple[float, ...]:
        """Return scale and grid of a node, or of a step."""
        sums = self.sums(sizes, length)
        return (sums.scale, *(sums.grid if sums.secure else (math.nan,) * 3))

    def mechanisms(self, sizes: Sizes) -> tuple[Mechanism, ...]:
        """Return how one stream is released."""
        return (self.sums(sizes),)

    def guarantee(self, sizes: Sizes) -> Guarantee:
        """Return the guarantee of one stream: a reward enters no other."""
        rounds = "of a user" if self.own_streams else "in all"
        sums = self.sums(sizes)
        exact = ""
        if sums.secure:
            power = math.frexp(sums.grid.step)[1] - 1
            exact = f". On a secure tape products are rounded to multiples of 2^{power}"
        return compose(
            sums.releases,
            delta=self.delta,
            unit="reward",
            trust=self.trust,
            span="run",
            note=f"For up to {self.steps:,} rounds {rounds}; later rewards are not taken in{exact}",
            pooled=True,
            not_protected=_OPEN,
        )

    def channel(self, sizes: Sizes) -> Channel:
        """Return what the kernels need."""
        sums = self.sums(sizes)
        space = PARAMETER if self.on_b else USER
        streams = Streams(sums.stream, sums.depth, space, int(self.own_streams))
        return Channel(sizes.low, sizes.high, open_channel(), streams=streams)


@lru_cache(maxsize=64)
def _sums(
    continual: str,
    steps: int,
    epsilon: float,
    delta: float,
    sensitivity: float,
    dimension: int,
    reach: float,
) -> BinaryTree | SquareRootToeplitz:
    if continual == "toeplitz":
        return SquareRootToeplitz(
            horizon=steps,
            epsilon=epsilon,
            delta=delta,
            sensitivity=sensitivity,
            dimension=dimension,
            reach=reach,
        )
    return BinaryTree(
        horizon=steps,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        noise="gaussian" if delta > 0 else "ball",
        norm="l2",
        dimension=dimension,
        reach=reach,
        online=False,
    )


@dataclass(frozen=True, kw_only=True)
class Published(_Streams):
    """What the paper does: Laplace noise in R^(dN), calibrated by an L2 sensitivity.

    It protects less than `epsilon` says, by up to the square root of dN; `guarantee` says how much.

    Parameters
    ----------
    epsilon : float
        What the paper claims: for one reward if `trust` is central, else for a user's whole history.
    trust : {"local", "central"}
        Algorithm 2, in which users keep their sums, or Algorithm 1, in which a server does.
    clip : bool, default True
        False lets rewards pass as they are, as the paper's experiments do: nothing is protected.
    horizon, visits : int, optional
        As in `NoisySums`.

    Examples
    --------
    >>> Published(epsilon=2.0, trust="central", visits=10)
    Traceback (most recent call last):
    ValueError: Published: expected horizon given for noise on sums, got None
    """

    kind: ClassVar[str] = "published"

    clip: bool = True

    @property
    def on_b(self) -> bool:
        """Yes: the noise has dN coordinates."""
        return True

    def numbers(self, sizes: Sizes, length: float) -> tuple[float, ...]:
        """Return the scale of lines 8: Delta log T / epsilon, for rewards that differ by at most 1."""
        return length * math.log(max(self.steps, 2)) / self.epsilon, *(math.nan,) * 3

    def _release(self, sizes: Sizes) -> Release:
        return L2CalibratedLaplaceRelease(
            sensitivity=sizes.high - sizes.low,
            scale=self.numbers(sizes, 1.0)[0],
            dimension=sizes.spread_over,
            nodes=self.steps.bit_length(),
        )

    def mechanisms(self, sizes: Sizes) -> tuple[Mechanism, ...]:
        """Return what is added to a node."""
        width, scale = sizes.high - sizes.low, self.numbers(sizes, 1.0)[0]
        d = sizes.spread_over
        return (L2CalibratedLaplace(epsilon=width / scale, sensitivity=width, dimension=d),)

    def guarantee(self, sizes: Sizes) -> Guarantee:
        """Return what holds, beside what the paper claims."""
        local = self.trust == _LOCAL
        claim = Claim(
            epsilon=self.epsilon,
            unit="user" if local else "reward",
            trust=self.trust,
            span="run",
            holds=False,
            why="independent Laplace noise needs the L1 sensitivity of b, and the paper uses L2"
            + ("; and one reward is protected, not a user's whole sequence" if local else ""),
        )
        if not self.clip:
            return Guarantee.none(
                "rewards are not clipped, so that one of them may change b by any amount",
                trust=self.trust,
                claim=claim,
            )
        return compose(
            [(self._release(sizes), 1)],
            unit="reward",
            trust=self.trust,
            span="run",
            claim=claim,
            note="In units of the published sensitivity, for the worst relational matrix",
            pooled=True,
            not_protected=_OPEN,
        )

    def channel(self, sizes: Sizes) -> Channel:
        """Return what the kernels need."""
        stream = Stream(LAPLACE, 0, self.steps)
        depth, own = 2 * self.steps.bit_length(), int(self.own_streams)
        low, high = (sizes.low, sizes.high) if self.clip else (-math.inf, math.inf)
        streams = Streams(stream, depth, PARAMETER, own)
        return Channel(low, high, open_channel(), streams=streams)
