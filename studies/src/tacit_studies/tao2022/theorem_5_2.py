"""Paper 001 (Tao et al.), Theorem 5.2 as a map: regret over agents, epsilon and beta."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tacit_studies.reproduction import Figure, Findings, Panel, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tao2022.settings import BETA, BOUND, name_epsilon

_ROUNDS = 2_000
_SIZES = Sized([10**k for k in range(3, 9)], [10**4, 10**6, 10**8])
_EPSILONS = Sized([0.5, 1.0, 2.0, 4.0, math.inf], [0.5, 2.0])
_BETAS = Sized([BETA, *(k / 100 for k in range(55, 100, 5))], [BETA, 0.6, 0.7, 0.8, 0.9, 0.95])


def measure_by_beta(
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


def _power(n_agents: int) -> str:
    return f"10^{round(math.log10(n_agents))}"


def _judge(outcomes: Outcomes) -> Findings:
    sizes, epsilons = _SIZES.at(outcomes.quick), _EPSILONS.at(outcomes.quick)
    regret = {e: {N: outcomes[f"{e:g}/{N}"]["regret"] for N in sizes} for e in epsilons}
    enough = {
        e: [_enough({N: cells[N][place] for N in sizes}) for place in (0, -1)]
        for e, cells in regret.items()
    }
    ratios = [each[-1] / min(each) for cells in regret.values() for each in cells.values()]
    rows = []
    for e, (paper, recommended) in enough.items():
        label = f"agents with regret at most {BOUND:.2f}, {name_epsilon(e)}, beta = {BETA}"
        rows.append(Row(label, "", _said(paper, sizes)))
        label = f"the same at the recommended beta, {name_epsilon(e)}"
        rows.append(Row(label, "", _said(recommended, sizes)))
    rows += [
        Row(
            f"regret, N = {_power(N)}, {name_epsilon(e)}: beta = {BETA}, recommended",
            "",
            f"{each[0]:.3f}, {each[-1]:.3f}",
        )
        for e, cells in regret.items()
        for N, each in cells.items()
    ]
    strict = epsilons[0]
    return outcomes.conclude(
        checks=[first is not None for first, _ in enough.values()],
        because=(
            f"at epsilon = {strict:g} the paper's beta = {BETA} keeps regret within "
            f"{BOUND:.2f} {_among(enough[strict][0], sizes)}, the recommended beta "
            f"{_among(enough[strict][1], sizes)}. The recommended beta, which knows nothing of "
            f"the options, has at most {max(ratios):.1f} times the regret of the best on the map."
        ),
        rows=rows,
        figures=[_picture(outcomes)],
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


def _picture(outcomes: Outcomes) -> Figure:
    sizes, epsilons, betas = (each.at(outcomes.quick) for each in (_SIZES, _EPSILONS, _BETAS))
    agents = [float(N) for N in sizes]
    panels = []
    for e in epsilons:
        found = [outcomes[f"{e:g}/{N}"] for N in sizes]
        curve = Series("recommended beta", agents, [each["betas"][-1] for each in found])
        values = [each["regret"][:-1] for each in found]
        panels.append(Panel(name_epsilon(e), agents, betas, values, curve))
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


MAP = study(
    Sweep(
        "{epsilon:g}/{n_agents}",
        {"epsilon": _EPSILONS, "n_agents": _SIZES},
        measure_by_beta,
        betas=_BETAS,
        repetitions=Sized(5, 2),
    ),
    judge=_judge,
    name="tao2022-map",
    own=True,
)
