"""Algorithms 1 and 2 of Wang et al. (2020) as written: (dN) x (dN) matrices, nothing clever.

Parameters live in R^(dN). Every round solves for theta, adds the noise that a tree or a Toeplitz
factor gives for the statistic b, and scores arms with the full inverse. Noise is handed in as a
function of (round, coordinate), so that the policy and this can be given the same.
"""

from __future__ import annotations

import itertools
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


def residual_posterior(kernel, dimension, observations):
    """Return covariance and mean of all users' parameters, from everything observed so far.

    A priori they are normal with covariance kernel (x) I / d. An observation (user, x, y, v) says that
    x' theta_user is y with variance v.
    """
    covariance = np.kron(kernel, np.eye(dimension)) / dimension
    n = len(covariance)
    if not observations:
        return covariance, np.zeros(n)
    rows = np.zeros((len(observations), n))
    for row, (user, x, _, _) in zip(rows, observations, strict=True):
        row[user * dimension : (user + 1) * dimension] = x
    y = np.array([o[2] for o in observations])
    noise = np.diag([o[3] for o in observations])
    gain = covariance @ rows.T @ np.linalg.inv(rows @ covariance @ rows.T + noise)
    return covariance - gain @ rows @ covariance, gain @ y


def with_level(kernel, ridge, dimension, observations):
    """Return c and theta of y = c + x' theta_user for all users, and the covariance of theta given c.

    They minimise the sum of w (y - c - x' theta_user)^2 over observations (user, x, y, w) and
    ridge theta' (kernel^-1 (x) I) theta: c is not shrunk. One system of equations has both.
    """
    n = dimension * len(kernel)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = ridge * np.kron(np.linalg.inv(kernel), np.eye(dimension))
    right = np.zeros(n + 1)
    for user, x, y, w in observations:
        row = np.zeros(n + 1)
        row[user * dimension : (user + 1) * dimension] = x
        row[n] = 1.0
        system += w * np.outer(row, row)
        right += w * y * row
    if not observations:
        system[n, n] = 1.0
    solution = np.linalg.solve(system, right)
    return solution[n], solution[:n], np.linalg.inv(system[:n, :n])


def residual_observation(symbol, bins, epsilon, mean, scale, square):
    """Return (y, v): what an answer says of the expected reward, from Bayes' rule for each bin.

    A reward is normal around the prediction with deviation `scale`, of which `square` is the variance
    of the expected reward itself. The answer is the true bin with probability proportional to
    e^epsilon. Moments are matched: the posterior mean of the expected reward given the answer, and
    the variance that an observation of it must have to lower its variance by the average amount.
    """
    edges = stats.norm.ppf(np.arange(bins + 1) / bins)
    grid = [
        stats.norm.expect(lambda z: z, lb=a, ub=b, conditional=True)
        for a, b in itertools.pairwise(edges)
    ]
    weights = np.ones((bins, bins)) + np.eye(bins) * math.expm1(epsilon)
    weights /= weights.sum(axis=1, keepdims=True)
    told = weights @ np.array(grid)
    information = np.mean(told**2)
    # Var(theta) falls by square^2 J / scale^2 = square^2 / (square + v).
    v = scale**2 / information - square
    return mean + told[symbol] * scale / information, v
