"""Slow, independent formulas for privacy: densities integrated, binomials summed, trees spelled out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy import integrate, signal, special


def delta_of_densities(
    p: Callable[[float], float],
    q: Callable[[float], float],
    epsilon: float,
    points: list[float],
) -> float:
    """Integrate (p - e^epsilon q)+ between consecutive `points`, where it may have kinks."""
    total = 0.0
    for a, b in itertools.pairwise(points):
        part, _ = integrate.quad(
            lambda x: max(0.0, p(x) - math.exp(epsilon) * q(x)), a, b, limit=400, epsabs=1e-13
        )
        total += part
    return total


def ball_delta(level: float, d: int, epsilon: float) -> float:
    """Hockey-stick divergence of exp(-|z|) in R^d against its shift by `level`, in polar form."""
    r = np.linspace(0, level + d + 40, 1601)
    x, w = np.polynomial.legendre.leggauss(200)
    angle = (x + 1) * math.pi / 2
    radius = r[:, None]
    far = np.sqrt(radius**2 - 2 * radius * level * np.cos(angle) + level**2)
    loss = far - radius
    density = radius ** (d - 1) * np.exp(-radius) * np.sin(angle) ** (d - 2)
    over_r = integrate.simpson(density * np.maximum(0, 1 - np.exp(epsilon - loss)), x=r, axis=0)
    total = integrate.simpson(density, x=r, axis=0)
    return float((over_r @ w) / (total @ w))


def response_delta(epsilon_one: float, n: int, epsilon: float) -> float:
    """Return delta of n symmetric randomized responses: a binomial sum."""
    keep = 1 / (1 + math.exp(-epsilon_one))
    total = []
    for k in range(n + 1):
        loss = (2 * k - n) * epsilon_one
        if loss > epsilon:
            log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            log += k * math.log(keep) + (n - k) * math.log1p(-keep)
            total.append(-math.expm1(epsilon - loss) * math.exp(log))
    return math.fsum(total)


def response_epsilon(epsilon_one: float, n: int, delta: float) -> float:
    low, high = 0.0, n * epsilon_one
    for _ in range(100):
        middle = (low + high) / 2
        if response_delta(epsilon_one, n, middle) > delta:
            low = middle
        else:
            high = middle
    return high


class Words:
    """Samplers written as in their paper, on a stream of 64-bit words."""

    def __init__(self, words: Iterator[int]) -> None:
        self.words = words

    def below(self, n: int) -> int:
        spare = 2**64 % n
        while True:
            product = next(self.words) * n
            if product % 2**64 >= spare:
                return product >> 64

    def laplace(self, scale: int, denominator: int) -> int:
        """Algorithm 2 of Canonne, Kamath and Steinke, sign first."""
        while True:
            u, sign = divmod(self.below(2 * scale), 2)
            if not self.exp_coin(u, scale):
                continue
            v = 0
            while self.exp_coin(1, 1):
                v += 1
            x = (u + scale * v) // denominator
            if not (sign == 1 and x == 0):
                return -x if sign else x

    def exp_coin(self, a: int, b: int) -> bool:
        k = 1
        while self.below(k * b) < a:
            k += 1
        return k % 2 == 1


def tree_weights(items: int, online: bool) -> dict[tuple[int, int], float]:
    """Weight of the own noise of every node (height, last item) in a prefix sum's error."""

    def estimate(height: int, end: int) -> dict[tuple[int, int], float]:
        if height == 0 or not online:
            return {(height, end): 1.0}
        left = estimate(height - 1, end - 2 ** (height - 1))
        right = estimate(height - 1, end)
        below = sum(w * w for part in (left, right) for w in part.values())
        own = below / (1 + below)
        weights = {(height, end): own}
        for part in (left, right):
            weights |= {node: (1 - own) * w for node, w in part.items()}
        return weights

    weights: dict[tuple[int, int], float] = {}
    start = 0
    for height in reversed(range(items.bit_length())):
        if items >> height & 1:
            start += 2**height
            weights |= estimate(height, start)
    return weights


def gaussian_hockey_stick(variance: float, epsilon: float) -> float:
    """Hockey-stick divergence of N(sqrt(variance), 1) against N(0, 1) at any real epsilon."""
    if variance == 0:
        return max(0.0, -math.expm1(epsilon))
    mu = math.sqrt(variance)
    here = special.ndtr(mu / 2 - epsilon / mu)
    return float(here - math.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)))


def laplace_and_gaussian_delta(a: float, variance: float, epsilon: float) -> float:
    """Delta of one Laplace coordinate moved by `a` scales beside a Gaussian, over the Laplace loss.

    The loss is a with probability 1/2, -a with exp(-a)/2, and a - 2x with density exp(-x)/2 else.
    """
    kink = [x for x in ((a - epsilon) / 2,) if 0 < x < a]
    between, _ = integrate.quad(
        lambda x: math.exp(-x) / 2 * gaussian_hockey_stick(variance, epsilon - a + 2 * x),
        0,
        a,
        points=kink or None,
        epsabs=1e-14,
        epsrel=1e-12,
        limit=400,
    )
    ends = gaussian_hockey_stick(variance, epsilon - a) / 2
    return between + ends + math.exp(-a) / 2 * gaussian_hockey_stick(variance, epsilon + a)


def discrete_gaussian_delta(shift, sigma, epsilon):
    """Return delta of whole Gaussian noise on a vector against the vector moved by `shift`.

    The loss at x is (|shift|^2 - 2 shift x) / (2 sigma^2); the distribution of the inner product is
    the convolution of those of its terms, each a multiple of a discrete Gaussian.
    """
    reach = int(12 * sigma) + 2
    masses = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    masses /= masses.sum()
    total = np.ones(1)
    for move in map(abs, shift):
        if move:
            spread = np.zeros(2 * reach * move + 1)
            spread[::move] = masses
            total = signal.fftconvolve(total, spread)
    top = len(total) // 2
    product = np.arange(-top, top + 1)
    loss = (sum(move * move for move in shift) - 2 * product) / (2 * sigma**2)
    return float(total @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0))))
