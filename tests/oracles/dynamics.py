"""The learning dynamics of paper 001 as its Section 4 tells them, agent by agent and token by token.

Plain Python lists and a NumPy generator; nothing is shared with the package but the meaning of its
parameters. It is slow and is meant for a few dozen agents.
"""

import math

import numpy as np


def one_hot(option, n_options):
    return [1 if j == option else 0 for j in range(n_options)]


def perturbed(vector, keep_one, keep_zero, rng):
    sent = []
    for bit in vector:
        keep = keep_one if bit else keep_zero
        sent.append(bit if rng.random() < keep else 1 - bit)
    return sent


def hop(agent, neighbours, rng):
    """Eq. (2), from the probabilities themselves."""
    options = list(neighbours[agent])
    chances = [min(1 / len(neighbours[agent]), 1 / len(neighbours[b])) for b in options]
    u = rng.random()
    for other, chance in zip(options, chances, strict=True):
        u -= chance
        if u < 0:
            return other
    return agent


def popularity(heard, keep_one, keep_zero, n_options):
    """Eqs. (7) and (8); None if nothing was heard or every estimate is zero."""
    if not heard:
        return None
    raw = []
    for j in range(n_options):
        share = sum(vector[j] for vector in heard) / len(heard)
        raw.append(max((share - (1 - keep_zero)) / (keep_one + keep_zero - 1), 0))
    return [x / sum(raw) for x in raw] if sum(raw) > 0 else None


def simulate(
    neighbours,
    signals,
    *,
    keep_one,
    keep_zero,
    beta,
    mu,
    tokens,
    length,
    rng,
    silent=False,
    memoised=False,
    wake=1.0,
    loss=0.0,
    delay=0,
):
    """Return the adoptions of all agents after every round, as a list of lists (None: nothing)."""
    n, m = len(neighbours), len(signals[0])
    adoption = [a % m for a in range(n)]
    memory = [None] * n
    waiting = []
    history = []
    for good in signals:
        awake = [rng.random() < wake for _ in range(n)]
        for a in range(n):
            if not awake[a] or (silent and adoption[a] is None):
                continue
            if memoised and memory[a] is not None and memory[a][0] == adoption[a]:
                vector = memory[a][1]
            else:
                vector = perturbed(one_hot(adoption[a], m), keep_one, keep_zero, rng)
                memory[a] = (adoption[a], vector)
            for _ in range(tokens):
                waiting.append((int(rng.integers(delay + 1)), a, vector))
        heard = [[] for _ in range(n)]
        later = []
        for rounds, here, vector in waiting:
            if rounds > 0:
                later.append((rounds - 1, here, vector))
            elif rng.random() >= loss:
                end = here
                for _ in range(length):
                    end = hop(end, neighbours, rng)
                heard[end].append(vector)
        waiting = later
        for a in range(n):
            if not awake[a]:
                continue
            chances = popularity(heard[a], keep_one, keep_zero, m)
            if chances is None or rng.random() < mu:
                option = int(rng.integers(m))
            else:
                option = int(rng.choice(m, p=chances))
            takes = rng.random() < (beta if good[option] else 1 - beta)
            adoption[a] = option if takes else None
        history.append(list(adoption))
    return history


def symmetric(epsilon):
    """Return the probabilities that a one stays one and a zero stays zero (eq. 6)."""
    keep = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)
    return keep, keep


def counts(adoption, n_options):
    return np.array([sum(x == j for x in adoption) for j in range(n_options)])
