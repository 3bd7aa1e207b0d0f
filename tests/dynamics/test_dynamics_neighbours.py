"""Neighbouring tables of the dynamics setting change one agent's adoptions and nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import seeded_tape
from tacit.dynamics import LearningDynamics, SocialOptions, edit_adoption
from tacit.graphs import complete
from tacit.simulation.audits import audit_policy
from tiers import tiered

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of runs need compiled kernels")
ENVIRONMENT = SocialOptions(qualities=(0.8, 0.5, 0.2), network=complete(5))
T, N, M = 4, 5, 3


def policy(**changes):
    settings = {"n_options": M, "n_agents": N, "epsilon": 0.5, "tokens": 6, "beta": 0.8}
    return LearningDynamics(**{**settings, **changes})


@pytest.mark.parametrize("engine", ["tokens", "endpoints", "mixed"])
def test_an_edited_adoption_is_what_is_told(engine):
    """Without noise the message of round t is the adoption that the table gives before it."""
    quiet = policy(epsilon=np.inf, engine=engine)
    table = ENVIRONMENT.table(0, 0, T)
    wanted = [2, -1, 0, 1]
    for t, option in enumerate(wanted):
        table = edit_adoption(table, 3, option, before=t)
    state, trace = quiet.start(table), ENVIRONMENT.trace(T, np.array([T]))
    for t, option in enumerate(wanted):
        quiet.play(state, table, seeded_tape(1), trace, t, t + 1)
        assert int(state.message[0, 3]) & (2**M - 1) == (0 if option < 0 else 1 << option)
        counts = np.bincount(state.adoption[state.adoption >= 0], minlength=M)
        assert state.counts[:M].tolist() == counts.tolist()
        assert state.counts.sum() == N


@pytest.mark.parametrize(("unit", "span"), [("message", 1), ("agent", T)])
def test_a_pair_differs_in_the_adoptions_of_one_agent(unit, span):
    pairs = ENVIRONMENT.neighbours(unit, T, limit=100)
    rounds, agents, kinds = set(), set(), set()
    for pair in pairs:
        assert pair.left.edit_rounds.tolist() == pair.right.edit_rounds.tolist()
        assert len(set(pair.left.edit_agents.tolist() + pair.right.edit_agents.tolist())) == 1
        assert pair.left.edit_rounds.size == span
        assert (pair.left.edit_options != pair.right.edit_options).all()
        rounds.update(pair.left.edit_rounds.tolist())
        agents.add(int(pair.left.edit_agents[0]))
        kinds.add(int(pair.right.edit_options[0]))
    assert rounds == set(range(T))
    assert agents == {0, N - 1}
    assert kinds == {M - 1, -1}


def test_one_option_leaves_none_to_compare_with():
    alone = SocialOptions(qualities=(0.5,), n_agents=3)
    pairs = alone.neighbours("agent", 2)
    assert all((pair.right.edit_options == -1).all() for pair in pairs)
    with pytest.raises(ValueError, match="expected unit one of message, agent, got 'loss'"):
        alone.neighbours("loss", 2)


def test_a_crowd_has_no_members_whose_later_adoptions_could_be_given():
    place = SocialOptions(qualities=(0.5, 0.4), n_agents=9)
    table = edit_adoption(place.table(0, 0, 2), 0, 1, before=1)
    crowd = LearningDynamics(n_options=2, n_agents=9, epsilon=1.0, engine="crowd")
    with pytest.raises(ValueError, match="not crowd where later adoptions are given"):
        crowd.start(table)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ((5, 0, 0), "agent in 0..4"),
        ((0, 3, 0), "option in -1..2"),
        ((0, 0, -1), "before >= 0"),
        ((1, 0, 2), "edited once a round"),
    ],
)
def test_an_edit_outside_the_table_is_refused(place, words):
    table = edit_adoption(ENVIRONMENT.table(0, 0, 3), 1, 0, before=2)
    agent, option, before = place
    with pytest.raises(ValueError, match="edit_adoption: expected ") as caught:
        edit_adoption(table, agent, option, before=before)
    assert words in str(caught.value)


def found(chosen, claim, unit, rounds):
    return audit_policy(
        chosen,
        ENVIRONMENT,
        horizon=rounds,
        epsilon=claim,
        delta=0.0,
        neighbours=ENVIRONMENT.neighbours(unit, rounds, limit=4),
        runs=8_000,
        alpha=1e-6,
        seed=1,
        released=N * M * rounds,
    ).result


@slow
@pytest.mark.parametrize(
    ("engine", "encoding"),
    tiered(
        itertools.product(("tokens", "mixed"), ("plain", "optimised")),
        {("tokens", "plain"), ("mixed", "optimised")}.__contains__,
    ),
)
def test_a_whole_history_is_protected_and_half_the_noise_is_noticed(engine, encoding):
    chosen = policy(engine=engine, encoding=encoding, walk_length=2)
    claim = chosen.guarantee(2).epsilon
    assert claim == pytest.approx(1.0)
    assert not found(chosen, claim, "agent", 2).refuted
    cheat = policy(engine=engine, encoding=encoding, walk_length=2, epsilon=1.0)
    assert found(cheat, claim, "agent", 2).refuted


@slow
def test_a_later_message_is_protected_too():
    chosen, cheat = policy(epsilon=1.0), policy(epsilon=2.0)
    assert not found(chosen, 1.0, "message", 3).refuted
    assert found(cheat, 1.0, "message", 3).refuted
