"""Inside river's environment: its LinUCB on random contexts, one JSON line.

Arguments: dimension, arms, rounds.
"""

import json
import random
import sys
import time
from importlib.metadata import version

from river import bandit

d, K, T = map(int, sys.argv[1:])
generator = random.Random(0)
contexts = [{i: generator.gauss(0, 1) for i in range(d)} for _ in range(T)]
theta = [[generator.gauss(0, 1) / d for _ in range(d)] for _ in range(K)]
arms = list(range(K))
policy = bandit.LinUCBDisjoint(alpha=0.3, seed=0)
begin = time.process_time()
for x in contexts:
    arm = policy.pull(arms, context=x)
    reward = sum(theta[arm][i] * x[i] for i in range(d))
    policy.update(arm, x, reward)
print(json.dumps({"version": version("river"), "rate": T / (time.process_time() - begin)}))
