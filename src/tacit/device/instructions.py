"""Instructions for devices, made from parameters: the server's side of the device half.

Every function returns a plain dict for JSON. What is rounded is rounded against the spender: the
epsilon that a device computes from the integers is at most the one asked for, which must lie
between 1e-9 and 30. How a server debiases what it receives, the mechanisms of `tacit.privacy` know.
"""

from __future__ import annotations

import math

from tacit.device.channel import MAX_EPSILON, MAX_LEVELS, WORD, Channel, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tacit.device.channel import Instructions

MIN_EPSILON = 1e-9

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
    >>> a, b = asked["answer"]["weights"]
    >>> round(a / (a + b), 9)
    0.731058579
    """
    answer = _window("randomized_response", epsilon, 2, 1)
    return make_instructions("randomized_response", levels_of(low, high, 2), answer, default)


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
        require("asymmetric_response", f"{name} in (0, 1)", 0 < keep < 1, keep)
    rounded = math.floor if keep_zero + keep_one >= 1 else math.ceil
    total = 2**52
    zero, one = rounded(keep_zero * total), rounded(keep_one * total)
    answer = {"kind": "table", "rows": [[zero, total - zero], [total - one, one]]}
    return make_instructions("asymmetric_response", levels_of(low, high, 2), answer, default)


def k_ary(epsilon: float, symbols: int, *, default: int = 0) -> Instructions:
    """Ask which of several symbols 0, 1, ... the reward is; any other is told instead alike.

    The symbol itself has probability e^epsilon / (e^epsilon + symbols - 1).
    """
    symbols = _count("k_ary", "symbols", symbols, 2)
    answer = _window("k_ary", epsilon, symbols, 1)
    return make_instructions("k_ary", levels_of(0, symbols - 1, symbols), answer, default)


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

    >>> cuts(1.0, [0.25, 0.75], labels=[0, 1, 0])["question"]
    {'cuts': [0.25, 0.75], 'labels': [0, 1, 0]}
    """
    bins = list(range(len(cuts) + 1)) if labels is None else [int(label) for label in labels]
    question = {"cuts": [float(cut) for cut in cuts], "labels": bins}
    answer = _window("cuts", epsilon, max(2, len(set(bins))), 1)
    return make_instructions("cuts", question, answer, default)


def unary(
    epsilon: float, options: int, *, none: bool = False, optimised: bool = False, default: int = 0
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
        a, b = weights(epsilon, 2, 2)
        rows = [[2 * a, 2 * b], [a + b, a + b]]
    else:
        # Two options differ in two bits, an option and none in one.
        a, b = weights(epsilon if options == 1 else epsilon / 2, 1, 1)
        rows = [[a, b], [b, a]]
    answer = {"kind": "unary", "bits": options, "rows": rows}
    return make_instructions("unary", levels_of(0, symbols - 1, symbols), answer, default)


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
    best = subset_size(epsilon, symbols)
    width = best if size is None else _count("subset", "size", size, 1, symbols - 1)
    answer = _window("subset", epsilon, symbols, width)
    answer["kind"] = "subset"
    return make_instructions("subset", levels_of(0, symbols - 1, symbols), answer, default)


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
    answer = {"kind": "noise", "scale": noise_scale(epsilon, steps)}
    return make_instructions("discrete_laplace", levels_of(low, high, steps + 1), answer, default)


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
    width = window_width(epsilon, cells)
    answer = _window("piecewise", epsilon, cells, width)
    return make_instructions("piecewise", levels_of(low, high, cells - width + 1), answer, default)


def identity(*, low: float = 0.0, high: float = 1.0, default: float | None = None) -> Instructions:
    """Ask for the reward itself, clipped: only for a server that is trusted with it."""
    question = {"low": float(low), "high": float(high)}
    return make_instructions("identity", question, {"kind": "identity"}, default, trust="central")


def _window(owner: str, epsilon: float, cells: int, width: int) -> dict[str, Any]:
    _epsilon(owner, epsilon)
    both = list(weights(epsilon, width, cells - width))
    return {"kind": "window", "cells": cells, "width": width, "weights": both}


def weights(epsilon: float, inside: int, outside: int) -> tuple[int, int]:
    """Return large integers a and b with a / b <= e^epsilon and inside a + outside b < 2^53.

    All response mechanisms, here and in `tacit.privacy`, get their probabilities from these two: an
    outcome of the first kind has probability a, one of the second b, over the sum.
    """
    growth = math.expm1(epsilon * _DOWN)
    b = int(WORD / (inside + outside + inside * growth)) - 1
    return b + int(b * growth), b


def subset_size(epsilon: float, symbols: int) -> int:
    """Return how many of several symbols a subset holds at the least variance."""
    return max(1, round(symbols / (math.exp(epsilon) + 1)))


def window_width(epsilon: float, cells: int) -> int:
    """Return how many cells of the piecewise mechanism are likely ones."""
    return max(1, round(cells / (math.exp(epsilon / 2) + 1)))


def noise_scale(epsilon: float, steps: int) -> int:
    """Return the scale of Laplace noise in whole steps of which a value has `steps`, rounded up."""
    return math.floor(steps / (epsilon * _DOWN)) + 1


def levels_of(low: float, high: float, levels: int) -> dict[str, Any]:
    """Return the question for one of several levels of a range."""
    return {"low": float(low), "high": float(high), "levels": levels}


def make_instructions(
    owner: str,
    question: dict[str, Any],
    answer: dict[str, Any],
    default: float | None,
    trust: str = "local",
) -> Instructions:
    """Return instructions, checked, with errors in the name of `owner`."""
    chosen = question["low"] if default is None else float(default)
    made = {"v": 1, "trust": trust, "question": question, "answer": answer, "default": chosen}
    try:
        Channel(made)
    except ValueError as error:
        raise ValueError(f"{owner}: {str(error).removeprefix('instructions: ')}") from None
    return made


def _epsilon(owner: str, epsilon: float) -> None:
    rule = f"epsilon between {MIN_EPSILON:g} and {MAX_EPSILON:g}"
    require(owner, rule, MIN_EPSILON <= epsilon <= MAX_EPSILON, epsilon)


def _count(owner: str, name: str, n: int, least: int, most: int = MAX_LEVELS - 1) -> int:
    require(owner, f"{name} between {least} and {most}", least <= n <= most, n)
    return int(n)
