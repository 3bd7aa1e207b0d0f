"""Paper 002 (Lu et al.): what GAP protects.

The guarantee as a value, what it becomes if a person stands behind a whole round instead of one reward,
the audits that try to break both, and what protecting a round costs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from tacit_studies.estimates import Summary
from tacit_studies.lu2022.settings import HORIZON, GraphSetting
from tacit_studies.reproduction import Figure, Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import audit, flat, plot_points
from tacit_studies.verdicts import NOT_REPRODUCED, REPRODUCED, UNDECIDED

_CLIQUE = 3
_AUDITED_ROUNDS = 420
"""The first phase of three arms in a clique has 409 rounds; then the noised means are released."""
_CHARTED = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
_EXPECTED_FACTORS = {0.2: 2.97, 1.0: 10.0}
_PRICES = (0.1, 0.2, 0.5, 1.0, 2.0)
_UNITS = {"reward": "one reward is protected", "round": "a round is protected"}
_AUDITS = {
    "reward": ("reward", "reward", "one reward, as published"),
    "whole round": ("reward", "round", "a whole round, as published"),
    "round": ("round", "round", "a whole round, noise for a round"),
}
"""What the noise protects, what neighbouring tables differ in, and both in words."""


def state_guarantee(unit: str) -> dict[str, Any]:
    """Return the guarantee for one reward or one round, and whether the paper's claim holds."""
    from tacit.arms import GAP

    found = GAP(n_arms=10, epsilon=1.0, horizon=HORIZON, unit=unit).guarantee(HORIZON)
    holds = found.claim is not None and found.claim.holds
    return {"epsilon": found.epsilon, "delta": found.delta, "unit": found.unit, "holds": holds}


def find_round_factors(edge_prob: float, graphs: int) -> list[float]:
    """Return, graph by graph, how many times the epsilon of a reward the first phase costs a round."""
    from tacit.arms import GAP
    from tacit.simulation import play

    environment = GraphSetting(0, 0.1, edge_prob, 1.0).environment
    policy = GAP(n_arms=environment.n_arms, epsilon=1.0, horizon=HORIZON, unit="round")
    return [
        _round_factor(play(policy, environment, horizon=1, repetition=repetition).state)
        for repetition in range(graphs)
    ]


def _round_factor(state: Any) -> float:
    """Return the largest sum, over the arms that a pull shows, of 1 / how many pulls show the arm."""
    shown = [state.indices[a:b] for a, b in itertools.pairwise(state.indptr)]
    seen_by = [int(state.chosen[each].sum()) for each in shown]
    sums = [
        sum(1.0 / seen_by[b] for b in shown[a] if state.active[b])
        for a in range(len(shown))
        if state.chosen[a]
    ]
    return float(max(1.0, *sums))


def audit_phase(protects: str, changes: str, runs: int) -> dict[str, Any]:
    """Audit one phase on a clique: noise made for `protects`, tables that differ in `changes`."""
    from tacit.arms import GAP, Bernoulli, GraphFeedback
    from tacit.graphs import complete

    environment = GraphFeedback(
        environment=Bernoulli(means=(0.5,) * _CLIQUE), graph=complete(_CLIQUE)
    )
    # A failure probability near 1 makes the first phase as short as it gets.
    policy = GAP(n_arms=_CLIQUE, epsilon=1.0, horizon=2000, failure_prob=0.99, unit=protects)
    found = audit(
        policy,
        environment,
        _AUDITED_ROUNDS,
        runs,
        1.0,
        neighbours=environment.neighbours(changes, _AUDITED_ROUNDS, limit=3),
        alpha=1e-3,
        released=_CLIQUE,
        decisions=False,
    )
    return {"verdict": found["verdict"], "lower_bound": found["lower_bound"]}


