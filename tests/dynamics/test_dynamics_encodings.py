"""Subsets in place of bits, and estimates that are remembered: exact, private, better."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tacit
from tacit.core.kernels import INTERPRETED
from tacit.dynamics import LearningDynamics, SocialOptions, popularity_noise, recommend
from tacit.dynamics.dissemination.moments import crowd_of, new_crowd
from tacit.dynamics.tuning import encoder
from tacit.privacy.mechanisms.subset_selection import SubsetSelection
from tacit.simulation.audits import audit_policy
from tiers import tiered

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of runs need compiled kernels")
SIZES = [(2, 1), (4, 1), (4, 2), (6, 2), (6, 3), (7, 5)]


def masses(symbols, size, epsilon, true):
    """Return the probability of every subset, from the definition."""
    subsets = list(itertools.combinations(range(symbols), size))
    weights = np.array([math.exp(epsilon) if true in each else 1.0 for each in subsets])
    return subsets, weights / weights.sum()


@pytest.mark.parametrize(("symbols", "size"), SIZES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_declared_loss_and_chances_are_those_of_the_definition(symbols, size, epsilon):
    mechanism = SubsetSelection(epsilon=epsilon, options=symbols, size=size)
    subsets, left = masses(symbols, size, epsilon, 0)
    _, right = masses(symbols, size, epsilon, 1)
    assert mechanism.release.epsilon <= epsilon
    assert mechanism.release.epsilon == pytest.approx(np.log(left / right).max())
    for level in (0.0, epsilon / 2):
        exact = np.maximum(0.0, left - math.exp(level) * right).sum()
        assert mechanism.release.delta(level) == pytest.approx(exact)
    held = np.array([[symbol in each for symbol in range(symbols)] for each in subsets])
    assert mechanism.chances == pytest.approx((left @ held[:, 0], left @ held[:, 1]))
    if symbols > 2:
        one, none = (left @ (held[:, i] & held[:, 2]) for i in (0, 1))
        assert mechanism.joint_chances == pytest.approx((one, none), abs=1e-12)


@pytest.mark.parametrize("seed", [3, None])
@pytest.mark.parametrize(("symbols", "size"), [(4, 1), (5, 2)])
def test_subsets_come_as_often_as_declared_and_half_the_noise_is_noticed(symbols, size, seed):
    runs = 2_000 if INTERPRETED else 40_000
    drawn = {
        epsilon: SubsetSelection(epsilon=epsilon, options=symbols, size=size)
        .run(1.0, runs, seed)[:, 0]
        .astype(int)
        for epsilon in (1.0, 2.0)
    }
    subsets, chances = masses(symbols, size, 1.0, 1)
    words = np.array([sum(1 << s for s in each) for each in subsets])
    assert set(drawn[1.0].tolist()) <= set(words.tolist())
    # At most ten cells at five standard errors: a false alarm rate below 6e-6.
    error = np.sqrt(chances * (1 - chances) / runs)
    off = {
        epsilon: np.abs([np.mean(each == word) for word in words] - chances) / error
        for epsilon, each in drawn.items()
    }
    assert off[1.0].max() < 5
    assert off[2.0].max() > 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": 1}, "options in 2..64"),
        ({"options": 65}, "options in 2..64"),
        ({"options": 4, "size": 4}, "size below 4 options"),
        ({"options": 4, "size": 0}, "size >= 1"),
    ],
)
def test_a_bad_subset_names_itself(changes, words):
    with pytest.raises(ValueError, match=f"SubsetSelection: expected {words}"):
        SubsetSelection(epsilon=1.0, **changes)
    with pytest.raises(ValueError, match=r"a symbol in 0\.\.3"):
        SubsetSelection(epsilon=1.0, options=4).run(4.0, 1)


def test_the_least_variance_is_chosen():
    for epsilon, options in itertools.product((0.25, 0.5, 1.0, 2.0, 4.0), (2, 5, 10, 20)):
        noise = {
            encoding: popularity_noise(
                n_agents=10**4, n_options=options, epsilon=epsilon, encoding=encoding
            )
            for encoding in ("plain", "optimised", "subset", "least")
        }
        assert noise["least"] == min(noise.values())
        ratio = (noise["least"] / noise["plain"]) ** 2
        assert ratio < (0.96 if epsilon <= 1 else 0.8)


def test_what_is_known_of_two_and_eleven_symbols():
    """One of two symbols is randomized response; of eleven, subsets of 3, then of 1."""
    assert SubsetSelection(epsilon=1.0, options=2).chances[0] == pytest.approx(
        1 / (1 + math.exp(-1))
    )
    assert encoder(1.0, 10, "least").size == 3
    assert encoder(2.0, 10, "least").size == 1


def policy(n_agents, **changes):
    settings = {"n_options": 3, "epsilon": 1.0, "encoding": "subset"}
    return LearningDynamics(n_agents=n_agents, **{**settings, **changes})


@slow
def test_a_subset_is_private_and_half_the_noise_is_noticed():
    environment = SocialOptions(qualities=(0.8, 0.5, 0.2), n_agents=4)

    def found(epsilon):
        return audit_policy(
            policy(4, epsilon=epsilon, tokens=8),
            environment,
            horizon=1,
            epsilon=1.0,
            delta=0.0,
            neighbours=environment.neighbours("message", 1, limit=3),
            runs=20_000,
            alpha=1e-6,
            seed=2,
            released=4,
        ).result

    assert not found(1.0).refuted
    assert found(2.0).refuted


def test_moments_of_subsets_are_those_of_tokens_drawn_from_the_senders():
    M, N = 6, 200_000
    params = policy(N, n_options=M, tokens=N).params
    size = int(params.subset[0])
    assert size == 2
    rng = np.random.default_rng(0)
    senders = np.array([60_000, 40_000, 30_000, 20_000, 10_000, 5_000, 35_000])
    subsets = list(itertools.combinations(range(M + 1), size))
    held = np.array([[s in each for s in range(M + 1)] for each in subsets])
    sent = np.concatenate(
        [
            held[rng.choice(len(subsets), size=n, p=masses(M + 1, size, 1.0, x)[1])]
            for x, n in enumerate(senders)
        ]
    )[:, :M]
    crowd = new_crowd(1, M)
    crowd_of(params, np.array([[[N, *senders[:M], *sent.sum(axis=0)]]]), N, crowd)
    tilt, turn = crowd.tilt[0], crowd.turn[0]
    root = (crowd.reach[0] / params.slope)[:, None] * (np.eye(M) - tilt.T @ turn @ tilt)
    # Pairs of bits are taken at their expectation: five standard errors of a share are 5e-3 of a half.
    np.testing.assert_allclose(root @ root.T, np.cov(sent.T, bias=True), atol=5 * 0.5 / N**0.5)


def finals(chosen, qualities, horizon, repetitions, seed=5):
    environment = SocialOptions(qualities=qualities, n_agents=chosen.n_agents)
    return tacit.simulate(
        chosen, environment, horizon=horizon, repetitions=repetitions, seed=seed, checkpoints=1
    ).final("regret")


@slow
@pytest.mark.parametrize("smoothed", tiered((False, True), lambda smoothed: smoothed))
def test_a_crowd_that_sends_subsets_learns_as_its_members_do(smoothed):
    settings = {"n_options": 5, "tokens": 3000, "smoothed": smoothed, "beta": 0.85}
    regret = {
        engine: finals(policy(1000, engine=engine, **settings), (0.9, 0.7, 0.5, 0.3, 0.1), 150, 40)
        for engine in ("mixed", "crowd")
    }
    # The runs are paired: same signals.
    gap = regret["mixed"] - regret["crowd"]
    assert abs(gap.mean()) < 5 * gap.std(ddof=1) / math.sqrt(gap.size)


def test_small_crowds_that_send_subsets_are_refused():
    with pytest.raises(ValueError, match="n_agents >= 1000 for a crowd that sends subsets"):
        policy(999, engine="crowd")
    with pytest.raises(ValueError, match="encoding plain or optimised if published"):
        policy(100, variant="published")
    with pytest.raises(ValueError, match="rho left out unless smoothed"):
        policy(100, rho=0.5)


@slow
@pytest.mark.parametrize(("n_agents", "most"), [(10**4, 0.025), (10**5, 0.013), (10**6, 0.007)])
def test_remembering_beats_forgetting_by_far(n_agents, most):
    """Epsilon 1, ten options, 2,000 rounds, many tokens; without memory .087 / .034 / .014."""
    qualities = np.linspace(0.9, 0.1, 10).tolist()
    settings = {"n_options": 10, "engine": "crowd", "encoding": "plain", "tokens": 10 * n_agents}
    smooth = finals(policy(n_agents, smoothed=True, **settings), qualities, 2000, 6, seed=31)
    plain = finals(policy(n_agents, **settings), qualities, 2000, 6, seed=31)
    assert smooth.mean() < most
    assert plain.mean() > 2 * smooth.mean()


def test_the_rule_for_rho_follows_the_noise():
    settings = {"n_options": 10, "epsilon": 1.0, "smoothed": True}
    few, many = (recommend(n_agents=n, **settings) for n in (10**4, 10**6))
    assert few.rho == pytest.approx(0.08 / math.sqrt(10 * few.noise))
    assert few.rho < many.rho < 1
    assert recommend(n_agents=10**13, **settings).rho == 1.0
    assert recommend(n_agents=10**4, n_options=10, epsilon=1.0).rho == 1.0
    assert policy(100, smoothed=True, rho=0.25).params.rho == 0.25
