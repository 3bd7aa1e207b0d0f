"""A recommender on one's own data: who came, what could be shown, and what they liked.

Here the data are made up; replace `visits` by your own arrays. Each of N users belongs to a circle of
friends with a common taste. CoLin shares what it learns along the friendships, LinUCB learns for each user
alone. Privately, each reward is randomised before it leaves its owner, so no server need be trusted.
"""

import numpy as np

from tacit.contextual import CoLin, LinUCB, recorded_table
from tacit.contextual.trace import MEASURES, new_trace
from tacit.core.tapes import seeded_tape

N, D, SHOWN, ROUNDS = 20, 5, 8, 4_000


def visits(seed: int):
    """Return who came (T,), features of what could be shown (T, n, d), and what each would earn (T, n)."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(4, D))
    taste /= np.linalg.norm(taste, axis=1, keepdims=True)
    users = rng.integers(0, N, ROUNDS)
    items = rng.normal(size=(ROUNDS, SHOWN, D))
    items /= np.linalg.norm(items, axis=2, keepdims=True)
    liking = np.einsum("tnd,td->tn", items, taste[users % 4])
    return users, items, (rng.random((ROUNDS, SHOWN)) < 0.5 + 0.5 * liking).astype(float)


if __name__ == "__main__":
    users, items, liked = visits(seed=1)
    friends = (np.arange(N)[:, None] % 4 == np.arange(N) % 4).astype(float)
    table = recorded_table(users, items, liked, weights=friends / friends.sum(axis=0))
    print(f"shown at random: {liked.mean():.3f} liked a visit")
    for policy in (
        LinUCB(n_users=N, dimension=D),
        CoLin(n_users=N, dimension=D),
        CoLin(n_users=N, dimension=D, epsilon=4.0),
        CoLin(n_users=N, dimension=D, epsilon=1.0),
    ):
        trace = new_trace(ROUNDS, np.array([ROUNDS]))
        policy.play(policy.start(table), table, seeded_tape(0), trace, 0, ROUNDS)
        reward = trace.measures[-1, MEASURES.index("reward")] / ROUNDS
        name, epsilon = type(policy).__name__, policy.guarantee(ROUNDS).epsilon
        print(f"{name:<7} epsilon {epsilon:g}: {reward:.3f} liked a visit")
