"""Inside obp's environment: its LinUCB on random contexts, one JSON line.

Arguments: dimension, arms, rounds.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from obp.policy import LinUCB

d, K, T = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
contexts = rng.standard_normal((T, 1, d))
theta = rng.standard_normal((d, K)) / d
policy = LinUCB(dim=d, n_actions=K, epsilon=0.3, random_state=0)
begin = time.process_time()
for t in range(T):
    arm = int(policy.select_action(contexts[t])[0])
    policy.update_params(arm, float((contexts[t] @ theta)[0, arm]), contexts[t])
print(json.dumps({"version": version("obp"), "rate": T / (time.process_time() - begin)}))
