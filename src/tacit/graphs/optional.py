"""Packages that only some of this setting needs, imported when first used."""

from __future__ import annotations

import importlib
from typing import Any


def load(module: str, *, needed_by: str, extra: str = "networks") -> Any:
    """Return an optional module, or say which extra of the installation brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        how = f"pip install 'tacit[{extra}]'" if extra else f"pip install {package}"
        raise ModuleNotFoundError(f"{needed_by} needs {package}: {how}", name=error.name) from error
