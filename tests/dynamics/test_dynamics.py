"""The learning dynamics against a slow oracle, and its engines against each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from oracles import dynamics as oracle
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import CHOICE, recorded_tape, secure_tape, seeded_tape
from tacit.dynamics import LearningDynamics, SocialOptions, edit_adoption
from tacit.dynamics.table import signal
from tacit.graphs import Graph, complete

QUALITIES = (0.9, 0.5, 0.2)
M = len(QUALITIES)
ROUNDS = 3
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (3, 5), (5, 6), (2, 6)]
NETWORK = Graph.from_edges(EDGES)
N = NETWORK.n_nodes
SETTING = {"epsilon": 2.0, "beta": 0.8, "mu": 0.1, "tokens": 5, "walk_length": 2}


def policy(engine, n_agents=N, **changes):
    return LearningDynamics(n_options=M, n_agents=n_agents, engine=engine, **{**SETTING, **changes})


def environment(network=NETWORK, n_agents=0):
    return SocialOptions(qualities=QUALITIES, n_agents=n_agents, network=network)


ENVIRONMENT = environment()


def signals_of(table, rounds=ROUNDS):
    return [[bool(signal(table, t, j)) for j in range(M)] for t in range(rounds)]


def played(chosen, table, *, runs, rounds=ROUNDS, place=ENVIRONMENT):
    """Return adoptions (runs, rounds, agents), or counts where there are no agents."""
    kept = []
    start = chosen.start(table)
    for run in range(runs):
        state = type(start)(*(array.copy() for array in start))
        trace = place.trace(rounds, np.array([rounds]))
        tape = seeded_tape(11, run)
        rows = []
        for t in range(rounds):
            chosen.play(state, table, tape, trace, t, t + 1)
            rows.append(state.adoption.copy() if state.adoption.size else state.counts.copy())
        kept.append(rows)
    return np.array(kept)


def by_the_oracle(table, *, runs, seed=5, **changes):
    setting = {**SETTING, **changes}
    keep_one, keep_zero = oracle.symmetric(setting.pop("epsilon"))
    length = setting.pop("walk_length")
    rng = np.random.default_rng(seed)
    near = [NETWORK.neighbours(a).tolist() for a in range(N)]
    good = signals_of(table)
    kept = [
        oracle.simulate(
            near, good, keep_one=keep_one, keep_zero=keep_zero, length=length, rng=rng, **setting
        )
        for _ in range(runs)
    ]
    return np.array([[[-1 if x is None else x for x in row] for row in run] for run in kept])


def features(adoptions):
    """Who adopts what in each round, and the squared counts: (runs, features)."""
    hot = adoptions[..., None] == np.arange(M)
    squares = hot.sum(axis=2).astype(float) ** 2
    return np.concatenate(
        [hot.reshape(len(hot), -1).astype(float), squares.reshape(len(hot), -1)], axis=1
    )


def largest_z(left, right):
    """Return the largest difference of means in standard errors, over features that vary."""
    error = np.sqrt(left.var(axis=0) / len(left) + right.var(axis=0) / len(right))
    moving = error > 0
    gap = np.abs(left.mean(axis=0) - right.mean(axis=0))
    assert np.all(gap[~moving] == 0)
    return float((gap[moving] / error[moving]).max())


slow = pytest.mark.skipif(INTERPRETED, reason="thousands of runs need compiled kernels")

# Each comparison looks at 72 means; five standard errors give a false alarm rate below 5e-5.
FIVE = 5.0
# Nearly all of the error is that of the 400 runs of the oracle.
RUNS = 3000

CASES = {
    "corrected": ({}, {}),
    "published": ({"variant": "published"}, {"silent": True}),
    "memoised": ({"memoised": True}, {"memoised": True}),
    "smoothed": ({"smoothed": True, "rho": 0.4}, {"rho": 0.4}),
    "subsets": ({"encoding": "subset", "epsilon": 0.5}, {"subsets": 0.5}),
    "own epsilons": (
        {"epsilon": (4.0, 0.7, 2.0)},
        {"levels": [oracle.symmetric(e) for e in (4.0, 0.7, 2.0)]},
    ),
    "asynchronous": (
        {"wake_prob": 0.6, "loss": 0.3, "delay": 2},
        {"wake": 0.6, "loss": 0.3, "delay": 2},
    ),
}


@pytest.fixture(scope="module")
def expected():
    table = environment().table(0, 0, ROUNDS)
    return {
        name: features(by_the_oracle(table, runs=400, **slow)) for name, (_, slow) in CASES.items()
    }


@slow
@pytest.mark.parametrize("engine", ["tokens", "endpoints"])
@pytest.mark.parametrize("name", CASES)
def test_networked_engines_agree_with_the_oracle(engine, name, expected):
    fast, _ = CASES[name]
    table = environment().table(0, 0, ROUNDS)
    mine = features(played(policy(engine, **fast), table, runs=RUNS))
    assert largest_z(mine, expected[name]) < FIVE


@slow
@pytest.mark.parametrize(
    "wrong", [{"walk_length": 1}, {"epsilon": 4.0}, {"beta": 0.7}, {"tokens": 1}]
)
def test_the_comparison_notices_a_wrong_setting(wrong, expected):
    table = environment().table(0, 0, ROUNDS)
    mine = features(played(policy("endpoints", **wrong), table, runs=RUNS))
    assert largest_z(mine, expected["corrected"]) > FIVE


def population(engine, runs, *, tokens, rounds=2, network=None, n_agents=40, **changes):
    place = environment(network, n_agents if network is None else 0)
    table = place.table(0, 0, rounds)
    size = place.n_agents
    chosen = policy(engine, n_agents=size, tokens=tokens, **changes)
    kept = played(chosen, table, runs=runs, rounds=rounds, place=place)
    if engine != "crowd":
        kept = (kept[..., None] == np.arange(M)).sum(axis=2)
    counts = kept[..., :M].astype(float).reshape(runs, -1)
    return np.concatenate([counts, counts**2], axis=1)


@pytest.fixture(scope="module")
def walked():
    return population("endpoints", 2000, tokens=200, network=complete(40), walk_length=6)


@slow
@pytest.mark.parametrize("engine", ["mixed", "crowd"])
def test_mixing_engines_agree_with_long_walks(engine, walked):
    # 12 means: the false alarm rate is below 1e-5.
    assert largest_z(population(engine, 4000, tokens=200), walked) < FIVE


@slow
@pytest.mark.parametrize("tokens", [4, 12])
def test_dealing_agrees_with_long_walks(tokens):
    few = population("endpoints", 3000, tokens=tokens, network=complete(40), walk_length=6)
    assert largest_z(population("mixed", 3000, tokens=tokens), few) < FIVE


@slow
def test_tokens_agree_with_endpoints_on_a_network_of_their_own():
    ends = population("endpoints", 3000, tokens=4, network=NETWORK, walk_length=3)
    walks = population("tokens", 3000, tokens=4, network=NETWORK, walk_length=3)
    assert largest_z(ends, walks) < FIVE


@slow
def test_mixing_engines_are_wrong_for_short_walks():
    # Two cliques of 20 joined by one edge; agents of the same option sit together.
    left = [(a, b) for a in range(20) for b in range(a)]
    edges = [*left, *((a + 20, b + 20) for a, b in left), (0, 20)]
    place = environment(Graph.from_edges(edges), 0)
    table = place.table(0, 0, 1)
    for a in range(40):
        table = edit_adoption(table, a, 0 if a < 20 else 1)
    mine = {}
    for engine in ("endpoints", "mixed"):
        chosen = policy(engine, n_agents=40, tokens=200, walk_length=2)
        kept = played(chosen, table, runs=500, rounds=1, place=place)
        mine[engine] = (kept[:, 0, :20] == 0).mean(axis=1)[:, None]
    assert largest_z(mine["endpoints"], mine["mixed"]) > 4 * FIVE


@pytest.mark.parametrize("engine", ["tokens", "endpoints", "mixed", "crowd"])
@pytest.mark.parametrize("more", [{}, {"wake_prob": 0.5, "loss": 0.2, "delay": 2}])
def test_chunks_and_repeats_give_the_same_run(engine, more):
    place = environment()
    table = place.table(3, 0, 20)
    chosen = policy(engine, tokens=100, **more)
    kept = []
    for cuts in ([0, 20], [0, 20], [0, 1, 7, 20]):
        state, trace = chosen.start(table), place.trace(20, np.array([5, 20]), record=True)
        tape = seeded_tape(4)
        for first, last in itertools.pairwise(cuts):
            chosen.play(state, table, tape, trace, first, last)
        kept.append((*state, *trace, tape.reads))
    for other in kept[1:]:
        for left, right in zip(kept[0], other, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("engine", ["tokens", "endpoints", "mixed", "crowd"])
def test_every_perturbed_bit_is_counted(engine):
    place, rounds = environment(), 6
    table = place.table(0, 0, rounds)
    for variant in ("corrected", "published"):
        chosen = policy(engine, tokens=100, variant=variant)
        state, trace = chosen.start(table), place.trace(rounds, np.array([rounds]), record=True)
        tape = seeded_tape(1)
        chosen.play(state, table, tape, trace, 0, rounds)
        speakers = N + trace.decisions[:-1].sum() if variant == "published" else N * rounds
        assert tape.reads[1] == M * speakers


@pytest.mark.parametrize("engine", ["tokens", "endpoints", "mixed"])
def test_a_secure_tape_plays_too(engine):
    place = environment()
    table, trace = place.table(0, 0, 5), place.trace(5, np.array([5]))
    chosen = policy(engine, tokens=100)
    chosen.play(chosen.start(table), table, secure_tape(), trace, 0, 5)
    assert 0 < trace.measures[0, 0] < 0.9


@pytest.mark.parametrize(("engine", "size"), [("crowd", 5), ("mixed", 1001)])
def test_noise_on_counts_is_not_secure_and_says_so(engine, size):
    """Binomials of floating-point numbers are no exact sampler of the bits they stand for."""
    place = environment(None, size)
    chosen = policy(engine, n_agents=size, tokens=100)
    table, trace = place.table(0, 0, 1), place.trace(1, np.array([1]))
    assert not chosen.secure
    assert policy("mixed", n_agents=1000, tokens=100).secure
    with pytest.raises(
        ValueError, match="not exact on a secure tape: it is not drawn value by value"
    ):
        chosen.play(chosen.start(table), table, secure_tape(), trace, 0, 1)
    chosen.play(chosen.start(table), table, seeded_tape(0), trace, 0, 1)


def test_regret_popularity_and_traffic_are_what_they_say():
    place, rounds = environment(), 4
    table = place.table(0, 0, rounds)
    trace = place.trace(rounds, np.array([2, rounds]), record=True)
    chosen = policy("tokens", beta=0.9)
    chosen.play(chosen.start(table), table, seeded_tape(0), trace, 0, rounds)
    start = np.bincount(np.arange(N) % M, minlength=M)
    before = np.vstack([start, trace.decisions[:-1]])
    shares = [row / row.sum() if row.sum() else np.full(M, 1 / M) for row in before]
    assert trace.measures[-1, 0] == pytest.approx(0.9 - np.mean(shares @ np.array(QUALITIES)))
    after = trace.decisions[-1]
    np.testing.assert_allclose(trace.popularity[-1], after / after.sum())
    # A token makes two hops at most; three bits of options and two of the length field.
    assert 0 < trace.measures[-1, 3] < 2 * 5
    assert trace.measures[-1, 4] == pytest.approx(5 * trace.measures[-1, 3])


@slow
def test_messages_of_other_engines_are_expected_ones():
    sent = {}
    for engine in ("tokens", "mixed"):
        place = environment()
        table, trace = place.table(0, 0, 2000), place.trace(2000, np.array([2000]))
        chosen = policy(engine, tokens=100)
        chosen.play(chosen.start(table), table, seeded_tape(0), trace, 0, 2000)
        sent[engine] = trace.measures[0, 3]
    # 2.8 million hops: 5 standard errors are at most 0.0015 of them.
    assert sent["tokens"] == pytest.approx(sent["mixed"], rel=5 * 0.0005)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 0.0}, "epsilon between 1e-09 and 30, or infinite, got 0.0"),
        ({"beta": 0.4}, "beta in [0.5, 1], got 0.4"),
        ({"mu": 1.5}, "mu in [0, 1], got 1.5"),
        ({"tokens": 0}, "tokens >= 1, got 0"),
        ({"n_options": 64}, "n_options in 1..63, got 64"),
        ({"walk_length": 0}, "walk_length in 1..65535, got 0"),
        ({"engine": "teleport"}, "got 'teleport'"),
        ({"variant": "fixed"}, "got 'fixed'"),
        ({"encoding": "none"}, "got 'none'"),
        ({"wake_prob": 0.0}, "wake_prob in (0, 1], got 0.0"),
        ({"loss": 1.0}, "loss in [0, 1), got 1.0"),
        ({"delay": -1}, "delay >= 0, got -1"),
        ({"engine": "crowd", "memoised": True}, "memoised False for a crowd"),
        ({"epsilon": math.nan}, "epsilon between 1e-09 and 30, or infinite, got nan"),
    ],
)
def test_bad_parameters_name_themselves(changes, words):
    with pytest.raises(ValueError, match="LearningDynamics") as caught:
        LearningDynamics(**{"n_options": M, "n_agents": N, **SETTING, **changes})
    assert words in str(caught.value)


def test_every_hop_of_every_token_needs_a_name():
    table = environment().table(0, 0, 1)
    with pytest.raises(ValueError, match=f"expected tokens below 2\\^32 / {N}"):
        policy("tokens", tokens=1 << 31).start(table)
    with pytest.raises(ValueError, match="expected delay below 256, got 256"):
        policy("tokens", delay=256).start(table)
    policy("endpoints", delay=256).start(table)


def test_what_does_not_fit_the_table_is_refused():
    table = environment(None, 10).table(0, 0, 1)
    with pytest.raises(ValueError, match="mixed or crowd without a network"):
        policy("tokens", n_agents=10).start(table)
    with pytest.raises(ValueError, match="n_agents"):
        policy("mixed", n_agents=11).start(table)
    chosen = policy("mixed", n_agents=10)
    trace = environment(None, 10).trace(1, np.array([1]))
    with pytest.raises(ValueError, match="seeded or secure"):
        chosen.play(chosen.start(table), table, recorded_tape({CHOICE: [[0.5]]}), trace, 0, 1)


@pytest.mark.parametrize("bad", [{"qualities": (1.5,)}, {"qualities": ()}, {"n_agents": 0}])
def test_bad_worlds_name_themselves(bad):
    with pytest.raises(ValueError, match="SocialOptions: expected " + next(iter(bad))):
        SocialOptions(**{"qualities": QUALITIES, "n_agents": 5, **bad})


@pytest.mark.parametrize("engine", ["mixed", "crowd"])
def test_one_agent_and_one_option(engine):
    place = SocialOptions(qualities=(0.5,), n_agents=1)
    table, trace = place.table(0, 0, 10), place.trace(10, np.array([10]))
    chosen = LearningDynamics(
        n_options=1, n_agents=1, epsilon=1.0, beta=0.9, mu=0.0, tokens=100, engine=engine
    )
    chosen.play(chosen.start(table), table, seeded_tape(0), trace, 0, 10)
    assert trace.measures[0, 0] == pytest.approx(0.0)
