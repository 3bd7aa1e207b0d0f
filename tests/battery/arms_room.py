"""The arms room: one learner, one arm a round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from battery.cases import MUTE, ROUNDS, Audited, Case, Room, Silent, fields_of
from tacit.arms import KLUCB, SWKLUCBCF, Bernoulli, Uniform, edit
from tacit.policy import Environment, Policy
from tacit.tapes import seeded_tape

MEANS = (0.05, 0.95, 0.05)


class ArmsRoom(Room):
    name = "arms"
    reading = 1500

    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        fields = fields_of(kind)
        sets: list[dict[str, Any]] = [{}]
        if "epsilon" in fields:
            sets = [{"epsilon": 2.0}]
        if kind is SWKLUCBCF:
            sets = [{"window": 40}, {"window": 400, "epsilon": 2.0}]
        if "variant" in fields:
            sets = [{**s, "variant": v} for s in sets for v in ("published", "corrected")]
        return sets

    def easy(self, kind: type[Policy]) -> Environment:
        return Bernoulli(means=MEANS)

    def corners(self, kind: type[Policy]) -> dict[str, tuple[Environment, int]]:
        return {
            "one arm": (Bernoulli(means=(0.5,)), 20),
            "one round": (Bernoulli(means=MEANS), 1),
            "one arm, one round": (Bernoulli(means=(1.0,)), 1),
            "more arms than rounds": (Bernoulli(means=(0.5,) * 9), 4),
            "nothing ever pays": (Bernoulli(means=(0.0, 0.0)), 40),
            "everything always pays": (Bernoulli(means=(1.0, 1.0)), 40),
        }

    def relabelled(self, kind: type[Policy]) -> tuple[Environment, Environment]:
        return Bernoulli(means=(0.3, 0.6, 0.4)), Bernoulli(means=(0.6, 0.4, 0.3))

    def learned(self, case: Case, final: Mapping[str, np.ndarray]) -> bool:
        at_random = self.reading * (max(MEANS) - sum(MEANS) / len(MEANS))
        if case.kind is Uniform:
            return bool(abs(final["regret"].mean() / at_random - 1) < 0.1)
        return bool(final["regret"].mean() < 0.5 * at_random)

    def noise_draws(self, case: Case, policy: Policy, world: Environment, horizon: int) -> int:
        per_reward = sum(count for _, count in policy.guarantee(horizon).releases)
        return horizon * per_reward

    def silent(self, case: Case) -> Iterator[Silent]:
        if "epsilon" in case.parameters:
            world = self.easy(case.kind)
            mute = case.build(world, ROUNDS, epsilon=MUTE)
            if isinstance(mute, SWKLUCBCF):
                plain: Policy = case.build(world, ROUNDS, epsilon=None)
            else:
                plain = KLUCB(n_arms=world.n_arms)
            yield Silent(world, mute, plain, seeded_tape(3))

    def audited(self, case: Case) -> Iterator[Audited]:
        if "epsilon" in case.parameters:
            world, epsilon = self.easy(case.kind), case.parameters["epsilon"]
            table = world.table(0, 0, 4)
            yield Audited(
                left=edit(table, [(1, a, 0.0) for a in range(3)]),
                right=edit(table, [(1, a, 1.0) for a in range(3)]),
                policy=case.build(world, 4),
                half_noise=case.build(world, 4, epsilon=2 * epsilon),
                rounds=4,
                released=4,
            )
