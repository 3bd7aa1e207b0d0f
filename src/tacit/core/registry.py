"""What there is: every policy and every environment, by name.

A setting is a module that an entry point of the group ``tacit.settings`` names; its public policies and
environments are known to every command, the built-in settings in the same way as anybody's. `register` adds
one in this process, and ``module:Name`` is understood wherever a name is.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from tacit.core.policy import (
    AnyEnvironment,
    AnyPolicy,
    Environment,
    Policy,
    require_same_setting,
)
from tacit.core.specs import build_dataclass, converter, parse_spec

GROUP = "tacit.settings"
D = TypeVar("D", bound=AnyPolicy | AnyEnvironment)
K = TypeVar("K", bound=type[Any])
_BASES: dict[str, Any] = {"policy": Policy, "environment": Environment}
_registered: dict[str, dict[str, type[Any]]] = {what: {} for what in _BASES}


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
    if what is None or not isinstance(getattr(kind, "name", None), str):
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


def policy_named(name: Any) -> type[AnyPolicy]:
    """Return the policy called `name`, or ``module:Name``, or say which ones there are.

    A class is taken as it is; one in plain Python, with ``select`` and ``update``, is made a policy by the
    setting that it suits.
    """
    kind: type[AnyPolicy] = _find("policy", name)
    return kind


def environment_named(name: Any) -> type[AnyEnvironment]:
    """Return the environment called `name`, or ``module:Name``, or say which ones there are.

    A class is taken as it is; a plain function is made an environment by the setting that it suits.
    """
    kind: type[AnyEnvironment] = _find("environment", name)
    return kind


def build(kind: type[D], public: Mapping[str, Any], parameters: Mapping[str, Any]) -> D:
    """Return the description `kind` with `parameters`, and with `public` where it has none.

    Examples
    --------
    >>> from tacit.arms import UCB1
    >>> build(UCB1, {"n_arms": 3, "horizon": 10}, {"exploration": 1.0})
    UCB1(n_arms=3, exploration=1.0)
    """
    if not isinstance(kind, type):  # built already
        return kind
    return build_dataclass(kind, getattr(kind, "name", kind.__name__), parameters, public)


def build_policy(given: Any, public: Mapping[str, Any]) -> AnyPolicy:
    """Return a policy: one that is built already, or what is written, or a class.

    Parameters
    ----------
    given : Policy, str, mapping or class
        ``"name:parameter=value,..."``, or a mapping with ``name`` and the parameters.
    public : mapping
        Fills the parameters that are not given: sizes, the horizon and more.

    Examples
    --------
    >>> build_policy("ucb1:exploration=1", {"n_arms": 3, "horizon": 10})
    UCB1(n_arms=3, exploration=1.0)
    """
    kind, parameters = _parse("policy", given)
    policy: AnyPolicy = build(kind, public, parameters)
    return policy


def build_environment(given: Any, policy: Any = None) -> AnyEnvironment:
    """Return an environment: one that is built already, or what is written.

    Parameters
    ----------
    given : Environment, str or mapping, optional
        ``"name:parameter=value,..."``, or a mapping with ``name`` and the parameters; by default the
        example of `policy`.
    policy : optional
        As for `build_policy`.

    Examples
    --------
    >>> build_environment("bernoulli:means=[0.3,0.7]")
    Bernoulli(means=(0.3, 0.7))
    """
    kind, parameters = _parse(
        "environment", example_environment(policy) if given is None else given
    )
    environment: AnyEnvironment = build(kind, {}, parameters)
    return environment


def build_pair(policy: Any, environment: Any, horizon: int) -> tuple[AnyPolicy, AnyEnvironment]:
    """Return a policy and the environment it plays in, each built from its name and parameters.

    The environment fills the parameters of the policy that are public: sizes, the horizon and more.

    Parameters
    ----------
    policy : Policy, str, mapping or class
        As for `build_policy`.
    environment : Environment, str, mapping or None
        As for `build_environment`; None for the policy's own example.
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
    kind, parameters = _parse("policy", policy)
    where, place = _parse(
        "environment", example_environment(kind) if environment is None else environment
    )
    require_same_setting(kind, where)
    built: AnyEnvironment = build(where, {}, place)
    chosen: AnyPolicy = build(kind, built.public_parameters(horizon), parameters)
    return chosen, built


