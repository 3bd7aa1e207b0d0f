"""What a noised histogram says of values, written from the recipe, cell by cell and by definition."""

from __future__ import annotations

import math

import numpy as np


def first_epoch(histogram, n_reports, epsilon, prior_sd=0.3, response_sd=0.2):
    """Mean and variance of each option after one epoch in which all options were equally likely; S = 1."""
    K = len(histogram)
    q = math.exp(-epsilon / 2)
    one_draw = 2 * q / (1 - q) ** 2
    noise = 2 * one_draw * (1 - 1 / (2 * K))
    excess = (sum(map(sum, histogram)) - n_reports) / (2 * K)
    p, precisions, products = 1 / K, [], []
    for cells in histogram:
        ones, zeros = (cell - excess for cell in cells)
        expected = p * n_reports
        weight = expected**2 / (expected + 2 * noise)
        response = (response_sd**-2 + weight * (ones + zeros) / expected) / (
            response_sd**-2 + weight
        )
        m = expected * min(max(response, 0.2), 3.0)
        k = m * (1 - p)
        c = (k * 0.5 + noise) / (k + 2 * noise)
        sampling = 0.25 + (1 - p) * ((0.5 - c) ** 2 + min(prior_sd**2, 0.1))
        variance = m * sampling + noise * ((1 - c) ** 2 + c**2)
        precisions.append(m**2 / variance)
        products.append(m**2 / variance * (c + ((1 - c) * ones - c * zeros) / m))
    pooled = min(max(sum(products) / sum(precisions), 0), 1)
    total = [each + prior_sd**-2 for each in precisions]
    means = [(x + pooled * prior_sd**-2) / t for x, t in zip(products, total, strict=True)]
    return means, [1 / t for t in total]


def posterior(precision, weighted, interactions, common=0.5, segment=0.2, option=0.2):
    """Mean and covariance of all values under the hierarchy, by conditioning one large normal; a mixture."""
    S, K = precision.shape
    cells = [(s, a) for s in range(S) for a in range(K)]
    seen = np.array([weighted[c] / precision[c] - 0.5 for c in cells])
    noise = np.diag([1 / precision[c] for c in cells])
    weights, means, covariances = [], [], []
    for sd in interactions:
        prior = np.array(
            [
                [
                    common**2
                    + (segment**2 if a[0] == b[0] else 0)
                    + (option**2 if a[1] == b[1] else 0)
                    + (sd**2 if a == b else 0)
                    for b in cells
                ]
                for a in cells
            ]
        )
        both = prior + noise
        inverse = np.linalg.inv(both)
        weights.append(math.exp(-0.5 * seen @ inverse @ seen) / math.sqrt(np.linalg.det(both)))
        means.append(prior @ inverse @ seen)
        covariances.append(prior - prior @ inverse @ prior)
    weights = np.array(weights) / sum(weights)
    mean = sum(w * m for w, m in zip(weights, means, strict=True))
    second = sum(
        w * (c + np.outer(m, m)) for w, m, c in zip(weights, means, covariances, strict=True)
    )
    return 0.5 + mean.reshape(S, K), second - np.outer(mean, mean)
