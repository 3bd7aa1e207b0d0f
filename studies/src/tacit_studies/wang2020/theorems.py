"""Paper 004, Theorems 2, 4, 6 and 8: how regret grows with 1/epsilon, and what collaboration saves of it.

Their discussion compares two extremes: nobody is joined to anybody, and everybody to everybody alike.
Here all users have the same preferences, so that either is true, and what differs is the noise alone.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import growth_exponent, plot_points

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


def measure_added_regret(
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
            weights=_fill(table.weights, ones / n_users if alike else np.eye(n_users)),
            graph=_fill(table.graph, ones - np.eye(n_users) if alike else 0 * ones),
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


def _fill(rows: Any, matrix: NDArray[np.float64]) -> Any:
    """Return the rows of a table with the entries of `matrix`."""
    from scipy.sparse import csr_array

    given = csr_array(matrix)
    return rows._replace(
        indptr=given.indptr.astype(np.int64),
        indices=given.indices.astype(np.int64),
        data=given.data,
    )


_HORIZON = Sized(10_000, 1_500)
_EPSILONS = Sized([3.0, 6.0, 12.0, 24.0], [6.0, 24.0])
_SIZES = Sized([2, 4, 8, 16], [2, 8])


def _list_cells(quick: bool) -> list[tuple[int, float]]:
    """Return users and epsilon of every game, either of which varies."""
    cells = [(_USERS, e) for e in _EPSILONS.at(quick)] + [(N, _EPSILON) for N in _SIZES.at(quick)]
    return list(dict.fromkeys(cells))


def _judge(outcomes: Outcomes) -> Findings:
    epsilons, sizes = _EPSILONS.at(outcomes.quick), _SIZES.at(outcomes.quick)

    def added(name: str, N: int, alike: bool, epsilon: float) -> float:
        return outcomes.mean(f"{name}/{N}/{int(alike)}/{epsilon:g}")

    slope = {
        (name, alike): growth_exponent(
            epsilons, [max(added(name, _USERS, alike, e), 0.1) for e in epsilons]
        )
        for name in _THEOREM
        for alike in _ALIKE
    }
    ratio = {
        (name, N): added(name, N, True, _EPSILON) / added(name, N, False, _EPSILON)
        for name in _THEOREM
        for N in sizes
    }
    local = {
        (kind, alike): added(f"LDP-{kind}", _USERS, alike, _EPSILON)
        / added(f"DP-{kind}", _USERS, alike, _EPSILON)
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
    return outcomes.conclude(
        checks=checks,
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
            plot_points(
                f"Regret that published noise adds, {_USERS} users who are the same",
                "epsilon",
                f"added regret after {_HORIZON.at(outcomes.quick):,} rounds",
                [
                    outcomes.line(label, epsilons, f"{name}/{_USERS}/{int(alike)}/{{:g}}")
                    for label, name, alike in _CURVES
                ],
                caption="Five features, lambda = 0.3, width 0.3, rewards not clipped. If nobody is joined, "
                "CoLin and GOBLin are the same.",
            )
        ],
    )


def _predicted(name: str, N: int) -> float:
    """Return the ratio of sensitivities: 1/sqrt N; for GOBLin sqrt(2/(N + 1)), as it should be."""
    return float(N**-0.5 if name.endswith("CoLin") else (2 / (N + 1)) ** 0.5)


THEOREMS = study(
    Sweep(
        "{name}/{cell[0]}/{alike:d}/{cell[1]:g}",
        {
            "name": list(_THEOREM),
            "alike": list(_ALIKE),
            "cell": Sized(_list_cells(False), _list_cells(True)),
        },
        measure_added_regret,
        n_users=lambda cell: cell[0],
        epsilon=lambda cell: cell[1],
        horizon=_HORIZON,
        repetitions=Sized(6, 2),
    ),
    judge=_judge,
    name="wang2020-theorems",
)
