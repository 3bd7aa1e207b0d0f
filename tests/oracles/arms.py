"""Slow policies of one learner, written from the papers: lists, direct sums, bisection.

Each takes ``reward(t, a)`` and ``draw(t, index, purpose)`` (uniforms by name) and returns the arms
pulled in rounds 0, 1, ..., T - 1. Nothing is carried from round to round but the list of what happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Reward = Callable[[int, int], float]
Draw = Callable[[int, int, str], float]
Function = Callable[[float], float]


def mean_of(table: Any, t: Any, a: int) -> Any:
    """Return the nominal means of an arm in rounds t of a table that is not recorded."""
    if table.linear:
        return np.interp(t, table.starts, table.means[:, a])
    return table.means[np.searchsorted(table.starts, t, "right") - 1, a]


def first_largest(values: Sequence[float]) -> int:
    return values.index(max(values))


def ucb1(K: int, T: int, reward: Reward, exploration: float = 2.0) -> list[int]:
    """Auer, Cesa-Bianchi and Fischer (2002), Fig. 1."""
    seen: list[list[float]] = [[] for _ in range(K)]
    arms = []
    for n in range(T):  # n: the plays done so far
        if n < K:
            arm = n
        else:
            arm = first_largest(
                [sum(x) / len(x) + math.sqrt(exploration * math.log(n) / len(x)) for x in seen]
            )
        seen[arm].append(reward(n, arm))
        arms.append(arm)
    return arms


def sw_ucb(K: int, T: int, reward: Reward, window: int, exploration: float = 0.6) -> list[int]:
    """Garivier and Moulines (2011), Section 3.2, over the last `window` rounds."""
    history: list[tuple[int, float]] = []
    for t in range(T):
        recent = history[-window:]
        seen = [[x for arm, x in recent if arm == a] for a in range(K)]
        unseen = [a for a in range(K) if not seen[a]]
        if unseen:
            arm = unseen[0]
        else:
            log = math.log(min(t + 1, window))
            arm = first_largest(
                [sum(x) / len(x) + math.sqrt(exploration * log / len(x)) for x in seen]
            )
        history.append((arm, reward(t, arm)))
    return [arm for arm, _ in history]


def divergence(p: float, q: float) -> float:
    """KL of Bernoulli(p) from Bernoulli(q)."""
    total = 0.0
    if p > 0:
        total += math.inf if q <= 0 else p * math.log(p / q)
    if p < 1:
        total += math.inf if q >= 1 else (1 - p) * math.log((1 - p) / (1 - q))
    return total


def last_true(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest float of [low, high] where `holds`, which is true up to some point."""
    if holds(high):
        return high
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return low
        low, high = (middle, high) if holds(middle) else (low, middle)


def kl_index(feedback: Sequence[float], g: Function, f: float) -> float:
    """Paper 003, Algorithm 1 (a): the largest q in [0, 1] whose g(q) the feedback allows."""
    if not feedback:
        return 1.0
    N, lam = len(feedback), sum(feedback) / len(feedback)
    rising = g(0.0) < g(1.0)

    def behind(q: float) -> bool:
        return g(q) <= lam if rising else g(q) >= lam

    centre = last_true(behind, 0.0, 1.0) if behind(0.0) else 0.0
    if centre == 0.0 and N * divergence(lam, g(0.0)) > f:
        return 0.0
    return last_true(lambda q: behind(q) or N * divergence(lam, g(q)) <= f, centre, 1.0)


def exploration_bonus(s: int) -> float:
    """Theorem 1's f, floored at 0."""
    return max(0.0, math.log(s) + 3 * math.log(math.log(s))) if s > 1 else 0.0


def corruption_function(p00: float, p11: float) -> Function:
    """Paper 003, below eq. 1: the mean feedback of randomized response, given the mean reward."""
    return lambda x: 1 - p00 + (p00 + p11 - 1) * x


def corrupt(r: float, p00: float, p11: float, draw: Draw, t: int, arm: int) -> float:
    """Paper 003, eq. 1, on a reward that is first rounded to 1 with probability r, else to 0."""
    bit = draw(t, arm, "rounding") < r if 0 < r < 1 else r == 1.0
    kept = draw(t, arm, "noise") < (p11 if bit else p00)
    return float(bit == kept)


