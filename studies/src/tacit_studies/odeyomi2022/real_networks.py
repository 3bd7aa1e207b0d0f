"""Paper 000, Section VIII: real networks, which the paper leaves to future work.

Friendships of Facebook (SNAP, ego-Facebook: 4,039 people) and the largest component of those of Last.fm
(HetRec 2011).
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from tacit_studies.odeyomi2022.settings import (
    ALGORITHM_3,
    HORIZON,
    built,
    corrected,
    played,
    tracked,
)
from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    OWN,
    REPRODUCED,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    as_expected,
    summarise,
)
from tacit_studies.runner import data_folder

FILES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "Facebook": (
        "graphs/facebook_combined.txt.gz",
        "f41c026ed8af3cc3359f1ca5573d0605fb09ae0eefa34544b820fd8c6e2ef296",
        {},
        "https://snap.stanford.edu/data/ego-Facebook.html",
    ),
    "Last.fm": (
        "hetrec2011-lastfm-2k/user_friends.dat.gz",
        "9a3a8f7fa5f5ec832335e5b58ed69a4cf27c6f6f6afcde62134810eea46445a7",
        {"header": True, "relabel": True, "duplicates": "merge"},
        "https://grouplens.org/datasets/hetrec-2011/",
    ),
    "Epinions": (  # a line says who trusts whom, and who trusts listens
        "graphs/soc-Epinions1-lcc.txt.gz",
        "cb685c31abce7c9c57e8ef2ec12eb83b55d36bdebd9fd59c843d9ef094ce59d5",
        {"directed": True, "columns": (1, 0)},
        "https://snap.stanford.edu/data/soc-Epinions1.html",
    ),
}
_FRIENDS = ("Facebook", "Last.fm")
_POLICIES = {"Algorithm 3, no privacy": ALGORITHM_3, "1 corrected, epsilon = 1": corrected(1, 1.0)}


@cache
def network(name: str) -> Any:
    """Return the largest component of a network, its content checked."""
    from tacit.graphs import largest_component, read_edges

    place, known, options, source = FILES[name]
    folder = data_folder()
    if folder is None or not (folder / place).is_file():
        raise FileNotFoundError(
            f"{name}: expected {place} in the folder TACIT_DATA; it is from {source}"
        )
    found = hashlib.sha256(gzip.decompress((folder / place).read_bytes())).hexdigest()
    if found != known:
        raise ValueError(f"{place}: expected the content with sha256 {known}, got {found}")
    return largest_component(read_edges(folder / place, **options))


def on_network(
    name: str, policy: Mapping[str, Any], dominance: float, horizon: int, repetitions: int
) -> dict[str, Any]:
    """Play on a real network; the regret of an agent in every run, and how many agents there are."""
    from tacit.diffusion import ChangingTruth

    environment = ChangingTruth(dominance=dominance, network=network(name))
    chosen = built(policy, environment, horizon)
    return {**played(chosen, environment, horizon, repetitions), "agents": environment.n_agents}


def _jobs(quick: bool) -> list[Job]:
    common: dict[str, Any] = {"dominance": 0.8, "horizon": HORIZON}
    three, many = (100, 2) if quick else (4_000, 20)
    return [
        *[
            Job(f"three/{label}", tracked, {**common, "policy": policy, "repetitions": three})
            for label, policy in _POLICIES.items()
        ],
        *[
            Job(
                f"{name}/{label}",
                on_network,
                {**common, "name": name, "policy": policy, "repetitions": many},
            )
            for name in _FRIENDS
            for label, policy in _POLICIES.items()
        ],
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    places = ["three", *_FRIENDS]
    regret = {
        (place, label): summarise(outcomes[f"{place}/{label}"]["regret"])
        for place in places
        for label in _POLICIES
    }
    agents = {name: outcomes[f"{name}/{next(iter(_POLICIES))}"]["agents"] for name in _FRIENDS}
    names = {"three": "three agents", **{n: f"{n}, {agents[n]:,} people" for n in _FRIENDS}}
    uniform = HORIZON * (0.8 - 0.2)
    learns = all(found.high < uniform / 2 for found in regret.values())
    alike = all(
        regret[name, label].mean < 1.25 * regret["three", label].mean
        for name in _FRIENDS
        for label in _POLICIES
    )
    said = "; ".join(
        f"{names[place]}: "
        + " and ".join(f"{regret[place, label].mean:.1f}" for label in _POLICIES)
        for place in places
    )
    return Findings(
        verdict=OWN,
        because=as_expected(REPRODUCED if learns and alike else NOT_REPRODUCED)
        + (
            f"rounds that an agent loses of {HORIZON}, without privacy and with the corrected Algorithm 1 at "
            f"epsilon = 1: {said}. A belief that never changes loses {uniform:.0f}."
        ),
        rows=[
            Row(f"{names[place]}: {label}", "", regret[place, label].text())
            for place in places
            for label in _POLICIES
        ],
        figures=[
            Figure(
                "Regret of an agent on real networks",
                "",
                f"regret at T = {HORIZON} (rounds lost)",
                [
                    Series.of(
                        label, list(np.arange(3.0)), [regret[place, label] for place in places]
                    )
                    for label in _POLICIES
                ],
                kind="bar",
                ticks=list(names.values()),
                caption="The dominant state is true with probability 0.8; largest components.",
            )
        ],
    )


REAL_NETWORKS = Reproduction(
    name="odeyomi2022-real-networks",
    paper="odeyomi2022",
    title="Section VIII: real networks",
    question="Does what three people show hold among thousands who really know each other?",
    claim="Agents on real networks lose no more than a quarter above what three agents lose, private or not.",
    jobs=_jobs,
    judge=_judge,
    needs=("graphs", "hetrec2011-lastfm-2k"),
    own=True,
)
