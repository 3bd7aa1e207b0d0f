"""From instructions to a reported value: checked first, drawn exactly, whatever the reward is.

Instructions have two halves. The *question* turns a reward into one of k symbols: the nearest
levels of a range, by a random choice that keeps the mean, or the bin between sorted cuts. The
*answer* turns the symbol into what is reported, with probabilities that are ratios of integers, so
that epsilon follows from these integers alone. Both draw by one primitive, a uniform
integer below n from 53 random bits, which any language with doubles can repeat bit for bit.
"""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:  # The module typing takes longer to import than all of this.
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Instructions: TypeAlias = dict[str, Any]
    Value: TypeAlias = int | float | list[int]
    Below: TypeAlias = Callable[[int], int]
    Place: TypeAlias = Callable[[float], float]
    Fits: TypeAlias = Callable[[Any], bool]
    Answer: TypeAlias = tuple[float, Callable[[int, Below], Value], Fits]

MAX_EPSILON = 30.0
WORD = 2**53
# No integer may reach 2^53, so that a double can tell when it would be exceeded.
MAX_WEIGHT = WORD - 1
WORD_BYTES = 7
MAX_LEVELS = 2**16 + 1
MAX_LIST = 1024
MAX_ROWS = 64
MAX_NOISE = 2**52

# Upwards, by more than the rounding of a quotient and of any current log1p can lower it.
_UP = 1 + 2.0**-49


class Channel:
    """Checked instructions.

    Parameters
    ----------
    instructions : dict
        As in ``schemas/instructions.schema.json``. Anything else raises ``ValueError``.

    Attributes
    ----------
    epsilon : float
        The largest logarithm of a ratio of two probabilities of the same report, from the integers
        of the answer, rounded upwards; infinite if the reward itself is reported.
    symbols : int
        How many symbols the question has; 0 if the reward itself is reported.
    default : float
        The reward that stands for a missing or unusable one.

    Examples
    --------
    >>> from tacit.device import instructions
    >>> channel = Channel(instructions.randomized_response(1.0))
    >>> channel.symbols, round(channel.epsilon, 9)
    (2, 1.0)
    >>> Channel(instructions.randomized_response(1.0) | {"default": 2})
    Traceback (most recent call last):
    ValueError: instructions: expected default to be in [0, 1], got 2.0
    """

    __slots__ = ("_answer", "_fits", "_place", "default", "epsilon", "symbols", "trust")

    def __init__(self, instructions: Instructions) -> None:
        _fields("it", instructions, ("v", "trust", "question", "answer", "default"))
        _require(_is_whole(instructions["v"], 1, 1), "v", "to be 1", instructions["v"])
        self.trust = instructions["trust"]
        known = self.trust in ("local", "central")
        _require(known, "trust", "to be 'local' or 'central'", self.trust)
        self.default = _number("default", instructions["default"])
        question, answer = instructions["question"], instructions["answer"]
        _require(isinstance(answer, dict), "answer", "to be an object", answer)
        kind = answer.get("kind")
        kinds = (*_ANSWERS, "identity")
        _require(kind in kinds, "answer.kind", f"to be one of {', '.join(kinds)}", kind)
        _require(
            (kind == "identity") == (self.trust == "central"),
            "trust",
            "to be 'central' with the answer identity and 'local' with any other",
            self.trust,
        )
        if kind == "identity":
            _fields("answer", answer, ("kind",))
            self._place, self._fits = _range(question, self.default)
            self.symbols, self.epsilon, self._answer = 0, math.inf, None
            return
        ask = _cuts if isinstance(question, dict) and "cuts" in question else _levels
        self.symbols, self._place = ask(question, self.default)
        self.epsilon, self._answer, self._fits = _ANSWERS[kind](answer, self.symbols)
        _require(self.epsilon <= MAX_EPSILON, "epsilon", f"<= {MAX_EPSILON:g}", self.epsilon)

    def position(self, reward: object) -> float:
        """Return where a reward lies among the symbols: between two of them, or at one.

        If the reward itself is reported, this is the clipped reward.

        Parameters
        ----------
        reward : object
            A number; whatever is none, or is not finite, counts as the default reward.
        """
        return self._place(_usable(reward, self.default))

    def draw(self, reward: object, random: Callable[[int], bytes]) -> Value:
        """Return what is reported for a reward, which may be anything and never raises.

        Parameters
        ----------
        reward : object
            As in `position`.
        random : callable
            Returns as many random bytes as asked for.
        """
        below = _uniform(random)
        position = self.position(reward)
        if self._answer is None:
            return position
        symbol = math.floor(position)
        symbol += below(WORD) < (position - symbol) * WORD
        return self._answer(symbol, below)

    def possible(self, value: object) -> bool:
        """Return whether a device that follows these instructions can report this value."""
        return self._fits(value)


