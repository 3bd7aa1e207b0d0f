"""Text in tables that people open in a spreadsheet.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, which may fetch an
address or start a program; the quotes of CSV do not keep it from that. A name from elsewhere may begin so.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20']|[\t\r\n]")
"""How one begins, in wide characters too, which some spreadsheets take for the others."""


def plain(text: str) -> str:
    """Return text that stays text in a spreadsheet: with ``'`` before it where it would be a formula.

    What begins with ``'`` itself gets another one, so that different texts stay different.

    Examples
    --------
    >>> [plain(text) for text in ("blue", "=1+1", "-5%", "'=1+1")]
    ['blue', "'=1+1", "'-5%", "''=1+1"]
    """
    return f"'{text}" if _FORMULA.match(text) else text
