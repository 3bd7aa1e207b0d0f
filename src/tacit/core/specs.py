"""Parameters that a person wrote, held against what a description declares.

A field's type says everything: which values it takes (its rules, see `tacit.core.constraints`), and how
something written in a study file or on a command line becomes the object it stands for. The check, the
help, the study file's complaints and the JSON schema all read the same annotations.

How a written value becomes an object is the type's own business:

- a class with a classmethod ``from_spec(value)`` makes itself from a word or a mapping (a graph from the
  name of a file);
- a base class whose subclasses have names is given a function with `converter` (an environment from
  ``{name = "bernoulli", means = [0.3, 0.7]}``);
- a dataclass with a ``kind: ClassVar[str]`` is written ``{kind = "per-reward", epsilon = 1.0}``, alone or
  as one of a union of them; the word alone is enough where every parameter has a default;
- ``"none"`` is None where None is allowed and no other word is.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import re
import tomllib
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from tacit.core.constraints import Constraint, require

D = TypeVar("D")
Converter = Callable[[Any, type[Any]], Any]
_converters: dict[type[Any], tuple[Converter, Mapping[str, Any]]] = {}
_NONE: Any = type(None)
_PLAIN = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
_JSON = {int: "integer", float: "number", str: "string", bool: "boolean", _NONE: "null"}


def converter(base: type[Any], schema: Mapping[str, Any]) -> Callable[[Converter], Converter]:
    """Register ``function(value, kind)``, which makes a `kind`, a subclass of `base`, from words or mappings.

    Parameters
    ----------
    base : type
    schema : mapping
        What may be written, as JSON schema.
    """

    def register(function: Converter) -> Converter:
        _converters[base] = (function, schema)
        return function

    return register


def build_dataclass(
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
    >>> build_dataclass(UCB1, "ucb1", {"exploration": "wide"}, {"n_arms": 3})
    Traceback (most recent call last):
    ValueError: UCB1: expected exploration to be a number, got 'wide'
    """
    fields = _fields(kind)
    unknown = sorted(set(parameters) - set(fields))
    if unknown:
        has = ", ".join(sorted(fields)) or "none"
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {has}")
    hints = _hints(typing.cast(Any, kind))
    given = {key: value for key, value in (public or {}).items() if key in fields}
    for key, written in parameters.items():
        value = _converted(written, hints[key], key, public or {})
        fits = _fits(value, hints[key])
        require(kind.__name__, key, f"to be {_words(hints[key])}", fits, written)
        given[key] = value
    missing = [key for key, field in fields.items() if key not in given and _required(field)]
    if missing:
        raise ValueError(f"{name} needs {', '.join(missing)}: {_example(kind, name, missing[0])}")
    return kind(**given)


def _example(kind: Any, name: str, parameter: str) -> str:
    if _has_kind(kind):
        return f'{{kind="{kind.kind}",{parameter}=...}}'
    return f"{name}:{parameter}=..."


def parse_spec(text: str) -> dict[str, Any]:
    """Parse ``name:parameter=value,...`` or ``module:Name:parameter=value,...``.

    Values are TOML, else plain words.

    Examples
    --------
    >>> parse_spec("klucb-cf:epsilon=1")
    {'name': 'klucb-cf', 'epsilon': 1}
    >>> parse_spec("my_module:MyPolicy:window=log")
    {'name': 'my_module:MyPolicy', 'window': 'log'}
    """
    name, _, rest = text.partition(":")
    public, colon, parameters = rest.partition(":")
    if public.isidentifier() and (public[0].isupper() or colon):  # something in a module
        name, rest = f"{name}:{public}", parameters
    spec: dict[str, Any] = {"name": name}
    for part in _split(rest):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ValueError(
                f"{text!r}: expected NAME:parameter=value or MODULE:Class, got {part!r}"
            )
        if key in spec:
            raise ValueError(f"{text!r}: {key} is written twice")
        try:
            spec[key] = tomllib.loads(f"v = {value}")["v"]
        except tomllib.TOMLDecodeError:
            if value.strip().startswith(("[", "{")):
                raise ValueError(
                    f"{text!r}: cannot read {value}; inside brackets words need quotes, as in "
                    "'graph={name=\"ring\",n_nodes=5}'"
                ) from None
            spec[key] = value.strip()
    return spec