def _uniform(random: Callable[[int], bytes]) -> Below:
    def below(n: int) -> int:
        while n > 1:
            drawn = random(WORD_BYTES)
            if len(drawn) != WORD_BYTES:
                raise ValueError(f"random: expected {WORD_BYTES} bytes, got {len(drawn)}")
            word = int.from_bytes(drawn, "big") % WORD
            if word < WORD - WORD % n:
                return word % n
        return 0

    return below


def _usable(reward: object, default: float) -> float:
    """Return the reward as a finite number, or the default; whatever has a length is no number."""
    try:
        value = default if hasattr(type(reward), "__len__") else float(reward)  # type: ignore[arg-type]
    except Exception:
        return default
    return value if math.isfinite(value) else default


def _range(question: Any, default: float) -> tuple[Place, Fits]:
    _fields("question", question, ("low", "high"))
    low, high = _ends(question, default)

    def place(reward: float) -> float:
        # To add 0.0 makes -0.0 a plain zero.
        return min(max(reward, low), high) + 0.0

    return place, lambda value: is_number(value) and low <= value <= high


def _levels(question: Any, default: float) -> tuple[int, Place]:
    _fields("question", question, ("low", "high", "levels"))
    low, high = _ends(question, default)
    levels = _whole("question.levels", question["levels"], 2, MAX_LEVELS)

    def place(reward: float) -> float:
        clipped = min(max(reward, low), high)
        return min((clipped - low) * (levels - 1) / (high - low), levels - 1)

    return levels, place


def _cuts(question: Any, default: float) -> tuple[int, Place]:
    _fields("question", question, ("cuts", "labels"))
    cuts = [_number("question.cuts", cut) for cut in _list("question.cuts", question["cuts"])]
    rising = all(a < b for a, b in pairwise(cuts))
    _require(rising, "question.cuts", "to rise strictly", question["cuts"])
    labels = [
        _whole("question.labels", label, 0, len(cuts))
        for label in _list("question.labels", question["labels"])
    ]
    rule = f"to have {len(cuts) + 1} entries, one for each bin"
    _require(len(labels) == len(cuts) + 1, "question.labels", rule, labels)
    symbols = max(labels) + 1
    _require(
        symbols >= 2 and len(set(labels)) == symbols,
        "question.labels",
        "to use at least 0 and 1, and every number up to the largest",
        labels,
    )
    return symbols, lambda reward: labels[sum([cut < reward for cut in cuts])]


def _table(answer: Any, symbols: int) -> Answer:
    _fields("answer", answer, ("kind", "rows"))
    rows = _rows(answer["rows"], symbols)
    total = sum(rows[0])
    ends = [list(accumulate(row))[:-1] for row in rows]
    epsilon = max(_log_ratio(max(column), min(column)) for column in zip(*rows, strict=True))

    def value(symbol: int, below: Below) -> Value:
        word = below(total)
        return sum([word >= end for end in ends[symbol]])

    return epsilon * _UP, value, _number_below(len(rows[0]))


