"""Instructions for devices, made from parameters: the server's side of the device half.

Every function returns a plain dict for JSON. What is rounded is rounded against the spender: the
epsilon that a device computes from the integers is at most the one asked for, which must lie
between 1e-9 and 30. `probabilities`, `bit_probabilities` and `estimator` say exactly what the
integers do, so that a server can debias what it receives.
"""

from __future__ import annotations

import math
from itertools import combinations, product

from tacit.device.channel import MAX_EPSILON, MAX_LEVELS, WORD, Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction
    from typing import Any

    from tacit.device.channel import Instructions

__all__ = [
    "MIN_EPSILON",
    "asymmetric_response",
    "bit_probabilities",
    "cuts",
    "discrete_laplace",
    "estimator",
    "identity",
    "k_ary",
    "piecewise",
    "probabilities",
    "randomized_response",
    "subset",
    "unary",
]

MIN_EPSILON = 1e-9
MAX_OUTPUTS = 2**16

# Leaves room for the rounding of exp here and for the device's own upward rounding.
_DOWN = 1 - 2.0**-40


def randomized_response(
    epsilon: float, *, low: float = 0.0, high: float = 1.0, default: float | None = None
) -> Instructions:
    """Ask for a bit: 1 with the reward's share of the range, then flipped with 1 / (e^epsilon + 1).

    Parameters
    ----------
    epsilon : float
        At most this.
    low, high : float
        The range to which rewards are clipped.
    default : float, optional
        The reward that stands for a missing one; `low` unless given.

    Examples
    --------
    >>> asked = randomized_response(1.0)
    >>> asked["question"], asked["answer"]["cells"], asked["answer"]["width"]
    ({'low': 0.0, 'high': 1.0, 'levels': 2}, 2, 1)
    >>> probabilities(asked, 1)[1] <= 0.7310585786300049
    True
    """
    answer = _window("randomized_response", epsilon, 2, 1)
    return _made("randomized_response", _levels(low, high, 2), answer, default)


def asymmetric_response(
    keep_zero: float,
    keep_one: float,
    *,
    low: float = 0.0,
    high: float = 1.0,
    default: float | None = None,
) -> Instructions:
    """Ask for a bit that stays 0 with probability `keep_zero` and 1 with `keep_one`.

    The probabilities are rounded to multiples of 2^-52 in the direction that lowers epsilon.
    """
    for name, keep in (("keep_zero", keep_zero), ("keep_one", keep_one)):
        _require("asymmetric_response", f"{name} in (0, 1)", 0 < keep < 1, keep)
    rounded = math.floor if keep_zero + keep_one >= 1 else math.ceil
    total = 2**52
    zero, one = rounded(keep_zero * total), rounded(keep_one * total)
    answer = {"kind": "table", "rows": [[zero, total - zero], [total - one, one]]}
    return _made("asymmetric_response", _levels(low, high, 2), answer, default)


def k_ary(epsilon: float, symbols: int, *, default: int = 0) -> Instructions:
    """Ask which of several symbols 0, 1, ... the reward is; any other is told instead alike.

    The symbol itself has probability e^epsilon / (e^epsilon + symbols - 1).
    """
    symbols = _count("k_ary", "symbols", symbols, 2)
    answer = _window("k_ary", epsilon, symbols, 1)
    return _made("k_ary", _levels(0, symbols - 1, symbols), answer, default)


def cuts(
    epsilon: float,
    cuts: Sequence[float],
    *,
    labels: Sequence[int] | None = None,
    default: float = 0.0,
) -> Instructions:
    """Ask in which bin between the cuts the reward lies, by k-ary response.

    Parameters
    ----------
    epsilon : float
        At most this.
    cuts : sequence of float
        Finite and rising. A reward that equals a cut lies in the bin below it.
    labels : sequence of int, optional
        A symbol for each of the len(cuts) + 1 bins; their numbers from 0 unless given.
    default : float
        The reward that stands for a missing one.

    Examples
    --------
    Is the reward within 0.25 of 0.5?

    >>> near = cuts(1.0, [0.25, 0.75], labels=[0, 1, 0])
    >>> probabilities(near, 0.6) == probabilities(near, 0.3)
    True
    """
    bins = list(range(len(cuts) + 1)) if labels is None else [int(label) for label in labels]
    question = {"cuts": [float(cut) for cut in cuts], "labels": bins}
    answer = _window("cuts", epsilon, max(2, len(set(bins))), 1)
    return _made("cuts", question, answer, default)


