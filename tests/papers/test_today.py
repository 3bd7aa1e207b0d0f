"""What is possible today: cells can be played, a new policy that is behind is named, tables are written."""

from __future__ import annotations

import pytest

from tacit.papers import Finished, pages, papers, reproductions
from tacit.papers.today import PAPER
from tacit.papers.today.__main__ import with_tables
from tacit.papers.today.contest import (
    BEFORE,
    BESIDE,
    NEW,
    Contest,
    Line,
    Point,
    Sweep,
    contested,
    private,
)
from tacit.papers.tools import _built

CONTEST = Contest(
    lines=(
        Line("mine", {"name": "p-imed-cf"}, NEW),
        Line("theirs", {"name": "klucb-cf"}, BEFORE),
        Line("open", {"name": "klucb", "epsilon": None}, BESIDE),
    ),
    sweeps=(
        Sweep(
            "two",
            "Two arms",
            "epsilon",
            tuple(
                Point(e, {"name": "bernoulli", "means": [0.4, 0.6]}, 1000, e) for e in (1.0, 2.0)
            ),
            quick=(1,),
        ),
    ),
    repetitions=3,
    quick_repetitions=2,
)
WORDS = {"name": "today-test", "title": "A test", "question": "Who?", "claim": "We."}


def judged(values):
    study = contested(CONTEST, **WORDS)
    outcomes = {job.key: values[job.key] for job in study.jobs(False)}
    return study, study.judge(outcomes, False)


VALUES = {
    "two/mine/1": [90.0, 100.0, 300.0],
    "two/theirs/1": [380.0, 400.0, 400.0],
    "two/open/1": [10.0, 10.0, 10.0],
    "two/mine/2": [50.0, 50.0, 50.0],
    "two/theirs/2": [40.0, 40.0, 40.0],
    "two/open/2": [10.0, 10.0, 10.0],
}


def test_where_the_new_one_is_behind_is_said():
    _, found = judged(VALUES)
    assert found.rows[0].measured.endswith("before, theirs 400 (384 to 400): 4 times as much")
    assert found.rows[1].measured.endswith(
        "before, theirs 40 (40 to 40): behind, 0.8 times as much"
    )
    assert "ahead in 1 of 2 cells" in found.because
    assert "Behind: Two arms, epsilon = 2 (0.8 times)" in found.because
    assert [series.dashed for series in found.figures[0].series] == [False, False, True]
    assert found.figures[0].series[0].y == [100.0, 50.0]
    ahead = judged(VALUES | {"two/mine/2": [30.0] * 3})[1]
    assert "Behind" not in ahead.because
    assert ahead.because.startswith("As expected")


def test_the_quick_size_is_a_part():
    study = contested(CONTEST, **WORDS)
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
    assert private(policy, 0.5) == expected


@pytest.mark.parametrize("study", PAPER.studies, ids=lambda study: study.name)
@pytest.mark.parametrize("quick", [True, False])
def test_every_cell_can_be_played(study, quick):
    jobs = study.jobs(quick)
    assert len({job.key for job in jobs}) == len(jobs)
    for job in jobs:
        told = job.arguments
        policy, _ = _built(told["policy"], told["environment"], told["horizon"])
        guarantee = policy.guarantee(told["horizon"])
        if "no privacy" not in job.key and "published (claim fails)" not in job.key:
            assert guarantee.private
    assert jobs


def test_it_is_a_page_and_no_paper():
    assert PAPER in pages()
    assert PAPER not in papers()
    assert set(reproductions()) >= {study.name for study in PAPER.studies}
    assert all(study.own and study.paper == PAPER.number for study in PAPER.studies)


def test_tables_are_written_between_their_marks():
    study, found = judged(VALUES)
    page = "Words.\n<!-- tables: begin -->\nold\n<!-- tables: end -->\nMore."
    text = with_tables(page, [Finished(study, False, found, "0.2")])
    assert text.startswith("Words.")
    assert text.endswith("More.")
    assert "old" not in text
    assert "| mine | **100** | 50 |" in text
    assert "| theirs | 400 | **40** |" in text
    assert "| *open* | 10 | 10 |" in text
    assert with_tables(text, [Finished(study, False, found, "0.2")]) == text
    with pytest.raises(ValueError, match="expected a page with"):
        with_tables("nothing", [])
