"""A population without a server: how many people it takes to learn in private.

Agents look at what others adopted, through noise that hides every single adoption, and try what seems
popular and good. The engine for crowds costs the same for a thousand agents as for a hundred million.
"""

import numpy as np

import tacit
from tacit.dynamics import LearningDynamics, SocialOptions

QUALITIES = tuple(np.linspace(0.9, 0.1, 10).round(3).tolist())

if __name__ == "__main__":
    print("agents        epsilon 0.5   epsilon 2   no privacy   (0.40 is learning nothing)")
    for n_agents in (10**3, 10**5, 10**7):
        cells = []
        for epsilon in (0.5, 2.0, float("inf")):
            policy = LearningDynamics(
                n_options=10, n_agents=n_agents, epsilon=epsilon, engine="crowd"
            )
            place = SocialOptions(qualities=QUALITIES, n_agents=n_agents)
            result = tacit.simulate(policy, place, horizon=1_000, repetitions=3)
            cells.append(result.final("regret").mean())
        print(f"{n_agents:>11,}   {cells[0]:11.3f} {cells[1]:11.3f} {cells[2]:12.3f}")
