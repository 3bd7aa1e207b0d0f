"""The users room: a user arrives with contexts, one of them is offered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from battery.cases import Audited, Case, Room, Silent, half_tape
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


class UsersRoom(Room):
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
            sets += [
                {"epsilon": 2.0, "mechanism": "bit"},
                {"epsilon": 2.0, "mechanism": "piecewise"},
                {"epsilon": 2.0, "variant": "published", "trust": "local"},
                {**central, "mechanism": "ball"},
                {**central, "mechanism": "gaussian", "delta": 1e-6},
                {**central, "mechanism": "gaussian", "delta": 1e-6, "continual": "toeplitz"},
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

    def noise_draws(self, case: Case, policy: Any, world: Environment, horizon: int) -> int:
        if policy.epsilon is None:
            return 0
        if policy.chosen_mechanism in SCALAR:
            return horizon
        everybody = world.n_users * world.dimension
        return horizon * everybody * (2 if policy.chosen_mechanism == "ball" else 1)

    def silent(self, case: Case) -> Iterator[Silent]:
        # A rounded bit and a draw from a window are not nought at the median.
        if "epsilon" in case.parameters and case.parameters.get("mechanism") not in SCALAR[1:]:
            world = Synthetic(**SIZES, spread=0.0)
            private = case.build(world, case.rounds)
            plain = Case(case.kind).build(world, case.rounds)
            quiet = half_tape(1500, 16)
            yield Silent(world, private, plain, quiet, quiet)

    def audited(self, case: Case) -> Iterator[Audited]:
        # Noise on sums hides one reward among all coordinates: its mechanisms are audited by
        # themselves, in the tests of privacy.
        if case.parameters.get("mechanism") in SCALAR:
            world = self.easy(case.kind)
            table = world.table(0, 0, 3)
            slots = range(world.n_shown)
            yield Audited(
                left=edit(table, [(1, slot, 0.0) for slot in slots]),
                right=edit(table, [(1, slot, 1.0) for slot in slots]),
                policy=case.build(world, 3),
                half_noise=case.build(world, 3, epsilon=2 * case.parameters["epsilon"]),
                rounds=3,
                released=3,
            )
