"""Paper 004: what its noise protects."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import tacit
from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import audit, flat, plot_points
from tacit_studies.verdicts import NOT_REPRODUCED, REPRODUCED, UNDECIDED
from tacit_studies.wang2020.settings import DELTA, corrected, private

HORIZON = 10_000
_SUMS = {"kind": "noisy-sums", "trust": "central", "statistic": "b"}


def audit_sums(
    policy: Mapping[str, Any],
    runs: int,
    epsilon: float,
    released: int,
    n_users: int = 10,
    dimension: int = 10,
    rounds: int = 1,
) -> dict[str, Any]:
    """Audit the values released in the first rounds; all their rewards are 0, or all 1.

    Everybody has the same share in everybody's reward, and all features of a context are equal:
    the direction in which the two norms differ most.
    """
    from tacit.contextual import Synthetic, recorded_table
    from tacit.privacy import NeighbouringPair

    environment = Synthetic(n_users=n_users, dimension=dimension, n_items=1, n_shown=1)
    contexts = np.full((rounds, 1, dimension), 1 / math.sqrt(dimension))
    weights = np.full((n_users, n_users), 1 / n_users)
    left, right = (
        recorded_table(np.zeros(rounds, int), contexts, np.full((rounds, 1), v), weights=weights)
        for v in (0.0, 1.0)
    )
    return audit(
        {**policy, "reward": "bounded"},
        environment,
        rounds,
        runs,
        epsilon,
        neighbours=[NeighbouringPair(left, right, "rewards 0 against 1")],
        decisions=False,
        released=released,
    )


def state_guarantee(policy: Mapping[str, Any], n_users: int, dimension: int) -> dict[str, Any]:
    """Return the epsilon that holds for one reward over the whole run, and the sentence."""
    from tacit.contextual import Synthetic

    place = Synthetic(n_users=n_users, dimension=dimension)
    described: Any = tacit.build({**policy, "reward": "bounded"}, place, HORIZON)[0]
    guarantee = described.guarantee(HORIZON)
    unclipped = dataclasses.replace(described.privacy, clip=False)
    loose = dataclasses.replace(described, privacy=unclipped).guarantee(HORIZON)
    return {
        "epsilon": guarantee.epsilon,
        "sentence": guarantee.sentence(),
        "without clipping": loose.epsilon if loose.private else None,
    }


def find_densest(n_users: int, dimension: int, divisor: float, delta: float) -> float:
    """Return the epsilon at `delta` of a change that moves all coordinates of all nodes alike.

    The published noise at epsilon = 2 has scale `divisor` / 2, in units of the L2 sensitivity.
    """
    from tacit.privacy import LaplaceRelease, composed_epsilon

    size = n_users * dimension
    one = LaplaceRelease(sensitivity=1 / math.sqrt(size), scale=divisor / 2.0)
    return float(composed_epsilon([(one, HORIZON.bit_length() * size)], delta))


def compose_person(rounds: int, delta: float) -> float:
    """Return the epsilon of a person's rewards together, where each is privatised at 2."""
    from tacit.contextual import CoLin

    guarantee = CoLin(n_users=10, dimension=10, epsilon=2.0).guarantee(HORIZON)
    return float(guarantee.for_user(rounds, delta=delta).epsilon)


_PEOPLE = (1, 10, 100, 1_000)
_SIZES = ((10, 10), (100, 25))