def _window(answer: Any, symbols: int) -> Answer:
    cells, width, inside, outside, total = _weighted(answer, MAX_LEVELS)
    rule = f"to have cells - width + 1 = {symbols}, the number of symbols"
    _require(cells - width + 1 == symbols, "answer", rule, cells - width + 1)

    def value(symbol: int, below: Below) -> Value:
        word = below(total)
        beyond = word - width * inside
        offset = word // inside if beyond < 0 else width + beyond // outside
        return (symbol + offset) % cells

    return _log_ratio(inside, outside) * _UP, value, _number_below(cells)


def _subset(answer: Any, symbols: int) -> Answer:
    cells, width, inside, outside, total = _weighted(answer, MAX_LIST)
    _require(cells == symbols, "answer.cells", f"to be {symbols}, the number of symbols", cells)

    def value(symbol: int, below: Below) -> Value:
        bits = [0] * cells
        bits[symbol] = int(below(total) < width * inside)
        missing = width - bits[symbol]
        for step in range(1, cells):
            taken = int(below(cells - step) < missing)
            bits[(symbol + step) % cells] = taken
            missing -= taken
        return bits

    return _log_ratio(inside, outside) * _UP, value, _bits(cells, width, width)


def _unary(answer: Any, symbols: int) -> Answer:
    _fields("answer", answer, ("kind", "bits", "rows"))
    bits = _whole("answer.bits", answer["bits"], 1, MAX_LIST)
    rule = f"to be {symbols}, the number of symbols, or {symbols - 1} and the last means none"
    _require(symbols - bits in (0, 1), "answer.bits", rule, bits)
    cold, hot = _rows(answer["rows"], 2)
    _require(len(cold) == 2, "answer.rows", "to be two rows of two weights", answer["rows"])
    total = sum(cold)
    zero, one = (_log_ratio(cold[bit], hot[bit]) for bit in (0, 1))
    # Two options differ in two bits; a single bit is hot or not.
    epsilon = zero + one if bits > 1 else max(zero, one)

    def value(symbol: int, below: Below) -> Value:
        return [int(below(total) >= (cold[0], hot[0])[bit == symbol]) for bit in range(bits)]

    return epsilon * _UP, value, _bits(bits, 0, bits)


def _noise(answer: Any, symbols: int) -> Answer:
    _fields("answer", answer, ("kind", "scale"))
    scale = _whole("answer.scale", answer["scale"], 1, 2**46)

    def value(symbol: int, below: Below) -> Value:
        return max(-MAX_NOISE, min(symbol + _discrete_laplace(scale, below), MAX_NOISE))

    def fits(value: Any) -> bool:
        return _is_whole(value, -MAX_NOISE, MAX_NOISE)

    return (symbols - 1) / scale * _UP, value, fits


_ANSWERS = {"table": _table, "window": _window, "subset": _subset, "unary": _unary, "noise": _noise}


def _discrete_laplace(scale: int, below: Below) -> int:
    """Return x with probability proportional to exp(-|x| / scale).

    Canonne, Kamath and Steinke (NeurIPS 2020), Algorithm 2. No reward is in sight here, so neither
    the time nor the number of random bytes can depend on it.
    """
    while True:
        part = below(scale)
        if not _happens_exp(part, scale, below):
            continue
        whole = 0
        while _happens_exp(1, 1, below):
            whole += 1
        size = part + scale * whole
        negative = below(2)
        if size or not negative:
            return -size if negative else size


def _happens_exp(a: int, b: int, below: Below) -> bool:
    """Return True with probability exp(-a / b), for 0 <= a <= b (Algorithm 1)."""
    i = 1
    # A coin of a / (i b) is two coins, so that no product leaves the exact integers of a double.
    while below(b) < a and below(i) == 0:
        i += 1
    return i % 2 == 1


def _number_below(n: int) -> Fits:
    return lambda value: _is_whole(value, 0, n - 1)


def _bits(n: int, least: int, most: int) -> Fits:
    return lambda value: (
        isinstance(value, list)
        and len(value) == n
        and all(_is_whole(bit, 0, 1) for bit in value)
        and least <= sum(value) <= most
    )


