"""The five contests: a trusted server, local privacy, local privacy under change, users, populations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit_studies.today.contest import (
    BEFORE,
    BESIDE,
    NEW,
    Contest,
    Line,
    Sweep,
    contested,
    epsilons,
    horizons,
    sizes,
)

_T = 100_000
_PLAIN: dict[str, Any] = {"epsilon": None}


def _arms(name: str, *means: float) -> dict[str, Any]:
    """Return arms with the best, which is named first, in the middle: ties often go to the first."""
    half = len(means) // 2
    turned = [*means[-half:], *means[:-half]]
    return {"name": name, "means": [round(float(mean), 6) for mean in turned]}


def _bernoulli(*means: float) -> dict[str, Any]:
    return _arms("bernoulli", *means)


def _on_graph(environment: dict[str, Any], edge_prob: float) -> dict[str, Any]:
    return {"name": "graph-feedback", "environment": environment, "edge_prob": edge_prob}


_PAPER_002 = _on_graph(
    _arms("truncated-normal", 0.9, 0.9, *(0.8 - 0.05 * k for k in range(8))), 0.2
)
_SPREAD = _bernoulli(*np.linspace(0.9, 0.1, 10))
_CLOSE = _bernoulli(0.6, *[0.5] * 4, *[0.4] * 5)
_SMALL = (0.05, 0.1, 0.2, 0.5, 1.0)

CENTRAL = contested(
    Contest(
        lines=(
            Line("DP-IMED", {"name": "dp-imed"}, NEW),
            Line("DP-KLUCB", {"name": "dp-klucb"}, NEW),
            Line("GAP", {"name": "gap"}, BEFORE),
            Line("DP-SE", {"name": "dpse"}, BEFORE),
            Line("AdaP-KLUCB", {"name": "adap-klucb"}, BEFORE),
            Line("UCB-N, no privacy", {"name": "ucb-n", **_PLAIN}, BESIDE),
        ),
        sweeps=(
            Sweep(
                "graph",
                "Paper 002's arms on a graph",
                "epsilon",
                epsilons(_SMALL, _PAPER_002, _T),
                quick=(1, 3),
            ),
            Sweep(
                "spread",
                "Ten arms, .9 to .1",
                "epsilon",
                epsilons(_SMALL, _SPREAD, _T),
                quick=(1, 3),
            ),
            Sweep(
                "two",
                "Two arms, .55 and .5",
                "epsilon",
                epsilons(_SMALL, _bernoulli(0.55, 0.5), _T),
            ),
            Sweep(
                "long",
                "Paper 002's arms at epsilon .1",
                "rounds",
                horizons((1_000, 10_000, 100_000, 1_000_000), _PAPER_002, 0.1),
            ),
            Sweep(
                "many",
                "One arm .6, the others .4, at epsilon .2",
                "arms",
                sizes((2, 5, 20, 100), lambda K: _bernoulli(0.6, *[0.4] * (K - 1)), _T, 0.2),
            ),
        ),
        repetitions=200,
        quick_repetitions=40,
    ),
    name="today-central",
    title="One learner whose server is trusted",
    question="Which policy loses least if every reward may be seen by a trusted server and by nobody else?",
    claim=(
        "DP-IMED and DP-KLUCB, which keep what was released and eliminate nothing, are ahead of GAP, "
        "DP-SE and AdaP-KLUCB at equal epsilon, with and without a feedback graph."
    ),
)

_LOCAL = (0.25, 0.5, 1.0, 2.0, 4.0)

LOCAL = contested(
    Contest(
        lines=(
            Line("P-IMED-CF", {"name": "p-imed-cf"}, NEW),
            Line("klUCB-CF", {"name": "klucb-cf"}, BEFORE),
            Line("klUCB-CF with f = ln t", {"name": "klucb-cf", "exploration": "log"}, BEFORE),
            Line("klUCB-CF, shuffled", {"name": "shuffled-klucb-cf"}, BESIDE),
            Line("kl-UCB, no privacy", {"name": "klucb", "exploration": "log", **_PLAIN}, BESIDE),
        ),
        sweeps=(
            Sweep(
                "close",
                "One arm .6, four .5, five .4",
                "epsilon",
                epsilons(_LOCAL, _CLOSE, _T),
                quick=(1, 3),
            ),
            Sweep(
                "spread",
                "Ten arms, .9 to .1",
                "epsilon",
                epsilons(_LOCAL, _SPREAD, _T),
                quick=(1, 3),
            ),
            Sweep(
                "low",
                "Ten arms of rare rewards, .1 to .01",
                "epsilon",
                epsilons(_LOCAL, _bernoulli(*np.linspace(0.1, 0.01, 10)), _T),
            ),
            Sweep(
                "long",
                "Ten arms, .9 to .1, at epsilon 1",
                "rounds",
                horizons((1_000, 10_000, 100_000, 1_000_000), _SPREAD, 1.0),
            ),
            Sweep(
                "many",
                "One arm .6, the others .4, at epsilon 1",
                "arms",
                sizes((2, 5, 20, 100), lambda K: _bernoulli(0.6, *[0.4] * (K - 1)), _T, 1.0),
            ),
        ),
        repetitions=40,
        quick_repetitions=40,
    ),
    name="today-local",
    title="One learner that nobody trusts, where nothing changes",
    question="Which policy loses least if a reward leaves its owner only as a randomised bit?",
    claim=(
        "A policy that watches for changes pays for it where there are none, but P-IMED-CF is not far "
        "from klUCB-CF; a shuffler, which is another trust, gains more than any policy."
    ),
)


def _rotating(K: int, segments: int = 10) -> dict[str, Any]:
    return {"name": "rotating", "n_arms": K, "segments": segments}


_RISER = {"name": "riser", "n_arms": 5}

CHANGING = contested(
    Contest(
        lines=(
            Line("P-IMED-CF", {"name": "p-imed-cf"}, NEW),
            Line("SW-KLUCB-CF, published", {"name": "sw-klucb-cf", "window": "paper"}, BEFORE),
            Line("SW-KLUCB-CF, corrected", {"name": "sw-klucb-cf"}, BEFORE),
            Line("GLR-klUCB-CF", {"name": "glr-klucb-cf"}, BEFORE),
            Line("klUCB-CF, no watch", {"name": "klucb-cf", "exploration": "log"}, BESIDE),
        ),
        sweeps=(
            Sweep(
                "rotating",
                "Ten arms, the best moves on ten times",
                "epsilon",
                epsilons(_LOCAL, _rotating(10), _T),
                quick=(1, 3),
            ),
            Sweep(
                "riser",
                "Five arms, four of which rise and fall",
                "epsilon",
                epsilons(_LOCAL, _RISER, _T),
                quick=(1, 3),
            ),
            Sweep(
                "never",
                "Ten arms that never change",
                "epsilon",
                epsilons(_LOCAL, _rotating(10, 1), _T),
            ),
            Sweep(
                "misled",
                "Two arms whose common level jumps to mislead",
                "epsilon",
                epsilons(_LOCAL, {"name": "adversarial"}, _T),
            ),
            Sweep(
                "often",
                "Two arms at epsilon 1, more and more changes",
                "segments",
                sizes((2, 10, 50, 250), lambda n: _rotating(2, n), _T, 1.0),
            ),
            Sweep(
                "long",
                "Five arms that rise and fall, at epsilon 1",
                "rounds",
                horizons((10_000, 100_000, 1_000_000), _RISER, 1.0),
            ),
        ),
        repetitions=40,
        quick_repetitions=40,
    ),
    name="today-changing",
    title="One learner that nobody trusts, in a world that changes",
    question="Which policy loses least if rewards are randomised bits and what is best changes unannounced?",
    claim=(
        "P-IMED-CF, told neither horizon nor number of changes, is ahead of the sliding window that is "
        "told both; it loses on levels that all arms share and that jump."
    ),
)


def _fitted(n_users: int = 10) -> dict[str, Any]:
    return {"name": "fitted-users", "n_users": n_users}


_PUBLISHED = {"name": "colin", "privacy": {"kind": "published", "trust": "local"}}

USERS = contested(
    Contest(
        lines=(
            Line("CoLin, residual", {"name": "colin", "privacy": {"kind": "residual"}}, NEW),
            Line(
                "learned kernel, residual",
                {"name": "learned-kernel", "privacy": {"kind": "residual"}},
                NEW,
            ),
            Line(
                "CoLin, each reward", {"name": "colin", "privacy": {"kind": "per-reward"}}, BEFORE
            ),
            Line("LinUCB, residual", {"name": "linucb", "privacy": {"kind": "residual"}}, BESIDE),
            Line("CoLin, published (claim fails)", _PUBLISHED, BESIDE),
            Line("CoLin, no privacy", {"name": "colin", **_PLAIN}, BESIDE),
        ),
        sweeps=(
            Sweep(
                "fitted",
                "Ten users in groups",
                "epsilon",
                epsilons((0.5, 1.0, 2.0, 5.0, 10.0), _fitted(), 10_000),
                quick=(1, 3),
            ),
            Sweep(
                "uniform",
                "Ten similar users, as the paper writes them",
                "epsilon",
                epsilons((0.5, 1.0, 2.0, 5.0, 10.0), {"name": "synthetic-users"}, 10_000),
            ),
            Sweep(
                "long",
                "Ten users in groups at epsilon 1",
                "rounds",
                horizons((1_000, 10_000, 100_000), _fitted(), 1.0),
            ),
            Sweep(
                "many",
                "Users in groups at epsilon 2",
                "users",
                sizes((2, 5, 10, 20), _fitted, 10_000, 2.0),
            ),
        ),
        repetitions=40,
        quick_repetitions=40,
        quick_share=0.05,
    ),
    name="today-users",
    title="People who share a model and trust nobody",
    question="How should a device tell a reward whose noise is symmetric, and what does it cost?",
    claim=(
        "To tell where a reward lies relative to the public prediction costs several times less than to "
        "tell the reward itself at the same local epsilon; at large epsilon the gain ends."
    ),
)


def _options(n_agents: int = 10_000, M: int = 10) -> dict[str, Any]:
    qualities = [round(float(q), 6) for q in np.linspace(0.9, 0.1, M)]
    return {"name": "social-options", "qualities": qualities, "n_agents": n_agents}


_CROWD = {"name": "learning-dynamics", "engine": "crowd"}

POPULATIONS = contested(
    Contest(
        lines=(
            Line(
                "smoothed, least noisy encoding",
                {**_CROWD, "smoothed": True, "encoding": "least"},
                NEW,
            ),
            Line("smoothed", {**_CROWD, "smoothed": True}, NEW),
            Line("corrected", _CROWD, BEFORE),
            Line("published (claim fails)", {**_CROWD, "variant": "published"}, BESIDE),
        ),
        sweeps=(
            Sweep(
                "epsilon",
                "10,000 agents, ten options",
                "epsilon",
                epsilons((0.25, 0.5, 1.0, 2.0, 4.0), _options(), 2_000),
                quick=(1, 3),
            ),
            Sweep(
                "agents",
                "Ten options at epsilon 1",
                "agents",
                sizes((1_000, 10_000, 100_000, 1_000_000), _options, 2_000, 1.0),
                quick=(1, 3),
            ),
            Sweep(
                "options",
                "100,000 agents at epsilon 1",
                "options",
                sizes((2, 5, 20, 50), lambda M: _options(100_000, M), 2_000, 1.0),
            ),
            Sweep(
                "long",
                "10,000 agents, ten options, at epsilon 1",
                "rounds",
                horizons((200, 2_000, 20_000), _options(), 1.0),
            ),
        ),
        repetitions=40,
        quick_repetitions=40,
        quick_share=0.25,
        unit="regret a round",
    ),
    name="today-populations",
    title="A population that copies what is popular and good",
    question="How much better does a crowd choose if agents remember what they heard and encode it better?",
    claim=(
        "Remembering a little of earlier estimates costs no privacy and gains several times; a better "
        "encoding gains more where epsilon is large."
    ),
)
