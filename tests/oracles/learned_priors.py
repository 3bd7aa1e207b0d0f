"""Priors learned from reports, from their definitions: permutations, explicit posteriors, no sums.

An observation (user, x, y, v) says that x' theta_user is y with variance v. Parameters of all users
are normal around 0 with covariance K (x) Sigma.
"""

from __future__ import annotations

import itertools

import numpy as np


def posterior(K, sigma, observations):
    """Return mean, of shape (N, d), and covariance of all parameters given the observations."""
    prior = np.kron(K, sigma)
    d = len(sigma)
    rows = np.zeros((len(observations), len(prior)))
    for row, (user, x, _, _) in zip(rows, observations, strict=True):
        row[user * d : (user + 1) * d] = x
    y, v = (np.array([o[i] for o in observations]) for i in (2, 3))
    gain = prior @ rows.T @ np.linalg.inv(rows @ prior @ rows.T + np.diag(v))
    return (gain @ y).reshape(-1, d), prior - gain @ rows @ prior


def averaged(matrix, symmetries):
    """Return the mean of a matrix over changes of the names of its rows and columns."""
    return np.mean([change @ matrix @ change.T for change in symmetries], axis=0)


def permutations(n):
    return [np.eye(n)[list(order)] for order in itertools.permutations(range(n))]


def signed_permutations(n):
    signs = itertools.product((1.0, -1.0), repeat=n)
    return [np.diag(sign) @ change for sign in signs for change in permutations(n)]


def second_moments(K, sigma, observations):
    """Return E[theta_ua theta_vb] as an array of shape (N, d, N, d)."""
    mean, covariance = posterior(K, sigma, observations)
    N, d = mean.shape
    return covariance.reshape(N, d, N, d) + np.einsum("ua,vb->uavb", mean, mean)


def expectation_maximisation(K, sigma, observations, *, steps, weight=10.0, rank=0):
    """Return K and Sigma after some steps.

    Whitened features are d draws of users with covariance K, and `weight` more say that all users are
    alike; whitened users are N draws of features. With a rank K stays, and Sigma is that of so many
    principal components.
    """
    N, d = len(K), len(sigma)
    for _ in range(steps):
        moments = second_moments(K, sigma, observations)
        if not rank:
            white = np.linalg.inv(np.linalg.cholesky(sigma))
            found = np.einsum("ca,uavb,cb->uv", white, moments, white) / d
            K = (d * found + weight * averaged(found, permutations(N))) / (d + weight)
        white = np.linalg.inv(np.linalg.cholesky(K))
        found = np.einsum("wu,uavb,wv->ab", white, moments, white) / N
        if rank:
            values, vectors = np.linalg.eigh(found)
            values[: d - rank] = values[: d - rank].mean() if rank < d else 0.0
            sigma = vectors @ np.diag(values) @ vectors.T
        else:
            sigma = (N * found + weight * averaged(found, signed_permutations(d))) / (N + weight)
    return K, sigma


def clusters(n_users, precision, observations):
    """Return K of clusters: users whom a chain of indistinguishable estimates joins are the same.

    A user's own estimate has a prior of this precision; two differ by no more than the sum of their
    variances if noise explains it.
    """
    d = len(observations[0][1])
    own = []
    for user in range(n_users):
        seen = [(0, x, y, v) for u, x, y, v in observations if u == user]
        own.append(posterior(np.eye(1), np.eye(d) / precision, seen))
    near = np.array(
        [[np.sum((m - n) ** 2) <= np.trace(C) + np.trace(D) for n, D in own] for m, C in own]
    )
    reached = np.linalg.matrix_power(near.astype(int) + np.eye(n_users, dtype=int), n_users)
    return (reached > 0).astype(float)
