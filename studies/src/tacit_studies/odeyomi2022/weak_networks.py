"""Paper 000, Section VIII: weakly connected networks, made and real, which the paper leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit_studies.estimates import Summary
from tacit_studies.odeyomi2022.real_networks import load_network
from tacit_studies.odeyomi2022.settings import HORIZON, PAIR, build_policy
from tacit_studies.reproduction import Figure, Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_bars

_DOMINANCE = 0.8
_UNIFORM = HORIZON * (_DOMINANCE - 0.2)
_CASES = {
    "alone": "five who hear only each other",
    "both ways": "twenty, all links both ways",
    "one truth": "two fives heard by ten, one truth",
    "three truths": "two fives heard by ten, a truth each",
}
_PARTS = {"sending": slice(0, 10), "receiving": slice(10, 20)}


def _environment(name: str) -> Any:
    """Return agents 0 to 4 and 5 to 9, who hear only each other, and ten who hear one of each and a third."""
    from tacit.diffusion import ChangingTruth
    from tacit.graphs import Graph

    fives = [(a, b) for low in (0, 5) for a in range(low, low + 5) for b in range(low, low + 5)]
    arcs = [pair for pair in fives if pair[0] != pair[1]]
    if name == "alone":
        inside = [pair for pair in arcs if max(pair) < 5]
        graph = Graph.from_edges(inside, directed=True)
        return ChangingTruth(dominance=_DOMINANCE, network=graph)
    for i in range(10):
        arcs += [(i % 5, 10 + i), (5 + i % 5, 10 + i), (10 + (i + 1) % 10, 10 + i)]
    graph = Graph.from_edges(arcs, directed=True)
    if name == "both ways":
        return ChangingTruth(dominance=_DOMINANCE, network=graph.undirected())
    settings: dict[str, Any] = {"network": graph, "connectivity": "weak", "dominance": _DOMINANCE}
    if name == "three truths":
        settings |= {"groups": [0] * 5 + [1] * 5 + [2] * 10, "dominant": (0, 2, 4)}
    return ChangingTruth(**settings)


def measure_parts(name: str, policy: Mapping[str, Any], repetitions: int) -> dict[str, Any]:
    """Return every run's mean regret of the first five agents, of those who send and who receive."""
    named, believed = _play_losses(_environment(name), policy, HORIZON, repetitions)
    found: dict[str, Any] = {"first five": believed[:, :5].mean(axis=1).tolist()}
    for part, rows in _PARTS.items():
        if name != "alone":
            found[part] = believed[:, rows].mean(axis=1).tolist()
            found[f"{part}, named"] = named[:, rows].mean(axis=1).tolist()
    return found


def play_epinions(policy: Mapping[str, Any], horizon: int, repetitions: int) -> dict[str, Any]:
    """Return every run's mean regret of those who hear nobody but their part, and of all others."""
    from tacit.diffusion import ChangingTruth

    environment = ChangingTruth(
        dominance=_DOMINANCE, network=load_network("Epinions"), connectivity="weak"
    )
    sending, _ = environment.mixing_matrix.subnetworks()
    sends = np.zeros(environment.n_agents, np.bool_)
    sends[np.concatenate(sending)] = True
    _, believed = _play_losses(environment, policy, horizon, repetitions)
    return {
        "agents": environment.n_agents,
        "senders": int(sends.sum()),
        "parts": len(sending),
        "sending": believed[:, sends].mean(axis=1).tolist(),
        "receiving": believed[:, ~sends].mean(axis=1).tolist(),
    }


