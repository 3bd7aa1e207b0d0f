"""Text for people: numbers in tables, and cells that a spreadsheet does not run.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, which may fetch an
address or start a program; the quotes of CSV do not keep it from that. A name from elsewhere may begin so.
"""

from __future__ import annotations

import re
from typing import Any

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20']|[\t\r\n]")
"""How one begins, in wide characters too, which some spreadsheets take for the others."""


def as_text(value: Any) -> str:
    """Write a number for a reader: four digits that count, thousands separated.

    Examples
    --------
    >>> as_text(12345.6), as_text(0.123456), as_text(7)
    ('12,350', '0.1235', '7')
    """
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.4g}"
    return f"{float(short):,.0f}" if 1e4 <= abs(value) < 1e12 else short


def escape_formula(text: str) -> str:
    """Return text that stays text in a spreadsheet: with ``'`` before it where it would be a formula.

    What begins with ``'`` itself gets another one, so that different texts stay different.

    Examples
    --------
    >>> [escape_formula(text) for text in ("blue", "=1+1", "-5%", "'=1+1")]
    ['blue', "'=1+1", "'-5%", "''=1+1"]
    """
    return f"'{text}" if _FORMULA.match(text) else text
