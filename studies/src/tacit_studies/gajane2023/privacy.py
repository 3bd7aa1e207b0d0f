"""Paper 003: what randomized response protects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.gajane2023.settings import sliding
from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    PARTLY,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
)
from tacit_studies.tools import audited


def _user_epsilon(rounds: int, delta: float) -> float:
    from tacit.arms import SWKLUCBCF

    policy = SWKLUCBCF(n_arms=2, horizon=1000, epsilon=1.0)
    return float(policy.guarantee(1000).for_user(rounds, delta=delta).epsilon)


def _privacy_jobs(quick: bool) -> list[Job]:
    runs = 100_000 if quick else 1_000_000
    environment = {"name": "bernoulli", "means": [0.3, 0.7]}
    policy = sliding(epsilon=1.0)
    common = {"policy": policy, "environment": environment, "horizon": 10, "runs": runs}
    return [
        Job("as stated", audited, common),
        Job("half", audited, {**common, "epsilon": 0.5}),
        *[Job(f"user{m}", _user_epsilon, {"rounds": m, "delta": 1e-6}) for m in (1, 10, 100, 1000)],
    ]


def _judge_privacy(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    stated, half = outcomes["as stated"], outcomes["half"]
    user = {m: outcomes[f"user{m}"] for m in (1, 10, 100, 1000)}
    sound = stated["verdict"] == "not refuted" and half["verdict"] == "refuted"
    return Findings(
        verdict=PARTLY if sound else NOT_REPRODUCED,
        because=(
            "For one reward epsilon = 1 is exact: the audit does not refute it and refutes 0.5 "
            f"(lower bound {half['lower_bound']:.2f}). Definition 2 speaks of whole sequences, and "
            f"there 100 rewards of one person cost {user[100]:.1f} at delta = 1e-6."
        ),
        agreement=(
            "A claim agrees if its audit does not refute it while it refutes half of it; a "
            "person's epsilon if it is at most the one claimed."
        ),
        rows=[
            Row("audit of epsilon = 1, one reward", "holds", stated["verdict"], agrees=sound),
            Row(
                "audit of epsilon = 0.5, one reward",
                "",
                half["verdict"],
                agrees=half["verdict"] == "refuted",
            ),
            *[
                Row(
                    f"a person with {m:,} rewards",
                    "1",
                    f"{e:.4g}",
                    "83.5" if m == 100 else "",
                    agrees=m == 1,
                )
                for m, e in user.items()
            ],
        ],
        figures=[
            Figure(
                "Epsilon of one person",
                "rewards of one person",
                "epsilon at delta = 1e-6",
                [
                    Series("composed", [float(m) for m in user], [float(e) for e in user.values()]),
                    Series("claimed", [float(m) for m in user], [1.0] * 4, dashed=True),
                ],
                x_log=True,
                y_log=True,
                kind="points",
            )
        ],
        privacy="Holds for one reward; a person's n rewards compose, and the window does not cap that.",
    )


PRIVACY = Reproduction(
    name="gajane2023-privacy",
    paper="gajane2023",
    title="Local differential privacy",
    question="What exactly does randomized response protect here?",
    claim="epsilon-local differential privacy of whole reward sequences (Definition 2).",
    jobs=_privacy_jobs,
    judge=_judge_privacy,
)
