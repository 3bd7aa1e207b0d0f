"""The users setting beside the naive update in NumPy, beside obp and river, and LastFM as a whole.

    python benchmarks/users.py [naive|peers|lastfm|contexts ...]

Rates are rounds for each CPU second of one thread, both sides in this one run. The naive side keeps
the inverse of the (dN) x (dN) matrix up to date by rank-one updates, as Algorithm 1 would; both sides
must pick the same arms. The third part needs the data set (variable TACIT_DATA) and prints wall time.
"""

from __future__ import annotations

import math
import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import peers
from tacit.contextual import (
    CoLin,
    Fitted,
    GOBLin,
    LastFM,
    LinUCB,
    PerReward,
    PrivateContexts,
    recorded_table,
)
from tacit.contextual.table import matrix_of
from tacit.contextual.trace import new_trace
from tacit.core.tapes import seeded_tape

LAMBDA, ALPHA = 0.3, 0.3


def environment(n_users, d, n_shown, horizon, seed=0):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((horizon, n_shown, d))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    contexts *= rng.uniform(0.5, 1.0, (horizon, n_shown, 1))
    weights = rng.random((n_users, n_users)) * (rng.random((n_users, n_users)) < 0.1)
    weights += np.eye(n_users) + 0.1 * np.eye(n_users, k=1) + 0.1 * np.eye(n_users, k=-1)
    weights /= weights.sum(axis=0)
    preferences = rng.standard_normal((n_users, d)) / np.sqrt(d)
    users = np.arange(horizon) % n_users
    means = np.einsum("tad,td->ta", contexts, preferences[users])
    rewards = means + 0.1 * rng.standard_normal(means.shape)
    return recorded_table(users, contexts, rewards, weights=weights)


def naive(B, table, rounds):
    """Play `rounds` rounds with the inverse in full; return picks and rate."""
    T, n = table.rewards.shape
    d = table.features.shape[1]
    contexts = table.features.reshape(T, n, d)
    size = d * len(B)
    inverse, b = np.eye(size) / LAMBDA, np.zeros(size)
    picks = np.empty(rounds, int)
    begin = time.process_time()
    for t in range(rounds):
        X = np.kron(B[:, table.users[t]], contexts[t])
        theta = inverse @ b
        score = X @ theta + ALPHA * np.sqrt(np.einsum("ai,ai->a", X @ inverse, X))
        a = picks[t] = np.argmax(score)
        x = X[a]
        g = inverse @ x
        inverse -= np.outer(g, g / (1.0 + x @ g))
        b += x * table.rewards[t, a]
    return picks, rounds / (time.process_time() - begin)


def ours(policy, table, rounds):
    """Play `rounds` rounds; return picks and rate."""
    for timed in (False, True):
        state, tape = policy.start(table), seeded_tape(0)
        trace = new_trace(len(table.users), np.array([rounds]), record=True)
        last = rounds if timed else 2
        begin = time.process_time()
        policy.play(state, table, tape, trace, 0, last)
        spent = time.process_time() - begin
    return trace.decisions[:rounds], rounds / spent


def against_naive():
    print("against the naive update in NumPy, d = 25, N = 100, rounds per CPU second")
    for n_shown in (10, 25):
        table = environment(100, 25, n_shown, 4000)
        for kind in (CoLin, GOBLin):
            policy = kind(n_users=100, dimension=25, regularisation=LAMBDA, exploration=ALPHA)
            joined = matrix_of(getattr(table, policy.joined_by))
            B = np.zeros((100, 100))
            for block in policy.blocks(joined):
                B[np.ix_(block.rows, block.members)] = block.basis
            their_picks, theirs = naive(B, table, 150)
            picks, rate = ours(policy, table, 4000)
            same = np.array_equal(picks[:150], their_picks)
            print(
                f"  {policy.name:8} {n_shown:3} arms  tacit {rate:9,.0f}  naive {theirs:7.1f}"
                f"  ratio {rate / theirs:6.1f} (>= 30)  same picks: {same}",
                flush=True,
            )


