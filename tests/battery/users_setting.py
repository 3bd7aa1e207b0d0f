"""The users setting: a user arrives with contexts, one of them is offered."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from battery.cases import Audited, Case, Setting, Silent, half_tape
from tacit.policy import Environment, Policy
from tacit.users import CoLin, Synthetic, edit

SIZES = {"n_users": 3, "dimension": 2, "n_items": 30, "n_shown": 4}
SCALAR = ("laplace", "bit", "piecewise")


class Reversed(Synthetic):
    """The same users under each other's numbers."""

    def table(self, seed: int, repetition: int, horizon: int) -> Any:
        table = super().table(seed, repetition, horizon)
        return table._replace(
            weights=np.ascontiguousarray(table.weights[::-1, ::-1]),
            adjacency=np.ascontiguousarray(table.adjacency[::-1, ::-1]),
            preferences=np.ascontiguousarray(table.preferences[::-1]),
        )


class HalfNoise(CoLin):
    """CoLin with half the noise on sums that it declares."""

    def open(self, **joined: Any) -> Any:
        state = super().open(**joined)
        state.scales[:] /= 2
        return state


class UsersSetting(Setting):
    name = "users"

    def rounds(self, kind: type[Policy]) -> int:
        return 60

    def reading(self, kind: type[Policy]) -> int:
        return 1500

    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        sets: list[dict[str, Any]] = [
            {},
            {"epsilon": 2.0, "mechanism": "laplace"},
            {"epsilon": 2.0, "variant": "published", "trust": "central"},
        ]
        if kind is CoLin:
            central = {"epsilon": 2.0, "trust": "central"}
            gaussian = {"mechanism": "gaussian", "delta": 1e-6}
            sets += [
                {"epsilon": 2.0, "mechanism": "bit"},
                {"epsilon": 2.0, "mechanism": "piecewise"},
                {"epsilon": 2.0, "variant": "published", "trust": "local"},
                {"epsilon": 2.0, **gaussian, "continual": "toeplitz"},
                {**central, "mechanism": "ball"},
                {**central, **gaussian},
                {**central, "statistic": "b", "mechanism": "ball"},
                {**central, "statistic": "b", **gaussian},
                {**central, "statistic": "b", **gaussian, "continual": "toeplitz"},
            ]
        return sets

    def easy(self, kind: type[Policy]) -> Environment:
        return Synthetic(**SIZES, spread=0.02)

    def corners(self, kind: type[Policy]) -> dict[str, tuple[Environment, int]]:
        return {
            "one user": (Synthetic(n_users=1, dimension=2, n_items=5, n_shown=2), 20),
            "one round": (Synthetic(**SIZES), 1),
            "one item": (Synthetic(n_users=2, dimension=2, n_items=1, n_shown=1), 20),
            "one dimension": (Synthetic(n_users=2, dimension=1, n_items=5, n_shown=2), 20),
            "nobody joined": (Synthetic(**SIZES, threshold=1.0), 20),
        }

    def relabelled(self, kind: type[Policy]) -> tuple[Environment, Environment]:
        return Synthetic(**SIZES), Reversed(**SIZES)

    def learned(self, case: Case, final: Mapping[str, np.ndarray]) -> bool:
        ratio = final["regret"].mean() / final["random_regret"].mean()
        # Noise on sums takes more rounds than these to average out; it must not do harm.
        slow = case.parameters.get("mechanism") in ("ball", "gaussian")
        slow = slow or case.parameters.get("variant") == "published"
        return bool(ratio < (1.0 if slow else 0.5))

    def noise_draws(self, case: Case, policy: Any, environment: Environment, horizon: int) -> int:
        if policy.epsilon is None:
            return 0
        if policy.chosen_mechanism in SCALAR:
            return horizon
        on_b = policy.variant == "published" or policy.statistic == "b"
        size = environment.dimension * (environment.n_users if on_b else 1)
        return horizon * size * (2 if policy.chosen_mechanism == "ball" else 1)

    def silent(self, case: Case) -> Iterator[Silent]:
        # A rounded bit and a draw from a window are not nought at the median.
        if "epsilon" in case.parameters and case.parameters.get("mechanism") not in SCALAR[1:]:
            environment = Synthetic(**SIZES, spread=0.0)
            private: Any = case.build(environment, case.rounds)
            plain = Case(case.kind).build(environment, case.rounds, regularisation=private.ridge)
            quiet = half_tape(1500, 16)
            yield Silent(environment, private, plain, quiet, quiet)

    def audited(self, case: Case) -> Iterator[Audited]:
        mechanism = case.parameters.get("mechanism")
        if mechanism is None:
            return
        rounds, environment, wide = 3, self.easy(case.kind), {}
        if mechanism not in SCALAR:
            # One feature, and a delta large enough to be seen in a few runs.
            rounds = 1 if case.parameters.get("statistic") == "b" else 2
            environment = Synthetic(n_users=2, dimension=1, n_items=30, n_shown=4)
            wide = {"delta": 0.1} if mechanism == "gaussian" else {}
        table, slots = environment.table(0, 0, rounds), range(environment.n_shown)
        policy: Any = case.build(environment, rounds, **wide)
        if mechanism in SCALAR:
            half_noise = case.build(environment, rounds, epsilon=2 * policy.epsilon)
        else:
            half_noise = HalfNoise(**dataclasses.asdict(policy))
        yield Audited(
            left=edit(table, [(0, slot, 0.0) for slot in slots]),
            right=edit(table, [(0, slot, 1.0) for slot in slots]),
            policy=policy,
            half_noise=half_noise,
            rounds=rounds,
            released=self.noise_draws(case, policy, environment, rounds),
        )
