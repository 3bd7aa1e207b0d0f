"""The diffusion setting: agents who track a changing truth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from battery.cases import FAINT, Audited, Case, Setting, Silent, fields_of, half_tape
from tacit.core.policy import Environment, Policy
from tacit.core.tapes import seeded_tape
from tacit.diffusion import BatchedTsallis, ChangingTruth, DiffusionBandit

APART = ((1.0, 0.0), (0.0, 1.0))
STATES = 4


def muted(policy: Any) -> Any:
    """Return the same policy with a channel that never lies, to the last bit of a float."""
    kind = type(policy)

    class Muted(kind):
        @property
        def params(self) -> Any:
            return super().params._replace(flip=0.0, reach=0.5, variance=0.25)

    return Muted(**{name: getattr(policy, name) for name in fields_of(kind)})


def of_size(policy: BatchedTsallis, size: float) -> BatchedTsallis:
    """Return the same policy, told that its noisy means are of another size."""

    class Told(BatchedTsallis):
        @property
        def params(self) -> Any:
            return super().params._replace(size=size)

    return Told(**{name: getattr(policy, name) for name in fields_of(BatchedTsallis)})


class DiffusionSetting(Setting):
    name = "diffusion"

    def rounds(self, kind: type[Policy]) -> int:
        return 60

    def reading(self, kind: type[Policy]) -> int:
        return 600

    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        if kind is DiffusionBandit:
            return [{"rates": rates} for rates in ("constant", "theory", "adaptive")]
        if "epsilon" not in fields_of(kind):
            return [{}]
        if "variant" not in fields_of(kind):
            return [{"epsilon": None}, {"epsilon": 1.0}, {"epsilon": 1.0, "block": 3}]
        return [
            {"epsilon": 1.0, "variant": "published"},
            {"epsilon": 1.0, "variant": "corrected"},
            {"epsilon": 1.0, "variant": "corrected", "mechanism": "laplace", "block": 4},
        ]

    def easy(self, kind: type[Policy]) -> Environment:
        return ChangingTruth(n_states=STATES, dominance=1.0)

    def corners(self, kind: type[Policy]) -> dict[str, tuple[Environment, int]]:
        return {
            "one agent": (ChangingTruth(network=((1.0,),)), 20),
            "one state": (ChangingTruth(n_states=1), 20),
            "one round": (ChangingTruth(), 1),
            "nobody hears anybody": (ChangingTruth(network=APART, connectivity="weak"), 20),
        }

    def relabelled(self, kind: type[Policy]) -> tuple[Environment, Environment]:
        # Signals order the states, so the labels may only be turned round.
        first, last = 0, STATES - 1
        return (
            ChangingTruth(n_states=STATES, dominant=first),
            ChangingTruth(n_states=STATES, dominant=last),
        )

    def learned(self, case: Case, final: Mapping[str, np.ndarray]) -> bool:
        uniform = self.reading(case.kind) * (1 - 1 / STATES)
        share = final["regret"].mean() / uniform
        if case.parameters.get("variant") == "published":
            # Known of the paper: scaled losses leave the published boxes near where they began.
            return bool(share < 1.0)
        return bool(share < 0.5)

    def noise_draws(self, case: Case, policy: Any, environment: Environment, horizon: int) -> int:
        if case.parameters.get("epsilon") is None:
            return 0
        B, N = policy.rounds_per_report, environment.n_agents
        draws = N * (horizon // B)
        if hasattr(policy, "signal_epsilon"):
            draws += N * math.ceil(horizon / B) * (1 if policy.corrected else STATES)
        return draws

    def silent(self, case: Case) -> Iterator[Silent]:
        if case.kind is BatchedTsallis and case.parameters == {"epsilon": 1.0}:
            environment = self.easy(case.kind)
            mute, plain = (case.build(environment, 60, epsilon=epsilon) for epsilon in (1.0, None))
            tapes = half_tape(60, 8), half_tape(60, 8)
            yield Silent(environment, of_size(mute, 1.0), plain, *tapes)
        # The published boxes scale losses even without noise: no plain policy is their twin.
        if case.parameters.get("variant") == "corrected" and "mechanism" not in case.parameters:
            environment = self.easy(case.kind)
            # Spies are told a state, never the signal itself; unweighted signals make them twins.
            hidden = "signal_epsilon" in fields_of(case.kind)
            settings = {"exploration_prob": 0.0} if hidden else {}
            mute = muted(case.build(environment, case.rounds, epsilon=FAINT, **settings))
            plain = Case(DiffusionBandit, {"rates": "adaptive", **settings}).build(
                environment, case.rounds
            )
            yield Silent(environment, mute, plain, seeded_tape(3), seeded_tape(3))

    def audited(self, case: Case) -> Iterator[Audited]:
        environment = self.easy(case.kind)
        policy: Any = case.build(environment, case.rounds)
        guarantee = policy.guarantee(case.rounds)
        if guarantee.basis == "none":
            return
        rounds = policy.rounds_per_report
        pair = environment.neighbours(guarantee.unit, rounds, limit=1)[0]
        yield Audited(
            left=pair.left,
            right=pair.right,
            policy=policy,
            half_noise=case.build(
                environment, case.rounds, epsilon=2 * policy.epsilon, block=rounds
            ),
            rounds=rounds,
            released=self.noise_draws(case, policy, environment, rounds),
        )
