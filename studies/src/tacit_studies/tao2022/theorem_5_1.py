"""Paper 001 (Tao et al.), Theorem 5.1: how many slots and messages the walks of a round take.

A round's walks share the agents: in one slot an agent forwards as many tokens as it started with, those that
came first before the others. The theorem counts slots until all walks have taken the O(log N) steps that
make their ends nearly uniform.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import growth_exponent, plot_points

_NETWORKS = {"random": "random network, mean degree 2 ln N", "ring": "ring"}
_FLAT = 0.35
_SIZES = Sized([101, 301, 1001, 3001, 10001], [101, 301, 1001])
"""Odd, so that a ring is not bipartite."""


def count_slots(graph: Any, tokens: int, steps: int, seed: int) -> tuple[int, int]:
    """Return the slots until every token has taken its steps, and the longest queue on the way.

    Every agent starts `tokens` tokens and forwards at most as many in a slot, first come, first served.

    Examples
    --------
    >>> from tacit.graphs import complete
    >>> count_slots(complete(5), tokens=3, steps=1, seed=0)[0]
    1
    """
    rng = np.random.default_rng(seed)
    indptr, indices = (np.asarray(part, np.int64) for part in graph.csr)
    degrees = np.diff(indptr)
    at = np.repeat(np.arange(graph.n_nodes), tokens)
    left = np.full(at.size, steps)
    came = np.zeros(at.size, np.int64)
    slot, longest = 0, tokens
    while at.size:
        slot += 1
        order = np.lexsort((rng.random(at.size), came, at))
        at, left, came = at[order], left[order], came[order]
        place = np.arange(at.size) - np.searchsorted(at, at)
        longest = max(longest, int(place.max()) + 1)
        served = place < tokens
        here = at[served]
        there = indices[indptr[here] + (rng.random(here.size) * degrees[here]).astype(np.int64)]
        goes = rng.random(here.size) * degrees[there] < degrees[here]  # eq. (2)
        at[served] = np.where(goes, there, here)
        came[served] = slot
        left[served] -= 1
        under_way = left > 0
        at, left, came = at[under_way], left[under_way], came[under_way]
    return slot, longest


def measure_walks(network: str, n_agents: int, repetitions: int) -> dict[str, float]:
    """Return steps, slots and the longest queue where N agents start ln^2 N walks each."""
    from tacit.graphs import Walk, erdos_renyi, largest_component, ring

    found = []
    tokens = math.ceil(math.log(n_agents) ** 2)
    for seed in range(repetitions):
        if network == "ring":
            graph = ring(n_agents)
        else:
            prob = 2 * math.log(n_agents) / n_agents
            graph = largest_component(erdos_renyi(n_agents, prob, seed=seed))
        steps = Walk(graph).length(float(graph.n_nodes) ** -3)
        # A ring's walks are too long to be worth queueing: at least as many slots as steps.
        waited = network != "ring"
        slots, queue = count_slots(graph, tokens, steps, seed) if waited else (steps, tokens)
        found.append((steps, slots, queue / tokens))
    steps, slots, queue = np.mean(found, axis=0)
    return {"steps": float(steps), "slots": float(slots), "queue": float(queue)}


def _judge(outcomes: Outcomes) -> Findings:
    Ns = _SIZES.at(outcomes.quick)
    logs = [math.log(N) for N in Ns]
    found = {name: [outcomes[f"{name}/{N}"] for N in Ns] for name in _NETWORKS}
    slots = {name: [each["slots"] for each in found[name]] for name in _NETWORKS}
    power = {name: growth_exponent(logs, slots[name]) for name in _NETWORKS}
    ring = growth_exponent(Ns, slots["ring"])
    random = found["random"]
    over = [each["slots"] / each["steps"] for each in random]
    messages = [
        each["steps"] * math.ceil(math.log(N) ** 2) for N, each in zip(Ns, random, strict=True)
    ]
    checks = [power["random"] <= 2 + _FLAT, power["ring"] <= 2 + _FLAT]
    return outcomes.conclude(
        checks=checks,
        because=(
            f"On random networks the slots of a round grow like (ln N)^{power['random']:.1f}, within "
            f"log² N: agents hardly wait, {max(over):.2f} slots for a step at most. The theorem names "
            "every connected network that is not bipartite, and there it fails: on a ring slots grow "
            f"like N^{ring:.1f}, because a walk of O(log N) steps does not leave its neighbourhood. "
            "Its proof lets a token of slot t wait t slots more, which adds up to a doubling with every step "
            "and not to log² N; what keeps queues short is that an agent gets on average as many tokens "
            "as it can forward."
        ),
        agreement=f"Slots agree with log² N if they grow like ln N to at most {2 + _FLAT:g}.",
        rows=[
            *(
                Row(
                    f"exponent of ln N in the slots, {label}",
                    "at most 2",
                    f"{power[name]:.2f}",
                    "",
                    held,
                )
                for (name, label), held in zip(_NETWORKS.items(), checks, strict=True)
            ),
            *(
                Row(
                    f"N = {N:,}, random network: steps, slots, longest queue over tokens",
                    "",
                    f"{each['steps']:.0f}, {each['slots']:.0f}, {each['queue']:.2f}",
                )
                for N, each in zip(Ns, random, strict=True)
            ),
            *(
                Row(f"N = {N:,}, ring: steps", "", f"{each['steps']:,.0f}")
                for N, each in zip(Ns, found["ring"], strict=True)
            ),
            *(
                Row(
                    f"messages an agent forwards in a round, N = {N:,}, ln² N tokens each",
                    "O(ln⁴ N)",
                    f"{sent:,.0f} = {sent / math.log(N) ** 4:.1f} ln⁴ N",
                )
                for N, sent in zip(Ns, messages, strict=True)
            ),
        ],
        figures=[
            plot_points(
                "Slots until all walks of a round are done",
                "agents N",
                "slots",
                [
                    *(
                        Series(label, [float(N) for N in Ns], slots[name])
                        for name, label in _NETWORKS.items()
                    ),
                    Series(
                        "log² N, from the first",
                        [float(N) for N in Ns],
                        [slots["random"][0] * (log / logs[0]) ** 2 for log in logs],
                        dashed=True,
                    ),
                ],
                caption="Ends within 1/N³ of uniform. Of a ring the steps alone, without waiting.",
            )
        ],
    )


THEOREM_5_1 = study(
    Sweep(
        "{network}/{n_agents}",
        {"network": list(_NETWORKS), "n_agents": _SIZES},
        measure_walks,
        repetitions=Sized(5, 2),
    ),
    judge=_judge,
    name="tao2022-theorem-5-1",
)
