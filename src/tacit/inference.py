"""Numba's inference of types, made to remember what it has found out.

For every operation of every kernel numba tries the overloads of a function one after the other until one
fits, although ``array[int64]`` or ``float64 * int64`` was asked for a thousand times before: most of the
time that inference takes, and a sixth of all compilation. The first answer holds for the life of a process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import targetconfig
from numba.core.types import functions

__all__ = ["remember_types"]

_Function: Any = functions.BaseFunction
_Options: Any = targetconfig.TargetConfig
_find = _Function.get_call_type
_found: dict[Any, Any] = {}


def remember_types(compiling: Callable[[], bool]) -> None:
    """Let numba remember which signature a function has for arguments of given types.

    Only while `compiling` says so: what others compile in this process meets numba as it is.
    """

    def signature_of(function: Any, context: Any, args: Any, kws: Any) -> Any:
        find = _signature_of if compiling() else _find
        return find(function, context, args, kws)

    _Function.get_call_type = signature_of
    _Options.__eq__, _Options.__hash__ = _are_equal, _hash


def _signature_of(function: Any, context: Any, args: Any, kws: Any) -> Any:
    options: Any = targetconfig.ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
    asked = function, context, tuple(args), tuple(kws.items())
    if (asked, options) not in _found:
        signature = _find(function, context, args, kws)
        options = options and options.copy()
        _found[asked, options] = signature, function.get_impl_key(signature)
        return signature
    signature, implementation = _found[asked, options]
    function._impl_keys[signature.args] = implementation
    return signature


def _are_equal(options: Any, other: Any) -> bool:
    """Compare the options that were set; numba would go through all fifty."""
    if type(options) is not type(other):
        return False
    names = options._values.keys() | other._values.keys()
    return all(getattr(options, name) == getattr(other, name) for name in names)


def _hash(options: Any) -> int:
    """Return the same for all of a kind, as numba does, which hashes the options' names."""
    return hash(type(options))
