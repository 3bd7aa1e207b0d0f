"""The learning dynamics of paper 001 as its Section 4 tells them, agent by agent and token by token.

Plain Python lists and a NumPy generator; nothing is shared with the package but the meaning of its
parameters. It is slow and is meant for a few dozen agents.
"""

import itertools
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


def subset(option, n_options, epsilon, rng):
    """Return the bits of a random subset of the options and none, by listing all subsets."""
    symbols = n_options + 1
    size = max(1, round(symbols / (math.exp(epsilon) + 1)))
    true = n_options if option is None else option
    subsets = list(itertools.combinations(range(symbols), size))
    weights = np.array([math.exp(epsilon) if true in each else 1.0 for each in subsets])
    drawn = subsets[rng.choice(len(subsets), p=weights / weights.sum())]
    return [1 if j in drawn else 0 for j in range(n_options)]


def raw_popularity(heard, chances, n_options):
    """Eq. (7) before clipping, from pairs of a sender and its vector.

    `chances[sender]` are those of a set bit, for the option it adopts and for another. A message counts by
    the inverse of its variance where half of the agents adopt, all options alike.
    """
    total, raw = 0.0, [0.0] * n_options
    for sender, vector in heard:
        one, other = chances[sender]
        share = other + (one - other) / (2 * n_options)
        weight = (one - other) ** 2 / (share * (1 - share))
        total += weight
        for j, bit in enumerate(vector):
            raw[j] += weight * (bit - other) / (one - other)
    return [x / total for x in raw]


def popularity(raw):
    """Eq. (8) of clipped estimates; None if there are none or every one is zero."""
    if raw is None:
        return None
    clipped = [max(x, 0) for x in raw]
    return [x / sum(clipped) for x in clipped] if sum(clipped) > 0 else None


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
    rho=None,
    subsets=None,
    start=None,
    levels=None,
):
    """Return the adoptions of all agents after every round, as a list of lists (None: nothing)."""
    n, m = len(neighbours), len(signals[0])
    adoption = [a % m for a in range(n)] if start is None else list(start)
    memory = [None] * n
    waiting = []
    history = []
    smoothed = [[1 / m] * m for _ in range(n)]
    one, other = keep_one, 1 - keep_zero
    if subsets is not None:
        size = max(1, round((m + 1) / (math.exp(subsets) + 1)))
        one = size * math.exp(subsets) / (size * math.exp(subsets) + m + 1 - size)
        other = (size - one) / m
    keeps = [(keep_one, keep_zero) if levels is None else levels[a % len(levels)] for a in range(n)]
    chances = [(a, 1 - b) for a, b in keeps] if subsets is None else [(one, other)] * n
    for good in signals:
        awake = [rng.random() < wake for _ in range(n)]
        for a in range(n):
            if not awake[a] or (silent and adoption[a] is None):
                continue
            if memoised and memory[a] is not None and memory[a][0] == adoption[a]:
                vector = memory[a][1]
            elif subsets is not None:
                vector = subset(adoption[a], m, subsets, rng)
            else:
                vector = perturbed(one_hot(adoption[a], m), *keeps[a], rng)
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
                heard[end].append((here, vector))
        waiting = later
        for a in range(n):
            if not awake[a]:
                continue
            raw = raw_popularity(heard[a], chances, m) if heard[a] else None
            if rho is not None:
                if raw is not None:
                    smoothed[a] = [
                        (1 - rho) * old + rho * new
                        for old, new in zip(smoothed[a], raw, strict=True)
                    ]
                raw = smoothed[a]
            followed = popularity(raw)
            if followed is None or rng.random() < mu:
                option = int(rng.integers(m))
            else:
                option = int(rng.choice(m, p=followed))
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


def regret(start, history, qualities_of):
    """Eq. (1), against the best option of each round; `qualities_of(t)` gives those of round t."""
    lost = []
    for t, adoption in enumerate([start, *history[:-1]]):
        eta = qualities_of(t)
        adopted = [x for x in adoption if x is not None]
        earned = sum(eta[x] for x in adopted) / len(adopted) if adopted else sum(eta) / len(eta)
        lost.append(max(eta) - earned)
    return sum(lost) / len(lost)
