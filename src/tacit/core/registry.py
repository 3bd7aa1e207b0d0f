"""What there is: every policy and every environment, by name.

A setting is a module that an entry point of the group ``tacit.settings`` names; its public policies and
environments are known to every command, the built-in settings in the same way as anybody's. `register` adds
one in this process, and ``module:Name`` is understood wherever a name is.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from tacit.core.policy import AnyEnvironment, AnyPolicy, Environment, Policy
from tacit.core.specs import build_dataclass, converter, parse_spec

GROUP = "tacit.settings"
D = TypeVar("D", bound=AnyPolicy | AnyEnvironment)
K = TypeVar("K", bound=type[Any])
_registered: dict[str, dict[str, type[Any]]] = {"policy": {}, "environment": {}}


def register(kind: K) -> K:
    """Make a policy or environment of one's own known by its name, in this process; a decorator.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import UCB1
    >>> @tacit.register
    ... class Bold(UCB1):
    ...     name = "bold"
    >>> tacit.core.registry.policy_named("bold")
    <class 'tacit.core.registry.Bold'>
    """
    what = _what(kind)
    named = isinstance(getattr(kind, "name", None), str)
    if what is None or not named:
        raise ValueError(
            f"register: expected a Policy or Environment class with a name, got {kind!r}"
        )
    other = _installed(what).get(kind.name)
    if other is not None and other.__qualname__ != kind.__qualname__:
        raise ValueError(f"register: {kind.name!r} is the name of {other.__qualname__} already")
    _registered[what][kind.name] = kind
    return kind


def policies() -> dict[str, type[AnyPolicy]]:
    """Return every policy by its name, setting by setting."""
    return {**_installed("policy"), **_registered["policy"]}


def environments() -> dict[str, type[AnyEnvironment]]:
    """Return every environment by its name, setting by setting."""
    return {**_installed("environment"), **_registered["environment"]}


def _what(kind: Any) -> str | None:
    for what, base in (("policy", Policy), ("environment", Environment)):
        if isinstance(kind, type) and issubclass(kind, base):
            return what
    return None


@cache
def _installed(what: str) -> dict[str, type[Any]]:
    found: dict[str, type[Any]] = {}
    points = entry_points(group=GROUP)
    if not points:
        raise ValueError("no settings are installed; install tacit with pip (pip install -e .)")
    for point in points:
        module = point.load()
        for public in module.__all__:
            kind = getattr(module, public)
            if _what(kind) != what or not hasattr(kind, "name"):
                continue
            other = found.setdefault(kind.name, kind)
            if other is not kind:
                raise ValueError(
                    f"two {what} classes are called {kind.name!r}: "
                    f"{other.__module__}:{other.__qualname__} and {point.value}:{public}"
                )
    return found


def policy_named(name: Any) -> type[AnyPolicy]:
    """Return the policy called `name`, or ``module:Name``, or say which ones there are.

    A class is taken as it is; one in plain Python, with ``select`` and ``update``, is made a policy by the
    setting that it suits.
    """
    return _named(policies(), "policy", name)


def environment_named(name: Any) -> type[AnyEnvironment]:
    """Return the environment called `name`, or ``module:Name``, or say which ones there are.

    A class is taken as it is; a plain function is made an environment by the setting that it suits.
    """
    return _named(environments(), "environment", name)


def _named(known: Mapping[str, type[D]], what: str, name: Any) -> type[D]:
    if name is None:
        raise ValueError(f"every {what} needs a name, such as {min(known)}")
    if isinstance(name, str):
        if name in known:
            return known[name]
        if ":" in name:
            kind: type[D] = _imported(what, name)
            return kind
    elif (adopted := _adopted(what, name)) is not None:
        taken: type[D] = adopted
        return taken
    near = difflib.get_close_matches(str(name), known, n=3)
    listed = {"policy": "policies", "environment": "environments"}[what]
    hint = f"did you mean {' or '.join(near)}?" if near else f"`tacit {listed}` lists them"
    raise ValueError(f"no {what} is called {name!r}; {hint}")


def _imported(what: str, name: str) -> Any:
    """Return the class ``module:Name``; modules in the working folder are found too."""
    module_name, _, public = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(f"{name}: cannot import {module_name} ({error})") from None
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise ValueError(f"{name}: {module_name} fails when imported ({fault})") from error
    kind = _adopted(what, getattr(module, public, None))
    if kind is not None:
        return kind
    own = [key for key, value in vars(module).items() if _what(value) == what]
    hint = f"it has {', '.join(own)}" if own else f"it has no {what}"
    raise ValueError(f"{name}: expected a {what} class in {module_name}; {hint}")


def _adopted(what: str, thing: Any) -> Any:
    """Return `thing` if it is a class of the kind wanted, else what a setting makes of it."""
    if _what(thing) == what:
        return thing
    if thing is None or _what(thing) is not None:
        return None
    for point in entry_points(group=GROUP):
        adopt = getattr(point.load(), "wrap_plain_python", None)
        made = None if adopt is None else adopt(what, thing)
        if made is not None:
            return made
    return None


def build_named(
    given: str | Mapping[str, Any],
    named: Callable[[Any], type[D]],
    public: Mapping[str, Any] | None = None,
) -> D:
    """Return what is written as ``name:parameter=value`` or as a mapping with a name.

    Examples
    --------
    >>> build_named("bernoulli:means=[0.3,0.7]", environment_named)
    Bernoulli(means=(0.3, 0.7))
    """
    spec = parse_spec(given) if isinstance(given, str) else dict(given)
    return build(named(spec.pop("name", None)), public or {}, spec)


def build(kind: type[D], public: Mapping[str, Any], parameters: Mapping[str, Any]) -> D:
    """Return the description `kind` with `parameters`, and with `public` where it has none.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> build(UCB1, {"n_arms": 3, "horizon": 10}, {"exploration": 1.0})
    UCB1(n_arms=3, exploration=1.0)
    """
    return build_dataclass(kind, getattr(kind, "name", kind.__name__), parameters, public)


def build_pair(
    policy: str | Mapping[str, Any],
    environment: str | Mapping[str, Any] | AnyEnvironment,
    horizon: int,
) -> tuple[AnyPolicy, AnyEnvironment]:
    """Return a policy and the environment it plays in, each built from its name and parameters.

    The environment fills the parameters of the policy that are public: sizes, the horizon and more.

    Parameters
    ----------
    policy : str or mapping
        ``"name:parameter=value,..."``, or a mapping with ``name`` and the parameters.
    environment : str, mapping or Environment
        The same, or one that is built already.
    horizon : int
        Number of rounds T.

    Examples
    --------
    >>> import tacit
    >>> policy, environment = tacit.build("ucb1", "bernoulli:means=[0.3,0.7]", horizon=10)
    >>> policy
    UCB1(n_arms=2, exploration=2.0)
    >>> tacit.build({"name": "klucb-cf", "epsilon": 1.0}, environment, horizon=10)[0].epsilon
    1.0
    """
    chosen = parse_spec(policy) if isinstance(policy, str) else dict(policy)
    kind = policy_named(chosen.pop("name", None))
    place: dict[str, Any] = {}
    where: type[AnyEnvironment] | AnyEnvironment
    if isinstance(environment, Environment):
        where = environment
    else:
        place = parse_spec(environment) if isinstance(environment, str) else dict(environment)
        where = environment_named(place.pop("name", None))
    if kind.setting != where.setting:
        raise ValueError(
            f"{kind.name} is a policy of the setting {kind.setting!r}, {where.name} an environment "
            f"of {where.setting!r}; `tacit environments` lists them by setting"
        )
    built = build(where, {}, place) if isinstance(where, type) else where
    return build(kind, built.public_parameters(horizon), chosen), built


_NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@converter(Environment, _NAMED)
def _environment(value: Any, kind: type[Any]) -> Any:
    return build_named(value, environment_named)


@converter(Policy, _NAMED)
def _policy(value: Any, kind: type[Any]) -> Any:
    return build_named(value, policy_named)
