"""How well the learning dynamics learn: the known table, and the recommended parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.core.kernels import INTERPRETED, kernel
from tacit.core.samplers import source_of
from tacit.core.tapes import seeded_tape
from tacit.dynamics import LearningDynamics, SocialOptions, popularity_noise, recommend
from tacit.dynamics.dissemination.moments import (
    crowd_of,
    draw_sample,
    new_crowd,
    new_sample,
    receive,
)
from tacit_studies.tao2022.regret_maps import published_regret, regret_map, regret_of
from tiers import tiered

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")

# Regret after 10,000 rounds at the paper's constants, means of 20 runs.
TABLE = {
    (3_000, 0.5): 0.496,
    (6_000, 0.5): 0.495,
    (10_000, 0.5): 0.494,
    (3_000, 1.0): 0.493,
    (6_000, 1.0): 0.490,
    (10_000, 1.0): 0.484,
    (3_000, 2.0): 0.481,
    (6_000, 2.0): 0.468,
    (10_000, 2.0): 0.452,
    (3_000, math.inf): 0.042,
    (6_000, math.inf): 0.036,
    (10_000, math.inf): 0.018,
}


@slow
@pytest.mark.parametrize(
    ("n_agents", "epsilon"),
    tiered(TABLE, {(3_000, 1.0), (3_000, math.inf)}.__contains__),
)
def test_the_published_table(n_agents, epsilon):
    runs = 5
    regret = published_regret(n_agents, epsilon, repetitions=runs)
    # Five standard errors of the difference to a mean of 20 runs, and its rounding.
    error = 5 * regret.std(ddof=1) * math.sqrt(1 / runs + 1 / 20) + 0.0005
    assert abs(regret.mean() - TABLE[n_agents, epsilon]) < error


@slow
def test_mixed_and_crowd_give_the_same_regret():
    setting = {"n_options": 10, "n_agents": 300, "epsilon": 2.0, "beta": 0.7, "mu": 0.01}
    regret = {
        engine: regret_of(
            LearningDynamics(engine=engine, tokens=2000, **setting),
            np.linspace(0.9, 0.1, 10).tolist(),
            horizon=300,
            repetitions=40,
        )
        for engine in ("mixed", "crowd")
    }
    # The runs are paired: same signals.
    gap = regret["mixed"] - regret["crowd"]
    assert abs(gap.mean()) < 5 * gap.std(ddof=1) / math.sqrt(gap.size)


@slow
@pytest.mark.parametrize(("n_agents", "most"), [(10**4, 0.10), (10**5, 0.04), (10**6, 0.02)])
def test_the_recommended_parameters_learn_in_private(n_agents, most):
    found = regret_map(n_agents=(n_agents,), epsilons=(1.0,), betas=(0.505,), repetitions=8)
    published, recommended = found.regret[0, 0]
    assert recommended + 2 * found.error[0, 0, 1] < most
    assert published > 3 * recommended


@slow
def test_losses_hurt_late_and_delays_average_the_noise_away():
    def mean(**changes):
        policy = LearningDynamics(
            n_options=10, n_agents=10**5, epsilon=1.0, engine="crowd", tokens=10**5, **changes
        )
        qualities = np.linspace(0.9, 0.1, 10).tolist()
        return regret_of(policy, qualities, horizon=1000, repetitions=4).mean()

    synchronous = mean()
    assert mean(loss=0.5) < 1.3 * synchronous
    assert mean(loss=0.99) > 3 * synchronous
    assert mean(wake_prob=0.2) > 1.1 * synchronous
    # What arrives in a round was perturbed in four different ones.
    assert mean(delay=3) < 0.8 * synchronous


def test_recommendations_follow_the_noise():
    def beta(**changes):
        return recommend(**{"n_agents": 10**4, "n_options": 10, "epsilon": 1.0, **changes}).beta

    assert beta(n_agents=10**6) < beta() < beta(n_agents=10**3)
    assert beta(epsilon=4.0) < beta() < beta(epsilon=0.5)
    assert beta(n_options=3) < beta() < beta(n_options=20)
    assert beta(tokens=100) > beta()
    assert beta(encoding="optimised") < beta()
    assert 0.5 < beta(n_agents=1, epsilon=0.01) <= 0.975
    with pytest.raises(ValueError, match="recommend: expected epsilon > 0, got 0"):
        recommend(n_agents=10, n_options=2, epsilon=0)


def test_the_noise_is_what_an_agent_sees():
    setting = {"n_agents": 10**4, "n_options": 20, "epsilon": 1.0}
    published = popularity_noise(**setting, variant="published")
    assert published == pytest.approx(2.8 / 100, rel=0.02)
    assert popularity_noise(**setting) / published == pytest.approx(math.sqrt(2), rel=0.01)


def test_parameters_left_out_are_the_papers_or_the_recommended():
    paper = LearningDynamics(n_options=20, n_agents=10**4, epsilon=1.0, variant="published").params
    assert (paper.beta, paper.mu, paper.tokens) == (0.505, 6.7e-5, 41143)
    ours = LearningDynamics(n_options=20, n_agents=10**4, epsilon=1.0).params
    chosen = recommend(n_agents=10**4, n_options=20, epsilon=1.0, tokens=41143)
    assert (ours.beta, ours.mu) == (chosen.beta, chosen.mu)


@kernel
def estimates(params, tape, crowd, v, sample, out):
    source = source_of(tape)
    for i in range(out.shape[0]):
        draw_sample(crowd, sample, np.uint64(i), source, 0, i)
        sample.tokens[:] = v
        receive(params, crowd, sample, 1.0, source, 0, i, out[i])


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_moments_are_those_of_tokens_drawn_from_the_senders(epsilon):
    # Slope 1 and offset -1 leave share + 1, never clipped.
    M, N, v, draws = 4, 4000, 1500, 1000 if INTERPRETED else 40_000
    policy = LearningDynamics(n_options=M, n_agents=N, epsilon=epsilon, tokens=3000)
    params = policy.params._replace(slope=np.ones(1), offset=-np.ones(1))
    rng = np.random.default_rng(0)
    senders = np.array([2000, 1000, 600, 400])
    option = np.repeat(np.arange(M), senders)
    hot = option[:, None] == np.arange(M)
    sent = rng.random((N, M)) < np.where(hot, params.p[0], params.q[0])
    pool = np.array([[[N, *senders, *sent.sum(axis=0)]]])
    crowd = new_crowd(1, M)
    crowd_of(params, pool, N, crowd)
    out = np.empty((draws, M))
    estimates(params, seeded_tape(1), crowd, float(v), new_sample(1, M), out)
    share = sent.mean(axis=0)
    wanted = np.cov(sent.T.astype(float), bias=True) / v
    error = np.sqrt(np.diag(wanted) / draws)
    assert (np.abs(out.mean(axis=0) - 1 - share) < 5 * error).all()
    # Overlaps of bits are taken at their expectation: a relative error of 1 / sqrt(N) besides.
    slack = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert (np.abs(np.cov(out.T) - wanted) < 5 * slack * (draws**-0.5 * 1.5 + N**-0.5)).all()


def test_a_network_gives_the_number_of_agents():
    from tacit.graphs import complete

    assert SocialOptions(qualities=(0.5,), network=complete(5)).n_agents == 5


def test_a_crowd_of_any_size_has_no_members_in_memory():
    environment = SocialOptions(qualities=(0.9, 0.1), n_agents=10**12)
    policy = LearningDynamics(n_options=2, n_agents=10**12, epsilon=1.0, engine="crowd")
    state = policy.start(environment.table(0, 0, 1))
    assert (state.adoption.size, int(state.counts.sum())) == (0, 10**12)


def test_a_crowd_whose_tokens_no_integer_counts_learns_all_the_same():
    policy = LearningDynamics(
        n_options=3, n_agents=10**9, epsilon=1.0, tokens=10**10, engine="crowd"
    )
    regret = regret_of(policy, (0.9, 0.5, 0.1), horizon=200, repetitions=1)
    assert regret[0] < 0.1  # without hearing anything 0.4
