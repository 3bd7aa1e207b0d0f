"""Every policy of every room as a list of cases, and what a room must tell about itself.

A policy is found in the registry and nowhere else, so a new one is tested without a line here. What
differs between rooms (an easy world, who is a neighbour, what plain means) is said by its `Room`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tacit.policy import Environment, Policy
from tacit.registry import build, environments, policies
from tacit.simulation.run import checkpoints_of
from tacit.tapes import Tape, recorded_tape, seeded_tape

MUTE = 60.0  # at this epsilon the noise is below the last bit of a float


class Run(NamedTuple):
    """What one repetition left behind."""

    state: Any
    trace: Any
    tape: Tape


class Silent(NamedTuple):
    """A private policy whose noise is nought, its plain twin, and what both are played on."""

    world: Environment
    private: Policy
    plain: Policy
    tape: Tape
    plain_tape: Tape


class Audited(NamedTuple):
    """Something to audit: neighbouring tables, the policy, and its twin with half the noise."""

    left: Any
    right: Any
    policy: Policy
    half_noise: Policy
    rounds: int
    released: int
    """How many values are released."""
    seen: slice = slice(None)
    """Which of the decisions are looked at."""
    runs: int = 1600
    """How often each table is played."""


@dataclass(frozen=True)
class Case:
    """A policy with the parameters it is tested under; the world fills in the others."""

    kind: type[Policy]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def room(self) -> Room:
        return room_of(self.kind)

    @property
    def name(self) -> str:
        return "-".join([self.kind.name, *(f"{k}={v}" for k, v in self.parameters.items())])

    def build(self, world: Environment, horizon: int, /, **changes: Any) -> Policy:
        return build(self.kind, world.facts(horizon), {**self.parameters, **changes})

    @property
    def rounds(self) -> int:
        return self.room.rounds(self.kind)

    def easy(self, horizon: int | None = None) -> tuple[Environment, Policy]:
        world = self.room.easy(self.kind)
        return world, self.build(world, horizon or self.rounds)


class Room(ABC):
    """What the battery must know about a room."""

    name: str

    @abstractmethod
    def rounds(self, kind: type[Policy]) -> int:
        """Return how many rounds show everything that a policy does."""

    @abstractmethod
    def reading(self, kind: type[Policy]) -> int:
        """Return after how many rounds a policy must have learned on the easy world."""

    @abstractmethod
    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        """Return the parameter sets to test a policy under."""

    @abstractmethod
    def easy(self, kind: type[Policy]) -> Environment:
        """Return a world that a learner masters quickly."""

    @abstractmethod
    def corners(self, kind: type[Policy]) -> dict[str, tuple[Environment, int]]:
        """Return worlds as small, and as broken, as the room allows, with a horizon each."""

    @abstractmethod
    def relabelled(self, kind: type[Policy]) -> tuple[Environment, Environment]:
        """Return a world, and the same world with other labels."""

    @abstractmethod
    def learned(self, case: Case, final: Mapping[str, np.ndarray]) -> bool:
        """Return whether the final measures are what is known of the policy on the easy world."""

    @abstractmethod
    def noise_draws(self, case: Case, policy: Policy, world: Environment, horizon: int) -> int:
        """Return how many draws of noise the declared releases of a run add up to."""

    @abstractmethod
    def silent(self, case: Case) -> Iterator[Silent]:
        """Yield the case without noise beside its plain twin."""

    @abstractmethod
    def audited(self, case: Case) -> Iterator[Audited]:
        """Yield what an adversary would try on the case."""


def room_of(kind: type[Policy]) -> Room:
    from battery.rooms import ROOMS

    return ROOMS[kind.room]


def cases() -> list[Case]:
    return [
        Case(kind, parameters)
        for kind in policies().values()
        for parameters in room_of(kind).variants(kind)
    ]


def worlds() -> list[type[Environment]]:
    return list(environments().values())


def play(
    policy: Policy,
    world: Environment,
    horizon: int,
    *,
    table: Any = None,
    tape: Tape | None = None,
    seed: int = 5,
    chunk: int | None = None,
) -> Run:
    """Play one repetition, recording everything, `chunk` rounds at a time."""
    table = world.table(seed, 0, horizon) if table is None else table
    tape = seeded_tape(seed, 0) if tape is None else tape
    state = policy.start(table)
    trace = world.trace(horizon, checkpoints_of(horizon, 10), record=True)
    for first in range(0, horizon, chunk or horizon):
        last = min(first + (chunk or horizon), horizon)
        policy.play(state, table, tape, trace, first, last)
    return Run(state, trace, tape)


def arrays(value: Any, name: str = "") -> dict[str, np.ndarray]:
    """Return every array of a nested ``NamedTuple`` by its dotted name."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        found: dict[str, np.ndarray] = {}
        for part in value._fields:
            found |= arrays(getattr(value, part), f"{name}.{part}")
        return found
    return {name: np.array(value)}


def assert_same(one: Any, other: Any) -> None:
    """Assert that two tuples of arrays are equal bit for bit, naming the first that is not."""
    left, right = arrays(one), arrays(other)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype, name
        assert left[name].tobytes() == right[name].tobytes(), (
            f"{name}: {left[name]} != {right[name]}"
        )


def digest(case: Case) -> str:
    """Return a fingerprint of everything a short run leaves behind."""
    world, policy = case.easy()
    run = play(policy, world, case.rounds)
    total = hashlib.sha256()
    for name, array in (arrays(run.state) | arrays(run.trace, "trace")).items():
        total.update(name.encode() + array.tobytes())
    total.update(run.tape.reads.tobytes())
    return total.hexdigest()


def half_tape(horizon: int, draws: int) -> Tape:
    """Return the tape whose every draw is the median, where symmetric noise is nought."""
    return recorded_tape(np.full((horizon, draws), 0.5))


def fields_of(kind: type[Any]) -> list[str]:
    return [f.name for f in dataclasses.fields(kind) if f.init]
