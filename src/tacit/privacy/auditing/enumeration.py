"""Exact audits: every output of a small game with its probability, so that epsilon itself is found.

A game is played once for each path through the questions that it asks of its draws (`draws.py`); the
paths of one output add up, in fractions without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.core.constraints import require
from tacit.core.json_codec import dumps
from tacit.privacy.auditing.bounds import claim_words, untested_words
from tacit.privacy.auditing.enumerated_draws import ContinuousDrawError, Draws, Noises
from tacit.privacy.mechanisms.base import NeighbouringPair

Distribution = Mapping[Hashable, Fraction]
"""The probability of every output."""

_MOST_PATHS = 20_000
_ROUNDING = 1e-9
"""Of a logarithm and of a stated epsilon, relatively; probabilities have none."""


def enumerate_outputs(
    play: Callable[[Draws], Hashable],
    *,
    limit: int = _MOST_PATHS,
    noises: dict[Hashable, Noises] | None = None,
) -> dict[Hashable, Fraction]:
    """Return every output of a game with its exact probability.

    Parameters
    ----------
    play : callable
        ``play(draws)`` plays once, with draws from `draws`, and returns what is seen.
    limit : int
        More paths than this are refused.
    noises : dict, optional
        Filled with the Laplace noises behind every output; probabilities then leave them out.

    Examples
    --------
    >>> sorted(enumerate_outputs(lambda draws: int(draws.uniform() * 3)).items())
    [(0, Fraction(1, 3)), (1, Fraction(1, 3)), (2, Fraction(1, 3))]
    """
    answers: list[bool] = []
    found: dict[Hashable, Fraction] = {}
    for _ in range(limit):
        draws = Draws(answers)
        output = play(draws)
        found[output] = found.get(output, Fraction(0)) + draws.probability
        if noises is None and draws.noises:
            raise ContinuousDrawError("its noise has infinitely many values")
        if noises is not None and noises.setdefault(output, (*draws.noises,)) != (*draws.noises,):
            raise ContinuousDrawError("one output has Laplace noise around several centres")
        while answers and not answers[-1]:
            answers.pop()
        if not answers:
            return found
        answers[-1] = False
    raise ValueError(
        f"exact audit: expected at most {limit:,} paths, got more; play fewer rounds, or audit by "
        "sampling"
    )


@dataclass(frozen=True, kw_only=True)
class ExactResult:
    """The epsilon of a small game, over the pairs of inputs that were enumerated."""

    epsilon: float
    """The claim."""
    delta: float
    found: float
    """The least epsilon that holds at the claim's delta, for every pair."""
    worst: NeighbouringPair
    """The pair that needs `found`."""
    pairs: int
    outputs: int
    """How many outputs the game has, at most, on one input."""
    distributions: Sequence[tuple[Distribution, Distribution]]
    """Of the outputs on the two inputs of every pair."""
    most: float = math.nan
    """No output needs more: `found`, but where Laplace noise was tried at a few values."""
    silent: bool = False
    """Whether nothing was released on any path, so that nothing was tried."""

    @property
    def noisy(self) -> bool:
        """Whether Laplace noise was tried at a few values, and the rest is bounded."""
        return not self.distributions

    @property
    def excess(self) -> float:
        """The least delta that holds at the claim's epsilon, for every pair."""
        return self.delta_at(self.epsilon)

    @property
    def refuted(self) -> bool:
        """Whether the claim is false."""
        return self.found > self.epsilon * (1 + _ROUNDING) + 1e-12

    @property
    def verdict(self) -> str:
        """``"refuted"``, ``"true of this game"`` (proved, of these inputs) or ``"nothing was released"``."""
        if self.refuted:
            return "refuted"
        return "nothing was released" if self.silent else "true of this game"

    def to_json(self) -> str:
        """Return everything but the distributions as JSON; what is infinite or not known is null."""
        names = ("verdict", "epsilon", "delta", "excess", "found", "most", "pairs", "outputs")
        record = {name: getattr(self, name) for name in names}
        return dumps(record | {"pair": self.worst.words})

    def delta_at(self, epsilon: float) -> float:
        """Return the least delta that holds at another epsilon, for every pair.

        With Laplace noise it is not known below `most`: not-a-number.
        """
        if self.noisy:
            return 0.0 if epsilon >= self.most else math.nan
        return max(_delta(left, right, epsilon) for left, right in self.distributions)

    def sentence(self) -> str:
        """Return the finding in words."""
        if self.verdict == "nothing was released":
            return untested_words(self.epsilon, self.delta)
        at = f" at delta={self.delta:g}" if self.delta else ""
        pairs = "its one pair" if self.pairs == 1 else f"all {self.pairs:,} pairs"
        exactly = f"exactly {self.found:.9g}"
        if self.most > self.found * (1 + _ROUNDING):
            exactly = f"at least {self.found:.9g} and at most {self.most:.9g}"
        noise = (
            " Laplace noise was tried at a few values: epsilon is attained there, and the distances "
            "of its centres bound what any other tells."
        )
        return (
            f"{claim_words(self.epsilon, self.delta)} is {self.verdict}: enumerated, not sampled, "
            f"epsilon is {exactly}{at} over {pairs} of neighbouring inputs and up to "
            f"{self.outputs:,} outputs. Worst pair: {self.worst.words or 'unnamed'}."
            f"{noise if self.noisy else ''}"
        )


