"""What agents adopt at first, and options whose quality changes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from oracles import dynamics as oracle
from tacit.core.kernels import INTERPRETED
from tacit.core.registry import build_environment
from tacit.core.tapes import seeded_tape
from tacit.dynamics import LearningDynamics, SocialOptions, edit_adoption
from tacit.dynamics.table import first_adoptions, first_counts, signal
from tacit.graphs import erdos_renyi
from tiers import tiered

ENGINES = ("tokens", "endpoints", "mixed", "crowd")
NETWORK = erdos_renyi(60, 0.2, seed=3)
SHARES = (0.5, 0.1, 0.25)
TURNED = ((0.9, 0.5, 0.1), (0.1, 0.5, 0.9))


def dynamics(engine, n_agents=60, **changes):
    settings = {"epsilon": 2.0, "beta": 0.9, "mu": 0.05, "tokens": 10, "walk_length": 3, **changes}
    return LearningDynamics(n_options=3, n_agents=n_agents, engine=engine, **settings)


def play(policy, environment, rounds, table=None):
    table = environment.table(1, 0, rounds) if table is None else table
    trace = environment.trace(rounds, np.arange(1, rounds + 1), record=True)
    state = policy.start(table)
    adoptions = [state.adoption.copy()]
    for t in range(rounds):
        policy.play(state, table, seeded_tape(2), trace, t, t + 1)
        adoptions.append(state.adoption.copy())
    return trace, adoptions


@pytest.mark.parametrize("n", [1, 2, 7, 60, 1000, 4096, 99_991])
def test_first_adopters_are_as_many_as_told_and_spread_evenly(n):
    table = SocialOptions(qualities=TURNED[0], n_agents=n, popularity=SHARES).table(0, 0, 1)
    agents = np.arange(n)
    adopted = first_adoptions(table, agents)
    counts = np.bincount(np.where(adopted < 0, 3, adopted), minlength=4)
    np.testing.assert_array_equal(counts, first_counts(table))
    assert np.abs(counts[:3] - n * np.array(SHARES)).max() <= 1
    if n >= 1000:  # no tenth of the numbers has many more of an option than another
        of_first = [np.mean(part == 0) for part in np.array_split(adopted, 10)]
        assert max(of_first) - min(of_first) < 0.1


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_starts_where_it_is_told(engine):
    place = SocialOptions(qualities=TURNED[0], network=NETWORK, popularity=SHARES)
    table = place.table(1, 0, 1)
    state = dynamics(engine).start(table)
    np.testing.assert_array_equal(state.counts, [30, 6, 15, 9])
    if engine == "crowd":
        left = int(first_adoptions(table, np.array([7]))[0])
        moved = dynamics(engine).start(edit_adoption(table, 7, (left + 1) % 3)).counts
        assert moved[left] == state.counts[left] - 1
    else:
        np.testing.assert_array_equal(state.adoption, first_adoptions(table, np.arange(60)))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_silent_population_begins_to_speak(engine):
    """Published, nobody sends where nobody adopts: nothing is drawn, nothing released, and they choose."""
    place = SocialOptions(qualities=(0.9, 0.9, 0.9), network=NETWORK, popularity=(0.0, 0.0, 0.0))
    policy = dynamics(engine, variant="published")
    table, tape = place.table(1, 0, 3), seeded_tape(2, log=50)
    trace, state = place.trace(3, np.arange(1, 4)), policy.start(table)
    policy.play(state, table, tape, trace, 0, 1)
    assert tape.reads[1] == 0
    assert not tape.log.any()
    policy.play(state, table, tape, trace, 1, 3)
    assert tape.reads[1] > 0
    assert trace.measures[-1, 2] > 0.3


def test_without_shares_all_options_begin_alike():
    state = dynamics("mixed").start(SocialOptions(qualities=TURNED[0], n_agents=60).table(1, 0, 1))
    np.testing.assert_array_equal(state.adoption, np.arange(60) % 3)
    np.testing.assert_array_equal(state.counts, [20, 20, 20, 0])


def test_signals_follow_the_qualities_of_their_time():
    rounds = 4000
    place = SocialOptions(qualities=TURNED, n_agents=10, changes=(1000,))
    table = place.table(5, 0, rounds)
    good = np.array([[signal(table, t, j) for j in range(3)] for t in range(rounds)])
    for part, expected in ((good[:1000], TURNED[0]), (good[1000:], TURNED[1])):
        error = 5 / math.sqrt(len(part))  # five standard errors at least: once in 1.7 million
        assert np.abs(part.mean(axis=0) - expected).max() < error * 0.5
    assert np.abs(good[:1000].mean(axis=0) - TURNED[1]).max() > 0.3
    even = SocialOptions(qualities=TURNED * 2, n_agents=10).table(5, 0, 100)
    assert even.starts.tolist() == [0, 25, 50, 75]


@pytest.mark.parametrize("engine", ["tokens", "endpoints", "mixed"])
def test_regret_is_that_of_the_definition_where_qualities_change(engine):
    place = SocialOptions(qualities=TURNED, network=NETWORK, changes=(4,), popularity=SHARES)
    trace, adoptions = play(dynamics(engine), place, 12)
    plain = [[None if x < 0 else int(x) for x in row] for row in adoptions]
    known = oracle.regret(plain[0], plain[1:], lambda t: TURNED[0 if t < 4 else 1])
    assert trace.measures[-1, 0] == pytest.approx(known)
    before = oracle.regret(plain[0], plain[1:], lambda t: TURNED[0])
    assert abs(before - known) > 0.01
    best = trace.popularity[:, 0]
    np.testing.assert_allclose(trace.measures[:4, 1], best[:4])
    np.testing.assert_allclose(trace.measures[4:, 1], trace.popularity[4:, 2])


@pytest.mark.skipif(INTERPRETED, reason="hundreds of rounds")
def test_a_crowd_follows_what_changes_and_forgets_how_it_began():
    for engine in ("mixed", "crowd"):
        policy = dynamics(engine, n_agents=3000, tokens=3000)
        place = SocialOptions(qualities=TURNED, n_agents=3000, popularity=(0.0, 0.05, 0.95))
        trace, _ = play(policy, place, 300)
        assert trace.measures[149, 1] > 0.6  # the first option, which nobody adopted
        assert trace.popularity[149, 2] < 0.3
        assert trace.measures[299, 1] > 0.6


@pytest.mark.parametrize("how", tiered(("here", "processes"), lambda how: how == "here"))
def test_pieces_have_the_same_bits(how):
    place = SocialOptions(qualities=TURNED, n_agents=90, popularity=SHARES)
    policy = dynamics("mixed", n_agents=90)
    whole, split = (
        tacit.simulate(policy, place, horizon=10, seed=3, **partitions)
        for partitions in ({}, {"partitions": 3, "engine": how})
    )
    np.testing.assert_array_equal(whole.measures["regret"], split.measures["regret"])


def test_a_written_world():
    place = build_environment(
        "social-options:qualities=[[0.9,0.1],[0.1,0.9]],changes=[30],popularity=[0,1],n_agents=5"
    )
    assert place == SocialOptions(
        qualities=((0.9, 0.1), (0.1, 0.9)), changes=(30,), popularity=(0.0, 1.0), n_agents=5
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"qualities": ((0.5, 0.5), (0.5,))}, "rows of the same length"),
        ({"qualities": ()}, "not empty"),
        ({"qualities": ((0.5, 1.5),)}, r"in \[0, 1\]"),
        ({"qualities": (0.5, 0.4), "changes": (3,)}, "0 rounds above 0"),
        ({"qualities": TURNED, "changes": (0,)}, "1 rounds above 0"),
        ({"qualities": TURNED, "changes": (5, 9)}, "1 rounds above 0"),
        ({"qualities": (0.5, 0.4), "popularity": (1.0,)}, "2 shares >= 0"),
        ({"qualities": (0.5, 0.4), "popularity": (0.7, 0.7)}, "add up to 1 at most"),
        ({"qualities": (0.5, 0.4), "popularity": (-0.1, 0.7)}, "2 shares >= 0"),
    ],
)
def test_bad_worlds_name_what_is_wrong(settings, message):
    with pytest.raises(ValueError, match=message):
        SocialOptions(n_agents=10, **settings)