def _split(text: str) -> Iterator[str]:
    """Split at the commas that are not inside brackets."""
    depth, part = 0, ""
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            yield part
            part = ""
        else:
            part += character
    if part:
        yield part


@dataclass(frozen=True)
class Parameter:
    """One parameter, for people."""

    name: str
    takes: str
    """Type and rules in words."""
    default: str
    """As written in Python; empty where there is none."""
    means: str
    """From the docstring."""


def parameters_of(kind: type[Any]) -> list[Parameter]:
    """Return the parameters of a description: what each takes, its default, what it means.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> [(each.name, each.takes, each.default) for each in parameters_of(UCB1)]
    [('n_arms', 'a whole number, >= 1', ''), ('exploration', 'a number, >= 0 and finite', '2.0')]
    """
    hints, meanings = _hints(typing.cast(Any, kind)), _meanings(kind)
    return [
        Parameter(name, _takes(hints[name]), _default_words(field), meanings.get(name, ""))
        for name, field in _fields(kind).items()
    ]


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON schema of what may be written for a description.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> schema_of(UCB1)["properties"]["n_arms"]
    {'type': 'integer', 'minimum': 1, 'description': 'Number of arms K.'}
    """
    hints, meanings, fields = _hints(typing.cast(Any, kind)), _meanings(kind), _fields(kind)
    properties: dict[str, Any] = {}
    if isinstance(getattr(kind, "kind", None), str):
        properties["kind"] = {"const": kind.kind}
    for name, field in fields.items():
        properties[name] = _schema(hints[name])
        if name in meanings:
            properties[name]["description"] = meanings[name]
        default = _plain_default(field)
        if default is not None:
            properties[name]["default"] = default
    found: dict[str, Any] = {"type": "object", "title": getattr(kind, "name", kind.__name__)}
    if getattr(kind, "summary", ""):
        found["description"] = kind.summary
    needed = [name for name, field in fields.items() if _required(field)]
    if "kind" in properties and "kind" not in fields:
        needed.insert(0, "kind")
    return {
        **found,
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _converted(value: Any, hint: Any, parameter: str, public: Mapping[str, Any]) -> Any:
    """Return what `value` stands for where a field's type is `hint`; itself if it stands for nothing."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _converted(value, inner[0], parameter, public)
    if origin in (typing.Union, types.UnionType):
        return _converted_member(value, inner, parameter, public)
    if origin in (tuple, Sequence) and isinstance(value, list | tuple):
        each = (inner[0],) * len(value) if origin is Sequence or inner[-1] is Ellipsis else inner
        if len(each) != len(value):
            return value
        parts = [_converted(v, h, parameter, public) for v, h in zip(value, each, strict=True)]
        return tuple(parts) if origin is tuple else parts
    if hint is float and isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return float(value)
    if not isinstance(hint, type) or _fits(value, hint):
        return value
    return _made(value, hint, parameter, public)


def _converted_member(
    value: Any, members: tuple[Any, ...], parameter: str, public: Mapping[str, Any]
) -> Any:
    exact = [each for each in members if each is not Any and _fits(value, each)]
    if exact:
        whole = [each for each in exact if _bare(each) is int]
        return _converted(value, (whole or exact)[0], parameter, public)
    bare = [_bare(each) for each in members]
    if value == "none" and _NONE in bare and str not in bare:
        return None
    kinds = {each.kind: each for each in bare if _has_kind(each)}
    if kinds and isinstance(value, str | Mapping):
        return _made_of_kind(value, kinds, parameter, public)
    for each in members:
        made = _converted(value, each, parameter, public)
        if each is not Any and _fits(made, each):
            return made
    return value


def _made(value: Any, hint: type[Any], parameter: str, public: Mapping[str, Any]) -> Any:
    if not isinstance(value, str | Mapping):
        return value
    if hasattr(hint, "from_spec"):
        return _called(parameter, hint.from_spec, value)
    for base, (function, _) in _converters.items():
        if issubclass(hint, base):
            return _called(parameter, function, value, hint)
    if _has_kind(hint):
        return _made_of_kind(value, {hint.kind: hint}, parameter, public)
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return build_dataclass(hint, parameter, value, public)
    return value


