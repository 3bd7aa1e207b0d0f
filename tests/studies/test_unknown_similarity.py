"""The study of users of whom nobody says who resembles whom: its verdict follows the numbers."""

import pytest

from tacit_studies import reproductions


def judged(regret_of):
    study = reproductions()["told-nothing"]
    outcomes = {}
    for job in study.jobs(False):
        label = job.key.split("/")[2]
        outcomes[job.key] = [regret_of[label] + i + (7 * i % 3) / 10 for i in range(40)]
    return study.judge(outcomes, False)


USUAL = {
    "CoLin, told W": 30.0,
    "learned kernel": 60.0,
    "three factors": 70.0,
    "clusters": 120.0,
    "LinUCB": 120.0,
    "LinUCB, shared": 100.0,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "As expected: "),
        ({"learned kernel": 150.0}, "Not as expected: "),
        ({"clusters": 50.0, "learned kernel": 60.0}, "Partly as expected: "),
    ],
)
def test_the_verdict_follows_the_numbers(changes, words):
    found = judged(USUAL | changes)
    assert found.because.startswith(words)
    if not changes:
        assert "gains 67% to 67% without" in found.because
