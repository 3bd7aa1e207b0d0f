"""Parameters that a person wrote, held against what a description declares."""

from __future__ import annotations

import dataclasses
import numbers
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tacit.checks import require

__all__ = ["described"]

D = TypeVar("D")


def described(
    kind: type[D], name: str, parameters: Mapping[str, Any], public: Mapping[str, Any] | None = None
) -> D:
    """Return the frozen dataclass `kind` with `parameters`, and with `public` where it has none.

    An unknown, missing or wrongly typed parameter raises ``ValueError`` that says what to write;
    types are those of the annotations.

    Parameters
    ----------
    kind : type
        A dataclass.
    name : str
        What a command line calls it.
    parameters : mapping
        What was written; every one must be a field.
    public : mapping, optional
        What is known anyway; those that are no field are passed over.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> described(UCB1, "ucb1", {"exploration": "wide"}, {"n_arms": 3})
    Traceback (most recent call last):
    ValueError: UCB1: expected exploration to be a number, got 'wide'
    """
    fields = {field.name: field for field in dataclasses.fields(typing.cast(Any, kind))}
    fields = {key: field for key, field in fields.items() if field.init}
    unknown = sorted(set(parameters) - set(fields))
    if unknown:
        has = ", ".join(sorted(fields)) or "none"
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {has}")
    hints = typing.get_type_hints(kind)
    for key, value in parameters.items():
        require(kind.__name__, key, f"to be {_words(hints[key])}", _fits(value, hints[key]), value)
    known = {key: value for key, value in (public or {}).items() if key in fields}
    given = {**known, **parameters}
    missing = [key for key, field in fields.items() if key not in given and _required(field)]
    if missing:
        raise ValueError(f"{name} needs {', '.join(missing)}: {name}:{missing[0]}=...")
    return kind(**given)


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value from a study file can be what an annotation says."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin in (tuple, Sequence):
        if not isinstance(value, list | tuple):
            return False
        if origin is Sequence or inner[-1] is Ellipsis:
            inner = (inner[0],) * len(value)
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if hint in (int, float):
        kind = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, kind) and not isinstance(value, bool)
    return hint is Any or isinstance(value, hint)


def _words(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words(each) for each in inner if each is not types.NoneType)
    if origin in (tuple, Sequence):
        return f"a list ({_words(inner[0])} each)"
    known = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
    return known.get(hint, getattr(hint, "__name__", str(hint)))
