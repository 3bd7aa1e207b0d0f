"""Some cases of a test in `make test`, the others in `make slow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def tiered(
    values: Iterable[Any], quick: Callable[[Any], bool], name: Callable[[Any], str] = str
) -> list[Any]:
    """Return the values as parameters of a test, those slow that are not `quick`."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) and not hasattr(value, "_fields") else (value,)),
            id=name(value),
            marks=() if quick(value) else (pytest.mark.slow,),
        )
        for value in values
    ]
