"""Inside river's environment: its UCB on a Bernoulli environment, one JSON line.

Arguments: arms, rounds, repetitions.
"""

import json
import random
import sys
import time
from importlib.metadata import version

from river import bandit

K, T, repetitions = map(int, sys.argv[1:])
means = [0.9 - 0.8 * a / (K - 1) for a in range(K)]
arms = range(K)
rates, regrets = [], []
for seed in range(repetitions):
    generator = random.Random(seed)
    draws = [generator.random() for _ in range(T)]
    policy = bandit.UCB(delta=1, seed=seed)
    regret = 0.0
    begin = time.process_time()
    for t in range(T):
        arm = policy.pull(arms)
        policy.update(arm, 1.0 if draws[t] < means[arm] else 0.0)
        regret += means[0] - means[arm]
    rates.append(T / (time.process_time() - begin))
    regrets.append(regret)
print(json.dumps({"version": version("river"), "rate": max(rates), "regrets": regrets}))
