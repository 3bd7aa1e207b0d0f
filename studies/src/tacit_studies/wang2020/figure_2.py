"""Paper 004, Fig. 2: what people of LastFM and Delicious would have been offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tacit
from tacit_studies.reproduction import Figure, Findings, Job, Reproduction, Row, summarise
from tacit_studies.wang2020.settings import (
    COUNTERPARTS,
    NAMES,
    PLAIN,
    compared,
    corrected,
    curve,
    decide,
    final,
    held,
    holds,
    played,
    private,
)

EPSILON = 2.0
_HORIZON = {"lastfm": 10_000, "delicious": 20_000}
_TITLES = {"lastfm": "LastFM", "delicious": "Delicious"}


def _policies() -> dict[str, dict[str, Any]]:
    return {
        **{name: corrected(name, None) for name in PLAIN},
        **{name: private(name, EPSILON, clip=True) for name in NAMES},
        "corrected CoLin": corrected("CoLin", EPSILON),
    }


def _features(quick: bool) -> int:
    return 8 if quick else 25


def grouped(name: str, dimension: int) -> dict[str, int]:
    """Return how many pairs of groups friendships join, of how many, and the largest group."""
    spec = {"name": name, "dimension": dimension}
    environment: Any = tacit.build({"name": "linucb"}, spec, 1)[1]
    prepared = environment.prepared()
    n = environment.n_groups
    return {
        "joined": len(prepared.graph.indices) // 2,
        "pairs": n * (n - 1) // 2,
        "people": len(prepared.groups),
        "largest": int(np.bincount(prepared.groups).max()),
    }


def _jobs(environment: str) -> Callable[[bool], list[Job]]:
    def jobs(quick: bool) -> list[Job]:
        size = {
            "horizon": 1_200 if quick else _HORIZON[environment],
            "repetitions": 3 if quick else 5,
        }
        games = [
            Job(
                name,
                played,
                {
                    "policy": policy,
                    "environment": {"name": environment, "dimension": _features(quick)},
                    **size,
                    "measures": ["reward", "random_reward", "left_out"],
                    "points": 20,
                },
            )
            for name, policy in _policies().items()
        ]
        described = {"name": environment, "dimension": _features(quick)}
        return [*games, Job("groups", grouped, described)]

    return jobs


def _judge(environment: str) -> Callable[[Mapping[str, Any], bool], Findings]:
    def judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
        reward = {name: final(outcomes[name], "reward") for name in _policies()}
        random = final(outcomes["CoLin"], "random_reward")
        ratio = {n: summarise(np.divide(v, random).tolist()) for n, v in reward.items()}
        claims = {
            "private below not private": [
                compared(reward[n], reward[COUNTERPARTS[n]]) for n in NAMES
            ],
            "local below central": [
                compared(reward[f"LDP-{a}"], reward[f"DP-{a}"]) for a in ("CoLin", "GOBLin")
            ],
            "DP-CoLin and DP-GOBLin above DP-LinUCB": [
                compared(reward["DP-LinUCB"], reward[n]) for n in NAMES[1:3]
            ],
        }
        learns = [compared(random, reward[n]) for n in NAMES]
        rounds, groups = outcomes["CoLin"]["rounds"][-1], outcomes["groups"]
        left_out = {
            n: summarise([v / rounds for v in final(outcomes[n], "left_out")]) for n in _policies()
        }
        return Findings(
            verdict=decide(holds(c) for c in claims.values()),
            because=(
                f"After {rounds:,} rounds at epsilon = 2, clicks as a multiple of random choice: "
                + ", ".join(f"{name} {ratio[name].mean:.2f}" for name in (*PLAIN, *NAMES))
                + f". With sound noise on single clicks CoLin has {ratio['corrected CoLin'].mean:.2f}. "
                f"Friendships join {groups['joined']:,} of {groups['pairs']:,} pairs of groups. "
                f"LDP-CoLin leaves out {left_out['LDP-CoLin'].mean:.0%} of the answers: noise on a group's "
                "sums is calibrated for three times its fair share of the rounds, and large groups come "
                "more often."
            ),
            agreement=(
                "A claim holds if most of its comparisons are clear (99% interval of the "
                "paired differences) and none is clearly the contrary."
            ),
            rows=[
                *[Row(words, "yes", held(c), agrees=holds(c)) for words, c in claims.items()],
                Row("private above random choice", "", held(learns), agrees=holds(learns)),
                Row(
                    "pairs of groups joined by friendships",
                    "",
                    f"{groups['joined']:,} of {groups['pairs']:,}",
                ),
                Row(
                    "people in the largest group",
                    "",
                    f"{groups['largest']:,} of {groups['people']:,}",
                ),
                *[
                    Row(f"{name}: answers left out, of all", "", s.text())
                    for name, s in left_out.items()
                    if s.mean > 0
                ],
                *[Row(f"{name}: clicks, times random", "", s.text()) for name, s in ratio.items()],
            ],
            figures=[
                Figure(
                    f"Clicks on {_TITLES[environment]}",
                    "round",
                    "cumulative reward (clicks)",
                    [
                        curve("CoLin, not private", outcomes["CoLin"], "reward"),
                        curve("CoLin, corrected, local", outcomes["corrected CoLin"], "reward"),
                        *[curve(name, outcomes[name], "reward") for name in NAMES[:4]],
                        curve("random choice", outcomes["CoLin"], "random_reward", dashed=True),
                    ],
                    caption="Means of paired runs and 95% bands, epsilon = 2. People are in 100 "
                    f"groups of friends, items have {_features(quick)} features; in each round one "
                    "of 25 items is one that the person liked.",
                )
            ],
        )

    return judge


FIGURE_2 = tuple(
    Reproduction(
        name=f"wang2020-figure-2-{environment}",
        paper="wang2020",
        title=f"Fig. 2: rewards on {_TITLES[environment]}",
        question=f"Can a recommender for {what} learn from friends and keep clicks private?",
        claim=(
            "Those that hide nothing earn most, those with a trusted server more than local ones; "
            "DP-CoLin and DP-GOBLin earn more than DP-LinUCB."
        ),
        jobs=_jobs(environment),
        judge=_judge(environment),
        needs=(folder,),
    )
    for environment, what, folder in (
        ("lastfm", "music", "hetrec2011-lastfm-2k"),
        ("delicious", "bookmarks", "hetrec2011-delicious-2k"),
    )
)
