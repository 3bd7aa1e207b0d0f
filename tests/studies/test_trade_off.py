"""The trade-off study: a share of random choice, and a verdict that compares."""

import pytest

from tacit_studies import reproductions
from tacit_studies.extra.trade_off import PROBLEMS, measure_shares


def outcomes(published, sound):
    study = reproductions()["trade-off"]
    return {
        job.key: published if "published" in job.key else sound for job in study.jobs(quick=True)
    }


def test_verdict_flips_with_the_numbers():
    judge = reproductions()["trade-off"].judge
    low, high = [0.1, 0.11, 0.09], [0.9, 0.91, 0.89]
    assert judge(outcomes(high, low), True).because.startswith("As expected:")
    assert judge(outcomes(low, high), True).because.startswith("Partly as expected:")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_hardly_any_privacy_is_better_than_random(problem):
    line = next(iter(PROBLEMS[problem].lines))
    values = measure_shares(problem, line, epsilon=8.0, repetitions=2)
    assert all(0 < value < 0.5 for value in values)
