"""Paper 004: what sound noise costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
)
from tacit_studies.wang2020.settings import (
    PLAIN,
    SYNTHETIC,
    close,
    compared,
    corrected,
    decide,
    final,
    held,
    holds,
    played,
)

HORIZON = 10_000
DELTA = 1e-6

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


def _shown(quick: bool) -> tuple[str, ...]:
    return PLAIN[1:2] if quick else PLAIN


def _cells(quick: bool) -> list[tuple[str, str, float]]:
    """Return algorithm, variant and epsilon of every game."""
    epsilons = (0.1, 2.0, 10.0) if quick else (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
    return [
        (algorithm, variant, epsilon)
        for algorithm in _shown(quick)
        for variant in _VARIANTS
        for epsilon in epsilons
        if epsilon == 2.0 or variant not in _ONCE
    ]


def _policy(algorithm: str, variant: str, epsilon: float) -> dict[str, Any]:
    ridge = {"regularisation": "auto"} if variant == "default" else {}
    return corrected(algorithm, epsilon, _VARIANTS[variant], **ridge)


def _noise_jobs(quick: bool) -> list[Job]:
    common = {
        "environment": SYNTHETIC,
        "horizon": 2_000 if quick else HORIZON,
        "repetitions": 3 if quick else 20,
        "measures": ["regret", "random_regret"],
    }
    return [
        *[
            Job(
                f"{algorithm}/not private", played, {"policy": corrected(algorithm, None), **common}
            )
            for algorithm in _shown(quick)
        ],
        *[
            Job(
                f"{algorithm}/{variant}/{epsilon:g}",
                played,
                {"policy": _policy(algorithm, variant, epsilon), **common},
            )
            for algorithm, variant, epsilon in _cells(quick)
        ],
    ]


def _over_epsilon(
    algorithm: str, outcomes: Mapping[str, Any], cells: list[tuple[str, str, float]]
) -> Figure:
    """Return the regret of every variant against epsilon, of no noise, and of choosing at random."""
    epsilons = sorted({epsilon for _, _, epsilon in cells})

    def line(label: str, keys: list[str], measure: str = "regret", dashed: bool = False) -> Series:
        found = [summarise(final(outcomes[key], measure)) for key in keys]
        return Series(
            label,
            epsilons,
            [s.mean for s in found],
            [s.low for s in found],
            [s.high for s in found],
            dashed,
        )

    games = {
        variant: [f"{algorithm}/{variant}/{epsilon:g}" for epsilon in epsilons]
        for variant in _VARIANTS
        if variant not in _ONCE
    }
    rounds = outcomes[f"{algorithm}/default/2"]["rounds"][-1]
    return Figure(
        f"{algorithm}: regret by epsilon, all variants",
        "epsilon (smaller is more private)",
        f"regret after {rounds:,} rounds",
        [
            *[line(variant, keys, dashed=variant in _DASHED) for variant, keys in games.items()],
            line("random choice", games["default"], "random_regret", dashed=True),
            line("not private", [f"{algorithm}/not private"] * len(epsilons), dashed=True),
        ],
        x_log=True,
        y_log=True,
        kind="points",
        caption="Means and 95% bands; rewards clipped to [-1, 1]; Gaussian noise has delta = 1e-6. "
        "The published noise does not deliver its epsilon. Own sums: each user's, kept by the user or "
        "by a server; b: the paper's sum over all users, which needs a trusted server. Ridge parameter "
        "0.3, but the default's, which grows with the noise on a reward.",
    )


def _judge_noise(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    regret = {key: final(outcome) for key, outcome in outcomes.items()}
    mean = {key: summarise(values) for key, values in regret.items()}
    cells = _cells(quick)
    default = outcomes["CoLin/default/2"]
    random, rounds = summarise(final(default, "random_regret")), default["rounds"][-1]
    best = f"CoLin/{_BEST}/2"
    published = [f"CoLin/{variant}/2" for variant in _VARIANTS if variant.startswith("published")]
    sums = [
        f"CoLin/{variant}/2" for variant in _VARIANTS if variant.startswith(("own", "ball", "b,"))
    ]
    chosen = [
        compared(regret[f"{algorithm}/default/{e:g}"], regret[f"{algorithm}/{variant}/{e:g}"])
        for algorithm, variant, e in cells
        if variant == (_BEST if e >= 2.0 else "each reward, one bit")
    ]
    claims = {
        "below published noise": [compared(regret[best], regret[key]) for key in published],
        "below sound noise on sums": [compared(regret[best], regret[key]) for key in sums],
    }
    rows = [
        *[
            Row(f"CoLin, noise on each reward: {words}", "", held(found), agrees=holds(found))
            for words, found in claims.items()
        ],
        Row("ridge parameter that grows with the noise: below 0.3", "", held(chosen)),
        Row(
            "random choice",
            "",
            random.text(),
            "" if quick else "about 3,540",
            agrees=None if quick else close(random, 3540),
        ),
        *[
            Row(f"{algorithm}, not private", "", mean[f"{algorithm}/not private"].text())
            for algorithm in _shown(quick)
        ],
    ]
    for algorithm, variant, e in cells:
        found = mean[f"{algorithm}/{variant}/{e:g}"]
        known = None if quick else _KNOWN.get((variant, e))
        value = known[PLAIN.index(algorithm)] if known else None
        rows.append(
            Row(
                f"{algorithm}, epsilon = {e:g}: {variant}",
                "",
                found.text(),
                f"{value:,}" if value else "",
                agrees=close(found, value) if value else None,
            )
        )
    return Findings(
        verdict=OWN,
        because=as_expected(decide(holds(found) for found in claims.values()))
        + (
            f"CoLin at epsilon = 2 after {rounds:,} rounds: {mean[best].mean:,.0f} with noise on "
            f"each reward, which needs no trusted server, and {mean['CoLin/default/2'].mean:,.0f} if "
            "the ridge parameter grows with it; "
            + " and ".join(f"{mean[key].mean:,.0f}" for key in published)
            + " with the published noise, central and local; "
            f"{min(mean[key].mean for key in sums):,.0f} with the best sound noise on sums; "
            f"{random.mean:,.0f} by choosing at random."
        ),
        agreement=(
            "A claim holds if most of its comparisons are clear (99% interval of the paired "
            "differences) and none is clearly the contrary; an independent value agrees "
            "within 5 standard errors of the difference."
        ),
        rows=rows,
        figures=[_over_epsilon(algorithm, outcomes, cells) for algorithm in _shown(quick)],
    )


SOUND_NOISE = Reproduction(
    name="wang2020-sound-noise",
    paper="wang2020",
    title="What sound noise costs",
    question="The published noise protects less than it says. What does it cost to repair that?",
    claim=(
        "Contexts are public, so noise on each reward is enough; it keeps its promise, "
        "needs no trusted server, and costs less than noise on sums."
    ),
    jobs=_noise_jobs,
    judge=_judge_noise,
    own=True,
)