def _judge(outcomes: Outcomes) -> Findings:
    letter, user = outcomes["published"], outcomes["published, user"]
    exact = {size: outcomes["stated/{}/{}".format(*size)] for size in _SIZES}
    small, large = (exact[size] for size in _SIZES)
    person = {m: outcomes[f"person/{m}"] for m in _PEOPLE}
    falls = [letter["verdict"] == "refuted", user["verdict"] == "refuted"]
    holds_exactly = all(found["epsilon"] <= 2.0 for found in exact.values())
    verdict = UNDECIDED
    if any(falls):
        verdict = NOT_REPRODUCED
    elif holds_exactly:
        verdict = REPRODUCED
    dense = {key: outcomes[f"dense/{key}"] for key in ("natural", "binary")}
    loose = large["without clipping"]
    return outcomes.conclude(
        verdict=verdict,
        because=(
            "DP-CoLin claims epsilon = 2 for one reward; for a single release the audit says "
            f"{letter['verdict']} (lower bound {letter['lower_bound']:.2f}). Over "
            f"{HORIZON:,} rounds {small['epsilon']:.1f} holds for 10 users and 10 features, "
            f"{large['epsilon']:.0f} for 100 and 25. LDP-CoLin claims 2 for all rewards of a user; "
            f"for 16 of them the audit says {user['verdict']} (lower bound "
            f"{user['lower_bound']:.2f}); of noise on each reward at 2 it says "
            f"{outcomes['corrected']['verdict']}."
        ),
        rows=[
            Row(
                "audit of DP-CoLin, epsilon = 2, one release",
                "holds",
                letter["verdict"],
                agrees=not falls[0],
            ),
            Row(
                "audit of LDP-CoLin, epsilon = 2, 16 rewards of a user",
                "holds",
                user["verdict"],
                agrees=not falls[1],
            ),
            *[
                Row(
                    f"DP-CoLin, N = {N}, d = {d}: epsilon of one reward",
                    "2",
                    f"{found['epsilon']:.1f}",
                    agrees=found["epsilon"] <= 2.0,
                )
                for (N, d), found in exact.items()
            ],
            Row(
                "the same with rewards as they are, not clipped",
                "2",
                "no finite epsilon" if loose is None else f"{loose:.1f}",
                agrees=loose is not None and loose <= 2.0,
            ),
            Row(
                "densest change, N = 100, d = 25, delta = 1e-6, log of the tree base 2",
                "2",
                f"{dense['binary']:.2f}",
                "2.42",
                agrees=abs(dense["binary"] - 2.42) < 0.005,
            ),
            Row(
                "the same, natural log",
                "2",
                f"{dense['natural']:.2f}",
                agrees=dense["natural"] <= 2.0,
            ),
            *[
                Row(f"audit of {label}", "", said, expected, agrees=said == expected)
                for label, said, expected in (
                    (
                        "noise on each reward, epsilon = 2",
                        outcomes["corrected"]["verdict"],
                        "not refuted",
                    ),
                    ("the same, epsilon = 1", outcomes["corrected, half"]["verdict"], "refuted"),
                    ("ball noise on sums, epsilon = 2", outcomes["ball"]["verdict"], "not refuted"),
                )
            ],
            *[
                Row(
                    f"noise on each reward at 2: a person with {m:,}",
                    "2",
                    f"{e:,.1f}",
                    agrees=e <= 2.0 + 1e-9,
                )
                for m, e in person.items()
            ],
        ],
        figures=[
            plot_points(
                "Epsilon of one person, each reward privatised at 2",
                "rewards of one person",
                f"epsilon at delta = {DELTA:g}",
                [
                    Series("what holds", [float(m) for m in person], list(person.values())),
                    flat("what the paper claims of a user", _PEOPLE, 2.0),
                ],
            )
        ],
    )


_LETTER = private("DP-CoLin", 2.0, clip=True, calibrated={"horizon": 3})
_ALONE = private("LDP-CoLin", 2.0, clip=True, calibrated={"visits": 16})
_ONE = corrected("CoLin", 2.0)
_BALL = corrected("CoLin", 2.0, {**_SUMS, "horizon": 3})
_AUDITS: dict[str, dict[str, Any]] = {
    "published": {"policy": _LETTER, "epsilon": 2.0, "released": 100},
    "published, user": {
        "policy": _ALONE,
        "epsilon": 2.0,
        "released": 16,
        "n_users": 1,
        "dimension": 1,
        "rounds": 16,
    },
    "corrected": {"policy": _ONE, "epsilon": 2.0, "released": 1},
    "corrected, half": {"policy": _ONE, "epsilon": 1.0, "released": 1},
    "ball": {"policy": _BALL, "epsilon": 2.0, "released": 200},
}
PRIVACY = study(
    *(
        Sweep(key, {}, audit_sums, **arguments, runs=Sized(100_000, 6_000))
        for key, arguments in _AUDITS.items()
    ),
    Sweep(
        "stated/{size[0]}/{size[1]}",
        {"size": _SIZES},
        state_guarantee,
        policy=private("DP-CoLin", 2.0, clip=True),
        n_users=lambda size: size[0],
        dimension=lambda size: size[1],
    ),
    Sweep(
        "dense/{divisor}",
        {"divisor": {"natural": math.log(HORIZON), "binary": HORIZON.bit_length()}},
        find_densest,
        n_users=100,
        dimension=25,
        delta=DELTA,
    ),
    Sweep("person/{rounds}", {"rounds": _PEOPLE}, compose_person, delta=DELTA),
    judge=_judge,
    name="wang2020-privacy",
)
