"""Paper 003 on real data, which the paper leaves to future work: an audience that changes.

A front page shows one of ten artists. In each segment the listeners are another group of friends of Last.fm
(HetRec 2011): in each round one of them comes at random, and the reward of an artist is 1 if that person
really listens to it. What is best changes with the audience; nothing about the people is made up.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import tacit
from tacit_studies.gajane2023.settings import sliding
from tacit_studies.reproduction import (
    OWN,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    as_expected,
    summarise,
    verdict_of,
)

_SEGMENTS = 8
_ARTISTS = 10
_POLICIES: dict[str, dict[str, Any]] = {
    "with a window": {"name": "sw-klucb-cf", "n_segments": _SEGMENTS},
    "without a window": {"name": "klucb-cf"},
}


@cache
def _likes() -> tuple[list[Any], Any]:
    """Return the eight largest groups of friends, and who of all people listens to which top artist.

    The artists are those that some group prefers: in turn, each group's favourite that is not yet among them.
    """
    from tacit.contextual import LastFM

    prepared = LastFM(dimension=2, n_groups=30).prepared()
    people = len(prepared.groups)
    likes = np.zeros((people, int(prepared.liked.max()) + 1), bool)
    owner = np.repeat(np.arange(people), np.diff(prepared.indptr))
    likes[owner, prepared.liked] = True
    largest = np.argsort(-np.bincount(prepared.groups), kind="stable")[:_SEGMENTS]
    groups = [np.flatnonzero(prepared.groups == g) for g in largest]
    chosen: list[int] = []
    while len(chosen) < _ARTISTS:
        share = likes[groups[len(chosen) % _SEGMENTS]].mean(axis=0)
        share[chosen] = -1.0
        chosen.append(int(share.argmax()))
    return groups, likes[:, chosen]


def audience(horizon: int, seed: int) -> Any:
    """Return the rewards of all artists in every round: shape (horizon, artists)."""
    groups, likes = _likes()
    rng = np.random.default_rng([seed, horizon])
    edges = np.linspace(0, horizon, _SEGMENTS + 1).astype(int)
    who = np.concatenate([rng.choice(groups[s], edges[s + 1] - edges[s]) for s in range(_SEGMENTS)])
    return likes[who].astype(np.float64)


def earned(
    policy: Mapping[str, Any], epsilon: float | None, horizon: int, repetitions: int
) -> dict[str, list[float]]:
    """Return each run's reward a round, that of a choice at random, and that of the best in each segment."""
    from tacit.arms import Recorded

    found: dict[str, list[float]] = {"reward": [], "random": [], "best": []}
    edges = np.linspace(0, horizon, _SEGMENTS + 1).astype(int)
    for repetition in range(repetitions):
        table = audience(horizon, repetition)
        environment = Recorded(data=table)
        spec = {**policy, "epsilon": epsilon} if epsilon is not None else dict(policy)
        described, _ = tacit.build(spec, environment, horizon)
        result = tacit.simulate(
            described, environment, horizon=horizon, repetitions=[repetition], seed=3, threads=1
        )
        parts = [table[a:b] for a, b in itertools.pairwise(edges)]
        found["reward"].append(float(result.final("reward")[0]) / horizon)
        found["random"].append(float(table.mean()))
        found["best"].append(sum(p.sum(axis=0).max() for p in parts) / horizon)
    return found


def _epsilons(quick: bool) -> list[float | None]:
    return [1.0, None] if quick else [0.5, 1.0, 2.0, 4.0, None]


def _words(epsilon: float | None) -> str:
    return "not private" if epsilon is None else f"epsilon = {epsilon:g}"


def _policy(label: str, epsilon: float | None) -> dict[str, Any]:
    if epsilon is not None:
        return dict(_POLICIES[label])
    return sliding(n_segments=_SEGMENTS) if label == "with a window" else {"name": "klucb"}


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{label}/{_words(e)}",
            earned,
            {
                "policy": _policy(label, e),
                "epsilon": e,
                "horizon": 40_000 if quick else 200_000,
                "repetitions": 4 if quick else 20,
            },
        )
        for label in _POLICIES
        for e in _epsilons(quick)
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    levels = _epsilons(quick)
    first = outcomes[f"with a window/{_words(levels[0])}"]
    random, best = summarise(first["random"]), summarise(first["best"])
    reward = {
        (label, e): summarise(outcomes[f"{label}/{_words(e)}"]["reward"])
        for label in _POLICIES
        for e in levels
    }
    helps = [reward["with a window", e].low > reward["without a window", e].high for e in levels]
    falls = [
        reward["with a window", a].mean < reward["with a window", b].mean
        for a, b in itertools.pairwise(levels)
    ]
    said = ", ".join(
        f"{reward['with a window', e].mean:.3f} against {reward['without a window', e].mean:.3f} "
        f"({_words(e)})"
        for e in levels
    )
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of([*helps, *falls]))
        + (
            f"listeners a round with a window against without one: {said}. Always the best artist "
            f"of the segment has {best.mean:.3f}, a choice at random {random.mean:.3f}."
        ),
        rows=[
            *[
                Row(f"listeners a round, {label}, {_words(e)}", "", found.text())
                for (label, e), found in reward.items()
            ],
            Row("always the best artist of the segment", "", best.text()),
            Row("a choice at random", "", random.text()),
        ],
        figures=[
            Figure(
                "An audience that changes eight times",
                "",
                "listeners a round",
                [
                    *[
                        Series.of(
                            label,
                            [float(i) for i in range(len(levels))],
                            [reward[label, e] for e in levels],
                        )
                        for label in _POLICIES
                    ],
                    Series(
                        "best of the segment",
                        [float(i) for i in range(len(levels))],
                        [best.mean] * len(levels),
                    ),
                ],
                kind="bar",
                ticks=[_words(e) for e in levels],
                caption="Ten artists, eight groups of friends of Last.fm in turn; a reward is that the "
                "person who came listens to the artist.",
            )
        ],
    )


REAL_DATA = Reproduction(
    name="gajane2023-real-data",
    paper="gajane2023",
    title="Real people: an audience that changes",
    question="Does a private learner follow the taste of real listeners when the audience changes?",
    claim="The window earns more than no window at every level of privacy, and weaker privacy earns more.",
    jobs=_jobs,
    judge=_judge,
    needs=("hetrec2011-lastfm-2k",),
    own=True,
)