def _log_ratio(a: int, b: int) -> float:
    return math.log1p(abs(a - b) / min(a, b))


def _weighted(answer: Any, most: int) -> tuple[int, int, int, int, int]:
    _fields("answer", answer, ("kind", "cells", "width", "weights"))
    cells = _whole("answer.cells", answer["cells"], 2, most)
    width = _whole("answer.width", answer["width"], 1, cells - 1)
    weights = answer["weights"]
    two = isinstance(weights, list) and len(weights) == 2
    _require(two, "answer.weights", "to be two, of a cell inside and of one outside", weights)
    inside, outside = (_whole("answer.weights", weight, 1, MAX_WEIGHT) for weight in weights)
    total = width * inside + (cells - width) * outside
    rule = "to have width * inside + (cells - width) * outside < 2^53"
    _require(total <= MAX_WEIGHT, "answer.weights", rule, total)
    return cells, width, inside, outside, total


def _rows(value: Any, n_rows: int) -> list[list[int]]:
    rows = [
        [
            _whole("answer.rows", weight, 1, MAX_WEIGHT)
            for weight in _list("answer.rows", row, MAX_ROWS)
        ]
        for row in _list("answer.rows", value, MAX_ROWS)
    ]
    _require(len(rows) == n_rows, "answer.rows", f"to be {n_rows} rows", len(rows))
    columns = {len(row) for row in rows}
    alike = len(columns) == 1 and min(columns) >= 2
    _require(alike, "answer.rows", "to have one length, 2 or more", sorted(columns))
    sums = sorted({sum(row) for row in rows})
    alike = len(sums) == 1 and sums[0] <= MAX_WEIGHT
    _require(alike, "answer.rows", "to have one sum, below 2^53", sums)
    return rows


def _ends(question: Any, default: float) -> tuple[float, float]:
    low, high = (_number(f"question.{end}", question[end]) for end in ("low", "high"))
    _require(low < high, "question.high", f"> low = {low:g}", high)
    _require(low <= default <= high, "default", f"to be in [{low:g}, {high:g}]", default)
    return low, high


def _fields(where: str, value: Any, names: tuple[str, ...]) -> None:
    _require(isinstance(value, dict), where, "to be an object", value)
    rule = f"to have the fields {', '.join(names)}"
    _require(set(value) == set(names), where, rule, list(value))


def _list(name: str, value: Any, most: int = MAX_LIST) -> list[Any]:
    fits = isinstance(value, list) and 1 <= len(value) <= most
    _require(fits, name, f"to be a list of 1 to {most}", value)
    entries: list[Any] = value
    return entries


def _number(name: str, value: Any) -> float:
    # Bounded, so that no sum or product of these numbers can overflow.
    fits = is_number(value) and abs(value) <= MAX_WEIGHT
    _require(fits, name, "to be a number of size below 2^53", value)
    return float(value)


def is_number(value: Any) -> bool:
    """Return whether a value is a number to JSON, which a truth value is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any, least: int, most: int) -> bool:
    # 3.0 is the integer 3 to JSON Schema and to JavaScript.
    whole = is_number(value) and (isinstance(value, int) or value.is_integer())
    return whole and least <= value <= most


def _whole(name: str, value: Any, least: int, most: int) -> int:
    rule = f"to be a whole number from {least} to {'2^53 - 1' if most == MAX_WEIGHT else most}"
    _require(_is_whole(value, least, most), name, rule, value)
    return int(value)


def _require(holds: bool, name: str, rule: str, got: Any) -> None:
    if not holds:
        require("instructions", f"{name} {rule}", False, got)


def require(owner: str, rule: str, holds: bool, got: object) -> None:
    """Raise ``ValueError`` with one sentence unless the rule holds."""
    if not holds:
        try:
            shown = repr(got)
        except Exception:
            shown = type(got).__name__
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        raise ValueError(f"{owner}: expected {rule}, got {shown}")
