"""What all users' parameters are expected to be, where that is learned from the reports themselves.

Parameters of N users are normal around 0 with covariance K (x) Sigma: K joins users, Sigma
features. Given what reports add up to, the posterior is one linear system. A step of expectation
maximisation sets K and then Sigma to what the posterior says of them, each drawn towards its even
form, in which all users, or all features, are alike; with a rank it sets Sigma alone, to a few
factors and the same variance in all other directions (Tipping and Bishop 1999). Clusters are those
of users whom noise could explain the difference of (Gentile et al. 2014). All of it reads sums of
reports and nothing else, so that it costs no privacy.

Covariances are in units of the variance of a report, `noise`, where all reports have the same, else
of 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.core.kernels import kernel
from tacit.core.linalg import dot

GIVEN, KERNEL, FACTORS, CLUSTERS = range(4)
"""What is learned: nothing; K and Sigma; Sigma, of a few factors; K, of clusters."""

STEPS = 5
"""Steps each time that a kernel is learned."""
_FIRST = 50
"""Answers before it is learned for the first time; then whenever there are three tenths more."""
_WEIGHT = 10.0
"""How many features, or users, the even form counts for."""
_SMALL_SYSTEM = 32
"""Up to so many equations, loops instead of LAPACK."""
_SWEEPS = 30
"""Enough for the eigenvectors of any matrix: convergence is quadratic, seven or eight are usual."""


@kernel
def due(answers: Any) -> Any:
    """Return whether a kernel is learned after so many answers."""
    mark = _FIRST
    while mark < answers:
        mark += 3 * mark // 10
    return mark == answers


@kernel
def overwrite(matrix: Any, other: Any) -> None:
    """Copy a matrix; numba compiles ``matrix[:, :] = other`` with all that could be said of shapes."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] = other[i, j]


