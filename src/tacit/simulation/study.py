"""A study: policies, an environment, and a grid over any of their parameters.

A study is a small TOML file. ``[environment]`` and each ``[[policy]]`` name what to run and its
parameters; ``[grid]`` varies parameters, and every combination is a *cell*::

    name = "first"
    horizon = 20_000
    repetitions = 20

    [environment]
    name = "riser"

    [[policy]]
    name = "sw-klucb-cf"

    [grid]
    "policy.epsilon" = [0.5, 1.0, 2.0]     # of every policy that has it
    "sw-klucb-cf.window" = ["log", "paper"] # of one policy
    "environment.segments" = [5, 10]
    "colin.privacy.epsilon" = [1, 2]        # of what the parameter privacy holds
    horizon = [10_000, 20_000]
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from tacit.core.constraints import Constraint, check, require
from tacit.core.policy import AnyEnvironment, AnyPolicy
from tacit.core.registry import build_pair, policy_named
from tacit.engines.store import code_stamp, file_stamp

_NAME = re.compile(r"[\w-][\w.-]*")


def _whole(largest: int) -> Constraint:
    """Return the rule that a value is a whole number, at least 1 and not too large."""
    words = f"a whole number from 1 to {largest:,}"
    return Constraint(words, lambda value: type(value) is int and 1 <= value <= largest)


_Name = Annotated[
    str, Constraint("letters, digits, - _ . (not at the front)", lambda v: bool(_NAME.fullmatch(v)))
]
_Rounds = Annotated[int, _whole(10**15)]
_Count = Annotated[int, _whole(10**6)]
_SEED = Constraint("a whole number >= 0", lambda value: type(value) is int and value >= 0)
_TOP = {"name", "horizon", "repetitions", "seed", "checkpoints", "environment", "policy", "grid"}


@dataclass(frozen=True)
class Cell:
    """One policy in one environment for one horizon."""

    label: str
    policy: AnyPolicy
    environment: AnyEnvironment
    horizon: int
    varied: Mapping[str, Any]
    """The grid's values here, by the names the study file uses."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What to run, as written in a study file.

    Parameters
    ----------
    name : str
        Names the files of the result.
    environment : mapping
        ``name`` and parameters of an environment.
    policies : tuple of mappings
        ``name``, optional ``label`` and parameters of each policy.
    horizon, repetitions, seed, checkpoints : int
    grid : mapping of parameter to list of values

    Examples
    --------
    >>> from tacit.simulation import Study
    >>> study = Study(
    ...     name="demo",
    ...     environment={"name": "bernoulli", "means": [0.4, 0.6]},
    ...     policies=({"name": "klucb-cf"},),
    ...     grid={"policy.epsilon": [1.0, 2.0]},
    ... )
    >>> [cell.label for cell in study.cells()]
    ['klucb-cf epsilon=1.0', 'klucb-cf epsilon=2.0']
    """

    name: _Name
    environment: Mapping[str, Any]
    policies: tuple[Mapping[str, Any], ...]
    horizon: _Rounds = 10_000
    repetitions: _Count = 20
    seed: Annotated[int, _SEED] = 0
    checkpoints: _Count = 100
    grid: Mapping[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(self)
        described = isinstance(self.environment, Mapping)
        require(self, "environment", "a name and parameters", described, self.environment)
        require(self, "policies", "at least one", len(self.policies) > 0, self.policies)
        for policy in self.policies:
            described = isinstance(policy, Mapping)
            require(self, "policy", "a name and parameters", described, policy)
            label = policy.get("label", "")
            require(self, "label", "text", isinstance(label, str), label)
        require(self, "grid", "a table of lists", isinstance(self.grid, Mapping), self.grid)
        for key, values in self.grid.items():
            if isinstance(values, Mapping):
                written = f"{key}.{next(iter(values), '')}"
                raise ValueError(f'Study: write the grid key {written} in quotes: "{written}"')
            some = isinstance(values, list) and len(values) > 0
            require(self, f"grid {key!r}", "a list of values", some, values)
        for horizon in self.grid.get("horizon", ()):
            is_whole = type(horizon) is int and horizon >= 1
            require(self, "grid horizon", "whole numbers >= 1", is_whole, horizon)

    @classmethod
    def from_toml(cls, path: str | Path) -> Study:
        """Read a study file; complaints name the file and the line or key."""
        file = Path(path)
        try:
            written = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            what = "expected a file, got a folder" if file.is_dir() else error.strerror
            raise ValueError(f"{file}: cannot read it ({what})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{file}: not a TOML file ({error})") from None
        unknown = sorted(set(written) - _TOP)
        if unknown:
            raise ValueError(f"{file}: no key {unknown[0]!r}; known are {', '.join(sorted(_TOP))}")
        policies = written.pop("policy", [])
        if not isinstance(policies, list) or "environment" not in written:
            raise ValueError(f"{file}: expected [environment] and at least one [[policy]]")
        written.setdefault("name", file.stem)
        try:
            study = cls(policies=tuple(policies), **written)
            study.cells()
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        return study

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides the result: the study, its files and the code."""
        said = dataclasses.asdict(self)
        files = [file_stamp(Path(text)) for text in _texts(said) if Path(text).is_file()]
        pairs = [(cell.policy, cell.environment) for cell in self.cells()]
        code = code_stamp(tuple(sorted({type(each).__module__ for pair in pairs for each in pair})))
        text = json.dumps([said, files, code], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def cells(self) -> list[Cell]:
        """Return every combination of the grid, once, in a fixed order."""
        axes = self._axes()
        found: dict[str, Cell] = {}
        for combination in itertools.product(*self.grid.values()):
            chosen = dict(zip(self.grid, combination, strict=True))
            for written in self.policies:
                cell = self._cell(written, chosen, axes)
                key = repr((cell.label, cell.policy, cell.environment, cell.horizon))
                found.setdefault(key, cell)
        return list(found.values())

    def _axes(self) -> dict[str, tuple[set[Any], list[str]]]:
        """Return for each grid key the names of the policies it touches ("" for all) and its path."""
        names: list[Any] = [policy.get("name") for policy in self.policies]
        axes: dict[str, tuple[set[Any], list[str]]] = {}
        for key in self.grid:
            owners = [
                each for each in ("environment", "policy", *names) if key.startswith(f"{each}.")
            ]
            owner = owners[0] if owners else ""
            path = key.removeprefix(f"{owner}.").split(".") if owner else [key.rpartition(".")[2]]
            touched = {""}
            if key != "horizon" and owner != "environment":
                kinds: dict[Any, Any] = {name: policy_named(name) for name in names}
                having = {n for n in names if path[0] in kinds[n].__dataclass_fields__}
                touched = {name for name in having if owner in ("policy", name)}
            if not touched:
                raise ValueError(
                    f"Study: grid key {key!r} touches nothing: no policy here has {path[0]!r}; "
                    "write horizon, environment.NAME, policy.NAME or POLICY.NAME"
                )
            axes[key] = (touched, path)
        return axes

    def _cell(
        self,
        written: Mapping[str, Any],
        chosen: Mapping[str, Any],
        axes: Mapping[str, tuple[set[Any], list[str]]],
    ) -> Cell:
        environment, parameters = dict(self.environment), dict(written)
        name: Any = parameters.get("name")
        label = parameters.pop("label", None)
        is_alone = sum(other.get("name") == name for other in self.policies) == 1
        said = {} if is_alone or label else dict(parameters)
        horizon, varied = self.horizon, {}
        for key, value in chosen.items():
            touched, path = axes[key]
            if "" not in touched and name not in touched:
                continue
            varied[key] = value
            if key == "horizon":
                horizon = value
            else:
                _put(environment if key.startswith("environment.") else parameters, path, value)
        policy, built = build_pair(parameters, environment, horizon)
        label = label_policy(label or policy.name, said)
        return Cell(label_policy(label, varied), policy, built, horizon, varied)


def label_policy(name: str, parameters: Mapping[str, Any]) -> str:
    """Return what a policy is called beside others: a name, and what is written for it or varied.

    Examples
    --------
    >>> label_policy("klucb-cf", {"name": "klucb-cf", "policy.epsilon": 1.0})
    'klucb-cf epsilon=1.0'
    """
    said = [(key.rpartition(".")[2], value) for key, value in parameters.items()]
    return " ".join([name, *(f"{key}={value}" for key, value in said if key != "name")])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _put(parameters: dict[str, Any], path: list[str], value: Any) -> None:
    """Set a parameter, or a part of one: ``privacy.epsilon`` is epsilon of what privacy is."""
    first, *rest = path
    if not rest:
        parameters[first] = value
        return
    inner = parameters.get(first, {})
    inner = {"kind": inner} if isinstance(inner, str) else dict(inner)
    _put(inner, rest, value)
    parameters[first] = inner
