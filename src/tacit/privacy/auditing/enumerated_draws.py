"""The draws of a game that is enumerated: cells of [0, 1), and Laplace noise on a grid.

A draw is not a number but a cell of [0, 1) that is split only where the game asks something of it:
``u < 0.3`` has two answers, and both are followed, one after the other. A path through all questions has the
product of its cells' lengths as its probability, a fraction without rounding. What is done to a draw
between two questions is calculated in fractions too. A game that hands a draw to a function which is not a
straight line, such as the logarithm of Laplace noise, has a continuous output and is refused.

Discrete Laplace noise on a grid has too many values to follow, and need not be followed through all of
them. A released y that is a centre c plus noise of scale s tells c from c' by
(abs(y - c') - abs(y - c)) / s, without rounding, and by abs(c - c') / s at most, which every y beyond both
centres attains. So a released number is tried at a few values: the largest loss among these is attained,
and the distances of the centres bound what any other value could tell.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

Noises = tuple[tuple[Fraction, int, int], ...]
"""Of every released number with Laplace noise: the centre and the scale in steps, and the noise itself."""

_MOST_CELLS = 4096
_TRIED = (0, Fraction(1, 2), 1, 2)
_SCALES, _FAR = 8, 1024
_NEVER = 2**20
_NOUGHT, _ONE = Fraction(0), Fraction(1)
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


class Draws:
    """The draws of one path through a game; `answers` are those to its first questions."""

    def __init__(self, answers: list[bool]) -> None:
        self.answers = answers
        self.asked = 0
        self.cells: list[_Cell] = []
        self.noises: list[tuple[Fraction, int, int]] = []

    def uniform(self) -> Draw:
        """Return a draw from [0, 1)."""
        cell = _Cell(self)
        self.cells.append(cell)
        return Draw(cell, Fraction(1), Fraction(0))

    def happens(self, probability: float | Fraction) -> bool:
        """Return True with the given probability."""
        return self.uniform() < probability

    def noise(self, scale: int) -> Noise:
        """Return discrete Laplace noise of a whole scale."""
        return Noise(self, scale)

    def option(self, n: int) -> int:
        """Return one of 0 to n - 1, each on a path of its own; no probability is involved."""
        return next((i for i in range(n - 1) if self.answer()), n - 1)

    @property
    def probability(self) -> Fraction:
        """Of the path so far, its noises aside."""
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


class Noise:
    """A straight line in discrete Laplace noise X, ``step * X + centre``, until it is released."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("_centre", "_draws", "_high", "_low", "_scale", "_step")

    def __init__(
        self, draws: Draws, scale: int, step: Fraction = _ONE, centre: Fraction = _NOUGHT
    ) -> None:
        self._draws, self._scale, self._step, self._centre = draws, scale, step, centre
        self._low: Fraction | float = -math.inf
        self._high: Fraction | float = math.inf

    __array_ufunc__ = Draw.__array_ufunc__

    def __add__(self, other: Any) -> Noise:
        return Noise(self._draws, self._scale, self._step, self._centre + _exact(other))

    def __mul__(self, other: Any) -> Noise:
        factor = _exact(other)
        return Noise(self._draws, self._scale, self._step * factor, self._centre * factor)

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: Any) -> bool:
        return self._beyond(_exact(other), -1)

    def __gt__(self, other: Any) -> bool:
        return self._beyond(_exact(other), 1)

    def _beyond(self, level: Fraction, side: int) -> bool:
        """Return whether a bound is passed: all beyond is one output, a factor likelier than its edge."""
        steps = side * (level - self._centre) / self._step
        if steps > _NEVER * self._scale:  # a bound against overflow is never met
            return False
        if steps < 0 or not math.isinf(self._high if side > 0 else self._low):
            raise ContinuousDrawError("Laplace noise is compared before it is released")
        if self._draws.answer():
            self._note(side * (math.floor(steps) + 1))
            return True
        if side > 0:
            self._high = level
        else:
            self._low = level
        return False

    def release(self) -> float:
        """Return a value: far out on either side, or a number in between that is the same for any centre.

        But for the centre's place between two steps, which a release must not tell.
        """
        between = self._centre / self._step % 1
        far = math.ceil(_SCALES * self._scale + _FAR / self._step)
        tried = [-far, *(math.floor(each / self._step) for each in _TRIED), far]
        values = [(each + between) * self._step for each in tried]
        values = [each for each in values if self._low < each < self._high]
        value = values[self._draws.option(len(values))]
        self._note(int((value - self._centre) / self._step))
        return float(value)

    def _note(self, steps: int) -> None:
        self._draws.noises.append((self._centre / self._step, self._scale, steps))

    def __float__(self) -> float:
        raise ContinuousDrawError("Laplace noise is stored before it is released")

    __int__ = __index__ = __float__


class ContinuousDrawError(ValueError):
    """A game makes more of a draw than answers to questions can tell."""

    def __init__(self, words: str) -> None:
        super().__init__(
            f"exact audit: expected draws of which a few cells matter, but {words}; audit by sampling"
        )


def _exact(value: Any) -> Fraction:
    if isinstance(value, Draw | Noise):
        raise ContinuousDrawError("two draws are combined")
    return Fraction(value.item() if hasattr(value, "item") else value)