def _play_losses(
    environment: Any, policy: Mapping[str, Any], horizon: int, repetitions: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the regret of what each agent named and believed, a row for each run."""
    from tacit.simulation import play

    chosen = build_policy(policy, environment, horizon)
    named, believed = [], []
    for repetition in range(repetitions):
        table = environment.table(7, repetition, horizon)
        trace = play(
            chosen, environment, horizon=horizon, table=table, seed=7, repetition=repetition
        ).trace
        least = trace.state_loss.min(axis=1)[table.loss_row]
        named.append(trace.choice_loss - least)
        believed.append(trace.belief_loss - least)
    return np.array(named), np.array(believed)


def _judge(found: Outcomes) -> Findings:
    def of(name: str, label: str, part: str) -> Summary:
        return found.summary(f"{name}/{label}", part)

    same = [
        found[f"one truth/{label}"]["first five"] == found[f"alone/{label}"]["first five"]
        for label in PAIR
    ]
    near = [
        of("one truth", label, "receiving").mean < 1.25 * of("both ways", label, "receiving").mean
        for label in PAIR
    ]
    own = [of("three truths", label, "receiving").high < _UNIFORM / 2 for label in PAIR]
    label = "1 corrected, epsilon = 1"
    rows = [
        Row(
            f"{name}: {words}, {part}",
            "",
            f"{of(case, name, part).text()} believed, {of(case, name, f'{part}, named').text()} named",
        )
        for name in PAIR
        for case, words in _CASES.items()
        if case != "alone"
        for part in _PARTS
    ]
    rows.append(
        Row(
            "senders lose what they lose alone, to the last bit",
            "",
            "yes" if all(same) else "no",
            "yes",
            agrees=all(same),
        )
    )
    return found.conclude(
        checks=[all(same), all(near), all(own)],
        because=(
            "those who send learn "
            + ("exactly as" if all(same) else "not as")
            + f" they do alone. Those who only receive lose {of('one truth', label, 'receiving').mean:.0f} "
            f"of {HORIZON} rounds with the corrected Algorithm 1 at epsilon = 1, against "
            f"{of('both ways', label, 'receiving').mean:.0f} where links go both ways. Where those they hear "
            f"live by other truths, their beliefs lose {of('three truths', label, 'receiving').mean:.0f}, "
            "since everyone learns from its own losses alone, but the states that they name lose "
            f"{of('three truths', label, 'receiving, named').mean:.0f}: they go on repeating what they hear. "
            f"A belief that never changes loses {_UNIFORM:.0f}."
        ),
        rows=rows,
        figures=[
            plot_bars(
                "Those who only receive",
                f"regret at T = {HORIZON} (rounds lost)",
                ["links both ways", "one way, one truth", "one way, other truths"],
                {
                    f"{name}, {measure or 'believed'}": [
                        of(case, name, f"receiving, {measure}" if measure else "receiving")
                        for case in ("both ways", "one truth", "three truths")
                    ]
                    for name in PAIR
                    for measure in ("", "named")
                },
                caption="Ten agents who hear one of each of two groups and one of themselves.",
            )
        ],
    )


WEAK = study(
    Sweep(
        "{name}/{policy}",
        {"name": list(_CASES), "policy": PAIR},
        measure_parts,
        repetitions=Sized(200, 20),
    ),
    judge=_judge,
    name="odeyomi2022-weak-networks",
    own=True,
)

_REAL_HORIZON = Sized(HORIZON, 50)


def _judge_real(found: Outcomes) -> Findings:
    horizon = _REAL_HORIZON.at(found.quick)
    uniform = horizon * (_DOMINANCE - 0.2)
    first = found[next(iter(PAIR))]
    mean = {
        (label, part): float(np.mean(found[label][part]))
        for label in PAIR
        for part in ("sending", "receiving")
    }
    learns = all(value < uniform / 2 for value in mean.values())
    near = all(mean[label, "receiving"] < 1.25 * mean[label, "sending"] for label in PAIR)
    said = "; ".join(
        f"{label}: {mean[label, 'sending']:.1f} and {mean[label, 'receiving']:.1f}"
        for label in PAIR
    )
    return found.conclude(
        checks=[learns or found.quick, near],
        because=(
            f"of {first['agents']:,} people, {first['senders']:,} in {first['parts']:,} parts trust nobody "
            f"outside their part. Rounds of {horizon} that they and all others lose: {said}. A belief that "
            f"never changes loses {uniform:.0f}."
        ),
        rows=[
            Row(f"{label}, {part}", "", f"{mean[label, part]:.1f}")
            for label in PAIR
            for part in ("sending", "receiving")
        ],
        figures=[
            Figure(
                "Who trusts whom, on Epinions",
                "",
                f"regret at T = {horizon} (rounds lost)",
                [
                    Series(part, [0.0, 1.0], [mean[label, part] for label in PAIR])
                    for part in ("sending", "receiving")
                ],
                kind="bar",
                ticks=list(PAIR),
                caption="An agent listens to those it trusts, and to itself.",
            )
        ],
    )


WEAK_REAL = study(
    Sweep(
        "{policy}", {"policy": PAIR}, play_epinions, horizon=_REAL_HORIZON, repetitions=Sized(2, 1)
    ),
    judge=_judge_real,
    name="odeyomi2022-weak-real-networks",
    needs=("graphs",),
    own=True,
)
