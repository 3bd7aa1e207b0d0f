"""The users setting: a user arrives with contexts, one of them is offered."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from battery.cases import Audited, Case, Setting, Silent, half_tape, play
from tacit.contextual import (
    CoLin,
    FedUCB,
    Fitted,
    LearnedKernel,
    NoisySums,
    PerReward,
    PrivateContexts,
    Residual,
    RestartingLinUCB,
    Synthetic,
    edit_rewards,
)
from tacit.contextual.model import State
from tacit.contextual.neighbours import edit_visit
from tacit.contextual.table import matrix_of, rows_of
from tacit.core.arrays import leaves
from tacit.core.policy import Environment, Policy

OF_VISITS = (PrivateContexts, FedUCB)
"""Policies that hide contexts, too: their unit is a visit, and their ridge knows of the noise."""
SIZES = {"n_users": 3, "dimension": 2, "n_items": 30, "n_shown": 4}


IN_0_2 = (
    "place layout pending covariance deferred kernel_diagonal mean energy log_volume norm_bound basis kernel "
    "within gram response scales rounds reports ones lifted deviation steps memory sums eta lift shift work"
)
"""The arrays of a state of 0.2.0, in its order."""


class Reversed(Synthetic):
    """The same users under each other's numbers."""

    def table(self, seed: int, repetition: int, horizon: int) -> Any:
        table = super().table(seed, repetition, horizon)
        return table._replace(
            weights=rows_of(matrix_of(table.weights)[::-1, ::-1]),
            graph=rows_of(matrix_of(table.graph)[::-1, ::-1]),
            preferences=np.ascontiguousarray(table.preferences[::-1]),
        )


class HalfNoise(CoLin):
    """CoLin with half the noise on sums that it declares."""

    def open(self, **joined: Any) -> Any:
        state = super().open(**joined)
        state.sums.scales[:, [0, 2]] /= 2
        return state


class HalfMoments(PrivateContexts):
    """Half the noise on moments that is declared."""

    @property
    def params(self) -> Any:
        return super().params._replace(scale=super().params.scale / 2)


class HalfFederated(FedUCB):
    """Half the noise on moments that is declared."""

    @property
    def params(self) -> Any:
        params = super().params
        return params._replace(
            matrix_scale=params.matrix_scale / 2, vector_scale=params.vector_scale / 2
        )


