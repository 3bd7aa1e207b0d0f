"""HTML that cannot forget to escape: whatever is filled into a template is text unless it is `Html`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["Html", "fill", "joined", "plain", "prose", "script_json", "short"]


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ROOT = re.compile(r"\bsqrt ?(?=\(|[A-Z]\b)")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def fill(template: str, /, **values: object) -> Html:
    """Fill ``{name}`` in a template; values that are not `Html` are escaped.

    Examples
    --------
    >>> fill("<b>{name}</b>", name="a < b")
    '<b>a &lt; b</b>'
    """
    safe = {k: v if isinstance(v, Html) else escape(str(v)) for k, v in values.items()}
    return Html(template.format(**safe))


def joined(parts: Iterable[Html]) -> Html:
    """Join pieces of markup."""
    return Html("".join(parts))


def prose(text: str) -> Html:
    """Escape a sentence and set its formulas: ``T^0.5`` with a raised exponent, ``sqrt`` as a root.

    Examples
    --------
    >>> prose("like T^0.66, below sqrt(L)")
    'like T<sup>0.66</sup>, below √(L)'
    """
    raised = re.sub(r"\^(-?[0-9]+(?:\.[0-9]+)?|[A-Za-z]+)", r"<sup>\1</sup>", escape(text))
    return Html(_ROOT.sub("√", raised))


def plain(text: str) -> str:
    """Set the formulas of a label without markup.

    Examples
    --------
    >>> plain("N = 10^4")
    'N = 10⁴'
    """
    raised = re.sub(r"\^(-?[0-9]+)", lambda found: found[1].translate(_RAISED), text)
    return _ROOT.sub("√", raised)


def script_json(data: Any) -> Html:
    """Write data for a ``<script type="application/json">``, which ends at the first ``</``."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))


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
