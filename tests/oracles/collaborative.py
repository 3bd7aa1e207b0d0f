"""Algorithms 1 and 2 of Wang et al. (2020) as written: (dN) x (dN) matrices, nothing clever.

Parameters live in R^(dN). Every round solves for theta, adds the noise that a tree or a Toeplitz
factor gives for the statistic b, and scores arms with the full inverse. Noise is handed in as a
function of (round, coordinate), so that the policy and this can be given the same.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy import stats


def spread(kind, weights, adjacency):
    """Return the matrix whose column u spreads a context of user u over all users."""
    n = len(weights)
    if kind == "linucb":
        return np.eye(n)
    if kind == "colin":
        return weights
    G = np.eye(n) + np.diag(adjacency.sum(axis=1)) - adjacency
    values, vectors = np.linalg.eigh(G)
    return vectors @ np.diag(values**-0.5) @ vectors.T


def tree_noise(history):
    """Return the noise of a prefix sum of len(history) steps, from the draw of every step.

    Step k draws the noise of the dyadic interval that ends at k and is as long as the largest
    power of two dividing k; a prefix is the disjoint union of such intervals.
    """
    end, total = len(history), 0.0
    while end > 0:
        total = total + history[end - 1]
        end -= end & -end
    return total


@cache
def root_of_ones(lag):
    """Return the entry at this distance below the diagonal of the matrix of ones' square root."""
    return math.comb(2 * lag, lag) / 4**lag


def toeplitz_noise(history):
    """Return the last entry of C z with C the square root of the matrix of ones."""
    return np.array([root_of_ones(lag) for lag in range(len(history))]) @ np.array(history)[::-1]


def ball(uniforms):
    """Return noise of density exp(-|z|) from 2d uniforms: a direction, and a sum of exponentials."""
    d = len(uniforms) // 2
    direction = stats.norm.ppf(uniforms[:d])
    return direction / np.linalg.norm(direction) * -np.log(uniforms[d:]).sum()


def play(kind, users, contexts, rewards, weights, adjacency, *, lam, alpha, noise=None):
    """Return picks and, for every round, the scores of all arms.

    `noise` is None or a function (t, user, step_of_user) -> vector in R^(dN) to be added to b
    before the decision of round t + 1.
    """
    T, _, d = contexts.shape
    n = len(weights)
    B = spread(kind, weights, adjacency)
    A, b, eta = lam * np.eye(d * n), np.zeros(d * n), np.zeros(d * n)
    visits = np.zeros(n, int)
    picks, scores = [], []
    for t in range(T):
        u = users[t]
        X = np.array([np.kron(B[:, u], x) for x in contexts[t]])
        inverse = np.linalg.inv(A)
        theta = inverse @ (b + eta)
        score = X @ theta + alpha * np.sqrt(np.einsum("ai,ij,aj->a", X, inverse, X))
        a = int(np.argmax(score))
        picks.append(a)
        scores.append(score)
        A += np.outer(X[a], X[a])
        b += X[a] * rewards[t, a]
        visits[u] += 1
        if noise is not None:
            eta = noise(t, u, visits[u])
    return np.array(picks), np.array(scores)
