"""Exact audits: every output of a small game with its probability, so that epsilon itself is found.

A game reads random draws. Here a draw is not a number but a cell of [0, 1) that is split only where
the game asks something of it: ``u < 0.3`` has two answers, and both are followed, one after the other.
A path through all questions has the product of its cells' lengths as its probability, a fraction
without rounding; the paths of one output add up. What is done to a draw between two questions is
calculated in fractions too. A game that hands a draw to a function which is not a straight line, such as
the logarithm of Laplace noise, has a continuous output and is refused.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.checks import require
from tacit.privacy.auditing.search import Neighbours

__all__ = ["Distribution", "Draw", "Draws", "ExactResult", "exact_audit", "outputs_of"]

Distribution = Mapping[Hashable, Fraction]
"""The probability of every output."""

_MOST_PATHS = 20_000
_MOST_CELLS = 4096
_OPERATORS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "negative": "neg",
    "absolute": "abs",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
_ROUNDING = 1e-9
"""Of a logarithm and of a stated epsilon, relatively; probabilities have none."""


class Draws:
    """The draws of one path through a game; `answers` are those to its first questions."""

    def __init__(self, answers: list[bool]) -> None:
        self.answers = answers
        self.asked = 0
        self.cells: list[_Cell] = []

    def uniform(self) -> Draw:
        """Return a draw from [0, 1)."""
        cell = _Cell(self)
        self.cells.append(cell)
        return Draw(cell, Fraction(1), Fraction(0))

    def happens(self, probability: float | Fraction) -> bool:
        """Return True with the given probability."""
        return self.uniform() < probability

    @property
    def probability(self) -> Fraction:
        """Of the path so far."""
        return math.prod((cell.high - cell.low for cell in self.cells), start=Fraction(1))

    def answer(self) -> bool:
        """Return the answer to the next question: yes, if it was never asked before."""
        if self.asked == len(self.answers):
            self.answers.append(True)
        self.asked += 1
        return self.answers[self.asked - 1]


class _Cell:
    """Where a draw may still lie."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.low, self.high = Fraction(0), Fraction(1)

    def below(self, place: Fraction) -> bool:
        """Return whether the draw lies below a place, and keep to that answer."""
        if place >= self.high:
            return True
        if place <= self.low:
            return False
        if self.draws.answer():
            self.high = place
            return True
        self.low = place
        return False


