"""The chance of the largest draw, against adaptive quadrature and closed forms of SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from tacit.arms.largest_draw import largest_beta, largest_normal
from tiers import tiered


def by_quad(draws):
    """Return the chances by adaptive quadrature between the quantiles that matter."""
    chances = []
    for a, draw in enumerate(draws):

        def density(x, a=a, draw=draw):
            others = [each.cdf(x) for b, each in enumerate(draws) if b != a]
            return draw.pdf(x) * np.prod(others)

        places = sorted({float(each.ppf(q)) for each in draws for q in (0.02, 0.5, 0.98)})
        low, high = draw.ppf(1e-17), draw.isf(1e-17)
        cuts = [low, *(x for x in places if low < x < high), high]
        pairs = itertools.pairwise(cuts)
        parts = [integrate.quad(density, *pair, epsabs=1e-14, limit=200)[0] for pair in pairs]
        chances.append(sum(parts))
    return np.array(chances)


@pytest.mark.parametrize("seed", tiered(range(4), lambda seed: seed < 3))
def test_normal_draws(seed):
    rng = np.random.default_rng(seed)
    K = 2 + 2 * seed
    means, deviations = rng.random(K), 10.0 ** rng.uniform(-3, 0, K)
    out = np.zeros(K)
    largest_normal(means, deviations, out)
    draws = [stats.norm(m, d) for m, d in zip(means, deviations, strict=True)]
    np.testing.assert_allclose(out, by_quad(draws), atol=2e-11)


@pytest.mark.parametrize("seed", tiered(range(4), lambda seed: seed < 3))
def test_beta_draws(seed):
    rng = np.random.default_rng(seed)
    K = 2 + 2 * seed
    n, mean = 2.0 ** rng.integers(0, 12, K), rng.random(K)
    mean[0] = seed % 2
    out = np.zeros(K)
    largest_beta(n * mean + 1, n * (1 - mean) + 1, out)
    draws = [stats.beta(k * m + 1, k * (1 - m) + 1) for k, m in zip(n, mean, strict=True)]
    np.testing.assert_allclose(out, by_quad(draws), atol=1e-9)


def test_two_normals_have_a_closed_form():
    for gap, one, other in ((0.3, 1.0, 0.01), (2.0, 0.5, 0.5), (-40.0, 1.0, 1.0)):
        out = np.zeros(2)
        largest_normal(np.array([gap, 0.0]), np.array([one, other]), out)
        assert out[0] == pytest.approx(stats.norm.cdf(gap / np.hypot(one, other)), abs=1e-12)