def _made_of_kind(
    value: Any, kinds: Mapping[str, type[Any]], parameter: str, public: Mapping[str, Any]
) -> Any:
    rest = {"kind": value} if isinstance(value, str) else dict(value)
    kind = rest.pop("kind", None)
    if kind not in kinds:
        known = ", ".join(kinds)
        raise ValueError(f"{parameter}: expected kind one of {known}, got {kind!r}")
    return build_dataclass(kinds[kind], f"{parameter} {kind}", rest, public)


def _called(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from None


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value can be what an annotation says."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _fits(value, inner[0])
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if origin in (tuple, Sequence):
        if not isinstance(value, list | tuple):
            return False
        if origin is Sequence or inner[-1] is Ellipsis:
            inner = (inner[0],) * len(value)
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if hint in (int, float):
        kind = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, kind) and not isinstance(value, bool)
    return hint is Any or isinstance(value, origin or hint)


def _words(hint: Any) -> str:
    """Return a type in words."""
    hint = _bare(hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(each) for each in inner if each is not _NONE))
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin in (tuple, Sequence):
        return f"a list ({_words(inner[0])} each)"
    if hint is Any:
        return "data"
    if hint is Path:
        return "a file"
    if _has_kind(hint):
        return f"of kind {hint.kind}"
    return _PLAIN.get(hint, getattr(hint, "__name__", str(hint)))


def _takes(hint: Any) -> str:
    """Return a type and its rules in words."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        rules = [each.words for each in hint.__metadata__ if isinstance(each, Constraint)]
        if _bare(hint) is str and rules:
            return ", ".join(rules)
        return ", ".join([_words(hint), *rules])
    if origin in (typing.Union, types.UnionType):
        parts = dict.fromkeys(_takes(each) for each in inner if each is not _NONE)
        words = " or ".join(parts)
        if _NONE in inner:
            words += ", or none" if "," in words else " or none"
        return words
    if origin in (tuple, Sequence):
        return f"a list ({_takes(inner[0])} each)"
    return _words(hint)


def _schema(hint: Any) -> dict[str, Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        found = _schema(inner[0])
        for each in hint.__metadata__:
            if isinstance(each, Constraint):
                found.update(each.schema)
        return found
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(each) for each in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (tuple, Sequence):
        if origin is Sequence or inner[-1] is Ellipsis:
            return {"type": "array", "items": _schema(inner[0])}
        n = len(inner)
        return {
            "type": "array",
            "prefixItems": [_schema(each) for each in inner],
            "minItems": n,
            "maxItems": n,
        }
    if hint in _JSON:
        return {"type": _JSON[hint]}
    if hint is Path:
        return {"type": "string"}
    if not isinstance(hint, type):
        return {}
    if hasattr(hint, "spec_schema"):
        return dict(hint.spec_schema)
    for base, (_, schema) in _converters.items():
        if issubclass(hint, base):
            return dict(schema)
    return schema_of(hint) if dataclasses.is_dataclass(hint) else {}


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _has_kind(hint: Any) -> bool:
    is_description = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    return is_description and isinstance(getattr(hint, "kind", None), str)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _fields(kind: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    found = dataclasses.fields(typing.cast(Any, kind))
    return {field.name: field for field in found if field.init}


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _default_words(field: dataclasses.Field[Any]) -> str:
    return "" if _required(field) else repr(_default(field))


def _plain_default(field: dataclasses.Field[Any]) -> Any:
    default = None if _required(field) else _default(field)
    if isinstance(default, float) and not math.isfinite(default):
        return None
    return default if isinstance(default, int | float | str) else None


def _meanings(kind: type[Any]) -> dict[str, str]:
    """Return what the docstrings of a class and its bases say about each parameter."""
    found: dict[str, str] = {}
    for each in kind.__mro__:
        for name, text in _documented(each.__dict__.get("__doc__") or ""):
            found.setdefault(name, text)
    return found


def _documented(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the section "Parameters" of a numpydoc docstring."""
    text = inspect.cleandoc(docstring)
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\w[^\n]*\n-+\n|\Z)", text, re.S)
    if section is None:
        return
    names: list[str] = []
    lines: list[str] = []
    for line in [*section[1].splitlines(), "end :"]:
        if line and not line[0].isspace():
            for name in names:
                yield name, " ".join(" ".join(lines).split())
            names, lines = [each.strip() for each in line.partition(" :")[0].split(",")], []
        else:
            lines.append(line)