class UsersSetting(Setting):
    name = "users"

    def rounds(self, kind: type[Policy]) -> int:
        return 60

    def reading(self, kind: type[Policy]) -> int:
        return 1500

    def variants(self, kind: type[Policy]) -> list[dict[str, Any]]:
        if kind is RestartingLinUCB:
            return [{}, {"epsilon": 2.0}, _hidden("per-reward", mechanism="bit")]
        if kind is PrivateContexts:
            return [{}, {"epsilon": 2.0}, {"epsilon": 8.0, "trust": "local"}]
        if kind is FedUCB:
            return [{}, {"epsilon": 8.0}, {"epsilon": 8.0, "variant": "published"}]
        sets: list[dict[str, Any]] = [
            {},
            {"epsilon": 2.0},
            _hidden("per-reward", mechanism="laplace"),
        ]
        if not issubclass(kind, LearnedKernel):  # which learns from reports, not from noisy sums
            sets.append(_hidden("published", trust="central"))
        if kind is CoLin:
            gaussian, central = {"delta": 1e-6}, {"trust": "central"}
            sets += [
                _hidden("per-reward", mechanism="bit"),
                _hidden("per-reward", mechanism="piecewise"),
                _hidden("per-reward", mechanism="bit", centred=True) | {"half_life": 300},
                _hidden("residual", sigma=0.1),
                _hidden("published", trust="local"),
                _hidden("noisy-sums", **gaussian, continual="toeplitz"),
                _hidden("noisy-sums", **central),
                _hidden("noisy-sums", **central, **gaussian),
                _hidden("noisy-sums", **central, statistic="b"),
                _hidden("noisy-sums", **central, statistic="b", **gaussian),
                _hidden("noisy-sums", **central, statistic="b", **gaussian, continual="toeplitz"),
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
        private = "epsilon" in case.parameters and case.kind in OF_VISITS
        slow = private or _kind(case) in ("noisy-sums", "published")
        return bool(ratio < (1.0 if slow else 0.5))

    def noise_draws(self, case: Case, policy: Any, environment: Environment, horizon: int) -> int:
        if isinstance(policy, PrivateContexts):
            return _moments(policy, environment, horizon)
        if isinstance(policy, FedUCB):
            return _synchronised(policy, environment, horizon)
        hidden = policy.protection
        if hidden is None:
            return 0
        if isinstance(hidden, PerReward | Residual):
            return horizon
        size = environment.dimension * (environment.n_users if hidden.on_b else 1)
        ball = isinstance(hidden, NoisySums) and hidden.delta == 0
        return horizon * size * (2 if ball else 1)

    def as_in_0_2(self, state: Any) -> Any:
        return flat(state) if isinstance(state, State) else state

    def silent(self, case: Case) -> Iterator[Silent]:
        if case.kind in OF_VISITS:
            return
        # A rounded bit and a draw from a window are not nought at the median.
        private: Any = case.build(environment := Synthetic(**SIZES, spread=0.0), case.rounds)
        hidden = private.protection
        if hidden is None or isinstance(hidden, Residual):
            return
        if isinstance(hidden, PerReward) and hidden.chosen != "laplace":
            return
        plain = Case(case.kind).build(environment, case.rounds, regularisation=private.ridge)
        quiet = half_tape(1500, 16)
        rounding = 0.0 if isinstance(hidden, PerReward) else 1e-9
        yield Silent(environment, private, plain, quiet, quiet, rounding)

    def audited(self, case: Case) -> Iterator[Audited]:
        if case.kind in OF_VISITS:
            yield from _audited_visits(case)
            return
        if _kind(case) not in ("per-reward", "residual", "noisy-sums"):
            return
        rounds, environment, changes = 3, self.easy(case.kind), {}
        if _kind(case) == "noisy-sums":
            # One feature, and a delta large enough to be seen in a few runs.
            hidden = dict(case.parameters["privacy"])
            rounds = 1 if hidden.get("statistic") == "b" else 2
            environment = Synthetic(n_users=2, dimension=1, n_items=30, n_shown=4)
            if "delta" in hidden:
                changes = {"privacy": hidden | {"delta": 0.1}}
        table, slots = environment.table(0, 0, rounds), range(environment.n_shown)
        policy: Any = case.build(environment, rounds, **changes)
        protection = policy.protection
        if isinstance(protection, PerReward | Residual):
            loose = dataclasses.replace(protection, epsilon=2 * protection.epsilon)
            half_noise = dataclasses.replace(policy, privacy=loose, epsilon=None)
        else:
            given = {f.name: getattr(policy, f.name) for f in dataclasses.fields(policy)}
            half_noise = HalfNoise(**given)
        yield Audited(
            left=edit_rewards(table, [(0, slot, 0.0) for slot in slots]),
            right=edit_rewards(table, [(0, slot, 1.0) for slot in slots]),
            policy=policy,
            half_noise=half_noise,
            rounds=rounds,
            released=self.noise_draws(case, policy, environment, rounds),
        )


def flat(state: State) -> Any:
    """Return a state as one tuple, with the arrays that 0.2.0 had for what a policy does not use."""
    N, d = state.ridge.mean.shape
    unused = {
        "basis": np.zeros((0, 0)),
        "scales": np.empty((0, 4)),
        "reports": np.zeros(4),
        "ones": np.zeros((0, d)),
        "lifted": np.zeros((0, d)),
        "deviation": np.zeros(2),
        "steps": np.zeros(0, np.int64),
        "memory": np.zeros((0, d, 0)),
        "sums": np.zeros((0, d)),
        "eta": np.zeros(N * d),
        "lift": np.zeros((N, d)),
        "shift": np.zeros((N, d)),
    }
    used = {name.rpartition(".")[2]: array for name, array in leaves(state)}
    kind = namedtuple("State", IN_0_2 + " watch" if "watch" in used else IN_0_2)
    assert set(used) <= set(kind._fields)
    return kind(**(unused | used))


def _moments(policy: PrivateContexts, environment: Environment, horizon: int) -> int:
    """Return how many numbers all releases have: rounds one by one, or after 1, 3, 7, ... of a user."""
    if policy.epsilon is None:
        return 0
    N, d = policy.n_users, policy.dimension
    visits = [(horizon - user + N - 1) // N for user in range(N)]
    releases = sum(visits) if policy.trust == "local" else sum(int(np.log2(v + 1)) for v in visits)
    return releases * (d * (d + 3) // 2)


def _synchronised(policy: FedUCB, environment: Environment, horizon: int) -> int:
    """Return how many numbers agents send: after N, 3 N, 7 N, ... rounds, or when one asks for it."""
    if policy.epsilon is None:
        return 0
    N, d = policy.n_users, policy.dimension
    times = int(np.log2(horizon / N + 1))
    if policy.variant == "published":
        times = int(play(policy, environment, horizon).state.rounds[3])
    return times * N * (d * (d + 3) // 2)


def _audited_visits(case: Case) -> Iterator[Audited]:
    """Yield one round of one user: the two visits whose moments differ most."""
    if "epsilon" not in case.parameters or "variant" in case.parameters:
        return
    environment = Fitted(n_users=1, dimension=2, n_items=30, n_shown=4, n_groups=1)
    policy: Any = case.build(environment, 1, epsilon=2.0, delta=0.1)
    given = {f.name: getattr(policy, f.name) for f in dataclasses.fields(policy)}
    table = environment.table(0, 0, 1)
    yield Audited(
        left=edit_visit(table, 0, [1.0, 0.0], -1.0),
        right=edit_visit(table, 0, [0.5, np.sqrt(0.75)], 1.0),
        policy=policy,
        half_noise=(HalfMoments if case.kind is PrivateContexts else HalfFederated)(**given),
        rounds=1,
        released=5,
    )


def _hidden(kind: str, **parameters: Any) -> dict[str, Any]:
    return {"privacy": {"kind": kind, "epsilon": 2.0, **parameters}}


def _kind(case: Case) -> str:
    """Return the kind of noise of a case, or nothing."""
    if case.kind in OF_VISITS:
        return case.kind.name
    if "epsilon" in case.parameters:
        return Residual.kind
    return str(case.parameters.get("privacy", {"kind": ""})["kind"])
