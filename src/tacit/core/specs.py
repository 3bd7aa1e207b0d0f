"""Parameters that a person wrote, held against what a description declares.

A field's type says everything: which values it takes (its rules, see `tacit.core.constraints`), and how
something written in a study file or on a command line becomes the object it stands for. `_read` reads a
type once; the check, the help, the study file's complaints and the JSON schema use what it found.

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
from dataclasses import MISSING, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from tacit.core.constraints import Constraint, require

D = TypeVar("D")
Public = Mapping[str, Any]
Converter = Callable[[Any, type[Any]], Any]
_converters: dict[type[Any], tuple[Converter, Mapping[str, Any]]] = {}
_NONE: Any = type(None)
_WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
_WORDS |= {Any: "data", Path: "a file"}
_JSON = {int: "integer", float: "number", str: "string", bool: "boolean", _NONE: "null"}
_JSON |= {Path: "string"}


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
    kind: type[D], name: str, parameters: Mapping[str, Any], public: Public | None = None
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
    description: Any = kind
    fields, public = _fields(description), public or {}
    unknown = sorted(set(parameters) - set(fields))
    if unknown:
        has = ", ".join(sorted(fields)) or "none"
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {has}")
    given = {key: value for key, value in public.items() if key in fields}
    for key, written in parameters.items():
        takes = fields[key].takes
        given[key] = value = takes.convert(written, key, public)
        require(kind.__name__, key, f"to be {takes.words}", takes.fits(value), written)
    missing = [
        key for key, field in fields.items() if field.default is MISSING and key not in given
    ]
    if missing:
        example = f"{name}:{missing[0]}=..."
        if _has_kind(kind):
            example = f'{{kind="{description.kind}",{missing[0]}=...}}'
        raise ValueError(f"{name} needs {', '.join(missing)}: {example}")
    return kind(**given)


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


def parameters_of(kind: Any) -> list[Parameter]:
    """Return the parameters of a description: what each takes, its default, what it means.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> [(each.name, each.takes, each.default) for each in parameters_of(UCB1)]
    [('n_arms', 'a whole number, >= 1', ''), ('exploration', 'a number, >= 0 and finite', '2.0')]
    """
    meanings = _meanings(kind)
    return [
        Parameter(
            name,
            field.takes.help,
            "" if field.default is MISSING else repr(field.default),
            meanings.get(name, ""),
        )
        for name, field in _fields(kind).items()
    ]


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of what may be written for a description.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> schema_of(UCB1)["properties"]["n_arms"]
    {'type': 'integer', 'minimum': 1, 'description': 'Number of arms K.'}
    """
    meanings, fields = _meanings(kind), _fields(kind)
    properties: dict[str, Any] = {"kind": {"const": kind.kind}} if _has_kind(kind) else {}
    needed = list(properties)
    for name, field in fields.items():
        properties[name] = field.takes.schema()
        if name in meanings:
            properties[name]["description"] = meanings[name]
        default = field.default
        is_finite = not isinstance(default, float) or math.isfinite(default)
        if isinstance(default, int | float | str) and is_finite:
            properties[name]["default"] = default
        if default is MISSING:
            needed.append(name)
    found: dict[str, Any] = {"type": "object", "title": getattr(kind, "name", kind.__name__)}
    if getattr(kind, "summary", ""):
        found["description"] = kind.summary
    return found | {"properties": properties, "required": needed, "additionalProperties": False}


class _Type(NamedTuple):
    """What an annotation says about values."""

    hint: Any
    """The annotation without its rules."""
    fits: Callable[[Any], bool]
    """Whether a value can be what the annotation says."""
    convert: Callable[[Any, str, Public], Any]
    """Returns what a written value stands for; the value itself if it stands for nothing."""
    words: str
    help: str
    """The words, with the rules."""
    schema: Callable[[], dict[str, Any]]


class _Field(NamedTuple):
    takes: _Type
    default: Any


@cache
def _fields(kind: Any) -> dict[str, _Field]:
    """Return the parameters of a dataclass by name: what each takes, and its default or ``MISSING``."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        each.name: _Field(
            _read(hints[each.name]),
            each.default if each.default_factory is MISSING else each.default_factory(),
        )
        for each in dataclasses.fields(kind)
        if each.init
    }


def _read(hint: Any) -> _Type:
    """Return what an annotation says: the one place that goes through a type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        base = _read(inner[0])
        rules = [each for each in inner[1:] if isinstance(each, Constraint)]
        said = [] if rules and base.hint is str else [base.words]
        extra = {key: value for rule in rules for key, value in rule.schema.items()}
        return base._replace(
            help=", ".join(said + [rule.words for rule in rules]),
            schema=lambda: base.schema() | extra,
        )
    if origin in (typing.Union, types.UnionType):
        members = [_read(each) for each in inner]
        some = [each for each in members if each.hint is not _NONE]
        words = " or ".join(dict.fromkeys(each.words for each in some))
        help = " or ".join(dict.fromkeys(each.help for each in some))
        if len(some) < len(members):
            help += ", or none" if "," in help else " or none"
        return _Type(
            hint,
            lambda value: any(each.fits(value) for each in members),
            partial(_convert_member, members),
            words,
            help,
            lambda: {"anyOf": [each.schema() for each in members]},
        )
    if origin in (tuple, Sequence):
        return _read_list(hint, origin, inner)
    if origin is Literal:
        words = f"one of {', '.join(map(str, inner))}"
        return _Type(hint, inner.__contains__, _return, words, words, lambda: {"enum": list(inner)})
    words = f"of kind {hint.kind}" if _has_kind(hint) else getattr(hint, "__name__", str(hint))
    words = _WORDS.get(hint, words)
    fits = partial(_is_instance, origin or hint)
    return _Type(hint, fits, partial(_convert, hint), words, words, partial(_schema, hint))


