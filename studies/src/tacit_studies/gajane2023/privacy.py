"""Paper 003: what randomized response protects."""

from __future__ import annotations

from typing import Any

from tacit_studies.gajane2023.settings import sliding
from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import audit, flat, plot_points
from tacit_studies.verdicts import NOT_REPRODUCED, PARTLY

_REWARDS = (1, 10, 100, 1000)
"""Of one person."""


def find_user_epsilon(rounds: int, delta: float) -> float:
    """Return the epsilon of a person's rewards together, where each is privatised at 1."""
    from tacit.arms import SWKLUCBCF

    policy = SWKLUCBCF(n_arms=2, horizon=1000, epsilon=1.0)
    return float(policy.guarantee(1000).for_user(rounds, delta=delta).epsilon)


def _judge(found: Outcomes) -> Findings:
    stated, half = found["as stated"]["verdict"], found["half"]["verdict"]
    user = {m: float(found[f"user{m}"]) for m in _REWARDS}
    sound = stated == "not refuted" and half == "refuted"
    return found.conclude(
        verdict=PARTLY if sound else NOT_REPRODUCED,
        because=(
            "For one reward epsilon = 1 is exact: the audit does not refute it and refutes 0.5 "
            f"(lower bound {found['half']['lower_bound']:.2f}). Definition 2 speaks of whole sequences, and "
            f"there 100 rewards of one person cost {user[100]:.1f} at delta = 1e-6."
        ),
        rows=[
            Row("audit of epsilon = 1, one reward", "holds", stated, agrees=sound),
            Row("audit of epsilon = 0.5, one reward", "", half, agrees=half == "refuted"),
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
            plot_points(
                "Epsilon of one person",
                "rewards of one person",
                "epsilon at delta = 1e-6",
                [
                    Series("composed", [float(m) for m in user], list(user.values())),
                    flat("claimed", _REWARDS, 1.0),
                ],
            )
        ],
    )


_AUDIT: dict[str, Any] = {
    "policy": sliding(epsilon=1.0),
    "environment": {"name": "bernoulli", "means": [0.3, 0.7]},
    "horizon": 10,
    "runs": Sized(1_000_000, 100_000),
}
PRIVACY = study(
    Sweep("as stated", {}, audit, **_AUDIT),
    Sweep("half", {}, audit, **_AUDIT, epsilon=0.5),
    Sweep("user{rounds}", {"rounds": _REWARDS}, find_user_epsilon, delta=1e-6),
    judge=_judge,
    name="gajane2023-privacy",
)
