"""Paper 003: an unknown horizon, handled by the doubling trick."""

from __future__ import annotations

from tacit_studies.gajane2023.settings import RUNS, sliding
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import exponent_of, plot_regret

_POLICIES = {
    "told the horizon": sliding(epsilon=2.0),
    "doubling": {"name": "doubling-sw-klucb-cf", "first_horizon": 1000, "epsilon": 2.0},
}
_HORIZONS = Sized([10_000, 27_000, 70_000, 190_000, 500_000], [5_000, 20_000, 80_000])
"""They lie everywhere between two restarts."""


def _judge(found: Outcomes) -> Findings:
    Ts = _HORIZONS.at(found.quick)
    told, doubling = lines = [found.line(label, Ts, f"{label}/{{}}") for label in _POLICIES]
    exponent, doubled = map(exponent_of, lines)
    ratio = [b / a for a, b in zip(told.y, doubling.y, strict=True)]
    return found.conclude(
        checks=[doubled < 0.8, max(ratio) < 2],
        because=(
            f"Told the horizon regret grows like T^{exponent:.2f}, begun anew with "
            f"twice the horizon like T^{doubled:.2f}; doubling has {ratio[0]:.2f} times "
            f"the regret at T = {Ts[0]:,} and {ratio[-1]:.2f} times at T = {Ts[-1]:,}."
        ),
        rows=[
            Row(
                "growth exponent, doubling",
                "1/2 up to logs",
                f"{doubled:.2f}",
                f"{exponent:.2f}",
                agrees=doubled < 0.8,
            ),
            *(
                Row(f"T = {T:,}: doubling over told", "", f"{r:.2f}", "at most 2", agrees=r < 2)
                for T, r in zip(Ts, ratio, strict=True)
            ),
        ],
        figures=[plot_regret("Regret against the horizon, told and not told", "horizon T", lines)],
    )


UNKNOWN_HORIZON = study(
    Sweep(
        "{policy}/{horizon}",
        {"policy": _POLICIES, "horizon": _HORIZONS},
        environment={"name": "riser"},
        repetitions=RUNS,
    ),
    judge=_judge,
    name="gajane2023-unknown-horizon",
)