def unary(
    epsilon: float,
    options: int,
    *,
    none: bool = False,
    optimised: bool = False,
    default: int = 0,
) -> Instructions:
    """Ask for a bit for each option, 1 at the option that the reward names, flipped one by one.

    Parameters
    ----------
    epsilon : float
        At most this, for one option against another.
    options : int
        How many; the reward is the number of one of them, from 0.
    none : bool
        Whether a reward equal to `options` is allowed and means none of them.
    optimised : bool
        Keep a 1 with probability 1/2 and a 0 with e^epsilon / (e^epsilon + 1), which is less
        noise where most options are rare, instead of both with the same probability.
    default : int
        The reward that stands for a missing one.
    """
    options = _count("unary", "options", options, 1 if none else 2)
    symbols = options + (1 if none else 0)
    _epsilon("unary", epsilon)
    if optimised:
        a, b = _weights(epsilon, 2, 2)
        rows = [[2 * a, 2 * b], [a + b, a + b]]
    else:
        # Two options differ in two bits, an option and none in one.
        a, b = _weights(epsilon if options == 1 else epsilon / 2, 1, 1)
        rows = [[a, b], [b, a]]
    answer = {"kind": "unary", "bits": options, "rows": rows}
    return _made("unary", _levels(0, symbols - 1, symbols), answer, default)


def subset(
    epsilon: float, symbols: int, *, size: int | None = None, default: int = 0
) -> Instructions:
    """Ask for a set of `size` symbols that likely holds the one that the reward is.

    Ye and Barg (2018): of all sets of this size, one with the symbol is e^epsilon times as likely
    as one without.

    Parameters
    ----------
    epsilon : float
        At most this.
    symbols : int
        How many; the reward is the number of one of them, from 0.
    size : int, optional
        The best unless given: symbols / (e^epsilon + 1), rounded, at least 1.
    default : int
        The reward that stands for a missing one.
    """
    _epsilon("subset", epsilon)
    symbols = _count("subset", "symbols", symbols, 2)
    best = max(1, round(symbols / (math.exp(epsilon) + 1)))
    width = best if size is None else _count("subset", "size", size, 1, symbols - 1)
    answer = _window("subset", epsilon, symbols, width)
    answer["kind"] = "subset"
    return _made("subset", _levels(0, symbols - 1, symbols), answer, default)


def discrete_laplace(
    epsilon: float,
    *,
    low: float = 0.0,
    high: float = 1.0,
    default: float | None = None,
    steps: int = 2**16,
) -> Instructions:
    """Ask for the reward on a grid of `steps` steps, plus discrete Laplace noise.

    The scale of the noise is that of steps / epsilon, rounded up to whole steps.
    """
    _epsilon("discrete_laplace", epsilon)
    steps = _count("discrete_laplace", "steps", steps, 1)
    scale = math.floor(steps / (epsilon * _DOWN)) + 1
    answer = {"kind": "noise", "scale": scale}
    return _made("discrete_laplace", _levels(low, high, steps + 1), answer, default)


def piecewise(
    epsilon: float,
    *,
    low: float = 0.0,
    high: float = 1.0,
    default: float | None = None,
    cells: int = 1024,
) -> Instructions:
    """Ask for the reward by the piecewise mechanism on a grid of cells.

    Wang et al. (ICDE 2019), Algorithm 2: a cell inside a window that moves with the reward is
    e^epsilon times as likely as one outside; the window is 1 / (e^(epsilon / 2) + 1) of all cells.
    """
    _epsilon("piecewise", epsilon)
    cells = _count("piecewise", "cells", cells, 2)
    width = max(1, round(cells / (math.exp(epsilon / 2) + 1)))
    answer = _window("piecewise", epsilon, cells, width)
    return _made("piecewise", _levels(low, high, cells - width + 1), answer, default)


def identity(*, low: float = 0.0, high: float = 1.0, default: float | None = None) -> Instructions:
    """Ask for the reward itself, clipped: only for a server that is trusted with it."""
    question = {"low": float(low), "high": float(high)}
    return _made("identity", question, {"kind": "identity"}, default, trust="central")


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
    >>> probabilities(asymmetric_response(0.75, 0.5), 1.0)
    {0: Fraction(1, 2), 1: Fraction(1, 2)}
    """
    from fractions import Fraction

    channel, answer = Channel(instructions), instructions["answer"]
    _require("probabilities", "an answer of finitely many values",
             answer["kind"] not in ("noise", "identity"), answer["kind"])  # fmt: skip
    position = channel.position(reward)
    symbol = math.floor(position)
    up = Fraction(math.ceil((position - symbol) * WORD), WORD)
    told: dict[int | tuple[int, ...], Fraction] = {}
    for truth, share in ((symbol, 1 - up), (symbol + 1, up)):
        if share:
            for value, chance in _outputs(answer, truth):
                told[value] = told.get(value, Fraction(0)) + share * chance
    return told


def bit_probabilities(instructions: Instructions) -> tuple[Fraction, Fraction]:
    """Return the probabilities of a 1 at the true symbol's place, and at any other's.

    For answers of bits (`unary`, `subset`): with these, p and q, the count c of a symbol among n
    reports is estimated by (c - n q) / (p - q).

    Examples
    --------
    >>> p, q = bit_probabilities(subset(1.0, 5))
    >>> round(float(p), 3), round(float(q), 3)
    (0.405, 0.149)
    """
    Channel(instructions)
    answer = instructions["answer"]
    kind = answer["kind"]
    _require("bit_probabilities", "an answer of bits", kind in ("unary", "subset"), kind)
    if kind == "unary":
        return _unary_ones(answer)
    p, _ = _shares(answer)
    # The other places hold width ones, or one less if the true symbol has one.
    return p, (answer["width"] - p) / (answer["cells"] - 1)


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
    >>> slope, intercept = estimator(asymmetric_response(0.75, 0.5))
    >>> slope * 1 + intercept, slope * 0 + intercept
    (Fraction(3, 1), Fraction(-1, 1))
    """
    from fractions import Fraction

    channel = Channel(instructions)
    question, answer = instructions["question"], instructions["answer"]
    kind = answer["kind"]
    linear = kind in ("window", "noise") or (kind == "table" and channel.symbols == 2)
    _require("estimator", "a question of levels and an answer linear in them",
             linear and "levels" in question, kind)  # fmt: skip
    low, high = Fraction(question["low"]), Fraction(question["high"])
    top = channel.symbols - 1
    first, last = (_mean(answer, symbol) for symbol in (0, top))
    _require("estimator", "an answer that depends on the reward", first != last, answer)
    slope = (high - low) / (last - first)
    return slope, low - slope * first


