"""What instructions do exactly: the probabilities of reports, as fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from tacit.device.channel import WORD, Channel, require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.device.channel import Instructions

MAX_OUTPUTS = 2**16


def probabilities(
    instructions: Instructions, reward: float
) -> dict[int | tuple[int, ...], Fraction]:
    """Return the exact probability of every value that a device may report for a reward.

    Parameters
    ----------
    instructions : dict
        With an answer of finitely many values, at most 65,536.
    reward : float
        As the device sees it.

    Examples
    --------
    >>> from tacit.device.instructions import asymmetric_response
    >>> probabilities(asymmetric_response(0.75, 0.5), 1.0)
    {0: Fraction(1, 2), 1: Fraction(1, 2)}
    """
    channel, answer = Channel(instructions), instructions["answer"]
    require(
        "probabilities",
        "an answer of finitely many values",
        answer["kind"] not in ("noise", "identity"),
        answer["kind"],
    )
    position = channel.position(reward)
    symbol = math.floor(position)
    up = Fraction(math.ceil((position - symbol) * WORD), WORD)
    chances: dict[int | tuple[int, ...], Fraction] = {}
    for truth, share in ((symbol, 1 - up), (symbol + 1, up)):
        if share:
            for value, chance in _outputs(answer, truth):
                chances[value] = chances.get(value, Fraction(0)) + share * chance
    return chances


def bit_probabilities(instructions: Instructions) -> tuple[Fraction, Fraction]:
    """Return the probabilities of a 1 at the true symbol's place, and at any other's.

    For answers of bits (`unary`, `subset`): with these, p and q, the count c of a symbol among n
    reports is estimated by (c - n q) / (p - q).

    Examples
    --------
    >>> from tacit.device.instructions import subset
    >>> p, q = bit_probabilities(subset(1.0, 5))
    >>> round(float(p), 3), round(float(q), 3)
    (0.405, 0.149)
    """
    Channel(instructions)
    answer = instructions["answer"]
    kind = answer["kind"]
    require("bit_probabilities", "an answer of bits", kind in ("unary", "subset"), kind)
    if kind == "unary":
        return _unary_ones(answer)
    p, _ = _shares(answer)
    # All places together hold width ones; what the true one does not hold the others share.
    return p, (int(answer["width"]) - p) / (int(answer["cells"]) - 1)


def estimator(instructions: Instructions) -> tuple[Fraction, Fraction]:
    """Return (slope, intercept) such that slope * value + intercept estimates the reward unbiased.

    Exact for the symbols; a reward is placed among them in doubles, to about 2^-51 of the range.

    Parameters
    ----------
    instructions : dict
        With a question of levels and an answer whose mean is linear in the symbol: a window, a
        table of two rows, or noise.

    Examples
    --------
    >>> from tacit.device.instructions import asymmetric_response
    >>> slope, intercept = estimator(asymmetric_response(0.75, 0.5))
    >>> slope * 1 + intercept, slope * 0 + intercept
    (Fraction(3, 1), Fraction(-1, 1))
    """
    channel = Channel(instructions)
    question, answer = instructions["question"], instructions["answer"]
    kind = answer["kind"]
    linear = kind in ("window", "noise") or (kind == "table" and channel.symbols == 2)
    require(
        "estimator",
        "a question of levels and an answer linear in them",
        linear and "levels" in question,
        kind,
    )
    low, high = Fraction(question["low"]), Fraction(question["high"])
    top = channel.symbols - 1
    first, last = (_mean(answer, symbol) for symbol in (0, top))
    require("estimator", "an answer that depends on the reward", first != last, answer)
    slope = (high - low) / (last - first)
    return slope, low - slope * first


def _mean(answer: dict[str, Any], symbol: int) -> Fraction:
    if answer["kind"] == "noise":
        return Fraction(symbol)
    if answer["kind"] == "table":
        row = answer["rows"][symbol]
        return Fraction(int(sum(i * weight for i, weight in enumerate(row))), int(sum(row)))
    cells, width = int(answer["cells"]), int(answer["width"])
    p, _ = _shares(answer)
    inside = width * symbol + Fraction(width * (width - 1), 2)
    outside = Fraction(cells * (cells - 1), 2) - inside
    return p * inside / width + (1 - p) * outside / (cells - width)


def _shares(answer: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """Return the probability of the window (or of holding the symbol) and of the rest."""
    cells, width = int(answer["cells"]), int(answer["width"])
    inside, outside = (int(weight) for weight in answer["weights"])
    p = Fraction(width * inside, width * inside + (cells - width) * outside)
    return p, 1 - p


def _outputs(
    answer: dict[str, Any], symbol: int
) -> Iterator[tuple[int | tuple[int, ...], Fraction]]:
    """Yield (value, probability) of every report of a symbol."""
    if answer["kind"] == "table":
        row = [int(weight) for weight in answer["rows"][symbol]]
        for value, weight in enumerate(row):
            yield value, Fraction(weight, sum(row))
    elif answer["kind"] == "unary":
        bits, (p, q) = int(answer["bits"]), _unary_ones(answer)
        _few(2**bits)
        for sent in product((0, 1), repeat=bits):
            chance = Fraction(1)
            for place, bit in enumerate(sent):
                one = p if place == symbol else q
                chance *= one if bit else 1 - one
            yield sent, chance
    else:
        cells, width = int(answer["cells"]), int(answer["width"])
        p, rest = _shares(answer)
        if answer["kind"] == "window":
            for value in range(cells):
                within = (value - symbol) % cells < width
                yield value, p / width if within else rest / (cells - width)
        else:
            _few(math.comb(cells, width))
            holding = math.comb(cells - 1, width - 1)
            for chosen in combinations(range(cells), width):
                sent = tuple(int(place in chosen) for place in range(cells))
                share = p / holding if sent[symbol] else rest / math.comb(cells - 1, width)
                yield sent, share


def _unary_ones(answer: dict[str, Any]) -> tuple[Fraction, Fraction]:
    cold, hot = ([int(weight) for weight in row] for row in answer["rows"])
    return Fraction(hot[1], sum(hot)), Fraction(cold[1], sum(cold))


def _few(outputs: int) -> None:
    require("probabilities", f"at most {MAX_OUTPUTS} values", outputs <= MAX_OUTPUTS, outputs)
