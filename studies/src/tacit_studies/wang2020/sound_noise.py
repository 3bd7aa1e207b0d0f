"""Paper 004: what sound noise costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacit_studies.estimates import summarise
from tacit_studies.reproduction import Figure, Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points
from tacit_studies.wang2020.claims import (
    compare,
    compare_known,
    count_held,
    decide,
    holds,
    list_claims,
)
from tacit_studies.wang2020.settings import (
    DELTA,
    PLAIN,
    SYNTHETIC,
    corrected,
    final,
    final_line,
    play_runs,
)

_SUMS = {"kind": "noisy-sums"}
_GAUSSIAN = {**_SUMS, "delta": DELTA}
_B = {"trust": "central", "statistic": "b"}
_VARIANTS: dict[str, dict[str, Any]] = {
    "each reward, Laplace": {"mechanism": "laplace"},
    "each reward, one bit": {"mechanism": "bit"},
    "published, trusted server": {"kind": "published", "trust": "central"},
    "published, local": {"kind": "published", "trust": "local"},
    "own sums, Gaussian Toeplitz": {**_GAUSSIAN, "continual": "toeplitz"},
    "own sums, Gaussian tree": _GAUSSIAN,
    "ball on own sums": _SUMS,
    "b, Gaussian tree": {**_B, **_GAUSSIAN},
    "default": {},
    "each reward, piecewise": {"mechanism": "piecewise"},
    "b, ball": {**_B, **_SUMS},
}
_DASHED = ("published, local", "own sums, Gaussian tree")
_ONCE = ("b, ball",)
"""At epsilon = 2 only."""
_BEST = "each reward, piecewise"
_KNOWN = {
    ("each reward, Laplace", 0.5): (2678, 2355, 2670),
    ("each reward, one bit", 0.5): (2330, 1817, 2269),
    ("each reward, Laplace", 2.0): (1174, 599, 1039),
    ("each reward, one bit", 2.0): (1074, 472, 875),
    ("own sums, Gaussian tree", 2.0): (2639, 2165, 2597),
    ("ball on own sums", 2.0): (3015, 2730, 2996),
    ("b, Gaussian tree", 2.0): (2719, 2996, 2929),
    ("b, ball", 2.0): (3432, 3497, 3500),
    ("each reward, Laplace", 10.0): (156, 55, 100),
    ("each reward, one bit", 10.0): (708, 346, 636),
}
_ALGORITHMS = Sized(PLAIN, PLAIN[1:2])
_EPSILONS = Sized((0.1, 0.5, 1.0, 2.0, 5.0, 10.0), (0.1, 2.0, 10.0))


def _is_played(variant: str, epsilon: float) -> bool:
    return epsilon == 2.0 or variant not in _ONCE


def _policy(algorithm: str, variant: str, epsilon: float) -> dict[str, Any]:
    ridge = {"regularisation": "auto"} if variant == "default" else {}
    return corrected(algorithm, epsilon, _VARIANTS[variant], **ridge)


def _over_epsilon(algorithm: str, outcomes: Outcomes) -> Figure:
    """Return the regret of every variant against epsilon, of no noise, and of choosing at random."""
    epsilons = _EPSILONS.at(outcomes.quick)
    games = {
        variant: [outcomes[f"{algorithm}/{variant}/{e:g}"] for e in epsilons]
        for variant in _VARIANTS
        if variant not in _ONCE
    }
    random = [final(game, "random_regret") for game in games["default"]]
    plain = [final(outcomes[f"{algorithm}/not private"])] * len(epsilons)
    return plot_points(
        f"{algorithm}: regret by epsilon, all variants",
        "epsilon (smaller is more private)",
        f"regret after {games['default'][0]['rounds'][-1]:,} rounds",
        [
            *(
                final_line(variant, epsilons, list(map(final, found)), dashed=variant in _DASHED)
                for variant, found in games.items()
            ),
            final_line("random choice", epsilons, random, dashed=True),
            final_line("not private", epsilons, plain, dashed=True),
        ],
        caption="Means and 95% bands; rewards clipped to [-1, 1]; Gaussian noise has delta = 1e-6. "
        "The published noise does not deliver its epsilon. Own sums: each user's, kept by the user or "
        "by a server; b: the paper's sum over all users, which needs a trusted server. Ridge parameter "
        "0.3, but the default's, which grows with the noise on a reward.",
    )


def _judge(outcomes: Outcomes) -> Findings:
    regret = {key: final(outcome) for key, outcome in outcomes.items()}
    mean = {key: summarise(values) for key, values in regret.items()}
    algorithms = _ALGORITHMS.at(outcomes.quick)
    cells = [
        (algorithm, variant, e)
        for algorithm in algorithms
        for variant in _VARIANTS
        for e in _EPSILONS.at(outcomes.quick)
        if _is_played(variant, e)
    ]
    default = outcomes["CoLin/default/2"]
    random, rounds = summarise(final(default, "random_regret")), default["rounds"][-1]
    best = f"CoLin/{_BEST}/2"
    published, sums = (
        [f"CoLin/{variant}/2" for variant in _VARIANTS if variant.startswith(begins)]
        for begins in (("published",), ("own", "ball", "b,"))
    )
    chosen = [
        compare(regret[f"{algorithm}/default/{e:g}"], regret[f"{algorithm}/{variant}/{e:g}"])
        for algorithm, variant, e in cells
        if variant == (_BEST if e >= 2.0 else "each reward, one bit")
    ]
    claims = {
        f"CoLin, noise on each reward: {words}": [
            compare(regret[best], regret[key]) for key in keys
        ]
        for words, keys in (
            ("below published noise", published),
            ("below sound noise on sums", sums),
        )
    }
    known = {
        (algorithm, variant, e): value
        for (variant, e), values in ({} if outcomes.quick else _KNOWN).items()
        for algorithm, value in zip(PLAIN, values, strict=True)
    }
    about = compare_known("random choice", random, None if outcomes.quick else 3540)
    rows = [
        *list_claims(claims, ""),
        Row("ridge parameter that grows with the noise: below 0.3", "", count_held(chosen)),
        replace(about, expected=about.expected and f"about {about.expected}"),
        *[
            Row(f"{algorithm}, not private", "", mean[f"{algorithm}/not private"].text())
            for algorithm in algorithms
        ],
        *[
            compare_known(
                f"{algorithm}, epsilon = {e:g}: {variant}",
                mean[f"{algorithm}/{variant}/{e:g}"],
                known.get((algorithm, variant, e)),
            )
            for algorithm, variant, e in cells
        ],
    ]
    return outcomes.conclude(
        verdict=decide(holds(found) for found in claims.values()),
        because=(
            f"CoLin at epsilon = 2 after {rounds:,} rounds: {mean[best].mean:,.0f} with noise on "
            f"each reward, which needs no trusted server, and {mean['CoLin/default/2'].mean:,.0f} if "
            "the ridge parameter grows with it; "
            + " and ".join(f"{mean[key].mean:,.0f}" for key in published)
            + " with the published noise, central and local; "
            f"{min(mean[key].mean for key in sums):,.0f} with the best sound noise on sums; "
            f"{random.mean:,.0f} by choosing at random."
        ),
        rows=rows,
        figures=[_over_epsilon(algorithm, outcomes) for algorithm in algorithms],
    )


_COMMON: dict[str, Any] = {
    "environment": SYNTHETIC,
    "horizon": Sized(10_000, 2_000),
    "repetitions": Sized(20, 3),
    "measures": ["regret", "random_regret"],
}
SOUND_NOISE = study(
    Sweep(
        "{algorithm}/not private",
        {"algorithm": _ALGORITHMS},
        play_runs,
        policy=lambda algorithm: corrected(algorithm, None),
        **_COMMON,
    ),
    Sweep(
        "{algorithm}/{variant}/{epsilon:g}",
        {"algorithm": _ALGORITHMS, "variant": list(_VARIANTS), "epsilon": _EPSILONS},
        play_runs,
        where=_is_played,
        policy=_policy,
        **_COMMON,
    ),
    judge=_judge,
    name="wang2020-sound-noise",
    own=True,
)
