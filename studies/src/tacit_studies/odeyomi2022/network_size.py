"""Paper 000, Section VIII: whether three agents stand for a large network."""

from __future__ import annotations

from tacit_studies.estimates import is_close
from tacit_studies.odeyomi2022.settings import ALGORITHM_3, HORIZON, KNOWN_RUNS, corrected, track
from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points
from tacit_studies.verdicts import NOT_REPRODUCED, REPRODUCED, UNDECIDED

_LABELS = {"3": "Algorithm 3, no privacy", "corrected 1": "1 corrected, epsilon = 1"}
_SIZES = {3: None, 100: 100, 1_000: 1_000}
_RUNS = {None: Sized(4_000, 200), 100: Sized(400, 20), 1_000: Sized(60, 4)}


def _judge(found: Outcomes) -> Findings:
    regret = {key: [found.summary(f"{key}/{n}", "regret") for n in _SIZES] for key in _LABELS}
    open_, sound = regret.values()
    near = max(s.high for s in open_) / min(s.low for s in open_) < 1.25
    apart = max(s.mean for s in open_) / min(s.mean for s in open_) > 1.25
    return found.conclude(
        verdict=REPRODUCED if near else NOT_REPRODUCED if apart else UNDECIDED,
        because=(
            f"Algorithm 3 loses {open_[0].mean:.1f} rounds an agent among three agents, "
            f"{open_[1].mean:.1f} among 100 and {open_[2].mean:.1f} among 1,000; the corrected "
            f"Algorithm 1 at epsilon = 1 " + ", ".join(f"{s.mean:.1f}" for s in sound) + "."
        ),
        rows=[
            *[
                Row(
                    f"Algorithm 3, regret of an agent, N = {n:,}",
                    "",
                    s.text(),
                    "44" if n == 3 else "the same for any N",
                    agrees=is_close(s, 44, KNOWN_RUNS, digit=0.5) if n == 3 else near,
                )
                for n, s in zip(_SIZES, open_, strict=True)
            ],
            *[
                Row(f"1 corrected, epsilon = 1, N = {n:,}", "", s.text())
                for n, s in zip(_SIZES, sound, strict=True)
            ],
        ],
        figures=[
            plot_points(
                "Regret of an agent against the size of the network",
                "agents",
                "regret at T = 500 (rounds lost)",
                [Series.of(label, list(_SIZES), regret[key]) for key, label in _LABELS.items()],
                log="x",
                caption="The paper's three agents; then preferential attachment, 3 links each.",
            )
        ],
    )


SIZE = study(
    Sweep(
        "{policy}/{n_agents}",
        {"policy": {"3": ALGORITHM_3, "corrected 1": corrected(1, 1.0)}, "n_agents": _SIZES},
        track,
        dominance=0.8,
        horizon=HORIZON,
        repetitions=lambda n_agents: _RUNS[n_agents],
    ),
    judge=_judge,
    name="odeyomi2022-size",
    own=True,
)
