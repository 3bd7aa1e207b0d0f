"""A study: policies, a world, and a grid over any of their parameters.

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
    horizon = [10_000, 20_000]
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.policy import Environment, Policy, require
from tacit.registry import build, environment_named, policy_named

__all__ = ["Cell", "Study"]

_TOP = {"name", "horizon", "repetitions", "seed", "checkpoints", "environment", "policy", "grid"}


@dataclass(frozen=True)
class Cell:
    """One policy in one world for one horizon."""

    label: str
    policy: Policy
    environment: Environment
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
        ``name`` and parameters of a world.
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

    name: str
    environment: Mapping[str, Any]
    policies: tuple[Mapping[str, Any], ...]
    horizon: int = 10_000
    repetitions: int = 20
    seed: int = 0
    checkpoints: int = 100
    grid: Mapping[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plain = bool(self.name) and all(c.isalnum() or c in "-_." for c in self.name)
        require(self, "name", "letters, digits, - _ .", plain, self.name)
        for parameter in ("horizon", "repetitions", "checkpoints"):
            value = getattr(self, parameter)
            require(self, parameter, ">= 1", isinstance(value, int) and value >= 1, value)
        require(self, "seed", ">= 0", isinstance(self.seed, int) and self.seed >= 0, self.seed)
        require(self, "policies", "at least one", len(self.policies) > 0, self.policies)

    @classmethod
    def from_toml(cls, path: str | Path) -> Study:
        """Read a study file; complaints name the file and the line or key."""
        file = Path(path)
        try:
            written = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{file}: cannot read it ({error.strerror})") from None
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
            return cls(policies=tuple(policies), **written)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides the result."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True, default=repr)
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

    def _axes(self) -> dict[str, set[str]]:
        """Return for each grid key the names of the policies it touches ("" for all)."""
        names = [str(policy.get("name", "")) for policy in self.policies]
        axes = {}
        for key, values in self.grid.items():
            require(self, f"grid {key!r}", "a list of values", isinstance(values, list), values)
            require(self, f"grid {key!r}", "at least one value", len(values) > 0, values)
            owner, _, parameter = key.rpartition(".")
            if key in ("horizon",) or owner == "environment":
                axes[key] = {""}
                continue
            touched = {
                name for name in names if owner in ("policy", name) and _has(name, parameter)
            }
            if not touched:
                raise ValueError(
                    f"Study: grid key {key!r} touches nothing; write horizon, environment.NAME, "
                    "policy.NAME or POLICY.NAME with a parameter it has"
                )
            axes[key] = touched
        return axes

    def _cell(
        self, written: Mapping[str, Any], chosen: Mapping[str, Any], axes: Mapping[str, set[str]]
    ) -> Cell:
        world = dict(self.environment)
        parameters = dict(written)
        name, label = parameters.pop("name", None), parameters.pop("label", None)
        if name is None or "name" not in world:
            raise ValueError("Study: every [environment] and [[policy]] needs a name")
        horizon, varied = self.horizon, {}
        for key, value in chosen.items():
            if "" not in axes[key] and name not in axes[key]:
                continue
            varied[key] = value
            parameter = key.rpartition(".")[2]
            if key == "horizon":
                horizon = value
            elif key.startswith("environment."):
                world[parameter] = value
            else:
                parameters[parameter] = value
        world_kind = environment_named(world.pop("name"))
        environment = build(world_kind, {}, world)
        kind = policy_named(name)
        policy = build(kind, environment.facts(horizon), parameters)
        shown = " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in varied.items())
        return Cell(
            label=" ".join(filter(None, [label or name, shown])),
            policy=policy,
            environment=environment,
            horizon=horizon,
            varied=varied,
        )


def _has(policy: str, parameter: str) -> bool:
    kind: Any = policy_named(policy)
    return parameter in {f.name for f in dataclasses.fields(kind)}


def blocks(repetitions: int, size: int = 8) -> Iterator[range]:
    """Split the repetitions into the pieces that are computed and kept one by one."""
    for first in range(0, repetitions, size):
        yield range(first, min(first + size, repetitions))
