"""Off-policy estimates: closed forms, the truth within their intervals, and twins that must fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from tacit.simulation.evaluation import Log, doubly_robust, importance_weighted, self_normalised

MEANS = np.array([0.2, 0.5, 0.7])
LOGGED = np.array([0.6, 0.3, 0.1])
TARGET = np.array([0.1, 0.2, 0.7])
VALUE = float(TARGET @ MEANS)


def logged(n, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.choice(3, n, p=LOGGED)
    return Log(arms=arms, rewards=rng.random(n) < MEANS[arms], propensities=LOGGED[arms])


def test_the_closed_forms_by_hand():
    log = Log(arms=[0, 1, 0, 1], rewards=[1, 0, 0, 1], propensities=[0.8, 0.2, 0.8, 0.2])
    target = np.array([0.4, 0.6])
    terms = np.array([0.5, 0.0, 0.0, 3.0])  # weights 1/2 and 3
    found = importance_weighted(log, target)
    assert found.value == pytest.approx(terms.mean())
    assert (found.low, found.high) == (0.0, 1.0)  # four decisions leave everything open
    assert found.effective == pytest.approx(7.0**2 / (0.25 + 9 + 0.25 + 9))
    assert self_normalised(log, target).value == pytest.approx(3.5 / 7)
    expected = np.array([0.5, 0.25])
    by_hand = 0.35 + np.mean([0.25, -0.75, -0.25, 2.25])
    assert doubly_robust(log, target, expected).value == pytest.approx(by_hand)
    many = Log(arms=[0, 1] * 50, rewards=[0.2, 0.3] * 50, propensities=[0.8, 0.2] * 50)
    terms = np.array([0.1, 0.9] * 50)
    found = importance_weighted(many, target)
    reach = student.ppf(0.975, 99) * terms.std(ddof=1) / 10
    assert (found.low, found.high) == pytest.approx((0.5 - reach, 0.5 + reach))


@pytest.mark.parametrize("method", ["ips", "snips", "dr"])
def test_intervals_cover_the_truth(method):
    """1,000 logs: 95% within 5 standard errors (once in 1.7 million), and half as wide does not."""

    def estimate(log):
        if method == "ips":
            return importance_weighted(log, TARGET)
        if method == "snips":
            return self_normalised(log, TARGET)
        return doubly_robust(log, TARGET, np.array([0.3, 0.3, 0.3]))

    found = [estimate(logged(2_000, seed)) for seed in range(1_000)]
    error = np.sqrt(0.95 * 0.05 / 1_000)
    assert abs(np.mean([e.low <= VALUE <= e.high for e in found]) - 0.95) <= 5 * error
    half = [abs(e.value - VALUE) <= (e.high - e.low) / 4 for e in found]
    assert np.mean(half) < 0.95 - 5 * error
    values = np.array([e.value for e in found])
    assert abs(values.mean() - VALUE) <= 5 * values.std() / np.sqrt(1_000)
    assert abs(values.mean() - MEANS @ LOGGED) > 5 * values.std() / np.sqrt(1_000)


def test_a_good_model_narrows_the_doubly_robust_interval():
    log = logged(5_000)
    blind = doubly_robust(log, TARGET, np.zeros(3))
    knowing = doubly_robust(log, TARGET, MEANS)
    plain = importance_weighted(log, TARGET)
    assert (blind.low, blind.high) == pytest.approx((plain.low, plain.high))
    assert knowing.high - knowing.low < 0.8 * (plain.high - plain.low)


def test_an_arm_that_was_never_shown_says_nothing():
    log = Log(arms=[0, 0], rewards=[1, 1], propensities=[1, 1], n_arms=2)
    found = self_normalised(log, np.array([0.0, 1.0]))
    assert np.isnan(found.value)
    assert (found.low, found.high, found.effective) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("target", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.5, -0.5, 0.0]])
def test_a_target_is_probabilities(target):
    with pytest.raises(ValueError, match="expected target"):
        importance_weighted(logged(10), np.array(target))


def test_the_estimates_are_those_of_obp():
    """Another library's estimators on one log, among them arms the target never shows."""
    ope = pytest.importorskip("obp.ope", reason="obp is not installed: pip install 'tacit[dev]'")
    log = logged(5_000)
    expected = np.array([0.1, 0.6, 0.4])
    for target in (TARGET, np.array([0.0, 0.25, 0.75])):
        given = {
            "reward": log.rewards,
            "action": log.arms,
            "position": np.zeros(len(log), int),
            "pscore": log.propensities,
            "action_dist": np.tile(target[:, None], (len(log), 1, 1)),
        }
        theirs = ope.InverseProbabilityWeighting().estimate_policy_value(**given)
        assert importance_weighted(log, target).value == pytest.approx(theirs, rel=1e-12)
        theirs = ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**given)
        assert self_normalised(log, target).value == pytest.approx(theirs, rel=1e-12)
        model = np.tile(expected[:, None], (len(log), 1, 1))
        theirs = ope.DoublyRobust().estimate_policy_value(
            **given, estimated_rewards_by_reg_model=model
        )
        assert doubly_robust(log, target, expected).value == pytest.approx(theirs, rel=1e-12)
