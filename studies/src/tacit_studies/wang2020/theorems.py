"""Paper 004, Theorems 2, 4, 6 and 8: how regret grows with 1/epsilon, and what collaboration saves of it.

Their discussion compares two extremes: nobody is joined to anybody, and everybody to everybody alike.
Here all users have the same preferences, so that either is true, and what differs is the noise alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit_studies.reproduction import (
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    Summary,
    summarise,
    verdict_of,
)
from tacit_studies.tools import growth_exponent

_DIMENSION, _SHOWN = 5, 10
_USERS, _EPSILON = 8, 12.0
_ALIKE = {False: "nobody joined", True: "everybody joined"}
_THEOREM = {"DP-CoLin": 2, "LDP-CoLin": 4, "DP-GOBLin": 6, "LDP-GOBLin": 8}
_SLOPE, _SAVED = 0.25, 0.8
_CURVES = [
    *((f"{trust}, {_ALIKE[False]}", f"{trust}-CoLin", False) for trust in ("LDP", "DP")),
    *((f"{name}, {_ALIKE[True]}", name, True) for name in _THEOREM),
]
"""Label, algorithm and whether everybody is joined; where nobody is, both algorithms are LinUCB."""


def added_regret(
    name: str, n_users: int, alike: bool, epsilon: float, horizon: int, repetitions: int
) -> list[float]:
    """Return by how much published noise raises regret, for users who are all the same.

    Both policies of a repetition meet the same table, and both know who is joined.
    """
    from tacit.contextual import CoLin, GOBLin, Published, Synthetic
    from tacit.simulation import play

    environment = Synthetic(n_users=n_users, dimension=_DIMENSION, n_shown=_SHOWN)
    trust, _, algorithm = name.partition("-")
    hidden = Published(
        epsilon=epsilon,
        trust="central" if trust == "DP" else "local",
        clip=False,
        horizon=horizon,
        visits=environment.visits(horizon),
    )
    kind = {"CoLin": CoLin, "GOBLin": GOBLin}[algorithm]
    ones = np.ones((n_users, n_users))
    found = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([4, repetition])
        features = rng.standard_normal((environment.n_items, _DIMENSION))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        direction = rng.standard_normal(_DIMENSION)
        table = environment.table(4, repetition, horizon)._replace(
            features=features,
            preferences=np.tile(direction / np.linalg.norm(direction), (n_users, 1)),
        )
        table = table._replace(
            weights=_filled(table.weights, ones / n_users if alike else np.eye(n_users)),
            graph=_filled(table.graph, ones - np.eye(n_users) if alike else 0 * ones),
        )
        regret = []
        for privacy in (hidden, None):
            policy = kind(
                **environment.sizes, privacy=privacy, regularisation=0.3, reward_range=(-1.0, 1.0)
            )
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*pairs of users are joined")
                done = play(
                    policy, environment, horizon=horizon, table=table, seed=4, repetition=repetition
                )
            regret.append(float(done.trace.measures[-1, 0]))
        found.append(regret[0] - regret[1])
    return found


def _filled(rows: Any, matrix: NDArray[np.float64]) -> Any:
    """Return the rows of a table with the entries of `matrix`."""
    from scipy.sparse import csr_array

    given = csr_array(matrix)
    return rows._replace(
        indptr=given.indptr.astype(np.int64),
        indices=given.indices.astype(np.int64),
        data=given.data,
    )


def _horizon(quick: bool) -> int:
    return 1_500 if quick else 10_000


def _epsilons(quick: bool) -> list[float]:
    return [6.0, 24.0] if quick else [3.0, 6.0, 12.0, 24.0]


def _sizes(quick: bool) -> list[int]:
    return [2, 8] if quick else [2, 4, 8, 16]


def _key(name: str, N: int, alike: bool, epsilon: float) -> str:
    return f"{name}/{N}/{int(alike)}/{epsilon:g}"


def _jobs(quick: bool) -> list[Job]:
    cells = {
        (name, N, alike, epsilon): None
        for name in _THEOREM
        for alike in _ALIKE
        for N, epsilon in [
            *((_USERS, epsilon) for epsilon in _epsilons(quick)),
            *((N, _EPSILON) for N in _sizes(quick)),
        ]
    }
    return [
        Job(
            _key(name, N, alike, epsilon),
            added_regret,
            {
                "name": name,
                "n_users": N,
                "alike": alike,
                "epsilon": epsilon,
                "horizon": _horizon(quick),
                "repetitions": 2 if quick else 6,
            },
        )
        for name, N, alike, epsilon in cells
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    epsilons, sizes = _epsilons(quick), _sizes(quick)

    def found(name: str, N: int, alike: bool, epsilon: float) -> Summary:
        return summarise(outcomes[_key(name, N, alike, epsilon)])

    slope = {
        (name, alike): growth_exponent(
            epsilons, [max(found(name, _USERS, alike, e).mean, 0.1) for e in epsilons]
        )
        for name in _THEOREM
        for alike in _ALIKE
    }
    ratio = {
        (name, N): found(name, N, True, _EPSILON).mean / found(name, N, False, _EPSILON).mean
        for name in _THEOREM
        for N in sizes
    }
    local = {
        (kind, alike): found(f"LDP-{kind}", _USERS, alike, _EPSILON).mean
        / found(f"DP-{kind}", _USERS, alike, _EPSILON).mean
        for kind in ("CoLin", "GOBLin")
        for alike in _ALIKE
    }
    steep = {key: value >= -1 - _SLOPE for key, value in slope.items()}
    largest = sizes[-1]
    saved = {name: ratio[name, largest] <= _predicted(name, largest) / _SAVED for name in _THEOREM}
    less = [name for name in _THEOREM if not saved[name]]
    dear = {key: value <= _USERS**0.5 / _SAVED for key, value in local.items()}
    rows = [
        Row(
            f"Theorem {_THEOREM[name]}, {name}, {_ALIKE[alike]}: exponent of epsilon",
            "-1",
            f"{value:.2f}",
            agrees=steep[name, alike],
        )
        for (name, alike), value in slope.items()
    ]
    rows += [
        Row(
            f"{name}, N = {N}: added regret, everybody over nobody joined",
            f"{_predicted(name, N):.2f}",
            f"{value:.2f}",
            agrees=saved[name] if largest == N else None,
        )
        for (name, N), value in ratio.items()
    ]
    rows += [
        Row(
            f"{kind}, N = {_USERS}, {_ALIKE[alike]}: local over central",
            f"{_USERS**0.5:.1f}",
            f"{value:.1f}",
            agrees=dear[kind, alike],
        )
        for (kind, alike), value in local.items()
    ]
    checks = [*steep.values(), *saved.values(), *dear.values()]
    return Findings(
        verdict=verdict_of(checks),
        because=(
            f"Added regret goes like epsilon to the {min(slope.values()):.2f} to "
            f"{max(slope.values()):.2f}. With {largest} users, everybody joined against nobody, "
            + ", ".join(f"{name} adds {ratio[name, largest]:.2f}" for name in _THEOREM)
            + f" times as much, where the bounds say {_predicted('DP-CoLin', largest):.2f} (CoLin) and "
            f"{_predicted('DP-GOBLin', largest):.2f} (GOBLin)"
            + (f": {' and '.join(less)} save less than they should. " if less else ". ")
            + "Local noise adds "
            f"{min(local.values()):.1f} to {max(local.values()):.1f} times what central noise adds, "
            f"where they say {_USERS**0.5:.1f}. All of it is the published noise, which does not "
            "deliver its epsilon; the orders are those of noise, whatever it protects."
        ),
        agreement=(
            f"An exponent agrees if it is no steeper than {-1 - _SLOPE:g}: a bound is on regret from above; "
            f"a ratio if it is below that of the bounds over {_SAVED:g}."
        ),
        rows=rows,
        figures=[
            Figure(
                f"Regret that published noise adds, {_USERS} users who are the same",
                "epsilon",
                f"added regret after {_horizon(quick):,} rounds",
                [
                    Series.of(label, epsilons, [found(name, _USERS, alike, e) for e in epsilons])
                    for label, name, alike in _CURVES
                ],
                x_log=True,
                y_log=True,
                kind="points",
                caption="Five features, lambda = 0.3, width 0.3, rewards not clipped. If nobody is joined, "
                "CoLin and GOBLin are the same.",
            )
        ],
    )


def _predicted(name: str, N: int) -> float:
    """Return the ratio of sensitivities: 1/sqrt N; for GOBLin sqrt(2/(N + 1)), as it should be."""
    return float(N**-0.5 if name.endswith("CoLin") else (2 / (N + 1)) ** 0.5)


THEOREMS = Reproduction(
    name="wang2020-theorems",
    paper="wang2020",
    title="Theorems 2, 4, 6 and 8: the orders of added regret",
    question="How does the regret that noise adds depend on epsilon, on collaboration and on trust?",
    claim=(
        "Added regret is of order 1/epsilon; uniform collaboration lowers it by 1/sqrt N against none; local "
        "privacy raises it by sqrt N."
    ),
    jobs=_jobs,
    judge=_judge,
)