def _mean(answer: dict[str, Any], symbol: int) -> Fraction:
    from fractions import Fraction

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
    from fractions import Fraction

    cells, width = int(answer["cells"]), int(answer["width"])
    inside, outside = (int(weight) for weight in answer["weights"])
    p = Fraction(width * inside, width * inside + (cells - width) * outside)
    return p, 1 - p


def _outputs(
    answer: dict[str, Any], symbol: int
) -> Iterator[tuple[int | tuple[int, ...], Fraction]]:
    """Yield (value, probability) of every report of a symbol."""
    from fractions import Fraction

    if answer["kind"] == "table":
        row = [int(weight) for weight in answer["rows"][symbol]]
        for value, weight in enumerate(row):
            yield value, Fraction(weight, sum(row))
    elif answer["kind"] == "unary":
        bits, (p, q) = int(answer["bits"]), _unary_ones(answer)
        _few(2**bits)
        for told in product((0, 1), repeat=bits):
            chance = Fraction(1)
            for place, bit in enumerate(told):
                one = p if place == symbol else q
                chance *= one if bit else 1 - one
            yield told, chance
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
                told = tuple(int(place in chosen) for place in range(cells))
                yield told, p / holding if told[symbol] else rest / math.comb(cells - 1, width)


def _unary_ones(answer: dict[str, Any]) -> tuple[Fraction, Fraction]:
    from fractions import Fraction

    cold, hot = ([int(weight) for weight in row] for row in answer["rows"])
    return Fraction(hot[1], sum(hot)), Fraction(cold[1], sum(cold))


def _few(outputs: int) -> None:
    _require("probabilities", f"at most {MAX_OUTPUTS} values", outputs <= MAX_OUTPUTS, outputs)


def _window(owner: str, epsilon: float, cells: int, width: int) -> dict[str, Any]:
    _epsilon(owner, epsilon)
    weights = list(_weights(epsilon, width, cells - width))
    return {"kind": "window", "cells": cells, "width": width, "weights": weights}


def _weights(epsilon: float, inside: int, outside: int) -> tuple[int, int]:
    """Return large a and b with a / b <= e^epsilon and inside a + outside b < 2^53."""
    growth = math.expm1(epsilon * _DOWN)
    b = int(WORD / (inside + outside + inside * growth)) - 1
    return b + int(b * growth), b


def _levels(low: float, high: float, levels: int) -> dict[str, Any]:
    return {"low": float(low), "high": float(high), "levels": levels}


def _made(
    owner: str,
    question: dict[str, Any],
    answer: dict[str, Any],
    default: float | None,
    trust: str = "local",
) -> Instructions:
    chosen = question["low"] if default is None else float(default)
    made = {"v": 1, "trust": trust, "question": question, "answer": answer, "default": chosen}
    try:
        Channel(made)
    except ValueError as error:
        raise ValueError(f"{owner}: {str(error).removeprefix('instructions: ')}") from None
    return made


def _epsilon(owner: str, epsilon: float) -> None:
    rule = f"epsilon between {MIN_EPSILON:g} and {MAX_EPSILON:g}"
    _require(owner, rule, MIN_EPSILON <= epsilon <= MAX_EPSILON, epsilon)


def _count(owner: str, name: str, n: int, least: int, most: int = MAX_LEVELS - 1) -> int:
    _require(owner, f"{name} between {least} and {most}", least <= n <= most, n)
    return int(n)


def _require(owner: str, rule: str, holds: bool, got: object) -> None:
    if not holds:
        raise ValueError(f"{owner}: expected {rule}, got {got!r}")
