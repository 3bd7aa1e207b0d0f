"""P-IMED-CF beside SW-KLUCB-CF (told how many segments) and GLR-klUCB-CF: regret where things change, speed.

python benchmarks/p_imed_cf.py [--runs 20]
python benchmarks/p_imed_cf.py --glr-log     # GLR-klUCB-CF alone, with f = ln t
"""

from __future__ import annotations

import argparse
import time

import tacit
from tacit.arms import GLRKLUCBCF, PIMEDCF, SWKLUCBCF, Riser, Rotating
from tacit_studies.estimates import Summary, summarise

T, SEED = 100_000, 20_261
ENVIRONMENTS = {
    "rotating, 2 arms": Rotating(n_arms=2),
    "rotating, 10 arms": Rotating(n_arms=10),
    "riser, 2 arms": Riser(n_arms=2),
    "riser, 5 arms": Riser(n_arms=5),
    "no change, 10 arms": Rotating(n_arms=10, segments=1),
}


def main(runs: int) -> bool:
    """Print the table; return whether P-IMED-CF is below the window everywhere, by half if it must."""
    good, seconds, rounds = True, 0.0, 0
    print("| environment | sw-klucb-cf, log window | glr-klucb-cf | p-imed-cf |")
    print("| --- | ---: | ---: | ---: |")
    for label, where in ENVIRONMENTS.items():
        K, L = where.n_arms, where.n_segments(T)
        cells: list[list[Summary]] = [[], [], []]
        for epsilon in (0.5, 1.0, 2.0, None):
            policies = (
                SWKLUCBCF(n_arms=K, horizon=T, n_segments=L, epsilon=epsilon),
                GLRKLUCBCF(n_arms=K, horizon=T, epsilon=epsilon),
                PIMEDCF(n_arms=K, epsilon=epsilon),
            )
            for policy, column in zip(policies, cells, strict=True):
                begun = time.process_time()
                result = tacit.simulate(
                    policy, where, horizon=T, repetitions=runs, seed=SEED, checkpoints=1, threads=1
                )
                column.append(summarise(result.final("regret")))
                if policy.name == "p-imed-cf" and epsilon != 0.5:  # the first also compiles
                    seconds, rounds = seconds + time.process_time() - begun, rounds + runs * T
            factor = 1.0 if label.startswith("riser") else 2.0
            good &= factor * cells[2][-1].mean < cells[0][-1].mean
        shown = (" / ".join(each.text() for each in column) for column in cells)
        print(f"| {label} | {' | '.join(shown)} |", flush=True)
    print(f"p-imed-cf: {rounds / seconds / 1e6:.1f} million rounds/s of CPU time")
    return good


def glr_log(runs: int) -> None:
    """Print the column of GLR-klUCB-CF where its exploration function is ln t."""
    for label, where in ENVIRONMENTS.items():
        column = []
        for epsilon in (0.5, 1.0, 2.0, None):
            policy = GLRKLUCBCF(n_arms=where.n_arms, horizon=T, epsilon=epsilon, exploration="log")
            result = tacit.simulate(
                policy, where, horizon=T, repetitions=runs, seed=SEED, checkpoints=1, threads=1
            )
            column.append(summarise(result.final("regret")).text())
        print(f"| {label} | {' / '.join(column)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--glr-log", action="store_true")
    arguments = parser.parse_args()
    if arguments.glr_log:
        glr_log(arguments.runs)
    elif not main(arguments.runs):
        raise SystemExit("a figure is missed")