class Draw:
    """A straight line in a draw, ``slope * u + offset``, that can be compared and rounded down."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("_cell", "_offset", "_slope")

    def __init__(self, cell: _Cell, slope: Fraction, offset: Fraction) -> None:
        self._cell, self._slope, self._offset = cell, slope, offset

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        # NumPy's scalars ask here what to do with a draw.
        apply = getattr(operator, _OPERATORS.get(ufunc.__name__, ""), None)
        if apply is None:
            raise ContinuousDrawError(f"its {ufunc.__name__} is taken")
        return apply(*(x.item() if hasattr(x, "item") else x for x in inputs))

    def __add__(self, other: Any) -> Draw:
        return Draw(self._cell, self._slope, self._offset + _exact(other))

    def __mul__(self, other: Any) -> Draw:
        factor = _exact(other)
        return Draw(self._cell, self._slope * factor, self._offset * factor)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Draw:
        return self * -1

    def __sub__(self, other: Any) -> Draw:
        return self + -_exact(other)

    def __rsub__(self, other: Any) -> Draw:
        return (-self).__add__(other)

    def __truediv__(self, other: Any) -> Draw:
        return self * (1 / _exact(other))

    def __lt__(self, other: Any) -> bool:
        # A single place has no probability: at most is less than.
        level = _exact(other) - self._offset
        if self._slope == 0:
            return level > 0
        inside = self._cell.below(level / self._slope)
        return inside if self._slope > 0 else not inside

    def __ge__(self, other: Any) -> bool:
        return not self < other

    __le__, __gt__ = __lt__, __ge__

    def __int__(self) -> int:
        # Halving, so that a draw among n takes about log n questions.
        ends = [self._slope * u + self._offset for u in (self._cell.low, self._cell.high)]
        low, high = math.floor(min(ends)), math.ceil(max(ends))
        if high - low > _MOST_CELLS:
            raise ContinuousDrawError(f"a draw is one of {high - low:,} numbers")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self < middle else (middle, high)
        return low

    def __floordiv__(self, other: Any) -> int:
        return int(self / other)

    def __abs__(self) -> Draw:
        return -self if self < 0 else self

    def __float__(self) -> float:
        raise ContinuousDrawError("a draw is used as a number of its own")

    def __rshift__(self, other: Any) -> Any:
        raise ContinuousDrawError("its bits are looked at")

    __and__ = __rand__ = __lshift__ = __rtruediv__ = __pow__ = __rshift__


class ContinuousDrawError(ValueError):
    """A game makes more of a draw than answers to questions can tell."""

    def __init__(self, words: str) -> None:
        super().__init__(
            f"exact audit: expected draws of which a few cells matter, but {words}; audit by sampling"
        )


def _exact(value: Any) -> Fraction:
    if isinstance(value, Draw):
        raise ContinuousDrawError("two draws are combined")
    return Fraction(value.item() if hasattr(value, "item") else value)


def outputs_of(
    play: Callable[[Draws], Hashable], *, limit: int = _MOST_PATHS
) -> dict[Hashable, Fraction]:
    """Return every output of a game with its exact probability.

    Parameters
    ----------
    play : callable
        ``play(draws)`` plays once, with draws from `draws`, and returns what is seen.
    limit : int
        More paths than this are refused.

    Examples
    --------
    >>> sorted(outputs_of(lambda draws: int(draws.uniform() * 3)).items())
    [(0, Fraction(1, 3)), (1, Fraction(1, 3)), (2, Fraction(1, 3))]
    """
    answers: list[bool] = []
    found: dict[Hashable, Fraction] = {}
    for _ in range(limit):
        draws = Draws(answers)
        output = play(draws)
        found[output] = found.get(output, Fraction(0)) + draws.probability
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
    worst: Neighbours
    """The pair that needs `found`."""
    pairs: int
    outputs: int
    """How many outputs the game has, at most, on one input."""
    distributions: Sequence[tuple[Distribution, Distribution]]
    """Of the outputs on the two inputs of every pair."""
    silent: bool = False
    """Whether nothing was released on any path, so that nothing was tried."""

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
        """Return everything but the distributions as JSON; an infinite epsilon is null."""
        found = self.found if math.isfinite(self.found) else None
        names = ("verdict", "epsilon", "delta", "excess", "pairs", "outputs")
        record = {name: getattr(self, name) for name in names}
        return json.dumps(record | {"found": found, "pair": self.worst.words})

    def delta_at(self, epsilon: float) -> float:
        """Return the least delta that holds at another epsilon, for every pair."""
        return max(_delta(left, right, epsilon) for left, right in self.distributions)

    def sentence(self) -> str:
        """Return the finding in words."""
        claim = f"epsilon={self.epsilon:g}" + (f", delta={self.delta:g}" if self.delta else "")
        if self.verdict == "nothing was released":
            return f"Nothing was released, so that the claim {claim} was not put to the test."
        at = f" at delta={self.delta:g}" if self.delta else ""
        pairs = "its one pair" if self.pairs == 1 else f"all {self.pairs:,} pairs"
        return (
            f"The claim {claim} is {self.verdict}: enumerated, not sampled, epsilon is exactly "
            f"{self.found:.9g}{at} over {pairs} of neighbouring inputs and up to "
            f"{self.outputs:,} outputs. Worst pair: {self.worst.words or 'unnamed'}."
        )


def exact_audit(
    play: Callable[[Any, Draws], Hashable],
    pairs: Iterable[Neighbours],
    *,
    epsilon: float,
    delta: float = 0.0,
) -> ExactResult:
    """Return the epsilon of a game that is small enough to be enumerated.

    Parameters
    ----------
    play : callable
        ``play(input, draws)`` plays once and returns what is seen.
    pairs : iterable of Neighbours
        All the neighbouring inputs that count.
    epsilon, delta : float
        The claim.

    Examples
    --------
    >>> def told(bit, draws):
    ...     return bit if draws.happens(0.75) else 1 - bit
    >>> found = exact_audit(told, [Neighbours(0, 1, "0 against 1")], epsilon=1.0)
    >>> found.verdict, round(found.found, 9) == round(math.log(3), 9)
    ('refuted', True)
    >>> round(found.delta_at(1.0), 6)
    0.07043
    """
    known: dict[int, Distribution] = {}
    held = list(pairs)
    require("exact_audit", "pairs", "not empty", bool(held), 0)
    for side in (side for pair in held for side in (pair.left, pair.right)):
        if id(side) not in known:
            known[id(side)] = outputs_of(lambda draws, side=side: play(side, draws))  # type: ignore[misc]
    both = [(known[id(pair.left)], known[id(pair.right)]) for pair in held]
    needed = [_epsilon(left, right, delta) for left, right in both]
    found = max(needed)
    return ExactResult(
        epsilon=epsilon,
        delta=delta,
        found=found,
        worst=held[needed.index(found)],
        pairs=len(held),
        outputs=max(map(len, known.values())),
        distributions=both,
    )


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
