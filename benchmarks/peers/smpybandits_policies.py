"""Inside SMPyBandits' environment: one of its policies on a Bernoulli environment, one JSON line.

Arguments: policy, arms, rounds, repetitions, "released" or "numba". SMPyBandits looks for numba in a
place that numba left in 2020, so the release runs as plain Python; "numba" puts it back in that place.
"""

import importlib
import json
import random
import sys
import time
from importlib.metadata import version

import numpy as np

name = sys.argv[1]
K, T, repetitions = map(int, sys.argv[2:5])
if sys.argv[5] == "numba":
    sys.modules["numba.decorators"] = importlib.import_module("numba")
Policies = importlib.import_module("SMPyBandits.Policies")
means = [0.9 - 0.8 * a / (K - 1) for a in range(K)]


def play(seed, rounds):
    np.random.seed(seed)
    generator = random.Random(seed)
    draws = [generator.random() for _ in range(rounds)]
    policy = getattr(Policies, name)(K)
    policy.startGame()
    regret = 0.0
    begin = time.process_time()
    for t in range(rounds):
        arm = policy.choice()
        policy.getReward(arm, 1.0 if draws[t] < means[arm] else 0.0)
        regret += means[0] - means[arm]
    return rounds / (time.process_time() - begin), regret


play(0, 100)  # compiles, where numba is used
runs = [play(seed, T) for seed in range(repetitions)]
print(
    json.dumps(
        {
            "version": version("SMPyBandits"),
            "rate": max(rate for rate, _ in runs),
            "regrets": [regret for _, regret in runs],
        }
    )
)
