"""What there is: every policy and every environment of the three settings, by name."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from tacit import networks
from tacit.arms.corruption import Corruption
from tacit.networks import generators
from tacit.networks.classics import CLASSICS
from tacit.parameters import described
from tacit.policy import AnyEnvironment, AnyPolicy, Environment, Policy

__all__ = ["build", "build_both", "environment_named", "environments", "policies", "policy_named"]

SETTINGS = ("arms", "users", "diffusion", "dynamics")
D = TypeVar("D", bound=AnyPolicy | AnyEnvironment)


def policies() -> dict[str, type[AnyPolicy]]:
    """Return every policy by its name, setting by setting."""
    return _members(Policy)


def environments() -> dict[str, type[AnyEnvironment]]:
    """Return every environment by its name, setting by setting."""
    return _members(Environment)


@cache
def _members(kind: type[D]) -> dict[str, type[D]]:
    found: dict[str, type[D]] = {}
    for setting in SETTINGS:
        module = importlib.import_module(f"tacit.{setting}")
        for public in module.__all__:
            value = getattr(module, public)
            if isinstance(value, type) and issubclass(value, kind) and hasattr(value, "name"):
                found[value.name] = value
    return found


def policy_named(name: str) -> type[AnyPolicy]:
    """Return the policy called `name`, or say which ones there are."""
    return _named(policies(), "policy", name)


def environment_named(name: str) -> type[AnyEnvironment]:
    """Return the environment called `name`, or say which ones there are."""
    return _named(environments(), "environment", name)


def _named(known: Mapping[str, type[D]], what: str, name: Any) -> type[D]:
    if name is None:
        raise ValueError(f"every {what} needs a name; there are {', '.join(sorted(known))}")
    if isinstance(name, str) and name in known:
        return known[name]
    near = difflib.get_close_matches(str(name), known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
    raise ValueError(f"no {what} is called {name!r}; {hint}")


def build(kind: type[D], public: Mapping[str, Any], parameters: Mapping[str, Any]) -> D:
    """Return the description `kind` with `parameters`, and with `public` where it has none.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> build(UCB1, {"n_arms": 3, "horizon": 10}, {"exploration": 1.0})
    UCB1(n_arms=3, exploration=1.0)
    """
    written = {name: _object(name, value) for name, value in parameters.items()}
    return described(kind, kind.name, written, public)


def build_both(
    policy: Mapping[str, Any], environment: Mapping[str, Any], horizon: int
) -> tuple[AnyPolicy, AnyEnvironment]:
    """Return a policy and the environment it plays in; each is ``name`` and parameters.

    Examples
    --------
    >>> build_both({"name": "ucb1"}, {"name": "bernoulli", "means": [0.3, 0.7]}, horizon=10)[0]
    UCB1(n_arms=2, exploration=2.0)
    """
    chosen, place = dict(policy), dict(environment)
    kind = policy_named(chosen.pop("name", None))
    where = environment_named(place.pop("name", None))
    if kind.setting != where.setting:
        raise ValueError(
            f"{kind.name} is a policy of the setting {kind.setting!r}, {where.name} an environment "
            f"of {where.setting!r}; `tacit environments` lists them by setting"
        )
    built = build(where, {}, place)
    return build(kind, built.public_parameters(horizon), chosen), built


def _object(parameter: str, value: Any) -> Any:
    """Turn what a study file can write into what a parameter takes.

    A network is a file's name or ``{name = "ring", n_nodes = 10}``; an environment inside an environment is
    ``{name = "bernoulli", means = [0.3, 0.7]}``; a corruption is ``{p00 = 0.8, p11 = 0.9}`` or
    ``{values = [0.9, 0.2]}``. Anything else is already what it is.
    """
    if parameter in ("network", "graph"):
        if isinstance(value, str):
            return networks.read_edges(value)
        if isinstance(value, Mapping):
            return _network(dict(value))
    if parameter == "environment" and isinstance(value, Mapping):
        inner = dict(value)
        return build(environment_named(inner.pop("name", None)), {}, inner)
    if parameter == "corruption" and isinstance(value, Mapping):
        kind = Corruption if "values" in value else Corruption.of
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
