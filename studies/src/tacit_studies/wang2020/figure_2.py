"""Paper 004, Fig. 2: what people of LastFM and Delicious would have been offered."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import tacit
from tacit_studies.estimates import summarise
from tacit_studies.reproduction import Figure, Findings, Reproduction, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.wang2020.claims import compare, decide, holds, list_claims
from tacit_studies.wang2020.settings import (
    COUNTERPARTS,
    NAMES,
    PLAIN,
    curve,
    final,
    list_policies,
    play_runs,
)

_POLICIES = list_policies(2.0, clip=True)
_FEATURES = Sized(25, 8)


def count_groups(name: str, dimension: int) -> dict[str, int]:
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


def _judge(title: str, outcomes: Outcomes) -> Findings:
    reward = {name: final(outcomes[name], "reward") for name in _POLICIES}
    random = final(outcomes["CoLin"], "random_reward")
    ratio = {n: summarise(np.divide(v, random).tolist()) for n, v in reward.items()}
    claims = {
        "private below not private": [compare(reward[n], reward[COUNTERPARTS[n]]) for n in NAMES],
        "local below central": [
            compare(reward[f"LDP-{a}"], reward[f"DP-{a}"]) for a in ("CoLin", "GOBLin")
        ],
        "DP-CoLin and DP-GOBLin above DP-LinUCB": [
            compare(reward["DP-LinUCB"], reward[n]) for n in NAMES[1:3]
        ],
    }
    learns = {"private above random choice": [compare(random, reward[n]) for n in NAMES]}
    rounds, groups = outcomes["CoLin"]["rounds"][-1], outcomes["groups"]
    joined = f"{groups['joined']:,} of {groups['pairs']:,}"
    left_out = {
        n: summarise([v / rounds for v in final(outcomes[n], "left_out")]) for n in _POLICIES
    }
    return outcomes.conclude(
        verdict=decide(holds(c) for c in claims.values()),
        because=(
            f"After {rounds:,} rounds at epsilon = 2, clicks as a multiple of random choice: "
            + ", ".join(f"{name} {ratio[name].mean:.2f}" for name in (*PLAIN, *NAMES))
            + f". With sound noise on single clicks CoLin has {ratio['corrected CoLin'].mean:.2f}. "
            f"Friendships join {joined} pairs of groups. "
            f"LDP-CoLin leaves out {left_out['LDP-CoLin'].mean:.0%} of the answers: noise on a group's "
            "sums is calibrated for three times its fair share of the rounds, and large groups come "
            "more often."
        ),
        rows=[
            *list_claims(claims),
            *list_claims(learns, ""),
            Row("pairs of groups joined by friendships", "", joined),
            Row(
                "people in the largest group", "", f"{groups['largest']:,} of {groups['people']:,}"
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
                f"Clicks on {title}",
                "round",
                "cumulative reward (clicks)",
                [
                    curve("CoLin, not private", outcomes["CoLin"], "reward"),
                    curve("CoLin, corrected, local", outcomes["corrected CoLin"], "reward"),
                    *[curve(name, outcomes[name], "reward") for name in NAMES[:4]],
                    curve("random choice", outcomes["CoLin"], "random_reward", dashed=True),
                ],
                caption="Means of paired runs and 95% bands, epsilon = 2. People are in 100 "
                f"groups of friends, items have {_FEATURES.at(outcomes.quick)} features; in each round one "
                "of 25 items is one that the person liked.",
            )
        ],
    )


def _study(environment: str, title: str, horizon: int) -> Reproduction:
    return study(
        Sweep(
            "{policy}",
            {"policy": _POLICIES},
            play_runs,
            environment=Sized(
                *({"name": environment, "dimension": d} for d in (_FEATURES.full, _FEATURES.quick))
            ),
            horizon=Sized(horizon, 1_200),
            repetitions=Sized(5, 3),
            measures=["reward", "random_reward", "left_out"],
            points=20,
        ),
        Sweep("groups", {}, count_groups, name=environment, dimension=_FEATURES),
        judge=partial(_judge, title),
        name=f"wang2020-figure-2-{environment}",
        needs=(f"hetrec2011-{environment}-2k",),
    )


FIGURE_2 = (_study("lastfm", "LastFM", 10_000), _study("delicious", "Delicious", 20_000))