def _judge(outcomes: Outcomes) -> Findings:
    stated = outcomes["stated reward"]
    audits = {key: outcomes[f"audit {key}"] for key in _AUDITS}
    factors = {p: outcomes.summary(f"factor {p:g}") for p in _CHARTED}
    claimed = stated["holds"] and stated["epsilon"] <= 1.0 + 1e-12 and stated["delta"] == 0.0
    refuted = audits["reward"]["verdict"] == "refuted"
    # An audit that could not even refute half of the truth has not tried hard enough to be quoted.
    sharp = audits["reward"]["lower_bound"] > 0.5
    wider = audits["whole round"]["verdict"] == "refuted"
    verdict = UNDECIDED
    if refuted or not claimed:
        verdict = NOT_REPRODUCED
    elif sharp:
        verdict = REPRODUCED
    return outcomes.conclude(
        verdict=verdict,
        because=(
            f"For one reward the guarantee is epsilon = {stated['epsilon']:g}; this is "
            f"{audits['reward']['verdict']} by an audit, which finds at least "
            f"{audits['reward']['lower_bound']:.2f}. A whole round costs "
            f"{factors[0.2].mean:.2f} times as much on average at p = 0.2 and "
            f"{factors[1.0].mean:.0f} times in a clique of ten; in a clique of three the audit "
            f"finds at least {audits['whole round']['lower_bound']:.2f}."
        ),
        rows=[
            Row(
                "guarantee for one reward, epsilon = 1",
                "1",
                f"{stated['epsilon']:g}",
                agrees=claimed,
            ),
            *(_audit_row(key, audits[key]) for key in _AUDITS),
            *(_factor_row(p, factors[p]) for p in _CHARTED),
        ],
        figures=[_factor_figure(factors), _price_figure(outcomes)],
        privacy=(
            "Holds as published for one reward of one arm in one round. "
            + (
                "If one person stands behind all rewards of a round it does not, and the noise must "
                'grow with what a pull shows: GAP(unit="round").'
                if wider
                else "For a whole round this audit found nothing."
            )
        ),
    )


def _audit_row(key: str, found: Mapping[str, Any]) -> Row:
    _, _, words = _AUDITS[key]
    expected = "refuted" if key == "whole round" else "not refuted"
    return Row(
        f"audit of epsilon = 1: {words}",
        "holds" if key == "reward" else "",
        f"{found['verdict']}, at least {found['lower_bound']:.2f}",
        expected,
        agrees=found["verdict"] == expected,
    )


def _factor_row(edge_prob: float, found: Summary) -> Row:
    label = f"cost of a whole round in rewards, p = {edge_prob:g}"
    if edge_prob not in _EXPECTED_FACTORS:
        return Row(label, "", found.text())
    expected = _EXPECTED_FACTORS[edge_prob]
    # The expected value is given to two decimals.
    close = abs(found.mean - expected) <= 5 * found.error + 0.005
    return Row(label, "", found.text(), f"{expected:g}", agrees=close)


def _factor_figure(factors: Mapping[float, Summary]) -> Figure:
    return plot_points(
        "Privacy loss of a whole round",
        "edge probability p",
        "epsilon of a round / epsilon of a reward",
        [
            Series.of("a whole round", list(factors), list(factors.values())),
            flat("one reward, as claimed", list(factors), 1.0),
        ],
        log="",
        caption="Ten arms, first phase, mean over random graphs; p = 1 is a clique.",
    )


def _price_figure(outcomes: Outcomes) -> Figure:
    return plot_points(
        "Regret if a whole round is protected",
        "epsilon",
        f"final regret after {HORIZON:,} rounds",
        [outcomes.line(words, _PRICES, f"{unit} {{:g}}") for unit, words in _UNITS.items()],
        log="x",
        caption="Smallest gap 0.1, edge probability 0.2.",
    )


PRIVACY = study(
    Sweep("stated {unit}", {"unit": list(_UNITS)}, state_guarantee),
    Sweep(
        "factor {edge_prob:g}",
        {"edge_prob": _CHARTED},
        find_round_factors,
        graphs=Sized(4_000, 200),
    ),
    Sweep(
        "audit {case}",
        {"case": _AUDITS},
        audit_phase,
        protects=lambda case: case[0],
        changes=lambda case: case[1],
        runs=Sized(200_000, 8_000),
    ),
    Sweep(
        "{unit} {epsilon:g}",
        {"unit": list(_UNITS), "epsilon": _PRICES},
        policy=lambda unit, epsilon: {"name": "gap", "epsilon": epsilon, "unit": unit},
        environment=GraphSetting(0, 0.1, 0.2, 1.0).describe_environment(),
        horizon=HORIZON,
        repetitions=Sized(200, 10),
    ),
    judge=_judge,
    name="lu2022-privacy",
)
