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

from tacit_studies.odeyomi2022.settings import HORIZON, PAIR, play_runs, track
from tacit_studies.reproduction import Findings, Row
from tacit_studies.runner import data_folder
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_bars

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


@cache
def load_network(name: str) -> Any:
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


def play_network(
    name: str, policy: Mapping[str, Any], dominance: float, horizon: int, repetitions: int
) -> dict[str, Any]:
    """Play on a real network; the regret of an agent in every run, and how many agents there are."""
    from tacit.diffusion import ChangingTruth

    environment = ChangingTruth(dominance=dominance, network=load_network(name))
    found = play_runs(policy, environment, horizon, repetitions)
    return {**found, "agents": environment.n_agents}


def _judge(found: Outcomes) -> Findings:
    regret = {
        label: [found.summary(f"{place}/{label}", "regret") for place in ("three", *_FRIENDS)]
        for label in PAIR
    }
    agents = {name: found[f"{name}/{next(iter(PAIR))}"]["agents"] for name in _FRIENDS}
    names = ["three agents", *(f"{name}, {n:,} people" for name, n in agents.items())]
    uniform = HORIZON * (0.8 - 0.2)
    learns = all(each.high < uniform / 2 for places in regret.values() for each in places)
    alike = all(each.mean < 1.25 * three.mean for three, *real in regret.values() for each in real)
    rows = list(zip(names, *regret.values(), strict=True))
    said = "; ".join(
        f"{name}: {plain.mean:.1f} and {sound.mean:.1f}" for name, plain, sound in rows
    )
    return found.conclude(
        checks=[learns and alike],
        because=(
            f"rounds that an agent loses of {HORIZON}, without privacy and with the corrected Algorithm 1 at "
            f"epsilon = 1: {said}. A belief that never changes loses {uniform:.0f}."
        ),
        rows=[
            Row(f"{name}: {label}", "", each.text())
            for name, *both in rows
            for label, each in zip(PAIR, both, strict=True)
        ],
        figures=[
            plot_bars(
                "Regret of an agent on real networks",
                f"regret at T = {HORIZON} (rounds lost)",
                names,
                regret,
                caption="The dominant state is true with probability 0.8; largest components.",
            )
        ],
    )


_COMMON: dict[str, Any] = {"dominance": 0.8, "horizon": HORIZON}
REAL_NETWORKS = study(
    Sweep("three/{policy}", {"policy": PAIR}, track, **_COMMON, repetitions=Sized(4_000, 100)),
    Sweep(
        "{name}/{policy}",
        {"name": _FRIENDS, "policy": PAIR},
        play_network,
        **_COMMON,
        repetitions=Sized(20, 2),
    ),
    judge=_judge,
    name="odeyomi2022-real-networks",
    needs=("graphs", "hetrec2011-lastfm-2k"),
    own=True,
)
