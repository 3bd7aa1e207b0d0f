"""Paper 003 on real data, which the paper leaves to future work: an audience that changes.

A front page shows one of ten artists. In each segment the listeners are another group of friends of Last.fm
(HetRec 2011): in each round one of them comes at random, and the reward of an artist is 1 if that person
really listens to it. What is best changes with the audience; nothing about the people is made up.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tacit_studies.gajane2023.settings import sliding
from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_bars, simulate

_SEGMENTS = 8
_ARTISTS = 10
_LABELS = ("with a window", "without a window")
_LEVELS: Sized[dict[str, float | None]] = Sized(
    {**{f"epsilon = {e:g}": e for e in (0.5, 1.0, 2.0, 4.0)}, "not private": None},
    {"epsilon = 1": 1.0, "not private": None},
)


@cache
def _load_likes() -> tuple[list[Any], Any]:
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


def draw_audience(horizon: int, seed: int) -> Any:
    """Return the rewards of all artists in every round: shape (horizon, artists)."""
    groups, likes = _load_likes()
    rng = np.random.default_rng([seed, horizon])
    edges = np.linspace(0, horizon, _SEGMENTS + 1).astype(int)
    who = np.concatenate([rng.choice(groups[s], edges[s + 1] - edges[s]) for s in range(_SEGMENTS)])
    return likes[who].astype(np.float64)


def measure_rewards(
    policy: Mapping[str, Any], epsilon: float | None, horizon: int, repetitions: int
) -> dict[str, list[float]]:
    """Return each run's reward a round, that of a choice at random, and that of the best in each segment."""
    from tacit.arms import Recorded

    found: dict[str, list[float]] = {"reward": [], "random": [], "best": []}
    edges = np.linspace(0, horizon, _SEGMENTS + 1).astype(int)
    for repetition in range(repetitions):
        table = draw_audience(horizon, repetition)
        environment = Recorded(data=table)
        spec = {**policy, "epsilon": epsilon} if epsilon is not None else dict(policy)
        result = simulate(spec, environment, horizon, [repetition], 3)
        parts = [table[a:b] for a, b in itertools.pairwise(edges)]
        found["reward"].append(float(result.final("reward")[0]) / horizon)
        found["random"].append(float(table.mean()))
        found["best"].append(sum(p.sum(axis=0).max() for p in parts) / horizon)
    return found


def _policy(label: str, epsilon: float | None) -> dict[str, Any]:
    if label == "with a window":
        return sliding(n_segments=_SEGMENTS)
    return {"name": "klucb"} if epsilon is None else {"name": "klucb-cf"}


def _judge(found: Outcomes) -> Findings:
    levels = list(_LEVELS.at(found.quick))
    first = f"with a window/{levels[0]}"
    random, best = (found.summary(first, part) for part in ("random", "best"))
    reward = {
        label: [found.summary(f"{label}/{level}", "reward") for level in levels]
        for label in _LABELS
    }
    pairs = list(zip(*reward.values(), strict=True))
    helps = [window.low > none.high for window, none in pairs]
    falls = [a.mean < b.mean for a, b in itertools.pairwise(reward["with a window"])]
    said = ", ".join(
        f"{window.mean:.3f} against {none.mean:.3f} ({level})"
        for (window, none), level in zip(pairs, levels, strict=True)
    )
    figure = plot_bars(
        "An audience that changes eight times",
        "listeners a round",
        levels,
        reward,
        caption="Ten artists, eight groups of friends of Last.fm in turn; a reward is that the "
        "person who came listens to the artist.",
    )
    top = Series("best of the segment", figure.series[0].x, [best.mean] * len(levels))
    return found.conclude(
        checks=[*helps, *falls],
        because=(
            f"listeners a round with a window against without one: {said}. Always the best artist "
            f"of the segment has {best.mean:.3f}, a choice at random {random.mean:.3f}."
        ),
        rows=[
            *[
                Row(f"listeners a round, {label}, {level}", "", each.text())
                for label, values in reward.items()
                for level, each in zip(levels, values, strict=True)
            ],
            Row("always the best artist of the segment", "", best.text()),
            Row("a choice at random", "", random.text()),
        ],
        figures=[replace(figure, series=[*figure.series, top])],
    )


REAL_DATA = study(
    Sweep(
        "{label}/{epsilon}",
        {"label": _LABELS, "epsilon": _LEVELS},
        measure_rewards,
        policy=_policy,
        horizon=Sized(200_000, 40_000),
        repetitions=Sized(20, 4),
    ),
    judge=_judge,
    name="gajane2023-real-data",
    needs=("hetrec2011-lastfm-2k",),
    own=True,
)
