"""Environments of a changing truth: what they draw, what they refuse, and weakly connected networks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit.core.registry import build_environment
from tacit.core.tapes import seeded_tape
from tacit.diffusion import (
    ChangingTruth,
    DiffusionBandit,
    DiffusionLearning,
    RecordedTruth,
    edit_losses,
    edit_signals,
)
from tacit.diffusion.table import loss_at, signal_at, write_truth
from tacit.graphs import Graph, MixingMatrix, ring

T = 4000


def truths(table, rounds=T):
    now = np.empty(table.dominant.shape[1], np.int64)
    path = np.empty((rounds, now.size), np.int64)
    for t in range(rounds):
        write_truth(table, t, now)
        path[t] = now
    return path


def near(share, p, n):
    """Within 5 standard errors: wrong once in 1.7 million."""
    return abs(share - p) <= 5 * math.sqrt(p * (1 - p) / n)


def test_the_dominant_state_dominates_as_told():
    path = truths(ChangingTruth(dominance=0.7, dominant=2).table(1, 0, T))[:, 0]
    assert near((path == 2).mean(), 0.7, T)
    assert not near((path == 2).mean(), 0.78, T)
    for other in (0, 1, 3, 4):
        assert near((path == other).mean(), 0.075, T)


def test_the_dominant_state_is_drawn_and_jumps():
    environment = ChangingTruth(dominance=1.0, switches=3)
    table = environment.table(1, 0, T)
    path = truths(table)[:, 0]
    assert np.flatnonzero(np.diff(path)).tolist() == [999, 1999, 2999]
    first = [environment.table(1, r, T).dominant[0, 0] for r in range(50)]
    assert set(first) == {0, 1, 2, 3, 4}


def test_signals_scatter_around_the_truth():
    table = ChangingTruth(signal_std=2.0).table(1, 0, T)
    signals = np.array([signal_at(table, t, k, 3) for t in range(T) for k in range(3)])
    error = 2 / math.sqrt(signals.size)
    assert abs(signals.mean() - 3) < 5 * error
    assert not abs(signals.mean() - 3.2) < 5 * error
    assert abs(signals.std() - 2) < 5 * error


def test_signals_scatter_as_told_by_agent_and_by_round():
    of_agent = ChangingTruth(signal_std=[0.5, 1.0, 3.0])
    table = of_agent.table(1, 0, T)
    error = 1 / math.sqrt(2 * T)
    for k, told in enumerate((0.5, 1.0, 3.0)):
        found = np.std([signal_at(table, t, k, 3) for t in range(T)])
        assert abs(found / told - 1) < 5 * error
    piece, _ = of_agent.partition(1, 0, T, 1, 3)
    assert [signal_at(piece, 7, k, 3) for k in (0, 1)] == [
        signal_at(table, 7, k, 3) for k in (1, 2)
    ]
    rows = np.ones((20, 3))
    rows[4, 1] = 1e-9
    by_round = ChangingTruth(signal_std=rows)
    table = by_round.table(1, 0, 20)
    assert abs(signal_at(table, 4, 1, 3) - 3) < 1e-7 < abs(signal_at(table, 4, 2, 3) - 3)
    assert by_round == ChangingTruth(signal_std=rows.tolist())
    assert hash(by_round) == hash(ChangingTruth(signal_std=rows))
    with pytest.raises(
        ValueError, match="expected horizon <= 20, the rounds of signal_std, got 21"
    ):
        by_round.table(1, 0, 21)


def test_a_written_world_may_have_a_deviation_for_each_agent():
    world = build_environment("changing-truth:signal_std=[1, 2.5, 3]")
    assert world.signal_std == (1.0, 2.5, 3.0)


def test_losses():
    match = ChangingTruth().table(1, 0, T)
    assert [loss_at(match, 0, 0, s, 2) for s in range(5)] == [1, 1, 0, 1, 1]
    distance = ChangingTruth(losses="distance").table(1, 0, T)
    assert [loss_at(distance, 0, 0, s, 1) for s in range(5)] == [0.25, 0, 0.25, 0.5, 0.75]
    flipped = ChangingTruth(flip_prob=0.3).table(1, 0, T)
    wrong = np.mean([loss_at(flipped, t, k, 2, 2) for t in range(T) for k in range(3)])
    assert near(wrong, 0.3, 3 * T)
    again = [loss_at(flipped, 7, 1, s, 2) for s in range(5)]
    assert again == [loss_at(flipped, 7, 1, s, 2) for s in range(5)]


def test_edits_touch_one_entry_and_the_last_one_wins():
    table = ChangingTruth().table(1, 0, 10)
    edited = edit_losses(table, [(3, 1, 2, 0.5), (3, 1, 2, 0.25)])
    edited = edit_signals(edited, [(3, 1, 9.0)])
    assert loss_at(edited, 3, 1, 2, 0) == 0.25
    assert signal_at(edited, 3, 1, 0) == 9.0
    assert loss_at(edited, 3, 0, 2, 0) == 1.0
    assert signal_at(edited, 2, 1, 0) == signal_at(table, 2, 1, 0)
    with pytest.raises(ValueError, match=r"edit_losses: .* got \(0, 0, 5, 1.0\)"):
        edit_losses(table, [(0, 0, 5, 1.0)])
    with pytest.raises(ValueError, match="edit_signals"):
        edit_signals(table, [(0, 3, 1.0)])


def test_recorded_losses_may_be_shared_or_own():
    shared = np.random.default_rng(1).random((20, 4))
    own = np.repeat(shared[:, None], 3, axis=1)
    states = np.zeros(20, int)
    results = [
        tacit.simulate(
            DiffusionBandit(n_states=4),
            RecordedTruth(states=states, n_states=4, losses=losses),
            horizon=20,
        ).measures["regret"]
        for losses in (shared, own)
    ]
    np.testing.assert_allclose(*results)


ONE_WAY = Graph.from_edges([(0, 1), (1, 0), (2, 3), (3, 2), (1, 4), (3, 4), (4, 5)], directed=True)


def test_a_weakly_connected_network_must_be_asked_for():
    with pytest.raises(ValueError, match=r"ChangingTruth: .*(agent|node)"):
        ChangingTruth(network=ONE_WAY)
    assert ChangingTruth(network=ONE_WAY, connectivity="weak").n_agents == 6


def test_sending_agents_do_not_know_who_receives():
    sending, receiving = MixingMatrix.uniform(ONE_WAY).subnetworks()
    assert [part.tolist() for part in sending] == [[0, 1], [2, 3]]
    assert sorted(np.concatenate(receiving).tolist()) == [4, 5]
    alone = Graph.from_edges([(0, 1), (1, 0), (2, 3), (3, 2)], n_nodes=6, directed=True)
    policy = DiffusionBandit(n_states=5)
    paths = [
        tacit.simulate(
            policy,
            ChangingTruth(network=network, connectivity="weak"),
            horizon=200,
            checkpoints=200,
            record=True,
        )
        .traces[0]
        .beliefs
        for network in (ONE_WAY, alone)
    ]
    np.testing.assert_array_equal(paths[0][:, :4], paths[1][:, :4])
    assert np.abs(paths[0][:, 4:] - paths[1][:, 4:]).max() > 0.01


def test_receivers_of_two_truths_believe_a_mixture():
    """Two sending pairs are certain of different states; receivers without news repeat both."""
    environment = ChangingTruth(
        n_states=2,
        network=ONE_WAY,
        connectivity="weak",
        groups=(0, 0, 1, 1, 0, 0),
        dominant=(0, 1),
        dominance=1.0,
    )
    table = environment.table(1, 0, 300)
    # A signal of 1/2 is equally far from both states and says nothing.
    signals = np.full((300, 6), 0.5)
    for k in range(4):
        signals[:, k] = [signal_at(table, t, k, k // 2) for t in range(300)]
    table = table._replace(signals=signals)
    policy, trace = (
        DiffusionLearning(n_states=2),
        environment.trace(300, np.array([300]), record=True),
    )
    policy.play(policy.start(table), table, seeded_tape(0), trace, 0, 300)
    final = trace.beliefs[-1]
    assert final[:2, 0].min() > 0.999
    assert final[2:4, 1].min() > 0.999
    influence = MixingMatrix.uniform(ONE_WAY).influence()
    np.testing.assert_allclose(final[4:], influence[:, 4:].T, atol=1e-6)


def test_groups_converge_to_their_own_truths():
    halves = Graph.from_edges([(0, 1), (1, 0), (2, 3), (3, 2)], directed=True)
    environment = ChangingTruth(
        network=halves, connectivity="weak", groups=(0, 0, 1, 1), dominant=(1, 3), dominance=1.0
    )
    policy = DiffusionBandit(n_states=5, rates="adaptive")
    result = tacit.simulate(policy, environment, horizon=300, record=True)
    assert result.final("converged")[0] == 1.0
    assert result.final("belief")[0] > 0.99
    assert result.traces[0].beliefs[-1].argmax(axis=1).tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": ((0.5, 0.2), (0.4, 0.8))}, "column 0"),
        ({"network": ((0.0, 1.0), (1.0, 0.0))}, "agent 0"),
        ({"network": ring(5), "weights": "fair"}, "got 'fair'"),
        ({"dominance": 1.2}, "expected dominance"),
        ({"n_states": 0}, "expected n_states >= 1"),
        ({"dominant": 5}, "got 5"),
        ({"losses": "hinge"}, "got 'hinge'"),
        ({"groups": (0, 2, 0)}, "without gaps"),
        ({"signal_std": 0.0}, "expected signal_std > 0"),
        ({"signal_std": [1.0, 2.0]}, "a number, 3 numbers, or 3 numbers for each round"),
        ({"signal_std": [[1.0, 2.0, 3.0], [1.0]]}, "a number, 3 numbers"),
        ({"signal_std": [[1.0, 2.0, -3.0]]}, "expected signal_std > 0 and finite"),
        ({"threshold": 1.0}, "expected threshold"),
        ({"switches": -1}, "expected switches >= 0"),
        ({"connectivity": "some"}, "one of strong, weak"),
    ],
)
def test_bad_worlds_name_what_is_wrong(settings, message):
    with pytest.raises(ValueError, match=message):
        ChangingTruth(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"states": [0, 7], "n_states": 5}, "expected states"),
        ({"states": [0, 1], "signals": np.zeros((2, 2))}, "signals"),
        ({"states": [0, 1], "losses": np.full((2, 2), 1.5)}, r"in \[0, 1\]"),
        ({"states": [0, 1], "losses": np.zeros((3, 2))}, "shape"),
    ],
)
def test_bad_records_name_what_is_wrong(settings, message):
    with pytest.raises(ValueError, match=message):
        RecordedTruth(**settings)


def test_a_record_has_an_end():
    with pytest.raises(ValueError, match="<= 2 recorded rounds, got 3"):
        RecordedTruth(states=[0, 1]).table(0, 0, 3)


def test_worlds_are_values():
    assert ChangingTruth(groups=[0, 0, 0]) == ChangingTruth(groups=(0, 0, 0))
    record = {"states": np.arange(5), "signals": np.ones((5, 3)), "losses": np.zeros((5, 5))}
    assert RecordedTruth(**record) == RecordedTruth(**record)
    assert hash(RecordedTruth(**record)) == hash(RecordedTruth(**record))
    assert RecordedTruth(**record) != RecordedTruth(**{**record, "signals": np.zeros((5, 3))})
    assert RecordedTruth(**record) != RecordedTruth(**record, threshold=0.9)