def against_peers():
    print("LinUCB, d = 25, K = 25, rounds per CPU second")
    table = environment(1, 25, 25, 20_000)
    policy = LinUCB(n_users=1, dimension=25, regularisation=LAMBDA, exploration=ALPHA)
    _, rate = ours(policy, table, 20_000)
    for peer, script, rounds, required in (
        ("obp", "obp_linucb.py", 1000, 40),
        ("river", "river_linucb.py", 100, 200),
    ):
        found = peers.measure(peer, script, "25", "25", str(rounds))
        print(
            f"  tacit {rate:9,.0f}  {peer} {found['version']} {found['rate']:9.1f}"
            f"  ratio {rate / found['rate']:8.1f} (>= {required})",
            flush=True,
        )


def lastfm():
    print("LastFM, 100 groups, 10,000 rounds, two threads, reward over that of a random choice")
    environment, horizon, seed = LastFM(), 10_000, 31
    begin, cpu = time.perf_counter(), time.process_time()

    def one(job):
        policy, repetition = job
        table = environment.table(seed, repetition, horizon)
        trace = environment.trace(horizon, [horizon])
        policy.play(policy.start(table), table, seeded_tape(seed, repetition), trace, 0, horizon)
        return trace.measures[-1, 1] / trace.measures[-1, 2]

    environment.prepared()
    binary = {**environment.sizes, "reward": "binary"}
    no_level = PerReward(epsilon=2.0, mechanism="bit")
    played = [
        (f"epsilon {epsilon or 'none':>4}", kind(**binary, epsilon=epsilon), 12)
        for kind in (LinUCB, GOBLin)
        for epsilon in (None, 2.0)
    ]
    played += [
        ("epsilon none", CoLin(**binary), 12),
        ("epsilon  2.0", CoLin(**binary, epsilon=2.0), 24),
        ("epsilon  2.0, no level", CoLin(**binary, privacy=no_level), 24),
    ]
    for words, policy, runs in played:
        with ThreadPoolExecutor(2) as pool:
            ratios = list(pool.map(one, [(policy, r) for r in range(runs)]))
        error = np.std(ratios, ddof=1) / math.sqrt(runs)
        print(
            f"  {policy.name:8} {words:22}  {np.mean(ratios):.2f} +- {error:.2f}  ({runs} runs)",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    spent = time.perf_counter() - begin
    cpu = time.process_time() - cpu
    print(f"  {spent:.0f} s (< 300), CPU {cpu:.0f} s, peak memory {peak:.2f} GB (< 4)")


def contexts():
    environment, horizon = Fitted(n_users=4, dimension=5), 40_000
    rounds = [4_000, 12_000, 40_000]
    print(
        "private contexts, four users, five features, regret over that of a random choice, 5 runs"
    )
    for epsilon, trust in [
        *((epsilon, trust) for trust in ("central", "local") for epsilon in (1.0, 2.0, 5.0, 10.0)),
        (None, "central"),
    ]:
        policy = PrivateContexts(
            **environment.sizes, epsilon=epsilon, trust=trust, reward_range=(-1.0, 1.0)
        )
        shares = []
        for repetition in range(5):
            table = environment.table(79, repetition, horizon)
            trace = environment.trace(horizon, np.array(rounds))
            policy.play(policy.start(table), table, seeded_tape(79, repetition), trace, 0, horizon)
            shares.append(trace.measures[:, 0] / trace.measures[:, 3])
        told_by = "  ".join(
            f"{n:,}: {share:.2f}" for n, share in zip(rounds, np.mean(shares, 0), strict=True)
        )
        print(f"  {trust:8} epsilon {epsilon or 'none':>4}  {told_by}", flush=True)


PARTS = {
    "naive": against_naive,
    "peers": against_peers,
    "lastfm": lastfm,
    "contexts": contexts,
}

if __name__ == "__main__":
    if not set(sys.argv[1:]) <= set(PARTS):
        sys.exit(__doc__)
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
