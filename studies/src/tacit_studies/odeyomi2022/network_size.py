"""Paper 000, Section VIII: whether three agents stand for a large network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.odeyomi2022.settings import (
    ALGORITHM_3,
    HORIZON,
    close,
    corrected,
    tracked,
)
from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    OWN,
    REPRODUCED,
    UNDECIDED,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    as_expected,
    summarise,
)

_SIZES = (100, 1_000)


def _size_jobs(quick: bool) -> list[Job]:
    common = {"dominance": 0.8, "horizon": HORIZON}
    n = {100: 20, 1_000: 4} if quick else {100: 400, 1_000: 60}
    three = 200 if quick else 4_000
    return [
        Job(
            f"{key}/{size or 3}",
            tracked,
            {**common, "policy": policy, "n_agents": size, "repetitions": n.get(size or 3, three)},
        )
        for key, policy in (("3", ALGORITHM_3), ("corrected 1", corrected(1, 1.0)))
        for size in (None, *_SIZES)
    ]


def _judge_size(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    sizes = [3, *_SIZES]
    found = {
        key: [summarise(outcomes[f"{key}/{n}"]["regret"]) for n in sizes]
        for key in ("3", "corrected 1")
    }
    open_ = found["3"]
    near = max(s.high for s in open_) / min(s.low for s in open_) < 1.25
    apart = max(s.mean for s in open_) / min(s.mean for s in open_) > 1.25
    return Findings(
        verdict=OWN,
        because=as_expected(REPRODUCED if near else NOT_REPRODUCED if apart else UNDECIDED)
        + (
            f"Algorithm 3 loses {open_[0].mean:.1f} rounds an agent among three agents, "
            f"{open_[1].mean:.1f} among 100 and {open_[2].mean:.1f} among 1,000; the corrected "
            f"Algorithm 1 at epsilon = 1 "
            + ", ".join(f"{s.mean:.1f}" for s in found["corrected 1"])
            + "."
        ),
        agreement=(
            "The same for any N: the outermost ends of the 95% intervals are within a factor "
            "of 1.25; an independent value agrees within 5 standard errors of the difference."
        ),
        rows=[
            *[
                Row(
                    f"Algorithm 3, regret of an agent, N = {n:,}",
                    "",
                    s.text(),
                    "44" if n == 3 else "the same for any N",
                    agrees=close(s, 44) if n == 3 else near,
                )
                for n, s in zip(sizes, open_, strict=True)
            ],
            *[
                Row(f"1 corrected, epsilon = 1, N = {n:,}", "", s.text())
                for n, s in zip(sizes, found["corrected 1"], strict=True)
            ],
        ],
        figures=[
            Figure(
                "Regret of an agent against the size of the network",
                "agents",
                "regret at T = 500 (rounds lost)",
                [
                    Series.of(label, sizes, found[key])
                    for key, label in (
                        ("3", "Algorithm 3, no privacy"),
                        ("corrected 1", "1 corrected, epsilon = 1"),
                    )
                ],
                x_log=True,
                kind="points",
                caption="The paper's three agents; then preferential attachment, 3 links each.",
            )
        ],
    )


SIZE = Reproduction(
    name="odeyomi2022-size",
    paper="odeyomi2022",
    title="Section VIII: larger networks",
    question="Does what holds for three people hold for a thousand?",
    claim="What three agents show holds for a large network: the paper says so and leaves it to be tried.",
    jobs=_size_jobs,
    judge=_judge_size,
    own=True,
)
