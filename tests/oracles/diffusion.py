"""The diffusion algorithms of paper 000 on dense matrices, all agents at once.

Everything random is an argument: signals (T, N) on the scale of states 0 to M - 1, losses (T, N, M) and
a tape of uniforms (T, draws). The standard deviation sigma of signals is a number, or an array
that broadcasts to (T, N). Columns 0 to N - 1 of the tape choose states, N to 2N - 1 are noise on
losses, the rest noise on messages. Every function returns beliefs after each round, and choices.
"""

from __future__ import annotations

import numpy as np
from scipy import stats


def bayes(mu, signal, sigma):
    theta = np.arange(mu.shape[1])
    log_psi = np.log(mu) + stats.norm.logpdf(signal[:, None], theta, sigma[:, None])
    psi = np.exp(log_psi - log_psi.max(axis=1, keepdims=True))
    return psi / psi.sum(axis=1, keepdims=True)


def chosen(P, u):
    return np.array(
        [
            min(np.searchsorted(np.cumsum(row), x, side="right"), row.size - 1)
            for row, x in zip(P, u, strict=True)
        ]
    )


def bounded_laplace(u, epsilon, b):
    noise = stats.laplace.ppf(u, scale=1 / epsilon)
    return np.where(np.abs(noise) <= b, noise, b / 2)


def learning(A, signals, M, sigma):
    T, N = signals.shape
    sigma = np.broadcast_to(sigma, (T, N))
    mu = np.full((N, M), 1 / M)
    beliefs, choices = [], []
    for t in range(T):
        choices.append(mu.argmax(axis=1))
        mu = A.T @ bayes(mu, signals[t], sigma[t])
        beliefs.append(mu)
    return np.array(beliefs), np.array(choices)


def bandit(A, signals, losses, tape, *, eta, gamma, sigma, epsilon=None, b=None, b_message=None):
    """Algorithm 3; with `epsilon` and `b` Algorithm 1, with `b_message` too Algorithm 2."""
    T, N, M = losses.shape
    sigma = np.broadcast_to(sigma, (T, N))
    mu = np.full((N, M), 1 / M)
    everyone = np.arange(N)
    beliefs, choices = [], []
    for t in range(T):
        p = (1 - gamma) * mu + gamma * bayes(mu, signals[t], sigma[t])
        if b_message is not None:
            noise = bounded_laplace(tape[t, 2 * N : 2 * N + N * M], epsilon, b_message)
            p = (p + noise.reshape(N, M) + b_message) / (2 * b_message + 1)
        P = A.T @ p
        P = P / P.sum(axis=1, keepdims=True)
        theta = chosen(P, tape[t, :N])
        loss = losses[t, everyone, theta]
        if epsilon is not None:
            loss = (loss + bounded_laplace(tape[t, N : 2 * N], epsilon, b) + b) / (2 * b + 1)
        estimate = np.zeros((N, M))
        estimate[everyone, theta] = loss / P[everyone, theta]
        mu = mu * np.exp(-eta * estimate)
        mu = mu / mu.sum(axis=1, keepdims=True)
        beliefs.append(mu)
        choices.append(theta)
    return np.array(beliefs), np.array(choices)


