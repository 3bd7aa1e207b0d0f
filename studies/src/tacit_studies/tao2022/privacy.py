"""Paper 001: what the perturbed messages protect."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tao2022.settings import BETA, crowd, options
from tacit_studies.tools import plot_points
from tacit_studies.verdicts import verdict_on

_OPTIONS = 3


def _policy(variant: str = "corrected") -> Any:
    from tacit.dynamics import LearningDynamics

    return LearningDynamics(
        n_options=_OPTIONS, n_agents=1, epsilon=1.0, tokens=1, variant=variant, delta=1e-6
    )


class _Sent:
    """What an agent that adopts an option (-1: none) sends in one round; silence is not a number."""

    def __init__(self, variant: str) -> None:
        from tacit.dynamics import SocialOptions

        self.policy = _policy(variant)
        self.environment = SocialOptions(qualities=(0.5,) * _OPTIONS, n_agents=1)

    def __call__(self, option: int, runs: int, seed: int) -> NDArray[np.float64]:
        from tacit.dynamics import edit_adoption
        from tacit.simulation import play

        table = edit_adoption(self.environment.table(0, 0, 1), 0, option)
        sent = np.full((runs, _OPTIONS), np.nan)
        for run in range(runs):
            done = play(
                self.policy, self.environment, horizon=1, table=table, seed=seed, repetition=run
            )
            word = int(done.state.message[0, 0])
            if word >> 63:
                sent[run] = [(word >> j) & 1 for j in range(_OPTIONS)]
        return sent


def audit_message(
    variant: str, left: int, right: int, epsilon: float, delta: float, runs: int
) -> Any:
    """Audit one message of an agent that adopts `left` against one that adopts `right`."""
    from tacit.privacy import audit

    found = audit(_Sent(variant), left, right, epsilon=epsilon, delta=delta, runs=runs)
    return {"sentence": found.sentence(), **json.loads(found.to_json())}


def calculate_message(left: int, right: int) -> float:
    """Return the largest log ratio of any message's probabilities, over all of them."""
    release = _policy().release

    def chance(message: Sequence[int], option: int) -> float:
        ones: list[float] = [
            release.keep_one if j == option else 1 - release.keep_zero for j in range(_OPTIONS)
        ]
        return math.prod(p if bit else 1 - p for p, bit in zip(ones, message, strict=True))

    messages = list(itertools.product((0, 1), repeat=_OPTIONS))
    return max(abs(math.log(chance(m, left) / chance(m, right))) for m in messages)


def compose_rounds(rounds: int) -> float:
    """Return epsilon at delta = 1e-6 of an agent's messages of so many rounds."""
    return float(_policy().guarantee(rounds).epsilon)


_AUDITS: dict[str, tuple[Any, ...]] = {
    "speech": ("published", 1, 2, 1.0, 0.0),
    "speech, half": ("published", 1, 2, 0.5, 0.0),
    "silence": ("published", 1, -1, 1.0, 0.5),
    "zeros": ("corrected", 1, -1, 0.5, 0.0),
    "zeros, half": ("corrected", 1, -1, 0.25, 0.0),
}
_ROUNDS = (1, 10, 100, 1_000, 10_000)
_LOOSE = {100: 55.0, 1_000: 347.0, 10_000: 2_787.0}
"""By an independent accountant, which errs upwards by up to 1%; the exact binomial sum is ours."""
_KNOWN_COSTS = {
    "published-2": 0.336,
    "corrected-2": 0.398,
    "published-4": 0.162,
    "corrected-4": 0.215,
}
"""Regret by variant and epsilon, mean of 20 runs."""
_COSTS = Sized(tuple(_KNOWN_COSTS), tuple(_KNOWN_COSTS)[:2])


