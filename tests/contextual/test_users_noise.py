"""What the users setting promises about privacy, and the noise it rests on."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import tacit
from oracles import collaborative as oracle
from tacit.arms import KLUCBCF, Corruption
from tacit.contextual import (
    CoLin,
    Fitted,
    GOBLin,
    LinUCB,
    NoisySums,
    PerReward,
    Published,
    Residual,
    Theory,
)
from tacit.contextual.privacy import Sizes
from tacit.core.arrays import leaves
from tacit.core.tapes import NOISE, secure_tape, seeded_tape
from tacit.privacy import (
    GaussianRelease,
    KAryResponse,
    RandomizedResponse,
    composed_epsilon,
    keep_probability,
)
from tacit.privacy.mechanisms import privatise

SIZES = {"n_users": 4, "dimension": 9}
LONG = {"horizon": 1000, "visits": 250}
SCALARS = ("laplace", "bit", "piecewise")
FOUR = {"weights": np.full((4, 4), 0.25), "graph": 1 - np.eye(4)}


def scalar_variance(mechanism, epsilon):
    return PerReward(epsilon=epsilon, mechanism=mechanism).variance


def played(policy, environment, horizon, tape):
    table = environment.table(0, 0, horizon)
    trace = environment.trace(horizon, np.array([horizon]), record=True)
    policy.play(policy.start(table), table, tape, trace, 0, horizon)
    return trace


@pytest.mark.parametrize("mechanism", SCALARS)
@pytest.mark.parametrize("reward", [-1.0, -0.3, 1.0])
def test_a_privatised_reward_is_unbiased_and_no_noisier_than_said(mechanism, reward):
    # 5 standard errors: a false alarm once in 1.7 million.
    n, epsilon, tape = 20_000, 1.5, seeded_tape(3)
    hidden = PerReward(epsilon=epsilon, mechanism=mechanism)
    report = CoLin(**SIZES, privacy=hidden, reward_range=(-1.0, 1.0)).params.channel.report
    told = np.array([privatise(report, tape, t, 0, NOISE, reward) for t in range(n)])
    error = told.std() / math.sqrt(n)
    assert abs(told.mean() - reward) < 5 * error
    assert abs(told.mean() - reward - 0.1) > 5 * error
    largest = 4 * scalar_variance(mechanism, epsilon)
    spread = np.var((told - told.mean()) ** 2) ** 0.5 / math.sqrt(n)
    assert told.var() < largest + 5 * spread
    if mechanism == "laplace" or (mechanism == "piecewise" and abs(reward) == 1):
        assert abs(told.var() - largest) < 5 * spread
        assert abs(told.var() - 1.2 * largest) > 5 * spread


def test_the_scalar_mechanism_is_the_one_of_least_variance():
    for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0):
        variances = {name: scalar_variance(name, epsilon) for name in SCALARS}
        assert variances[PerReward(epsilon=epsilon).chosen] == min(variances.values())
    assert {PerReward(epsilon=e).chosen for e in (0.5, 2.0)} == {"bit", "piecewise"}


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 9, 100, 129])
def test_a_reward_is_in_as_many_nodes_as_the_calibration_assumes(steps):
    nodes = [(k - (k & -k), k) for k in range(1, steps + 1)]
    most = max(sum(a < i <= b for a, b in nodes) for i in range(1, steps + 1))
    assert most == steps.bit_length()


def test_the_toeplitz_factor_is_the_root_of_the_matrix_of_ones():
    sums = NoisySums(epsilon=1.0, delta=1e-6, continual="toeplitz", visits=50)
    c = CoLin(**SIZES, privacy=sums).params.channel.streams.stream.coefficients[::-1]
    root = np.array([[c[i - j] if i >= j else 0.0 for j in range(50)] for i in range(50)])
    np.testing.assert_allclose(root @ root, np.tril(np.ones((50, 50))), atol=1e-12)
    draws = np.random.default_rng(0).standard_normal(50)
    assert oracle.toeplitz_noise(list(draws)) == pytest.approx((root @ draws)[-1])


@pytest.mark.parametrize("kind", [LinUCB, CoLin, GOBLin])
def test_without_epsilon_nothing_is_protected(kind):
    guarantee = kind(**SIZES).guarantee(1000)
    assert math.isinf(guarantee.epsilon)
    assert guarantee.basis == "none"


@pytest.mark.parametrize("mechanism", ["auto", *SCALARS])
def test_scalar_noise_is_local_and_pure(mechanism):
    hidden = PerReward(epsilon=0.7, mechanism=mechanism)
    guarantee = CoLin(**SIZES, privacy=hidden).guarantee(10**9)
    assert guarantee.epsilon == pytest.approx(0.7)
    assert (guarantee.delta, guarantee.unit, guarantee.trust) == (0.0, "reward", "local")


def test_epsilon_is_short_for_noise_on_each_reward():
    short, long = CoLin(**SIZES, epsilon=0.7), CoLin(**SIZES, privacy=PerReward(epsilon=0.7))
    assert short.protection == long.protection
    assert short.mechanisms == long.mechanisms
    assert short.mechanisms == long.mechanisms
    with pytest.raises(ValueError, match="expected epsilon not given beside privacy"):
        CoLin(**SIZES, epsilon=0.7, privacy=PerReward(epsilon=0.7))


@pytest.mark.parametrize(
    ("trust", "statistic"), [("local", "sums"), ("central", "sums"), ("central", "b")]
)
def test_noise_on_sums_is_calibrated_to_what_is_asked(trust, statistic):
    place = {"trust": trust, "statistic": statistic, **LONG}
    ball = CoLin(**SIZES, privacy=NoisySums(epsilon=2.0, **place)).guarantee(1000)
    assert ball.epsilon == pytest.approx(2.0)
    assert ball.delta == 0.0
    assert ("250 rounds of a user" if statistic == "sums" else "1,000 rounds in all") in ball.note
    for continual in ("tree", "toeplitz"):
        sums = NoisySums(epsilon=2.0, delta=1e-6, continual=continual, **place)
        guarantee = CoLin(**SIZES, privacy=sums).guarantee(1000)
        assert guarantee.epsilon == pytest.approx(2.0, abs=1e-6)
        assert guarantee.trust == trust


def test_users_and_a_server_keep_the_same_sums():
    environment = Fitted(n_users=3, dimension=4, n_items=30, n_shown=5)
    runs = {}
    for trust in ("local", "central"):
        sums = NoisySums(epsilon=2.0, trust=trust, horizon=60, visits=20)
        policy = CoLin(**environment.sizes, privacy=sums, reward_range=(-1.0, 1.0))
        runs[trust] = played(policy, environment, 60, seeded_tape(0)).decisions
        assert policy.guarantee(60).for_user(3).epsilon == pytest.approx(6.0)
        assert 2.0 < policy.guarantee(60).for_user(3, delta=1e-6).epsilon < 6.0
    np.testing.assert_array_equal(runs["local"], runs["central"])


def test_sums_without_visits_are_calibrated_for_a_user_who_always_comes():
    often = CoLin(**SIZES, privacy=NoisySums(epsilon=2.0, horizon=1000))
    assert "1,000 rounds of a user" in often.guarantee(1000).note
    rare = CoLin(**SIZES, privacy=NoisySums(epsilon=2.0, **LONG))
    ratio = often.open(**FOUR).sums.scales[:, 0] / rare.open(**FOUR).sums.scales[:, 0]
    np.testing.assert_allclose(ratio, 10 / 8)


def test_gaussian_scales_agree_with_the_sensitivity_of_the_whole_stream():
    sums = NoisySums(epsilon=1.0, delta=1e-5, continual="toeplitz", visits=250)
    policy = LinUCB(**SIZES, privacy=sums, reward_range=(-1.0, 1.0))
    scale = float(policy.open().sums.scales[0, 0])
    moved = 2.0 * np.linalg.norm([oracle.root_of_ones(lag) for lag in range(250)])
    release = GaussianRelease(sensitivity=moved, scale=scale)
    assert release.delta(1.0) == pytest.approx(1e-5, rel=1e-6)
    too_little = GaussianRelease(sensitivity=moved, scale=scale / 1.01)
    assert too_little.delta(1.0) > 1.02e-5


def test_the_published_noise_protects_less_than_the_paper_says():
    horizon, large = 10_000, {"n_users": 100, "dimension": 25}
    paper = Published(epsilon=2.0, trust="central", horizon=horizon)
    guarantee = CoLin(**large, privacy=paper).guarantee(horizon)
    levels = 14 / math.log(horizon)
    assert guarantee.epsilon == pytest.approx(2.0 * 50 * levels)
    assert guarantee.claim is not None
    assert not guarantee.claim.holds
    alone = LinUCB(**large, privacy=paper).guarantee(horizon)
    assert alone.epsilon == pytest.approx(2.0 * 5 * levels)
    unclipped = dataclasses.replace(paper, clip=False)
    assert math.isinf(CoLin(**large, privacy=unclipped).guarantee(horizon).epsilon)


def test_the_worst_change_of_b_is_what_the_published_guarantee_counts():
    # One reward of a user that everybody copies, a context of equal coordinates.
    d, paper = 9, Published(epsilon=2.0, trust="central", **LONG)
    policy = CoLin(**SIZES, privacy=paper)
    scale = policy.open(**FOUR).sums.scales[0, 0]
    moved = np.kron(FOUR["weights"][:, 0], np.full(d, 1 / math.sqrt(d)))
    once = np.abs(moved).sum() / scale
    assert policy.guarantee(1000).epsilon == pytest.approx(10 * once)


def test_the_ridge_parameter_grows_with_the_noise_on_a_reward_only():
    assert CoLin(**SIZES).ridge == 0.3
    assert CoLin(**SIZES, privacy=NoisySums(epsilon=0.5, **LONG)).ridge == 0.3
    assert CoLin(**SIZES, privacy=Published(epsilon=0.5, **LONG)).ridge == 0.3
    assert CoLin(**SIZES, epsilon=25.0).ridge == 0.3
    wide = {"epsilon": 0.5, "reward_range": (-1.0, 1.0)}
    assert CoLin(**SIZES, **wide).ridge == pytest.approx(9 * 4 * scalar_variance("bit", 0.5))
    assert CoLin(**SIZES, **wide, regularisation=2).ridge == 2.0


@pytest.mark.parametrize("n_users", [4, 16])
def test_gaussian_noise_on_b_is_smaller_where_users_are_all_alike(n_users):
    # About 1/sqrt(N) is expected. 24 draws each: their variances are off by a factor of 3 five times
    # in a thousand, by 4 once in two thousand.
    d, visits = 2, 30
    rounds, rng = n_users * visits, np.random.default_rng(0)
    contexts = rng.standard_normal((rounds, d))
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    alike = np.full((n_users, n_users), 1 / n_users)
    spread = {}
    for statistic in ("sums", "b"):
        sums = NoisySums(
            epsilon=1.0,
            delta=1e-6,
            trust="central",
            continual="toeplitz",
            statistic=statistic,
            horizon=rounds,
            visits=visits,
        )
        policy = CoLin(n_users=n_users, dimension=d, privacy=sums)
        told = []
        for seed in range(12):
            state, tape = policy.open(weights=alike), seeded_tape(seed)
            for t, x in enumerate(contexts):
                policy.update(state, tape, t % n_users, x, 0.0)
            policy.select(state, 0, np.eye(d))
            told.append(state.work[:d].copy())
        spread[statistic] = np.sqrt(np.mean(np.square(told)))
    assert spread["b"] < spread["sums"]
    if n_users == 16:
        assert spread["b"] < spread["sums"] / 2


def test_rewards_beyond_the_calibrated_rounds_are_not_taken_in():
    policy = LinUCB(n_users=1, dimension=2, privacy=NoisySums(epsilon=1.0, visits=3))
    state, tape = policy.open(), seeded_tape(0)
    for _ in range(3):
        policy.update(state, tape, 0, [0.6, 0.8], 1.0)
    before = [np.copy(array) for _, array in leaves(state._replace(rounds=None))]
    policy.update(state, tape, 0, [0.6, 0.8], 1.0)
    after = [array for _, array in leaves(state._replace(rounds=None))]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_rewards_are_clipped_to_their_range():
    policy = LinUCB(n_users=2, dimension=2, privacy=PerReward(epsilon=1.0, mechanism="laplace"))
    told = []
    for reward in (1.0, 7.0, -3.0, 0.0):
        state, tape = policy.open(), seeded_tape(1)
        policy.update(state, tape, 0, [1.0, 0.0], reward)
        told.append(float(state.ridge.mean[0, 0]))
    assert told[0] == told[1]
    assert told[2] == told[3]
    assert told[0] != told[3]


def test_pure_noise_on_sums_wants_a_research_tape_and_short_contexts():
    policy = LinUCB(n_users=2, dimension=2, privacy=NoisySums(epsilon=1.0, visits=5))
    state = policy.open()
    assert not policy.secure
    with pytest.raises(ValueError, match=r"secure tape: .* noise that depends on a length"):
        policy.update(state, secure_tape(), 0, [1.0, 0.0], 1.0)
    with pytest.raises(ValueError, match="length <= 1"):
        policy.update(state, seeded_tape(0), 0, [1.0, 1.0], 1.0)


@pytest.mark.parametrize("mechanism", SCALARS)
def test_scalar_mechanisms_run_on_a_secure_tape(mechanism):
    environment = Fitted(n_users=2, dimension=2, n_items=20, n_shown=3)
    policy = CoLin(**environment.sizes, privacy=PerReward(epsilon=2.0, mechanism=mechanism))
    assert policy.secure
    tape = secure_tape(log=200)
    played(policy, environment, 200, tape)
    assert tape.reads[1] == 200
    assert np.all(np.isfinite(tape.log))
    assert len(np.unique(tape.log)) > 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: PerReward(epsilon=0.0), "PerReward: expected epsilon between 1e-9 and 30"),
        (lambda: PerReward(epsilon=36.0), "PerReward: expected epsilon between 1e-9 and 30"),
        (lambda: NoisySums(epsilon=36.0, horizon=9), "NoisySums: expected epsilon between 1e-9"),
        (lambda: CoLin(**SIZES, epsilon=1e-10), "CoLin: expected epsilon between 1e-9 and 30"),
        (lambda: PerReward(epsilon=1.0, mechanism="gaussian"), "mechanism one of auto, laplace"),
        (lambda: NoisySums(epsilon=1.0, delta=1.0, horizon=9), r"delta in \[0, 1\)"),
        (lambda: NoisySums(epsilon=1.0, trust="nobody", horizon=9), "trust one of local, central"),
        (lambda: NoisySums(epsilon=1.0, continual="toeplitz", horizon=9), "continual 'tree'"),
        (lambda: NoisySums(epsilon=1.0), "horizon or visits given"),
        (lambda: NoisySums(epsilon=1.0, statistic="b", horizon=9), "statistic 'sums'"),
        (lambda: NoisySums(epsilon=1.0, horizon=0), "horizon >= 1"),
        (lambda: Published(epsilon=1.0, trust="central", visits=9), "horizon given"),
        (lambda: Published(epsilon=-1.0, horizon=9), "Published: expected epsilon > 0"),
        (lambda: Theory(failure_prob=0.0), r"failure_prob in \(0, 1\)"),
        (lambda: Theory(norm_bound=-1.0), "norm_bound > 0"),
        (
            lambda: CoLin(**SIZES, privacy=2.0),
            "privacy PerReward, Residual, NoisySums, Published or None",
        ),
        (lambda: CoLin(**SIZES, regularisation="much"), "regularisation > 0 or 'auto'"),
        (lambda: CoLin(**SIZES, regularisation=0.0), "regularisation > 0"),
        (lambda: CoLin(**SIZES, reward_range=(1.0, 0.0)), "reward_range"),
        (lambda: CoLin(**SIZES, exploration="much"), "exploration >= 0"),
        (
            lambda: CoLin(**SIZES, exploration=Theory(), privacy=NoisySums(epsilon=1.0, horizon=9)),
            "exploration a number with NoisySums",
        ),
        (
            lambda: CoLin(
                **SIZES,
                exploration=Theory(),
                privacy=PerReward(epsilon=1.0, mechanism="laplace"),
            ),
            "exploration a number with Laplace noise",
        ),
    ],
)
def test_what_means_nothing_is_refused_when_it_is_made(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_a_residual_costs_what_the_less_private_of_its_two_questions_costs():
    """Many rewards may all be asked whether they are near, which composes worse than the bins."""
    hidden, sizes = Residual(epsilon=2.5), Sizes(1, 1, 1, 0.0, 1.0)
    whole = hidden.guarantee(sizes).for_user(rounds=50, delta=1e-6).epsilon
    each = [composed_epsilon([(m.release, 50)], 1e-6) for m in hidden.mechanisms(sizes)]
    assert len(each) == 2
    assert whole >= max(each) - 1e-6


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 1.0, 30.0])
def test_a_bit_is_kept_with_one_probability_everywhere(epsilon):
    keep = keep_probability(epsilon)
    assert RandomizedResponse(epsilon=epsilon).keep == keep
    assert KAryResponse(epsilon=epsilon, options=2).keep == keep
    assert Corruption.optimal(epsilon).response_probabilities(1).tolist() == [[1 - keep, keep]]
    bit = LinUCB(**SIZES, privacy=PerReward(epsilon=epsilon, mechanism="bit"))
    stated = {policy.guarantee(10).epsilon for policy in (bit, KLUCBCF(n_arms=2, epsilon=epsilon))}
    assert stated == {RandomizedResponse(epsilon=epsilon).release.epsilon}


def test_rewards_that_are_left_out_are_counted_in_the_result():
    environment = Fitted(n_users=3, dimension=4, n_items=30, n_shown=5)
    for visits, left_out in ((10, 30), (20, 0)):  # everybody comes 20 times
        sums = NoisySums(epsilon=1.0, visits=visits)
        policy = LinUCB(**environment.sizes, privacy=sums, reward_range=(-1.0, 1.0))
        result = tacit.simulate(policy, environment, horizon=60, repetitions=2)
        assert result.final("left_out").tolist() == [left_out] * 2
