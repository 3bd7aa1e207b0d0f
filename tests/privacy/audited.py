"""Mechanisms with exactly known privacy, in plain NumPy, for the audit to try."""

from __future__ import annotations

import math

import numpy as np


def randomized_response(bit, runs, seed, epsilon=1.0):
    keep = np.random.default_rng(seed).random((runs, 1)) < 1 / (1 + math.exp(-epsilon))
    return np.where(keep, bit, 1 - bit).astype(float)


def laplace(value, runs, seed, epsilon=1.0):
    return value + np.random.default_rng(seed).laplace(scale=1 / epsilon, size=(runs, 1))


def clamped_laplace(value, runs, seed, epsilon=1.0):
    return np.clip(laplace(value, runs, seed, epsilon), -2.0, 3.0)


def geometric(value, runs, seed, epsilon=1.0):
    """Two-sided geometric noise: Laplace on the integers, exactly epsilon-private."""
    p = 1 - math.exp(-epsilon)
    rng = np.random.default_rng(seed)
    return (value + rng.geometric(p, (runs, 1)) - rng.geometric(p, (runs, 1))).astype(float)


def gaussian(value, runs, seed, sigma=1.0):
    return value + sigma * np.random.default_rng(seed).standard_normal((runs, 1))


def ball(value, runs, seed, epsilon=1.0):
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal((runs, len(value)))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return value + direction * rng.gamma(len(value), 1 / epsilon, (runs, 1))


def bounded_noise(loss, runs, seed, epsilon=0.1):
    """Paper 000, Algorithm 1: noise outside [-b, b] becomes b / 2, then all is scaled."""
    b = math.log(400) / epsilon
    noise = np.random.default_rng(seed).laplace(scale=1 / epsilon, size=(runs, 1))
    noise[np.abs(noise) > b] = b / 2
    return (loss + noise + b) / (2 * b + 1)


def bounded_probabilities(p, runs, seed, epsilon=0.1, b=1.0):
    """Paper 000, Algorithm 2: the same on every entry of a probability vector, with b' = 1."""
    noise = np.random.default_rng(seed).laplace(scale=1 / epsilon, size=(runs, len(p)))
    noise[np.abs(noise) > b] = b / 2
    return (p + noise + b) / (2 * b + 1)


def l2_calibrated_laplace(value, runs, seed, epsilon=2.0):
    """Paper 004: independent Laplace noise scaled to an L2 sensitivity of 1."""
    return value + np.random.default_rng(seed).laplace(scale=1 / epsilon, size=(runs, len(value)))


def repeated_response(bit, runs, seed, epsilon=0.2, length=5):
    keep = np.random.default_rng(seed).random((runs, length)) < 1 / (1 + math.exp(-epsilon))
    return np.where(keep, bit, 1 - bit).astype(float)


def silent_or_not(adopted, runs, seed):
    """Paper 001: an agent without an adoption sends nothing."""
    if not adopted:
        return np.full((runs, 1), np.nan)
    return randomized_response(1, runs, seed)
