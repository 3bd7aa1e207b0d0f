"""The arms setting: one learner, one arm a round."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from battery.cases import (
    FAINT,
    Audited,
    Case,
    Setting,
    Silent,
    fields_of,
    half_tape,
    less_private,
    play,
)
from tacit.arms import (
    KLUCB,
    SWKLUCBCF,
    Bernoulli,
    CorruptionSchedule,
    DPZooming,
    ShuffledKLUCBCF,
    SubGaussianUCB,
    TimedKLUCBCF,
    Uniform,
    edit_rewards,
)
from tacit.arms.blocks import BlockPolicy, GraphBlockPolicy
from tacit.arms.elimination import PHASE, GraphElimination, PrivateElimination
from tacit.arms.environments.graph_feedback import GraphFeedback
from tacit.arms.identification import Identifying
from tacit.core.policy import Environment, Policy
from tacit.core.tapes import seeded_tape
from tacit.graphs import Graph, path

MEANS = (0.05, 0.95, 0.05)
PAIRS = Graph.from_edges([(0, 1), (2, 3)], n_nodes=4)


def inaudible(case: Case, environment: Environment) -> Policy:
    """Return the policy with noise too small to change a decision, at an epsilon it would refuse."""
    policy = case.build(environment, case.rounds, epsilon=FAINT)
    object.__setattr__(policy, "epsilon", 1e9)
    vars(policy).pop("params", None)
    return policy


def optional(kind: type[Policy]) -> bool:
    """Return whether a policy may be had without saying an epsilon."""
    return any(f.name == "epsilon" and f.default is None for f in dataclasses.fields(kind))


def releases_of(policy: BlockPolicy, state: Any) -> int:
    """Return how many blocks make up what is released, from their sizes as the policy says them."""
    n = 0
    known = state.totals if hasattr(state, "totals") else state.blocks.counts
    for held in known.tolist():
        seen = 0
        for size in policy.block_sizes():
            if held in (0, seen):
                break
            seen, n = size if policy.latest_only else seen + size, n + 1
            assert seen <= held
    return n


class ArmsSetting(Setting):
    name = "arms"

    def rounds(self, kind: type[Policy]) -> int:
        # The first phase of an elimination takes 1,491 rounds.
        return 1600 if issubclass(kind, PrivateElimination) else 60

    def reading(self, kind: type[Policy]) -> int:
        return 6000 if "failure_prob" in fields_of(kind) else 1500

    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        fields = fields_of(kind)
        if issubclass(kind, PrivateElimination):
            sets: list[dict[str, Any]] = [{"epsilon": 1.0, "failure_prob": 0.5}]
            if issubclass(kind, GraphElimination):
                sets += [{**sets[0], "unit": "round"}, {**sets[0], "noise": "tight"}]
            return sets
        if issubclass(kind, GraphBlockPolicy):
            return [{"epsilon": 1.0}, {"epsilon": 1.0, "unit": "round"}]
        if kind is ShuffledKLUCBCF:
            return [{"epsilon": 1.0, "delta": 0.01, "block": 4}]
        if kind is SWKLUCBCF:
            return [{"window": 40}, {"window": 400, "epsilon": 2.0}]
        if kind is TimedKLUCBCF:
            changing = CorruptionSchedule.of_epsilons((2.0, 0.5), starts=(0, 3))
            return [{}, {"epsilon": 2.0, "variant": "published"}, {"schedule": changing}]
        sets = [{}] if optional(kind) or "epsilon" not in fields else []
        if "epsilon" in fields:
            sets.append({"epsilon": 2.0})
        if "variant" in fields:
            sets = [{**s, "variant": v} for s in sets for v in ("published", "corrected")]
        return sets

    def easy(self, kind: type[Policy]) -> Environment:
        environment = Bernoulli(means=MEANS)
        if issubclass(kind, GraphElimination | GraphBlockPolicy):
            return GraphFeedback(environment=environment, graph=path(3))
        return environment

    def corners(self, kind: type[Policy]) -> dict[str, tuple[Environment, int]]:
        four = Bernoulli(means=(0.1, 0.9, 0.1, 0.1))
        return {
            "one arm": (Bernoulli(means=(0.5,)), 20),
            "one round": (Bernoulli(means=MEANS), 1),
            "one arm, one round": (Bernoulli(means=(1.0,)), 1),
            "more arms than rounds": (Bernoulli(means=(0.5,) * 9), 4),
            "nothing ever pays": (Bernoulli(means=(0.0, 0.0)), 40),
            "everything always pays": (Bernoulli(means=(1.0, 1.0)), 40),
            "disconnected graph": (GraphFeedback(environment=four, graph=PAIRS), self.rounds(kind)),
        }

    def relabelled(self, kind: type[Policy]) -> tuple[Environment, Environment]:
        if kind is DPZooming:  # its labels are places on a line: they do matter
            return (Bernoulli(means=(0.3, 0.6, 0.4)),) * 2
        return Bernoulli(means=(0.3, 0.6, 0.4)), Bernoulli(means=(0.6, 0.4, 0.3))

    def learned(self, case: Case, final: Mapping[str, np.ndarray]) -> bool:
        at_random = self.reading(case.kind) * (max(MEANS) - sum(MEANS) / len(MEANS))
        if case.kind is Uniform:
            return bool(abs(final["regret"].mean() / at_random - 1) < 0.1)
        if issubclass(case.kind, Identifying):
            # It pulls worse arms to tell them apart; what it names is asked in test_identification.
            return bool(final["regret"].mean() < 1.05 * at_random)
        return bool(final["regret"].mean() < 0.5 * at_random)

    def noise_draws(
        self, case: Case, policy: Policy, environment: Environment, horizon: int
    ) -> int:
        if isinstance(policy, PrivateElimination):
            # Each active arm once a phase; on the easy environment the first phase leaves one arm.
            state = play(policy, environment, horizon).state
            assert state.active.tolist() == [False, True, False]
            return int(environment.n_arms + state.now[PHASE] - 2)
        if isinstance(policy, BlockPolicy):
            return releases_of(policy, play(policy, environment, horizon).state)
        per_reward = sum(count for _, count in policy.guarantee(horizon).releases)
        return horizon * per_reward

    def silent(self, case: Case) -> Iterator[Silent]:
        environment = self.easy(case.kind)
        if issubclass(case.kind, PrivateElimination):
            # Its confidence bounds know epsilon, so its twin is itself on a tape of medians. A
            # random set is drawn from the tape too: only policies without one have that twin.
            if case.kind.name != "gapu":
                faint = inaudible(case, environment)
                quiet = half_tape(6000, 3)
                yield Silent(environment, faint, faint, seeded_tape(3), quiet)
        elif issubclass(case.kind, BlockPolicy | ShuffledKLUCBCF):
            # One draws arms; the other lets the faintest noise choose between equal means.
            if case.kind.name not in ("lazy-dp-ts", "dp-top-two"):
                if issubclass(case.kind, ShuffledKLUCBCF):
                    faint = case.build(environment, case.rounds, epsilon=FAINT)
                else:
                    faint = inaudible(case, environment)
                yield Silent(environment, faint, faint, seeded_tape(3), half_tape(1600, 7))
        elif "epsilon" in case.parameters:
            mute = case.build(environment, case.rounds, epsilon=FAINT)
            plain: Policy = KLUCB(n_arms=environment.n_arms)
            if optional(case.kind) and case.kind is not SubGaussianUCB:  # whose rewards are no bits
                unsaid = case.build(environment, case.rounds, epsilon=None)
                if not unsaid.guarantee(case.rounds).private:
                    plain = unsaid
            yield Silent(environment, mute, plain, seeded_tape(3), seeded_tape(3))

    def audited(self, case: Case) -> Iterator[Audited]:
        if not {"epsilon", "schedule"} & case.parameters.keys():
            return
        environment, phases = self.easy(case.kind), issubclass(case.kind, PrivateElimination)
        if case.kind.name == "gapu" and "unit" in case.parameters:
            # What a round shows depends on the set drawn: without edges there is one to draw.
            environment = Bernoulli(means=MEANS)
        blocks = issubclass(case.kind, BlockPolicy)
        rounds, t = (case.rounds, 0) if phases else (4, 0 if blocks else 1)
        table = environment.table(0, 0, rounds)
        policy = case.build(environment, rounds)
        # Of a pulled arm and its neighbours, or of one arm where the unit is one reward.
        arms = [0] if (phases or blocks) and policy.guarantee(rounds).unit == "reward" else range(3)
        yield Audited(
            left=edit_rewards(table, [(t, a, 0.0) for a in arms]),
            right=edit_rewards(table, [(t, a, 1.0) for a in arms]),
            policy=policy,
            half_noise=less_private(policy),
            rounds=rounds,
            released=3 if phases else rounds,
            seen=slice(2) if phases else slice(None),
            runs=6000 if "unit" in case.parameters else 1600,
        )
