"""Formulas and numbers of sentences, as a reader writes them."""

from __future__ import annotations

import math
import re

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ROOT = re.compile(r"\bsqrt ?(?=\(|[A-Z]\b)")


def rooted(text: str) -> str:
    """Write ``sqrt`` as a root.

    Examples
    --------
    >>> rooted("below sqrt(L) and sqrt N")
    'below √(L) and √N'
    """
    return _ROOT.sub("√", text)


def plain(text: str) -> str:
    """Set the formulas of a label without markup.

    Examples
    --------
    >>> plain("N = 10^4")
    'N = 10⁴'
    """
    raised = re.sub(r"\^(-?[0-9]+)", lambda found: found[1].translate(_RAISED), text)
    return rooted(raised)


def short(value: float) -> str:
    """Write a number for a reader: four digits that count, thousands separated.

    Examples
    --------
    >>> [short(v) for v in (12345.678, 0.012345, 3.0, 1e-9)]
    ['12,346', '0.01235', '3', '1e-09']
    """
    if not math.isfinite(value):
        return "∞" if value == math.inf else "-∞" if value == -math.inf else "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.3g}"
    return f"{value:.4g}"