def exact_audit(
    play: Callable[[Any, Draws], Hashable],
    pairs: Iterable[NeighbouringPair],
    *,
    epsilon: float,
    delta: float = 0.0,
) -> ExactResult:
    """Return the epsilon of a game that is small enough to be enumerated.

    Parameters
    ----------
    play : callable
        ``play(input, draws)`` plays once and returns what is seen.
    pairs : iterable of NeighbouringPair
        All the neighbouring inputs that count.
    epsilon, delta : float
        The claim.

    Examples
    --------
    >>> def told(bit, draws):
    ...     return bit if draws.happens(0.75) else 1 - bit
    >>> found = exact_audit(told, [NeighbouringPair(0, 1, "0 against 1")], epsilon=1.0)
    >>> found.verdict, round(found.found, 9) == round(math.log(3), 9)
    ('refuted', True)
    >>> round(found.delta_at(1.0), 6)
    0.07043
    """
    known: dict[int, Distribution] = {}
    behind: dict[int, dict[Hashable, Noises]] = {}
    held = list(pairs)
    require("exact_audit", "pairs", "not empty", bool(held), 0)
    for side in (side for pair in held for side in (pair.left, pair.right)):
        if id(side) not in known:
            behind[id(side)] = {}
            known[id(side)] = enumerate_outputs(
                lambda draws, side=side: play(side, draws),  # type: ignore[misc]
                noises=behind[id(side)],
            )
    both = [(known[id(pair.left)], known[id(pair.right)]) for pair in held]
    noisy = any(any(each.values()) for each in behind.values())
    if noisy:
        require("exact_audit", "delta", "0 where there is Laplace noise", delta == 0, delta)
        noises = [(behind[id(pair.left)], behind[id(pair.right)]) for pair in held]
        ends = [_noisy_epsilon(*of, *by) for of, by in zip(both, noises, strict=True)]
        needed, most = [end[0] for end in ends], max(end[1] for end in ends)
    else:
        needed = [_epsilon(left, right, delta) for left, right in both]
        most = max(needed)
    found = max(needed)
    return ExactResult(
        epsilon=epsilon,
        delta=delta,
        found=found,
        most=most,
        worst=held[needed.index(found)],
        pairs=len(held),
        outputs=max(map(len, known.values())),
        distributions=() if noisy else both,
    )


def _noisy_epsilon(
    left: Distribution,
    right: Distribution,
    left_noises: Mapping[Hashable, Noises],
    right_noises: Mapping[Hashable, Noises],
) -> tuple[float, float]:
    """Return the largest loss of any output, and what no value of the noise exceeds."""
    found = most = 0.0
    if left.keys() != right.keys():
        return math.inf, math.inf
    for output, p in left.items():
        coins, here = _log_ratio(p, right[output]), Fraction(0)
        bound = Fraction(0)
        for (c, s, x), (d, r, y) in zip(left_noises[output], right_noises[output], strict=True):
            if s != r:  # the wider one is infinitely likelier far out
                return math.inf, math.inf
            here += Fraction(abs(y) - abs(x), s)
            bound += abs(c - d) / s
        found = max(found, abs(coins + float(here)))
        most = max(most, abs(coins) + float(bound))
    return found, most


def _losses(left: Distribution, right: Distribution) -> list[tuple[float, float]]:
    """Return the log ratio and the probability under `left` of every output."""
    return [
        (_log_ratio(p, q) if (q := right.get(output)) else math.inf, float(p))
        for output, p in left.items()
    ]


def _log_ratio(p: Fraction, q: Fraction) -> float:
    ratio = p / q
    if abs(ratio - 1) < Fraction(1, 4):
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _delta(left: Distribution, right: Distribution, epsilon: float) -> float:
    ways = (_losses(left, right), _losses(right, left))
    return max(
        math.fsum(-p * math.expm1(epsilon - loss) for loss, p in way if loss > epsilon)
        for way in ways
    )


def _epsilon(left: Distribution, right: Distribution, delta: float) -> float:
    """Return the least epsilon at which `delta` is enough."""
    largest = max(loss for way in ((left, right), (right, left)) for loss, _ in _losses(*way))
    if delta == 0.0 or largest <= 0.0:
        return max(0.0, largest)
    if _delta(left, right, 0.0) <= delta:
        return 0.0
    low, high = 0.0, min(largest, 800.0)
    if _delta(left, right, high) > delta:
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(left, right, middle) <= delta else (middle, high)
    return high
