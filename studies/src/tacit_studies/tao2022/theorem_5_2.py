"""Paper 001 (Tao et al.), Theorem 5.2 as a map: regret over agents, epsilon and beta."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tacit_studies.reproduction import (
    OWN,
    Figure,
    Findings,
    Job,
    Panel,
    Reproduction,
    Row,
    Series,
    as_expected,
    verdict_of,
)
from tacit_studies.tao2022.settings import BETA, BOUND, epsilon_name

_ROUNDS = 2_000


def _grid(quick: bool) -> tuple[list[int], list[float], list[float]]:
    """Return the numbers of agents, the epsilons and the betas."""
    if quick:
        return [10**4, 10**6, 10**8], [0.5, 2.0], [BETA, 0.6, 0.7, 0.8, 0.9, 0.95]
    betas = [BETA, *(k / 100 for k in range(55, 100, 5))]
    return [10**k for k in range(3, 9)], [0.5, 1.0, 2.0, 4.0, math.inf], betas


def regret_by_beta(
    n_agents: int, epsilon: float, betas: Sequence[float], repetitions: int
) -> dict[str, list[float]]:
    """Return mean regret at each beta, the recommended one last: see `regret_map`."""
    from tacit_studies.tao2022.regret_maps import regret_map

    found = regret_map(
        n_agents=[n_agents],
        epsilons=[epsilon],
        betas=betas,
        horizon=_ROUNDS,
        repetitions=repetitions,
    )
    return {"betas": found.betas[0, 0].tolist(), "regret": found.regret[0, 0].tolist()}


def _jobs(quick: bool) -> list[Job]:
    sizes, epsilons, betas = _grid(quick)
    return [
        Job(
            f"{e:g}/{N}",
            regret_by_beta,
            {"n_agents": N, "epsilon": e, "betas": betas, "repetitions": 2 if quick else 5},
        )
        for e in epsilons
        for N in sizes
    ]


def _power(n_agents: int) -> str:
    return f"10^{round(math.log10(n_agents))}"


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    sizes, epsilons, _ = _grid(quick)
    rows, ratios = [], []
    enough: dict[float, list[int | None]] = {}
    for e in epsilons:
        cells = {N: outcomes[f"{e:g}/{N}"]["regret"] for N in sizes}
        first = [_enough({N: cells[N][place] for N in sizes}) for place in (0, -1)]
        enough[e] = first
        rows.append(
            Row(
                f"agents with regret at most {BOUND:.2f}, {epsilon_name(e)}, beta = {BETA}",
                "",
                _said(first[0], sizes),
            )
        )
        rows.append(
            Row(f"the same at the recommended beta, {epsilon_name(e)}", "", _said(first[1], sizes))
        )
        ratios += [regret[-1] / min(regret) for regret in cells.values()]
    rows += [
        Row(
            f"regret, N = {_power(N)}, {epsilon_name(e)}: beta = {BETA}, recommended",
            "",
            "{:.3f}, {:.3f}".format(*(outcomes[f"{e:g}/{N}"]["regret"][i] for i in (0, -1))),
        )
        for e in epsilons
        for N in sizes
    ]
    strict = epsilons[0]
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of(first[0] is not None for first in enough.values()))
        + (
            f"at epsilon = {strict:g} the paper's beta = {BETA} keeps regret within "
            f"{BOUND:.2f} {_among(enough[strict][0], sizes)}, the recommended beta "
            f"{_among(enough[strict][1], sizes)}. The recommended beta, which knows nothing of "
            f"the options, has at most {max(ratios):.1f} times the regret of the best on the map."
        ),
        rows=rows,
        figures=[_picture(outcomes, quick)],
    )


def _enough(regret: Mapping[int, float]) -> int | None:
    """Return the number of agents from which on regret is within the bound."""
    missed = max((N for N, value in regret.items() if value > BOUND), default=0)
    return min((N for N in regret if missed < N), default=None)


def _said(first: int | None, sizes: Sequence[int]) -> str:
    return f"more than {_power(sizes[-1])}" if first is None else f"{_power(first)}"


def _among(first: int | None, sizes: Sequence[int]) -> str:
    return (
        f"not even among {_power(sizes[-1])} agents"
        if first is None
        else f"from {_power(first)} agents on"
    )


def _picture(outcomes: Mapping[str, Any], quick: bool) -> Figure:
    sizes, epsilons, betas = _grid(quick)
    agents = [float(N) for N in sizes]
    panels = []
    for e in epsilons:
        found = [outcomes[f"{e:g}/{N}"] for N in sizes]
        curve = Series("recommended beta", agents, [each["betas"][-1] for each in found])
        values = [each["regret"][:-1] for each in found]
        panels.append(Panel(epsilon_name(e), agents, betas, values, curve))
    return Figure(
        "How many agents buy how much privacy",
        "agents N",
        "beta",
        [],
        x_log=True,
        kind="map",
        panels=panels,
        value_label=f"average regret after {_ROUNDS:,} rounds",
        caption=(
            "Dark is good. Beta is the chance to adopt an option that was good. Ten options of "
            "qualities 0.9 to 0.1; a population that learns nothing has regret 0.4."
        ),
    )


MAP = Reproduction(
    name="tao2022-map",
    paper="tao2022",
    title="Theorem 5.2: how many agents buy how much privacy",
    question="The more people take part, the better noise averages out. How many are enough?",
    claim=(
        "However private the messages, regret stays below 6 delta, which is "
        f"{BOUND:.2f} at beta = {BETA}, if sufficiently many agents take part."
    ),
    jobs=_jobs,
    judge=_judge,
    own=True,
)
