"""What is possible today: cells can be played, a new policy that is behind is named, tables are written."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit_studies import Finished, pages, papers, reproductions
from tacit_studies.estimates import estimate_quantile
from tacit_studies.leaderboard import PAPER
from tacit_studies.leaderboard.__main__ import replace_tables
from tacit_studies.leaderboard.contest import (
    BEFORE,
    BESIDE,
    NEW,
    Contest,
    Line,
    Point,
    Variation,
    make_study,
    set_epsilon,
)

CONTEST = Contest(
    lines=(
        Line("mine", {"name": "p-imed-cf"}, NEW),
        Line("theirs", {"name": "klucb-cf"}, BEFORE),
        Line("open", {"name": "klucb", "epsilon": None}, BESIDE),
    ),
    variations=(
        Variation(
            "two",
            "Two arms",
            "epsilon",
            tuple(
                Point(e, {"name": "bernoulli", "means": [0.4, 0.6]}, 1000, e) for e in (1.0, 2.0)
            ),
            quick=(1,),
        ),
    ),
    repetitions=40,
    quick_repetitions=40,
)
WORDS = {"title": "A test", "question": "Who?", "claim": "We."}


def judged(values):
    study = make_study("today-test", CONTEST, WORDS)
    outcomes = {job.key: values[job.key] for job in study.jobs(False)}
    return study, study.judge(outcomes, False)


def around(middle, spread=0.0):
    """Forty values whose median is `middle`."""
    return [middle + spread * (i - 19.5) for i in range(40)]


VALUES = {
    "two/mine/1": around(100.0, 1.0),
    "two/theirs/1": around(400.0, 2.0),
    "two/open/1": around(10.0),
    "two/mine/2": around(50.0),
    "two/theirs/2": around(40.0),
    "two/open/2": around(10.0),
}


def test_where_the_new_one_is_behind_is_said():
    _, found = judged(VALUES)
    assert found.rows[0].measured == (
        "mine 100 (92.5 to 106). Before, theirs 400 (385 to 413): ahead, 4 times as much."
    )
    assert found.rows[1].measured.endswith(
        "Before, theirs 40 (40 to 40): behind, 0.8 times as much."
    )
    assert "ahead in 1 of 2 cells" in found.because
    assert "Behind: Two arms, epsilon = 2 (0.8 times)" in found.because
    assert [series.dashed for series in found.figures[0].series] == [False, False, True]
    assert found.figures[0].series[0].y == [100.0, 50.0]
    assert found.figures[0].series[0].low == [92.5, 50.0]
    ahead = judged(VALUES | {"two/mine/2": around(30.0)})[1]
    assert "Behind" not in ahead.because
    assert ahead.because.startswith("As expected")


def test_a_difference_within_its_error_decides_nothing():
    # Finding N1: a median is printed with its error, and the error is used.
    close = judged(VALUES | {"two/mine/2": around(41.0, 2.0), "two/theirs/2": around(40.0, 2.0)})[1]
    assert "Too close to call: Two arms, epsilon = 2" in close.because
    assert "Behind" not in close.because
    assert close.because.startswith("As expected")


def test_a_quantile_needs_twenty_runs_beyond_it():
    # Finding N1: 90% quantiles came from 20 runs, two of them beyond.
    for share, needed in ((0.5, 40), (0.1, 200), (0.9, 200), (0.99, 2000)):
        assert estimate_quantile(range(needed), share).low < share * needed
        with pytest.raises(ValueError, match=f"play {needed} instead"):
            estimate_quantile(range(needed - 1), share)
    with pytest.raises(ValueError, match="a 50% quantile cannot be printed"):
        judged(VALUES | {"two/mine/1": around(100.0)[:39]})


@pytest.mark.parametrize("study", PAPER.studies, ids=lambda study: study.name)
@pytest.mark.parametrize("quick", [True, False])
def test_every_contest_has_the_runs_that_its_tables_need(study, quick):
    # Finding N1: the code that makes the tables takes what the study plays and refuses less.
    jobs = study.jobs(quick)
    outcomes = {job.key: list(range(1, job.arguments["repetitions"] + 1)) for job in jobs}
    found = study.judge(outcomes, quick)
    assert all("(" in row.measured for row in found.rows)
    with pytest.raises(ValueError, match="cannot be printed"):
        study.judge({key: values[:39] for key, values in outcomes.items()}, quick)


@pytest.mark.slow
def test_the_interval_of_a_quantile_covers_it():
    """The 95% interval misses in at most 5% of 2,000 samples; more than 150 misses have a chance below 1e-6.

    The twin has intervals of half the length, which miss far more often.
    """
    rng = np.random.default_rng(5)
    for n, share in ((40, 0.5), (200, 0.9)):
        truth = -np.log(1.0 - share)
        found = [estimate_quantile(rng.exponential(size=n), share) for _ in range(2_000)]
        assert sum(not each.low <= truth <= each.high for each in found) <= 150
        halved = [((q.value + q.low) / 2, (q.value + q.high) / 2) for q in found]
        assert sum(not low <= truth <= high for low, high in halved) > 300


def test_the_quick_size_is_a_part():
    study = make_study("today-test", CONTEST, WORDS)
    quick = study.jobs(True)
    assert [job.key for job in quick] == ["two/mine/2", "two/theirs/2", "two/open/2"]
    assert {job.arguments["horizon"] for job in quick} == {100}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"name": "a"}, {"name": "a", "epsilon": 0.5}),
        ({"name": "a", "epsilon": None}, {"name": "a"}),
        (
            {"name": "a", "privacy": {"kind": "residual"}},
            {"name": "a", "privacy": {"kind": "residual", "epsilon": 0.5}},
        ),
    ],
)
def test_a_policy_is_told_its_epsilon(policy, expected):
    assert set_epsilon(policy, 0.5) == expected


@pytest.mark.parametrize("study", PAPER.studies, ids=lambda study: study.name)
@pytest.mark.parametrize("quick", [True, False])
def test_every_cell_can_be_played(study, quick):
    jobs = study.jobs(quick)
    assert len({job.key for job in jobs}) == len(jobs)
    for job in jobs:
        told = job.arguments
        policy, _ = tacit.build(told["policy"], told["environment"], told["horizon"])
        guarantee = policy.guarantee(told["horizon"])
        if "no privacy" not in job.key and "published (claim fails)" not in job.key:
            assert guarantee.private
    assert jobs


def test_it_is_a_page_and_no_paper():
    assert PAPER in pages()
    assert PAPER not in papers()
    assert set(reproductions()) >= {study.name for study in PAPER.studies}
    assert all(study.own and study.paper == PAPER.name for study in PAPER.studies)


def test_tables_are_written_between_their_marks():
    study, found = judged(VALUES)
    page = "Words.\n<!-- tables: begin -->\nold\n<!-- tables: end -->\nMore."
    text = replace_tables(page, [Finished(study, False, found, "0.2")])
    assert text.startswith("Words.")
    assert text.endswith("More.")
    assert "old" not in text
    assert "| mine | **100** (92.5 to 106) | 50 (50 to 50) |" in text
    assert "| theirs | 400 (385 to 413) | **40** (40 to 40) |" in text
    assert "| *open* | 10 (10 to 10) | 10 (10 to 10) |" in text
    assert replace_tables(text, [Finished(study, False, found, "0.2")]) == text
    with pytest.raises(ValueError, match="expected a page with"):
        replace_tables("nothing", [])
