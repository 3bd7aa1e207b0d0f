"""Where beliefs become tiny: they come back, and nothing is divided by zero."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.core.kernels import INTERPRETED
from tacit.diffusion import ChangingTruth, DiffusionBandit, DiffusionLearning, RecordedTruth
from tacit.graphs import erdos_renyi, star
from tiers import tiered

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")


def last_beliefs(policy, environment, horizon, seed):
    result = tacit.simulate(
        policy, environment, horizon=horizon, seed=seed, checkpoints=1, record=True, threads=1
    )
    return result.traces[0].beliefs[-1]


@slow
@pytest.mark.parametrize("seed", range(4))
def test_an_agent_that_hardly_hears_itself(seed):
    """A state named with probability 1e-4 costs a factor of e^-10,000 in one round."""
    a = 1e-4
    environment = ChangingTruth(network=((a, 1 - a), (1 - a, a)), groups=(0, 1))
    policy = DiffusionBandit(n_states=5, learning_rate=1.0)
    beliefs = last_beliefs(policy, environment, 20_000, seed)
    assert np.isfinite(beliefs).all()
    assert (beliefs > 0).all()


@slow
def test_the_middle_of_a_large_star():
    policy = DiffusionBandit(n_states=5, learning_rate=1.0)
    beliefs = last_beliefs(policy, ChangingTruth(network=star(1000)), 500, 1)
    assert (beliefs > 0).all()


@slow
@pytest.mark.parametrize("seed", tiered(range(3), lambda seed: seed == 0))
def test_after_100_000_rounds_of_one_truth_agents_learn_another(seed):
    """In 200,000 rounds with one switch; with beliefs that were zero, 9, 10 and 13 of 30 did."""
    environment = ChangingTruth(network=erdos_renyi(30, 0.2, seed=1), switches=1)
    beliefs = last_beliefs(DiffusionBandit(n_states=5), environment, 200_000, seed)
    table = environment.table(seed, 0, 200_000)
    assert (beliefs > 0).all()
    assert np.sum(beliefs.argmax(axis=1) == table.dominant[1, 0]) >= 25


@slow
def test_evidence_without_losses_is_not_forgotten_either():
    """2,000 signals of state 0 make state 1 unlikely by e^-1,000; 3,000 of state 1 outweigh them."""
    environment = RecordedTruth(states=np.repeat([0, 1], [2000, 3000]))
    beliefs = last_beliefs(DiffusionLearning(n_states=2), environment, 5000, 3)
    assert (beliefs > 0).all()
    assert (beliefs[:, 1] > 0.99).all()


def test_a_wild_signal_is_weighed_and_not_dropped():
    """A signal 1,000 standard deviations from any state still says which of them is nearest."""
    signals = np.full((1, 3), 30.0)
    environment = RecordedTruth(states=[0], n_states=5, signals=signals, signal_std=0.026)
    beliefs = last_beliefs(DiffusionLearning(n_states=5), environment, 1, 0)
    assert (beliefs[:, 4] > 0.99).all()