def sw_klucb_cf(
    K: int,
    T: int,
    reward: Reward,
    draw: Draw,
    *,
    responses: Sequence[tuple[float, float]] | None = None,
    window: int | None = None,
    bonus: Callable[[int], float] = exploration_bonus,
) -> list[int]:
    """Paper 003, Algorithm 1; without `responses` kl-UCB, without `window` klUCB-CF.

    `responses` are p00 and p11 of each arm.

    Ties are drawn by position 0 of the round from a list that begins with the latest arm.
    """
    history: list[tuple[int, float]] = []
    for t in range(T):
        if t < K:
            arm = t
        else:
            recent = history if window is None else history[-window:]
            f = bonus(t if window is None else min(t, window))
            index = []
            for a in range(K):
                g = corruption_function(*responses[a]) if responses else (lambda q: q)
                index.append(kl_index([x for arm, x in recent if arm == a], g, f))
            ties = [a for a in range(K) if index[a] == max(index)]
            ties.sort(key=lambda a: a != history[-1][0])
            arm = ties[int(draw(t, 0, "choice") * len(ties))]
        value = reward(t, arm)
        if responses:
            value = corrupt(value, *responses[arm], draw, t, arm)
        history.append((arm, value))
    return [arm for arm, _ in history]


def timed_klucb_cf(
    K: int,
    T: int,
    reward: Reward,
    draw: Draw,
    *,
    response: Callable[[int, int], tuple[float, float]],
    window: int | None = None,
    current: bool = False,
) -> list[int]:
    """Paper 003, Algorithm 1, where `response` gives p00 and p11 of a round and an arm.

    The mean feedback of an arm of mean q is the average of g_s(q) over the rounds s it was heard in;
    where g_s falls, the bit and the function are turned over. With `current` all feedback is read by
    the function of the present round instead.
    """
    history: list[tuple[int, float, Function]] = []
    for t in range(T):
        if t < K:
            arm = t
        else:
            recent = history if window is None else history[-window:]
            f = exploration_bonus(t if window is None else min(t, window))
            index = []
            for a in range(K):
                heard = [(x, g) for arm, x, g in recent if arm == a]
                functions = (
                    [corruption_function(*response(t, a))] if current else [g for _, g in heard]
                )
                index.append(kl_index([x for x, _ in heard], _average(functions), f))
            ties = [a for a in range(K) if index[a] == max(index)]
            ties.sort(key=lambda a: a != history[-1][0])
            arm = ties[int(draw(t, 0, "choice") * len(ties))]
        p00, p11 = response(t, arm)
        x = corrupt(reward(t, arm), p00, p11, draw, t, arm)
        g = corruption_function(p00, p11)
        if p00 + p11 < 1 and not current:
            x, g = 1 - x, corruption_function(1 - p00, 1 - p11)
        history.append((arm, x, g))
    return [arm for arm, _, _ in history]


def _average(functions: list[Function]) -> Function:
    return lambda q: sum(g(q) for g in functions) / len(functions)


def sub_gaussian_ucb(
    K: int, T: int, reward: Reward, sigma: float, window: int | None = None
) -> list[int]:
    """Bubeck and Cesa-Bianchi (2012), Section 2.2 with psi(x) = sigma^2 x^2 / 2, and this f."""
    history: list[tuple[int, float]] = []
    for t in range(T):
        recent = history if window is None else history[-window:]
        seen = [[x for arm, x in recent if arm == a] for a in range(K)]
        f = exploration_bonus(t if window is None else min(t, window))
        if t < K:
            arm = t
        elif not all(seen):
            arm = seen.index([])
        else:
            arm = first_largest([sum(x) / len(x) + sigma * math.sqrt(2 * f / len(x)) for x in seen])
        history.append((arm, reward(t, arm)))
    return [arm for arm, _ in history]


def exp3(K: int, T: int, reward: Reward, draw: Draw, exploration_prob: float) -> list[int]:
    """Auer, Cesa-Bianchi, Freund and Schapire (2002), Fig. 1."""
    gamma, weights, arms = exploration_prob, [1.0] * K, []
    for t in range(T):
        p = [(1 - gamma) * w / sum(weights) + gamma / K for w in weights]
        u = draw(t, 0, "choice")
        arm = next((a for a in range(K) if u < sum(p[: a + 1])), K - 1)
        weights[arm] *= math.exp(gamma * reward(t, arm) / p[arm] / K)
        arms.append(arm)
    return arms
