"""The one way values become JSON and come back: no value is lost, none is outside the standard.

JSON has no infinity and no not-a-number. They are written as the words ``"inf"``, ``"-inf"`` and
``"nan"``; a reader that expects a number passes what it finds to `number`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from typing import Any

_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def plain(value: Any) -> Any:
    """Return `value` as what JSON can hold: tables, lists, words, numbers, true, false, null.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"epsilon": math.inf, "rounds": np.arange(3), "where": (1.5, None)})
    {'epsilon': 'inf', 'rounds': [0, 1, 2], 'where': [1.5, None]}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _word(value)
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"jsonable: {type(value).__name__} has no form in JSON")


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Return `value` as standard JSON.

    Examples
    --------
    >>> dumps({"epsilon": math.inf})
    '{"epsilon": "inf"}'
    """
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def number(value: Any) -> float:
    """Return the number that `plain` wrote.

    Examples
    --------
    >>> number("inf"), number(2)
    (inf, 2.0)
    """
    if isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"jsonable: expected a number, 'inf', '-inf' or 'nan', got {value!r}")
    return float(value)


def numbers(value: Any) -> Any:
    """Return `value` with the words for infinity and not-a-number turned back, however deep.

    For records in which no text may be one of these words; else read each field with `number`.
    """
    if isinstance(value, dict):
        return {name: numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [numbers(each) for each in value]
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _word(value: float) -> str:
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
