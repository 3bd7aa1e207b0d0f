"""Private contexts: FedUCB (Dubey and Pentland 2020) as published, and what keeps its promise.

Paper 004 takes contexts as public. FedUCB hides them, too, with agents who add noise to what they share; so
do Tacit's corrected form of it and `private-contexts`, in which everybody learns alone.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any

import numpy as np

import tacit
from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points
from tacit_studies.wang2020.settings import DELTA

_AGENTS, _DIMENSION = 8, 5
_POLICIES: dict[str, dict[str, Any]] = {
    "FedUCB, published": {"name": "fed-ucb", "variant": "published"},
    "FedUCB, corrected": {"name": "fed-ucb"},
    "everybody alone": {"name": "private-contexts"},
}
_PUBLISHED, _CORRECTED, _ALONE = _POLICIES
_HORIZON = Sized(40_000, 4_000)
_EPSILONS = Sized([0.5, 1.0, 2.0, 5.0, 10.0], [2.0])


def measure_shares(
    policy: Mapping[str, Any], epsilon: float | None, horizon: int, repetitions: int
) -> list[float]:
    """Return regret over that of a random choice, for agents who all have the same preferences."""
    from tacit.contextual import Fitted
    from tacit.simulation import play

    environment = Fitted(n_users=_AGENTS, dimension=_DIMENSION)
    given = {**policy, **({} if epsilon is None else {"epsilon": epsilon, "delta": DELTA})}
    chosen, _ = tacit.build(given, environment, horizon)
    found = []
    for repetition in range(repetitions):
        table = environment.table(5, repetition, horizon)
        same = np.tile(table.preferences[0] / np.linalg.norm(table.preferences[0]), (_AGENTS, 1))
        table = table._replace(preferences=same)
        trace = play(
            chosen, environment, horizon=horizon, table=table, seed=5, repetition=repetition
        ).trace
        found.append(float(trace.measures[-1, 0] / trace.measures[-1, 3]))
    return found


def tell_apart(policy: Mapping[str, Any], histories: int) -> list[float]:
    """Return in which histories the first round in which agents speak differs, for one changed visit.

    The visit's contexts have length 1 or a tenth. No noise is drawn before agents first speak, so that
    what differs in a history differs with certainty.
    """
    from tacit.contextual import Fitted, edit_visit
    from tacit.simulation import play

    rounds = 200
    environment = Fitted(n_users=2, dimension=2, n_items=20, n_shown=3, n_groups=1)
    given = {**policy, "epsilon": 2.0, "delta": DELTA}
    chosen, _ = tacit.build(given, environment, rounds)

    def first(length: float, history: int, seed: int) -> int:
        table = edit_visit(environment.table(6, history, rounds), 0, [length, 0.0], 1.0)

        def spoke(t: int) -> bool:
            done = play(chosen, environment, horizon=t + 1, table=table, seed=seed)
            return bool(done.state.rounds[3] > 0)

        return bisect.bisect_left(range(rounds), True, key=spoke)

    return [float(first(1.0, i, 2 * i) != first(0.1, i, 2 * i + 1)) for i in range(histories)]


def find_noise_epsilon(epsilon: float, horizon: int) -> float:
    """Return what the published noise is worth if agents spoke in rounds fixed beforehand.

    A visit enters one node on every level of a tree. Noise on the matrix has the root of 2 times the
    deviation of that on the vector; in units of the latter one visit moves a node by at most 2, where its
    context stays and its reward goes from one end to the other: 3 + 2 c - c^2 at c = 1, the cosine.
    """
    from tacit.contextual import FedUCB
    from tacit.privacy import GaussianRelease, compose

    policy = FedUCB(
        n_users=_AGENTS,
        dimension=_DIMENSION,
        epsilon=epsilon,
        delta=DELTA,
        horizon=horizon,
        variant="published",
    )
    release = GaussianRelease(sensitivity=2.0, scale=policy.params.vector_scale)
    guarantee = compose(
        [(release, horizon.bit_length())], delta=DELTA, unit="visit", trust="local", span="run"
    )
    return float(guarantee.epsilon)


def _judge(found: Outcomes) -> Findings:
    epsilons, horizon = _EPSILONS.at(found.quick), _HORIZON.at(found.quick)
    cell = {(label, e): found.mean(f"{label}/{e:g}") for label in _POLICIES for e in epsilons}
    spoke = {label: float(np.mean(found[f"spoke/{label}"])) for label in (_PUBLISHED, _CORRECTED)}
    worth = find_noise_epsilon(2.0, horizon)
    plain = found.summary("not private")
    lower = [cell[_CORRECTED, e] < cell[_PUBLISHED, e] for e in epsilons]
    checks = [spoke[_PUBLISHED] > 0.0, spoke[_CORRECTED] == 0.0, worth < 1.0, all(lower)]
    rows = [
        Row(
            f"{label}: one changed visit changes when agents first speak",
            "",
            f"in {100 * share:.0f}% of histories",
        )
        for label, share in spoke.items()
    ]
    label = "epsilon of the published noise at a claimed 2, on a fixed schedule"
    rows.append(Row(label, "", f"{worth:.2f}"))
    rows += [
        Row(
            f"epsilon = {e:g}: regret over a random choice's",
            "",
            "; ".join(f"{label} {cell[label, e]:.2f}" for label in _POLICIES),
        )
        for e in epsilons
    ]
    return found.conclude(
        checks=checks,
        because=(
            "FedUCB's claim does not hold: an agent asks for a synchronisation when the determinant of its "
            "true contexts has grown. One changed visit changes when in "
            f"{100 * spoke[_PUBLISHED]:.0f}% of histories, and there with certainty, because no noise has "
            f"been drawn; corrected in {100 * spoke[_CORRECTED]:.0f}%. Its noise is larger than it need be: "
            "at a claimed "
            f"epsilon of 2 it would be worth {worth:.2f} on a schedule that is fixed beforehand. After "
            f"{horizon:,} rounds at epsilon 2 it has {100 * cell[_PUBLISHED, 2.0]:.0f}% of the "
            f"regret of a random choice, the corrected form {100 * cell[_CORRECTED, 2.0]:.0f}%, "
            f"everybody alone {100 * cell[_ALONE, 2.0]:.0f}%; without privacy it is "
            f"{100 * plain.mean:.0f}%."
        ),
        rows=rows,
        figures=[
            plot_points(
                f"{_AGENTS} agents with the same preferences, contexts private, {horizon:,} rounds",
                "epsilon",
                "regret over that of a random choice",
                [
                    *[
                        found.line(label, epsilons, f"{label}/{{:g}}", dashed=label == _PUBLISHED)
                        for label in _POLICIES
                    ],
                    Series.of("not private", epsilons, [plain] * len(epsilons), dashed=True),
                ],
                caption="Means and 95% intervals, delta = 1e-6, five features. Dashed: published, which does "
                "not deliver its epsilon, and without noise.",
            )
        ],
    )


_RUN: dict[str, Any] = {"horizon": _HORIZON, "repetitions": Sized(10, 3)}
FEDERATED = study(
    Sweep("not private", {}, measure_shares, policy={"name": "fed-ucb"}, epsilon=None, **_RUN),
    Sweep(
        "{policy}/{epsilon:g}", {"policy": _POLICIES, "epsilon": _EPSILONS}, measure_shares, **_RUN
    ),
    Sweep(
        "spoke/{policy}",
        {"policy": {label: _POLICIES[label] for label in (_PUBLISHED, _CORRECTED)}},
        tell_apart,
        histories=Sized(200, 20),
    ),
    judge=_judge,
    name="wang2020-federated",
    own=True,
)
