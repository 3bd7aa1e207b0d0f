"""P-IMED-CF and GLR-klUCB-CF: against the box, in bounded memory, with late feedback, by regret."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from oracles import changing as oracle
from tacit.arms import BOCPDKLUCBCF, GLRKLUCBCF, PIMEDCF, SWKLUCBCF, Riser, Rotating, Switching
from tacit.arms.change_test import (
    largest_odds,
    largest_ratio,
    log_probability,
    new_history,
    remember,
)
from tacit.arms.loops import corrupt
from tacit.arms.policies.p_imed_cf import RESTART
from tacit.arms.table import reward
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import CHOICE, seeded_tape, uniform

CHANGING = Switching(means=((0.8, 0.5, 0.2), (0.1, 0.3, 0.2), (0.1, 0.9, 0.2)))
RISER = Riser(n_arms=3, segments=4)
every_seed = pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=400))
def test_buckets_hold_everything_and_the_test_is_its_definition(values):
    history, buckets = new_history(1), []
    for value in values:
        remember(history, 0, value)
        oracle.insert(buckets, value)
    sizes = 2 ** np.arange(history.held.shape[1])
    assert (history.held[0] * sizes).sum() == len(values)
    assert history.held.max() <= 8
    found = largest_ratio(history, 0, len(values), sum(values))
    assert found == pytest.approx(oracle.largest_ratio(buckets), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("epsilon", [None, 2.0])
@every_seed
@pytest.mark.parametrize("environment", [CHANGING, RISER], ids=["switching", "riser"])
def test_p_imed_cf_is_its_box(epsilon, seed, environment):
    T, policy = 2500, PIMEDCF(n_arms=3, epsilon=epsilon)
    table, trace = environment.table(seed, 0, T), environment.trace(T, np.array([T]), record=True)
    policy.play(policy.start(table), table, seeded_tape(seed), trace, 0, T)
    tape = seeded_tape(seed)

    def bit(t, a, r):
        return r if epsilon is None else corrupt(policy.params.feedback.ends, tape, t, a, r)

    decisions, restarts = oracle.p_imed_cf(
        3, T, lambda t, a: reward(table, t, a), bit, p=policy.params.keep
    )
    assert trace.decisions.tolist() == decisions
    assert restarts or (environment, seed) != (CHANGING, 0)


def glr(environment, seed, T, epsilon, kind=GLRKLUCBCF, **changes):
    """Return decisions and restarts of the policy and, with `changes`, of the oracle."""
    policy, tape = kind(n_arms=3, horizon=T, epsilon=epsilon), seeded_tape(seed)
    table, trace = environment.table(seed, 0, T), environment.trace(T, np.array([T]), record=True)
    state = policy.start(table)
    policy.play(state, table, seeded_tape(seed), trace, 0, T)
    low, high = policy.params.feedback.ends[0]
    found = oracle.glr_klucb(
        3,
        T,
        lambda t, a: reward(table, t, a),
        lambda t, a, r: (
            r if epsilon is None else corrupt(policy.params.feedback.ends, tape, t, a, r)
        ),
        lambda t: uniform(tape, t, 0, CHOICE),
        lambda q: low + (high - low) * q,
        **changes,
    )
    return (trace.decisions.tolist(), int(state.now[1])), found


@pytest.mark.parametrize("epsilon", [None, 2.0])
@every_seed
@pytest.mark.parametrize("environment", [CHANGING, RISER], ids=["switching", "riser"])
def test_glr_klucb_cf_is_its_algorithm(epsilon, seed, environment):
    (decisions, restarts), expected = glr(environment, seed, 900, epsilon)
    assert decisions == expected[0]
    assert restarts == len(expected[1])
    assert restarts or environment is not CHANGING or epsilon is not None


@pytest.mark.parametrize("epsilon", [None, 2.0])
@every_seed
@pytest.mark.parametrize("environment", [CHANGING, RISER], ids=["switching", "riser"])
def test_bocpd_klucb_cf_compares_forecasters(epsilon, seed, environment):
    how = {"kind": BOCPDKLUCBCF, "changed": oracle.forecasters_say}
    (decisions, restarts), expected = glr(environment, seed, 900, epsilon, **how)
    assert decisions == expected[0]
    assert restarts == len(expected[1])
    if environment is CHANGING and epsilon is None:
        assert restarts
        how["changed"] = lambda buckets, n, T: oracle.forecasters_say(buckets, n, T / 1e6)
        assert decisions != glr(environment, seed, 900, epsilon, **how)[1][0]


def test_odds_are_a_product_of_predictions():
    """Fractions too, which are integrated; and with no change they are seldom large."""
    rng = np.random.default_rng(0)
    for n, total in [(1, 0.0), (1, 1.0), (7, 3.0), (40, 40.0), (30, 12.25), (5, 4.5)]:
        assert log_probability(n, total) == pytest.approx(oracle.laplace(n, total), abs=1e-4)
    alarms = 0
    for _ in range(2000):
        bits = (rng.random(100) < rng.random()).astype(float)
        history = new_history(1)
        for bit in bits:
            remember(history, 0, bit)
        alarms += largest_odds(history, 0, 100, bits.sum()) > np.log(100 * 20.0)
    # At most 1 in 20 by Markov's inequality: 5 standard errors above it is 0.074.
    assert alarms / 2000 < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 2000)
    history = new_history(1)
    for bit in [0.0] * 50 + [1.0] * 50:
        remember(history, 0, bit)
    assert largest_odds(history, 0, 100, 50.0) > np.log(100 * 20.0)


@pytest.mark.parametrize("changes", [{"share": 0.2}, {"every": 9}])
def test_the_algorithm_has_teeth(changes):
    (decisions, _), other = glr(CHANGING, 0, 900, None, **changes)
    assert decisions != other[0]


def test_the_box_has_teeth():
    table = RISER.table(0, 0, 2500)

    def run(**changes):
        return oracle.p_imed_cf(
            3, 2500, lambda t, a: reward(table, t, a), lambda t, a, r: r, **changes
        )[0]

    right = run()
    assert run(k0=0.2) != right
    assert run(c1=1.5) != right
    assert run(c2=-2.0) != right


def test_memory_does_not_grow():
    state = PIMEDCF(n_arms=2, epsilon=1.0).start()
    parts = [np.asarray(part) for part in (*state.history, state.means, state.probe, state.now)]
    assert sum(part.nbytes for part in parts) < 10_000


@pytest.mark.parametrize("kind", [PIMEDCF, GLRKLUCBCF, BOCPDKLUCBCF])
def test_feedback_from_before_a_restart_is_dropped(kind):
    policy = kind(n_arms=2, **({} if kind is PIMEDCF else {"horizon": 1000}))
    table = Switching(means=((0.9, 0.4), (0.2, 0.1))).table(0, 0, 1000)
    state, tape = policy.start(), seeded_tape(0)
    rounds = []
    for t in range(1000):
        rounds.append(policy.select(state, tape, t, np.arange(2)))
        policy.update(state, tape, t, rounds[-1], reward(table, t, rounds[-1]))
    restart = int(state.now[RESTART] if kind is PIMEDCF else state.now[0])
    assert 500 < restart < 600
    before = state.counts.copy()
    kind.kernels.learn_from_report(policy.params, state, restart - 1, rounds[restart - 1], 1.0)
    assert (state.counts == before).all()


@pytest.mark.parametrize("kind", [PIMEDCF, GLRKLUCBCF, BOCPDKLUCBCF])
def test_late_feedback_delays_and_does_no_more(kind):
    T, delay = 6000, 25
    policy = kind(n_arms=2, **({} if kind is PIMEDCF else {"horizon": T}))
    table, tape = Rotating(n_arms=2, segments=2).table(0, 0, T), seeded_tape(0)
    state, waiting, wrong = policy.start(), [], 0
    for t in range(T):
        arm = policy.select(state, tape, t, np.arange(2))
        wrong += arm != (t >= T // 2)
        waiting.append((t, arm))
        if len(waiting) > delay:
            when, a = waiting.pop(0)
            policy.update(state, tape, when, a, reward(table, when, a))
    assert wrong < 0.15 * T


@pytest.mark.skipif(INTERPRETED, reason="millions of rounds need compiled kernels")
@pytest.mark.parametrize(
    ("environment", "times"),
    [(Rotating(n_arms=2), 2.0), (Rotating(n_arms=10, segments=1), 2.0), (Riser(n_arms=5), 1.0)],
    ids=["rotating", "no change", "riser"],
)
def test_told_nothing_it_beats_the_window(environment, times):
    T, K = 50_000, environment.n_arms

    def regret(policy):
        result = tacit.simulate(policy, environment, horizon=T, repetitions=8, checkpoints=1)
        return result.final("regret").mean()

    window = SWKLUCBCF(n_arms=K, horizon=T, n_segments=environment.n_segments(T), epsilon=1.0)
    assert times * regret(PIMEDCF(n_arms=K, epsilon=1.0)) < regret(window)
    assert regret(GLRKLUCBCF(n_arms=K, horizon=T, epsilon=1.0)) < 1.2 * regret(window)
