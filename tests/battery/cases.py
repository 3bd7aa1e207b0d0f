"""Every policy of every setting as a list of cases, and what a setting must tell about itself.

A policy is found in the registry and nowhere else, so a new one is tested without a line here. What
differs between settings (an easy environment, who is a neighbour, what plain means) is said by its `Setting`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import tiers
from tacit.core.policy import Environment, Policy
from tacit.core.registry import build, policies
from tacit.core.registry import environments as registered
from tacit.core.tapes import CHOICE, NOISE, RADIUS, ROUNDING, Tape, recorded_tape
from tacit.simulation.policy_checks import arrays, play
from tacit.simulation.policy_checks import digest as fingerprint

LIKE = {
    "aae": "gap",
    "adap-klucb": "dp-imed",
    "alpha-sample": "gap",
    "bocpd-klucb-cf": "glr-klucb-cf",
    "doubling-sw-klucb-cf": "sw-klucb-cf",
    "dp-klucb": "dp-imed",
    "dp-top-two": "dp-imed",
    "dp-zooming": "dp-imed",
    "dpse": "gap",
    "gapu": "gap",
    "klucb": "ucb1",
    "lazy-dp-ts": "dp-imed",
    "p-imed-cf": "klucb-cf",
    "sub-gaussian-ucb": "klucb-cf",
    "sw-ucb": "sw-klucb-cf",
    "timed-klucb-cf": "klucb-cf",
    "top-two-cf": "klucb-cf",
    "ucb-n": "ucb1",
    "club": "colin",
    "factorised": "colin",
    "goblin": "colin",
    "learned-kernel": "colin",
    "restarting-linucb": "linucb",
}
"""Policies, and the one of the same family that stands for them in the quick tier."""
FAINT = 30.0  # the largest epsilon of a mechanism, where a bit is flipped once in 10^13


class Silent(NamedTuple):
    """A private policy whose noise is nought, its plain twin, and what both are played on."""

    environment: Environment
    private: Policy
    plain: Policy
    tape: Tape
    plain_tape: Tape
    rounding: float = 0.0
    """By how much numbers may differ where the private one adds them up in another order."""


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
    """A policy with the parameters it is tested under; the environment fills in the others."""

    kind: type[Policy]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def setting(self) -> Setting:
        return setting_of(self.kind)

    @property
    def name(self) -> str:
        return "-".join([self.kind.name, *(f"{k}={v}" for k, v in self.parameters.items())])

    def build(self, environment: Environment, horizon: int, /, **changes: Any) -> Policy:
        return build(
            self.kind, environment.public_parameters(horizon), {**self.parameters, **changes}
        )

    @property
    def rounds(self) -> int:
        return self.setting.rounds(self.kind)

    def easy(self, horizon: int | None = None) -> tuple[Environment, Policy]:
        environment = self.setting.easy(self.kind)
        return environment, self.build(environment, horizon or self.rounds)


class Setting(ABC):
    """What the battery must know about a setting."""

    name: str

    @abstractmethod
    def rounds(self, kind: type[Policy]) -> int:
        """Return how many rounds show everything that a policy does."""

    @abstractmethod
    def reading(self, kind: type[Policy]) -> int:
        """Return after how many rounds a policy must have learned on the easy environment."""

    @abstractmethod
    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        """Return the parameter sets to test a policy under."""

    @abstractmethod
    def easy(self, kind: type[Policy]) -> Environment:
        """Return an environment that a learner masters quickly."""

    @abstractmethod
    def corners(self, kind: type[Policy]) -> dict[str, tuple[Environment, int]]:
        """Return environments as small, and as broken, as the setting allows, with a horizon each."""

    @abstractmethod
    def relabelled(self, kind: type[Policy]) -> tuple[Environment, Environment]:
        """Return an environment, and the same environment with other labels."""

    @abstractmethod
    def learned(self, case: Case, final: Mapping[str, np.ndarray]) -> bool:
        """Return whether the final measures are what is known of the policy on the easy environment."""

    @abstractmethod
    def noise_draws(
        self, case: Case, policy: Policy, environment: Environment, horizon: int
    ) -> int:
        """Return how many draws of noise the declared releases of a run add up to."""

    def as_in_0_2(self, state: Any) -> Any:
        """Return a state under the names, and with the arrays, that it had in 0.2.0."""
        return state

    @abstractmethod
    def silent(self, case: Case) -> Iterator[Silent]:
        """Yield the case without noise beside its plain twin."""

    @abstractmethod
    def audited(self, case: Case) -> Iterator[Audited]:
        """Yield what an adversary would try on the case."""


def setting_of(kind: type[Policy]) -> Setting:
    from battery.settings import SETTINGS

    return SETTINGS[kind.setting]


def cases() -> list[Case]:
    return [
        Case(kind, parameters)
        for kind in policies().values()
        for parameters in setting_of(kind).variants(kind)
    ]


def tiered(cases: list[Case]) -> list[Any]:
    """Return the cases as parameters, those slow for which a relative stands in the quick tier."""
    return tiers.tiered(cases, lambda case: case.kind.name not in LIKE, lambda case: case.name)


@cache
def _first_private() -> set[str]:
    found: dict[str, str] = {}
    for case in cases():
        if {"epsilon", "privacy"} & case.parameters.keys():
            found.setdefault(case.kind.name, case.name)
    return {name for kind, name in found.items() if kind not in LIKE}


def first_private(case: Case) -> bool:
    """Return whether a case is the first of its policy with privacy, and no relative stands for it."""
    return case.name in _first_private()


def environments() -> list[type[Environment]]:
    return list(registered().values())


def assert_same(one: Any, other: Any, rounding: float = 0.0) -> None:
    """Assert that two tuples of arrays are equal, naming the first that is not.

    Bit for bit, but floats may differ by `rounding` if that is not 0.
    """
    left, right = arrays(one), arrays(other)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype, name
        if rounding > 0 and left[name].dtype.kind == "f":
            np.testing.assert_allclose(left[name], right[name], rtol=rounding, err_msg=name)
            continue
        assert left[name].tobytes() == right[name].tobytes(), (
            f"{name}: {left[name]} != {right[name]}"
        )


def digest(case: Case) -> str:
    """Return a fingerprint of everything a short run leaves behind."""
    environment, policy = case.easy()
    run = play(policy, environment, case.rounds)
    return fingerprint(run._replace(state=case.setting.as_in_0_2(run.state)))


def half_tape(horizon: int, draws: int) -> Tape:
    """Return the tape whose every draw is the median, where symmetric noise is nought."""
    halves = np.full((horizon, draws), 0.5)
    return recorded_tape(dict.fromkeys((CHOICE, ROUNDING, NOISE, RADIUS), halves))


def less_private(policy: Any) -> Any:
    """Return the same policy with twice the epsilon, the noise of a twin that cheats."""
    hidden = getattr(policy, "privacy", None)
    if hidden is not None:
        loose = dataclasses.replace(hidden, epsilon=2 * hidden.epsilon)
        return dataclasses.replace(policy, privacy=loose, epsilon=None)
    schedule = getattr(policy, "schedule", None)
    if schedule is not None:
        each = [
            2 * corruption.release(policy.n_arms).epsilon for corruption in schedule.corruptions
        ]
        loose = type(schedule).of_epsilons(each, starts=schedule.starts)
        return dataclasses.replace(policy, schedule=loose)
    levels = getattr(policy, "levels", None)  # of agents who have an epsilon of their own
    loose = 2 * policy.epsilon if levels is None else tuple(2 * each for each in levels)
    return dataclasses.replace(policy, epsilon=loose)


def fields_of(kind: type[Any]) -> list[str]:
    return [f.name for f in dataclasses.fields(kind) if f.init]
