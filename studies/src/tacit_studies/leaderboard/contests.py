"""The five contests: a trusted server, local privacy, local privacy under change, users, populations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit_studies.leaderboard.contest import (
    BEFORE,
    BESIDE,
    NEW,
    Contest,
    Line,
    Point,
    Variation,
    make_study,
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
_DECADES = (1_000, 10_000, 100_000, 1_000_000)
_ARMS = (2, 5, 20, 100)
_SOME = (1, 3)
"""The points of the quick size."""


def _over_epsilon(
    name: str,
    title: str,
    values: Sequence[float],
    environment: Mapping[str, Any],
    horizon: int = _T,
    quick: tuple[int, ...] = (),
) -> Variation:
    points = tuple(Point(e, environment, horizon, e) for e in values)
    return Variation(name, title, "epsilon", points, quick)


def _over_rounds(
    title: str, values: Sequence[int], environment: Mapping[str, Any], epsilon: float
) -> Variation:
    points = tuple(Point(float(T), environment, T, epsilon) for T in values)
    return Variation("long", title, "rounds", points)


def _over_sizes(
    name: str,
    title: str,
    x_label: str,
    values: Sequence[int],
    environment: Callable[[int], Mapping[str, Any]],
    epsilon: float = 1.0,
    horizon: int = _T,
    quick: tuple[int, ...] = (),
) -> Variation:
    """Vary a size, of which `environment` makes an environment."""
    points = tuple(Point(float(n), environment(n), horizon, epsilon) for n in values)
    return Variation(name, title, x_label, points, quick)


def _one_good(n_arms: int) -> dict[str, Any]:
    return _bernoulli(0.6, *[0.4] * (n_arms - 1))


CENTRAL = make_study(
    "today-central",
    Contest(
        lines=(
            Line("DP-IMED", {"name": "dp-imed"}, NEW),
            Line("DP-KLUCB", {"name": "dp-klucb"}, NEW),
            Line("GAP", {"name": "gap"}, BEFORE),
            Line("DP-SE", {"name": "dpse"}, BEFORE),
            Line("AdaP-KLUCB", {"name": "adap-klucb"}, BEFORE),
            Line("UCB-N, no privacy", {"name": "ucb-n", **_PLAIN}, BESIDE),
        ),
        variations=(
            _over_epsilon("graph", "Paper 002's arms on a graph", _SMALL, _PAPER_002, quick=_SOME),
            _over_epsilon("spread", "Ten arms, .9 to .1", _SMALL, _SPREAD, quick=_SOME),
            _over_epsilon("two", "Two arms, .55 and .5", _SMALL, _bernoulli(0.55, 0.5)),
            _over_rounds("Paper 002's arms at epsilon .1", _DECADES, _PAPER_002, 0.1),
            _over_sizes(
                "many", "One arm .6, the others .4, at epsilon .2", "arms", _ARMS, _one_good, 0.2
            ),
        ),
        repetitions=200,
    ),
)

_LOCAL = (0.25, 0.5, 1.0, 2.0, 4.0)
_RARE = _bernoulli(*np.linspace(0.1, 0.01, 10))

LOCAL = make_study(
    "today-local",
    Contest(
        lines=(
            Line("P-IMED-CF", {"name": "p-imed-cf"}, NEW),
            Line("klUCB-CF", {"name": "klucb-cf"}, BEFORE),
            Line("klUCB-CF with f = ln t", {"name": "klucb-cf", "exploration": "log"}, BEFORE),
            Line("klUCB-CF, shuffled", {"name": "shuffled-klucb-cf"}, BESIDE),
            Line("kl-UCB, no privacy", {"name": "klucb", "exploration": "log", **_PLAIN}, BESIDE),
        ),
        variations=(
            _over_epsilon("close", "One arm .6, four .5, five .4", _LOCAL, _CLOSE, quick=_SOME),
            _over_epsilon("spread", "Ten arms, .9 to .1", _LOCAL, _SPREAD, quick=_SOME),
            _over_epsilon("low", "Ten arms of rare rewards, .1 to .01", _LOCAL, _RARE),
            _over_rounds("Ten arms, .9 to .1, at epsilon 1", _DECADES, _SPREAD, 1.0),
            _over_sizes(
                "many", "One arm .6, the others .4, at epsilon 1", "arms", _ARMS, _one_good
            ),
        ),
    ),
)


def _rotating(K: int, segments: int = 10) -> dict[str, Any]:
    return {"name": "rotating", "n_arms": K, "segments": segments}


_RISER = {"name": "riser", "n_arms": 5}

CHANGING = make_study(
    "today-changing",
    Contest(
        lines=(
            Line("P-IMED-CF", {"name": "p-imed-cf"}, NEW),
            Line("SW-KLUCB-CF, published", {"name": "sw-klucb-cf", "window": "paper"}, BEFORE),
            Line("SW-KLUCB-CF, corrected", {"name": "sw-klucb-cf"}, BEFORE),
            Line("GLR-klUCB-CF", {"name": "glr-klucb-cf"}, BEFORE),
            Line("klUCB-CF, no watch", {"name": "klucb-cf", "exploration": "log"}, BESIDE),
        ),
        variations=(
            _over_epsilon(
                "rotating",
                "Ten arms, the best moves on ten times",
                _LOCAL,
                _rotating(10),
                quick=_SOME,
            ),
            _over_epsilon(
                "riser", "Five arms, four of which rise and fall", _LOCAL, _RISER, quick=_SOME
            ),
            _over_epsilon("never", "Ten arms that never change", _LOCAL, _rotating(10, 1)),
            _over_epsilon(
                "misled",
                "Two arms whose common level jumps to mislead",
                _LOCAL,
                {"name": "adversarial"},
            ),
            _over_sizes(
                "often",
                "Two arms at epsilon 1, more and more changes",
                "segments",
                (2, 10, 50, 250),
                lambda n: _rotating(2, n),
            ),
            _over_rounds("Five arms that rise and fall, at epsilon 1", _DECADES[1:], _RISER, 1.0),
        ),
    ),
)


def _fitted(n_users: int = 10) -> dict[str, Any]:
    return {"name": "fitted-users", "n_users": n_users}


def _reports(name: str, kind: str, **privacy: Any) -> dict[str, Any]:
    return {"name": name, "privacy": {"kind": kind, **privacy}}


_USERS = (0.5, 1.0, 2.0, 5.0, 10.0)

USERS = make_study(
    "today-users",
    Contest(
        lines=(
            Line("CoLin, residual", _reports("colin", "residual"), NEW),
            Line("learned kernel, residual", _reports("learned-kernel", "residual"), NEW),
            Line("CoLin, each reward", _reports("colin", "per-reward"), BEFORE),
            Line("LinUCB, residual", _reports("linucb", "residual"), BESIDE),
            Line(
                "CoLin, published (claim fails)",
                _reports("colin", "published", trust="local"),
                BESIDE,
            ),
            Line("CoLin, no privacy", {"name": "colin", **_PLAIN}, BESIDE),
        ),
        variations=(
            _over_epsilon("fitted", "Ten users in groups", _USERS, _fitted(), 10_000, _SOME),
            _over_epsilon(
                "uniform",
                "Ten similar users, as the paper writes them",
                _USERS,
                {"name": "synthetic-users"},
                10_000,
            ),
            _over_rounds("Ten users in groups at epsilon 1", _DECADES[:3], _fitted(), 1.0),
            _over_sizes(
                "many",
                "Users in groups at epsilon 2",
                "users",
                (2, 5, 10, 20),
                _fitted,
                2.0,
                10_000,
            ),
        ),
        quick_share=0.05,
    ),
)


def _options(n_agents: int = 10_000, M: int = 10) -> dict[str, Any]:
    qualities = [round(float(q), 6) for q in np.linspace(0.9, 0.1, M)]
    return {"name": "social-options", "qualities": qualities, "n_agents": n_agents}


def _crowd(**parameters: Any) -> dict[str, Any]:
    return {"name": "learning-dynamics", "engine": "crowd", **parameters}


POPULATIONS = make_study(
    "today-populations",
    Contest(
        lines=(
            Line("smoothed, least noisy encoding", _crowd(smoothed=True, encoding="least"), NEW),
            Line("smoothed", _crowd(smoothed=True), NEW),
            Line("corrected", _crowd(), BEFORE),
            Line("published (claim fails)", _crowd(variant="published"), BESIDE),
        ),
        variations=(
            _over_epsilon(
                "epsilon", "10,000 agents, ten options", _LOCAL, _options(), 2_000, _SOME
            ),
            _over_sizes(
                "agents",
                "Ten options at epsilon 1",
                "agents",
                _DECADES,
                _options,
                horizon=2_000,
                quick=_SOME,
            ),
            _over_sizes(
                "options",
                "100,000 agents at epsilon 1",
                "options",
                (2, 5, 20, 50),
                lambda M: _options(100_000, M),
                horizon=2_000,
            ),
            _over_rounds(
                "10,000 agents, ten options, at epsilon 1", (200, 2_000, 20_000), _options(), 1.0
            ),
        ),
        quick_share=0.25,
        unit="regret a round",
    ),
)
