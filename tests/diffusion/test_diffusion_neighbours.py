"""Neighbouring tables of the diffusion setting change all of a unit and nothing else."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tacit.core.kernels import INTERPRETED
from tacit.diffusion import ChangingTruth, OutsiderPrivateDiffusion, SpyPrivateDiffusion
from tacit.diffusion.table import loss_at, signal_at, write_truth
from tacit.simulation.audits import audit_policy
from tiers import tiered

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of runs need compiled kernels")
ENVIRONMENT = ChangingTruth(n_states=4, dominance=0.7)
N, M, T = 3, 4, 6


def contents(table):
    """Return all losses (T, N, M) and signals (T, N) of a table."""
    losses, signals, truth = np.empty((T, N, M)), np.empty((T, N)), np.zeros(1, np.int64)
    for t in range(T):
        write_truth(table, t, truth)
        for k in range(N):
            signals[t, k] = signal_at(table, t, k, truth[0])
            for state in range(M):
                losses[t, k, state] = loss_at(table, t, k, state, truth[0])
    return losses, signals


@pytest.mark.parametrize("unit", ["loss", "message", "agent"])
def test_a_pair_differs_in_its_unit_alone(unit):
    pairs = ENVIRONMENT.neighbours(unit, T, limit=100)
    rounds, agents, levels = set(), set(), set()
    for pair in pairs:
        (left, heard), (right, other) = contents(pair.left), contents(pair.right)
        changed = left != right
        t, k = np.argwhere(changed.any(axis=2))[0]
        agents.add(k)
        rounds.update(np.flatnonzero(changed.any(axis=(1, 2))).tolist())
        mine = changed[:, k] if unit == "agent" else changed[t, k]
        assert mine.all()
        assert changed.sum() == mine.size
        assert (left[changed] == 0).all()
        assert (right[changed] == 1).all()
        moved = heard != other
        span = T if unit == "agent" else 1
        assert moved.sum() == (0 if unit == "loss" else span)
        assert moved[:, k].sum() == moved.sum()
        elsewhere = left[~changed]
        levels.add("flat" if (elsewhere == elsewhere[0]).all() else "drawn")
    assert agents == {0, N - 1}
    assert rounds == set(range(T))
    assert levels == {"flat", "drawn"}


def test_all_zero_and_all_one_tables_are_among_the_first():
    words = [pair.words for pair in ENVIRONMENT.neighbours("loss", T, limit=4)]
    assert any("all other losses 0" in each for each in words)
    assert any("all other losses 1" in each for each in words)


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match="expected unit one of loss, message, agent, got 'reel'"):
        ENVIRONMENT.neighbours("reel", T)


every_length = pytest.mark.parametrize("runs", tiered((8_000, 20_000), lambda runs: runs == 8_000))


@cache
def found(policy, claim, unit, rounds, runs=20_000):
    pairs = ENVIRONMENT.neighbours(unit, rounds, limit=6)
    return audit_policy(
        policy,
        ENVIRONMENT,
        horizon=rounds,
        epsilon=claim,
        delta=0.0,
        neighbours=pairs,
        runs=runs,
        alpha=1e-6,
        seed=1,
        released=64,
    ).result


@slow
@every_length
def test_a_loss_in_a_block_is_protected_and_half_the_noise_is_noticed(runs):
    policy = OutsiderPrivateDiffusion(n_states=M, epsilon=1.0, block=4)
    assert not found(policy, 1.0, "loss", 4, runs).refuted
    cheat = OutsiderPrivateDiffusion(n_states=M, epsilon=2.0, block=4)
    assert found(cheat, 1.0, "loss", 4, runs).refuted


@slow
@pytest.mark.parametrize(
    "cheat", [{"epsilon": 2.0}, {"signal_epsilon": 2.0}], ids=["loss", "signal"]
)
@every_length
def test_a_message_is_protected_and_half_of_either_noise_is_noticed(cheat, runs):
    settings = {"n_states": M, "epsilon": 1.0, "signal_epsilon": 1.0, "block": 1}
    assert not found(SpyPrivateDiffusion(**settings), 2.0, "message", 1, runs).refuted
    assert found(SpyPrivateDiffusion(**(settings | cheat)), 2.0, "message", 1, runs).refuted


@slow
def test_a_history_is_protected_as_composed():
    policy = SpyPrivateDiffusion(n_states=M, epsilon=0.5, signal_epsilon=0.5, block=2)
    claim = policy.history_guarantee(4).epsilon
    assert not found(policy, claim, "agent", 4).refuted
    assert found(policy, claim / 2, "agent", 4).refuted