def _read_list(hint: Any, origin: Any, inner: tuple[Any, ...]) -> _Type:
    any_length = origin is Sequence or inner[-1] is Ellipsis
    each = [_read(part) for part in (inner[:1] if any_length else inner)]

    def fits(value: Any) -> bool:
        if not isinstance(value, list | tuple):
            return False
        types = each * len(value) if any_length else each
        return len(types) == len(value) and all(
            t.fits(v) for t, v in zip(types, value, strict=True)
        )

    def convert(value: Any, parameter: str, public: Public) -> Any:
        if not isinstance(value, list | tuple):
            return value
        types = each * len(value) if any_length else each
        if len(types) != len(value):
            return value
        parts = [t.convert(v, parameter, public) for t, v in zip(types, value, strict=True)]
        return tuple(parts) if origin is tuple else parts

    def schema() -> dict[str, Any]:
        if any_length:
            return {"type": "array", "items": each[0].schema()}
        n = {"minItems": len(each), "maxItems": len(each)}
        return {"type": "array", "prefixItems": [part.schema() for part in each], **n}

    words, help = (f"a list ({said} each)" for said in (each[0].words, each[0].help))
    return _Type(hint, fits, convert, words, help, schema)


def _is_instance(kind: Any, value: Any) -> bool:
    if kind in (int, float):
        number = numbers.Integral if kind is int else numbers.Real
        return isinstance(value, number) and not isinstance(value, bool)
    return kind is Any or isinstance(value, kind)


def _return(value: Any, parameter: str, public: Public) -> Any:
    return value


def _convert_member(members: list[_Type], value: Any, parameter: str, public: Public) -> Any:
    """Convert a value to that member of a union which it fits, or which can be made of it."""
    known = [each for each in members if each.hint is not Any]
    hints = [each.hint for each in members]
    exact = [each for each in known if each.fits(value)]
    if exact:
        whole = [each for each in exact if each.hint is int]
        return (whole or exact)[0].convert(value, parameter, public)
    if value == "none" and _NONE in hints and str not in hints:
        return None
    kinds: dict[str, Any] = {each.kind: each for each in hints if _has_kind(each)}
    if kinds and isinstance(value, str | Mapping):
        return _convert_kind(kinds, value, parameter, public)
    for each in known:
        made = each.convert(value, parameter, public)
        if each.fits(made):
            return made
    return value


def _convert(hint: Any, value: Any, parameter: str, public: Public) -> Any:
    """Convert a value to a class."""
    kind: Any
    if hint is float and isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return float(value)
    if not isinstance(hint, type) or not isinstance(value, str | Mapping):
        return value
    if _is_instance(hint, value):
        return value
    try:
        if hasattr(hint, "from_spec"):
            return hint.from_spec(value)
        for base, (function, _) in _converters.items():
            if issubclass(hint, base):
                return function(value, hint)
    except TypeError as error:
        raise ValueError(f"{parameter}: {error}") from None
    if _has_kind(kind := hint):
        return _convert_kind({kind.kind: kind}, value, parameter, public)
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return build_dataclass(hint, parameter, value, public)
    return value


def _convert_kind(
    kinds: Mapping[str, type[Any]], value: Any, parameter: str, public: Public
) -> Any:
    rest = {"kind": value} if isinstance(value, str) else dict(value)
    kind = rest.pop("kind", None)
    if kind not in kinds:
        known = ", ".join(kinds)
        raise ValueError(f"{parameter}: expected kind one of {known}, got {kind!r}")
    return build_dataclass(kinds[kind], f"{parameter} {kind}", rest, public)


def _schema(hint: Any) -> dict[str, Any]:
    """Return the schema of a class."""
    if hint in _JSON:
        return {"type": _JSON[hint]}
    if hasattr(hint, "spec_schema"):
        return dict(hint.spec_schema)
    if not isinstance(hint, type):
        return {}
    for base, (_, schema) in _converters.items():
        if issubclass(hint, base):
            return dict(schema)
    return schema_of(hint) if dataclasses.is_dataclass(hint) else {}


def _has_kind(hint: Any) -> bool:
    is_description = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    return is_description and isinstance(getattr(hint, "kind", None), str)


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
