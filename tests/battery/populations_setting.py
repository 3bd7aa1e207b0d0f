"""The agents setting: many agents who learn from each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from battery.cases import MUTE, Audited, Case, Setting, Silent, fields_of, play
from tacit.diffusion import ChangingTruth, DiffusionBandit, edit_losses, edit_signals
from tacit.dynamics import LearningDynamics, SocialOptions, edit_adoption
from tacit.networks import complete, erdos_renyi, star
from tacit.policy import Environment, Policy
from tacit.tapes import seeded_tape

APART = ((1.0, 0.0), (0.0, 1.0))
STATES = 4
QUALITIES, AGENTS = (0.9, 0.5, 0.1), 300
NETWORK = erdos_renyi(AGENTS, 0.04, seed=1)


class AgentsSetting(Setting):
    name = "populations"

    def rounds(self, kind: type[Policy]) -> int:
        return 8 if kind is LearningDynamics else 60

    def reading(self, kind: type[Policy]) -> int:
        return 200 if kind is LearningDynamics else 600

    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        if kind is LearningDynamics:
            common = {"epsilon": 2.0, "beta": 0.9, "mu": 0.01, "tokens": 20}
            return [
                {**common, "variant": "published"},
                {**common, "variant": "corrected"},
                {**common, "variant": "corrected", "tokens": 400, "engine": "mixed"},
                {**common, "engine": "crowd"},
                {**common, "engine": "endpoints", "tokens": 8, "walk_length": 3},
                {**common, "engine": "tokens", "tokens": 8, "walk_length": 3},
            ]
        if kind is DiffusionBandit:
            return [{"rates": rates} for rates in ("constant", "theory", "adaptive")]
        if "epsilon" not in fields_of(kind):
            return [{}]
        return [
            {"epsilon": 1.0, "variant": "published"},
            {"epsilon": 1.0, "variant": "corrected"},
            {"epsilon": 1.0, "variant": "corrected", "mechanism": "laplace", "block": 4},
        ]

    def easy(self, kind: type[Policy]) -> Environment:
        if kind is LearningDynamics:
            return SocialOptions(qualities=QUALITIES, network=NETWORK)
        return ChangingTruth(n_states=STATES, dominance=1.0)

    def corners(self, kind: type[Policy]) -> dict[str, tuple[Environment, int]]:
        if kind is LearningDynamics:
            return {
                "one agent": (SocialOptions(qualities=QUALITIES, network=complete(1)), 20),
                "one option": (SocialOptions(qualities=(0.5,), network=star(9)), 20),
                "one round": (SocialOptions(qualities=QUALITIES, network=star(9)), 1),
                "nothing is ever good": (SocialOptions(qualities=(0.0, 0.0), network=star(9)), 20),
            }
        return {
            "one agent": (ChangingTruth(network=((1.0,),)), 20),
            "one state": (ChangingTruth(n_states=1), 20),
            "one round": (ChangingTruth(), 1),
            "nobody hears anybody": (ChangingTruth(network=APART, connectivity="weak"), 20),
        }

    def relabelled(self, kind: type[Policy]) -> tuple[Environment, Environment]:
        if kind is LearningDynamics:
            return (
                SocialOptions(qualities=QUALITIES, network=NETWORK),
                SocialOptions(qualities=QUALITIES[::-1], network=NETWORK),
            )
        # Signals order the states, so the labels may only be turned round.
        first, last = 0, STATES - 1
        return (
            ChangingTruth(n_states=STATES, dominant=first),
            ChangingTruth(n_states=STATES, dominant=last),
        )

    def learned(self, case: Case, final: Mapping[str, np.ndarray]) -> bool:
        if case.kind is LearningDynamics:
            # A uniform popularity has regret 0.4.
            return bool(final["regret"].mean() < 0.2)
        uniform = self.reading(case.kind) * (1 - 1 / STATES)
        share = final["regret"].mean() / uniform
        if case.parameters.get("variant") == "published":
            # Known of the paper: scaled losses leave the published boxes near where they began.
            return bool(share < 1.0)
        return bool(share < 0.5)

    def noise_draws(self, case: Case, policy: Any, environment: Environment, horizon: int) -> int:
        if "epsilon" not in case.parameters:
            return 0
        if isinstance(policy, LearningDynamics):
            # Every bit of everybody who speaks; published, only those with an adoption do.
            adopting = play(policy, environment, horizon).trace.decisions.sum(axis=1)
            silent = policy.variant == "published"
            speaking = AGENTS + (adopting[:-1].sum() if silent else AGENTS * (horizon - 1))
            return int(speaking) * len(QUALITIES)
        B, N = policy.rounds_per_report, environment.n_agents
        draws = N * (horizon // B)
        if hasattr(policy, "signal_epsilon"):
            draws += N * math.ceil(horizon / B) * (1 if policy.corrected else STATES)
        return draws

    def silent(self, case: Case) -> Iterator[Silent]:
        if case.kind is LearningDynamics:
            environment = self.easy(case.kind)
            mute, plain = (
                case.build(environment, 8, epsilon=epsilon) for epsilon in (MUTE, math.inf)
            )
            yield Silent(environment, mute, plain, seeded_tape(3), seeded_tape(3))
            return
        # The published boxes scale losses even without noise: no plain policy is their twin.
        if case.parameters.get("variant") == "corrected" and "mechanism" not in case.parameters:
            environment = self.easy(case.kind)
            # Spies are told a state, never the signal itself; unweighted signals make them twins.
            hidden = "signal_epsilon" in fields_of(case.kind)
            settings = {"exploration_prob": 0.0} if hidden else {}
            mute = case.build(environment, case.rounds, epsilon=MUTE, **settings)
            plain = Case(DiffusionBandit, {"rates": "adaptive", **settings}).build(
                environment, case.rounds
            )
            yield Silent(environment, mute, plain, seeded_tape(3), seeded_tape(3))

    def audited(self, case: Case) -> Iterator[Audited]:
        environment = self.easy(case.kind)
        policy: Any = case.build(environment, case.rounds)
        if policy.guarantee(case.rounds).basis == "none":
            return
        if isinstance(policy, LearningDynamics):
            if not policy.rule.each:  # only the counts of a crowd are drawn, not the messages
                return
            few = SocialOptions(qualities=QUALITIES, network=star(9))
            table = few.table(0, 0, 1)
            yield Audited(
                left=edit_adoption(table, 0, 1),
                right=edit_adoption(table, 0, 2),
                policy=case.build(few, 1),
                half_noise=case.build(few, 1, epsilon=2 * policy.epsilon),
                rounds=1,
                released=len(QUALITIES),
            )
            return
        rounds = policy.rounds_per_report
        table = environment.table(0, 0, rounds)
        left = edit_losses(table, [(0, 0, state, 0.0) for state in range(STATES)])
        right = edit_losses(table, [(0, 0, state, 1.0) for state in range(STATES)])
        if policy.guarantee(case.rounds).unit == "round":
            left, right = edit_signals(left, [(0, 0, 0.0)]), edit_signals(right, [(0, 0, 3.0)])
        yield Audited(
            left=left,
            right=right,
            policy=policy,
            half_noise=case.build(
                environment, case.rounds, epsilon=2 * policy.epsilon, block=rounds
            ),
            rounds=rounds,
            released=self.noise_draws(case, policy, environment, rounds),
        )
