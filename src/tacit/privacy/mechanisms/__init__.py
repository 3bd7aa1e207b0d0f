"""Mechanisms: one file for each, with all that is known and done about it.

A mechanism is a frozen record. It declares what one use releases, with the exact privacy loss, and
it does it: in compiled kernels, in exact integers on a secure tape, and as instructions for devices.
Policies hold mechanisms; guarantees, accounting and audits ask them. Here stands what all of them
share; `registry` finds them in their files.
"""

import importlib
import inspect
import pkgutil

from tacit.privacy.mechanisms.base import (
    HIGHEST_EPSILON,
    LOWEST_EPSILON,
    Channel,
    Epsilon,
    Mechanism,
    NeighbouringPair,
    debias,
    make_channel,
    numerics_of,
    open_channel,
    privatise,
    round_to_level,
)

__all__ = [
    "HIGHEST_EPSILON",
    "LOWEST_EPSILON",
    "Channel",
    "Epsilon",
    "Mechanism",
    "NeighbouringPair",
    "debias",
    "make_channel",
    "numerics_of",
    "open_channel",
    "privatise",
    "registry",
    "round_to_level",
]


def registry() -> dict[str, type[Mechanism]]:
    """Return every mechanism of this package by its name, found in its files.

    Examples
    --------
    >>> registry()["laplace"](epsilon=2.0).variance
    0.5
    """
    found = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            named = "name" in vars(kind) and kind.__module__ == module.name
            if named and issubclass(kind, Mechanism):
                found[kind.name] = kind
    return dict(sorted(found.items()))
