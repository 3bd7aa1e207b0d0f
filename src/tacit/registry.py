"""What there is: every policy and every world of the three rooms, by name."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from tacit import networks
from tacit.arms.corruption import Corruption, RandomizedResponse
from tacit.networks import generators
from tacit.networks.classics import CLASSICS
from tacit.policy import Environment, Policy

__all__ = ["build", "environment_named", "environments", "policies", "policy_named"]

ROOMS = ("arms", "users", "agents")
D = TypeVar("D", bound=Policy | Environment)


def policies() -> dict[str, type[Policy]]:
    """Return every policy by its name, room by room."""
    return _members(Policy)


def environments() -> dict[str, type[Environment]]:
    """Return every world by its name, room by room."""
    return _members(Environment)


@cache
def _members(kind: type[D]) -> dict[str, type[D]]:
    found: dict[str, type[D]] = {}
    for room in ROOMS:
        module = importlib.import_module(f"tacit.{room}")
        for public in module.__all__:
            value = getattr(module, public)
            if isinstance(value, type) and issubclass(value, kind) and hasattr(value, "name"):
                found[value.name] = value
    return found


def policy_named(name: str) -> type[Policy]:
    """Return the policy called `name`, or say which ones there are."""
    return _named(policies(), "policy", name)


def environment_named(name: str) -> type[Environment]:
    """Return the world called `name`, or say which ones there are."""
    return _named(environments(), "world", name)


def _named(known: Mapping[str, type[D]], what: str, name: str) -> type[D]:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3) or sorted(known)
    raise ValueError(f"no {what} is called {name!r}; did you mean {', '.join(near)}?")


def build(kind: type[D], facts: Mapping[str, Any], parameters: Mapping[str, Any]) -> D:
    """Return the description `kind` with `parameters`, and with `facts` where it has none.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> build(UCB1, {"n_arms": 3, "horizon": 10}, {"exploration": 1.0})
    UCB1(n_arms=3, exploration=1.0)
    """
    described: Any = kind
    fields = {field.name for field in dataclasses.fields(described) if field.init}
    unknown = sorted(set(parameters) - fields)
    if unknown:
        has = ", ".join(sorted(fields)) or "none"
        raise ValueError(f"{kind.name} has no parameter {unknown[0]!r}; it has {has}")
    parameters = {name: _object(name, value) for name, value in parameters.items()}
    filled = {name: value for name, value in facts.items() if name in fields}
    try:
        return kind(**{**filled, **parameters})
    except TypeError as error:
        raise ValueError(f"{kind.name}: {error}") from None


def _object(parameter: str, value: Any) -> Any:
    """Turn what a study file can write into what a parameter takes.

    A network is a file's name or ``{name = "ring", n_nodes = 10}``; a corruption is
    ``{p00 = 0.8, p11 = 0.9}`` or ``{values = [0.9, 0.2]}``. Anything else is already what it is.
    """
    if parameter in ("network", "graph"):
        if isinstance(value, str):
            return networks.read_edges(value)
        if isinstance(value, Mapping):
            return _network(dict(value))
    if parameter == "corruption" and isinstance(value, Mapping):
        kind = Corruption if "values" in value else RandomizedResponse.of
        return _called("corruption", kind, dict(value))
    return value


def _network(spec: dict[str, Any]) -> networks.Graph:
    name = spec.pop("name", None)
    known = [n for n in generators.__all__ if n != "classic"]
    if name in known:
        graph: networks.Graph = _called(f"network {name}", getattr(generators, name), spec)
        return graph
    if name in CLASSICS:
        return networks.classic(str(name))
    raise ValueError(f"no network is called {name!r}; there are {', '.join([*known, *CLASSICS])}")


def _called(what: str, function: Any, arguments: dict[str, Any]) -> Any:
    try:
        return function(**arguments)
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from None
