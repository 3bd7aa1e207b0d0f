"""The dynamics setting: agents who copy what is popular and good."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from battery.cases import FAINT, Audited, Case, Setting, Silent, play
from tacit.core.policy import Environment, Policy
from tacit.core.tapes import seeded_tape
from tacit.dynamics import SocialOptions
from tacit.graphs import complete, erdos_renyi, star

QUALITIES, AGENTS = (0.9, 0.5, 0.1), 80
NETWORK = erdos_renyi(AGENTS, 0.15, seed=1)


class DynamicsSetting(Setting):
    name = "dynamics"

    def rounds(self, kind: type[Policy]) -> int:
        return 8

    def reading(self, kind: type[Policy]) -> int:
        return 200

    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        common = {"epsilon": 2.0, "beta": 0.9, "mu": 0.01, "tokens": 20}
        return [
            {**common, "variant": "published"},
            {**common, "variant": "corrected"},
            {**common, "variant": "corrected", "tokens": 400, "engine": "mixed"},
            {**common, "engine": "crowd"},
            {**common, "engine": "endpoints", "tokens": 8, "walk_length": 3},
            {**common, "engine": "tokens", "tokens": 8, "walk_length": 3},
            {**common, "encoding": "subset", "smoothed": True, "rho": 0.5},
            {**common, "smoothed": True, "engine": "crowd", "rho": 0.5},
            {**common, "epsilon": (2.0, 0.5)},
            {**common, "epsilon": (2.0, 0.5), "engine": "crowd"},
        ]

    def easy(self, kind: type[Policy]) -> Environment:
        return SocialOptions(qualities=QUALITIES, network=NETWORK)

    def corners(self, kind: type[Policy]) -> dict[str, tuple[Environment, int]]:
        return {
            "one agent": (SocialOptions(qualities=QUALITIES, network=complete(1)), 20),
            "one option": (SocialOptions(qualities=(0.5,), network=star(9)), 20),
            "one round": (SocialOptions(qualities=QUALITIES, network=star(9)), 1),
            "nothing is ever good": (SocialOptions(qualities=(0.0, 0.0), network=star(9)), 20),
        }

    def relabelled(self, kind: type[Policy]) -> tuple[Environment, Environment]:
        return (
            SocialOptions(qualities=QUALITIES, network=NETWORK),
            SocialOptions(qualities=QUALITIES[::-1], network=NETWORK),
        )

    def learned(self, case: Case, final: Mapping[str, np.ndarray]) -> bool:
        # A uniform popularity has regret 0.4.
        return bool(final["regret"].mean() < 0.2)

    def noise_draws(self, case: Case, policy: Any, environment: Environment, horizon: int) -> int:
        # Every bit of everybody who speaks; published, only those with an adoption do.
        adopting = play(policy, environment, horizon).trace.decisions.sum(axis=1)
        silent = policy.variant == "published"
        speaking = AGENTS + (adopting[:-1].sum() if silent else AGENTS * (horizon - 1))
        return int(speaking) * (1 if policy.params.subset.any() else len(QUALITIES))

    def silent(self, case: Case) -> Iterator[Silent]:
        environment = self.easy(case.kind)
        mute, plain = (case.build(environment, 8, epsilon=epsilon) for epsilon in (FAINT, math.inf))
        yield Silent(environment, mute, plain, seeded_tape(3), seeded_tape(3))

    def audited(self, case: Case) -> Iterator[Audited]:
        environment = self.easy(case.kind)
        policy: Any = case.build(environment, case.rounds)
        if policy.guarantee(case.rounds).basis == "none":
            return
        if not policy.params.each:  # only the counts of a crowd are drawn, not the messages
            return
        few = SocialOptions(qualities=QUALITIES, network=star(9))
        pair = few.neighbours("agent", 1, limit=1)[0]
        yield Audited(
            left=pair.left,
            right=pair.right,
            policy=case.build(few, 1),
            half_noise=case.build(few, 1, epsilon=tuple(2 * each for each in policy.levels)),
            rounds=1,
            released=1 if policy.params.subset.any() else len(QUALITIES),
        )