def _judge(outcomes: Outcomes) -> Findings:
    costs = {key: outcomes.summary(key) for key in _COSTS.at(outcomes.quick)}
    refuted = {key: outcomes[key]["verdict"] == "refuted" for key in _AUDITS}
    speech = refuted["speech, half"] and not refuted["speech"]
    repaired = refuted["zeros, half"] and not refuted["zeros"]
    between, zeros = outcomes["exact2"], outcomes["exact-1"]
    composed = {R: outcomes[f"rounds{R}"] for R in _ROUNDS}
    rows = [
        Row(
            "one message, two adoptions: exact",
            "1",
            f"{between:.4g}",
            "1",
            agrees=math.isclose(between, 1.0),
        ),
        Row(
            "one message, two adoptions: audit of 1 and of 0.5",
            "holds",
            f"{outcomes['speech']['verdict']}, {outcomes['speech, half']['verdict']}",
            agrees=speech,
        ),
        Row(
            "one message, adoption or none, published: audit of 1 at delta = 0.5",
            "holds",
            outcomes["silence"]["verdict"],
            "refuted",
            agrees=not refuted["silence"],
        ),
        Row(
            "one message, adoption or none, corrected: exact",
            "",
            f"{zeros:.4g}",
            "0.5",
            agrees=math.isclose(zeros, 0.5),
        ),
        Row(
            "one message, adoption or none, corrected: audit of 0.5 and of 0.25",
            "",
            f"{outcomes['zeros']['verdict']}, {outcomes['zeros, half']['verdict']}",
            agrees=repaired,
        ),
    ]
    for R, epsilon in composed.items():
        loose = _LOOSE.get(R)
        near = None if loose is None else 0.99 * loose - 0.5 <= epsilon <= loose + 0.5
        rows.append(
            Row(
                f"a history of {R:,} round{'s' * (R > 1)}, at delta = 1e-6",
                "",
                f"{epsilon:,.4g}",
                "" if loose is None else f"{loose:,.0f}",
                agrees=near,
            )
        )
    spread = max(each.error * math.sqrt(each.n) for each in costs.values())
    for key, summary in costs.items():
        known, (variant, _, epsilon) = _KNOWN_COSTS[key], key.partition("-")
        error = spread * math.sqrt(1 / summary.n + 1 / 20)
        close = abs(summary.mean - known) <= 5 * error + 0.0005
        label = f"regret, {variant}, epsilon = {epsilon}"
        rows.append(Row(label, "", summary.text(), f"{known:.3f}", agrees=close))
    silence = outcomes["silence"]
    return outcomes.conclude(
        verdict=verdict_on(speech, not refuted["silence"]),
        because=(
            f"Between two adoptions epsilon = 1 {'is exact' if speech else 'does not stand'}: the "
            f"audit finds at least {outcomes['speech, half']['lower_bound']:.2f}. An agent without "
            "an adoption is silent, and at delta = 0.5 the audit "
            f"{'refutes' if refuted['silence'] else 'does not refute'} epsilon = 1 (at least "
            f"{silence['lower_bound']:.1f}). 10,000 rounds compose to {composed[10_000]:,.0f}."
        ),
        rows=rows,
        figures=[
            plot_points(
                "Epsilon of an agent's history",
                "rounds",
                "epsilon at delta = 1e-6",
                [
                    Series("composed", [float(R) for R in composed], list(composed.values())),
                    Series("of one round", [1.0, 10_000.0], [1.0, 1.0], dashed=True),
                ],
            )
        ],
    )


PRIVACY = study(
    *(
        Sweep(
            key,
            {},
            audit_message,
            **dict(zip(("variant", "left", "right", "epsilon", "delta"), values, strict=True)),
            runs=Sized(200_000, 4_000),
        )
        for key, values in _AUDITS.items()
    ),
    Sweep("exact{right}", {"right": (2, -1)}, calculate_message, left=1),
    Sweep("rounds{rounds}", {"rounds": _ROUNDS}, compose_rounds),
    Sweep(
        "{cost}",
        {"cost": _COSTS},
        policy=lambda cost: crowd(
            variant=cost.partition("-")[0],
            epsilon=float(cost.partition("-")[2]),
            beta=BETA,
            mu=6.7e-5,
        ),
        environment=options(10_000, np.linspace(1.0, 0.0, 10).tolist()),
        horizon=10_000,
        repetitions=Sized(30, 3),
    ),
    judge=_judge,
    name="tao2022-privacy",
)