def _parse(what: str, given: Any) -> tuple[Any, dict[str, Any]]:
    """Return a class, or an object that is built already, and the parameters that were written."""
    if isinstance(given, str | Mapping):
        spec = parse_spec(given) if isinstance(given, str) else dict(given)
        return _find(what, spec.pop("name", None)), spec
    if isinstance(given, _BASES[what]):
        return given, {}
    if what == "policy" and isinstance(given, type):
        return _find(what, given), {}
    if what == "policy":
        raise ValueError(f"expected a policy, its class or its name, got {given!r}")
    raise ValueError(
        f"expected an environment or its name, got {given!r}; a function of your own "
        "becomes one with tacit.arms.RewardFunction(function=..., n_arms=...)"
    )


def example_environment(policy: Any) -> str:
    """Return the environment that a policy is tried in unless another one is named."""
    kind, _ = _parse("policy", policy)
    if not hasattr(kind, "example_environment"):
        raise ValueError("expected an environment, got none")
    example: str = kind.example_environment
    return example


def _what(kind: Any) -> str | None:
    is_class = isinstance(kind, type)
    return next((w for w, base in _BASES.items() if is_class and issubclass(kind, base)), None)


@cache
def _settings() -> list[EntryPoint]:
    """Return the settings, those of Tacit first: they are most likely asked for."""
    points = entry_points(group=GROUP)
    if not points:
        raise ValueError("no settings are installed; install tacit with pip (pip install -e .)")
    return sorted(points, key=lambda point: not point.value.startswith("tacit."))


@cache
def _classes(point: EntryPoint, what: str) -> dict[str, type[Any]]:
    """Return the policies or environments of one setting by name."""
    module = point.load()
    kinds = [getattr(module, public) for public in module.__all__]
    return {kind.name: kind for kind in kinds if _what(kind) == what and hasattr(kind, "name")}


@cache
def _installed(what: str) -> dict[str, type[Any]]:
    found: dict[str, type[Any]] = {}
    for point in _settings():
        for name, kind in _classes(point, what).items():
            other = found.setdefault(name, kind)
            if other is not kind:
                raise ValueError(
                    f"two {what} classes are called {name!r}: "
                    f"{other.__module__}:{other.__qualname__} and {point.value}:{kind.__qualname__}"
                )
    return found


def _find(what: str, name: Any) -> Any:
    """Return the class that is meant by a name, by ``module:Name`` or by itself."""
    if name is None:
        raise ValueError(f"every {what} needs a name, such as {min(_installed(what))}")
    if isinstance(name, str):
        if name in _registered[what]:
            return _registered[what][name]
        own = all(point.value.startswith("tacit.") for point in _settings())
        # A setting from elsewhere may use a name of another one: then all of them are looked at.
        for kinds in (
            (_classes(point, what) for point in _settings()) if own else [_installed(what)]
        ):
            if name in kinds:
                return kinds[name]
        if ":" in name:
            return _import(what, name)
    elif (kind := _wrap(what, name)) is not None:
        return kind
    near = difflib.get_close_matches(str(name), {**_installed(what), **_registered[what]}, n=3)
    listed = {"policy": "policies", "environment": "environments"}[what]
    hint = f"did you mean {' or '.join(near)}?" if near else f"`tacit {listed}` lists them"
    raise ValueError(f"no {what} is called {name!r}; {hint}")


def _import(what: str, name: str) -> Any:
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
    kind = _wrap(what, getattr(module, public, None))
    if kind is not None:
        return kind
    own = [key for key, value in vars(module).items() if _what(value) == what]
    hint = f"it has {', '.join(own)}" if own else f"it has no {what}"
    raise ValueError(f"{name}: expected a {what} class in {module_name}; {hint}")


def _wrap(what: str, thing: Any) -> Any:
    """Return `thing` if it is a class of the kind wanted, else what a setting makes of it."""
    if _what(thing) == what:
        return thing
    if thing is None or _what(thing) is not None:
        return None
    for point in _settings():
        wrap = getattr(point.load(), "wrap_plain_python", None)
        made = None if wrap is None else wrap(what, thing)
        if made is not None:
            return made
    return None


_NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@converter(Environment, _NAMED)
def _environment(value: Any, kind: type[Any]) -> Any:
    return build_environment(value)


@converter(Policy, _NAMED)
def _policy(value: Any, kind: type[Any]) -> Any:
    return build_policy(value, {})
