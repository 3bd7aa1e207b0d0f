"""Secure samplers against opendp's, in one run: nanoseconds of CPU a draw, and the ratio.

Run: python benchmarks/secure_samplers.py
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import opendp.prelude as dp

from tacit.privacy import RandomizedResponse

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from privacy.integers import gaussian_integers, laplace_integers

TARGET = 20


def nanoseconds(draw: Callable[[], object], draws: int, repeats: int = 3) -> float:
    """Return the best CPU time a draw of a few repeats, after one to warm up."""
    draw()
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        draw()
        best = min(best, time.process_time() - start)
    return best / draws * 1e9


def main() -> None:
    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T=int))
    laplace = dp.m.make_laplace(vector, dp.l1_distance(T=int), scale=100.0)
    gaussian = dp.m.make_gaussian(vector, dp.l2_distance(T=float), scale=100.0)
    response = dp.m.make_randomized_response_bool(prob=1 / (1 + math.exp(-1.0)))
    few, many = 5_000, 200_000
    zeros = [0] * few
    rows = [
        (
            "discrete Laplace, scale 100",
            lambda: laplace(zeros),
            few,
            lambda: laplace_integers(100, many),
        ),
        (
            "discrete Gaussian, sigma 100",
            lambda: gaussian(zeros),
            few,
            lambda: gaussian_integers(100, many),
        ),
        (
            "randomized response, epsilon 1",
            lambda: [response(True) for _ in range(500)],
            500,
            lambda: RandomizedResponse(epsilon=1.0).run(1, many),
        ),
    ]
    print(f"{'sampler':<32}{'opendp ns':>12}{'tacit ns':>12}{'ratio':>10}")
    for name, theirs, n, ours in rows:
        slow, fast = nanoseconds(theirs, n), nanoseconds(ours, many)
        verdict = "" if slow >= TARGET * fast else f"  below {TARGET}"
        print(f"{name:<32}{slow:>12.0f}{fast:>12.0f}{slow / fast:>10.0f}{verdict}")


if __name__ == "__main__":
    main()
