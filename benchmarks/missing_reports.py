"""What reports that never come do to learning: klUCB-CF at epsilon 1 on the headlines of the demonstration.

Some visitors leave for good before their report goes out: a share of everybody, which costs data, or a
share of those who clicked (a click that leads to another site), which is bias: what is worth a click looks
worth less.

Run: python benchmarks/missing_reports.py [--visitors N] [--runs N]
"""

from __future__ import annotations

import argparse
import random
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import tacit
from tacit.arms import KLUCBCF
from tacit.cli.demo.crowd import HEADLINES

CASES = {
    "every report comes": (0.0, 0.0),
    "20% of all never come": (0.2, 0.2),
    "50% of all never come": (0.5, 0.5),
    "50% of those who clicked": (0.0, 0.5),
    "90% of those who clicked": (0.0, 0.9),
}


def learn(case: str, visitors: int, seed: int) -> tuple[float, float]:
    """Return the share shown the best headline, and of clicks among those who report on it."""
    rng = random.Random(seed)
    best = max(HEADLINES, key=HEADLINES.__getitem__)
    policy = KLUCBCF(n_arms=len(HEADLINES), epsilon=1.0)
    learner = tacit.Learner(policy, options=list(HEADLINES), seed=seed)
    shown = came = clicks = 0
    for _ in range(visitors):
        decision = learner.decide()
        option = str(decision.option)
        shown += option == best
        clicked = rng.random() < HEADLINES[option]
        if rng.random() >= CASES[case][clicked]:
            came += option == best
            clicks += clicked and option == best
            learner.learn(decision.device.report(float(clicked)))
    return shown / visitors, clicks / max(came, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=8)
    given = parser.parse_args()
    print(f"{'':<28}{'shown the best':>16}{'standard error':>16}{'clicks among its reports':>26}")
    for case in CASES:
        with ProcessPoolExecutor(2) as pool:
            jobs = [pool.submit(learn, case, given.visitors, seed) for seed in range(given.runs)]
            found = np.array([job.result() for job in jobs])
        error = found[:, 0].std(ddof=1) / np.sqrt(given.runs)
        print(f"{case:<28}{found[:, 0].mean():>16.1%}{error:>16.1%}{found[:, 1].mean():>26.2f}")


if __name__ == "__main__":
    main()