def sound(
    A,
    signals,
    losses,
    tape,
    *,
    gamma,
    sigma,
    epsilon=None,
    block=1,
    laplace=False,
    signal_epsilon=None,
):
    """The corrected step, with adaptive rates; without `epsilon` it is open."""
    T, N, M = losses.shape
    sigma = np.broadcast_to(sigma, (T, N))
    mu, total, V = np.full((N, M), 1 / M), np.zeros((N, M)), np.zeros(N)
    everyone = np.arange(N)
    reach = variance = None
    if epsilon is None:
        reach, variance = 0.5, 0.25
    elif laplace:
        scale = 1 / (block * epsilon)
        reach, variance = 0.5 + 3 * scale, 0.25 + 2 * scale**2
    else:
        truthful = 1 + block * (np.exp(epsilon) - 1)  # odds of a true report
        keep = truthful / (1 + truthful)
        reach = 0.5 / (2 * keep - 1)
        variance = reach**2
    eta = np.full(N, 1 / (2 * M * reach))
    beliefs, choices = [], []
    for t in range(T):
        if t % block == 0:
            if signal_epsilon is None:
                psi = bayes(mu, signals[t], sigma[t])
            else:
                psi = _told(mu, signals[t], sigma[t], signal_epsilon, tape[t, 2 * N : 3 * N])
            rho = M * reach * eta[:, None]
            P = (1 - rho) * (A.T @ ((1 - gamma) * mu + gamma * psi)) + rho / M
            theta = chosen(P, tape[t, :N])
            V = V + variance * (mu / P).sum(axis=1)
            mean = np.zeros(N)
        mean = mean + losses[t, everyone, theta] / block
        if (t + 1) % block == 0:
            u = tape[t, N : 2 * N]
            if epsilon is None:
                report = mean - 0.5
            elif laplace:
                noisy = mean + stats.laplace.ppf(u, scale=scale)
                report = np.clip(noisy, -3 * scale, 1 + 3 * scale) - 0.5
            else:
                bit = u < keep * mean + (1 - keep) * (1 - mean)
                report = (bit - (1 - keep)) / (2 * keep - 1) - 0.5
            total[everyone, theta] += report / P[everyone, theta]
            eta = np.minimum(1 / (2 * M * reach), np.sqrt(np.log(M) / V))
            mu = np.exp(-eta[:, None] * (total - total.min(axis=1, keepdims=True)))
            mu = mu / mu.sum(axis=1, keepdims=True)
        beliefs.append(mu)
        choices.append(theta)
    return np.array(beliefs), np.array(choices)


def _told(mu, signal, sigma, epsilon, u):
    M = mu.shape[1]
    keep = np.exp(epsilon) / (np.exp(epsilon) + M - 1)
    nearest = np.clip(np.floor(signal + 0.5), 0, M - 1).astype(int)
    psi = np.empty_like(mu)
    for k, y in enumerate(nearest):
        z = y
        if u[k] >= keep:
            others = [s for s in range(M) if s != y]
            z = others[int((u[k] - keep) / (1 - keep) * (M - 1))]
        told = np.full(M, (1 - keep) / (M - 1))
        told[z] = keep  # probability of the answer z for each nearest state
        for theta in range(M):
            cuts = stats.norm.cdf(np.r_[-np.inf, np.arange(M - 1) + 0.5, np.inf], theta, sigma[k])
            psi[k, theta] = mu[k, theta] * (told * np.diff(cuts)).sum()
    return psi / psi.sum(axis=1, keepdims=True)


def batched(losses, tape, *, epsilon, block):
    """Tsallis-INF on noisy mean losses of batches, each agent alone; no noise without `epsilon`."""
    T, N, M = losses.shape
    noise_scale = 0.0 if epsilon is None else 1 / (block * epsilon)
    s = np.sqrt(1 + 2 * noise_scale**2)
    total = np.zeros((N, M))
    w = np.full((N, M), 1 / M)
    beliefs, choices = [], []
    for t in range(T):
        if t % block == 0:
            theta = chosen(w, tape[t, :N])
            mean = np.zeros(N)
        mean = mean + losses[t, np.arange(N), theta] / block
        if (t + 1) % block == 0:
            n = (t + 1) // block
            w = w.copy()
            for k in range(N):
                y = mean[k]
                if epsilon is not None:
                    y += stats.laplace.ppf(tape[t, N + k], scale=noise_scale)
                chance = w[k, theta[k]]
                if abs(y) <= s * np.sqrt(n * chance):
                    total[k, theta[k]] += y / chance
                w[k] = tsallis_leader(total[k], 1 / (2 * s * np.sqrt(n + 1)))
        beliefs.append(w)
        choices.append(theta)
    return np.array(beliefs), np.array(choices)


def tsallis_leader(total, eta):
    """Return the w of the simplex where total . w - 2 sum(sqrt(w)) / eta is least, by bisection."""

    def at(level):
        return 1 / (eta * (total - level)) ** 2

    low = total.min() - np.sqrt(total.size) / eta
    high = total.min() - 1 / eta
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if at(level).sum() < 1 else (low, level)
    return at(low) / at(low).sum()
