"""Rules for parameters, written once: the check, the help, the study file and the schema read them.

A rule is part of a field's type, ``n_arms: Count``. ``check(self)`` in ``__post_init__`` holds every
field against its own; what joins several fields is said with `require`. Every complaint has one shape:
owner, parameter, rule, value.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any


@dataclass(frozen=True, eq=False)
class Constraint:
    """What a value must be: in words, as a predicate, and as keywords of JSON schema.

    Examples
    --------
    >>> even = Constraint("even", lambda value: value % 2 == 0)
    >>> even.holds(4)
    True
    """

    words: str
    holds: Callable[[Any], bool]
    schema: Mapping[str, Any] = field(default_factory=dict)


def one_of(*choices: str) -> Constraint:
    """Return the rule that a word is one of several.

    Examples
    --------
    >>> one_of("reward", "round").words
    'one of reward, round'
    """
    return Constraint(f"one of {', '.join(choices)}", choices.__contains__, {"enum": list(choices)})


Count = Annotated[int, Constraint(">= 1", lambda value: value >= 1, {"minimum": 1})]
"""A whole number, at least 1."""
Whole = Annotated[int, Constraint(">= 0", lambda value: value >= 0, {"minimum": 0})]
"""A whole number, at least 0."""
Positive = Annotated[
    float, Constraint("> 0 and finite", lambda v: 0 < v < math.inf, {"exclusiveMinimum": 0})
]
"""A finite number above 0."""
NonNegative = Annotated[
    float, Constraint(">= 0 and finite", lambda v: 0 <= v < math.inf, {"minimum": 0})
]
"""A finite number, at least 0."""
Finite = Annotated[float, Constraint("finite", math.isfinite)]
"""A number that is neither infinite nor NaN."""
Probability = Annotated[
    float, Constraint("in [0, 1]", lambda v: 0 <= v <= 1, {"minimum": 0, "maximum": 1})
]
"""A number from 0 to 1."""
Share = Annotated[
    float,
    Constraint("in (0, 1)", lambda v: 0 < v < 1, {"exclusiveMinimum": 0, "exclusiveMaximum": 1}),
]
"""A number strictly between 0 and 1."""


def require(owner: Any, parameter: str, rule: str, holds: bool, value: Any) -> None:
    """Raise ``ValueError`` in the one sentence shape every error of a parameter has.

    Examples
    --------
    >>> require("GAP", "epsilon", "> 0", False, -1.0)
    Traceback (most recent call last):
    ValueError: GAP: expected epsilon > 0, got -1.0
    """
    if not holds or (isinstance(value, float) and math.isnan(value)):
        name = owner if isinstance(owner, str) else type(owner).__name__
        raise ValueError(f"{name}: expected {parameter} {rule}, got {value!r}")


def check(owner: Any) -> None:
    """Hold every field of a dataclass against the rules of its type; None passes where it may be.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Coin:
    ...     tosses: Count
    ...     bias: Probability | None = None
    ...     def __post_init__(self):
    ...         check(self)
    >>> Coin(3)
    Coin(tosses=3, bias=None)
    >>> Coin(3, 1.5)
    Traceback (most recent call last):
    ValueError: Coin: expected bias in [0, 1], got 1.5
    """
    kind: Any = type(owner)
    for name, optional, rules in rules_of(kind):
        value = getattr(owner, name)
        if not (optional and value is None):
            for rule in rules:
                require(owner, name, rule.words, _holds(rule, value), value)


@cache
def rules_of(kind: type[Any]) -> tuple[tuple[str, bool, tuple[Constraint, ...]], ...]:
    """Return for each field of a dataclass its name, whether it may be None, and its rules."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = []
    for each in dataclasses.fields(kind):
        rules = tuple(_rules(hints[each.name]))
        if rules:
            found.append((each.name, _optional(hints[each.name]), rules))
    return tuple(found)


def _holds(rule: Constraint, value: Any) -> bool:
    try:
        return bool(rule.holds(value))
    except TypeError:
        return False


def _rules(hint: Any) -> Iterator[Constraint]:
    if typing.get_origin(hint) is Annotated:
        yield from (each for each in hint.__metadata__ if isinstance(each, Constraint))
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = [each for each in typing.get_args(hint) if each is not types.NoneType]
        if len(parts) == 1:
            yield from _rules(parts[0])


def _optional(hint: Any) -> bool:
    return types.NoneType in typing.get_args(hint)
