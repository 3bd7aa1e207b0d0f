"""Paper 004: what its noise protects."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import tacit
from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
)
from tacit_studies.wang2020.settings import (
    corrected,
    private,
)

HORIZON = 10_000
DELTA = 1e-6
_SUMS = {"kind": "noisy-sums", "trust": "central", "statistic": "b"}


def audited(
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
    from tacit.simulation import audit_policy

    environment = Synthetic(n_users=n_users, dimension=dimension, n_items=1, n_shown=1)
    contexts = np.full((rounds, 1, dimension), 1 / math.sqrt(dimension))
    weights = np.full((n_users, n_users), 1 / n_users)
    left, right = (
        recorded_table(np.zeros(rounds, int), contexts, np.full((rounds, 1), v), weights=weights)
        for v in (0.0, 1.0)
    )
    described, _ = tacit.build({**policy, "reward": "bounded"}, environment, rounds)
    found = audit_policy(
        described,
        environment,
        horizon=rounds,
        epsilon=epsilon,
        runs=runs,
        neighbours=[NeighbouringPair(left, right, "rewards 0 against 1")],
        decisions=False,
        released=released,
    )
    return {"sentence": found.sentence(), **json.loads(found.result.to_json())}


def stated(policy: Mapping[str, Any], n_users: int, dimension: int) -> dict[str, Any]:
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


def densest(n_users: int, dimension: int, divisor: float, delta: float) -> float:
    """Return the epsilon at `delta` of a change that moves all coordinates of all nodes alike.

    The published noise at epsilon = 2 has scale `divisor` / 2, in units of the L2 sensitivity.
    """
    from tacit.privacy import LaplaceRelease, composed_epsilon

    size = n_users * dimension
    one = LaplaceRelease(sensitivity=1 / math.sqrt(size), scale=divisor / 2.0)
    return float(composed_epsilon([(one, HORIZON.bit_length() * size)], delta))


def one_person(rounds: int, delta: float) -> float:
    """Return the epsilon of a person's rewards together, where each is privatised at 2."""
    from tacit.contextual import CoLin

    guarantee = CoLin(n_users=10, dimension=10, epsilon=2.0).guarantee(HORIZON)
    return float(guarantee.for_user(rounds, delta=delta).epsilon)


_PEOPLE = (1, 10, 100, 1_000)
_SIZES = ((10, 10), (100, 25))


def _privacy_jobs(quick: bool) -> list[Job]:
    runs = 6_000 if quick else 100_000
    letter = private("DP-CoLin", 2.0, clip=True, calibrated={"horizon": 3})
    alone = private("LDP-CoLin", 2.0, clip=True, calibrated={"visits": 16})
    one = corrected("CoLin", 2.0)
    ball = corrected("CoLin", 2.0, {**_SUMS, "horizon": 3})
    return [
        Job(
            "published", audited, {"policy": letter, "runs": runs, "epsilon": 2.0, "released": 100}
        ),
        Job(
            "published, user",
            audited,
            {
                "policy": alone,
                "runs": runs,
                "epsilon": 2.0,
                "released": 16,
                "n_users": 1,
                "dimension": 1,
                "rounds": 16,
            },
        ),
        Job("corrected", audited, {"policy": one, "runs": runs, "epsilon": 2.0, "released": 1}),
        Job(
            "corrected, half", audited, {"policy": one, "runs": runs, "epsilon": 1.0, "released": 1}
        ),
        Job("ball", audited, {"policy": ball, "runs": runs, "epsilon": 2.0, "released": 200}),
        *[
            Job(
                f"stated/{N}/{d}",
                stated,
                {"policy": private("DP-CoLin", 2.0, clip=True), "n_users": N, "dimension": d},
            )
            for N, d in _SIZES
        ],
        *[
            Job(
                f"dense/{key}",
                densest,
                {"n_users": 100, "dimension": 25, "divisor": divisor, "delta": DELTA},
            )
            for key, divisor in (("natural", math.log(HORIZON)), ("binary", HORIZON.bit_length()))
        ],
        *[Job(f"person/{m}", one_person, {"rounds": m, "delta": DELTA}) for m in _PEOPLE],
    ]


def _judge_privacy(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    letter, user = outcomes["published"], outcomes["published, user"]
    sound = [outcomes[key]["verdict"] == "not refuted" for key in ("corrected", "ball")]
    sharp = outcomes["corrected, half"]["verdict"] == "refuted"
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
    return Findings(
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
        agreement=(
            "A claim agrees if its audit does not refute it, or if the calculated epsilon is "
            "at most the one claimed; an independent value to the digits shown."
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
            Row(
                "audit of noise on each reward, epsilon = 2",
                "",
                outcomes["corrected"]["verdict"],
                "not refuted",
                agrees=sound[0],
            ),
            Row(
                "audit of the same, epsilon = 1",
                "",
                outcomes["corrected, half"]["verdict"],
                "refuted",
                agrees=sharp,
            ),
            Row(
                "audit of ball noise on sums, epsilon = 2",
                "",
                outcomes["ball"]["verdict"],
                "not refuted",
                agrees=sound[1],
            ),
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
            Figure(
                "Epsilon of one person, each reward privatised at 2",
                "rewards of one person",
                f"epsilon at delta = {DELTA:g}",
                [
                    Series("what holds", [float(m) for m in person], list(person.values())),
                    Series(
                        "what the paper claims of a user",
                        [float(m) for m in person],
                        [2.0] * len(person),
                        dashed=True,
                    ),
                ],
                x_log=True,
                y_log=True,
                kind="points",
            )
        ],
        privacy=(
            "The published noise is Laplace noise scaled to an L2 sensitivity, which protects up to "
            "sqrt(dN) times less than it says, and nothing where rewards are not clipped. Noise on "
            "each reward keeps its promise for one reward; a person's rewards add up."
        ),
    )


PRIVACY = Reproduction(
    name="wang2020-privacy",
    paper="wang2020",
    title="Theorems 1, 3, 5 and 7: what the noise protects",
    question="What does the noise on shared statistics really hide, and from whom?",
    claim=(
        "DP-CoLin and DP-GOBLin are epsilon-private for one reward, LDP-CoLin and LDP-GOBLin for "
        "all rewards of a user, with noise scaled to an L2 sensitivity."
    ),
    jobs=_privacy_jobs,
    judge=_judge_privacy,
)
