"""Paper 002 (Lu et al.): what GAP protects.

The guarantee as a value, what it becomes if a person stands behind a whole round instead of one reward,
the audits that try to break both, and what protecting a round costs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from tacit_studies.lu2022.settings import HORIZON, GraphSetting, described
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
    Summary,
    summarise,
)
from tacit_studies.tools import final_values

_CLIQUE = 3
_AUDITED_ROUNDS = 420
"""The first phase of three arms in a clique has 409 rounds; then the noised means are released."""
_CHARTED = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
_EXPECTED_FACTORS = {0.2: 2.97, 1.0: 10.0}
_PRICES = (0.1, 0.2, 0.5, 1.0, 2.0)
_AUDITS = {
    "reward": ("reward", "reward", "one reward, as published"),
    "whole round": ("reward", "round", "a whole round, as published"),
    "round": ("round", "round", "a whole round, noise for a round"),
}


def _stated(unit: str) -> dict[str, Any]:
    """Return the guarantee for one reward or one round, and whether the paper's claim holds."""
    from tacit.arms import GAP

    found = GAP(n_arms=10, epsilon=1.0, horizon=HORIZON, unit=unit).guarantee(HORIZON)
    holds = found.claim is not None and found.claim.holds
    return {"epsilon": found.epsilon, "delta": found.delta, "unit": found.unit, "holds": holds}


def _round_factors(edge_prob: float, graphs: int) -> list[float]:
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


def _phase_audited(protects: str, changes: str, runs: int) -> dict[str, Any]:
    """Audit one phase on a clique: noise made for `protects`, tables that differ in `changes`."""
    from tacit.arms import GAP, Bernoulli, GraphFeedback
    from tacit.graphs import complete
    from tacit.simulation import audit_policy

    environment = GraphFeedback(
        environment=Bernoulli(means=(0.5,) * _CLIQUE), graph=complete(_CLIQUE)
    )
    # A failure probability near 1 makes the first phase as short as it gets.
    policy = GAP(n_arms=_CLIQUE, epsilon=1.0, horizon=2000, failure_prob=0.99, unit=protects)
    found = audit_policy(
        policy,
        environment,
        horizon=_AUDITED_ROUNDS,
        epsilon=1.0,
        neighbours=environment.neighbours(changes, _AUDITED_ROUNDS, limit=3),
        runs=runs,
        alpha=1e-3,
        released=_CLIQUE,
        decisions=False,
    )
    return {"verdict": found.result.verdict, "lower_bound": found.result.lower_bound}


def _privacy_jobs(quick: bool) -> list[Job]:
    environment = described(GraphSetting(0, 0.1, 0.2, 1.0))
    return [
        *(Job(f"stated {unit}", _stated, {"unit": unit}) for unit in ("reward", "round")),
        *(
            Job(
                f"factor {p:g}", _round_factors, {"edge_prob": p, "graphs": 200 if quick else 4_000}
            )
            for p in _CHARTED
        ),
        *(
            Job(
                f"audit {key}",
                _phase_audited,
                {"protects": protects, "changes": changes, "runs": 8_000 if quick else 200_000},
            )
            for key, (protects, changes, _) in _AUDITS.items()
        ),
        *(
            Job(
                f"{unit} {epsilon:g}",
                final_values,
                {
                    "policy": {"name": "gap", "epsilon": epsilon, "unit": unit},
                    "environment": environment,
                    "horizon": HORIZON,
                    "repetitions": 10 if quick else 200,
                },
            )
            for unit in ("reward", "round")
            for epsilon in _PRICES
        ),
    ]


def _judge_privacy(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    stated = outcomes["stated reward"]
    audits = {key: outcomes[f"audit {key}"] for key in _AUDITS}
    factors = {p: summarise(outcomes[f"factor {p:g}"]) for p in _CHARTED}
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
    return Findings(
        verdict=verdict,
        because=(
            f"For one reward the guarantee is epsilon = {stated['epsilon']:g}; this is "
            f"{audits['reward']['verdict']} by an audit, which finds at least "
            f"{audits['reward']['lower_bound']:.2f}. A whole round costs "
            f"{factors[0.2].mean:.2f} times as much on average at p = 0.2 and "
            f"{factors[1.0].mean:.0f} times in a clique of ten; in a clique of three the audit "
            f"finds at least {audits['whole round']['lower_bound']:.2f}."
        ),
        agreement=(
            "The guarantee agrees if it is at most what is claimed, an audit if it ends as "
            "expected; an independent value agrees within 5 standard errors of the "
            "difference."
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
    xs = list(_CHARTED)
    return Figure(
        "Privacy loss of a whole round",
        "edge probability p",
        "epsilon of a round / epsilon of a reward",
        [
            Series.of("a whole round", xs, [factors[p] for p in xs]),
            Series("one reward, as claimed", xs, [1.0] * len(xs), dashed=True),
        ],
        kind="points",
        caption="Ten arms, first phase, mean over random graphs; p = 1 is a clique.",
    )


def _price_figure(outcomes: Mapping[str, Any]) -> Figure:
    series = []
    for unit, words in (("reward", "one reward is protected"), ("round", "a round is protected")):
        bands = [summarise(outcomes[f"{unit} {e:g}"]) for e in _PRICES]
        series.append(Series.of(words, _PRICES, bands))
    return Figure(
        "Regret if a whole round is protected",
        "epsilon",
        f"final regret after {HORIZON:,} rounds",
        series,
        x_log=True,
        kind="points",
        caption="Smallest gap 0.1, edge probability 0.2.",
    )


PRIVACY = Reproduction(
    name="lu2022-privacy",
    paper="lu2022",
    title="Differential privacy of GAP",
    question="Who is protected when one choice also shows what neighbouring options would have given?",
    claim="epsilon-differential privacy of the whole run for one reward of one arm in one round "
    "(Theorem 1).",
    jobs=_privacy_jobs,
    judge=_judge_privacy,
)
