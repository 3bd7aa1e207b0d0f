"""The audit of policies: the outputs are those of a plain run, and halved noise is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tacit.arms import GAP, KLUCBCF, UCB1, Bernoulli, Uniform
from tacit.arms.neighbours import edit_rewards
from tacit.cli import app
from tacit.contextual import CoLin, Fitted, Synthetic
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import secure_tape, seeded_tape
from tacit.diffusion import ChangingTruth, OutsiderPrivateDiffusion
from tacit.dynamics import LearningDynamics, SocialOptions
from tacit.privacy import NeighbouringPair
from tacit.privacy.auditing.mechanisms import audit_mechanism
from tacit.simulation import audits
from tacit.simulation.audits import PolicyRun, audit_policy, neighbours_of, releasing_horizon
from tiers import tiered

slow_if_interpreted = pytest.mark.skipif(
    INTERPRETED,
    reason="thousands of games; compiled and interpreted kernels are compared elsewhere",
)
ENVIRONMENT = Bernoulli(means=(0.3, 0.7))
HORIZON = 12
GAMES, ROUNDS = (3, 4) if INTERPRETED else (20, 12)
AGENTS = {"n_options": 3, "n_agents": 5, "epsilon": 1.0, "beta": 0.9, "mu": 0.01}
TRUTH, OPTIONS = ChangingTruth(dominance=0.8), SocialOptions(qualities=(0.9, 0.5, 0.1), n_agents=5)
USERS = Synthetic(n_users=3, dimension=2)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(
    ("policy", "environment"),
    [
        (KLUCBCF(n_arms=2, epsilon=1.0), ENVIRONMENT),
        (Uniform(n_arms=2), ENVIRONMENT),
        (CoLin(n_users=3, dimension=2, epsilon=1.0), USERS),
        (OutsiderPrivateDiffusion(n_states=5, epsilon=1.0), TRUTH),
        (
            OutsiderPrivateDiffusion(n_states=5, epsilon=1.0, variant="published", horizon=500),
            TRUTH,
        ),
        (LearningDynamics(**AGENTS), OPTIONS),
        (LearningDynamics(engine="crowd", **AGENTS), OPTIONS),
    ],
    ids=lambda value: value.name,
)
def test_repetitions_are_plain_runs(policy, environment, secure):
    """Every bit is that of a game played by itself."""
    if secure and not policy.secure:
        pytest.skip("its noise has no exact sampler")
    table = environment.table(0, 0, ROUNDS)
    run = PolicyRun(
        policy=policy, environment=environment, horizon=ROUNDS, released=8, secure=secure
    )
    outputs = run(table, GAMES, seed=5)
    keys = np.random.default_rng(5).integers(0, 2**64, (GAMES, 4), np.uint64)
    for row, key in zip(outputs, keys, strict=True):
        tape = secure_tape(log=8) if secure else seeded_tape(0, log=8)
        tape.log[:] = np.nan
        words = 4 if secure else 2
        tape.key[:words] = tape.key[4 : 4 + words] = key[:words]
        trace = environment.trace(ROUNDS, np.array([ROUNDS]), record=True)
        policy.play(policy.start(table), table, tape, trace, 0, ROUNDS)
        decided = trace.decisions
        np.testing.assert_array_equal(row, np.concatenate([tape.log, np.ravel(decided)]))
    assert len(run.names) == outputs.shape[1]
    assert len(np.unique(outputs, axis=0)) > 1
    unwatched = PolicyRun(
        policy=policy,
        environment=environment,
        horizon=ROUNDS,
        released=8,
        decisions=False,
        secure=secure,
    )
    np.testing.assert_array_equal(unwatched(table, GAMES, seed=5), outputs[:, :8])


@slow_if_interpreted
@pytest.mark.parametrize(
    ("pairs", "least"), tiered([(4, 0.8), (18, 0.9)], lambda each: each[0] == 4)
)
def test_a_private_policy_stands_and_its_twin_with_half_the_noise_falls(pairs, least):
    """KLUCBCF costs exactly epsilon for one reward: claimed as it is, and twice as private."""
    honest, doubled = KLUCBCF(n_arms=2, epsilon=1.0), KLUCBCF(n_arms=2, epsilon=2.0)
    known = neighbours_of(ENVIRONMENT, HORIZON, limit=pairs)
    terms = {"horizon": HORIZON, "runs": 20_000, "neighbours": known}
    found = audit_policy(honest, ENVIRONMENT, **terms)
    assert found.result.verdict == "not refuted"
    assert found.result.lower_bound > least
    found = audit_policy(doubled, ENVIRONMENT, **terms, epsilon=1.0)
    assert found.result.verdict == "refuted"


@slow_if_interpreted
def test_paper_000_falls_as_published_by_its_point_mass_and_stands_corrected():
    environment = ChangingTruth(dominance=0.8)
    # The atom has mass e^-(epsilon b) = 1/500: of 50,000 tested runs 100 are expected under one input
    # and none under the other, so that the bound, at least 2, fails once in more than 10^9 seeds.
    question = {"horizon": 1, "runs": 100_000, "released": 1, "decisions": False, "alpha": 1e-4}
    question["neighbours"] = environment.neighbours("loss", 1, limit=1)
    published = OutsiderPrivateDiffusion(n_states=5, epsilon=0.1, variant="published", horizon=500)
    found = audit_policy(published, environment, epsilon=0.1, **question)
    assert found.result.verdict == "refuted"
    corrected = OutsiderPrivateDiffusion(n_states=5, epsilon=1.0)
    assert audit_policy(corrected, environment, **question).result.verdict == "not refuted"


@slow_if_interpreted
def test_a_policy_without_noise_falls_by_its_decisions():
    found = audit_policy(UCB1(n_arms=2), ENVIRONMENT, horizon=HORIZON, runs=2_000, epsilon=1.0)
    assert found.result.verdict == "refuted"
    assert "decision" in found.result.event
    blind = audit_policy(
        Uniform(n_arms=2), ENVIRONMENT, horizon=HORIZON, runs=2_000, epsilon=0.05, alpha=0.01
    )
    assert blind.result.verdict == "nothing was released"


def test_neighbours_differ_in_one_reward_or_one_round():
    for unit, changed in (("reward", 1), ("round", 2)):
        for pair in neighbours_of(ENVIRONMENT, HORIZON, unit=unit):
            left = {*zip(pair.left.edit_rounds, pair.left.edit_arms, strict=True)}
            right = {*zip(pair.right.edit_rounds, pair.right.edit_arms, strict=True)}
            assert left == right
            assert len(left) == changed
            assert len({t for t, _ in left}) == 1
            assert (pair.left.kind, pair.left.key0) == (pair.right.kind, pair.right.key0)
            np.testing.assert_array_equal(pair.left.recorded, pair.right.recorded)
            assert set(pair.left.edit_values) == {0.0}
            assert set(pair.right.edit_values) == {1.0}


def test_pairs_reach_from_the_first_round_to_the_last():
    crowded = Bernoulli(means=(0.5,) * 20)
    for environment, horizon in ((ENVIRONMENT, 40), (crowded, 40), (ENVIRONMENT, 1)):
        pairs = neighbours_of(environment, horizon)
        changed = [int(pair.left.edit_rounds[0]) for pair in pairs]
        assert (changed[0], changed[-1]) == (0, horizon - 1)
        assert len({pair.words for pair in pairs}) == len(pairs) <= 18


def test_pairs_change_a_reward_over_its_whole_range():
    pair = neighbours_of(Fitted(), 5)[0]
    assert (pair.left.edit_values[0], pair.right.edit_values[0]) == (-1.0, 1.0)
    assert "-1 against 1" in pair.words


@slow_if_interpreted
def test_given_pairs_are_used():
    table = ENVIRONMENT.table(0, 0, HORIZON)
    pairs = [
        NeighbouringPair(table, edit_rewards(table, [(HORIZON - 1, 0, 1.0)]), "the last reward")
    ]
    policy = UCB1(n_arms=2)
    found = audit_policy(
        policy, ENVIRONMENT, horizon=HORIZON, runs=1_000, epsilon=0.1, neighbours=pairs
    )
    assert found.worst.words == "the last reward"
    assert not found.result.refuted  # no decision comes after it


def test_bad_questions_are_refused():
    with pytest.raises(ValueError, match="claims no finite one"):
        audit_policy(UCB1(n_arms=2), ENVIRONMENT, horizon=5)
    with pytest.raises(ValueError, match="unit"):
        neighbours_of(ENVIRONMENT, 5, unit="household")
    with pytest.raises(ValueError, match="to look at"):
        PolicyRun(
            policy=UCB1(n_arms=2), environment=ENVIRONMENT, horizon=5, released=0, decisions=False
        )


@slow_if_interpreted
@pytest.mark.parametrize(
    ("variant", "verdict"), [("corrected", "not refuted"), ("published", "refuted")]
)
def test_agents_are_audited_by_what_one_begins_with(variant, verdict):
    """alpha = 1e-4; silence is told from speech with certainty."""
    environment = SocialOptions(qualities=(0.9, 0.5, 0.1), n_agents=5)
    policy = LearningDynamics(
        n_options=3, n_agents=5, epsilon=1.0, beta=0.9, mu=0.01, variant=variant
    )
    found = audit_policy(policy, environment, horizon=1, epsilon=1.0, runs=4_000, alpha=1e-4)
    assert found.result.verdict == verdict


@slow_if_interpreted
@pytest.mark.parametrize("changed", tiered((15, 16, 17, 150), (16, 150).__contains__))
def test_what_is_released_late_is_looked_at_too(changed):
    """Epsilon 8 against a claim of 1, in a round that 0.1 never saw; alpha = 1e-4."""
    table = ENVIRONMENT.table(0, 0, 160)
    pairs = [
        NeighbouringPair(*(edit_at(table, changed, value) for value in (0.0, 1.0)), "a late round")
    ]
    found = audit_policy(
        KLUCBCF(n_arms=2, epsilon=8.0),
        ENVIRONMENT,
        horizon=160,
        epsilon=1.0,
        runs=4_000,
        alpha=1e-4,
        neighbours=pairs,
        decisions=False,
    )
    assert found.result.verdict == "refuted", found.sentence()
    honest = audit_policy(
        KLUCBCF(n_arms=2, epsilon=1.0),
        ENVIRONMENT,
        horizon=160,
        runs=4_000,
        alpha=1e-4,
        neighbours=pairs,
    )
    assert honest.result.verdict == "not refuted", honest.sentence()


def edit_at(table, t, value):
    return edit_rewards(table, [(t, arm, value) for arm in range(2)])


@slow_if_interpreted
def test_where_nothing_is_released_the_audit_says_so():
    gap = GAP(n_arms=2, epsilon=1.0, horizon=2000, failure_prob=0.9)
    short = audit_policy(gap, ENVIRONMENT, horizon=20, runs=1_000)
    assert short.result.verdict == "nothing was released"
    assert "was not put to the test" in short.sentence()
    found = audit_policy(gap, ENVIRONMENT, runs=1_000)
    assert found.result.verdict == "not refuted", found.sentence()
    nothing = audit_policy(Uniform(n_arms=2), ENVIRONMENT, horizon=5, runs=1_000)
    assert nothing.result.verdict == "nothing was released"
    noiseless = audit_policy(UCB1(n_arms=2), ENVIRONMENT, horizon=12, runs=2_000, epsilon=1.0)
    assert noiseless.result.verdict == "refuted"


@slow_if_interpreted
def test_the_horizon_is_the_one_at_which_something_is_released():
    gap = GAP(n_arms=2, epsilon=1.0, horizon=2000, failure_prob=0.1)
    rounds = releasing_horizon(lambda _: gap, ENVIRONMENT)
    assert 20 < rounds < 2000
    tape = seeded_tape(0, 0)
    trace = ENVIRONMENT.trace(rounds, np.array([rounds]))
    table = ENVIRONMENT.table(0, 0, rounds)
    gap.play(gap.start(table), table, tape, trace, 0, rounds)
    assert tape.reads[1] > 0
    assert releasing_horizon(lambda _: KLUCBCF(n_arms=2, epsilon=1.0), ENVIRONMENT) == 20


def test_a_policy_without_noise_is_not_played_to_see_when_it_releases(monkeypatch):
    monkeypatch.setattr(audits, "_play_once", lambda *_: pytest.fail("played"))
    assert releasing_horizon(lambda _: UCB1(n_arms=2), ENVIRONMENT) == 20
    with pytest.raises(ValueError, match="because ucb1 claims no finite one"):
        audit_policy(UCB1(n_arms=2), ENVIRONMENT)


def test_an_audit_without_end_is_refused_before_it_begins():
    with pytest.raises(ValueError, match="end within an hour"):
        audit_policy(KLUCBCF(n_arms=2, epsilon=1.0), ENVIRONMENT, horizon=12, runs=99_999_999_999)
    with pytest.raises(ValueError, match=r"expected runs in \[8, 1,000,000,000\]"):
        audit_mechanism("laplace", {"epsilon": 1.0}, runs=99_999_999_999)


OWN = [
    "--environment",
    "own_things:tide:n_arms=2",
    "--horizon",
    "4",
    "--alpha",
    "0.0001",
]


@slow_if_interpreted
@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("own_things:Coy", 0),
        ("own_things:Coy:spent=2", 1),
        pytest.param("own_things:Coy:epsilon=2", 0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("runs", tiered((1500, 4000), lambda runs: runs == 1500))
def test_a_policy_and_an_environment_in_plain_python_are_audited(policy, code, runs, monkeypatch):
    """alpha = 1e-4; the second spends twice what it says."""
    monkeypatch.chdir(Path(__file__).parent)
    done = CliRunner().invoke(app, ["audit", policy, *OWN, "--runs", str(runs)])
    assert done.exit_code == code, done.output
    assert "plain Python" in done.output


def test_an_own_policy_is_checked_and_its_audit_with_it(monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    done = CliRunner().invoke(app, ["check", "own_things:Coy:spent=2", "--horizon", "8"])
    assert done.exit_code == 1, done.output
    assert "is refuted" in " ".join(done.output.split())


def test_values_beyond_those_looked_at_are_counted(monkeypatch):
    monkeypatch.setattr(audits, "_COLUMNS", 8)
    policy = KLUCBCF(n_arms=2, epsilon=1.0)
    pair = neighbours_of(ENVIRONMENT, 8, limit=1)
    found = audit_policy(policy, ENVIRONMENT, horizon=12, runs=100, neighbours=pair)
    assert found.result.overlooked == 4
    assert "The last 4 released values of a run were not looked at." in found.sentence()
    whole = audit_policy(policy, ENVIRONMENT, horizon=8, runs=100, neighbours=pair)
    assert "not looked at" not in whole.sentence()