@kernel(allocates=True)
def solve(A: Any, X: Any) -> None:
    """Replace X by the solution of A Y = X; A is lost.

    Small systems are solved here, to be the same when interpreted.
    """
    n, m = X.shape
    if n > _SMALL_SYSTEM:
        overwrite(X, np.linalg.solve(A, X))
        return
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        for j in range(n):
            A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
        for j in range(m):
            X[k, j], X[pivot, j] = X[pivot, j], X[k, j]
        for i in range(k + 1, n):
            share = A[i, k] / A[k, k]
            for j in range(k, n):
                A[i, j] -= share * A[k, j]
            for j in range(m):
                X[i, j] -= share * X[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(m):
            total = X[k, j]
            for i in range(k + 1, n):
                total -= A[k, i] * X[i, j]
            X[k, j] = total / A[k, k]


@kernel(allocates=True)
def posterior(K: Any, within: Any, gram: Any, response: Any, S: Any, mean: Any) -> None:
    """Write the posterior given the users' sums: S = (I + P Phi)^-1 P, P = K (x) Sigma, mean = S b."""
    size, d = gram.shape[0], gram.shape[1]
    n = size * d
    prior, system, spread = np.zeros((n, n)), np.eye(n), np.zeros((d, d))
    for v in range(size):
        for a in range(d):
            for b in range(d):
                total = 0.0
                for c in range(d):
                    total += within[a, c] * gram[v, c, b]
                spread[a, b] = total
        for u in range(size):
            for a in range(d):
                for b in range(d):
                    prior[u * d + a, v * d + b] = K[u, v] * within[a, b]
                    system[u * d + a, v * d + b] += K[u, v] * spread[a, b]
    solve(system, prior)
    overwrite(S, prior)
    for i in range(n):
        mean[i] = dot(S[i], response)


@kernel(allocates=True)
def improve(K: Any, within: Any, S: Any, mean: Any, noise: Any, rank: Any) -> None:
    """Set K and Sigma, or with a rank Sigma, to what the posterior says of them.

    Only their product matters, so that the trace of Sigma is kept at d.
    """
    size, d = K.shape[0], within.shape[0]
    if rank == 0:
        inverse = np.eye(d)
        solve(within.copy(), inverse)
        for u in range(size):
            for v in range(size):
                total = 0.0
                for a in range(d):
                    for b in range(d):
                        second = S[u * d + a, v * d + b] + mean[u * d + a] * mean[v * d + b] / noise
                        total += second * inverse[b, a]
                K[u, v] = total / d
        _even_out(K, d / (d + _WEIGHT), True)
    inverse = np.eye(size)
    solve(K.copy(), inverse)
    for a in range(d):
        for b in range(d):
            total = 0.0
            for u in range(size):
                for v in range(size):
                    second = S[u * d + a, v * d + b] + mean[u * d + a] * mean[v * d + b] / noise
                    total += second * inverse[v, u]
            within[a, b] = total / size
    if rank == 0:
        _even_out(within, size / (size + _WEIGHT), False)
    else:
        _even_out(within, 1.0, False)
        _principal(within, rank)
    trace = 0.0
    for a in range(d):
        trace += within[a, a]
    for u in range(size):
        for v in range(size):
            K[u, v] *= trace / d
    for a in range(d):
        for b in range(d):
            within[a, b] *= d / trace


@kernel
def _even_out(matrix: Any, share: Any, common: Any) -> None:
    """Mix a matrix, made symmetric, with the even one that has its means on the diagonal and off it."""
    n = matrix.shape[0]
    on, off = 0.0, 0.0
    for i in range(n):
        on += matrix[i, i] / n
        for j in range(i):
            matrix[i, j] = (matrix[i, j] + matrix[j, i]) / 2.0
            off += 2.0 * matrix[i, j] / (n * (n - 1))
    for i in range(n):
        matrix[i, i] = share * matrix[i, i] + (1.0 - share) * on
        for j in range(i):
            even = off if common else 0.0
            matrix[i, j] = share * matrix[i, j] + (1.0 - share) * even
            matrix[j, i] = matrix[i, j]


@kernel(allocates=True)
def _principal(matrix: Any, rank: Any) -> None:
    """Keep the largest eigenvalues of a symmetric matrix, and of all others their mean."""
    n = matrix.shape[0]
    vectors = np.eye(n)
    for _ in range(_SWEEPS):
        for p in range(n):
            for q in range(p + 1, n):
                _rotate(matrix, vectors, p, q)
    values, left, largest = np.empty(n), 0.0, np.zeros(n)
    for i in range(n):
        values[i] = matrix[i, i]
        left += matrix[i, i]
    for _ in range(min(rank, n)):
        best = -1
        for i in range(n):
            if largest[i] == 0.0 and (best < 0 or values[i] > values[best]):
                best = i
        largest[best] = 1.0
        left -= values[best]
    for i in range(n):
        if largest[i] == 0.0:
            values[i] = left / (n - rank)
    for a in range(n):
        for b in range(n):
            total = 0.0
            for i in range(n):
                total += values[i] * vectors[a, i] * vectors[b, i]
            matrix[a, b] = total


@kernel
def _rotate(matrix: Any, vectors: Any, p: Any, q: Any) -> None:
    """Turn the plane of two axes so that the matrix is diagonal there (Jacobi)."""
    off = matrix[p, q]
    if off == 0.0:
        return
    half = (matrix[q, q] - matrix[p, p]) / (2.0 * off)
    tangent = math.copysign(1.0, half) / (abs(half) + math.sqrt(half * half + 1.0))
    cos = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sin = tangent * cos
    n = matrix.shape[0]
    for k in range(n):
        one, two = matrix[k, p], matrix[k, q]
        matrix[k, p], matrix[k, q] = cos * one - sin * two, sin * one + cos * two
    for k in range(n):
        one, two = matrix[p, k], matrix[q, k]
        matrix[p, k], matrix[q, k] = cos * one - sin * two, sin * one + cos * two
    matrix[p, q] = matrix[q, p] = 0.0
    for k in range(n):
        one, two = vectors[k, p], vectors[k, q]
        vectors[k, p], vectors[k, q] = cos * one - sin * two, sin * one + cos * two


@kernel(allocates=True)
def cluster(K: Any, gram: Any, response: Any, ridge: Any, noise: Any) -> None:
    """Set K to 1 / lambda within clusters and 0 between them.

    Two users are joined unless their own estimates are further apart than noise makes those of users who
    are the same: the squared distance is then the sum of both variances on average.
    """
    size, d = response.shape
    own, variance, label = np.empty((size, d)), np.zeros(size), np.empty(size, np.int64)
    for u in range(size):
        A, C = gram[u].copy(), np.eye(d)
        for a in range(d):
            A[a, a] += ridge
        solve(A, C)
        for a in range(d):
            variance[u] += noise * C[a, a]
            own[u, a] = dot(C[a], response[u])
        label[u] = u
    for u in range(size):
        for v in range(u):
            apart = 0.0
            for a in range(d):
                apart += (own[u, a] - own[v, a]) ** 2
            if apart <= variance[u] + variance[v]:
                old, new = label[u], label[v]
                for other in range(size):
                    if label[other] == old:
                        label[other] = new
    for u in range(size):
        for v in range(size):
            K[u, v] = 1.0 / ridge if label[u] == label[v] else 0.0
